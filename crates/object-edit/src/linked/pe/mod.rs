//! PE executables and libraries: device code cut at the end of its section, bundles moved together.
//!
//! Windows wants sections to follow each other without gaps in memory. So a section of device code keeps its place and
//! size there, and has fewer bytes in the file: a loader fills the rest with zeros. All addresses stay except the addresses
//! of bundles that move within their section; the pointers of the wrappers follow them. A bundle that something else may
//! refer to stays; the section is then split at its page, if the headers have room or can grow.

mod base_relocations;
mod check;
mod checksum;
mod file;
mod headers;
mod hybrid;
mod in_place;
mod layout;
pub(crate) mod moved_out;
mod place;
mod references;
#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "samples are small")]
mod sample;
mod slot;
#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "samples are small")]
mod tests;
mod wrappers;

use std::ops::Range;

use byte_parts::Source;
use check::Check;
use file::File;
pub(super) use in_place::{editable_in_place, set_checksum, unsigned};
use object::pe::IMAGE_DIRECTORY_ENTRY_SECURITY;
use slot::Slot;
pub(super) use slot::uneditable;

use super::host::{Edited, HostContext, SectionEdit};
use crate::error::{Error, ErrorKind};
use crate::output::{self, NewInputs};
use crate::pod::LE;

/// Lays out the file in the window with other device code in its sections. `images` are the new images, by number.
pub(crate) fn edit(
    source: &mut Source<'_>,
    new: &mut dyn NewInputs,
    context: HostContext<'_>,
    sections: Vec<SectionEdit>,
) -> Result<Edited, Error> {
    if !sections.iter().any(SectionEdit::is_changed) {
        return Ok(Edited::new(output::copy_of(context.window)));
    }
    let file = File::read(source, context.window)?;
    let certificates = certificates(&file, context)?;
    let mut slots = Slot::gather(source, &file, sections)?;
    let wrappers = wrappers::read(source, &file)?;
    let mut led_to: Vec<u64> = wrappers.iter().map(|wrapper| wrapper.target).collect();
    led_to.sort_unstable();
    slots.iter_mut().for_each(|slot| slot.join(&led_to));
    wrappers::check(&file, &wrappers, &slots)?;
    let places = place::place(source, &file, &slots, &wrappers, context)?;
    let mut layout =
        layout::lay_out(source, &file, &slots, &places, &wrappers, certificates.as_ref())?;
    if file.optional.check_sum.get(LE) != 0 {
        let len = layout.splices.size();
        let sum = checksum::checksum(output::reader(&layout.splices, source.reader(), new), len)?;
        layout.splices.overwrite(layout.checksum_at, &sum.to_le_bytes());
    }
    let splices = layout.splices;
    let check = Check {
        file: &file,
        slots: &slots,
        places: &places,
        wrappers: &wrappers,
        splices: &splices,
    };
    check.run(source, new)?;
    let zeroed = places.placements.iter().map(|placement| placement.zeroed(&file)).sum();
    let signature_dropped = certificates.is_some();
    Ok(Edited { parts: splices, zeroed, signature_dropped })
}

/// Returns the range of the certificates that sign the file, if they may go: their directory has an offset of the file, not
/// an address.
fn certificates(file: &File, context: HostContext<'_>) -> Result<Option<Range<u64>>, Error> {
    let Some(range) = file.directory(IMAGE_DIRECTORY_ENTRY_SECURITY) else { return Ok(None) };
    if range.end > file.len() {
        let Range { start, end } = range;
        let what = "the certificate table";
        return Err(Error::beyond_end(what, start, end, file.len()));
    }
    if range.start < file.end_of_sections() {
        let what = "the certificate table lies in a section";
        return Err(Error::inconsistent_sections(what));
    }
    if !context.options.drop_signature {
        let text = "file is signed; the signature would become invalid";
        return Err(Error::new(ErrorKind::Signed, text));
    }
    Ok(Some(range))
}
