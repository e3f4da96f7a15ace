//! Device code of HIP that moves out of a PE file, and in again.

use std::iter::repeat;
use std::ops::Range;

use byte_parts::Source;

use super::checksum;
use super::file::{File, Section, file_range, memory_size};
use super::references;
use super::slot::Slot;
use super::wrappers::{Wrapper, read_of};
use crate::error::Error;
use crate::linked::host::{Edited, HostContext, Item, SectionChange, SectionEdit};
use crate::linked::moved_out::{PLACEHOLDER, at_offsets, check_offsets, placeholder};
use crate::linked::registered::{Led, readable};
use crate::linked::registration::{HIP, HIP_MOVED, HIPF, HIPK, POINTER, Registration};
use crate::output::{self, NewInputs, Output};
use crate::pod::LE;
use crate::tables::sized;

/// Names of sections have room for 8 characters.
const DEVICE_CODE: &[u8; 8] = b".hip_fat";
const MARKER: &[u8; 8] = b".kpackrf";
/// The offset of the checksum in the optional header.
const CHECKSUM_AT: u64 = 64;

/// Returns the offset of each wrapper, and where it leads to, in the order of their addresses.
pub(crate) fn targets(
    source: &mut Source<'_>,
    window: &Range<u64>,
    registration: &'static Registration,
) -> Result<Vec<(u64, Led)>, Error> {
    let Some(file) = readable(File::read(source, window))? else { return Ok(Vec::new()) };
    let found = read_of(source, &file, &[registration])?;
    let place = |wrapper: Wrapper| {
        let at = window.start + wrapper.pointer_at - POINTER;
        let led = file.offset_of(&sized(wrapper.target, 1));
        (at, Some(led.map(|at| window.start + at)))
    };
    Ok(found.into_iter().map(place).collect())
}

/// Gives each wrapper a magic, the address that it leads to, and a number.
fn overwrite(
    out: &mut Output,
    file: &File,
    wrappers: &[Wrapper],
    to: impl IntoIterator<Item = (u32, u64, u64)>,
) {
    for (wrapper, (magic, target, number)) in wrappers.iter().zip(to) {
        out.overwrite(wrapper.pointer_at - POINTER, &magic.to_le_bytes());
        let target = file.image_base().wrapping_add(target);
        out.overwrite(wrapper.pointer_at, &target.to_le_bytes());
        out.overwrite(wrapper.pointer_at + 8, &number.to_le_bytes());
    }
}

/// Returns the offset of the header of a section.
fn header_at(file: &File, index: usize) -> u64 {
    file.table_at() + (index * size_of::<Section>()) as u64
}

/// Returns the section that holds an address.
fn section_of(file: &File, address: u64) -> Option<(usize, &Section)> {
    file.sections.iter().enumerate().find(|(_, section)| {
        let start = u64::from(section.virtual_address.get(LE));
        sized(start, memory_size(section)).contains(&address)
    })
}

/// Lays the file out without its device code.
pub(crate) fn move_out(
    source: &mut Source<'_>,
    context: HostContext<'_>,
    marker: &[u8],
) -> Result<Edited, Error> {
    let window = context.window;
    let file = File::read(source, window)?;
    let found = read_of(source, &file, &[&HIP])?;
    let mut starts: Vec<u64> = found.iter().map(|wrapper| wrapper.target).collect();
    starts.sort_unstable();
    starts.dedup();
    let Some(&start) = starts.first() else {
        return Err(Error::unsupported_kind("files with bundles and no wrappers"));
    };
    let Some((index, section)) = section_of(&file, start) else {
        return Err(Error::no_device_code());
    };
    let memory = u64::from(section.virtual_address.get(LE))
        ..u64::from(section.virtual_address.get(LE)) + memory_size(section);
    if starts.iter().any(|at| !memory.contains(at)) {
        return Err(Error::unsupported_kind("files with device code in several sections"));
    }
    let in_file = file_range(section);
    let end = in_file.start + file.loaded_size(section).min(memory_size(section));
    let place = in_file.start + (start - memory.start);
    let old = window.start + place..window.start + end.max(place);
    if old.end - old.start < marker.len() as u64 {
        let (needed, available) = (marker.len() as u64, old.end - old.start);
        return Err(Error::no_room(needed, available));
    }
    let range = window.start + in_file.start..window.start + in_file.end;
    let name = String::from_utf8_lossy(&file.name(source, section)?).into_owned();
    let in_section = |at: u64| range.start + (at - memory.start);
    let ends = starts.iter().skip(1).map(|&at| in_section(at)).chain([old.end]);
    let items = starts.iter().zip(ends).map(|(&at, end)| Item {
        old: in_section(at)..end,
        new: Some(placeholder(PLACEHOLDER.len() as u64)),
        joined: false,
    });
    let change = SectionChange::Items(items.collect());
    let all = SectionEdit { range: range.clone(), name: name.clone(), change };
    let slots = Slot::gather(source, &file, vec![all])?;
    let foreign = references::find(source, &file, &slots, &found)?;
    if let Some((bundle, &address)) = foreign.iter().next() {
        let bundle = starts.iter().position(|start| start == bundle).unwrap_or(0);
        return Err(Error::foreign_reference(bundle, address));
    }
    let mut led = output::copy_of(window);
    overwrite(&mut led, &file, &found, repeat((HIPF, start, 0)));
    let edit = SectionEdit {
        range,
        name,
        change: SectionChange::Items(vec![Item {
            old,
            new: Some(placeholder(marker.len() as u64)),
            joined: false,
        }]),
    };
    let edited = Edited::again(&led, source, |source, window| {
        super::edit(source, &mut (), HostContext { window, ..context }, vec![edit])
    })?;
    let parts = output::edited(&edited.parts, source, |source, window| {
        let file = File::read(source, window)?;
        let found = read_of(source, &file, &[&HIP])?;
        let at = file.offset_of(&(start..start + marker.len() as u64));
        let at = at.ok_or_else(Error::input_changed)?;
        let mut out = output::copy_of(window);
        overwrite(&mut out, &file, &found, (0..).map(|n| (HIPK, start, n)));
        out.overwrite(at, marker);
        out.overwrite(header_at(&file, index), MARKER);
        Ok(Some(out))
    })?;
    summed(source, &mut (), Edited { parts, ..edited })
}

/// Lays the file out with device code in the place of its marker.
pub(crate) fn move_in(
    source: &mut Source<'_>,
    new: &mut dyn NewInputs,
    context: HostContext<'_>,
    contents: Output,
    offsets: &[u64],
) -> Result<Edited, Error> {
    let window = context.window;
    let file = File::read(source, window)?;
    let found = read_of(source, &file, &[&HIP_MOVED])?;
    let marker = found.first().ok_or_else(Error::no_device_code)?.target;
    check_offsets(offsets, found.len(), contents.size())?;
    let place = section_of(&file, marker).filter(|(_, section)| section.name == *MARKER);
    let is_one = found.iter().all(|wrapper| wrapper.target == marker);
    let Some((index, section)) = place.filter(|_| is_one) else {
        let kind = "split files whose wrappers do not all lead to one section .kpackrf";
        return Err(Error::unsupported_kind(kind));
    };
    let in_file = file_range(section);
    let at = in_file.start + (marker - u64::from(section.virtual_address.get(LE)));
    let mut unmarked = output::copy_of(window);
    overwrite(&mut unmarked, &file, &found, repeat((HIPF, marker, 0)));
    unmarked.overwrite(at, PLACEHOLDER);
    unmarked.overwrite(header_at(&file, index), DEVICE_CODE);
    let edit = SectionEdit {
        range: in_file.clone(),
        name: String::from_utf8_lossy(DEVICE_CODE).into_owned(),
        change: SectionChange::Items(vec![Item {
            old: at..in_file.end,
            new: Some(contents),
            joined: false,
        }]),
    };
    let edited = Edited::again(&unmarked, source, |source, window| {
        super::edit(source, new, HostContext { window, ..context }, vec![edit])
    })?;
    let parts = output::edited(&edited.parts, source, |source, window| {
        let file = File::read(source, window)?;
        let found = read_of(source, &file, &[&HIP])?;
        let start = found.first().ok_or_else(Error::input_changed)?.target;
        let mut out = output::copy_of(window);
        let places = at_offsets(start, offsets, found.len())?.into_iter().map(|at| (HIPF, at, 0));
        overwrite(&mut out, &file, &found, places);
        Ok(Some(out))
    })?;
    summed(source, new, Edited { parts, ..edited })
}

/// Corrects the checksum, if the file has one.
fn summed(
    source: &mut Source<'_>,
    new: &mut dyn NewInputs,
    mut edited: Edited,
) -> Result<Edited, Error> {
    let mut place = None;
    output::edited(&edited.parts, source, |source, window| {
        let file = File::read(source, window)?;
        if file.optional.check_sum.get(LE) != 0 {
            place = Some(file.optional_at() + CHECKSUM_AT);
        }
        Ok(None)
    })?;
    if let Some(place) = place {
        edited.parts.overwrite(place, &[0; 4]);
        let len = edited.parts.size();
        let sum = checksum::checksum(output::reader(&edited.parts, source.reader(), new), len)?;
        edited.parts.overwrite(place, &sum.to_le_bytes());
    }
    Ok(edited)
}
