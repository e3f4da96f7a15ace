//! Promises of the public types, for any contents: if one is broken, this file does not compile.

use core::error::Error as StdError;
use core::fmt::Debug;

use hcf::{Error, ErrorKind, Hcf, HcfImage};

fn shared<T: Debug + Send + Sync + 'static>() {}
fn value<T: Copy + Debug + PartialEq + Send + Sync + 'static>() {}
fn error<T: StdError + Send + Sync + 'static>() {}

#[test]
fn public_types_keep_their_promises() {
    shared::<Hcf>();
    shared::<HcfImage>();
    value::<ErrorKind>();
    error::<Error>();
}
