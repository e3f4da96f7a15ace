//! Fatbinaries cut short, and with bytes changed.

use nv_fatbin::{ErrorKind, Fatbin, fatbins};
use samples::fatbin::{Made, fatbin, options, zstd};

fn sample() -> Vec<u8> {
    let ptx = Made {
        kind: 1,
        sm: 80,
        flags: 0x8001,
        identifier: Some("module"),
        options: Some(options(72, "-O3")),
        payload: zstd(b".version 8.7"),
        size: 12,
        ..Made::default()
    };
    let cubin = Made { kind: 2, sm: 90, payload: vec![0x7f; 24], ..Made::default() };
    fatbin(&[ptx, cubin])
}

/// Reads everything; the entries lie in order and within.
fn read(bytes: &[u8]) {
    for found in fatbins(bytes) {
        let Ok((_, fatbin)) = found else { continue };
        let mut end = 16;
        for entry in fatbin.entries().filter_map(Result::ok) {
            assert!(entry.offset() == end && entry.end() <= fatbin.size());
            assert!(entry.range().start >= end + 64 && entry.range().end <= entry.end());
            end = entry.end();
            let _ = (entry.identifier(), entry.options(), entry.concatenated());
            if let Ok(code) = entry.decompress(1 << 16) {
                assert_eq!(code.len() as u64, entry.size());
            }
        }
    }
}

#[test]
fn every_truncation_is_an_error() {
    let sample = sample();
    for len in 1..sample.len() {
        let error = Fatbin::parse(&sample[..len]).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Truncated, Some(0)), "{len}");
    }
}

#[test]
fn every_changed_byte_is_survived() {
    let sample = sample();
    for at in 0..sample.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut damaged = sample.clone();
            damaged[at] = value;
            read(&damaged);
        }
    }
}

#[test]
fn sizes_that_contradict_each_other_are_errors() {
    let sample = sample();
    let first = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = sample.clone();
        change(&mut bytes);
        let fatbin = Fatbin::parse(&bytes).unwrap();
        fatbin.entries().find_map(Result::err).unwrap().to_string()
    };
    assert_eq!(
        first(&|bytes| bytes[16 + 4] = 63),
        "fatbinary entry 0 at 0x10 has a header size of 63, expected at least 64"
    );
    assert_eq!(
        first(&|bytes| bytes[16 + 16] = 255),
        "fatbinary entry 0 at 0x10 has 255 bytes of compressed payload in a space of 24"
    );
    let len = sample.len();
    assert_eq!(
        first(&|bytes| bytes[16 + 15] = 1),
        format!(
            "fatbinary entry 0 at 0x10 reaches to {:#x}, beyond the end of the fatbinary at {len:#x}",
            (1_u64 << 56) + 16 + 88 + 24
        )
    );
}

#[test]
fn an_entry_that_is_not_in_memory_is_not_malformed() {
    let sample = sample();
    for len in [16, 17, 16 + 63] {
        let fatbin = Fatbin::parse_prefix(&sample[..len], sample.len() as u64).unwrap();
        let error = fatbin.entries().find_map(Result::err).unwrap();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Incomplete, Some(16)));
        assert_eq!(
            error.to_string(),
            "fatbinary entry 0 at 0x10: expected its first 64 bytes in memory"
        );
    }
}

/// A sum that exceeds 64 bits is shown as it is.
#[test]
fn sizes_of_any_number_are_survived() {
    let mut bytes = sample();
    bytes[16 + 8..16 + 16].fill(0xff);
    let fatbin = Fatbin::parse(&bytes).unwrap();
    let error = fatbin.entries().find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    assert!(error.to_string().contains(" reaches to 0x10000000000000067, "), "{error}");
    assert!(Fatbin::parse_prefix(&bytes, 15).is_err());
}

#[test]
fn other_versions_are_not_read() {
    let mut bytes = sample();
    bytes[4] = 2;
    let error = Fatbin::parse(&bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(
        error.to_string(),
        "fatbinary version 2 with a header of 16 bytes, expected version 1 with 16"
    );
}
