//! `roc-obj-ls` and `roc-obj-extract` one after the other, and on the memory of a process. The rest is in `cases/roc-obj`:
//! its rows and names of files are those of AMD's Perl scripts, which were run on the same files.

use std::fs;
#[cfg(target_os = "linux")]
use std::process::Stdio;

#[cfg(target_os = "linux")]
use crate::common::machine::wait_for;
#[cfg(target_os = "linux")]
use crate::common::new_command;
use crate::common::{data, offload, run_with, stderr, tool};

/// A directory with copies of examples.
fn place(files: &[(&str, &str)]) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for (original, name) in files {
        fs::copy(data(original), place.path().join(name)).unwrap();
    }
    place
}

#[test]
fn every_listed_code_object_can_be_extracted() {
    // URIs keep every name of a file.
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
            let listed = run_with(tool("roc-obj-ls"), place.path(), &[option, name], b"");
            assert!(listed.status.success(), "{name}: {}", stderr(&listed));
            let to = format!("to{option}");
            fs::create_dir(place.path().join(&to)).unwrap();
            let output =
                run_with(tool("roc-obj-extract"), place.path(), &["-o", &to], &listed.stdout);
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

#[cfg(target_os = "linux")]
#[test]
fn the_memory_of_a_process_is_extracted() {
    let place = tempfile::tempdir().unwrap();
    // It waits until its input ends.
    let mut waiting = new_command("cat").stdin(Stdio::piped()).spawn().unwrap();
    let pid = waiting.id();
    // The program's first page, as soon as the new process runs it.
    let start = wait_for("the process runs its program", || {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        let line =
            maps.lines().find(|line| line.ends_with("/cat") || line.contains("coreutils"))?;
        line.split('-').next().map(str::to_owned)
    });
    let uri = format!("memory://{pid}#offset=0x{start}&size=4");
    let output = run_with(tool("roc-obj-extract"), place.path(), &["-o-", &uri], b"");
    let nothing = run_with(
        tool("roc-obj-extract"),
        place.path(),
        &[&format!("memory://{pid}#offset=0&size=4")],
        b"",
    );
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(output.stdout, b"\x7fELF");
    assert_eq!(nothing.status.code(), Some(1));
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
}
