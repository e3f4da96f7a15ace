//! Promises of the public types, for any contents: if one is broken, this file does not compile.

use core::error::Error as StdError;
use core::fmt::{Debug, Display};

use ccob::{Decompressed, Error, ErrorKind, Header, Method, Version, WriteOptions};

fn shared<T: Debug + Send + Sync + 'static>() {}
fn value<T: Copy + PartialEq + Debug + Send + Sync + 'static>() {}
fn displayed<T: Display>() {}
fn defaulted<T: Default>() {}

#[test]
fn public_types_keep_their_promises() {
    shared::<(Decompressed, Header, WriteOptions)>();
    shared::<Error>();
    value::<(ErrorKind, Method, Version)>();

    displayed::<Method>();
    displayed::<Version>();
    defaulted::<(Method, WriteOptions)>();
    let _: &dyn StdError = &Error::out_of_memory(1);
}
