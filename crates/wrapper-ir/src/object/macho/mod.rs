//! Objects in Mach-O, 64 bits and little-endian.

mod platform;

use object::LittleEndian;
use object::macho::{
    self, BuildVersionCommand, DysymtabCommand, MachHeader64, Nlist64, Section64, SegmentCommand64,
    SymtabCommand,
};
use object::pod::{bytes_of, bytes_of_slice};

use super::code::Assembler;
use super::data::{self, PlacedFunction};
use super::model::{Content, Object, Relocation, Section, Symbol, pad, push_parts};
use crate::description::{Linkage, Module, Name, Operation};
use crate::error::Error;
use crate::layout::Output;
use crate::object_format::ObjectFormat;
use crate::to_u64;
use platform::Platform;

type SectionHeader = Section64<LittleEndian>;
type BuildVersion = BuildVersionCommand<LittleEndian>;
type SymbolRecord = Nlist64<LittleEndian>;
type RelocationRecord = macho::Relocation<LittleEndian>;

/// Properties of a machine.
#[derive(Debug)]
pub(super) struct Machine {
    cpu: macho::CpuType,
    cpu_subtype: macho::CpuSubtypeId,
    /// Returns the unwinding of a function, in the form of `compact_unwind_encoding.h`.
    encoding: fn(&PlacedFunction) -> u32,
    /// Arguments on the stack take as many bytes as they have.
    packed_arguments: bool,
}

pub(super) const X86_64: Machine = Machine {
    cpu: macho::CPU_TYPE_X86_64,
    cpu_subtype: macho::CPU_SUBTYPE_X86_64_ALL,
    // UNWIND_X86_64_MODE_STACK_IMMD: the frame and the return address, in units of 8 bytes.
    encoding: |function| {
        let units = function.lowered.prologue.frame.saturating_add(8) / 8;
        0x0200_0000 | (units & 0xff) << 16
    },
    packed_arguments: false,
};

/// Haswell: `x86_64h`.
pub(super) const X86_64_H: Machine = Machine { cpu_subtype: macho::CPU_SUBTYPE_X86_64_H, ..X86_64 };

pub(super) const ARM64: Machine = Machine {
    cpu: macho::CPU_TYPE_ARM64,
    cpu_subtype: macho::CPU_SUBTYPE_ARM64_ALL,
    // UNWIND_ARM64_MODE_FRAME, nothing saved but the frame pointer and the return address.
    encoding: |_| 0x0400_0000,
    packed_arguments: true,
};

/// Returns a relocation that refers to a symbol, as the upper 8 bits of its record: 1 for a distance, the logarithm
/// of the size in bytes times 2, 8 for a symbol and not a section, the type of the machine times 16.
pub(super) const fn mach_o_kind(kind: macho::RelocationType, length: u32, distance: bool) -> u32 {
    (kind.0 as u32) << 4 | OF_SYMBOL | length << 1 | distance as u32
}

/// The bit of a relocation type that refers to a symbol.
const OF_SYMBOL: u32 = 8;
/// An address of 64 bits, the same number for both machines.
const POINTER: u32 = mach_o_kind(macho::X86_64_RELOC_UNSIGNED, 3, false);
const _: () = assert!(POINTER == mach_o_kind(macho::ARM64_RELOC_UNSIGNED, 3, false));
/// The same, of a section.
const SECTION_POINTER: u32 = POINTER & !OF_SYMBOL;

/// Returns the size of the field that a relocation of this type fills in, in bytes.
fn width(kind: u32) -> usize {
    1 << (kind >> 1 & 3)
}

/// Lays out an object.
pub(super) fn lay_out(
    module: &Module,
    machine: &Machine,
    assembler: impl Assembler,
) -> Result<Output, Error> {
    check(module, machine, &assembler)?;
    let (mut object, functions) = data::build(module, assembler, POINTER)?;
    add_unwind(&mut object, machine, &functions)?;
    for section in &mut object.sections {
        section.set_addends(width);
    }
    Writer::new(module, &object)?.write(machine)
}

/// Refuses modules that need other code.
fn check(module: &Module, machine: &Machine, assembler: &impl Assembler) -> Result<(), Error> {
    let not_native = |symbol: &Name, what| Err(Error::not_native(symbol, what));
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

/// Adds the section from which linkers make `__TEXT,__unwind_info`.
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
        // `compact_unwind_entry`, which `object` lacks: the function, its size, how to unwind, a personality and an LSDA.
        section.push(&[0; 8])?;
        section.push(&narrow(to_u64(end.saturating_sub(start)))?.to_le_bytes())?;
        section.push(&(machine.encoding)(function).to_le_bytes())?;
        section.push(&[0; 16])?;
        // The section of code is the first, at address 0.
        let addend = i64::try_from(start).unwrap_or_default();
        let (kind, symbol) = (SECTION_POINTER, function.symbol);
        section.relocations.push(Relocation { offset, kind, symbol, addend });
    }
    Ok(())
}

fn too_large(size: u64, limit: u64) -> Error {
    Error::object_too_large(ObjectFormat::MachO, size, limit)
}

fn narrow(size: u64) -> Result<u32, Error> {
    u32::try_from(size).map_err(|_| too_large(size, u32::MAX.into()))
}

fn next_multiple(end: u64, align: u64) -> Result<u64, Error> {
    end.checked_next_multiple_of(align.max(1)).ok_or_else(Error::output_too_large)
}

fn advance(end: u64, size: u64) -> Result<u64, Error> {
    end.checked_add(size).ok_or_else(Error::output_too_large)
}

/// Returns a name of up to 16 bytes.
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
    /// The numbers of local, defined and undefined symbols.
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
            self.symbols.extend_from_slice(bytes_of(&record));
        }
        self.strings.resize(self.strings.len().next_multiple_of(8), 0);
        Ok(())
    }

    fn symbol(&mut self, symbol: &Symbol) -> Result<SymbolRecord, Error> {
        let name = narrow(to_u64(self.strings.len()))?;
        match symbol.name.strip_prefix('\x01') {
            Some(name) => self.strings.extend_from_slice(name.as_bytes()),
            None => {
                self.strings.push(b'_');
                self.strings.extend_from_slice(symbol.name.as_bytes());
            }
        }
        self.strings.push(0);
        let internal = symbol.linkage == Linkage::Internal;
        let flags = if internal { macho::SymbolFlags(0) } else { macho::N_EXT };
        let description = match symbol.linkage {
            Linkage::ExternWeak => macho::N_WEAK_REF,
            Linkage::Weak | Linkage::WeakOdr => macho::N_WEAK_DEF,
            _ => macho::SymbolDesc(0),
        };
        let mut record = SymbolRecord {
            n_strx: name.into(),
            n_type: flags,
            n_sect: 0,
            n_desc: description.into(),
            n_value: 0.into(),
        };
        if let Some(index) = symbol.section {
            record.n_type = flags.with_type(macho::N_SECT);
            if symbol.hidden {
                record.n_type |= macho::N_PEXT;
            }
            if self.object.sections.get(index).is_some_and(|section| section.retain) {
                record.n_desc = description.with(macho::N_NO_DEAD_STRIP).into();
            }
            let number = to_u64(index).saturating_add(1);
            record.n_sect = u8::try_from(number).map_err(|_| too_large(number, u8::MAX.into()))?;
            let address = self.addresses.get(index).copied().unwrap_or_default();
            record.n_value = advance(address, symbol.offset)?.into();
        }
        Ok(record)
    }

    fn write(self, machine: &Machine) -> Result<Output, Error> {
        let build_version = self.build_version();
        let count = narrow(to_u64(self.object.sections.len()))?;
        let headers_size = to_u64(size_of::<SectionHeader>()).saturating_mul(count.into());
        let segment_size =
            to_u64(size_of::<SegmentCommand64<LittleEndian>>()).saturating_add(headers_size);
        let build_version = bytes_of_slice(&build_version);
        let others = build_version.len()
            + size_of::<SymtabCommand<LittleEndian>>()
            + size_of::<DysymtabCommand<LittleEndian>>();
        let commands_size = segment_size.saturating_add(to_u64(others));
        let start = to_u64(size_of::<MachHeader64<LittleEndian>>()).saturating_add(commands_size);

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
                header.reloff = narrow(end)?.into();
                let size = to_u64(size_of::<RelocationRecord>());
                end = advance(end, size.saturating_mul(header.nreloc.get(LittleEndian).into()))?;
            }
        }
        let symbols_at = end;
        let strings_at = advance(end, to_u64(self.symbols.len()))?;

        let mut layout = Output::new(&self.module.inputs);
        let header = MachHeader64::<LittleEndian> {
            // Big-endian, as `object` has it.
            magic: macho::MH_CIGAM_64.into(),
            cputype: machine.cpu.into(),
            cpusubtype: macho::CpuSubtype::from(machine.cpu_subtype).into(),
            filetype: macho::MH_OBJECT.into(),
            ncmds: if build_version.is_empty() { 3 } else { 4 }.into(),
            sizeofcmds: narrow(commands_size)?.into(),
            // Each symbol starts a part that linkers can drop.
            flags: macho::MH_SUBSECTIONS_VIA_SYMBOLS.into(),
            reserved: 0.into(),
        };
        layout.push_bytes(bytes_of(&header))?;
        let anything = macho::VM_PROT_READ | macho::VM_PROT_WRITE | macho::VM_PROT_EXECUTE;
        let segment = SegmentCommand64::<LittleEndian> {
            cmd: macho::LC_SEGMENT_64.into(),
            cmdsize: narrow(segment_size)?.into(),
            segname: [0; 16],
            vmaddr: 0.into(),
            // There may be more padding in the file.
            vmsize: self.memory_size.max(file_size).into(),
            fileoff: start.into(),
            filesize: file_size.into(),
            maxprot: anything.into(),
            initprot: anything.into(),
            nsects: count.into(),
            flags: macho::SegmentFlags(0).into(),
        };
        layout.push_bytes(bytes_of(&segment))?;
        layout.push_bytes(bytes_of_slice(&headers))?;
        layout.push_bytes(build_version)?;
        self.push_tables(&mut layout, symbols_at, strings_at)?;
        for (section, header) in self.object.sections.iter().zip(&headers) {
            if section.content == Content::Zeros {
                continue;
            }
            pad(&mut layout, header.offset.get(LittleEndian).into())?;
            push_parts(&mut layout, section)?;
        }
        let aligned = next_multiple(layout.size(), 8)?;
        pad(&mut layout, aligned)?;
        for section in &self.object.sections {
            // The last place first, as assemblers have it.
            for relocation in section.relocations.iter().rev() {
                layout.push_bytes(bytes_of(&self.relocation(relocation)?))?;
            }
        }
        layout.push_bytes(&self.symbols)?;
        layout.push_bytes(&self.strings)?;
        Ok(layout)
    }

    /// Returns the system that the object is for, where the triple has one of Apple's.
    fn build_version(&self) -> Vec<BuildVersion> {
        let platform = Platform::new(self.module.target.triple());
        let command = platform.map(|platform| BuildVersion {
            cmd: macho::LC_BUILD_VERSION.into(),
            cmdsize: 24.into(),
            platform: platform.number.into(),
            minos: platform.version().into(),
            sdk: macho::Version(0).into(),
            ntools: 0.into(),
        });
        command.into_iter().collect()
    }

    /// Adds the commands with the places of the symbol tables.
    fn push_tables(
        &self,
        layout: &mut Output,
        symbols_at: u64,
        strings_at: u64,
    ) -> Result<(), Error> {
        let [locals, defined, undefined] = self.counts;
        let first_undefined = locals.saturating_add(defined);
        let table = SymtabCommand::<LittleEndian> {
            cmd: macho::LC_SYMTAB.into(),
            cmdsize: 24.into(),
            symoff: narrow(symbols_at)?.into(),
            nsyms: first_undefined.saturating_add(undefined).into(),
            stroff: narrow(strings_at)?.into(),
            strsize: narrow(to_u64(self.strings.len()))?.into(),
        };
        layout.push_bytes(bytes_of(&table))?;
        // Linked files alone have the other tables.
        let ranges = DysymtabCommand::<LittleEndian> {
            cmd: macho::LC_DYSYMTAB.into(),
            cmdsize: 80.into(),
            ilocalsym: 0.into(),
            nlocalsym: locals.into(),
            iextdefsym: locals.into(),
            nextdefsym: defined.into(),
            iundefsym: first_undefined.into(),
            nundefsym: undefined.into(),
            tocoff: 0.into(),
            ntoc: 0.into(),
            modtaboff: 0.into(),
            nmodtab: 0.into(),
            extrefsymoff: 0.into(),
            nextrefsyms: 0.into(),
            indirectsymoff: 0.into(),
            nindirectsyms: 0.into(),
            extreloff: 0.into(),
            nextrel: 0.into(),
            locreloff: 0.into(),
            nlocrel: 0.into(),
        };
        layout.push_bytes(bytes_of(&ranges))
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
            r_word0: narrow(relocation.offset)?.into(),
            r_word1: (target | relocation.kind << 24).into(),
        })
    }
}

/// Returns the header of a section that is at `address`, but for places in the file.
fn header(section: &Section, address: u64) -> Result<SectionHeader, Error> {
    let names = section.name.split_once(',').and_then(|(segment, name)| {
        Some((short_name(segment)?, short_name(name).filter(|_| !name.contains(','))?))
    });
    let (segname, sectname) = names.ok_or_else(|| {
        Error::not_native(&section.name, "section names of other formats in mach-o")
    })?;
    let flags = match section.content {
        Content::Code => macho::S_ATTR_PURE_INSTRUCTIONS | macho::S_ATTR_SOME_INSTRUCTIONS,
        Content::Zeros => macho::S_ZEROFILL.to_flags(),
        Content::Constructors => macho::S_MOD_INIT_FUNC_POINTERS.to_flags(),
        // Read by the linker and left.
        Content::Unwind => macho::S_ATTR_DEBUG,
        _ => macho::S_REGULAR.to_flags(),
    };
    Ok(SectionHeader {
        sectname,
        segname,
        addr: address.into(),
        size: section.size.into(),
        offset: 0.into(),
        align: section.align.trailing_zeros().into(),
        reloff: 0.into(),
        nreloc: narrow(to_u64(section.relocations.len()))?.into(),
        flags: flags.into(),
        reserved1: 0.into(),
        reserved2: 0.into(),
        reserved3: 0.into(),
    })
}
