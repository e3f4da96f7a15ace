//! Sentences about conflicts, and their time; `specification.rs` has the rules.

use target_id::{OffloadKind, Target, Triple, conflicts};

fn hip(ids: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<Target> {
    let target = |id: &str| {
        let triple = Triple::parse("amdgcn-amd-amdhsa-");
        Target::new(Some(OffloadKind::Hip), Some(triple), id)
    };
    ids.into_iter().map(|id| target(id.as_ref())).collect()
}

#[test]
fn conflicts_are_printed_as_sentences() {
    let found = conflicts(&hip(["gfx906", "gfx906", "gfx906:xnack+"]));
    let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "entries 0 and 1 are for the same target",
            "entries 0 and 2 are for one processor, and only one has a setting for xnack"
        ]
    );
}

#[test]
fn thousands_of_entries_are_compared_quickly() {
    let count = if cfg!(miri) { 100 } else { 20_000 };
    let targets = hip((0..count).map(|n| format!("gfx{}:xnack+", 2000 + n / 2)));
    assert_eq!(conflicts(&targets).len(), count / 2);
}
