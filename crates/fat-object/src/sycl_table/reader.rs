//! Tables of SYCL images, read by address.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use byte_parts::{Budget, Source};

use crate::sycl_table::error::{Error, ErrorKind};
use crate::sycl_table::found::Tables;
use crate::sycl_table::image::{SyclImage, SyclProperty, SyclValue};
use crate::sycl_table::memory::{Memory, Part, number};

/// Bytes of the descriptor of a table: version 1, number of images, address of their descriptors, two null pointers.
const TABLE: usize = 32;
/// Bytes of a property set, of a property, and of an entry of either form.
const SET: usize = 24;
const PROPERTY: usize = 32;
const ENTRY: usize = 32;
const NEW_ENTRY: usize = 56;

/// Bytes that are read where something may refer to.
const JUMP: u64 = 4096;

/// Kinds of images: of Intel's toolchain, and SYCL of LLVM's offload binaries.
const KINDS: [u8; 2] = [4, 8];

/// Offsets in a descriptor of an image.
struct Layout {
    size: usize,
    /// Offset of the start of the image; its end, and both ends of the entries follow.
    image: usize,
    /// Offset of the start of the property sets, if there are any.
    sets: Option<usize>,
}

impl Layout {
    fn of(version: u16) -> Option<Self> {
        Some(match version {
            1 => Layout { size: 80, image: 48, sets: None },
            2 => Layout { size: 96, image: 48, sets: Some(80) },
            3 => Layout { size: 80, image: 32, sets: Some(64) },
            _ => return None,
        })
    }
}

/// Reads the tables of a file.
pub(crate) struct Reader<'a, 's> {
    pub(crate) source: &'a mut Source<'s>,
    pub(crate) memory: &'a Memory,
    /// Start of the host file in the source.
    pub(crate) start: u64,
    /// Bytes of names, of all files.
    pub(crate) names: &'a mut Budget,
    /// Bytes of data that may be searched, and of records.
    pub(crate) searched: Budget,
    pub(crate) records: Budget,
    pub(crate) texts: HashMap<u64, Arc<str>>,
    pub(crate) found: &'a mut Tables,
}

/// The reason why a record is not read: a finding, or the limit.
enum Stop {
    Image(Error),
    File(Error),
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Io(error)
    }
}

impl Reader<'_, '_> {
    /// Finds tables in data, by their descriptors, and reads them.
    pub(crate) fn search(&mut self, data: &[Part]) -> io::Result<()> {
        const PIECE: u64 = 1 << 20;
        for part in data {
            // Sections that do not overlap have no more bytes than the file.
            if !self.searched.take(part.len()) {
                return Ok(());
            }
            // Pointers are aligned.
            let mut at = part.address.next_multiple_of(8) - part.address;
            while part.len().saturating_sub(at) >= TABLE as u64 {
                let len = (part.len() - at).min(PIECE);
                let piece = self.memory.bytes(self.source, part.address + at, len)?;
                let piece = piece.unwrap_or_default();
                for (n, window) in piece.windows(TABLE).step_by(8).enumerate() {
                    let head = number(window, 0);
                    let address = number(window, 8);
                    if head & 0xffff_ffff_0000_ffff == 1
                        && head != 1
                        && address != 0
                        && (number(window, 16), number(window, 24)) == (0, 0)
                    {
                        let count = u16::try_from(head >> 16).unwrap_or_default();
                        let place = part.range.start + at + 8 * n as u64 - self.start;
                        match self.table(place, count, address) {
                            Ok(()) => {}
                            Err(Stop::Image(problem)) => self.found.faults.push(problem),
                            Err(Stop::File(problem)) => {
                                self.found.faults.push(problem);
                                return Ok(());
                            }
                            Err(Stop::Io(error)) => return Err(error),
                        }
                    }
                }
                if len < PIECE {
                    break;
                }
                at += PIECE + 8 - TABLE as u64;
            }
        }
        Ok(())
    }

    /// Reads the table at this offset, if it is one.
    fn table(&mut self, at: u64, count: u16, address: u64) -> Result<(), Stop> {
        // Two small numbers and a pointer can stand anywhere: what decides is where they lead.
        let Some(head) = self.memory.bytes(self.source, address, 8)? else { return Ok(()) };
        self.take(JUMP)?;
        let (version, kind) = version_and_kind(&head);
        let has_format = head.get(3).is_some_and(|&format| format <= 4);
        let is_padded = head.get(4..) == Some(&[0; 4]);
        if !KINDS.contains(&kind) || !(1..16).contains(&version) || !has_format || !is_padded {
            return Ok(());
        }
        let first = self.memory.range(address, 8).map_or(0, |range| range.start - self.start);
        let Some(layout) = Layout::of(version) else {
            let message = format!("expected version 1, 2 or 3, found {version}");
            return Err(of_descriptor(first, &message));
        };
        let len = layout.size as u64 * u64::from(count);
        if self.memory.range(address, len).is_none() {
            let message = format!(
                "expected {count} descriptors at address {address:#x}, which the file does not hold"
            );
            return Err(Stop::Image(Error::malformed(at, "table of SYCL images", &message)));
        }
        self.take(len)?;
        let array = self.memory.bytes(self.source, address, len)?.unwrap_or_default();
        for (n, record) in array.chunks_exact(layout.size).enumerate() {
            let at = first + (n * layout.size) as u64;
            let (found_version, found_kind) = version_and_kind(record);
            if (found_version, found_kind) != (version, kind) {
                let message = format!(
                    "expected version {version} and kind {kind}, found version {found_version} and kind {found_kind}"
                );
                return Err(of_descriptor(at, &message));
            }
            match self.image(at, record, version, &layout) {
                Ok(image) => self.found.images.push(image),
                Err(Stop::Image(problem)) => self.found.faults.push(problem),
                Err(stop) => return Err(stop),
            }
        }
        Ok(())
    }

    fn image(
        &mut self,
        at: u64,
        record: &[u8],
        version: u16,
        layout: &Layout,
    ) -> Result<SyclImage, Stop> {
        let (start, end) = (number(record, layout.image), number(record, layout.image + 8));
        let range = end.checked_sub(start).and_then(|len| self.memory.range(start, len));
        let range = range.ok_or_else(|| range_error(at, "image", start, end))?;
        let target = self.text(at, "target", number(record, 8))?;
        let compile_options = self.text(at, "compile options", number(record, 16))?;
        let link_options = self.text(at, "link options", number(record, 24))?;
        let entries = (number(record, layout.image + 16), number(record, layout.image + 24));
        let kernels = self.kernels(at, entries)?;
        let sets =
            layout.sets.map_or((0, 0), |sets| (number(record, sets), number(record, sets + 8)));
        let properties = self.properties(at, sets)?;
        let format = record.get(3).copied().unwrap_or_default();
        Ok(SyclImage {
            range,
            address: start,
            uncompressed_size: None,
            target,
            version,
            format,
            compile_options,
            link_options,
            properties,
            kernels,
        })
    }

    /// Reads the names of the kernels. Entries have one of two forms, all of them the same.
    fn kernels(&mut self, at: u64, (start, end): (u64, u64)) -> Result<Vec<Arc<str>>, Stop> {
        let head = self.array(at, "entries", 1, start, end)?;
        let is_new = number(&head, 0) == 0 && number(&head, 8) == 0x0008_0001;
        let (size, name) = if is_new { (NEW_ENTRY, 24) } else { (ENTRY, 8) };
        let entries = self.array(at, "entries", size, start, end)?;
        let entries = entries.chunks_exact(size);
        entries.map(|entry| self.text(at, "name of a kernel", number(entry, name))).collect()
    }

    fn properties(&mut self, at: u64, (start, end): (u64, u64)) -> Result<Vec<SyclProperty>, Stop> {
        let mut properties = Vec::new();
        let sets = self.array(at, "property sets", SET, start, end)?;
        for set in sets.chunks_exact(SET) {
            let name = self.text(at, "name of a property set", number(set, 0))?;
            let (start, end) = (number(set, 8), number(set, 16));
            let records = self.array(at, "properties", PROPERTY, start, end)?;
            for record in records.chunks_exact(PROPERTY) {
                properties.push(SyclProperty {
                    set: Arc::clone(&name),
                    name: self.text(at, "name of a property", number(record, 0))?,
                    value: self.value(at, record)?,
                });
            }
        }
        Ok(properties)
    }

    fn value(&mut self, at: u64, record: &[u8]) -> Result<SyclValue, Stop> {
        let (address, size) = (number(record, 8), number(record, 24));
        let kind = u32::try_from(number(record, 16) & 0xffff_ffff).unwrap_or_default();
        Ok(match kind {
            1 => SyclValue::Number(size),
            2 => {
                let end = address.saturating_add(size);
                let what = "value of a property";
                let bytes = match self.memory.range(address, size) {
                    Some(range) => {
                        self.take_names(size)?;
                        self.source.read_range(&range)?
                    }
                    None if size == 0 => Vec::new(),
                    None => return Err(range_error(at, what, address, end)),
                };
                // A count of bits comes first.
                SyclValue::Bytes(bytes.get(8..).unwrap_or(&bytes).into())
            }
            3 => SyclValue::Text(self.text(at, "value of a property", address)?),
            kind => SyclValue::Unknown(kind),
        })
    }

    /// Returns the bytes of an array of records of this size.
    fn array(
        &mut self,
        at: u64,
        what: &'static str,
        size: usize,
        start: u64,
        end: u64,
    ) -> Result<Vec<u8>, Stop> {
        if start == end {
            return Ok(Vec::new());
        }
        let len = end.checked_sub(start).filter(|len| len.is_multiple_of(size as u64));
        let len = len.filter(|&len| self.memory.range(start, len).is_some());
        let len = len.ok_or_else(|| range_error(at, what, start, end))?;
        self.take(len)?;
        Ok(self.memory.bytes(self.source, start, len)?.unwrap_or_default())
    }

    /// Returns the string at an address; a null pointer is an empty one.
    fn text(&mut self, at: u64, what: &'static str, address: u64) -> Result<Arc<str>, Stop> {
        const PIECE: usize = 256;
        if let Some(known) = self.texts.get(&address) {
            return Ok(Arc::clone(known));
        }
        let mut bytes = Vec::new();
        let mut is_ended = address == 0;
        while !is_ended {
            let from = address.saturating_add(bytes.len() as u64);
            let rest = self.memory.rest(from).ok_or_else(|| {
                let message = format!("{what} at address {address:#x} is not a string in the file");
                of_descriptor(at, &message)
            })?;
            let piece = self.source.peek(&rest, PIECE)?;
            let end = piece.iter().position(|&byte| byte == 0);
            let piece = piece.get(..end.unwrap_or(piece.len())).unwrap_or_default();
            self.take_names(piece.len() as u64 + 1)?;
            bytes.extend_from_slice(piece);
            is_ended = end.is_some();
        }
        let text: Arc<str> = String::from_utf8_lossy(&bytes).into();
        self.texts.insert(address, Arc::clone(&text));
        Ok(text)
    }

    /// Counts bytes of records.
    fn take(&mut self, len: u64) -> Result<(), Stop> {
        if self.records.take(len) { Ok(()) } else { Err(too_many_records(self.records.limit())) }
    }

    fn take_names(&mut self, len: u64) -> Result<(), Stop> {
        if self.names.take(len) { Ok(()) } else { Err(too_many_records(self.names.limit())) }
    }
}

#[cold]
fn range_error(at: u64, what: &str, start: u64, end: u64) -> Stop {
    let message = format!("{what} at addresses {start:#x}..{end:#x}, which the file does not hold");
    of_descriptor(at, &message)
}

fn of_descriptor(at: u64, message: &str) -> Stop {
    Stop::Image(Error::malformed(at, "SYCL image descriptor", message))
}

#[cold]
fn too_many_records(limit: u64) -> Stop {
    let message =
        format!("tables of SYCL images overlap: their records exceed {limit} bytes in total");
    Stop::File(Error::new(ErrorKind::Limit, message))
}

fn version_and_kind(record: &[u8]) -> (u16, u8) {
    match record.first_chunk() {
        Some(&[low, high, kind]) => (u16::from_le_bytes([low, high]), kind),
        None => (0, 0),
    }
}
