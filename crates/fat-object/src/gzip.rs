//! Streams of gzip that hold device code: programs embed PTX so (RFC 1952).

use std::io;
use std::ops::Range;
use std::sync::Arc;

use device_code::FileFormat;

use crate::bare::is_device_elf;
use crate::context::Context;
use crate::error::Error;
use crate::inflate::{self, Inflated};
use crate::loose::Loose;
use crate::model::{Compression, ContainerKind, PathStep};
use crate::opened::{Container, Content, Finds, Inner, Inside, Opened};
use crate::source::{Origin, Source};

/// The first bytes of a stream: gzip's magic, and the only method.
pub(crate) const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

/// Bytes of the header without its optional fields, and of the trailer: CRC-32 and size of the contents.
const HEADER: usize = 10;
const TRAILER: u64 = 8;

/// Bytes that the optional fields may have: a name, a comment.
const MOST_OF_HEADER: usize = 512;

/// Compressed bytes that are looked at to see what they hold.
const PEEKED: usize = 4096;

/// Returns all that follows as the size of a stream that holds device code, according to its first bytes.
pub(crate) fn size(
    source: &mut Source<'_>,
    window: &Range<u64>,
    _: &[u8],
    read: &mut u64,
) -> io::Result<Option<u64>> {
    let bytes = source.peek(window, PEEKED)?;
    let Some(body) = header_len(&bytes).and_then(|len| bytes.get(len..)) else { return Ok(None) };
    *read += bytes.len() as u64;
    let start = inflate::start(body, FileFormat::SNIFF_LEN);
    let holds_code = is_device_code(FileFormat::sniff(&start));
    Ok(holds_code.then_some(window.end - window.start))
}

/// Opens the stream at the start of the window. Nothing but its own bytes tells where it ends, so it is decoded here.
pub(crate) fn open(
    cx: &mut Context<'_>,
    source: &mut Source<'_>,
    window: &Range<u64>,
    ordinal: usize,
    found: &mut Finds,
) -> io::Result<Result<Option<Container>, Error>> {
    if cx.options.only_sized {
        return Ok(Ok(None));
    }
    let head = source.peek(window, MOST_OF_HEADER)?;
    let Some(header) = header_len(&head) else { return Ok(Ok(None)) };
    let body = window.start + header as u64..window.end;
    let Inflated { bytes, consumed } = match inflate::all(source, &body, cx.decompression_budget())?
    {
        Ok(inflated) => inflated,
        Err(fault) => {
            cx.decompressed.spend(cx.decompressed.left().min(fault.inflated));
            return Ok(Err(of_stream(&format!("cannot be decompressed: {}", fault.reason))));
        }
    };
    let len = bytes.len() as u64;
    cx.decompressed.spend(len);
    cx.add_bytes(len);
    let at = body.start + consumed;
    let end = window.end.min(at + TRAILER);
    if let Some((offset, problem)) = trailer_fault(&source.read_range(&(at..end))?, &bytes) {
        found.finding(at + offset, problem);
    }
    let compression = Compression {
        method: "gzip",
        format_version: None,
        stored_size: end - window.start,
        uncompressed_size: len,
    };
    let format = FileFormat::sniff(bytes.get(..FileFormat::SNIFF_LEN).unwrap_or(&bytes));
    let content = if is_image(format) {
        Content::known(Loose { kind: ContainerKind::Gzip, window: 0..len, format })
    } else {
        Content::One(0..len, format)
    };
    let source = Source::of_shared(Arc::new(bytes), Origin::Decompressed);
    let opened = Opened {
        step: PathStep::new(ContainerKind::Gzip, ordinal.to_string()),
        window: window.start..end,
        compression: Some(compression),
        inside: Inside::Elsewhere(Inner { source, content, held: 0, hash: None }),
    };
    Ok(Ok(Some((opened, Some(end)))))
}

/// Returns what is wrong with the trailer of a stream, and where in it.
fn trailer_fault(trailer: &[u8], contents: &[u8]) -> Option<(u64, Error)> {
    let number = |at: usize| trailer.get(at..)?.first_chunk().copied().map(u32::from_le_bytes);
    let (Some(expected), Some(size)) = (number(0), number(4)) else {
        let found = trailer.len();
        let what = format!("ends early: expected a trailer of 8 bytes, found {found}");
        return Some((0, of_stream(&what)));
    };
    let found = crc32(contents);
    if found != expected {
        let what = format!("fails its checksum: expected CRC-32 {expected:08x}, found {found:08x}");
        return Some((0, of_stream(&what)));
    }
    // Modulo 2^32.
    let found = contents.len() as u64 & u64::from(u32::MAX);
    (found != u64::from(size)).then(|| {
        let what = format!("has another size than it says: expected {size} bytes, found {found}");
        (4, of_stream(&what))
    })
}

#[cold]
fn of_stream(what: &str) -> Error {
    Error::malformed(ContainerKind::Gzip, format!("the gzip stream with device code {what}"))
}

/// Returns the checksum of gzip (RFC 1952, section 8).
fn crc32(bytes: &[u8]) -> u32 {
    let bit = |crc: u32, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1));
    let mut table = [0; 256];
    for (byte, entry) in (0..).zip(&mut table) {
        *entry = (0..8).fold(byte, bit);
    }
    !bytes.iter().fold(!0_u32, |crc, &byte| {
        let [low, ..] = crc.to_le_bytes();
        #[expect(clippy::indexing_slicing, reason = "a byte is less than 256")]
        let entry = table[usize::from(low ^ byte)];
        (crc >> 8) ^ entry
    })
}

fn is_image(format: FileFormat) -> bool {
    format == FileFormat::Ptx || is_device_elf(format)
}

fn is_device_code(format: FileFormat) -> bool {
    is_image(format)
        || matches!(
            format,
            FileFormat::Fatbinary | FileFormat::CompressedBundle | FileFormat::OffloadBinary
        )
}

/// Returns the length of the header; `None` if it is not a string, or too long.
fn header_len(bytes: &[u8]) -> Option<usize> {
    const CHECKSUM: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const RESERVED: u8 = 0xe0;
    if !bytes.starts_with(&MAGIC) {
        return None;
    }
    let flags = *bytes.get(3)?;
    if flags & RESERVED != 0 {
        return None;
    }
    let mut at = HEADER;
    if flags & EXTRA != 0 {
        let len = bytes.get(at..)?.first_chunk().copied().map(u16::from_le_bytes)?;
        at += 2 + usize::from(len);
    }
    for flag in [NAME, COMMENT] {
        if flags & flag != 0 {
            at += bytes.get(at..)?.iter().position(|&byte| byte == 0)? + 1;
        }
    }
    if flags & CHECKSUM != 0 {
        at += 2;
    }
    (at <= bytes.len().min(MOST_OF_HEADER)).then_some(at)
}
