//! The symbol table that LLVM writes after the modules, for linkers: the blob of the `SYMTAB` block. All numbers
//! are 32-bit, little-endian; strings lie in the string table that follows, the rest in the blob.
//!
//! ```text
//!  0  version                3
//!  4  producer               offset, length in the string table
//! 12  modules                offset in the blob, count
//! 20  comdats
//! 28  symbols                24 bytes each
//! 36  further facts of some symbols
//! 44  target triple, source file, linker options, dependent libraries
//! 76  ...
//! ```
//!
//! A symbol is:
//!
//! ```text
//!  0  name                   offset, length in the string table
//!  8  name in the module     empty of symbols of inline assembly
//! 16  comdat
//! 20  flags
//! ```

use crate::names::{Names, slice};
use crate::u32_at;

const VERSION: u32 = 3;
const HEADER_LEN: usize = 76;
const SYMBOL_LEN: usize = 24;

const UNDEFINED: u32 = 1 << 3;
const WEAK: u32 = 1 << 4;
const COMMON: u32 = 1 << 5;
const USED: u32 = 1 << 7;
const GLOBAL: u32 = 1 << 10;
const FORMAT_SPECIFIC: u32 = 1 << 11;

/// Symbol table of bitcode, as linkers read it, from the `SYMTAB` block.
#[derive(Clone, Copy, Debug)]
pub struct SymbolTable<'d> {
    symbols: &'d [u8],
    strings: &'d [u8],
    triple: &'d [u8],
    linker_options: &'d [u8],
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
        table.get(..HEADER_LEN)?;
        let count = usize::try_from(u32_at(table, 16)?).ok()?;
        if u32_at(table, 0)? != VERSION || count != modules {
            return None;
        }
        let (start, count) = (u32_at(table, 28)?, u32_at(table, 32)?);
        let symbols = slice(table, start.into(), u64::from(count) * 24)?;
        let string = |at| slice(strings, u32_at(table, at)?.into(), u32_at(table, at + 4)?.into());
        let read = SymbolTable {
            symbols,
            strings,
            triple: string(44).unwrap_or_default(),
            linker_options: string(60).unwrap_or_default(),
        };
        let is_sound = symbols.chunks_exact(SYMBOL_LEN).all(|symbol| read.symbol(symbol).is_some());
        is_sound.then_some(read)
    }

    fn symbol(&self, symbol: &[u8]) -> Option<LinkerSymbol<'d>> {
        let (start, len) = (u32_at(symbol, 0)?, u32_at(symbol, 4)?);
        let name = slice(self.strings, start.into(), len.into())?;
        Some(LinkerSymbol { name, flags: u32_at(symbol, 20)? })
    }

    /// Returns the symbols of all modules, in their order. A name may be there more than once.
    pub fn iter(&self) -> impl Iterator<Item = LinkerSymbol<'d>> + use<'d> {
        let table = *self;
        self.symbols.chunks_exact(SYMBOL_LEN).filter_map(move |symbol| table.symbol(symbol))
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
