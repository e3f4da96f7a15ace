//! Placement of bundles.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use byte_parts::Source;

use super::file::{File, PAGE};
use super::headers::Headers;
use super::references;
use super::slot::{Bundle, Slot};
use super::wrappers::Wrapper;
use crate::error::Error;
use crate::linked::host::HostContext;

/// The new places of the bundles of a slot. Addresses count from the image base.
pub(super) struct Placement {
    /// The start of the section.
    pub(super) start: u64,
    /// The address of each bundle; removed ones have the address of another.
    pub(super) addresses: Vec<u64>,
    /// The end of the last one.
    pub(super) end: u64,
    /// The gaps before bundles that cannot move down.
    gaps: Vec<Range<u64>>,
    /// The addresses, in ascending order, where a further section starts.
    pub(super) cuts: Vec<u64>,
    /// `true` if it is a new section at the end of the image.
    pub(super) is_new: bool,
}

/// The places of everything in the new file.
pub(super) struct Places {
    /// One for each slot.
    pub(super) placements: Vec<Placement>,
    /// SizeOfHeaders.
    pub(super) headers_size: u64,
}

/// The references that keep bundles from moving.
struct Pins {
    /// The first reference to an address.
    references: BTreeMap<u64, u64>,
    /// Addresses that wrappers lead to.
    led_to: Vec<u64>,
}

impl Pins {
    /// Returns the reason why this bundle cannot move; `None` if it can.
    fn why_not(&self, file: &File, bundle: &Bundle) -> Option<Error> {
        if let Some(&at) = self.references.get(&bundle.old.start) {
            let address = file.image_base().wrapping_add(at);
            return Some(Error::foreign_reference(bundle.number, address));
        }
        let is_known = self.led_to.binary_search(&bundle.old.start).is_ok();
        (!is_known).then_some(Error::no_wrapper(bundle.number))
    }
}

/// Places all bundles, one after the other where only wrappers refer to moved ones.
pub(super) fn place(
    source: &mut Source<'_>,
    file: &File,
    slots: &[Slot],
    wrappers: &[Wrapper],
    context: HostContext<'_>,
) -> Result<Places, Error> {
    let grow = context.options.grow;
    let mut led_to: Vec<_> = wrappers.iter().map(|wrapper| wrapper.target).collect();
    led_to.sort_unstable();
    let gone = |bundle: &&Bundle| {
        bundle.new.size() == 0 && led_to.binary_search(&bundle.old.start).is_ok()
    };
    if slots.iter().any(|slot| slot.bundles.iter().find(gone).is_some())
        || slots.iter().any(|slot| slot.bundles.iter().all(|bundle| bundle.new.size() == 0))
    {
        return Err(Error::nothing_left());
    }
    let packed: Vec<_> = slots
        .iter()
        .map(|slot| pack(slot, slot.memory.start, |_| None))
        .collect::<Result<_, _>>()?;
    let stays = |(slot, placement): (&Slot, &Placement)| {
        placement.end <= slot.limit && !moves(slot, placement)
    };
    // Sections that an earlier edit split become one.
    let joined = slots.iter().map(|slot| slot.sections.len() - 1).sum();
    let mut headers = Headers::find(source, file, joined)?;
    if slots.iter().zip(&packed).all(stays) {
        return Ok(Places { placements: packed, headers_size: headers.size });
    }
    if context.options.stay
        && let Some(mut staying) = stay(slots)
    {
        split(file, &mut headers, &mut staying);
        return Ok(Places { placements: staying, headers_size: headers.size });
    }
    let references = references::find(source, file, slots, wrappers)?;
    let pins = Pins { references, led_to };
    let mut next_address = file.image_end();
    let mut placements = Vec::new();
    for (slot, packed) in slots.iter().zip(packed) {
        let available = slot.limit - slot.memory.start;
        let needed = packed.end - slot.memory.start;
        // Nothing follows the last section in memory.
        let is_last = slot.sections.end == file.sections.len()
            && placements.iter().all(|placement: &Placement| !placement.is_new);
        placements.push(if needed <= available || grow && is_last {
            pack(slot, slot.memory.start, |bundle| pins.why_not(file, bundle))?
        } else if grow {
            if let Some(why) = slot.bundles.iter().find_map(|bundle| pins.why_not(file, bundle)) {
                return Err(why);
            }
            headers.take()?;
            let new = Placement { is_new: true, ..pack(slot, next_address, |_| None)? };
            next_address = new.end.next_multiple_of(file.section_alignment());
            new
        } else {
            return Err(Error::no_room(needed, available));
        });
    }
    split(file, &mut headers, &mut placements);
    Ok(Places { placements, headers_size: headers.size })
}

/// Returns all bundles in their places; `None` if one does not fit there.
fn stay(slots: &[Slot]) -> Option<Vec<Placement>> {
    let placements = slots.iter().map(|slot| {
        let stays = |bundle: &Bundle| Some(Error::no_wrapper(bundle.number));
        let placement = pack(slot, slot.memory.start, stays).ok()?;
        (placement.end <= slot.limit).then_some(placement)
    });
    placements.collect()
}

/// Returns whether a bundle moves.
fn moves(slot: &Slot, placement: &Placement) -> bool {
    let mut bundles = slot.bundles.iter().zip(&placement.addresses);
    bundles.any(|(bundle, &address)| bundle.new.size() > 0 && bundle.old.start != address)
}

/// Places bundles one after the other, from a new start of their section on, except bundles that cannot move.
fn pack(
    slot: &Slot,
    start: u64,
    why_not: impl Fn(&Bundle) -> Option<Error>,
) -> Result<Placement, Error> {
    let alignment = alignment(slot);
    let first = slot.bundles.first().map_or(slot.memory.start, |first| first.old.start);
    let mut end = start + (first - slot.memory.start);
    let (mut addresses, mut gaps) = (Vec::new(), Vec::new());
    for bundle in &slot.bundles {
        let mut address = end.next_multiple_of(alignment);
        // One that goes takes no place.
        if bundle.new.size() == 0 {
            addresses.push(address);
            continue;
        }
        if address != bundle.old.start
            && let Some(why) = why_not(bundle)
        {
            if address > bundle.old.start {
                return Err(why);
            }
            gaps.push(address..bundle.old.start);
            address = bundle.old.start;
        }
        addresses.push(address);
        end = address.checked_add(bundle.new.size()).ok_or_else(too_large)?;
    }
    if end > u32::MAX.into() {
        return Err(too_large());
    }
    Ok(Placement { start, addresses, end, gaps, cuts: Vec::new(), is_new: false })
}

/// Creates the error of an address or size that does not fit 32 bits.
pub(super) fn too_large() -> Error {
    Error::unsupported_pe("4 GiB or more")
}

/// Returns the alignment of the starts of bundles. Clang aligns them to pages, other tools to less.
fn alignment(slot: &Slot) -> u64 {
    let aligned = |to: &u64| slot.bundles.iter().all(|bundle| bundle.old.start % to == 0);
    [PAGE, 16, 8].into_iter().find(aligned).unwrap_or(1)
}

impl Placement {
    /// Returns the number of unneeded bytes between bundles that stay in the file as zeros.
    pub(super) fn zeroed(&self, file: &File) -> u64 {
        let left = |gap: &Range<u64>| {
            let size = gap.end - gap.start;
            let cut = cut(file, gap);
            if self.cuts.contains(&cut) { size.min(gap.end - cut) } else { size }
        };
        self.gaps.iter().map(left).sum()
    }
}

/// Returns the start of a section whose first bundle lies after this gap, and may not be aligned.
fn cut(file: &File, gap: &Range<u64>) -> u64 {
    gap.end - gap.end % file.section_alignment()
}

/// Splits sections where a bundle stays after a gap, the largest first, unless something numbers sections.
fn split(file: &File, headers: &mut Headers, placements: &mut [Placement]) {
    if file.numbers_sections() {
        return;
    }
    let mut cuts = Vec::new();
    for (number, placement) in placements.iter().enumerate() {
        // No section may be empty in the file: a bundle must lie before the gap.
        let first = placement.addresses.first();
        let gaps = placement.gaps.iter().filter(|gap| first < Some(&gap.start));
        cuts.extend(gaps.filter_map(|gap| {
            let at = cut(file, gap);
            let gain = at.checked_sub(gap.start.next_multiple_of(file.file_alignment()))?;
            (gain > 0).then_some((gain, number, at))
        }));
    }
    cuts.sort_unstable_by_key(|&(gain, number, at)| (Reverse(gain), number, at));
    let gains: Vec<u64> = cuts.iter().map(|&(gain, ..)| gain).collect();
    for (_, number, at) in cuts.into_iter().take(headers.take_for(&gains)) {
        let Some(placement) = placements.get_mut(number) else { continue };
        placement.cuts.push(at);
        placement.cuts.sort_unstable();
    }
}
