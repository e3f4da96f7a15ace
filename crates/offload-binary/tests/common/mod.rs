//! What the tests share.

use offload_binary::{Error, ErrorKind};

/// What an error tells: its kind, its offset and its text.
pub(crate) type Told = (ErrorKind, Option<u64>, String);

pub(crate) fn told(error: &Error) -> Told {
    (error.kind(), error.offset(), error.to_string())
}
