//! The section headers of the new file.

use std::ops::Range;

use object::elf::{
    SHF_INFO_LINK, SHF_WRITE, SHN_LORESERVE, SHT_NOBITS, SHT_NULL, SHT_REL, SHT_RELA, SymbolSection,
};

use super::file::{File, SectionHeader, is_allocated};
use super::layout::Layout;
use super::segments::{Loads, Map};
use super::slot::Slot;
use super::validate::inconsistent;
use crate::error::Error;
use crate::pod::LE;

/// The new headers.
pub(super) struct Sections {
    pub(super) headers: Vec<SectionHeader>,
    /// New indices, by old ones. Further sections with bundles have the number of the first.
    indices: Vec<u32>,
    /// The sections with bundles: new addresses, and the index of the first.
    groups: Vec<Range<u64>>,
    first: u32,
}

impl Sections {
    /// Returns the new sections. `groups` has the new addresses of the sections with bundles.
    pub(super) fn new(
        file: &File,
        slot: &Slot,
        layout: &Layout,
        map: &Map,
        loads: &Loads<'_>,
        groups: Vec<Range<u64>>,
    ) -> Result<Self, Error> {
        let (main, further) = slot.sections.split_first().ok_or_else(Error::no_device_code)?;
        let mut further = further.to_vec();
        further.sort_unstable();
        let too_many = || inconsistent("too many section headers");
        let mut new = Sections { headers: Vec::new(), indices: Vec::new(), groups, first: 0 };
        for (index, old) in file.sections.iter().enumerate() {
            let next = u32::try_from(new.headers.len()).map_err(|_| too_many())?;
            new.indices.push(next);
            if index == *main {
                new.first = next;
                for group in &new.groups {
                    let mut header = *old;
                    header.sh_addr.set(LE, group.start);
                    header.sh_size.set(LE, group.end - group.start);
                    header.sh_offset.set(LE, loads.new_offset(group.start).unwrap_or(0));
                    new.headers.push(header);
                }
            } else if further.binary_search(&index).is_err() {
                new.headers.push(header(index, old, layout, map, loads));
            }
        }
        for index in further {
            if let Some(place) = new.indices.get_mut(index) {
                *place = new.first;
            }
        }
        if new.headers.len() >= usize::from(SHN_LORESERVE) {
            return Err(too_many());
        }
        new.relink();
        Ok(new)
    }

    /// Rewrites the indices in the headers.
    fn relink(&mut self) {
        let indices = &self.indices;
        let new = |old: u32| {
            let index = usize::try_from(old).ok().and_then(|old| indices.get(old));
            index.copied().unwrap_or(old)
        };
        for header in &mut self.headers {
            header.sh_link.set(LE, new(header.sh_link.get(LE)));
            let names_section = matches!(header.sh_type.get(LE), SHT_RELA | SHT_REL)
                || header.sh_flags.get(LE).contains(SHF_INFO_LINK);
            if names_section {
                header.sh_info.set(LE, new(header.sh_info.get(LE)));
            }
        }
    }

    /// Returns whether indices differ from the old ones.
    pub(super) fn is_renumbered(&self) -> bool {
        (0..).zip(&self.indices).any(|(old, &new): (u32, &u32)| old != new) || self.groups.len() > 1
    }

    /// Returns the new index of a section, for a symbol at this new address in it.
    pub(super) fn index(&self, old: SymbolSection, address: u64) -> SymbolSection {
        let Some(&new) = self.indices.get(usize::from(old.0)) else { return old };
        let mut new = u64::from(new);
        if let [_, further @ ..] = self.groups.as_slice()
            && new == u64::from(self.first)
        {
            new += further.partition_point(|group| group.start <= address) as u64;
        }
        u16::try_from(new).map_or(old, SymbolSection)
    }
}

/// Returns the header of a section that holds no bundles.
fn header(
    index: usize,
    old: &SectionHeader,
    layout: &Layout,
    map: &Map,
    loads: &Loads<'_>,
) -> SectionHeader {
    let mut header = *old;
    let (address, offset) = (old.sh_addr.get(LE), old.sh_offset.get(LE));
    if let Some(&moved) = layout.moved.get(&index) {
        header.sh_addr.set(LE, moved);
        header.sh_offset.set(LE, loads.new_offset(moved).unwrap_or(offset));
        return header;
    }
    let kind = old.sh_type.get(LE);
    // mold gives sections without contents no place in the file.
    if kind == SHT_NULL || (kind == SHT_NOBITS && offset == 0) {
        return header;
    }
    let shift = if is_allocated(old) {
        loads.shift(address, old.sh_flags.get(LE).contains(SHF_WRITE))
    } else {
        None
    };
    header.sh_offset.set(
        LE,
        match shift {
            Some(shift) => offset.wrapping_add(shift),
            None => map.offset(offset),
        },
    );
    header
}
