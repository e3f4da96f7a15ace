//! The processors that an installed LLVM knows, compared with the tables of `target-id`.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::{new_command, printed};
use target_id::{Feature, Processor, TargetId, Triple, is_known_processor};

/// Returns the processors that clang lists for a target.
fn listed(clang: &Path, target: &str) -> BTreeSet<String> {
    let mut command = new_command(clang);
    command.args([&format!("--target={target}"), "--print-supported-cpus"]);
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8(printed).unwrap();
    // Each stands in a line of its own, after a tab.
    let names: BTreeSet<_> =
        printed.lines().filter_map(|line| line.strip_prefix('\t')).map(str::to_owned).collect();
    assert!(names.len() > 10, "{command:?}: {printed}");
    names
}

/// Fails if clang knows a processor that `target-id` does not.
pub(crate) fn all_are_known(clang: &Path) {
    for target in ["amdgcn-amd-amdhsa", "r600-unknown-unknown", "nvptx64-nvidia-cuda"] {
        // `generic-hsa` is a name for compilers, of no device.
        let unknown: Vec<_> = listed(clang, target)
            .into_iter()
            .filter(|name| !is_known_processor(name) && name != "generic-hsa")
            .collect();
        assert!(unknown.is_empty(), "{target}: {unknown:?} are not in the tables of target-id");
    }
}

/// Compares the flags that `llc` writes into the header of an empty code object with the tables.
pub(crate) fn flags_are_those_of_the_tables(clang: &Path, llc: &Path) {
    let place = tempfile::tempdir().unwrap();
    let (source, object) = (place.path().join("empty.ll"), place.path().join("empty.o"));
    std::fs::write(&source, "").unwrap();
    let mut compared = 0;
    for name in listed(clang, "amdgcn-amd-amdhsa") {
        let Some(processor) = Processor::amdgpu(&name) else { continue };
        let mut command = new_command(llc);
        command.args(["-mtriple=amdgcn-amd-amdhsa", "-filetype=obj", &format!("-mcpu={name}")]);
        command.arg("-o").args([&object, &source]);
        printed(&mut command);
        let bytes = std::fs::read(&object).unwrap();
        let flags = u32::from_le_bytes(bytes[48..52].try_into().unwrap());

        assert_eq!(flags & 0xff, processor.elf_machine(), "{name}: {flags:#x}");
        assert_eq!(flags >> 24 != 0, processor.is_generic(), "{name}: {flags:#x}");
        let id = TargetId::from_elf_flags(flags, bytes[8]).unwrap();
        assert_eq!(id.to_string(), processor.name(), "{name}: {flags:#x}");
        // Each release has other features of these.
        if !["gfx1250", "gfx1251", "gfx12-5-generic"].contains(&&*name) {
            for (feature, shift) in [(Feature::Xnack, 8), (Feature::Sramecc, 10)] {
                let is_any = flags >> shift & 3 == 1;
                assert_eq!(is_any, processor.supports(&feature), "{name}: {feature} {flags:#x}");
            }
        }
        compared += 1;
    }
    assert!(compared > 60, "{compared}");
}

/// Compares the texts of target IDs in code objects with what is read of them.
pub(crate) fn target_texts_are_read(llc: &Path, ids: &[(&str, &str)]) {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("kernel.ll");
    std::fs::write(&source, "define amdgpu_kernel void @k() { ret void }\n").unwrap();
    for (triple, processor) in ids {
        let mut command = new_command(llc);
        command.args([&format!("-mtriple={triple}"), &format!("-mcpu={processor}"), "-o", "-"]);
        let printed = printed(command.arg(&source));
        let line = printed.lines().find(|line| line.contains(".amdgcn_target")).unwrap();
        let text = line.split('"').nth(1).unwrap();
        let target = target_id::Target::from_isa_name(text).unwrap();
        assert_eq!(target.id(), *processor, "{text}");
        let triple = Triple::parse(triple);
        assert!(target.triple().unwrap().compatible_with(&triple), "{text}");
    }
}
