//! The processor that functions of a bitcode module are for: their attribute `target-cpu` (LLVM Bitcode File Format,
//! "PARAMATTR_BLOCK Contents", "PARAMATTR_GROUP_BLOCK Contents").
//!
//! Clang gives it to every function. A function refers to a list of groups of attributes, and a group belongs to the
//! function, its return value or a parameter. All of them stand before the functions' bodies.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::abbreviation::Abbreviations;
use crate::bits::Cursor;
use crate::cursor::{Head, Item, Record};
use crate::error::Error;
use crate::module::{MODULE_FUNCTION, MODULE_VERSION};

const PARAMATTR_BLOCK: u64 = 9;
const PARAMATTR_GROUP_BLOCK: u64 = 10;
const FUNCTION_BLOCK: u64 = 12;

const PARAMATTR_ENTRY: u64 = 2;
const PARAMATTR_GROUP_ENTRY: u64 = 3;

/// Attributes of a group with this number belong to the function itself.
const FUNCTION_INDEX: u64 = 0xffff_ffff;
const KEY: &[u8] = b"target-cpu";

/// Groups and lists of attributes that are looked at. Large linked modules have some thousand.
const MOST: usize = 1 << 18;
/// Bytes of a name, and of a text that can be one.
const LONGEST: usize = 64;

/// The groups with a processor, by their numbers.
type Groups = BTreeMap<u64, String>;

/// Returns the processor that all functions with a body name; `None` if there are no such functions, if one names no
/// processor, or if they differ.
pub(crate) fn processor(cursor: &mut Cursor<'_>, module: &Head) -> Result<Option<String>, Error> {
    let mut groups = Groups::new();
    // For each list the group of the function itself that has a processor.
    let mut lists = Vec::new();
    let mut name_operands = 0;
    let mut found = None;
    let mut block = cursor.enter(module, &Abbreviations::default());
    loop {
        match cursor.next(&mut block)? {
            Item::Block(head) if head.id == FUNCTION_BLOCK => break,
            Item::End => break,
            Item::Block(head) if head.id == PARAMATTR_GROUP_BLOCK => {
                records(cursor, &head, PARAMATTR_GROUP_ENTRY, &mut |cursor, record| {
                    let named = group(cursor, record)?;
                    groups.extend(named.filter(|_| groups.len() < MOST));
                    Ok(())
                })?;
            }
            Item::Block(head) if head.id == PARAMATTR_BLOCK => {
                records(cursor, &head, PARAMATTR_ENTRY, &mut |cursor, record| {
                    let mut of_function = None;
                    while let Some(group) = cursor.operand(record)? {
                        of_function = of_function.or(groups.contains_key(&group).then_some(group));
                    }
                    lists.extend((lists.len() < MOST).then_some(of_function));
                    Ok(())
                })?;
            }
            Item::Block(_) => {}
            Item::Record(mut record) => {
                match record.code {
                    MODULE_VERSION => {
                        let version = cursor.operand(&mut record)?;
                        name_operands = if version >= Some(2) { 2 } else { 0 };
                    }
                    MODULE_FUNCTION => {
                        let list = defined_with(cursor, &mut record, name_operands)?;
                        if let Some(list) = list {
                            let group = list.and_then(|list| lists.get(list).copied().flatten());
                            let named = group.and_then(|group| groups.get(&group));
                            if named.is_none() || (found.is_some() && found.as_ref() != named) {
                                return Ok(None);
                            }
                            found = named.cloned();
                        }
                    }
                    _ => {}
                }
                cursor.skip(&mut record)?;
            }
        }
    }
    Ok(found)
}

/// Reads the record of a function: its type, calling convention, whether it is only declared, linkage, and the number of
/// its list of attributes plus one. Returns the list of one with a body.
fn defined_with(
    cursor: &mut Cursor<'_>,
    record: &mut Record,
    name_operands: usize,
) -> Result<Option<Option<usize>>, Error> {
    for _ in 0..name_operands {
        cursor.operand(record)?;
    }
    let mut fields = [0; 5];
    for field in &mut fields {
        *field = cursor.operand(record)?.unwrap_or(0);
    }
    let [_, _, is_declared, _, list] = fields;
    let list = usize::try_from(list).ok().and_then(|list| list.checked_sub(1));
    Ok((is_declared == 0).then_some(list))
}

/// Visits the records of a block that have this code.
fn records(
    cursor: &mut Cursor<'_>,
    head: &Head,
    code: u64,
    visit: &mut dyn FnMut(&mut Cursor<'_>, &mut Record) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut block = cursor.enter(head, &Abbreviations::default());
    loop {
        match cursor.next(&mut block)? {
            Item::End => return Ok(()),
            Item::Block(_) => {}
            Item::Record(mut record) => {
                if record.code == code {
                    visit(cursor, &mut record)?;
                }
                cursor.skip(&mut record)?;
            }
        }
    }
}

/// Reads a group: its number, to what it belongs, and the attributes, each after the number of its form. Returns number
/// and processor of a group that names one.
fn group(cursor: &mut Cursor<'_>, record: &mut Record) -> Result<Option<(u64, String)>, Error> {
    let (Some(number), Some(FUNCTION_INDEX)) = (cursor.operand(record)?, cursor.operand(record)?)
    else {
        return Ok(None);
    };
    while let Some(form) = cursor.operand(record)? {
        match form {
            // An attribute that LLVM knows, without a value, with a number, with a type.
            0 | 5 => drop(cursor.operand(record)?),
            1 | 6 => drop((cursor.operand(record)?, cursor.operand(record)?)),
            // Texts: a key, a key and a value.
            3 => drop(text(cursor, record)?),
            4 => {
                let (key, value) = (text(cursor, record)?, text(cursor, record)?);
                if key == KEY {
                    return Ok(name(value).map(|name| (number, name)));
                }
            }
            // Ranges, which functions do not have, and what is newer.
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// Returns the first bytes of a text, which a zero ends.
fn text(cursor: &mut Cursor<'_>, record: &mut Record) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    while let Some(byte) = cursor.operand(record)?.filter(|&byte| byte != 0) {
        if text.len() <= LONGEST {
            text.push(u8::try_from(byte).unwrap_or(0));
        }
    }
    Ok(text)
}

/// Returns the name of a processor; `None` for `generic`.
fn name(text: Vec<u8>) -> Option<String> {
    let is_name = text.len() <= LONGEST
        && !text.is_empty()
        && !text.starts_with(b"generic")
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte));
    String::from_utf8(text).ok().filter(|_| is_name)
}
