//! Malformed entries: strings and images in the wrong places.

use offload_binary::{ErrorKind, OffloadBinary};
use samples::binary::{llvm_22, llvm_23};

use super::samples::{
    IMAGE_OFFSET, IMAGE_SIZE, KEY, STRING_COUNT, STRING_OFFSET, Tap, VALUE, VALUE_SIZE, error,
    only, put, v2_two_entries, with,
};

#[test]
fn a_string_count_too_large_is_an_error() {
    for (data, size, counts) in [
        (llvm_22(), 160, [6, u64::MAX / 16 + 1, u64::MAX]),
        (llvm_23(), 176, [5, u64::MAX / 24 + 1, u64::MAX]),
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
fn string_entries_beyond_the_end_are_an_error() {
    let expected = (
        ErrorKind::Malformed,
        Some(136),
        "offload binary entry 0 has 2 string entries at 0x88, beyond the end of the binary at 0xa0"
            .to_owned(),
    );
    assert_eq!(error(&with(llvm_22(), STRING_OFFSET, 136)), expected);
}

#[test]
fn overlapping_string_entries_are_an_error() {
    for offset in [0, 31, 40, 71] {
        let expected = (
            ErrorKind::Malformed,
            Some(offset),
            format!(
                "offload binary entry 0 has its string entries at {offset:#x}, which overlap other tables"
            ),
        );
        assert_eq!(error(&with(llvm_22(), STRING_OFFSET, offset)), expected, "{offset}");
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
fn one_string_entry_too_many_is_an_error() {
    // The third string entry is made of strings, so the first string lies in it.
    let expected = (ErrorKind::Malformed, Some(0x79), "offload binary entry 0 has a key or value of string 0 at 0x79, which overlaps a table or an image".to_owned());
    assert_eq!(error(&with(llvm_23(), STRING_COUNT, 3)), expected);
}

#[test]
fn a_key_beyond_the_end_is_an_error() {
    for (data, size) in [(llvm_22(), 160), (llvm_23(), 176)] {
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
fn a_value_beyond_the_end_is_an_error() {
    for offset in [160, u64::MAX] {
        let expected = (
            ErrorKind::Malformed,
            Some(offset),
            format!(
                "offload binary entry 0 has the value of string 0 at {offset:#x} with 0x0 bytes, beyond the end of the binary at 0xa0"
            ),
        );
        assert_eq!(error(&with(llvm_22(), VALUE, offset)), expected);
    }
    let expected =
        (ErrorKind::Malformed, Some(172), "offload binary entry 0 has the value of string 0 at 0xac with 0x5 bytes, beyond the end of the binary at 0xb0".to_owned());
    assert_eq!(error(&with(llvm_23(), VALUE, 172)), expected);
}

#[test]
fn a_value_size_beyond_the_end_is_an_error() {
    for value_size in [24, u64::MAX] {
        let expected = (
            ErrorKind::Malformed,
            Some(0x99),
            format!(
                "offload binary entry 0 has the value of string 0 at 0x99 with {value_size:#x} bytes, beyond the end of the binary at 0xb0"
            ),
        );
        assert_eq!(error(&with(llvm_23(), VALUE_SIZE, value_size)), expected);
    }
}

/// No image, and the last eight bytes are a string without its NUL.
fn unterminated(data: Vec<u8>) -> (Vec<u8>, u64) {
    let size = data.len();
    let data = data.tap(|data| {
        put(data, IMAGE_SIZE, 0);
        data[size - 8..].copy_from_slice(b"no nul..");
        // Bytes after the binary are ignored.
        data.extend([0; 8]);
    });
    (data, u64::try_from(size).unwrap() - 8)
}

#[test]
fn a_key_without_its_nul_is_an_error() {
    for data in [llvm_22(), llvm_23()] {
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
fn a_value_without_its_nul_is_an_error() {
    let (data, offset) = unterminated(llvm_22());
    let expected = (
        ErrorKind::Malformed,
        Some(offset),
        format!(
            "offload binary entry 0 has the value of string 0 at {offset:#x} without a nul before the end of the binary"
        ),
    );
    assert_eq!(error(&with(data, VALUE, offset)), expected);
    // Version 2 has a size instead.
    let (data, offset) = unterminated(llvm_23());
    let data = with(with(data, VALUE, offset), VALUE_SIZE, 8);
    assert_eq!(only(&data).arch(), Some("no nul.."));
}

#[test]
fn strings_inside_tables_or_images_are_an_error() {
    for at in [KEY, VALUE] {
        for offset in [8, 40, 75, 0x90] {
            let expected = (
                ErrorKind::Malformed,
                Some(offset),
                format!(
                    "offload binary entry 0 has a key or value of string 0 at {offset:#x}, which overlaps a table or an image"
                ),
            );
            assert_eq!(error(&with(llvm_22(), at, offset)), expected, "{at} {offset}");
        }
    }
    // A string that runs into the image.
    let data = llvm_22().tap(|data| {
        data[0x8e..0x90].copy_from_slice(b"01");
    });
    let expected = (ErrorKind::Malformed, Some(0x89), "offload binary entry 0 has a key or value of string 0 at 0x89, which overlaps a table or an image".to_owned());
    assert_eq!(error(&data), expected);
    let expected = (ErrorKind::Malformed, Some(0x99), "offload binary entry 0 has a key or value of string 0 at 0x99, which overlaps a table or an image".to_owned());
    assert_eq!(error(&with(llvm_23(), VALUE_SIZE, 8)), expected);
}

#[test]
fn an_image_beyond_the_end_is_an_error() {
    let cases = [(0x90, 17), (0x90, u64::MAX), (u64::MAX, 11), (161, 0), (160, 1)];
    for (offset, image_size) in cases {
        let data = with(with(llvm_22(), IMAGE_OFFSET, offset), IMAGE_SIZE, image_size);
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
fn an_image_over_header_entries_or_strings_is_an_error() {
    for offset in [0, 31, 32, 71, 72, 103] {
        let expected = (
            ErrorKind::Malformed,
            Some(offset),
            format!(
                "offload binary entry 0 has its image at {offset:#x}, which overlaps the header or a table"
            ),
        );
        assert_eq!(error(&with(llvm_22(), IMAGE_OFFSET, offset)), expected, "{offset}");
    }
    // Over the string table: told by the string.
    let expected = (ErrorKind::Malformed, Some(0x69), "offload binary entry 0 has a key or value of string 0 at 0x69, which overlaps a table or an image".to_owned());
    assert_eq!(error(&with(llvm_22(), IMAGE_OFFSET, 0x68)), expected);
}

#[test]
fn overlapping_images_are_an_error() {
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
