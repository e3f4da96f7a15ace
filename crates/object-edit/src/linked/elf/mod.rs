//! Linked ELF files: pages of device code leave the file, and an address gap stays.
//!
//! Every address outside the device code stays what it is, so only offsets in the file change. Whole unused pages
//! are cut out of the segment with the device code: the rest becomes several segments with gaps between them, which
//! costs a program header per gap. Linkers leave no room for more of them, and tools like `strip` do not accept the
//! table in another place. So sections after it make room: notes move a little, and tables that only the dynamic
//! section names move to where device code was. (System V ABI, "Program Header", "Dynamic Section".)

mod check;
mod dynamic;
mod file;
mod in_place;
mod layout;
mod movable;
pub(crate) mod moved_out;
mod names;
mod place;
mod references;
mod relocations;
mod renumber;
mod room;
#[cfg(test)]
mod sample;
mod sections;
mod segments;
mod slot;
mod symbols;
mod unwind;
mod validate;
mod wrappers;
mod write;

use std::collections::BTreeMap;
use std::ops::Range;

use byte_parts::{ReadSeek, Source};
use check::Addresses;
use dynamic::Dynamic;
use file::{File, SectionHeader, file_range, is_allocated};
pub(super) use in_place::editable_in_place;
use layout::{Bundle, Layout, PAGE};
use object::elf::{ET_DYN, ET_EXEC, SHT_NOBITS};
use sections::Sections;
use segments::{Loads, Map};
use slot::Slot;
use validate::inconsistent;
use wrappers::{PointerForm, Wrapper};
use write::Parts;

use crate::error::{Error, ErrorKind};
use crate::linked::host::{Edited, HostContext, Item, SectionChange, SectionEdit};
use crate::linked::registered::readable;
use crate::linked::registration::{Device, HIP, Registration};
use crate::output::{self, Input, Output};
use crate::patches::overwrite;
use crate::pod::LE;
use crate::tables::{absolute, sized};

/// Lays out the file in the window with other device code in its sections, one name of sections after the other.
pub(crate) fn edit(
    source: &mut Source<'_>,
    context: HostContext<'_>,
    sections: Vec<SectionEdit>,
) -> Result<Edited, Error> {
    let mut edited: Option<Edited> = None;
    for (device, sections) in names::by_name(sections)? {
        edited = Some(match edited {
            None => edit_device(source, context, device, sections)?,
            Some(before) => {
                let places = names::Places::of(source, context.window)?;
                let after = Edited::again(&before.parts, source, |source, window| {
                    let sections = places.follow(source, window, sections)?;
                    edit_device(source, HostContext { window, ..context }, device, sections)
                })?;
                // A number for the user, of bytes of one file.
                Edited { zeroed: before.zeroed.saturating_add(after.zeroed), ..after }
            }
        });
    }
    Ok(edited.unwrap_or_else(|| Edited::new(output::copy_of(context.window))))
}

/// Lays out the file with other device code in the sections of one name.
fn edit_device(
    source: &mut Source<'_>,
    context: HostContext<'_>,
    device: Device,
    sections: Vec<SectionEdit>,
) -> Result<Edited, Error> {
    let file = File::read(source, context.window)?;
    let (indices, items) = device_code(&file, device, sections)?;
    validate::validate(&file)?;
    let start = items.first().ok_or_else(Error::no_device_code)?.0.start;
    let dynamic = Dynamic::read(source, &file)?;
    let slot = Slot::find(&file, &dynamic, indices, start)?;
    let wrappers = wrappers::wrappers(source, &file, device.registration)?;
    let mut bundles: Vec<Bundle> = Vec::new();
    let mut contents: Vec<Output> = Vec::new();
    let mut led_to: Vec<u64> = wrappers.iter().map(|wrapper| wrapper.bundle).collect();
    led_to.sort_unstable();
    let mut before = None;
    for (old, item) in items {
        // Nothing, if it is removed.
        let new = item.new.unwrap_or_default();
        let follows = item.joined
            && before.is_some_and(|before| before == item.old.start)
            && !old.start.is_multiple_of(PAGE);
        before = Some(item.old.end);
        let is_led_to = led_to.binary_search(&old.start).is_ok();
        match (bundles.last_mut(), contents.last_mut()) {
            (Some(bundle), Some(contents)) if follows && !is_led_to => {
                contents.append(&new);
                *bundle =
                    Bundle { old: bundle.old.start..old.end, size: contents.size(), ..*bundle };
            }
            _ => {
                bundles.push(Bundle { old, size: new.size(), pinned: false });
                contents.push(new);
            }
        }
    }
    check_wrappers(&file, device, &wrappers, &bundles)?;
    let align = slot.align(&file).max(device.registration.align);
    let editor =
        Editor { file: &file, dynamic: &dynamic, slot: &slot, wrappers: &wrappers, device, align };
    let layout = editor.lay_out(source, context, &bundles)?;
    editor.write(source, &bundles, contents, &layout)
}

/// Returns the reason why no device code was found in an ELF file, if the file shows it.
pub(crate) fn explain_nothing(input: &mut dyn ReadSeek) -> Result<(), Error> {
    let mut source = Source::new(input)?;
    let window = 0..source.len();
    let Some(file) = readable(File::read(&mut source, &window))? else { return Ok(()) };
    if ![ET_EXEC, ET_DYN].contains(&file.header.e_type.get(LE)) {
        return Ok(());
    }
    if file.sections.is_empty() {
        return Err(Error::no_section_table());
    }
    let mut device_code = file.sections.iter().filter(|s| HIP.has_section(file.name(s)));
    if device_code.any(|section| section.sh_type.get(LE) == SHT_NOBITS) {
        return Err(Error::moved_out("section is NOBITS"));
    }
    match wrappers::wrappers(&mut source, &file, &HIP) {
        Err(error) if error.is_moved_out() || error.kind() == ErrorKind::Read => Err(error),
        _ => Ok(()),
    }
}

/// The sections with bundles, and the bundles with their addresses.
type DeviceCode = (Vec<usize>, Vec<(Range<u64>, Item)>);

/// Returns the changes, in the order of the file.
fn device_code(
    file: &File,
    device: Device,
    sections: Vec<SectionEdit>,
) -> Result<DeviceCode, Error> {
    let mut indices = Vec::new();
    let mut items = Vec::new();
    let mut edits: BTreeMap<u64, SectionEdit> =
        sections.into_iter().map(|section| (section.range.start, section)).collect();
    for (index, section) in file.sections.iter().enumerate() {
        if file.name(section) != device.section.as_bytes() || section.sh_size.get(LE) == 0 {
            continue;
        }
        if section.sh_type.get(LE) == SHT_NOBITS {
            return Err(Error::moved_out("section is NOBITS"));
        }
        if !is_allocated(section) {
            return Err(inconsistent("the device code is not loaded"));
        }
        let range = absolute(file.window.start, &file_range(section));
        match edits.remove(&range.start).map(|edit| (edit.range == range, edit.change)) {
            Some((true, SectionChange::Items(mut bundles))) => {
                keep_tail(&mut bundles, range.end, device.registration.align);
                for item in bundles {
                    items.push((address(section, &range, &item)?, item));
                }
            }
            _ => {
                let kind = "sections of device code without containers";
                return Err(Error::unsupported_kind(kind));
            }
        }
        indices.push(index);
    }
    if !edits.is_empty() {
        return Err(Error::input_changed());
    }
    items.sort_by_key(|(_, item)| item.old.start);
    Ok((indices, items))
}

/// Returns the name of a section's kind, if it is not edited in linked files.
pub(super) fn uneditable(name: &str) -> Option<&'static str> {
    Registration::of(name).is_none().then(|| kind_of(name))
}

fn kind_of(name: &str) -> &'static str {
    if name.starts_with("__CLANG_OFFLOAD_BUNDLE__") {
        "linked files with bundle entries as sections"
    } else if name.starts_with(".llvm.") {
        "packages in linked ELF files"
    } else {
        "sections of linked ELF files other than .hip_fatbin, .nv_fatbin and __nv_relfatbin"
    }
}

/// Counts the zeros that the end of a section is aligned by as a part of its last bundle.
fn keep_tail(bundles: &mut [Item], end: u64, align: u64) {
    let Some(last) = bundles.last_mut() else { return };
    if let (Some(new), Some(tail)) = (&mut last.new, end.checked_sub(last.old.end))
        && (1..align).contains(&tail)
    {
        if output::is_copy_of(new, &last.old) {
            new.push_input(Input::File, last.old.end..end);
        } else {
            new.push_zeros(tail);
        }
        last.old.end = end;
    }
}

/// Returns the addresses of a bundle of a section, which lies at `range` in the walked file.
fn address(section: &SectionHeader, range: &Range<u64>, item: &Item) -> Result<Range<u64>, Error> {
    let address = |at: u64| {
        let into = at.checked_sub(range.start).filter(|_| at <= range.end)?;
        section.sh_addr.get(LE).checked_add(into)
    };
    match (address(item.old.start), address(item.old.end)) {
        (Some(start), Some(end)) if start <= end => Ok(start..end),
        _ => Err(inconsistent("a bundle lies in no section")),
    }
}

/// Checks that every wrapper points to a bundle which is not removed altogether, or to other device code.
fn check_wrappers(
    file: &File,
    device: Device,
    wrappers: &[Wrapper],
    bundles: &[Bundle],
) -> Result<(), Error> {
    let others = |name: &[u8]| !device.is_named(name) && device.registration.has_section(name);
    let others: Vec<Range<u64>> = (file.sections.iter())
        .filter(|section| others(file.name(section)))
        .map(file::addresses)
        .collect();
    for (number, wrapper) in wrappers.iter().enumerate() {
        if matches!(wrapper.form, PointerForm::Unknown { .. }) {
            continue;
        }
        match bundles.binary_search_by_key(&wrapper.bundle, |bundle| bundle.old.start) {
            Ok(n) if bundles.get(n).is_some_and(|bundle| bundle.size > 0) => {}
            Ok(_) => return Err(Error::nothing_left()),
            Err(_) if others.iter().any(|other| other.contains(&wrapper.bundle)) => {}
            Err(_) => {
                let (address, target) = (wrapper.address, wrapper.bundle);
                return Err(Error::wrapper_target(number, address, target));
            }
        }
    }
    Ok(())
}

/// The file and everything read from it.
struct Editor<'a> {
    file: &'a File,
    dynamic: &'a Dynamic,
    slot: &'a Slot,
    wrappers: &'a [Wrapper],
    device: Device,
    /// Bundles that move start at multiples of this.
    align: u64,
}

impl Editor<'_> {
    /// Returns the addresses of this many program headers.
    fn room_for(&self, headers: usize) -> Option<Range<u64>> {
        let start = self.file.address_of(self.file.header.e_phoff.get(LE))?;
        Some(sized(start, room::HEADER * headers as u64))
    }

    fn write(
        &self,
        source: &mut Source<'_>,
        bundles: &[Bundle],
        contents: Vec<Output>,
        layout: &Layout,
    ) -> Result<Edited, Error> {
        let (file, slot) = (self.file, self.slot);
        let no_place = || inconsistent("no offset is left for a new segment");
        let map = Map::new(file, slot, layout).ok_or_else(no_place)?;
        let segments = segments::segments(file, slot, layout, &map)?;
        let loads = Loads::new(file, &segments);
        let groups = groups(file, slot, bundles, layout);
        let sections = Sections::new(file, slot, layout, &map, &loads, groups)?;
        let moved = |address: u64| moved(bundles, &layout.starts, address);
        let left: Vec<_> = bundles.iter().map(|bundle| (bundle.old.clone(), bundle.size)).collect();

        let mut old = output::copy_of(&file.window);
        let mut tags = Vec::new();
        for (&index, &address) in &layout.moved {
            let section = file.sections.get(index);
            if let Some(movable::Movable::Far(tag)) =
                section.and_then(|section| movable::movable(file, self.dynamic, section))
            {
                tags.extend(self.dynamic.patch(tag, address));
            }
        }
        old = overwrite(&old, tags);
        old = overwrite(&old, renumber::renumber(source, file, layout, &sections, &moved)?);
        old = overwrite(&old, symbols::resize(source, file, &left)?);
        old = overwrite(
            &old,
            symbols::repoint_ends(source, file, &ends(file, slot, bundles, layout))?,
        );
        old = overwrite(&old, wrappers::repoint(source, file, self.wrappers, &moved)?);

        let (map, segments, sections) = (&map, &segments, &sections);
        let parts = Parts { file, slot, layout, map, segments, sections, old, bundles: contents };
        let what = "parts of the file overlap";
        let address = slot.start;
        let splices = parts.write().ok_or_else(|| Error::self_check(address, what))?;
        let headers = self.room_for(segments.len().max(file.segments.len()));
        check::check(source, file, &splices, &allowed(file, slot, layout, headers), self.device)?;
        Ok(Edited { zeroed: layout.zeroed, ..Edited::new(splices) })
    }
}

/// Returns the memory that may be different.
fn allowed(file: &File, slot: &Slot, layout: &Layout, headers: Option<Range<u64>>) -> Addresses {
    let section = |index: &usize| file.sections.get(*index);
    let mut addresses = Vec::from_iter(headers);
    // After the slot there may be room up to the next segment.
    let slot_end =
        if slot.content_after { slot.end(1) } else { slot.segment().end.max(layout.end) };
    addresses.push(slot.start..slot_end);
    if let (Some(end), Some(&start)) = (layout.grown, layout.starts.first()) {
        addresses.push(start..end);
    }
    for (index, &address) in &layout.moved {
        let Some(section) = section(index) else { continue };
        addresses.push(file::addresses(section));
        addresses.push(sized(address, section.sh_size.get(LE)));
    }
    Addresses::new(addresses)
}

/// Returns the new address of the byte at an address.
fn moved(bundles: &[Bundle], starts: &[u64], address: u64) -> u64 {
    let n = bundles.partition_point(|bundle| bundle.old.end <= address);
    match (bundles.get(n), starts.get(n)) {
        (Some(bundle), Some(&start)) if bundle.old.contains(&address) => {
            start + (address - bundle.old.start)
        }
        _ => address,
    }
}

/// Returns the sections whose last bundle ends elsewhere: their numbers, old ends and new ones.
fn ends(file: &File, slot: &Slot, bundles: &[Bundle], layout: &Layout) -> Vec<(usize, u64, u64)> {
    let mut ends = Vec::new();
    for &index in &slot.sections {
        let Some(old) = file.sections.get(index).map(file::addresses) else { continue };
        let mut inside = bundles.iter().zip(&layout.starts);
        let Some((bundle, &start)) = inside.rfind(|(bundle, _)| old.contains(&bundle.old.start))
        else {
            continue;
        };
        let end = start + bundle.size;
        if end != bundle.old.end {
            ends.push((index, old.end, end));
        }
    }
    ends
}

/// Returns the sections with bundles: one more after each hole, and after sections that moved to between bundles.
fn groups(file: &File, slot: &Slot, bundles: &[Bundle], layout: &Layout) -> Vec<Range<u64>> {
    let main = slot.sections.first().and_then(|&index| file.sections.get(index));
    let holes = layout.holes.iter().map(|hole| hole.start);
    let mut others: Vec<u64> = holes.chain(layout.far.iter().map(|&(_, at)| at)).collect();
    others.sort_unstable();
    let between = |gap: &Range<u64>| {
        let next = others.partition_point(|&at| at < gap.start);
        others.get(next).is_some_and(|at| gap.contains(at))
    };
    let mut groups: Vec<Range<u64>> = Vec::new();
    for (&start, bundle) in layout.starts.iter().zip(bundles) {
        let end = start + bundle.size;
        match groups.last_mut() {
            Some(group) if !between(&(group.end..start)) => group.end = end,
            _ => groups.push(start..end),
        }
    }
    let last = slot.sections.last().and_then(|&index| file.sections.get(index));
    let kept = bundles.last().zip(layout.starts.last()).is_some_and(|(bundle, &start)| {
        start == bundle.old.start && bundle.size == bundle.old.end - bundle.old.start
    });
    let kept = kept && layout.holes.is_empty() && layout.far.is_empty();
    if let (true, Some(last), Some(group)) = (kept, last, groups.last_mut()) {
        // Zeros at its end do not belong to a bundle.
        group.end = group.end.max(file::addresses(last).end);
    }
    if let (None, Some(main), Some(first)) = (layout.grown, main, groups.first_mut()) {
        first.start = first.start.min(main.sh_addr.get(LE));
    }
    groups
}
