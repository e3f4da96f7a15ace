use core::ops::Range;

use crate::len_of;

/// A part of a source, from whose start the offsets in it count. It makes ranges of the source of them, within itself.
///
/// ```
/// use byte_parts::Window;
///
/// let window = Window::new(&(100..150));
/// assert_eq!(window.part(10..20), Some(110..120));
/// assert_eq!(window.sized(10, 40), Some(110..150));
/// assert_eq!(window.sized(10, u64::MAX), None);
/// assert_eq!(window.rest(50), Some(150..150));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    start: u64,
    len: u64,
}

impl Window {
    /// Creates the window of a range; without bytes if that ends before it starts.
    #[must_use]
    pub fn new(range: &Range<u64>) -> Self {
        Self { start: range.start, len: len_of(range) }
    }

    /// Returns the number of bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "as of a source")]
    pub fn len(self) -> u64 {
        self.len
    }

    /// Returns the range of these offsets; `None` if it is not within the window, or ends before it starts.
    #[must_use]
    pub fn part(self, part: Range<u64>) -> Option<Range<u64>> {
        let is_within = part.start <= part.end && part.end <= self.len;
        is_within.then(|| self.start + part.start..self.start + part.end)
    }

    /// Returns the range of `size` bytes at an offset; `None` if it is not within the window.
    #[must_use]
    pub fn sized(self, offset: u64, size: u64) -> Option<Range<u64>> {
        self.part(offset..offset.checked_add(size)?)
    }

    /// Returns the range from an offset to the end; `None` if that is outside of the window.
    #[must_use]
    pub fn rest(self, offset: u64) -> Option<Range<u64>> {
        self.part(offset..self.len)
    }
}
