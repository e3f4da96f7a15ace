//! The bytes of a PE file that can change in their place, and what must change with them: signature and checksum.

use std::ops::Range;

use byte_parts::Source;

use super::file::{File, file_range};
use super::place::Places;
use super::{base_relocations, certificates, checksum, layout};
use crate::error::Error;
use crate::linked::host::{Edited, HostContext};
use crate::linked::in_place::{FileParts, Untouched};
use crate::output::{self, NewInputs, Output};
use crate::pod::LE;
use crate::tables::{relative, sized};

/// Returns for each range whether it lies in one section, and no base relocation applies there.
pub(crate) fn editable_in_place(
    source: &mut Source<'_>,
    window: &Range<u64>,
    ranges: &[Range<u64>],
) -> Result<Vec<bool>, Error> {
    let file = File::read(source, window)?;
    let parts = FileParts::new(file.sections.iter().map(|section| (file_range(section), section)));
    let addresses: Vec<_> = (ranges.iter())
        .map(|range| {
            let range = relative(window, range);
            let (place, section) = parts.only(&range)?;
            let start = u64::from(section.virtual_address.get(LE)) + (range.start - place.start);
            Some(sized(start, range.end - range.start))
        })
        .collect();
    let mut untouched = Untouched::new(addresses);
    base_relocations::visit(source, &file, |_, page, locations| {
        locations.iter().for_each(|(within, _)| untouched.hit(page + *within as u64));
        Ok(())
    })?;
    Ok(untouched.finish())
}

/// Returns the file without its signature, if that may go, and nothing else changed.
pub(crate) fn unsigned(source: &mut Source<'_>, context: HostContext<'_>) -> Result<Edited, Error> {
    let file = File::read(source, context.window)?;
    let Some(certificates) = certificates(&file, context)? else {
        return Ok(Edited::new(output::copy_of(context.window)));
    };
    let headers_size = u64::from(file.optional.size_of_headers.get(LE));
    let places = Places { placements: Vec::new(), headers_size };
    let layout = layout::lay_out(source, &file, &[], &places, &[], Some(&certificates))?;
    Ok(Edited { signature_dropped: true, ..Edited::new(layout.splices) })
}

/// Makes the checksum of an edited file right, if it had one before the edit.
pub(crate) fn set_checksum(
    source: &mut Source<'_>,
    new: &mut dyn NewInputs,
    window: &Range<u64>,
    parts: &mut Output,
) -> Result<(), Error> {
    let file = File::read(source, window)?;
    if file.optional.check_sum.get(LE) == 0 {
        return Ok(());
    }
    // The headers stay where they are.
    let at = file.optional_at() + layout::CHECKSUM_AT;
    parts.overwrite(at, &[0; 4]);
    let len = parts.size();
    let sum = checksum::checksum(output::reader(parts, source.reader(), new), len)?;
    parts.overwrite(at, &sum.to_le_bytes());
    Ok(())
}
