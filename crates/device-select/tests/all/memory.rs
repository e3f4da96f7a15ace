//! Fat binaries in memory.

use std::borrow::Cow;

use device_select::{Device, LoadErrorKind, PtxJit, load};
use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadKind};
use samples::example;

fn gpu(id: &str) -> Device {
    Device::parse(id).unwrap()
}

#[test]
fn images_of_a_plain_bundle_are_borrowed() {
    let bundle = example("hip.hipfb");
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
        let compressed = example(name);
        let plain = ccob::decompress(&compressed, &ccob::ReadOptions::default()).unwrap().data;
        for id in ["gfx1100", "gfx906:sramecc+:xnack+", "gfx906:sramecc+:xnack-", "gfx900"] {
            let image = load(&compressed, &gpu(id)).unwrap();
            assert!(matches!(image, None | Some(Cow::Owned(_))));
            assert!(image == load(&plain, &gpu(id)).unwrap(), "{name}: {id}");
        }
    }
}

#[test]
fn images_are_chosen_across_offload_binaries() {
    let packages = example("packages.offload");
    let image = load(&packages, &gpu("gfx90a:sramecc+:xnack-")).unwrap().unwrap();
    assert!(matches!(image, Cow::Borrowed(_)));
    assert!(load(&packages, &gpu("gfx803")).unwrap().is_none());
}

/// A cubin where there is one for the GPU, else PTX of the same or an earlier architecture; compressed or not.
#[test]
fn cubins_come_before_ptx() {
    let entry = |kind, arch| {
        let entry = ImageEntry::new(5).with_image_kind(kind).with_offload_kind(OffloadKind::CUDA);
        entry.with_string("arch", arch).with_string("triple", "nvptx64-nvidia-cuda")
    };
    let entries = [entry(ImageKind::PTX, "sm_52"), entry(ImageKind::CUBIN, "sm_80")];
    for version in [FormatVersion::V1, FormatVersion::V2, FormatVersion::V3] {
        let plain: Vec<u8> = if version == FormatVersion::V1 {
            // One image each.
            let one = |entry: &ImageEntry<'_>, image: &[u8]| {
                offload_binary::layout(version, std::slice::from_ref(entry))
                    .unwrap()
                    .to_vec(&[image])
                    .unwrap()
            };
            [one(&entries[0], b"ptx52"), one(&entries[1], b"sm_80")].concat()
        } else {
            offload_binary::layout(version, &entries)
                .unwrap()
                .to_vec(&[b"ptx52", b"sm_80"])
                .unwrap()
        };
        for (id, expected) in [
            ("sm_80", Some(&b"sm_80"[..])),
            ("sm_86", Some(b"sm_80")),
            ("sm_90", Some(b"ptx52")),
            ("sm_70", Some(b"ptx52")),
            ("sm_50", None),
            ("gfx1100", None),
        ] {
            let image = load(&plain, &gpu(id)).unwrap();
            assert_eq!(image.as_deref(), expected, "version {}: {id}", version.number());
        }
        for (id, ptx_jit, expected) in [
            ("sm_86", PtxJit::Forced, Some(&b"ptx52"[..])),
            ("sm_86", PtxJit::Disabled, Some(b"sm_80")),
            ("sm_90", PtxJit::Disabled, None),
        ] {
            let image = load(&plain, &gpu(id).with_ptx_jit(ptx_jit)).unwrap();
            assert_eq!(image.as_deref(), expected, "version {}: {id}", version.number());
        }
    }
}

#[test]
fn open_features_that_decide_are_an_error() {
    let object = example("hip.o");
    let at = object.windows(24).position(|bytes| bytes == b"__CLANG_OFFLOAD_BUNDLE__");
    let bundle = &object[at.unwrap()..];
    let error = load(bundle, &gpu("gfx906:sramecc+")).unwrap_err();
    assert_eq!(error.kind(), LoadErrorKind::OpenFeatures);
    assert_eq!(error.to_string(), "gfx906:sramecc+ loads gfx9-generic if xnack is off");
}

#[test]
fn other_bytes_are_errors() {
    let cut = example("hip.hipfb");
    for (bytes, kind, text) in [
        (
            &b""[..],
            LoadErrorKind::NotThisFormat,
            "expected a bundle, a compressed bundle or an offload binary",
        ),
        (
            b"\x7fELF",
            LoadErrorKind::NotThisFormat,
            "expected a bundle, a compressed bundle or an offload binary",
        ),
        (b"CCOB", LoadErrorKind::Codec, "compressed bundle header is truncated: 4 bytes, 8 needed"),
        (
            b"__CLANG_OFFLOAD_BUNDLE__",
            LoadErrorKind::Malformed,
            "bundle header needs 32 bytes, but only 24 are there",
        ),
        (
            b"\x10\xff\x10\xad",
            LoadErrorKind::Malformed,
            "offload binary header needs 32 bytes, but only 4 are left",
        ),
        (
            &cut[..cut.len() / 2],
            LoadErrorKind::Malformed,
            "bundle entry 0 lies at 0x1000..0x1000, beyond the end of the container at 0xe44",
        ),
    ] {
        let error = load(bytes, &gpu("gfx906")).unwrap_err();
        assert_eq!((error.kind(), &*error.to_string()), (kind, text));
    }
}
