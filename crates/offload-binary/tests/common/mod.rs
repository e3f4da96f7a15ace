//! Helpers of the tests.

use offload_binary::Error;

/// Contents of an error: its kind, its offset and its text.
pub(crate) fn told(error: &Error) -> String {
    samples::table::told(error.kind(), error.offset(), error)
}
