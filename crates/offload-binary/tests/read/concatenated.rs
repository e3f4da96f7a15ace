//! Several offload binaries one after the other, and padding and other data between them.

use offload_binary::{ErrorKind, ImageKind, OffloadKind, binaries};
use samples::binary::{llvm_22, llvm_23};

use super::samples::{IMAGE_OFFSET, Tap, two, with};
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
fn short_other_data_after_a_binary_is_an_error() {
    let data = llvm_22().tap(|data| data.extend(b"\0\x10y"));
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
fn other_data_after_a_binary_is_an_error() {
    let data = llvm_22().tap(|data| data.extend(b"\0\0junk"));
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
    let data = [llvm_22(), with(llvm_22(), IMAGE_OFFSET, 0), llvm_22()].concat();
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
