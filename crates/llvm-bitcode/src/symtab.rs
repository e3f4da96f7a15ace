//! The symbol table that LLVM writes after the modules, for linkers: the blob of the `SYMTAB` block. All numbers
//! are 32-bit, little-endian; strings lie in the string table that follows, the rest in the blob.

use core::fmt;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::names::{Names, slice};

const VERSION: u32 = 3;

/// A string, by its place in the string table; or an array in the blob, with the number of its elements.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct TableRange {
    offset: U32,
    len: U32,
}

/// Start of the blob.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    version: U32,
    /// String: the program that wrote the table.
    producer: TableRange,
    modules: TableRange,
    comdats: TableRange,
    /// [`Symbol`]s.
    symbols: TableRange,
    /// Further facts of some symbols.
    uncommons: TableRange,
    /// String: the target triple.
    triple: TableRange,
    /// String: the name of the source file.
    source: TableRange,
    /// String: options of the linker.
    linker_options: TableRange,
    /// Names of libraries.
    libraries: TableRange,
}

/// Symbol in the table.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct Symbol {
    /// String: the name.
    name: TableRange,
    /// String: the name in the module; empty for symbols of inline assembly.
    ir_name: TableRange,
    /// Index of the comdat.
    comdat: U32,
    flags: U32,
}

const UNDEFINED: u32 = 1 << 3;
const WEAK: u32 = 1 << 4;
const COMMON: u32 = 1 << 5;
const USED: u32 = 1 << 7;
const GLOBAL: u32 = 1 << 10;
const FORMAT_SPECIFIC: u32 = 1 << 11;

/// Symbol table of bitcode, as linkers read it, from the `SYMTAB` block.
#[derive(Clone, Copy)]
pub struct SymbolTable<'d> {
    symbols: &'d [Symbol],
    strings: &'d [u8],
    triple: &'d [u8],
    linker_options: &'d [u8],
}

impl fmt::Debug for SymbolTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SymbolTable").field("symbols", &self.symbols.len()).finish_non_exhaustive()
    }
}

/// Symbol of bitcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkerSymbol<'d> {
    name: &'d [u8],
    flags: u32,
}

impl<'d> SymbolTable<'d> {
    /// Reads the table. `None` when it is of another version, is not about this number of modules, or damaged: the
    /// modules hold the truth.
    ///
    /// Any producer will do. LLVM accepts only its own, because it reads more of the table.
    pub(crate) fn read(table: &'d [u8], strings: &'d [u8], modules: usize) -> Option<Self> {
        let (header, _) = Header::ref_from_prefix(table).ok()?;
        let count = usize::try_from(header.modules.len.get()).ok()?;
        if header.version != VERSION || count != modules {
            return None;
        }
        let TableRange { offset, len } = header.symbols;
        let len = u64::from(len) * size_of::<Symbol>() as u64;
        let symbols = <[Symbol]>::ref_from_bytes(slice(table, offset.into(), len)?).ok()?;
        let string = |at: TableRange| slice(strings, at.offset.into(), at.len.into());
        let read = SymbolTable {
            symbols,
            strings,
            triple: string(header.triple)?,
            linker_options: string(header.linker_options)?,
        };
        let is_sound = symbols.iter().all(|symbol| read.symbol(symbol).is_some());
        is_sound.then_some(read)
    }

    fn symbol(&self, symbol: &Symbol) -> Option<LinkerSymbol<'d>> {
        let name = slice(self.strings, symbol.name.offset.into(), symbol.name.len.into())?;
        Some(LinkerSymbol { name, flags: symbol.flags.get() })
    }

    /// Returns the symbols of all modules, in their order. A name may be there more than once.
    pub fn iter(&self) -> impl Iterator<Item = LinkerSymbol<'d>> + use<'d> {
        let table = *self;
        self.symbols.iter().filter_map(move |symbol| table.symbol(symbol))
    }

    /// Adds the names of those symbols that an archive's index has. `None` if they are too many or too long.
    pub(crate) fn definitions(&self, mut names: Names) -> Option<Names> {
        let is_indexed = |symbol: &LinkerSymbol<'_>| {
            symbol.flags & (UNDEFINED | GLOBAL | FORMAT_SPECIFIC) == GLOBAL
        };
        for symbol in self.iter().filter(is_indexed) {
            names.push(&[symbol.name]).ok()?;
        }
        Some(names)
    }

    /// Returns the target triple.
    #[must_use]
    pub fn triple(&self) -> &'d [u8] {
        self.triple
    }

    /// Returns the options for the linker in bitcode for COFF, such as `/include:name`.
    #[must_use]
    pub fn linker_options(&self) -> &'d [u8] {
        self.linker_options
    }
}

impl<'d> LinkerSymbol<'d> {
    /// Returns the name that the symbol has in an object.
    #[must_use]
    pub fn name(&self) -> &'d [u8] {
        self.name
    }

    /// Returns whether the bitcode refers to the symbol and does not define it.
    #[must_use]
    pub fn is_undefined(&self) -> bool {
        self.has(UNDEFINED)
    }

    /// Returns whether the definition, or the reference, is weak.
    #[must_use]
    pub fn is_weak(&self) -> bool {
        self.has(WEAK)
    }

    /// Returns whether the symbol is a common one: a definition that other definitions replace.
    #[must_use]
    pub fn is_common(&self) -> bool {
        self.has(COMMON)
    }

    /// Returns whether the symbol stays even without a reference in the bitcode: `llvm.used` names it.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.has(USED)
    }

    /// Returns whether other objects see the symbol.
    #[must_use]
    pub fn is_global(&self) -> bool {
        self.has(GLOBAL)
    }

    /// Returns whether the symbol is for LLVM alone and no object has it: `llvm.memcpy`, for example.
    #[must_use]
    pub fn is_format_specific(&self) -> bool {
        self.has(FORMAT_SPECIFIC)
    }

    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}
