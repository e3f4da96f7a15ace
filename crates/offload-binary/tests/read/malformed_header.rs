//! Malformed headers and table sizes, truncations and changed bytes.

use offload_binary::{ErrorKind, MAGIC, OffloadBinary, binaries};
use samples::binary::{llvm_22, llvm_23};

use super::samples::{ENTRIES, EXTENT, IMAGE_SIZE, SIZE, Tap, error, v2_two_entries, with};
use crate::common::told;

#[test]
fn a_truncated_header_is_an_error() {
    assert_eq!(
        error(&llvm_22()[..31]),
        (
            ErrorKind::Truncated,
            Some(0),
            "offload binary header needs 32 bytes, but only 31 are left".to_owned()
        )
    );
    assert_eq!(
        error(&[]),
        (
            ErrorKind::Truncated,
            Some(0),
            "offload binary header needs 32 bytes, but only 0 are left".to_owned()
        )
    );
}

#[test]
fn a_wrong_magic_is_refused() {
    let data = llvm_22().tap(|data| data[3] = 0xac);
    assert_eq!(
        error(&data),
        (
            ErrorKind::NotABinary,
            Some(0),
            "offload binary starts with bytes [10, ff, 10, ac], expected [10, ff, 10, ad]"
                .to_owned()
        )
    );
    assert_eq!(
        error(&data[..4]),
        (
            ErrorKind::NotABinary,
            Some(0),
            "offload binary starts with bytes [10, ff, 10, ac], expected [10, ff, 10, ad]"
                .to_owned()
        )
    );
}

#[test]
fn a_wrong_magic_is_an_error_from_its_first_wrong_byte() {
    for len in 0..4 {
        for byte in (0..=255).filter(|&byte| byte != MAGIC[len]) {
            let bytes = [&MAGIC[..len], &[byte]].concat();
            let mut found = [0; 4];
            found[..=len].copy_from_slice(&bytes);
            let error = error(&bytes);
            assert_eq!(
                error,
                (
                    ErrorKind::NotABinary,
                    Some(0),
                    format!(
                        "offload binary starts with bytes {found:02x?}, expected [10, ff, 10, ad]"
                    )
                )
            );
            assert_eq!(told(&OffloadBinary::parse_prefix(&bytes, 1 << 20).unwrap_err()), error);
        }
    }
}

#[test]
fn every_truncation_is_reported_as_such() {
    for data in [llvm_22(), llvm_23(), v2_two_entries()] {
        for len in (0..data.len()).step_by(if cfg!(miri) { 29 } else { 1 }) {
            let found = error(&data[..len]);
            assert_eq!(found.0, ErrorKind::Truncated, "{len} bytes: {found:?}");
            // All of it is there, but not in memory.
            let available = u64::try_from(data.len()).unwrap();
            if let Err(found) = OffloadBinary::parse_prefix(&data[..len], available) {
                assert_eq!(found.kind(), ErrorKind::Incomplete, "{len} bytes: {found}");
            }
            // The same after another one.
            let two = [llvm_22(), data[..len].to_vec()].concat();
            if let Some(found) = binaries(&two).nth(1) {
                let found = found.unwrap_err();
                assert!(
                    found.to_string().starts_with("offload binary at offset 0xa0: "),
                    "{found}"
                );
                assert_eq!((found.kind(), found.offset()), (ErrorKind::Truncated, Some(160)));
                assert!(found.available().unwrap() <= len as u64);
            }
        }
    }
}

#[test]
fn other_faults_are_not_reported_as_truncation_or_another_format() {
    for (at, value) in [(ENTRIES, 0), (ENTRIES, 1 << 40), (IMAGE_SIZE, 1 << 40), (SIZE, 8)] {
        let found = error(&with(llvm_22(), at, value));
        assert_eq!(found.0, ErrorKind::Malformed, "{found:?}");
    }
}

/// Every byte that is asked for is one of the binary, and after the last one it can be parsed.
#[test]
fn needed_headers_lie_in_the_binary() {
    for data in [llvm_22(), llvm_23(), v2_two_entries()] {
        let mut len = 0;
        let mut rounds = 0;
        loop {
            let needed = OffloadBinary::header_needed(&data[..len]).unwrap();
            let needed = usize::try_from(needed).unwrap();
            assert!(needed <= data.len());
            if needed <= len {
                break;
            }
            (len, rounds) = (needed, rounds + 1);
        }
        assert!(rounds <= 5);
        OffloadBinary::parse_prefix(&data[..len], u64::MAX).unwrap();
    }
    // Version 2 without entries, as short as can be.
    let numbers = [40_u64, 40, 0].map(u64::to_le_bytes).concat();
    let empty = [&b"\x10\xff\x10\xad\x02\0\0\0"[..], &numbers, &[0; 8]].concat();
    OffloadBinary::parse(&empty).unwrap();
    assert_eq!(OffloadBinary::header_needed(&[]).unwrap(), 32);
    assert_eq!(OffloadBinary::header_needed(&empty[..32]).unwrap(), 40);
    let error = OffloadBinary::header_needed(b"\x10\xff\x10\xae").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotABinary);
}

#[test]
fn an_unsupported_version_is_an_error() {
    for version in [0, 4, 255] {
        let data = llvm_22().tap(|data| data[4] = version);
        assert_eq!(
            error(&data),
            (
                ErrorKind::Version,
                Some(0),
                format!("offload binary has version {version}, expected 1, 2 or 3")
            )
        );
    }
}

#[test]
fn a_size_too_small_is_an_error() {
    assert_eq!(
        error(&with(llvm_22(), SIZE, 64)),
        (
            ErrorKind::Malformed,
            Some(0),
            "offload binary has size 64, expected at least 72".to_owned()
        )
    );
    assert_eq!(
        error(&with(llvm_23(), SIZE, 32)),
        (
            ErrorKind::Malformed,
            Some(0),
            "offload binary has size 32, expected at least 40".to_owned()
        )
    );
    assert_eq!(
        error(&with(llvm_23(), SIZE, 0)),
        (
            ErrorKind::Malformed,
            Some(0),
            "offload binary has size 0, expected at least 40".to_owned()
        )
    );
}

#[test]
fn a_size_beyond_the_end_is_an_error() {
    let expected = (
        ErrorKind::Truncated,
        Some(0),
        "offload binary has size 0xa8, but only 0xa0 bytes are left".to_owned(),
    );
    assert_eq!(error(&with(llvm_22(), SIZE, 168)), expected);
    let size = u64::MAX - 7;
    assert_eq!(
        error(&with(llvm_22(), SIZE, size)),
        (
            ErrorKind::Truncated,
            Some(0),
            format!("offload binary has size {size:#x}, but only 0xa0 bytes are left")
        )
    );
}

#[test]
fn a_size_that_is_not_a_multiple_of_8_is_an_error() {
    assert_eq!(
        error(&with(llvm_22(), SIZE, 159)),
        (
            ErrorKind::Malformed,
            Some(0),
            "offload binary has size 159, expected a multiple of 8".to_owned()
        )
    );
}

#[test]
fn entries_inside_the_header_are_an_error() {
    for offset in [0, 31] {
        let expected = (
            ErrorKind::Malformed,
            Some(offset),
            format!("offload binary has its entries at {offset:#x}, inside the header of 32 bytes"),
        );
        assert_eq!(error(&with(llvm_22(), ENTRIES, offset)), expected);
    }
}

#[test]
fn entries_beyond_the_end_are_an_error() {
    for offset in [121, 160, u64::MAX - 39, u64::MAX] {
        let expected = (
            ErrorKind::Malformed,
            Some(offset),
            format!("offload binary has 1 entries at {offset:#x}, beyond its end at 0xa0"),
        );
        assert_eq!(error(&with(llvm_22(), ENTRIES, offset)), expected);
    }
}

#[test]
fn an_entry_count_too_large_is_an_error() {
    for count in [4, u64::MAX / 40 + 1, u64::MAX] {
        let expected = (
            ErrorKind::Malformed,
            Some(32),
            format!("offload binary has {count} entries at 0x20, beyond its end at 0xb0"),
        );
        assert_eq!(error(&with(llvm_23(), EXTENT, count)), expected);
    }
}

#[test]
fn an_entry_size_beyond_the_end_is_an_error() {
    for entry_size in [129, u64::MAX] {
        let expected = (
            ErrorKind::Malformed,
            Some(32),
            format!(
                "offload binary has an entry of {entry_size:#x} bytes at 0x20, beyond its end at 0xa0"
            ),
        );
        assert_eq!(error(&with(llvm_22(), EXTENT, entry_size)), expected);
    }
}

/// Looks at everything there is.
fn visit(data: &[u8]) {
    for result in binaries(data) {
        let Ok((_, binary)) = result else { continue };
        for entry in binary.entries() {
            for (key, value) in entry.strings() {
                assert!(key.len() + value.len() <= data.len());
            }
            assert_eq!(entry.image().map(<[u8]>::len), usize::try_from(entry.image_size()).ok());
            let _ = (entry.triple(), entry.arch(), format!("{binary:?} {entry:?}"));
        }
    }
}

#[test]
fn every_truncation_is_an_error() {
    for data in [llvm_22(), llvm_23(), v2_two_entries()] {
        for len in (0..data.len()).step_by(if cfg!(miri) { 29 } else { 1 }) {
            assert!(OffloadBinary::parse(&data[..len]).is_err());
            assert_eq!(OffloadBinary::parse(&data[..len]).unwrap_err().needed(), None);
            visit(&data[..len]);
        }
    }
}

#[test]
fn messages_are_one_line() {
    assert_eq!(
        error(b"\x7fELF").2,
        "offload binary starts with bytes [7f, 45, 4c, 46], expected [10, ff, 10, ad]",
    );
    assert_eq!(
        error(&with(llvm_22(), IMAGE_SIZE, 99)).2,
        "offload binary entry 0 has an image of 0x63 bytes at 0x90, \
         beyond the end of the binary at 0xa0",
    );
    assert_eq!(MAGIC, llvm_22()[..4]);
}
