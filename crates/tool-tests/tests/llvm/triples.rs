//! Targets of rustc: names, LLVM triples and data layouts, compared with those of the installed rustc and of clang 22.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points, and `rustc`, or what `RUSTC` names; fails without them.

use std::process::Command;

use serde_json::Value;
use target_id::Triple;
use wrapper_ir::{Abi, Image, OffloadKind, Target, Wrapper};

use crate::common;
use crate::common::{new_command, printed};

fn rustc() -> Command {
    let mut rustc = new_command(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    // The descriptions of targets are for nightly compilers otherwise.
    rustc.env("RUSTC_BOOTSTRAP", "1");
    rustc
}

/// Name, LLVM triple and data layout of every target.
fn targets() -> Vec<(String, String, String)> {
    let text = printed(rustc().args(["-Zunstable-options", "--print", "all-target-specs-json"]));
    let all: Value = serde_json::from_str(&text).unwrap();
    let field = |target: &Value, name: &str| target[name].as_str().unwrap().to_owned();
    let targets = all.as_object().unwrap().iter();
    targets
        .map(|(name, target)| {
            (name.clone(), field(target, "llvm-target"), field(target, "data-layout"))
        })
        .collect()
}

#[test]
fn triples_and_data_layouts_are_those_of_rustc() {
    let targets = targets();
    let listed = printed(rustc().args(["--print", "target-list"]));
    assert_eq!(listed.lines().count(), targets.len());
    let (mut accepted, mut with_object) = (0, 0);
    for (name, llvm, layout) in targets {
        let triple = Triple::from_rustc(&name);
        // Releases of rustc disagree.
        if name != "wasm32-wali-linux-musl" {
            assert_eq!(triple.as_str(), llvm, "{name}");
        }
        let Ok(target) = Target::new(&name) else { continue };
        // rustc has the data layout of LLVM 23, and changes it for LLVM 22.
        let layout = layout.replacen("E-S64-", "E-", usize::from(name.starts_with("s390x")));
        assert_eq!(target.data_layout(), layout, "{name}");
        accepted += 1;
        let wrapper = Wrapper::new(OffloadKind::HIP, Abi::Current, target);
        let module = wrapper.with_image(Image::from_bytes(b"image")).module().unwrap();
        with_object += usize::from(module.object().is_ok());
    }
    assert!(accepted > 290 && with_object > 80, "{accepted} {with_object}");
    println!("{accepted} targets of rustc are accepted, {with_object} give an object");
}

#[test]
#[ignore = "slow: .ci/run llvm_slow"]
fn data_layouts_are_those_of_clang() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("empty.c");
    std::fs::write(&source, "int empty;\n").unwrap();
    let mut seen = Vec::new();
    for (name, ..) in targets() {
        let Ok(target) = Target::new(&name) else { continue };
        // clang does not take the triple that rustc gives LLVM, or knows the ABI from elsewhere.
        if seen.contains(&format!("{target:?}"))
            || name.ends_with("spe")
            || name.starts_with("riscv32e")
        {
            continue;
        }
        let mut clang = new_command(common::llvm("clang"));
        clang.arg(format!("--target={target}")).args(["-S", "-emit-llvm", "-o", "-"]);
        let module = printed(clang.arg(&source));
        let line = module.lines().find(|line| line.starts_with("target datalayout")).unwrap();
        let expected = format!("target datalayout = \"{}\"", target.data_layout());
        assert_eq!(line, expected, "{name}: {target}");
        seen.push(format!("{target:?}"));
    }
    assert!(seen.len() > 200, "{}", seen.len());
}
