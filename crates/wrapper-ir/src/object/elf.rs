//! Objects in ELF, 64 bits and little-endian.

use std::iter;

use zerocopy::IntoBytes;

use super::code::Assembler;
use super::data;
use super::model::{Content, Object, Part, Section, Symbol, SymbolKind, pad};
use super::unwind::{self, Rules};
use super::wire::{ElfHeader, ElfRelocation, ElfSection, ElfSymbol};
use crate::description::{Linkage, Module, Name};
use crate::error::Error;
use crate::layout::Layout;
use crate::target::ObjectFormat;
use crate::to_u64;

/// What machines differ in.
#[derive(Debug)]
pub(super) struct Machine {
    /// `e_machine`
    number: u16,
    /// `e_flags`
    flags: u32,
    /// Relocation of an address of 64 bits.
    pointer: u32,
    unwind: Rules,
    /// The kind of `.eh_frame`.
    unwind_kind: u32,
    /// What the code keeps to, as in `.note.gnu.property`: type and bits.
    property: Option<(u32, u32)>,
    /// A symbol that says that code starts.
    mapping: Option<&'static str>,
    /// The flag of sections that may be far from code.
    large: u64,
}

pub(super) const X86_64: Machine = Machine {
    number: 62,
    flags: 0,
    pointer: 1, // R_X86_64_64
    unwind: unwind::X86_64,
    unwind_kind: 0x7000_0001, // SHT_X86_64_UNWIND
    // GNU_PROPERTY_X86_FEATURE_1_AND: IBT, SHSTK
    property: Some((0xc000_0002, 3)),
    mapping: None,
    large: 0x1000_0000, // SHF_X86_64_LARGE
};

pub(super) const AARCH64: Machine = Machine {
    number: 183,
    flags: 0,
    pointer: 257, // R_AARCH64_ABS64
    unwind: unwind::AARCH64,
    unwind_kind: SHT_PROGBITS,
    // GNU_PROPERTY_AARCH64_FEATURE_1_AND: BTI
    property: Some((0xc000_0000, 1)),
    mapping: Some("$x"),
    large: 0,
};

pub(super) const RISCV64: Machine = Machine {
    number: 243,
    flags: 4,   // EF_RISCV_FLOAT_ABI_DOUBLE
    pointer: 2, // R_RISCV_64
    unwind: unwind::RISCV64,
    unwind_kind: SHT_PROGBITS,
    property: None,
    mapping: None,
    large: 0,
};

/// Without registers for floating point arguments.
pub(super) const RISCV64_SOFT: Machine = Machine { flags: 0, ..RISCV64 };

const SHT_PROGBITS: u32 = 1;
const SHT_SYMTAB: u32 = 2;
const SHT_STRTAB: u32 = 3;
const SHT_RELA: u32 = 4;
const SHT_NOTE: u32 = 7;
const SHT_NOBITS: u32 = 8;
const SHT_INIT_ARRAY: u32 = 14;
const SHT_FINI_ARRAY: u32 = 15;
const SHT_LLVM_OFFLOADING: u32 = 0x6fff_4c0b;

const SHF_WRITE: u64 = 1;
const SHF_ALLOC: u64 = 2;
const SHF_EXECINSTR: u64 = 4;
const SHF_INFO_LINK: u64 = 0x40;
const SHF_GNU_RETAIN: u64 = 0x20_0000;

/// From this size on, sections are kept away from code.
const LARGE_SIZE: u64 = 1 << 30;

/// Lays out an object.
pub(super) fn lay_out(
    module: &Module,
    machine: &Machine,
    assembler: impl Assembler,
) -> Result<Layout, Error> {
    let (mut object, functions) = data::build(module, assembler, machine.pointer)?;
    if let Some(name) = machine.mapping {
        object.define(Symbol {
            name: name.into(),
            section: Some(0),
            offset: 0,
            size: 0,
            linkage: Linkage::Internal,
            hidden: false,
            kind: SymbolKind::Label,
        });
    }
    unwind::add_eh_frame(&mut object, &machine.unwind, &functions)?;
    add_property(&mut object, machine)?;
    // Without it the linker thinks that the code needs an executable stack.
    object.section(&Name::Borrowed(".note.GNU-stack"), Content::Directive);
    Writer::new(module, machine, &object)?.write()
}

/// Adds the note that says what the code keeps to, so that the program may as well.
fn add_property(object: &mut Object, machine: &Machine) -> Result<(), Error> {
    const NT_GNU_PROPERTY_TYPE_0: u32 = 5;

    let Some((kind, bits)) = machine.property else { return Ok(()) };
    let index = object.section(&Name::Borrowed(".note.gnu.property"), Content::Notes);
    let Some(section) = object.sections.get_mut(index) else { return Ok(()) };
    section.align = 8;
    // Sizes of name and description, type, name; then the property: type, size, bits, padding.
    for word in [4, 16, NT_GNU_PROPERTY_TYPE_0, u32::from_le_bytes(*b"GNU\0"), kind, 4, bits, 0] {
        section.push(&word.to_le_bytes())?;
    }
    Ok(())
}

/// Names, one after the other, each ended by a NUL.
struct Strings(Vec<u8>);

impl Strings {
    fn add(&mut self, name: &str) -> Result<u32, Error> {
        let at = to_u64(self.0.len());
        let at = u32::try_from(at).map_err(|_| too_large(at, u32::MAX.into()))?;
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(0);
        Ok(at)
    }
}

fn too_large(size: u64, limit: u64) -> Error {
    Error::ObjectTooLarge { format: ObjectFormat::Elf, size, limit }
}

struct Writer<'a> {
    module: &'a Module,
    machine: &'a Machine,
    object: &'a Object,
    strings: Strings,
    symbols: Vec<u8>,
    /// How many symbols are seen in this object only; they come first.
    local_symbols: u32,
    /// The place in the table of each symbol of the object.
    symbol_numbers: Vec<u32>,
}

impl<'a> Writer<'a> {
    fn new(module: &'a Module, machine: &'a Machine, object: &'a Object) -> Result<Self, Error> {
        let mut writer = Self {
            module,
            machine,
            object,
            strings: Strings(vec![0]),
            symbols: Vec::new(),
            local_symbols: 0,
            symbol_numbers: vec![0; object.symbols.len()],
        };
        writer.lay_out_symbols()?;
        Ok(writer)
    }

    fn lay_out_symbols(&mut self) -> Result<(), Error> {
        const STT_FILE: u8 = 4;
        const SHN_ABS: u16 = 0xfff1;

        self.symbols.extend_from_slice(ElfSymbol::default().as_bytes());
        let file = ElfSymbol {
            name: self.strings.add(self.module.source_name)?.into(),
            info: STT_FILE,
            section: SHN_ABS.into(),
            ..ElfSymbol::default()
        };
        self.symbols.extend_from_slice(file.as_bytes());
        let mut number = 2_u32;
        for local in [true, false] {
            for (symbol, known) in self.object.symbols.iter().zip(&mut self.symbol_numbers) {
                if (symbol.linkage == Linkage::Internal) != local {
                    continue;
                }
                let wire = elf_symbol(symbol, self.strings.add(&symbol.name)?)?;
                self.symbols.extend_from_slice(wire.as_bytes());
                *known = number;
                // The names alone would not fit before.
                number = number.saturating_add(1);
            }
            if local {
                self.local_symbols = number;
            }
        }
        Ok(())
    }

    fn write(mut self) -> Result<Layout, Error> {
        // In the file: header, sections, relocations, symbols, names, section headers. Headers
        // are in the same order, after the one of nothing.
        let object = self.object;
        let sections = to_u64(object.sections.len());
        let with_relocations = object.sections.iter().filter(|s| !s.relocations.is_empty());
        let symbols_at =
            sections.saturating_add(to_u64(with_relocations.count())).saturating_add(1);
        let count = symbols_at.saturating_add(2);
        let count16 = u16::try_from(count).ok().filter(|count| *count < 0xff00);
        let count16 = count16.ok_or_else(|| too_large(count, 0xff00))?;
        let symbols_at = u32::try_from(symbols_at).unwrap_or(u32::MAX);

        let mut headers = vec![ElfSection::default()];
        let mut end = to_u64(size_of::<ElfHeader>());
        for section in &object.sections {
            let header = self.header(section, end)?;
            end = header.offset.get();
            if section.content != Content::Zeros {
                end = advance(end, section.size)?;
            }
            headers.push(header);
        }
        for (index, section) in (1_u32..).zip(&object.sections) {
            if section.relocations.is_empty() {
                continue;
            }
            let offset = next_multiple(end, 8)?;
            let entry = to_u64(size_of::<ElfRelocation>());
            let size = to_u64(section.relocations.len()).saturating_mul(entry);
            headers.push(ElfSection {
                name: self.strings.add(&format!(".rela{}", section.name))?.into(),
                kind: SHT_RELA.into(),
                flags: SHF_INFO_LINK.into(),
                offset: offset.into(),
                size: size.into(),
                link: symbols_at.into(),
                info: index.into(),
                align: 8.into(),
                entsize: entry.into(),
                ..ElfSection::default()
            });
            end = advance(offset, size)?;
        }
        let offset = next_multiple(end, 8)?;
        headers.push(ElfSection {
            name: self.strings.add(".symtab")?.into(),
            kind: SHT_SYMTAB.into(),
            offset: offset.into(),
            size: to_u64(self.symbols.len()).into(),
            link: symbols_at.saturating_add(1).into(),
            info: self.local_symbols.into(),
            align: 8.into(),
            entsize: to_u64(size_of::<ElfSymbol>()).into(),
            ..ElfSection::default()
        });
        end = advance(offset, to_u64(self.symbols.len()))?;
        let name = self.strings.add(".strtab")?;
        let size = to_u64(self.strings.0.len());
        headers.push(ElfSection {
            name: name.into(),
            kind: SHT_STRTAB.into(),
            offset: end.into(),
            size: size.into(),
            align: 1.into(),
            ..ElfSection::default()
        });
        end = next_multiple(advance(end, size)?, 8)?;
        self.push_all(&headers, end, count16)
    }

    /// Puts everything where the headers say.
    fn push_all(&self, headers: &[ElfSection], end: u64, count: u16) -> Result<Layout, Error> {
        let mut layout = Layout::new(&self.module.inputs);
        layout.push_bytes(self.file_header(end, count).as_bytes())?;
        let mut starts = headers.iter().skip(1).map(|header| header.offset.get());
        for (section, start) in self.object.sections.iter().zip(starts.by_ref()) {
            if section.content == Content::Zeros {
                continue;
            }
            pad(&mut layout, start)?;
            for part in &section.parts {
                match part {
                    Part::Bytes(bytes) => layout.push_bytes(bytes)?,
                    Part::Image(blob) => layout.push_image(blob)?,
                    Part::Zeros(count) => layout.push_zeros(*count)?,
                }
            }
        }
        for section in self.object.sections.iter().filter(|s| !s.relocations.is_empty()) {
            pad(&mut layout, starts.next().unwrap_or_default())?;
            for relocation in &section.relocations {
                let symbol = self.symbol_numbers.get(relocation.symbol);
                let wire = ElfRelocation {
                    offset: relocation.offset.into(),
                    kind: relocation.kind.into(),
                    symbol: symbol.copied().unwrap_or_default().into(),
                    addend: relocation.addend.into(),
                };
                layout.push_bytes(wire.as_bytes())?;
            }
        }
        for (bytes, start) in [&self.symbols, &self.strings.0].into_iter().zip(starts) {
            pad(&mut layout, start)?;
            layout.push_bytes(bytes)?;
        }
        pad(&mut layout, end)?;
        for header in headers {
            layout.push_bytes(header.as_bytes())?;
        }
        Ok(layout)
    }

    fn file_header(&self, headers_at: u64, count: u16) -> ElfHeader {
        const ET_REL: u16 = 1;
        const ELFOSABI_GNU: u8 = 3;
        const ELFOSABI_FREEBSD: u8 = 9;

        let freebsd =
            self.module.target.triple().split('-').any(|part| part.starts_with("freebsd"));
        let retain = self.object.sections.iter().any(|section| section.retain);
        let system = match (freebsd, retain) {
            (true, _) => ELFOSABI_FREEBSD,
            (false, true) => ELFOSABI_GNU,
            (false, false) => 0,
        };
        let mut ident = [0; 16];
        // Magic number, 64 bits, little-endian, version.
        let start = [0x7f, b'E', b'L', b'F', 2, 1, 1, system];
        for (to, from) in iter::zip(&mut ident, start) {
            *to = from;
        }
        ElfHeader {
            ident,
            e_type: ET_REL.into(),
            machine: self.machine.number.into(),
            version: 1.into(),
            entry: 0.into(),
            phoff: 0.into(),
            shoff: headers_at.into(),
            flags: self.machine.flags.into(),
            ehsize: 64.into(),
            phentsize: 0.into(),
            phnum: 0.into(),
            shentsize: 64.into(),
            shnum: count.into(),
            shstrndx: count.saturating_sub(1).into(),
        }
    }

    /// The header of a section that comes after `end`.
    fn header(&mut self, section: &Section, end: u64) -> Result<ElfSection, Error> {
        let name = self.strings.add(&section.name)?;
        let (kind, mut flags) = match section.content {
            Content::Code => (SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR),
            // Tools take apart what lies in sections of that type, whatever their name.
            Content::Packages if section.name == ".llvm.offloading" => {
                (SHT_LLVM_OFFLOADING, SHF_ALLOC)
            }
            // The loader writes to what has pointers; the linker then makes it read-only (RELRO).
            Content::Data if !section.relocations.is_empty() => {
                (SHT_PROGBITS, SHF_ALLOC | SHF_WRITE)
            }
            Content::Data | Content::Packages => (SHT_PROGBITS, SHF_ALLOC),
            Content::Zeros => (SHT_NOBITS, SHF_ALLOC),
            Content::Constructors => (SHT_INIT_ARRAY, SHF_ALLOC | SHF_WRITE),
            Content::Destructors => (SHT_FINI_ARRAY, SHF_ALLOC | SHF_WRITE),
            Content::Notes => (SHT_NOTE, SHF_ALLOC),
            Content::Unwind => (self.machine.unwind_kind, SHF_ALLOC),
            Content::Directive => (SHT_PROGBITS, 0),
        };
        if section.writable {
            flags |= SHF_WRITE;
        }
        if section.retain {
            flags |= SHF_GNU_RETAIN;
        }
        if section.size >= LARGE_SIZE && !self.is_near_code(section) {
            flags |= self.machine.large;
        }
        let offset = match section.content {
            Content::Zeros => end,
            _ => next_multiple(end, section.file_align())?,
        };
        Ok(ElfSection {
            name: name.into(),
            kind: kind.into(),
            flags: flags.into(),
            offset: offset.into(),
            size: section.size.into(),
            align: section.align.into(),
            ..ElfSection::default()
        })
    }

    /// Whether code refers to a section.
    fn is_near_code(&self, section: &Section) -> bool {
        let code = self.object.sections.iter().filter(|code| code.content == Content::Code);
        code.flat_map(|code| &code.relocations).any(|relocation| {
            let symbol = self.object.symbols.get(relocation.symbol);
            let target = symbol.and_then(|symbol| self.object.sections.get(symbol.section?));
            target.is_some_and(|target| target.name == section.name)
        })
    }
}

fn elf_symbol(symbol: &Symbol, name: u32) -> Result<ElfSymbol, Error> {
    const STV_HIDDEN: u8 = 2;

    let binding = match symbol.linkage {
        Linkage::Internal | Linkage::Appending => 0,
        Linkage::External => 1,
        Linkage::ExternWeak | Linkage::Weak | Linkage::WeakOdr => 2,
    };
    let kind = match symbol.kind {
        SymbolKind::Label => 0,
        SymbolKind::Variable => 1,
        SymbolKind::Function => 2,
    };
    let section = match symbol.section {
        None => 0,
        Some(index) => {
            let number = to_u64(index).saturating_add(1);
            u16::try_from(number).map_err(|_| too_large(number, 0xff00))?
        }
    };
    Ok(ElfSymbol {
        name: name.into(),
        info: binding << 4 | kind,
        other: if symbol.hidden { STV_HIDDEN } else { 0 },
        section: section.into(),
        value: symbol.offset.into(),
        size: symbol.size.into(),
    })
}

fn next_multiple(end: u64, align: u64) -> Result<u64, Error> {
    end.checked_next_multiple_of(align.max(1)).ok_or(Error::OutputTooLarge)
}

fn advance(end: u64, size: u64) -> Result<u64, Error> {
    end.checked_add(size).ok_or(Error::OutputTooLarge)
}
