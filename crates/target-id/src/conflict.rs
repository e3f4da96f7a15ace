//! Target IDs that cannot be in one bundle together.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::feature::Feature;
use crate::kind::OffloadKind;
use crate::target::Target;
use crate::target_id::TargetId;
use crate::triple::{Key, Triple};

/// Two entries of one bundle that contradict each other.
///
/// [`Display`](fmt::Display) says it in a few words: "entries 0 and 2 are for the same target".
#[derive(Debug)]
#[non_exhaustive]
pub struct Conflict {
    /// Index of the entry that came first.
    pub first: usize,
    /// Index of the entry that does not go with it; greater than `first`.
    pub second: usize,
    /// The first feature in alphabetical order that only one of them sets, where both are for one processor; `None` if
    /// both mean the same target.
    pub feature: Option<Feature>,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, second, feature } = self;
        write!(f, "entries {first} and {second} ")?;
        match feature {
            None => f.write_str("are for the same target"),
            Some(feature) => write!(
                f,
                "are for one processor, and only one has a setting for {}",
                feature.as_str().escape_debug()
            ),
        }
    }
}

/// Entries that may meet on one device: compatible kinds and triples, same processor.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Group<'a> {
    // First, because it alone distinguishes most groups.
    processor: String,
    kind: Option<&'a str>,
    triple: Option<Key<'a>>,
    /// Sub-architecture of the triple, where no processor says it better.
    sub: &'a str,
}

/// The entries of a group seen so far.
struct Seen {
    first: usize,
    first_id: Option<TargetId>,
    /// Index by canonical target ID, or by text if the target ID cannot be read.
    by_id: BTreeMap<String, usize>,
}

/// Finds entries that must not be in one bundle together, in the order of `second`.
///
/// The Clang Offload Bundler documentation wants each entry ID only once, and each target
/// feature either in all target IDs for a processor or in none. Here entries are compared
/// after canonicalisation and with all spellings of their kind and triple in mind, and the
/// rule for features is applied in both directions; LLVM does neither. `gfx906:xnack+` with
/// `gfx906:xnack-` is fine, either with `gfx906` is not.
///
/// Each entry is compared with the first one of its processor, so there is at most one
/// conflict for each `second`. Entries without kind are only compared with each other, and
/// so are entries without triple. Target IDs that cannot be read conflict only with the same
/// text. The time grows as n log n, and what is held is a copy of each target ID.
///
/// ```
/// use target_id::{OffloadKind, Target, Triple, conflicts};
///
/// let targets = ["gfx906", "gfx90a", "gfx906:xnack+"].map(|id| {
///     Target::new(Some(OffloadKind::Hip), Some(Triple::parse("amdgcn-amd-amdhsa")), id)
/// });
/// let found = conflicts(&targets);
/// assert_eq!((found[0].first, found[0].second), (0, 2));
/// assert_eq!(
///     found[0].to_string(),
///     "entries 0 and 2 are for one processor, and only one has a setting for xnack"
/// );
/// ```
#[must_use]
pub fn conflicts<'a>(ids: impl IntoIterator<Item = &'a Target>) -> Vec<Conflict> {
    let mut groups: BTreeMap<Group<'a>, Seen> = BTreeMap::new();
    let mut found = Vec::new();
    // Most triples are the one before.
    let mut last: Option<(&Triple, Key<'a>)> = None;
    for (second, target) in ids.into_iter().enumerate() {
        let id = target.target_id().ok();
        let canonical = id.as_ref().map_or_else(|| target.id().into(), ToString::to_string);
        let key = target.triple().map(|triple| match last {
            Some((before, key)) if before == triple => key,
            _ => last.insert((triple, triple.key())).1,
        });
        let group = groups.entry(group(target, id.as_ref(), key)).or_insert_with(|| Seen {
            first: second,
            first_id: id.clone(),
            by_id: BTreeMap::new(),
        });
        if let Some(&first) = group.by_id.get(&canonical) {
            found.push(Conflict { first, second, feature: None });
            continue;
        }
        group.by_id.insert(canonical, second);
        if let (Some(first_id), Some(id)) = (&group.first_id, &id)
            && let Some(feature) = in_one_only(first_id, id)
        {
            found.push(Conflict { first: group.first, second, feature: Some(feature) });
        }
    }
    found
}

fn group<'a>(target: &'a Target, id: Option<&TargetId>, triple: Option<Key<'a>>) -> Group<'a> {
    Group {
        kind: target.kind().map(|kind| match kind {
            OffloadKind::HipV4 => OffloadKind::Hip.as_str(),
            kind => kind.as_str(),
        }),
        triple,
        sub: if id.is_some() { "" } else { target.triple().map_or("", Triple::amdgpu_sub) },
        // Unreadable ones each get a group of their own text.
        processor: id.map_or_else(|| target.id().into(), |id| id.processor().into()),
    }
}

/// Returns the first feature that only one of two target IDs sets. Both are sorted: it is where they part.
fn in_one_only(a: &TargetId, b: &TargetId) -> Option<Feature> {
    let (mut a, mut b) = (a.features(), b.features());
    loop {
        let (a, b) = (a.next().map(|(feature, _)| feature), b.next().map(|(feature, _)| feature));
        match (a, b) {
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => return Some(a.min(b).clone()),
            (a, b) => return a.or(b).cloned(),
        }
    }
}
