//! Sections of device code of several names in one file, which are edited one name after the other.

use std::collections::BTreeMap;
use std::ops::Range;

use byte_parts::Source;

use super::file::{File, file_range, is_allocated};
use super::kind_of;
use crate::error::Error;
use crate::linked::host::{Item, SectionChange, SectionEdit};
use crate::linked::registration::Device;
use crate::output::{Input, Output};
use crate::pod::LE;

/// Returns the sections that are edited, by name; those of each all, if one of them changes.
pub(super) fn by_name(
    sections: Vec<SectionEdit>,
) -> Result<Vec<(Device, Vec<SectionEdit>)>, Error> {
    let mut groups: Vec<(Device, Vec<SectionEdit>)> = Vec::new();
    for section in sections {
        match Device::of(&section.name) {
            Some(device) => match groups.iter_mut().find(|(of, _)| of.section == device.section) {
                Some((_, group)) => group.push(section),
                None => groups.push((device, vec![section])),
            },
            None if section.is_changed() => {
                return Err(Error::unsupported_kind(kind_of(&section.name)));
            }
            None => {}
        }
    }
    groups.retain(|(_, group)| group.iter().any(SectionEdit::is_changed));
    Ok(groups)
}

/// The addresses of sections, by their places in the file as it was.
pub(super) struct Places(BTreeMap<u64, u64>);

impl Places {
    pub(super) fn of(source: &mut Source<'_>, window: &Range<u64>) -> Result<Self, Error> {
        let file = File::read(source, window)?;
        let loaded = file.sections.iter().filter(|section| is_allocated(section));
        let place = |section| file.at(file_range(section).start);
        Ok(Places(loaded.map(|section| (place(section), section.sh_addr.get(LE))).collect()))
    }

    /// Returns the changes of sections for the file that an earlier edit made: addresses stay, places in the file do not.
    pub(super) fn follow(
        &self,
        source: &mut Source<'_>,
        window: &Range<u64>,
        sections: Vec<SectionEdit>,
    ) -> Result<Vec<SectionEdit>, Error> {
        let new = File::read(source, window)?;
        let place = |address: u64| {
            let mut loaded = new.sections.iter().filter(|section| is_allocated(section));
            let section = loaded.find(|section| section.sh_addr.get(LE) == address)?;
            Some(new.at(file_range(section).start))
        };
        let followed = sections.into_iter().map(|section| {
            let address = self.0.get(&section.range.start);
            let start =
                address.and_then(|&address| place(address)).ok_or_else(Error::input_changed)?;
            Ok(moved_edit(section, start))
        });
        followed.collect()
    }
}

/// Returns the change of a section that starts elsewhere now, with all that it keeps.
fn moved_edit(section: SectionEdit, start: u64) -> SectionEdit {
    let by = start.wrapping_sub(section.range.start);
    let range = |old: &Range<u64>| old.start.wrapping_add(by)..old.end.wrapping_add(by);
    let output = |old: &Output| {
        old.resolved(|out, input, kept| match input {
            Input::File => out.push_input(Input::File, range(&kept)),
            input => out.push_input(*input, kept),
        })
    };
    let change = match section.change {
        SectionChange::Items(items) => SectionChange::Items(
            items
                .into_iter()
                .map(|item| Item {
                    old: range(&item.old),
                    new: item.new.as_ref().map(output),
                    joined: item.joined,
                })
                .collect(),
        ),
        SectionChange::Contents(new) => SectionChange::Contents(output(&new)),
        SectionChange::Removed => SectionChange::Removed,
    };
    SectionEdit { range: range(&section.range), name: section.name, change }
}
