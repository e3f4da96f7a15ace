//! Offload binaries: from their entries to images.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use byte_parts::Budget;
use ccob::Method;
use offload_binary::{CompressedBinary, Entry, OffloadBinary};

use crate::compressed::is_stream_of;
use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::image::{Description, OffloadBinaryEntry};
use crate::model::{Compression, ContainerKind, Enter, PathStep};
use crate::opened::{Children, Closed, Container, Content, Finds, Inner, Inside, Opened, Start};
use crate::source::{Origin, Source};
use crate::text::{lossy, printable};
use crate::{compressed_binary, syclbin};

/// Opens the offload binary at the start of the window.
pub(crate) fn open(
    source: &mut Source<'_>,
    window: &Range<u64>,
    ordinal: usize,
) -> io::Result<Result<Container, Error>> {
    let prefix = prefix(source, window)?;
    let (start, available) = (window.start, window.end - window.start);
    let size = match OffloadBinary::parse_prefix(&prefix, available) {
        Ok(binary) => binary.size(),
        Err(error) => match error.compressed() {
            Some(header) => {
                return open_compressed(source, window, ordinal, *header).map(Ok);
            }
            None => return Ok(Err(error.into())),
        },
    };
    let step = PathStep::new(ContainerKind::OffloadBinary, ordinal.to_string());
    let entries = Entries::new(Arc::new(prefix), available, start);
    let end = start + size;
    Ok(Ok((Opened::here(step, start..end, entries), Some(end))))
}

/// The entries of an offload binary.
pub(crate) struct Entries {
    /// Its headers, tables and strings.
    prefix: Arc<Vec<u8>>,
    available: u64,
    start: u64,
    next: usize,
}

/// Least number of entries that are read together. For large counts a fixed share of all entries is read together,
/// which bounds how often the tables are read.
const TOGETHER: usize = 64;

impl Entries {
    pub(crate) fn new(prefix: Arc<Vec<u8>>, available: u64, start: u64) -> Self {
        Entries { prefix, available, start, next: 0 }
    }

    fn image(
        &self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        entry: &Entry<'_>,
        found: &mut Finds,
    ) -> io::Result<Result<(), Error>> {
        // Strings may share bytes.
        for (key, value) in entry.strings() {
            if let Err(error) = cx.take_names(key.len() as u64 + value.len() as u64) {
                return Ok(Err(error));
            }
        }
        if let Some(repeated) = entry.repeated_key() {
            let key = lossy(repeated.key);
            let message = format!(
                "entry {} has the key \"{}\" {} times: expected once; LLVM's reader takes the last value",
                entry.index(),
                printable(&key),
                repeated.count
            );
            let warning = Error::warning(ErrorKind::RepeatedKey, message);
            found.finding(self.start + repeated.offset, warning);
        }
        let mut description = Description::new(ContainerKind::OffloadBinary, entry.target().into());
        description.info.offset_in_container = entry.image_offset();
        description.info.offload_binary_entry = Some(OffloadBinaryEntry {
            image_kind: entry.image_kind(),
            offload_kind: entry.offload_kind(),
            flags: entry.flags(),
            strings: entry.strings().map(|(k, v)| (k.to_vec(), v.to_vec())).collect(),
        });
        let start = self.start + entry.image_offset();
        let window = start..start + entry.image_size();
        syclbin::check_entry(source, &window, &mut description.info, found)?;
        found.image(window, description);
        Ok(Ok(()))
    }
}

impl Children for Entries {
    fn next(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<bool> {
        let prefix = Arc::clone(&self.prefix);
        let binary = match OffloadBinary::parse_prefix(&prefix, self.available) {
            Ok(binary) => binary,
            Err(error) => {
                found.finding(self.start, error);
                return Ok(false);
            }
        };
        let count = binary.entries().len();
        let together = TOGETHER.max(count / TOGETHER);
        for entry in binary.entries().skip(self.next).take(together) {
            if let Err(error) = self.image(cx, source, &entry, found)? {
                found.finding(self.start, error);
                return Ok(false);
            }
        }
        self.next += together;
        Ok(self.next < count)
    }
}

/// Reads the start of an offload binary with its tables and strings.
pub(crate) fn prefix(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Vec<u8>> {
    source.read_prefix(window, |prefix, available| {
        OffloadBinary::parse_prefix(prefix, available).err().and_then(|error| error.needed())
    })
}

/// Returns whether an offload binary with valid headers starts here. Counts the bytes that it reads against `headers`.
pub(crate) fn is_start(
    source: &mut Source<'_>,
    window: &Range<u64>,
    _: &[u8],
    headers: &mut Budget,
) -> io::Result<Start> {
    if headers.left() == 0 {
        return Ok(Start::Unknown);
    }
    let prefix = prefix(source, window)?;
    headers.spend(prefix.len() as u64);
    let parsed = OffloadBinary::parse_prefix(&prefix, window.end - window.start);
    Ok(Start::of(parsed.is_ok() || parsed.is_err_and(|error| error.compressed().is_some())))
}

/// Returns the size of an offload binary of at least one entry; a stream follows the header of a compressed one.
pub(crate) fn size(
    source: &mut Source<'_>,
    window: &Range<u64>,
    head: &[u8],
    read: &mut u64,
) -> io::Result<Option<u64>> {
    let available = window.end - window.start;
    if let Err(error) = OffloadBinary::parse_prefix(head, available)
        && error.needed().is_none()
    {
        return Ok(error.compressed().and_then(|header| compressed_size(head, header)));
    }
    let prefix = prefix(source, window)?;
    *read += prefix.len() as u64;
    let binary = OffloadBinary::parse_prefix(&prefix, available).ok();
    let binary = binary.filter(|binary| binary.entries().next().is_some());
    Ok(binary.map(|binary| binary.size()))
}

fn compressed_size(head: &[u8], header: &CompressedBinary) -> Option<u64> {
    let stream = head.get(usize::try_from(header.stream().start).ok()?..)?;
    let is_sound = header.entry_count() > 0
        && [Method::ZSTD, Method::ZLIB].into_iter().any(|method| is_stream_of(method, stream));
    is_sound.then(|| header.size())
}

/// Opens the compressed offload binary at the start of the window. Its entries lie in the plain one.
fn open_compressed(
    source: &mut Source<'_>,
    window: &Range<u64>,
    ordinal: usize,
    header: CompressedBinary,
) -> io::Result<Container> {
    let start = window.start;
    let method = compressed_binary::peek_method(source, window, &header)?;
    let compression = Compression {
        method: method.name().unwrap_or("unknown"),
        format_version: None,
        stored_size: header.size(),
        uncompressed_size: header.inflated_size(),
    };
    let available = window.end - start;
    let end = start + header.padded_size().min(available);
    let opened = Opened {
        step: PathStep::new(ContainerKind::OffloadBinary, ordinal.to_string()),
        window: start..start + header.size().min(available),
        compression: Some(compression),
        inside: Inside::Closed(Box::new(ClosedBinary(header))),
    };
    Ok((opened, Some(end)))
}

/// A compressed offload binary that nobody opened yet.
struct ClosedBinary(CompressedBinary);

impl Closed for ClosedBinary {
    fn open(
        self: Box<Self>,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        window: &Range<u64>,
        _: Enter,
    ) -> io::Result<Result<Inner, Error>> {
        open_binary(cx, source, window, &self.0)
    }
}

fn open_binary(
    cx: &mut Context<'_>,
    source: &mut Source<'_>,
    window: &Range<u64>,
    header: &CompressedBinary,
) -> io::Result<Result<Inner, Error>> {
    let uncompressed_size = header.inflated_size();
    let room = match cx.room_for(uncompressed_size) {
        Ok(room) => room,
        Err(error) => return Ok(Err(error)),
    };
    let plain = match compressed_binary::read_plain(source, window, header, room)? {
        Ok((_, plain)) => plain,
        Err(error) => {
            if let Some(error) = error.ccob() {
                cx.spend_on_failure(error, uncompressed_size, header.size());
            }
            return Ok(Err(error));
        }
    };
    cx.decompressed.spend(uncompressed_size);
    cx.add_bytes(plain.len() as u64);
    let plain = Arc::new(plain);
    let len = plain.len() as u64;
    let content = Content::known(Entries::new(Arc::clone(&plain), len, 0));
    let source = Source::of_shared(plain, Origin::Decompressed);
    Ok(Ok(Inner { source, content, held: 0, hash: None }))
}
