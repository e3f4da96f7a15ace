//! Edits of fatbinaries beside other data, in sections of linked files in which nothing can move.

use crate::editing::*;
use fat_edit::{CompressOptions, Edit, EditNote, EditOptions, EditPlan, EditableFile, ErrorKind};
use fat_object::{Finding, Location};
use samples::bundle::{GFX90A, bundle};
use samples::damage::judge_at;
use samples::fatbin::{Made, fatbin};
use samples::linked::{self, AARCH64, EXEC, Linked, Loaded, Pointers, Style};
use samples::{elf, linked_pe};

/// Other data, which no edit may change.
const AROUND: [u8; 24] = [0xa5; 24];

fn image(sm: u32) -> Made {
    Made::cubin(sm, &code(sm, 3000 + sm))
}

/// Fatbinaries, and other data before, between and after them.
fn beside() -> (Vec<Vec<u8>>, Vec<u8>) {
    let sets: [&[u32]; 4] = [&[75, 80, 90], &[80], &[90], &[90, 120]];
    let fatbins: Vec<_> = (sets.iter())
        .map(|set| fatbin(&set.iter().map(|&sm| image(sm)).collect::<Vec<_>>()))
        .collect();
    let data = fatbins.iter().flat_map(|fatbin| [&AROUND[..], fatbin].concat());
    let data = data.chain(AROUND).collect();
    (fatbins, data)
}

/// Returns a file with other fatbinaries in these places, and zeros after each.
fn changed(file: &[u8], old: &[Vec<u8>], new: &[Vec<u8>]) -> Vec<u8> {
    let mut out = file.to_vec();
    for (old, new) in old.iter().zip(new) {
        let at = file.windows(old.len()).position(|bytes| bytes == old).unwrap();
        out[at..at + old.len()].fill(0);
        out[at..at + new.len()].copy_from_slice(new);
    }
    out
}

/// The fatbinaries with images for `sm_90` alone.
fn thinned() -> Vec<Vec<u8>> {
    vec![fatbin(&[image(90)]), fatbin(&[]), fatbin(&[image(90)]), fatbin(&[image(90)])]
}

fn keep_90(contents: &EditableFile, edit: &mut Edit) {
    let others = contents.images().iter().filter(|image| image.target().id() != "sm_90");
    others.for_each(|image| edit.remove(image.index()));
}

fn empty() -> EditOptions {
    EditOptions::default().with_allow_empty(true)
}

fn thin(file: &[u8]) -> (EditPlan, Vec<u8>) {
    plan_with(file, empty(), &[], keep_90).unwrap()
}

fn bytes(fatbins: &[Vec<u8>]) -> u64 {
    fatbins.iter().map(|fatbin| fatbin.len() as u64).sum()
}

fn programs(rodata: &[u8]) -> Vec<Linked> {
    let plain = Linked { rodata: Some(rodata.to_vec()), ..Linked::new(Style::Third, Vec::new()) };
    vec![
        Linked { style: Style::First, ..plain.clone() },
        Linked { e_type: EXEC, pointers: Pointers::Plain, ..plain.clone() },
        Linked { machine: AARCH64, page: 0x10000, ..plain.clone() },
        plain,
    ]
}

#[test]
fn images_leave_and_nothing_moves() {
    let (fatbins, data) = beside();
    for program in programs(&data) {
        let file = program.build();
        let (plan, out) = thin(&file);
        assert!(out == changed(&file, &fatbins, &thinned()));
        let zeros = bytes(&fatbins) - bytes(&thinned());
        let notes = [EditNote::EmptyFatbinaries { count: 1 }, EditNote::Zeroed { bytes: zeros }];
        assert_eq!(plan.notes(), notes);
        assert_eq!(plan.images().iter().filter(|image| image.size_after.is_some()).count(), 3);
        // The empty one is not found any more.
        assert_eq!(surveyed(&out).containers().len(), 3);
        assert!(thin(&out).0.is_unchanged());
        let error = plan_with(&file, EditOptions::default(), &[], keep_90).unwrap_err();
        assert!(error.to_string().ends_with(": no image would be left"), "{error}");
    }
}

#[test]
fn a_section_may_start_with_one() {
    let (fatbins, data) = beside();
    // Other data after it is not a finding, as in a walk.
    let file = Linked { rodata: Some(data[24..].to_vec()), ..programs(&data)[0].clone() }.build();
    let contents = surveyed(&file);
    assert!(contents.findings().is_empty());
    assert!(contents.containers().iter().all(|of| of.is_in_place() && of.uneditable().is_none()));
    assert!(thin(&file).1 == changed(&file, &fatbins, &thinned()));
    // In an object, what is beside the other data may be referred to.
    let object = elf::object(vec![elf::progbits(".data", &data[24..])]).build();
    let contents = surveyed(&object);
    assert!(contents.findings().is_empty() && contents.containers().len() == 4);
    assert!(contents.containers().iter().all(|of| of.uneditable().is_some()));
    let error = plan_with(&object, empty(), &[], keep_90).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[test]
fn findings_in_decompressed_contents_say_nothing_about_a_section() {
    let junk = [bundle(&[(GFX90A, &code(1, 3000))], 4096), vec![0; 64], AROUND.to_vec()].concat();
    let packed = ccob::compress(&junk, &ccob::WriteOptions::default()).unwrap();
    // As long as what is decompressed: each place in there is one in the section, too.
    let data = [packed, AROUND.repeat(junk.len())].concat();
    let object = elf::object(vec![elf::progbits(".data", &data)]).build();
    let contents = surveyed(&object);
    let trailing = |finding: &Finding| matches!(finding.location(), Location::Decompressed(_));
    assert!(contents.findings().iter().any(trailing), "{:?}", contents.findings());
    let containers = contents.containers();
    assert!(!containers.is_empty() && containers.iter().all(|of| of.uneditable().is_some()));
}

#[test]
fn pages_of_zeros_are_known() {
    let entries: Vec<_> = [80, 90].map(|sm| Made::cubin(sm, &[7; 30_000])).to_vec();
    let file = Linked { rodata: Some(fatbin(&entries)), ..programs(&[])[3].clone() }.build();
    let (plan, out) = thin(&file);
    let holes = plan.zeros(&[]);
    let [hole] = &holes[..] else { panic!("{holes:?}") };
    assert!(out[hole.start as usize..hole.end as usize].iter().all(|&byte| byte == 0));
    assert!(hole.end - hole.start == 30_000 + 64);
    // Zeros of the file that are copied are there as well.
    let (plan, again) = plan_with(&out, EditOptions::default(), &[], |_, _| {}).unwrap();
    assert!(again == out && plan.zeros(&holes) == holes && plan.zeros(&[]).is_empty());
}

#[test]
fn both_kinds_of_places_change_together() {
    let (fatbins, data) = beside();
    let program = Linked { cuda: true, bundles: fatbins.clone(), ..programs(&data)[3].clone() };
    let file = program.build();
    let (_, out) = thin(&file);
    linked::check_same_but(&file, &out, &[".rodata"]);
    let (before, after) = (Loaded::new(&file), Loaded::new(&out));
    let rodata = |loaded: &Loaded| loaded.contents(&loaded.section(".rodata")).to_vec();
    assert!(rodata(&after) == changed(&rodata(&before), &fatbins, &thinned()));
    for (at, new) in after.registered().into_iter().zip(thinned()) {
        assert!(after.read(at, new.len() as u64).unwrap() == new);
    }
    assert!(thin(&out).0.is_unchanged());
}

type Wish = dyn Fn(&EditableFile, &mut Edit);

#[test]
fn nothing_else_is_done_in_place() {
    let (_, data) = beside();
    let file = programs(&data)[3].build();
    let replace = |_: &EditableFile, edit: &mut Edit| edit.replace(0, 0);
    let add = |_: &EditableFile, edit: &mut Edit| {
        edit.add(0, "cuda-nvptx64-nvidia-cuda--sm_90", 0);
    };
    let compress = |_: &EditableFile, edit: &mut Edit| edit.compress(CompressOptions::default());
    let decompress = |_: &EditableFile, edit: &mut Edit| edit.decompress();
    for edit in [&replace as &Wish, &add, &compress, &decompress] {
        let options = empty().with_any_image(true);
        let error = plan_with(&file, options.clone(), &[b"new"], edit).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        let options = options.with_allow_uneditable(true);
        assert!(plan_with(&file, options, &[b"new"], edit).unwrap().0.is_unchanged());
    }
}

#[test]
fn bytes_that_a_loader_writes_to_are_left() {
    let (_, data) = beside();
    let bundles = vec![fatbin(&[image(90)])];
    for pointers in [Pointers::Rela, Pointers::Relr] {
        let program =
            Linked { cuda: true, bundles: bundles.clone(), pointers, ..programs(&data)[3].clone() };
        let mut file = program.build();
        let loaded = Loaded::new(&file);
        let name = if pointers == Pointers::Rela { ".rela.dyn" } else { ".relr.dyn" };
        let (table, rodata) = (loaded.section(name), loaded.section(".rodata"));
        // In the first fatbinary.
        let place = rodata.address + 24 + 40;
        let at = table.offset as usize;
        file[at..at + 8].copy_from_slice(&place.to_le_bytes());
        let contents = surveyed(&file);
        let in_place: Vec<_> = contents.containers().iter().map(|of| of.is_in_place()).collect();
        assert_eq!(in_place, [false, false, true, true, true]);
        let error = plan_with(&file, empty(), &[], keep_90).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        let left = empty().with_allow_uneditable(true);
        let (_, out) = plan_with(&file, left, &[], keep_90).unwrap();
        let first = rodata.offset as usize + 24;
        assert!(out[first..first + 9000] == file[first..first + 9000]);
    }
}

#[test]
fn dlls_change_in_place() {
    let set = [75, 90].map(|sm| Made::cubin(sm, &code(sm, 1000)));
    let (old, new) = (vec![fatbin(&set)], vec![fatbin(&set[1..])]);
    let text = [&AROUND[..], &old[0], &AROUND].concat();
    for units in [vec![], vec![fatbin(&[image(75), image(90)])]] {
        let file = linked_pe::build_cuda_beside(&units, &text);
        let (_, out) = thin(&file);
        let place = file.windows(24).position(|bytes| bytes == AROUND).unwrap();
        let end = place + text.len();
        assert!(out[place..end] == changed(&file[place..end], &old, &new));
        if units.is_empty() {
            assert!(out == changed(&file, &old, &new));
        } else {
            assert!(linked_pe::registered(&out)[0].starts_with(&fatbin(&[image(90)])));
        }
        assert!(thin(&out).0.is_unchanged());
    }
}

/// The offset of the optional header of samples.
const OPTIONAL: usize = 0x98;

#[test]
fn checksums_and_signatures_of_dlls_follow() {
    let set = [75, 90].map(|sm| Made::cubin(sm, &code(sm, 1000)));
    let (old, new) = (vec![fatbin(&set)], vec![fatbin(&set[1..])]);
    let mut file = linked_pe::build_cuda_beside(&[], &old[0]);
    file[OPTIONAL + 64] = 1;
    let (_, out) = thin(&file);
    let sum = u32::from_le_bytes(out[OPTIONAL + 64..OPTIONAL + 68].try_into().unwrap());
    let mut expected = changed(&file, &old, &new);
    expected[OPTIONAL + 64..OPTIONAL + 68].fill(0);
    let words = expected.chunks(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 8);
    let folded = words.fold(0, |sum, word| {
        let sum = sum + word;
        (sum & 0xffff) + (sum >> 16)
    });
    assert_eq!(u64::from(sum), folded + expected.len() as u64);
    expected[OPTIONAL + 64..OPTIONAL + 68].copy_from_slice(&sum.to_le_bytes());
    assert!(out == expected);

    let unsigned = linked_pe::build_cuda_beside(&[], &old[0]);
    let mut signed = unsigned.clone();
    let directory = OPTIONAL + 112 + 4 * 8;
    signed[directory..directory + 4].copy_from_slice(&(unsigned.len() as u32).to_le_bytes());
    signed[directory + 4..directory + 8].copy_from_slice(&64_u32.to_le_bytes());
    signed.resize(unsigned.len() + 64, 0x5a);
    let error = plan_with(&signed, empty(), &[], keep_90).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Host, "{error}");
    let options = empty().with_drop_signature(true);
    let (plan, out) = plan_with(&signed, options, &[], keep_90).unwrap();
    assert!(plan.notes().contains(&EditNote::SignatureDropped));
    assert!(out == changed(&unsigned, &old, &new));
}

#[test]
fn damaged_files_cause_no_panic() {
    let set = [75, 90].map(|sm| Made::cubin(sm, &code(sm, 40)));
    let rodata = [&AROUND[..], &fatbin(&set), &AROUND, &fatbin(&set[..1]), &AROUND].concat();
    let file = programs(&rodata)[3].build();
    let section = Loaded::new(&file).section(".rodata");
    let owned = section.offset as usize..(section.offset + section.size) as usize;
    judge_at(&file, owned, oracles::edits::check);
    let file = linked_pe::build_cuda_beside(&[], &rodata);
    let place = file.windows(24).position(|bytes| bytes == AROUND).unwrap();
    judge_at(&file, place..place + rodata.len(), oracles::edits::check);
}
