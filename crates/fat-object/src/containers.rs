//! The formats of containers that lie in files, sections and streams: a row for each.

use std::io;
use std::ops::Range;

use ::nv_fatbin::Fatbin;
use byte_parts::Budget;
use device_code::FileFormat;

use crate::context::Context;
use crate::error::Error;
use crate::opened::{Container, Finds, Start};
use crate::source::Source;
use crate::{bundle, compressed, gzip, hcf, nv_fatbin, offload, syclbin};

/// A place where a container starts.
pub(crate) struct ContainerStart<'a> {
    pub(crate) window: &'a Range<u64>,
    /// Position among its neighbours.
    pub(crate) ordinal: usize,
}

/// Opens the container; `None` if it is passed over.
type Open = fn(
    &mut Context<'_>,
    &mut Source<'_>,
    &ContainerStart<'_>,
    &mut Finds,
) -> io::Result<Result<Option<Container>, Error>>;

/// Returns whether a container with a valid header starts at the window with these first bytes. The budget counts the
/// bytes of headers that are read.
type IsStart = fn(&mut Source<'_>, &Range<u64>, &[u8], &mut Budget) -> io::Result<Start>;

/// Returns the size of a container, if all of its headers are in order. It starts at the window with these first bytes;
/// the number counts the bytes that are read.
type Size = fn(&mut Source<'_>, &Range<u64>, &[u8], &mut u64) -> io::Result<Option<u64>>;

/// The format of a container.
pub(crate) struct Format {
    format: FileFormat,
    /// The first bytes, as the scan searches for them.
    pub(crate) magic: &'static [u8],
    /// `true` if a file or section may be a sequence of such containers.
    pub(crate) is_in_sequences: bool,
    open: Open,
    /// For sections that nothing but their first bytes give away.
    pub(crate) is_start: Option<IsStart>,
    /// For the scan.
    pub(crate) size: Option<Size>,
}

/// All formats.
pub(crate) static ALL: &[Format] = &[
    Format {
        format: FileFormat::OffloadBinary,
        magic: &offload_binary::MAGIC,
        is_in_sequences: true,
        open: |_, source, at, _| Ok(offload::open(source, at.window, at.ordinal)?.map(Some)),
        is_start: Some(offload::is_start),
        size: Some(offload::size),
    },
    Format {
        format: FileFormat::CompressedBundle,
        magic: &ccob::MAGIC,
        is_in_sequences: true,
        open: |cx, source, at, _| compressed::open(cx, source, at.window, at.ordinal),
        is_start: Some(|_, window, head, _| {
            Ok(Start::of(ccob::Header::parse(head, window.end - window.start).is_ok()))
        }),
        size: Some(|_, window, head, _| Ok(compressed::size(head, window.end - window.start))),
    },
    Format {
        format: FileFormat::Bundle,
        magic: b"__CL",
        is_in_sequences: true,
        open: |cx, source, at, _| Ok(bundle::open(cx, source, at.window, at.ordinal)?.map(Some)),
        is_start: Some(bundle::is_start),
        size: Some(bundle::size),
    },
    Format {
        format: FileFormat::Fatbinary,
        magic: &::nv_fatbin::MAGIC,
        is_in_sequences: true,
        open: |_, source, at, _| Ok(nv_fatbin::open(source, at.window, at.ordinal)?.map(Some)),
        is_start: Some(|_, window, head, _| {
            Ok(Start::of(Fatbin::parse_prefix(head, window.end - window.start).is_ok()))
        }),
        size: Some(|_, window, head, _| Ok(nv_fatbin::size(head, window.end - window.start))),
    },
    Format {
        format: FileFormat::Hcf,
        magic: hcf::MAGIC,
        is_in_sequences: true,
        open: |_, source, at, _| Ok(hcf::open(source, at.window, at.ordinal)?.map(Some)),
        is_start: None,
        size: Some(hcf::size),
    },
    Format {
        format: FileFormat::Syclbin,
        magic: b"IBYS",
        is_in_sequences: true,
        open: |_, source, at, _| Ok(syclbin::open(source, at.window, at.ordinal)?.map(Some)),
        is_start: None,
        size: None,
    },
    Format {
        format: FileFormat::Gzip,
        magic: &gzip::MAGIC,
        is_in_sequences: false,
        open: |cx, source, at, found| gzip::open(cx, source, at.window, at.ordinal, found),
        is_start: None,
        size: Some(gzip::size),
    },
];

/// Returns the row of a format; `None` if it is not a container here.
pub(crate) fn of(format: FileFormat) -> Option<&'static Format> {
    ALL.iter().find(|row| row.format == format)
}

/// Returns whether a file or section of this format may be a sequence of containers.
pub(crate) fn is_in_sequences(format: FileFormat) -> bool {
    of(format).is_some_and(|row| row.is_in_sequences)
}

/// Opens the container of this format at a place.
///
/// Adds it to `found`, or what is wrong with it. Returns where it ends; `None` after a fault that hides the end.
pub(crate) fn open(
    cx: &mut Context<'_>,
    source: &mut Source<'_>,
    format: FileFormat,
    at: &ContainerStart<'_>,
    found: &mut Finds,
) -> io::Result<Option<u64>> {
    let Some(row) = of(format) else { return Ok(None) };
    match (row.open)(cx, source, at, found)? {
        Ok(Some((opened, end))) => {
            found.container(opened);
            Ok(end)
        }
        Ok(None) => Ok(None),
        Err(error) => {
            found.finding(at.window.start, error);
            Ok(None)
        }
    }
}

/// Returns whether a container may [start](starts_with) at an offset of memory. One byte is not enough: functions start with `push`.
pub(crate) fn may_start_at(memory: &[u8], offset: u64) -> bool {
    let start = usize::try_from(offset).ok().and_then(|offset| memory.get(offset..));
    let mut rows = ALL.iter().filter(|row| row.is_start.is_some());
    start.is_some_and(|start| rows.any(|row| start.starts_with(row.magic)))
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
    match of(FileFormat::sniff(&head)).and_then(|row| row.is_start) {
        Some(is_start) => is_start(source, window, &head, headers),
        None => Ok(Start::Nothing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data compressed by gzip is a container only if there is device code in it.
    #[test]
    fn each_format_is_a_container() {
        for row in ALL.iter().filter(|row| row.format != FileFormat::Gzip) {
            assert!(row.format.is_container(), "FileFormat::is_container lacks {}", row.format);
        }
    }
}
