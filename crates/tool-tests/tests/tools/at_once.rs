//! Files of a directory that are edited at the same time: as one after the other, in every byte and every word.

use std::collections::BTreeMap;
use std::fs;

use crate::common::{data, files_in, stderr, stdout};
use crate::records::{CONDA, JOURNAL, LIST, ONE, SITE, environment, right, row, text};
use crate::wheels::Place;

/// A file of a database for another GPU.
const DATABASE: &str = "env/lib/rocblas/library/Kernels.so-000-gfx90a.hsaco";
/// The directory of a package whose list cannot be read, and a file that it may list.
const UNREADABLE: &str = "env/lib/python3.11/site-packages/baz-1.0.dist-info/RECORD";

/// Makes an environment of 20 more objects, among them hard links, files with other contents than their rows, damaged files,
/// and files without code. If all is to be well, there are no faults.
fn many(is_well: bool) -> Place {
    let (place, hip) = environment();
    let mut rows = text(&place, LIST);
    let mut put = |name: &str, bytes: &[u8], listed: &[u8]| {
        fs::write(place.path(SITE).join(name), bytes).unwrap();
        rows += &row(name, listed);
    };
    let ccob = fs::read(data("hip-ccob-v3.o")).unwrap();
    for number in 0..20 {
        let name = format!("foo/{number:02}.o");
        match number % 5 {
            0 if !is_well => put(&name, &[&hip[..], &[0; 7]].concat(), &hip),
            1 if !is_well => put(&name, &hip[..hip.len() / 2], &hip[..hip.len() / 2]),
            2 => put(&name, &ccob, &ccob),
            3 => put(&name, b"text", b"text"),
            _ => put(&name, &hip, &hip),
        }
    }
    for name in ["foo/0.o", "foo/z.o"] {
        rows += &row(name, &hip);
        let linked = fs::hard_link(place.path(ONE), place.path(SITE).join(name));
        linked.or_else(|_| fs::write(place.path(SITE).join(name), &hip)).unwrap();
    }
    // One file in the lists of two packages.
    let second = place.path(SITE).join("second-1.0.dist-info");
    fs::create_dir(&second).unwrap();
    fs::write(second.join("RECORD"), row("foo/04.o", &hip)).unwrap();
    fs::write(place.path(LIST), rows).unwrap();
    if !is_well {
        fs::create_dir_all(place.path(UNREADABLE)).unwrap();
    }
    fs::create_dir_all(place.path(DATABASE).parent().unwrap()).unwrap();
    fs::write(place.path(DATABASE), &hip[20480..][..3784]).unwrap();
    // Without code for the GPU, the database as a whole would be left alone.
    fs::write(place.path(DATABASE).with_file_name("kept.co"), &hip[8192..][..3208]).unwrap();
    place
}

#[test]
fn directories_are_edited_as_by_one_thread() {
    let mut outcomes = BTreeMap::new();
    for (is_well, args) in [
        (true, "thin --in-place --keep gfx1100 --databases env"),
        (true, "thin --in-place --keep gfx1100 --databases --json env"),
        (true, "thin --dry-run --keep gfx1100 --databases env hip.o"),
        (true, "compress --in-place env"),
        (true, "compress --in-place --max-decompressed 30K env"),
        (true, "decompress --in-place env"),
        (false, "thin --in-place --keep gfx1100 --databases env"),
        (false, "thin --in-place --keep gfx1100 --allow-findings env env/lib/bar.o"),
        (false, "thin --in-place --keep gfx1100 --max-decompressed 9K env"),
        (false, "decompress --in-place --max-decompressed 30K env hip.o"),
    ] {
        let mut first = None;
        for threads in ["1", "2", "3", "16"] {
            let place = many(is_well);
            let args: Vec<&str> = args.split(' ').chain(["-j", threads]).collect();
            let output = place.offload(&args);
            let found = files_in(&place.path(""));
            let seen = (output.status.code(), stdout(&output), stderr(&output), found);
            match &first {
                None => first = Some(seen),
                Some(first) => {
                    assert_eq!((&first.0, &first.1, &first.2), (&seen.0, &seen.1, &seen.2));
                    assert!(first.3 == seen.3, "{args:?}");
                }
            }
        }
        let (code, out, said, found) = first.unwrap();
        if args.starts_with("thin") {
            assert_eq!(code == Some(0), is_well, "{args}: {said}");
        }
        let has_database = !is_well || !args.contains("--databases") || args.contains("dry");
        assert_eq!(found.contains_key(DATABASE), has_database, "{args}: {said}");
        outcomes.insert(args, (out, said));
    }
    let said = &outcomes["thin --in-place --keep gfx1100 --databases env"].1;
    assert!(said.contains("no file was deleted, as others could not be edited"), "{said}");
    assert!(said.contains("RECORD: sizes and hashes corrected: "), "{said}");
}

#[test]
fn all_rows_are_right_after_an_edit_at_the_same_time() {
    let place = many(true);
    place.succeeds(&["thin", "--in-place", "--keep", "gfx1100", "-j", "8", "env"]);
    let list = text(&place, LIST);
    for line in list.lines().filter(|line| !line.ends_with(",,")) {
        let name = line.split(',').next().unwrap();
        assert_eq!(format!("{line}\n"), right(&place, name));
    }
    let second = text(&place, &format!("{SITE}/second-1.0.dist-info/RECORD"));
    assert_eq!(second, right(&place, "foo/04.o"));
    assert!(!place.path(JOURNAL).exists());
}

/// Ends a run as soon as this number of files is new: the next run corrects all rows.
#[cfg(unix)]
#[test]
fn the_next_run_repairs_after_one_with_several_threads_was_killed() {
    use crate::common::machine::{send, wait_for};
    use std::process::Stdio;
    const THIN: [&str; 6] = ["thin", "--in-place", "--keep", "gfx1100", "-j4", "env"];
    let names: Vec<String> = (0..20).map(|number| format!("foo/{number:02}.o")).collect();
    let mut were_interrupted = 0;
    for number in 1..8 {
        let place = many(true);
        let old: Vec<_> = names.iter().map(|name| right(&place, name)).collect();
        let are_new = || {
            let news = names.iter().zip(&old).filter(|(name, old)| right(&place, name) != **old);
            news.count() >= number
        };
        let mut command = place.command(&THIN);
        let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for("some files are new", || {
            (are_new() || run.try_wait().unwrap().is_some()).then_some(())
        });
        if run.try_wait().unwrap().is_none() {
            send(&run, rustix::process::Signal::KILL);
        }
        run.wait().unwrap();
        were_interrupted += u32::from(place.path(JOURNAL).exists());
        place.succeeds(&THIN);
        let list = text(&place, LIST);
        for name in &names {
            assert!(list.contains(&right(&place, name)), "{number}: {name}");
        }
        let second = text(&place, &format!("{SITE}/second-1.0.dist-info/RECORD"));
        assert_eq!(second, right(&place, "foo/04.o"));
        assert!(!place.path(JOURNAL).exists() && !text(&place, CONDA).is_empty());
    }
    assert!(were_interrupted > 0, "all runs ended before they were killed");
}
