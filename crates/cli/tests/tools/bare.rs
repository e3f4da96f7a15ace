//! Files that are device images themselves.

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
    // Sizes of the header and of one segment's, one segment; size of a section's, none.
    words(&[u64::from(flags) | 64 << 32 | 56 << 48, 1 | 64 << 16]);
    words(&[1, 0, 0, 0, 128, 128, 0]);
    words(&[0]);
    file
}

/// The same of version 2, of compilers that write the processor to a note only.
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

/// Code for a GPU of Intel's: a header, and two sections: notes, and a table of names,
/// of which there are none.
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

/// Bitcode that is nothing but a triple, as one module.
fn bitcode(triple: &str) -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    let mut put = |value: u64, width: u32| bits.extend((0..width).map(|bit| value >> bit & 1 == 1));
    put(u32::from_le_bytes(*b"BC\xc0\xde").into(), 32);
    // A block of modules, whose abbreviation IDs have eight bits: everything in it takes whole bytes.
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

/// A bare image of each format, the text of `verify`, a GPU that loads it (if any), and one that does not.
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
            assert_eq!((code, &*err), (1, ""), "{name} {other}");
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

#[test]
fn damaged_images_are_errors() {
    let place = tempfile::tempdir().unwrap();
    let mut far = code_object(0x53f);
    far[32] = 200;
    let mut zero = spirv(KERNEL, 2);
    zero.extend([0; 4]);
    let mut version = spirv(KERNEL, 2);
    version[6] = 2;
    let cut = |bytes: &[u8]| bytes[..bytes.len() - 4].to_vec();
    for (bytes, words) in [
        (
            cut(&code_object(0x53f)),
            "segment 0 lies at 0x0..0x80, beyond the end of the file at 0x7c",
        ),
        (far, "segment table lies at 0xc8..0x100, beyond the end of the file at 0x80"),
        (code_object(0x53f)[..40].to_vec(), "malformed ELF file"),
        (b"//\n.version 7.0\n".to_vec(), "PTX names no target"),
        (
            cut(&cut(&spirv(KERNEL, 2))),
            "byte 0x1c: expected an instruction that ends with the module",
        ),
        (zero, "byte 0x2c: expected an instruction of one word or more, found 0"),
        (version, "byte 0x4: expected version 1"),
        (spirv(KERNEL, 2)[..9].to_vec(), "a multiple of 4"),
        (cut(&bitcode("amdgcn-amd-amdhsa")), "bitcode block 8 lies at"),
    ] {
        let path = write(&place, "image", &bytes);
        let (code, out, _) = run(&["verify"], &path);
        assert!(code == 1 && out.contains(words), "{out}\nexpected {words}");
        assert_eq!(run(&["match", "--gpu", "gfx90a"], &path).0, 1);
    }
}

#[test]
fn formats_known_by_name_are_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    for (bytes, words) in [
        (&b"MTLB\x01\x80\x02\0"[..], "is a Metal library: not supported"),
        (b"DXBC\x01\x02\x03\x04", "is a DirectX shader: not supported"),
        (b"\xed\x43\x4e\x7f\0\0", "is LTO-IR: not supported"),
        (b"ML\xefR\x03", "is MLIR bytecode: not supported"),
    ] {
        let path = write(&place, "image", bytes);
        for args in [&["verify"][..], &["ls"], &["match", "--gpu", "gfx90a"]] {
            let (code, _, err) = run(args, &path);
            assert!(code == 1 && err.contains(words), "{args:?}: {err}");
        }
    }
}

/// The members of an archive are what a linker or loader chooses from.
#[test]
fn members_of_archives_are_images() {
    let place = tempfile::tempdir().unwrap();
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in [("a.o", code_object(0x53f)), ("b.o", code_object(0x52f))] {
        let header = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, bytes.len());
        archive.extend(header.as_bytes());
        archive.extend(bytes);
    }
    let path = write(&place, "lib.a", &archive);
    assert_eq!(run(&["verify"], &path).1, format!("{}: ok, 2 images\n", path.display()));
    for (gpu, code) in [("gfx90a", 0), ("gfx906", 0), ("gfx1100", 1)] {
        assert_eq!(run(&["match", "--gpu", gpu], &path).0, code, "{gpu}");
    }
    let (code, _, err) = run(&["thin", "--in-place", "--keep", "gfx906"], &path);
    let words = "member:a.o: device images in no container cannot be edited";
    assert!(code == 1 && err.contains(words), "{err}");
    assert_eq!(fs::read(&path).unwrap(), archive);
}

#[test]
fn edits_refuse() {
    let place = tempfile::tempdir().unwrap();
    let path = write(&place, "a.hsaco", &code_object(0x53f));
    let refused = "device images in no container cannot be edited";
    for (args, words) in [
        (&["thin", "--drop", "gfx90a"][..], refused),
        (&["remove", "--id", "gfx90a"], refused),
        (&["compress"], "no bundle and no offload binary found"),
        (&["decompress"], "no bundle and no offload binary found"),
    ] {
        let args: Vec<_> = args.iter().copied().chain(["--in-place"]).collect();
        let (code, _, err) = run(&args, &path);
        assert!(code == 1 && err.contains(words), "{args:?}: {err}");
        assert_eq!(fs::read(&path).unwrap(), code_object(0x53f));
    }
}

/// Code for the host stays what it was.
#[test]
fn host_code_is_no_image() {
    let place = tempfile::tempdir().unwrap();
    for bytes in [bitcode("x86_64-pc-linux-gnu"), bitcode("spirq64-unknown")] {
        let path = write(&place, "host.bc", &bytes);
        let (code, out, _) = run(&["verify"], &path);
        assert!(code == 0 && out.ends_with(": ok, no device code\n"), "{out}");
        assert_eq!(run(&["match", "--gpu", "gfx906"], &path).0, 1);
    }
}
