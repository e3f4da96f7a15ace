//! Objects in COFF.

use object::LittleEndian;
use object::pe::{
    self, ImageAuxSymbolSection, ImageFileHeader, ImageRelocation, ImageSectionHeader, ImageSymbol,
};
use object::pod::bytes_of;

use super::code::Assembler;
use super::data;
use super::model::{
    Content, Object, Section, Symbol, SymbolKind, advance, next_multiple, pad, push_parts,
    symbol_number,
};
use super::pdata::{self, coff_kind};
use crate::description::{Linkage, Module, Name};
use crate::error::Error;
use crate::layout::Output;
use crate::object_format::ObjectFormat;
use crate::to_u64;

/// Properties of a machine.
#[derive(Debug)]
pub(super) struct Machine {
    number: pe::Machine,
    /// Relocation of an address of 64 bits.
    pointer: u32,
    unwind: pdata::Rules,
}

pub(super) const X86_64: Machine = Machine {
    number: pe::IMAGE_FILE_MACHINE_AMD64,
    pointer: coff_kind(pe::IMAGE_REL_AMD64_ADDR64),
    unwind: pdata::Rules::X86_64,
};

pub(super) const ARM64: Machine = Machine {
    number: pe::IMAGE_FILE_MACHINE_ARM64,
    pointer: coff_kind(pe::IMAGE_REL_ARM64_ADDR64),
    unwind: pdata::Rules::Arm64,
};

/// Lays out an object.
pub(super) fn lay_out(
    module: &Module,
    machine: &Machine,
    assembler: impl Assembler,
) -> Result<Output, Error> {
    let (mut object, functions) = data::build(module, assembler, machine.pointer)?;
    pdata::add(&mut object, &machine.unwind, &functions)?;
    if module.target.is_mingw() {
        add_directives(&mut object)?;
    }
    for section in &mut object.sections {
        // The bytes hold what is added to the address.
        section.set_addends(|kind| if kind == machine.pointer { 8 } else { 4 })?;
    }
    write(module, machine, &object)
}

/// Adds directives that keep GNU's linker from exporting hidden symbols when it exports everything.
fn add_directives(object: &mut Object) -> Result<(), Error> {
    let hidden = object.symbols.iter().filter(|symbol| symbol.hidden && symbol.section.is_some());
    let text: String = hidden.map(|symbol| format!(" -exclude-symbols:{}", symbol.name)).collect();
    if text.is_empty() {
        return Ok(());
    }
    let index = object.section(&Name::Borrowed(".drectve"), Content::Directive);
    object.at(index)?.push(text.as_bytes())
}

fn too_large(size: u64) -> Error {
    Error::object_too_large(ObjectFormat::Coff, size, u32::MAX.into())
}

fn narrow(size: u64) -> Result<u32, Error> {
    u32::try_from(size).map_err(|_| too_large(size))
}

/// Names longer than 8 bytes, after the size of them all.
struct Strings(Vec<u8>);

impl Strings {
    /// Returns the place of a name, counted from the size.
    fn add(&mut self, name: &str) -> Result<u32, Error> {
        let at = narrow(to_u64(self.0.len()) + 4)?;
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(0);
        Ok(at)
    }
}

/// Returns a name of up to 8 bytes.
fn short_name(name: &str) -> Option<[u8; 8]> {
    let mut short = [0; 8];
    short.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    Some(short)
}

fn write(module: &Module, machine: &Machine, object: &Object) -> Result<Output, Error> {
    let count = object.sections.len();
    let count16 = u16::try_from(count).map_err(|_| too_large(to_u64(count)))?;
    let mut strings = Strings(Vec::new());
    let mut symbols = Symbols { bytes: Vec::new() };
    let mut numbers = Vec::new();
    for symbol in &object.symbols {
        numbers.push(symbols.add(symbol, object, &mut strings)?);
    }
    // In the file: header, section headers, sections with their relocations, symbols, names.
    let headers = size_of::<ImageFileHeader>() + count * size_of::<ImageSectionHeader>();
    let mut end = to_u64(headers);
    let mut table = Vec::new();
    for section in &object.sections {
        let (mut header, after) = header(section, end, &mut strings)?;
        let shared = object.symbols.iter().filter_map(|symbol| comdat(symbol, object));
        if shared.into_iter().any(|shared| shared.name == section.name) {
            let characteristics = header.characteristics.get(LittleEndian);
            header.characteristics = characteristics.with(pe::IMAGE_SCN_LNK_COMDAT).into();
        }
        end = after;
        table.extend_from_slice(bytes_of(&header));
    }
    let mut layout = Output::new(&module.inputs);
    let header = ImageFileHeader {
        machine: machine.number.into(),
        number_of_sections: count16.into(),
        time_date_stamp: 0.into(),
        pointer_to_symbol_table: narrow(end)?.into(),
        number_of_symbols: symbols.count()?.into(),
        size_of_optional_header: 0.into(),
        characteristics: pe::FileFlags(0).into(),
    };
    layout.push_bytes(bytes_of(&header))?;
    layout.push_bytes(&table)?;
    for section in &object.sections {
        push_section(&mut layout, section, &numbers)?;
    }
    layout.push_bytes(&symbols.bytes)?;
    layout.push_bytes(&narrow(to_u64(strings.0.len()) + 4)?.to_le_bytes())?;
    layout.push_bytes(&strings.0)?;
    narrow(layout.size())?;
    Ok(layout)
}

/// Returns the header of a section that comes after `end`, and where its relocations end.
fn header(
    section: &Section,
    end: u64,
    strings: &mut Strings,
) -> Result<(ImageSectionHeader, u64), Error> {
    let name = match short_name(&section.name) {
        Some(name) => name,
        None => {
            let place = strings.add(&section.name)?;
            // Seven digits are enough for a few names.
            short_name(&format!("/{place}")).ok_or_else(|| too_large(place.into()))?
        }
    };
    let size = narrow(section.size)?;
    let mut header =
        ImageSectionHeader { name, size_of_raw_data: size.into(), ..ImageSectionHeader::default() };
    let mut characteristics = characteristics(section)?;
    let mut end = end;
    if section.content != Content::Zeros && size != 0 {
        let start = next_multiple(end, section.file_align())?;
        header.pointer_to_raw_data = narrow(start)?.into();
        end = advance(start, section.size)?;
    }
    if !section.relocations.is_empty() {
        header.pointer_to_relocations = narrow(end)?.into();
        let count = u16::try_from(section.relocations.len()).unwrap_or(u16::MAX);
        header.number_of_relocations = count.into();
        if count == u16::MAX {
            characteristics |= pe::IMAGE_SCN_LNK_NRELOC_OVFL;
        }
        let records = section.relocations.len() + usize::from(count == u16::MAX);
        end = advance(end, to_u64(records * size_of::<ImageRelocation>()))?;
    }
    header.characteristics = characteristics.into();
    Ok((header, end))
}

fn characteristics(section: &Section) -> Result<pe::SectionFlags, Error> {
    /// The largest alignment there is a number for.
    const LIMIT: u64 = 8192;

    let mut bits = match section.content {
        Content::Code => {
            pe::IMAGE_SCN_CNT_CODE | pe::IMAGE_SCN_MEM_READ | pe::IMAGE_SCN_MEM_EXECUTE
        }
        Content::Zeros => pe::IMAGE_SCN_CNT_UNINITIALIZED_DATA | pe::IMAGE_SCN_MEM_READ,
        Content::Directive => pe::IMAGE_SCN_LNK_INFO | pe::IMAGE_SCN_LNK_REMOVE,
        _ => pe::IMAGE_SCN_CNT_INITIALIZED_DATA | pe::IMAGE_SCN_MEM_READ,
    };
    // Lists of GNU's runtime are writable, Microsoft's are not.
    let list = section.name.starts_with(".ctors") || section.name.starts_with(".dtors");
    if section.writable || list {
        bits |= pe::IMAGE_SCN_MEM_WRITE;
    }
    if section.align > LIMIT {
        return Err(Error::bad_align(section.align, LIMIT));
    }
    // 1 byte is 1, 2 bytes are 2, 4 bytes are 3.
    let align = pe::SectionFlags((section.align.trailing_zeros() + 1) << 20);
    Ok(bits.with_align(align))
}

fn push_section(layout: &mut Output, section: &Section, numbers: &[u32]) -> Result<(), Error> {
    if section.content != Content::Zeros && section.size != 0 {
        let start = next_multiple(layout.size(), section.file_align())?;
        pad(layout, start)?;
        push_parts(layout, section)?;
    }
    let count = to_u64(section.relocations.len());
    if count >= u16::MAX.into() {
        // The first one says how many there are, itself among them.
        let first = ImageRelocation {
            virtual_address: narrow(count + 1)?.into(),
            symbol_table_index: 0.into(),
            typ: pe::RelocationType(0).into(),
        };
        layout.push_bytes(bytes_of(&first))?;
    }
    for relocation in &section.relocations {
        let number = symbol_number(numbers, relocation)?;
        let kind = u16::try_from(relocation.kind);
        let kind = kind.map_err(|_| Error::internal("a relocation of another format"))?;
        let record = ImageRelocation {
            virtual_address: narrow(relocation.offset)?.into(),
            symbol_table_index: number.into(),
            typ: pe::RelocationType(kind).into(),
        };
        layout.push_bytes(bytes_of(&record))?;
    }
    Ok(())
}

/// Returns the section of a symbol that several objects may define, all alike: it has one of its own.
fn comdat<'a>(symbol: &Symbol, object: &'a Object) -> Option<&'a Section> {
    match symbol.linkage {
        Linkage::WeakOdr => object.sections.get(symbol.section?),
        _ => None,
    }
}

/// Records of symbols, with auxiliary ones.
struct Symbols {
    bytes: Vec<u8>,
}

impl Symbols {
    /// Returns the number of records.
    fn count(&self) -> Result<u32, Error> {
        narrow(to_u64(self.bytes.len() / size_of::<ImageSymbol>()))
    }

    /// Adds a symbol, and returns its number.
    fn add(
        &mut self,
        symbol: &Symbol,
        object: &Object,
        strings: &mut Strings,
    ) -> Result<u32, Error> {
        // Counted from 1; 0 means no section.
        let section = symbol.section.map_or(0, |section| section + 1);
        let section = u16::try_from(section).map_err(|_| too_large(to_u64(section)))?;
        if let Some(definition) = comdat(symbol, object) {
            self.add_section(definition, section, strings)?;
        }
        let class = match symbol.linkage {
            // Nothing outside of the object refers to entries.
            Linkage::Internal | Linkage::Weak => pe::IMAGE_SYM_CLASS_STATIC,
            Linkage::ExternWeak => {
                return Err(Error::not_native(&symbol.name, "weak references in coff"));
            }
            _ => pe::IMAGE_SYM_CLASS_EXTERNAL,
        };
        self.push(&symbol.name, symbol, section, class, 0, strings)
    }

    /// Adds the symbol of a section, which makes the linker take any one of the sections of this name. It applies to
    /// the next symbol.
    fn add_section(
        &mut self,
        section: &Section,
        number: u16,
        strings: &mut Strings,
    ) -> Result<(), Error> {
        let symbol = Symbol {
            name: section.name.clone(),
            section: None,
            offset: 0,
            size: 0,
            linkage: Linkage::Internal,
            hidden: false,
            kind: SymbolKind::Label,
        };
        self.push(&section.name, &symbol, number, pe::IMAGE_SYM_CLASS_STATIC, 1, strings)?;
        let relocations = u16::try_from(section.relocations.len()).unwrap_or(u16::MAX);
        let definition = ImageAuxSymbolSection {
            length: narrow(section.size)?.into(),
            number_of_relocations: relocations.into(),
            number_of_linenumbers: 0.into(),
            check_sum: 0.into(),
            number: number.into(),
            selection: pe::IMAGE_COMDAT_SELECT_ANY,
            reserved: 0,
            high_number: 0.into(),
        };
        self.bytes.extend_from_slice(bytes_of(&definition));
        Ok(())
    }

    fn push(
        &mut self,
        name: &str,
        symbol: &Symbol,
        section: u16,
        class: pe::SymbolClass,
        auxiliaries: u8,
        strings: &mut Strings,
    ) -> Result<u32, Error> {
        let name = match short_name(name) {
            Some(short) => short,
            None => {
                let mut long = [0; 8];
                let place = strings.add(name)?.to_le_bytes();
                for (to, from) in long.iter_mut().skip(4).zip(place) {
                    *to = from;
                }
                long
            }
        };
        let typ = match symbol.kind {
            SymbolKind::Function => pe::IMAGE_SYM_DTYPE_FUNCTION.into(),
            _ => pe::SymbolType(0),
        };
        let record = ImageSymbol {
            name,
            value: narrow(symbol.offset)?.into(),
            section_number: section.into(),
            typ: typ.into(),
            storage_class: class,
            number_of_aux_symbols: auxiliaries,
        };
        let number = self.count()?;
        self.bytes.extend_from_slice(bytes_of(&record));
        Ok(number)
    }
}
