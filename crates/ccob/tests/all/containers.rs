//! Whole containers: those of LLVM, and our own.

#[cfg(feature = "std")]
use ccob::{Decoder, decompress_prefix};
use ccob::{
    Error, ErrorKind, Header, Method, ReadOptions, Version, WriteOptions, compress, decompress,
    decompress_growing, decompress_into, hash,
};

/// `printf 'device code, device code, device code' > d.bin; : > e.bin; clang-offload-bundler
/// --type=bc --targets=host-x86_64-unknown-linux-gnu,hip-amdgcn-amd-amdhsa--gfx906
/// --input=e.bin --input=d.bin --output=plain.bc` of LLVM 22.1.8.
const PLAIN: &str = "
    5f5f434c414e475f4f46464c4f41445f 42554e444c455f5f0200000000000000
    8b000000000000000000000000000000 1e00000000000000686f73742d783836
    5f36342d756e6b6e6f776e2d6c696e75 782d676e752d8b000000000000002500
    0000000000001d000000000000006869 702d616d6467636e2d616d642d616d64
    6873612d2d6766783930366465766963 6520636f64652c2064657669636520
    636f64652c2064657669636520636f6465";

/// The same with `--compress` and `COMPRESSED_BUNDLE_FORMAT_VERSION=2`, without the header.
const FRAME: &str = "
    28b52ffd20b0bd0300f4055f5f434c41 4e475f4f46464c4f41445f42554e444c
    455f5f02008b001e00686f73742d7838 365f36342d756e6b6e6f776e2d6c696e
    75782d676e752d251d69702d616d6467 636e6873612d2d676678393036646576
    69636520636f64652c200900c084d9ad 555907de01c7ccea658035209b18c003";

/// Its header, and the one with `COMPRESSED_BUNDLE_FORMAT_VERSION=3`.
const V2: &str = "43434f42 0200 0100 98000000 b0000000 ca8b5610b4da32c1";
const V3: &str = "43434f42 0300 0100 a000000000000000 b000000000000000 ca8b5610b4da32c1";

/// Version 1 is no longer written; this is its header by the table, for the same frame.
const V1: &str = "43434f42 0100 0100 b0000000 ca8b5610b4da32c1";

/// "abc" in zlib (stored, by hand), in version 1 and 2; the MD5 is from RFC 1321.
const ABC_V1: &str = "
    43434f42 0100 0000 03000000 900150983cd24fb0
    7801 010300fcff 616263 024d0127";
const ABC_V2: &str = "
    43434f42 0200 0000 26000000 03000000 900150983cd24fb0
    7801 010300fcff 616263 024d0127";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    digits
        .chunks(2)
        .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

fn container(header: &str) -> Vec<u8> {
    [bytes(header), bytes(FRAME)].concat()
}

/// The containers that this build can read, each with its content.
fn readable() -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    if Method::ZSTD.codec().is_some() {
        all.extend([V1, V2, V3].map(|header| (container(header), bytes(PLAIN))));
    }
    if Method::ZLIB.codec().is_some() {
        all.extend([ABC_V1, ABC_V2].map(|hex| (bytes(hex), b"abc".to_vec())));
    }
    all
}

fn writable() -> Vec<Method> {
    [Method::ZLIB, Method::ZSTD].into_iter().filter(|method| method.codec().is_some()).collect()
}

fn is_truncated_or_other(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Truncated | ErrorKind::NotCompressed)
}

/// The text of the error.
fn text<T>(result: Result<T, Error>) -> Option<String> {
    result.err().map(|error| error.to_string())
}

#[test]
fn every_truncation_of_a_recorded_size_is_reported_as_such() {
    for (data, _) in readable() {
        let header = Header::parse(&data, data.len() as u64).unwrap();
        let end = header.total_size().map_or(header.header_len(), |_| data.len());
        for len in 0..end {
            let error = decompress(&data[..len], &ReadOptions::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Truncated, "{len} bytes: {error}");
        }
        // Without a size it is the payload that is faulty.
        for len in end..data.len() {
            let error = decompress(&data[..len], &ReadOptions::default()).unwrap_err();
            assert!(!is_truncated_or_other(&error), "{len} bytes: {error}");
        }
    }
}

const VERSIONS: [Version; 3] = [Version::V1, Version::V2, Version::V3];

#[test]
fn samples_decompress() {
    for (container, content) in readable() {
        let found = decompress(&container, &ReadOptions::default()).unwrap();
        assert_eq!(found.data, content);
        assert_eq!(found.consumed, container.len() as u64);
        assert_eq!(found.header.uncompressed_size(), content.len() as u64);
        assert_eq!(found.header.hash(), hash(&content));
    }
}

#[test]
fn the_next_container_is_found_after_padding() {
    for (first, content) in readable() {
        for padding in [0, 1, 138] {
            for (second, second_content) in readable() {
                let section = [&first[..], &vec![0; padding], &second].concat();
                let found = decompress(&section, &ReadOptions::default()).unwrap();
                assert_eq!(found.data, content);
                assert_eq!(found.consumed, first.len() as u64);

                let next = usize::try_from(found.consumed).unwrap() + padding;
                let found = decompress(&section[next..], &ReadOptions::default()).unwrap();
                assert_eq!(found.data, second_content);
            }
        }
    }
}

/// The hash finds whatever the stream does not. Changes of the hash itself are found by it too.
#[test]
fn every_changed_byte_fails() {
    for (container, content) in readable() {
        for at in (0..container.len()).step_by(if cfg!(miri) { 97 } else { 1 }) {
            for change in (1..=u8::MAX).step_by(if cfg!(miri) {
                100
            } else {
                1 + 4 * usize::from(!samples::faulty::is_thorough())
            }) {
                let mut container = container.clone();
                container[at] ^= change;
                match decompress(&container, &ReadOptions::default()) {
                    Err(_) => {}
                    // Other bytes of the stream for the same data.
                    Ok(found) => {
                        assert_eq!(found.data, content);
                        assert!(at >= found.header.header_len());
                    }
                }
            }
        }
    }
}

/// A reader fails with what `decompress` finds wrong, and with the last byte at the latest.
#[cfg(feature = "std")]
#[test]
fn readers_fail_before_the_end() {
    use std::io::Read;

    let limits = &ReadOptions::default();
    for (data, content) in readable() {
        let mut read = vec![0; content.len()];
        Decoder::new(&data[..], limits).unwrap().read_exact(&mut read).unwrap();
        assert_eq!(read, content);

        let header = Header::parse(&data, data.len() as u64).unwrap();
        let mut wrong = data.clone();
        wrong[header.header_len() - 1] ^= 1;
        let mut decoder = Decoder::new(&wrong[..], limits).unwrap();
        // All but the last byte.
        decoder.read_exact(&mut read[1..]).unwrap();
        for _ in 0..2 {
            let error = decoder.read(&mut read).unwrap_err();
            let error: &Error = error.get_ref().and_then(|error| error.downcast_ref()).unwrap();
            assert_eq!(error.kind(), ErrorKind::Hash, "{error}");
        }
        for len in 0..data.len() {
            let decoder = Decoder::new(&data[..len], limits);
            let error = decoder.and_then(|mut it| it.read_exact(&mut read)).unwrap_err();
            let error: &Error = error.get_ref().and_then(|error| error.downcast_ref()).unwrap();
            let is_truncated = len < header.header_len() || header.total_size().is_some();
            assert_eq!(error.kind() == ErrorKind::Truncated, is_truncated, "{len}: {error}");
            let some = decompress_prefix(&data[..len], content.len(), limits);
            assert_eq!(some.is_ok(), len >= header.header_len());
            assert!(content.starts_with(&some.unwrap_or_default()));
        }
        let small = &at_most(content.len() as u64 - 1);
        assert!(Decoder::new(&data[..], small).is_err());
        assert!(decompress_prefix(&data, 1, small).is_err());
    }
}

/// The first bytes of a large container cost its first blocks.
#[cfg(feature = "std")]
#[test]
#[cfg_attr(miri, ignore = "megabytes of data would take Miri hours")]
fn reading_a_prefix_decodes_only_the_first_blocks() {
    use std::io::Read;

    let mut state = 1_u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    })
    .take(400_000)
    .collect();
    for method in writable() {
        let container = compress(&noise, &WriteOptions::default().with_method(method)).unwrap();
        let mut decoder = Decoder::new(&container[..], &ReadOptions::default()).unwrap();
        let mut head = [0; 1000];
        decoder.read_exact(&mut head).unwrap();
        assert_eq!(head, noise[..1000]);
        assert!(decoder.consumed() < 140_000, "{method}: {}", decoder.consumed());
        // All that was read is enough, and damage after it plays no part.
        let mut part = container[..140_000].to_vec();
        part.resize(container.len(), 0xEE);
        for part in [&part[..], &part[..140_000]] {
            let some = decompress_prefix(part, 1000, &ReadOptions::default());
            assert_eq!(some.unwrap(), noise[..1000]);
        }
    }
}

#[test]
fn memory_of_another_size_is_refused() {
    for (data, content) in readable() {
        let mut out = vec![0; content.len() + 1];
        let (expected, found) = (content.len(), content.len() + 1);
        let error = decompress_into(&data, &mut out).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Buffer);
        assert_eq!(
            error.to_string(),
            format!(
                "output buffer for a compressed bundle: expected {expected} bytes, found {found}"
            )
        );
        let header = decompress_into(&data, &mut out[1..]).unwrap();
        assert_eq!(header.hash(), hash(&content));
        assert_eq!(out[1..], content);
    }
}

#[test]
fn needed_headers_are_all_that_parsing_needs() {
    for (data, _) in readable() {
        let mut len = 0;
        let mut rounds = Vec::new();
        while Header::needed(&data[..len]).unwrap() > len {
            len = Header::needed(&data[..len]).unwrap();
            rounds.push(len);
        }
        let header = Header::parse(&data[..len], u64::MAX).unwrap();
        assert_eq!(rounds, [8, header.header_len()]);
    }
    assert_eq!(Header::needed(b"CCOA").unwrap_err().kind(), ErrorKind::NotCompressed);
    let version = Header::needed(b"CCOB\x04\0\0\0");
    assert_eq!(version.unwrap_err().kind(), ErrorKind::Version);
}

#[test]
fn a_wrong_hash_is_an_error() {
    for (mut container, content) in readable() {
        let stored = hash(&content) ^ 1;
        let header = Header::parse(&container, 1000).unwrap();
        container[header.header_len() - 8] ^= 1;
        let error = decompress(&container, &ReadOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Hash);
        let computed = hash(&content);
        assert_eq!(
            error.to_string(),
            format!(
                "compressed bundle hash mismatch: {stored:#018x} in the header, {computed:#018x} computed"
            )
        );

        let found = decompress(&container, &unverified()).unwrap();
        assert_eq!(found.data, content);
        assert_eq!(found.header.hash(), stored);
        let found = decompress_growing(&container, &unverified(), &mut |_| {}).unwrap();
        assert_eq!(found.data, content);
        #[cfg(feature = "std")]
        {
            use std::io::Read;

            let read = |options: &ReadOptions| {
                let mut read = Vec::new();
                Decoder::new(&container[..], options)?.read_to_end(&mut read).map(|_| read)
            };
            assert_eq!(read(&unverified()).unwrap(), content);
            assert!(read(&ReadOptions::default()).is_err());
        }
    }
}

#[test]
fn limit_is_inclusive_and_checked_first() {
    for (container, content) in readable() {
        let size = content.len() as u64;
        assert!(decompress(&container, &at_most(size)).is_ok());
        let error = decompress(&container, &at_most(size - 1));
        assert_eq!(text(error), Some(Error::too_large(size, size - 1).to_string()));
    }
    // The claim alone is enough, whatever the payload.
    let mut claim = bytes(V3);
    claim[8] = 32;
    claim[16..24].fill(0xFF);
    let error = decompress(&claim, &ReadOptions::default());
    assert_eq!(text(error), Some(Error::too_large(u64::MAX, 2 << 30).to_string()));
}

#[test]
fn total_size_that_cuts_the_stream_or_leaves_bytes() {
    if Method::ZSTD.codec().is_none() {
        return;
    }
    let mut short = container(V2);
    short[8] -= 1;
    let error = decompress(&short, &ReadOptions::default()).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::EndsEarly, Some(0x97)));
    let mut long = container(V2);
    long[8] += 1;
    long.push(0);
    let error = decompress(&long, &ReadOptions::default()).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::TrailingData, Some(0x98)));
    assert_eq!(error.method(), Some(Method::ZSTD));
}

/// Version 1 does not record its end: its stream is all frames that follow each other, those without data included.
#[cfg(feature = "std")]
#[test]
fn version_1_ends_with_its_last_frame() {
    use std::io::Read;

    if Method::ZSTD.codec().is_none() {
        return;
    }
    const SKIPPABLE: &[u8] = b"\x50\x2A\x4D\x18\x04\0\0\0CCOB";
    let limits = &ReadOptions::default();
    let one = container(V1);
    let (header, frame) = one.split_at(20);
    let first = [header, SKIPPABLE, frame, SKIPPABLE, SKIPPABLE].concat();
    for after in [&b""[..], &[0; 5], &one, &first] {
        let data = [&first, after].concat();
        let found = decompress(&data, limits).unwrap();
        assert_eq!(found.consumed, first.len() as u64);
        let mut read = Vec::new();
        let mut decoder = Decoder::new(&data[..], limits).unwrap();
        decoder.read_to_end(&mut read).unwrap();
        assert_eq!(decoder.consumed(), found.consumed);
        assert!(read == found.data && read == bytes(PLAIN));
        assert_eq!(decompress_prefix(&data, 9, limits).unwrap(), read[..9]);
    }
    let cut = &first[..first.len() - 1];
    let mut decoder = Decoder::new(cut, limits).unwrap();
    assert!(decoder.read_to_end(&mut Vec::new()).is_err() && decompress(cut, limits).is_err());
}

/// A block that ends after the container is a faulty stream: nothing of the container is missing.
#[cfg(feature = "std")]
#[test]
fn a_stream_that_ends_after_its_container_ends_early() {
    use std::io::Read;

    if Method::ZSTD.codec().is_none() {
        return;
    }
    let frame = b"\x28\xB5\x2F\xFD\x20\x03\x19\0\0ab";
    let header = b"CCOB\x02\0\x01\0\x23\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0";
    let container = [&header[..], frame].concat();
    let expected = decompress(&container, &ReadOptions::default()).unwrap_err();
    assert_eq!((expected.kind(), expected.offset()), (ErrorKind::EndsEarly, Some(0x23)));
    for after in [&b""[..], b"cd"] {
        let data = [&container, after].concat();
        let mut decoder = Decoder::new(&data[..], &ReadOptions::default()).unwrap();
        let error = decoder.read_to_end(&mut Vec::new()).unwrap_err();
        let error = error.downcast::<Error>().unwrap();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::EndsEarly, Some(0x23)));
    }
}

fn at_most(max: u64) -> ReadOptions {
    ReadOptions::default().with_max_decompressed(max)
}

fn unverified() -> ReadOptions {
    ReadOptions::default().with_verify_hash(false)
}

#[test]
fn an_uncompressed_size_of_0_is_refused_where_there_is_content() {
    for (mut container, _) in readable() {
        let size = match Header::parse(&container, 1 << 40).unwrap().version() {
            Version::V1 => 8..12,
            Version::V2 => 12..16,
            _ => 16..24,
        };
        container[size].fill(0);
        for options in [ReadOptions::default(), unverified()] {
            let error = decompress(&container, &options).unwrap_err();
            assert!(error.is_too_long(), "{error}");
            assert!(matches!(error.kind(), ErrorKind::Size | ErrorKind::Output), "{error}");
        }
    }
}

#[test]
fn a_missing_codec_is_an_error() {
    for (container, method) in [(container(V2), Method::ZSTD), (bytes(ABC_V2), Method::ZLIB)] {
        if method.codec().is_none() {
            let error = decompress(&container, &ReadOptions::default()).unwrap_err();
            assert_eq!((error.kind(), error.method()), (ErrorKind::Codec, Some(method)));
            let options = WriteOptions::default().with_method(method);
            assert_eq!(text(compress(b"abc", &options)), Some(error.to_string()));
        }
    }
    let method = Method(7);
    let options = WriteOptions::default().with_method(method);
    let error = compress(b"abc", &options).unwrap_err();
    assert_eq!((error.kind(), error.method()), (ErrorKind::Method, Some(method)));
}

#[test]
#[cfg_attr(
    miri,
    ignore = "megabytes of data would take Miri hours; small data takes the same ways"
)]
fn written_containers_are_read_back() {
    let large: Vec<u8> =
        (0..200_000_u32).flat_map(|i| (i / 7).wrapping_mul(i).to_le_bytes()).collect();
    for method in writable() {
        for version in VERSIONS {
            for data in [&b""[..], b"a", &bytes(PLAIN), &large[..70_000]] {
                for level in [None, Some(-7), Some(0), Some(1), Some(9), Some(99)] {
                    let options = WriteOptions::default().with_version(version).with_method(method);
                    let options = options.with_level(level);
                    let container = compress(data, &options).unwrap();
                    let found = decompress(&container, &ReadOptions::default()).unwrap();
                    assert_eq!(found.data, data);
                    assert_eq!(found.consumed, container.len() as u64);
                    assert_eq!(found.header.version(), version);
                    assert_eq!(found.header.method(), method);
                    assert_eq!(compress(data, &options).unwrap(), container);
                }
            }
        }
    }
}

/// Also for data that is long enough for a thread of its own, and for several workers.
#[test]
#[cfg_attr(
    miri,
    ignore = "megabytes of data would take Miri hours; small data takes the same ways"
)]
fn threads_do_not_change_the_bytes() {
    let data: Vec<u8> =
        (0..300_000_u32).flat_map(|i| (i / 7).wrapping_mul(i).to_le_bytes()).collect();
    for method in writable() {
        for level in [1, 10] {
            let options = WriteOptions::default().with_method(method).with_level(level);
            let one = compress(&data, &options).unwrap();
            for threads in [0, 2, 3] {
                let container = compress(&data, &options.clone().with_threads(threads)).unwrap();
                assert!(container == one);
            }
            assert!(decompress(&one, &ReadOptions::default()).unwrap().data == data);
        }
    }
}

/// Clang's frames record the size, in a single segment and without a checksum; so do those of
/// libzstd here. After that the bytes depend on the version of libzstd.
#[cfg(feature = "zstd")]
#[test]
fn libzstd_writes_frames_like_those_of_clang() {
    let written = compress(&bytes(PLAIN), &WriteOptions::default()).unwrap();
    assert_eq!(written[32..38], container(V3)[32..38]);
}

/// Large enough to be decoded in steps and hashed meanwhile.
#[test]
#[cfg_attr(
    miri,
    ignore = "megabytes of data would take Miri hours; small data takes the same ways"
)]
fn large_data_is_verified() {
    let data: Vec<u8> =
        (0..1_400_000_u32).flat_map(|i| (i / 7).wrapping_mul(i).to_le_bytes()).collect();
    for method in writable() {
        let options = WriteOptions::default().with_method(method).with_level(1);
        let mut container = compress(&data, &options).unwrap();
        assert!(decompress(&container, &ReadOptions::default()).unwrap().data == data);
        assert!(decompress(&container, &unverified()).unwrap().data == data);
        let mut seen = 0;
        let mut grown = |part: &[u8]| {
            assert!(part.len() >= seen && data.starts_with(part));
            seen = part.len();
        };
        decompress_growing(&container, &ReadOptions::default(), &mut grown).unwrap();
        container[24] ^= 1;
        let error = decompress(&container, &ReadOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Hash, "{error}");
    }
}

#[test]
fn the_content_is_handed_out_once_and_only_from_a_sound_stream() {
    let limits = &ReadOptions::default();
    for (data, method) in samples_of_every_codec() {
        let mut container = compress(&data, &WriteOptions::default().with_method(method)).unwrap();
        let seen = |container: &[u8]| {
            let mut whole = 0;
            let mut shown = 0;
            let result = decompress_growing(container, limits, &mut |part| {
                assert!(part.len() >= shown && data.starts_with(part));
                shown = part.len();
                whole += usize::from(part.len() == data.len());
            });
            (result.map(|found| found.data.len()), whole)
        };
        let (result, whole) = seen(&container);
        assert_eq!((result.unwrap(), whole), (data.len(), 1));
        // The hash.
        container[24] ^= 1;
        let (result, whole) = seen(&container);
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Hash);
        assert_eq!(whole, 1);
        // The size.
        container[16] ^= 1;
        let (result, whole) = seen(&container);
        assert!(result.is_err());
        assert_eq!(whole, 0);
    }
}

/// Little, and so much that it is decoded in steps.
fn samples_of_every_codec() -> Vec<(Vec<u8>, Method)> {
    let large = if cfg!(miri) { 1000 } else { 3 << 20 };
    let data: Vec<u8> =
        (0..large).map(|i: u32| (i.wrapping_mul(i) >> 13).to_le_bytes()[0]).collect();
    [Method::ZLIB, Method::ZSTD]
        .into_iter()
        .filter(|method| method.codec().is_some())
        .flat_map(|method| {
            [(data.iter().take(100).copied().collect(), method), (data.clone(), method)]
        })
        .collect()
}
