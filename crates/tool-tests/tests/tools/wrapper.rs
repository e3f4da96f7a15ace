//! `llvm-offload-wrapper`, `clang-offload-wrapper` and `offload wrap` write the modules of the library. Errors and help
//! are in `cases/wrapper`; `llvm/wrapper_bitcode.rs` and `llvm/wrapper_ir.rs` compare the outputs with tool("llvm-offload-wrapper")'s.

use std::fs;
use std::process::Output;

use crate::common::{self, stderr, tool};
use offload_binary::{FormatVersion, ImageEntry};
use tempfile::{TempDir, tempdir};
use wrapper_ir::{Abi, Image, OffloadKind, Target, Wrapper};

const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// A place with two images.
fn place() -> TempDir {
    let place = tempdir().unwrap();
    fs::write(place.path().join("a"), IMAGES[0]).unwrap();
    fs::write(place.path().join("b"), IMAGES[1]).unwrap();
    place
}

const IMAGES: [&[u8]; 2] = [b"\x7fELF, the first image", b"another"];

fn run_with(tool: &str, place: &TempDir, args: &[&str], input: &[u8]) -> Output {
    common::run_with(tool, place.path(), args, input)
}

/// Runs a command that must succeed without a message, and returns standard output.
fn good(tool: &str, place: &TempDir, args: &[&str]) -> Vec<u8> {
    let output = run_with(tool, place, args, b"");
    assert_eq!(stderr(&output), "", "{args:?}");
    assert_eq!(output.status.code(), Some(0), "{args:?}");
    output.stdout
}

fn read(place: &TempDir, name: &str) -> Vec<u8> {
    fs::read(place.path().join(name)).unwrap()
}

/// Returns the bitcode that the library makes of these images.
fn bitcode(kind: OffloadKind, abi: Abi, images: &[&[u8]], ids: &[&str]) -> Vec<u8> {
    let mut wrapper = Wrapper::new(kind, abi, Target::new(TRIPLE).unwrap());
    for (index, image) in images.iter().enumerate() {
        let image = Image::from_bytes(image);
        wrapper = wrapper.with_image(match ids.get(index) {
            Some(id) => image.with_target_id(*id),
            None => image,
        });
    }
    wrapper.module().unwrap().bitcode().unwrap().to_vec(images).unwrap()
}

#[test]
fn llvm_wraps_each_kind() {
    let place = place();
    for kind in Wrapper::KINDS {
        // SYCL wraps a package, or raw bytes.
        let (option, triple) = (format!("--kind={kind}"), format!("-triple={TRIPLE}"));
        good(tool("llvm-offload-wrapper"), &place, &[&option, &triple, "-o", "out.bc", "b"]);
        assert!(read(&place, "out.bc") == bitcode(kind, Abi::Current, &IMAGES[1..], &[]), "{kind}");
    }
    let triple = format!("--triple={TRIPLE}");
    good(
        tool("llvm-offload-wrapper"),
        &place,
        &["a", "--kind", "openmp", &triple, "b", "-o=out.bc"],
    );
    assert!(read(&place, "out.bc") == bitcode(OffloadKind::OPENMP, Abi::Current, &IMAGES, &[]));
}

#[test]
fn clang_pairs_target_ids_with_images_in_their_order() {
    let place = place();
    let ids = ["gfx906", "gfx90a:xnack+"];
    let expected = bitcode(OffloadKind::OPENMP, Abi::Aomp, &IMAGES, &ids);
    for args in [
        &["--offload-arch=gfx906", "a", "--offload-arch=gfx90a:xnack+", "b"][..],
        &["a", "b", "-offload-arch", "gfx906", "--offload-arch", "gfx90a:xnack+"],
    ] {
        let all: Vec<_> = ["-target", TRIPLE, "-o", "w.bc"].iter().chain(args).copied().collect();
        good(tool("clang-offload-wrapper"), &place, &all);
        assert!(read(&place, "w.bc") == expected, "{args:?}");
    }
    good(tool("clang-offload-wrapper"), &place, &["-target", TRIPLE, "-o", "w.bc", "a", "b"]);
    assert!(read(&place, "w.bc") == bitcode(OffloadKind::OPENMP, Abi::Aomp, &IMAGES, &[]));
}

#[test]
fn wrappers_read_and_write_standard_streams() {
    let place = place();
    let triple = format!("--triple={TRIPLE}");
    let expected = bitcode(OffloadKind::HIP, Abi::Current, &[b"from a pipe"], &[]);
    let output = run_with(
        tool("llvm-offload-wrapper"),
        &place,
        &["--kind=hip", &triple, "-o", "-", "-"],
        b"from a pipe",
    );
    assert!(output.status.success() && output.stdout == expected);
    let args = ["wrap", "--kind=hip", &triple, "-o", "-", "-"];
    let output = run_with(tool("offload"), &place, &args, b"from a pipe");
    assert!(output.status.success() && output.stdout == expected);
}

#[test]
fn packages_of_any_size_are_unwrapped() {
    let place = place();
    let long = "x".repeat(10_000);
    let entry =
        ImageEntry::new(20_000).with_offload_kind(OffloadKind::OPENMP).with_string("long", &long);
    let layout = offload_binary::layout(FormatVersion::V1, &[entry]).unwrap();
    let package = layout.to_vec(&[&[7; 20_000]]).unwrap();
    fs::write(place.path().join("p"), &package).unwrap();
    good(
        tool("llvm-offload-wrapper"),
        &place,
        &["--kind=openmp", "--triple", TRIPLE, "-o", "out.bc", "p"],
    );
    assert!(read(&place, "out.bc") == bitcode(OffloadKind::OPENMP, Abi::Current, &[&package], &[]));
}

#[test]
fn offload_wraps_in_each_form() {
    let place = place();
    let wrap = |args: &[&str]| {
        let all = ["wrap", "--kind", "openmp", "--triple", TRIPLE].iter().chain(args).copied();
        good(tool("offload"), &place, &all.collect::<Vec<_>>());
    };
    wrap(&["-o", "w.bc", "a", "b"]);
    assert!(read(&place, "w.bc") == bitcode(OffloadKind::OPENMP, Abi::Current, &IMAGES, &[]));
    wrap(&["-o", "w.bc", "a", "b", "--abi", "19"]);
    assert!(read(&place, "w.bc") == bitcode(OffloadKind::OPENMP, Abi::Llvm19, &IMAGES, &[]));
    wrap(&["-o", "w.bc", "b", "--abi=aomp", "--offload-arch", "gfx90a"]);
    assert!(
        read(&place, "w.bc") == bitcode(OffloadKind::OPENMP, Abi::Aomp, &IMAGES[1..], &["gfx90a"])
    );
    wrap(&["-o", "w.o", "a", "b"]);
    let target = Target::new(TRIPLE).unwrap();
    let module = Wrapper::new(OffloadKind::OPENMP, Abi::Current, target)
        .with_images(IMAGES.map(Image::from_bytes));
    let object = module.module().unwrap().object().unwrap().to_vec(&IMAGES).unwrap();
    assert!(read(&place, "w.o") == object);
    wrap(&["-o", "object", "a", "b", "--emit=obj"]);
    assert!(read(&place, "object") == object);
    wrap(&["-o", "w.ll", "a", "b", "--relocatable"]);
    let text = String::from_utf8(read(&place, "w.ll")).unwrap();
    assert!(text.contains("c\"another\", section \".llvm.offloading.relocatable\", align 8"));
    wrap(&["-o", "text", "a", "b", "--relocatable", "--emit=ll"]);
    assert_eq!(read(&place, "text"), text.into_bytes());
}

#[test]
#[cfg(unix)]
fn an_unreadable_image_is_an_error() {
    use std::os::unix::fs::PermissionsExt;
    let place = place();
    let image = place.path().join("a");
    fs::set_permissions(&image, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&image).is_ok() {
        return; // the administrator reads everything
    }
    for emit in ["ll", "bc", "obj"] {
        let args = ["wrap", "--kind=openmp", "-o", "out", "--emit", emit, "a"];
        let output = run_with(tool("offload"), &place, &args, b"");
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(stderr(&output), "offload: error: 'a': Permission denied\n");
        assert!(!place.path().join("out").exists());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_image_of_four_gigabytes_is_refused_before_anything_is_written() {
    let place = place();
    let image = fs::File::create(place.path().join("large")).unwrap();
    image.set_len(1 << 32).unwrap();
    let output = run_with(
        tool("llvm-offload-wrapper"),
        &place,
        &["--kind=openmp", "-o", "out.bc", "large"],
        b"",
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output).replace(tool("llvm-offload-wrapper"), "tool"),
        "tool: error: 'large': device image 0 has 0x100000000 bytes, expected at most 0xffffffff\n"
    );
    assert!(!place.path().join("out.bc").exists());

    // Only ELF objects of 64 bits have room for more.
    let args = ["wrap", "--kind=openmp", "--triple=x86_64-pc-windows-msvc", "-o", "out.o", "large"];
    let output = run_with(tool("offload"), &place, &args, b"");
    assert_eq!(output.status.code(), Some(1));
    let complaint = stderr(&output);
    assert!(complaint.contains("coff allows at most 0x"), "{complaint}");
    let args =
        ["wrap", "--kind=openmp", "--triple=i386-unknown-linux-gnu", "-o", "out.ll", "large"];
    let output = run_with(tool("offload"), &place, &args, b"");
    assert_eq!(output.status.code(), Some(1));
    let complaint = stderr(&output);
    assert!(complaint.contains("expected at most 0x7fffffff"), "{complaint}");
    assert_eq!(fs::read_dir(&place).unwrap().count(), 3);
}

#[test]
fn a_release_decides_all_that_releases_differ_in() {
    let place = place();
    for kind in Wrapper::KINDS {
        let (option, triple) = (format!("--kind={kind}"), format!("-triple={TRIPLE}"));
        let entry = ImageEntry::new(5).with_offload_kind(kind).with_string("symbols", "kernel");
        let layout = offload_binary::layout(FormatVersion::V1, &[entry]).unwrap();
        let package = layout.to_vec(&[b"image"]).unwrap();
        fs::write(place.path().join("package"), &package).unwrap();
        for (release, abi) in [("22", Abi::Llvm22), ("23", Abi::Current), ("24", Abi::Llvm24)] {
            let target = Target::new(TRIPLE).unwrap();
            let wrapper = Wrapper::new(kind, abi, target).with_image(Image::from_bytes(&package));
            let module =
                wrapper.with_llvm_code(true).with_retain(release == "24").module().unwrap();
            let expected = module.bitcode().unwrap().to_vec(&[&package]).unwrap();
            for release in [&[&*format!("--release={release}")][..], &["-release", release]] {
                let args = [&["-o", "out.bc", &option, &triple, "package"], release].concat();
                good(tool("llvm-offload-wrapper"), &place, &args);
                assert!(read(&place, "out.bc") == expected, "{kind} {release:?}");
            }
        }
        good(tool("llvm-offload-wrapper"), &place, &[&option, &triple, "-o", "out.bc", "package"]);
        let expected = bitcode(kind, Abi::Current, &[&package], &[]);
        assert!(read(&place, "out.bc") == expected, "{kind}");
    }
}

/// Compressed packages are wrapped as plain ones.
#[test]
fn compressed_packages_are_decompressed() {
    use ccob::{Method, WriteOptions};

    let place = place();
    let images = [&[7; 30_000][..], &[8; 5]];
    let entry = |image: &&[u8]| ImageEntry::new(image.len() as u64);
    for kind in Wrapper::KINDS {
        let count = if kind == OffloadKind::OPENMP { 2 } else { 1 };
        let entries: Vec<_> = images[..count].iter().map(entry).collect();
        let entries: Vec<_> =
            entries.into_iter().map(|entry| entry.with_offload_kind(kind)).collect();
        let layout = offload_binary::layout(FormatVersion::V3, &entries).unwrap();
        let plain = layout.to_vec(&images[..count]).unwrap();
        let options = WriteOptions::default().with_method(Method::ZLIB);
        let small = fat_edit::compress_offload_binary(&plain, &options).unwrap();
        fs::write(place.path().join("p"), &small).unwrap();
        let expected = bitcode(kind, Abi::Current, &[&plain], &[]);
        let option = format!("--kind={kind}");
        good(
            tool("llvm-offload-wrapper"),
            &place,
            &[&option, "--triple", TRIPLE, "-o", "out.bc", "p"],
        );
        assert!(read(&place, "out.bc") == expected, "{kind}");
        let args = ["wrap", &option, "--triple", TRIPLE, "-o", "-", "-"];
        let output = run_with(tool("offload"), &place, &args, &small);
        assert!(output.status.success() && output.stdout == expected, "{kind}");
    }
}
