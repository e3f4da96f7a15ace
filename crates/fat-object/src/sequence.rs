//! Containers that follow each other.

use std::io;
use std::ops::Range;

use bundle_format::text::is_text_bundle;
use device_code::FileFormat;

use crate::containers::{self, ContainerStart};
use crate::context::Context;
use crate::error::Error;
use crate::model::ContainerKind;
use crate::opened::{Children, Finds, Walked};
use crate::source::Source;

/// Containers with zeros between and after them.
pub(crate) struct Sequence {
    window: Range<u64>,
    /// `true` if other bytes may follow.
    is_mixed: bool,
    at: u64,
    ordinal: usize,
    end: u64,
}

impl Sequence {
    pub(crate) fn new(window: Range<u64>, is_mixed: bool) -> Self {
        let Range { start, end } = window;
        Sequence { window, is_mixed, at: start, ordinal: 0, end }
    }
}

impl Children for Sequence {
    fn next(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<bool> {
        let before = self.at;
        let at = source.skip_zeros(&(before..self.window.end))?;
        if at >= self.window.end {
            return Ok(false);
        }
        let rest = at..self.window.end;
        let head = source.peek(&rest, FileFormat::SNIFF_LEN)?;
        if self.ordinal > 0 && cx.directly_in(ContainerKind::Member) && is_member_padding(&head) {
            return Ok(false);
        }
        let format = FileFormat::sniff(&head);
        if containers::is_in_sequences(format) && !is_text_bundle(&head) {
            let place = ContainerStart { window: &rest, ordinal: self.ordinal };
            let end = containers::open(cx, source, format, &place, found)?;
            self.ordinal += 1;
            // A container always takes at least its header; the check only guards the loop.
            self.at = end.filter(|&end| end > at).unwrap_or(self.window.end);
            return Ok(self.at < self.window.end);
        }
        if self.is_mixed && self.ordinal > 0 {
            self.end = before;
            return Ok(false);
        }
        let first = head.get(..8).unwrap_or(&head);
        let after = at - self.window.start;
        let error = match self.ordinal {
            0 => Error::unknown_contents(first),
            _ => Error::trailing_data(after, first),
        };
        found.finding(at, error);
        Ok(false)
    }

    fn walked(&mut self) -> Walked {
        Walked { end: Some(self.end), ..Walked::default() }
    }
}

/// One container whose place is known.
pub(crate) struct One {
    window: Range<u64>,
    format: FileFormat,
    end: Option<u64>,
}

impl One {
    pub(crate) fn new(window: Range<u64>, format: FileFormat) -> Self {
        One { window, format, end: None }
    }
}

impl Children for One {
    fn next(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<bool> {
        let place = ContainerStart { window: &self.window, ordinal: 0 };
        self.end = containers::open(cx, source, self.format, &place, found)?;
        Ok(false)
    }

    /// Returns the end. Without one, the container is damaged after all, or only decompression shows its size.
    fn walked(&mut self) -> Walked {
        Walked { end: Some(self.end.unwrap_or(self.window.start)), ..Walked::default() }
    }
}

/// Returns whether these last bytes of a member fill it up to a multiple of 8, as in archives for Apple's linker, where the
/// padding counts as part of the member.
fn is_member_padding(rest: &[u8]) -> bool {
    rest.len() < 8 && rest.iter().all(|&byte| byte == b'\n')
}
