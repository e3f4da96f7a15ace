//! Compressed bundles.

use std::io::Read;

use ccob::{
    Decoder, Decompressed, Error, ErrorKind, Header, Method, ReadOptions, Version, WriteOptions,
    compress, decompress, decompress_into, decompress_prefix, hash,
};

use crate::assert_message;

/// The most that a run may decompress.
const LIMIT: u64 = 16 << 20;

/// Checks the header alone.
pub fn check_header(data: &[u8]) {
    let len = data.len() as u64;
    for available in [len, len / 2, len.saturating_mul(2), u64::MAX] {
        let header = Header::parse(data, available);
        let start = Header::parse(&data[..data.len().min(32)], available);
        assert_eq!(format!("{start:?}"), format!("{header:?}"));
        match header {
            Ok(header) => {
                assert!(header.header_len() as u64 <= len.min(available));
                assert_eq!(header.total_size().is_none(), header.version() == Version::V1);
                if let Some(total_size) = header.total_size() {
                    assert!((header.header_len() as u64..=available).contains(&total_size));
                }
                assert!(header.method().name().is_some());
            }
            Err(error) => assert_message(&error),
        }
    }
}

fn is_same(one: &Decompressed, other: &Decompressed) -> bool {
    let header = |found: &Decompressed| format!("{:?}", found.header);
    one.data == other.data && one.consumed == other.consumed && header(one) == header(other)
}

/// Returns the text of an error.
fn text<T>(result: &Result<T, Error>) -> Option<String> {
    result.as_ref().err().map(Error::to_string)
}

/// Checks decompression and compression.
pub fn check(data: &[u8]) {
    let limits = &ReadOptions::default().with_max_decompressed(LIMIT);
    let verified = decompress(data, limits);
    check_partly(data, &verified, limits);
    match decompress(data, &limits.clone().with_verify_hash(false)) {
        Ok(found) => {
            check_found(data, &found);
            match verified {
                Ok(verified) => assert!(is_same(&verified, &found)),
                Err(error) if error.kind() == ErrorKind::Hash => {
                    assert_ne!(found.header.hash(), hash(&found.data));
                    check_rehashed(data, &found, limits);
                }
                Err(error) => panic!("only without verification: {error}"),
            }
            check_round_trip(&found.data, limits);
        }
        Err(error) => {
            assert_eq!(text(&verified), Some(error.to_string()));
            assert_message(&error);
            check_round_trip(data, limits);
        }
    }
}

/// Checks that the reading decoder gives the same result, wherever it is interrupted, and that decompressing into
/// existing memory does so too.
fn check_partly(data: &[u8], verified: &Result<Decompressed, Error>, limits: &ReadOptions) {
    let step = usize::from(data.last().copied().unwrap_or_default()) + 1;
    let mut read = Vec::new();
    let result = Decoder::new(data, limits).and_then(|mut decoder| {
        let mut buffer = vec![0; step];
        loop {
            match decoder.read(&mut buffer)? {
                0 => return Ok(decoder.consumed()),
                n => read.extend_from_slice(&buffer[..n]),
            }
        }
    });
    if let Ok(header) = Header::parse(data, data.len() as u64)
        && header.uncompressed_size() <= LIMIT
    {
        let mut out = vec![0; header.uncompressed_size() as usize];
        let into = decompress_into(data, &mut out);
        assert_eq!(text(&into), text(verified));
        assert!(verified.as_ref().is_ok_and(|verified| verified.data == out) || into.is_err());
    }
    match verified {
        Ok(verified) => {
            assert!(result.is_ok_and(|consumed| consumed == verified.consumed));
            assert!(read == verified.data);
            let len = step.min(read.len());
            assert!(decompress_prefix(data, len, limits).is_ok_and(|start| start == read[..len]));
        }
        Err(_) => assert!(result.is_err()),
    }
}

fn check_found(data: &[u8], found: &Decompressed) {
    assert_eq!(found.data.len() as u64, found.header.uncompressed_size());
    assert!(found.data.len() as u64 <= LIMIT);
    assert!(found.consumed <= data.len() as u64);
    if let Some(total_size) = found.header.total_size() {
        assert_eq!(found.consumed, total_size);
    }
    // The bytes after it do not matter.
    let limits = ReadOptions::default().with_max_decompressed(found.data.len() as u64);
    let exact = decompress(&data[..found.consumed as usize], &limits.with_verify_hash(false));
    assert!(exact.is_ok_and(|exact| is_same(&exact, found)));
}

/// Checks that the container is sound with the right hash in its header.
fn check_rehashed(data: &[u8], found: &Decompressed, limits: &ReadOptions) {
    let mut data = data.to_vec();
    let end = found.header.header_len();
    data[end - 8..end].copy_from_slice(&hash(&found.data).to_le_bytes());
    let again = decompress(&data, limits).expect("the hash is right now");
    assert!(again.data == found.data);
}

fn check_round_trip(data: &[u8], limits: &ReadOptions) {
    // A large expansion would only cost time.
    let data = &data[..data.len().min(1 << 17)];
    let version = [Version::V1, Version::V2, Version::V3][data.len() % 3];
    for method in [Method::ZLIB, Method::ZSTD] {
        let level = data.first().map_or(0, |&byte| i32::from(byte % 8));
        let options = WriteOptions::default().with_version(version).with_method(method);
        let mut bytes = compress(data, &options.with_level(level)).expect("every codec is there");
        let len = bytes.len() as u64;
        bytes.extend([0; 3]);
        let found = decompress(&bytes, limits).expect("what is written can be read");
        assert!(found.data == data);
        assert_eq!(found.consumed, len);
        assert_eq!((found.header.version(), found.header.method()), (version, method));
        if method == Method::ZSTD {
            let frame = &bytes[version.header_len()..len as usize];
            let other = zstd::bulk::decompress(frame, data.len()).expect("libzstd reads it, too");
            assert!(other == data);
        }
    }
    check_libzstd(data, limits);
    check_frames(data, limits);
}

/// Checks that several frames, with skippable ones before, between and after them, hold the same in every version.
fn check_frames(data: &[u8], limits: &ReadOptions) {
    let choice = data.last().copied().unwrap_or_default();
    let skippable = |len: u8| {
        let magic = 0x184D_2A50 + u32::from(len % 16);
        [&magic.to_le_bytes()[..], &u32::from(len).to_le_bytes(), &vec![choice; len.into()]]
            .concat()
    };
    let mut stream = Vec::new();
    for (index, part) in data.chunks(data.len() / 3 + 1).enumerate() {
        if choice & (1 << index) != 0 {
            stream.extend(skippable(choice.rotate_left(3)));
        }
        stream.extend(zstd::bulk::compress(part, 1).expect("is small"));
    }
    if stream.is_empty() {
        return;
    }
    if choice & 0x80 != 0 {
        stream.extend(skippable(choice / 2));
    }
    for version in [Version::V1, Version::V2, Version::V3] {
        let whole = (version.header_len() + stream.len()) as u64;
        let mut container = ccob::MAGIC.to_vec();
        container.extend([version.number() as u8, 0, 1, 0]);
        match version {
            Version::V1 => container.extend((data.len() as u32).to_le_bytes()),
            Version::V2 => {
                container.extend((whole as u32).to_le_bytes());
                container.extend((data.len() as u32).to_le_bytes());
            }
            _ => {
                container.extend(whole.to_le_bytes());
                container.extend((data.len() as u64).to_le_bytes());
            }
        }
        container.extend(hash(data).to_le_bytes());
        container.extend(&stream);
        // Another container follows.
        container.extend(ccob::MAGIC);
        let verified = decompress(&container, limits);
        let found = verified.as_ref().expect("libzstd wrote the frames");
        assert!(found.data == data);
        assert_eq!(found.consumed, whole);
        check_partly(&container, &verified, limits);
    }
}

/// Checks that output of libzstd can be read. (On damaged frames the two need not agree: of the checks for them
/// each leaves out some.)
fn check_libzstd(data: &[u8], limits: &ReadOptions) {
    let choice = data.first().copied().unwrap_or_default();
    // With higher levels GCC 12 finds a fault in libzstd that is its own: it forgets that it made a constant
    // array static, and says that its scope was left.
    let level = i32::from(choice % 11) - 4;
    let mut compressor = zstd::bulk::Compressor::new(level).expect("any level will do");
    let checksum = zstd::zstd_safe::CParameter::ChecksumFlag(choice & 0x80 != 0);
    let content_size = zstd::zstd_safe::CParameter::ContentSizeFlag(choice & 0x40 != 0);
    compressor.set_parameter(checksum).expect("is known");
    compressor.set_parameter(content_size).expect("is known");
    let frame = compressor.compress(data).expect("is small");

    let mut container = ccob::MAGIC.to_vec();
    container.extend([3, 0, 1, 0]);
    for number in [32 + frame.len() as u64, data.len() as u64, hash(data)] {
        container.extend(number.to_le_bytes());
    }
    container.extend(frame);
    let found = decompress(&container, limits).expect("libzstd wrote it");
    assert!(found.data == data);
}
