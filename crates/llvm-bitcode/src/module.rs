//! From a bitcode module to the globals that embed device code (LLVM Bitcode File Format, "LLVM IR Encoding").
//!
//! Everything is numbered, by its place in the file: metadata strings and nodes; global variables, functions,
//! aliases, ifuncs and then the constants of the module. The way leads backwards through the file:
//!
//! ```text
//! !llvm.embedded.objects = !{!5}                     NAME, NAMED_NODE   metadata 5
//! !5 = !{ptr @llvm.embedded.object, !".llvm.offloading"}   NODE         metadata 3 and 4
//! !3 = ptr @llvm.embedded.object                     VALUE              value 2
//! @llvm.embedded.object = private constant ...       GLOBALVAR          initialiser: value 17
//! [4560 x i8] c"\10\FF\10\AD..."                     STRING             the bytes
//! ```
//!
//! So each step is a walk of its own over the records of one kind, and holds no more than the numbers that it
//! looks for: nothing of a module without embedded objects, whose metadata alone is read.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{ControlFlow, Range};

use crate::abbreviation::Abbreviations;
use crate::bits::{Cursor, Extent};
use crate::cursor::{Head, Item, Record};
use crate::error::{Error, ErrorKind};
use crate::source::ReadAt;

pub(crate) const BLOCKINFO_BLOCK: u64 = 0;
pub(crate) const MODULE_BLOCK: u64 = 8;
const CONSTANTS_BLOCK: u64 = 11;
pub(crate) const VALUE_SYMTAB_BLOCK: u64 = 14;
const METADATA_BLOCK: u64 = 15;

const BLOCKINFO_SETBID: u64 = 1;

pub(crate) const MODULE_VERSION: u64 = 1;
const MODULE_TRIPLE: u64 = 2;
pub(crate) const MODULE_GLOBALVAR: u64 = 7;
pub(crate) const MODULE_FUNCTION: u64 = 8;
pub(crate) const MODULE_ALIAS_OLD: u64 = 9;
pub(crate) const MODULE_ALIAS: u64 = 14;
pub(crate) const MODULE_IFUNC: u64 = 18;

const CONSTANT_SETTYPE: u64 = 1;
const CONSTANT_NULL: u64 = 2;
const CONSTANT_UNDEF: u64 = 3;
const CONSTANT_STRING: u64 = 8;
const CONSTANT_CSTRING: u64 = 9;
const CONSTANT_POISON: u64 = 26;

const METADATA_STRING_OLD: u64 = 1;
const METADATA_VALUE: u64 = 2;
const METADATA_NODE: u64 = 3;
const METADATA_NAME: u64 = 4;
const METADATA_DISTINCT_NODE: u64 = 5;
const METADATA_KIND: u64 = 6;
const METADATA_NAMED_NODE: u64 = 10;
const METADATA_STRINGS: u64 = 35;
const METADATA_GLOBAL_DECL_ATTACHMENT: u64 = 36;
const METADATA_INDEX_OFFSET: u64 = 38;
const METADATA_INDEX: u64 = 39;

/// The named metadata that lists embedded objects, and the section of device code among them.
const NAMED_METADATA: &[u8] = b"llvm.embedded.objects";
const SECTION: &str = ".llvm.offloading";

/// Objects embedded in one file. Clang embeds one in each module; linked modules have many.
const MAX_OBJECTS: usize = 1 << 20;

/// An object that a module embeds: the data of a global variable.
pub struct EmbeddedObject {
    stream: Extent,
    /// The constant's record, before its first operand.
    record: Record,
    /// Bits from the start of the stream to the first operand.
    position: u64,
    /// `true` if a NUL follows that is not stored.
    zero_terminated: bool,
    is_listed: bool,
}

impl EmbeddedObject {
    /// Returns `true` if the metadata `llvm.embedded.objects` lists it with the section `.llvm.offloading`; otherwise it
    /// was found by its first bytes.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Returns the object's bytes, at most `limit`, and the byte range of `source` that they are copied from. `source` is
    /// the source of the [`Reader`](crate::Reader) which found it. The object starts at any bit, so the range holds the bytes
    /// shifted.
    ///
    /// # Errors
    ///
    /// [`Limit`](crate::ErrorKind::Limit) for an object of more than `limit` bytes,
    /// [`Malformed`](crate::ErrorKind::Malformed) if its record is not a string of bytes,
    /// [`Unreadable`](crate::ErrorKind::Unreadable) if the source cannot be read.
    pub fn read(
        &self,
        source: &mut dyn ReadAt,
        limit: u64,
    ) -> Result<(Vec<u8>, Range<u64>), Error> {
        let mut cursor = Cursor::new(source, self.stream);
        cursor.seek(self.position);
        let mut bytes = cursor.bytes(&mut self.record.clone(), limit)?;
        if self.zero_terminated {
            bytes.push(0);
        }
        let (start, end) = (self.position / 8, cursor.position() / 8);
        Ok((bytes, self.stream.start + start..self.stream.start + end))
    }
}

impl fmt::Debug for EmbeddedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut object = f.debug_struct("EmbeddedObject");
        object.field("bit", &self.position).field("is_listed", &self.is_listed);
        object.finish_non_exhaustive()
    }
}

/// The records that a walk visits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Blocks of metadata.
    Metadata,
    /// Blocks that define global values and constants.
    Values,
}

/// Values or metadata that a visited record defines.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// The number of the value or metadata, or the first of them.
    id: u64,
    /// The number of definitions: none in some records of metadata, many in the one that holds all strings.
    count: u64,
    pub(crate) is_global: bool,
    /// Operands of a global's record before the operands of the format's first version: since version 2,
    /// offset and length of its name.
    pub(crate) skip: usize,
}

impl Entry {
    /// Returns the number after the last: `records` checks that there is one.
    fn end(&self) -> u64 {
        self.id + self.count
    }
}

pub(crate) type Visit<'v> =
    dyn FnMut(&mut Cursor<'_>, Entry, &mut Record) -> Result<ControlFlow<()>, Error> + 'v;

/// Bytes of a target triple.
const LONGEST_TRIPLE: u64 = 1024;

/// Returns the module's target triple. It stands before the global values; blocks before it are skipped.
pub(crate) fn triple(cursor: &mut Cursor<'_>, module: &Head) -> Result<Option<Vec<u8>>, Error> {
    let mut block = cursor.enter(module, &Abbreviations::default());
    loop {
        match cursor.next(&mut block)? {
            Item::End => return Ok(None),
            Item::Block(_) => {}
            Item::Record(mut record) => match record.code {
                MODULE_TRIPLE => return cursor.bytes(&mut record, LONGEST_TRIPLE).map(Some),
                // Version, data layout, assembler, sections, libraries, collectors, groups, source file.
                1 | 3..=6 | 10..=12 | 16 => cursor.skip(&mut record)?,
                _ => return Ok(None),
            },
        }
    }
}

/// Returns whether the module has metadata with a name.
pub(crate) fn has_named_metadata(
    cursor: &mut Cursor<'_>,
    module: &Head,
    name: &[u8],
) -> Result<bool, Error> {
    let mut is_found = false;
    walk(cursor, module, Part::Metadata, &mut |cursor, _, record| {
        is_found = record.code == METADATA_NAME && cursor.equals(record, name)?;
        Ok(if is_found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(is_found)
}

/// Adds the module's embedded objects to `found`, in the order of the metadata, each constant once.
pub(crate) fn embedded_objects(
    cursor: &mut Cursor<'_>,
    module: &Head,
    found: &mut Vec<EmbeddedObject>,
) -> Result<(), Error> {
    let nodes = listed_nodes(cursor, module)?;
    if nodes.is_empty() {
        return Ok(());
    }
    if nodes.len() + found.len() > MAX_OBJECTS {
        return Err(too_many_objects());
    }
    let mut first_error = None;
    let mut note = |missing: Result<(), Error>| {
        first_error = first_error.take().or(missing.err());
    };
    let pairs = node_operands(cursor, module, &nodes, &mut note)?;
    let globals = global_values(cursor, module, &pairs, &mut note)?;
    let initialisers = initialisers(cursor, module, &globals, &mut note)?;
    let mut objects = constants(cursor, module, &initialisers, &mut note)?;
    let in_order = nodes
        .iter()
        .filter_map(|node| pairs.get(node))
        .filter_map(|(operand, _)| globals.get(operand))
        .filter_map(|global| initialisers.get(global));
    // Removed when used: globals with equal contents share one constant.
    found.extend(in_order.filter_map(|constant| objects.remove(constant)));
    first_error.map_or(Ok(()), Err)
}

/// Adds constants of bytes to `found` that start with one of `magics`.
pub(crate) fn constants_starting_with(
    cursor: &mut Cursor<'_>,
    module: &Head,
    magics: &[[u8; 4]],
    found: &mut Vec<EmbeddedObject>,
) -> Result<(), Error> {
    // The objects of this module are the last.
    let positions = found.iter().rev().map(|object| object.position);
    let mut known: BTreeSet<u64> =
        positions.take_while(|&position| module.contains(position)).collect();
    walk(cursor, module, Part::Values, &mut |cursor, entry, record| {
        if entry.is_global || ![CONSTANT_STRING, CONSTANT_CSTRING].contains(&record.code) {
            return Ok(ControlFlow::Continue(()));
        }
        cursor.begin(record)?;
        let position = cursor.position();
        let mut first = [0; 4];
        let mut read = record.clone();
        for byte in &mut first {
            *byte =
                cursor.operand(&mut read)?.and_then(|value| u8::try_from(value).ok()).unwrap_or(0);
        }
        cursor.seek(position);
        if magics.contains(&first) && known.insert(position) {
            if found.len() >= MAX_OBJECTS {
                return Err(too_many_objects());
            }
            let zero_terminated = record.code == CONSTANT_CSTRING;
            let (stream, record, is_listed) = (cursor.stream(), record.clone(), false);
            found.push(EmbeddedObject { stream, record, position, zero_terminated, is_listed });
        }
        Ok(ControlFlow::Continue(()))
    })
}

fn too_many_objects() -> Error {
    Error::too_many("embedded objects", MAX_OBJECTS)
}

/// Takes note of something that does not exist: what was found nevertheless still counts.
type Note<'n> = dyn FnMut(Result<(), Error>) + 'n;

/// Returns the metadata nodes that `llvm.embedded.objects` lists.
fn listed_nodes(cursor: &mut Cursor<'_>, module: &Head) -> Result<Vec<u64>, Error> {
    let mut nodes = Vec::new();
    let mut is_named = false;
    walk(cursor, module, Part::Metadata, &mut |cursor, _, record| {
        match record.code {
            METADATA_NAME => is_named = cursor.equals(record, NAMED_METADATA)?,
            METADATA_NAMED_NODE if is_named => {
                while let Some(node) = cursor.operand(record)? {
                    nodes.push(node);
                    if nodes.len() > MAX_OBJECTS {
                        return Err(too_many_objects());
                    }
                }
            }
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(nodes)
}

/// Returns the first two operands of those nodes that have two: metadata of the global and of the section's name.
fn node_operands(
    cursor: &mut Cursor<'_>,
    module: &Head,
    nodes: &[u64],
    note: &mut Note<'_>,
) -> Result<BTreeMap<u64, (u64, u64)>, Error> {
    let mut wanted = Wanted::new(nodes.iter().copied());
    let mut pairs = BTreeMap::new();
    walk(cursor, module, Part::Metadata, &mut |cursor, entry, record| {
        let is_node = [METADATA_NODE, METADATA_DISTINCT_NODE].contains(&record.code);
        if wanted.take(&entry) && is_node {
            let (global, name) = (cursor.operand(record)?, cursor.operand(record)?);
            // 0 means no metadata, other operands are numbers plus one.
            let number = |operand: Option<u64>| operand?.checked_sub(1);
            if let (Some(global), Some(name)) = (number(global), number(name)) {
                pairs.insert(entry.id, (global, name));
            }
        }
        Ok(wanted.flow())
    })?;
    note(wanted.check("metadata node"));
    Ok(pairs)
}

/// Values that the first operands refer to, by metadata number, where the second is `.llvm.offloading`.
fn global_values(
    cursor: &mut Cursor<'_>,
    module: &Head,
    pairs: &BTreeMap<u64, (u64, u64)>,
    note: &mut Note<'_>,
) -> Result<BTreeMap<u64, u64>, Error> {
    let mut wanted = Wanted::new(pairs.values().flat_map(|&(global, name)| [global, name]));
    let mut names = BTreeSet::new();
    let mut values = BTreeMap::new();
    walk(cursor, module, Part::Metadata, &mut |cursor, entry, record| {
        if record.code == METADATA_STRINGS {
            section_names(cursor, entry, record, &mut wanted, &mut names)?;
        } else if wanted.take(&entry) {
            match record.code {
                METADATA_STRING_OLD => {
                    let is_section = cursor.equals(record, SECTION.as_bytes())?;
                    names.extend(is_section.then_some(entry.id));
                }
                // The first operand is the type.
                METADATA_VALUE => {
                    if let (Some(_), Some(value)) =
                        (cursor.operand(record)?, cursor.operand(record)?)
                    {
                        values.insert(entry.id, value);
                    }
                }
                _ => {}
            }
        }
        Ok(wanted.flow())
    })?;
    note(wanted.check("metadata operand"));
    let of_section = pairs.values().filter(|(_, name)| names.contains(name));
    Ok(of_section.filter_map(|(global, _)| Some((*global, *values.get(global)?))).collect())
}

/// Returns the wanted strings of a module that are the section's name.
///
/// The record holds the count, the offset of the characters in the blob, and the blob: the strings' lengths in
/// chunks of six bits, then their characters.
fn section_names(
    cursor: &mut Cursor<'_>,
    entry: Entry,
    record: &mut Record,
    wanted: &mut Wanted,
    names: &mut BTreeSet<u64>,
) -> Result<(), Error> {
    let malformed = |cursor: &Cursor<'_>| {
        let expected = "list of strings: a count, an offset and a blob";
        Error::record(cursor.offset(), METADATA_STRINGS, expected)
    };
    let chars = cursor.operand(record)?;
    let blob = cursor.blob(record)?;
    let (Some(chars), Some((start, len))) = (chars, blob) else {
        return Err(malformed(cursor));
    };
    if chars > len {
        return Err(malformed(cursor));
    }
    let (lengths_end, chars_end) = (start + chars * 8, start + len * 8);
    // First all lengths, then all characters, so that each is read in the order of the file.
    let mut candidates = Vec::new();
    let mut at = lengths_end;
    for id in entry.id..entry.end() {
        if wanted.flow().is_break() {
            break;
        }
        let length = cursor.vbr(6)?;
        let end = length.checked_mul(8).and_then(|bits| at.checked_add(bits));
        let end = end.filter(|end| *end <= chars_end && cursor.position() <= lengths_end);
        let Some(end) = end else { return Err(malformed(cursor)) };
        if wanted.take(&Entry { id, count: 1, ..entry }) && length == SECTION.len() as u64 {
            candidates.push((id, at));
        }
        at = end;
    }
    for (id, at) in candidates {
        cursor.seek(at);
        if cursor.equals(&mut Record::of_bytes(SECTION.len() as u64), SECTION.as_bytes())? {
            names.insert(id);
        }
    }
    // The caller skips the blob.
    cursor.seek(start);
    Ok(())
}

/// Returns the numbers of the initialisers of those values that are global variables and have one.
fn initialisers(
    cursor: &mut Cursor<'_>,
    module: &Head,
    globals: &BTreeMap<u64, u64>,
    note: &mut Note<'_>,
) -> Result<BTreeMap<u64, u64>, Error> {
    let mut wanted = Wanted::new(globals.values().copied());
    let mut initialisers = BTreeMap::new();
    walk(cursor, module, Part::Values, &mut |cursor, entry, record| {
        if wanted.take(&entry) && entry.is_global && record.code == MODULE_GLOBALVAR {
            // Type, whether it is constant, then the initialiser plus one.
            let mut initialiser = None;
            for _ in 0..entry.skip + 3 {
                initialiser = cursor.operand(record)?;
            }
            if let Some(constant) = initialiser.and_then(|number| number.checked_sub(1)) {
                initialisers.insert(entry.id, constant);
            }
        }
        Ok(wanted.flow())
    })?;
    note(wanted.check("global variable"));
    Ok(initialisers)
}

/// Returns the strings of bytes among the initialisers.
fn constants(
    cursor: &mut Cursor<'_>,
    module: &Head,
    initialisers: &BTreeMap<u64, u64>,
    note: &mut Note<'_>,
) -> Result<BTreeMap<u64, EmbeddedObject>, Error> {
    let mut wanted = Wanted::new(initialisers.values().copied());
    let mut objects = BTreeMap::new();
    walk(cursor, module, Part::Values, &mut |cursor, entry, record| {
        if wanted.take(&entry) && !entry.is_global {
            match record.code {
                CONSTANT_STRING | CONSTANT_CSTRING => {
                    let zero_terminated = record.code == CONSTANT_CSTRING;
                    cursor.begin(record)?;
                    let (stream, position) = (cursor.stream(), cursor.position());
                    let (record, is_listed) = (record.clone(), true);
                    let object =
                        EmbeddedObject { stream, record, position, zero_terminated, is_listed };
                    objects.insert(entry.id, object);
                }
                // Nothing but zeros, or nothing at all.
                CONSTANT_NULL | CONSTANT_UNDEF | CONSTANT_POISON => {}
                code => note(Err(not_bytes(cursor.offset(), code))),
            }
        }
        Ok(wanted.flow())
    })?;
    note(wanted.check("constant"));
    Ok(objects)
}

#[cold]
fn not_bytes(offset: u64, code: u64) -> Error {
    let message = format!(
        "bitcode global in llvm.embedded.objects is initialised by a constant of code {code} at byte {offset:#x}, expected a string of bytes"
    );
    Error::new(ErrorKind::Malformed, offset, message)
}

/// Numbers that a walk looks for; it meets all numbers in ascending order.
struct Wanted {
    ids: Vec<u64>,
    next: usize,
}

impl Wanted {
    fn new(ids: impl Iterator<Item = u64>) -> Self {
        let mut ids: Vec<u64> = ids.collect();
        ids.sort_unstable();
        ids.dedup();
        Wanted { ids, next: 0 }
    }

    /// Returns whether a number that the entry defines is wanted.
    fn take(&mut self, entry: &Entry) -> bool {
        let end = entry.end();
        let before = self.next;
        while self.ids.get(self.next).is_some_and(|&id| id < end) {
            self.next += 1;
        }
        self.next > before
    }

    fn flow(&self) -> ControlFlow<()> {
        match self.ids.get(self.next) {
            Some(_) => ControlFlow::Continue(()),
            None => ControlFlow::Break(()),
        }
    }

    /// Checks after the walk that all IDs were found.
    fn check(&self, what: &str) -> Result<(), Error> {
        match self.ids.get(self.next) {
            Some(&id) => {
                let message = format!(
                    "bitcode metadata llvm.embedded.objects refers to {what} {id}, which does not exist"
                );
                Err(Error::new(ErrorKind::Malformed, None, message))
            }
            None => Ok(()),
        }
    }
}

/// Visits the records of one part of a module, in the order of the file, until there are no more or the
/// visitor breaks. All other blocks, above all functions, are skipped by their lengths.
pub(crate) fn walk(
    cursor: &mut Cursor<'_>,
    module: &Head,
    part: Part,
    visit: &mut Visit<'_>,
) -> Result<(), Error> {
    let mut given = BTreeMap::new();
    let mut block = cursor.enter(module, &Abbreviations::default());
    let mut next_id = 0;
    let mut skip = 0;
    loop {
        match cursor.next(&mut block)? {
            Item::End => return Ok(()),
            Item::Record(mut record) => {
                match record.code {
                    MODULE_VERSION => {
                        let version = cursor.operand(&mut record)?;
                        skip = if version >= Some(2) { 2 } else { 0 };
                    }
                    MODULE_GLOBALVAR | MODULE_FUNCTION | MODULE_ALIAS | MODULE_ALIAS_OLD
                    | MODULE_IFUNC
                        if part == Part::Values =>
                    {
                        let entry = Entry { id: next_id, count: 1, is_global: true, skip };
                        next_id += 1;
                        if visit(cursor, entry, &mut record)?.is_break() {
                            return Ok(());
                        }
                    }
                    _ => {}
                }
                cursor.skip(&mut record)?;
            }
            Item::Block(head) if head.id == BLOCKINFO_BLOCK => {
                block_info(cursor, &head, &mut given)?;
            }
            Item::Block(head)
                if (head.id == METADATA_BLOCK && part == Part::Metadata)
                    || (head.id == CONSTANTS_BLOCK && part == Part::Values) =>
            {
                let inherited = given.get(&head.id).cloned().unwrap_or_default();
                if records(cursor, &head, &inherited, &mut next_id, visit)?.is_break() {
                    return Ok(());
                }
            }
            Item::Block(_) => {}
        }
    }
}

/// Visits the records of a block of metadata or constants.
fn records(
    cursor: &mut Cursor<'_>,
    head: &Head,
    inherited: &Abbreviations,
    next_id: &mut u64,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>, Error> {
    let mut block = cursor.enter(head, inherited);
    loop {
        let mut record = match cursor.next(&mut block)? {
            Item::End => return Ok(ControlFlow::Continue(())),
            Item::Block(_) => continue,
            Item::Record(record) => record,
        };
        let count = match head.id {
            METADATA_BLOCK => metadata_count(cursor, &mut record)?,
            _ => u64::from(record.code != CONSTANT_SETTYPE),
        };
        let entry = Entry { id: *next_id, count, is_global: false, skip: 0 };
        let Some(end) = next_id.checked_add(count) else {
            return Err(Error::record(
                cursor.offset(),
                record.code,
                "list of strings with numbers of 64 bits",
            ));
        };
        *next_id = end;
        if visit(cursor, entry, &mut record)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        cursor.skip(&mut record)?;
    }
}

/// Returns the number of strings and nodes that a record defines. For a list of strings, it reads the count. Codes
/// unknown here are nodes, like all that were added for years.
fn metadata_count(cursor: &mut Cursor<'_>, record: &mut Record) -> Result<u64, Error> {
    Ok(match record.code {
        METADATA_STRINGS => cursor.operand(record)?.unwrap_or(0),
        METADATA_NAME
        | METADATA_KIND
        | METADATA_NAMED_NODE
        | METADATA_GLOBAL_DECL_ATTACHMENT
        | METADATA_INDEX_OFFSET
        | METADATA_INDEX => 0,
        _ => 1,
    })
}

/// Blocks that are read, and so the abbreviations for them.
const DESCRIBED: [u64; 3] = [CONSTANTS_BLOCK, VALUE_SYMTAB_BLOCK, METADATA_BLOCK];

/// Reads the abbreviations for the blocks that matter here.
pub(crate) fn block_info(
    cursor: &mut Cursor<'_>,
    head: &Head,
    given: &mut BTreeMap<u64, Abbreviations>,
) -> Result<(), Error> {
    let mut block = cursor.enter(head, &Abbreviations::default());
    let mut described = None;
    loop {
        let item = cursor.next(&mut block)?;
        // The definitions before a record or the end belong to the block named last.
        let defined = core::mem::take(&mut block.own);
        if let Some(id) = described.filter(|id| DESCRIBED.contains(id)) {
            given.entry(id).or_default().append(&defined)?;
        }
        match item {
            Item::End => return Ok(()),
            Item::Block(_) => {}
            Item::Record(mut record) => {
                if record.code == BLOCKINFO_SETBID {
                    described = cursor.operand(&mut record)?;
                }
                cursor.skip(&mut record)?;
            }
        }
    }
}
