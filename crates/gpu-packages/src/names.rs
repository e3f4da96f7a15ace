//! Names of the members of a package that is a stream.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher;

/// The names that were seen, as hashes: a package of megabytes may have millions of members.
#[derive(Default)]
pub(crate) struct Names {
    states: [RandomState; 2],
    seen: HashMap<[u64; 2], Seen>,
}

#[derive(Clone, Copy, PartialEq)]
enum Seen {
    Directory,
    Once,
    Repeated,
}

impl Names {
    /// Adds the name of a member, and returns whether it is the first to repeat another name. Directories may be
    /// repeated.
    pub(crate) fn repeats(&mut self, name: &[u8], is_directory: bool) -> bool {
        let name = components(name);
        let key = self.states.each_ref().map(|state| state.hash_one(&name));
        let new = if is_directory { Seen::Directory } else { Seen::Once };
        match self.seen.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(new);
                false
            }
            Entry::Occupied(entry) if is_directory && *entry.get() == Seen::Directory => false,
            Entry::Occupied(mut entry) => entry.insert(Seen::Repeated) != Seen::Repeated,
        }
    }

    /// Returns whether several members have this name.
    pub(crate) fn is_repeated(&self, name: &[u8]) -> bool {
        let name = components(name);
        let key = self.states.each_ref().map(|state| state.hash_one(&name));
        self.seen.get(&key) == Some(&Seen::Repeated)
    }
}

/// Returns the components of a path that programs look at.
fn components(name: &[u8]) -> Vec<&[u8]> {
    let parts = name.split(|&byte| byte == b'/');
    parts.filter(|part| !matches!(part, [] | [b'.'])).collect()
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn files_are_not_repeated() {
        let mut names = Names::default();
        let repeats: Vec<bool> = [
            ("./", true),
            ("a/", true),
            ("a/./b", false),
            (".", true),
            ("a", true),
            ("a//b", false),
            ("a/b", false),
            ("./a", false),
            ("ab", false),
        ]
        .iter()
        .map(|(name, is_directory)| names.repeats(name.as_bytes(), *is_directory))
        .collect();
        let expected = [false, false, false, false, false, true, false, true, false];
        assert_eq!(repeats, expected);
        assert!(names.is_repeated(b"a/b") && !names.is_repeated(b"ab") && !names.is_repeated(b"x"));
    }
}
