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

/// An ID. Many are compatible.
fn any_id() -> impl Strategy<Value = String> {
    let triples = ["amdgcn-amd-amdhsa-", "amdgcn-amd-amdhsa-unknown", "amdgcn-amd-amdpal-"];
    let id = "((gfx906|gfx90a|gfx940|gfx941)(:sramecc[+-])?(:xnack[+-]?)?|gfx600|tahiti)?";
    let device = ("(hip|hipv4|openmp)", prop::sample::select(triples.to_vec()), id)
        .prop_map(|(kind, triple, id)| format!("{kind}-{triple}-{id}"));
    prop_oneof![9 => device, 1 => "host-(x86_64|amd64|aarch64)-unknown-linux-gnu-"]
}

proptest! {
    /// `target-id` judges verdicts and their ranks.
    #[test]
    fn the_best_is_the_first_of_least_rank_and_the_very_id_before_others(
        ids in prop::collection::vec(any_id(), 1..10),
        others in prop::collection::vec(any_id(), 4),
        hip_openmp: bool,
    ) {
        let parsed = targets(&ids.iter().map(String::as_str).collect::<Vec<_>>());
        let standard = |id: &str| EntryId::parse(id).unwrap().standardized();
        // Every entry is asked for as well.
        for wanted in ids.iter().chain(&others) {
            let options = Options::default().with_hip_openmp(hip_openmp);
            let request = request(wanted).with_options(options);
            let verdicts = parsed.iter().map(|target| request.verdict(target)).enumerate();
            let fits = verdicts.filter(|(_, verdict)| verdict.is_strict());
            let best = fits.min_by_key(|(index, verdict)| {
                (verdict.rank(), standard(&ids[*index]) != standard(wanted), *index)
            });
            let expected = best.map(|(index, _)| index);
            prop_assert_eq!(request.best_match(&parsed), expected, "{}", wanted);
        }
    }
}
