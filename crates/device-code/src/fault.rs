//! The malformed parts of an image.

use core::fmt;

/// A part of an image that is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// Place in the image, in bytes.
    pub offset: u64,
    /// The expectation.
    pub expected: &'static str,
    /// The number in its place.
    pub found: u64,
}

impl Fault {
    /// Creates a fault.
    #[must_use]
    pub fn new(offset: u64, expected: &'static str, found: u64) -> Self {
        Fault { offset, expected, found }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { offset, expected, found } = self;
        write!(f, "{offset:#x}: expected {expected}, found {found:#x}")
    }
}
