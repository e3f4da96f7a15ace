//! Several offload binaries one after the other, and padding and other data between them.

use offload_binary::{ErrorKind, ImageKind, OffloadKind, binaries};
use samples::binary::{llvm_22, llvm_23};

use super::samples::{IMAGE_OFFSET, two, with};
use crate::common::told;

#[test]
fn concatenated_binaries_are_all_found() {
    let data = two();
    let found: Vec<_> = binaries(&data).map(Result::unwrap).collect();
    assert_eq!(found.iter().map(|(offset, _)| *offset).collect::<Vec<_>>(), [0, 0x90]);
    let entry = found[0].1.entries().next().unwrap();
    assert_eq!(entry.image_kind(), ImageKind::SPIRV);
    assert_eq!(entry.offload_kind(), OffloadKind::SYCL);
    assert_eq!(entry.flags().bits(), 0x8000_0000);
    assert_eq!(entry.triple(), Some("spirv64"));
    assert_eq!(entry.get("compile-opts"), Some(&b""[..]));
    assert_eq!(entry.image(), Some(&[3, 2][..]));
    let entry = found[1].1.entries().next().unwrap();
    assert_eq!(entry.strings().count(), 0);
    assert_eq!(entry.image(), Some(&[][..]));
}

#[test]
fn versions_may_be_mixed_and_padded() {
    let data = [vec![0; 3], llvm_23(), vec![0; 4096], llvm_22(), llvm_22(), vec![0; 5]].concat();
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
fn other_data_is_refused() {
    let after = |tail: &[u8]| [&llvm_22()[..], tail].concat();
    for (data, place) in [
        // Zeros may be the padding of something.
        (b"\0xyzzy".to_vec(), 1),
        (after(b"\0\x10y"), 161),
        (after(b"\0\0junk"), 162),
    ] {
        let mut iter = binaries(&data);
        let error = iter.find_map(Result::err).unwrap();
        let text = "is neither an offload binary nor zero padding";
        let expected = format!("TrailingData at {place:#x}: data at offset {place:#x} {text}");
        assert_eq!(told(&error), expected);
        assert!(iter.next().is_none() && iter.next().is_none());
    }
    let mut iter = binaries(b"xyzzy");
    assert_eq!(iter.next().unwrap().unwrap_err().kind(), ErrorKind::NotABinary);
    assert!(iter.next().is_none());
}

#[test]
fn a_damaged_binary_ends_the_walk() {
    let data = [llvm_22(), with(llvm_22(), IMAGE_OFFSET, 0), llvm_22()].concat();
    let mut iter = binaries(&data);
    assert!(iter.next().unwrap().is_ok());
    let error = iter.next().unwrap().unwrap_err();
    assert_eq!(error.entry(), Some(0));
    let text = "entry 0 has its image at 0x0, which overlaps the header or a table";
    let expected = format!("offload binary at offset 0xa0: offload binary {text}");
    assert_eq!(told(&error), format!("Malformed at 0xa0: {expected}"));
    assert!(iter.next().is_none());
}
