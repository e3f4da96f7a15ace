//! The text of modules, whole.
//!
//! `BLESS=1 cargo test -p wrapper-ir --test all golden::` writes `golden/*.ll` again. Modules of LLVM 22's tool are
//! compared with what it makes in `crates/tool-tests/tests/llvm/wrapper_ir.rs`:
//!
//! ```sh
//! llvm-offload-wrapper --kind=openmp --triple=x86_64-unknown-linux-gnu -o out.bc IMAGE...
//! llvm-dis out.bc -o -
//! ```
//!
//! The image is `IMAGE` below. `golden/openmp.ll`, for instance, is that output with the line
//! `target datalayout` put in and the comment on the first line taken out.

use std::path::Path;

use offload_binary::{FormatVersion, ImageEntry, ImageKind};
use wrapper_ir::{Abi, Image, OffloadKind, Target, Wrapper};

const IMAGE: &[u8] = b"ABC\"\\\n\x00\xffhello";
const LINUX: &str = "x86_64-unknown-linux-gnu";
const WINDOWS: &str = "x86_64-pc-windows-msvc";

fn wrapper(kind: OffloadKind, abi: Abi, triple: &str) -> Wrapper<'static> {
    Wrapper::new(kind, abi, Target::new(triple).unwrap())
}

fn check(name: &str, wrapper: &Wrapper<'_>, images: &[&[u8]]) {
    let text = wrapper.module().unwrap().ir_to_string(images).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, golden, "{name}");
}

/// One image in a module of each kind and generation.
#[test]
fn modules_of_all_generations_are_those_of_the_golden_files() {
    for (name, kind, abi, triple) in [
        ("openmp-18.ll", OffloadKind::OPENMP, Abi::Llvm18, LINUX),
        ("openmp-19.ll", OffloadKind::OPENMP, Abi::Llvm19, LINUX),
        ("openmp-coff.ll", OffloadKind::OPENMP, Abi::Current, WINDOWS),
        ("openmp-24-coff.ll", OffloadKind::OPENMP, Abi::Llvm24, WINDOWS),
        ("cuda.ll", OffloadKind::CUDA, Abi::Current, LINUX),
        ("hip.ll", OffloadKind::HIP, Abi::Current, LINUX),
        ("hip-22.ll", OffloadKind::HIP, Abi::Llvm22, LINUX),
        ("hip-19.ll", OffloadKind::HIP, Abi::Llvm19, LINUX),
        ("hip-i386.ll", OffloadKind::HIP, Abi::Current, "i386-unknown-linux-gnu"),
        ("hip-mach-o.ll", OffloadKind::HIP, Abi::Current, "aarch64-apple-darwin"),
        ("sycl.ll", OffloadKind::SYCL, Abi::Current, LINUX),
        ("sycl-24.ll", OffloadKind::SYCL, Abi::Llvm24, LINUX),
    ] {
        check(name, &wrapper(kind, abi, triple).with_image(Image::from_bytes(IMAGE)), &[IMAGE]);
    }
    // LLVM 24 always retains.
    let newer =
        wrapper(OffloadKind::OPENMP, Abi::Llvm24, LINUX).with_image(Image::from_bytes(IMAGE));
    check("openmp-24.ll", &newer.with_retain(true), &[IMAGE]);
}

/// Two offload binaries, one after the other, as LLVM 22's device linker writes them.
#[test]
fn sycl_of_llvm_22_is_that_of_the_golden_file() {
    let binary = |symbols: &str| {
        let entry = ImageEntry::new(IMAGE.len() as u64).with_offload_kind(OffloadKind::SYCL);
        let entry = entry.with_image_kind(ImageKind::SPIRV);
        let entry = entry.with_string("triple", "spirv64").with_string("symbols", symbols);
        offload_binary::layout(FormatVersion::V1, &[entry]).unwrap().to_vec(&[IMAGE]).unwrap()
    };
    let images = [binary("first\nsecond\n"), binary("first")].concat();
    let wrapper =
        wrapper(OffloadKind::SYCL, Abi::Llvm22, LINUX).with_image(Image::from_bytes(&images));
    check("sycl-22.ll", &wrapper, &[&images]);
}

#[test]
fn modules_of_several_images_are_those_of_the_golden_files() {
    let images: [&[u8]; 3] = [IMAGE, b"", b"x"];
    let wrapper = wrapper(OffloadKind::OPENMP, Abi::Current, LINUX)
        .with_images(images.map(Image::from_bytes));
    check("openmp.ll", &wrapper, &images);
}

#[test]
fn modules_with_target_ids_are_those_of_the_golden_files() {
    let images = [
        Image::from_bytes(IMAGE).with_target_id("gfx906"),
        Image::from_bytes(b"x").with_target_id("gfx90a:xnack+"),
    ];
    let wrapper = wrapper(OffloadKind::OPENMP, Abi::Aomp, LINUX).with_images(images);
    check("openmp-aomp.ll", &wrapper, &[IMAGE, b"x"]);
    let weak = wrapper.with_weak_image_info(true);
    check("openmp-aomp-weak.ll", &weak, &[IMAGE, b"x"]);

    // Without target IDs it is the code of LLVM 13.
    let images = [Image::from_bytes(IMAGE), Image::from_bytes(b"x")];
    let none =
        self::wrapper(OffloadKind::OPENMP, Abi::Aomp, LINUX).with_images(images).module().unwrap();
    let text = none.ir_to_string(&[IMAGE, b"x"]).unwrap();
    assert!(!text.contains("offload_arch") && !text.contains("image_info"));
}

/// The same, whether the images are in memory or streamed.
#[test]
fn streamed_images_give_the_same_text() {
    let images: [&[u8]; 3] = [IMAGE, b"", b"x"];
    let sizes = images.map(|image| Image::new(image.len() as u64, &image[..image.len().min(4)]));
    let module =
        wrapper(OffloadKind::OPENMP, Abi::Current, LINUX).with_images(sizes).module().unwrap();
    let mut text = Vec::new();
    module.write_ir(&mut text, images).unwrap();
    assert_eq!(module.ir_to_string(&images).unwrap().as_bytes(), text);
}
