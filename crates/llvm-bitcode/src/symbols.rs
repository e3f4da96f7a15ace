//! The symbols of LLVM bitcode, as the index of an archive has them.
//!
//! ```text
//! MODULE_BLOCK ...    GLOBALVAR, FUNCTION, ALIAS, IFUNC records: linkage, place of the name
//! STRTAB_BLOCK        the names of the modules before it, and of SYMTAB
//! SYMTAB_BLOCK        all symbols of all modules, with the flags and names that they will have in an object
//! ```

use alloc::vec::Vec;

use crate::abbreviation::Abbreviations;
use crate::bits::Cursor;
use crate::cursor::{Head, Item};
use crate::error::Error;
use crate::names::{Names, slice};
use crate::reader::extent;
use crate::symtab::SymbolTable;
use crate::{MAGIC, WRAPPER_MAGIC, globals, module};

const STRTAB_BLOCK: u64 = 23;
const SYMTAB_BLOCK: u64 = 25;
/// The code of the one record in either.
const BLOB: u64 = 1;

/// Returns the names of the symbols that LLVM's archive writer enters into the index for this bitcode, in its order;
/// `None` if the data is not bitcode, raw (`42 43 C0 DE`) or in its wrapper (`DE C0 17 0B`).
///
/// These are the definitions that are not local to a module: external, weak, linkonce and common ones, hidden or
/// not; without LLVM's own (`llvm.*`, the section `llvm.metadata`) and `available_externally`. Module after module,
/// functions come first, then variables, aliases, ifuncs, and what inline assembly defines. A name is what an
/// object would have: with the underscore of Mach-O, for example. It may be there more than once.
///
/// The `SYMTAB` block is read where it is sound and of version 3, as LLVM 22 writes it, else the records of the
/// modules, with the names from `STRTAB` or, of files written before LLVM 5, from the modules' own symbol tables.
/// Only `SYMTAB` has two things: the symbols that inline assembly of a module defines, which are missing
/// otherwise, and the suffixes of the calling conventions `stdcall`, `fastcall` and `vectorcall` of Windows
/// (`_f@8`). clang writes `SYMTAB` wherever its LLVM has an assembler for the target; `llvm-as` and `llvm-link`
/// leave it out of modules with inline assembly, `llvm-cat` of all.
///
/// Time and memory are bounded by the length of the data: no more than a symbol for 4 bytes, and 16 bytes of
/// names for one.
///
/// # Errors
///
/// Every [`ErrorKind`](crate::ErrorKind) except `Unreadable`. The contents of functions are skipped, not
/// checked.
///
/// ```
/// assert_eq!(llvm_bitcode::symbols(b"\x7fELF...").unwrap(), None);
/// assert!(llvm_bitcode::symbols(b"BC\xc0\xde").is_err());
/// ```
pub fn symbols(data: &[u8]) -> Result<Option<Vec<Vec<u8>>>, Error> {
    let mut source = data;
    let Some((mut cursor, file)) = File::open(data, &mut source)? else { return Ok(None) };
    let table = file.symbol_table();
    if let Some(names) = table.and_then(|table| table.definitions(Names::new(data.len()))) {
        return Ok(Some(names.list));
    }
    let mut names = Names::new(data.len());
    let mut unnamed = 0;
    for (module, strings) in &file.modules {
        cursor.leave_to(0);
        let globals = globals::read(&mut cursor, module, &mut names)?;
        globals.names(strings.unwrap_or_default(), &mut unnamed, &mut names)?;
    }
    Ok(Some(names.list))
}

/// Returns the symbol table that LLVM writes for linkers: definitions, references, and what is known of each. `None` if
/// the data is not bitcode, or has no sound `SYMTAB` block of version 3.
///
/// Without the block, [`symbols`] still has the definitions, but references of inline assembly are unknown.
/// Nothing is copied.
///
/// # Errors
///
/// Every [`ErrorKind`](crate::ErrorKind) except `Unreadable`. The contents of modules are not checked.
///
/// ```
/// let file = std::fs::read("../../examples/data/hip-embedded.bc").unwrap();
/// let table = llvm_bitcode::symbol_table(&file)?.unwrap();
/// let undefined: Vec<_> = table.iter().filter(|symbol| symbol.is_undefined()).collect();
/// assert!(undefined.iter().any(|symbol| symbol.name() == b"hipLaunchKernel"));
/// # Ok::<(), llvm_bitcode::Error>(())
/// ```
pub fn symbol_table(data: &[u8]) -> Result<Option<SymbolTable<'_>>, Error> {
    let mut source = data;
    Ok(File::open(data, &mut source)?.and_then(|(_, file)| file.symbol_table()))
}

/// Facts about symbols in the blocks outside of all others.
#[derive(Debug, Default)]
pub(crate) struct File<'d> {
    /// Modules with their string tables.
    pub(crate) modules: Vec<(Head, Option<&'d [u8]>)>,
    symtab: Option<&'d [u8]>,
    symtab_strings: Option<&'d [u8]>,
}

impl<'d> File<'d> {
    /// Reads the facts about bitcode in memory, and returns them with a cursor in it; `None` if the data is not bitcode.
    /// `source` is the data.
    pub(crate) fn open<'s>(
        data: &'d [u8],
        source: &'s mut &'d [u8],
    ) -> Result<Option<(Cursor<'s>, Self)>, Error> {
        if !data.starts_with(&MAGIC) && !data.starts_with(&WRAPPER_MAGIC) {
            return Ok(None);
        }
        let stream = extent(source, &(0..data.len() as u64))?;
        // The bytes from which positions count.
        let bytes = slice(data, stream.start, stream.len).ok_or_else(|| Error::unreadable(0))?;
        let mut cursor = Cursor::new(source, stream);
        let file = File::read(&mut cursor, bytes)?;
        if file.modules.is_empty() {
            Err(Error::no_module(cursor.offset()))
        } else {
            Ok(Some((cursor, file)))
        }
    }

    fn symbol_table(&self) -> Option<SymbolTable<'d>> {
        SymbolTable::read(self.symtab?, self.symtab_strings.unwrap_or_default(), self.modules.len())
    }

    pub(crate) fn read(cursor: &mut Cursor<'_>, bytes: &'d [u8]) -> Result<Self, Error> {
        let mut file = File::default();
        cursor.magic()?;
        // LLVM, too, takes fewer than eight bytes for padding, which archivers add.
        while cursor.bytes_left() >= 8 {
            let block = cursor.outer_block()?;
            let end = cursor.position();
            match block.id {
                module::MODULE_BLOCK => file.modules.push((block, None)),
                STRTAB_BLOCK => {
                    let strings = blob(cursor, &block, bytes)?;
                    // For all before it that have none yet.
                    let waiting = file.modules.iter_mut().rev();
                    for (_, of_module) in waiting.take_while(|(_, strings)| strings.is_none()) {
                        *of_module = Some(strings);
                    }
                    if file.symtab.is_some() {
                        file.symtab_strings.get_or_insert(strings);
                    }
                }
                SYMTAB_BLOCK => {
                    let table = blob(cursor, &block, bytes)?;
                    file.symtab.get_or_insert(table);
                }
                _ => {}
            }
            cursor.leave_to(end);
        }
        Ok(file)
    }
}

/// Returns the blob that is a block's contents; empty without a blob, as LLVM reads it.
fn blob<'d>(cursor: &mut Cursor<'_>, head: &Head, bytes: &'d [u8]) -> Result<&'d [u8], Error> {
    let mut block = cursor.enter(head, &Abbreviations::default());
    loop {
        match cursor.next(&mut block)? {
            Item::End => return Ok(&[]),
            Item::Block(_) => {}
            Item::Record(mut record) => {
                if record.code == BLOB
                    && let Some((position, len)) = cursor.blob(&mut record)?
                {
                    let unreadable = || Error::unreadable(cursor.offset());
                    return slice(bytes, position / 8, len).ok_or_else(unreadable);
                }
                cursor.skip(&mut record)?;
            }
        }
    }
}
