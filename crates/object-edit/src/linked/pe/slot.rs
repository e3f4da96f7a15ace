//! Sections of device code, and what is to be in them.

use std::ops::Range;

use byte_parts::Source;

use super::file::{File, file_range, memory_size};
use crate::error::{Error, ErrorKind};
use crate::linked::host::{Item, SectionChange, SectionEdit};
use crate::linked::registration::Registration;
use crate::output::Output;
use crate::pod::LE;

/// Items at multiples of it are not joined with others.
const PAGE: u64 = 4096;

/// Returns the name of a section's kind, if it is not edited in PE files.
pub(crate) fn uneditable(name: &str) -> Option<&'static str> {
    let kind = "sections of PE files other than .hip_fatbin, .nv_fatbin and __nv_relfatbin";
    Registration::of_short(name).is_none().then_some(kind)
}

/// A section of device code, or several that an earlier edit made of one. Addresses count from the image base.
pub(super) struct Slot {
    /// Indices of its sections.
    pub(super) sections: Range<usize>,
    /// Its addresses.
    pub(super) memory: Range<u64>,
    /// The limit of the next section's start.
    pub(super) limit: u64,
    /// In the order of their addresses.
    pub(super) bundles: Vec<Bundle>,
}

/// A bundle in a section.
pub(super) struct Bundle {
    /// Its position among all of the file.
    pub(super) number: usize,
    /// Its addresses.
    pub(super) old: Range<u64>,
    pub(super) new: Output,
    changed: bool,
    /// `true` if it [belongs](Item::joined) to the one before it, should no wrapper lead to it.
    follows: bool,
}

impl Slot {
    /// Returns the sections that change, in the order of addresses.
    pub(super) fn gather(
        source: &mut Source<'_>,
        file: &File,
        edits: Vec<SectionEdit>,
    ) -> Result<Vec<Slot>, Error> {
        let mut slots = Vec::new();
        for edit in edits {
            let items = match (edit.change, uneditable(&edit.name)) {
                (SectionChange::Items(items), None) => items,
                (SectionChange::Items(items), _) if !items.iter().any(Item::is_changed) => {
                    continue;
                }
                (_, kind) => {
                    let kind = kind.unwrap_or("sections of PE files without bundles");
                    return Err(Error::unsupported_kind(kind));
                }
            };
            slots.push(Slot::new(source, file, &edit.range, items)?);
        }
        slots.sort_by_key(|slot| slot.memory.start);
        let mut slots = slots.into_iter().fold(Vec::new(), |mut slots: Vec<Slot>, slot| {
            match slots.last_mut() {
                Some(last) if last.is_followed_by(file, &slot) => last.take_over(slot),
                _ => slots.push(slot),
            }
            slots
        });
        for (number, bundle) in slots.iter_mut().flat_map(|slot| &mut slot.bundles).enumerate() {
            bundle.number = number;
        }
        slots.retain(Slot::is_changed);
        Ok(slots)
    }

    fn new(
        source: &mut Source<'_>,
        file: &File,
        range: &Range<u64>,
        items: Vec<Item>,
    ) -> Result<Slot, Error> {
        let inconsistent = |what| Error::inconsistent_sections(what);
        let at = |section| file.window.start + file_range(section).start;
        let index = file.sections.iter().position(|section| {
            at(section) == range.start && section.size_of_raw_data.get(LE) > 0 && !range.is_empty()
        });
        let found = index.and_then(|index| Some((index, file.sections.get(index)?)));
        let (index, section) = found.ok_or_else(|| inconsistent("none holds the device code"))?;
        let in_file = file_range(section);
        if [in_file.start, in_file.end].iter().any(|at| at % file.file_alignment() != 0) {
            return Err(inconsistent("device code is not aligned in the file"));
        }
        let start = u64::from(section.virtual_address.get(LE));
        let limit = (start + memory_size(section)).next_multiple_of(file.section_alignment());
        let mut bundles = Vec::new();
        // Bytes between bundles, and after the last, must be zeros.
        let mut end = at(section);
        let mut before = None;
        for item in items {
            let in_section = item.old.start >= end && item.old.end <= range.end;
            if !in_section || item.old.is_empty() {
                return Err(inconsistent("device code is not in its section"));
            }
            zeros(source, end..item.old.start)?;
            end = item.old.end;
            let address = |offset: u64| start + (offset - range.start);
            let old = address(item.old.start)..address(item.old.end);
            let changed = item.is_changed();
            let follows = item.joined
                && before.is_some_and(|before| before == item.old.start)
                && !old.start.is_multiple_of(PAGE);
            before = Some(item.old.end);
            // Nothing, if it is removed.
            let new = item.new.unwrap_or_default();
            bundles.push(Bundle { number: 0, old, new, changed, follows });
        }
        zeros(source, end..range.end)?;
        let memory = start..start + memory_size(section);
        Ok(Slot { sections: index..index + 1, memory, limit, bundles })
    }

    /// Returns the bundle that started at an address.
    pub(super) fn bundle_at(&self, address: u64) -> Option<usize> {
        self.bundles.binary_search_by_key(&address, |bundle| bundle.old.start).ok()
    }

    /// Returns whether the other is a part that an earlier edit split off. Where something numbers sections, they are
    /// neither split nor joined.
    fn is_followed_by(&self, file: &File, other: &Slot) -> bool {
        let section = |index: Option<usize>| index.and_then(|index| file.sections.get(index));
        let last = section(self.sections.end.checked_sub(1));
        let (Some(last), Some(next)) = (last, section(Some(other.sections.start))) else {
            return false;
        };
        self.sections.end == other.sections.start
            && self.memory.end == other.memory.start
            && last.name == next.name
            && last.characteristics == next.characteristics
            && !file.numbers_sections()
    }

    fn take_over(&mut self, other: Slot) {
        self.sections.end = other.sections.end;
        self.memory.end = other.memory.end;
        self.limit = other.limit;
        self.bundles.extend(other.bundles);
    }

    /// Joins offload binaries that wrappers use as one. `led_to` has the targets of wrappers, in order.
    pub(super) fn join(&mut self, led_to: &[u64]) {
        let mut joined: Vec<Bundle> = Vec::new();
        for bundle in self.bundles.drain(..) {
            let is_led_to = led_to.binary_search(&bundle.old.start).is_ok();
            match joined.last_mut().filter(|_| bundle.follows && !is_led_to) {
                Some(before) => {
                    before.old.end = bundle.old.end;
                    before.new.append(&bundle.new);
                    before.changed |= bundle.changed;
                }
                None => joined.push(bundle),
            }
        }
        self.bundles = joined;
    }

    fn is_changed(&self) -> bool {
        self.bundles.iter().any(|bundle| bundle.changed)
    }
}

/// Returns whether this part of the file is all zeros.
fn zeros(source: &mut Source<'_>, range: Range<u64>) -> Result<(), Error> {
    let offset = source.skip_zeros(&range)?;
    if offset == range.end {
        return Ok(());
    }
    let text = format!("unknown bytes at {offset:#x}, between device code");
    Err(Error::new(ErrorKind::Malformed, text))
}
