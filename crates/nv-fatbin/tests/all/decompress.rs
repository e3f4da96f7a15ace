//! Payloads of every codec.

use nv_fatbin::{ErrorKind, Fatbin};
use samples::fatbin::{Made, fatbin, zstd};

/// The code of the only entry, or the text of the error and its kind.
fn code(made: Made, limit: u64) -> Result<Vec<u8>, (ErrorKind, String)> {
    let bytes = fatbin(&[made]);
    let entry = Fatbin::parse(&bytes).unwrap().entries().next().unwrap().unwrap();
    let code = entry.decompress(limit).map(std::borrow::Cow::into_owned);
    code.map_err(|error| (error.kind(), error.to_string()))
}

fn made(flags: u64, payload: Vec<u8>, size: u64) -> Made {
    Made { kind: 2, sm: 90, flags, payload, size, ..Made::default() }
}

/// The same code by each codec: flags and payload.
fn compressed(code: &[u8]) -> [(u64, Vec<u8>); 3] {
    [
        (0x1000, miniz_oxide::deflate::compress_to_vec_zlib(code, 6)),
        (0x2000, lz4_flex::block::compress(code)),
        (0x8000, zstd(code)),
    ]
}

#[test]
#[cfg_attr(not(feature = "default"), ignore = "its samples need codecs of the default features")]
fn every_codec_is_decompressed() {
    let text = b"code code code code code code code code code code code code".repeat(4);
    for (flags, payload) in compressed(&text) {
        assert_eq!(
            code(made(flags, payload, text.len() as u64), 240),
            Ok(text.clone()),
            "{flags:#x}"
        );
    }
    assert_eq!(code(made(0, b"plain".to_vec(), 0), 0), Ok(b"plain\0\0\0".to_vec()));
}

#[test]
#[cfg_attr(not(feature = "default"), ignore = "its samples need codecs of the default features")]
fn another_size_than_the_entry_says_is_an_error() {
    let text = [9; 100];
    for (flags, payload) in compressed(&text) {
        for size in [99, 101, 1] {
            let (kind, text) = code(made(flags, payload.clone(), size), 1000).unwrap_err();
            assert_eq!(kind, ErrorKind::Codec, "{text}");
            assert!(text.starts_with("fatbinary entry 0: malformed "), "{text}");
            assert!(text.contains(&format!("expected {size} bytes")), "{text}");
        }
    }
}

#[test]
#[cfg_attr(not(feature = "default"), ignore = "its samples need codecs of the default features")]
fn damaged_payloads_are_errors_or_other_code_of_the_same_size() {
    let text = b"some code that is compressed, some code".to_vec();
    for (flags, payload) in compressed(&text) {
        for at in 0..payload.len() {
            let mut damaged = payload.clone();
            damaged[at] ^= 0x11;
            if let Ok(code) = code(made(flags, damaged, text.len() as u64), 1000) {
                assert_eq!(code.len(), text.len());
            }
            let cut = payload[..at].to_vec();
            if !cut.is_empty() {
                let (kind, _) = code(made(flags, cut, text.len() as u64), 1000).unwrap_err();
                assert_eq!(kind, ErrorKind::Codec);
            }
        }
    }
}

#[test]
fn promises_are_limited_and_not_believed() {
    let (kind, text) = code(made(0x8000, zstd(b"code"), 4), 3).unwrap_err();
    assert_eq!(kind, ErrorKind::Limit);
    assert_eq!(text, "decompresses to 4 bytes, more than the limit of 3");
    for flags in [0x1000, 0x2000, 0x8000] {
        let (kind, text) = code(made(flags, vec![1; 90], 1 << 60), u64::MAX).unwrap_err();
        assert_eq!(kind, ErrorKind::Codec, "{text}");
    }
}

#[test]
fn what_nobody_can_decompress_is_said() {
    let (kind, text) = code(made(0x1_8000, zstd(b"code"), 4), 9).unwrap_err();
    assert_eq!(kind, ErrorKind::Unsupported);
    assert_eq!(text, "fatbinary entry 0: scrambled LTO-IR, which only NVIDIA's linker reads");
    let (kind, text) = code(made(0x4000, zstd(b"code"), 4), 9).unwrap_err();
    assert_eq!(kind, ErrorKind::Unsupported);
    assert_eq!(text, "fatbinary entry 0: compressed by an unknown codec");
}
