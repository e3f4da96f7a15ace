//! Promises of the public types, for any contents: if one is broken, this file does not compile.
#![forbid(unsafe_code)]

use core::fmt::{Debug, Display};

use device_code::{Candidate, Fault, FileFormat};
use llvm_bitcode::Unreadable;

fn shared<T: Debug + Send + Sync + 'static>() {}
fn value<T: Copy + Debug + Display + PartialEq + Send + Sync + 'static>() {}

#[test]
fn public_types_keep_their_promises() {
    value::<FileFormat>();
    shared::<Candidate<'static>>();
    shared::<Fault>();
    shared::<Unreadable>();
}
