//! Reading what LLVM writes, and what nobody should have written.
#![forbid(unsafe_code)]
#![cfg(test)]

mod common;

use common::{Told, told};
use offload_binary::{
    Entry, ErrorKind, Flags, FormatVersion, ImageEntry, ImageKind, Layout, MAGIC, OffloadBinary,
    OffloadKind, binaries,
};

/// The bytes of a hexadecimal dump.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| u8::try_from(c.to_digit(16).unwrap()).unwrap())
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// llvm-offload-binary of LLVM 22:
/// `llvm-offload-binary -o v1.bin --image=file=a.o,triple=nvptx64-nvidia-cuda,arch=sm_70,kind=cuda`
/// where a.o holds the 11 bytes `hello image`.
fn v1() -> Vec<u8> {
    hex("10ff10ad01000000 a000000000000000 2000000000000000 2800000000000000
         0100020000000000 4800000000000000 0200000000000000 9000000000000000
         0b00000000000000 6900000000000000 8900000000000000 6e00000000000000
         7500000000000000 0061726368007472 69706c65006e7670 747836342d6e7669
         6469612d63756461 00736d5f37300000 68656c6c6f20696d 6167650000000000")
}

/// llvm-offload-binary of LLVM 23.1.4, the same command.
fn v2() -> Vec<u8> {
    hex("10ff10ad02000000 b000000000000000 2000000000000000 0100000000000000
         0100020000000000 4800000000000000 0200000000000000 a000000000000000
         0b00000000000000 7900000000000000 9900000000000000 0500000000000000
         7e00000000000000 8500000000000000 1300000000000000 0061726368007472
         69706c65006e7670 747836342d6e7669 6469612d63756461 00736d5f37300000
         68656c6c6f20696d 6167650000000000")
}

/// Two binaries as yaml2obj of LLVM 22 writes them: a SPIR-V image for SYCL with an unknown flag,
/// the keys `triple` (`spirv64`) and `compile-opts` (empty) and the content 03 02; and an entry
/// with neither kinds nor strings nor content.
fn two() -> Vec<u8> {
    hex("10ff10ad01000000 9000000000000000 2000000000000000 2800000000000000
         0600080000000080 4800000000000000 0200000000000000 8800000000000000
         0200000000000000 7600000000000000 7d00000000000000 6900000000000000
         6800000000000000 00636f6d70696c65 2d6f707473007472 69706c6500737069
         7276363400000000 0302000000000000
         10ff10ad01000000 5000000000000000 2000000000000000 2800000000000000
         0000000000000000 4800000000000000 0000000000000000 5000000000000000
         0000000000000000 0000000000000000")
}

/// Version 2 with two entries, built by hand: `a` = `x` and an image of 2 bytes; `a` = `y NUL z`
/// and an image of 3 bytes right behind it.
fn v2_two_entries() -> Vec<u8> {
    hex("10ff10ad02000000 b800000000000000 2000000000000000 0200000000000000
         0100040000000000 7000000000000000 0100000000000000 b000000000000000 0200000000000000
         0200010000000000 8800000000000000 0100000000000000 b200000000000000 0300000000000000
         a100000000000000 a300000000000000 0100000000000000
         a100000000000000 a500000000000000 0300000000000000
         006100780079007a 0000000000000000
         1112212223000000")
}

/// Changes a value on its way.
trait Tap: Sized {
    fn tap(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}
impl Tap for Vec<u8> {}

/// Writes a 64-bit field.
fn put(data: &mut [u8], at: usize, value: u64) {
    data[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn with(data: Vec<u8>, at: usize, value: u64) -> Vec<u8> {
    data.tap(|data| put(data, at, value))
}

fn error(data: &[u8]) -> Told {
    told(&OffloadBinary::parse(data).unwrap_err())
}

fn only(data: &[u8]) -> Entry<'_> {
    let mut entries = OffloadBinary::parse(data).unwrap().entries();
    assert_eq!(entries.len(), 1);
    entries.next().unwrap()
}

// Fields of the samples.
const SIZE: usize = 8;
const ENTRIES: usize = 16;
const EXTENT: usize = 24;
const STRING_OFFSET: usize = 40;
const STRING_COUNT: usize = 48;
const IMAGE_OFFSET: usize = 56;
const IMAGE_SIZE: usize = 64;
const KEY: usize = 72;
const VALUE: usize = 80;
const VALUE_SIZE: usize = 88;

#[test]
fn versions_1_and_2_say_the_same() {
    for (version, size, image_offset, data) in [(1, 160, 0x90, v1()), (2, 176, 0xa0, v2())] {
        let binary = OffloadBinary::parse(&data).unwrap();
        assert_eq!((binary.version().number(), binary.size()), (version, size));
        let entry = only(&data);
        assert_eq!(entry.index(), 0);
        assert_eq!(entry.image_kind(), ImageKind::OBJECT);
        assert_eq!(entry.offload_kind(), OffloadKind::CUDA);
        assert_eq!(entry.flags(), Flags::NONE);
        assert_eq!((entry.image_offset(), entry.image_size()), (image_offset, 11));
        assert_eq!(entry.image(), Some(&b"hello image"[..]));
        let strings: Vec<_> = entry.strings().collect();
        let expected: [(&[u8], &[u8]); 2] =
            [(b"arch", b"sm_70"), (b"triple", b"nvptx64-nvidia-cuda")];
        assert_eq!(strings, expected);
        assert_eq!(entry.triple(), Some("nvptx64-nvidia-cuda"));
        assert_eq!(entry.arch(), Some("sm_70"));
        assert_eq!(entry.get("arc"), None);
        assert_eq!(entry.get("arch\0"), None);
        assert_eq!(entry.get(""), None);
    }
}

#[test]
fn what_follows_the_binary_is_not_looked_at() {
    let data = v1().tap(|data| data.extend(b"anything"));
    assert_eq!(only(&data).image(), Some(&b"hello image"[..]));
}

#[test]
fn version_2_has_several_entries_and_values_with_nuls() {
    let data = v2_two_entries();
    let entries: Vec<_> = OffloadBinary::parse(&data).unwrap().entries().collect();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0].offload_kind(), OffloadKind::HIP);
    assert_eq!(entries[0].get("a"), Some(&b"x"[..]));
    assert_eq!(entries[0].image(), Some(&[0x11, 0x12][..]));
    assert_eq!(entries[1].index(), 1);
    assert_eq!(entries[1].offload_kind(), OffloadKind::OPENMP);
    assert_eq!(entries[1].get("a"), Some(&b"y\0z"[..]));
    assert_eq!(entries[1].image(), Some(&[0x21, 0x22, 0x23][..]));
}

#[test]
fn version_2_without_entries_is_empty() {
    // llvm-offload-binary of LLVM 23.1.4 without --image.
    let data = hex("10ff10ad02000000 2800000000000000 2000000000000000 0000000000000000
                    0000000000000000");
    assert_eq!(OffloadBinary::parse(&data).unwrap().entries().len(), 0);
    // No entries in a larger binary either.
    assert_eq!(OffloadBinary::parse(&with(v2(), EXTENT, 0)).unwrap().entries().len(), 0);
}

#[test]
fn version_1_string_entries_are_16_bytes() {
    // Three one-letter keys with one-letter values and no image: 24 bytes each would not fit.
    let data = hex("10ff10ad01000000 8800000000000000 2000000000000000 2800000000000000
                    0000000000000000 4800000000000000 0300000000000000 8800000000000000
                    0000000000000000
                    7900000000000000 7b00000000000000
                    7d00000000000000 7f00000000000000
                    8100000000000000 8300000000000000
                    0061003100620032 0063003300000000");
    let strings: Vec<_> = only(&data).strings().collect();
    let expected: [(&[u8], &[u8]); 3] = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")];
    assert_eq!(strings, expected);
}

#[test]
fn the_last_of_equal_keys_counts() {
    // Both keys are `arch`; both are listed.
    let data = with(v1(), KEY + 16, 0x69);
    let entry = only(&data);
    assert_eq!(entry.arch(), Some("nvptx64-nvidia-cuda"));
    assert_eq!(entry.strings().filter(|(key, _)| *key == b"arch").count(), 2);
}

#[test]
fn unknown_kinds_and_flags_survive() {
    let data = v1().tap(|data| data[32..40].copy_from_slice(&[9, 1, 5, 2, 2, 0, 0, 0x80]));
    let entry = only(&data);
    assert_eq!(entry.image_kind(), ImageKind(0x109));
    assert_eq!(entry.offload_kind(), OffloadKind(0x205));
    assert_eq!(entry.flags().0, 0x8000_0002);
    assert!(!entry.flags().contains(Flags::METADATA));
}

#[test]
fn the_entry_size_of_version_1_may_be_too_small() {
    assert_eq!(only(&with(v1(), EXTENT, 0)).image_size(), 11);
}

#[test]
fn keys_need_not_be_utf8() {
    let data = v1().tap(|data| data[0x89] = 0xff);
    let entry = only(&data);
    assert_eq!(entry.get("triple"), Some(&b"nvptx64-nvidia-cuda"[..]));
    assert_eq!(entry.get("arch"), Some(&b"\xffm_70"[..]));
    assert_eq!(entry.arch(), None);
}

#[test]
fn truncated_header() {
    assert_eq!(
        error(&v1()[..31]),
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
fn bad_magic() {
    let data = v1().tap(|data| data[3] = 0xac);
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
fn a_wrong_magic_is_told_from_the_first_wrong_byte_on() {
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
fn every_truncation_is_one() {
    for data in [v1(), v2(), v2_two_entries()] {
        for len in (0..data.len()).step_by(if cfg!(miri) { 29 } else { 1 }) {
            let found = error(&data[..len]);
            assert_eq!(found.0, ErrorKind::Truncated, "{len} bytes: {found:?}");
            // All of it is there, but not in memory.
            let available = u64::try_from(data.len()).unwrap();
            if let Err(found) = OffloadBinary::parse_prefix(&data[..len], available) {
                assert_eq!(found.kind(), ErrorKind::Incomplete, "{len} bytes: {found}");
            }
            // The same behind another one.
            let two = [v1(), data[..len].to_vec()].concat();
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
fn no_other_fault_is_a_truncation_or_another_format() {
    for (at, value) in [(ENTRIES, 0), (ENTRIES, 1 << 40), (IMAGE_SIZE, 1 << 40), (SIZE, 8)] {
        let found = error(&with(v1(), at, value));
        assert_eq!(found.0, ErrorKind::Malformed, "{found:?}");
    }
}

/// Every byte that is asked for is one of the binary, and after the last one it can be parsed.
#[test]
fn needed_headers_lie_in_the_binary() {
    for data in [v1(), v2(), v2_two_entries()] {
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
    assert_eq!(OffloadBinary::header_needed(&[]), Ok(32));
    assert_eq!(OffloadBinary::header_needed(&empty[..32]), Ok(40));
    let error = OffloadBinary::header_needed(b"\x10\xff\x10\xae").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotABinary);
}

#[test]
fn unsupported_version() {
    for version in [0, 4, 255] {
        let data = v1().tap(|data| data[4] = version);
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
fn size_too_small() {
    assert_eq!(
        error(&with(v1(), SIZE, 64)),
        (
            ErrorKind::Malformed,
            Some(0),
            "offload binary has size 64, expected at least 72".to_owned()
        )
    );
    assert_eq!(
        error(&with(v2(), SIZE, 32)),
        (
            ErrorKind::Malformed,
            Some(0),
            "offload binary has size 32, expected at least 40".to_owned()
        )
    );
    assert_eq!(
        error(&with(v2(), SIZE, 0)),
        (
            ErrorKind::Malformed,
            Some(0),
            "offload binary has size 0, expected at least 40".to_owned()
        )
    );
}

#[test]
fn size_beyond_end() {
    let expected = (
        ErrorKind::Truncated,
        Some(0),
        "offload binary has size 0xa8, but only 0xa0 bytes are left".to_owned(),
    );
    assert_eq!(error(&with(v1(), SIZE, 168)), expected);
    let size = u64::MAX - 7;
    assert_eq!(
        error(&with(v1(), SIZE, size)),
        (
            ErrorKind::Truncated,
            Some(0),
            format!("offload binary has size {size:#x}, but only 0xa0 bytes are left")
        )
    );
}

#[test]
fn size_not_a_multiple_of_8() {
    assert_eq!(
        error(&with(v1(), SIZE, 159)),
        (
            ErrorKind::Malformed,
            Some(0),
            "offload binary has size 159, expected a multiple of 8".to_owned()
        )
    );
}

#[test]
fn entries_inside_header() {
    for offset in [0, 31] {
        let expected = (
            ErrorKind::Malformed,
            Some(offset),
            format!("offload binary has its entries at {offset:#x}, inside the header of 32 bytes"),
        );
        assert_eq!(error(&with(v1(), ENTRIES, offset)), expected);
    }
}

#[test]
fn entries_beyond_end() {
    for offset in [121, 160, u64::MAX - 39, u64::MAX] {
        let expected = (
            ErrorKind::Malformed,
            Some(offset),
            format!("offload binary has 1 entries at {offset:#x}, beyond its end at 0xa0"),
        );
        assert_eq!(error(&with(v1(), ENTRIES, offset)), expected);
    }
}

#[test]
fn entry_count_too_large_or_overflowing() {
    for count in [4, u64::MAX / 40 + 1, u64::MAX] {
        let expected = (
            ErrorKind::Malformed,
            Some(32),
            format!("offload binary has {count} entries at 0x20, beyond its end at 0xb0"),
        );
        assert_eq!(error(&with(v2(), EXTENT, count)), expected);
    }
}

#[test]
fn entry_size_beyond_end() {
    for entry_size in [129, u64::MAX] {
        let expected = (
            ErrorKind::Malformed,
            Some(32),
            format!(
                "offload binary has an entry of {entry_size:#x} bytes at 0x20, beyond its end at 0xa0"
            ),
        );
        assert_eq!(error(&with(v1(), EXTENT, entry_size)), expected);
    }
}

#[test]
fn string_count_too_large_or_overflowing() {
    for (data, size, counts) in [
        (v1(), 160, [6, u64::MAX / 16 + 1, u64::MAX]),
        (v2(), 176, [5, u64::MAX / 24 + 1, u64::MAX]),
    ] {
        for count in counts {
            assert_eq!(
                error(&with(data.clone(), STRING_COUNT, count)),
                (
                    ErrorKind::Malformed,
                    Some(72),
                    format!(
                        "offload binary entry 0 has {count} string entries at 0x48, beyond the end of the binary at {size:#x}"
                    )
                ),
            );
        }
    }
}

#[test]
fn string_entries_beyond_end() {
    let expected = (
        ErrorKind::Malformed,
        Some(136),
        "offload binary entry 0 has 2 string entries at 0x88, beyond the end of the binary at 0xa0"
            .to_owned(),
    );
    assert_eq!(error(&with(v1(), STRING_OFFSET, 136)), expected);
}

#[test]
fn string_entries_overlapping_header_entries_or_each_other() {
    for offset in [0, 31, 40, 71] {
        let expected = (
            ErrorKind::Malformed,
            Some(offset),
            format!(
                "offload binary entry 0 has its string entries at {offset:#x}, which overlap other tables"
            ),
        );
        assert_eq!(error(&with(v1(), STRING_OFFSET, offset)), expected, "{offset}");
    }
    let data = with(v2_two_entries(), STRING_OFFSET + 40, 0x70);
    assert_eq!(
        error(&data),
        (
            ErrorKind::Malformed,
            Some(0x70),
            "offload binary entry 1 has its string entries at 0x70, which overlap other tables"
                .to_owned()
        )
    );
}

#[test]
fn one_string_entry_too_many() {
    // The third string entry is made of strings, so the first string lies in it.
    let expected = (ErrorKind::Malformed, Some(0x79), "offload binary entry 0 has a key or value of string 0 at 0x79, which overlaps a table or an image".to_owned());
    assert_eq!(error(&with(v2(), STRING_COUNT, 3)), expected);
}

#[test]
fn key_beyond_end() {
    for (data, size) in [(v1(), 160), (v2(), 176)] {
        for offset in [size, u64::MAX] {
            let expected = (
                ErrorKind::Malformed,
                Some(offset),
                format!(
                    "offload binary entry 0 has the key of string 0 at {offset:#x}, beyond the end of the binary at {size:#x}"
                ),
            );
            assert_eq!(error(&with(data.clone(), KEY, offset)), expected);
        }
    }
}

#[test]
fn value_beyond_end() {
    for offset in [160, u64::MAX] {
        let expected = (
            ErrorKind::Malformed,
            Some(offset),
            format!(
                "offload binary entry 0 has the value of string 0 at {offset:#x} with 0x0 bytes, beyond the end of the binary at 0xa0"
            ),
        );
        assert_eq!(error(&with(v1(), VALUE, offset)), expected);
    }
    let expected =
        (ErrorKind::Malformed, Some(172), "offload binary entry 0 has the value of string 0 at 0xac with 0x5 bytes, beyond the end of the binary at 0xb0".to_owned());
    assert_eq!(error(&with(v2(), VALUE, 172)), expected);
}

#[test]
fn value_size_beyond_end_or_overflowing() {
    for value_size in [24, u64::MAX] {
        let expected = (
            ErrorKind::Malformed,
            Some(0x99),
            format!(
                "offload binary entry 0 has the value of string 0 at 0x99 with {value_size:#x} bytes, beyond the end of the binary at 0xb0"
            ),
        );
        assert_eq!(error(&with(v2(), VALUE_SIZE, value_size)), expected);
    }
}

/// No image, and the last eight bytes are a string without its NUL.
fn unterminated(data: Vec<u8>) -> (Vec<u8>, u64) {
    let size = data.len();
    let data = data.tap(|data| {
        put(data, IMAGE_SIZE, 0);
        data[size - 8..].copy_from_slice(b"no nul..");
        // Nothing behind the binary counts.
        data.extend([0; 8]);
    });
    (data, u64::try_from(size).unwrap() - 8)
}

#[test]
fn key_not_terminated() {
    for data in [v1(), v2()] {
        let (data, offset) = unterminated(data);
        let expected = (
            ErrorKind::Malformed,
            Some(offset),
            format!(
                "offload binary entry 0 has the key of string 0 at {offset:#x} without a nul before the end of the binary"
            ),
        );
        assert_eq!(error(&with(data, KEY, offset)), expected);
    }
}

#[test]
fn value_not_terminated() {
    let (data, offset) = unterminated(v1());
    let expected = (
        ErrorKind::Malformed,
        Some(offset),
        format!(
            "offload binary entry 0 has the value of string 0 at {offset:#x} without a nul before the end of the binary"
        ),
    );
    assert_eq!(error(&with(data, VALUE, offset)), expected);
    // Version 2 has a size instead.
    let (data, offset) = unterminated(v2());
    let data = with(with(data, VALUE, offset), VALUE_SIZE, 8);
    assert_eq!(only(&data).arch(), Some("no nul.."));
}

#[test]
fn strings_inside_tables_or_images() {
    for at in [KEY, VALUE] {
        for offset in [8, 40, 75, 0x90] {
            let expected = (
                ErrorKind::Malformed,
                Some(offset),
                format!(
                    "offload binary entry 0 has a key or value of string 0 at {offset:#x}, which overlaps a table or an image"
                ),
            );
            assert_eq!(error(&with(v1(), at, offset)), expected, "{at} {offset}");
        }
    }
    // A string that runs into the image.
    let data = v1().tap(|data| {
        data[0x8e..0x90].copy_from_slice(b"01");
    });
    let expected = (ErrorKind::Malformed, Some(0x89), "offload binary entry 0 has a key or value of string 0 at 0x89, which overlaps a table or an image".to_owned());
    assert_eq!(error(&data), expected);
    let expected = (ErrorKind::Malformed, Some(0x99), "offload binary entry 0 has a key or value of string 0 at 0x99, which overlaps a table or an image".to_owned());
    assert_eq!(error(&with(v2(), VALUE_SIZE, 8)), expected);
}

#[test]
fn image_beyond_end() {
    let cases = [(0x90, 17), (0x90, u64::MAX), (u64::MAX, 11), (161, 0), (160, 1)];
    for (offset, image_size) in cases {
        let data = with(with(v1(), IMAGE_OFFSET, offset), IMAGE_SIZE, image_size);
        let expected = (
            ErrorKind::Malformed,
            Some(offset),
            format!(
                "offload binary entry 0 has an image of {image_size:#x} bytes at {offset:#x}, beyond the end of the binary at 0xa0"
            ),
        );
        assert_eq!(error(&data), expected);
    }
}

#[test]
fn image_overlapping_header_entries_or_strings() {
    for offset in [0, 31, 32, 71, 72, 103] {
        let expected = (
            ErrorKind::Malformed,
            Some(offset),
            format!(
                "offload binary entry 0 has its image at {offset:#x}, which overlaps the header or a table"
            ),
        );
        assert_eq!(error(&with(v1(), IMAGE_OFFSET, offset)), expected, "{offset}");
    }
    // Over the string table: told by the string.
    let expected = (ErrorKind::Malformed, Some(0x69), "offload binary entry 0 has a key or value of string 0 at 0x69, which overlaps a table or an image".to_owned());
    assert_eq!(error(&with(v1(), IMAGE_OFFSET, 0x68)), expected);
}

#[test]
fn images_overlapping_each_other() {
    let data = with(v2_two_entries(), IMAGE_OFFSET + 40, 0xb1);
    assert_eq!(
        error(&data),
        (
            ErrorKind::Malformed,
            Some(0xb1),
            "offload binary entries 0 and 1 have images that overlap at 0xb1".to_owned()
        )
    );
    // Empty images are nowhere.
    let data = with(with(v2_two_entries(), IMAGE_OFFSET + 40, 0xb1), IMAGE_SIZE + 40, 0);
    let entries: Vec<_> = OffloadBinary::parse(&data).unwrap().entries().collect();
    assert_eq!(entries[1].image(), Some(&[][..]));
}

#[test]
fn an_empty_image_may_lie_anywhere_inside() {
    for offset in [0, 40, 160] {
        let data = with(with(v1(), IMAGE_OFFSET, offset), IMAGE_SIZE, 0);
        assert_eq!(only(&data).image(), Some(&[][..]));
    }
}

/// Reads with ever longer prefixes; returns the lengths that were enough or asked for.
fn rounds(data: &[u8]) -> Vec<usize> {
    let mut rounds = vec![0];
    loop {
        let len = *rounds.last().unwrap();
        let available = u64::try_from(data.len()).unwrap();
        match OffloadBinary::parse_prefix(&data[..len], available) {
            Ok(_) => return rounds,
            Err(error) => {
                let needed = usize::try_from(error.needed().unwrap()).unwrap();
                assert!(needed > len && needed <= data.len());
                rounds.push(needed);
            }
        }
    }
}

#[test]
fn a_prefix_is_enough() {
    assert_eq!(rounds(&v1()), [0, 80, 104, 0x90]);
    assert_eq!(rounds(&v2()), [0, 80, 120, 0xa0]);
    assert_eq!(rounds(&v2_two_entries()), [0, 80, 112, 160, 176]);

    let data = v1();
    let binary = OffloadBinary::parse_prefix(&data[..0x90], 160).unwrap();
    let entry = binary.entries().next().unwrap();
    assert_eq!(binary.size(), 160);
    assert_eq!(entry.arch(), Some("sm_70"));
    assert_eq!((entry.image_offset(), entry.image_size()), (0x90, 11));
    assert_eq!(entry.image(), None);
}

#[test]
fn strings_behind_the_images_are_asked_for() {
    // Value 0 lies in the padding behind the image.
    let data = with(v1(), VALUE, 0x9f);
    assert_eq!(rounds(&data), [0, 80, 104, 160]);
    assert_eq!(only(&data).arch(), Some(""));
}

#[test]
fn every_prefix_asks_for_more_or_is_enough() {
    for data in [v1(), v2(), v2_two_entries()] {
        let available = u64::try_from(data.len()).unwrap();
        for len in (0..data.len()).step_by(if cfg!(miri) { 29 } else { 1 }) {
            if let Err(error) = OffloadBinary::parse_prefix(&data[..len], available) {
                let needed = error.needed().unwrap();
                assert!(needed > u64::try_from(len).unwrap() && needed <= available);
            }
        }
    }
}

#[test]
fn available_is_at_least_the_prefix() {
    assert_eq!(OffloadBinary::parse_prefix(&v1(), 0).unwrap().size(), 160);
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
    for data in [v1(), v2(), v2_two_entries()] {
        for len in (0..data.len()).step_by(if cfg!(miri) { 29 } else { 1 }) {
            assert!(OffloadBinary::parse(&data[..len]).is_err());
            assert_eq!(OffloadBinary::parse(&data[..len]).unwrap_err().needed(), None);
            visit(&data[..len]);
        }
    }
}

#[test]
fn no_change_of_a_byte_panics() {
    for data in [v1(), v2(), v2_two_entries(), two()] {
        for at in (0..data.len()).step_by(if cfg!(miri) { 37 } else { 1 }) {
            for value in (0..=255).step_by(if cfg!(miri) { 85 } else { 1 }) {
                let changed = data.clone().tap(|data| data[at] = value);
                visit(&changed);
                let _ = OffloadBinary::parse_prefix(&changed[..at], 1 << 40);
            }
        }
    }
}

#[test]
fn concatenated_binaries() {
    let data = two();
    let found: Vec<_> = binaries(&data).map(Result::unwrap).collect();
    assert_eq!(found.iter().map(|(offset, _)| *offset).collect::<Vec<_>>(), [0, 0x90]);
    let entry = found[0].1.entries().next().unwrap();
    assert_eq!(entry.image_kind(), ImageKind::SPIRV);
    assert_eq!(entry.offload_kind(), OffloadKind::SYCL);
    assert_eq!(entry.flags().0, 0x8000_0000);
    assert_eq!(entry.triple(), Some("spirv64"));
    assert_eq!(entry.get("compile-opts"), Some(&b""[..]));
    assert_eq!(entry.image(), Some(&[3, 2][..]));
    let entry = found[1].1.entries().next().unwrap();
    assert_eq!(entry.strings().count(), 0);
    assert_eq!(entry.image(), Some(&[][..]));
}

#[test]
fn versions_may_be_mixed_and_padded() {
    let data = [vec![0; 3], v2(), vec![0; 4096], v1(), v1(), vec![0; 5]].concat();
    let found: Vec<_> =
        binaries(&data).map(Result::unwrap).map(|(at, b)| (at, b.version().number())).collect();
    assert_eq!(found, [(3, 2), (4275, 1), (4435, 1)]);
}

#[test]
fn nothing_and_zeros_hold_no_binaries() {
    assert!(binaries(&[]).next().is_none());
    assert!(binaries(&[0; 64]).next().is_none());
}

#[test]
fn other_data_without_any_binary() {
    let mut iter = binaries(b"xyzzy");
    let error = iter.next().unwrap().unwrap_err();
    assert_eq!(
        told(&error),
        (
            ErrorKind::NotABinary,
            Some(0),
            "offload binary starts with bytes [78, 79, 7a, 7a], expected [10, ff, 10, ad]"
                .to_owned()
        )
    );
    assert!(iter.next().is_none());
    // Zeros may be the padding of something.
    let error = binaries(b"\0xyzzy").next().unwrap().unwrap_err();
    assert_eq!(
        told(&error),
        (
            ErrorKind::TrailingData,
            Some(1),
            "data at offset 0x1 is neither an offload binary nor zero padding".to_owned()
        )
    );
}

#[test]
fn few_bytes_of_other_data_behind_a_binary() {
    let data = v1().tap(|data| data.extend(b"\0\x10y"));
    assert_eq!(
        told(&binaries(&data).nth(1).unwrap().unwrap_err()),
        (
            ErrorKind::TrailingData,
            Some(161),
            "data at offset 0xa1 is neither an offload binary nor zero padding".to_owned()
        )
    );
}

#[test]
fn other_data_behind_a_binary() {
    let data = v1().tap(|data| data.extend(b"\0\0junk"));
    let mut iter = binaries(&data);
    assert!(iter.next().unwrap().is_ok());
    assert_eq!(
        told(&iter.next().unwrap().unwrap_err()),
        (
            ErrorKind::TrailingData,
            Some(162),
            "data at offset 0xa2 is neither an offload binary nor zero padding".to_owned()
        )
    );
    assert!(iter.next().is_none());
    assert!(iter.next().is_none());
}

#[test]
fn a_damaged_binary_ends_the_walk() {
    let data = [v1(), with(v1(), IMAGE_OFFSET, 0), v1()].concat();
    let mut iter = binaries(&data);
    assert!(iter.next().unwrap().is_ok());
    let error = iter.next().unwrap().unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Malformed, Some(160)));
    assert_eq!(error.entry(), Some(0));
    assert_eq!(
        error.to_string(),
        "offload binary at offset 0xa0: offload binary entry 0 has its image at 0x0, \
         which overlaps the header or a table",
    );
    assert!(iter.next().is_none());
}

#[test]
fn messages_are_one_line() {
    assert_eq!(
        error(b"\x7fELF").2,
        "offload binary starts with bytes [7f, 45, 4c, 46], expected [10, ff, 10, ad]",
    );
    assert_eq!(
        error(&with(v1(), IMAGE_SIZE, 99)).2,
        "offload binary entry 0 has an image of 0x63 bytes at 0x90, \
         beyond the end of the binary at 0xa0",
    );
    assert_eq!(MAGIC, v1()[..4]);
}

#[test]
fn many_strings_in_one_long_text_are_quick() {
    // 20,000 keys that all start in the same text without any NUL but its last: checking them
    // one by one would look at 10^10 bytes.
    let (count, text) = if cfg!(miri) { (20, 5000) } else { (20_000_usize, 500_000_usize) };
    let strings = 72 + 16 * count;
    let size = (strings + text).next_multiple_of(8);
    let number = |n: usize| u64::try_from(n).unwrap();
    let mut data = v1();
    data.resize(size, b'k');
    data[strings..].fill(b'k');
    data[size - 1] = 0;
    put(&mut data, SIZE, number(size));
    put(&mut data, STRING_COUNT, number(count));
    put(&mut data, IMAGE_SIZE, 0);
    for i in 0..count {
        put(&mut data, KEY + 16 * i, number(strings + i));
        put(&mut data, VALUE + 16 * i, number(strings + i));
    }
    let entry = only(&data);
    assert_eq!(entry.strings().count(), count);
    assert_eq!(entry.arch(), None);
}

/// Header and first entry, all entries, tables of strings, strings: each asks for the next.
#[test]
fn a_prefix_that_grows_as_asked_is_enough_after_five_calls() {
    for (version, images, most) in
        [(FormatVersion::V1, 1, 4), (FormatVersion::V2, 2, 5), (FormatVersion::V3, 2, 5)]
    {
        let entry =
            || ImageEntry::new(5).string("arch", "gfx90a").string("triple", "amdgcn-amd-amdhsa");
        let entries: Vec<_> = (0..images).map(|_| entry()).collect();
        let package =
            Layout::new(version, &entries).unwrap().to_vec(&vec![&b"image"[..]; images]).unwrap();
        let mut prefix = &package[..0];
        let mut calls = 1;
        while let Err(error) = OffloadBinary::parse_prefix(prefix, package.len() as u64) {
            prefix = &package[..usize::try_from(error.needed().unwrap()).unwrap()];
            calls += 1;
        }
        assert_eq!(calls, most);
    }
}

#[test]
fn iterators_go_both_ways() {
    let data = v2();
    let binary = OffloadBinary::parse(&data).unwrap();
    let indexes = |entries: Vec<Entry<'_>>| entries.iter().map(Entry::index).collect::<Vec<_>>();
    let mut backwards = indexes(binary.entries().rev().collect());
    backwards.reverse();
    assert_eq!(backwards, indexes(binary.entries().collect()));
    let entry = only(&data);
    let mut strings: Vec<_> = entry.strings().rev().collect();
    strings.reverse();
    assert_eq!(strings, entry.strings().collect::<Vec<_>>());
    assert_eq!(entry.strings().nth(1), strings.get(1).copied());
    let mut rest = entry.strings();
    assert!(rest.next_back().is_some() && rest.count() + 1 == strings.len());
}
