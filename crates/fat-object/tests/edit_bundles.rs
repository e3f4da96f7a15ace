//! Edits of plain bundles in files of their own.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic is how a test says no"
)]

mod editing;

use editing::*;
use fat_object::{EditError, EditOptions};

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
fn what_is_left_is_laid_out_as_if_nothing_else_had_been() {
    let out = remove(&sample(), &[GFX906]).unwrap();
    let expected = bundle(&[(HOST, b""), (GFX90A, &code(5, 4096)), (GFX1100, &code(7, 100))], 4096);
    assert_eq!(out, expected);
}

#[test]
fn nothing_wished_nothing_changed() {
    let file = paged(&[sample(), sample()]);
    assert_eq!(remove(&file, &[]).unwrap(), file);
    assert_eq!(remove(&file, &["hip-amdgcn-amd-amdhsa--gfx600"]).unwrap(), file);
}

#[test]
fn the_last_image_stays() {
    let error = remove(&sample(), &[GFX906, GFX90A, GFX1100]).unwrap_err();
    assert!(matches!(error, EditError::NothingLeft { .. }), "{error}");
    assert_eq!(error.to_string(), "bundle:0: no image would be left");
}

#[test]
fn bundles_start_at_pages_again() {
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
    let mut options = EditOptions::default();
    options.any_image = true;
    let (_, out) = plan_with(&file, options, &[&new], |contents, edit| {
        let old = contents.images().iter().find(|image| image.id() == Some(GFX90A)).unwrap();
        edit.replace(old.index(), 0);
    })
    .unwrap();
    let at = file.windows(4096).position(|w| w == code(5, 4096)).unwrap();
    file[at..at + 4096].copy_from_slice(&new);
    assert_eq!(out, file);
}
