//! `llvm-offload-binary` with many images, devices, and names that are not text. The rest is in `cases/packager`.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::common::{self, new_command, stderr, tool};
use tempfile::{TempDir, tempdir};

fn run_with(place: &TempDir, args: &[&str], input: &[u8]) -> Output {
    common::run_with(tool("llvm-offload-binary"), place.path(), args, input)
}

fn good(place: &TempDir, args: &[&str]) {
    let output = run_with(place, args, b"");
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| u8::try_from(c.to_digit(16).unwrap()).unwrap())
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// `llvm-offload-binary -o v1.bin --image=file=a.o,triple=nvptx64-nvidia-cuda,arch=sm_70,kind=cuda` of LLVM 22.1.8,
/// where a.o holds `hello image`.
const V1: &str = "10ff10ad01000000 a000000000000000 2000000000000000 2800000000000000
    0100020000000000 4800000000000000 0200000000000000 9000000000000000
    0b00000000000000 6900000000000000 8900000000000000 6e00000000000000
    7500000000000000 0061726368007472 69706c65006e7670 747836342d6e7669
    6469612d63756461 00736d5f37300000 68656c6c6f20696d 6167650000000000";

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
    assert_eq!(many, hex(V1).repeat(IMAGES));
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
    let mut expected = hex(V1);
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
    assert_eq!(fs::read(place.path().join(name(b"\xfe"))).unwrap(), hex(V1));
}
