//! Directories that are looked through for names.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Directories that are looked through, each read once, with a bound on all searches together.
#[derive(Debug, Default)]
pub struct Searched {
    names: BTreeMap<PathBuf, Vec<OsString>>,
    /// The entries that were looked at.
    seen: usize,
}

impl Searched {
    /// The most entries that are looked at.
    pub const MOST: usize = 1 << 18;

    /// Returns the paths of entries whose names start and end like this, in order; `None` if there is too much to look at.
    pub fn matching(&mut self, path: &Path, (start, end): (&str, &str)) -> Option<Vec<PathBuf>> {
        let room = Self::MOST - self.seen;
        let names = self.names.entry(path.to_owned()).or_insert_with(|| {
            let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
            // One more says that there is no room.
            let entries = entries.take(room + 1).map(|entry| entry.file_name());
            let mut names: Vec<_> = entries.collect();
            names.sort();
            names
        });
        self.seen += Some(names.len()).filter(|&count| count <= room)?;
        let is_match = |name: &&OsString| {
            let name = name.to_string_lossy();
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        };
        Some(names.iter().filter(is_match).map(|name| path.join(name)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_are_bounded() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a_1.x", "a_2.x", "b.txt"] {
            fs::write(root.path().join(name), "").unwrap();
        }
        let mut searched = Searched::default();
        let found = searched.matching(root.path(), ("a_", ".x")).unwrap();
        assert_eq!(found, ["a_1.x", "a_2.x"].map(|name| root.path().join(name)));
        assert_eq!(searched.matching(&root.path().join("none"), ("", "")).unwrap().len(), 0);
        // Each search looks at the three entries.
        for _ in 1..Searched::MOST / 3 {
            assert_eq!(searched.matching(root.path(), ("a", "y")).unwrap().len(), 0);
        }
        assert_eq!(searched.matching(root.path(), ("a", "y")), None);
    }
}
