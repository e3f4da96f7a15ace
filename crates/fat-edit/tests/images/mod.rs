//! Images of unknown GPUs, packaged and found again.
#![allow(unreachable_pub, reason = "each test includes this")]

use std::io::{self, Cursor, Read};

use fat_object::{Finding, Image, Options, Visitor, walk};
use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadKind};
use proptest::prelude::*;

/// Processor and contents of each.
pub type Images = Vec<(String, Vec<u8>)>;

/// An image of fewer than `len` bytes.
pub fn image(len: usize) -> impl Strategy<Value = (String, Vec<u8>)> {
    // No processor that anything is known of, and nothing that a walk would look into.
    ("gfx[2-8][0-9]{4}:xnack[+-]", prop::collection::vec(1..=9_u8, 1..len))
}

pub fn package(version: FormatVersion, kind: OffloadKind, images: &Images) -> Vec<u8> {
    let entries: Vec<_> = images
        .iter()
        .map(|(arch, image)| {
            ImageEntry::new(image.len() as u64)
                .with_image_kind(ImageKind::NONE)
                .with_offload_kind(kind)
                .with_string("triple", "amdgcn-amd-amdhsa")
                .with_string("arch", arch)
        })
        .collect();
    let images: Vec<&[u8]> = images.iter().map(|(_, image)| &image[..]).collect();
    offload_binary::layout(version, &entries).unwrap().to_vec(&images).unwrap()
}

#[derive(Default)]
struct Found(Images);

impl Visitor for Found {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        image.reader().read_to_end(&mut bytes)?;
        self.0.push((image.target().id().to_owned(), bytes));
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        panic!("{finding}");
    }
}

/// The target and the contents of all images of a file in which all is well.
pub fn found(file: &[u8]) -> Images {
    let mut found = Found::default();
    walk(&mut Cursor::new(file), &Options::default(), &mut found).unwrap();
    found.0
}
