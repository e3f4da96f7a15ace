//! `llvm-offload-binary` with many images, devices, and names that are not text. The rest is in `cases/packager`.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::common::{self, new_command, stderr, tool};
use samples::binary::llvm_22;
use tempfile::{TempDir, tempdir};

fn run_with(place: &TempDir, args: &[&str], input: &[u8]) -> Output {
    common::run_with(tool("llvm-offload-binary"), place.path(), args, input)
}

fn good(place: &TempDir, args: &[&str]) {
    let output = run_with(place, args, b"");
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
}

const IMAGE: &str = "--image=file=a.o,triple=nvptx64-nvidia-cuda,arch=sm_70,kind=cuda";

/// A place with `a.o`.
fn place() -> TempDir {
    let place = tempdir().unwrap();
    fs::write(place.path().join("a.o"), "hello image").unwrap();
    place
}

#[test]
fn many_images_need_few_open_files() {
    const IMAGES: usize = 200;
    let few = |place: &TempDir, args: &[&str]| {
        let script = ["-c", "ulimit -n 32; exec \"$@\"", "sh", tool("llvm-offload-binary")];
        let output = common::run_with("sh", place.path(), &[&script, args].concat(), b"");
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    };
    let place = place();
    let image = IMAGE.replace("a.o", &["a.o"; IMAGES].join(",file="));
    fs::write(place.path().join("response"), format!("-o many '{image}'")).unwrap();
    few(&place, &["@response"]);
    let many = fs::read(place.path().join("many")).unwrap();
    assert_eq!(many, llvm_22().repeat(IMAGES));
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("many"), many).unwrap();
    few(&dir, &["many"]);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), IMAGES + 1);
}

#[test]
#[cfg(unix)]
fn pipes_and_devices_are_not_replaced() {
    let place = place();
    good(&place, &["-o", "p", IMAGE]);
    good(&place, &["p", "--image=arch=sm_70,file=/dev/null"]);
    assert!(!Path::new("/dev/null").metadata().unwrap().is_file());
    let output = run_with(
        &place,
        &["-o", "/dev/stdout", &IMAGE.replace("a.o", "/dev/stdin")],
        b"hello image",
    );
    let mut expected = llvm_22();
    expected[32] = 0;
    assert_eq!(output.stdout, expected, "{}", stderr(&output));
}

#[test]
#[cfg(unix)]
fn a_name_need_not_be_utf_8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let place = place();
    let name = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    let odd = place.path().join(name(b"\xff.o"));
    fs::rename(place.path().join("a.o"), &odd).unwrap();
    let image = name(b"--image=file=\xff.o,triple=nvptx64-nvidia-cuda,arch=sm_70,kind=cuda");
    let status = new_command(tool("llvm-offload-binary"))
        .args([name(b"-o"), name(b"\xfe"), image])
        .current_dir(&place)
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(fs::read(place.path().join(name(b"\xfe"))).unwrap(), llvm_22());
}
