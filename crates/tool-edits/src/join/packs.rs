//! The kernel packs of wheels, and the libraries that they are for.

use std::collections::BTreeSet;
use std::path::Path;

use fat_edit::PackInput;
use kpack::{Entry, Marker, search};
use tool_inputs::split_library::OpenPack;
use tool_kit::failure::Failure;

use crate::unpacked::Unpacked;

/// A pack of a wheel, in a file of its own.
pub(super) struct WheelPack {
    /// The path in the wheel.
    path: String,
    open: OpenPack,
}

impl WheelPack {
    /// Opens a member with this path, and a name for messages.
    pub(super) fn open(path: &str, name: &str, contents: Unpacked) -> Result<Self, Failure> {
        let file = contents.into_file();
        Ok(WheelPack { path: path.to_owned(), open: OpenPack::of(Path::new(name), file)? })
    }

    /// Returns the pack for the join of a library with this path, if a marker leads to it.
    pub(super) fn of_library(
        &self,
        path: &str,
        marker: &Marker,
    ) -> Result<Option<PackInput<'_>>, Failure> {
        let leads_here = |pattern: &String| {
            let pattern = below(path, pattern)?;
            let (start, end) = pattern.split_once(search::PLACEHOLDER)?;
            let target = self.path.strip_prefix(start)?.strip_suffix(end)?;
            Some(!target.is_empty() && !target.contains('/'))
        };
        if marker.search_paths().iter().any(|pattern| leads_here(pattern) == Some(true)) {
            return Ok(Some(self.open.input()?));
        }
        Ok(None)
    }

    /// Returns the path in its wheel.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Returns whether it has code of libraries that are not among these.
    pub(super) fn has_others(&self, names: &BTreeSet<String>) -> bool {
        let mut entries = self.open.toc().entries().iter().map(Entry::kernel_name);
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
