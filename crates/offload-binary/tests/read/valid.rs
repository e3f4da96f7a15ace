//! Offload binaries as LLVM writes them, and as the format allows them.

use offload_binary::{
    Entry, Flags, FormatVersion, ImageEntry, ImageKind, OffloadBinary, OffloadKind,
};
use samples::binary::{llvm_22, llvm_23};
use samples::hex;

use super::samples::{
    EXTENT, IMAGE_OFFSET, IMAGE_SIZE, KEY, SIZE, STRING_COUNT, Tap, VALUE, only, put,
    v2_two_entries, with,
};

#[test]
fn versions_1_and_2_are_read_alike() {
    for (version, size, image_offset, data) in
        [(1, 160, 0x90, llvm_22()), (2, 176, 0xa0, llvm_23())]
    {
        let binary = OffloadBinary::parse(&data).unwrap();
        assert_eq!((binary.version().number(), binary.size()), (version, size));
        let entry = only(&data);
        assert_eq!(entry.index(), 0);
        assert_eq!(entry.image_kind(), ImageKind::OBJECT);
        assert_eq!(entry.offload_kind(), OffloadKind::CUDA);
        assert_eq!(entry.flags(), Flags::empty());
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
fn bytes_after_the_binary_are_ignored() {
    let data = llvm_22().tap(|data| data.extend(b"anything"));
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
    assert_eq!(OffloadBinary::parse(&with(llvm_23(), EXTENT, 0)).unwrap().entries().len(), 0);
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
    let data = with(llvm_22(), KEY + 16, 0x69);
    let entry = only(&data);
    assert_eq!(entry.arch(), Some("nvptx64-nvidia-cuda"));
    assert_eq!(entry.strings().filter(|(key, _)| *key == b"arch").count(), 2);
    let repeated = entry.repeated_key().unwrap();
    assert_eq!((repeated.key, repeated.count), (&b"arch"[..], 2));
    assert!(only(&llvm_22()).repeated_key().is_none());
}

#[test]
fn repeated_keys_have_the_place_of_the_last_string_entry() {
    let pairs = [("arch", "1"), ("triple", "x"), ("arch", "2"), ("triple", "y"), ("arch", "3")];
    for (version, header) in
        [(FormatVersion::V1, 32), (FormatVersion::V2, 32), (FormatVersion::V3, 40)]
    {
        let mut entry = ImageEntry::new(0);
        entry.strings.extend(pairs.map(|(k, v)| (k.as_bytes().into(), v.as_bytes().into())));
        let data = offload_binary::layout(version, &[entry]).unwrap().to_vec(&[&[]]).unwrap();
        let repeated = only(&data).repeated_key().unwrap();
        assert_eq!((repeated.key, repeated.count), (&b"arch"[..], 3));
        let len = if version == FormatVersion::V1 { 16 } else { 24 };
        assert_eq!(repeated.offset, header + 40 + 4 * len);
        // Its value is the one that counts.
        let place = usize::try_from(repeated.offset).unwrap() + 8;
        let value = u64::from_le_bytes(*data[place..].first_chunk().unwrap());
        assert_eq!(data[usize::try_from(value).unwrap()], b'3');
    }
}

#[test]
fn a_key_that_is_set_again_has_one_value_in_its_place() {
    let mut entry = ImageEntry::new(0).with_string("arch", "1").with_string("triple", "x");
    entry.strings.push((b"arch".into(), b"2".into()));
    let entry = entry.with_string("arch", "3");
    let expected = ImageEntry::new(0).with_string("arch", "3").with_string("triple", "x");
    assert_eq!((entry.strings.len(), &entry), (2, &expected));
}

#[test]
fn unknown_kinds_and_flags_are_kept() {
    let data = llvm_22().tap(|data| data[32..40].copy_from_slice(&[9, 1, 5, 2, 2, 0, 0, 0x80]));
    let entry = only(&data);
    assert_eq!(entry.image_kind(), ImageKind(0x109));
    assert_eq!(entry.offload_kind(), OffloadKind(0x205));
    assert_eq!(entry.flags().bits(), 0x8000_0002);
    assert!(!entry.flags().contains(Flags::METADATA));
}

#[test]
fn the_entry_size_of_version_1_may_be_too_small() {
    assert_eq!(only(&with(llvm_22(), EXTENT, 0)).image_size(), 11);
}

#[test]
fn keys_need_not_be_utf8() {
    let data = llvm_22().tap(|data| data[0x89] = 0xff);
    let entry = only(&data);
    assert_eq!(entry.get("triple"), Some(&b"nvptx64-nvidia-cuda"[..]));
    assert_eq!(entry.get("arch"), Some(&b"\xffm_70"[..]));
    assert_eq!(entry.arch(), None);
}

#[test]
fn an_empty_image_may_lie_anywhere_inside() {
    for offset in [0, 40, 160] {
        let data = with(with(llvm_22(), IMAGE_OFFSET, offset), IMAGE_SIZE, 0);
        assert_eq!(only(&data).image(), Some(&[][..]));
    }
}

#[test]
fn many_strings_in_one_long_text_are_read_quickly() {
    // 20,000 keys that all start in the same text without any NUL but its last: checking them
    // one by one would look at 10^10 bytes.
    let (count, text) = if cfg!(miri) { (20, 5000) } else { (20_000_usize, 500_000_usize) };
    let strings = 72 + 16 * count;
    let size = (strings + text).next_multiple_of(8);
    let number = |n: usize| u64::try_from(n).unwrap();
    let mut data = llvm_22();
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

#[test]
fn entries_and_strings_iterate_from_both_ends() {
    let data = llvm_23();
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
