//! Helpers of the tests of edits: files made of bundles, an edit run over bytes, and a walk over the result.
#![allow(dead_code, unreachable_pub, reason = "each test includes this and uses a part")]

use std::io::{self, Cursor, Read};

use fat_edit::{Edit, EditOptions, EditPlan, EditableFile, Error, NewImage, survey};
use fat_object::{Finding, Image, Options, Severity, Visitor, walk};
use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadKind};

/// Bytes that are not the same for two seeds, and neither start nor end with a zero.
pub fn code(seed: u32, size: u32) -> Vec<u8> {
    (0..size).map(|i| ((i / 7 * seed + i % 7) % 251) as u8 | 1).collect()
}

/// An offload binary, or one for each image in version 1, with images of HIP for these triples and processors.
pub fn hip_binary(version: FormatVersion, images: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let entries: Vec<_> = images
        .iter()
        .map(|(triple, arch, image)| {
            ImageEntry::new(image.len() as u64)
                .with_image_kind(ImageKind::OBJECT)
                .with_offload_kind(OffloadKind::HIP)
                .with_string("triple", *triple)
                .with_string("arch", *arch)
        })
        .collect();
    let images: Vec<&[u8]> = images.iter().map(|(_, _, image)| *image).collect();
    offload_binary::layout(version, &entries).unwrap().to_vec(&images).unwrap()
}

/// Bundles as a linker puts them: each at a multiple of 4096, the last not padded.
pub fn paged(bundles: &[Vec<u8>]) -> Vec<u8> {
    let mut all = Vec::new();
    for bundle in bundles {
        all.resize(all.len().next_multiple_of(4096), 0);
        all.extend(bundle);
    }
    all
}

/// The survey of a file.
pub fn surveyed(file: &[u8]) -> EditableFile {
    survey(&mut Cursor::new(file), &Options::default()).unwrap()
}

/// Plans an edit that is made by index of images and containers.
pub fn plan_with(
    file: &[u8],
    options: EditOptions,
    new_images: &[&[u8]],
    edit: impl FnOnce(&EditableFile, &mut Edit),
) -> Result<(EditPlan, Vec<u8>), Error> {
    let contents = survey(&mut Cursor::new(file), &Options::default())?;
    let mut wishes = Edit::new(options);
    edit(&contents, &mut wishes);
    run(&contents, file, new_images, &wishes)
}

/// Edits, where images may be any bytes.
pub fn edited(
    file: &[u8],
    new: &[&[u8]],
    edit: impl FnOnce(&EditableFile, &mut Edit),
) -> Result<Vec<u8>, Error> {
    let options = EditOptions::default().with_any_image(true);
    plan_with(file, options, new, edit).map(|(_, out)| out)
}

/// Plans and writes.
pub fn run(
    contents: &EditableFile,
    file: &[u8],
    new_images: &[&[u8]],
    edit: &Edit,
) -> Result<(EditPlan, Vec<u8>), Error> {
    let mut input = Cursor::new(file);
    let images = new_images.iter().map(|image| NewImage::new(Cursor::new(image.to_vec())));
    let plan = contents.plan(&mut input, &edit.clone().with_images(images))?;
    let mut out = Vec::new();
    plan.write(&mut input, &mut out).unwrap();
    assert_eq!(out.len() as u64, plan.size());
    assert_eq!(plan.is_unchanged(), out == file, "is_unchanged");
    Ok((plan, out))
}

/// Removes the images with these IDs.
pub fn remove(file: &[u8], ids: &[&str]) -> Result<Vec<u8>, Error> {
    plan_with(file, EditOptions::default(), &[], |contents, edit| {
        for image in contents.images() {
            if image.id().is_some_and(|id| ids.contains(&id)) {
                edit.remove(image.index());
            }
        }
    })
    .map(|(_, out)| out)
}

/// Every image with its ID, or `kind/triple/processor` where there is none.
pub fn images(file: &[u8]) -> Vec<(String, Vec<u8>)> {
    struct Gather(Vec<(String, Vec<u8>)>);
    impl Visitor for Gather {
        fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
            let name = match image.id() {
                Some(id) => id.to_owned(),
                None => format!("{:?}", image.target()),
            };
            let mut bytes = Vec::new();
            match image.code()? {
                Some(code) => bytes = code,
                None => _ = image.reader().read_to_end(&mut bytes)?,
            }
            self.0.push((name, bytes));
            Ok(())
        }
        fn finding(&mut self, finding: &Finding) -> io::Result<()> {
            match finding.severity() {
                Severity::Error => Err(io::Error::other(finding.to_string())),
                Severity::Warning => Ok(()),
            }
        }
    }
    let mut gather = Gather(Vec::new());
    let options = Options::default().with_enter_images(false);
    walk(&mut Cursor::new(file), &options, &mut gather).unwrap();
    gather.0
}
