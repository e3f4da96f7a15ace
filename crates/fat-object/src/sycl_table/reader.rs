//! Tables of SYCL images, read by address.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use byte_parts::{Budget, Source, Window};
use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32, U64};

use crate::records::records;
use crate::sycl_table::error::{Error, ErrorKind};
use crate::sycl_table::found::Tables;
use crate::sycl_table::image::{SyclImage, SyclProperty, SyclValue};
use crate::sycl_table::memory::{Memory, Part};
use crate::sycl_table::wire::{
    Common, Entry, Head, ImageV1, ImageV2, ImageV3, NewEntry, NewEntryHead, Property, PropertySet,
    Span, Table,
};

/// Bytes of the descriptor of a table.
const TABLE: usize = size_of::<Table>();

/// Bytes that are read where something may refer to.
const JUMP: u64 = 4096;

/// Kinds of images: of Intel's toolchain, and SYCL of LLVM's offload binaries.
const KINDS: [u8; 2] = [4, 8];

/// Descriptor of an image, whichever version it has.
struct Descriptor {
    common: Common,
    image: Span,
    entries: Span,
    property_sets: Span,
}

impl Descriptor {
    /// Returns the size of a descriptor of this version.
    fn size(version: u16) -> Option<usize> {
        Some(match version {
            1 => size_of::<ImageV1>(),
            2 => size_of::<ImageV2>(),
            3 => size_of::<ImageV3>(),
            _ => return None,
        })
    }

    /// Reads a descriptor of this version.
    fn read(version: u16, record: &[u8]) -> Option<Self> {
        let (ImageV1 { common, image, entries, .. }, property_sets) = match version {
            1 => (ImageV1::read_from_bytes(record).ok()?, Span::default()),
            2 => {
                let ImageV2 { start, property_sets } = ImageV2::read_from_bytes(record).ok()?;
                (start, property_sets)
            }
            _ => {
                let ImageV3 { common, image, entries, property_sets } =
                    ImageV3::read_from_bytes(record).ok()?;
                return Some(Descriptor { common, image, entries, property_sets });
            }
        };
        Some(Descriptor { common, image, entries, property_sets })
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
            let mut at = part.address.wrapping_neg() % 8;
            while Window::new(&(at..part.len())).len() >= TABLE as u64 {
                let len = (part.len() - at).min(PIECE);
                let piece = self.bytes(part.address + at, len)?;
                let windows = piece.iter().flat_map(|piece| piece.windows(TABLE).step_by(8));
                for (n, window) in windows.enumerate() {
                    let Ok(table) = Table::ref_from_bytes(window) else { continue };
                    if table.version == 1
                        && table.count != 0
                        && table.padding == [0; 4]
                        && table.images != 0
                        && table.entries == [U64::ZERO; 2]
                    {
                        let (count, address) = (table.count.get(), table.images.get());
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
        let Some(place) = self.memory.part(address, 8) else { return Ok(()) };
        let head = self.memory.load(self.source, &place)?;
        self.take(JUMP)?;
        let Ok(head) = Head::ref_from_bytes(&head) else { return Ok(()) };
        let Head { kind, format, padding, .. } = *head;
        let version = head.version.get();
        let is_head = KINDS.contains(&kind) && (1..16).contains(&version) && format <= 4;
        if !is_head || padding != [0; 4] {
            return Ok(());
        }
        let first = place.range.start - self.start;
        let Some(size) = Descriptor::size(version) else {
            let message = format!("expected version 1, 2 or 3, found {version}");
            return Err(of_descriptor(first, &message));
        };
        let len = size as u64 * u64::from(count);
        let Some(array) = self.memory.part(address, len) else {
            let message = format!(
                "expected {count} descriptors at address {address:#x}, which the file does not hold"
            );
            return Err(Stop::Image(Error::malformed(at, "table of SYCL images", &message)));
        };
        self.take(len)?;
        let array = self.memory.load(self.source, &array)?;
        let records = array.chunks_exact(size);
        let descriptors = records.filter_map(|record| Descriptor::read(version, record));
        for (n, descriptor) in descriptors.enumerate() {
            let at = first + (n * size) as u64;
            let Head { version: found_version, kind: found_kind, .. } = descriptor.common.head;
            let found_version = found_version.get();
            if (found_version, found_kind) != (version, kind) {
                let message = format!(
                    "expected version {version} and kind {kind}, found version {found_version} and kind {found_kind}"
                );
                return Err(of_descriptor(at, &message));
            }
            match self.image(at, &descriptor) {
                Ok(image) => self.found.images.push(image),
                Err(Stop::Image(problem)) => self.found.faults.push(problem),
                Err(stop) => return Err(stop),
            }
        }
        Ok(())
    }

    fn image(&mut self, at: u64, descriptor: &Descriptor) -> Result<SyclImage, Stop> {
        let Descriptor { common, image, entries, property_sets } = descriptor;
        let (start, end) = (image.start.get(), image.end.get());
        let part = end.checked_sub(start).and_then(|len| self.memory.part(start, len));
        let range = part.ok_or_else(|| range_error(at, "image", start, end))?.range;
        let target = self.text(at, "target", common.target.get())?;
        let compile_options = self.text(at, "compile options", common.compile_options.get())?;
        let link_options = self.text(at, "link options", common.link_options.get())?;
        let kernels = self.kernels(at, entries)?;
        let properties = self.properties(at, property_sets)?;
        Ok(SyclImage {
            range,
            address: start,
            uncompressed_size: None,
            target,
            version: common.head.version.get(),
            format: common.head.format,
            compile_options,
            link_options,
            properties,
            kernels,
        })
    }

    /// Reads the names of the kernels. Entries have one of two forms, all of them the same.
    fn kernels(&mut self, at: u64, entries: &Span) -> Result<Vec<Arc<str>>, Stop> {
        const NEW: NewEntryHead = NewEntryHead {
            reserved: U64::ZERO,
            version: U16::new(1),
            kind: U16::new(8),
            flags: U32::ZERO,
        };
        let head = self.array(at, "entries", 1, entries)?;
        let is_new = NewEntryHead::ref_from_prefix(&head).is_ok_and(|(head, _)| *head == NEW);
        let size = if is_new { size_of::<NewEntry>() } else { size_of::<Entry>() };
        let bytes = self.array(at, "entries", size, entries)?;
        let names: Vec<U64> = if is_new {
            records::<NewEntry>(&bytes).iter().map(|entry| entry.name).collect()
        } else {
            records::<Entry>(&bytes).iter().map(|entry| entry.name).collect()
        };
        names.iter().map(|name| self.text(at, "name of a kernel", name.get())).collect()
    }

    fn properties(&mut self, at: u64, sets: &Span) -> Result<Vec<SyclProperty>, Stop> {
        let mut properties = Vec::new();
        let sets = self.array(at, "property sets", size_of::<PropertySet>(), sets)?;
        for set in records::<PropertySet>(&sets) {
            let name = self.text(at, "name of a property set", set.name.get())?;
            let found = self.array(at, "properties", size_of::<Property>(), &set.properties)?;
            for property in records::<Property>(&found) {
                properties.push(SyclProperty {
                    set: Arc::clone(&name),
                    name: self.text(at, "name of a property", property.name.get())?,
                    value: self.value(at, property)?,
                });
            }
        }
        Ok(properties)
    }

    fn value(&mut self, at: u64, property: &Property) -> Result<SyclValue, Stop> {
        let (address, size) = (property.value.get(), property.size.get());
        Ok(match property.kind.get() {
            1 => SyclValue::Number(size),
            2 => {
                let bytes = match self.memory.part(address, size) {
                    Some(part) => {
                        self.take_names(size)?;
                        self.source.read_range(&part.range)?
                    }
                    None if size == 0 => Vec::new(),
                    None => {
                        let message = format!(
                            "value of a property of {size} bytes at address {address:#x}, which the file does not hold"
                        );
                        return Err(of_descriptor(at, &message));
                    }
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
        span: &Span,
    ) -> Result<Vec<u8>, Stop> {
        let (start, end) = (span.start.get(), span.end.get());
        if start == end {
            return Ok(Vec::new());
        }
        let len = end.checked_sub(start).filter(|len| len.is_multiple_of(size as u64));
        let part = len.and_then(|len| self.memory.part(start, len));
        let part = part.ok_or_else(|| range_error(at, what, start, end))?;
        self.take(part.len())?;
        Ok(self.memory.load(self.source, &part)?)
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
            let from = address.checked_add(bytes.len() as u64);
            let rest = from.and_then(|from| self.memory.rest(from)).ok_or_else(|| {
                let message = format!("{what} at address {address:#x} is not a string in the file");
                of_descriptor(at, &message)
            })?;
            let mut piece = self.source.peek(&rest, PIECE)?;
            let end = piece.iter().position(|&byte| byte == 0);
            piece.truncate(end.unwrap_or(piece.len()));
            self.take_names(piece.len() as u64 + 1)?;
            bytes.append(&mut piece);
            is_ended = end.is_some();
        }
        let text: Arc<str> = String::from_utf8_lossy(&bytes).into();
        self.texts.insert(address, Arc::clone(&text));
        Ok(text)
    }

    /// Returns the bytes at these addresses; `None` if not all of them lie in one part.
    fn bytes(&mut self, address: u64, len: u64) -> io::Result<Option<Vec<u8>>> {
        let part = self.memory.part(address, len);
        part.map(|part| self.memory.load(self.source, &part)).transpose()
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
