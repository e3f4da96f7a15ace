//! Texts.

use std::ffi::c_char;
use std::{ptr, slice};

/// A text in UTF-8. It is not terminated, and may have zeros inside. It lives as long as the object that it is from.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OffloadText {
    /// The first byte; NULL for no text. The first byte of an empty text is a zero, which does not count.
    pub data: *const c_char,
    /// The number of bytes.
    pub size: usize,
}

impl OffloadText {
    pub(crate) fn new(text: &str) -> Self {
        // The pointer of an empty text leads nowhere.
        let data = if text.is_empty() { c"".as_ptr() } else { text.as_ptr().cast() };
        OffloadText { data, size: text.len() }
    }

    pub(crate) fn none() -> Self {
        OffloadText { data: ptr::null(), size: 0 }
    }
}

/// Returns bytes of the caller; nothing for a null pointer.
///
/// # Safety
///
/// `data` is null, or leads to `size` bytes that nobody changes while the slice lives.
pub(crate) unsafe fn bytes<'a>(data: *const u8, size: usize) -> &'a [u8] {
    if data.is_null() || size == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { slice::from_raw_parts(data, size) }
}

/// Returns a text of the caller that ends with a zero; `None` for a null pointer, and if it is not UTF-8.
///
/// # Safety
///
/// `text` is null, or leads to bytes up to a zero that nobody changes while the text lives.
pub(crate) unsafe fn terminated<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    unsafe { std::ffi::CStr::from_ptr(text) }.to_str().ok()
}
