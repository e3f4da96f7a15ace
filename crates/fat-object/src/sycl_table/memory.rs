//! Addresses of a linked host file, and the bytes that lie there.

use std::io;
use std::ops::Range;

use byte_parts::{Budget, Source, Window};
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
        let range = Window::new(window).sized(start, size)?;
        address.checked_add(size)?;
        (size > 0).then_some(Part { address, range })
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
        let Some(mut memory) = memory else { return Ok(Memory::default()) };
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
        let number = stored.map(|stored| {
            if order == 1 { u16::from_le_bytes(stored) } else { u16::from_be_bytes(stored) }
        });
        let host = if class == 1 { "a 32-bit ELF file" } else { "a big-endian ELF file" };
        Memory::not_read(number.is_some_and(|n| LINKED.contains(&elf::FileType(n))), host)
    }

    fn of_elf(
        source: &mut Source<'_>,
        window: &Range<u64>,
        head: &[u8],
    ) -> io::Result<Option<Self>> {
        let Some(header) = first::<elf::FileHeader64<LittleEndian>>(head) else { return Ok(None) };
        // Numbers that are too large for the header are in the first section.
        let start = header.e_shoff(LE);
        let zeroth = table::<Section64>(source, window, start, 1)?;
        let zeroth = zeroth.as_ref().and_then(|sections| sections.first());
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
        let mut memory = Memory::default();
        for segment in &segments {
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
        if sections.is_empty() && memory.add_segments(source, window, &segments)?.is_none() {
            return Ok(None);
        }
        for section in &sections {
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
                        let found = entries.iter().find(|entry| entry.tag(LE) == tag);
                        found.map_or(0, |entry| entry.val(LE))
                    };
                    let (address, size) = (value(elf::DT_RELA), value(elf::DT_RELASZ));
                    self.relocations.extend(self.part(address, size).map(|part| part.range));
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
        match headers.first() {
            Some(headers) if headers.signature() != pe::IMAGE_NT_SIGNATURE => return Ok(None),
            Some(headers) if headers.is_valid_optional_magic() => {
                return Ok(Some(Memory::not_read(true, "a 32-bit PE file")));
            }
            _ => {}
        }
        let headers = table::<pe::ImageNtHeaders64>(source, window, at, 1)?;
        let headers = headers.as_ref().and_then(|headers| headers.first());
        let Some(headers) = headers.filter(|headers| headers.is_valid_optional_magic()) else {
            return Ok(None);
        };
        let base = headers.optional_header().image_base();
        let header = headers.file_header();
        let optional = u64::from(header.size_of_optional_header.get(LE));
        let before = (size_of::<u32>() + size_of::<pe::ImageFileHeader>()) as u64;
        let count = header.number_of_sections.get(LE).into();
        let at = at + before + optional;
        let Some(sections) = table::<pe::ImageSectionHeader>(source, window, at, count)? else {
            return Ok(None);
        };
        let mut memory = Memory::default();
        for section in &sections {
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
                for entry in entries.iter().filter_map(|entry| first(entry)) {
                    let entry: &elf::Rela64<LittleEndian> = entry;
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
        let Some(Range { start, end }) = Window::new(window).part(section.clone()) else {
            return Ok(None);
        };
        let part = self.parts.iter().find(|part| part.range.contains(&start));
        let part =
            part.and_then(|part| self.part(part.address + (start - part.range.start), end - start));
        part.map(|part| self.load(source, &part)).transpose()
    }

    /// Returns the bytes at these addresses; `None` if not all of them lie in one part.
    pub(crate) fn part(&self, address: u64, len: u64) -> Option<Part> {
        let after = self.parts.partition_point(|part| part.address <= address);
        let part = self.parts.get(after.checked_sub(1)?)?;
        let from = address - part.address;
        let end = from.checked_add(len).filter(|&end| from < part.len() && end <= part.len())?;
        Some(Part { address, range: part.range.start + from..part.range.start + end })
    }

    /// Returns the bytes from this address to the end of its part.
    pub(crate) fn rest(&self, address: u64) -> Option<Range<u64>> {
        let start = self.part(address, 0)?.range.start;
        let after = self.parts.partition_point(|part| part.address <= address);
        Some(start..self.parts.get(after.checked_sub(1)?)?.range.end)
    }

    /// Reads bytes as they are when the file is loaded where it was linked for.
    pub(crate) fn load(&self, source: &mut Source<'_>, part: &Part) -> io::Result<Vec<u8>> {
        let mut bytes = source.read_range(&part.range)?;
        let first = self.stored.partition_point(|(place, _)| *place < part.address);
        for (place, value) in self.stored.iter().skip(first) {
            let at = usize::try_from(place - part.address).ok();
            let Some(slot) = at.and_then(|at| bytes.get_mut(at..)?.first_chunk_mut()) else {
                break;
            };
            *slot = value.to_le_bytes();
        }
        Ok(bytes)
    }
}

/// Returns the records of a table at this offset in the window, none for offset 0; `None` if not all lie in the window.
fn table<T: Pod>(
    source: &mut Source<'_>,
    window: &Range<u64>,
    offset: u64,
    count: u64,
) -> io::Result<Option<Vec<T>>> {
    if offset == 0 || count == 0 {
        return Ok(Some(Vec::new()));
    }
    let len = count.checked_mul(size_of::<T>() as u64);
    let Some(range) = len.and_then(|len| Window::new(window).sized(offset, len)) else {
        return Ok(None);
    };
    let bytes = source.read_range(&range)?;
    Ok(pod::slice_from_all_bytes(&bytes).ok().map(<[T]>::to_vec))
}

fn first<T: Pod>(bytes: &[u8]) -> Option<&T> {
    pod::from_bytes(bytes).ok().map(|(first, _)| first)
}
