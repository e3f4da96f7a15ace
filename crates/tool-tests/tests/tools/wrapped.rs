//! The libraries read each other's files: images are packed or bundled, perhaps compressed, wrapped into objects with
//! registration code, and found again by a walk.

#[path = "../../../fat-edit/tests/images/mod.rs"]
mod images;

use ccob::{Method, Version, WriteOptions};
use images::{Images, found, image, package};
use offload_binary::{FormatVersion, OffloadKind};
use proptest::prelude::*;
use samples::bundle::bundle_of;
use wrapper_ir::{Abi, Target, Wrapper};

/// Every machine and format that objects are written for.
const TRIPLES: [&str; 6] = [
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "riscv64-unknown-linux-gnu",
    "x86_64-pc-windows-msvc",
    "x86_64-w64-windows-gnu",
    "aarch64-pc-windows-msvc",
];

fn bundle(images: &Images, align: usize) -> Vec<u8> {
    let id = |arch: &String| format!("hipv4-amdgcn-amd-amdhsa--{arch}");
    let entries = images.iter().map(|(arch, image)| (id(arch), image));
    bundle_of(&entries.collect::<Vec<_>>(), align)
}

/// Wraps an image, and returns the object and the bitcode.
fn wrapped(wrapper: Wrapper<'_>, image: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let module = wrapper.with_image(wrapper_ir::Image::from_bytes(image)).module().unwrap();
    let [object, bitcode] = [module.object().unwrap(), module.bitcode().unwrap()].map(|layout| {
        let bytes = layout.to_vec(&[image]).unwrap();
        assert_eq!(bytes.len() as u64, layout.size());
        let mut written = Vec::new();
        layout.write_to(&mut written, [image]).unwrap();
        assert!(written == bytes);
        bytes
    });
    (object, bitcode)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Fat binaries of HIP, and the same for CUDA: a bundle, plain or compressed.
    #[test]
    fn fat_binaries_are_wrapped_and_found(
        triple in prop::sample::select(TRIPLES.to_vec()),
        images in prop::collection::vec(image(200), 1..5),
        kind in prop::sample::select(vec![OffloadKind::HIP, OffloadKind::CUDA]),
        align in prop::sample::select(vec![1_usize, 8, 4096]),
        compressed in prop::option::of((
            prop::sample::select(vec![Version::V1, Version::V2, Version::V3]),
            prop::sample::select(vec![Method::ZLIB, Method::ZSTD]),
        )),
    ) {
        let mut images = images;
        images.sort();
        images.dedup_by(|a, b| a.0 == b.0);
        let mut image = bundle(&images, align);
        if let Some((version, method)) = compressed {
            let options = WriteOptions::default().with_version(version).with_method(method);
            image = ccob::compress(&image, &options).unwrap();
        }
        let wrapper = Wrapper::new(kind, Abi::Current, Target::new(triple).unwrap());
        let (object, bitcode) = wrapped(wrapper, &image);
        prop_assert_eq!(found(&object), images.clone());
        prop_assert!(contains(&object, &image) && contains(&bitcode, &image));
        prop_assert!(llvm_bitcode::symbols(&bitcode).unwrap().is_some());
        // HIP's compiler writes such bitcode with -flto.
        prop_assert_eq!(found(&bitcode), images);
    }

    /// Packages for SYCL are wrapped whole.
    #[test]
    fn packages_are_wrapped_and_found(
        triple in prop::sample::select(TRIPLES.to_vec()),
        images in prop::collection::vec(image(200), 1..5),
        is_v1 in any::<bool>(),
    ) {
        let version = if is_v1 { FormatVersion::V1 } else { FormatVersion::V2 };
        let mut images = images;
        if is_v1 {
            images.truncate(1);
        }
        let package = package(version, OffloadKind::SYCL, &images);
        let wrapper = Wrapper::new(OffloadKind::SYCL, Abi::Current, Target::new(triple).unwrap());
        let (object, bitcode) = wrapped(wrapper, &package);
        prop_assert_eq!(found(&object), images.clone());
        prop_assert!(contains(&bitcode, &package));
    }

    /// Packages for OpenMP are registered whole, or the images in them are; the images stay in their place.
    #[test]
    fn packages_of_openmp_are_wrapped_and_found(
        triple in prop::sample::select(TRIPLES.to_vec()),
        images in prop::collection::vec(image(200), 1..5),
        keep in any::<bool>(),
    ) {
        let package = package(FormatVersion::V2, OffloadKind::OPENMP, &images);
        let wrapper = Wrapper::new(OffloadKind::OPENMP, Abi::Current, Target::new(triple).unwrap());
        let (object, bitcode) = wrapped(wrapper.with_keep_packages(keep), &package);
        prop_assert!(contains(&object, &package) && contains(&bitcode, &package));
        prop_assert_eq!(found(&object), images);
    }
}
