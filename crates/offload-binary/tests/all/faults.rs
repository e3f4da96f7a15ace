//! Writers and readers that fail while a package is written.
// Thousands of runs that fail, through no other code than one that works.

use std::io;

use byte_parts::Layout;
use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadKind};
use samples::faulty::check_writing;

const IMAGES: [&[u8]; 3] = [b"first image", b"", b"the third one"];

fn layout(version: FormatVersion) -> Layout {
    let entries = IMAGES.map(|image| {
        ImageEntry::new(u64::try_from(image.len()).unwrap())
            .with_image_kind(ImageKind::OBJECT)
            .with_offload_kind(OffloadKind::HIP)
            .with_string("arch", "gfx90a")
    });
    offload_binary::layout(version, &entries).unwrap()
}

#[test]
fn faults_of_the_streams_are_the_result() {
    for version in [FormatVersion::V1, FormatVersion::V2, FormatVersion::V3] {
        let layout = layout(version);
        let expected = layout.to_vec(&IMAGES).unwrap();
        check_writing(&expected, |rig, out| {
            layout.write_to(out, IMAGES.map(|image| rig.stream(image))).map_err(io::Error::from)
        });
    }
}
