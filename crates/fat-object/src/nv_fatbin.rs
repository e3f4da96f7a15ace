//! NVIDIA fatbinaries: the contents of `.nv_fatbin` sections.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use ::nv_fatbin::{Architecture, Codec, ConcatenatedImage, Entry, Fatbin, Kind};
use device_code::FileFormat;
use target_id::{OffloadKind, Target, Triple};

use crate::code::{self, Undone};
use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::image::Description;
use crate::model::{Compression, ContainerKind, Enter, PathStep};
use crate::opened::{Children, Closed, Container, Content, Finds, Inner, Inside, Known, Opened};
use crate::source::{Origin, Source};

/// Bytes before the first entry.
const HEADER_LEN: u64 = 16;

/// Bytes of an entry that tell all that a walk needs.
const ENTRY_LEN: usize = 64;

/// The largest header of an entry with several images that is read: it has some 100 bytes for each of them.
const MOST_OF_TABLE: u64 = 1 << 20;

/// Returns the size of a fatbinary whose first entry is code for some NVIDIA GPU, or for several: it may be anything where only
/// a magic shows a fatbinary.
pub(crate) fn size(head: &[u8], available: u64) -> Option<u64> {
    let fatbin = Fatbin::parse_prefix(head, available).ok();
    fatbin.map(|fatbin| fatbin.size()).filter(|&size| {
        let entry = head.get(16..).and_then(|rest| Entry::parse(rest, 0, HEADER_LEN, size).ok());
        entry.is_some_and(|entry| {
            let is_of_a_gpu = (10..1000).contains(&entry.architecture().sm());
            let is_code = match entry.kind() {
                Kind::CONCATENATED => true,
                Kind::PTX | Kind::ELF | Kind::LTO_IR | Kind::RELOCATABLE_PTX | Kind::TILE_IR => {
                    is_of_a_gpu
                }
                _ => false,
            };
            is_code && entry.stored_size() > 0
        })
    })
}

/// Opens the fatbinary at the start of the window.
pub(crate) fn open(
    source: &mut Source<'_>,
    window: &Range<u64>,
    ordinal: usize,
) -> io::Result<Result<Container, Error>> {
    let start = window.start;
    let head = source.peek(window, 16)?;
    let opened = Fatbin::parse_prefix(&head, window.end - start).map(|fatbin| {
        let len = fatbin.size();
        let end = start + len;
        let entries = Entries { start, len, offset: HEADER_LEN, index: 0 };
        let step = PathStep::new(ContainerKind::NvFatbin, ordinal.to_string());
        (Opened::here(step, start..end, entries), Some(end))
    });
    Ok(opened.map_err(|error| malformed(&error)))
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
        found: &mut Finds,
    ) -> io::Result<bool> {
        if self.offset >= self.len {
            return Ok(false);
        }
        let window = self.start + self.offset..self.start + self.len;
        let head = source.peek(&window, ENTRY_LEN)?;
        let entry = match Entry::parse(&head, self.index, self.offset, self.len) {
            Ok(entry) => entry,
            Err(error) => {
                found.finding(self.start, malformed(&error));
                return Ok(false);
            }
        };
        let Range { start, end } = entry.range();
        let payload = self.start + start..self.start + end;
        self.offset = entry.end();
        self.index += 1;
        if entry.kind() == Kind::CONCATENATED && entry.codec().is_none_or(is_readable) {
            let head = window.start..payload.start;
            match concatenated(source, &head, &entry)? {
                Ok(images) => found.container(images.opened(&entry, payload)),
                Err(error) => found.finding(window.start, error),
            }
        } else {
            found.image(payload, description(&entry));
        }
        Ok(true)
    }
}

fn is_readable(codec: Codec) -> bool {
    !matches!(codec, Codec::Scrambled | Codec::Unknown)
}

/// The images of an entry that has several, by their places in its code.
struct Concatenated(Vec<(Range<u64>, Description)>);

/// Reads the table of an entry with several images, which is in its header.
fn concatenated(
    source: &mut Source<'_>,
    header: &Range<u64>,
    entry: &Entry<'_>,
) -> io::Result<Result<Concatenated, Error>> {
    let size = header.end - header.start;
    if size > MOST_OF_TABLE {
        let message = format!("a table has {size} bytes: at most {MOST_OF_TABLE} are read");
        return Ok(Err(Error::new(ErrorKind::Limit, message)));
    }
    let bytes = source.read_range(header)?;
    let images = Entry::parse(&bytes, entry.index(), entry.offset(), entry.end())
        .and_then(|entry| entry.concatenated());
    Ok(images.map_err(|error| malformed(&error)).map(|images| {
        let described = |image: ConcatenatedImage<'_>| {
            let mut description = of_architecture(image.architecture());
            description.info.offset_in_container = image.range().start;
            (image.range(), description)
        };
        Concatenated(images.into_iter().map(described).collect())
    }))
}

impl Concatenated {
    /// Returns the entry as a container of its images.
    fn opened(self, entry: &Entry<'_>, payload: Range<u64>) -> Opened {
        let compression = compression(entry);
        let inside = match compression {
            Some(own) => Inside::Closed(Box::new(ClosedImages(self, own))),
            None => Inside::Here(Content::known(Known(self.found(payload.start)))),
        };
        let step = PathStep::new(ContainerKind::Concatenated, entry.index().to_string());
        Opened { step, window: payload, compression, inside }
    }

    /// Returns the images of code that starts there.
    fn found(self, start: u64) -> Finds {
        let mut found = Finds::default();
        for (Range { start: from, end }, description) in self.0 {
            found.image(start + from..start + end, description);
        }
        found
    }

    /// Decompresses the code in `window`.
    fn open(
        self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        window: &Range<u64>,
        compression: Compression,
    ) -> io::Result<Result<Inner, Error>> {
        let uncompressed_size = compression.uncompressed_size;
        let room = match cx.room_for(uncompressed_size) {
            Ok(room) => room,
            Err(error) => return Ok(Err(error)),
        };
        let code = code::decompressed(source, window, compression, room, &mut cx.decompressed)?;
        Ok(match code {
            Ok(code) => {
                cx.add_bytes(code.len() as u64);
                let source = Source::of_shared(Arc::new(code), Origin::Decompressed);
                let content = Content::known(Known(self.found(0)));
                Ok(Inner { source, content, held: 0, hash: None })
            }
            Err(Undone::Codec(error)) => Err(malformed(&error)),
            Err(Undone::Limit(limit)) => Err(Error::decompressed_in_all(uncompressed_size, limit)),
        })
    }
}

/// A compressed entry with several images that nobody opened yet.
struct ClosedImages(Concatenated, Compression);

impl Closed for ClosedImages {
    fn open(
        self: Box<Self>,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        window: &Range<u64>,
        _: Enter,
    ) -> io::Result<Result<Inner, Error>> {
        let ClosedImages(images, own) = *self;
        images.open(cx, source, window, own)
    }
}

#[cold]
fn malformed(error: &::nv_fatbin::Error) -> Error {
    Error::malformed(ContainerKind::NvFatbin, error.to_string())
}

/// Returns the compression of an entry.
fn compression(entry: &Entry<'_>) -> Option<Compression> {
    entry.codec().map(|codec| Compression {
        method: codec.name(),
        format_version: None,
        stored_size: entry.stored_size(),
        uncompressed_size: entry.size(),
    })
}

fn of_architecture(architecture: Architecture) -> Description {
    let triple = Some(Triple::parse("nvptx64-nvidia-cuda"));
    let target = Target::new(Some(OffloadKind::Cuda), triple, &architecture.to_string());
    Description::new(ContainerKind::NvFatbin, target.into())
}

fn description(entry: &Entry<'_>) -> Description {
    let mut description = of_architecture(entry.architecture());
    description.info.offset_in_container = entry.range().start;
    description.info.fatbinary_entry = Some(entry.offset()..entry.end());
    description.info.compression = compression(entry);
    let is_ptx = matches!(entry.kind(), Kind::PTX | Kind::RELOCATABLE_PTX);
    description.info.code_version = is_ptx.then(|| entry.code_version());
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
