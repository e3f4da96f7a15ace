//! The codecs at their edges. Both Zstandard codecs run through every case, and have to agree.

use super::*;
use alloc::vec;

type Decoder = fn(&Input<'_>) -> Result<(Vec<u8>, usize), Error>;

const ZSTD: &[Decoder] = &[
    #[cfg(feature = "ruzstd")]
    pure_zstd::decode,
    #[cfg(feature = "zstd")]
    |input| libzstd::decode(input, &mut |_| {}),
];
const ZLIB: &[Decoder] = &[
    #[cfg(feature = "miniz_oxide")]
    zlib::decode,
];

/// The streams start here in these tests, as in version 2.
const OFFSET: u64 = 24;

/// "abc", one raw block, size recorded.
const ABC: &[u8] = &[
    0x28, 0xB5, 0x2F, 0xFD, // magic
    0x20, 0x03, // single segment, content size 3
    0x19, 0x00, 0x00, // last, raw, 3 bytes
    b'a', b'b', b'c',
];

/// "abc" as `printf abc | zstd -c` (1.5.4) writes it: no size, but a checksum.
const ABC_CHECKED: &[u8] = &[
    0x28, 0xB5, 0x2F, 0xFD, // magic
    0x04, 0x58, // checksum, window 2 MiB
    0x19, 0x00, 0x00, // last, raw, 3 bytes
    b'a', b'b', b'c', //
    0x99, 0x09, 0x77, 0xAD, // checksum
];

/// "abc" twenty times, as `zstd -c --no-check` (1.5.4) writes it from a pipe: no size.
const TWENTY: &[u8] = &[
    0x28, 0xB5, 0x2F, 0xFD, // magic
    0x00, 0x58, // window 2 MiB
    0x4D, 0x00, 0x00, // last, compressed, 9 bytes
    0x18, 0x61, 0x62, 0x63, // three literals
    0x01, 0x00, 0xF6, 0x74, 0x43, // one sequence
];

/// "abc" in zlib, by hand from RFC 1950 and RFC 1951.
const ABC_ZLIB: &[u8] = &[
    0x78, 0x01, // deflate, window 32 KiB, fastest
    0x01, 0x03, 0x00, 0xFC, 0xFF, // last, stored, 3 bytes
    b'a', b'b', b'c', //
    0x02, 0x4D, 0x01, 0x27, // Adler-32
];

fn input(stream: &[u8], uncompressed_size: u64) -> Input<'_> {
    Input { stream, offset: OFFSET, exact: true, uncompressed_size }
}

/// The bytes with some replaced.
fn patched(bytes: &[u8], at: usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}

#[track_caller]
fn good(decoders: &[Decoder], stream: &[u8], data: &[u8]) {
    for decode in decoders {
        let size = to_u64(data.len());
        let result = decode(&input(stream, size));
        assert_eq!(result, Ok((data.to_vec(), stream.len())));
    }
}

#[track_caller]
fn bad(decoders: &[Decoder], stream: &[u8], uncompressed_size: u64, error: &Error) {
    for decode in decoders {
        let result = decode(&input(stream, uncompressed_size));
        assert_eq!(result.as_ref(), Err(error));
    }
}

#[track_caller]
fn faulty(stream: &[u8], uncompressed_size: u64, position: u64, fault: Fault) {
    let error = Error::BadStream { method: Method::ZSTD, offset: OFFSET + position, fault };
    bad(ZSTD, stream, uncompressed_size, &error);
}

#[test]
fn zstd_frames_of_all_shapes() {
    good(ZSTD, ABC, b"abc");
    good(ZSTD, ABC_CHECKED, b"abc");
    good(ZSTD, TWENTY, &b"abc".repeat(20));
    // Nothing in one empty block.
    good(ZSTD, &[0x28, 0xB5, 0x2F, 0xFD, 0x20, 0x00, 0x01, 0x00, 0x00], b"");
    // A dictionary ID field that says there is no dictionary.
    good(
        ZSTD,
        &[0x28, 0xB5, 0x2F, 0xFD, 0x21, 0x00, 0x03, 0x19, 0x00, 0x00, b'a', b'b', b'c'],
        b"abc",
    );
    // A content size of two bytes, and one byte repeated 300 times.
    good(ZSTD, &[0x28, 0xB5, 0x2F, 0xFD, 0x60, 0x2C, 0x00, 0x63, 0x09, 0x00, b'x'], &[b'x'; 300]);
}

#[test]
fn zstd_window_beyond_the_usual_limit_of_streaming() {
    // 2 GiB: costs nothing as long as the content is small.
    good(ZSTD, &patched(TWENTY, 5, &[21 << 3]), &b"abc".repeat(20));
    faulty(&patched(TWENTY, 5, &[22 << 3]), 60, 6, Fault::WindowTooLarge);
}

#[test]
#[cfg_attr(
    miri,
    ignore = "megabytes of data would take Miri hours; small data takes the same ways"
)]
fn zstd_blocks_of_the_largest_size() {
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58];
    // 128 KiB twice, by one byte each.
    frame.extend([0x02, 0x00, 0x10, b'x', 0x03, 0x00, 0x10, b'y']);
    let mut data = vec![b'x'; 128 << 10];
    data.resize(256 << 10, b'y');
    good(ZSTD, &frame, &data);
    // One byte more than a block may hold.
    faulty(&patched(&frame, 6, &[0x0A, 0x00, 0x10]), 256 << 10, 6, Fault::BlockTooLarge);
}

#[test]
fn zstd_wrong_magic() {
    faulty(&patched(ABC, 0, &[0x27]), 3, 0, Fault::BadMagic);
}

#[test]
fn zstd_skippable_frame() {
    let mut stream = vec![0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0];
    stream.extend(ABC);
    faulty(&stream, 3, 0, Fault::SkippableFrame);
}

#[test]
fn zstd_reserved_bit() {
    faulty(&patched(ABC, 4, &[0x28]), 3, 5, Fault::ReservedBit);
}

#[test]
fn zstd_dictionary() {
    let frame = [0x28, 0xB5, 0x2F, 0xFD, 0x21, 0x07, 0x03, 0x19, 0x00, 0x00, b'a', b'b', b'c'];
    faulty(&frame, 3, 6, Fault::Dictionary);
}

#[test]
fn zstd_reserved_block() {
    faulty(&patched(ABC, 6, &[0x1F]), 3, 6, Fault::ReservedBlock);
}

#[test]
fn zstd_block_larger_than_its_window() {
    let frame = patched(ABC, 6, &[0x21]);
    faulty(&frame, 3, 6, Fault::BlockTooLarge);
}

#[test]
fn zstd_ends_early() {
    for frame in [ABC, ABC_CHECKED] {
        for len in 0..frame.len() {
            faulty(&frame[..len], 3, to_u64(len), Fault::EndsEarly);
        }
    }
}

#[test]
fn zstd_wrong_checksum() {
    faulty(&patched(ABC_CHECKED, 12, &[0]), 3, 12, Fault::Checksum);
}

#[test]
fn zstd_damaged_block() {
    // The bits of the sequences have to end with a one.
    faulty(&patched(TWENTY, 17, &[0]), 60, 0, Fault::Damaged);
}

#[test]
fn zstd_more_bytes_than_the_frame() {
    for more in [&[0][..], ABC] {
        let stream = [ABC, more].concat();
        let error = Error::TrailingBytes {
            method: Method::ZSTD,
            offset: OFFSET + 12,
            end: OFFSET + to_u64(stream.len()),
        };
        bad(ZSTD, &stream, 3, &error);
        // Version 1 does not know, so the frame decides.
        for decode in ZSTD {
            let input = Input { exact: false, ..input(&stream, 3) };
            assert_eq!(decode(&input), Ok((b"abc".to_vec(), 12)));
        }
    }
}

#[test]
fn zstd_frame_of_another_size() {
    for uncompressed_size in [0, 2, 4, u64::MAX] {
        let error = Error::FrameSizeMismatch { uncompressed_size, frame_size: 3 };
        bad(ZSTD, ABC, uncompressed_size, &error);
    }
}

#[test]
fn zstd_size_that_no_block_can_hold() {
    for uncompressed_size in [4, 1_900_000_000, u64::MAX] {
        let error = Error::ImplausibleSize { uncompressed_size, at_most: 3 };
        bad(ZSTD, ABC_CHECKED, uncompressed_size, &error);
    }
}

#[test]
fn zstd_output_too_short_or_long() {
    let error = Error::OutputTooShort { expected: 61, found: 60 };
    bad(ZSTD, TWENTY, 61, &error);
    for expected in [0, 3, 59] {
        bad(ZSTD, TWENTY, expected, &Error::OutputTooLong { expected });
    }
}

/// Enough for libzstd to decode it in steps.
#[test]
#[cfg_attr(
    miri,
    ignore = "megabytes of data would take Miri hours; small data takes the same ways"
)]
fn zstd_large_output() {
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58];
    let mut data = Vec::new();
    for byte in 1..=48 {
        // 128 KiB of a byte, the last block marked.
        frame.extend([if byte == 48 { 0x03 } else { 0x02 }, 0x00, 0x10, byte]);
        data.resize(data.len() + (128 << 10), byte);
    }
    let size = to_u64(data.len());
    good(ZSTD, &frame, &data);
    for expected in [size - 1, size - (128 << 10), 4 << 20] {
        bad(ZSTD, &frame, expected, &Error::OutputTooLong { expected });
    }
    // A block of raw bytes behind them, of which one byte is missing.
    let raw = [&[0x01, 0x00, 0x10][..], &vec![7; (128 << 10) - 1]].concat();
    frame[6 + 4 * 47] = 0x02;
    frame.extend(&raw);
    let position = to_u64(frame.len());
    faulty(&frame, size + (128 << 10), position, Fault::EndsEarly);
    frame.push(8);
    data.extend(&raw[3..]);
    data.push(8);
    good(ZSTD, &frame, &data);
    bad(ZSTD, &frame, size + 5, &Error::OutputTooLong { expected: size + 5 });
}

#[test]
fn zlib_stream() {
    good(ZLIB, ABC_ZLIB, b"abc");
    // Nothing, in a block of fixed codes.
    good(ZLIB, &[0x78, 0x9C, 0x03, 0x00, 0x00, 0x00, 0x00, 0x01], b"");
}

#[test]
fn zlib_faults() {
    let faulty = |stream: &[u8], position, fault| {
        let error = Error::BadStream { method: Method::ZLIB, offset: OFFSET + position, fault };
        bad(ZLIB, stream, 3, &error);
    };
    for len in 0..ABC_ZLIB.len() {
        faulty(&ABC_ZLIB[..len], to_u64(len), Fault::EndsEarly);
    }
    faulty(&patched(ABC_ZLIB, 13, &[0]), 14, Fault::Checksum);
    // Not deflate; the reserved block type.
    faulty(&patched(ABC_ZLIB, 0, &[0x77]), 2, Fault::Damaged);
    faulty(&patched(ABC_ZLIB, 2, &[0x07]), 3, Fault::Damaged);
}

#[test]
fn zlib_more_bytes_than_the_stream() {
    let stream = [ABC_ZLIB, &[0]].concat();
    let error =
        Error::TrailingBytes { method: Method::ZLIB, offset: OFFSET + 14, end: OFFSET + 15 };
    bad(ZLIB, &stream, 3, &error);
    for decode in ZLIB {
        let input = Input { exact: false, ..input(&stream, 3) };
        assert_eq!(decode(&input), Ok((b"abc".to_vec(), 14)));
    }
}

#[test]
fn zlib_output_too_short_or_long() {
    // Also where the header promises more than there is memory: it grows with the data only.
    let most = u64::try_from(usize::MAX).unwrap().min(1 << 50);
    for expected in if cfg!(miri) { [4, 5, 6] } else { [4, 1_900_000_000, most] } {
        let error = Error::OutputTooShort { expected, found: 3 };
        bad(ZLIB, ABC_ZLIB, expected, &error);
    }
    for expected in 0..3 {
        bad(ZLIB, ABC_ZLIB, expected, &Error::OutputTooLong { expected });
    }
}

/// Whatever is damaged, both codecs either fail, or come to data of the right length; that it is
/// the right data is for the hash to say.
#[test]
fn every_changed_byte_is_survived() {
    for (decoders, stream, len) in
        [(ZSTD, ABC, 3), (ZSTD, ABC_CHECKED, 3), (ZSTD, TWENTY, 60), (ZLIB, ABC_ZLIB, 3)]
    {
        for at in (0..stream.len()).step_by(if cfg!(miri) { 9 } else { 1 }) {
            for byte in (0..=u8::MAX).step_by(if cfg!(miri) { 129 } else { 1 }) {
                let stream = patched(stream, at, &[byte]);
                for decode in decoders {
                    if let Ok((data, _)) = decode(&input(&stream, len)) {
                        assert_eq!(to_u64(data.len()), len);
                    }
                }
            }
        }
    }
}

/// Each Zstandard codec reads what each writes, of any size around the blocks' and the windows'.
#[test]
fn codecs_read_each_other() {
    type Encoder = fn(&[u8], &mut Vec<u8>);
    let encoders: &[Encoder] = &[
        #[cfg(feature = "ruzstd")]
        |data, out| pure_zstd::encode(data, &WriteOptions::default(), out),
        #[cfg(feature = "zstd")]
        |data, out| libzstd::encode(data, &WriteOptions::default(), out).unwrap(),
    ];
    let mut state = 1_u32;
    let data: Vec<u8> = (0..if cfg!(miri) { 1024 } else { 600_000_u32 })
        .map(|i| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Runs, repetitions and noise.
            match i / 5000 % 3 {
                0 => 0,
                1 => (i % 700).to_le_bytes()[0],
                _ => state.to_le_bytes()[3],
            }
        })
        .collect();
    for encode in encoders {
        let lens = [0, 1, 3, 1024, 131_071, 131_072, 131_073, 600_000];
        for len in lens.into_iter().filter(|len| *len <= data.len()) {
            let mut stream = Vec::new();
            encode(&data[..len], &mut stream);
            good(ZSTD, &stream, &data[..len]);
        }
    }
}
