//! Paths of files that are installed into one directory.

use std::collections::BTreeMap;

/// Paths of files, with the name of the wheel that has them.
#[derive(Default)]
pub(crate) struct Paths<'w>(BTreeMap<String, &'w str>);

impl<'w> Paths<'w> {
    /// Adds a file of a wheel. Returns another file that cannot be installed beside it: one with its path, one that is a directory
    /// of this one, or one below it; with its wheel.
    pub(crate) fn add(&mut self, path: &str, wheel: &'w str) -> Option<(String, &'w str)> {
        let Paths(files) = self;
        let below = format!("{path}/");
        let parents = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        let found = parents.chain([path]).find_map(|path| files.get_key_value(path));
        let next = || files.range(below.clone()..).next();
        let found = found.or_else(|| next().filter(|(path, _)| path.starts_with(&below)));
        let found = found.map(|(path, wheel)| (path.clone(), *wheel));
        files.insert(path.to_owned(), wheel);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::Paths;

    #[test]
    fn files_and_directories_differ() {
        let mut paths = Paths::default();
        let mut add = |path: &str| paths.add(path, "w").map(|(path, _)| path);
        for path in ["a/b", "a/b.c", "a/bc/d", "a-b"] {
            assert_eq!(add(path), None, "{path}");
        }
        assert_eq!(add("a/b").as_deref(), Some("a/b"));
        assert_eq!(add("a/b/c").as_deref(), Some("a/b"));
        assert_eq!(add("a/bc").as_deref(), Some("a/bc/d"));
    }
}
