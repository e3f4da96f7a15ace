//! Helpers of the tests.

use offload_binary::{Error, ErrorKind};

/// Contents of an error: its kind, its offset and its text.
pub(crate) type Told = (ErrorKind, Option<u64>, String);

pub(crate) fn told(error: &Error) -> Told {
    (error.kind(), error.offset(), error.to_string())
}
