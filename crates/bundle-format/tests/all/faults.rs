//! Writers and readers that fail while a bundle is written.
// Thousands of runs that fail, through no other code than one that works.

use std::io::{self, ErrorKind};

use bundle_format::text::{self, Leader};
use bundle_format::{Error, Layout};
use faulty::{Rig, check_writing};

const ENTRIES: [(&str, &[u8]); 3] = [
    ("host-x86_64-unknown-linux-gnu-", b""),
    ("hipv4-amdgcn-amd-amdhsa--gfx906", b"one code object"),
    ("hipv4-amdgcn-amd-amdhsa--gfx90a", b"another"),
];

fn layout() -> Layout {
    let sizes = ENTRIES.map(|(id, bytes)| (id, u64::try_from(bytes.len()).unwrap()));
    Layout::new(sizes, 64).unwrap()
}

#[test]
fn faults_of_the_streams_are_the_result() {
    let layout = layout();
    let expected = layout.to_vec(&ENTRIES.map(|(_, bytes)| bytes)).unwrap();
    check_writing(&expected, |rig, out| {
        layout.write_to(out, ENTRIES.map(|(_, bytes)| rig.stream(bytes)))
    });
}

#[test]
fn faults_of_the_writer_of_text_are_the_result() {
    let leader = Leader::for_type("ll").unwrap();
    let expected = text::to_vec(leader, &ENTRIES).unwrap();
    check_writing(&expected, |_, out| text::write_to(out, leader, &ENTRIES));
}

#[test]
fn a_code_object_that_ends_early_is_named() {
    let payloads = ENTRIES.map(|(_, bytes)| Rig::sound().stream(&bytes[..bytes.len().min(9)]));
    let error = layout().write_to(io::sink(), payloads).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let error = error.downcast::<Error>().unwrap();
    assert_eq!((error.kind(), error.entry()), (bundle_format::ErrorKind::Payload, Some(1)));
    assert_eq!(error.to_string(), "bundle entry 1 has content of 9 bytes, expected 15");
}
