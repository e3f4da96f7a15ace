//! The same archives from the writer that rustc uses, which follows LLVM's.

use std::io::Cursor;

use ar_archive_writer::{
    ArchiveKind, DEFAULT_OBJECT_READER, NewArchiveMember, write_archive_to_stream,
};
use hda_archive::{Member, write_archive};
use proptest::collection::vec;
use proptest::prelude::*;

const OBJECTS: [&[u8]; 4] = [
    include_bytes!("../../../../examples/data/host.o"),
    include_bytes!("../../../../examples/data/hip.obj"),
    include_bytes!("../../../../examples/data/hip-macos.o"),
    include_bytes!("../../../../examples/data/cuda-fatbin.o"),
];

fn theirs(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let members: Vec<_> = members
        .iter()
        .map(|(name, data)| {
            NewArchiveMember::new(data.clone(), &DEFAULT_OBJECT_READER, name.clone())
        })
        .collect();
    let mut out = Cursor::new(Vec::new());
    write_archive_to_stream(&mut out, &members, ArchiveKind::Gnu, false, None).unwrap();
    out.into_inner()
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(b'a'..=b'z', 0..40),
        (0..OBJECTS.len()).prop_map(|index| OBJECTS[index].to_vec()),
    ]
}

proptest! {
    #[test]
    fn archives_are_equal(members in vec(("[a-c./]{1,20}", data()), 0..8)) {
        let mut ours = Vec::new();
        let list = members.iter().map(|(name, data)| Member::new(name, data.clone()));
        write_archive(&mut ours, list).unwrap();
        let mut theirs = theirs(&members);
        // Without a single object LLVM writes no index, this writer an empty one.
        let is_object = |data: &Vec<u8>| OBJECTS.contains(&&**data);
        if !members.is_empty() && !members.iter().any(|(_, data)| is_object(data)) {
            theirs.drain(8..8 + 68);
        }
        prop_assert_eq!(ours, theirs);
    }
}
