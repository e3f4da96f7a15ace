//! The global values of a module that an archive's index has, from the module's own records.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use crate::abbreviation::Abbreviations;
use crate::bits::Cursor;
use crate::cursor::{Head, Item, Record};
use crate::error::Error;
use crate::module::{
    BLOCKINFO_BLOCK, MODULE_ALIAS, MODULE_ALIAS_OLD, MODULE_FUNCTION, MODULE_GLOBALVAR,
    MODULE_IFUNC, MODULE_VERSION, VALUE_SYMTAB_BLOCK, block_info,
};
use crate::names::{Names, slice};

const MODULE_DATALAYOUT: u64 = 3;
const MODULE_SECTIONNAME: u64 = 5;

const VALUE_ENTRY: u64 = 1;
const VALUE_FUNCTION_ENTRY: u64 = 3;

/// In the order in which LLVM lists the symbols of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Function,
    Variable,
    Alias,
    Ifunc,
}

/// A definition that is not local to the module.
#[derive(Debug)]
struct Global {
    kind: Kind,
    /// The number of the value, by which a symbol table of the module names it.
    id: u64,
    /// Offset and length of the name in the string table, since version 2 of the format.
    place: Option<(u64, u64)>,
}

/// Rules for names in a data layout.
#[derive(Clone, Copy, Debug, Default)]
struct Mangling {
    underscore: bool,
    /// A name that starts with a question mark is not changed.
    keep_question_mark: bool,
}

/// The definitions of a module.
#[derive(Debug, Default)]
pub(crate) struct Globals {
    list: Vec<Global>,
    mangling: Mangling,
    /// Names by the numbers of the values, before version 2.
    own_names: BTreeMap<u64, Vec<u8>>,
    /// Values seen so far.
    values: u64,
    has_strings: bool,
    /// Sections seen so far, and the numbers of sections that only LLVM reads. Numbers start at 1.
    sections: u64,
    metadata_sections: Vec<u64>,
}

/// Reads the records of a module. Each that defines or declares something counts as a symbol.
pub(crate) fn read(
    cursor: &mut Cursor<'_>,
    module: &Head,
    names: &mut Names,
) -> Result<Globals, Error> {
    let mut globals = Globals::default();
    let mut given = BTreeMap::new();
    let mut block = cursor.enter(module, &Abbreviations::default());
    loop {
        match cursor.next(&mut block)? {
            Item::End => break,
            Item::Record(mut record) => {
                globals.record(cursor, &mut record, names)?;
                cursor.skip(&mut record)?;
            }
            Item::Block(head) if head.id == BLOCKINFO_BLOCK => {
                block_info(cursor, &head, &mut given)?;
            }
            Item::Block(head) if head.id == VALUE_SYMTAB_BLOCK && !globals.has_strings => {
                let inherited = given.get(&head.id).cloned().unwrap_or_default();
                globals.value_symtab(cursor, &head, &inherited, names)?;
            }
            Item::Block(_) => {}
        }
    }
    globals.list.sort_by_key(|global| global.kind);
    Ok(globals)
}

impl Globals {
    fn record(
        &mut self,
        cursor: &mut Cursor<'_>,
        record: &mut Record,
        names: &mut Names,
    ) -> Result<(), Error> {
        let (kind, expected) = match record.code {
            MODULE_VERSION => {
                self.has_strings = cursor.operand(record)? >= Some(2);
                return Ok(());
            }
            MODULE_DATALAYOUT => {
                self.mangling = mangling(&cursor.bytes(record, u64::MAX)?);
                return Ok(());
            }
            MODULE_SECTIONNAME => {
                self.sections += 1;
                if cursor.equals(record, b"llvm.metadata")? {
                    self.metadata_sections.push(self.sections);
                }
                return Ok(());
            }
            MODULE_FUNCTION => (Kind::Function, "function"),
            MODULE_GLOBALVAR => (Kind::Variable, "global variable"),
            MODULE_ALIAS | MODULE_ALIAS_OLD => (Kind::Alias, "alias"),
            MODULE_IFUNC => (Kind::Ifunc, "ifunc"),
            _ => return Ok(()),
        };
        names.count()?;
        let (code, id) = (record.code, self.values);
        self.values += 1;
        let mut next = |record: &mut Record| match cursor.operand(record)? {
            Some(value) => Ok(value),
            None => Err(Error::record(cursor.offset(), code, expected)),
        };
        let place = if self.has_strings { Some((next(record)?, next(record)?)) } else { None };
        next(record)?; // the type
        if code != MODULE_ALIAS_OLD {
            next(record)?; // flags of variables, calling convention, address space
        }
        let third = next(record)?;
        let is_declaration = match kind {
            Kind::Function => third != 0,
            Kind::Variable => third == 0,
            Kind::Alias | Kind::Ifunc => false,
        };
        let linkage = next(record)?;
        if is_declaration || !is_linkable(linkage) {
            return Ok(());
        }
        if kind == Kind::Variable && !self.metadata_sections.is_empty() {
            next(record)?; // the alignment
            let section = next(record)?;
            if self.metadata_sections.binary_search(&section).is_ok() {
                return Ok(());
            }
        }
        self.list.push(Global { kind, id, place });
        Ok(())
    }

    /// Reads the names of a module before version 2.
    fn value_symtab(
        &mut self,
        cursor: &mut Cursor<'_>,
        head: &Head,
        inherited: &Abbreviations,
        names: &mut Names,
    ) -> Result<(), Error> {
        let mut block = cursor.enter(head, inherited);
        loop {
            let mut record = match cursor.next(&mut block)? {
                Item::End => return Ok(()),
                Item::Block(_) => continue,
                Item::Record(record) => record,
            };
            if [VALUE_ENTRY, VALUE_FUNCTION_ENTRY].contains(&record.code)
                && let Some(id) = cursor.operand(&mut record)?
            {
                names.count()?;
                if record.code == VALUE_FUNCTION_ENTRY {
                    cursor.operand(&mut record)?; // where the function is
                }
                let name = cursor.bytes(&mut record, u64::MAX)?;
                self.own_names.insert(id, name);
            }
            cursor.skip(&mut record)?;
        }
    }

    /// Adds the names as they would be in an object. `unnamed` counts the globals without a name, which LLVM numbers.
    pub(crate) fn names(
        &self,
        strings: &[u8],
        unnamed: &mut u64,
        names: &mut Names,
    ) -> Result<(), Error> {
        for global in &self.list {
            let name = match global.place {
                None => self.own_names.get(&global.id).map(Vec::as_slice).unwrap_or_default(),
                Some((start, len)) => slice(strings, start, len)
                    .ok_or_else(|| Error::symbol_name(start, len, strings))?,
            };
            if name.starts_with(b"llvm.") {
                continue;
            }
            if let Some(exact) = name.strip_prefix(b"\x01") {
                names.push(&[exact])?;
                continue;
            }
            let is_kept = self.mangling.keep_question_mark && name.starts_with(b"?");
            let prefix: &[u8] = if self.mangling.underscore && !is_kept { b"_" } else { b"" };
            if name.is_empty() {
                *unnamed += 1;
                names.push(&[prefix, format!("__unnamed_{unnamed}").as_bytes()])?;
            } else {
                names.push(&[prefix, name])?;
            }
        }
        Ok(())
    }
}

/// Returns whether a definition of this linkage is seen outside of its module: not if it is internal (3), private (9, and
/// formerly 13, 14), or only a copy of one that is elsewhere (12).
fn is_linkable(linkage: u64) -> bool {
    ![3, 9, 12, 13, 14].contains(&linkage)
}

/// Returns the rules of the data layout's `m:`: `o` for Mach-O, `w` and `x` for COFF, `x` on 32-bit x86.
fn mangling(data_layout: &[u8]) -> Mangling {
    let mut mangling = Mangling::default();
    for part in data_layout.split(|&byte| byte == b'-') {
        if let Some(kind) = part.strip_prefix(b"m:") {
            mangling = Mangling {
                underscore: [b"o", b"x"].iter().any(|k| kind == *k),
                keep_question_mark: [b"w", b"x"].iter().any(|k| kind == *k),
            };
        }
    }
    mangling
}
