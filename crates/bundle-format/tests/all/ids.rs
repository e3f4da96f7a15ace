//! Bundle entry IDs and what goes into one bundle.

use bundle_format::{CompositionFinding, EntryId, ErrorKind, composition};
use target_id::Feature;
use target_id::OffloadKind;

/// Triple, target ID, and whether the triple has three fields.
fn parts(text: &str) -> (&str, &str, bool) {
    let id = EntryId::parse(text).unwrap();
    assert_eq!(id.as_str(), text);
    assert_eq!(id.to_string(), text);
    (id.triple(), id.target_id(), id.is_three_field())
}

#[test]
fn ids_are_split_into_fields() {
    for (text, expected) in [
        ("hip-amdgcn-amd-amdhsa--gfx906", ("amdgcn-amd-amdhsa-", "gfx906", false)),
        ("hip-amdgcn-amd-amdhsa--gfx906:xnack-", ("amdgcn-amd-amdhsa-", "gfx906:xnack-", false)),
        (
            "hip-amdgcn-amd-amdhsa--gfx9-4-generic:xnack+",
            ("amdgcn-amd-amdhsa-", "gfx9-4-generic:xnack+", false),
        ),
        ("hip-amdgcn-amd-amdhsa-unknown-gfx906", ("amdgcn-amd-amdhsa-unknown", "gfx906", false)),
        ("hip-amdgcn-amd-amdhsa--", ("amdgcn-amd-amdhsa-", "", false)),
        ("hip-amdgcn-amd-amdhsa-", ("amdgcn-amd-amdhsa-", "", false)),
        ("host-x86_64-unknown-linux-gnu", ("x86_64-unknown-linux-gnu", "", false)),
        ("host-x86_64-unknown-linux-gnu-", ("x86_64-unknown-linux-gnu", "", false)),
        ("host-x86_64---", ("x86_64---", "", false)),
        ("host----", ("---", "", false)),
        ("----", ("---", "", false)),
        ("host-x86_64-unknown-linux-generic", ("x86_64-unknown-linux-generic", "", false)),
        ("openmp-nvptx64-nvidia-cuda--sm_70", ("nvptx64-nvidia-cuda-", "sm_70", false)),
        ("odd-a-b-c-d-e-f", ("a-b-c-d", "e-f", false)),
        // code object V2 and V3
        ("hip-amdgcn-amd-amdhsa--gfx906+xnack", ("amdgcn-amd-amdhsa-", "gfx906+xnack", false)),
        // old: no environment
        ("hip-amdgcn-amd-amdhsa-gfx906", ("amdgcn-amd-amdhsa", "gfx906", true)),
        ("hip-amdgcn-amd-amdhsa-gfx906:xnack-", ("amdgcn-amd-amdhsa", "gfx906:xnack-", true)),
        (
            "hip-amdgcn-amd-amdhsa-gfx906:sramecc-:xnack+",
            ("amdgcn-amd-amdhsa", "gfx906:sramecc-:xnack+", true),
        ),
        ("hip-amdgcn-amd-amdhsa-gfx906+xnack", ("amdgcn-amd-amdhsa", "gfx906+xnack", true)),
        ("hip-amdgcn-amd-amdhsa-gfx9-4-generic", ("amdgcn-amd-amdhsa", "gfx9-4-generic", true)),
        ("openmp-nvptx64-nvidia-cuda-sm_70", ("nvptx64-nvidia-cuda", "sm_70", true)),
        ("openmp-nvptx64-nvidia-cuda-sm_70-", ("nvptx64-nvidia-cuda", "sm_70", true)),
        ("host-x86_64-unknown-linux", ("x86_64-unknown-linux", "", true)),
        // not old: the environment is not a processor
        ("openmp-nvptx64-nvidia-cuda-sm_7", ("nvptx64-nvidia-cuda-sm_7", "", false)),
        ("hip-amdgcn-amd-amdhsa-gfx906-gfx908", ("amdgcn-amd-amdhsa-gfx906", "gfx908", false)),
    ] {
        assert_eq!(parts(text), expected, "{text}");
    }
}

#[test]
fn too_few_fields_are_an_error() {
    for (id, fields) in [
        ("", 1),
        ("gfx906", 1),
        ("host-x86_64-linux", 3),
        ("openmp-amdgcn-amdhsa-gfx906:xnack+", 4),
        ("hip-amdgcn-amd-amdhsa", 4),
    ] {
        let error = EntryId::parse(id).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Id);
        let start =
            format!("bundle entry ID {id:?} has {fields} fields between its \"-\", expected ");
        assert!(error.to_string().starts_with(&start), "{error}");
    }
}

#[test]
fn kinds_are_read() {
    let kind = |text| EntryId::parse(text).unwrap().kind();
    assert_eq!(kind("hipv4-amdgcn-amd-amdhsa--gfx906"), OffloadKind::HipV4);
    assert_eq!(kind("Hip-amdgcn-amd-amdhsa--gfx906"), OffloadKind::Other("Hip".to_owned()));
    assert!(EntryId::parse("host-x86_64---").unwrap().is_host());
    assert!(!EntryId::parse("hip-x86_64---").unwrap().is_host());
}

#[test]
fn targets_have_the_fields_of_the_id() {
    let target = EntryId::parse("hip-amdgcn-amd-amdhsa--gfx906:xnack+").unwrap().target();
    assert_eq!(target.kind(), Some(&OffloadKind::Hip));
    assert_eq!(target.triple().unwrap().as_str(), "amdgcn-amd-amdhsa-");
    assert_eq!(target.id(), "gfx906:xnack+");
}

/// IDs that clang-offload-bundler of LLVM 22 makes of its targets:
/// `clang-offload-bundler --type=bc --targets=... --input=... --output=b` and `--list` of that.
const WRITTEN_BY_LLVM: [(&str, &str); 25] = [
    ("host-x86_64-unknown-linux-gnu", "host-x86_64-unknown-linux-gnu-"),
    ("host-x86_64-unknown-linux-", "host-x86_64-unknown-linux-unknown-"),
    ("host-x86_64-unknown-linux--", "host-x86_64-unknown-linux-unknown-"),
    ("host-x86_64--linux-gnu", "host-x86_64-unknown-linux-gnu-"),
    ("host-x86_64-linux-gnu-", "host-x86_64-unknown-linux-gnu-"),
    ("host-x86_64-linux--gnu", "host-x86_64-unknown-linux-gnu-"),
    ("host-x86_64---", "host-x86_64-unknown-unknown-unknown-"),
    ("host-amd64-unknown-linux-gnu", "host-amd64-unknown-linux-gnu-"),
    ("host-ppc64le-ibm-linux-gnu", "host-ppc64le-ibm-linux-gnu-"),
    ("host-x86_64-pc-windows-", "host-x86_64-pc-windows-msvc-"),
    ("host-x86_64-pc-win32-", "host-x86_64-pc-windows-msvc-"),
    ("host-x86_64-w64-mingw32-", "host-x86_64-w64-windows-gnu-"),
    ("host-armv7-none-linux-androideabi", "host-armv7-none-linux-android-"),
    ("host-x86_64-apple-macosx11.0-", "host-x86_64-apple-macosx11.0-unknown-"),
    ("openmp-amdgcn-amd-amdhsa--gfx906", "openmp-amdgcn-amd-amdhsa--gfx906"),
    ("openmp-amdgcn-amd-amdhsa-unknown-gfx906", "openmp-amdgcn-amd-amdhsa--gfx906"),
    ("openmp-amdgcn-amd-amdhsa-llvm-gfx906", "openmp-amdgcn-amd-amdhsa--gfx906"),
    ("openmp-amdgcn-amd-amdhsa-foo-gfx906", "openmp-amdgcn-amd-amdhsa--gfx906"),
    ("openmp-amdgcn--amdhsa--gfx906", "openmp-amdgcn-unknown-amdhsa--gfx906"),
    ("openmp-amdgcn-amd-amdpal--gfx906", "openmp-amdgcn-amd-amdpal-unknown-gfx906"),
    ("openmp-nvptx64-nvidia-cuda--sm_70", "openmp-nvptx64-nvidia-cuda-unknown-sm_70"),
    ("hip-spirv64-amd-amdhsa-unknown-amdgcnspirv", "hip-spirv64-amd-amdhsa--amdgcnspirv"),
    ("hip-spirv64----generic", "hip-spirv64-unknown-unknown-unknown-generic"),
    ("hip-amdgcn-amd-amdhsa--gfx942:xnack+", "hip-amdgcn-amd-amdhsa--gfx942:xnack+"),
    // clang-offload-bundler of LLVM 23, which knows this architecture.
    ("openmp-amdgpu-amd-amdhsa--gfx906", "openmp-amdgpu-amd-amdhsa--gfx906"),
];

#[test]
fn standardized_ids_are_those_of_llvm() {
    let as_typed = "hip-amdgcn-amd-amdhsa--gfx906:xnack+:sramecc-";
    for (given, written) in WRITTEN_BY_LLVM.into_iter().chain([(as_typed, as_typed)]) {
        assert_eq!(EntryId::parse(given).unwrap().standardized(), written);
    }
}

#[test]
fn standardizing_loses_no_target_id() {
    for (given, written) in [
        ("hip-amdgcn-amd-amdhsa--gfx999", "hip-amdgcn-amd-amdhsa--gfx999"),
        ("hip-amdgcn-amd-amdhsa--gfx940", "hip-amdgcn-amd-amdhsa--gfx940"),
        ("hip-amdgcn-amd-amdhsa-gfx906", "hip-amdgcn-amd-amdhsa--gfx906"),
        ("openmp-nvptx64-nvidia-cuda-sm_70-", "openmp-nvptx64-nvidia-cuda-unknown-sm_70"),
        ("host-x86_64-unknown-linux-gnu-foo", "host-x86_64-unknown-linux-gnu-foo"),
        ("host-x86_64-unknown-linux", "host-x86_64-unknown-linux-unknown-"),
    ] {
        assert_eq!(EntryId::parse(given).unwrap().standardized(), written);
    }
}

/// The IDs that are written are those of LLVM, except where that loses something.
#[test]
fn canonical_ids_are_those_of_llvm_where_nothing_is_lost() {
    for (given, written) in WRITTEN_BY_LLVM.into_iter().chain([
        // as typed by LLVM 22
        (
            "hip-amdgcn-amd-amdhsa--gfx906:xnack+:sramecc-",
            "hip-amdgcn-amd-amdhsa--gfx906:sramecc-:xnack+",
        ),
        ("hip-amdgcn-amd-amdhsa--gfx906:", "hip-amdgcn-amd-amdhsa--gfx906"),
        // without target ID by LLVM 22
        ("hip-amdgcn-amd-amdhsa--tahiti", "hip-amdgcn-amd-amdhsa--gfx600"),
        ("hip-amdgcn-amd-amdhsa--gfx940:xnack+", "hip-amdgcn-amd-amdhsa--gfx940:xnack+"),
        ("hip-amdgcn-amd-amdhsa--gfx999", "hip-amdgcn-amd-amdhsa--gfx999"),
        ("hip-amdgcn-amd-amdhsa--gfx999:b-:a+", "hip-amdgcn-amd-amdhsa--gfx999:a+:b-"),
        ("hip-amdgcn-amd-amdhsa--gfx906+xnack", "hip-amdgcn-amd-amdhsa--gfx906+xnack"),
        ("openmp-nvptx64-nvidia-cuda--tahiti", "openmp-nvptx64-nvidia-cuda-unknown-tahiti"),
        ("host-x86_64-unknown-linux-gnu-foo", "host-x86_64-unknown-linux-gnu-foo"),
        // the processor is taken for the environment by LLVM 22
        ("hip-amdgcn-amd-amdhsa-gfx906:xnack-", "hip-amdgcn-amd-amdhsa--gfx906:xnack-"),
        ("hip-amdgcn-amd-amdhsa-tahiti", "hip-amdgcn-amd-amdhsa--gfx600"),
        ("openmp-nvptx64-nvidia-cuda-sm_70", "openmp-nvptx64-nvidia-cuda-unknown-sm_70"),
        // refused by LLVM 22
        ("host-x86_64-unknown-linux", "host-x86_64-unknown-linux-unknown-"),
        // cannot be read
        ("hip-amdgcn-amd-amdhsa--gfx906:foo", "hip-amdgcn-amd-amdhsa--gfx906:foo"),
        (
            "hip-amdgcn-amd-amdhsa--gfx906:xnack+:xnack-",
            "hip-amdgcn-amd-amdhsa--gfx906:xnack+:xnack-",
        ),
    ]) {
        let canonical = EntryId::parse(given).unwrap().canonical();
        assert_eq!(canonical, written, "{given}");
        assert_eq!(EntryId::parse(&canonical).unwrap().canonical(), canonical);
    }
}

#[test]
fn valid_bundles_have_no_findings() {
    assert!(composition([]).is_empty());
    let ids = [
        "host-x86_64-unknown-linux-gnu-",
        "hipv4-amdgcn-amd-amdhsa--gfx906:xnack+",
        "hipv4-amdgcn-amd-amdhsa--gfx906:xnack-",
        "hipv4-amdgcn-amd-amdhsa--gfx908",
        "openmp-amdgcn-amd-amdhsa--gfx906",
        "hip-spirv64-amd-amdhsa--amdgcnspirv",
        "openmp-nvptx64-nvidia-cuda--sm_70",
        "hip-amdgcn-amd-amdhsa--gfx900+xnack",
        "hip-amdgcn-amd-amdhsa--gfx999",
    ];
    let findings = composition(ids);
    assert!(findings.is_empty(), "{findings:?}");
}

/// Both entries of each finding, and the feature that only one of them sets.
fn places(findings: &[CompositionFinding]) -> Vec<(Option<usize>, usize, Option<&str>)> {
    findings
        .iter()
        .map(|finding| (finding.first(), finding.index(), finding.feature().map(Feature::as_str)))
        .collect()
}

#[test]
fn duplicates_are_findings() {
    let ids = [
        "hip-amdgcn-amd-amdhsa--gfx906:xnack+:sramecc-",
        "hip-amdgcn-amd-amdhsa-unknown-gfx906:sramecc-:xnack+",
        "hip-amdgcn-amd-amdhsa--gfx908",
        "hip-amdgcn-amd-amdhsa--gfx908",
    ];
    let findings = composition(ids);
    assert_eq!(places(&findings), [(Some(0), 1, None), (Some(2), 3, None)]);
    assert_eq!(
        findings[0].to_string(),
        "bundle entries 0 and 1 have the IDs \"hip-amdgcn-amd-amdhsa--gfx906:xnack+:sramecc-\" and \
         \"hip-amdgcn-amd-amdhsa-unknown-gfx906:sramecc-:xnack+\", which mean the same",
    );
    assert_eq!(
        findings[1].to_string(),
        "bundle entries 2 and 3 both have the ID \"hip-amdgcn-amd-amdhsa--gfx908\"",
    );
}

#[test]
fn features_in_some_entries_only_are_findings() {
    // Found in both directions; the bundler of LLVM 22 lets the second pass.
    for (ids, feature) in [
        (["odd", "hip-amdgcn-amd-amdhsa--gfx906", "hip-amdgcn-amd-amdhsa--gfx906:xnack+"], "xnack"),
        (
            [
                "odd",
                "hip-amdgcn-amd-amdhsa--gfx906:sramecc+:xnack+",
                "hip-amdgcn-amd-amdhsa--gfx906:xnack-",
            ],
            "sramecc",
        ),
    ] {
        let findings = composition(ids);
        assert_eq!(places(&findings), [(None, 0, None), (Some(1), 2, Some(feature))]);
        assert!(
            findings[1].to_string().contains("only one of them has a setting for "),
            "{}",
            findings[1]
        );
    }
}

#[test]
fn invalid_ids_are_findings() {
    let findings = composition(["hip-gfx906", "hip-amdgcn-amd-amdhsa--gfx906:xnack", "hip-gfx906"]);
    let places = places(&findings);
    assert_eq!(places, [(None, 0, None), (None, 1, None), (None, 2, None), (Some(0), 2, None)]);
    let error = EntryId::parse("hip-gfx906").unwrap_err();
    for index in [0, 2] {
        assert_eq!(findings[index].to_string(), format!("bundle entry {index}: {error}"));
    }
    let error = target_id::TargetId::parse("gfx906:xnack").unwrap_err();
    assert_eq!(error.kind(), target_id::ErrorKind::MissingSign);
    assert_eq!(
        findings[1].to_string(),
        format!("bundle entry 1 has the ID \"hip-amdgcn-amd-amdhsa--gfx906:xnack\": {error}")
    );
    assert_eq!(
        findings[0].to_string(),
        "bundle entry 0: bundle entry ID \"hip-gfx906\" has 2 fields between its \"-\", expected \
         \"<kind>-<arch>-<vendor>-<os>-<environment>\" with or without \"-<target id>\"",
    );
}

/// As found in the section names of a library linked by Intel's SYCL compiler (oneAPI 2025).
#[test]
fn short_sycl_ids_are_read() {
    for (text, triple) in [("sycl-spir64", "spir64"), ("sycl-spir64_gen", "spir64_gen")] {
        let id = EntryId::parse(text).unwrap();
        assert_eq!((id.triple(), id.target_id()), (triple, ""));
        assert_eq!(id.kind(), OffloadKind::Sycl);
        assert!(id.is_three_field());
    }
    assert!(EntryId::parse("sycl-").is_err());
    assert!(EntryId::parse("hip-spir64").is_err());
}

#[test]
fn findings_are_one_line_whatever_the_ids() {
    let findings = composition([
        "a\n",
        "a\n",
        "hip-amdgcn-amd-amdhsa--gfx906:\x1b+",
        "hip-amdgcn-amd-amdhsa--x:\n+",
        "hip-amdgcn-amd-amdhsa--x:\n+",
        "hip-amdgcn-amd-amdhsa--x",
    ]);
    assert_eq!(findings.len(), 7);
    for finding in findings {
        let text = finding.to_string();
        assert!(!text.contains(char::is_control), "{text:?}");
    }
}

#[test]
fn control_characters_are_invalid() {
    for control in ['\0', '\n', '\x7f', '\u{9b}'] {
        let id = format!("hipv4-amdgc{control}-amd-amdhsa--gfx90a");
        assert!(EntryId::parse(&id).is_ok());
        let findings = composition([&id[..], "hipv4-amdgcn-amd-amdhsa--gfx90a"]);
        assert_eq!(places(&findings), [(None, 0, None)]);
        let text = format!(
            "bundle entry 0: bundle entry ID {id:?} has a control character at its byte 11"
        );
        assert_eq!(findings[0].to_string(), text);
    }
    assert_eq!(
        composition(["hipv4-amdgc\0-amd-amdhsa--gfx90a"])[0].to_string(),
        "bundle entry 0: bundle entry ID \"hipv4-amdgc\\0-amd-amdhsa--gfx90a\" has a control character at its byte 11"
    );
}

/// One long ID in the findings of many short ones would make them a multiple of the bundle.
#[test]
fn long_ids_are_invalid_and_not_compared() {
    let id = |len: usize| {
        let start = "hip-amdgcn-amd-amdhsa--gfy1:";
        format!("{start}{}+", "a".repeat(len - start.len() - 1))
    };
    let (longest, too_long) = (id(1024), id(1025));
    let other = "hip-amdgcn-amd-amdhsa--gfy1:b+";
    let findings = composition([&longest[..], other]);
    assert!(matches!(places(&findings)[..], [(Some(0), 1, Some(_))]));
    let findings = composition([&too_long[..], other]);
    assert_eq!(places(&findings), [(None, 0, None)]);
    assert_eq!(
        findings[0].to_string(),
        "bundle entry 0: bundle entry ID has 1025 bytes, expected 1024 at most"
    );
    assert_eq!(
        places(&composition([&too_long[..], &too_long])),
        [(None, 0, None), (None, 1, None), (Some(0), 1, None)]
    );
}
