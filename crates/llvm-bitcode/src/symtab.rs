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

use crate::symbols::{Names, slice};
use crate::u32_at;

const VERSION: u32 = 3;
const HEADER_LEN: usize = 76;
const SYMBOL_LEN: usize = 24;

const UNDEFINED: u32 = 1 << 3;
const GLOBAL: u32 = 1 << 10;
const FORMAT_SPECIFIC: u32 = 1 << 11;

/// Returns the names of those symbols that an archive's index has. `None` when the table is of another version, is
/// not about this number of modules, or damaged: the modules hold the truth.
///
/// Any producer will do. LLVM wants its own, since a symbol table tells more than what is read here.
pub(crate) fn read(table: &[u8], strings: &[u8], modules: usize, names: Names) -> Option<Names> {
    table.get(..HEADER_LEN)?;
    let count = usize::try_from(u32_at(table, 16)?).ok()?;
    if u32_at(table, 0)? != VERSION || count != modules {
        return None;
    }
    let (start, count) = (u32_at(table, 28)?, u32_at(table, 32)?);
    let symbols = slice(table, start.into(), u64::from(count) * 24)?;
    let mut names = names;
    for symbol in symbols.chunks_exact(SYMBOL_LEN) {
        if u32_at(symbol, 20)? & (UNDEFINED | GLOBAL | FORMAT_SPECIFIC) == GLOBAL {
            let (start, len) = (u32_at(symbol, 0)?, u32_at(symbol, 4)?);
            names.push(&[slice(strings, start.into(), len.into())?]).ok()?;
        }
    }
    Some(names)
}
