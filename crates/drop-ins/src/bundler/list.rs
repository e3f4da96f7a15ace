//! The IDs in a file.

use std::path::Path;

use super::entries;
use super::job::{FileType, Notes};
use tool_kit::failure::Failure;
use tool_kit::input;
use tool_kit::opened::MaxInput;

/// Lists the IDs of all entries in the order of the file, as stored; of an archive after the name of the member. In a
/// damaged file, lists the readable ones. With `tables_only`, compressed bundles are read to the end of their
/// tables of entries, and faults after them are not found.
pub(super) fn list(
    path: &Path,
    file_type: FileType,
    tables_only: bool,
    lines: &mut Vec<String>,
    notes: &mut Notes,
) -> Result<(), Failure> {
    let mut file = input::open_sized(path, MaxInput::default())
        .map_err(|error| tool_kit::payload::at(path, &error))?;
    let limits = fat_object::Options::default().with_tables_only(tables_only).with_scan(false);
    let walk = (&limits, fat_object::Enter::Open);
    let summary = entries::for_each(path, &mut file, file_type, walk, notes, &mut |entry| {
        lines.push(match entry.member {
            Some(member) => format!("{member}: {}", entry.id),
            None => entry.id.to_owned(),
        });
        Ok(())
    })?;
    if file_type == FileType::Archive && !summary.is_archive {
        return Err(format!("'{}': not an archive", input::display(path)).into());
    }
    if !summary.is_bundle {
        notes.warnings.push(format!("'{}': no bundle", input::display(path)));
    }
    Ok(())
}
