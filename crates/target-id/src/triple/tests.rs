use super::*;
use proptest::prelude::*;

/// Goldens: `clang-offload-bundler --type=bc --targets=<given> …` of LLVM 22.1.8, the ID it
/// wrote. Kind and target ID are cut off.
#[test]
fn bundle_form_is_that_of_the_bundler() {
    for (given, written) in [
        ("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-gnu"),
        ("x86_64-unknown-linux-", "x86_64-unknown-linux-unknown"),
        ("x86_64--linux-gnu", "x86_64-unknown-linux-gnu"),
        ("x86_64-linux-gnu-", "x86_64-unknown-linux-gnu"),
        ("x86_64-linux--gnu", "x86_64-unknown-linux-gnu"),
        ("x86_64---", "x86_64-unknown-unknown-unknown"),
        ("amd64-unknown-linux-gnu", "amd64-unknown-linux-gnu"),
        ("ppc64le-ibm-linux-gnu", "ppc64le-ibm-linux-gnu"),
        ("x86_64-pc-windows-", "x86_64-pc-windows-msvc"),
        ("x86_64-pc-win32-", "x86_64-pc-windows-msvc"),
        ("x86_64-w64-mingw32-", "x86_64-w64-windows-gnu"),
        ("armv7-none-linux-androideabi", "armv7-none-linux-android"),
        ("x86_64-apple-macosx11.0-", "x86_64-apple-macosx11.0-unknown"),
        ("amdgcn-amd-amdhsa-", "amdgcn-amd-amdhsa-"),
        ("amdgcn-amd-amdhsa-unknown", "amdgcn-amd-amdhsa-"),
        ("amdgcn-amd-amdhsa-llvm", "amdgcn-amd-amdhsa-"),
        ("amdgcn-amd-amdhsa-foo", "amdgcn-amd-amdhsa-"),
        ("amdgcn--amdhsa-", "amdgcn-unknown-amdhsa-"),
        ("amdgcn-amd-amdpal-", "amdgcn-amd-amdpal-unknown"),
        ("nvptx64-nvidia-cuda-", "nvptx64-nvidia-cuda-unknown"),
        ("nvptx64-nvidia-cuda-sm_70", "nvptx64-nvidia-cuda-sm_70"),
        ("spirv64-amd-amdhsa-unknown", "spirv64-amd-amdhsa-"),
        ("spirv64---", "spirv64-unknown-unknown-unknown"),
        // The system is looked for in its own field only.
        ("amdgcn-amdhsa--", "amdgcn-unknown-amdhsa-unknown"),
        ("amdgcn-amdhsa--x", "amdgcn-unknown-amdhsa-x"),
    ] {
        assert_eq!(Triple::parse(given).bundle_form(), written, "{given}");
    }
}

/// LLVM 23 writes these triples; LLVM 22 does not know the architecture.
#[test]
fn the_bundle_form_keeps_amdgpu() {
    for arch in ["amdgpu", "amdgpu9.06", "amdgpufoo"] {
        let triple = Triple::parse(&alloc::format!("{arch}-amd-amdhsa-"));
        assert_eq!(triple.bundle_form(), triple.as_str());
    }
}

#[test]
fn fewer_fields_are_triples_too() {
    assert_eq!(Triple::parse("x86_64-unknown-linux").bundle_form(), "x86_64-unknown-linux-unknown");
    assert_eq!(Triple::parse("amdgcn-amd-amdhsa").bundle_form(), "amdgcn-amd-amdhsa-");
    assert_eq!(Triple::parse("nvptx64").bundle_form(), "nvptx64-unknown-unknown-unknown");
    assert_eq!(Triple::parse("").bundle_form(), "unknown-unknown-unknown-unknown");
}

#[test]
fn fields_are_kept_as_written() {
    let triple = Triple::parse("x86_64-pc-linux-gnu-elf");
    let fields = [triple.arch(), triple.vendor(), triple.os(), triple.environment()];
    assert_eq!(fields, ["x86_64", "pc", "linux", "gnu-elf"]);
    let short = Triple::parse("amdgcn");
    assert_eq!(
        [short.arch(), short.vendor(), short.os(), short.environment()],
        ["amdgcn", "", "", ""]
    );
    assert_eq!(alloc::format!("{triple}"), triple.as_str());
}

#[test]
fn predicates_follow_the_architecture() {
    for (text, amdgpu, nvptx, spirv, known) in [
        ("amdgcn-amd-amdhsa", true, false, false, true),
        ("amdgpu9.06-amd-amdhsa-", true, false, false, true),
        ("nvptx64-nvidia-cuda", false, true, false, true),
        ("nvptx", false, true, false, true),
        ("spirv64-amd-amdhsa-", false, false, true, true),
        ("spirv64v1.3----", false, false, true, true),
        ("spir64-unknown-unknown", false, false, false, true),
        ("r600--", false, false, false, true),
        ("x86_64-unknown-linux-gnu", false, false, false, true),
        ("linux-x86_64", false, false, false, false),
        ("", false, false, false, false),
    ] {
        let triple = Triple::parse(text);
        let found =
            (triple.is_amdgpu(), triple.is_nvptx(), triple.is_spirv(), triple.is_known_arch());
        assert_eq!(found, (amdgpu, nvptx, spirv, known), "{text}");
    }
}

#[test]
fn different_triples_may_be_compatible() {
    for (a, b, fits) in [
        ("amd64-unknown-linux-gnu", "x86_64-unknown-linux-gnu", true),
        ("x86_64-unknown-linux-gnu", "x86_64-pc-linux-gnu", false),
        ("x86_64-unknown-linux-gnu", "x86_64--linux-gnu", true),
        ("x86_64-unknown-linux-gnu", "x86_64-foo-linux5.4-gnu", true),
        ("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl", false),
        ("x86_64-unknown-linux-gnuelf", "x86_64-unknown-linux-gnu", true),
        ("x86_64-unknown-linux-gnucoff", "x86_64-unknown-linux-gnu", false),
        ("amdgcn-amd-amdhsa", "amdgcn-amd-amdhsa-", true),
        ("amdgcn-amd-amdhsa-foo", "amdgcn-amd-amdhsa-", true),
        ("amdgcn-amd-amdhsa-llvm", "amdgcn-amd-amdhsa-", false),
        ("amdgcn-amd-amdhsa-", "amdgcn-amd-amdpal-", false),
        ("amdgcn-hsa-amdhsa-", "amdgcn--amdhsa-", true),
        ("amdgcn-amd-amdhsa-", "amdgpu9.06-amd-amdhsa-", true),
        ("amdgpu9-amd-amdhsa-", "amdgpu9.06-amd-amdhsa-", true),
        ("amdgpu9.00-amd-amdhsa-", "amdgpu9.06-amd-amdhsa-", false),
        ("spirv64-amd-amdhsa-", "spirv64v1.6-amd-amdhsa-", false),
        ("arm64-apple-macosx11.0", "aarch64-apple-macosx14-macabi", true),
        ("x86_64-pc-windows-gnu", "x86_64-w64-windows-gnu", true),
        ("x86_64-pc-windows-msvc", "x86_64-w64-windows-msvc", false),
        ("armv7-none-linux-gnueabi", "thumbv7-none-linux-gnueabi", true),
        ("armv7-none-linux-gnueabi", "armv6-none-linux-gnueabi", false),
        ("foo-amd-amdhsa-", "foo-amd-amdhsa-", true),
        ("foo-amd-amdhsa-", "foo-amd-amdhsa", true),
        ("foo-amd-amdhsa-", "bar-amd-amdhsa-", false),
    ] {
        let (x, y) = (Triple::parse(a), Triple::parse(b));
        assert_eq!(x.compatible_with(&y), fits, "{a} {b}");
        assert_eq!(y.compatible_with(&x), fits, "{b} {a}");
    }
}

proptest! {
    /// The normal form of triples whose known words stand in their places.
    #[test]
    fn normal_forms_are_stable(
        arch in prop::sample::select(alloc::vec!["amdgcn", "x86_64", "amd64", "nvptx64", "spirv64", "aarch64"]),
        vendor in prop::sample::select(alloc::vec!["amd", "pc", "apple", "nvidia", "unknown", "", "foo"]),
        system in prop::sample::select(alloc::vec!["amdhsa", "linux", "windows", "win32", "macosx11.0", "cuda", "mingw32", "", "none"]),
        environment in prop::option::of(prop::sample::select(alloc::vec!["gnu", "musl", "msvc", "elf", "", "unknown", "androideabi21"])),
    ) {
        let mut text = alloc::format!("{arch}-{vendor}-{system}");
        if let Some(environment) = environment {
            text += &alloc::format!("-{environment}");
        }
        let triple = Triple::parse(&text);
        prop_assert_eq!(triple.as_str(), &text);
        let normal = triple.normalized();
        prop_assert_eq!(normal.as_str().split('-').filter(|field| !field.is_empty()).count(), 4);
        prop_assert_eq!(&normal.normalized(), &normal);
        let bundle = triple.bundle_form();
        prop_assert_eq!(Triple::parse(&bundle).bundle_form(), bundle.clone());
        prop_assert_eq!(bundle.ends_with('-'), system.starts_with("amdhsa"));
        prop_assert_eq!(normal.arch(), arch);
    }

    /// Words out of their places take LLVM's rules more than one round; there are always four of them.
    #[test]
    fn normal_forms_have_four_fields(text in "((x86_64|amdgcn|linux|amdhsa|windows|mingw32|gnu|elf|none|pc|amd|a|unknown)?-){0,6}[a-z]{0,4}") {
        let once = Triple::parse(&text).normalized();
        prop_assert_eq!(once.as_str().split('-').count(), 4);
        let bundle = Triple::parse(&text).bundle_form();
        prop_assert_eq!(bundle.split('-').count(), 4);
    }

    #[test]
    fn any_text_is_a_triple(text in ".*") {
        let triple = Triple::parse(&text);
        prop_assert_eq!(triple.as_str(), &text);
        prop_assert!(triple.compatible_with(&triple));
        prop_assert_eq!(triple.normalized().as_str().split('-').count(), 4);
        let _ = triple.bundle_form();
    }
}
