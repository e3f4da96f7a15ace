//! The codecs at their edges. Both Zstandard libraries run through every case, and have to agree.

use alloc::vec;
use alloc::vec::Vec;

use crate::input::Grown;
use crate::stream::Steps;
#[cfg(feature = "miniz_oxide")]
use crate::zlib;
#[cfg(feature = "zstd")]
use crate::zstd::libzstd;
#[cfg(feature = "ruzstd")]
use crate::zstd::pure;
#[cfg(any(feature = "ruzstd", feature = "zstd"))]
use crate::zstd::steps::Library;
use crate::{Codec, Error, ErrorKind, Input, Stream};

type Decoder = fn(&Input<'_>, Grown<'_>) -> Result<(Vec<u8>, usize), Error>;
type IntoDecoder = fn(&Input<'_>, &mut [u8], Grown<'_>) -> Result<usize, Error>;

/// A library: whole results, results in memory of the caller, and steps.
struct Tested(Decoder, IntoDecoder, fn() -> Steps);

const ZSTD: &[Tested] = &[
    #[cfg(feature = "ruzstd")]
    Tested(pure::decode, pure::decode_into, || Steps::zstd(Library::Ruzstd)),
    #[cfg(feature = "zstd")]
    Tested(libzstd::decode, libzstd::decode_into, || Steps::zstd(Library::Libzstd)),
];
const ZLIB: &[Tested] = &[
    #[cfg(feature = "miniz_oxide")]
    Tested(zlib::decode, zlib::decode_into, || Steps::Zlib(zlib::Steps::new())),
];

impl Tested {
    fn decode(&self, input: &Input<'_>) -> Result<(Vec<u8>, usize), Error> {
        self.0(input, &mut |_| {})
    }

    /// Decodes step by step, with as little input as is needed and output of `room` bytes at a time.
    fn in_steps(&self, input: &Input<'_>, room: usize) -> Result<(Vec<u8>, usize), Error> {
        let end = input.is_exact.then_some(input.stream.len() as u64);
        let mut stream = Stream::with_steps(self.2(), input.size, end);
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
            assert_eq!(stream.missing(), input.size - out.len() as u64);
        }
        assert_eq!(stream.position(), at as u64);
        Ok((out, at))
    }
}

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

/// Returns the bytes with some replaced.
fn patched(bytes: &[u8], at: usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}

fn error(kind: ErrorKind, position: usize) -> Error {
    Error::new(kind, position)
}

#[track_caller]
fn good(tested: &[Tested], stream: &[u8], data: &[u8]) {
    good_input(tested, &Input::new(stream, data.len() as u64), stream.len(), data);
}

#[track_caller]
fn good_input(tested: &[Tested], input: &Input<'_>, len: usize, data: &[u8]) {
    for library in tested {
        assert_eq!(library.decode(input), Ok((data.to_vec(), len)));
        let mut out = vec![0xEE; data.len()];
        assert_eq!(library.1(input, &mut out, &mut |_| {}), Ok(len));
        assert_eq!(out, data);
        for room in [1, 1000, 1 << 20] {
            if room > 1 || data.len() < 1000 {
                assert!(library.in_steps(input, room) == Ok((data.to_vec(), len)), "{room}");
            }
        }
    }
}

#[track_caller]
fn bad(tested: &[Tested], stream: &[u8], size: u64, error: Error) {
    let input = Input::new(stream, size);
    for library in tested {
        assert_eq!(library.decode(&input), Err(error));
        if let Ok(len) = usize::try_from(size)
            && len < 16 << 20
        {
            assert_eq!(library.1(&input, &mut vec![0; len], &mut |_| {}), Err(error));
        }
        // Sizes are compared as they come; all else is found at the same place.
        for room in [100, 1 << 20] {
            let found = library.in_steps(&input, room).unwrap_err();
            match error.kind() {
                ErrorKind::Damaged => assert_eq!(found.kind(), ErrorKind::Damaged),
                ErrorKind::ContentSize(_) | ErrorKind::AtMost(_) => {
                    let kind = found.kind();
                    let is_size =
                        matches!(kind, ErrorKind::ContentSize(_) | ErrorKind::TooShort(_));
                    assert!(is_size, "{found}");
                }
                _ => assert_eq!(found, error),
            }
        }
    }
}

#[track_caller]
fn faulty(stream: &[u8], size: u64, position: usize, kind: ErrorKind) {
    bad(ZSTD, stream, size, error(kind, position));
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
    faulty(&patched(TWENTY, 5, &[22 << 3]), 60, 6, ErrorKind::WindowTooLarge);
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
    faulty(&patched(&frame, 6, &[0x0A, 0x00, 0x10]), 256 << 10, 6, ErrorKind::BlockTooLarge);
}

#[test]
fn a_wrong_zstd_magic_is_an_error() {
    faulty(&patched(ABC, 0, &[0x27]), 3, 0, ErrorKind::BadMagic);
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

    bad(ZSTD, &[ABC, ABC].concat(), 5, error(ErrorKind::ContentSize(6), 0));
    bad(ZSTD, &[TWENTY, ABC].concat(), 62, error(ErrorKind::TooLong, 0));
    for len in ABC.len()..ABC.len() + SKIPPABLE.len() {
        let cut = &[ABC, SKIPPABLE].concat()[..len];
        match len - ABC.len() {
            0 => good(ZSTD, cut, b"abc"),
            // Too few for a magic.
            1..4 => faulty(cut, 3, 12, ErrorKind::TrailingData(len as u64)),
            _ => faulty(cut, 3, len, ErrorKind::EndsEarly),
        }
    }
    // The sizes of the frames are wrong, their sum is right.
    let two = |a, b| [patched(ABC, 5, &[a]), patched(TWENTY, 4, &[0x20, b])].concat();
    good(ZSTD, &two(3, 60), &b"abc".repeat(21));
    for stream in [two(1, 62), two(5, 58)] {
        for library in ZSTD {
            assert!(library.decode(&Input::new(&stream, 63)).is_err());
            assert!(library.in_steps(&Input::new(&stream, 63), 100).is_err());
        }
    }
    // Without data there is none.
    for library in ZSTD {
        let input = Input::new(SKIPPABLE, 3);
        assert_eq!(library.decode(&input), Err(error(ErrorKind::SkippableFrame, 0)));
        assert_eq!(library.in_steps(&input, 9), Err(error(ErrorKind::TooShort(0), 0)));
    }
}

/// A stream ends with its last frame where trailing bytes are allowed.
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
            let open = |size| Input::new(&all, size).with_trailing();
            let size = data.len() as u64;
            good_input(ZSTD, &open(size), stream.len(), &data);
            // Frames hold more or less than expected.
            for wrong in [size - 1, size + 1] {
                for library in ZSTD {
                    assert!(library.decode(&open(wrong)).is_err());
                    assert!(library.in_steps(&open(wrong), 100).is_err());
                }
            }
        }
        // A frame that begins belongs to the stream.
        let cut = [&stream, &skippable[..9]].concat();
        let input = Input::new(&cut, data.len() as u64).with_trailing();
        let error = error(ErrorKind::EndsEarly, cut.len());
        for library in ZSTD {
            assert_eq!(library.decode(&input), Err(error));
            assert_eq!(library.in_steps(&input, 100), Err(error));
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
        frame.extend(crate::zstd::checksum(hash).to_le_bytes());
        good(ZSTD, &frame, &data);
    }

    #[cfg(feature = "zstd")]
    {
        use ::zstd::zstd_safe::{CCtx, CParameter};
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
    faulty(&patched(ABC, 4, &[0x28]), 3, 5, ErrorKind::ReservedBit);
}

#[test]
fn a_zstd_dictionary_is_an_error() {
    let frame = [0x28, 0xB5, 0x2F, 0xFD, 0x21, 0x07, 0x03, 0x19, 0x00, 0x00, b'a', b'b', b'c'];
    faulty(&frame, 3, 6, ErrorKind::Dictionary);
}

#[test]
fn a_reserved_zstd_block_is_an_error() {
    faulty(&patched(ABC, 6, &[0x1F]), 3, 6, ErrorKind::ReservedBlock);
}

#[test]
fn a_zstd_block_larger_than_its_window_is_an_error() {
    let frame = patched(ABC, 6, &[0x21]);
    faulty(&frame, 3, 6, ErrorKind::BlockTooLarge);
}

#[test]
fn a_zstd_frame_that_ends_early_is_an_error() {
    for frame in [ABC, ABC_CHECKED] {
        for len in 0..frame.len() {
            faulty(&frame[..len], 3, len, ErrorKind::EndsEarly);
        }
    }
}

#[test]
fn a_wrong_zstd_checksum_is_an_error() {
    faulty(&patched(ABC_CHECKED, 12, &[0]), 3, 12, ErrorKind::Checksum);
}

#[test]
fn a_damaged_zstd_block_is_an_error() {
    // The bits of the sequences have to end with a one.
    faulty(&patched(TWENTY, 17, &[0]), 60, 0, ErrorKind::Damaged);
}

#[test]
fn bytes_after_a_zstd_frame_are_an_error() {
    for more in [&[0][..], b"CCOB"] {
        let stream = [ABC, more].concat();
        faulty(&stream, 3, 12, ErrorKind::TrailingData(stream.len() as u64));
        good_input(ZSTD, &Input::new(&stream, 3).with_trailing(), 12, b"abc");
    }
}

#[test]
fn a_zstd_frame_of_another_size_is_an_error() {
    for size in [0, 2, 4, u64::MAX] {
        bad(ZSTD, ABC, size, error(ErrorKind::ContentSize(3), 0));
    }
}

#[test]
fn zstd_size_that_no_block_can_hold() {
    for size in [4, 1_900_000_000, u64::MAX] {
        bad(ZSTD, ABC_CHECKED, size, error(ErrorKind::AtMost(3), 0));
    }
}

#[test]
fn zstd_output_of_another_length_is_an_error() {
    bad(ZSTD, TWENTY, 61, error(ErrorKind::TooShort(60), 0));
    for expected in [0, 3, 59] {
        bad(ZSTD, TWENTY, expected, error(ErrorKind::TooLong, 0));
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
    let size = data.len() as u64;
    good(ZSTD, &frame, &data);
    for expected in [size - 1, size - (128 << 10), 4 << 20] {
        bad(ZSTD, &frame, expected, error(ErrorKind::TooLong, 0));
    }
    // A block of raw bytes after them, with one byte missing.
    let raw = [&[0x01, 0x00, 0x10][..], &vec![7; (128 << 10) - 1]].concat();
    frame[6 + 4 * 47] = 0x02;
    frame.extend(&raw);
    faulty(&frame, size + (128 << 10), frame.len(), ErrorKind::EndsEarly);
    frame.push(8);
    data.extend(&raw[3..]);
    data.push(8);
    good(ZSTD, &frame, &data);
    bad(ZSTD, &frame, size + 5, error(ErrorKind::TooLong, 0));
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
        bad(ZLIB, stream, 3, error(fault, position));
    };
    for len in 0..ABC_ZLIB.len() {
        faulty(&ABC_ZLIB[..len], len, ErrorKind::EndsEarly);
    }
    faulty(&patched(ABC_ZLIB, 13, &[0]), 14, ErrorKind::Checksum);
    // Not deflate; the reserved block type.
    faulty(&patched(ABC_ZLIB, 0, &[0x77]), 2, ErrorKind::Damaged);
    faulty(&patched(ABC_ZLIB, 2, &[0x07]), 3, ErrorKind::Damaged);
}

#[test]
fn zlib_more_bytes_than_the_stream() {
    let stream = [ABC_ZLIB, &[0]].concat();
    bad(ZLIB, &stream, 3, error(ErrorKind::TrailingData(15), 14));
    good_input(ZLIB, &Input::new(&stream, 3).with_trailing(), 14, b"abc");
}

#[test]
fn zlib_output_of_another_length_is_an_error() {
    // Also where more is expected than there is memory: it grows with the data only.
    let most = u64::try_from(usize::MAX).unwrap().min(1 << 50);
    for expected in if cfg!(miri) { [4, 5, 6] } else { [4, 1_900_000_000, most] } {
        bad(ZLIB, ABC_ZLIB, expected, error(ErrorKind::TooShort(3), 0));
    }
    for expected in 0..3 {
        bad(ZLIB, ABC_ZLIB, expected, error(ErrorKind::TooLong, 0));
    }
}

/// Damages each byte: both libraries either fail, or return data of the right length.
#[test]
fn no_changed_byte_causes_a_panic() {
    for (libraries, stream, len) in
        [(ZSTD, ABC, 3), (ZSTD, ABC_CHECKED, 3), (ZSTD, TWENTY, 60), (ZLIB, ABC_ZLIB, 3)]
    {
        for at in (0..stream.len()).step_by(if cfg!(miri) { 9 } else { 1 }) {
            for byte in (0..=u8::MAX).step_by(if cfg!(miri) { 129 } else { 1 }) {
                let stream = patched(stream, at, &[byte]);
                for library in libraries {
                    if let Ok((data, _)) = library.decode(&Input::new(&stream, len)) {
                        assert_eq!(data.len() as u64, len);
                    }
                }
            }
        }
    }
}

/// Each Zstandard library reads what each writes, of any size around the blocks' and the windows'.
#[test]
fn libraries_read_each_other() {
    type Encoder = fn(&[u8], &mut Vec<u8>) -> Result<(), Error>;
    let encoders: &[Encoder] = &[
        #[cfg(feature = "ruzstd-encoder")]
        |data, out| pure::encode_code(data, None, 1, out),
        #[cfg(feature = "ruzstd-encoder")]
        |data, out| pure::encode(data, 3).map(|frame| out.extend(frame)),
        #[cfg(feature = "zstd")]
        |data, out| libzstd::encode_code(data, None, 1, out),
        #[cfg(feature = "zstd")]
        |data, out| libzstd::encode(data, 3).map(|frame| out.extend(frame)),
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
            encode(&data[..len], &mut stream).unwrap();
            good(ZSTD, &stream, &data[..len]);
        }
    }
}

#[test]
fn frames_have_their_size() {
    if !cfg!(any(feature = "ruzstd-encoder", feature = "zstd")) {
        return;
    }
    for len in [0, 9, 300, if cfg!(miri) { 301 } else { 70_000 }] {
        let frame = Codec::Zstd.compress(&vec![7; len], 3).unwrap();
        assert_eq!(crate::zstd::content_size(&frame), Some(len as u64));
        assert_eq!(frame[4] & 4, 0, "no checksum");
    }
    assert_eq!(crate::zstd::content_size(ABC_CHECKED), None);
    assert_eq!(crate::zstd::content_size(&ABC[..5]), None);
}

#[test]
#[cfg(feature = "lz4_flex")]
fn lz4_blocks_are_read_and_written() {
    for data in [&b""[..], b"abc", &b"abc".repeat(1000)] {
        let block = Codec::Lz4.compress(data, 9).unwrap();
        let decode = |size| Codec::Lz4.decompress(&Input::new(&block, size), &mut |_| {});
        let size = data.len() as u64;
        assert_eq!(decode(size), Ok((data.to_vec(), block.len())));
        assert_eq!(decode(size + 1).unwrap_err().kind(), ErrorKind::TooShort(size));
        let at_most = block.len() as u64 * 255;
        assert_eq!(decode(1 << 60).unwrap_err().kind(), ErrorKind::AtMost(at_most));
    }
    assert!(Stream::new(Codec::Lz4, 3, None).is_err());
}
