//! Edits of offload binaries, text bundles and of what is in neither; images replaced and added.

use crate::editing::*;
use bundle_format::text::{Leader, to_vec};
use fat_edit::{Edit, EditOptions, EditableFile, Error, ErrorKind, ImageChange};
use offload_binary::{Flags, FormatVersion, ImageEntry, ImageKind, OffloadBinary, OffloadKind};
use samples::bundle::{GFX90A, GFX906, GFX1100, HOST, bundle};
use samples::device::amd_of;

const ARCHS: [&str; 3] = ["gfx906", "gfx90a", "gfx1100"];

fn entry(arch: &str, kind: ImageKind, size: usize) -> ImageEntry<'_> {
    ImageEntry::new(size as u64)
        .with_image_kind(kind)
        .with_offload_kind(OffloadKind::HIP)
        .with_flags(Flags::from_bits_retain(0x80))
        .with_string("triple", "amdgcn-amd-amdhsa")
        .with_string("arch", arch)
        .with_string("note", "kept")
}

/// An offload binary for these processors, with LLVM bitcode in it.
fn package(version: FormatVersion, images: &[(&str, &[u8])]) -> Vec<u8> {
    let entries: Vec<_> =
        images.iter().map(|(arch, image)| entry(arch, ImageKind::BITCODE, image.len())).collect();
    let images: Vec<&[u8]> = images.iter().map(|(_, image)| *image).collect();
    offload_binary::layout(version, &entries).unwrap().to_vec(&images).unwrap()
}

fn bitcode(seed: u32, size: u32) -> Vec<u8> {
    let mut image = b"BC\xc0\xde".to_vec();
    image.extend(code(seed, size));
    image
}

fn edited(file: &[u8], images: &[&[u8]], edit: impl FnOnce(&EditableFile, &mut Edit)) -> Vec<u8> {
    plan_with(file, EditOptions::default(), images, edit).unwrap().1
}

fn refused(file: &[u8], images: &[&[u8]], edit: impl FnOnce(&EditableFile, &mut Edit)) -> Error {
    plan_with(file, EditOptions::default(), images, edit).map(drop).unwrap_err()
}

#[test]
fn images_are_removed_from_offload_binaries() {
    let images = [bitcode(1, 100), bitcode(2, 33), bitcode(3, 7)];
    let all: Vec<_> = ARCHS.into_iter().zip(images.iter().map(Vec::as_slice)).collect();
    for version in [FormatVersion::V1, FormatVersion::V2] {
        let file = package(version, &all);
        for left in 0..ARCHS.len() {
            let mut kept = all.clone();
            kept.remove(left);
            let out = edited(&file, &[], |_, edit| edit.remove(left));
            assert_eq!(out, package(version, &kept), "{version:?} {left}");
        }
        let error = refused(&file, &[], |_, edit| (0..3).for_each(|index| edit.remove(index)));
        assert!(error.kind() == ErrorKind::Refused, "{error}");
        let options = EditOptions::default().with_allow_empty(true);
        let edit = |_: &EditableFile, edit: &mut Edit| (0..3).for_each(|index| edit.remove(index));
        let (_, out) = plan_with(&file, options, &[], edit).unwrap();
        assert_eq!(out, package(version, &[]));
    }
}

#[test]
fn images_of_offload_binaries_are_replaced() {
    let images = [bitcode(1, 100), bitcode(2, 33), bitcode(3, 7)];
    let all: Vec<_> = ARCHS.into_iter().zip(images.iter().map(Vec::as_slice)).collect();
    for version in [FormatVersion::V1, FormatVersion::V2] {
        let file = package(version, &all);
        for new in [bitcode(9, 33), bitcode(9, 2), bitcode(9, 5000)] {
            let out = edited(&file, &[&new], |_, edit| edit.replace(1, 0));
            let expected = [all[0], ("gfx90a", &new[..]), all[2]];
            assert_eq!(out, package(version, &expected));
        }
        // The recorded kind is the kind of the new image.
        let new = amd_of(0x53f, 37);
        let out = edited(&file, &[&new], |_, edit| edit.replace(1, 0));
        assert_eq!(surveyed(&out).images()[1].size(), 64);
        let kinds: Vec<_> = offload_binary::binaries(&out)
            .flat_map(|binary| {
                binary.unwrap().1.entries().map(|e| e.image_kind()).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(kinds, [ImageKind::BITCODE, ImageKind::OBJECT, ImageKind::BITCODE]);
    }
}

#[test]
fn images_are_added_to_offload_binaries() {
    let old = bitcode(1, 100);
    let new = amd_of(0x41, 100);
    for version in [FormatVersion::V1, FormatVersion::V2] {
        let file = package(version, &[("gfx90a", &old)]);
        let out = edited(&file, &[&new], |_, edit| edit.add(0, GFX1100, 0));
        let last: OffloadBinary<'_> = offload_binary::binaries(&out).last().unwrap().unwrap().1;
        let entry = last.entries().next_back().unwrap();
        assert_eq!(entry.image(), Some(&new[..]));
        assert_eq!(entry.image_kind(), ImageKind::OBJECT);
        assert_eq!(entry.offload_kind(), OffloadKind::HIP);
        assert_eq!((entry.triple(), entry.arch()), (Some("amdgcn-amd-amdhsa"), Some("gfx1100")));
        assert_eq!(images(&out)[0].1, old);
    }
}

#[test]
fn text_bundles_are_edited() {
    let entries: [(&str, &[u8]); 3] =
        [(HOST, b"host\n"), ("hip-amdgcn-amd-amdhsa--gfx906", b"x\n"), (GFX90A, b"")];
    let file = to_vec(Leader::Semicolon, &entries).unwrap();
    let out = edited(&file, &[], |_, edit| edit.remove(1));
    assert_eq!(out, to_vec(Leader::Semicolon, &[entries[0], entries[2]]).unwrap());
    let options = EditOptions::default().with_any_image(true);
    let edit = |_: &EditableFile, edit: &mut Edit| {
        edit.replace(0, 0);
        edit.replace(2, 1);
        edit.add(0, GFX1100, 0);
    };
    let (_, out) = plan_with(&file, options, &[b"first", b"second\n"], edit).unwrap();
    let expected: [(&str, &[u8]); 4] =
        [(HOST, b"first"), entries[1], (GFX90A, b"second\n"), (GFX1100, b"first")];
    assert_eq!(out, to_vec(Leader::Semicolon, &expected).unwrap());

    let error = refused(&file, &[], |_, edit| (1..3).for_each(|index| edit.remove(index)));
    assert_eq!(error.to_string(), "bundle:0: no image would be left");
}

#[test]
fn new_images_must_match_their_ids() {
    let file = bundle(&[(HOST, b""), (GFX90A, &amd_of(0x53f, 900))], 4096);
    let (gfx90a, xnack) = (amd_of(0x53f, 70), amd_of(0x73f, 70));
    let replaced =
        |image: &[u8]| refused(&file, &[image], |_, edit| edit.replace(1, 0)).to_string();
    let message = "the code object is for gfx1100, not for gfx90a";
    let message = format!("new image 0 is not for {GFX90A}: {message}");
    assert_eq!(replaced(&amd_of(0x41, 70)), message);
    assert!(replaced(&xnack).ends_with("needs xnack on, the target leaves it open"));
    assert!(replaced(b"text").ends_with("an AMD GPU code object or LLVM bitcode is expected"));
    let out = edited(&file, &[&gfx90a], |_, edit| edit.replace(1, 0));
    assert_eq!(out, bundle(&[(HOST, b""), (GFX90A, &gfx90a)], 4096));
    let options = EditOptions::default().with_any_image(true);
    let (_, out) = plan_with(&file, options, &[&xnack], |_, edit| edit.replace(1, 0)).unwrap();
    assert_eq!(out, bundle(&[(HOST, b""), (GFX90A, &xnack)], 4096));
}

#[test]
fn entries_are_added_after_the_others() {
    let (old, new) = (amd_of(0x53f, 900), amd_of(0x41, 5000));
    let file = bundle(&[(HOST, b""), (GFX90A, &old)], 4096);
    let edit = |contents: &EditableFile, edit: &mut Edit| {
        edit.remove(1);
        edit.add(0, GFX1100, 0);
        assert_eq!(contents.containers().len(), 1);
    };
    let (plan, out) = plan_with(&file, EditOptions::default(), &[&new], edit).unwrap();
    assert_eq!(out, bundle(&[(HOST, b""), (GFX1100, &new)], 4096));
    let sizes = |change: &ImageChange| (change.index, change.size_before, change.size_after);
    let changes: Vec<_> = plan.images().iter().map(sizes).collect();
    assert_eq!(changes, [(Some(0), 0, Some(0)), (Some(1), 900, None), (None, 0, Some(5000))]);
    assert_eq!(plan.images()[2].target.id(), "gfx1100");

    let add = |id| refused(&file, &[&old], |_, edit| edit.add(0, id, 0));
    for id in [GFX90A, "hip-amdgcn-amd-amdhsa--gfx90a", "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+"] {
        let error = add(id);
        assert!(error.kind() == ErrorKind::Refused, "{error}");
    }
    assert!(add("gfx90a").kind() == ErrorKind::Refused);
    assert_eq!(
        add(GFX90A).to_string(),
        format!("bundle:0: bundle entries 1 and 2 both have the ID {GFX90A:?}")
    );
}

#[test]
fn missing_images_are_named() {
    let file = bundle(&[(HOST, b""), (GFX90A, &bitcode(1, 100))], 4096);
    let of = |edit: fn(&mut Edit)| refused(&file, &[], |_, wishes| edit(wishes)).to_string();
    assert_eq!(of(|edit| edit.remove(2)), "no image 2: the file has 2");
    assert_eq!(of(|edit| edit.replace(1, 0)), "no new image 0: 0 given");
    assert_eq!(of(|edit| edit.add(0, GFX906, 7)), "no new image 7: 0 given");
    let image = bitcode(1, 1);
    let error = refused(&file, &[&image], |_, edit| edit.add(1, GFX906, 0));
    assert_eq!(error.to_string(), "no container 1: the file has 1");
    let error = refused(b"no device code", &[], |_, edit| edit.remove(0));
    assert_eq!(error.to_string(), "no device code found");
}

#[test]
fn thin_archives_are_not_edited() {
    let thin = b"!<thin>\nfoo.o/          0           0     0     644     4         `\n";
    let contents =
        fat_edit::survey(&mut std::io::Cursor::new(thin), &fat_object::Options::default());
    let error = contents.unwrap_err();
    assert_eq!(error.to_string(), "thin archives cannot be edited; edit the files they reference");
}
