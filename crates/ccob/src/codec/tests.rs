//! The codecs at their edges. Both Zstandard codecs run through every case, and have to agree.

use super::*;
use crate::{ErrorKind, Header, Version};
use alloc::string::ToString;
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

type IntoDecoder = fn(&Input<'_>, &mut [u8]) -> Result<usize, Error>;

const ZSTD_INTO: &[IntoDecoder] = &[
    #[cfg(feature = "ruzstd")]
    pure_zstd::decode_into,
    #[cfg(feature = "zstd")]
    |input, out| libzstd::decode_into(input, out, &mut |_| {}),
];
const ZLIB_INTO: &[IntoDecoder] = &[
    #[cfg(feature = "miniz_oxide")]
    zlib::decode_into,
];

/// The codecs that decode step by step.
const ZSTD_STEPS: &[Codec] = &[
    #[cfg(feature = "ruzstd")]
    Codec::Ruzstd,
    #[cfg(feature = "zstd")]
    Codec::Libzstd,
];
const ZLIB_STEPS: &[Codec] = &[
    #[cfg(feature = "miniz_oxide")]
    Codec::MinizOxide,
];

/// Decodes step by step, with as little input as is needed and output of `room` bytes at a time.
fn in_steps(codec: Codec, input: &Input<'_>, room: usize) -> Result<(Vec<u8>, usize), Error> {
    let method = if codec == Codec::MinizOxide { Method::ZLIB } else { Method::ZSTD };
    let (version, total_size) =
        if input.exact { (Version::V3, 32 + to_u64(input.stream.len())) } else { (Version::V1, 0) };
    let size = input.uncompressed_size;
    let header = crate::header::header_bytes(version, method, total_size, size, 0).unwrap();
    let header = Header::parse(&header, u64::MAX).unwrap();
    let mut stream = Stream::with_codec(&header, codec)?;
    let (mut out, mut buffer) = (Vec::new(), vec![0; room]);
    let mut at = 0;
    while !stream.is_ended() {
        let rest = &input.stream[at..];
        let Some(needed) = rest.get(..stream.needed()) else {
            stream.end_input(rest)?;
            continue;
        };
        let (read, written) = stream.step(needed, &mut buffer)?;
        assert!(read <= needed.len());
        at += read;
        out.extend_from_slice(&buffer[..written]);
        assert_eq!(stream.missing(), size - to_u64(out.len()));
    }
    assert_eq!(stream.position(), to_u64(header.header_len() + at));
    Ok((out, at))
}

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

/// Returns the bytes with some replaced.
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
    let is_zlib = decoders.len() == ZLIB.len() && stream.first() == Some(&0x78);
    for decode in if is_zlib { ZLIB_INTO } else { ZSTD_INTO } {
        let mut out = vec![0xEE; data.len()];
        assert_eq!(decode(&input(stream, to_u64(data.len())), &mut out), Ok(stream.len()));
        assert_eq!(out, data);
    }
    for &codec in if is_zlib { ZLIB_STEPS } else { ZSTD_STEPS } {
        for room in [1, 1000, 1 << 20] {
            if room > 1 || data.len() < 1000 {
                let result = in_steps(codec, &input(stream, to_u64(data.len())), room);
                assert!(result == Ok((data.to_vec(), stream.len())), "{codec:?} {room}");
            }
        }
    }
}

#[track_caller]
fn bad(decoders: &[Decoder], stream: &[u8], uncompressed_size: u64, error: &Error) {
    for decode in decoders {
        let result = decode(&input(stream, uncompressed_size));
        assert_eq!(result.as_ref(), Err(error));
    }
    let is_zlib = error.method() == Some(Method::ZLIB)
        || decoders.len() == ZLIB.len() && stream.first() == Some(&0x78);
    if let Ok(len) = usize::try_from(uncompressed_size)
        && len < 16 << 20
    {
        for decode in if is_zlib { ZLIB_INTO } else { ZSTD_INTO } {
            let result = decode(&input(stream, uncompressed_size), &mut vec![0; len]);
            assert_eq!(result.as_ref(), Err(error));
        }
    }
    // Sizes are compared as they come; all else is found at the same place, 8 bytes later as version 3 has them.
    for &codec in if is_zlib { ZLIB_STEPS } else { ZSTD_STEPS } {
        for room in [100, 1 << 20] {
            let found = in_steps(codec, &input(stream, uncompressed_size), room).unwrap_err();
            let (text, found_text) = (error.to_string(), found.to_string());
            if text.ends_with("damaged data") {
                assert!(found_text.ends_with("damaged data"));
            } else if error.kind() == ErrorKind::Size {
                let is_size = ["its zstd frame", "less than the"].map(|it| found_text.contains(it));
                assert!(is_size.contains(&true), "{found}");
            } else {
                assert_eq!(found, error.clone().moved(8), "{codec:?}");
            }
        }
    }
}

#[track_caller]
fn faulty(stream: &[u8], uncompressed_size: u64, position: u64, fault: Fault) {
    let error = Error::of_stream(Method::ZSTD, OFFSET + position, fault);
    bad(ZSTD, stream, uncompressed_size, &error);
}

#[test]
fn zstd_frames_of_all_shapes_are_read() {
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
fn zstd_blocks_of_the_largest_size_are_read() {
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
fn a_wrong_zstd_magic_is_an_error() {
    faulty(&patched(ABC, 0, &[0x27]), 3, 0, Fault::BadMagic);
}

/// LLVM reads them alike: it hands the whole payload to `ZSTD_decompress`.
#[test]
fn several_zstd_frames_are_read_as_one() {
    const SKIPPABLE: &[u8] = &[0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3];
    const EMPTY_SKIPPABLE: &[u8] = &[0x5F, 0x2A, 0x4D, 0x18, 0, 0, 0, 0];
    good(ZSTD, &[ABC, ABC_CHECKED].concat(), b"abcabc");
    good(ZSTD, &[SKIPPABLE, ABC].concat(), b"abc");
    good(ZSTD, &[EMPTY_SKIPPABLE, ABC, SKIPPABLE, TWENTY, SKIPPABLE].concat(), &b"abc".repeat(21));
    good(ZSTD, &[ABC_CHECKED, EMPTY_SKIPPABLE].concat(), b"abc");

    let error = Error::frame_size(5, 6);
    bad(ZSTD, &[ABC, ABC].concat(), 5, &error);
    bad(ZSTD, &[TWENTY, ABC].concat(), 62, &Error::output_too_long(62));
    for len in ABC.len()..ABC.len() + SKIPPABLE.len() {
        let cut = &[ABC, SKIPPABLE].concat()[..len];
        match len - ABC.len() {
            0 => good(ZSTD, cut, b"abc"),
            // Too few for a magic.
            1..4 => {
                let fault = Fault::TrailingBytes { end: OFFSET + to_u64(len) };
                faulty(cut, 3, 12, fault);
            }
            _ => faulty(cut, 3, to_u64(len), Fault::EndsEarly),
        }
    }
    // The sizes of the frames are wrong, their sum is right.
    let two = |a, b| [patched(ABC, 5, &[a]), patched(TWENTY, 4, &[0x20, b])].concat();
    good(ZSTD, &two(3, 60), &b"abc".repeat(21));
    for stream in [two(1, 62), two(5, 58)] {
        for decode in ZSTD {
            assert!(decode(&input(&stream, 63)).is_err());
        }
        for &codec in ZSTD_STEPS {
            assert!(in_steps(codec, &input(&stream, 63), 100).is_err());
        }
    }
    // Without data there is none.
    for decode in ZSTD {
        let fault = Fault::SkippableFrame;
        let error = Error::of_stream(Method::ZSTD, OFFSET, fault);
        assert_eq!(decode(&input(SKIPPABLE, 3)), Err(error));
    }
    for &codec in ZSTD_STEPS {
        let error = Error::output_too_short(3, 0);
        assert_eq!(in_steps(codec, &input(SKIPPABLE, 3), 9), Err(error));
    }
}

/// Version 1 does not record the end of its stream: it ends with its last frame.
#[test]
fn zstd_several_frames_without_a_recorded_end() {
    let skippable = [&[0x53, 0x2A, 0x4D, 0x18, 3, 0, 0, 0][..], b"CCO"].concat();
    let several = [&skippable[..], ABC, &skippable, TWENTY, &skippable, &skippable].concat();
    for (stream, data) in [
        ([&skippable[..], ABC].concat(), b"abc".to_vec()),
        ([ABC, &skippable[..]].concat(), b"abc".to_vec()),
        ([ABC, ABC_CHECKED].concat(), b"abcabc".to_vec()),
        (several, b"abc".repeat(21)),
    ] {
        for after in [&b""[..], &[0; 3], &[0; 9], &b"CCOB\x01\0\x01\0"[..], &[0x53, 0x2A]] {
            let all = [&stream, after].concat();
            let open = |size| Input { exact: false, ..input(&all, size) };
            let size = to_u64(data.len());
            for decode in ZSTD {
                assert_eq!(decode(&open(size)), Ok((data.clone(), stream.len())));
            }
            for decode in ZSTD_INTO {
                let mut out = vec![0xEE; data.len()];
                assert_eq!(decode(&open(size), &mut out), Ok(stream.len()));
                assert_eq!(out, data);
            }
            for &codec in ZSTD_STEPS {
                for room in [1, 1000] {
                    assert_eq!(
                        in_steps(codec, &open(size), room),
                        Ok((data.clone(), stream.len()))
                    );
                }
            }
            // Frames hold more or less than the container says.
            for wrong in [size - 1, size + 1] {
                for decode in ZSTD {
                    assert!(decode(&open(wrong)).is_err());
                }
                for &codec in ZSTD_STEPS {
                    assert!(in_steps(codec, &open(wrong), 100).is_err());
                }
            }
        }
        // A frame that begins belongs to the stream.
        let cut = [&stream, &skippable[..9]].concat();
        let (end, size) = (to_u64(cut.len()), to_u64(data.len()));
        let cut = Input { exact: false, ..input(&cut, size) };
        let error = |start| Error::of_stream(Method::ZSTD, start + end, Fault::EndsEarly);
        for decode in ZSTD {
            assert_eq!(decode(&cut), Err(error(OFFSET)));
        }
        for &codec in ZSTD_STEPS {
            assert_eq!(in_steps(codec, &cut, 100), Err(error(20)));
        }
    }
}

/// Blocks refer to what is up to a window before, and decoders hold no more than that.
#[test]
#[cfg_attr(
    miri,
    ignore = "megabytes of data would take Miri hours; small data takes the same ways"
)]
fn zstd_content_may_be_larger_than_the_window() {
    // Blocks of noise.
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x38]; // window 128 KiB
    let mut data = Vec::new();
    let mut state = 7_u32;
    for block in 0..20 {
        let len = if block % 3 == 0 { 131_072 } else { 50_000 + block };
        let header = (len << 3) | u32::from(block == 19);
        frame.extend(&header.to_le_bytes()[..3]);
        let start = data.len();
        for _ in 0..len {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            data.push(state.to_le_bytes()[3]);
        }
        frame.extend(&data[start..]);
    }
    good(ZSTD, &frame, &data);
    #[cfg(any(feature = "ruzstd", feature = "zstd"))]
    {
        frame[4] = 0x04;
        let hash = twox_hash::XxHash64::oneshot(0, &data);
        frame.extend(zstd_frame::checksum(hash).to_le_bytes());
        good(ZSTD, &frame, &data);
    }

    #[cfg(feature = "zstd")]
    {
        use zstd::zstd_safe::{CCtx, CParameter};
        // Repeated from almost a window before.
        let data: Vec<u8> = data.iter().copied().take(120_000).cycle().take(1_500_000).collect();
        let mut encoder = CCtx::create();
        encoder.set_parameter(CParameter::WindowLog(17)).unwrap();
        encoder.set_parameter(CParameter::ChecksumFlag(true)).unwrap();
        let mut frame = Vec::with_capacity(2_000_000);
        encoder.compress2(&mut frame, &data).unwrap();
        assert!(frame.len() < 200_000, "{}", frame.len());
        good(ZSTD, &frame, &data);
    }
}

#[test]
fn a_reserved_zstd_bit_is_an_error() {
    faulty(&patched(ABC, 4, &[0x28]), 3, 5, Fault::ReservedBit);
}

#[test]
fn a_zstd_dictionary_is_an_error() {
    let frame = [0x28, 0xB5, 0x2F, 0xFD, 0x21, 0x07, 0x03, 0x19, 0x00, 0x00, b'a', b'b', b'c'];
    faulty(&frame, 3, 6, Fault::Dictionary);
}

#[test]
fn a_reserved_zstd_block_is_an_error() {
    faulty(&patched(ABC, 6, &[0x1F]), 3, 6, Fault::ReservedBlock);
}

#[test]
fn a_zstd_block_larger_than_its_window_is_an_error() {
    let frame = patched(ABC, 6, &[0x21]);
    faulty(&frame, 3, 6, Fault::BlockTooLarge);
}

#[test]
fn a_zstd_frame_that_ends_early_is_an_error() {
    for frame in [ABC, ABC_CHECKED] {
        for len in 0..frame.len() {
            faulty(&frame[..len], 3, to_u64(len), Fault::EndsEarly);
        }
    }
}

#[test]
fn a_wrong_zstd_checksum_is_an_error() {
    faulty(&patched(ABC_CHECKED, 12, &[0]), 3, 12, Fault::Checksum);
}

#[test]
fn a_damaged_zstd_block_is_an_error() {
    // The bits of the sequences have to end with a one.
    faulty(&patched(TWENTY, 17, &[0]), 60, 0, Fault::Damaged);
}

#[test]
fn bytes_after_a_zstd_frame_are_an_error() {
    for more in [&[0][..], b"CCOB"] {
        let stream = [ABC, more].concat();
        faulty(&stream, 3, 12, Fault::TrailingBytes { end: OFFSET + to_u64(stream.len()) });
        // Version 1 does not know, so the frame decides.
        for decode in ZSTD {
            let input = Input { exact: false, ..input(&stream, 3) };
            assert_eq!(decode(&input), Ok((b"abc".to_vec(), 12)));
        }
    }
}

#[test]
fn a_zstd_frame_of_another_size_is_an_error() {
    for uncompressed_size in [0, 2, 4, u64::MAX] {
        let error = Error::frame_size(uncompressed_size, 3);
        bad(ZSTD, ABC, uncompressed_size, &error);
    }
}

#[test]
fn zstd_size_that_no_block_can_hold() {
    for uncompressed_size in [4, 1_900_000_000, u64::MAX] {
        let error = Error::implausible_size(uncompressed_size, 3);
        bad(ZSTD, ABC_CHECKED, uncompressed_size, &error);
    }
}

#[test]
fn zstd_output_of_another_length_is_an_error() {
    let error = Error::output_too_short(61, 60);
    bad(ZSTD, TWENTY, 61, &error);
    for expected in [0, 3, 59] {
        bad(ZSTD, TWENTY, expected, &Error::output_too_long(expected));
    }
}

/// Enough for libzstd to decode it in steps.
#[test]
#[cfg_attr(
    miri,
    ignore = "megabytes of data would take Miri hours; small data takes the same ways"
)]
fn large_zstd_output_is_read() {
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
        bad(ZSTD, &frame, expected, &Error::output_too_long(expected));
    }
    // A block of raw bytes after them, with one byte missing.
    let raw = [&[0x01, 0x00, 0x10][..], &vec![7; (128 << 10) - 1]].concat();
    frame[6 + 4 * 47] = 0x02;
    frame.extend(&raw);
    let position = to_u64(frame.len());
    faulty(&frame, size + (128 << 10), position, Fault::EndsEarly);
    frame.push(8);
    data.extend(&raw[3..]);
    data.push(8);
    good(ZSTD, &frame, &data);
    bad(ZSTD, &frame, size + 5, &Error::output_too_long(size + 5));
}

#[test]
fn zlib_streams_are_read() {
    good(ZLIB, ABC_ZLIB, b"abc");
    // Nothing, in a block of fixed codes.
    good(ZLIB, &[0x78, 0x9C, 0x03, 0x00, 0x00, 0x00, 0x00, 0x01], b"");
}

#[test]
fn zlib_faults_are_errors() {
    let faulty = |stream: &[u8], position, fault| {
        let error = Error::of_stream(Method::ZLIB, OFFSET + position, fault);
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
    let fault = Fault::TrailingBytes { end: OFFSET + 15 };
    let error = Error::of_stream(Method::ZLIB, OFFSET + 14, fault);
    bad(ZLIB, &stream, 3, &error);
    for decode in ZLIB {
        let input = Input { exact: false, ..input(&stream, 3) };
        assert_eq!(decode(&input), Ok((b"abc".to_vec(), 14)));
    }
}

#[test]
fn zlib_output_of_another_length_is_an_error() {
    // Also where the header promises more than there is memory: it grows with the data only.
    let most = u64::try_from(usize::MAX).unwrap().min(1 << 50);
    for expected in if cfg!(miri) { [4, 5, 6] } else { [4, 1_900_000_000, most] } {
        let error = Error::output_too_short(expected, 3);
        bad(ZLIB, ABC_ZLIB, expected, &error);
    }
    for expected in 0..3 {
        bad(ZLIB, ABC_ZLIB, expected, &Error::output_too_long(expected));
    }
}

/// Damages each byte: both codecs either fail, or return data of the right length; the hash checks the data itself.
#[test]
fn no_changed_byte_causes_a_panic() {
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
