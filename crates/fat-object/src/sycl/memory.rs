//! Addresses of a linked host file, and the bytes that lie there.

use std::io;
use std::ops::Range;

use byte_parts::Budget;
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader};
use object::read::pe::{ImageNtHeaders, ImageOptionalHeader, PeFile64};
use object::read::{FileKind, ReadRef};
use object::{BigEndian, Endianness, LittleEndian, elf, pe};

use crate::host::with_object_reader;
use crate::source::Source;

/// Types of ELF files that are linked.
const LINKED: [elf::FileType; 2] = [elf::ET_EXEC, elf::ET_DYN];

/// Bytes that lie at an address.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) address: u64,
    /// In the source.
    pub(super) range: Range<u64>,
}

impl Part {
    fn new(address: u64, window: &Range<u64>, start: u64, size: u64) -> Option<Self> {
        let start = window.start.checked_add(start)?;
        let end = start.checked_add(size).filter(|&end| end <= window.end)?;
        address.checked_add(size)?;
        (size > 0).then_some(Part { address, range: start..end })
    }

    pub(super) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }
}

/// Addresses of a linked host file.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Mapped parts, by address.
    parts: Vec<Part>,
    /// Data that can hold tables: that which is written when the file is loaded, and constants.
    pub(super) data: Vec<Part>,
    pub(super) constants: Vec<Part>,
    /// Sections of relocations, and the type of those that store an address.
    relocations: Vec<Range<u64>>,
    relative: u32,
    /// Place and stored address of each such relocation, by place.
    stored: Vec<(u64, u64)>,
    /// What the host file is, if it is linked and its addresses are not read.
    pub(super) unread: Option<&'static str>,
}

impl Memory {
    /// Reads the headers of a host file. Without addresses, with those of 32 bits, and with those that are big-endian,
    /// nothing is mapped.
    pub(super) fn read(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Self> {
        let headers = with_object_reader(source, window, |data| match FileKind::parse(data) {
            Ok(FileKind::Elf64) => Memory::of_elf(data, window),
            Ok(FileKind::Pe64) => Memory::of_pe(data, window),
            Ok(FileKind::Elf32) => {
                let header = elf::FileHeader32::<Endianness>::parse(data)?;
                let is_linked = LINKED.contains(&header.e_type(header.endian()?));
                Ok(Memory::not_read(is_linked, "a 32-bit ELF file"))
            }
            Ok(FileKind::Pe32) => Ok(Memory::not_read(true, "a 32-bit PE file")),
            _ => Ok(Memory::default()),
        })?;
        // The walk tells of malformed headers.
        let mut memory = headers.unwrap_or_default();
        memory.parts.sort_by_key(|part| part.address);
        if !memory.parts.is_empty() {
            memory.read_relocations(source, window)?;
        }
        Ok(memory)
    }

    fn not_read(is_linked: bool, host: &'static str) -> Self {
        Memory { unread: is_linked.then_some(host), ..Memory::default() }
    }

    fn of_elf<'d>(data: impl ReadRef<'d>, window: &Range<u64>) -> object::read::Result<Self> {
        let header = elf::FileHeader64::<LittleEndian>::parse(data)?;
        if header.is_big_endian() {
            let header = elf::FileHeader64::<BigEndian>::parse(data)?;
            let is_linked = LINKED.contains(&header.e_type(BigEndian));
            return Ok(Memory::not_read(is_linked, "a big-endian ELF file"));
        }
        let endian = LittleEndian;
        let mut memory = Memory::default();
        for segment in header.program_headers(endian, data)? {
            if segment.p_type(endian) == elf::PT_LOAD {
                let (start, size) = segment.file_range(endian);
                memory.parts.extend(Part::new(segment.p_vaddr(endian), window, start, size));
            }
        }
        memory.relative = match header.e_machine(endian) {
            elf::EM_X86_64 => elf::R_X86_64_RELATIVE.0,
            elf::EM_AARCH64 => elf::R_AARCH64_RELATIVE.0,
            elf::EM_RISCV => elf::R_RISCV_RELATIVE.0,
            _ => u32::MAX,
        };
        let sections = header.sections(endian, data)?;
        if sections.is_empty() {
            memory.add_segments(header, data, window)?;
        }
        for section in sections.iter() {
            let flags = section.sh_flags(endian);
            let Some((start, size)) = section.file_range(endian) else { continue };
            let Some(part) = Part::new(section.sh_addr(endian), window, start, size) else {
                continue;
            };
            match section.sh_type(endian) {
                _ if !flags.contains(elf::SHF_ALLOC) => {}
                elf::SHT_RELA => memory.relocations.push(part.range),
                elf::SHT_PROGBITS if flags.contains(elf::SHF_EXECINSTR) => {}
                elf::SHT_PROGBITS if flags.contains(elf::SHF_WRITE) => memory.data.push(part),
                elf::SHT_PROGBITS => memory.constants.push(part),
                _ => {}
            }
        }
        Ok(memory)
    }

    /// What sections would tell, by the segments of a file without them: all that is loaded and no code, and the
    /// relocations that the dynamic segment names.
    fn add_segments<'d>(
        &mut self,
        header: &elf::FileHeader64<LittleEndian>,
        data: impl ReadRef<'d>,
        window: &Range<u64>,
    ) -> object::read::Result<()> {
        let endian = LittleEndian;
        self.parts.sort_by_key(|part| part.address);
        for segment in header.program_headers(endian, data)? {
            let (start, size) = segment.file_range(endian);
            let flags = segment.p_flags(endian);
            match segment.p_type(endian) {
                elf::PT_LOAD if !flags.contains(elf::PF_X) => {
                    let part = Part::new(segment.p_vaddr(endian), window, start, size);
                    match flags.contains(elf::PF_W) {
                        true => self.data.extend(part),
                        false => self.constants.extend(part),
                    }
                }
                elf::PT_DYNAMIC => {
                    let entries = segment.dynamic(endian, data)?.unwrap_or_default();
                    let value = |tag| {
                        let found = entries.iter().find(|entry| entry.tag(endian) == tag);
                        found.map_or(0, |entry| entry.val(endian))
                    };
                    let (address, size) = (value(elf::DT_RELA), value(elf::DT_RELASZ));
                    self.relocations.extend(self.range(address, size));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn of_pe<'d>(data: impl ReadRef<'d>, window: &Range<u64>) -> object::read::Result<Self> {
        let file = PeFile64::parse(data)?;
        let base = file.nt_headers().optional_header().image_base();
        let mut memory = Memory::default();
        for section in file.section_table().iter() {
            let (start, size) = section.pe_file_range();
            let address = base.wrapping_add(section.virtual_address.get(LittleEndian).into());
            let part = Part::new(address, window, start.into(), size.into());
            memory.parts.extend(part.clone());
            let is_code =
                section.characteristics.get(LittleEndian).contains(pe::IMAGE_SCN_MEM_EXECUTE);
            if !is_code && section.raw_name() != super::walk::PE_SECTION {
                memory.data.extend(part);
            }
        }
        Ok(memory)
    }

    fn read_relocations(&mut self, source: &mut Source<'_>, window: &Range<u64>) -> io::Result<()> {
        const ENTRY: usize = 24;
        const PIECE: u64 = 1024 * ENTRY as u64;
        // Sections that do not overlap have no more bytes than the file.
        let mut left = Budget::new(window.end - window.start);
        for section in std::mem::take(&mut self.relocations) {
            if !left.take(section.end - section.start) {
                break;
            }
            let mut at = section.start;
            while section.end - at >= ENTRY as u64 {
                let end = section.end.min(at + PIECE);
                let piece = source.read_range(&(at..end))?;
                let (entries, rest) = piece.as_chunks::<ENTRY>();
                for entry in entries {
                    if number(entry, 8) == u64::from(self.relative) {
                        self.stored.push((number(entry, 0), number(entry, 16)));
                    }
                }
                at = end - rest.len() as u64;
            }
        }
        self.stored.sort_unstable();
        Ok(())
    }

    /// The bytes of a section of the host file in `window`; `None` for one that is not mapped.
    pub(super) fn section(
        &self,
        source: &mut Source<'_>,
        window: &Range<u64>,
        section: &Range<u64>,
    ) -> io::Result<Option<Vec<u8>>> {
        let start = window.start.saturating_add(section.start);
        let part = self.parts.iter().find(|part| part.range.contains(&start));
        let Some(part) = part else { return Ok(None) };
        let address = part.address + (start - part.range.start);
        self.bytes(source, address, section.end.saturating_sub(section.start))
    }

    /// Returns the range of the source that holds these addresses; `None` if not all of them lie in one part.
    pub(super) fn range(&self, address: u64, len: u64) -> Option<Range<u64>> {
        let after = self.parts.partition_point(|part| part.address <= address);
        let part = self.parts.get(after.checked_sub(1)?)?;
        let from = address - part.address;
        let end = from.checked_add(len).filter(|&end| from < part.len() && end <= part.len())?;
        Some(part.range.start + from..part.range.start + end)
    }

    /// The bytes from this address to the end of its part.
    pub(super) fn rest(&self, address: u64) -> Option<Range<u64>> {
        let start = self.range(address, 0)?.start;
        let after = self.parts.partition_point(|part| part.address <= address);
        Some(start..self.parts.get(after.checked_sub(1)?)?.range.end)
    }

    /// The bytes at these addresses when the file is loaded where it was linked for; `None` if not all lie in the source.
    pub(super) fn bytes(
        &self,
        source: &mut Source<'_>,
        address: u64,
        len: u64,
    ) -> io::Result<Option<Vec<u8>>> {
        let Some(range) = self.range(address, len) else { return Ok(None) };
        let mut bytes = source.read_range(&range)?;
        let first = self.stored.partition_point(|(place, _)| *place < address);
        for (place, value) in self.stored.get(first..).unwrap_or_default() {
            let Some(at) = (place - address).checked_add(8).filter(|&end| end <= len) else {
                break;
            };
            let at = usize::try_from(at - 8).unwrap_or(usize::MAX);
            if let Some(slot) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
                *slot = value.to_le_bytes();
            }
        }
        Ok(Some(bytes))
    }
}

/// The number of eight bytes at this offset; 0 past the end.
pub(super) fn number(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map_or(0, |&number| u64::from_le_bytes(number))
}
