//! Helpers of the tests.

use bundle_format::Error;

/// Contents of an error: its kind, its offset and its text.
pub(crate) fn told(error: &Error) -> String {
    samples::table::told(error.kind(), error.offset(), error)
}
