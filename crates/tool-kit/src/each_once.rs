//! Items without repetitions.

use std::collections::HashSet;
use std::hash::Hash;

/// Returns the items in their order, each once.
pub fn each_once<T: Clone + Eq + Hash>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    items.into_iter().filter(|item| seen.insert(item.clone())).collect()
}
