//! NVIDIA fatbinaries: the contents of `.nv_fatbin` sections.
//!
//! The format is NVIDIA's and undocumented by it; the layout is public knowledge from the header that the
//! CUDA toolkit generates into host code and from open readers, and was checked against shipped libraries.
//!
//! ```text
//! header, 16 bytes          entry, header size from byte 4 (64 at least)
//!   0 u32 magic 0xBA55ED50    0 u16 kind: 1 PTX, 2 ELF       24 u16 minor, 26 u16 major version
//!   4 u16 version, 1          4 u32 header size              28 u32 sm architecture
//!   6 u16 header size, 16     8 u64 payload size, padded     40 u64 flags
//!   8 u64 size of what       16 u32 compressed size, exact   56 u64 uncompressed size
//!         follows            payload follows the header, the next entry follows the payload
//! ```

use std::ops::Range;
use std::{fmt, io};

use device_code::FileFormat;
use target_id::{OffloadKind, Target, Triple};

use crate::context::Context;
use crate::error::Problem;
use crate::image::Description;
use crate::model::{Compression, ContainerKind, PathStep};
use crate::opened::{Children, Found, Opened};
use crate::sequence::Container;
use crate::source::Source;

/// The first four bytes: `0xBA55ED50`, little-endian.
pub(crate) const MAGIC: [u8; 4] = [0x50, 0xed, 0x55, 0xba];

pub(crate) const HEADER_LEN: u64 = 16;
pub(crate) const ENTRY_LEN: u64 = 64;

const FLAG_COMPRESSED_LZ4: u64 = 0x2000;
const FLAG_COMPRESSED_ZSTD: u64 = 0x8000;
/// Seen in what the `fatbinary` of CUDA 13.5 writes for `sm_90a` and `sm_100f`.
const FLAG_ARCHITECTURE_SPECIFIC: u64 = 0x10_0000;
const FLAG_FAMILY_SPECIFIC: u64 = 0x20_0000;

/// Returns the bytes at an offset in a header.
fn field<const N: usize>(header: &[u8], at: usize) -> Option<[u8; N]> {
    header.get(at..)?.first_chunk().copied()
}

/// A malformed NVIDIA fatbinary. Offsets count from its magic.
#[derive(Clone, Debug)]
pub(crate) enum Error {
    TruncatedHeader { available: u64 },
    Version { version: u16, header_size: u16 },
    BeyondEnd { size: u64, available: u64 },
    EntryBeyondEnd { index: usize, offset: u64, end: u64, available: u64 },
    EntryHeaderSize { index: usize, offset: u64, header_size: u32 },
    CompressedSize { index: usize, offset: u64, exact: u64, padded: u64 },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TruncatedHeader { available } => {
                write!(f, "fatbinary header needs 16 bytes, {available} are left")
            }
            Self::Version { version, header_size } => write!(
                f,
                "fatbinary version {version} with a header of {header_size} bytes, expected version 1 with 16"
            ),
            Self::BeyondEnd { size, available } => {
                write!(f, "fatbinary promises {size} bytes after its header, {available} are left")
            }
            Self::EntryBeyondEnd { index, offset, end, available } => write!(
                f,
                "fatbinary entry {index} at {offset:#x} reaches to {end:#x}, beyond the end of the fatbinary at {available:#x}"
            ),
            Self::EntryHeaderSize { index, offset, header_size } => write!(
                f,
                "fatbinary entry {index} at {offset:#x} has a header size of {header_size}, expected at least 64"
            ),
            Self::CompressedSize { index, offset, exact, padded } => write!(
                f,
                "fatbinary entry {index} at {offset:#x} has {exact} bytes of compressed payload in a space of {padded}"
            ),
        }
    }
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Ptx,
    Elf,
    /// For NVIDIA's linker, which compiles it: seen in libcufft and libcusparse.
    LinkTimeIr,
    Other,
}

/// One entry; offsets count from the magic of the fatbinary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: EntryKind,
    pub(crate) sm: u32,
    /// The text after the number in the name of the architecture: `a`, `f` or nothing.
    pub(crate) suffix: &'static str,
    /// First byte and length of the payload as stored, without padding.
    pub(crate) offset: u64,
    pub(crate) stored_size: u64,
    /// Name of the codec and the size it decompresses to.
    pub(crate) compression: Option<(&'static str, u64)>,
    /// The start of the next entry.
    pub(crate) end: u64,
}

impl Entry {
    /// Returns whether it is code for some NVIDIA GPU. Where only a magic hints at a fatbinary, an entry may be
    /// anything.
    pub(crate) fn is_plausible(&self) -> bool {
        self.kind != EntryKind::Other && (10..1000).contains(&self.sm) && self.stored_size > 0
    }
}

/// Reads the header: the length of the whole fatbinary. `available` counts from the magic to the end of the
/// section or file.
pub(crate) fn parse_header(prefix: &[u8], available: u64) -> Result<u64, Error> {
    let fields = || Some((field(prefix, 4)?, field(prefix, 6)?, field(prefix, 8)?));
    let Some((version, header_size, size)) = fields() else {
        return Err(Error::TruncatedHeader { available });
    };
    let (version, header_size) = (u16::from_le_bytes(version), u16::from_le_bytes(header_size));
    let size = u64::from_le_bytes(size);
    if version != 1 || u64::from(header_size) != HEADER_LEN {
        return Err(Error::Version { version, header_size });
    }
    let rest = available.saturating_sub(HEADER_LEN);
    if size > rest {
        return Err(Error::BeyondEnd { size, available: rest });
    }
    Ok(HEADER_LEN + size)
}

/// Reads the entry whose header starts `offset` bytes into a fatbinary of `len` bytes. `bytes` are the first bytes at
/// that offset, 64 if there are that many.
pub(crate) fn parse_entry(
    bytes: &[u8],
    index: usize,
    offset: u64,
    len: u64,
) -> Result<Entry, Error> {
    let beyond = |end: u64| Error::EntryBeyondEnd { index, offset, end, available: len };
    let Some(raw) = RawEntry::read(bytes) else {
        return Err(beyond(offset.saturating_add(ENTRY_LEN)));
    };
    let header_size = raw.header_size;
    if u64::from(header_size) < ENTRY_LEN {
        return Err(Error::EntryHeaderSize { index, offset, header_size });
    }
    let padded = raw.payload_size;
    let payload = offset.saturating_add(u64::from(header_size));
    let end = payload.saturating_add(padded);
    if end > len {
        return Err(beyond(end));
    }
    let codec = match raw.flags {
        flags if flags & FLAG_COMPRESSED_LZ4 != 0 => Some("lz4"),
        flags if flags & FLAG_COMPRESSED_ZSTD != 0 => Some("zstd"),
        _ => None,
    };
    let exact = u64::from(raw.compressed_size);
    let stored_size = if codec.is_some() && exact != 0 { exact } else { padded };
    if stored_size > padded {
        return Err(Error::CompressedSize { index, offset, exact, padded });
    }
    Ok(Entry {
        kind: match raw.kind {
            1 => EntryKind::Ptx,
            2 => EntryKind::Elf,
            8 => EntryKind::LinkTimeIr,
            _ => EntryKind::Other,
        },
        sm: raw.sm,
        suffix: match raw.flags {
            flags if flags & FLAG_ARCHITECTURE_SPECIFIC != 0 => "a",
            flags if flags & FLAG_FAMILY_SPECIFIC != 0 => "f",
            _ => "",
        },
        offset: payload,
        stored_size,
        compression: codec.map(|codec| (codec, raw.uncompressed_size)),
        end,
    })
}

/// The fields of an entry's header that are needed.
struct RawEntry {
    kind: u16,
    header_size: u32,
    payload_size: u64,
    compressed_size: u32,
    sm: u32,
    flags: u64,
    uncompressed_size: u64,
}

impl RawEntry {
    fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 64] = bytes.first_chunk()?;
        Some(RawEntry {
            kind: u16::from_le_bytes(field(bytes, 0)?),
            header_size: u32::from_le_bytes(field(bytes, 4)?),
            payload_size: u64::from_le_bytes(field(bytes, 8)?),
            compressed_size: u32::from_le_bytes(field(bytes, 16)?),
            sm: u32::from_le_bytes(field(bytes, 28)?),
            flags: u64::from_le_bytes(field(bytes, 40)?),
            uncompressed_size: u64::from_le_bytes(field(bytes, 56)?),
        })
    }
}

/// Opens the fatbinary at the start of the window.
pub(crate) fn open(
    source: &mut Source<'_>,
    window: &Range<u64>,
    ordinal: usize,
) -> io::Result<Result<Container, Problem>> {
    let start = window.start;
    Ok(parse_header(&source.peek(window, 16)?, window.end - start).map_err(Problem::from).map(
        |len| {
            let end = start + len;
            let entries = Entries { start, len, offset: HEADER_LEN, index: 0 };
            let step = PathStep::new(ContainerKind::NvFatbin, ordinal.to_string());
            (Opened::here(step, start..end, entries), Some(end))
        },
    ))
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
        let head = source.peek(&(self.start + self.offset..self.start + self.len), 64)?;
        match parse_entry(&head, self.index, self.offset, self.len) {
            Ok(entry) => {
                let start = self.start + entry.offset;
                found.image(start..start + entry.stored_size, entry.description());
                self.offset = entry.end;
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

impl Entry {
    fn description(&self) -> Description {
        let triple = Some(Triple::parse("nvptx64-nvidia-cuda"));
        let id = format!("sm_{}{}", self.sm, self.suffix);
        let target = Target::new(Some(OffloadKind::Cuda), triple, &id);
        let mut description = Description::new(ContainerKind::NvFatbin, target.into());
        description.info.offset_in_container = self.offset;
        if let Some((method, uncompressed_size)) = self.compression {
            let stored_size = self.stored_size;
            description.info.compression =
                Some(Compression { method, stored_size, uncompressed_size });
            // The first bytes of compressed code say nothing.
            description.format = Some(match self.kind {
                EntryKind::Ptx => FileFormat::Ptx,
                EntryKind::Elf => FileFormat::Cubin,
                EntryKind::LinkTimeIr | EntryKind::Other => FileFormat::Unknown,
            });
        }
        description
    }
}
