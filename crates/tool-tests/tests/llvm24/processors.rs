//! The tables of processors, and the rule for links, against LLVM 24.
//!
//! Needs LLVM 24 where `LLVM24` points, or in `target/llvm24`; fails without it. Objects and archives are made by LLVM 22.

#[path = "../processors/mod.rs"]
mod asked;

use std::fs;
use std::path::Path;

use crate::common::{llvm, llvm24, new_command};
use target_id::{Target, Triple, provides};

#[test]
fn every_processor_of_clang_is_known() {
    asked::all_are_known(&llvm24("clang"));
}

#[test]
fn flags_are_those_of_the_tables() {
    asked::flags_are_those_of_the_tables(&llvm24("clang"), &llvm24("llc"));
}

#[test]
fn target_texts_are_read() {
    let ids = [
        ("amdgcn-amd-amdhsa", "gfx906"),
        ("amdgpu9.06-amd-amdhsa", "gfx906"),
        ("amdgpu12.50s-amd-amdhsa", "gfx1250-strict"),
        ("amdgpu9.4-amd-amdhsa", "gfx9-4-generic"),
    ];
    asked::target_texts_are_read(&llvm24("llc"), &ids);
}

const AMD: &str = "amdgcn-amd-amdhsa";

/// Target IDs of the code that is provided, and of the code that is requested.
const IDS: [&str; 14] = [
    "gfx906",
    "gfx906:xnack+",
    "gfx906:xnack-",
    "gfx906:sramecc+:xnack+",
    "gfx9-generic",
    "generic",
    "gfx900",
    "gfx9999:xnack+",
    "gfx1100:xnack+",
    "gfx1250",
    "gfx1250-strict",
    "gfx12-5-generic",
    "tahiti",
    "gfx600",
];

/// Asks the linker wrapper whether it takes a member of a static library: the provided code defines what the requested
/// code needs.
struct Linker {
    place: tempfile::TempDir,
}

impl Linker {
    fn run(&self, tool: &Path, args: &[&str]) -> String {
        let output = new_command(tool).args(args).current_dir(&self.place).output().unwrap();
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8(printed).unwrap();
        assert!(output.status.success(), "{} {args:?}: {printed}", tool.display());
        printed
    }

    fn new() -> Self {
        let linker = Self { place: tempfile::tempdir().unwrap() };
        for (name, text) in [
            ("provided", "define void @f() { ret void }"),
            ("requested", "declare void @f()\ndefine void @k() { call void @f()\n ret void }"),
        ] {
            let source = format!("{name}.ll");
            let text = format!("target triple = \"{AMD}\"\n{text}\n");
            fs::write(linker.place.path().join(&source), text).unwrap();
            linker.run(&llvm24("llvm-as"), &[&source]);
        }
        linker
    }

    /// Makes a host object whose package holds the code.
    fn object(&self, name: &str, triple: &str, id: &str) {
        let image = format!("--image=file={name}.bc,triple={triple},arch={id},kind=openmp");
        self.run(&llvm24("llvm-offload-binary"), &["-o", &format!("{name}.pkg"), &image]);
        let source = format!("{name}.s");
        let text = format!(
            ".section .llvm.offloading,\"e\",@llvm_offloading\n.balign 8\n.incbin \"{name}.pkg\"\n"
        );
        fs::write(self.place.path().join(&source), text).unwrap();
        let object = format!("{name}.o");
        let args = ["-filetype=obj", "-triple=x86_64-unknown-linux-gnu", &source, "-o", &object];
        self.run(&llvm("llvm-mc"), &args);
    }

    fn takes(&self, provided: (&str, &str), requested: (&str, &str)) -> bool {
        self.object("provided", provided.0, provided.1);
        self.object("requested", requested.0, requested.1);
        let library = self.place.path().join("lib.a");
        if library.exists() {
            fs::remove_file(&library).unwrap();
        }
        self.run(&llvm("llvm-ar"), &["rcs", "lib.a", "provided.o"]);
        let printed = self.run(
            &llvm24("clang-linker-wrapper"),
            &[
                "--dry-run",
                "--host-triple=x86_64-unknown-linux-gnu",
                "--linker-path=/usr/bin/ld",
                "requested.o",
                "lib.a",
                "-o",
                "linked",
            ],
        );
        let device = printed.lines().filter(|line| line.contains("--no-default-config"));
        let device: Vec<_> = device.collect();
        assert!(!device.is_empty(), "{printed}");
        device.iter().any(|line| line.contains("/provided-"))
    }
}

#[test]
fn the_linker_wrapper_takes_provided_code() {
    let linker = Linker::new();
    let mut pairs: Vec<_> = IDS
        .iter()
        .flat_map(|provided| IDS.iter().map(move |requested| ((AMD, *provided), (AMD, *requested))))
        .collect();
    let one = ("amdgpu9.06-amd-amdhsa", "gfx906");
    pairs.extend([
        ((AMD, "gfx906"), one),
        (one, (AMD, "gfx906")),
        (("amdgpu9-amd-amdhsa", "gfx9-generic"), one),
        (one, ("amdgpu9-amd-amdhsa", "gfx9-generic")),
        (("amdgpu9-amd-amdhsa", "gfx9-generic"), (AMD, "gfx906")),
    ]);
    let mut taken = 0;
    for (provided, requested) in pairs {
        let target =
            |(triple, id): (&str, &str)| Target::new(None, Some(Triple::parse(triple)), id);
        let expected = linker.takes(provided, requested);
        let found = provides(&target(provided), &target(requested));
        assert_eq!(found.is_provided(), expected, "{provided:?} for {requested:?}: {found}");
        taken += usize::from(expected);
    }
    assert!((50..150).contains(&taken), "{taken}");
}
