mod hybrid;
mod in_place;
mod splits;

use super::sample::*;
use crate::error::{Error, ErrorKind};
use crate::linked::host::{Item, Options, SectionChange, SectionEdit};
use crate::output::Output;

fn plain() -> Options {
    Options::default()
}

fn grow() -> Options {
    Options { grow: true, ..Options::default() }
}

/// Returns the new file, which differs from the old one in memory nowhere but in headers, device code, the pointers
/// of wrappers, and the offset in the debug directory; and which becomes the old one again, if bundles get their
/// old sizes.
fn edited(sample: &Sample, sizes: &[usize]) -> (Vec<u8>, Notes) {
    let old = sample.build();
    let (new, notes) = resize(&old, plain(), sizes).unwrap();
    same_memory(&old, &new);
    let id = |n: usize| u8::try_from(n).unwrap();
    let wrappers: Vec<_> = sample.wrappers.iter().map(|&n| (id(n), sizes[n])).collect();
    assert_eq!(registered(&new), wrappers);
    let before: Vec<_> = sample.bundles.iter().map(|&(_, len)| len).collect();
    let (back, _) = resize(&new, plain(), &before).unwrap();
    let first = back.iter().zip(&old).position(|(back, old)| back != old);
    assert_eq!((first, back.len()), (None, old.len()));
    (new, notes)
}

fn same_memory(old: &[u8], new: &[u8]) {
    let (before, mut after) = (load(old, BASE), load(new, BASE));
    let sections = sections(old);
    let wrappers = sections.iter().find(|section| section.name == ".hipFatB").unwrap();
    let pointers =
        (0..wrappers.size / 24).map(|n| wrappers.address + 24 * n + 8).map(|at| at..at + 8);
    let (slot, _) = &bundles(old)[0];
    let slot = slot.address..(slot.address + slot.size).next_multiple_of(0x1000);
    for range in pointers.chain([0..0x1000, 0x3038..0x303c, slot]) {
        after[range.clone()].copy_from_slice(&before[range]);
    }
    assert!(before == after[..before.len()]);
    // The offset leads to what it led to.
    let codeview = |file: &[u8]| {
        let memory = load(file, BASE);
        let at = u32_at(&memory, 0x3038) as usize;
        file[at..at + 4].to_vec()
    };
    assert_eq!(codeview(old), b"RSDS");
    assert_eq!(codeview(new), b"RSDS");
}

fn raw_sizes(file: &[u8], name: &str) -> Vec<usize> {
    sections(file).iter().filter(|s| s.name == name).map(|s| s.raw.len()).collect()
}

#[test]
fn samples_load() {
    let file = Sample::default().build();
    assert_eq!(registered(&file), [(0, 0x2345), (1, 0x1800), (2, 0x4321)]);
    let found = bundles(&file);
    assert_eq!(found[0].1.len(), 3);
}

#[test]
fn the_tail_of_a_single_bundle_is_cut() {
    let sample = Sample { bundles: vec![(0, 0x7777)], wrappers: vec![0], ..Sample::default() };
    let old = sample.build();
    let (new, notes) = edited(&sample, &[0x1234]);
    assert_eq!(notes, (0, false));
    assert_eq!(old.len() - new.len(), 0x7800 - 0x1400);
    // Memory is as large as before; zeros follow the bundle.
    assert_eq!(sections(&new)[4].size, 0x7777);
    assert_eq!(load(&new, BASE)[SLOT_AT as usize + 0x1234..][..0x7777 - 0x1234], [0; 0x6543]);
    assert_eq!(raw_sizes(&new, ".hip_fat"), [0x1400]);
    // SizeOfInitializedData, SizeOfImage, TimeDateStamp
    assert_eq!(u32_at(&old, 0xa0) - u32_at(&new, 0xa0), 0x6400);
    assert_eq!(u32_at(&old, 0x98 + 56), u32_at(&new, 0x98 + 56));
    assert_eq!(u32_at(&new, 0x88), 0x6543_2100);
}

#[test]
fn bundles_are_packed_and_wrappers_follow() {
    let (new, notes) = edited(&Sample::default(), &[0x345, 0x800, 0x1321]);
    assert_eq!(notes, (0, false));
    assert_eq!(raw_sizes(&new, ".hip_fat"), [0x3400]);
    let starts: Vec<_> = bundles(&new)[0].1.iter().map(|range| range.start).collect();
    assert_eq!(starts, [0xa00, 0x1a00, 0x2a00]);
}

#[test]
fn several_wrappers_may_share_a_bundle() {
    let sample = Sample { wrappers: vec![2, 1, 1, 0, 2], ..Sample::default() };
    edited(&sample, &[0x345, 0x800, 0x1321]);
}

#[test]
fn an_edit_to_the_same_sizes_changes_nothing() {
    let file = Sample { certificate: vec![1; 64], ..Sample::default() }.build();
    let (same, notes) = resize(&file, plain(), &[0x2345, 0x1800, 0x4321]).unwrap();
    assert!(same == file && notes == (0, false));
}

#[test]
fn narrowing_twice_is_narrowing_once() {
    for sample in [Sample::default(), Sample::default().with_lea(1)] {
        let old = sample.build();
        let (half, _) = resize(&old, plain(), &[0x1345, 0x1800, 0x3321]).unwrap();
        let (twice, _) = resize(&half, plain(), &[0x345, 0x800, 0x1321]).unwrap();
        let (once, _) = resize(&old, plain(), &[0x345, 0x800, 0x1321]).unwrap();
        assert!(twice == once);
    }
}

#[test]
fn the_section_is_split_at_a_bundle_that_code_refers_to() {
    for sample in [Sample::default().with_lea(1), Sample::default().with_adrp(1)] {
        let (new, notes) = edited(&sample, &[0x345, 0x800, 0x1321]);
        assert_eq!(notes, (0, false));
        assert_eq!(raw_sizes(&new, ".hip_fat"), [0x400, 0x2400]);
        let found = bundles(&new);
        assert_eq!(found[1].0.address, SLOT_AT as usize + 0x3000);
    }
}

#[test]
fn relocated_pointers_into_a_bundle_pin_it() {
    for into in [0, 0x17ff] {
        let file = Sample::default().with_pointer(1, into).build();
        let (new, _) = resize(&file, plain(), &[0x345, 0x800, 0x1321]).unwrap();
        assert_eq!(raw_sizes(&new, ".hip_fat"), [0x400, 0x2400]);
    }
    // Elsewhere they do not matter.
    let sample = Sample { pointer: BASE + 0x1000, ..Sample::default() };
    let (new, _) = edited(&sample, &[0x345, 0x800, 0x1321]);
    assert_eq!(raw_sizes(&new, ".hip_fat"), [0x3400]);
}

#[test]
fn exports_pin_bundles() {
    let sample = Sample { exports: vec![0x1000, SLOT_AT + 0x5000], ..Sample::default() };
    let (new, _) = edited(&sample, &[0x345, 0x800, 0x1321]);
    assert_eq!(raw_sizes(&new, ".hip_fat"), [0x1800, 0x1400]);
}

#[test]
fn without_base_relocations_any_value_in_a_bundle_pins_it() {
    let mut sample = Sample { relocations: false, ..Sample::default() };
    assert_eq!(raw_sizes(&edited(&sample, &[0x345, 0x800, 0x1321]).0, ".hip_fat"), [0x3400]);
    // Not aligned, between other code
    sample.code = vec![0x90; 7];
    sample.code.extend((BASE + u64::from(SLOT_AT) + 0x3000).to_le_bytes());
    assert_eq!(raw_sizes(&edited(&sample, &[0x345, 0x800, 0x1321]).0, ".hip_fat"), [0x400, 0x2400]);
}

#[test]
fn a_bundle_without_a_wrapper_stays() {
    let sample = Sample { wrappers: vec![0, 2], ..Sample::default() };
    let (new, _) = edited(&sample, &[0x345, 0x800, 0x1321]);
    assert_eq!(raw_sizes(&new, ".hip_fat"), [0x400, 0x2400]);
}

#[test]
fn without_room_for_a_header_zeros_remain() {
    let mut old = Sample::default().with_lea(1).build();
    // Something lies after the table, such as bound imports.
    let table_end = 0x98 + 240 + 40 * sections(&old).len();
    old[table_end + 39] = 1;
    let (new, notes) = resize(&old, plain(), &[0x345, 0x800, 0x1321]).unwrap();
    assert_eq!(notes, (0x2000, false));
    assert_eq!(raw_sizes(&new, ".hip_fat"), [0x5400]);
    assert_eq!(registered(&new), [(0, 0x345), (1, 0x800), (2, 0x1321)]);
    same_memory(&old, &new);
    let (back, _) = resize(&new, plain(), &[0x2345, 0x1800, 0x4321]).unwrap();
    assert!(back == old);
}

#[test]
fn the_largest_hole_gets_the_only_header() {
    let mut sample = Sample { wrappers: vec![], ..Sample::default() };
    sample.bundles = vec![(0, 0x800), (0x3000, 0x800), (0x9000, 0x800)];
    let mut old = sample.build();
    let table_end = 0x98 + 240 + 40 * sections(&old).len();
    old[table_end + 40] = 1;
    let (new, notes) = resize(&old, plain(), &[0x700, 0x700, 0x700]).unwrap();
    assert_eq!(notes, (0x2000, false));
    assert_eq!(raw_sizes(&new, ".hip_fat"), [0x3800, 0x800]);
}

#[test]
fn a_file_with_symbols_is_not_split() {
    let sample = Sample { symbols: true, ..Sample::default() }.with_lea(1);
    let (new, notes) = edited(&sample, &[0x345, 0x800, 0x1321]);
    assert_eq!(notes, (0x2000, false));
    assert_eq!(sections(&new).len(), 6);
}

fn symbols(file: &[u8]) -> Vec<(String, u32, u8)> {
    let (at, count) = (u32_at(file, 0x8c) as usize, u32_at(file, 0x90) as usize);
    let symbol = |n: usize| {
        let symbol = &file[at + 18 * n..][..18];
        let name = String::from_utf8_lossy(&symbol[..8]).trim_end_matches('\0').to_owned();
        (name, u32_at(symbol, 8), symbol[12])
    };
    assert_eq!(&file[at + 18 * count + 4..][..11], b".hip_fatbin");
    (0..count).map(symbol).collect()
}

#[test]
fn symbols_follow_their_bundles() {
    let sample = Sample { symbols: true, ..Sample::default() };
    let (new, _) = edited(&sample, &[0x345, 0x800, 0x1321]);
    let expected =
        [("b0", 0, 5), ("aux", 0x3000, 5), ("b1", 0x1000, 5), ("b2", 0x2000, 5), ("main", 0, 1)];
    assert_eq!(symbols(&new), expected.map(|(name, value, n)| (name.to_owned(), value, n)));
}

#[test]
fn long_names_of_mingw_are_known() {
    let name = *b"/4\0\0\0\0\0\0";
    let sample = Sample { symbols: true, name, ..Sample::default() };
    let (new, _) = edited(&sample, &[0x345, 0x800, 0x1321]);
    assert_eq!(raw_sizes(&new, "/4"), [0x3400]);
}

#[test]
fn bytes_after_the_sections_move() {
    let sample = Sample { overlay: b"overlay".to_vec(), symbols: true, ..Sample::default() };
    let (new, _) = edited(&sample, &[0x345, 0x800, 0x1321]);
    assert!(new.ends_with(b".hip_fatbin\0overlay"));
}

#[test]
fn the_checksum_is_right_if_there_was_one() {
    for symbols in [false, true] {
        let sample = Sample { checksum: true, symbols, ..Sample::default() };
        let (new, _) = edited(&sample, &[0x345, 0x800, 0x1321]);
        assert_eq!(u32_at(&new, 0x98 + 64), checksum(&new));
    }
    let (new, _) = edited(&Sample::default(), &[0x345, 0x800, 0x1321]);
    assert_eq!(u32_at(&new, 0x98 + 64), 0);
}

#[test]
fn signed_files_are_refused() {
    let sample = Sample { certificate: vec![0xce; 64], ..Sample::default() };
    let result = resize(&sample.build(), plain(), &[0x345, 0x800, 0x1321]);
    let text = "file is signed; the signature would become invalid";
    assert_eq!(result.unwrap_err(), (ErrorKind::Signed, text));
}

#[test]
fn signatures_are_dropped_on_request() {
    let signed = Sample { certificate: vec![0xce; 64], checksum: true, ..Sample::default() };
    let options = Options { drop_signature: true, ..Options::default() };
    let sizes = [0x345, 0x800, 0x1321];
    let (new, notes) = resize(&signed.build(), options, &sizes).unwrap();
    let unsigned = Sample { certificate: Vec::new(), ..signed };
    assert_eq!(notes, (0, true));
    assert!(new == edited(&unsigned, &sizes).0);
}

#[test]
fn certificates_must_lie_after_the_sections() {
    let options = || Options { drop_signature: true, ..Options::default() };
    let mut file = Sample { certificate: vec![0xce; 64], ..Sample::default() }.build();
    let directory = 0x98 + 112 + 4 * 8;
    let at = u32_at(&file, directory);
    file[directory..directory + 4].copy_from_slice(&(at - 1).to_le_bytes());
    let result = resize(&file, options(), &[0x345, 0x800, 0x1321]);
    let text = "inconsistent section headers: the certificate table lies in a section";
    assert_eq!(result.unwrap_err(), (ErrorKind::Malformed, text));
    file[directory..directory + 4].copy_from_slice(&(at + 1).to_le_bytes());
    let result = resize(&file, options(), &[0x345, 0x800, 0x1321]);
    let error = result.unwrap_err().to_string();
    assert!(error.starts_with("the certificate table lies at "), "{error}");
}

#[test]
fn a_bundle_may_grow_into_freed_room_and_to_the_end_of_the_page() {
    let (new, _) = edited(&Sample::default(), &[0x4000, 0x800, 0x4321]);
    assert_eq!(sections(&new)[4].size, 0x9321);
    let old = Sample::default().build();
    let (new, _) = resize(&old, plain(), &[0x2345, 0x1800, 0x5000]).unwrap();
    assert_eq!(sections(&new)[4].size, 0xa000);
    same_memory(&old, &new);
    assert_eq!(registered(&new), [(0, 0x2345), (1, 0x1800), (2, 0x5000)]);
}

#[test]
fn growth_past_the_end_of_the_page_is_refused() {
    let result = resize(&Sample::default().build(), plain(), &[0x2345, 0x1800, 0x5001]);
    let text = Error::no_room(0xa001, 0xa000).to_string();
    assert_eq!(result.unwrap_err(), (ErrorKind::NoRoom, &*text));
}

#[test]
fn device_code_may_get_a_new_place() {
    for symbols in [false, true] {
        let sample = Sample { symbols, overlay: b"overlay".to_vec(), ..Sample::default() };
        let old = sample.build();
        let (new, notes) = resize(&old, grow(), &[0x6345, 0x1800, 0x5001]).unwrap();
        assert_eq!(notes, (0, false));
        same_memory(&old, &new);
        assert_eq!(registered(&new), [(0, 0x6345), (1, 0x1800), (2, 0x5001)]);
        let all = sections(&new);
        assert_eq!(
            (all[4].name.as_str(), all[4].size, all[4].raw.len()),
            (".hip_old", 0x9321, 0x200)
        );
        let last = &all[6];
        assert_eq!((last.name.as_str(), last.address), (".hip_fat", 0x10000));
        assert_eq!((last.size, last.raw.len()), (0xe001, 0xe200));
        assert_eq!(u32_at(&new, 0x98 + 56), 0x1f000);
        assert!(new.ends_with(b"overlay"));
        if symbols {
            let found = symbols_of_bundles(&new);
            assert_eq!(
                found,
                [("b0", 0, 7), ("b1", 0x7000, 7), ("b2", 0x9000, 7)].map(|(name, value, n)| (
                    name.to_owned(),
                    value,
                    n
                ))
            );
        }
        // Nothing follows it, so that it can grow in its place now, and shrink.
        let (more, _) = resize(&new, grow(), &[0x9345, 0x1800, 0x5001]).unwrap();
        assert_eq!(sections(&more).len(), 7);
        assert_eq!(registered(&more), [(0, 0x9345), (1, 0x1800), (2, 0x5001)]);
        assert!(resize(&new, plain(), &[0x9345, 0x1800, 0x5001]).is_err());
        let (less, _) = resize(&more, plain(), &[0x345, 0x1800, 0x10]).unwrap();
        assert_eq!(registered(&less), [(0, 0x345), (1, 0x1800), (2, 0x10)]);
    }
}

fn symbols_of_bundles(file: &[u8]) -> Vec<(String, u32, u8)> {
    symbols(file).into_iter().filter(|(name, ..)| name.starts_with('b')).collect()
}

#[test]
fn growth_needs_room_for_a_header() {
    let mut file = Sample::default().build();
    let table_end = 0x98 + 240 + 40 * sections(&file).len();
    file[table_end] = 1;
    let result = resize(&file, grow(), &[0x6345, 0x1800, 0x5001]);
    let expected = (ErrorKind::Limit, "no room for another section header");
    assert_eq!(result.unwrap_err(), expected);
}

#[test]
fn bundles_with_foreign_references_do_not_move() {
    let file = Sample::default().with_lea(1).build();
    let result = resize(&file, grow(), &[0x6345, 0x1800, 0x5001]);
    let at = BASE + 0x1000 + 0x24;
    let text = Error::foreign_reference(1, at).to_string();
    assert_eq!(result.unwrap_err(), (ErrorKind::Refused, &*text));
    // Nor in its section.
    let result = resize(&file, plain(), &[0x3001, 0x1800, 0x1000]);
    let error = result.unwrap_err().to_string();
    assert!(error.starts_with("bundle 1 must move, but 0x"), "{error}");
    let file = Sample { wrappers: vec![0, 2], ..Sample::default() }.build();
    let result = resize(&file, grow(), &[0x6345, 0x1800, 0x5001]);
    let text = "bundle 1 must move, but no wrapper leads to it";
    assert_eq!(result.unwrap_err(), (ErrorKind::Refused, text));
}

#[test]
fn bundles_with_a_wrapper_are_not_removed() {
    let result = resize(&Sample::default().build(), plain(), &[0x345, 0, 0x1321]);
    assert_eq!(result.unwrap_err().kind(), ErrorKind::NothingLeft);
    let sample = Sample { wrappers: vec![0, 2], ..Sample::default() };
    let (new, _) = resize(&sample.build(), plain(), &[0x345, 0, 0x1321]).unwrap();
    assert_eq!(registered(&new), [(0, 0x345), (2, 0x1321)]);
    assert_eq!(raw_sizes(&new, ".hip_fat"), [0x2400]);
    let sample = Sample { wrappers: Vec::new(), ..Sample::default() };
    let result = resize(&sample.build(), plain(), &[0, 0, 0]);
    assert_eq!(result.unwrap_err().kind(), ErrorKind::NothingLeft);
}

#[test]
fn device_code_outside_the_file_is_refused() {
    let mut file = Sample::default().build();
    let wrappers = sections(&file)[3].raw.start;
    file[wrappers + 24..wrappers + 28].copy_from_slice(b"HIPK");
    let result = resize(&file, plain(), &[0x345, 0x800, 0x1321]);
    assert!(result.unwrap_err().is_moved_out());
}

#[test]
fn wrappers_must_point_to_bundles() {
    let mut file = Sample::default().build();
    let wrappers = sections(&file)[3].raw.start;
    file[wrappers + 24 + 8] = 0x10;
    let error = resize(&file, plain(), &[0x345, 0x800, 0x1321]).unwrap_err();
    let text = Error::wrapper_target(1, BASE + 0x4018, BASE + 0x8010).to_string();
    assert_eq!(error, (ErrorKind::Malformed, &*text));
}

#[test]
fn wrappers_of_another_form_are_refused() {
    let mut file = Sample::default().build();
    let wrappers = sections(&file)[3].raw.start;
    file[wrappers + 4] = 2;
    let result = resize(&file, plain(), &[0x345, 0x800, 0x1321]);
    let error = result.unwrap_err().to_string();
    assert!(error.starts_with("wrapper 0 at ") && error.contains(" version 2,"), "{error}");
}

#[test]
fn a_part_of_a_wrapper_is_refused() {
    let mut file = Sample::default().build();
    let header = 0x98 + 240 + 40 * 3;
    file[header + 8] = 24 * 2 + 8;
    let result = resize(&file, plain(), &[0x345, 0x800, 0x1321]);
    assert!(result.unwrap_err().to_string().contains(": 56 bytes, "));
}

#[test]
fn unknown_bytes_between_bundles_are_refused() {
    let file = Sample::default().build();
    let (section, found) = bundles(&file).remove(0);
    let items = [&found[0], &found[2]];
    let range = |range: &std::ops::Range<usize>| range.start as u64..range.end as u64;
    let items = items.map(|place| Item { old: range(place), new: None, joined: false });
    let edit = SectionEdit {
        range: range(&(section.raw.start..section.raw.start + section.size)),
        name: ".hip_fat".to_owned(),
        change: SectionChange::Items(items.into()),
    };
    let result = run(&file, 0, plain(), vec![edit]);
    let offset = found[1].start as u64;
    let text = format!("unknown bytes at {offset:#x}, between device code");
    assert_eq!(result.unwrap_err(), (ErrorKind::Malformed, &*text));
}

#[test]
fn other_sections_are_not_edited() {
    let file = Sample::default().build();
    let text = sections(&file)[0].raw.clone();
    let range = text.start as u64..text.end as u64;
    let mut new = Output::new();
    new.push_zeros(8);
    let item = Item { old: range.start..range.start + 16, new: Some(new.clone()), joined: false };
    let changes =
        [SectionChange::Items(vec![item]), SectionChange::Contents(new), SectionChange::Removed];
    for change in changes {
        let edit = SectionEdit { range: range.clone(), name: ".text".to_owned(), change };
        let result = run(&file, 0, plain(), vec![edit]);
        assert!(result.unwrap_err().unsupported().is_some());
    }
}

/// Returns the error for a file with one field changed.
fn refusal(at: usize, bytes: &[u8]) -> String {
    let file = Sample::default().build();
    let mut changed = file.clone();
    changed[at..at + bytes.len()].copy_from_slice(bytes);
    // The places of bundles are those of the sound file.
    run(&changed, 0, plain(), zeroing(&file, 16)).unwrap_err().to_string()
}

#[test]
fn other_files_are_refused() {
    let section = 0x98 + 240;
    let cases: [(usize, &[u8], &str); 15] = [
        (0x86, &[97], "unsupported PE: more than 96 sections"),
        (0x98, &[0x0b, 0x01], "unsupported PE: 32 bits"),
        (0x98, &[0x0b, 0x03], "unsupported PE: unknown magic of the optional header"),
        (0x84, &[0x4c, 0x01], "unsupported PE: neither x86-64 nor ARM64"),
        (0, b"ZM", "unsupported PE: no DOS header"),
        (0x80, b"NE", "unsupported PE: no signature \"PE\""),
        (
            0x3c,
            &[0xff; 4],
            "the signature lies at 0xffffffff..0x100000003, beyond the end of the file at 0xa000",
        ),
        (0x98 + 108, &[17], "unsupported PE: optional header smaller than its data directories"),
        (0x98 + 32, &[0, 2], "unsupported PE: sections not aligned to pages"),
        (0x98 + 36, &[1], "unsupported PE: unknown alignment in the file"),
        (
            0x86,
            &[0xff, 0xff],
            "the section table lies at 0x188..0x280160, beyond the end of the file at 0xa000",
        ),
        (
            section + 8,
            &[1, 0x10],
            "inconsistent section headers: they overlap, or are not in the order of addresses",
        ),
        (section + 12, &[1], "inconsistent section headers: an address is not aligned"),
        (section + 16, &[0, 4], "inconsistent section headers: they overlap in the file"),
        (
            section + 200 + 16,
            &[0, 0, 1],
            "a section lies at 0x9e00..0x19e00, beyond the end of the file at 0xa000",
        ),
    ];
    for (at, bytes, expected) in cases {
        assert_eq!(refusal(at, bytes), expected);
    }
}

#[test]
fn base_relocations_in_device_code_are_refused() {
    let mut file = Sample::default().build();
    let relocations = sections(&file)[5].raw.start;
    file[relocations + 1] = 0x50;
    let result = resize(&file, plain(), &[0x345, 0x800, 0x1321]);
    let expected = "inconsistent section headers: base relocations in device code";
    assert_eq!(result.unwrap_err().to_string(), expected);
}

#[test]
fn base_relocations_of_unknown_types_pin_everything() {
    let sample = Sample::default().with_pointer(0, 0);
    let mut file = sample.build();
    let relocations = sections(&file)[5].raw.start;
    let entry = relocations + 8 + 6 + 8;
    assert_eq!(file[entry..entry + 2], [0, 0xa0]);
    file[entry + 1] = 0x40;
    let (new, _) = resize(&file, plain(), &[0x345, 0x800, 0x1321]).unwrap();
    assert_eq!(raw_sizes(&new, ".hip_fat"), [0x400, 0x800, 0x1400]);
}

#[test]
fn members_of_archives_are_edited_in_their_place() {
    let file = Sample { checksum: true, symbols: true, ..Sample::default() }.build();
    let mut archive = b"!<arch>\nmember header...".to_vec();
    let start = archive.len();
    archive.extend(&file);
    let sizes = [0x345, 0x800, 0x1321];
    let (member, _) = resize_in(&archive, start, plain(), &sizes).unwrap();
    assert!(member == resize(&file, plain(), &sizes).unwrap().0);
}

#[test]
fn truncated_files_are_errors() {
    let file = Sample { symbols: true, ..Sample::default() }.build();
    let end_of_symbols = file.len() - 16;
    for len in (0..file.len()).filter(|len| *len < 0x400 || len % 61 == 0) {
        let result = run(&file[..len], 0, plain(), zeroing(&file, 16));
        assert!(result.is_err() || len >= end_of_symbols, "{len:#x}");
    }
}
