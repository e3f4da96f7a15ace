//! Reading the first bytes of an offload binary, and asking for more.

use offload_binary::{FormatVersion, ImageEntry, OffloadBinary};
use samples::binary::{llvm_22, llvm_23};

use super::samples::{VALUE, only, v2_two_entries, with};

/// Reads with ever longer prefixes; returns the lengths that were enough or asked for.
fn rounds(data: &[u8]) -> Vec<usize> {
    let mut rounds = vec![0];
    loop {
        let len = *rounds.last().unwrap();
        let available = u64::try_from(data.len()).unwrap();
        match OffloadBinary::parse_prefix(&data[..len], available) {
            Ok(_) => return rounds,
            Err(error) => {
                let needed = usize::try_from(error.needed().unwrap()).unwrap();
                assert!(needed > len && needed <= data.len());
                rounds.push(needed);
            }
        }
    }
}

#[test]
fn a_prefix_is_enough() {
    assert_eq!(rounds(&llvm_22()), [0, 80, 104, 0x90]);
    assert_eq!(rounds(&llvm_23()), [0, 80, 120, 0xa0]);
    assert_eq!(rounds(&v2_two_entries()), [0, 80, 112, 160, 176]);

    let data = llvm_22();
    let binary = OffloadBinary::parse_prefix(&data[..0x90], 160).unwrap();
    let entry = binary.entries().next().unwrap();
    assert_eq!(binary.size(), 160);
    assert_eq!(entry.arch(), Some("sm_70"));
    assert_eq!((entry.image_offset(), entry.image_size()), (0x90, 11));
    assert_eq!(entry.image(), None);
}

#[test]
fn strings_after_the_images_are_requested() {
    // Value 0 lies in the padding after the image.
    let data = with(llvm_22(), VALUE, 0x9f);
    assert_eq!(rounds(&data), [0, 80, 104, 160]);
    assert_eq!(only(&data).arch(), Some(""));
}

#[test]
fn available_is_at_least_the_prefix() {
    assert_eq!(OffloadBinary::parse_prefix(&llvm_22(), 0).unwrap().size(), 160);
}

/// Header and first entry, all entries, tables of strings, strings: each asks for the next.
#[test]
fn a_prefix_that_grows_as_asked_is_enough_after_five_calls() {
    for (version, images, most) in
        [(FormatVersion::V1, 1, 4), (FormatVersion::V2, 2, 5), (FormatVersion::V3, 2, 5)]
    {
        let entry = || {
            ImageEntry::new(5)
                .with_string("arch", "gfx90a")
                .with_string("triple", "amdgcn-amd-amdhsa")
        };
        let entries: Vec<_> = (0..images).map(|_| entry()).collect();
        let package = offload_binary::layout(version, &entries)
            .unwrap()
            .to_vec(&vec![&b"image"[..]; images])
            .unwrap();
        let mut prefix = &package[..0];
        let mut calls = 1;
        while let Err(error) = OffloadBinary::parse_prefix(prefix, package.len() as u64) {
            prefix = &package[..usize::try_from(error.needed().unwrap()).unwrap()];
            calls += 1;
        }
        assert_eq!(calls, most);
    }
}
