//! Compatibility of code objects with targets, case by case; `specification.rs` has the rules.

use target_id::{
    ErrorKind, Feature, NvidiaArch, OffloadKind, Options, Setting, Target, TargetId, Triple,
    Verdict, compatible, compatible_with_options,
};

fn target(kind: &str, triple: &str, id: &str) -> Target {
    Target::new(Some(OffloadKind::parse(kind)), Some(Triple::parse(triple)), id)
}

fn hip(id: &str) -> Target {
    target("hip", "amdgcn-amd-amdhsa-", id)
}

fn open(id: &str) -> Target {
    Target::new(None, None, id)
}

fn verdict(code_object: &str, device: &str) -> Verdict {
    compatible(&hip(code_object), &hip(device))
}

#[test]
fn equal_ids_match_exactly() {
    for id in ["gfx906", "gfx906:xnack+", "", "gfx999", "gfx906:broken", "gfx906+xnack"] {
        assert_eq!(verdict(id, id), Verdict::Exact, "{id}");
        assert_eq!(compatible(&hip(id), &open(id)), Verdict::Exact, "{id}");
    }
}

#[test]
fn other_spellings_match_the_same_processor() {
    for (a, b) in [
        ("gfx906:xnack+:sramecc-", "gfx906:sramecc-:xnack+"),
        ("gfx906:", "gfx906"),
        ("tahiti", "gfx600"),
        ("polaris10", "fiji"),
        // As LLVM 23 has it.
        ("generic", "gfx600"),
        ("generic-hsa", "kaveri"),
        ("gfx9999:a+:b+", "gfx9999:b+:a+"),
    ] {
        assert_eq!(verdict(a, b), Verdict::SameProcessor, "{a} {b}");
        assert_eq!(verdict(b, a), Verdict::SameProcessor, "{b} {a}");
    }
    assert_eq!(
        compatible(&hip("gfx906"), &target("hipv4", "amdgcn-amd-amdhsa-", "gfx906")),
        Verdict::SameProcessor
    );
}

#[test]
fn open_features_match_any_setting() {
    let any = |names: &[&str]| Verdict::FeaturesCompatible {
        any: names.iter().map(|name| Feature::parse(name)).collect(),
    };
    assert_eq!(verdict("gfx90a", "gfx90a:xnack+"), any(&["xnack"]));
    assert_eq!(verdict("gfx90a", "gfx90a:xnack+:sramecc-"), any(&["sramecc", "xnack"]));
    assert_eq!(verdict("gfx90a:xnack+", "gfx90a:xnack+:sramecc-"), any(&["sramecc"]));
    assert_eq!(verdict("gfx90a:sramecc-", "gfx90a:xnack+:sramecc-"), any(&["xnack"]));
    assert_eq!(verdict("gfx9999:b+", "gfx9999:a+:b+:c-"), any(&["a", "c"]));
}

#[test]
fn other_settings_do_not_match() {
    let mismatch = |feature, code_object, target| Verdict::FeatureMismatch {
        feature: Feature::parse(feature),
        code_object,
        target,
    };
    assert_eq!(
        verdict("gfx90a:xnack+", "gfx90a:xnack-"),
        mismatch("xnack", Setting::On, Some(Setting::Off))
    );
    assert_eq!(verdict("gfx90a:sramecc+", "gfx90a:xnack-"), mismatch("sramecc", Setting::On, None));
    assert_eq!(
        verdict("gfx90a:sramecc-:xnack+", "gfx90a:sramecc+:xnack-"),
        mismatch("sramecc", Setting::Off, Some(Setting::On))
    );
    let many = |feature| Verdict::TooManyFeatures { feature, code_object: Setting::On };
    assert_eq!(verdict("gfx90a:xnack+", "gfx90a"), many(Feature::Xnack));
    assert_eq!(verdict("gfx90a:sramecc+:xnack+", "gfx90a:sramecc-"), many(Feature::Xnack));
    assert_eq!(verdict("gfx90a:sramecc+:xnack+", "gfx90a:xnack+"), many(Feature::Sramecc));
}

#[test]
fn other_kinds_and_triples_do_not_match() {
    let a = hip("gfx906");
    let openmp = target("openmp", "amdgcn-amd-amdhsa-", "gfx906");
    let kinds =
        Verdict::KindMismatch { code_object: OffloadKind::Hip, target: OffloadKind::OpenMp };
    assert_eq!(compatible(&a, &openmp), kinds);
    assert_eq!(
        compatible_with_options(&a, &openmp, Options::default().with_hip_openmp(true)),
        Verdict::SameProcessor
    );

    let pal = target("hip", "amdgcn-amd-amdpal-", "gfx906");
    let (code_object, target) = (a.triple().unwrap().clone(), pal.triple().unwrap().clone());
    assert_eq!(compatible(&a, &pal), Verdict::TripleMismatch { code_object, target });
}

/// `clang-offload-bundler` 22 does not match these either.
#[test]
fn no_target_id_matches_only_exactly() {
    let verdict = compatible(&hip(""), &target("hipv4", "amdgcn-amd-amdhsa-", ""));
    assert_eq!(verdict, Verdict::UnparsableCodeObject(TargetId::parse("").unwrap_err()));
    let verdict = compatible(&hip("gfx906"), &hip(""));
    assert_eq!(verdict, Verdict::UnparsableTarget(TargetId::parse("").unwrap_err()));
    let host = |arch| target("host", arch, "");
    assert_eq!(
        compatible(&host("amd64--linux-gnu"), &host("x86_64-unknown-linux-gnu")),
        Verdict::Exact
    );
}

#[test]
fn other_processors_do_not_match() {
    let differ =
        |a: &str, b: &str| Verdict::ProcessorMismatch { code_object: a.into(), target: b.into() };
    assert_eq!(verdict("gfx906", "gfx908"), differ("gfx906", "gfx908"));
    assert_eq!(verdict("tahiti", "verde"), differ("gfx600", "gfx601"));
    // LLVM drops both names and finds them equal.
    assert_eq!(verdict("gfx940", "gfx941"), differ("gfx940", "gfx941"));
    // Nothing real runs generic requests' code the other way round.
    assert_eq!(verdict("gfx906", "gfx9-generic"), differ("gfx906", "gfx9-generic"));
    let nvptx = |id| target("openmp", "nvptx64-nvidia-cuda-", id);
    assert_eq!(compatible(&nvptx("sm_72"), &nvptx("sm_70")), differ("sm_72", "sm_70"));
}

#[test]
fn generic_processors_cover_their_members() {
    let covers = |generic, processor, any: &[Feature]| Verdict::GenericCovers {
        generic,
        processor,
        any: any.to_vec(),
    };
    assert_eq!(verdict("gfx9-generic", "gfx906"), covers("gfx9-generic", "gfx906", &[]));
    assert_eq!(
        verdict("gfx9-4-generic", "gfx942:xnack+"),
        covers("gfx9-4-generic", "gfx942", &[Feature::Xnack])
    );
    assert!(!verdict("gfx9-4-generic:xnack-", "gfx942:xnack+").is_compatible());
    assert!(!verdict("gfx9-generic", "gfx90a").is_compatible());
    let verdict = verdict("gfx11-generic", "gfx1100");
    assert!(verdict.is_compatible() && !verdict.is_strict());
}

#[test]
fn nvidia_architectures_cover_newer_ones() {
    let cuda = |id| target("cuda", "nvptx64-nvidia-cuda", id);
    let arch = |name| NvidiaArch::parse(name).unwrap();
    for (code, gpu) in [("sm_80", "sm_86"), ("compute_75", "sm_86"), ("sm_90a", "sm_90")] {
        let verdict = compatible(&cuda(code), &open(gpu));
        assert_eq!(verdict, Verdict::NvidiaCovers { code_object: arch(code), target: arch(gpu) });
        assert!(verdict.is_compatible() && !verdict.is_strict());
    }
    for (code, gpu) in [("sm_86", "sm_80"), ("sm_75", "sm_86"), ("compute_90", "sm_89")] {
        let differ = Verdict::ProcessorMismatch { code_object: code.into(), target: gpu.into() };
        assert_eq!(compatible(&cuda(code), &open(gpu)), differ);
    }
    let best_first = ["sm_89", "sm_86", "sm_80", "compute_89", "compute_86", "compute_75"];
    let ranks = best_first.map(|id| compatible(&cuda(id), &open("sm_89")).rank());
    assert!(ranks.is_sorted(), "{ranks:?}");
}

#[test]
fn reasons_name_the_processors() {
    let said = |code: &str, device: &str| {
        let code = if code.contains('_') {
            target("cuda", "nvptx64-nvidia-cuda", code)
        } else {
            hip(code)
        };
        compatible(&code, &open(device)).to_string()
    };
    for (code, device, words) in [
        ("gfx9-generic", "gfx90a", "is generic code, gfx9-generic does not cover gfx90a"),
        ("gfx9-generic", "sm_70", "is for gfx9-generic, not for sm_70"),
        ("", "gfx90a", "names no processor"),
        ("sm_70", "gfx90a", "is for sm_70, not for gfx90a"),
        ("sm_80", "sm_86", "is code for sm_80, which sm_86 runs"),
        ("sm_89", "sm_86", "is code for sm_89, newer than sm_86"),
        ("sm_75", "sm_86", "is code for sm_75, which runs on compute capability 7.x only"),
        ("sm_90a", "sm_100", "is code for sm_90a, which runs on compute capability 9.0 only"),
        ("sm_100f", "sm_120", "is code for sm_100f, whose family sm_120 is not of"),
        ("compute_80", "sm_90", "is PTX for compute_80, compiled for sm_90 when it is loaded"),
        ("compute_90", "sm_86", "is PTX for compute_90, newer than sm_86"),
        (
            "compute_90a",
            "sm_89",
            "is PTX for compute_90a, which runs on compute capability 9.0 only",
        ),
    ] {
        assert_eq!(said(code, device), words, "{code} for {device}");
    }
}

#[test]
fn portable_code_covers_every_processor() {
    let portable = target("hip", "spirv64-amd-amdhsa-", "amdgcnspirv");
    let covers = |processor: &str| Verdict::PortableCovers { processor: processor.into() };
    assert_eq!(compatible(&portable, &hip("gfx90a:xnack+")), covers("gfx90a"));
    assert_eq!(compatible(&portable, &open("gfx90a:xnack+")), covers("gfx90a"));
    assert_eq!(compatible(&open("amdgcnspirv"), &hip("gfx9999")), covers("gfx9999"));
    for other in [
        open("sm_70"),
        open("gfx90a:broken"),
        hip("gfx9-generic"),
        target("hip", "amdgcn-amd-amdpal", "gfx906"),
    ] {
        assert!(!compatible(&portable, &other).is_compatible(), "{other}");
    }
    let verdict = compatible(&portable, &target("openmp", "amdgcn-amd-amdhsa-", "gfx906"));
    assert!(matches!(verdict, Verdict::KindMismatch { .. }));
    let plain = target("hip", "spirv64-unknown-unknown-unknown", "generic");
    assert!(!compatible(&plain, &hip("gfx906")).is_compatible());
    for triple in ["spir64", "spir64-unknown-unknown", "spirv64-intel"] {
        let plain = target("sycl", triple, "");
        assert_eq!(compatible(&plain, &open("bmg_g21")), covers("bmg_g21"), "{triple}");
        assert_eq!(compatible(&plain, &open("intel_gpu_pvc")), covers("intel_gpu_pvc"));
        assert!(!compatible(&plain, &open("gfx906")).is_compatible());
        assert!(!compatible(&plain, &open("sm_90")).is_compatible());
    }
    // Machine code, for which processors the triple does not say.
    assert!(!compatible(&target("sycl", "spir64_gen", ""), &open("bmg_g21")).is_compatible());
    assert!(!compatible(&portable, &open("bmg_g21")).is_compatible());
}

#[test]
fn unusable_target_ids_cannot_be_compared() {
    let old = verdict("gfx906+xnack", "gfx906:xnack+");
    assert!(matches!(
        old,
        Verdict::UnparsableCodeObject(error) if error.kind() == ErrorKind::OldSpelling
    ));
    let broken = verdict("gfx906", "gfx906:xnack");
    assert!(matches!(
        broken,
        Verdict::UnparsableTarget(error) if error.kind() == ErrorKind::MissingSign
    ));
}

#[test]
fn best_match_first() {
    let device = "gfx942:sramecc+:xnack-";
    let best_first = [
        hip("gfx942:sramecc+:xnack-"),
        hip("gfx942:xnack-:sramecc+"),
        hip("gfx942:xnack-"),
        hip("gfx942"),
        hip("gfx9-4-generic:xnack-"),
        hip("gfx9-4-generic"),
        target("hip", "spirv64-amd-amdhsa-", "amdgcnspirv"),
        hip("gfx908"),
    ];
    let ranks: Vec<u32> =
        best_first.iter().map(|code| compatible(code, &hip(device)).rank()).collect();
    assert!(ranks.is_sorted_by(|a, b| a < b), "{ranks:?}");
    assert_eq!(ranks.last(), Some(&u32::MAX));
}

/// `specification.rs` judges the debug texts.
#[test]
fn verdicts_have_a_sentence() {
    let old = "cannot be compared: target ID \"gfx906+xnack\" is spelled as in code object V2 or V3; \
               since V4 it is written \"gfx906:sramecc-:xnack+\"";
    for (code_object, device, sentence) in [
        ("gfx90a", "gfx90a", "is an exact match"),
        ("gfx90a:", "gfx90a", "is for this target, spelled differently"),
        ("gfx90a", "gfx90a:xnack+:sramecc+", "runs with sramecc and xnack on or off"),
        ("gfx9-generic", "gfx906", "is generic code, gfx9-generic covers gfx906"),
        ("gfx9-generic", "gfx906:xnack+", "is generic code, gfx9-generic covers gfx906"),
        ("gfx90a:xnack+", "gfx90a:xnack-", "needs xnack on, the device has it off"),
        ("gfx90a:sramecc-", "gfx90a:xnack-", "needs sramecc off, the target leaves it open"),
        ("gfx90a:xnack+", "gfx90a", "needs xnack on, the target leaves it open"),
        ("gfx90a", "gfx908", "is for gfx90a, not for gfx908"),
        ("gfx90a", "", "cannot be compared: the target names no processor"),
        ("gfx906+xnack", "gfx906", old),
    ] {
        assert_eq!(verdict(code_object, device).to_string(), sentence);
    }
    let kinds = compatible(&hip("gfx906"), &target("openmp", "amdgcn-amd-amdhsa-", "gfx906"));
    assert_eq!(kinds.to_string(), "is for hip, not for openmp");
}

#[test]
fn verdicts_are_one_line_whatever_the_names() {
    let given = [
        target("a\n", "b\x1b[2J--", "c"),
        target("a\r", "b\x1b[2J--", "c"),
        target("a\n", "b\x07--", "c"),
        target("a\n", "b\x07--", "c\n"),
        target("a\n", "b\x07--", "c\n:\n+"),
        target("a\n", "b\x07--", "c\n:\n-"),
        target("a\n", "b\x07--", "c\n:\n-:\x1b+"),
    ];
    for a in &given {
        for b in &given {
            let text = compatible(a, b).to_string();
            assert!(!text.contains(char::is_control), "{text:?}");
        }
    }
}
