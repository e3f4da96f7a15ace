//! What the public types promise, whatever is in them: this file compiles, or a promise is broken.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a panic is how a test says no")]

use std::error::Error as StdError;
use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::str::FromStr;

use wrapper_ir::description::{
    Blob, Block, Constant, Function, Global, Instruction, Linkage, Local, Operation, Role, Startup,
    Struct, StructLayout, Type, Value,
};
use wrapper_ir::{
    Abi, Endian, Entries, EntryFlags, Error, ErrorKind, Image, ImageInfo, Kind, Layout, LinkTool,
    ManagedCall, Module, ObjectFormat, OffloadEntry, Target, Wrapper,
};

/// Sent to and shared by threads, printed for debugging, cloned.
fn shared<T: Clone + Debug + Send + Sync + Unpin + 'static>() {}
/// Besides, compared.
fn compared<T: Clone + Debug + Eq + Send + Sync + Unpin + 'static>() {}
/// Besides, a key of a map.
fn value<T: Clone + Debug + Eq + Hash + Send + Sync + Unpin + 'static>() {}
fn copied<T: Copy>() {}
fn text<T: Display + FromStr<Err = Error>>() {}
fn error<T: StdError + Send + Sync + 'static>() {}

#[test]
fn public_types_keep_their_promises() {
    value::<Abi>();
    value::<Endian>();
    value::<EntryFlags>();
    value::<Image<'static>>();
    value::<ImageInfo>();
    value::<Kind>();
    value::<LinkTool>();
    value::<Linkage>();
    value::<ManagedCall>();
    value::<ObjectFormat>();
    value::<OffloadEntry<'static>>();
    value::<Role>();
    value::<Target>();
    compared::<Blob>();
    compared::<Block>();
    compared::<Constant>();
    compared::<Error>();
    compared::<Function>();
    compared::<Global>();
    compared::<Instruction>();
    compared::<Local>();
    compared::<Module>();
    compared::<Operation>();
    compared::<Startup>();
    compared::<Struct>();
    compared::<StructLayout>();
    compared::<Type>();
    compared::<Value>();
    shared::<Entries<'static>>();
    shared::<Layout>();
    shared::<Wrapper<'static>>();
    copied::<(Abi, Endian, ImageInfo, Kind, LinkTool, Linkage, ManagedCall, ObjectFormat)>();
    copied::<Role>();
    text::<Abi>();
    text::<Kind>();
    text::<Target>();
    error::<Error>();
}

#[test]
fn names_are_read_as_they_are_written() {
    for kind in Kind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    for abi in Abi::ALL {
        assert_eq!(abi.to_string().parse(), Ok(abi));
    }
    let target: Target = "aarch64-unknown-linux-gnu".parse().unwrap();
    assert_eq!(target.to_string(), "aarch64-unknown-linux-gnu");
    assert_eq!("x".parse::<Target>().unwrap_err().kind(), ErrorKind::UnknownName);
}

/// The types of other crates in the API can be named without another dependency.
#[test]
fn crates_in_the_api_are_here() {
    use wrapper_ir::offload_binary::OffloadKind;
    assert_eq!(OffloadKind::HIP.name(), Some("hip"));
}
