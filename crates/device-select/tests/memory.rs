//! Fat binaries in memory.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test says no")]

use std::borrow::Cow;
use std::path::Path;

use device_select::{Device, LoadErrorKind, load};

fn data(name: &str) -> Vec<u8> {
    std::fs::read(Path::new("../../examples/data").join(name)).unwrap()
}

fn gpu(id: &str) -> Device {
    Device::parse(id).unwrap()
}

#[test]
fn a_bundle_is_borrowed_from() {
    let bundle = data("hip.hipfb");
    let Some(Cow::Borrowed(image)) = load(&bundle, &gpu("gfx1100")).unwrap() else {
        panic!("expected a slice")
    };
    assert!(bundle.as_ptr_range().contains(&image.as_ptr()));
    assert!(image.starts_with(b"\x7fELF"));
    assert!(load(&bundle, &gpu("gfx803")).unwrap().is_none());
    assert!(load(&bundle, &gpu("sm_80")).unwrap().is_none());
}

#[test]
fn compressed_bundles_give_the_same_images() {
    for name in ["hip-ccob-v2.hipfb", "hip-ccob-v3.hipfb"] {
        let compressed = data(name);
        let plain = ccob::decompress(&compressed, &ccob::Limits::default()).unwrap().data;
        for id in ["gfx1100", "gfx906:sramecc+:xnack+", "gfx906:sramecc+:xnack-", "gfx900"] {
            let image = load(&compressed, &gpu(id)).unwrap();
            assert!(matches!(image, None | Some(Cow::Owned(_))));
            assert!(image == load(&plain, &gpu(id)).unwrap(), "{name}: {id}");
        }
    }
}

#[test]
fn offload_binaries_are_chosen_from_together() {
    let packages = data("packages.offload");
    let image = load(&packages, &gpu("gfx90a:sramecc+:xnack-")).unwrap().unwrap();
    assert!(matches!(image, Cow::Borrowed(_)));
    assert!(load(&packages, &gpu("gfx803")).unwrap().is_none());
}

#[test]
fn what_the_hardware_decides_is_asked_for() {
    let object = data("hip.o");
    let at = object.windows(24).position(|bytes| bytes == b"__CLANG_OFFLOAD_BUNDLE__");
    let bundle = &object[at.unwrap()..];
    let error = load(bundle, &gpu("gfx906:sramecc+")).unwrap_err();
    assert_eq!(error.kind(), LoadErrorKind::OpenFeatures);
    assert_eq!(error.to_string(), "gfx906:sramecc+ loads gfx9-generic if xnack is off");
}

#[test]
fn other_bytes_are_errors() {
    for (bytes, kind) in [
        (&b""[..], LoadErrorKind::NotThisFormat),
        (b"\x7fELF", LoadErrorKind::NotThisFormat),
        (b"CCOB", LoadErrorKind::Codec),
        (b"__CLANG_OFFLOAD_BUNDLE__", LoadErrorKind::Malformed),
        (b"\x10\xff\x10\xad", LoadErrorKind::Malformed),
    ] {
        assert_eq!(load(bytes, &gpu("gfx906")).unwrap_err().kind(), kind, "{bytes:?}");
    }
    let cut = data("hip.hipfb");
    let error = load(&cut[..cut.len() / 2], &gpu("gfx906")).unwrap_err();
    assert_eq!(error.kind(), LoadErrorKind::Malformed);
}
