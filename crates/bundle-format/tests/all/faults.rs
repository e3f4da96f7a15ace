//! Writers and readers that fail while a bundle is written.
// Thousands of runs that fail, through no other code than one that works.

use std::io;

use bundle_format::text::{self, Leader};
use byte_parts::Layout;
use samples::faulty::check_writing;

const ENTRIES: [(&str, &[u8]); 3] = [
    ("host-x86_64-unknown-linux-gnu-", b""),
    ("hipv4-amdgcn-amd-amdhsa--gfx906", b"one code object"),
    ("hipv4-amdgcn-amd-amdhsa--gfx90a", b"another"),
];

fn layout() -> Layout {
    let sizes = ENTRIES.map(|(id, bytes)| (id, u64::try_from(bytes.len()).unwrap()));
    bundle_format::layout(sizes, 64).unwrap()
}

#[test]
fn faults_of_the_streams_are_the_result() {
    let layout = layout();
    let expected = layout.to_vec(&ENTRIES.map(|(_, bytes)| bytes)).unwrap();
    check_writing(&expected, |rig, out| {
        layout.write_to(out, ENTRIES.map(|(_, bytes)| rig.stream(bytes))).map_err(io::Error::from)
    });
}

#[test]
fn faults_of_the_writer_of_text_are_the_result() {
    let leader = Leader::for_type("ll").unwrap();
    let expected = text::to_vec(leader, &ENTRIES).unwrap();
    check_writing(&expected, |_, out| text::write_to(out, leader, &ENTRIES));
}
