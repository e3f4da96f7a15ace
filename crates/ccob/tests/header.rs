//! Headers, and everything that can be wrong with them.
#![forbid(unsafe_code)]

use ccob::{Error, Header, Method, Version};

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
fn fields_of_all_versions() {
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

#[test]
fn wrong_magic() {
    for at in 0..4 {
        let bytes = with(V2, at, b'x');
        let found = *bytes.first_chunk().unwrap();
        assert_eq!(Header::parse(&bytes, 1000), Err(Error::BadMagic { found }));
    }
    assert_eq!(
        Header::parse(b"__CLANG_OFFLOAD_BUNDLE__", 24),
        Err(Error::BadMagic { found: *b"__CL" })
    );
}

#[test]
fn a_wrong_magic_is_told_from_the_first_wrong_byte_on() {
    for len in 0..4 {
        for byte in (0..=255).filter(|&byte| byte != b"CCOB"[len]) {
            let bytes = [&b"CCOB"[..len], &[byte]].concat();
            let mut found = [0; 4];
            found[..=len].copy_from_slice(&bytes);
            let error = Header::parse(&bytes, 1000).unwrap_err();
            assert_eq!(error, Error::BadMagic { found });
            assert!(error.is_bad_magic() && !error.is_truncated());
        }
    }
}

#[test]
fn truncated_header() {
    for header in [V1, V2, V3] {
        for len in 0..header.len() {
            let needed = if len < 8 { 8 } else { header.len() as u64 };
            let error = Error::TruncatedHeader { available: len as u64, needed };
            assert!(error.is_truncated() && !error.is_bad_magic());
            assert_eq!(Header::parse(&header[..len], len as u64), Err(error.clone()));
            // The shorter of the two counts, whichever it is.
            assert_eq!(Header::parse(&header[..len], 1 << 40), Err(error.clone()));
            if len >= 8 {
                assert_eq!(Header::parse(header, len as u64), Err(error));
            }
        }
    }
}

#[test]
fn unknown_version() {
    for version in [0, 4, 255] {
        assert_eq!(
            Header::parse(&with(V2, 4, version), 1000),
            Err(Error::UnsupportedVersion { version: version.into() })
        );
    }
    assert_eq!(
        Header::parse(&with(V2, 5, 1), 1000),
        Err(Error::UnsupportedVersion { version: 0x102 })
    );
}

#[test]
fn unknown_method() {
    assert_eq!(
        Header::parse(&with(V2, 6, 2), 1000),
        Err(Error::UnsupportedMethod { method: Method(2) })
    );
    assert_eq!(
        Header::parse(&with(V1, 7, 1), 1000),
        Err(Error::UnsupportedMethod { method: Method(0x100) })
    );
}

#[test]
fn total_size_less_than_the_header() {
    for total_size in 0..24 {
        assert_eq!(
            Header::parse(&with(V2, 8, total_size), 1000),
            Err(Error::TotalSizeTooSmall { total_size: total_size.into(), header_len: 24 })
        );
    }
    assert!(Header::parse(&with(V2, 8, 24), 1000).is_ok());
    let v3 = with(V3, 12, 0);
    assert_eq!(
        Header::parse(&with(&v3, 8, 31), 1000),
        Err(Error::TotalSizeTooSmall { total_size: 31, header_len: 32 })
    );
}

#[test]
fn total_size_beyond_the_data() {
    assert!(Header::parse(V2, 0x40).is_ok());
    assert_eq!(
        Header::parse(V2, 0x3F),
        Err(Error::Truncated { total_size: 0x40, available: 0x3F })
    );
    let v3: Vec<u8> = V3
        .iter()
        .enumerate()
        .map(|(at, &byte)| if (8..16).contains(&at) { 0xFF } else { byte })
        .collect();
    assert_eq!(
        Header::parse(&v3, u64::MAX - 1),
        Err(Error::Truncated { total_size: u64::MAX, available: u64::MAX - 1 })
    );
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
