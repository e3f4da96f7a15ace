//! Promises of the public types, for any contents: if one is broken, this file does not compile.

use core::iter::FusedIterator;
use core::panic::{RefUnwindSafe, UnwindSafe};

use offload_binary::llvm::Release;
use offload_binary::{
    Entry, Error, ErrorKind, Flags, FormatVersion, ImageEntry, ImageKind, MAGIC, OffloadBinary,
    OffloadKind, binaries,
};

fn fused<T: FusedIterator + Send + Sync + Unpin + UnwindSafe + RefUnwindSafe>(_: &T) {}

samples::promises! {
    sent: Entry<'_>, OffloadBinary<'_>, Error;
    owned: ImageEntry<'_>;
    value: ErrorKind, Flags, FormatVersion, ImageKind, Release, OffloadKind;
    copied: Flags, FormatVersion, ImageKind, Release, OffloadKind;
    displayed: FormatVersion, ImageKind, OffloadKind;
    error: Error;
    unwinds: Entry<'_>, OffloadBinary<'_>, Error, ErrorKind, Flags, FormatVersion,
        ImageEntry<'_>, ImageKind, Release, OffloadKind;
}

#[test]
fn iterators_are_fused() {
    fused(&binaries(b""));
}

/// Views borrow from the data alone: they outlive what they came from.
#[test]
fn views_outlive_their_parser() {
    fn values(data: &[u8]) -> Vec<&[u8]> {
        let entries = binaries(data).flat_map(|binary| binary.unwrap().1.entries());
        entries.flat_map(|entry| entry.strings()).map(|(_, value)| value).collect()
    }
    let entry = ImageEntry::new(0).with_string("arch", "gfx90a");
    let data = offload_binary::layout(FormatVersion::V1, &[entry]).unwrap().to_vec(&[b""]).unwrap();
    assert!(data.starts_with(&MAGIC));
    assert_eq!(values(&data), [b"gfx90a"]);
}

#[cfg(feature = "std")]
#[test]
fn errors_are_errors_of_io() {
    use std::io;
    use std::io::ErrorKind::{InvalidData, InvalidInput, OutOfMemory};

    let kind = |error: Error| io::Error::from(error).kind();
    assert_eq!(kind(OffloadBinary::parse(b"").unwrap_err()), InvalidData);
    let entry = ImageEntry::new(0).with_string("a\0", "");
    let error = offload_binary::layout(FormatVersion::V2, &[entry]).unwrap_err();
    let text = error.to_string();
    let error = io::Error::from(error);
    assert_eq!(error.kind(), InvalidInput);
    assert_eq!(error.downcast::<Error>().unwrap().to_string(), text);
    assert_eq!(kind(byte_parts::Error::OutOfMemory { size: 1 }.into()), OutOfMemory);
}
