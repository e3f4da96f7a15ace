//! Promises of the public types, for any contents: if one is broken, this file does not compile.

use std::error::Error as StdError;
use std::fmt::{Debug, Display};

use wrapper_ir::{
    Abi, Entries, EntryFlags, Error, ErrorKind, Image, Module, OffloadEntry, Target, Wrapper,
};

/// Sent to and shared by threads, printed for debugging, cloned.
fn shared<T: Clone + Debug + Send + Sync + Unpin + 'static>() {}
/// Types that are also compared.
fn compared<T: Clone + Debug + PartialEq + Send + Sync + Unpin + 'static>() {}
fn copied<T: Copy>() {}
fn text<T: Display>() {}
fn error<T: StdError + Send + Sync + 'static>() {}
/// Sent to and shared by threads, printed for debugging.
fn sent<T: Debug + Send + Sync + Unpin + 'static>() {}

#[test]
fn public_types_keep_their_promises() {
    compared::<Abi>();
    compared::<EntryFlags>();
    shared::<Image<'static>>();
    shared::<OffloadEntry<'static>>();
    shared::<Target>();
    sent::<Error>();
    sent::<Module>();
    sent::<Entries<'static>>();
    shared::<Wrapper<'static>>();
    copied::<Abi>();
    text::<Abi>();
    text::<Target>();
    error::<Error>();
}

#[test]
fn names_are_read_as_they_are_written() {
    for abi in Abi::ALL {
        assert_eq!(abi.to_string(), abi.name());
        assert_eq!(Abi::from_name(abi.name()).unwrap(), abi);
    }
    let target = Target::new("aarch64-unknown-linux-gnu").unwrap();
    assert_eq!(target.to_string(), "aarch64-unknown-linux-gnu");
    assert_eq!(Target::new("x").unwrap_err().kind(), ErrorKind::UnknownName);
}
