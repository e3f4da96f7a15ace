//! Edits of plain bundles in files of their own.

use crate::editing::*;
use fat_edit::{CompressOptions, Edit, EditOptions, EditableFile, ErrorKind};
use samples::bundle::{GFX90A, GFX906, GFX1100, HOST, bundle};

fn sample() -> Vec<u8> {
    bundle(
        &[
            (HOST, b""),
            (GFX906, &code(3, 5000)),
            (GFX90A, &code(5, 4096)),
            (GFX1100, &code(7, 100)),
        ],
        4096,
    )
}

#[test]
fn a_thinned_bundle_is_laid_out_as_a_new_one() {
    let out = remove(&sample(), &[GFX906]).unwrap();
    let expected = bundle(&[(HOST, b""), (GFX90A, &code(5, 4096)), (GFX1100, &code(7, 100))], 4096);
    assert_eq!(out, expected);
}

#[test]
fn removing_nothing_changes_nothing() {
    let file = paged(&[sample(), sample()]);
    assert_eq!(remove(&file, &[]).unwrap(), file);
    assert_eq!(remove(&file, &["hip-amdgcn-amd-amdhsa--gfx600"]).unwrap(), file);
}

#[test]
fn the_last_image_stays() {
    let error = remove(&sample(), &[GFX906, GFX90A, GFX1100]).unwrap_err();
    assert!(error.kind() == ErrorKind::Refused, "{error}");
    assert_eq!(error.to_string(), "bundle:0: no image would be left");
}

#[test]
fn bundles_still_start_at_pages() {
    let file = paged(&[sample(), sample(), sample()]);
    let out = remove(&file, &[GFX906, GFX1100]).unwrap();
    let thin = bundle(&[(HOST, b""), (GFX90A, &code(5, 4096))], 4096);
    assert_eq!(out, paged(&[thin.clone(), thin.clone(), thin]));
}

#[test]
fn an_image_of_the_same_size_is_put_in_place() {
    let mut file = sample();
    // Not as compact as a new layout would be.
    file.extend([0; 5000]);
    let new = code(9, 4096);
    let options = EditOptions::default().with_any_image(true);
    let (_, out) = plan_with(&file, options, &[&new], |contents, edit| {
        let old = contents.images().iter().find(|image| image.id() == Some(GFX90A)).unwrap();
        edit.replace(old.index(), 0);
    })
    .unwrap();
    let at = file.windows(4096).position(|w| w == code(5, 4096)).unwrap();
    file[at..at + 4096].copy_from_slice(&new);
    assert_eq!(out, file);
}

#[test]
fn ids_keep_every_byte() {
    let ids: [&[u8]; 3] = [b"host-\xff", b"hip-\xfe\xfd", b"hip-amdgcn-amd-amdhsa--gfx90a"];
    let layout = |ids: &[&[u8]]| {
        let sizes = ids.iter().map(|id| (*id, 10_u64));
        bundle_format::layout(sizes, 4096).unwrap().to_vec(&vec![&[7; 10][..]; ids.len()]).unwrap()
    };
    let options = EditOptions::default().with_allow_findings(true);
    let (_, out) = plan_with(&layout(&ids), options, &[], |_, edit| edit.remove(2)).unwrap();
    assert_eq!(out, layout(&ids[..2]));
}

#[test]
fn the_alignment_is_kept() {
    let (a, b, c) = (code(3, 5000), code(5, 4097), code(7, 100));
    let all: [(&str, &[u8]); 3] = [(GFX906, &a), (GFX90A, &b), (GFX1100, &c)];
    // Tight, at powers of two, and at numbers that are none.
    for (align, new) in [(1, 1), (2, 2), (64, 64), (4096, 4096), (8192, 4096), (96, 32)] {
        let out = remove(&bundle(&all, align), &[GFX906]).unwrap();
        assert_eq!(out, bundle(&all[1..], new), "{align}");
        let out = remove(&bundle(&all, align), &[GFX90A]).unwrap();
        assert_eq!(out, bundle(&[all[0], all[2]], new), "{align}");
    }
}

#[test]
fn entries_may_lie_in_any_order_and_far_apart() {
    // Two entries: the first lies after the second, both far after their descriptors.
    let mut file = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    file.extend(2_u64.to_le_bytes());
    for (offset, size, id) in [(0x6000_u64, 3_u64, GFX906), (0x3000, 4, GFX90A)] {
        for number in [offset, size, id.len() as u64] {
            file.extend(number.to_le_bytes());
        }
        file.extend(id.bytes());
    }
    file.resize(0x3000, 0);
    file.extend(b"fore");
    file.resize(0x6000, 0);
    file.extend(b"aft");
    assert_eq!(remove(&file, &[]).unwrap(), file);
    assert_eq!(remove(&file, &[GFX90A]).unwrap(), bundle(&[(GFX906, b"aft")], 4096));
    let options = EditOptions::default().with_any_image(true);
    let edit = |contents: &EditableFile, edit: &mut Edit| {
        assert_eq!(contents.images().len(), 2);
        edit.replace(0, 0);
    };
    let (_, longer) = plan_with(&file, options, &[b"after"], edit).unwrap();
    assert_eq!(longer, bundle(&[(GFX906, b"after"), (GFX90A, b"fore")], 4096));
}

#[test]
fn an_emptied_bundle_keeps_its_page() {
    let options = EditOptions::default().with_allow_empty(true);
    let all = |contents: &EditableFile, edit: &mut Edit| {
        let device = contents.images().iter().filter(|image| image.id() != Some(HOST));
        device.for_each(|image| edit.remove(image.index()));
    };
    let (plan, out) = plan_with(&sample(), options.clone(), &[], all).unwrap();
    assert_eq!(out, bundle(&[(HOST, b"")], 4096));
    assert_eq!((out.len(), plan.containers()[0].size_after), (4096, 4096));
    let (_, out) = plan_with(&bundle(&[(GFX90A, b"x")], 4096), options.clone(), &[], all).unwrap();
    let mut expected = bundle(&[], 4096);
    expected.resize(4096, 0);
    assert_eq!(out, expected);
    let (_, out) = plan_with(&bundle(&[(GFX90A, b"xyz")], 1), options, &[], all).unwrap();
    assert_eq!(out, bundle(&[], 1));
}

#[test]
fn pages_of_zeros_and_odd_gaps_stay() {
    let thin = bundle(&[(HOST, b""), (GFX90A, &code(5, 4096)), (GFX1100, &code(7, 100))], 4096);
    let with = |bundle: &[u8]| {
        let mut file = bundle.to_vec();
        file.resize(file.len().next_multiple_of(4096) + 2 * 4096, 0);
        file.extend(bundle);
        file.extend([0; 1000]);
        file
    };
    assert_eq!(remove(&with(&sample()), &[GFX906]).unwrap(), with(&thin));
    let odd = |bundle: &[u8]| [bundle, &[0; 33], bundle].concat();
    assert_eq!(remove(&odd(&sample()), &[GFX906]).unwrap(), odd(&thin));
}

#[test]
fn empty_images_keep_the_alignment() {
    for align in [1, 4096] {
        let all: [(&str, &[u8]); 3] = [(GFX906, b""), (GFX90A, b""), (GFX1100, b"code")];
        let once = remove(&bundle(&all, align), &[GFX1100]).unwrap();
        assert_eq!(once, bundle(&all[..2], align));
        let twice = remove(&once, &[GFX90A]).unwrap();
        assert_eq!(twice, bundle(&all[..1], align));
        assert_eq!(twice, remove(&bundle(&all, align), &[GFX90A, GFX1100]).unwrap());
    }
}

/// As `thin` removed an image whose ID was damaged, and with it what showed the damage.
#[test]
fn a_bundle_with_a_malformed_id_is_edited_only_if_that_is_allowed() {
    let code = code(3, 5000);
    let damaged = "hipv4-amdgc\0\0\0";
    let control = "hipv4-amdgc\0\0amd-amdhsa--gfx90a";
    for id in [damaged, control, "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack*", "x"] {
        let file = bundle(&[(HOST, b""), (GFX906, &code), (id, &code)], 4096);
        let edits: [fn(&mut Edit); 4] = [
            |edit| edit.remove(1),
            |edit| edit.replace(1, 0),
            |edit| edit.add(0, GFX1100, 0),
            |edit| edit.compress(CompressOptions::default()),
        ];
        for change in edits {
            let run = |options: EditOptions| {
                let options = options.with_any_image(true);
                plan_with(&file, options, &[b"new"], |_, edit| change(edit))
            };
            let error = run(EditOptions::default()).unwrap_err();
            assert!(error.kind() == ErrorKind::Damaged, "{error}");
            let message = error.to_string();
            assert!(message.starts_with("bundle:0 at byte 0x0: bundle entry 2"), "{message}");
            let (_, out) = run(EditOptions::default().with_allow_findings(true)).unwrap();
            assert!(images(&out).contains(&(id.to_owned(), code.clone())));
        }
        let contents = surveyed(&file);
        assert_eq!(contents.findings().len(), 1);
        assert_eq!(contents.images().len(), 3);
    }
    // A broken rule of composition is only a warning.
    let twice = bundle(&[(HOST, b""), (GFX906, &code), (GFX906, b"x"), (GFX90A, b"y")], 4096);
    assert_eq!(surveyed(&twice).findings().len(), 0);
    assert_eq!(images(&remove(&twice, &[GFX90A]).unwrap()).len(), 3);
}

#[test]
fn bytes_after_a_bundle_stay_if_they_are_allowed() {
    let file = [sample(), b"trailing".to_vec()].concat();
    let change =
        |contents: &EditableFile, edit: &mut Edit| edit.remove(contents.images()[1].index());
    let error = plan_with(&file, EditOptions::default(), &[], change).unwrap_err();
    assert!(error.to_string().contains("unrecognized data"), "{error}");
    let options = EditOptions::default().with_allow_findings(true);
    let (_, out) = plan_with(&file, options, &[], change).unwrap();
    assert_eq!(out, [remove(&sample(), &[GFX906]).unwrap(), b"trailing".to_vec()].concat());
}

/// Images are edited as a whole, and so is the host's object with what is wrong in it.
#[test]
fn damage_in_an_image_can_be_allowed() {
    let mut archive = b"!<arch>\n".to_vec();
    archive.extend(b"cut short");
    let file = bundle(&[(HOST, &archive), (GFX906, b"a"), (GFX90A, b"b")], 1);
    let change = |_: &EditableFile, edit: &mut Edit| edit.remove(1);
    let error = plan_with(&file, EditOptions::default(), &[], change).unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with(&format!("bundle:0/image:{HOST} at byte ")), "{message}");
    let options = EditOptions::default().with_allow_findings(true);
    let (_, out) = plan_with(&file, options, &[], change).unwrap();
    assert_eq!(out, bundle(&[(HOST, &archive), (GFX90A, b"b")], 1));
}
