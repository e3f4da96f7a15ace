//! Promises of the public types, for any contents: if one is broken, this file does not compile.

use ccob::{Decompressed, Error, ErrorKind, Header, Method, Version, WriteOptions};

samples::promises! {
    sent: Decompressed, Header, WriteOptions, Error;
    value: ErrorKind, Method, Version;
    copied: ErrorKind, Method, Version;
    displayed: Method, Version;
    defaulted: Method, WriteOptions;
    error: Error;
}
