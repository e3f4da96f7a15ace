//! Errors.

use std::io;

use device_files::Fault;

use crate::text::OffloadText;
use crate::{free, object};

/// The kind of an error.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "names of C")]
pub enum OffloadErrorKind {
    /// An argument makes no sense: a null pointer, a GPU that is not known, a row that is not there.
    OFFLOAD_ERROR_ARGUMENT = 1,
    /// The read or the write function failed.
    OFFLOAD_ERROR_IO = 2,
    /// The file is damaged.
    OFFLOAD_ERROR_DATA = 3,
    /// Memory or another limit was exceeded.
    OFFLOAD_ERROR_LIMIT = 4,
    /// A fault of the library.
    OFFLOAD_ERROR_INTERNAL = 5,
}

/// An error: its kind, a sentence, and the offset in the file.
#[derive(Debug)]
pub struct OffloadError {
    kind: OffloadErrorKind,
    message: String,
    offset: Option<u64>,
}

impl OffloadError {
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        let (kind, message) = (OffloadErrorKind::OFFLOAD_ERROR_ARGUMENT, message.into());
        OffloadError { kind, message, offset: None }
    }

    pub(crate) fn internal(message: &str) -> Self {
        let (kind, message) = (OffloadErrorKind::OFFLOAD_ERROR_INTERNAL, message.to_owned());
        OffloadError { kind, message, offset: None }
    }
}

impl From<io::Error> for OffloadError {
    fn from(error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => {
                OffloadErrorKind::OFFLOAD_ERROR_ARGUMENT
            }
            io::ErrorKind::InvalidData
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::Unsupported => OffloadErrorKind::OFFLOAD_ERROR_DATA,
            io::ErrorKind::FileTooLarge | io::ErrorKind::OutOfMemory => {
                OffloadErrorKind::OFFLOAD_ERROR_LIMIT
            }
            _ => OffloadErrorKind::OFFLOAD_ERROR_IO,
        };
        let fault = Fault::of_io("", &error);
        OffloadError { kind, message: fault.message, offset: fault.offset }
    }
}

/// Returns the kind of an error.
///
/// @pre `error` is from this library and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn offload_error_kind(error: *const OffloadError) -> OffloadErrorKind {
    // SAFETY: as the caller promises.
    unsafe { object(error) }.map_or(OffloadErrorKind::OFFLOAD_ERROR_ARGUMENT, |error| error.kind)
}

/// Returns one sentence that says what is wrong, where, and what was expected. The text lives as long as the error.
///
/// @pre `error` is NULL, or from this library and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn offload_error_message(error: *const OffloadError) -> OffloadText {
    // SAFETY: as the caller promises.
    unsafe { object(error) }.map_or(OffloadText::none(), |error| OffloadText::new(&error.message))
}

/// Writes the offset of the fault in the file, in bytes, to `offset`; returns false if it is not known.
///
/// @pre `error` is NULL, or from this library and not freed; `offset` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn offload_error_offset(
    error: *const OffloadError,
    offset: *mut u64,
) -> bool {
    // SAFETY: as the caller promises.
    let found = unsafe { object(error) }.and_then(|error| error.offset);
    if let Some(found) = found.filter(|_| !offset.is_null()) {
        // SAFETY: it is not null, and the caller may write it.
        unsafe { offset.write(found) };
    }
    found.is_some()
}

/// Frees an error.
///
/// @pre `error` is NULL, or from this library and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn offload_error_free(error: *mut OffloadError) {
    // SAFETY: as the caller promises.
    unsafe { free(error) };
}
