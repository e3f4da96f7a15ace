//! Edits of every kind of file that holds device code, by the files of `examples/data`.

use std::collections::BTreeSet;
use std::io;

use crate::editing::*;
use ccob::{ReadOptions, WriteOptions};
use fat_edit::{
    Change, CompressOptions, Edit, EditOptions, EditableFile, ErrorKind, survey, survey_closed,
};
use fat_object::{ContainerKind, ImageInfo, Options};
use samples::ar::archive;
use samples::bundle::{GFX90A, GFX906, GFX1100, HOST, bundle};
use target_id::OffloadKind;

/// The files of the examples that hold device code, and what it is.
fn examples() -> Vec<(String, Vec<u8>, EditableFile)> {
    let mut examples = Vec::new();
    for (name, bytes) in samples::examples() {
        let contents = survey(&mut io::Cursor::new(&bytes), &Options::default());
        match contents {
            Ok(contents) if contents.containers().is_empty() => {}
            Ok(contents) => examples.push((name, bytes, contents)),
            Err(error) => assert!(error.kind() == ErrorKind::Unsupported, "{error}"),
        }
    }
    assert!(examples.len() > 15, "{}", examples.len());
    examples
}

/// Returns whether files like this are edited.
fn is_edited(name: &str) -> bool {
    let left_alone = ["macos", "darwin", ".bc", "proposal"];
    name == "bundle.bc" || !left_alone.iter().any(|part| name.contains(part))
}

#[test]
fn files_are_thinned_to_every_target_in_turn() {
    for (name, bytes, contents) in examples() {
        let targets: BTreeSet<String> =
            contents.images().iter().map(|image| image.target().id().to_owned()).collect();
        for target in targets.iter().filter(|target| !target.is_empty()) {
            let stays = |image: &ImageInfo| {
                image.target().kind() == Some(&OffloadKind::Host) || image.target().id() == target
            };
            let edit = |contents: &EditableFile, edit: &mut Edit| {
                let images = contents.images().iter();
                images.filter(|image| !stays(image)).for_each(|image| edit.remove(image.index()));
            };
            // See below.
            let options = EditOptions::default().with_grow(true);
            let result = plan_with(&bytes, options, &[], edit);
            let (plan, out) = match result {
                Ok(result) => result,
                // Some of its containers have nothing for this target.
                Err(error) if error.kind() == ErrorKind::Refused => continue,
                Err(error) => {
                    assert!(!is_edited(&name), "{name} to {target}: {error}");
                    assert!(error.kind() == ErrorKind::Unsupported, "{error}");
                    continue;
                }
            };
            let kept = contents.images().iter().filter(|image| stays(image));
            let all = images(&bytes);
            let expected: Vec<_> = kept.map(|image| all[image.index()].clone()).collect();
            assert!(images(&out) == expected, "{name} to {target}");
            // This may compress with less effort than LLVM with libzstd.
            let is_compressed = contents.containers().iter().any(|c| c.compression().is_some());
            assert!(is_compressed || out.len() <= bytes.len(), "{name} to {target}");
            for (container, change) in contents.containers().iter().zip(plan.containers()) {
                let of_it = &contents.images()[container.images()];
                assert_eq!(of_it.iter().all(stays), change.change == Change::Kept, "{name}");
                assert_eq!(of_it.iter().any(stays), change.change != Change::Removed, "{name}");
            }
            // Nothing more is to be done.
            let (again, _) = plan_with(&out, EditOptions::default(), &[], edit).unwrap();
            assert!(again.is_unchanged(), "{name} to {target}");
        }
    }
}

#[test]
fn decompressing_restores_compressed_files() {
    for (name, bytes, contents) in examples() {
        let mut compress = Edit::default();
        compress.compress(CompressOptions::default());
        let mut decompress = Edit::default();
        decompress.decompress();
        let has = |kind| contents.containers().iter().any(|c| c.kind() == kind);
        let is_plain = has(ContainerKind::Bundle) || has(ContainerKind::NvFatbin);
        let small = match run(&contents, &bytes, &[], &compress) {
            Ok((plan, small)) => {
                assert!(is_plain || plan.is_unchanged(), "{name}");
                small
            }
            Err(error) if error.kind() == ErrorKind::NoBundle => {
                assert!(!is_plain && !has(ContainerKind::Ccob), "{name}");
                continue;
            }
            Err(error) => {
                assert!(!is_edited(&name), "{name}: {error}");
                continue;
            }
        };
        assert!(images(&small) == images(&bytes), "{name}");
        if contents.images().iter().any(|image| image.stored_size() != Some(image.size())) {
            continue;
        }
        match run(&surveyed(&small), &small, &[], &decompress) {
            Ok((_, back)) => assert!(back == bytes, "{name}"),
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

#[test]
fn archives_in_archives_and_in_compressed_bundles_are_edited() {
    let whole = bundle(&[(HOST, b""), (GFX90A, &code(3, 5000)), (GFX1100, &code(4, 5001))], 4096);
    let thin = bundle(&[(HOST, b""), (GFX1100, &code(4, 5001))], 4096);
    let nested = |bundle: &[u8]| {
        let inner = archive(&[("bundle", bundle), ("text", b"text")]);
        archive(&[("first", b"no device code"), ("inner.a", &inner), ("last", bundle)])
    };
    assert!(remove(&nested(&whole), &[GFX90A]).unwrap() == nested(&thin));
    let compressed =
        |bundle: &[u8]| ccob::compress(&nested(bundle), &WriteOptions::default()).unwrap();
    let out = remove(&compressed(&whole), &[GFX90A]).unwrap();
    assert!(ccob::decompress(&out, &ReadOptions::default()).unwrap().data == nested(&thin));
    assert!(out == compressed(&thin));
}

#[test]
fn files_that_are_not_read_do_not_take_the_form_of_others() {
    let whole = bundle(&[(HOST, b""), (GFX90A, &code(3, 5000))], 4096);
    let text = b"one\n";
    let with = |bundle: &[u8]| archive(&[("bundle", bundle), ("text", text)]);
    let file = with(&ccob::compress(&whole, &WriteOptions::default()).unwrap());
    let walk = Options::default();
    let contents = survey_closed(&mut io::Cursor::new(&file), &walk).unwrap();
    let mut edit = Edit::default();
    edit.decompress();
    assert!(run(&contents, &file, &[], &edit).unwrap().1 == with(&whole));
}

#[test]
fn the_host_is_removed_only_on_request() {
    let file = bundle(&[(HOST, b"host code"), (GFX906, b"one"), (GFX1100, b"other")], 1);
    let thin = |options: EditOptions, is_wanted: fn(&ImageInfo) -> bool| {
        plan_with(&file, options, &[], |contents, edit| {
            let images = contents.images().iter().filter(|image| !is_wanted(image));
            images.for_each(|image| edit.remove(image.index()));
        })
        .map(|(_, out)| out)
    };
    let for_gfx1100 = |image: &ImageInfo| image.target().id() == "gfx1100";
    let error = thin(EditOptions::default(), for_gfx1100).unwrap_err();
    assert!(error.to_string().starts_with("image 0 is host code"), "{error}");
    assert_eq!(io::Error::from(error).kind(), io::ErrorKind::InvalidInput);
    let or_host = |image: &ImageInfo| image.target().is_host() || image.target().id() == "gfx1100";
    let kept = thin(EditOptions::default(), or_host).unwrap();
    assert_eq!(kept, bundle(&[(HOST, b"host code"), (GFX1100, b"other")], 1));
    let bare = thin(EditOptions::default().with_remove_host(true), for_gfx1100).unwrap();
    assert_eq!(bare, bundle(&[(GFX1100, b"other")], 1));
}
