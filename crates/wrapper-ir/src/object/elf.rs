//! Objects in ELF, 64 bits and little-endian.

use byte_parts::elf::SHT_LLVM_OFFLOADING;
use object::LittleEndian;
use object::elf::{self, FileHeader64, Ident, Rela64, SectionHeader64, Sym64};
use object::pod::{bytes_of, bytes_of_slice};

use super::code::Assembler;
use super::data;
use super::model::{
    Content, Object, Section, Symbol, SymbolKind, advance, next_multiple, pad, push_parts,
    symbol_number,
};
use super::unwind::{self, Rules};
use crate::description::{Linkage, Module, Name};
use crate::error::Error;
use crate::layout::Output;
use crate::object_format::ObjectFormat;
use crate::to_u64;

type FileHeader = FileHeader64<LittleEndian>;
type SectionHeader = SectionHeader64<LittleEndian>;
type SymbolRecord = Sym64<LittleEndian>;
type Relocation = Rela64<LittleEndian>;

/// The differences between machines.
#[derive(Debug)]
pub(super) struct Machine {
    number: elf::Machine,
    flags: elf::FileFlags,
    /// Relocation of an address of 64 bits.
    pointer: elf::RelocationType,
    unwind: Rules,
    /// The kind of `.eh_frame`.
    unwind_kind: elf::SectionType,
    /// The promise of the code in `.note.gnu.property`: type and bits.
    property: Option<(elf::GnuPropertyType, u32)>,
    /// A symbol that says that code starts.
    mapping: Option<&'static str>,
    /// The flag of sections that may be far from code.
    large: elf::SectionFlags,
}

pub(super) const X86_64: Machine = Machine {
    number: elf::EM_X86_64,
    flags: elf::FileFlags(0),
    pointer: elf::R_X86_64_64,
    unwind: unwind::X86_64,
    unwind_kind: elf::SHT_X86_64_UNWIND,
    property: Some((
        elf::GNU_PROPERTY_X86_FEATURE_1_AND,
        elf::GNU_PROPERTY_X86_FEATURE_1_IBT | elf::GNU_PROPERTY_X86_FEATURE_1_SHSTK,
    )),
    mapping: None,
    large: SHF_X86_64_LARGE,
};

pub(super) const AARCH64: Machine = Machine {
    number: elf::EM_AARCH64,
    flags: elf::FileFlags(0),
    pointer: elf::R_AARCH64_ABS64,
    unwind: unwind::AARCH64,
    unwind_kind: elf::SHT_PROGBITS,
    property: Some((
        elf::GNU_PROPERTY_AARCH64_FEATURE_1_AND,
        elf::GNU_PROPERTY_AARCH64_FEATURE_1_BTI,
    )),
    mapping: Some("$x"),
    large: elf::SectionFlags(0),
};

pub(super) const RISCV64: Machine = Machine {
    number: elf::EM_RISCV,
    flags: elf::EF_RISCV_FLOAT_ABI_DOUBLE,
    pointer: elf::R_RISCV_64,
    unwind: unwind::RISCV64,
    unwind_kind: elf::SHT_PROGBITS,
    property: None,
    mapping: None,
    large: elf::SectionFlags(0),
};

/// RISC-V without registers for floating point arguments.
pub(super) const RISCV64_SOFT: Machine = Machine { flags: elf::FileFlags(0), ..RISCV64 };

// Which `object` lacks.
const SHF_X86_64_LARGE: elf::SectionFlags = elf::SectionFlags(0x1000_0000);

/// From this size on, sections are kept away from code.
const LARGE_SIZE: u64 = 1 << 30;

/// Lays out an object.
pub(super) fn lay_out(
    module: &Module,
    machine: &Machine,
    assembler: impl Assembler,
) -> Result<Output, Error> {
    let (mut object, functions) = data::build(module, assembler, machine.pointer.0)?;
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

/// Adds the note about the protections that the code supports, so that the linker can enable them for the program.
fn add_property(object: &mut Object, machine: &Machine) -> Result<(), Error> {
    let Some((kind, bits)) = machine.property else { return Ok(()) };
    let index = object.section(&Name::Borrowed(".note.gnu.property"), Content::Notes);
    let section = object.at(index)?;
    section.align = 8;
    // Sizes of name and description, type, name; then the property: type, size, bits, padding.
    let (note, owner) = (elf::NT_GNU_PROPERTY_TYPE_0.0, u32::from_le_bytes(*b"GNU\0"));
    for word in [4, 16, note, owner, kind.0, 4, bits, 0] {
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
    Error::object_too_large(ObjectFormat::Elf, size, limit)
}

struct Writer<'a> {
    module: &'a Module,
    machine: &'a Machine,
    object: &'a Object,
    strings: Strings,
    symbols: Vec<u8>,
    /// The number of local symbols; they come first.
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
        let file = SymbolRecord {
            st_name: self.strings.add(self.module.source_name)?.into(),
            st_info: elf::STB_LOCAL | elf::STT_FILE,
            st_shndx: elf::SHN_ABS.into(),
            ..SymbolRecord::default()
        };
        self.symbols.extend_from_slice(bytes_of_slice(&[SymbolRecord::default(), file]));
        let mut number = 2_u32;
        for local in [true, false] {
            for (symbol, known) in self.object.symbols.iter().zip(&mut self.symbol_numbers) {
                if (symbol.linkage == Linkage::Internal) != local {
                    continue;
                }
                let record = elf_symbol(symbol, self.strings.add(&symbol.name)?)?;
                self.symbols.extend_from_slice(bytes_of(&record));
                *known = number;
                // The names alone would not fit before.
                number += 1;
            }
            if local {
                self.local_symbols = number;
            }
        }
        Ok(())
    }

    fn write(mut self) -> Result<Output, Error> {
        // In the file: header, sections, relocations, symbols, names, section headers. Headers
        // are in the same order, after the one of nothing.
        let object = self.object;
        let sections = to_u64(object.sections.len());
        let with_relocations = object.sections.iter().filter(|s| !s.relocations.is_empty());
        let count = sections + to_u64(with_relocations.count()) + 3;
        let count16 = u16::try_from(count).ok().filter(|count| *count < elf::SHN_LORESERVE);
        let count16 = count16.ok_or_else(|| too_large(count, elf::SHN_LORESERVE.into()))?;
        let symbols_at = u32::from(count16) - 2;

        let mut headers = vec![no_section()];
        let mut end = to_u64(size_of::<FileHeader>());
        for section in &object.sections {
            let header = self.header(section, end)?;
            end = header.sh_offset.get(LittleEndian);
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
            let entry = to_u64(size_of::<Relocation>());
            let size = to_u64(section.relocations.len()) * entry;
            headers.push(SectionHeader {
                sh_name: self.strings.add(&format!(".rela{}", section.name))?.into(),
                sh_type: elf::SHT_RELA.into(),
                sh_flags: elf::SHF_INFO_LINK.into(),
                sh_offset: offset.into(),
                sh_size: size.into(),
                sh_link: symbols_at.into(),
                sh_info: index.into(),
                sh_addralign: 8.into(),
                sh_entsize: entry.into(),
                ..no_section()
            });
            end = advance(offset, size)?;
        }
        let offset = next_multiple(end, 8)?;
        headers.push(SectionHeader {
            sh_name: self.strings.add(".symtab")?.into(),
            sh_type: elf::SHT_SYMTAB.into(),
            sh_offset: offset.into(),
            sh_size: to_u64(self.symbols.len()).into(),
            sh_link: (symbols_at + 1).into(),
            sh_info: self.local_symbols.into(),
            sh_addralign: 8.into(),
            sh_entsize: to_u64(size_of::<SymbolRecord>()).into(),
            ..no_section()
        });
        end = advance(offset, to_u64(self.symbols.len()))?;
        let name = self.strings.add(".strtab")?;
        let size = to_u64(self.strings.0.len());
        headers.push(SectionHeader {
            sh_name: name.into(),
            sh_type: elf::SHT_STRTAB.into(),
            sh_offset: end.into(),
            sh_size: size.into(),
            sh_addralign: 1.into(),
            ..no_section()
        });
        end = next_multiple(advance(end, size)?, 8)?;
        self.push_all(&headers, end, count16)
    }

    /// Writes all parts at the places in the headers.
    fn push_all(&self, headers: &[SectionHeader], end: u64, count: u16) -> Result<Output, Error> {
        let mut layout = Output::new(&self.module.inputs);
        layout.push_bytes(bytes_of(&self.file_header(end, count)))?;
        let mut starts = headers.iter().skip(1).map(|header| header.sh_offset.get(LittleEndian));
        for (section, start) in self.object.sections.iter().zip(starts.by_ref()) {
            if section.content == Content::Zeros {
                continue;
            }
            pad(&mut layout, start)?;
            push_parts(&mut layout, section)?;
        }
        let related = self.object.sections.iter().filter(|s| !s.relocations.is_empty());
        for (section, start) in related.zip(starts.by_ref()) {
            pad(&mut layout, start)?;
            for relocation in &section.relocations {
                let symbol = symbol_number(&self.symbol_numbers, relocation)?;
                let kind = elf::RelocationType(relocation.kind);
                let record = Relocation {
                    r_offset: relocation.offset.into(),
                    r_info: Relocation::r_info(LittleEndian, false, symbol, kind),
                    r_addend: relocation.addend.into(),
                };
                layout.push_bytes(bytes_of(&record))?;
            }
        }
        for (bytes, start) in [&self.symbols, &self.strings.0].into_iter().zip(starts) {
            pad(&mut layout, start)?;
            layout.push_bytes(bytes)?;
        }
        pad(&mut layout, end)?;
        layout.push_bytes(bytes_of_slice(headers))?;
        Ok(layout)
    }

    fn file_header(&self, headers_at: u64, count: u16) -> FileHeader {
        let freebsd =
            self.module.target.triple().split('-').any(|part| part.starts_with("freebsd"));
        let retain = self.object.sections.iter().any(|section| section.retain);
        let os_abi = match (freebsd, retain) {
            (true, _) => elf::ELFOSABI_FREEBSD,
            (false, true) => elf::ELFOSABI_GNU,
            (false, false) => elf::ELFOSABI_NONE,
        };
        FileHeader {
            e_ident: Ident {
                magic: elf::ELFMAG,
                class: elf::ELFCLASS64,
                data: elf::ELFDATA2LSB,
                version: elf::EV_CURRENT,
                os_abi,
                abi_version: 0,
                padding: [0; 7],
            },
            e_type: elf::ET_REL.into(),
            e_machine: self.machine.number.into(),
            e_version: u32::from(elf::EV_CURRENT.0).into(),
            e_entry: 0.into(),
            e_phoff: 0.into(),
            e_shoff: headers_at.into(),
            e_flags: self.machine.flags.into(),
            e_ehsize: 64.into(),
            e_phentsize: 0.into(),
            e_phnum: 0.into(),
            e_shentsize: 64.into(),
            e_shnum: count.into(),
            e_shstrndx: elf::SymbolSection(count - 1).into(),
        }
    }

    /// Returns the header of a section that comes after `end`.
    fn header(&mut self, section: &Section, end: u64) -> Result<SectionHeader, Error> {
        let name = self.strings.add(&section.name)?;
        let (kind, mut flags) = match section.content {
            Content::Code => (elf::SHT_PROGBITS, elf::SHF_ALLOC | elf::SHF_EXECINSTR),
            // Tools take apart what lies in sections of that type, whatever their name.
            Content::Packages if section.name == ".llvm.offloading" => {
                (elf::SectionType(SHT_LLVM_OFFLOADING), elf::SHF_ALLOC)
            }
            // The loader writes to what has pointers; the linker then makes it read-only (RELRO).
            Content::Data if !section.relocations.is_empty() => {
                (elf::SHT_PROGBITS, elf::SHF_ALLOC | elf::SHF_WRITE)
            }
            Content::Data | Content::Packages => (elf::SHT_PROGBITS, elf::SHF_ALLOC),
            Content::Zeros => (elf::SHT_NOBITS, elf::SHF_ALLOC),
            Content::Constructors => (elf::SHT_INIT_ARRAY, elf::SHF_ALLOC | elf::SHF_WRITE),
            Content::Destructors => (elf::SHT_FINI_ARRAY, elf::SHF_ALLOC | elf::SHF_WRITE),
            Content::Notes => (elf::SHT_NOTE, elf::SHF_ALLOC),
            Content::Unwind => (self.machine.unwind_kind, elf::SHF_ALLOC),
            Content::Directive => (elf::SHT_PROGBITS, elf::SectionFlags(0)),
        };
        if section.writable {
            flags |= elf::SHF_WRITE;
        }
        if section.retain {
            flags |= elf::SHF_GNU_RETAIN;
        }
        if section.size >= LARGE_SIZE && !self.is_near_code(section) {
            flags |= self.machine.large;
        }
        let offset = match section.content {
            Content::Zeros => end,
            _ => next_multiple(end, section.file_align())?,
        };
        Ok(SectionHeader {
            sh_name: name.into(),
            sh_type: kind.into(),
            sh_flags: flags.into(),
            sh_offset: offset.into(),
            sh_size: section.size.into(),
            sh_addralign: section.align.into(),
            ..no_section()
        })
    }

    /// Returns whether code refers to a section.
    fn is_near_code(&self, section: &Section) -> bool {
        let code = self.object.sections.iter().filter(|code| code.content == Content::Code);
        code.flat_map(|code| &code.relocations).any(|relocation| {
            let symbol = self.object.symbols.get(relocation.symbol);
            let target = symbol.and_then(|symbol| self.object.sections.get(symbol.section?));
            target.is_some_and(|target| target.name == section.name)
        })
    }
}

/// Returns the header of nothing.
fn no_section() -> SectionHeader {
    SectionHeader {
        sh_name: 0.into(),
        sh_type: elf::SHT_NULL.into(),
        sh_flags: elf::SectionFlags(0).into(),
        sh_addr: 0.into(),
        sh_offset: 0.into(),
        sh_size: 0.into(),
        sh_link: 0.into(),
        sh_info: 0.into(),
        sh_addralign: 0.into(),
        sh_entsize: 0.into(),
    }
}

fn elf_symbol(symbol: &Symbol, name: u32) -> Result<SymbolRecord, Error> {
    let binding = match symbol.linkage {
        Linkage::Internal | Linkage::Appending => elf::STB_LOCAL,
        Linkage::External => elf::STB_GLOBAL,
        Linkage::ExternWeak | Linkage::Weak | Linkage::WeakOdr => elf::STB_WEAK,
    };
    let kind = match symbol.kind {
        SymbolKind::Label => elf::STT_NOTYPE,
        SymbolKind::Variable => elf::STT_OBJECT,
        SymbolKind::Function => elf::STT_FUNC,
    };
    let section = match symbol.section {
        None => elf::SHN_UNDEF,
        Some(index) => {
            let number = to_u64(index) + 1;
            let limit = elf::SHN_LORESERVE.into();
            elf::SymbolSection(u16::try_from(number).map_err(|_| too_large(number, limit))?)
        }
    };
    let visibility = if symbol.hidden { elf::STV_HIDDEN } else { elf::STV_DEFAULT };
    Ok(SymbolRecord {
        st_name: name.into(),
        st_info: binding | kind,
        st_other: visibility.into(),
        st_shndx: section.into(),
        st_value: symbol.offset.into(),
        st_size: symbol.size.into(),
    })
}
