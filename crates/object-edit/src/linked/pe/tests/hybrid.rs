//! Hybrid files, and the load configuration.

use super::*;

const SIZES: [usize; 3] = [0x345, 0x800, 0x1321];
/// Sizes of the sections in the file if no bundle of the sample is pinned, and if the second one is.
const PACKED: [usize; 1] = [0x3400];
const PINNED: [usize; 2] = [0x400, 0x2400];

fn thinned(file: &[u8]) -> Vec<usize> {
    let (new, notes) = resize(file, plain(), &SIZES).unwrap();
    same_memory(file, &new);
    assert_eq!(registered(&new).len(), 3);
    assert_eq!(notes, (0, false));
    raw_sizes(&new, ".hip_fat")
}

#[test]
fn words_that_read_as_adrp_count_in_hybrid_files_alone() {
    let with = |code_map: Option<&[[u32; 2]]>| {
        let code_map = code_map.map(<[_]>::to_vec);
        let sample = Sample::default().with_adrp(1);
        thinned(&Sample { machine: 0x8664, code_map, ..sample }.build())
    };
    assert_eq!(with(None), PACKED);
    // A map that says nothing, or nothing of this code.
    assert_eq!(with(Some(&[])), PINNED);
    assert_eq!(with(Some(&[[0x2002, 0x1000]])), PINNED);
    // x86-64, ARM64 and ARM64EC
    assert_eq!(with(Some(&[[0x1002, 0x1000]])), PACKED);
    assert_eq!(with(Some(&[[0x1000, 0x1000]])), PINNED);
    assert_eq!(with(Some(&[[0x1001, 0x1000]])), PINNED);
    // The word is the second one.
    assert_eq!(with(Some(&[[0x1002, 8]])), PACKED);
    assert_eq!(with(Some(&[[0x1002, 7]])), PINNED);
    assert_eq!(with(Some(&[[0x1001, 4], [0x1006, 4]])), PACKED);
    assert_eq!(with(Some(&[[0x1002, 4], [0x1005, 4]])), PINNED);
    // Ranges that overlap or are not in order, an unknown type.
    assert_eq!(with(Some(&[[0x1002, 0x1000], [0x1802, 0x1000]])), PINNED);
    assert_eq!(with(Some(&[[0x2002, 0x1000], [0x1002, 0x1000]])), PINNED);
    assert_eq!(with(Some(&[[0x1002, 0x1000], [0x2003, 0x1000]])), PINNED);
}

#[test]
fn instructions_across_the_ends_of_mapped_ranges_count() {
    let with = |code_map: &[[u32; 2]]| {
        let code_map = Some(code_map.to_vec());
        thinned(&Sample { code_map, ..Sample::default().with_lea(1) }.build())
    };
    // The instruction lies at 0x1021..0x1028, its displacement at 0x1024. A range ends in it,
    for size in 0x20..0x29 {
        assert_eq!(with(&[[0x1002, size]]), PINNED, "{size:#x}");
        assert_eq!(with(&[[0x1002, size], [0x1029, 0x100]]), PINNED, "{size:#x}");
    }
    // or starts in it, and other code or a range for ARM64 has the rest.
    for map in [[[0x1002, 0x1f], [0x1026, 0x100]], [[0x1002, 0x24], [0x1025, 0x100]]] {
        assert_eq!(with(&map), PINNED, "{map:x?}");
    }
    assert_eq!(with(&[[0x1026, 0x100]]), PINNED);
    assert_eq!(with(&[[0x1001, 0x24]]), PINNED);
    assert_eq!(with(&[[0x1001, 0x20], [0x1025, 0x100]]), PINNED);
    // All of it is for ARM64, and nothing else is near.
    assert_eq!(with(&[[0x1001, 0x100]]), PACKED);
}

#[test]
fn code_for_x86_64_counts_in_hybrid_files_for_arm64() {
    let with = |code_map: Option<&[[u32; 2]]>| {
        let code_map = code_map.map(<[_]>::to_vec);
        let sample = Sample { machine: 0xaa64, code_map, ..Sample::default().with_lea(1) };
        let (new, (zeroed, _)) = edited(&sample, &SIZES);
        (raw_sizes(&new, ".hip_fat"), zeroed)
    };
    assert_eq!(with(None), (PACKED.to_vec(), 0));
    // Sections of such files are not split: a second load configuration may have a number of one.
    let pinned = (vec![0x5400], 0x2000);
    assert_eq!(with(Some(&[])), pinned);
    assert_eq!(with(Some(&[[0x1002, 0x1000]])), pinned);
    assert_eq!(with(Some(&[[0x1001, 0x1000]])), (PACKED.to_vec(), 0));
}

#[test]
fn what_is_not_known_to_be_for_one_machine_is_hybrid() {
    let code_map = Some(vec![[0x1002, 0x1000]]);
    let sample = Sample { machine: 0x8664, code_map, ..Sample::default().with_adrp(1) };
    let file = sample.build();
    assert_eq!(thinned(&file), PACKED);
    let constants = sections(&file)[2].raw.start;
    let pointer = constants + LOAD_CONFIG - 0x3000 + 200;
    let metadata = constants + METADATA - 0x3000;
    let directory = 0x98 + 112 + 10 * 8;
    let cases: [(usize, &[u8], &[usize]); 8] = [
        // A smaller one, by one of its sizes.
        (directory + 4, &[200, 0], &PACKED),
        (pointer - 200, &[200, 0], &PACKED),
        // No pointer, one before the image, and one outside the file.
        (pointer, &[0; 8], &PACKED),
        (pointer, &[1, 0, 0, 0, 0, 0, 0, 0], &PINNED),
        (pointer, &[0xff; 8], &PINNED),
        // An unknown version, too many ranges, and a map outside the file.
        (metadata, &[3], &PINNED),
        (metadata + 8, &[0xff; 4], &PINNED),
        (metadata + 4, &[0xff; 4], &PINNED),
    ];
    for (at, bytes, expected) in cases {
        let mut file = file.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        assert_eq!(thinned(&file), expected, "{at:#x} {bytes:x?}");
    }
    // A load configuration that is not in the file may number sections, too.
    let mut file = file;
    file[directory..directory + 4].copy_from_slice(&[0, 0, 0, 1]);
    let (thin, notes) = resize(&file, plain(), &SIZES).unwrap();
    assert_eq!((raw_sizes(&thin, ".hip_fat"), notes), (vec![0x5400], (0x2000, false)));
}

#[test]
fn the_section_number_in_the_load_configuration_follows() {
    let sample = Sample { code_map: Some(vec![[0x1002, 0x1000]]), ..Sample::default().with_lea(1) };
    let mut file = sample.build();
    let field = LOAD_CONFIG - 0x3000 + 228;
    let at = |file: &[u8]| sections(file)[2].raw.start + field;
    let number = at(&file);
    for (old, new) in [(0, 0), (1, 1), (5, 5), (6, 7)] {
        file[number] = old;
        let (thin, _) = resize(&file, plain(), &SIZES).unwrap();
        assert_eq!(raw_sizes(&thin, ".hip_fat"), PINNED);
        assert_eq!(thin[at(&thin)], new);
        let (back, _) = resize(&thin, plain(), &[0x2345, 0x1800, 0x4321]).unwrap();
        assert!(back == file);
    }
    // Sections are not split where a section could get this number.
    file[number] = 7;
    let (thin, notes) = resize(&file, plain(), &SIZES).unwrap();
    assert_eq!((raw_sizes(&thin, ".hip_fat"), notes), (vec![0x5400], (0x2000, false)));
    assert_eq!(thin[at(&thin)], 7);
    // Nor where only one of the sizes counts it in: it may be something else.
    file[number] = 6;
    let own = sections(&file)[2].raw.start + LOAD_CONFIG - 0x3000;
    let directory = 0x98 + 112 + 10 * 8 + 4;
    for at_size in [own, directory] {
        let mut file = file.clone();
        file[at_size..at_size + 2].copy_from_slice(&[229, 0]);
        let (thin, notes) = resize(&file, plain(), &SIZES).unwrap();
        assert_eq!((raw_sizes(&thin, ".hip_fat"), notes), (vec![0x5400], (0x2000, false)));
        assert_eq!(thin[at(&thin)], 6);
        file[at_size] = 230;
        let (thin, _) = resize(&file, plain(), &SIZES).unwrap();
        assert_eq!((raw_sizes(&thin, ".hip_fat"), thin[at(&thin)]), (PINNED.to_vec(), 7));
    }
}
