//! Device code of HIP that moves out of a linked ELF file, and in again.
//!
//! The pages leave the file as in any other edit. Before, all wrappers come to lead to the first bundle; after, its place gets
//! the marker. The other way around the marker is a bundle before the edit.

use std::ops::Range;

use byte_parts::Source;
use object::elf::{ET_REL, SHT_NOBITS};
use object::pod::bytes_of_slice;

use super::file::{File, SectionHeader, addresses, file_range, has_bytes, is_allocated, up};
use super::references::foreign_references;
use super::symbols;
use super::wrappers::{PointerForm, Wrapper, wrappers};
use crate::error::{Error, ErrorKind};
use crate::linked::host::{Edited, HostContext, Item, SectionChange, SectionEdit};
use crate::linked::moved_out::{PLACEHOLDER, check_offsets, placeholder};
use crate::linked::registered::Led;
use crate::linked::registration::{HIP, HIP_MOVED, HIPF, HIPK, Registration};
use crate::output::{self, Output};
use crate::patches::{Patch, overwrite};
use crate::pod::LE;
use crate::tables::{absolute, sized};

const DEVICE_CODE: &str = ".hip_fatbin";
const MARKER: &str = ".rocm_kpack_ref";

/// Returns the offset of each wrapper, and where it leads to, in the order of their addresses.
pub(crate) fn targets(
    source: &mut Source<'_>,
    window: &Range<u64>,
    registration: &'static Registration,
) -> Result<Vec<(u64, Led)>, Error> {
    let file = match File::read(source, window) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::Read => return Err(error),
        Err(_) => return Ok(Vec::new()),
    };
    // Wrappers of objects lead nowhere before these are linked.
    if file.header.e_type.get(LE) == ET_REL {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for wrapper in wrappers(source, &file, registration)? {
        let at = file.at(offset(&file, wrapper.address)?);
        let led = match wrapper.form {
            PointerForm::Unknown { .. } => None,
            PointerForm::Null => Some(None),
            _ => Some(file.offset_of(wrapper.bundle).map(|at| file.at(at))),
        };
        all.push((at, led));
    }
    Ok(all)
}

/// Returns the offset of a wrapper in the file.
fn offset(file: &File, address: u64) -> Result<u64, Error> {
    let what = "a wrapper lies outside the file";
    file.offset_of(address).ok_or_else(|| Error::inconsistent_segments(what))
}

/// Returns the patches that make each wrapper lead to another address, and nothing else.
fn lead(
    source: &mut Source<'_>,
    file: &File,
    wrappers: &[Wrapper],
    to: impl Fn(usize) -> u64,
) -> Result<Vec<Patch>, Error> {
    let mut patches = Vec::new();
    for (n, wrapper) in wrappers.iter().enumerate() {
        let new = to(n);
        let in_place = match wrapper.form {
            PointerForm::Relative { entry, in_place } => {
                patches.push(Patch::word(entry + 16, new));
                in_place
            }
            PointerForm::Relr | PointerForm::Plain => true,
            PointerForm::Symbol { entry, in_place, .. } => {
                let addend = source.read_range(&sized(file.at(entry + 16), 8))?;
                let addend = addend.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
                let symbol = wrapper.bundle.wrapping_sub(addend);
                patches.push(Patch::word(entry + 16, new.wrapping_sub(symbol)));
                in_place
            }
            form @ (PointerForm::Null | PointerForm::Unknown { .. }) => {
                let kind = if let PointerForm::Unknown { kind } = form { kind } else { 0 };
                let address = wrapper.pointer();
                return Err(Error::pointer_form(n, address, kind));
            }
        };
        if in_place {
            patches.push(Patch::word(offset(file, wrapper.pointer())?, new));
        }
    }
    Ok(patches)
}

/// Returns the patches that give each wrapper this magic and its number.
fn mark(
    file: &File,
    wrappers: &[Wrapper],
    magic: u32,
    number: impl Fn(usize) -> u64,
) -> Result<Vec<Patch>, Error> {
    let mut patches = Vec::new();
    for (n, wrapper) in wrappers.iter().enumerate() {
        let at = offset(file, wrapper.address)?;
        patches.push(Patch::new(at, magic.to_le_bytes()));
        patches.push(Patch::word(at.saturating_add(16), number(n)));
    }
    Ok(patches)
}

fn read(source: &mut Source<'_>, window: &Range<u64>) -> Result<File, Error> {
    match File::read(source, window) {
        Err(error) if error.kind() != ErrorKind::Read => {
            Err(Error::unsupported_elf("headers that cannot be read"))
        }
        result => result,
    }
}

/// Returns the sections of this name with bytes, by offset.
fn sections<'f>(file: &'f File, name: &str) -> Vec<&'f SectionHeader> {
    let is_one = |section: &&SectionHeader| {
        file.name(section) == name.as_bytes() && section.sh_size.get(LE) > 0
    };
    let mut found: Vec<_> = file.sections.iter().filter(is_one).collect();
    found.sort_by_key(|section| section.sh_offset.get(LE));
    found
}

/// Lays the file out without its device code.
pub(crate) fn move_out(
    source: &mut Source<'_>,
    context: HostContext<'_>,
    marker: &[u8],
) -> Result<Edited, Error> {
    let window = context.window;
    let file = read(source, window)?;
    let found = wrappers(source, &file, &HIP)?;
    let device_code = sections(&file, DEVICE_CODE);
    let (Some(first), Some(last)) = (device_code.first(), device_code.last()) else {
        return Err(Error::no_device_code());
    };
    if device_code.iter().any(|section| section.sh_type.get(LE) == SHT_NOBITS) {
        return Err(Error::moved_out("section is NOBITS"));
    }
    let slot = first.sh_addr.get(LE)..addresses(last).end;
    let mut starts: Vec<u64> = found.iter().map(|wrapper| wrapper.bundle).collect();
    starts.sort_unstable();
    starts.dedup();
    let start = match starts.first() {
        Some(&start) if starts.iter().all(|start| slot.contains(start)) => start,
        Some(_) => {
            let kind = "files with wrappers that lead elsewhere";
            return Err(Error::unsupported_kind(kind));
        }
        None => return Err(Error::unsupported_kind("files with bundles and no wrappers")),
    };
    let foreign = foreign_references(source, &file, &found, &slot, &starts)?;
    if let Some((bundle, address)) = foreign.into_iter().next() {
        return Err(Error::foreign_reference(bundle, address));
    }
    let edits = edits(&file, &device_code, start, marker.len());
    let size = edits.iter().map(|edit| edit.range.end - edit.range.start).sum();
    if size < marker.len() as u64 {
        return Err(Error::no_room(marker.len() as u64, size));
    }
    let led = overwrite(&output::copy_of(window), lead(source, &file, &found, |_| start)?);
    let mut zeroed = 0;
    let edited = output::edited(&led, source, |source, window| {
        let context = HostContext { window, ..context };
        let edited = super::edit(source, context, edits)?;
        zeroed = edited.zeroed;
        Ok(Some(edited.parts))
    })?;
    let parts = output::edited(&edited, source, |source, window| {
        let file = read(source, window)?;
        let found = wrappers(source, &file, &HIP)?;
        let start = found.first().ok_or_else(Error::input_changed)?.bundle;
        let offset = file.offset_of(start).ok_or_else(Error::input_changed)?;
        let mut patches = mark(&file, &found, HIPK, |n| n as u64)?;
        patches.push(Patch::new(offset, marker));
        let is_first = |section: &SectionHeader| file.name(section) == DEVICE_CODE.as_bytes();
        if let Some(section) = file.sections.iter().position(is_first) {
            let left = sized(start, marker.len() as u64);
            patches.extend(symbols::gather(source, &file, section, &left)?);
        }
        let marked = overwrite(&output::copy_of(window), patches);
        let names = (DEVICE_CODE, MARKER);
        renamed(&file, &marked, names, Some(marker.len() as u64)).map(Some)
    })?;
    Ok(Edited { zeroed, ..Edited::new(parts) })
}

/// Returns the edits that leave a place for the marker at the first bundle, and nothing of the others. The place is as large as
/// what a runtime reads of a bundle, if that was there: the edit asks for it.
fn edits(file: &File, device_code: &[&SectionHeader], start: u64, size: usize) -> Vec<SectionEdit> {
    let mut is_first = true;
    let edits = device_code.iter().map(|section| {
        let range = absolute(file.window.start, &file_range(section));
        let into = start.saturating_sub(section.sh_addr.get(LE));
        let old =
            if is_first { range.start.saturating_add(into)..range.end } else { range.clone() };
        let room = usize::try_from(old.end.saturating_sub(old.start)).unwrap_or(usize::MAX);
        let readable = usize::try_from(HIP.readable).unwrap_or(usize::MAX).min(room);
        let new = std::mem::take(&mut is_first).then(|| placeholder(size.max(readable)));
        let change = SectionChange::Items(vec![Item { old, new, joined: false }]);
        SectionEdit { range, name: DEVICE_CODE.to_owned(), change }
    });
    edits.collect()
}

/// Lays the file out with device code in the place of its marker.
pub(crate) fn move_in(
    source: &mut Source<'_>,
    context: HostContext<'_>,
    contents: Output,
    offsets: &[u64],
) -> Result<Edited, Error> {
    let window = context.window;
    let file = read(source, window)?;
    let found = wrappers(source, &file, &HIP_MOVED)?;
    let marker = found.first().ok_or_else(Error::no_device_code)?.bundle;
    check_offsets(offsets, found.len())?;
    let place = file.sections.iter().find(|section| {
        section.sh_addr.get(LE) == marker && is_allocated(section) && has_bytes(section)
    });
    let is_one = found.iter().all(|wrapper| wrapper.bundle == marker);
    let Some(place) = place.filter(|place| is_one && file.name(place) == MARKER.as_bytes()) else {
        let kind = "split files whose wrappers do not all lead to one section .rocm_kpack_ref";
        return Err(Error::unsupported_kind(kind));
    };
    if file.sections.iter().any(|section| file.name(section) == DEVICE_CODE.as_bytes()) {
        let kind = "files that AMD's tool has split";
        return Err(Error::unsupported_kind(kind));
    }
    let (in_file, size) = (file_range(place), place.sh_size.get(LE));
    if size < PLACEHOLDER.len() as u64 {
        return Err(Error::inconsistent_segments("the marker is too short"));
    }
    let mut patches = mark(&file, &found, HIPF, |_| 0)?;
    patches.push(Patch::new(in_file.start, PLACEHOLDER));
    let unmarked = overwrite(&output::copy_of(window), patches);
    let unmarked = renamed(&file, &unmarked, (MARKER, DEVICE_CODE), None)?;
    let mut zeroed = 0;
    let edited = output::edited(&unmarked, source, |source, window| {
        let context = HostContext { window, ..context };
        let item = Item { old: in_file.clone(), new: Some(contents), joined: false };
        let change = SectionChange::Items(vec![item]);
        let edit = SectionEdit { range: in_file.clone(), name: DEVICE_CODE.to_owned(), change };
        let edited = super::edit(source, context, vec![edit])?;
        zeroed = edited.zeroed;
        Ok(Some(edited.parts))
    })?;
    let parts = output::edited(&edited, source, |source, window| {
        let file = read(source, window)?;
        let found = wrappers(source, &file, &HIP)?;
        let start = found.first().map_or(0, |wrapper| wrapper.bundle);
        let to = |n| start.saturating_add(offsets.get(n).copied().unwrap_or(0));
        let patches = lead(source, &file, &found, to)?;
        Ok(Some(overwrite(&output::copy_of(window), patches)))
    })?;
    Ok(Edited { zeroed, ..Edited::new(parts) })
}

/// Returns the file with another name for the first section of a name, and perhaps another size. A name that is not in the
/// string table is added: the table and the section headers come last then.
fn renamed(
    file: &File,
    old: &Output,
    (from, to): (&str, &str),
    size: Option<u64>,
) -> Result<Output, Error> {
    let header = &file.header;
    let mut sections = file.sections.clone();
    let is_one = |section: &&mut SectionHeader| file.name(section) == from.as_bytes();
    let strings = usize::from(header.e_shstrndx.get(LE).0);
    let (Some(table), Some(renamed)) =
        (file.sections.get(strings).map(file_range), sections.iter_mut().find(is_one))
    else {
        return Ok(old.clone());
    };
    if let Some(size) = size {
        renamed.sh_size.set(LE, size);
    }
    let known = file.name_offset(to);
    let too_large = |_| Error::unsupported_elf("names of sections have 4 GiB");
    let new = known.map_or_else(|| u32::try_from(table.end - table.start), Ok);
    renamed.sh_name.set(LE, new.map_err(too_large)?);
    let headers_at = header.e_shoff.get(LE);
    let headers = headers_at..headers_at + size_of_val(file.sections.as_slice()) as u64;
    if known.is_some() {
        let patch = Patch::new(headers_at, bytes_of_slice(&sections));
        return Ok(overwrite(old, vec![patch]));
    }
    let mut strings_bytes = old.slice(table.clone());
    strings_bytes.push_bytes(to.as_bytes());
    strings_bytes.push_bytes(&[0]);
    // Bytes at the end of the file are written again; others stay unused.
    let mut end = file.len();
    for old in [&headers, &table] {
        let is_last = |other: &SectionHeader| {
            !has_bytes(other) || file_range(other).end <= old.start || file_range(other) == *old
        };
        if end - old.end < 8 && file.sections.iter().all(is_last) {
            end = old.start;
        }
    }
    let mut out = old.slice(0..end);
    let strings_at = out.size();
    out.append(&strings_bytes);
    out.pad_to(up(out.size(), 8));
    let headers_at = out.size();
    if let Some(header) = sections.get_mut(strings) {
        header.sh_offset.set(LE, strings_at);
        header.sh_size.set(LE, strings_bytes.size());
    }
    out.push_vec(bytes_of_slice(&sections).to_vec());
    // The offset of the section headers, in the header of the file.
    const E_SHOFF: u64 = 40;
    Ok(overwrite(&out, vec![Patch::word(E_SHOFF, headers_at)]))
}
