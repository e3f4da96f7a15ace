//! The wrappers that hand bundles to the runtimes, in sections of their own.

use std::ops::Range;

use byte_parts::Source;

use super::file::{File, file_range};
use super::slot::Slot;
use crate::error::Error;
use crate::linked::registration::{self, NO_MULTIPLE, POINTER, Record, Registration};
use crate::pod::{LE, first};

/// As many characters of a section's name as a PE file may have room for.
const NAME: usize = 8;
const SIZE: u64 = size_of::<Record>() as u64;
/// Alignment of wrappers.
const ALIGNMENT: usize = 8;

/// A wrapper. Addresses count from the image base.
pub(super) struct Wrapper {
    pub(super) address: u64,
    /// The address that it points to.
    pub(super) target: u64,
    /// The offset of the pointer in the file.
    pub(super) pointer_at: u64,
}

impl Wrapper {
    /// Returns the address of its pointer in memory.
    pub(super) fn pointer(&self) -> u64 {
        self.address + POINTER
    }
}

/// Returns all wrappers of the file, in the order of their addresses.
pub(super) fn read(source: &mut Source<'_>, file: &File) -> Result<Vec<Wrapper>, Error> {
    read_of(source, file, &registration::ALL)
}

/// Returns the wrappers of these registrations.
pub(super) fn read_of(
    source: &mut Source<'_>,
    file: &File,
    registrations: &[&'static Registration],
) -> Result<Vec<Wrapper>, Error> {
    let mut wrappers = Vec::new();
    for section in &file.sections {
        let name = file.name(source, section)?;
        let is_named = |wrappers: &str| {
            wrappers.as_bytes().get(..NAME).is_some_and(|start| name.starts_with(start))
        };
        let mut all = registrations.iter();
        let Some(registration) = all.find(|registration| is_named(registration.wrappers)) else {
            continue;
        };
        let size = file.loaded_size(section).min(section.virtual_size.get(LE).into());
        let raw_at = file_range(section).start;
        let start = file.window.start + raw_at;
        let base = file.image_base();
        let (before, mut at) = (wrappers.len(), 0);
        while at < size {
            let end = (at + SIZE).min(size);
            let record = source.read_range(&(start + at..start + end))?;
            if record.iter().take(ALIGNMENT).all(|&byte| byte == 0) {
                at += ALIGNMENT as u64;
                continue;
            }
            let address = u64::from(section.virtual_address.get(LE)) + at;
            let Some(record) = first(&record) else {
                let address = base.wrapping_add(section.virtual_address.get(LE).into());
                return Err(Error::wrapper_section(address, size, NO_MULTIPLE));
            };
            let bundle =
                registration.target(&record, wrappers.len(), base.wrapping_add(address))?;
            wrappers.push(Wrapper {
                address,
                target: bundle.wrapping_sub(base),
                pointer_at: raw_at + at + POINTER,
            });
            at += SIZE;
        }
        if wrappers.len() == before && size >= SIZE {
            let address = base.wrapping_add(section.virtual_address.get(LE).into());
            return Err(Error::wrapper_section(address, size, "all of them zero"));
        }
    }
    Ok(wrappers)
}

/// Checks that every wrapper points to a bundle. Wrappers may also point to other sections, which this edit ignores.
pub(super) fn check(file: &File, wrappers: &[Wrapper], slots: &[Slot]) -> Result<(), Error> {
    for (number, wrapper) in wrappers.iter().enumerate() {
        let leads_to_bundle = match slots.iter().find(|slot| slot.memory.contains(&wrapper.target))
        {
            Some(slot) => slot.bundle_at(wrapper.target).is_some(),
            None => file.section_at(wrapper.target).is_some(),
        };
        if !leads_to_bundle {
            let address = |address: u64| file.image_base().wrapping_add(address);
            return Err(Error::wrapper_target(
                number,
                address(wrapper.address),
                address(wrapper.target),
            ));
        }
    }
    Ok(())
}

/// Returns the ranges of addresses of the wrappers' pointers.
pub(super) fn pointers(wrappers: &[Wrapper]) -> Vec<Range<u64>> {
    wrappers.iter().map(|wrapper| wrapper.pointer()..wrapper.pointer() + 8).collect()
}
