//! Promises of the public types, for any contents: if one is broken, this file does not compile.

use std::error::Error as StdError;
use std::fmt::Debug;

use sycl_table::{Error, ErrorKind, SyclImage, SyclProperty, SyclValue, Tables};

fn shared<T: Debug + Send + Sync + 'static>() {}
fn sent<T: Debug + Send + Sync + 'static>() {}
fn value<T: Copy + Debug + PartialEq + Send + Sync + 'static>() {}
fn error<T: StdError + Send + Sync + 'static>() {}

#[test]
fn public_types_keep_their_promises() {
    shared::<Tables>();
    sent::<SyclImage>();
    sent::<SyclProperty>();
    sent::<SyclValue>();
    value::<ErrorKind>();
    error::<Error>();
}
