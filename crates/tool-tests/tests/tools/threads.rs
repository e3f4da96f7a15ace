//! Output of the tools does not depend on the number of threads.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::common::{all_data, data, files_in, new_command, tool};

fn offload(place: &Path, args: &[&str]) -> Output {
    new_command(tool("offload")).args(args).current_dir(place).output().unwrap()
}

/// Runs a command with several numbers of threads, each time in a directory of its own with these files.
fn compare(inputs: &[(String, Vec<u8>)], args: &[&str]) {
    let mut first = None;
    let numbers = [&["-j", "1"][..], &["-j2"], &[], &["--threads", "3"], &["--threads=64"]];
    for threads in &numbers[..if samples::faulty::is_thorough() { 5 } else { 2 }] {
        let place = tempfile::tempdir().unwrap();
        for (name, bytes) in inputs {
            fs::write(place.path().join(name), bytes).unwrap();
        }
        let output = offload(place.path(), &[args, *threads].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let seen = (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
            files_in(place.path()),
        );
        assert!(matches!(seen.0, Some(0 | 1)), "{args:?}: {seen:?}");
        match &first {
            None => first = Some(seen),
            Some(first) => assert!(*first == seen, "{args:?} {threads:?}: {first:?}\n{seen:?}"),
        }
    }
}

/// Every example file, damaged files, and a missing one.
fn many() -> (Vec<(String, Vec<u8>)>, Vec<String>) {
    let mut inputs = Vec::new();
    for path in all_data() {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let bytes = fs::read(&path).unwrap();
        inputs.push((format!("cut-{name}"), bytes[..bytes.len() * 2 / 3].to_vec()));
        inputs.push((name, bytes));
    }
    let mut names: Vec<String> = inputs.iter().map(|(name, _)| name.clone()).collect();
    names.insert(7, "missing".to_owned());
    (inputs, names)
}

#[test]
fn many_files_are_listed_in_order() {
    let (inputs, names) = many();
    for args in [
        &["ls"][..],
        &["ls", "--json"],
        &["ls", "--tree", "--target", "gfx90a:xnack-"],
        &["verify"],
        &["match", "--gpu", "gfx90a:xnack-"],
        &["match", "--gpu", "gfx906", "--gpu", "gfx1100", "--json"],
    ] {
        let names = names.iter().map(String::as_str);
        let args: Vec<&str> = args.iter().copied().chain(names).collect();
        compare(&inputs, &args);
    }
}

#[test]
fn the_first_of_two_dashes_reads_the_pipe() {
    let place = tempfile::tempdir().unwrap();
    let script = "cat \"$1\" | \"$0\" ls - - -j 4";
    let output = new_command("sh")
        .args(["-c", script, tool("offload")])
        .arg(data("hip.hipfb"))
        .current_dir(place.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let sizes: Vec<&str> = text.lines().filter(|line| line.starts_with("<stdin>")).collect();
    assert_eq!(sizes.len(), 2, "{text}");
    assert!(sizes[0].contains("KiB") && !sizes[1].contains("KiB"), "{text}");
}

/// Bundles with large images, each compressed or not, one after the other.
fn large(compressed: bool) -> Vec<u8> {
    let place = tempfile::tempdir().unwrap();
    let host = place.path().join("host");
    fs::write(&host, "").unwrap();
    let mut all = Vec::new();
    for n in 0..4_u8 {
        let mut args = vec!["bundle".to_owned(), "-o".into(), "bundle".into()];
        args.push("host-x86_64-unknown-linux-gnu-=host".into());
        for (m, processor) in (0..).zip(["gfx906", "gfx90a", "gfx1100"]) {
            // Each image differs from the others.
            let image: Vec<u8> =
                (0..400_000_u32).map(|i| (i / (7 + u32::from(n)) % 251) as u8 ^ m).collect();
            let image = [b"\x7fELF\x02\x01\x01\x40", &image[..]].concat();
            fs::write(place.path().join(processor), image).unwrap();
            args.push(format!("hipv4-amdgcn-amd-amdhsa--{processor}={processor}"));
        }
        args.extend(compressed.then(|| "--compress".to_owned()));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = offload(place.path(), &args);
        assert!(output.status.success(), "{output:?}");
        all.extend(fs::read(place.path().join("bundle")).unwrap());
        all.resize(all.len().next_multiple_of(4096), 0);
    }
    all
}

#[test]
fn large_images_are_the_same_with_any_number_of_threads() {
    for compressed in [true, false] {
        let inputs = [("input".to_owned(), large(compressed))];
        for args in [
            &["ls", "input"][..],
            &["verify", "input"],
            &["match", "--gpu", "gfx906", "input"],
            &["extract", "input", "-o", "."],
            &["extract", "input", "-o", ".", "--target", "gfx90a"],
            &[
                "unbundle",
                "input",
                "hip-amdgcn-amd-amdhsa--gfx906=a",
                "hipv4-amdgcn-amd-amdhsa--gfx90a=b",
                "hipv4-amdgcn-amd-amdhsa--gfx1100=c",
                "host-x86_64-unknown-linux-gnu=d",
            ],
            &["decompress", "input", "-o", "output"],
            &["thin", "--keep", "gfx906", "input", "-o", "output"],
            &["compress", "--recompress", "input", "-o", "output"],
        ] {
            compare(&inputs, args);
        }
    }
}
