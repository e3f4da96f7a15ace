//! Mach-O: one more section, which holds all new contents. Names of sections have at most 16 bytes.
//!
//! ```text
//! header                    sizeofcmds changed
//! load commands             the segment's with one more section; the offsets in them moved
//! contents of the sections  the same bytes, further back
//!                           the new section: what comes first, the contents, zeros
//! relocations, symbols ...  the same bytes
//! ```
//!
//! The zeros make the size of the section a multiple of 8 (4 in 32-bit files), so that what follows stays
//! aligned. The section is regular, without attributes and without alignment, as the ones that clang makes of
//! `-fembed-bitcode`; its address is where the segment ended.

use std::ops::Range;

use object::U32;
use object::macho::{
    LC_ATOM_INFO, LC_BUILD_VERSION, LC_CODE_SIGNATURE, LC_DATA_IN_CODE, LC_DYLD_CHAINED_FIXUPS,
    LC_DYLD_EXPORTS_TRIE, LC_DYLIB_CODE_SIGN_DRS, LC_DYSYMTAB, LC_FUNCTION_STARTS, LC_IDENT,
    LC_LINKER_OPTIMIZATION_HINT, LC_LINKER_OPTION, LC_SEGMENT, LC_SEGMENT_64,
    LC_SEGMENT_SPLIT_INFO, LC_SOURCE_VERSION, LC_SYMTAB, LC_TARGET_TRIPLE, LC_UUID,
    LC_VERSION_MIN_IPHONEOS, LC_VERSION_MIN_MACOSX, LC_VERSION_MIN_TVOS, LC_VERSION_MIN_WATCHOS,
    LoadCommand, LoadCommandType, MH_OBJECT, Relocation, S_GB_ZEROFILL, S_THREAD_LOCAL_ZEROFILL,
    S_ZEROFILL, SectionFlags, SectionType,
};
use object::pod::{bytes_of, from_bytes_mut};

use super::super::mach_class::{MachClass, SectionFields, SegmentFields};
use super::super::{Pieces, slice};
use super::NewSections;
use crate::error::{ObjectPart, ObjectProblem};
use crate::pod::{entries as table_of, first};

pub(super) const FORMAT: &str = "Mach-O";

/// Load commands with `dataoff` and `datasize`.
const LINKEDIT_DATA: [LoadCommandType; 9] = [
    LC_CODE_SIGNATURE,
    LC_SEGMENT_SPLIT_INFO,
    LC_FUNCTION_STARTS,
    LC_DATA_IN_CODE,
    LC_DYLIB_CODE_SIGN_DRS,
    LC_LINKER_OPTIMIZATION_HINT,
    LC_ATOM_INFO,
    LC_DYLD_EXPORTS_TRIE,
    LC_DYLD_CHAINED_FIXUPS,
];
/// Load commands without offsets.
const WITHOUT_OFFSETS: [LoadCommandType; 10] = [
    LC_IDENT,
    LC_UUID,
    LC_VERSION_MIN_MACOSX,
    LC_VERSION_MIN_IPHONEOS,
    LC_SOURCE_VERSION,
    LC_LINKER_OPTION,
    LC_VERSION_MIN_TVOS,
    LC_VERSION_MIN_WATCHOS,
    LC_BUILD_VERSION,
    LC_TARGET_TRIPLE,
];
const ZEROFILL: [SectionType; 3] = [S_ZEROFILL, S_GB_ZEROFILL, S_THREAD_LOCAL_ZEROFILL];
/// Offsets of sections and tables have 32 bits in both classes.
pub(super) const LIMIT: u64 = u32::MAX as u64;
/// Symbols number their section in a byte.
const MAX_SECTIONS: u64 = 255;
pub(super) const RELOCATION_LEN: u64 = size_of::<Relocation<object::LittleEndian>>() as u64;

pub(super) fn too_large(value: u64) -> ObjectProblem {
    ObjectProblem::TooLarge { format: FORMAT, value, limit: LIMIT }
}

/// A relocatable object, checked.
pub(super) struct MachO<'a, C: MachClass> {
    pub(super) header: C,
    pub(super) segment_at: u64,
    pub(super) segment: C::Segment,
    pub(super) sections: &'a [C::Section],
    /// The end of the load commands.
    pub(super) headers_end: u64,
    /// The end of the sections' contents, and the start of relocations, symbols and other tables.
    pub(super) data_end: u64,
    /// The positions of 32-bit offsets of sections and tables in the load commands.
    pub(super) offsets: Vec<u64>,
    pub(super) symbols: Range<u64>,
}

/// A table that a load command names.
struct Table {
    part: ObjectPart,
    start: u64,
    len: u64,
}

impl<'a, C: MachClass> MachO<'a, C> {
    pub(super) fn read(object: &'a [u8]) -> Result<Self, ObjectProblem> {
        let (e, header_len) = (C::order(), size_of::<C>() as u64);
        let header: C =
            first(object).ok_or_else(|| outside(object, ObjectPart::FileHeader, 0..header_len))?;
        if header.filetype(e) != MH_OBJECT {
            return Err(ObjectProblem::MachOType { found: header.filetype(e).0 });
        }
        let headers_end = header_len.saturating_add(header.sizeofcmds(e).into());
        if headers_end > object.len() as u64 {
            let range = header_len..headers_end;
            return Err(outside(object, ObjectPart::LoadCommands, range));
        }
        let mut offsets = Vec::new();
        let mut tables = Vec::new();
        let mut segment_at = None;
        let mut symbols = 0..0;
        let mut at = header_len;
        for index in 0..u64::from(header.ncmds(e)) {
            let (cmd, end) = command::<C>(object, at, headers_end)?;
            let word = |from: u64| word::<C>(object, at.saturating_add(from), end);
            let part = ObjectPart::LoadCommand(index);
            let mut table = |part, from: u64, entry_len: u64| {
                offsets.push(at.saturating_add(from));
                let (start, count) = (word(from)?, word(from.saturating_add(4))?);
                let (start, len) = (start.into(), entry_len.saturating_mul(count.into()));
                tables.push(Table { part, start, len });
                Ok::<_, ObjectProblem>(start..start.saturating_add(len))
            };
            match cmd {
                _ if cmd == C::SEGMENT && segment_at.is_none() => segment_at = Some(at),
                LC_SEGMENT | LC_SEGMENT_64 => {
                    let expected = "one segment of the file's class";
                    return Err(field("cmd", at, cmd.0.into(), expected));
                }
                LC_SYMTAB => {
                    symbols = table(ObjectPart::SymbolTable, 8, size_of::<C::Nlist>() as u64)?;
                    table(ObjectPart::StringTable, 16, 1)?;
                }
                LC_DYSYMTAB => {
                    let module_len = if C::WORD == 8 { 56 } else { 52 };
                    for (from, len) in
                        [(32, 8), (40, module_len), (48, 4), (56, 4), (64, 8), (72, 8)]
                    {
                        table(part, from, len)?;
                    }
                }
                _ if LINKEDIT_DATA.contains(&cmd) => {
                    table(part, 8, 1)?;
                }
                _ if WITHOUT_OFFSETS.contains(&cmd) => {}
                _ => return Err(ObjectProblem::LoadCommand { index, command: cmd.0, offset: at }),
            }
            at = end;
        }
        let segment_at = segment_at.ok_or(ObjectProblem::NoSegment)?;
        let (segment, sections) = segment::<C>(object, segment_at, headers_end)?;
        let found = sections.len() as u64;
        if found > MAX_SECTIONS {
            return Err(ObjectProblem::TooManySections {
                format: FORMAT,
                found,
                limit: MAX_SECTIONS,
            });
        }
        let sections_at = segment_at.saturating_add(size_of::<C::Segment>() as u64);
        let SegmentFields { fileoff, filesize, .. } = C::segment(&segment);
        let data_end = fileoff.saturating_add(filesize);
        if data_end > object.len() as u64 {
            return Err(outside(object, ObjectPart::Segment, fileoff..data_end));
        }
        if fileoff < headers_end {
            let expected = "an offset after the load commands";
            return Err(field("fileoff", segment_at, fileoff, expected));
        }
        let section_len = size_of::<C::Section>() as u64;
        for (number, section) in (1_u64..).zip(sections) {
            let section = C::section(section);
            let before = number.saturating_sub(1).saturating_mul(section_len);
            let header_at = sections_at.saturating_add(before);
            offsets.extend(C::OFFSETS.map(|from| header_at.saturating_add(from as u64)));
            let contents = contents(&section);
            if !contents.is_empty() && (contents.start < headers_end || contents.end > data_end) {
                let (part, expected) = (ObjectPart::Section(number), "inside the segment");
                return Err(if contents.end > object.len() as u64 {
                    outside(object, part, contents)
                } else {
                    misplaced(part, contents, expected)
                });
            }
            let len = RELOCATION_LEN.saturating_mul(section.nreloc.into());
            let (part, start) = (ObjectPart::Relocations(number), section.reloff.into());
            tables.push(Table { part, start, len });
        }
        for Table { part, start, len } in tables.into_iter().filter(|table| table.len > 0) {
            let range = start..start.saturating_add(len);
            if range.end > object.len() as u64 {
                return Err(outside(object, part, range));
            }
            if start < data_end {
                return Err(misplaced(part, range, "after the contents of the sections"));
            }
        }
        Ok(MachO { header, segment_at, segment, sections, headers_end, data_end, offsets, symbols })
    }

    /// Returns the start of the section headers.
    pub(super) fn sections_at(&self) -> u64 {
        self.segment_at.saturating_add(size_of::<C::Segment>() as u64)
    }

    /// Returns the header of the file and the load commands with other offsets.
    pub(super) fn headers(
        &self,
        object: &[u8],
        new: impl Fn(u64) -> Option<u64>,
    ) -> Option<Vec<u8>> {
        let e = C::order();
        let mut bytes = slice(object, 0..self.headers_end)?.to_vec();
        for &at in &self.offsets {
            let word = bytes.get_mut(usize::try_from(at).ok()?..)?;
            let (word, _) = from_bytes_mut::<U32<C::Endian>>(word).ok()?;
            word.set(e, u32::try_from(new(word.get(e).into())?).ok()?);
        }
        Some(bytes)
    }
}

/// Puts a changed header and segment command back into the bytes of [`MachO::headers`].
pub(super) fn put_changed<C: MachClass>(
    bytes: &mut [u8],
    header: &C,
    segment: &C::Segment,
    segment_at: u64,
) -> Option<()> {
    bytes.get_mut(..size_of::<C>())?.copy_from_slice(bytes_of(header));
    let rest = bytes.get_mut(usize::try_from(segment_at).ok()?..)?;
    rest.get_mut(..size_of::<C::Segment>())?.copy_from_slice(bytes_of(segment));
    Some(())
}

/// Returns kind and end of the load command at `at`.
fn command<C: MachClass>(
    object: &[u8],
    at: u64,
    headers_end: u64,
) -> Result<(LoadCommandType, u64), ObjectProblem> {
    let bytes = slice(object, at..headers_end).unwrap_or_default();
    let (e, header_len) = (C::order(), size_of::<C>() as u64);
    let Some(command) = first::<LoadCommand<C::Endian>>(bytes) else {
        let expected = "room for as many load commands as ncmds says";
        return Err(field("sizeofcmds", 0, headers_end.saturating_sub(header_len), expected));
    };
    let len = u64::from(command.cmdsize.get(e));
    let end = at.saturating_add(len);
    if len < 8 || !len.is_multiple_of(4) || end > headers_end {
        let expected = "a multiple of 4 inside the load commands";
        return Err(field("cmdsize", at, len, expected));
    }
    Ok((command.cmd.get(e), end))
}

/// Returns a word of a load command that ends at `end`.
fn word<C: MachClass>(object: &[u8], at: u64, end: u64) -> Result<u32, ObjectProblem> {
    let word = slice(object, at..end).and_then(first::<U32<C::Endian>>);
    let expected = "the length of such a load command";
    word.map(|word| word.get(C::order())).ok_or_else(|| field("cmdsize", at, end, expected))
}

/// Returns the segment command and the section headers in it.
fn segment<C: MachClass>(
    object: &[u8],
    at: u64,
    headers_end: u64,
) -> Result<(C::Segment, &[C::Section]), ObjectProblem> {
    let bytes = slice(object, at..headers_end).unwrap_or_default();
    let wrong = |found: u64| field("cmdsize", at, found, "the length of a segment's load command");
    let segment: C::Segment = first(bytes).ok_or_else(|| wrong(0))?;
    let rest = bytes.get(size_of::<C::Segment>()..).unwrap_or_default();
    let fields = C::segment(&segment);
    let len = (size_of::<C::Section>() as u64).saturating_mul(fields.nsects.into());
    let cmdsize = u64::from(fields.cmdsize);
    if len.saturating_add(size_of::<C::Segment>() as u64) != cmdsize {
        return Err(wrong(cmdsize));
    }
    let sections = slice(rest, 0..len).ok_or_else(|| wrong(cmdsize))?;
    Ok((segment, table_of(sections)))
}

/// Returns the bytes that a section has in the file.
pub(super) fn contents(section: &SectionFields) -> Range<u64> {
    let start = u64::from(section.offset);
    if ZEROFILL.contains(&section.flags.typ()) {
        return start..start;
    }
    start..start.saturating_add(section.size)
}

/// Returns whether a section has this name, `segment,section`.
pub(super) fn is_named(section: &SectionFields, name: &str) -> bool {
    let is = |name: &[u8; 16], expected: &str| {
        name.strip_prefix(expected.as_bytes()).is_some_and(|rest| rest.iter().all(|&b| b == 0))
    };
    let parts = name.split_once(',');
    parts.is_some_and(|(seg, sect)| is(&section.segname, seg) && is(&section.sectname, sect))
}

fn field(field: &'static str, offset: u64, found: u64, expected: &'static str) -> ObjectProblem {
    ObjectProblem::Field { format: FORMAT, field, offset, found, expected }
}

fn outside(object: &[u8], part: ObjectPart, range: Range<u64>) -> ObjectProblem {
    ObjectProblem::beyond_end(FORMAT, object, part, &range)
}

fn misplaced(part: ObjectPart, range: Range<u64>, expected: &'static str) -> ObjectProblem {
    ObjectProblem::Misplaced { format: FORMAT, part, start: range.start, end: range.end, expected }
}

/// The distances that parts of an object move to make room for a section.
struct Moves {
    headers_end: u64,
    data_end: u64,
    /// Length of the new section header.
    header: u64,
    /// Length of the new contents.
    contents: u64,
}

impl Moves {
    fn new<C: MachClass>(headers_end: u64, data_end: u64, contents: u64) -> Self {
        Moves { headers_end, data_end, header: size_of::<C::Section>() as u64, contents }
    }

    fn apply(&self, offset: u64) -> Option<u64> {
        if offset < self.headers_end {
            Some(offset)
        } else if offset < self.data_end {
            offset.checked_add(self.header)
        } else {
            offset.checked_add(self.header)?.checked_add(self.contents)
        }
    }

    /// Returns the old offset for a new one: the inverse of [`apply`](Moves::apply).
    fn restore(&self, new: u64) -> Option<u64> {
        let candidates = [
            new.checked_sub(self.header.checked_add(self.contents)?),
            new.checked_sub(self.header),
            Some(new),
        ];
        candidates.into_iter().flatten().find(|&old| self.apply(old) == Some(new))
    }
}

pub(super) fn lay_out<'a, C: MachClass>(
    object: &'a [u8],
    name: &str,
    head: &[u8],
    sizes: &[u64],
) -> Result<NewSections<'a>, ObjectProblem> {
    let macho = MachO::<C>::read(object)?;
    let mut before = Pieces::default();
    let mut after = Pieces::default();
    if sizes.is_empty() {
        before.keep(object);
        return NewSections::from_pieces(before, sizes, after).ok_or_else(|| too_large(u64::MAX));
    }
    let found = macho.sections.len() as u64;
    if found >= MAX_SECTIONS {
        return Err(ObjectProblem::TooManySections { format: FORMAT, found, limit: MAX_SECTIONS });
    }
    let contents =
        sizes.iter().try_fold(head.len() as u64, |sum: u64, &size| sum.checked_add(size));
    let contents = contents.ok_or_else(|| too_large(u64::MAX))?;
    let size = contents.checked_next_multiple_of(C::WORD);
    let size = size.ok_or_else(|| too_large(u64::MAX))?;
    let data_end = macho.data_end;
    let moves = Moves::new::<C>(macho.headers_end, data_end, size);
    let total = moves.apply(object.len() as u64).unwrap_or(u64::MAX);
    if total > LIMIT {
        return Err(too_large(total));
    }
    let headers = changed_headers(object, &macho, name, &moves).ok_or_else(|| too_large(total))?;
    before.put(headers);
    before.keep(slice(object, macho.headers_end..data_end).unwrap_or_default());
    before.put(head);
    after.pad(contents, size);
    after.keep(slice(object, data_end..object.len() as u64).unwrap_or_default());
    NewSections::from_pieces(before, sizes, after).ok_or_else(|| too_large(total))
}

/// Returns the header and load commands with one more section.
fn changed_headers<C: MachClass>(
    object: &[u8],
    macho: &MachO<'_, C>,
    name: &str,
    moves: &Moves,
) -> Option<Vec<u8>> {
    let size = moves.contents;
    let mut bytes = macho.headers(object, |offset| moves.apply(offset))?;
    let mut segment = macho.segment;
    let mut fields = C::segment(&segment);
    let (segment_name, section_name) = name.split_once(',')?;
    let padded = |name: &str| {
        let mut bytes = [0; 16];
        bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        Some(bytes)
    };
    let section = C::section_header(&SectionFields {
        sectname: padded(section_name)?,
        segname: padded(segment_name)?,
        addr: fields.vmaddr.checked_add(fields.vmsize)?,
        size,
        offset: u32::try_from(macho.data_end.checked_add(moves.header)?).ok()?,
        reloff: 0,
        nreloc: 0,
        flags: SectionFlags(0),
    })?;
    let header_len = u32::try_from(moves.header).ok()?;
    let end = macho.segment_at.checked_add(fields.cmdsize.into())?;
    fields.cmdsize = fields.cmdsize.checked_add(header_len)?;
    fields.nsects = fields.nsects.checked_add(1)?;
    fields.fileoff = fields.fileoff.checked_add(moves.header)?;
    fields.filesize = fields.filesize.checked_add(size)?;
    fields.vmsize = fields.vmsize.checked_add(size)?;
    C::set_segment(&mut segment, &fields)?;
    let mut header = macho.header;
    header.set_sizeofcmds(header.sizeofcmds(C::order()).checked_add(header_len)?);
    put_changed::<C>(&mut bytes, &header, &segment, macho.segment_at)?;
    let rest = bytes.split_off(usize::try_from(end).ok()?);
    bytes.extend_from_slice(bytes_of(&section));
    bytes.extend(rest);
    Some(bytes)
}

/// Returns the object to which the last section was added by [`lay_out`]; `None` if it was not. It is laid out
/// again to be sure.
pub(super) fn undo<C: MachClass>(object: &[u8], name: &str) -> Option<Vec<u8>> {
    let macho = MachO::<C>::read(object).ok()?;
    let header_len = size_of::<C::Section>() as u64;
    let section = C::section(macho.sections.last()?);
    if !is_named(&section, name) {
        return None;
    }
    let range = contents(&section);
    let headers_end = macho.headers_end.checked_sub(header_len)?;
    let data_end = range.start.checked_sub(header_len)?;
    let moves = Moves::new::<C>(headers_end, data_end, section.size);

    let mut segment = macho.segment;
    let mut fields = C::segment(&segment);
    let end = macho.segment_at.checked_add(fields.cmdsize.into())?;
    let narrow_len = u32::try_from(header_len).ok()?;
    fields.cmdsize = fields.cmdsize.checked_sub(narrow_len)?;
    fields.nsects = fields.nsects.checked_sub(1)?;
    fields.fileoff = fields.fileoff.checked_sub(header_len)?;
    fields.filesize = fields.filesize.checked_sub(section.size)?;
    fields.vmsize = fields.vmsize.checked_sub(section.size)?;
    C::set_segment(&mut segment, &fields)?;
    let mut header = macho.header;
    header.set_sizeofcmds(header.sizeofcmds(C::order()).checked_sub(narrow_len)?);
    let new_section_at = end.checked_sub(header_len)?;
    let restore = |offset| {
        // The offsets of the section that goes are of no interest.
        if offset == range.start { Some(0) } else { moves.restore(offset) }
    };
    let mut old = macho.headers(object, restore)?;
    put_changed::<C>(&mut old, &header, &segment, macho.segment_at)?;
    old.drain(usize::try_from(new_section_at).ok()?..usize::try_from(end).ok()?);
    old.extend_from_slice(slice(object, macho.headers_end..range.start)?);
    old.extend_from_slice(slice(object, range.end..object.len() as u64)?);
    let again = lay_out::<C>(&old, name, &[], &[section.size]).ok()?;
    let same = again.is_whole_layout_of(object);
    drop(again);
    same.then_some(old)
}
