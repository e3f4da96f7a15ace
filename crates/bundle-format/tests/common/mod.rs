//! Helpers of the tests.

use bundle_format::{Error, ErrorKind};

/// Asserts what an error tells: its kind, its offset and its text.
#[track_caller]
pub(crate) fn assert_error(error: &Error, kind: ErrorKind, offset: Option<u64>, text: &str) {
    assert_eq!((error.kind(), error.offset(), &*error.to_string()), (kind, offset, text));
}
