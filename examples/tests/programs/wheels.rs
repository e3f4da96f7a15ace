//! Wheels are made here, of real files.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::common::{data, fails, images, run, start};

const WHEELS: &str = env!("CARGO_BIN_EXE_wheels");

pub(crate) fn wheel(path: &Path, members: &[(&str, &[u8])]) {
    let mut zip = ZipWriter::new(File::create(path).unwrap());
    for (name, contents) in members {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(contents).unwrap();
    }
    zip.finish().unwrap();
}

fn read(name: &str) -> Vec<u8> {
    fs::read(data(name)).unwrap()
}

#[test]
fn images_are_counted_by_target() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    fs::create_dir(place.join("wheels")).unwrap();
    let (_, code_object) = images(&data("hip.hipfb")).remove(1);
    wheel(
        &place.join("wheels/gpu-1.0-py3-none-any.whl"),
        &[
            ("gpu/__init__.py", b"import gpu"),
            ("gpu/libhip.so", &read("hip-two-units-ccob.so")),
            ("gpu/data", &read("packages.offload")),
            ("gpu/libcuda.o", &read("cuda-fatbin.o")),
            ("gpu/kernels/scale.hsaco", &code_object),
        ],
    );
    wheel(&place.join("wheels/pure-1.0-py3-none-any.whl"), &[("pure.py", b"pass")]);
    fs::write(place.join("wheels/notes.txt"), "no wheel").unwrap();
    let listed = "\
wheels/gpu-1.0-py3-none-any.whl
  compute_70               PTX               2 images       1.3 KiB
  compute_80               PTX               1 images       0.7 KiB
  generic                  SPIR-V            1 images       0.5 KiB
  gfx1100                  ELF               3 images       9.4 KiB
  gfx1100                  LLVM bitcode      1 images       4.2 KiB
  gfx906                   ELF               2 images       5.4 KiB
  gfx90a                   ELF               1 images       3.7 KiB
  sm_70                    cubin             2 images       1.2 KiB
wheels/pure-1.0-py3-none-any.whl: no device code
";
    assert_eq!(run(place, WHEELS, &[&"wheels"]), listed);
}

#[test]
fn damaged_wheels_are_reported_and_others_listed() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let zeros = [b"\x7fELF".to_vec(), vec![0; 17 << 20]].concat();
    wheel(&place.join("bomb.whl"), &[("small.o", &zeros)]);
    let sound = [("lib.so", &read("hip-two-units.so")[..]), ("a\u{1b}b.o", &read("host.o"))];
    wheel(&place.join("cut.whl"), &sound);
    let whole = fs::read(place.join("cut.whl")).unwrap();
    fs::write(place.join("cut.whl"), &whole[..whole.len() - 30]).unwrap();
    // The checksum of the second file, in the directory at the end.
    let mut bad = whole.clone();
    let at = bad.windows(4).rposition(|bytes| bytes == b"PK\x01\x02").unwrap();
    bad[at + 16] ^= 1;
    fs::write(place.join("sum.whl"), bad).unwrap();
    fs::write(place.join("text.whl"), "no zip file").unwrap();
    wheel(&place.join("sound.zip"), &sound);
    let output = start(place, WHEELS, &[&"."]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        said,
        "wheels: ./bomb.whl: small.o: this wheel unpacks to more than a wheel does\n\
         wheels: ./cut.whl: invalid Zip archive: Could not find EOCD\n\
         wheels: ./sum.whl: a\\u{1b}b.o: Invalid checksum\n\
         wheels: ./text.whl: invalid Zip archive: Could not find EOCD\n\
         wheels: 4 damaged\n"
    );
    let listed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        listed.matches("  gfx1100 ").count(),
        2,
        "the sound one, and what there is of another: {listed}"
    );
}

#[test]
fn wheels_are_checked_for_a_gpu() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let members = ["hip.o", "cuda-fatbin.o"].map(|name| (name, read(name)));
    let members = members.each_ref().map(|(name, contents)| (*name, &contents[..]));
    wheel(&place.join("gpu.whl"), &members);
    let listed = run(place, WHEELS, &[&"--gpu", &"gfx906:xnack-", &"gpu.whl"]);
    for line in [
        "2.7 KiB  is generic code, gfx9-generic covers gfx906\n",
        "2.7 KiB  needs xnack on, the device has it off\n",
    ] {
        assert!(listed.contains(line), "{listed}");
    }
    // PTX is for newer GPUs, too.
    let listed = run(place, WHEELS, &[&"--gpu", &"sm_90", &"gpu.whl"]);
    assert!(listed.contains("is PTX for compute_80, compiled for sm_90 when"), "{listed}");
    wheel(&place.join("pure.whl"), &[("pure.py", b"pass")]);
    let said = fails(place, WHEELS, &[&"--gpu", &"sm_61", &"gpu.whl", &"pure.whl"]);
    assert_eq!(said, "wheels: 2 without code for this GPU\n");
    let said = fails(place, WHEELS, &[&"--gpu", &"gfx906:xnack", &"gpu.whl"]);
    assert!(said.contains("xnack"), "{said}");
    assert!(fails(place, WHEELS, &[]).starts_with("wheels: usage: "));
}

/// One bundle for each source file: the program that loads the library loads both.
#[test]
fn every_container_of_a_file_needs_code() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let code = images(&data("hip.o"));
    let bundle = |gpu: &str| {
        let id = format!("hipv4-amdgcn-amd-amdhsa--{gpu}");
        let (_, code) = code.iter().find(|(target, _)| target.ends_with(gpu)).unwrap();
        let layout = bundle_format::layout([(id, code.len() as u64)], 4096).unwrap();
        let mut bundle = layout.to_vec(&[code]).unwrap();
        bundle.resize(bundle.len().next_multiple_of(4096), 0);
        bundle
    };
    let (first, second) = ("gfx906:xnack+", "gfx1100");
    let both = [bundle(first), bundle(second)].concat();
    wheel(&place.join("gpu.whl"), &[("kernels.hipfb", &both)]);
    wheel(&place.join("one.whl"), &[("kernels.hipfb", &bundle(first))]);
    let output = start(place, WHEELS, &[&"--gpu", &first, &"gpu.whl", &"one.whl"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), &said[..]),
        (Some(1), "wheels: 1 without code for this GPU\n")
    );
    let listed = String::from_utf8(output.stdout).unwrap();
    let (gpu, one) = listed.split_once("one.whl\n").unwrap();
    assert!(gpu.ends_with("  no code in kernels.hipfb: bundle:1\n"), "{gpu}");
    assert!(!one.contains("no code in"), "{one}");
}

/// Names of files need not be UTF-8 where the system does not want it.
#[test]
#[cfg(target_os = "linux")]
fn names_of_wheels_are_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join(std::ffi::OsStr::from_bytes(b"w\xff.whl"));
    wheel(&path, &[("hip.o", &read("hip.o"))]);
    assert!(run(place.path(), WHEELS, &[&"."]).contains("  gfx906:xnack+ "));
}
