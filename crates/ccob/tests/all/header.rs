//! Headers, and everything that can be wrong with them.

use ccob::{ErrorKind, Header, Method, Version};

const V1: &[u8] = &[
    b'C', b'C', b'O', b'B', 1, 0, 0, 0, // version 1, zlib
    0x00, 0x10, 0x00, 0x00, // uncompressed size
    0xEF, 0xCD, 0xAB, 0x89, 0x67, 0x45, 0x23, 0x01, // hash
];
const V2: &[u8] = &[
    b'C', b'C', b'O', b'B', 2, 0, 1, 0, // version 2, zstd
    0x40, 0x00, 0x00, 0x00, // total size
    0x00, 0x10, 0x00, 0x00, // uncompressed size
    0xEF, 0xCD, 0xAB, 0x89, 0x67, 0x45, 0x23, 0x01, // hash
];
const V3: &[u8] = &[
    b'C', b'C', b'O', b'B', 3, 0, 1, 0, // version 3, zstd
    0x40, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, // total size
    0x00, 0x10, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, // uncompressed size
    0xEF, 0xCD, 0xAB, 0x89, 0x67, 0x45, 0x23, 0x01, // hash
];

fn with(header: &[u8], at: usize, byte: u8) -> Vec<u8> {
    let replace = |(index, &old)| if index == at { byte } else { old };
    header.iter().enumerate().map(replace).collect()
}

#[test]
fn fields_of_all_versions_are_read() {
    for (bytes, version, method, total, uncompressed) in [
        (V1, Version::V1, Method::ZLIB, None, 0x1000),
        (V2, Version::V2, Method::ZSTD, Some(0x40), 0x1000),
        (V3, Version::V3, Method::ZSTD, Some(0x1_0000_0040), 0x2_0000_1000),
    ] {
        let header = Header::parse(bytes, 0x1_0000_0040).unwrap();
        assert_eq!((header.version(), header.method()), (version, method));
        let sizes = (header.total_size(), header.uncompressed_size());
        assert_eq!(sizes, (total, uncompressed));
        assert_eq!((header.hash(), header.header_len()), (0x0123_4567_89AB_CDEF, bytes.len()));
    }
}

/// Kind and text of the error.
fn error(bytes: &[u8], available: u64) -> Option<(ErrorKind, String)> {
    let error = Header::parse(bytes, available).err()?;
    Some((error.kind(), error.to_string()))
}

#[test]
fn a_wrong_magic_is_an_error_from_its_first_wrong_byte() {
    let wrong = (0..4).map(|at| with(V2, at, b'x')).chain([b"__CLANG_OFFLOAD_BUNDLE__".to_vec()]);
    let cut = (0..4).flat_map(|len| {
        let other = (0..=255).filter(move |&byte| byte != b"CCOB"[len]);
        other.map(move |byte| [&b"CCOB"[..len], &[byte]].concat())
    });
    for bytes in wrong.chain(cut) {
        let mut found = [0; 4];
        found.iter_mut().zip(&bytes).for_each(|(found, byte)| *found = *byte);
        let text =
            format!("compressed bundle starts with {found:02x?} instead of the magic \"CCOB\"");
        assert_eq!(error(&bytes, 1000), Some((ErrorKind::NotCompressed, text)));
    }
}

#[test]
fn a_truncated_header_is_an_error() {
    for header in [V1, V2, V3] {
        for len in 0..header.len() {
            let needed = if len < 8 { 8 } else { header.len() };
            let text =
                format!("compressed bundle header is truncated: {len} bytes, {needed} needed");
            let expected = Some((ErrorKind::Truncated, text));
            assert_eq!(error(&header[..len], len as u64), expected);
            // The shorter of the two counts, whichever it is.
            assert_eq!(error(&header[..len], 1 << 40), expected);
            if len >= 8 {
                assert_eq!(error(header, len as u64), expected);
            }
        }
    }
}

#[test]
fn an_unknown_version_is_an_error() {
    for (at, byte, version) in [(4, 0, 0), (4, 4, 4), (4, 255, 255), (5, 1, 0x102)] {
        let text = format!("compressed bundle version {version} is unknown, expected 1, 2 or 3");
        assert_eq!(error(&with(V2, at, byte), 1000), Some((ErrorKind::Version, text)));
    }
}

#[test]
fn an_unknown_method_is_an_error() {
    for (header, at, byte, method) in [(V2, 6, 2, 2), (V1, 7, 1, 0x100)] {
        let error = Header::parse(&with(header, at, byte), 1000).unwrap_err();
        assert_eq!((error.kind(), error.method()), (ErrorKind::Method, Some(Method(method))));
        let text =
            format!("compressed bundle method {method} is unknown, expected 0 (zlib) or 1 (zstd)");
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn a_total_size_less_than_the_header_is_an_error() {
    let text = |size, header_len| {
        format!(
            "compressed bundle has a total size of {size} bytes, less than its header of {header_len}"
        )
    };
    for size in 0..24 {
        assert_eq!(error(&with(V2, 8, size), 1000), Some((ErrorKind::Size, text(size, 24))));
    }
    assert!(Header::parse(&with(V2, 8, 24), 1000).is_ok());
    let v3 = with(V3, 12, 0);
    assert_eq!(error(&with(&v3, 8, 31), 1000), Some((ErrorKind::Size, text(31, 32))));
}

#[test]
fn a_total_size_beyond_the_data_is_an_error() {
    let text = |size: u64, available: u64| {
        format!("compressed bundle is truncated: total size of {size} bytes, {available} there")
    };
    assert!(Header::parse(V2, 0x40).is_ok());
    assert_eq!(error(V2, 0x3F), Some((ErrorKind::Truncated, text(0x40, 0x3F))));
    let v3: Vec<u8> = V3
        .iter()
        .enumerate()
        .map(|(at, &byte)| if (8..16).contains(&at) { 0xFF } else { byte })
        .collect();
    let expected = Some((ErrorKind::Truncated, text(u64::MAX, u64::MAX - 1)));
    assert_eq!(error(&v3, u64::MAX - 1), expected);
}
