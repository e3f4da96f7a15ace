//! Files of every format that are device images themselves. The rest is in `cases/bare`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{offload, stderr, stdout};

/// Code for an AMD GPU with these flags: a header, and a segment of the whole file.
fn code_object(flags: u32) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01\x40\x04\0\0\0\0\0\0\0\x03\0\xe0\0\x01\0\0\0".to_vec();
    let mut words = |words: &[u64]| file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    // Entry, table of segments, table of sections.
    words(&[0, 64, 0]);
    // Sizes of the header and of a segment header, one segment; size of a section header, no section.
    words(&[u64::from(flags) | 64 << 32 | 56 << 48, 1 | 64 << 16]);
    words(&[1, 0, 0, 0, 128, 128, 0]);
    words(&[0]);
    file
}

/// The same in version 2: compilers wrote the processor to a note only.
fn code_object_v2(version: [u32; 3]) -> Vec<u8> {
    let mut file = code_object(0);
    file[8] = 0;
    file[64] = 4;
    file[72] = 120;
    file[96] = 44;
    file.truncate(120);
    let words = [4, 28, 3, u32::from_le_bytes(*b"AMD\0"), 7 << 16 | 4];
    file.extend(words.into_iter().chain(version).flat_map(u32::to_le_bytes));
    file.extend(b"AMD\0AMDGPU\0\0");
    file
}

/// Code for an Intel GPU: a header, and two sections: notes, and an empty table of names.
fn intel(ip_version: u32) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(192, 0);
    (file[16], file[18], file[20]) = (1, 205, 1);
    (file[40], file[52], file[58], file[60], file[62]) = (64, 64, 64, 2, 1);
    (file[68], file[88], file[96], file[132], file[152]) = (7, 192, 24, 3, 191);
    file[160] = 1;
    let owner = [u32::from_le_bytes(*b"Inte"), u32::from_le_bytes(*b"lGT\0")];
    let words = [8, 4, 6].into_iter().chain(owner).chain([ip_version]);
    file.extend(words.flat_map(u32::to_le_bytes));
    file
}

const PTX: &[u8] = b"// a comment\n.version 7.0\n.target sm_80\n.address_size 64\n";

/// A SPIR-V module of words: a capability, then the memory model.
fn spirv(capability: u32, addressing: u32) -> Vec<u8> {
    let words = [
        0x0723_0203,
        0x0001_0000,
        0,
        2,
        0,
        2 << 16 | 17,
        capability,
        3 << 16 | 14,
        addressing,
        2,
        1 << 16 | 56,
    ];
    words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect()
}

const KERNEL: u32 = 6;
const SHADER: u32 = 1;

/// Returns bitcode of one module with a triple only.
fn bitcode(triple: &str) -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    let mut put = |value: u64, width: u32| bits.extend((0..width).map(|bit| value >> bit & 1 == 1));
    put(u32::from_le_bytes(*b"BC\xc0\xde").into(), 32);
    // A module block with abbreviation IDs of eight bits: everything in it takes whole bytes.
    put(1, 2);
    put(8, 8);
    put(8, 4);
    put(1, 4);
    put(0, 14);
    let record = |put: &mut dyn FnMut(u64, u32)| {
        put(3, 8);
        for number in [2, triple.len() as u64].into_iter().chain(triple.bytes().map(u64::from)) {
            let mut left = number;
            while left >= 32 {
                put(left & 31 | 32, 6);
                left >>= 5;
            }
            put(left, 6);
        }
        put(0, 8);
    };
    let mut length = 0_u64;
    record(&mut |_, width| length += u64::from(width));
    let words = length.div_ceil(32);
    put(words, 32);
    record(&mut put);
    put(0, u32::try_from(words * 32 - length).unwrap());
    bits.chunks(8)
        .map(|byte| byte.iter().rev().fold(0, |all, &bit| all << 1 | u8::from(bit)))
        .collect()
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
        ("a.spv", spirv(KERNEL, 2), "SPIR-V, spirv64-unknown-unknown", "intel_gpu_pvc", "gfx906"),
        ("v.spv", spirv(SHADER, 0), "SPIR-V, spirv-unknown-vulkan", "", "intel_gpu_pvc"),
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
            let rows: Vec<serde_json::Value> = serde_json::from_str(&rows).unwrap();
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
