//! Descriptors and code of kernels in code objects for AMD's GPUs, found by symbols.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use object::elf::{PT_LOAD, STT_FUNC, STT_OBJECT, SymbolType};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};

use super::descriptor::{self, CodeHeader, Descriptor};
use super::elf::{Elf, Symbol64};
use super::{Kernel, Stored};
use crate::elf::LE;

/// A kernel of a code object of version 2.
const STT_HSA_KERNEL: SymbolType = SymbolType(10);

/// The symbols of a file by name, and its functions by section and place.
pub(super) struct Symbols<'a> {
    all: Vec<Known<'a>>,
    /// The first symbol of each name.
    by_name: BTreeMap<&'a [u8], Known<'a>>,
    /// Sections and addresses of functions, in order.
    functions: Vec<(usize, u64)>,
    /// Segments that a loader loads, by address; `None` if their table is malformed.
    loaded: Option<Vec<Loaded>>,
}

/// A segment.
#[derive(Clone, Copy)]
struct Loaded {
    address: u64,
    offset: u64,
    /// Bytes in the image.
    len: u64,
}

/// A symbol with a name.
#[derive(Clone, Copy)]
struct Known<'a> {
    name: &'a [u8],
    symbol: &'a Symbol64,
    section: usize,
}

impl<'a> Symbols<'a> {
    pub(super) fn read(elf: &Elf<'a>) -> Self {
        let table = elf.loaded_symbols();
        let all = table.enumerate().map(|(index, symbol)| {
            let section = match table.symbol_section(LE, symbol, index) {
                Ok(Some(section)) => section.0,
                _ => 0,
            };
            Known { name: elf.symbol_name(&table, symbol), symbol, section }
        });
        let all: Vec<_> = all.filter(|known| !known.name.is_empty()).collect();
        let mut by_name = BTreeMap::new();
        for known in &all {
            by_name.entry(known.name).or_insert(*known);
        }
        let functions = all.iter().filter(|known| known.symbol.st_type() == STT_FUNC);
        let mut functions: Vec<_> =
            functions.map(|known| (known.section, known.symbol.st_value(LE))).collect();
        functions.sort_unstable();
        let segments = elf.header.program_headers(LE, elf.image).ok();
        let loaded = segments.map(|segments| {
            let segments = segments.iter().filter(|segment| segment.p_type(LE) == PT_LOAD);
            let mut loaded: Vec<_> = segments
                .map(|segment| Loaded {
                    address: segment.p_vaddr(LE),
                    offset: segment.p_offset(LE),
                    len: segment.p_filesz(LE),
                })
                .collect();
            loaded.sort_by_key(|segment| segment.address);
            loaded
        });
        Symbols { all, by_name, functions, loaded }
    }

    /// Returns the kernels of a code object of version 2: the symbol of each is its header, which the code follows.
    pub(super) fn kernels_of_version_2(&self, elf: &Elf<'a>) -> impl Iterator<Item = Kernel<'a>> {
        let kernels = self.all.iter().filter(|known| known.symbol.st_type() == STT_HSA_KERNEL);
        kernels.map(|known| {
            let mut kernel = Kernel { name: known.name, ..Kernel::default() };
            let all = self.place(elf, known, known.symbol.st_size(LE));
            let header = all.and_then(|all| {
                let header = CodeHeader::read(elf.image.get(all.clone())?)?;
                Some((all.start..all.start.checked_add(CodeHeader::LEN)?, all, header))
            });
            if let Some((header_range, all, header)) = header {
                let start = header.entry().and_then(|entry| all.start.checked_add(entry));
                kernel.descriptor_range = Some(header_range);
                kernel.code_range =
                    start.filter(|start| *start < all.end).map(|start| start..all.end);
                kernel.code_size = kernel.code_range.as_ref().map(|code| code.len() as u64);
            }
            kernel
        })
    }

    /// Returns where this many bytes from a symbol on lie in the image; `None` if they do not, or a loader reads others there.
    fn place(&self, elf: &Elf<'_>, known: &Known<'_>, len: u64) -> Option<Range<usize>> {
        let address = known.symbol.st_value(LE);
        let range = elf.range_of(address, len, known.section)?;
        let loaded = self.loaded.as_ref()?;
        if elf.is_relocatable() || loaded.is_empty() {
            return Some(range);
        }
        let before = loaded.partition_point(|segment| segment.address <= address);
        let segment = loaded.get(before.checked_sub(1)?)?;
        let within = address.checked_sub(segment.address)?;
        let is_same = segment.offset.checked_add(within) == Some(range.start as u64);
        (is_same && len <= segment.len.checked_sub(within)?).then_some(range)
    }

    /// Returns the names of kernels that have a descriptor.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = &'a [u8]> {
        let objects = self.all.iter().filter(|Known { symbol, .. }| {
            symbol.st_type() == STT_OBJECT && symbol.st_size(LE) == descriptor::LEN as u64
        });
        objects.filter_map(|known| known.name.strip_suffix(b".kd"))
    }

    /// Adds what descriptor and symbols say. Metadata comes first.
    pub(super) fn complete(
        &self,
        elf: &Elf<'a>,
        kernel: &mut Kernel<'a>,
        symbol: Option<&'a [u8]>,
        processor: &str,
    ) {
        let function = self.by_name.get(kernel.name);
        let function = function.filter(|known| known.symbol.st_type() == STT_FUNC);
        if let Some(function) = function {
            let size = function.symbol.st_size(LE);
            (kernel.code_size, kernel.is_code_size_estimated) = match size {
                0 => (self.to_next(elf, function), true),
                size => (Some(size), false),
            };
            kernel.code_range = kernel.code_size.and_then(|size| self.place(elf, function, size));
        }
        let mut name = kernel.name.to_vec();
        name.extend(b".kd");
        let Some(known) = self.by_name.get(symbol.unwrap_or(&name[..])) else { return };
        let range =
            elf.range_of(known.symbol.st_value(LE), known.symbol.st_size(LE), known.section);
        let bytes = range.and_then(|range| elf.image.get(range));
        let Some(descriptor) = bytes.and_then(Descriptor::read) else { return };
        kernel.descriptor_range = self.place(elf, known, descriptor::LEN as u64);
        // The hardware starts what the descriptor leads to, which a linker writes there.
        let entry = known.symbol.st_value(LE).wrapping_add(descriptor.entry());
        if function.is_some_and(|function| function.symbol.st_value(LE) != entry)
            && !elf.is_relocatable()
        {
            kernel.code_range = None;
        }
        kernel.registers_allocated = descriptor.registers(processor);
        kernel.wave_size = kernel.wave_size.or(Some(descriptor.wave_size()));
        kernel.group_memory = kernel.group_memory.or(Some(descriptor.group_segment.into()));
        if kernel.private_memory == Stored::Absent {
            let size = descriptor.private_segment.into();
            kernel.private_memory = if descriptor.has_dynamic_stack() {
                Stored::Unknown(size)
            } else {
                Stored::Known(size)
            };
        }
        // Before version 4 the field is reserved.
        let size = Some(descriptor.arguments.into()).filter(|size| *size != 0);
        kernel.arguments_size = kernel.arguments_size.or(size);
    }

    /// Returns the bytes from a function to the next one in its section, or to the end of that.
    fn to_next(&self, elf: &Elf<'_>, function: &Known<'_>) -> Option<u64> {
        let (section, start) = (function.section, function.symbol.st_value(LE));
        let next = self.functions.partition_point(|other| *other <= (section, start));
        let next = self.functions.get(next).filter(|(other, _)| *other == section);
        let end = match next {
            Some((_, next)) => *next,
            None => {
                let section = elf.section(section)?;
                elf.address(section).checked_add(section.sh_size(LE))?
            }
        };
        end.checked_sub(start)
    }
}
