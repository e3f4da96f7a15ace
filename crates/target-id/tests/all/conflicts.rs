//! Composition of bundles, case by case; `specification.rs` has the rules.

use target_id::{Feature, OffloadKind, Target, Triple};

type Conflict = (usize, usize, Option<Feature>);

fn conflicts(targets: &[Target]) -> Vec<Conflict> {
    let found = target_id::conflicts(targets).into_iter();
    found.map(|conflict| (conflict.first, conflict.second, conflict.feature)).collect()
}

fn target(kind: &str, triple: &str, id: &str) -> Target {
    Target::new(Some(OffloadKind::parse(kind)), Some(Triple::parse(triple)), id)
}

fn hip(ids: &[&str]) -> Vec<Conflict> {
    let targets: Vec<Target> =
        ids.iter().map(|id| target("hip", "amdgcn-amd-amdhsa-", id)).collect();
    conflicts(&targets)
}

fn one_only(first: usize, second: usize, feature: &str) -> Conflict {
    (first, second, Some(Feature::parse(feature)))
}

fn duplicate(first: usize, second: usize) -> Conflict {
    (first, second, None)
}

#[test]
fn compatible_entries_have_no_conflicts() {
    for ids in [
        &[][..],
        &["gfx906"],
        &["gfx906:xnack+", "gfx906:xnack-"],
        &["gfx906", "gfx908:xnack+", "gfx90a:sramecc-"],
        &["gfx906:xnack+:sramecc+", "gfx906:sramecc+:xnack-", "gfx906:sramecc-:xnack-"],
        &["", "gfx906", "gfx906:broken"],
        &["gfx9-generic", "gfx906:xnack+"],
        &["gfx9999:a+", "gfx9999:a-"],
    ] {
        assert_eq!(hip(ids), [], "{ids:?}");
    }
}

#[test]
fn a_feature_in_one_entry_only_conflicts_in_either_order() {
    assert_eq!(hip(&["gfx906", "gfx906:xnack+"]), [one_only(0, 1, "xnack")]);
    assert_eq!(hip(&["gfx906:xnack+", "gfx906"]), [one_only(0, 1, "xnack")]);
    // LLVM lets these pass.
    assert_eq!(hip(&["gfx906:sramecc+:xnack+", "gfx906:xnack-"]), [one_only(0, 1, "sramecc")]);
    assert_eq!(hip(&["gfx906:sramecc+", "gfx906:xnack-"]), [one_only(0, 1, "sramecc")]);
}

#[test]
fn each_conflicting_entry_is_reported_once() {
    let found = hip(&["gfx906", "gfx908", "gfx906:xnack+", "gfx906:xnack-", "gfx906:xnack+"]);
    assert_eq!(found, [one_only(0, 2, "xnack"), one_only(0, 3, "xnack"), duplicate(2, 4)]);
}

#[test]
fn duplicates_in_other_spellings_are_found() {
    assert_eq!(hip(&["gfx906:xnack+:sramecc-", "gfx906:sramecc-:xnack+"]), [duplicate(0, 1)]);
    assert_eq!(hip(&["tahiti", "gfx600", "gfx600:"]), [duplicate(0, 1), duplicate(0, 2)]);
    assert_eq!(hip(&["", ""]), [duplicate(0, 1)]);
    assert_eq!(hip(&["gfx906:broken", "gfx906:broken"]), [duplicate(0, 1)]);
    let spellings = [
        target("hip", "amdgcn-amd-amdhsa-", "gfx906"),
        target("hipv4", "amdgcn-amd-amdhsa-", "gfx906"),
        target("hip", "amdgcn-amd-amdhsa-unknown", "gfx906"),
        target("hip", "amdgpu9.06-amd-amdhsa-", "gfx906"),
    ];
    assert_eq!(conflicts(&spellings), [duplicate(0, 1), duplicate(0, 2), duplicate(0, 3)]);
    let hosts =
        [target("host", "x86_64-pc-linux-gnu", ""), target("host", "amd64-pc-linux-gnu", "")];
    assert_eq!(conflicts(&hosts), [duplicate(0, 1)]);
}

#[test]
fn conflicts_are_printed_as_sentences() {
    let targets =
        ["gfx906", "gfx906", "gfx906:xnack+"].map(|id| target("hip", "amdgcn-amd-amdhsa-", id));
    let texts: Vec<String> =
        target_id::conflicts(&targets).iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "entries 0 and 1 are for the same target",
            "entries 0 and 2 are for one processor, and only one has a setting for xnack"
        ]
    );
}

#[test]
fn separate_groups_have_no_conflicts() {
    let targets = [
        target("hip", "amdgcn-amd-amdhsa-", "gfx906"),
        target("openmp", "amdgcn-amd-amdhsa-", "gfx906:xnack+"),
        target("hip", "amdgcn-amd-amdpal-", "gfx906:xnack+"),
        target("hip", "amdgpu9.00-amd-amdhsa-", ""),
        target("hip", "amdgpu9.06-amd-amdhsa-", ""),
        Target::new(None, None, "gfx906:xnack-"),
    ];
    assert_eq!(conflicts(&targets), []);
}

#[test]
fn thousands_of_entries_are_compared_quickly() {
    let count = if cfg!(miri) { 100 } else { 20_000 };
    let targets: Vec<Target> = (0..count)
        .map(|n| target("hip", "amdgcn-amd-amdhsa-", &format!("gfx{}:xnack+", 2000 + n / 2)))
        .collect();
    assert_eq!(conflicts(&targets).len(), count / 2);
}
