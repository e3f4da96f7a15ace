//! Promises of the public types, for any contents: if one is broken, this file does not compile.

use core::error::Error as StdError;
use core::fmt::{Debug, Display};
use core::iter::FusedIterator;
use core::panic::{RefUnwindSafe, UnwindSafe};

use offload_binary::llvm::Release;
use offload_binary::{
    Entry, Error, ErrorKind, Flags, FormatVersion, ImageEntry, ImageKind, MAGIC, OffloadBinary,
    OffloadKind, binaries,
};

/// Sent to and shared by threads, printed for debugging, cloned.
fn view<T: Clone + Debug + Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + 'static>() {}
/// Types that are also compared.
fn value<T>()
where
    T: Clone + Debug + PartialEq + Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + 'static,
{
}
fn copied<T: Copy>() {}
fn displayed<T: Display>() {}
fn fused<T: FusedIterator + Send + Sync + Unpin + UnwindSafe + RefUnwindSafe>(_: &T) {}
/// Sent to and shared by threads, printed for debugging.
fn sent<T: Debug + Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + 'static>() {}

#[test]
fn public_types_keep_their_promises() {
    sent::<Entry<'_>>();
    sent::<OffloadBinary<'_>>();
    sent::<Error>();
    value::<ErrorKind>();
    value::<Flags>();
    value::<FormatVersion>();
    view::<ImageEntry<'_>>();
    value::<ImageKind>();
    value::<Release>();
    value::<OffloadKind>();

    copied::<(Flags, FormatVersion, ImageKind, Release, OffloadKind)>();
    displayed::<FormatVersion>();
    displayed::<ImageKind>();
    displayed::<OffloadKind>();
    fused(&binaries(b""));
    let _: fn(&Error) -> &dyn StdError = |error| error;
}

/// Views borrow from the data alone: they outlive what they came from.
#[test]
fn views_outlive_their_parser() {
    fn values(data: &[u8]) -> Vec<&[u8]> {
        let entries = binaries(data).flat_map(|binary| binary.unwrap().1.entries());
        entries.flat_map(|entry| entry.strings()).map(|(_, value)| value).collect()
    }
    let entry = ImageEntry::new(0).string("arch", "gfx90a");
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
    let entry = ImageEntry::new(0).string("a\0", "");
    let error = offload_binary::layout(FormatVersion::V2, &[entry]).unwrap_err();
    let text = error.to_string();
    let error = io::Error::from(error);
    assert_eq!(error.kind(), InvalidInput);
    assert_eq!(error.downcast::<Error>().unwrap().to_string(), text);
    assert_eq!(kind(byte_parts::Error::OutOfMemory { size: 1 }.into()), OutOfMemory);
}
