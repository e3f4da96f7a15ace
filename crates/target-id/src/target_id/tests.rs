use super::*;
use alloc::format;
use proptest::prelude::*;

fn canonical(text: &str) -> Result<String, Error> {
    TargetId::parse(text).map(|id| id.to_string())
}

fn duplicate(feature: &str, offset: usize) -> Error {
    let text = format!(
        "target ID repeats the feature \"{feature}\" at offset {offset}, expected each feature once"
    );
    Error::new(ErrorKind::DuplicateFeature, offset, text)
}

fn unsupported(processor: &str, feature: &str, offset: usize) -> Error {
    let text = format!(
        "target ID gives \"{processor}\" the feature \"{feature}\" at offset {offset}, which that processor does not have"
    );
    Error::new(ErrorKind::UnsupportedFeature, offset, text)
}

fn not_allowed(processor: &str, offset: usize) -> Error {
    let text = format!(
        "target ID gives \"{processor}\" features at offset {offset}, which that processor does not take"
    );
    Error::new(ErrorKind::UnsupportedFeature, offset, text)
}

#[test]
fn canonical_forms_are_sorted_and_complete() {
    for (given, expected) in [
        ("gfx906", "gfx906"),
        ("gfx906:xnack+:sramecc-", "gfx906:sramecc-:xnack+"),
        ("gfx906:", "gfx906"),
        ("gfx906:xnack+:", "gfx906:xnack+"),
        ("tahiti", "gfx600"),
        ("carrizo:xnack-", "gfx801:xnack-"),
        ("gfx940:xnack+", "gfx940:xnack+"),
        ("gfx9-4-generic:xnack+:sramecc+", "gfx9-4-generic:sramecc+:xnack+"),
        ("sm_90a", "sm_90a"),
        ("amdgcnspirv", "amdgcnspirv"),
        ("generic", "generic"),
        ("rv630", "r600"),
        // Unknown to this crate, and kept.
        ("gfx9999", "gfx9999"),
        ("gfx9999:zeta-:alpha+", "gfx9999:alpha+:zeta-"),
        ("GFX906:xnack+", "GFX906:xnack+"),
        ("gfx906-foo", "gfx906-foo"),
        ("sm_99", "sm_99"),
        ("foo+bar", "foo+bar"),
        ("é:ü+", "é:ü+"),
    ] {
        assert_eq!(canonical(given).as_deref(), Ok(expected), "{given}");
    }
}

#[test]
fn an_empty_processor_is_an_error() {
    for text in ["", ":", ":xnack+"] {
        assert_eq!(canonical(text), Err(Error::empty_processor()), "{text}");
    }
}

#[test]
fn an_empty_feature_is_an_error() {
    for (text, offset) in [
        ("gfx906::", 7),
        ("gfx906::xnack+", 7),
        ("gfx906:xnack+::", 14),
        ("gfx9999:+", 8),
        ("gfx9999:-", 8),
    ] {
        assert_eq!(canonical(text), Err(Error::empty_feature(offset)), "{text}");
    }
}

#[test]
fn a_missing_sign_is_an_error() {
    for (text, feature, offset) in [
        ("gfx906:xnack", "xnack", 7),
        ("gfx906:sramecc+:xnack", "xnack", 16),
        ("gfx9999:x*", "x*", 8),
    ] {
        let message = format!(
            r#"target ID feature "{feature}" at offset {offset} lacks its sign, expected "+" or "-""#
        );
        let error = Error::new(ErrorKind::MissingSign, offset, message);
        assert_eq!(canonical(text), Err(error), "{text}");
    }
}

#[test]
fn a_duplicate_feature_is_an_error() {
    for (text, feature, offset) in [
        ("gfx906:xnack+:xnack-", "xnack", 14),
        ("gfx906:xnack+:sramecc+:xnack+", "xnack", 23),
        ("gfx9999:a+:a+", "a", 11),
    ] {
        assert_eq!(canonical(text), Err(duplicate(feature, offset)), "{text}");
    }
}

#[test]
fn an_unsupported_feature_is_an_error() {
    for (text, processor, feature, offset) in [
        ("gfx1030:xnack+", "gfx1030", "xnack", 8),
        ("gfx900:xnack+:sramecc+", "gfx900", "sramecc", 14),
        ("tahiti:xnack+", "gfx600", "xnack", 7),
        ("gfx906:foo+", "gfx906", "foo", 7),
        ("cayman:xnack+", "cayman", "xnack", 7),
    ] {
        assert_eq!(canonical(text), Err(unsupported(processor, feature, offset)), "{text}");
    }
}

#[test]
fn features_are_an_error_where_none_are_allowed() {
    for (text, processor, offset) in [
        ("sm_70:xnack+", "sm_70", 6),
        ("amdgcnspirv:xnack+", "amdgcnspirv", 12),
        ("generic:x", "generic", 8),
    ] {
        assert_eq!(canonical(text), Err(not_allowed(processor, offset)), "{text}");
    }
    let nvptx = Triple::parse("nvptx64-nvidia-cuda");
    let error = TargetId::parse_for(&nvptx, "gfx906:xnack+");
    assert_eq!(error, Err(not_allowed("gfx906", 7)));
}

#[test]
fn the_triple_decides_the_family() {
    let parse = |triple: &str, text| TargetId::parse_for(&Triple::parse(triple), text);
    for (triple, text) in [
        ("amdgcn-amd-amdhsa", "sm_70"),
        ("r600--", "gfx906"),
        ("amdgcn--", "cayman"),
        ("r600--", "generic"),
    ] {
        let arch = triple.split('-').next().unwrap();
        let message = format!(
            "target ID names the processor \"{text}\", which is not one of the architecture \"{arch}\""
        );
        let error = Error::new(ErrorKind::ForeignProcessor, None, message);
        assert_eq!(parse(triple, text), Err(error));
    }
    assert_eq!(parse("nvptx64-nvidia-cuda", "gfx906").unwrap().processor_info(), None);
    assert_eq!(parse("amdgcn--", "generic").unwrap().processor(), "generic");
    assert_eq!(parse("amdgcn--", "gfx9999:new+").unwrap().to_string(), "gfx9999:new+");
    assert_eq!(parse("r600--", "rv770").unwrap().processor(), "rv770");
    // As without a triple.
    assert_eq!(parse("futurearch--", "gfx906:xnack+").unwrap().to_string(), "gfx906:xnack+");
    assert_eq!(parse("amdgcn--", ""), Err(Error::empty_processor()));
    assert_eq!(parse("nvptx--", ""), Err(Error::empty_processor()));
}

#[test]
fn accessors_return_the_parts() {
    let id = TargetId::parse("gfx90a:xnack+").unwrap();
    assert_eq!(id.processor_info(), Processor::amdgpu("gfx90a"));
    assert_eq!(id.setting(&Feature::Xnack), Some(Setting::On));
    assert_eq!(id.setting(&Feature::Sramecc), None);
    assert_eq!(id.features().collect::<Vec<_>>(), [(&Feature::Xnack, Setting::On)]);
    assert_eq!(id, TargetId::parse("gfx90a:xnack+:").unwrap());
}

#[test]
fn the_old_spelling_is_recognised() {
    for (old, current) in [
        ("gfx906+xnack", "gfx906:sramecc-:xnack+"),
        ("gfx908+sram-ecc", "gfx908:sramecc+:xnack-"),
        ("gfx908+xnack+sram-ecc", "gfx908:sramecc+:xnack+"),
        ("gfx902+xnack", "gfx902:xnack+"),
    ] {
        assert_eq!(TargetId::parse_v3(old).unwrap().to_string(), current);
        let message = format!(
            "target ID \"{old}\" is spelled as in code object V2 or V3; since V4 it is written \"{current}\""
        );
        let error = Error::new(ErrorKind::OldSpelling, None, message);
        assert_eq!(canonical(old), Err(error.clone()));
        assert_eq!(TargetId::parse_for(&Triple::parse("amdgcn-amd-amdhsa"), old), Err(error));
    }
    assert_eq!(TargetId::parse_v3("gfx900").unwrap().to_string(), "gfx900:xnack-");
    assert_eq!(TargetId::parse_v3("gfx9999+new").unwrap().to_string(), "gfx9999:new+");
}

#[test]
fn malformed_old_spellings_are_errors() {
    assert_eq!(TargetId::parse_v3(""), Err(Error::empty_processor()));
    assert_eq!(TargetId::parse_v3("+xnack"), Err(Error::empty_processor()));
    assert_eq!(TargetId::parse_v3("gfx906+"), Err(Error::empty_feature(7)));
    assert_eq!(TargetId::parse_v3("gfx906++xnack"), Err(Error::empty_feature(7)));
    assert_eq!(TargetId::parse_v3("gfx906+xnack+xnack"), Err(duplicate("xnack", 13)));
    assert_eq!(TargetId::parse_v3("gfx900+sram-ecc"), Err(unsupported("gfx900", "sramecc", 7)));
}

#[test]
fn messages_are_one_line_whatever_the_names() {
    let amdgcn = Triple::parse("amdgcn-amd-\x1b[2J");
    for text in ["gfx\n:\x1b[31m", "a:\x07+:\x07-", "gfx906:\n+", "sm_70\n:xnack+", "sm_70"] {
        let parsed = [TargetId::parse(text), TargetId::parse_for(&amdgcn, text)];
        for error in parsed.into_iter().filter_map(Result::err) {
            assert!(!error.to_string().contains(char::is_control), "{error}");
        }
    }
    assert_eq!(
        TargetId::parse("gfx\n:xnack").unwrap_err().to_string(),
        r#"target ID feature "xnack" at offset 5 lacks its sign, expected "+" or "-""#
    );
}

#[test]
fn many_features_are_read_quickly() {
    let count = if cfg!(miri) { 100 } else { 50_000 };
    let mut text = String::from("unknown");
    for number in 0..count {
        text.push_str(&format!(":f{number}+"));
    }
    assert_eq!(TargetId::parse(&text).unwrap().features().len(), count);
}

proptest! {
    #[test]
    fn canonical_forms_are_stable(text in ".*|(gfx906|gfx90a|gfx9|sm_70|tahiti)(:(xnack|sramecc|a|b)[+-]){0,4}:?") {
        if let Ok(id) = TargetId::parse(&text) {
            prop_assert_eq!(TargetId::parse(&id.to_string()), Ok(id));
        }
    }
}

#[test]
fn isa_versions_of_code_objects_v2_name_processors() {
    for (version, flags, expected) in [
        ([6, 0, 2], 0, Some("gfx602")),
        ([7, 0, 5], 0, Some("gfx705")),
        ([8, 0, 0], 0, Some("gfx802")),
        ([8, 0, 1], 1, Some("gfx801:xnack+")),
        ([8, 0, 3], 0x2a, Some("gfx803")),
        ([8, 0, 3], 1, Some("gfx803")),
        ([8, 0, 4], 0, Some("gfx803")),
        ([8, 1, 0], 3, Some("gfx810:xnack+")),
        ([9, 0, 0], 0x2c, Some("gfx900")),
        ([9, 0, 0], 2, Some("gfx900")),
        ([9, 0, 3], 0, Some("gfx902:xnack+")),
        ([9, 0, 6], 0x22f, Some("gfx906")),
        ([9, 0, 7], 0x22f, Some("gfx906:xnack+")),
        ([9, 0, 12], 0, Some("gfx90c")),
        ([9, 0, 8], 0x230, Some("gfx908")),
        ([9, 0, 11], 0, None),
        ([8, 0, 6], 0, None),
        ([10, 1, 0], 0, None),
        ([u32::MAX; 3], u32::MAX, None),
    ] {
        let id = TargetId::from_isa_version(version, flags);
        assert_eq!(id.as_ref().map(ToString::to_string).as_deref(), expected, "{version:?}");
        assert_eq!(id, expected.and_then(|text| TargetId::parse(text).ok()));
    }
}

#[test]
fn elf_flags_tell_the_target_id() {
    // As clang 22 sets them: clang --target=amdgcn-amd-amdhsa -nogpulib -mcpu=gfx90a:xnack+ -mcode-object-version=6 ...
    for (flags, abi_version, expected) in [
        (0x53f, 4, "gfx90a"),
        (0x73f, 4, "gfx90a:xnack+"),
        (0x63f, 4, "gfx90a:xnack-"),
        (0xf3f, 3, "gfx90a:sramecc+:xnack+"),
        (0x93f, 2, "gfx90a:sramecc-"),
        (0x33f, 1, "gfx90a"),
        (0x549, 4, "gfx1250"),
        (0x41, 3, "gfx1100"),
        (0x0100_0151, 4, "gfx9-generic"),
    ] {
        let id = TargetId::from_elf_flags(flags, abi_version).unwrap();
        assert_eq!(id.to_string(), expected);
        assert_eq!(TargetId::parse(expected), Ok(id));
    }
    // There the processor has no such feature.
    assert_eq!(TargetId::from_elf_flags(0x341, 4), TargetId::parse("gfx1100").ok());
    assert_eq!(TargetId::from_elf_flags(0x27, 4), None);
    // LLVM 22 and 23, compilers of AMD's, LLVM 24.
    for (flags, expected) in [
        (0x549, "gfx1250"),
        (0x749, "gfx1250"),
        (0x649, "gfx1250"),
        (0xd49, "gfx1250:sramecc+"),
        (0x55a, "gfx1251"),
        (0x149, "gfx1250"),
        (0x349, "gfx1250:xnack+"),
        (0x25a, "gfx1251:xnack-"),
        (0x1eb, "gfx1250-strict"),
        (0x2eb, "gfx1250-strict:xnack-"),
        (0x0100_055b, "gfx12-5-generic"),
        (0x0100_075b, "gfx12-5-generic"),
        (0x0100_005b, "gfx12-5-generic"),
    ] {
        assert_eq!(
            TargetId::from_elf_flags(flags, 4),
            TargetId::parse(expected).ok(),
            "{flags:#x}"
        );
    }
}
