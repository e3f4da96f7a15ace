//! Objects in Mach-O, 64 bits and little-endian.

mod platform;
mod wire;

use zerocopy::IntoBytes;

use super::code::Assembler;
use super::data::{self, PlacedFunction};
use super::model::{Content, Object, Part, Relocation, Section, Symbol, pad};
use crate::description::{Linkage, Module, Name, Operation};
use crate::error::Error;
use crate::layout::Layout;
use crate::target::ObjectFormat;
use crate::to_u64;
use platform::Platform;
use wire::{
    BuildVersion, Header, RelocationRecord, SectionHeader, Segment, SymbolRanges, SymbolRecord,
    SymbolTable, UnwindEntry,
};

/// Properties of a machine.
#[derive(Debug)]
pub(super) struct Machine {
    /// `cputype`
    cpu: u32,
    /// `cpusubtype`
    cpu_subtype: u32,
    /// How to unwind the stack in a function, in the form of `compact_unwind_encoding.h`.
    encoding: fn(&PlacedFunction) -> u32,
    /// Arguments on the stack take as many bytes as they have.
    packed_arguments: bool,
}

pub(super) const X86_64: Machine = Machine {
    cpu: 0x0100_0007,
    cpu_subtype: 3, // CPU_SUBTYPE_X86_64_ALL
    // UNWIND_X86_64_MODE_STACK_IMMD: the frame and the return address, in units of 8 bytes.
    encoding: |function| {
        let units = function.lowered.prologue.frame.saturating_add(8) / 8;
        0x0200_0000 | (units & 0xff) << 16
    },
    packed_arguments: false,
};

/// Haswell: `x86_64h`.
pub(super) const X86_64_H: Machine = Machine { cpu_subtype: 8, ..X86_64 };

pub(super) const ARM64: Machine = Machine {
    cpu: 0x0100_000c,
    cpu_subtype: 0, // CPU_SUBTYPE_ARM64_ALL
    // UNWIND_ARM64_MODE_FRAME, nothing saved but the frame pointer and the return address.
    encoding: |_| 0x0400_0000,
    packed_arguments: true,
};

// Types of relocations, as they are in the upper 8 bits of a record: 1 for a distance, the logarithm of the size in bytes
// times 2, 8 for a symbol and not a section, the type of the machine times 16.

/// An address of 64 bits: `X86_64_RELOC_UNSIGNED`, `ARM64_RELOC_UNSIGNED`.
const POINTER: u32 = 0x0e;
/// The same, of a section.
const SECTION_POINTER: u32 = 0x06;
/// The bit of a relocation type that refers to a symbol.
const OF_SYMBOL: u32 = 8;

/// The size of the field that a relocation of this type fills in, in bytes.
fn width(kind: u32) -> usize {
    1 << (kind >> 1 & 3)
}

/// Lays out an object.
pub(super) fn lay_out(
    module: &Module,
    machine: &Machine,
    assembler: impl Assembler,
) -> Result<Layout, Error> {
    check(module, machine, &assembler)?;
    let (mut object, functions) = data::build(module, assembler, POINTER)?;
    add_unwind(&mut object, machine, &functions)?;
    for section in &mut object.sections {
        section.set_addends(width);
    }
    Writer::new(module, &object)?.write(machine)
}

/// Refuses what needs other code.
fn check(module: &Module, machine: &Machine, assembler: &impl Assembler) -> Result<(), Error> {
    let not_native =
        |symbol: &Name, what| Err(Error::NotNative { symbol: symbol.as_ref().into(), what });
    if let Some(startup) = module.destructors.first() {
        return not_native(&startup.function, "destructors in mach-o");
    }
    for function in module.functions.iter().filter(|_| machine.packed_arguments) {
        for instruction in function.blocks.iter().flat_map(|block| &block.instructions) {
            let Operation::Call { arguments, .. } = &instruction.operation else { continue };
            let mut on_stack = arguments.iter().skip(assembler.argument_registers());
            if on_stack.any(|argument| module.size_of(&function.type_of(argument)) != 8) {
                return not_native(&function.name, "an argument of less than 64 bits on the stack");
            }
        }
    }
    Ok(())
}

/// Adds what linkers make `__TEXT,__unwind_info` of.
fn add_unwind(
    object: &mut Object,
    machine: &Machine,
    functions: &[PlacedFunction],
) -> Result<(), Error> {
    if functions.is_empty() {
        return Ok(());
    }
    let index = object.section(&Name::Borrowed("__LD,__compact_unwind"), Content::Unwind);
    let Some(section) = object.sections.get_mut(index) else { return Ok(()) };
    for function in functions {
        let offset = section.align_to(8)?;
        let (start, end) = (function.lowered.start, function.lowered.end);
        let entry = UnwindEntry {
            function: 0.into(),
            size: narrow(to_u64(end.saturating_sub(start)))?.into(),
            encoding: (machine.encoding)(function).into(),
            personality: 0.into(),
            lsda: 0.into(),
        };
        section.push(entry.as_bytes())?;
        // The section of code is the first, at address 0.
        let addend = i64::try_from(start).unwrap_or_default();
        let (kind, symbol) = (SECTION_POINTER, function.symbol);
        section.relocations.push(Relocation { offset, kind, symbol, addend });
    }
    Ok(())
}

fn too_large(size: u64, limit: u64) -> Error {
    Error::ObjectTooLarge { format: ObjectFormat::MachO, size, limit }
}

fn narrow(size: u64) -> Result<u32, Error> {
    u32::try_from(size).map_err(|_| too_large(size, u32::MAX.into()))
}

fn next_multiple(end: u64, align: u64) -> Result<u64, Error> {
    end.checked_next_multiple_of(align.max(1)).ok_or(Error::OutputTooLarge)
}

fn advance(end: u64, size: u64) -> Result<u64, Error> {
    end.checked_add(size).ok_or(Error::OutputTooLarge)
}

/// A name of up to 16 bytes.
fn short_name(name: &str) -> Option<[u8; 16]> {
    let mut short = [0; 16];
    short.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    Some(short)
}

struct Writer<'a> {
    module: &'a Module,
    object: &'a Object,
    /// Address of each section.
    addresses: Vec<u64>,
    /// Address of the end of the last section.
    memory_size: u64,
    symbols: Vec<u8>,
    /// The place in the table of each symbol of the object.
    symbol_numbers: Vec<u32>,
    /// How many symbols are local, defined and undefined.
    counts: [u32; 3],
    /// Names of symbols, each ended by a NUL.
    strings: Vec<u8>,
}

impl<'a> Writer<'a> {
    fn new(module: &'a Module, object: &'a Object) -> Result<Self, Error> {
        let mut writer = Self {
            module,
            object,
            addresses: vec![0; object.sections.len()],
            memory_size: 0,
            symbols: Vec::new(),
            symbol_numbers: vec![0; object.symbols.len()],
            counts: [0; 3],
            strings: vec![0],
        };
        // Zeros are at the end of a segment, without bytes in the file.
        for zeros in [false, true] {
            for (section, address) in object.sections.iter().zip(&mut writer.addresses) {
                if (section.content == Content::Zeros) == zeros {
                    *address = next_multiple(writer.memory_size, section.align)?;
                    writer.memory_size = advance(*address, section.size)?;
                }
            }
        }
        writer.lay_out_symbols()?;
        Ok(writer)
    }

    fn lay_out_symbols(&mut self) -> Result<(), Error> {
        /// Records of relocations have 24 bits for it.
        const LIMIT: u32 = 1 << 24;

        let class = |symbol: &Symbol| match (symbol.linkage, symbol.section) {
            (Linkage::Internal, _) => 0,
            (_, Some(_)) => 1,
            (_, None) => 2,
        };
        let mut order: Vec<_> = self.object.symbols.iter().enumerate().collect();
        // Local symbols stay in their order.
        order.sort_by_key(|(_, symbol)| {
            let class = class(symbol);
            (class, if class == 0 { "" } else { &symbol.name })
        });
        for (number, (index, symbol)) in (0..).zip(order) {
            if number >= LIMIT {
                return Err(too_large(to_u64(self.object.symbols.len()), LIMIT.into()));
            }
            if let Some(known) = self.symbol_numbers.get_mut(index) {
                *known = number;
            }
            if let Some(count) = self.counts.get_mut(class(symbol)) {
                *count = count.saturating_add(1);
            }
            let record = self.symbol(symbol)?;
            self.symbols.extend_from_slice(record.as_bytes());
        }
        self.strings.resize(self.strings.len().next_multiple_of(8), 0);
        Ok(())
    }

    fn symbol(&mut self, symbol: &Symbol) -> Result<SymbolRecord, Error> {
        const N_EXT: u8 = 1;
        const N_SECT: u8 = 0xe;
        const N_PEXT: u8 = 0x10;
        const N_NO_DEAD_STRIP: u16 = 0x20;
        const N_WEAK_REF: u16 = 0x40;
        const N_WEAK_DEF: u16 = 0x80;

        let name = narrow(to_u64(self.strings.len()))?;
        match symbol.name.strip_prefix('\x01') {
            Some(name) => self.strings.extend_from_slice(name.as_bytes()),
            None => {
                self.strings.push(b'_');
                self.strings.extend_from_slice(symbol.name.as_bytes());
            }
        }
        self.strings.push(0);
        let mut kind = if symbol.linkage == Linkage::Internal { 0 } else { N_EXT };
        let mut description = match symbol.linkage {
            Linkage::ExternWeak => N_WEAK_REF,
            Linkage::Weak | Linkage::WeakOdr => N_WEAK_DEF,
            _ => 0,
        };
        let Some(index) = symbol.section else {
            let (name, description) = (name.into(), description.into());
            return Ok(SymbolRecord { name, kind, section: 0, description, value: 0.into() });
        };
        kind |= N_SECT;
        if symbol.hidden {
            kind |= N_PEXT;
        }
        if self.object.sections.get(index).is_some_and(|section| section.retain) {
            description |= N_NO_DEAD_STRIP;
        }
        let number = to_u64(index).saturating_add(1);
        let address = self.addresses.get(index).copied().unwrap_or_default();
        Ok(SymbolRecord {
            name: name.into(),
            kind,
            section: u8::try_from(number).map_err(|_| too_large(number, u8::MAX.into()))?,
            description: description.into(),
            value: advance(address, symbol.offset)?.into(),
        })
    }

    fn write(self, machine: &Machine) -> Result<Layout, Error> {
        const MH_MAGIC_64: u32 = 0xfeed_facf;
        const MH_OBJECT: u32 = 1;
        /// Each symbol starts a part that linkers can drop.
        const MH_SUBSECTIONS_VIA_SYMBOLS: u32 = 0x2000;

        let build_version = self.build_version();
        let count = narrow(to_u64(self.object.sections.len()))?;
        let headers_size = to_u64(size_of::<SectionHeader>()).saturating_mul(count.into());
        let segment_size = to_u64(size_of::<Segment>()).saturating_add(headers_size);
        let others =
            build_version.as_bytes().len() + size_of::<SymbolTable>() + size_of::<SymbolRanges>();
        let commands_size = segment_size.saturating_add(to_u64(others));
        let start = to_u64(size_of::<Header>()).saturating_add(commands_size);

        // In the file: header, commands, sections, relocations, symbols, names.
        let mut headers = Vec::new();
        let mut end = start;
        for (section, address) in self.object.sections.iter().zip(&self.addresses) {
            let mut header = header(section, *address)?;
            if section.content != Content::Zeros {
                let offset = next_multiple(end, section.file_align())?;
                header.offset = narrow(offset)?.into();
                end = advance(offset, section.size)?;
            }
            headers.push(header);
        }
        let file_size = end.saturating_sub(start);
        end = next_multiple(end, 8)?;
        for (section, header) in self.object.sections.iter().zip(&mut headers) {
            if !section.relocations.is_empty() {
                header.relocations_at = narrow(end)?.into();
                let size = to_u64(size_of::<RelocationRecord>());
                end = advance(end, size.saturating_mul(header.relocations.get().into()))?;
            }
        }
        let symbols_at = end;
        let strings_at = advance(end, to_u64(self.symbols.len()))?;

        let mut layout = Layout::new(&self.module.inputs);
        let header = Header {
            magic: MH_MAGIC_64.into(),
            cpu: machine.cpu.into(),
            cpu_subtype: machine.cpu_subtype.into(),
            kind: MH_OBJECT.into(),
            commands: if build_version.is_empty() { 3 } else { 4 }.into(),
            commands_size: narrow(commands_size)?.into(),
            flags: MH_SUBSECTIONS_VIA_SYMBOLS.into(),
            reserved: 0.into(),
        };
        layout.push_bytes(header.as_bytes())?;
        let segment = Segment {
            command: 0x19.into(), // LC_SEGMENT_64
            command_size: narrow(segment_size)?.into(),
            name: [0; 16],
            address: 0.into(),
            // There may be more padding in the file.
            size: self.memory_size.max(file_size).into(),
            file_offset: start.into(),
            file_size: file_size.into(),
            max_protection: 7.into(),
            protection: 7.into(),
            sections: count.into(),
            flags: 0.into(),
        };
        layout.push_bytes(segment.as_bytes())?;
        layout.push_bytes(headers.as_bytes())?;
        layout.push_bytes(build_version.as_bytes())?;
        self.push_tables(&mut layout, symbols_at, strings_at)?;
        for (section, header) in self.object.sections.iter().zip(&headers) {
            if section.content == Content::Zeros {
                continue;
            }
            pad(&mut layout, header.offset.get().into())?;
            for part in &section.parts {
                match part {
                    Part::Bytes(bytes) => layout.push_bytes(bytes)?,
                    Part::Image(blob) => layout.push_image(blob)?,
                    Part::Zeros(count) => layout.push_zeros(*count)?,
                }
            }
        }
        let aligned = next_multiple(layout.total_size(), 8)?;
        pad(&mut layout, aligned)?;
        for section in &self.object.sections {
            // The last place first, as assemblers have it.
            for relocation in section.relocations.iter().rev() {
                layout.push_bytes(self.relocation(relocation)?.as_bytes())?;
            }
        }
        layout.push_bytes(&self.symbols)?;
        layout.push_bytes(&self.strings)?;
        Ok(layout)
    }

    /// The system that the object is for, where the triple has one of Apple's.
    fn build_version(&self) -> Vec<BuildVersion> {
        let platform = Platform::new(self.module.target.triple());
        let command = platform.map(|platform| BuildVersion {
            command: 0x32.into(), // LC_BUILD_VERSION
            command_size: 24.into(),
            platform: platform.number.into(),
            minimum: platform.version().into(),
            sdk: 0.into(),
            tools: 0.into(),
        });
        command.into_iter().collect()
    }

    /// Adds the commands that say where symbols are.
    fn push_tables(
        &self,
        layout: &mut Layout,
        symbols_at: u64,
        strings_at: u64,
    ) -> Result<(), Error> {
        let [locals, defined, undefined] = self.counts;
        let first_undefined = locals.saturating_add(defined);
        let table = SymbolTable {
            command: 2.into(), // LC_SYMTAB
            command_size: 24.into(),
            symbols_at: narrow(symbols_at)?.into(),
            symbols: first_undefined.saturating_add(undefined).into(),
            strings_at: narrow(strings_at)?.into(),
            strings_size: narrow(to_u64(self.strings.len()))?.into(),
        };
        layout.push_bytes(table.as_bytes())?;
        let ranges = SymbolRanges {
            command: 0xb.into(), // LC_DYSYMTAB
            command_size: 80.into(),
            first_local: 0.into(),
            locals: locals.into(),
            first_defined: locals.into(),
            defined: defined.into(),
            first_undefined: first_undefined.into(),
            undefined: undefined.into(),
            unused: [0.into(); 12],
        };
        layout.push_bytes(ranges.as_bytes())
    }

    fn relocation(&self, relocation: &Relocation) -> Result<RelocationRecord, Error> {
        let index = relocation.symbol;
        let target = if relocation.kind & OF_SYMBOL != 0 {
            self.symbol_numbers.get(index).copied().unwrap_or_default()
        } else {
            let section = self.object.symbols.get(index).and_then(|symbol| symbol.section);
            narrow(to_u64(section.unwrap_or_default()).saturating_add(1))?
        };
        Ok(RelocationRecord {
            address: narrow(relocation.offset)?.into(),
            target: (target | relocation.kind << 24).into(),
        })
    }
}

/// The header of a section that is at `address`, but for places in the file.
fn header(section: &Section, address: u64) -> Result<SectionHeader, Error> {
    const S_ZEROFILL: u32 = 1;
    const S_MOD_INIT_FUNC_POINTERS: u32 = 9;
    const S_ATTR_SOME_INSTRUCTIONS: u32 = 0x400;
    const S_ATTR_DEBUG: u32 = 0x0200_0000;
    const S_ATTR_PURE_INSTRUCTIONS: u32 = 0x8000_0000;

    let names = section.name.split_once(',').and_then(|(segment, name)| {
        Some((short_name(segment)?, short_name(name).filter(|_| !name.contains(','))?))
    });
    let (segment, name) = names.ok_or_else(|| Error::NotNative {
        symbol: section.name.as_ref().into(),
        what: "section names of other formats in mach-o",
    })?;
    let flags = match section.content {
        Content::Code => S_ATTR_PURE_INSTRUCTIONS | S_ATTR_SOME_INSTRUCTIONS,
        Content::Zeros => S_ZEROFILL,
        Content::Constructors => S_MOD_INIT_FUNC_POINTERS,
        // Read by the linker and left.
        Content::Unwind => S_ATTR_DEBUG,
        _ => 0,
    };
    Ok(SectionHeader {
        name,
        segment,
        address: address.into(),
        size: section.size.into(),
        align: section.align.trailing_zeros().into(),
        relocations: narrow(to_u64(section.relocations.len()))?.into(),
        flags: flags.into(),
        ..SectionHeader::default()
    })
}
