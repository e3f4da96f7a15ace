//! NVIDIA fatbinaries: the contents of `.nv_fatbin` sections.

use std::io;
use std::ops::Range;

use ::nv_fatbin::{Entry, Fatbin, Kind};
use device_code::FileFormat;
use target_id::{OffloadKind, Target, Triple};

use crate::context::Context;
use crate::error::Problem;
use crate::image::Description;
use crate::model::{Compression, ContainerKind, PathStep};
use crate::opened::{Children, Found, Opened};
use crate::sequence::Container;
use crate::source::Source;

/// Bytes before the first entry.
pub(crate) const HEADER_LEN: u64 = 16;

/// Bytes of an entry that tell all that a walk needs.
const ENTRY_LEN: usize = 64;

/// Returns whether the first entry is code for some NVIDIA GPU: it may be anything where only a magic tells of a fatbinary.
pub(crate) fn is_plausible(entry: &Entry<'_>) -> bool {
    let is_known = matches!(entry.kind(), Kind::PTX | Kind::ELF | Kind::LTO_IR);
    is_known && (10..1000).contains(&entry.architecture().sm()) && entry.stored_size() > 0
}

/// Opens the fatbinary at the start of the window.
pub(crate) fn open(
    source: &mut Source<'_>,
    window: &Range<u64>,
    ordinal: usize,
) -> io::Result<Result<Container, Problem>> {
    let start = window.start;
    let head = source.peek(window, 16)?;
    let opened = Fatbin::parse_prefix(&head, window.end - start).map(|fatbin| {
        let len = fatbin.size();
        let end = start + len;
        let entries = Entries { start, len, offset: HEADER_LEN, index: 0 };
        let step = PathStep::new(ContainerKind::NvFatbin, ordinal.to_string());
        (Opened::here(step, start..end, entries), Some(end))
    });
    Ok(opened.map_err(Problem::from))
}

/// The entries of a fatbinary.
struct Entries {
    start: u64,
    len: u64,
    offset: u64,
    index: usize,
}

impl Children for Entries {
    fn next(
        &mut self,
        _: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Found,
    ) -> io::Result<bool> {
        if self.offset >= self.len {
            return Ok(false);
        }
        let window = self.start + self.offset..self.start + self.len;
        let head = source.peek(&window, ENTRY_LEN)?;
        match Entry::parse(&head, self.index, self.offset, self.len) {
            Ok(entry) => {
                let range = entry.range();
                found.image(self.start + range.start..self.start + range.end, description(&entry));
                self.offset = entry.end();
                self.index += 1;
                Ok(true)
            }
            Err(error) => {
                found.finding(self.start, error);
                Ok(false)
            }
        }
    }
}

fn description(entry: &Entry<'_>) -> Description {
    let triple = Some(Triple::parse("nvptx64-nvidia-cuda"));
    let id = entry.architecture().to_string();
    let target = Target::new(Some(OffloadKind::Cuda), triple, &id);
    let mut description = Description::new(ContainerKind::NvFatbin, target.into());
    description.info.offset_in_container = entry.range().start;
    if let Some(codec) = entry.codec() {
        description.info.compression = Some(Compression {
            method: codec.name(),
            stored_size: entry.stored_size(),
            uncompressed_size: entry.size(),
        });
    }
    // The first bytes of compressed code say nothing.
    let is_plain = entry.codec().is_none();
    description.format = match entry.kind() {
        Kind::LTO_IR => Some(FileFormat::LtoIr),
        _ if is_plain => None,
        Kind::PTX | Kind::RELOCATABLE_PTX => Some(FileFormat::Ptx),
        Kind::ELF => Some(FileFormat::Cubin),
        _ => Some(FileFormat::Unknown),
    };
    description
}
