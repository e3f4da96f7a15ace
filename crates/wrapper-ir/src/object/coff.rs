//! Objects in COFF.

use zerocopy::IntoBytes;

use super::code::Assembler;
use super::data;
use super::model::{Content, Object, Part, Section, Symbol, SymbolKind, pad};
use super::pdata;
use super::wire::{CoffHeader, CoffRelocation, CoffSection, CoffSectionDefinition, CoffSymbol};
use crate::description::{Linkage, Module, Name};
use crate::error::Error;
use crate::layout::Layout;
use crate::target::ObjectFormat;
use crate::to_u64;

/// Properties of a machine.
#[derive(Debug)]
pub(super) struct Machine {
    /// `IMAGE_FILE_HEADER::Machine`
    number: u16,
    /// Relocation of an address of 64 bits.
    pointer: u32,
    unwind: pdata::Rules,
}

pub(super) const X86_64: Machine = Machine {
    number: 0x8664, // IMAGE_FILE_MACHINE_AMD64
    pointer: 1,     // IMAGE_REL_AMD64_ADDR64
    unwind: pdata::Rules::X86_64,
};

pub(super) const ARM64: Machine = Machine {
    number: 0xaa64, // IMAGE_FILE_MACHINE_ARM64
    pointer: 14,    // IMAGE_REL_ARM64_ADDR64
    unwind: pdata::Rules::Arm64,
};

const CONTAINS_CODE: u32 = 0x20;
const CONTAINS_DATA: u32 = 0x40;
const CONTAINS_ZEROS: u32 = 0x80;
const LINKER_INFORMATION: u32 = 0x200;
const LINKER_REMOVES: u32 = 0x800;
const COMDAT: u32 = 0x1000;
const MANY_RELOCATIONS: u32 = 0x0100_0000;
const EXECUTABLE: u32 = 0x2000_0000;
const READABLE: u32 = 0x4000_0000;
const WRITABLE: u32 = 0x8000_0000;

const CLASS_EXTERNAL: u8 = 2;
const CLASS_STATIC: u8 = 3;
/// `IMAGE_SYM_DTYPE_FUNCTION`
const FUNCTION: u16 = 0x20;

/// Lays out an object.
pub(super) fn lay_out(
    module: &Module,
    machine: &Machine,
    assembler: impl Assembler,
) -> Result<Layout, Error> {
    let (mut object, functions) = data::build(module, assembler, machine.pointer)?;
    pdata::add(&mut object, &machine.unwind, &functions)?;
    if module.target.is_mingw() {
        add_directives(&mut object)?;
    }
    for section in &mut object.sections {
        // The bytes hold what is added to the address.
        section.set_addends(|kind| if kind == machine.pointer { 8 } else { 4 });
    }
    write(module, machine, &object)
}

/// Tells GNU's linker not to export what is not seen outside, when it exports everything.
fn add_directives(object: &mut Object) -> Result<(), Error> {
    let hidden = object.symbols.iter().filter(|symbol| symbol.hidden && symbol.section.is_some());
    let text: String = hidden.map(|symbol| format!(" -exclude-symbols:{}", symbol.name)).collect();
    if text.is_empty() {
        return Ok(());
    }
    let index = object.section(&Name::Borrowed(".drectve"), Content::Directive);
    match object.sections.get_mut(index) {
        Some(section) => section.push(text.as_bytes()),
        None => Ok(()),
    }
}

fn too_large(size: u64) -> Error {
    Error::ObjectTooLarge { format: ObjectFormat::Coff, size, limit: u32::MAX.into() }
}

fn narrow(size: u64) -> Result<u32, Error> {
    u32::try_from(size).map_err(|_| too_large(size))
}

/// Names longer than 8 bytes, after the size of them all.
struct Strings(Vec<u8>);

impl Strings {
    /// The place of a name, counted from the size.
    fn add(&mut self, name: &str) -> Result<u32, Error> {
        let at = narrow(to_u64(self.0.len()).saturating_add(4))?;
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(0);
        Ok(at)
    }
}

/// A name of up to 8 bytes.
fn short_name(name: &str) -> Option<[u8; 8]> {
    let mut short = [0; 8];
    short.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    Some(short)
}

fn write(module: &Module, machine: &Machine, object: &Object) -> Result<Layout, Error> {
    let mut strings = Strings(Vec::new());
    let mut symbols = Symbols { bytes: Vec::new(), count: 0 };
    let mut numbers = Vec::new();
    for symbol in &object.symbols {
        numbers.push(symbols.add(symbol, object, &mut strings)?);
    }
    // In the file: header, section headers, sections with their relocations, symbols, names.
    let count = object.sections.len();
    let headers = to_u64(count).saturating_mul(to_u64(size_of::<CoffSection>()));
    let mut end = to_u64(size_of::<CoffHeader>()).saturating_add(headers);
    let mut table = Vec::new();
    for section in &object.sections {
        let (mut header, after) = header(section, end, &mut strings)?;
        let shared = object.symbols.iter().filter_map(|symbol| comdat(symbol, object));
        if shared.into_iter().any(|shared| shared.name == section.name) {
            header.characteristics.set(header.characteristics.get() | COMDAT);
        }
        end = after;
        table.extend_from_slice(header.as_bytes());
    }
    let mut layout = Layout::new(&module.inputs);
    let header = CoffHeader {
        machine: machine.number.into(),
        sections: u16::try_from(count).map_err(|_| too_large(to_u64(count)))?.into(),
        timestamp: 0.into(),
        symbols_at: narrow(end)?.into(),
        symbols: symbols.count.into(),
        optional_header_size: 0.into(),
        characteristics: 0.into(),
    };
    layout.push_bytes(header.as_bytes())?;
    layout.push_bytes(&table)?;
    for section in &object.sections {
        push_section(&mut layout, section, &numbers)?;
    }
    layout.push_bytes(&symbols.bytes)?;
    layout.push_bytes(&narrow(to_u64(strings.0.len()).saturating_add(4))?.to_le_bytes())?;
    layout.push_bytes(&strings.0)?;
    narrow(layout.total_size())?;
    Ok(layout)
}

/// The header of a section that comes after `end`, and where its relocations end.
fn header(section: &Section, end: u64, strings: &mut Strings) -> Result<(CoffSection, u64), Error> {
    let name = match short_name(&section.name) {
        Some(name) => name,
        None => {
            let place = strings.add(&section.name)?;
            // Seven digits are enough for a few names.
            short_name(&format!("/{place}")).ok_or_else(|| too_large(place.into()))?
        }
    };
    let size = narrow(section.size)?;
    let mut header = CoffSection { name, raw_size: size.into(), ..CoffSection::default() };
    let mut characteristics = characteristics(section)?;
    let mut end = end;
    if section.content != Content::Zeros && size != 0 {
        let start = start_after(section, end)?;
        header.raw_at = narrow(start)?.into();
        end = start.saturating_add(section.size);
    }
    if !section.relocations.is_empty() {
        header.relocations_at = narrow(end)?.into();
        let count = u16::try_from(section.relocations.len()).unwrap_or(u16::MAX);
        header.relocations = count.into();
        if count == u16::MAX {
            characteristics |= MANY_RELOCATIONS;
        }
        let records = section.relocations.len().saturating_add(usize::from(count == u16::MAX));
        let bytes = to_u64(records).saturating_mul(to_u64(size_of::<CoffRelocation>()));
        end = end.saturating_add(bytes);
    }
    header.characteristics = characteristics.into();
    Ok((header, end))
}

/// Where the contents of a section go.
fn start_after(section: &Section, end: u64) -> Result<u64, Error> {
    end.checked_next_multiple_of(section.file_align()).ok_or(Error::OutputTooLarge)
}

fn characteristics(section: &Section) -> Result<u32, Error> {
    /// The largest alignment there is a number for.
    const LIMIT: u64 = 8192;

    let mut bits = match section.content {
        Content::Code => CONTAINS_CODE | READABLE | EXECUTABLE,
        Content::Zeros => CONTAINS_ZEROS | READABLE,
        Content::Directive => LINKER_INFORMATION | LINKER_REMOVES,
        _ => CONTAINS_DATA | READABLE,
    };
    // Lists of GNU's runtime are writable, those of Microsoft's are not.
    let list = section.name.starts_with(".ctors") || section.name.starts_with(".dtors");
    if section.writable || list {
        bits |= WRITABLE;
    }
    if section.align > LIMIT {
        return Err(Error::BadAlign { align: section.align, limit: LIMIT });
    }
    // 1 byte is 1, 2 bytes are 2, 4 bytes are 3.
    Ok(bits | section.align.trailing_zeros().saturating_add(1) << 20)
}

fn push_section(layout: &mut Layout, section: &Section, numbers: &[u32]) -> Result<(), Error> {
    if section.content != Content::Zeros && section.size != 0 {
        let start = start_after(section, layout.total_size())?;
        pad(layout, start)?;
        for part in &section.parts {
            match part {
                Part::Bytes(bytes) => layout.push_bytes(bytes)?,
                Part::Image(blob) => layout.push_image(blob)?,
                Part::Zeros(count) => layout.push_zeros(*count)?,
            }
        }
    }
    let count = to_u64(section.relocations.len());
    if count >= u16::MAX.into() {
        // The first one says how many there are, itself among them.
        let address = narrow(count.saturating_add(1))?.into();
        let first = CoffRelocation { address, symbol: 0.into(), kind: 0.into() };
        layout.push_bytes(first.as_bytes())?;
    }
    for relocation in &section.relocations {
        let number = numbers.get(relocation.symbol).copied().unwrap_or_default();
        let wire = CoffRelocation {
            address: narrow(relocation.offset)?.into(),
            symbol: number.into(),
            kind: u16::try_from(relocation.kind).unwrap_or_default().into(),
        };
        layout.push_bytes(wire.as_bytes())?;
    }
    Ok(())
}

/// The section of a symbol that several objects may define, all alike: it has one of its own.
fn comdat<'a>(symbol: &Symbol, object: &'a Object) -> Option<&'a Section> {
    match symbol.linkage {
        Linkage::WeakOdr => object.sections.get(symbol.section?),
        _ => None,
    }
}

struct Symbols {
    bytes: Vec<u8>,
    /// Records, auxiliary ones too.
    count: u32,
}

impl Symbols {
    /// Adds a symbol, and returns its number.
    fn add(
        &mut self,
        symbol: &Symbol,
        object: &Object,
        strings: &mut Strings,
    ) -> Result<u32, Error> {
        let number = |section: usize| u16::try_from(section.saturating_add(1)).unwrap_or_default();
        let section = symbol.section.map_or(0, number);
        if let Some(definition) = comdat(symbol, object) {
            self.add_section(definition, section, strings)?;
        }
        let class = match symbol.linkage {
            // Nothing outside of the object refers to entries.
            Linkage::Internal | Linkage::Weak => CLASS_STATIC,
            Linkage::ExternWeak => {
                let symbol = symbol.name.as_ref().into();
                return Err(Error::NotNative { symbol, what: "weak references in coff" });
            }
            _ => CLASS_EXTERNAL,
        };
        self.push(&symbol.name, symbol, section, class, 0, strings)
    }

    /// Says that of the sections of this name any may be taken, and the others be left. What it
    /// applies to is the symbol that comes next.
    fn add_section(
        &mut self,
        section: &Section,
        number: u16,
        strings: &mut Strings,
    ) -> Result<(), Error> {
        const SELECT_ANY: u8 = 2;

        let symbol = Symbol {
            name: section.name.clone(),
            section: None,
            offset: 0,
            size: 0,
            linkage: Linkage::Internal,
            hidden: false,
            kind: SymbolKind::Label,
        };
        self.push(&section.name, &symbol, number, CLASS_STATIC, 1, strings)?;
        let definition = CoffSectionDefinition {
            size: narrow(section.size)?.into(),
            relocations: u16::try_from(section.relocations.len()).unwrap_or(u16::MAX).into(),
            lines: 0.into(),
            checksum: 0.into(),
            section: number.into(),
            selection: SELECT_ANY,
            unused: [0; 3],
        };
        self.bytes.extend_from_slice(definition.as_bytes());
        self.count = self.count.saturating_add(1);
        Ok(())
    }

    fn push(
        &mut self,
        name: &str,
        symbol: &Symbol,
        section: u16,
        class: u8,
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
        let is_function = symbol.kind == SymbolKind::Function;
        let wire = CoffSymbol {
            name,
            value: narrow(symbol.offset)?.into(),
            section: section.into(),
            kind: if is_function { FUNCTION } else { 0 }.into(),
            class,
            auxiliaries,
        };
        self.bytes.extend_from_slice(wire.as_bytes());
        let number = self.count;
        self.count = self.count.saturating_add(1);
        Ok(number)
    }
}
