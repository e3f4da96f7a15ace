//! Containers that follow each other.

use std::io;
use std::ops::Range;

use byte_parts::Budget;
use device_code::FileFormat;

use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::model::ContainerKind;
use crate::opened::{Children, Found, Object, Walked};
use crate::source::Source;
use crate::{bundle, compressed, gzip, hcf, nv_fatbin, offload, syclbin};

/// Opens the container of this format at the start of `window`.
///
/// Adds it to `found`, or what is wrong with it. Returns where it ends; `None` after a fault that hides the end.
pub(crate) fn open(
    cx: &mut Context<'_>,
    source: &mut Source<'_>,
    window: &Range<u64>,
    format: FileFormat,
    ordinal: usize,
    object: Option<&Object>,
    found: &mut Found,
) -> io::Result<Option<u64>> {
    let opened = match format {
        FileFormat::Bundle => bundle::open(cx, source, window, ordinal, object)?,
        FileFormat::CompressedBundle => match compressed::open(cx, source, window, ordinal)? {
            Ok(Some(opened)) => Ok(opened),
            Ok(None) => return Ok(None),
            Err(error) => Err(error),
        },
        FileFormat::OffloadBinary => offload::open(source, window, ordinal)?,
        FileFormat::Fatbinary => nv_fatbin::open(source, window, ordinal)?,
        FileFormat::Hcf => hcf::open(source, window, ordinal)?,
        FileFormat::Syclbin => syclbin::open(source, window, ordinal)?,
        FileFormat::Gzip => match gzip::open(cx, source, window, ordinal, found)? {
            Ok(Some(opened)) => Ok(opened),
            Ok(None) => return Ok(None),
            Err(error) => Err(error),
        },
        _ => return Ok(None),
    };
    match opened {
        Ok((opened, end)) => {
            found.container(opened);
            Ok(end)
        }
        Err(error) => {
            found.finding(window.start, error);
            Ok(None)
        }
    }
}

/// Containers with zeros between and after them.
pub(crate) struct Sequence {
    window: Range<u64>,
    object: Option<Object>,
    /// `true` if other bytes may follow.
    is_mixed: bool,
    at: u64,
    ordinal: usize,
    end: u64,
}

impl Sequence {
    pub(crate) fn new(window: Range<u64>, object: Option<Object>, is_mixed: bool) -> Self {
        let Range { start, end } = window;
        Sequence { window, object, is_mixed, at: start, ordinal: 0, end }
    }
}

impl Children for Sequence {
    fn next(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Found,
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
        let is_container = match format {
            FileFormat::Bundle => !bundle_format::text::is_text_bundle(&head),
            FileFormat::CompressedBundle
            | FileFormat::OffloadBinary
            | FileFormat::Fatbinary
            | FileFormat::Syclbin
            | FileFormat::Hcf => true,
            _ => false,
        };
        if is_container {
            let object = self.object.as_ref();
            let end = open(cx, source, &rest, format, self.ordinal, object, found)?;
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
            _ => {
                let message = format!(
                    "unrecognized data {after} bytes after the start of the section or file (first bytes {first:02x?})"
                );
                Error::new(ErrorKind::TrailingData, message)
            }
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
        found: &mut Found,
    ) -> io::Result<bool> {
        self.end = open(cx, source, &self.window, self.format, 0, None, found)?;
        Ok(false)
    }

    /// Returns the end. Without one, the container is damaged after all, or only decompression shows its size.
    fn walked(&mut self) -> Walked {
        Walked { end: Some(self.end.unwrap_or(self.window.start)), ..Walked::default() }
    }
}

/// The start of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// No container, or one whose header is damaged.
    Nothing,
    /// A container whose header is in order.
    Container,
    /// Perhaps a container: the budget forbids to look.
    Unknown,
}

/// Returns whether a container with a valid header starts here.
///
/// For sections that nothing but their first bytes give away: programs that deal with these formats, LLVM's own
/// among them, have the magics in their string constants. `headers` counts the bytes of headers that were read.
pub(crate) fn starts_with(
    source: &mut Source<'_>,
    window: &Range<u64>,
    headers: &mut Budget,
) -> io::Result<Start> {
    let head = source.peek(window, 32)?;
    let available = window.end - window.start;
    let sound = match FileFormat::sniff(&head) {
        FileFormat::CompressedBundle => ccob::Header::parse(&head, available).is_ok(),
        FileFormat::Fatbinary => ::nv_fatbin::Fatbin::parse_prefix(&head, available).is_ok(),
        FileFormat::Bundle if !head.starts_with(&bundle_format::MAGIC) => false,
        FileFormat::Bundle | FileFormat::OffloadBinary if headers.left() == 0 => {
            return Ok(Start::Unknown);
        }
        FileFormat::Bundle => bundle::is_start(source, window, headers)?,
        FileFormat::OffloadBinary => offload::is_start(source, window, headers)?,
        _ => false,
    };
    Ok(if sound { Start::Container } else { Start::Nothing })
}

/// Returns whether these last bytes of a member fill it up to a multiple of 8, as in archives for Apple's linker, where the
/// padding counts as part of the member.
fn is_member_padding(rest: &[u8]) -> bool {
    rest.len() < 8 && rest.iter().all(|&byte| byte == b'\n')
}
