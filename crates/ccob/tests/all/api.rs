//! Promises of the public types, for any contents: if one is broken, this file does not compile.

use core::error::Error as StdError;
use core::fmt::{Debug, Display};

use ccob::{Decompressed, Error, ErrorKind, Header, Limits, Method, Version, WriteOptions};

fn shared<T: Debug + Send + Sync + 'static>() {}
fn value<T: Copy + Eq + Debug + Send + Sync + 'static>() {}
fn displayed<T: Display>() {}
fn defaulted<T: Default>() {}

#[test]
fn public_types_keep_their_promises() {
    shared::<(Decompressed, Header, Limits, WriteOptions)>();
    shared::<Error>();
    value::<(ErrorKind, Method, Version)>();

    displayed::<Method>();
    displayed::<Version>();
    defaulted::<(Limits, Method, Version, WriteOptions)>();
    let _: &dyn StdError = &Error::out_of_memory(1);
}
