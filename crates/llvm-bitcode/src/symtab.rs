//! The symbol table that LLVM writes behind the modules, for linkers: the blob of the `SYMTAB` block. All numbers
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

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::symbols::{Names, slice};

const VERSION: u32 = 3;

const UNDEFINED: u32 = 1 << 3;
const GLOBAL: u32 = 1 << 10;
const FORMAT_SPECIFIC: u32 = 1 << 11;

/// A string in the string table, or a list in the blob: the length is the number of elements.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawPlace {
    offset: U32,
    len: U32,
}

#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawHeader {
    version: U32,
    producer: RawPlace,
    modules: RawPlace,
    comdats: RawPlace,
    symbols: RawPlace,
    uncommons: RawPlace,
    triple: RawPlace,
    source_file: RawPlace,
    linker_options: RawPlace,
    dependent_libraries: RawPlace,
}

#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawSymbol {
    name: RawPlace,
    /// The name in the module; empty of symbols of inline assembly.
    ir_name: RawPlace,
    comdat: U32,
    flags: U32,
}

const _: () = assert!(size_of::<RawHeader>() == 76 && size_of::<RawSymbol>() == 24);

/// The names of those symbols that an archive's index has. `None` when the table is of another version, is not
/// about this number of modules, or damaged: the modules hold the truth.
///
/// Any producer will do. LLVM wants its own, since a symbol table tells more than what is read here.
pub(crate) fn read(table: &[u8], strings: &[u8], modules: usize, names: Names) -> Option<Names> {
    let (header, _) = RawHeader::ref_from_prefix(table).ok()?;
    let count = usize::try_from(header.modules.len.get()).ok()?;
    if header.version != VERSION || count != modules {
        return None;
    }
    let symbols = slice(table, header.symbols.offset.into(), u64::from(header.symbols.len) * 24)?;
    let symbols = <[RawSymbol]>::ref_from_bytes(symbols).ok()?;
    let mut names = names;
    for symbol in symbols {
        if symbol.flags.get() & (UNDEFINED | GLOBAL | FORMAT_SPECIFIC) == GLOBAL {
            let name = slice(strings, symbol.name.offset.into(), symbol.name.len.into())?;
            names.push(&[name]).ok()?;
        }
    }
    Some(names)
}
