//! Needs of images that clang and its bundler make.

use std::fs;

use crate::common::{data, llvm_command, offload, printed};

/// The needs of all images of a file, as `SOFTWARE SINCE: WHAT`, each once.
fn needs(file: &std::path::Path) -> Vec<String> {
    let arguments = ["ls", "--json", "--needs"].map(std::ffi::OsStr::new);
    let output = offload(arguments.into_iter().chain([file.as_os_str()]));
    let rows: Vec<serde_json::Value> = crate::common::rows(&output.stdout);
    let text = |need: &serde_json::Value| {
        let field = |name: &str| need[name].as_str().unwrap().to_owned();
        format!("{} {}: {}", field("software"), field("since"), field("what"))
    };
    let all = rows.iter().flat_map(|row| row["needs"].as_array().unwrap().iter().map(text));
    let mut all: Vec<String> = all.collect();
    all.sort();
    all.dedup();
    all
}

#[test]
fn code_objects_of_clang_have_their_version() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("k.c");
    fs::write(&source, "__attribute__((amdgpu_kernel)) void k(void) {}\n").unwrap();
    for (version, expected) in [
        ("4", &[][..]),
        ("5", &["ROCm 5.7: code object version 5"]),
        ("6", &["ROCm 6.3: code object version 6"]),
    ] {
        let object = place.path().join(version);
        let mut clang = llvm_command("clang");
        clang.args(["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx906", "-nogpulib", "-w", "-o"]);
        clang.arg(&object).arg(format!("-mcode-object-version={version}")).arg(&source);
        printed(&mut clang);
        assert_eq!(needs(&object), expected, "{version}");
    }
}

#[test]
fn compressed_bundles_of_clang_have_their_version() {
    let place = tempfile::tempdir().unwrap();
    let packed = place.path().join("packed");
    let input = data("host.o");
    for version in ["2", "3"] {
        let mut bundler = llvm_command("clang-offload-bundler");
        bundler.env("COMPRESSED_BUNDLE_FORMAT_VERSION", version);
        bundler.args([
            "-compress",
            "-targets=host-x86_64-unknown-linux-gnu,hip-amdgcn-amd-amdhsa--gfx906",
        ]);
        let input = input.display();
        bundler.arg(format!("-input={input}")).arg(format!("-input={input}"));
        bundler.arg("-type=bc").arg(format!("-output={}", packed.display()));
        printed(&mut bundler);
        let written = fs::read(&packed).unwrap();
        let found = needs(&packed);
        let since = if written[4] == 3 { "7.0" } else { "6.2" };
        let expected = format!("ROCm {since}: a compressed bundle of version {}", written[4]);
        assert_eq!(found, [expected]);
    }
}
