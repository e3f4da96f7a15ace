//! Version 3, plain and compressed, as LLVM 24 writes it, and as nothing should.

use crate::common::told;
use offload_binary::{
    CompressedBinary, ErrorKind, FormatVersion, ImageEntry, ImageKind, OffloadBinary, OffloadKind,
    binaries, convert,
};

use crate::read::samples::with;
use FormatVersion::{V1, V2, V3};
use samples::hex;

/// A snapshot of LLVM 24 of October 2026:
/// `llvm-offload-binary -o v3.bin --image=file=a.o,triple=nvptx64-nvidia-cuda,arch=sm_70,kind=cuda`
/// where a.o holds the 11 bytes `hello image`.
pub(crate) fn v3() -> Vec<u8> {
    hex("10ff10ad03000000 b800000000000000 2800000000000000 0100000000000000 0000000000000000
         0100020000000000 5000000000000000 0200000000000000 a800000000000000 0b00000000000000
         8100000000000000 a100000000000000 0500000000000000
         8600000000000000 8d00000000000000 1300000000000000
         006172636800747269706c65006e7670747836342d6e76696469612d6375646100736d5f373000 00
         68656c6c6f20696d616765 0000000000")
}

/// The header of the same with `--compress`, before a stream that no test inflates.
pub(crate) fn compressed() -> Vec<u8> {
    let mut data = hex("10ff10ad03000000 8e00000000000000 2800000000000000 0100000000000000
                        b800000000000000 28b52ffd2090ed02");
    data.resize(0x8e, 7);
    data.resize(0x90, 0);
    data
}

fn cuda() -> ImageEntry<'static> {
    ImageEntry::new(11)
        .with_image_kind(ImageKind::OBJECT)
        .with_offload_kind(OffloadKind::CUDA)
        .with_string("arch", "sm_70")
        .with_string("triple", "nvptx64-nvidia-cuda")
}

fn error(data: &[u8]) -> String {
    told(&OffloadBinary::parse(data).unwrap_err())
}

/// The field of a compressed binary.
const INFLATED: usize = 32;

#[test]
fn one_image_as_llvm_24_writes_it() {
    let layout = offload_binary::layout(V3, &[cuda()]).unwrap();
    assert_eq!(layout.to_vec(&[b"hello image"]).unwrap(), v3());
    assert_eq!((V3.number(), V3.header_len(), V2.header_len()), (3, 40, 32));

    let data = v3();
    let binary = OffloadBinary::parse(&data).unwrap();
    assert_eq!((binary.version(), binary.size()), (V3, 0xb8));
    let entry = binary.entries().next().unwrap();
    assert_eq!((entry.triple(), entry.arch()), (Some("nvptx64-nvidia-cuda"), Some("sm_70")));
    assert_eq!((entry.image_offset(), entry.image()), (0xa8, Some(&b"hello image"[..])));
    assert!(CompressedBinary::parse_prefix(&data, 0xb8).unwrap().is_none());
}

#[test]
fn a_prefix_asks_for_the_whole_header_and_entry() {
    assert_eq!(OffloadBinary::parse_prefix(&v3()[..39], 0xb8).unwrap_err().needed(), Some(80));
}

#[test]
fn no_image_as_llvm_24_writes_it() {
    let empty = hex("10ff10ad03000000 3000000000000000 2800000000000000 0000000000000000
                     0000000000000000 0000000000000000");
    assert_eq!(offload_binary::layout(V3, &[]).unwrap().to_vec(&[]).unwrap(), empty);
    assert_eq!(OffloadBinary::parse(&empty).unwrap().entries().len(), 0);
    assert_eq!(OffloadBinary::header_needed(&empty[..32]).unwrap(), 48);
    assert_eq!(OffloadBinary::header_needed(&empty[..40]).unwrap(), 40);
}

#[test]
fn two_images_lie_where_llvm_24_puts_them() {
    let hip = ImageEntry::new(11)
        .with_offload_kind(OffloadKind::HIP)
        .with_string("compile-opts", "-O2")
        .with_string("arch", "gfx90a")
        .with_string("triple", "amdgcn-amd-amdhsa");
    let layout = offload_binary::layout(V3, &[cuda(), hip]).unwrap();
    assert_eq!((layout.offset(0), layout.offset(1)), (Some(0x148), Some(0x153)));
    assert_eq!(layout.size(), 0x160);
}

#[test]
fn each_version_becomes_each_other() {
    let bytes = |version| {
        offload_binary::layout(version, &[cuda()]).unwrap().to_vec(&[b"hello image"]).unwrap()
    };
    for from in [V1, V2, V3] {
        for to in [V1, V2, V3] {
            assert_eq!(convert(&bytes(from), to).unwrap(), bytes(to));
        }
    }
    let mixed = [V1, V3, V2].map(bytes).concat();
    assert_eq!(binaries(&mixed).map(|binary| binary.unwrap().0).collect::<Vec<_>>(), [0, 160, 344]);
    assert_eq!(convert(&convert(&mixed, V3).unwrap(), V1).unwrap(), bytes(V1).repeat(3));
}

#[test]
fn a_compressed_binary_is_recognised_by_its_header() {
    let data = compressed();
    let binary = *OffloadBinary::parse(&data).unwrap_err().compressed().unwrap();
    let found = CompressedBinary::parse_prefix(&data[..40], 0x90).unwrap().unwrap();
    assert_eq!(format!("{found:?}"), format!("{binary:?}"));
    assert_eq!((binary.size(), binary.padded_size(), binary.stream()), (0x8e, 0x90, 0x28..0x8e));
    assert_eq!((binary.inflated_size(), binary.body_size()), (0xb8, 0x90));
    assert_eq!(binary.entry_count(), 1);
    assert_eq!(binary.header(), data[..40]);
    assert_eq!(binary.plain_header(), v3()[..40]);
    let new = CompressedBinary::new(0xb8, 1, 0x66).unwrap();
    assert_eq!(format!("{new:?}"), format!("{binary:?}"));
    let text = "Compressed: offload binary is compressed, 142 bytes that inflate to 184";
    assert_eq!(error(&data), text);

    // Without the padding, where nothing follows, it is whole.
    assert_eq!(error(&data[..0x8e]), error(&data));
    for len in 0..0x8e {
        assert!(error(&data[..len]).starts_with("Truncated"), "{len} bytes");
        match CompressedBinary::parse_prefix(&data[..len], 0x90) {
            Ok(found) => assert_eq!(found.map(|found| found.header()), Some(binary.header())),
            Err(error) => assert!(error.needed().is_some_and(|needed| needed > len as u64)),
        }
    }
    let found = binaries(&[v3(), data].concat()).nth(1).unwrap().unwrap_err();
    assert_eq!((found.kind(), found.offset()), (ErrorKind::Compressed, Some(0xb8)), "{found}");
}

#[test]
fn bytes_at_32_mean_compression_in_version_3_only() {
    for version in [V1, V2] {
        let data =
            offload_binary::layout(version, &[cuda()]).unwrap().to_vec(&[b"hello image"]).unwrap();
        assert_ne!(data[32..40], [0; 8]);
        assert!(CompressedBinary::parse_prefix(&data, data.len() as u64).unwrap().is_none());
    }
}

#[test]
fn an_inflated_size_may_be_any() {
    // The budget is the caller's, and nothing is reserved.
    let kind = |size| OffloadBinary::parse(&with(compressed(), INFLATED, size)).unwrap_err();
    assert_eq!(kind(1 << 50).kind(), ErrorKind::Compressed);
    assert_eq!(kind(u64::MAX - 7).compressed().unwrap().body_size(), u64::MAX - 47);
}

#[test]
fn sizes_that_no_reader_takes_are_not_written() {
    for (inflated, entries, stream, expected) in [
        (48, 0, 0, "EmptyStream at 0x0: offload binary has size 40, expected at least 41"),
        (
            40,
            0,
            9,
            "Malformed at 0x0: compressed offload binary has inflated size 40, expected at least 48",
        ),
        (
            48,
            1,
            9,
            "Malformed at 0x28: offload binary has 1 entries at 0x28, beyond its end at 0x30",
        ),
    ] {
        let error = CompressedBinary::new(inflated, entries, stream).unwrap_err();
        assert_eq!(told(&error), expected);
    }
    let error = CompressedBinary::new(48, 0, u64::MAX - 39).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    let largest = CompressedBinary::new(48, 0, u64::MAX - 40).unwrap();
    assert_eq!(largest.padded_size(), u64::MAX);
}
