//! An object file between the module it is made of and the format it is written in.

use std::collections::BTreeMap;

use crate::description::{Blob, Linkage, Name};
use crate::error::Error;
use crate::layout::Output;
use crate::to_u64;

/// An object file, before it has a format.
#[derive(Debug, Default)]
pub(super) struct Object {
    /// Sections, in the order they are written.
    pub(super) sections: Vec<Section>,
    /// Symbols, one of each name, without symbols of the format itself.
    pub(super) symbols: Vec<Symbol>,
    /// The indices of names in `symbols`.
    names: BTreeMap<Name, usize>,
}

/// A section.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) name: Name,
    pub(super) content: Content,
    /// Written by the program itself, not only by the loader.
    pub(super) writable: bool,
    /// The linker must keep it.
    pub(super) retain: bool,
    /// Alignment in bytes, a power of two.
    pub(super) align: u64,
    pub(super) size: u64,
    pub(super) parts: Vec<Part>,
    pub(super) relocations: Vec<Relocation>,
}

/// The kind of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Code,
    Data,
    /// Zeros, which take no bytes in the file.
    Zeros,
    /// Offload binaries, nothing else.
    Packages,
    /// Pointers to functions to run at the start.
    Constructors,
    /// Pointers to functions to run at the end.
    Destructors,
    /// Notes for linker and loader.
    Notes,
    /// Tables for unwinding the stack.
    Unwind,
    /// Not loaded: says something to the linker.
    Directive,
}

/// A part of what a section holds.
#[derive(Debug)]
pub(super) enum Part {
    Bytes(Vec<u8>),
    Image(Blob),
    Zeros(u64),
}

/// A place in a section that the linker fills in.
#[derive(Clone, Debug)]
pub(super) struct Relocation {
    /// The offset in the section.
    pub(super) offset: u64,
    /// The type, a number of the format and machine.
    pub(super) kind: u32,
    /// Index of the target symbol.
    pub(super) symbol: usize,
    pub(super) addend: i64,
}

/// A symbol.
#[derive(Clone, Debug)]
pub(super) struct Symbol {
    pub(super) name: Name,
    /// The section it is in, by index; `None` if it is defined elsewhere.
    pub(super) section: Option<usize>,
    /// The offset in the section.
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) linkage: Linkage,
    pub(super) hidden: bool,
    pub(super) kind: SymbolKind,
}

/// The kind of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SymbolKind {
    Function,
    Variable,
    /// A place, such as one that a relocation refers to, or something defined elsewhere.
    Label,
}

impl Object {
    /// Returns the section of this name, made if it is not there yet.
    pub(super) fn section(&mut self, name: &Name, content: Content) -> usize {
        let found = self.sections.iter().position(|section| section.name == *name);
        found.unwrap_or_else(|| {
            self.sections.push(Section {
                name: name.clone(),
                content,
                writable: false,
                retain: false,
                align: 1,
                size: 0,
                parts: Vec::new(),
                relocations: Vec::new(),
            });
            self.sections.len() - 1
        })
    }

    /// Returns the section with an index that [`section`](Self::section) returned: sections are never removed.
    pub(super) fn at(&mut self, index: usize) -> Result<&mut Section, Error> {
        self.sections.get_mut(index).ok_or_else(|| Error::internal("no such section"))
    }

    /// Adds a symbol, or completes the one of that name. Returns its index.
    pub(super) fn define(&mut self, symbol: Symbol) -> usize {
        let end = self.symbols.len();
        let index = *self.names.entry(symbol.name.clone()).or_insert(end);
        match self.symbols.get_mut(index) {
            Some(known) => *known = symbol,
            None => self.symbols.push(symbol),
        }
        index
    }

    /// Returns the symbol of this name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }
}

impl Section {
    /// Returns the alignment of its start in the file. Large images start where the kernel copies in large units,
    /// which is a quarter faster than at any page.
    pub(super) fn file_align(&self) -> u64 {
        const LARGE: u64 = 1 << 20;
        const UNIT: u64 = 1 << 16;
        /// The largest alignment in a file; larger ones are for memory.
        const PAGE: u64 = 4096;

        let is_large = |part: &Part| matches!(part, Part::Image(blob) if blob.size >= LARGE);
        if self.parts.iter().any(is_large) { UNIT } else { self.align.min(PAGE) }
    }

    /// Writes the addends of relocations, which are 0 if they are in the record of the format or in an instruction, to the
    /// bytes that they apply to. `width` is the size of the field of a type of relocation in bytes.
    pub(super) fn set_addends(&mut self, width: impl Fn(u32) -> usize) -> Result<(), Error> {
        for relocation in self.relocations.iter().filter(|relocation| relocation.addend != 0) {
            let field = bytes_at(&mut self.parts, relocation.offset);
            let field = field.and_then(|bytes| bytes.get_mut(..width(relocation.kind)));
            let field = field.ok_or_else(|| Error::internal("a relocation outside of bytes"))?;
            for (to, from) in field.iter_mut().zip(relocation.addend.to_le_bytes()) {
                *to = from;
            }
        }
        Ok(())
    }

    /// Adds bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.grow(to_u64(bytes.len()))?;
        match self.parts.last_mut() {
            Some(Part::Bytes(last)) => last.extend_from_slice(bytes),
            _ => self.parts.push(Part::Bytes(bytes.to_vec())),
        }
        Ok(())
    }

    /// Adds a part of an input.
    pub(super) fn push_image(&mut self, blob: &Blob) -> Result<(), Error> {
        self.grow(blob.size)?;
        self.parts.push(Part::Image(blob.clone()));
        Ok(())
    }

    /// Adds zeros.
    pub(super) fn push_zeros(&mut self, count: u64) -> Result<(), Error> {
        // A few are written out, to keep parts together.
        let few = usize::try_from(count).ok().and_then(|count| [0; 64].get(..count));
        if let Some(few) = few {
            return self.push(few);
        }
        self.grow(count)?;
        self.parts.push(Part::Zeros(count));
        Ok(())
    }

    /// Adds zeros up to a multiple of `align`, and gives the section that alignment if it has less. Aligns the next
    /// bytes.
    pub(super) fn align_to(&mut self, align: u64) -> Result<u64, Error> {
        let end = next_multiple(self.size, align)?;
        self.push_zeros(end - self.size)?;
        self.align = self.align.max(align);
        Ok(end)
    }

    fn grow(&mut self, size: u64) -> Result<(), Error> {
        self.size = advance(self.size, size)?;
        Ok(())
    }
}

/// Returns the bytes from an offset in a section to the end of their part; `None` for an image or zeros.
fn bytes_at(parts: &mut [Part], mut at: u64) -> Option<&mut [u8]> {
    for part in parts {
        let size = match part {
            Part::Bytes(bytes) => to_u64(bytes.len()),
            Part::Image(blob) => blob.size,
            Part::Zeros(count) => *count,
        };
        match (at.checked_sub(size), part) {
            (Some(rest), _) => at = rest,
            (None, Part::Bytes(bytes)) => return bytes.get_mut(usize::try_from(at).ok()?..),
            (None, _) => return None,
        }
    }
    None
}

/// Returns the offset after `size` bytes.
pub(super) fn advance(end: u64, size: u64) -> Result<u64, Error> {
    end.checked_add(size).ok_or_else(Error::output_too_large)
}

/// Returns the offset, aligned.
pub(super) fn next_multiple(end: u64, align: u64) -> Result<u64, Error> {
    end.checked_next_multiple_of(align.max(1)).ok_or_else(Error::output_too_large)
}

/// Returns the number that a format gives to the symbol of a relocation.
pub(super) fn symbol_number(numbers: &[u32], relocation: &Relocation) -> Result<u32, Error> {
    let number = numbers.get(relocation.symbol).copied();
    number.ok_or_else(|| Error::internal("a relocation without a symbol"))
}

/// Adds the contents of a section to a file.
pub(super) fn push_parts(layout: &mut Output, section: &Section) -> Result<(), Error> {
    section.parts.iter().try_for_each(|part| match part {
        Part::Bytes(bytes) => layout.push_bytes(bytes),
        Part::Image(blob) => layout.push_image(blob),
        Part::Zeros(count) => layout.push_zeros(*count),
    })
}

/// Adds zeros to a file up to an offset.
pub(super) fn pad(layout: &mut Output, to: u64) -> Result<(), Error> {
    let count = to.checked_sub(layout.size());
    let count = count.ok_or_else(|| Error::internal("a part before the end of the last"))?;
    // Fewer than an alignment: kept with the bytes around them.
    let zeros = [0; 8];
    match usize::try_from(count).ok().and_then(|count| zeros.get(..count)) {
        Some(zeros) => layout.push_bytes(zeros),
        None => layout.push_zeros(count),
    }
}
