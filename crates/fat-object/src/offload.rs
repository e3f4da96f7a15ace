//! Offload binaries: from their entries to images.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use byte_parts::Budget;
use offload_binary::{Entry, OffloadBinary};

use crate::compressed::open_compressed_binary;
use crate::context::Context;
use crate::error::Problem;
use crate::image::{Description, OffloadBinaryEntry};
use crate::model::{ContainerKind, PathStep};
use crate::opened::{Children, Found, Opened};
use crate::sequence::Container;
use crate::source::Source;
use crate::syclbin;

/// Opens the offload binary at the start of the window.
pub(crate) fn open(
    source: &mut Source<'_>,
    window: &Range<u64>,
    ordinal: usize,
) -> io::Result<Result<Container, Problem>> {
    let prefix = prefix(source, window)?;
    let (start, available) = (window.start, window.end - window.start);
    let size = match OffloadBinary::parse_prefix(&prefix, available) {
        Ok(binary) => binary.size(),
        Err(error) => match error.compressed() {
            Some(header) => {
                return open_compressed_binary(source, window, ordinal, *header).map(Ok);
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
        found: &mut Found,
    ) -> io::Result<Result<(), Problem>> {
        // Strings may share bytes.
        for (key, value) in entry.strings() {
            if let Err(error) = cx.take_names(key.len() as u64 + value.len() as u64) {
                return Ok(Err(error));
            }
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
        found: &mut Found,
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
    headers: &mut Budget,
) -> io::Result<bool> {
    let prefix = prefix(source, window)?;
    headers.spend(prefix.len() as u64);
    let parsed = OffloadBinary::parse_prefix(&prefix, window.end - window.start);
    Ok(parsed.is_ok() || parsed.is_err_and(|error| error.compressed().is_some()))
}
