//! The entry of a bundle that is handed out for a target.

use bundle_format::{EntryId, Request};
use proptest::prelude::*;
use target_id::{Options, Target};

fn targets(ids: &[&str]) -> Vec<Target> {
    ids.iter().map(|id| EntryId::parse(id).unwrap().target()).collect()
}

fn request(id: &str) -> Request {
    Request::new(&EntryId::parse(id).unwrap())
}

/// The entry for a request.
fn best<'a>(id: &str, entries: &[&'a str]) -> Option<&'a str> {
    request(id).best_match(&targets(entries)).map(|index| entries[index])
}

/// With `hip-amdgcn-amd-amdhsa--` before every target ID.
fn best_hip(id: &str, entries: &[&str]) -> Option<String> {
    let full = |id: &str| format!("hip-amdgcn-amd-amdhsa--{id}");
    let entries: Vec<String> = entries.iter().map(|id| full(id)).collect();
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let best = best(&full(id), &entries)?;
    Some(best.strip_prefix("hip-amdgcn-amd-amdhsa--").unwrap().to_owned())
}

/// All orders of up to four entries.
fn orders<'a>(entries: &[&'a str]) -> Vec<Vec<&'a str>> {
    if entries.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (index, first) in entries.iter().enumerate() {
        let mut others = entries.to_vec();
        others.remove(index);
        for mut rest in orders(&others) {
            rest.insert(0, first);
            all.push(rest);
        }
    }
    all
}

/// In whatever order the entries are; each winner is the only best one.
#[test]
fn exact_beats_specific_beats_any() {
    let entries = ["gfx90a", "gfx90a:xnack+", "gfx90a:sramecc+:xnack+", "gfx908:xnack+"];
    for order in orders(&entries) {
        for (wanted, expected) in [
            ("gfx90a", Some("gfx90a")),
            ("gfx90a:xnack+", Some("gfx90a:xnack+")),
            ("gfx90a:sramecc+:xnack+", Some("gfx90a:sramecc+:xnack+")),
            // The same in another order of features.
            ("gfx90a:xnack+:sramecc+", Some("gfx90a:sramecc+:xnack+")),
            ("gfx90a:sramecc-:xnack+", Some("gfx90a:xnack+")),
            // One entry is for several targets.
            ("gfx90a:xnack-", Some("gfx90a")),
            ("gfx90a:sramecc+", Some("gfx90a")),
            ("gfx90a:sramecc+:xnack-", Some("gfx90a")),
            ("gfx908:xnack+", Some("gfx908:xnack+")),
            ("gfx908:sramecc-:xnack+", Some("gfx908:xnack+")),
            // Any is not on.
            ("gfx908", None),
            ("gfx908:xnack-", None),
            ("gfx906", None),
            ("", None),
        ] {
            let found = best_hip(wanted, &order);
            assert_eq!(found.as_deref(), expected, "{wanted} of {order:?}");
        }
    }
}

#[test]
fn the_first_of_equal_entries_wins() {
    let entries = ["gfx90a:sramecc+", "gfx90a:xnack+"];
    assert_eq!(best_hip("gfx90a:sramecc+:xnack+", &entries).unwrap(), entries[0]);
    assert_eq!(best_hip("gfx90a:sramecc+:xnack+", &[entries[1], entries[0]]).unwrap(), entries[1]);
    let twice = targets(&["hip-amdgcn-amd-amdhsa--gfx906"; 3]);
    assert_eq!(request("hip-amdgcn-amd-amdhsa--gfx906").best_match(&twice[1..]), Some(0));
}

#[test]
fn hip_and_hipv4_serve_each_other() {
    let (hip, v4) = ("hip-amdgcn-amd-amdhsa--gfx906", "hipv4-amdgcn-amd-amdhsa--gfx906");
    for (a, b) in [(hip, v4), (v4, hip)] {
        for order in orders(&[a, b]) {
            assert_eq!(best(a, &order), Some(a));
        }
        assert_eq!(best(a, &[b]), Some(b));
        // A twin for the very features is better than its sibling for any.
        let on = |id: &str| format!("{id}:xnack+");
        let (wanted, twin) = (on(a), on(b));
        for order in orders(&[a, &twin]) {
            assert_eq!(best(&wanted, &order), Some(&twin[..]));
        }
    }
    let openmp = "openmp-amdgcn-amd-amdhsa--gfx906";
    assert_eq!(best(openmp, &[hip, v4]), None);
    // Twins without target ID are not the same, and nothing else makes them go together.
    assert_eq!(best("hip-amdgcn-amd-amdhsa--", &["hipv4-amdgcn-amd-amdhsa--"]), None);
}

/// LLVM 22 empties target IDs that it does not know, and then takes one for the other.
#[test]
fn unknown_processors_match_only_themselves() {
    let entries = ["gfx940", "gfx941", "gfx999:xnack+", ""];
    for order in orders(&entries) {
        for (wanted, expected) in [
            ("gfx940", Some("gfx940")),
            ("gfx941", Some("gfx941")),
            ("gfx942", None),
            ("gfx940:sramecc+", Some("gfx940")),
            ("gfx999", None),
            ("gfx999:xnack+", Some("gfx999:xnack+")),
            ("gfx999:sramecc-:xnack+", Some("gfx999:xnack+")),
            ("GFX940", None),
            ("", Some("")),
        ] {
            let found = best_hip(wanted, &order);
            assert_eq!(found.as_deref(), expected, "{wanted} of {order:?}");
        }
    }
}

#[test]
fn malformed_target_ids_match_as_text() {
    let entries = ["gfx906:xnack", "gfx906+xnack", "gfx1100:xnack+", "gfx906:foo+"];
    for order in orders(&entries) {
        for id in entries {
            assert_eq!(best_hip(id, &order).as_deref(), Some(id));
        }
        for id in ["gfx906", "gfx906:xnack+", "gfx1100", "gfx906:foo-"] {
            assert_eq!(best_hip(id, &order), None, "{id}");
        }
    }
}

#[test]
fn alternative_names_are_the_processor() {
    assert_eq!(best_hip("tahiti", &["gfx601", "gfx600"]).unwrap(), "gfx600");
    assert_eq!(best_hip("gfx600", &["tahiti"]).unwrap(), "tahiti");
    assert_eq!(best_hip("gfx600", &["tahiti", "gfx600"]).unwrap(), "gfx600");
}

#[test]
fn generic_and_portable_code_matches_only_itself() {
    assert_eq!(best_hip("gfx906", &["gfx9-generic"]), None);
    assert_eq!(best_hip("gfx9-generic", &["gfx906", "gfx9-generic"]).unwrap(), "gfx9-generic");
    let portable = ["hip-spirv64-amd-amdhsa--amdgcnspirv"];
    assert_eq!(best("hip-amdgcn-amd-amdhsa--gfx906", &portable), None);
    assert_eq!(best(portable[0], &portable), Some(portable[0]));
}

/// Entries of old releases, whose triples have three fields, and requests of that form.
#[test]
fn old_ids_can_be_selected() {
    let old = [
        "host-x86_64-unknown-linux",
        "hip-amdgcn-amd-amdhsa-gfx906",
        "hip-amdgcn-amd-amdhsa-gfx90a:xnack-",
        "openmp-nvptx64-nvidia-cuda-sm_70",
    ];
    let new = [
        "host-x86_64-unknown-linux-",
        "hip-amdgcn-amd-amdhsa--gfx906",
        "hip-amdgcn-amd-amdhsa--gfx90a:xnack-",
        "openmp-nvptx64-nvidia-cuda--sm_70",
    ];
    for (old_id, new_id) in old.iter().zip(new) {
        for id in [old_id, new_id] {
            assert_eq!(best(id, &old), Some(*old_id), "{id}");
            assert_eq!(best(id, &new), Some(new_id), "{id}");
        }
    }
    assert_eq!(best("hip-amdgcn-amd-amdhsa--gfx90a:xnack+", &old), None);
    assert_eq!(best("hip-amdgcn-amd-amdhsa--", &old), None);
}

#[test]
fn entries_without_target_id_match_requests_without_one() {
    let entries = ["host-x86_64-unknown-linux-gnu-", "hip-amdgcn-amd-amdhsa--", "openmp-a-b-c-d-"];
    for order in orders(&entries) {
        for id in entries {
            assert_eq!(best(id, &order), Some(id));
        }
        for id in [
            "host-aarch64-unknown-linux-gnu-",
            "host-x86_64-unknown-linux-musl-",
            "host-x86_64-unknown-linux-gnu-gfx906",
            "hip-amdgcn-amd-amdhsa--gfx906",
        ] {
            assert_eq!(best(id, &order), None, "{id}");
        }
        assert_eq!(best("host-amd64-unknown-linux-gnu", &order), Some(entries[0]));
    }
}

#[test]
fn hip_and_openmp_serve_each_other_on_request() {
    let entries = [
        "hip-amdgcn-amd-amdhsa--gfx906:xnack+",
        "hipv4-amdgcn-amd-amdhsa--gfx908",
        "openmp-amdgcn-amd-amdhsa--gfx906",
        "host-x86_64-unknown-linux-gnu-",
    ];
    let options = [Options::default(), Options::default().with_hip_openmp(true)];
    for (id, without, with) in [
        ("openmp-amdgcn-amd-amdhsa--gfx908", None, Some(1)),
        ("openmp-amdgcn-amd-amdhsa--gfx906", Some(2), Some(2)),
        ("openmp-amdgcn-amd-amdhsa--gfx906:xnack+", Some(2), Some(0)),
        ("openmp-amdgcn-amd-amdhsa--gfx906:xnack-", Some(2), Some(2)),
        ("hip-amdgcn-amd-amdhsa--gfx906", None, Some(2)),
        ("hip-amdgcn-amd-amdhsa--gfx908", Some(1), Some(1)),
        ("hip-x86_64-unknown-linux-gnu-", None, None),
        ("openmp-x86_64-unknown-linux-gnu-", None, None),
    ] {
        let found = options.map(|o| request(id).with_options(o).best_match(&targets(&entries)));
        assert_eq!(found, [without, with], "{id}");
    }
}

/// An ID of a small world, with what it means: the model compares that and no text but the target ID's.
#[derive(Clone, Debug)]
struct Id {
    kind: &'static str,
    /// Spelling, and the group of compatible ones.
    triple: (&'static str, u8),
    /// As written, and which one it is; the empty one and those with faulty features are none.
    processor: (&'static str, u8),
    features: Vec<(&'static str, char)>,
    /// Features are repeated, unknown to the processor or without a sign.
    faulty: bool,
}

impl Id {
    fn target_id(&self) -> String {
        let features = self.features.iter().map(|(name, sign)| format!(":{name}{sign}"));
        let features: String = features.collect();
        let fault = if self.faulty { ":xnack" } else { "" };
        format!("{}{features}{fault}", self.processor.0)
    }

    fn text(&self) -> String {
        format!("{}-{}-{}", self.kind, self.triple.0, self.target_id())
    }
}

/// Nothing for incompatible ones. Smaller is better.
fn model_rank(entry: &Id, wanted: &Id, hip_openmp: bool) -> Option<usize> {
    let same_triple = entry.triple.1 == wanted.triple.1;
    if entry.kind == wanted.kind && same_triple && entry.target_id() == wanted.target_id() {
        return Some(0);
    }
    let is_hip = |kind: &str| kind.starts_with("hip");
    let mixed = |a: &str, b: &str| is_hip(a) && b == "openmp";
    let kinds = entry.kind == wanted.kind
        || (is_hip(entry.kind) && is_hip(wanted.kind))
        || (hip_openmp && (mixed(entry.kind, wanted.kind) || mixed(wanted.kind, entry.kind)));
    let none = |id: &Id| id.faulty || id.processor.0.is_empty();
    if !kinds
        || !same_triple
        || none(entry)
        || none(wanted)
        || entry.processor.1 != wanted.processor.1
        || !entry.features.iter().all(|feature| wanted.features.contains(feature))
    {
        return None;
    }
    Some(1 + wanted.features.len() - entry.features.len())
}

fn model_best(entries: &[Id], wanted: &Id, hip_openmp: bool) -> Option<usize> {
    let ranks = entries.iter().map(|entry| model_rank(entry, wanted, hip_openmp));
    let ranks: Vec<(usize, usize)> =
        ranks.enumerate().filter_map(|(index, rank)| Some((index, rank?))).collect();
    let least = ranks.iter().map(|(_, rank)| *rank).min()?;
    let standard = |id: &Id| EntryId::parse(&id.text()).unwrap().standardized();
    let mut winners = ranks.iter().filter(|(_, rank)| *rank == least).map(|(index, _)| *index);
    let first = winners.clone().next();
    winners.find(|&index| standard(&entries[index]) == standard(wanted)).or(first)
}

fn any_id() -> impl Strategy<Value = Id> {
    const PROCESSORS: [(&str, u8); 7] = [
        ("gfx906", 0),
        ("gfx90a", 1),
        ("gfx940", 2),
        ("gfx941", 3),
        ("gfx600", 4),
        ("tahiti", 4),
        ("", 5),
    ];
    let features = prop::sample::subsequence(vec!["sramecc", "xnack"], 0..=2).prop_shuffle();
    let device = (
        prop::sample::select(vec!["hip", "hipv4", "openmp"]),
        prop::sample::select(vec![
            ("amdgcn-amd-amdhsa-", 0),
            ("amdgcn-amd-amdhsa-unknown", 0),
            ("amdgcn-amd-amdpal-", 1),
        ]),
        prop::sample::select(PROCESSORS.to_vec()),
        features,
        prop::collection::vec(prop::sample::select(vec!['+', '-']), 2),
        prop::bool::weighted(0.05),
    )
        .prop_map(|(kind, triple, processor, features, signs, faulty)| {
            let has_features = !["gfx600", "tahiti", ""].contains(&processor.0);
            let features = if has_features { features } else { Vec::new() };
            let features: Vec<_> = features.into_iter().zip(signs).collect();
            let faulty = faulty && !processor.0.is_empty();
            Id { kind, triple, processor, features, faulty }
        });
    let host = prop::sample::select(vec![
        ("x86_64-unknown-linux-gnu", 2),
        ("amd64-unknown-linux-gnu", 2),
        ("aarch64-unknown-linux-gnu", 3),
    ])
    .prop_map(|triple| Id {
        kind: "host",
        triple,
        processor: ("", 5),
        features: Vec::new(),
        faulty: false,
    });
    prop_oneof![9 => device, 1 => host]
}

proptest! {
    #[test]
    fn agrees_with_the_model(
        entries in prop::collection::vec(any_id(), 1..10),
        others in prop::collection::vec(any_id(), 4),
        hip_openmp: bool,
    ) {
        let parsed: Vec<Target> =
            entries.iter().map(|id| EntryId::parse(&id.text()).unwrap().target()).collect();
        // Every entry is asked for as well.
        for wanted in entries.iter().chain(&others) {
            let options = Options::default().with_hip_openmp(hip_openmp);
            let request = request(&wanted.text()).with_options(options);
            for (entry, target) in entries.iter().zip(&parsed) {
                let rank = model_rank(entry, wanted, hip_openmp);
                prop_assert_eq!(
                    request.verdict(target).is_strict(), rank.is_some(),
                    "{} for {}", entry.text(), wanted.text()
                );
            }
            let found = request.best_match(&parsed);
            prop_assert_eq!(found, model_best(&entries, wanted, hip_openmp), "{}", wanted.text());

            // The other way round another equal entry may win, never a better or worse one.
            let reversed = request.best_match(parsed.iter().rev());
            let reversed = reversed.map(|index| entries.len() - 1 - index);
            let rank = |index: usize| model_rank(&entries[index], wanted, hip_openmp);
            prop_assert_eq!(found.map(rank), reversed.map(rank));
        }
    }
}
