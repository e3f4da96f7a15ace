//! The C interface of the libraries: see `include/offload.h`.
//!
//! `unsafe` stands here only to turn pointers of the caller into references, and boxes into pointers. The functions are those of
//! [`device_files`].
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]
#![allow(
    clippy::missing_safety_doc,
    reason = "the C header has this documentation: parameters, and `@pre`"
)]

mod answers;
mod error;
mod file;
mod text;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use answers::*;
pub use error::*;
pub use file::*;
pub use text::*;

/// The version of the binary interface. It grows when a program built for an earlier version would not run: a function that is
/// gone or has other arguments. New functions and new fields of rows leave it.
pub const OFFLOAD_ABI_VERSION: u32 = 1;

/// Returns OFFLOAD_ABI_VERSION of the library that is loaded: a program compares it with the version in its header.
#[unsafe(no_mangle)]
pub extern "C" fn offload_abi_version() -> u32 {
    OFFLOAD_ABI_VERSION
}

/// Returns the version of the library, such as 0.1.0. The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn offload_version() -> OffloadText {
    OffloadText::new(env!("CARGO_PKG_VERSION"))
}

/// Does something that may fail, or panic; returns `failed` then, and the error at `error`.
///
/// # Safety
///
/// `error` is null, or may be written.
unsafe fn guarded<T>(
    error: *mut *mut OffloadError,
    failed: T,
    work: impl FnOnce() -> Result<T, OffloadError>,
) -> T {
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(OffloadError::internal(text.unwrap_or("a fault of the library")))
    });
    result.unwrap_or_else(|fault| {
        if !error.is_null() {
            // SAFETY: it is not null, and the caller may write it.
            unsafe { error.write(Box::into_raw(Box::new(fault))) };
        }
        failed
    })
}

/// Returns a reference to an object of this library; `None` for a null pointer.
///
/// # Safety
///
/// `object` is null, or from this library and not freed while the reference lives.
unsafe fn object<'a, T>(object: *const T) -> Option<&'a T> {
    // SAFETY: as the caller promises.
    unsafe { object.as_ref() }
}

/// Frees an object of this library.
///
/// # Safety
///
/// `object` is null, or from this library, not freed, and used by no one.
unsafe fn free<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: all pointers that this library returns are from boxes, and the caller has the only one.
        let object = unsafe { Box::from_raw(object) };
        // A panic of a destructor ends here.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(object)));
    }
}
