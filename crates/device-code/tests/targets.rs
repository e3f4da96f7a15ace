//! Targets that images name: flags and notes of ELF files, directives of PTX.
#![forbid(unsafe_code)]
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says where"
)]

use device_code::image_target;
use samples::device::{Head, ZEBIN, elf, note_of};
use samples::elf::{Elf, NOTE, object, section};
use samples::{longs, words};

fn named(image: &[u8]) -> Option<String> {
    image_target(image).map(|target| {
        let triple = target.triple().map_or(String::new(), ToString::to_string);
        format!("{triple} {}", target.id())
    })
}

fn head(machine: u16, os_abi: u8, abi: u8, flags: u32) -> Head {
    Head { machine, os_abi, abi, flags, ..ZEBIN }
}

#[test]
fn flags_name_processors_of_amd() {
    let amd = |abi, version, flags| named(&head(224, abi, version, flags).bytes()).unwrap();
    assert_eq!(amd(0x40, 4, 0x73f), "amdgcn-amd-amdhsa gfx90a:xnack+");
    assert_eq!(amd(0x40, 1, 0x33f), "amdgcn-amd-amdhsa gfx90a", "V3 has no settings");
    assert_eq!(amd(0x41, 4, 0x41), "amdgcn-amd-amdpal gfx1100");
    assert_eq!(amd(0x40, 4, 0x100_0151), "amdgcn-amd-amdhsa gfx9-generic");
    assert_eq!(amd(0x40, 4, 0xfe), "amdgcn-amd-amdhsa ", "an unknown processor");
    assert_eq!(amd(0, 0, 0x1), "r600-unknown-unknown r600");
    assert_eq!(named(&head(62, 0, 0, 0x53f).bytes()), None, "an x86-64 file");
    assert_eq!(named(&head(224, 0x40, 4, 0x73f).bytes()[..63]), None, "a cut header");
}

/// Returns a file with notes as a segment, which follows its header.
fn with_segment(head: Head, notes: &[u8]) -> Vec<u8> {
    let mut file = head.bytes();
    (file[32], file[54], file[56]) = (64, 56, 1);
    file.extend(longs(&[4, 120, 0, 0, notes.len() as u64, 0, 4]));
    file.extend(notes);
    file
}

fn isa(version: [u32; 3]) -> Vec<u8> {
    let isa = [&words(&[7 << 16 | 4])[..], &words(&version), b"AMD\0AMDGPU\0"].concat();
    note_of("AMD", 3, &isa)
}

/// Libraries of ROCm 1 to 3 are like this: compilers before LLVM 6 write no processor into the flags.
#[test]
fn a_note_names_processors_of_amd_in_version_2() {
    let version = note_of("AMD", 1, &[2, 0, 0, 0, 1, 0, 0, 0]);
    let amd = |flags, isa: &[u8]| {
        let notes = [&version[..], isa].concat();
        let head = head(224, 0x40, 0, flags);
        let by_segment = named(&with_segment(head, &notes)).unwrap();
        let sections = [section(".note", NOTE, notes)];
        assert_eq!(named(&elf(head, &sections, &[])), Some(by_segment.clone()));
        by_segment
    };
    for (flags, version, name) in [
        (0, [8, 0, 3], "gfx803"),
        (0, [9, 0, 0], "gfx900"),
        (1, [8, 0, 1], "gfx801:xnack+"),
        (2, [7, 0, 1], "gfx701"),
        (0x22f, [9, 0, 6], "gfx906"),
        (0x2c, [10, 0, 0], "gfx900"),
        (0, [10, 0, 0], ""),
    ] {
        assert_eq!(amd(flags, &isa(version)), format!("amdgcn-amd-amdhsa {name}"));
    }
    assert_eq!(amd(1, &[]), "amdgcn-amd-amdhsa ", "no R600");
    let other = [&note_of("GNU", 3, &[0; 24]), &isa([9, 0, 0])[..30]].concat();
    assert_eq!(amd(0, &other), "amdgcn-amd-amdhsa ", "of another owner; cut");
    let later = with_segment(head(224, 0x40, 1, 0x2f), &isa([9, 0, 0]));
    assert_eq!(named(&later).unwrap(), "amdgcn-amd-amdhsa gfx906", "not of version 3");
}

/// `ocloc` writes such notes.
#[test]
fn notes_name_gpus_of_intel() {
    let number = |kind, number: u32| note_of("IntelGT", kind, &number.to_le_bytes());
    for (notes, name) in [
        (vec![number(1, 1270), number(2, 0xc07), number(6, 0x030d_c008)], "intel_gpu_acm_g10"),
        (vec![number(1, 1271), number(6, 0x030f_0001)], "intel_gpu_pvc"),
        (vec![number(1, 1271), number(6, 0x0f00_0003)], "intel_gpu_60_0_3"),
        (vec![number(1, 1272), number(2, 0xc07)], "intel_gpu_mtl"),
        (vec![number(6, 0), number(1, 1274)], "intel_gpu_bmg"),
    ] {
        let others = || section(".metrics", NOTE, *b"metrics");
        for wide in [false, true] {
            let notes = section(".note", NOTE, notes.concat());
            let sections = vec![others(), notes, others()];
            let file = Elf { wide, machine: 205, ..object(sections) }.build();
            let expected = format!("spir64_gen-unknown-unknown {name}");
            assert_eq!(named(&file), Some(expected), "{wide}");
        }
    }
    for notes in [number(1, 33), note_of("Intel", 6, &[7, 0, 15, 3]), number(6, 7)[..15].to_vec()] {
        assert_eq!(named(&elf(ZEBIN, &[section(".note", NOTE, notes)], &[])), None);
    }
}

/// Flags of cubins of published libraries.
#[test]
fn flags_name_architectures_of_nvidia() {
    for (abi_version, flags, name) in [
        (7, 0x3c_053c, "sm_60"),
        (7, 0x50_0550, "sm_80"),
        (7, 0x5a_055a, "sm_90"),
        (8, 0x600_4b04, "sm_75"),
        (8, 0x600_5a04, "sm_90"),
        (8, 0x600_6402, "sm_100"),
        (8, 0x600_7802, "sm_120"),
    ] {
        let abi = if abi_version == 7 { 0x33 } else { 0x41 };
        let expected = format!("nvptx64-nvidia-cuda {name}");
        assert_eq!(named(&head(190, abi, abi_version, flags).bytes()), Some(expected));
    }
    assert_eq!(named(&head(190, 0x33, 7, 0).bytes()), None);
}

#[test]
fn a_section_names_the_suffix_of_nvidia() {
    let with = |records: &[u8]| {
        let compat = section(".nv.compat", 0x7000_0086, records);
        let file = elf(head(190, 0x41, 8, 0x600_5a04), &[compat], &[]);
        named(&file).unwrap()
    };
    assert_eq!(with(&[2, 9, 1, 0, 2, 2, 1, 0]), "nvptx64-nvidia-cuda sm_90a");
    assert_eq!(with(&[2, 9, 0, 0, 2, 2, 1, 0]), "nvptx64-nvidia-cuda sm_90");
    assert_eq!(with(&[4, 11, 2, 0, 7, 7, 3, 7, 1, 1, 2, 9, 1]), "nvptx64-nvidia-cuda sm_90a");
    assert_eq!(with(&[4, 11, 255, 255, 2, 9, 1]), "nvptx64-nvidia-cuda sm_90");
    assert_eq!(with(&[]), "nvptx64-nvidia-cuda sm_90");
}

#[test]
fn directives_name_the_target_of_ptx() {
    for (text, name) in [
        (".version 7.0\n.target sm_70\n", "nvptx64-nvidia-cuda sm_70"),
        (
            "//\n// Generated\n\n.version 8.3\n.target sm_90a, debug\n.address_size 64\n",
            "nvptx64-nvidia-cuda sm_90a",
        ),
        (
            ".version 3.0 // old\n.target sm_20 , texmode_independent,\n debug .address_size 32",
            "nvptx-nvidia-cuda sm_20",
        ),
        (".version 4.0 /* .target sm_10 */ .target sm_35", "nvptx64-nvidia-cuda sm_35"),
        (".version 3.2.target sm_35.address_size 32.entry f{exit;}", "nvptx-nvidia-cuda sm_35"),
    ] {
        assert_eq!(named(text.as_bytes()).as_deref(), Some(name), "{text}");
    }
    for text in [".version 7.0\n", ".version 7.0 .target", ".version 7.0 .target tex /* sm_70"] {
        assert_eq!(named(text.as_bytes()), None, "{text}");
    }
}
