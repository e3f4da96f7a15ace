//! Version 3, plain and compressed, as LLVM 24 writes it, and as nothing should.

use crate::common::{Told, told};
use offload_binary::{
    CompressedBinary, ErrorKind, FormatVersion, ImageEntry, ImageKind, OffloadBinary, OffloadKind,
    binaries, convert,
};

use FormatVersion::{V1, V2, V3};
use samples::hex;

/// A snapshot of LLVM 24 of October 2026:
/// `llvm-offload-binary -o v3.bin --image=file=a.o,triple=nvptx64-nvidia-cuda,arch=sm_70,kind=cuda`
/// where a.o holds the 11 bytes `hello image`.
fn v3() -> Vec<u8> {
    hex("10ff10ad03000000 b800000000000000 2800000000000000 0100000000000000 0000000000000000
         0100020000000000 5000000000000000 0200000000000000 a800000000000000 0b00000000000000
         8100000000000000 a100000000000000 0500000000000000
         8600000000000000 8d00000000000000 1300000000000000
         006172636800747269706c65006e7670747836342d6e76696469612d6375646100736d5f373000 00
         68656c6c6f20696d616765 0000000000")
}

/// The header of the same with `--compress`, before a stream that no test inflates.
fn compressed() -> Vec<u8> {
    let mut data = hex("10ff10ad03000000 8e00000000000000 2800000000000000 0100000000000000
                        b800000000000000 28b52ffd2090ed02");
    data.resize(0x8e, 7);
    data.resize(0x90, 0);
    data
}

fn cuda() -> ImageEntry<'static> {
    ImageEntry::new(11)
        .image_kind(ImageKind::OBJECT)
        .offload_kind(OffloadKind::CUDA)
        .string("arch", "sm_70")
        .string("triple", "nvptx64-nvidia-cuda")
}

fn with(mut data: Vec<u8>, at: usize, value: u64) -> Vec<u8> {
    data[at..at + 8].copy_from_slice(&value.to_le_bytes());
    data
}

fn error(data: &[u8]) -> Told {
    told(&OffloadBinary::parse(data).unwrap_err())
}

// Fields of the samples.
const SIZE: usize = 8;
const ENTRIES: usize = 16;
const COUNT: usize = 24;
const INFLATED: usize = 32;
const STRING_OFFSET: usize = 48;
const STRING_COUNT: usize = 56;
const IMAGE_OFFSET: usize = 64;
const IMAGE_SIZE: usize = 72;

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
        .offload_kind(OffloadKind::HIP)
        .string("compile-opts", "-O2")
        .string("arch", "gfx90a")
        .string("triple", "amdgcn-amd-amdhsa");
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
    let text = "offload binary is compressed, 142 bytes that inflate to 184";
    assert_eq!(error(&data), (ErrorKind::Compressed, None, text.to_owned()));

    // Without the padding, where nothing follows, it is whole.
    assert_eq!(error(&data[..0x8e]), error(&data));
    for len in 0..0x8e {
        assert_eq!(error(&data[..len]).0, ErrorKind::Truncated, "{len} bytes");
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
fn damage_of_a_plain_binary_is_refused() {
    let too_small = |size| {
        (
            ErrorKind::Malformed,
            Some(0),
            format!("offload binary has size {size}, expected at least 48"),
        )
    };
    let inside = |offset| {
        (
            ErrorKind::Malformed,
            Some(offset),
            format!("offload binary has its entries at {offset:#x}, inside the header of 40 bytes"),
        )
    };
    let beyond = |offset, count: u64| {
        (
            ErrorKind::Malformed,
            Some(offset),
            format!("offload binary has {count} entries at {offset:#x}, beyond its end at 0xb8"),
        )
    };
    for (at, value, expected) in [
        (SIZE, 0, too_small(0)),
        (SIZE, 39, too_small(39)),
        (SIZE, 40, too_small(40)),
        (SIZE, 0xb7, (ErrorKind::Malformed, Some(0), "offload binary has size 183, expected a multiple of 8".to_owned())),
        (SIZE, 0xc0, (ErrorKind::Truncated, Some(0), "offload binary has size 0xc0, but only 0xb8 bytes are left".to_owned())),
        (ENTRIES, 0, inside(0)),
        (ENTRIES, 32, inside(32)),
        (ENTRIES, 1 << 60, beyond(1 << 60, 1)),
        (COUNT, 4, beyond(40, 4)),
        (COUNT, 1 << 60, beyond(40, 1 << 60)),
        (STRING_OFFSET, 32, (ErrorKind::Malformed, Some(32), "offload binary entry 0 has its string entries at 0x20, which overlap other tables".to_owned())),
        (
            STRING_COUNT,
            5,
            (ErrorKind::Malformed, Some(80), "offload binary entry 0 has 5 string entries at 0x50, beyond the end of the binary at 0xb8".to_owned()),
        ),
        (
            IMAGE_OFFSET,
            0xb0,
            (ErrorKind::Malformed, Some(0xb0), "offload binary entry 0 has an image of 0xb bytes at 0xb0, beyond the end of the binary at 0xb8".to_owned()),
        ),
        (
            IMAGE_SIZE,
            17,
            (ErrorKind::Malformed, Some(0xa8), "offload binary entry 0 has an image of 0x11 bytes at 0xa8, beyond the end of the binary at 0xb8".to_owned()),
        ),
    ] {
        assert_eq!(error(&with(v3(), at, value)), expected);
    }
    // The header of version 3 does not end at 32.
    assert_eq!(
        error(&v3()[..39]),
        (
            ErrorKind::Truncated,
            Some(0),
            "offload binary header needs 40 bytes, but only 39 are left".to_owned()
        )
    );
    assert_eq!(OffloadBinary::parse_prefix(&v3()[..39], 0xb8).unwrap_err().needed(), Some(80));
}

#[test]
fn damage_of_a_compressed_header_is_refused() {
    let entries = |offset| {
        (
            ErrorKind::Malformed,
            Some(offset),
            format!("compressed offload binary has its entries at {offset:#x}, expected 0x28"),
        )
    };
    for (at, value, expected) in [
        (
            SIZE,
            0,
            (
                ErrorKind::Malformed,
                Some(0),
                "offload binary has size 0, expected at least 41".to_owned(),
            ),
        ),
        (
            SIZE,
            40,
            (
                ErrorKind::EmptyStream,
                Some(0),
                "offload binary has size 40, expected at least 41".to_owned(),
            ),
        ),
        (
            SIZE,
            0x91,
            (
                ErrorKind::Truncated,
                Some(0),
                "offload binary has size 0x91, but only 0x90 bytes are left".to_owned(),
            ),
        ),
        (
            SIZE,
            u64::MAX,
            (
                ErrorKind::Truncated,
                Some(0),
                "offload binary has size 0xffffffffffffffff, but only 0x90 bytes are left"
                    .to_owned(),
            ),
        ),
        (ENTRIES, 0, entries(0)),
        (ENTRIES, 32, entries(32)),
        (ENTRIES, 48, entries(48)),
        (ENTRIES, 0x1000, entries(0x1000)),
        (
            INFLATED,
            1,
            (
                ErrorKind::Malformed,
                Some(0),
                "compressed offload binary has inflated size 1, expected at least 48".to_owned(),
            ),
        ),
        (
            INFLATED,
            39,
            (
                ErrorKind::Malformed,
                Some(0),
                "compressed offload binary has inflated size 39, expected at least 48".to_owned(),
            ),
        ),
        (
            INFLATED,
            40,
            (
                ErrorKind::Malformed,
                Some(0),
                "compressed offload binary has inflated size 40, expected at least 48".to_owned(),
            ),
        ),
        (
            INFLATED,
            0xb9,
            (
                ErrorKind::Malformed,
                Some(0),
                "compressed offload binary has inflated size 185, expected a multiple of 8"
                    .to_owned(),
            ),
        ),
        (
            COUNT,
            4,
            (
                ErrorKind::Malformed,
                Some(40),
                "offload binary has 4 entries at 0x28, beyond its end at 0xb8".to_owned(),
            ),
        ),
        (
            COUNT,
            1 << 60,
            (
                ErrorKind::Malformed,
                Some(40),
                "offload binary has 1152921504606846976 entries at 0x28, beyond its end at 0xb8"
                    .to_owned(),
            ),
        ),
    ] {
        assert_eq!(error(&with(compressed(), at, value)), expected);
    }
    // The budget is the caller's, and nothing is reserved.
    assert_eq!(error(&with(compressed(), INFLATED, 1 << 50)).0, ErrorKind::Compressed);
    let most = OffloadBinary::parse(&with(compressed(), INFLATED, u64::MAX - 7)).unwrap_err();
    assert_eq!(most.compressed().unwrap().body_size(), u64::MAX - 47);
}

#[test]
fn sizes_that_no_reader_takes_are_not_written() {
    let new = |inflated, entries, stream| {
        told(&CompressedBinary::new(inflated, entries, stream).unwrap_err())
    };
    assert_eq!(
        new(48, 0, 0),
        (
            ErrorKind::EmptyStream,
            Some(0),
            "offload binary has size 40, expected at least 41".to_owned()
        )
    );
    let expected = (
        ErrorKind::Malformed,
        Some(0),
        "compressed offload binary has inflated size 40, expected at least 48".to_owned(),
    );
    assert_eq!(new(40, 0, 9), expected);
    let expected = (
        ErrorKind::Malformed,
        Some(40),
        "offload binary has 1 entries at 0x28, beyond its end at 0x30".to_owned(),
    );
    assert_eq!(new(48, 1, 9), expected);
    assert_eq!(new(48, 0, u64::MAX - 39).0, ErrorKind::Limit);
    let largest = CompressedBinary::new(48, 0, u64::MAX - 40).unwrap();
    assert_eq!(largest.padded_size(), u64::MAX);
}
