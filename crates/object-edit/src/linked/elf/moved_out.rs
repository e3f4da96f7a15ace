//! Device code of HIP that moves out of a linked ELF file, and in again.
//!
//! The pages leave the file as in any other edit. Before, all wrappers come to lead to the first bundle; after, its place gets
//! the marker. The other way around the marker is a bundle before the edit.

use std::ops::Range;

use byte_parts::{Source, Window};
use object::elf::{ET_REL, SHT_NOBITS};
use object::pod::bytes_of_slice;

use super::file::{File, SectionHeader, addresses, file_range, has_bytes, is_allocated, up};
use super::references::foreign_references;
use super::symbols;
use super::validate::{inconsistent, validate};
use super::wrappers::{PointerForm, Wrapper, wrappers};
use crate::error::Error;
use crate::linked::host::{Edited, HostContext, Item, SectionChange, SectionEdit};
use crate::linked::moved_out::{PLACEHOLDER, at_offsets, check_offsets, placeholder};
use crate::linked::registered::{Led, readable};
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
    let Some(file) = readable(File::read(source, window))? else { return Ok(Vec::new()) };
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

/// Returns the patches that make each wrapper lead to its address in `to`, and nothing else.
fn lead(
    source: &mut Source<'_>,
    file: &File,
    wrappers: &[Wrapper],
    to: impl IntoIterator<Item = u64>,
) -> Result<Vec<Patch>, Error> {
    let mut patches = Vec::new();
    for ((n, wrapper), new) in wrappers.iter().enumerate().zip(to) {
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
        patches.push(Patch::word(offset(file, wrapper.number())?, number(n)));
    }
    Ok(patches)
}

fn read(source: &mut Source<'_>, window: &Range<u64>) -> Result<File, Error> {
    let unreadable = || Error::unsupported_elf("headers that cannot be read");
    readable(File::read(source, window))?.ok_or_else(unreadable)
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
    validate(&file)?;
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
    let marker_len = marker.len() as u64;
    let edits = edits(&file, &device_code, start, marker_len)?;
    let size = edits.iter().map(|edit| edit.range.end - edit.range.start).sum();
    if size < marker_len {
        return Err(Error::no_room(marker_len, size));
    }
    let led = lead(source, &file, &found, std::iter::repeat(start))?;
    let led = overwrite(&output::copy_of(window), led);
    let edited = Edited::again(&led, source, |source, window| {
        super::edit(source, HostContext { window, ..context }, edits)
    })?;
    let parts = output::edited(&edited.parts, source, |source, window| {
        let file = read(source, window)?;
        let found = wrappers(source, &file, &HIP)?;
        let start = found.first().ok_or_else(Error::input_changed)?.bundle;
        let offset = file.offset_of(start).ok_or_else(Error::input_changed)?;
        let mut patches = mark(&file, &found, HIPK, |n| n as u64)?;
        patches.push(Patch::new(offset, marker));
        let is_first = |section: &SectionHeader| file.name(section) == DEVICE_CODE.as_bytes();
        if let Some(section) = file.sections.iter().position(is_first) {
            let left = sized(start, marker_len);
            patches.extend(symbols::gather(source, &file, section, &left)?);
        }
        let marked = overwrite(&output::copy_of(window), patches);
        let names = (DEVICE_CODE, MARKER);
        renamed(&file, &marked, names, Some(marker_len)).map(Some)
    })?;
    Ok(Edited { parts, ..edited })
}

/// Returns the edits that leave a place for the marker at the first bundle, and nothing of the others. The place is as large as
/// what a runtime reads of a bundle, if that was there: the edit asks for it.
fn edits(
    file: &File,
    device_code: &[&SectionHeader],
    start: u64,
    size: u64,
) -> Result<Vec<SectionEdit>, Error> {
    let edits = device_code.iter().enumerate().map(|(n, section)| {
        let range = absolute(file.window.start, &file_range(section));
        let item = if n == 0 {
            let into = start.checked_sub(section.sh_addr.get(LE));
            let old = into.and_then(|into| Window::new(&range).rest(into));
            let old = old.ok_or_else(|| inconsistent("a bundle lies in no section"))?;
            let readable = HIP.readable.min(old.end - old.start);
            Item { old, new: Some(placeholder(size.max(readable))), joined: false }
        } else {
            Item { old: range.clone(), new: None, joined: false }
        };
        let change = SectionChange::Items(vec![item]);
        Ok(SectionEdit { range, name: DEVICE_CODE.to_owned(), change })
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
    check_offsets(offsets, found.len(), contents.size())?;
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
    let item = Item { old: in_file.clone(), new: Some(contents), joined: false };
    let change = SectionChange::Items(vec![item]);
    let edit = SectionEdit { range: in_file, name: DEVICE_CODE.to_owned(), change };
    let edited = Edited::again(&unmarked, source, |source, window| {
        super::edit(source, HostContext { window, ..context }, vec![edit])
    })?;
    let parts = output::edited(&edited.parts, source, |source, window| {
        let file = read(source, window)?;
        let found = wrappers(source, &file, &HIP)?;
        let start = found.first().ok_or_else(Error::input_changed)?.bundle;
        let patches = lead(source, &file, &found, at_offsets(start, offsets, found.len())?)?;
        Ok(Some(overwrite(&output::copy_of(window), patches)))
    })?;
    Ok(Edited { parts, ..edited })
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
    // Bytes at the end of the file that are not loaded are written again; others stay unused.
    let mut end = file.len();
    for old in [&headers, &table] {
        let is_last = |other: &SectionHeader| {
            !has_bytes(other) || file_range(other).end <= old.start || file_range(other) == *old
        };
        if end.checked_sub(old.end).is_some_and(|rest| rest < 8)
            && file.sections.iter().all(is_last)
            && file.loaded_parts(old).next().is_none()
        {
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

#[cfg(test)]
mod tests {
    use super::super::sample::{HIP_FATBIN, RODATA, Sample, patched, with};
    use super::*;
    use crate::linked::host::Options;

    /// Returns the sample with changes of its section headers.
    fn changed(change: impl FnOnce(&mut File)) -> Vec<u8> {
        let bytes = Sample::default().build();
        let patch = with(&bytes, |_, file| {
            let (mut new, at) = (file.clone(), file.header.e_shoff.get(LE));
            change(&mut new);
            Patch::new(at, bytes_of_slice(&new.sections))
        });
        patched(&bytes, &[patch.unwrap()])
    }

    #[test]
    fn sections_larger_than_every_file_are_refused() {
        let bytes = changed(|file| {
            let name = file.sections[usize::from(HIP_FATBIN)].sh_name;
            for section in &mut file.sections {
                if section.sh_name == name || section.sh_addr.get(LE) == RODATA {
                    section.sh_name = name;
                    section.sh_size.set(LE, 1 << 63);
                }
            }
        });
        let error = with(&bytes, |source, file| {
            let context = HostContext { window: &file.window, options: Options::default() };
            move_out(source, context, b"\x82marker").unwrap_err()
        });
        assert_eq!(error.unwrap().kind(), crate::ErrorKind::Malformed);
    }

    #[test]
    fn names_in_the_section_headers_stay_readable() {
        let bytes = changed(|file| {
            let table = file.section_table();
            let names = usize::from(file.header.e_shstrndx.get(LE).0);
            file.sections[names].sh_offset.set(LE, table.start);
            file.sections[names].sh_size.set(LE, table.end - table.start);
            // The fields `sh_addr` and `sh_offset` of the null section.
            file.sections[0].sh_addr.set(LE, u64::from_le_bytes(*b".hip_fat"));
            file.sections[0].sh_offset.set(LE, u64::from_le_bytes(*b"bin\0\0\0\0\0"));
            file.sections[usize::from(HIP_FATBIN)].sh_name.set(LE, 16);
        });
        with(&bytes, |_, file| {
            let new = renamed(file, &output::copy_of(&file.window), (DEVICE_CODE, MARKER), None);
            let table = file.section_table();
            let (size, more) = (table.end - table.start, MARKER.len() as u64 + 1);
            assert_eq!(new.unwrap().size(), up(table.end + more, 8) + size);
        })
        .unwrap();
    }
}
