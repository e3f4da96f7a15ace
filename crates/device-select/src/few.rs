//! Lists of names in messages.

use alloc::format;
use alloc::string::String;
#[cfg(feature = "files")]
use {alloc::vec::Vec, core::hash::Hash, std::collections::HashSet};

/// Returns the first five names, separated by commas, and the number of the others.
pub(crate) fn few<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    const MOST: usize = 5;
    let mut names = names.into_iter();
    let mut text = String::new();
    for name in names.by_ref().take(MOST) {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(name.as_ref());
    }
    match names.count() {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// Returns the items in their order, each once.
#[cfg(feature = "files")]
pub(crate) fn each_once<T: Clone + Eq + Hash>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    items.into_iter().filter(|item| seen.insert(item.clone())).collect()
}
