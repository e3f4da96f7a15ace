//! Edits of offload binaries in `.hip_fat` of PE files: the name of `.hip_fatbin`, cut to eight bytes.

use std::io::Cursor;

use crate::registered::{self, Form, TARGETS, Unit, contents_of, noise};
use fat_edit::{CompressOptions, Edit, EditNote, EditOptions, Error, ErrorKind, survey};
use fat_object::Options;
use offload_binary::FormatVersion;
use samples::linked_pe;

use crate::editing::{images, plan_with};

fn registered(file: &[u8]) -> Vec<Unit> {
    linked_pe::registered(file).iter().map(|memory| contents_of(memory)).collect()
}

fn edited(
    file: &[u8],
    new: &[&[u8]],
    options: EditOptions,
    edit: impl FnOnce(&mut Edit),
) -> Result<Vec<u8>, Error> {
    let options = options.with_any_image(true);
    plan_with(file, options, new, |_, wishes| edit(wishes)).map(|(_, out)| out)
}

fn without(file: &[u8], archs: &[&str]) -> Result<Vec<u8>, Error> {
    let contents = survey(&mut Cursor::new(file), &Options::default()).unwrap();
    edited(file, &[], EditOptions::default(), |edit| {
        for image in contents.images() {
            if archs.contains(&image.target().id()) {
                edit.remove(image.index());
            }
        }
    })
}

#[test]
fn one_target_is_kept() {
    for form in Form::ALL {
        for count in [1, 3] {
            let file = linked_pe::build(&form.units(count));
            let before = registered(&file);
            assert_eq!(before.concat().len(), 3 * count as usize);
            assert_eq!(images(&file).len(), 3 * count as usize, "{form:?}");
            for (_, kept) in TARGETS {
                let archs = TARGETS.map(|(_, arch)| arch);
                let others: Vec<_> = archs.into_iter().filter(|arch| *arch != kept).collect();
                let thinned = without(&file, &others).unwrap();
                linked_pe::check_same(&file, &thinned);
                let mut expected = before.clone();
                expected.iter_mut().for_each(|unit| unit.retain(|(arch, _)| arch == kept));
                assert_eq!(registered(&thinned), expected, "{form:?} {kept}");
                assert!(thinned.len() + 8000 * count as usize <= file.len(), "{form:?} {kept}");
                assert!(without(&thinned, &others).unwrap() == thinned, "idempotent");
            }
            let error = without(&file, &TARGETS.map(|(_, arch)| arch)).unwrap_err();
            assert!(error.kind() == ErrorKind::Refused, "{error}");
        }
    }
}

#[test]
fn images_are_replaced_and_grow() {
    let plain = EditOptions::default;
    for form in Form::ALL {
        let file = linked_pe::build(&form.units(3));
        for (image, options) in
            [(noise(77, 500), plain()), (noise(78, 60_000), plain().with_grow(true))]
        {
            if image.len() > 10_000 {
                let error =
                    edited(&file, &[&image], plain(), |edit| edit.replace(4, 0)).unwrap_err();
                assert!(error.to_string().contains("allow the file to grow"), "{form:?}: {error}");
            }
            let out = edited(&file, &[&image], options, |edit| edit.replace(4, 0)).unwrap();
            linked_pe::check_same(&file, &out);
            let mut expected = registered(&file);
            expected[1][1].1.clone_from(&image);
            assert_eq!(registered(&out), expected, "{form:?}");
        }
    }
}

#[test]
fn compressing_is_undone_by_decompressing() {
    let transform = |file: &[u8], wish: &dyn Fn(&mut Edit)| {
        plan_with(file, EditOptions::default(), &[], |_, edit| wish(edit)).unwrap()
    };
    let compress = |file: &[u8], upgrade| {
        let options = CompressOptions::default().with_upgrade_offload_binaries(upgrade);
        transform(file, &|edit| edit.compress(options.clone()))
    };
    for version in [FormatVersion::V1, FormatVersion::V2] {
        let file = linked_pe::build(&registered::repetitive_units(version));
        // Runtimes that read them need not read version 3.
        for upgrade in [false, true] {
            let (plan, same) = compress(&file, upgrade);
            assert!(plan.is_unchanged() && same == file);
            let notes = plan.notes();
            assert!(matches!(notes, [EditNote::OlderOffloadBinaries { .. }]), "{notes:?}");
        }
    }
    let file = linked_pe::build(&registered::repetitive_units(FormatVersion::V3));
    let (plan, small) = compress(&file, false);
    assert_eq!(plan.notes(), []);
    linked_pe::check_same(&file, &small);
    assert!(small.len() < file.len() / 2, "{} {}", small.len(), file.len());
    assert_eq!(registered(&small), registered(&file));
    assert!(compress(&small, false).1 == small, "idempotent");
    let (_, back) = transform(&small, &|edit| edit.decompress());
    assert!(back == file);
}

#[test]
fn damaged_libraries_cause_no_panic() {
    for form in Form::ALL {
        samples::damage::judge(&linked_pe::build(&form.units(3)), oracles::edits::check);
        samples::damage::judge(&linked_pe::build_hybrid(&form.units(3)), oracles::edits::check);
    }
}
