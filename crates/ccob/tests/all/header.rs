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
    let header = Header::parse(V1, 1000).unwrap();
    assert_eq!(header.version(), Version::V1);
    assert_eq!(header.method(), Method::ZLIB);
    assert_eq!(header.total_size(), None);
    assert_eq!(header.uncompressed_size(), 0x1000);
    assert_eq!(header.hash(), 0x0123_4567_89AB_CDEF);
    assert_eq!(header.header_len(), 20);

    let header = Header::parse(V2, 1000).unwrap();
    assert_eq!(header.version(), Version::V2);
    assert_eq!(header.method(), Method::ZSTD);
    assert_eq!(header.total_size(), Some(0x40));
    assert_eq!(header.uncompressed_size(), 0x1000);
    assert_eq!(header.hash(), 0x0123_4567_89AB_CDEF);
    assert_eq!(header.header_len(), 24);

    let header = Header::parse(V3, 0x1_0000_0040).unwrap();
    assert_eq!(header.version(), Version::V3);
    assert_eq!(header.total_size(), Some(0x1_0000_0040));
    assert_eq!(header.uncompressed_size(), 0x2_0000_1000);
    assert_eq!(header.hash(), 0x0123_4567_89AB_CDEF);
    assert_eq!(header.header_len(), 32);
}

/// Kind and text of the error.
fn error(bytes: &[u8], available: u64) -> Option<(ErrorKind, String)> {
    let error = Header::parse(bytes, available).err()?;
    Some((error.kind(), error.to_string()))
}

fn wrong_magic_text(found: &[u8]) -> String {
    format!("compressed bundle starts with {found:02x?} instead of the magic \"CCOB\"")
}

#[test]
fn a_wrong_magic_is_refused() {
    for at in 0..4 {
        let bytes = with(V2, at, b'x');
        let text = wrong_magic_text(&bytes[..4]);
        assert_eq!(error(&bytes, 1000), Some((ErrorKind::NotCompressed, text)));
    }
    let text = wrong_magic_text(b"__CL");
    assert_eq!(error(b"__CLANG_OFFLOAD_BUNDLE__", 24), Some((ErrorKind::NotCompressed, text)));
}

#[test]
fn a_wrong_magic_is_an_error_from_its_first_wrong_byte() {
    for len in 0..4 {
        for byte in (0..=255).filter(|&byte| byte != b"CCOB"[len]) {
            let bytes = [&b"CCOB"[..len], &[byte]].concat();
            let mut found = [0; 4];
            found[..=len].copy_from_slice(&bytes);
            let text = wrong_magic_text(&found);
            assert_eq!(error(&bytes, 1000), Some((ErrorKind::NotCompressed, text)));
        }
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

#[test]
fn messages_name_format_and_field() {
    let message =
        |bytes: &[u8], available| Header::parse(bytes, available).unwrap_err().to_string();
    assert_eq!(
        message(&V2[..10], 10),
        "compressed bundle header is truncated: 10 bytes, 24 needed"
    );
    assert_eq!(message(V2, 60), "compressed bundle is truncated: total size of 64 bytes, 60 there");
    assert_eq!(
        message(&with(V2, 6, 9), 64),
        "compressed bundle method 9 is unknown, expected 0 (zlib) or 1 (zstd)"
    );
    assert_eq!(
        message(&with(V2, 0, 0), 64),
        "compressed bundle starts with [00, 43, 4f, 42] instead of the magic \"CCOB\""
    );
}
