//! `offload match` and `clang-offload-bundler` of LLVM 22 choose the same image for a GPU, wherever that tool knows the
//! rule: it hands out generic and portable code for nothing but itself.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

use std::path::Path;

use crate::common::{data, extract, llvm, new_command, offload, stderr};

/// The image that `offload match` says the GPU gets, and why.
fn ours(file: &Path, gpu: &str) -> Option<(usize, String)> {
    let args = ["match", "--json", "--kind", "hip", "--gpu", gpu].map(AsRef::as_ref);
    let output = offload(args.into_iter().chain([file.as_os_str()]));
    let records: Vec<serde_json::Value> = crate::common::rows(&output.stdout);
    let [record] = &records[..] else { panic!("{}", stderr(&output)) };
    // The bundler hands bitcode to a linker; before that nothing loads it.
    let is_given = |image: &&serde_json::Value| {
        image["given"] == "yes" || image["reason"].as_str().unwrap().starts_with("is not linked")
    };
    let given = record["images"].as_array().unwrap().iter().find(is_given);
    given.map(|image| {
        let index = usize::try_from(image["index"].as_u64().unwrap()).unwrap();
        (index, image["reason"].as_str().unwrap().to_owned())
    })
}

/// Returns the bytes that the bundler hands out.
fn theirs(file: &Path, kind: &str, gpu: &str) -> Option<Vec<u8>> {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let output = new_command(llvm("clang-offload-bundler"))
        .args(["-type=bc", "-unbundle"])
        .arg(format!("-targets={kind}-amdgcn-amd-amdhsa--{gpu}"))
        .arg(format!("-input={}", file.display()))
        .arg(format!("-output={}", out.display()))
        .output()
        .unwrap();
    if output.status.success() {
        return Some(std::fs::read(out).unwrap());
    }
    assert!(stderr(&output).contains("Can't find bundles for"), "{}", stderr(&output));
    None
}

#[test]
fn a_gpu_gets_what_the_bundler_hands_out() {
    let mut handed_out = 0;
    for (name, kind) in [
        ("hip.hipfb", "hipv4"),
        ("hip-ccob-v2.hipfb", "hipv4"),
        ("hip-ccob-v3.hipfb", "hipv4"),
        ("bundle.bc", "hip"),
    ] {
        let file = data(name);
        for gpu in [
            "gfx900:xnack-",
            "gfx906:sramecc-:xnack+",
            "gfx906:sramecc+:xnack-",
            "gfx906:sramecc-:xnack-",
            "gfx90a:sramecc+:xnack-",
            "gfx90a:sramecc+:xnack+",
            "gfx90a:sramecc-:xnack-",
            "gfx942:sramecc+:xnack-",
            "gfx1030",
            "gfx1100",
            "gfx1101",
        ] {
            let ours = ours(&file, gpu);
            match theirs(&file, kind, gpu) {
                Some(bytes) => {
                    let (index, _) = ours.unwrap_or_else(|| panic!("{name}: nothing for {gpu}"));
                    assert!(extract(&file, index) == bytes, "{name}: another image for {gpu}");
                    handed_out += 1;
                }
                None => {
                    let reason = ours.map(|(_, reason)| reason).unwrap_or_default();
                    let is_wider = reason.is_empty() || reason.starts_with("is generic code");
                    assert!(is_wider, "{name}: {gpu} gets what {reason}");
                }
            }
        }
    }
    assert!(handed_out >= 10, "{handed_out}");
}
