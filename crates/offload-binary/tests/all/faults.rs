//! Writers and readers that fail while a package is written.
// Thousands of runs that fail, through no other code than one that works.

use std::io::{self, ErrorKind};

use faulty::{Rig, check_writing};
use offload_binary::{Error, FormatVersion, ImageEntry, ImageKind, Layout, OffloadKind};

const IMAGES: [&[u8]; 3] = [b"first image", b"", b"the third one"];

fn layout(version: FormatVersion) -> Layout {
    let entries = IMAGES.map(|image| {
        ImageEntry::new(u64::try_from(image.len()).unwrap())
            .image_kind(ImageKind::OBJECT)
            .offload_kind(OffloadKind::HIP)
            .string("arch", "gfx90a")
    });
    Layout::new(version, &entries).unwrap()
}

#[test]
fn faults_of_the_streams_are_the_result() {
    for version in [FormatVersion::V1, FormatVersion::V2, FormatVersion::V3] {
        let layout = layout(version);
        let expected = layout.to_vec(&IMAGES).unwrap();
        check_writing(&expected, |rig, out| {
            layout.write_to(out, IMAGES.map(|image| rig.stream(image)))
        });
    }
}

#[test]
fn an_image_that_ends_early_is_named() {
    let layout = layout(FormatVersion::V2);
    let images = [IMAGES[0], IMAGES[1], b"the th"].map(|image| Rig::sound().stream(image));
    let error = layout.write_to(io::sink(), images).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let error = error.downcast::<Error>().unwrap();
    assert_eq!((error.kind(), error.entry()), (offload_binary::ErrorKind::Image, Some(2)));
    assert_eq!(error.to_string(), "offload binary entry 2 has an image of 6 bytes, expected 13");
}
