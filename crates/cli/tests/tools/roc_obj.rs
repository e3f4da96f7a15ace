//! `roc-obj-ls` and `roc-obj-extract` as users run them. Rows and names of files are those of AMD's Perl scripts, which
//! were run on the same files.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{data, offload, stderr, stdout};

const LS: &str = env!("CARGO_BIN_EXE_roc-obj-ls");
const EXTRACT: &str = env!("CARGO_BIN_EXE_roc-obj-extract");

fn run(tool: &str, args: &[&str], directory: &Path, input: &[u8]) -> Output {
    let mut command = Command::new(tool);
    command.args(args).current_dir(directory);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A tool that does not read its input may be gone.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// A directory with copies of examples.
fn place(files: &[(&str, &str)]) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for (original, name) in files {
        fs::copy(data(original), place.path().join(name)).unwrap();
    }
    place
}

fn row(bundle: usize, id: &str, uri: &str) -> String {
    format!("{bundle:<8}{id:<40}{:>35}{uri}\n", "file://")
}

const HOST: &str = "host-x86_64-unknown-linux-gnu-";
const GFX1100: &str = "hipv4-amdgcn-amd-amdhsa--gfx1100";

#[test]
fn rows_are_those_of_amds_script() {
    let place = place(&[("hip-two-units.so", "a.so"), ("hip.hipfb", "b")]);
    let output = run(LS, &["a.so", "b"], place.path(), b"");
    let expected = [
        row(1, HOST, "a.so#offset=8192&size=0"),
        row(1, GFX1100, "a.so#offset=8192&size=3208"),
        row(2, HOST, "a.so#offset=16384&size=0"),
        row(2, GFX1100, "a.so#offset=16384&size=3208"),
        row(3, HOST, "b#offset=4096&size=0"),
        row(3, GFX1100, "b#offset=4096&size=3208"),
    ];
    assert_eq!(stdout(&output), expected.concat());
    assert!(output.status.success() && stderr(&output).is_empty());

    let output = run(LS, &["-vd", "b"], place.path(), b"");
    let head = format!("{:<8}{:<40}{:>35}\n", "Bundle#", "Entry ID:", "URI:");
    let row = |size| {
        row(1, if size == 0 { HOST } else { GFX1100 }, &format!("b#offset=4096&size={size}"))
    };
    assert_eq!(stdout(&output), [head, row(0), row(3208), "\n".to_owned()].concat());
    assert!(
        stderr(&output).ends_with(": b: bundle 1 at offset 0, 7304 bytes\n"),
        "{}",
        stderr(&output)
    );
    // As the script: nothing to list is nothing wrong.
    assert!(run(LS, &[], place.path(), b"").status.success());
}

#[test]
fn what_is_listed_can_be_extracted() {
    // No name of a file gets lost on the way.
    for (original, name, count) in [
        ("hip.o", "hip.o", 4),
        ("hip.o", "50% of, my #1.o", 4),
        ("hip-two-units.so", "libfoo+bar.so.1", 2),
        ("libbundles.a", "libbundles.a", 3),
        ("bundle.s", "bundle.s", 2),
    ] {
        let place = place(&[(original, name)]);
        let extracted = offload([
            "extract".as_ref(),
            place.path().join(name).as_os_str(),
            "-o".as_ref(),
            place.path().join("out").as_os_str(),
        ]);
        assert!(extracted.status.success(), "{name}: {}", stderr(&extracted));
        for option in ["-v", "-d"] {
            let listed = run(LS, &[option, name], place.path(), b"");
            assert!(listed.status.success(), "{name}: {}", stderr(&listed));
            let to = format!("to{option}");
            fs::create_dir(place.path().join(&to)).unwrap();
            let output = run(EXTRACT, &["-o", &to], place.path(), &listed.stdout);
            assert!(output.status.success() && stderr(&output).is_empty(), "{}", stderr(&output));
            assert!(output.stdout.is_empty());
            let contents = |directory: &str| {
                let files = fs::read_dir(place.path().join(directory)).unwrap();
                let mut contents: Vec<_> =
                    files.map(|file| fs::read(file.unwrap().path()).unwrap()).collect();
                contents.sort();
                contents
            };
            assert_eq!(contents(&to).len(), count, "{name}");
            if name != "bundle.s" {
                assert!(contents(&to) == contents("out"), "{name}");
            }
        }
    }
}

#[test]
fn ranges_and_names_of_outputs() {
    let place = place(&[("hip.hipfb", "a")]);
    let bytes = fs::read(data("hip.hipfb")).unwrap();
    let at = |name: &str| fs::read(place.path().join(name));
    for (uri, name, range) in [
        ("file://a#offset=4096&size=3208", "a-offset4096-size3208.co", 4096..7304),
        ("file://a#offset=4096", "a-offset4096-size3208.co", 4096..7304),
        ("FILE://./%61?offset=0x10&size=010", "a-offset16-size8.co", 16..24),
        ("file://a#size=5", "a-offset0-size5.co", 0..5),
        ("file://a", "a-offset0-size7304.co", 0..7304),
        ("file://a#offset=7304", "a-offset7304-size0.co", 0..0),
    ] {
        let output = run(EXTRACT, &[uri, "-v"], place.path(), b"file://none");
        assert!(
            output.status.success() && stderr(&output).is_empty(),
            "{uri}: {}",
            stderr(&output)
        );
        assert_eq!(stdout(&output).lines().count(), 1, "{uri}");
        assert_eq!(
            at(name).ok(),
            Some(bytes[range.clone()].to_vec()).filter(|part| !part.is_empty()),
            "{uri}"
        );
        let output = run(EXTRACT, &["-o-", uri, uri], place.path(), b"");
        assert!(output.status.success());
        assert_eq!(output.stdout, [&bytes[range.clone()], &bytes[range]].concat(), "{uri}");
    }
}

#[test]
fn each_uri_that_fails_counts() {
    let place = place(&[("hip.hipfb", "a")]);
    let bad = [
        "file://none",
        "file://a#offset=4096&size=3209",
        "file://a#offset=7305",
        "file://a#offset=18446744073709551615&size=2",
        "file://.",
        "file://a/..",
        "http://a",
        "memory://1",
        "memory://self#offset=0&size=1",
    ];
    let uris = [&bad[..], &["file://a#size=4"]].concat();
    let output = run(EXTRACT, &uris, place.path(), b"");
    assert_eq!(output.status.code(), Some(bad.len() as i32), "{}", stderr(&output));
    for (line, uri) in stderr(&output).lines().zip(bad) {
        assert!(line.contains(&format!("error: {uri}: ")), "{line}");
    }
    // The others are extracted, and nothing else appears.
    let names: Vec<_> =
        fs::read_dir(&place).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(fs::read(place.path().join("a-offset0-size4.co")).unwrap(), b"__CL");

    for args in
        [&["-o", "none", "file://a"][..], &["-o", "a", "file://a"], &["-x", "file://a"], &[]]
    {
        let output = run(EXTRACT, args, place.path(), b"\n");
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(!stderr(&output).is_empty() && output.stdout.is_empty(), "{args:?}");
    }
    assert_eq!(fs::read_dir(&place).unwrap().count(), 2);
}

#[cfg(target_os = "linux")]
#[test]
fn memory_of_a_process() {
    let place = tempfile::tempdir().unwrap();
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = sleeper.id();
    // The program's first page, unless the process is not there yet.
    let start = (0..100).find_map(|_| {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        let line = maps.lines().find(|line| line.ends_with("/sleep") || line.contains("coreutils"));
        std::thread::sleep(std::time::Duration::from_millis(20));
        line.and_then(|line| line.split('-').next().map(str::to_owned))
    });
    let uri = format!("memory://{pid}#offset=0x{}&size=4", start.unwrap());
    let output = run(EXTRACT, &["-o-", &uri], place.path(), b"");
    let nothing = run(EXTRACT, &[&format!("memory://{pid}#offset=0&size=4")], place.path(), b"");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(output.stdout, b"\x7fELF");
    assert_eq!(nothing.status.code(), Some(1));
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
}

#[test]
fn uris_name_the_files_of_a_thin_archive() {
    let data = data("hip.o");
    let output = run(LS, &["libhip-thin.a"], data.parent().unwrap(), b"");
    let text = stdout(&output);
    assert!(text.contains("://hip.o#offset=12288&size=2752\n"), "{text}");
    assert_eq!(text.lines().count(), 5, "{text}");
    // One of them is compressed.
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("4 code objects in compressed bundles"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn code_objects_without_a_uri_are_an_error() {
    for (file, words) in [
        ("hip-two-units-ccob.so", "no URI can name the 4 code objects in compressed bundles"),
        ("hip-ccob-v3.hipfb", "no URI can name the 2 code objects in compressed bundles"),
        ("packages.offload", "no bundle: `offload ls` lists"),
        ("host.o", "no device images"),
        ("none", "No such file"),
        ("-", "No such file"),
    ] {
        let place = place(&[("hip.hipfb", "good")]);
        if !["none", "-"].contains(&file) {
            fs::copy(data(file), place.path().join(file)).unwrap();
        }
        let output = run(LS, &[file, "good"], place.path(), b"");
        assert_eq!(output.status.code(), Some(1), "{file}");
        let message = format!("error: {file}: {words}");
        assert!(stderr(&output).contains(&message), "{file}: {}", stderr(&output));
        // Files after it are listed.
        assert_eq!(stdout(&output).lines().count(), 2, "{file}");
    }
    let damaged = place(&[("hip.hipfb", "a")]);
    let mut bytes = fs::read(data("hip.hipfb")).unwrap();
    bytes.truncate(100);
    fs::write(damaged.path().join("a"), bytes).unwrap();
    let output = run(LS, &["a"], damaged.path(), b"");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("error: a: "), "{}", stderr(&output));
}
