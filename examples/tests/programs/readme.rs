//! README.md shows what is printed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::common::{data, new_command};
use crate::wheels::wheel;

#[test]
fn sessions_in_the_readme_are_current() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    symlink(directory, place.join("examples")).unwrap();
    fs::create_dir(place.join("wheels")).unwrap();
    let [hip, cuda] = ["hip.o", "cuda-fatbin.o"].map(|name| fs::read(data(name)).unwrap());
    let members = [("libhip.so", &hip[..]), ("libcuda.so", &cuda)];
    wheel(&place.join("wheels/gpu-1.0-py3-none-any.whl"), &members);
    let programs = Path::new(env!("CARGO_BIN_EXE_gpus")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());

    let readme = fs::read_to_string(directory.join("README.md")).unwrap();
    let sessions: Vec<_> = readme.split("```console\n").skip(1).collect();
    assert!(!sessions.is_empty());
    for session in sessions {
        let (session, _) = session.split_once("```").unwrap();
        for step in session.strip_prefix("$ ").unwrap().split("\n$ ") {
            let (command, expected) = step.split_once('\n').unwrap_or((step, ""));
            let mut shell = new_command("sh");
            shell.args(["-c", &format!("{{ {command}; }} 2>&1")]);
            let output = shell.current_dir(place).env("PATH", &path).output().unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            assert_eq!(printed.trim_end(), expected.trim_end(), "$ {command}");
        }
    }
}
