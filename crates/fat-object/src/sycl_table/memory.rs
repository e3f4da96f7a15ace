//! Addresses of a linked host file, and the bytes that lie there.

use std::io;
use std::ops::Range;

use byte_parts::{Budget, Source};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader};
use object::read::pe::{ImageNtHeaders, ImageOptionalHeader};
use object::{LittleEndian, Pod, elf, pe, pod};

type Segment64 = elf::ProgramHeader64<LittleEndian>;
type Section64 = elf::SectionHeader64<LittleEndian>;

const LE: LittleEndian = LittleEndian;

/// Types of ELF files that are linked.
const LINKED: [elf::FileType; 2] = [elf::ET_EXEC, elf::ET_DYN];

/// The eight bytes of a PE section name that are left of `__CLANG_OFFLOAD_BUNDLE__sycl-spir64`: images, no tables.
const PE_SECTION: &[u8] = b"__CLANG_";

/// Bytes that lie at an address.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) address: u64,
    /// In the source.
    pub(crate) range: Range<u64>,
}

impl Part {
    fn new(address: u64, window: &Range<u64>, start: u64, size: u64) -> Option<Self> {
        let start = window.start.checked_add(start)?;
        let end = start.checked_add(size).filter(|&end| end <= window.end)?;
        address.checked_add(size)?;
        (size > 0).then_some(Part { address, range: start..end })
    }

    pub(crate) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }
}

/// Addresses of a linked host file.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Mapped parts, by address.
    parts: Vec<Part>,
    /// Data that can hold tables: that which is written when the file is loaded, and constants.
    pub(crate) data: Vec<Part>,
    pub(crate) constants: Vec<Part>,
    /// Sections of relocations, and the type of relocations that store an address.
    relocations: Vec<Range<u64>>,
    relative: u32,
    /// Place and stored address of each such relocation, by place.
    stored: Vec<(u64, u64)>,
    /// The kind of the host file, if it is linked and its addresses are not read.
    pub(crate) unread: Option<&'static str>,
}

impl Memory {
    /// Reads the headers of a host file. Without addresses, with addresses of 32 bits, and in big-endian files, nothing
    /// is mapped; malformed headers map nothing, either.
    pub(crate) fn read(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Self> {
        let head = source.peek(window, size_of::<elf::FileHeader64<LittleEndian>>())?;
        let memory = match head.get(..6) {
            Some([0x7f, b'E', b'L', b'F', 2, 1]) => Memory::of_elf(source, window, &head)?,
            Some(&[0x7f, b'E', b'L', b'F', class, order]) => {
                Some(Memory::of_other_elf(class, order, &head))
            }
            Some([b'M', b'Z', ..]) => Memory::of_pe(source, window, &head)?,
            _ => None,
        };
        let mut memory = memory.unwrap_or_default();
        memory.parts.sort_by_key(|part| part.address);
        if !memory.parts.is_empty() {
            memory.read_relocations(source, window)?;
        }
        Ok(memory)
    }

    fn not_read(is_linked: bool, host: &'static str) -> Self {
        Memory { unread: is_linked.then_some(host), ..Memory::default() }
    }

    fn of_other_elf(class: u8, order: u8, head: &[u8]) -> Self {
        let stored = head.get(16..).and_then(|rest| rest.first_chunk()).copied();
        let stored = stored.unwrap_or_default();
        let number =
            if order == 1 { u16::from_le_bytes(stored) } else { u16::from_be_bytes(stored) };
        let host = if class == 1 { "a 32-bit ELF file" } else { "a big-endian ELF file" };
        Memory::not_read(LINKED.contains(&elf::FileType(number)), host)
    }

    fn of_elf(
        source: &mut Source<'_>,
        window: &Range<u64>,
        head: &[u8],
    ) -> io::Result<Option<Self>> {
        let Some(header) = first::<elf::FileHeader64<LittleEndian>>(head) else { return Ok(None) };
        // Numbers that are too large for the header are in the first section.
        let start = header.e_shoff(LE);
        let zeroth = table::<Section64>(source, window, start, 1)?.unwrap_or_default();
        let zeroth: Option<&Section64> = first(&zeroth);
        let count = match header.e_shnum(LE) {
            0 => zeroth.map_or(0, |section| section.sh_size(LE)),
            count => count.into(),
        };
        let Some(sections) = table::<Section64>(source, window, start, count)? else {
            return Ok(None);
        };
        let count = match header.e_phnum(LE) {
            elf::PN_XNUM => zeroth.map_or(0, |section| section.sh_info(LE).into()),
            count => count.into(),
        };
        let is_known = usize::from(header.e_phentsize(LE)) == size_of::<Segment64>();
        let Some(segments) = table::<Segment64>(source, window, header.e_phoff(LE), count)? else {
            return Ok(None);
        };
        if !is_known && !segments.is_empty() {
            return Ok(None);
        }
        let segments = all::<Segment64>(&segments);
        let mut memory = Memory::default();
        for segment in segments {
            if segment.p_type(LE) == elf::PT_LOAD {
                let (start, size) = segment.file_range(LE);
                memory.parts.extend(Part::new(segment.p_vaddr(LE), window, start, size));
            }
        }
        memory.relative = match header.e_machine(LE) {
            elf::EM_X86_64 => elf::R_X86_64_RELATIVE.0,
            elf::EM_AARCH64 => elf::R_AARCH64_RELATIVE.0,
            elf::EM_RISCV => elf::R_RISCV_RELATIVE.0,
            _ => u32::MAX,
        };
        if sections.is_empty() && memory.add_segments(source, window, segments)?.is_none() {
            return Ok(None);
        }
        for section in all::<Section64>(&sections) {
            let flags = section.sh_flags(LE);
            let Some((start, size)) = section.file_range(LE) else { continue };
            let Some(part) = Part::new(section.sh_addr(LE), window, start, size) else {
                continue;
            };
            match section.sh_type(LE) {
                _ if !flags.contains(elf::SHF_ALLOC) => {}
                elf::SHT_RELA => memory.relocations.push(part.range),
                elf::SHT_PROGBITS if flags.contains(elf::SHF_EXECINSTR) => {}
                elf::SHT_PROGBITS if flags.contains(elf::SHF_WRITE) => memory.data.push(part),
                elf::SHT_PROGBITS => memory.constants.push(part),
                _ => {}
            }
        }
        Ok(Some(memory))
    }

    /// Adds what sections would tell, by the segments of a file without them: all that is loaded and no code, and the
    /// relocations that the dynamic segment names. Returns `None` if that is malformed.
    fn add_segments(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
        segments: &[Segment64],
    ) -> io::Result<Option<()>> {
        self.parts.sort_by_key(|part| part.address);
        // Segments that do not overlap have no more bytes than the file.
        let mut left = Budget::new(window.end - window.start);
        for segment in segments {
            let (start, size) = segment.file_range(LE);
            let flags = segment.p_flags(LE);
            match segment.p_type(LE) {
                elf::PT_LOAD if !flags.contains(elf::PF_X) => {
                    let part = Part::new(segment.p_vaddr(LE), window, start, size);
                    if flags.contains(elf::PF_W) {
                        self.data.extend(part);
                    } else {
                        self.constants.extend(part);
                    }
                }
                elf::PT_DYNAMIC => {
                    type Entry = elf::Dyn64<LittleEndian>;
                    let count = size / size_of::<Entry>() as u64;
                    let is_whole = size.is_multiple_of(size_of::<Entry>() as u64);
                    if !is_whole || !left.take(size) {
                        return Ok(None);
                    }
                    let Some(entries) = table::<Entry>(source, window, start, count)? else {
                        return Ok(None);
                    };
                    let value = |tag| {
                        let found = all::<Entry>(&entries).iter().find(|e| e.tag(LE) == tag);
                        found.map_or(0, |entry| entry.val(LE))
                    };
                    let (address, size) = (value(elf::DT_RELA), value(elf::DT_RELASZ));
                    self.relocations.extend(self.range(address, size));
                }
                _ => {}
            }
        }
        Ok(Some(()))
    }

    fn of_pe(
        source: &mut Source<'_>,
        window: &Range<u64>,
        head: &[u8],
    ) -> io::Result<Option<Self>> {
        let Some(dos) = first::<pe::ImageDosHeader>(head) else { return Ok(None) };
        let at = u64::from(dos.nt_headers_offset());
        let Some(headers) = table::<pe::ImageNtHeaders32>(source, window, at, 1)? else {
            return Ok(None);
        };
        match first::<pe::ImageNtHeaders32>(&headers) {
            Some(headers) if headers.signature() != pe::IMAGE_NT_SIGNATURE => return Ok(None),
            Some(headers) if headers.is_valid_optional_magic() => {
                return Ok(Some(Memory::not_read(true, "a 32-bit PE file")));
            }
            _ => {}
        }
        let headers = table::<pe::ImageNtHeaders64>(source, window, at, 1)?.unwrap_or_default();
        let headers = first::<pe::ImageNtHeaders64>(&headers);
        let Some(headers) = headers.filter(|headers| headers.is_valid_optional_magic()) else {
            return Ok(None);
        };
        let base = headers.optional_header().image_base();
        let header = headers.file_header();
        let optional = u64::from(header.size_of_optional_header.get(LE));
        let before = (size_of::<u32>() + size_of::<pe::ImageFileHeader>()) as u64;
        let count = header.number_of_sections.get(LE).into();
        let sections =
            table::<pe::ImageSectionHeader>(source, window, at + before + optional, count)?;
        let mut memory = Memory::default();
        for section in all::<pe::ImageSectionHeader>(&sections.unwrap_or_default()) {
            let (start, size) = section.pe_file_range();
            let address = base.wrapping_add(section.virtual_address.get(LE).into());
            let part = Part::new(address, window, start.into(), size.into());
            memory.parts.extend(part.clone());
            let is_code = section.characteristics.get(LE).contains(pe::IMAGE_SCN_MEM_EXECUTE);
            if !is_code && section.raw_name() != PE_SECTION {
                memory.data.extend(part);
            }
        }
        Ok(Some(memory))
    }

    fn read_relocations(&mut self, source: &mut Source<'_>, window: &Range<u64>) -> io::Result<()> {
        const ENTRY: usize = size_of::<elf::Rela64<LittleEndian>>();
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
                for entry in all::<elf::Rela64<LittleEndian>>(entries.as_flattened()) {
                    if entry.r_info.get(LE) == u64::from(self.relative) {
                        let addend = entry.r_addend.get(LE).cast_unsigned();
                        self.stored.push((entry.r_offset.get(LE), addend));
                    }
                }
                at = end - rest.len() as u64;
            }
        }
        self.stored.sort_unstable();
        Ok(())
    }

    /// Returns the bytes of a section of the host file in `window`; `None` for one that is not mapped.
    pub(crate) fn section(
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
    pub(crate) fn range(&self, address: u64, len: u64) -> Option<Range<u64>> {
        let after = self.parts.partition_point(|part| part.address <= address);
        let part = self.parts.get(after.checked_sub(1)?)?;
        let from = address - part.address;
        let end = from.checked_add(len).filter(|&end| from < part.len() && end <= part.len())?;
        Some(part.range.start + from..part.range.start + end)
    }

    /// Returns the bytes from this address to the end of its part.
    pub(crate) fn rest(&self, address: u64) -> Option<Range<u64>> {
        let start = self.range(address, 0)?.start;
        let after = self.parts.partition_point(|part| part.address <= address);
        Some(start..self.parts.get(after.checked_sub(1)?)?.range.end)
    }

    /// Returns the bytes at these addresses when the file is loaded where it was linked for; `None` if not all lie
    /// in the source.
    pub(crate) fn bytes(
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

/// Returns the bytes of a table at this offset in the window, none for offset 0; `None` if not all lie in the window.
fn table<T: Pod>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    offset: u64,
    count: u64,
) -> io::Result<Option<Vec<u8>>> {
    if offset == 0 || count == 0 {
        return Ok(Some(Vec::new()));
    }
    let start = window.start.saturating_add(offset);
    let end = count.checked_mul(size_of::<T>() as u64).and_then(|len| start.checked_add(len));
    match end {
        Some(end) if end <= window.end => source.read_range(&(start..end)).map(Some),
        _ => Ok(None),
    }
}

fn first<T: Pod>(bytes: &[u8]) -> Option<&T> {
    pod::from_bytes(bytes).ok().map(|(first, _)| first)
}

fn all<T: Pod>(bytes: &[u8]) -> &[T] {
    pod::slice_from_all_bytes(bytes).unwrap_or_default()
}
