//! The kernel packs of wheels, and the libraries that they are for.

use std::collections::BTreeSet;
use std::ops::Range;

use byte_parts::Source;
use fat_edit::PackInput;
use kpack::{Entry, Marker, Tables, search};
use tool_inputs::split_library::read_tables;
use tool_kit::failure::Failure;

use crate::unpacked::{Spool, Unpacked};

/// A pack of a wheel.
pub(super) struct WheelPack {
    /// The path in the wheel.
    path: String,
    /// For messages.
    name: String,
    tables: Tables,
    /// Its place in the temporary file of all.
    place: Range<u64>,
}

impl WheelPack {
    /// Reads a member with this path, and a name for messages, which is added to `spool`.
    pub(super) fn read(
        (path, name): (&str, String),
        contents: &Unpacked,
        spool: &mut Spool,
    ) -> Result<Self, Failure> {
        let place = spool.add(contents.subject().0)?;
        let tables = read_tables(spool.reader(&place))?;
        let tables = tables.map_err(|text| format!("{name}: {text}"))?;
        Ok(WheelPack { path: path.to_owned(), name, tables, place })
    }

    /// Returns the pack for the join of a library with this path, if a marker leads to it.
    pub(super) fn of_library<'p>(
        &'p self,
        path: &str,
        marker: &Marker,
        spool: &'p Spool,
    ) -> Result<Option<PackInput<'p>>, Failure> {
        let leads_here = |pattern: &String| {
            let pattern = below(path, pattern)?;
            let (start, end) = pattern.split_once(search::PLACEHOLDER)?;
            let target = self.path.strip_prefix(start)?.strip_suffix(end)?;
            Some(!target.is_empty() && !target.contains('/'))
        };
        if marker.search_paths().iter().any(|pattern| leads_here(pattern) == Some(true)) {
            let source = Source::new(spool.reader(&self.place))?;
            return Ok(Some(PackInput::new(self.name.clone(), &self.tables, source)));
        }
        Ok(None)
    }

    /// Returns the path in its wheel.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Returns whether it has code of libraries that are not among these.
    pub(super) fn has_others(&self, names: &BTreeSet<String>) -> bool {
        let mut entries = self.tables.toc().entries().iter().map(Entry::kernel_name);
        entries.any(|name| !names.contains(name))
    }
}

/// Returns a path that starts at the directory of a file; `None` if it leads out of the wheel.
fn below(file: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::below;

    #[test]
    fn paths_start_at_the_directory_of_a_file() {
        let below = |path: &str| below("torch/lib/a.so", path);
        assert_eq!(below("../.kpack/t.kpack").as_deref(), Some("torch/.kpack/t.kpack"));
        assert_eq!(below(".kpack/./t.kpack").as_deref(), Some("torch/lib/.kpack/t.kpack"));
        assert_eq!(below("../../t.kpack").as_deref(), Some("t.kpack"));
        assert_eq!(below("../../../t.kpack"), None);
    }
}
