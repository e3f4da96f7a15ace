//! The crate against the specifications as `model` has them: all processors in all their settings, and random texts.

#[path = "../model/mod.rs"]
mod model;

use std::collections::BTreeSet;

use model::{AMDGCN, Answer, GENERIC, Id, NVIDIA, R600, triples};
use proptest::prelude::*;
use target_id::llvm::debug_text;
use target_id::{
    Feature, NvidiaArch, OffloadKind, Options, Processor, Target, TargetId, Triple,
    compatible_with_options, conflicts, processor_names,
};

/// Miri is a thousand times slower.
const CASES: u32 = if cfg!(miri) { 2 } else { 2048 };

fn target(id: Id<'_>) -> Target {
    Target::new(id.kind.map(OffloadKind::parse), id.triple.map(Triple::parse), id.id)
}

/// Asks both.
fn check(code: Id<'_>, device: Id<'_>, hip_openmp: bool) -> Answer {
    check_targets((code, &target(code)), (device, &target(device)), hip_openmp)
}

fn check_targets(code: (Id<'_>, &Target), device: (Id<'_>, &Target), hip_openmp: bool) -> Answer {
    let expected = model::compatible(code.0, device.0, hip_openmp);
    let options = Options::default().with_hip_openmp(hip_openmp);
    let verdict = compatible_with_options(code.1, device.1, options);
    let words = debug_text(&verdict);
    let found = match (verdict.is_strict(), verdict.is_compatible()) {
        (true, true) => Answer::Yes(words),
        (false, true) => Answer::Runs(words),
        (false, false) => Answer::No(words),
        (true, false) => panic!("{verdict:?} is strict and not compatible"),
    };
    assert_eq!(found, expected, "{:?} for {:?}: {verdict:?}", code.0, device.0);
    assert_eq!(verdict.rank() < u32::MAX, verdict.is_compatible());
    found
}

/// Every name of a processor, and names that are none.
fn names() -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, aliases, _) in AMDGCN {
        names.push((*name).to_owned());
        names.extend(aliases.iter().map(|alias| (*alias).to_owned()));
    }
    for (name, aliases) in R600 {
        names.push((*name).to_owned());
        names.extend(aliases.iter().map(|alias| (*alias).to_owned()));
    }
    names.extend(model::nvidia_names());
    let others = [
        "amdgcnspirv",
        "bmg_g21",
        "graniterapids",
        "generic",
        "generic-hsa",
        "intel_gpu_pvc",
        "xe-pvc",
        "12.60.7",
        "intel_gpu_acm_g10",
        "dg2-g11",
        "intel_gpu_bmg_g21",
        "lnl-m",
        "xe-bmg",
        "intel_gpu_new",
        "compute_75",
        "compute_90a",
        "gfx9999",
        "gfx906+xnack",
        "GFX906",
        "gfx9-5-generic",
        "",
    ];
    names.extend(others.map(str::to_owned));
    names
}

/// A target ID for each way in which the features of a processor can be set, and for features that it has not.
fn settings(name: &str) -> Vec<String> {
    let has = |feature: &str| match AMDGCN.iter().find(|known| known.0 == name) {
        Some((_, _, features)) => features.split(' ').any(|known| known == feature),
        None => false,
    };
    let values = |feature| if has(feature) { vec!["", "+", "-"] } else { vec![""] };
    let mut ids = Vec::new();
    for sramecc in values("sramecc") {
        for xnack in values("xnack") {
            let feature = |name: &str, value: &str| match value {
                "" => String::new(),
                value => format!(":{name}{value}"),
            };
            let (sramecc, xnack) = (feature("sramecc", sramecc), feature("xnack", xnack));
            ids.push(format!("{name}{sramecc}{xnack}"));
            if !sramecc.is_empty() && !xnack.is_empty() {
                ids.push(format!("{name}{xnack}{sramecc}"));
            }
        }
    }
    ids
}

#[test]
fn the_tables_agree_with_the_documentation() {
    let ours: BTreeSet<&str> =
        processor_names().filter_map(Processor::amdgpu).map(Processor::name).collect();
    let theirs = AMDGCN.iter().map(|row| row.0).chain(R600.iter().map(|row| row.0));
    assert_eq!(ours, theirs.collect());
    for (name, aliases, features) in AMDGCN {
        let processor = Processor::amdgpu(name).unwrap();
        assert_eq!(processor.aliases(), *aliases, "{name}");
        let has = |feature| features.split(' ').any(|known| known == feature);
        assert_eq!(
            processor.features().any(|feature| feature == Feature::Sramecc),
            has("sramecc"),
            "{name}"
        );
        assert_eq!(
            processor.features().any(|feature| feature == Feature::Xnack),
            has("xnack"),
            "{name}"
        );
    }
    for (name, aliases) in R600 {
        let processor = Processor::amdgpu(name).unwrap();
        assert_eq!((processor.aliases(), processor.features().count()), (*aliases, 0));
    }
    for name in AMDGCN.iter().map(|row| row.0) {
        let row = GENERIC.iter().find(|row| row.0 == name);
        let covers: Vec<&str> = row.map_or(Vec::new(), |row| row.1.split(' ').collect());
        assert_eq!(Processor::amdgpu(name).unwrap().covers(), covers, "{name}");
    }
    let known: BTreeSet<&str> = processor_names().collect();
    for name in model::nvidia_names() {
        assert!(known.contains(&name[..]), "{name}");
    }
    let nvidia = known.iter().filter(|name| name.starts_with("sm_"));
    assert_eq!(nvidia.count(), model::nvidia_names().len());
}

/// Every processor, by every name, in every setting of its features, against every other: with no triple, with the
/// triple of AMD's GPUs, and with one side left open.
#[test]
#[cfg_attr(miri, ignore = "many thousand pairs, and no unsafe code in all that they run through")]
fn all_pairs_of_processors() {
    let ids: Vec<String> = names().iter().flat_map(|name| settings(name)).collect();
    let of = |triple| {
        let ids: Vec<Id<'_>> = ids.iter().map(|id| Id { kind: None, triple, id }).collect();
        ids.into_iter().map(|id| (id, target(id))).collect::<Vec<_>>()
    };
    let open = of(None);
    let amd = of(Some("amdgcn-amd-amdhsa-"));
    let mut answers = [0_usize; 3];
    let step = if samples::faulty::is_thorough() { 1 } else { 11 };
    for (codes, devices) in [(&open, &open), (&amd, &amd), (&amd, &open)] {
        for (n, (code, code_target)) in codes.iter().enumerate() {
            for (device, device_target) in devices.iter().skip(n % step).step_by(step) {
                match check_targets((*code, code_target), (*device, device_target), false) {
                    Answer::Yes(_) => answers[0] += 1,
                    Answer::Runs(_) => answers[1] += 1,
                    Answer::No(_) => answers[2] += 1,
                }
            }
        }
    }
    // Without answers nothing is compared.
    let enough = [2000, 900, 200_000].map(|all| all / if step == 1 { 1 } else { 20 });
    assert!(answers.iter().zip(enough).all(|(found, enough)| *found >= enough), "{answers:?}");
}

/// A few of each sort of target ID with every triple that containers have, against each other.
#[test]
#[cfg_attr(miri, ignore = "many thousand pairs, and no unsafe code in all that they run through")]
fn all_pairs_of_triples() {
    const IDS: [&str; 14] = [
        "",
        "gfx942",
        "gfx942:xnack+",
        "gfx9-4-generic",
        "gfx942+xnack",
        "gfx9999:new+",
        "amdgcnspirv",
        "generic",
        "generic-hsa",
        "gfx600",
        "sm_80",
        "sm_86",
        "compute_75",
        "bmg_g21",
    ];
    let triples: Vec<_> = std::iter::once(None).chain(TRIPLES.iter().copied().map(Some)).collect();
    let mut runs = BTreeSet::new();
    for code_triple in &triples {
        for triple in &triples {
            for id in IDS {
                let code = Id { kind: None, triple: *code_triple, id };
                for id in IDS {
                    if let Answer::Runs(_) =
                        check(code, Id { kind: None, triple: *triple, id }, false)
                    {
                        runs.insert(code.id);
                    }
                }
            }
        }
    }
    // Portable code, generic code, code and PTX for lesser compute capabilities.
    let expected = ["", "amdgcnspirv", "compute_75", "generic", "gfx9-4-generic", "sm_80"];
    assert!(runs.into_iter().eq(expected));
}

#[test]
#[cfg_attr(miri, ignore = "many thousand pairs, and no unsafe code in all that they run through")]
fn all_names_for_generic_processors() {
    for generic in names() {
        for name in &names() {
            let primary = |name: &str| model::parse(None, name).map(|id| id.processor);
            let covered = GENERIC.iter().any(|(row, covers)| {
                primary(&generic).as_deref() == Some(row)
                    && covers.split(' ').any(|covered| primary(name).as_deref() == Some(covered))
            });
            let [one, other] = [&*generic, &**name].map(Processor::amdgpu);
            let covers = one.zip(other).is_some_and(|(a, b)| a.covers().contains(&b.name()));
            assert_eq!(covers, covered, "{generic} {name}");
        }
    }
}

/// Every compute capability with a name, with all suffixes, as machine code and as PTX, on every GPU.
#[test]
#[cfg_attr(miri, ignore = "many thousand pairs, and no unsafe code in all that they run through")]
fn all_pairs_of_nvidia_architectures() {
    let mut names = Vec::new();
    for (major, minor, _) in NVIDIA {
        for suffix in ["", "a", "f"] {
            names.push(format!("sm_{major}{minor}{suffix}"));
            names.push(format!("compute_{major}{minor}{suffix}"));
        }
    }
    let mut runs = 0;
    for code in &names {
        for gpu in &names {
            let (a, b) = (NvidiaArch::parse(code).unwrap(), NvidiaArch::parse(gpu).unwrap());
            // A family that the table does not list is one that nobody has told anything of.
            let is_listed = !code.ends_with('f')
                || NVIDIA.iter().any(|row| {
                    (row.0, row.1) == (a.major().into(), a.minor().into()) && !row.2.is_empty()
                });
            if is_listed {
                assert_eq!(a.runs_on(b), model::nvidia_runs(code, gpu), "{code} on {gpu}");
                runs += usize::from(a.runs_on(b));
            }
            assert_eq!(a.to_string(), *code);
        }
    }
    assert!(runs > 1500, "{runs}");
}

#[test]
#[cfg_attr(miri, ignore = "many hundred pairs, and no unsafe code in all that they run through")]
fn all_pairs_of_kinds() {
    let kinds =
        ["host", "hip", "hipv4", "openmp", "cuda", "sycl", "HIP", "hipv5", "hipfoo", "", "OpenMP"];
    for a in kinds {
        for b in kinds {
            for hip_openmp in [false, true] {
                for id in ["gfx906", ""] {
                    let id = |kind| Id { kind: Some(kind), triple: Some("amdgcn-amd-amdhsa-"), id };
                    check(id(a), id(b), hip_openmp);
                }
            }
        }
    }
}

/// Asks both, and returns how many conflicts there are.
fn check_conflicts(ids: &[Id<'_>]) -> usize {
    let targets: Vec<Target> = ids.iter().map(|id| target(*id)).collect();
    let found: Vec<model::Conflict> = conflicts(&targets)
        .into_iter()
        .map(|conflict| {
            let feature = conflict.feature.map(|feature| feature.to_string());
            (conflict.first, conflict.second, feature)
        })
        .collect();
    assert_eq!(found, model::conflicts(ids), "{ids:?}");
    found.len()
}

/// Entries that chance seldom makes, and how many of them conflict.
#[test]
fn chosen_conflicts() {
    let hip = |id| Id { kind: Some("hip"), triple: Some("amdgcn-amd-amdhsa-"), id };
    for (ids, count) in [
        (&[][..], 0),
        (&["gfx906"], 0),
        (&["gfx906:xnack+", "gfx906:xnack-"], 0),
        (&["gfx906", "gfx908:xnack+", "gfx90a:sramecc-"], 0),
        (&["gfx906:xnack+:sramecc+", "gfx906:sramecc+:xnack-", "gfx906:sramecc-:xnack-"], 0),
        (&["", "gfx906", "gfx906:broken"], 0),
        (&["gfx9-generic", "gfx906:xnack+"], 0),
        (&["gfx9999:a+", "gfx9999:a-"], 0),
        // In either order; LLVM lets the last two pass.
        (&["gfx906", "gfx906:xnack+"], 1),
        (&["gfx906:xnack+", "gfx906"], 1),
        (&["gfx906:sramecc+:xnack+", "gfx906:xnack-"], 1),
        (&["gfx906:sramecc+", "gfx906:xnack-"], 1),
        (&["gfx906", "gfx908", "gfx906:xnack+", "gfx906:xnack-", "gfx906:xnack+"], 3),
        // Other spellings.
        (&["gfx906:xnack+:sramecc-", "gfx906:sramecc-:xnack+"], 1),
        (&["tahiti", "gfx600", "gfx600:"], 2),
        (&["", ""], 1),
        (&["gfx906:broken", "gfx906:broken"], 1),
    ] {
        let ids: Vec<_> = ids.iter().map(|id| hip(*id)).collect();
        assert_eq!(check_conflicts(&ids), count, "{ids:?}");
    }
    let of = |kind, triple, id| Id { kind: Some(kind), triple: Some(triple), id };
    let spellings = [
        hip("gfx906"),
        of("hipv4", "amdgcn-amd-amdhsa-", "gfx906"),
        of("hip", "amdgcn-amd-amdhsa-unknown", "gfx906"),
        of("hip", "amdgpu9.06-amd-amdhsa-", "gfx906"),
    ];
    assert_eq!(check_conflicts(&spellings), 3);
    let hosts = [of("host", "x86_64-pc-linux-gnu", ""), of("host", "amd64-pc-linux-gnu", "")];
    assert_eq!(check_conflicts(&hosts), 1);
    let separate = [
        hip("gfx906"),
        of("openmp", "amdgcn-amd-amdhsa-", "gfx906:xnack+"),
        of("hip", "amdgcn-amd-amdpal-", "gfx906:xnack+"),
        of("hip", "amdgpu9.00-amd-amdhsa-", ""),
        of("hip", "amdgpu9.06-amd-amdhsa-", ""),
        Id { kind: None, triple: None, id: "gfx906:xnack-" },
    ];
    assert_eq!(check_conflicts(&separate), 0);
}

fn word<T: Clone + std::fmt::Debug + 'static>(
    list: &'static [T],
    text: impl Fn(&T) -> &'static str + 'static,
) -> impl Strategy<Value = &'static str> {
    (0..list.len()).prop_map(move |index| text(&list[index]))
}

fn fields() -> impl Strategy<Value = [&'static str; 4]> {
    (
        word(triples::ARCHS, |row| row.0),
        word(triples::VENDORS, |row| row.0),
        word(triples::SYSTEMS, |row| row.0),
        word(triples::ENVIRONMENTS, |row| row.0),
    )
        .prop_map(|(arch, vendor, system, environment)| [arch, vendor, system, environment])
}

/// Two triples that often differ in one field or two.
fn two_triples() -> impl Strategy<Value = (String, String)> {
    (fields(), fields(), any::<[bool; 4]>(), any::<[bool; 4]>()).prop_map(|(a, mut b, x, y)| {
        for field in 0..4 {
            if x[field] || y[field] {
                b[field] = a[field];
            }
        }
        (a.join("-"), b.join("-"))
    })
}

/// All triples of AMD's, SPIR-V and two others, that containers have.
const TRIPLES: &[&str] = &[
    "amdgcn-amd-amdhsa-",
    "amdgcn-amd-amdhsa-",
    "amdgcn-amd-amdhsa",
    "amdgpu9.06-amd-amdhsa-",
    "amdgcn-amd-amdpal-",
    "amdgcn--amdhsa-llvm",
    "nvptx64-nvidia-cuda-",
    "spirv64-amd-amdhsa-",
    "spirv64-intel--",
    "spir64---",
    "r600--",
    "foo-amd-amdhsa-",
    "x86_64-unknown-linux-gnu",
];

fn id_text() -> impl Strategy<Value = String> {
    let name = prop::sample::select(names());
    let few = prop::sample::select(vec![
        "gfx90a",
        "gfx906",
        "gfx942",
        "gfx9-4-generic",
        "gfx1250",
        "gfx9999",
    ]);
    let name = prop_oneof![1 => name, 2 => few.prop_map(str::to_owned)];
    let features = "(:(xnack|sramecc|sram-ecc|foo|)[+-]?|\\+(xnack|sram-ecc|sramecc)){0,3}:?";
    (name, features).prop_map(|(name, features)| name + &features)
}

type Owned = (Option<&'static str>, Option<&'static str>, String);

fn id() -> impl Strategy<Value = Owned> {
    let kinds = vec!["hip", "hip", "hipv4", "openmp", "HIPx", "host", "cuda", "sycl"];
    (
        prop::option::weighted(0.8, prop::sample::select(kinds)),
        prop::option::weighted(0.8, prop::sample::select(TRIPLES)),
        id_text(),
    )
}

fn borrowed((kind, triple, id): &Owned) -> Id<'_> {
    Id { kind: *kind, triple: *triple, id }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn triples_of_all_words((a, b) in two_triples()) {
        let (x, y) = (Triple::parse(&a), Triple::parse(&b));
        prop_assert_eq!(x.compatible_with(&y), triples::fit(&a, &b), "{} {}", a, b);
        prop_assert_eq!(y.compatible_with(&x), triples::fit(&a, &b), "{} {}", b, a);
    }

    #[test]
    fn verdicts_on_any_ids(code in id(), device in id(), alike in 0..4_u8, hip_openmp in any::<bool>()) {
        let mut device = device;
        if alike > 0 {
            (device.0, device.1) = (code.0, code.1);
        }
        if alike > 2 {
            device.2 = code.2.split(':').next().unwrap().to_owned() + device.2.find(':').map_or("", |at| &device.2[at..]);
        }
        check(borrowed(&code), borrowed(&device), hip_openmp);
    }

    #[test]
    fn target_ids_follow_the_guide((kind, triple, text) in id()) {
        let given = borrowed(&(kind, triple, text.clone())).id.to_owned();
        let parsed = target(Id { kind, triple, id: &given }).target_id();
        let expected = model::parse(triple, &text);
        prop_assert_eq!(parsed.is_ok(), expected.is_some(), "{:?} {:?}", parsed, expected);
        if let (Ok(id), Some(expected)) = (parsed, expected) {
            prop_assert_eq!(id.processor(), &expected.processor);
            let mut canonical = expected.processor.clone();
            for (feature, sign) in &expected.features {
                canonical += &format!(":{feature}{sign}");
            }
            prop_assert_eq!(id.to_string(), canonical.clone());
            // Canonical forms are their own, and mean the same as the original.
            let again = target(Id { kind, triple, id: &canonical });
            prop_assert_eq!(again.target_id(), Ok(id));
            let words = check(Id { kind, triple, id: &canonical }, Id { kind, triple, id: &text }, false);
            prop_assert!(matches!(words, Answer::Yes(_)));
        }
    }

    #[test]
    fn conflicts_follow_the_documentation(mut entries in prop::collection::vec(id(), 0..10), few in any::<bool>()) {
        if few {
            for entry in &mut entries {
                entry.0 = Some("hip");
                entry.1 = entry.1.filter(|triple| triple.starts_with("amdgcn-amd"));
            }
        }
        check_conflicts(&entries.iter().map(borrowed).collect::<Vec<_>>());
    }

    /// Code object V2 and V3 named what is on, and what they left out is off.
    #[test]
    fn old_spellings_set_every_feature(name in prop::sample::select(names()), features in "(\\+(xnack|sram-ecc|sramecc|foo|)){0,3}") {
        let text = format!("{name}{features}");
        let named: Vec<String> = features.split('+').skip(1).map(|f| f.replace("sram-ecc", "sramecc")).collect();
        let row = model::parse(None, &name).and_then(|id| AMDGCN.iter().find(|row| row.0 == id.processor));
        if let (Some((primary, _, allowed)), Ok(id)) = (row, TargetId::parse_v3(&text)) {
            let mut expected = (*primary).to_owned();
            for feature in allowed.split(' ').filter(|feature| !feature.is_empty()) {
                let sign = if named.iter().any(|name| name == feature) { '+' } else { '-' };
                expected += &format!(":{feature}{sign}");
            }
            prop_assert_eq!(id.to_string(), expected.clone());
            prop_assert_eq!(TargetId::parse(&expected), Ok(id));
        } else if let Some((_, _, allowed)) = row {
            let is_wrong = |name: &String| name.is_empty() || !allowed.split(' ').any(|known| known == name);
            let twice = (1..named.len()).any(|at| named[..at].contains(&named[at]));
            prop_assert!(twice || named.iter().any(is_wrong), "{}", text);
        }
    }
}
