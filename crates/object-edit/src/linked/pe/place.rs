//! Placement of bundles.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use byte_parts::Source;

use super::file::{File, MOST_SECTIONS, PAGE, Section};
use super::references;
use super::slot::{Bundle, Slot};
use super::wrappers::Wrapper;
use crate::error::{Error, ErrorKind};
use crate::linked::host::HostContext;
use crate::pod::LE;

/// The new places of the bundles of a slot. Addresses count from the image base.
pub(super) struct Placement {
    /// The start of the section.
    pub(super) start: u64,
    /// The address of each bundle; removed ones have the address of another.
    pub(super) addresses: Vec<u64>,
    /// The end of the last one.
    pub(super) end: u64,
    /// The addresses, in ascending order, where a further section starts.
    pub(super) cuts: Vec<u64>,
    /// `true` if it is a new section at the end of the image.
    pub(super) is_new: bool,
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
) -> Result<Vec<Placement>, Error> {
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
    if slots.iter().zip(&packed).all(stays) {
        return Ok(packed);
    }
    if context.options.stay
        && let Some(mut staying) = stay(slots)
    {
        if !file.has_symbols() {
            HeaderRoom::find(source, file, slots)?.split(file, slots, &mut staying);
        }
        return Ok(staying);
    }
    let references = references::find(source, file, slots, wrappers)?;
    let pins = Pins { references, led_to };
    let mut room = HeaderRoom::find(source, file, slots)?;
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
            room.take()?;
            let new = Placement { is_new: true, ..pack(slot, next_address, |_| None)? };
            next_address = new.end.next_multiple_of(file.section_alignment());
            new
        } else {
            return Err(Error::no_room(needed, available));
        });
    }
    if !file.has_symbols() {
        room.split(file, slots, &mut placements);
    }
    Ok(placements)
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
    let mut addresses = Vec::new();
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
            address = bundle.old.start;
        }
        addresses.push(address);
        end = address.checked_add(bundle.new.size()).ok_or_else(too_large)?;
    }
    if end > u32::MAX.into() {
        return Err(too_large());
    }
    Ok(Placement { start, addresses, end, cuts: Vec::new(), is_new: false })
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
    /// Returns the sizes of the gaps before bundles that stay, and the addresses of these.
    fn holes(&self, slot: &Slot) -> Vec<(u64, u64)> {
        let alignment = alignment(slot);
        let mut holes = Vec::new();
        let mut end = None;
        for (bundle, &address) in slot.bundles.iter().zip(&self.addresses) {
            if bundle.new.size() == 0 {
                continue;
            }
            let packed = end.map_or(address, |end: u64| end.next_multiple_of(alignment));
            // [`pack`] puts none before that.
            holes.push((address - packed, address));
            end = Some(address + bundle.new.size());
        }
        holes.retain(|&(hole, _)| hole > 0);
        holes
    }

    /// Returns the number of unneeded bytes between bundles that stay in the file as zeros.
    pub(super) fn zeroed(&self, slot: &Slot) -> u64 {
        let holes = self.holes(slot).into_iter();
        holes.filter(|(_, address)| !self.cuts.contains(address)).map(|(hole, _)| hole).sum()
    }
}

/// Room for section headers.
struct HeaderRoom {
    headers: u64,
}

impl HeaderRoom {
    /// Returns the room that remains when sections that an earlier edit split are joined.
    fn find(source: &mut Source<'_>, file: &File, slots: &[Slot]) -> Result<Self, Error> {
        let size = size_of::<Section>() as u64;
        let in_file = file.sections.iter().filter(|section| section.size_of_raw_data.get(LE) > 0);
        let starts = in_file.map(|section| section.pointer_to_raw_data.get(LE));
        let end = starts.fold(file.optional.size_of_headers.get(LE), u32::min);
        let end = u64::from(end).min(file.len());
        // Other data may lie after the headers, such as bound imports.
        let free =
            file.window.start + file.table_end()..file.window.start + end.max(file.table_end());
        let free = source.skip_zeros(&free)? - free.start;
        let joined: usize = slots.iter().map(|slot| slot.sections.len() - 1).sum();
        // The file has no more, or it would not have been read.
        let most = (MOST_SECTIONS - file.sections.len()) as u64;
        Ok(HeaderRoom { headers: (free / size).min(most) + joined as u64 })
    }

    fn take(&mut self) -> Result<(), Error> {
        let no_header = || Error::new(ErrorKind::Limit, "no room for another section header");
        self.headers = self.headers.checked_sub(1).ok_or_else(no_header)?;
        Ok(())
    }

    /// Splits sections where a bundle stays after a hole, the largest holes first.
    fn split(&mut self, file: &File, slots: &[Slot], placements: &mut [Placement]) {
        let mut holes = Vec::new();
        for (number, (slot, placement)) in slots.iter().zip(&*placements).enumerate() {
            let of_slot = placement.holes(slot).into_iter();
            let cut = of_slot.filter(|(hole, address)| {
                *hole >= file.file_alignment() && address % file.section_alignment() == 0
            });
            holes.extend(cut.map(|(hole, address)| (hole, number, address)));
        }
        holes.sort_unstable_by_key(|&(hole, number, address)| (Reverse(hole), number, address));
        for (_, number, address) in holes {
            let Some(placement) = placements.get_mut(number) else { continue };
            if self.take().is_err() {
                break;
            }
            placement.cuts.push(address);
            placement.cuts.sort_unstable();
        }
    }
}
