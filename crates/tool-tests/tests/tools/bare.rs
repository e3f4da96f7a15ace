//! Files of every format that are device images themselves. The rest is in `cases/bare`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{offload, stderr, stdout};
use samples::device::{AMD, Head, ZEBIN, elf, note_of, spirv};
use samples::elf::{NOTE, Section, progbits, section};
use samples::{bits, words};

/// Code for an AMD GPU with these flags.
fn code_object(flags: u32) -> Vec<u8> {
    Head { flags, ..AMD }.bytes()
}

/// The same in version 2: compilers wrote the processor to a note only.
fn code_object_v2(version: [u32; 3]) -> Vec<u8> {
    let isa = [&words(&[7 << 16 | 4])[..], &words(&version), b"AMD\0AMDGPU\0"].concat();
    let note = section(".note", NOTE, note_of("AMD", 3, &isa));
    let code = Section { flags: 6, ..progbits(".text", b"machine code") };
    elf(Head { abi: 0, flags: 0, ..AMD }, &[note, code], &[])
}

/// Code for an Intel GPU: notes alone.
fn intel(ip_version: u32) -> Vec<u8> {
    let note = note_of("IntelGT", 6, &words(&[ip_version]));
    elf(ZEBIN, &[section(".note.intelgt.compat", NOTE, note)], &[])
}

const PTX: &[u8] = b"// a comment\n.version 7.0\n.target sm_80\n.address_size 64\n";

/// A SPIR-V module: a capability, then the memory model.
fn module(capability: u32, addressing: u32) -> Vec<u8> {
    spirv(&[(17, &[capability]), (14, &[addressing, 2]), (56, &[])])
}

const KERNEL: u32 = 6;
const SHADER: u32 = 1;

/// Returns bitcode of one module with a triple only.
fn bitcode(triple: &str) -> Vec<u8> {
    bits::module(|bits| bits.record(2, &bits::wide(triple.as_bytes())).done())
}

fn write(place: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = place.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn run(args: &[&str], file: &Path) -> (i32, String, String) {
    let output = offload(args.iter().map(OsStr::new).chain([file.as_os_str()]));
    (output.status.code().unwrap(), stdout(&output), stderr(&output))
}

/// A bare image of each format, the text of `verify`, a GPU that loads it (or none), and one that does not.
fn images() -> Vec<(&'static str, Vec<u8>, &'static str, &'static str, &'static str)> {
    vec![
        ("a.hsaco", code_object(0x53f), "ELF, amdgcn-amd-amdhsa gfx90a", "gfx90a", "gfx906"),
        (
            "b.co",
            code_object(0x73f),
            "ELF, amdgcn-amd-amdhsa gfx90a:xnack+",
            "gfx90a:xnack+",
            "gfx90a:xnack-",
        ),
        (
            "v2.hsaco",
            code_object_v2([8, 0, 4]),
            "ELF, amdgcn-amd-amdhsa gfx803",
            "gfx803",
            "gfx900",
        ),
        (
            "pvc.bin",
            intel(0x030f_0007),
            "ELF, spir64_gen-unknown-unknown intel_gpu_pvc",
            "intel_gpu_pvc",
            "intel_gpu_bmg_g21",
        ),
        (
            "bmg.bin",
            intel(0x0500_4004),
            "ELF, spir64_gen-unknown-unknown intel_gpu_bmg_g21",
            "intel_gpu_lnl_m",
            "gfx90a",
        ),
        ("a.ptx", PTX.to_vec(), "PTX, nvptx64-nvidia-cuda sm_80", "sm_90", "sm_75"),
        ("a.spv", module(KERNEL, 2), "SPIR-V, spirv64-unknown-unknown", "intel_gpu_pvc", "gfx906"),
        ("v.spv", module(SHADER, 0), "SPIR-V, spirv-unknown-vulkan", "", "intel_gpu_pvc"),
        (
            "r.bc",
            bitcode("r600-unknown-unknown"),
            "LLVM bitcode, r600-unknown-unknown",
            "",
            "gfx906",
        ),
        ("a.bc", bitcode("amdgcn-amd-amdhsa"), "LLVM bitcode, amdgcn-amd-amdhsa", "", "gfx906"),
    ]
}

#[test]
fn commands_treat_the_file_as_one_image() {
    let place = tempfile::tempdir().unwrap();
    for (name, bytes, what, loads, other) in images() {
        // The contents decide, not the name.
        for name in [name, "kernel"] {
            let path = write(&place, name, &bytes);
            let expected = format!("{}: ok, a bare image ({what})\n", path.display());
            let checked = (0, expected, String::new());
            assert_eq!(run(&["verify"], &path), checked);
            assert_eq!(run(&["verify", "--require-images"], &path), checked);
            let (code, rows, _) = run(&["ls", "--json"], &path);
            assert_eq!(code, 0);
            let rows: Vec<serde_json::Value> = crate::common::rows(rows.as_bytes());
            assert_eq!(rows.len(), 1, "{name}");
            assert_eq!(rows[0]["container"], "file");
            assert_eq!(rows[0]["path"], serde_json::json!([]));
            assert_eq!(rows[0]["size"], bytes.len());
            if !loads.is_empty() {
                assert_eq!(run(&["match", "--gpu", loads], &path).0, 0, "{name} {loads}");
            }
            let (code, out, err) = run(&["match", "--gpu", other], &path);
            assert_eq!(code, 1, "{name} {other}");
            assert!(err.starts_with(&format!("offload: note: for {other}, ")), "{err}");
            assert!(out.contains("no: is ") || out.contains("no: needs "), "{out}");
            let (code, _, err) =
                run(&["extract", "-o", &place.path().join("out").display().to_string()], &path);
            assert_eq!((code, &*err), (0, ""), "{name}");
        }
    }
    let written = fs::read_dir(place.path().join("out")).unwrap();
    let written: Vec<PathBuf> = written.map(|entry| entry.unwrap().path()).collect();
    let name = "a.0.amdgcn-amd-amdhsa-gfx90a.hsaco";
    let path = written.iter().find(|path| path.ends_with(name)).unwrap();
    assert_eq!(fs::read(path).unwrap(), code_object(0x53f));
}
