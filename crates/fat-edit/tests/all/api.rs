//! Promises of the public types, for any contents: if one is broken, this file does not compile.

use std::fs::File;
use std::io::{Cursor, Read, Seek, Write};

use byte_parts::ReadSeek;
use fat_edit::{
    Change, CompressOptions, ContainerChange, Edit, EditNote, EditOptions, EditPlan,
    EditableContainer, EditableFile, Error, ErrorKind, ImageChange, NewImage, survey,
};
use fat_object::Options;
use object_edit::{HostObject, NewSections};

samples::promises! {
    sent: ContainerChange, EditPlan, EditableFile, ErrorKind, ImageChange, Error,
        NewSections<'_>;
    owned: Change, CompressOptions, Edit, EditNote, EditOptions, EditableContainer, NewImage,
        HostObject;
    defaulted: CompressOptions, Edit, EditOptions;
    error: Error, object_edit::Error;
}

/// Readers and writers are taken by value; `&mut` of one is one.
#[test]
fn readers_and_writers_may_be_of_any_kind() {
    fn in_generic_code<R: Read + Seek, W: Write>(mut input: R, out: &mut W) {
        let options = Options::default();
        let contents = survey(&mut input, &options).unwrap();
        let plan = contents.plan(&mut input, &Edit::default()).unwrap();
        plan.write(&mut input, out).unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/hip.hipfb");
    let mut out = Vec::new();
    in_generic_code(File::open(path).unwrap(), &mut out);
    in_generic_code(&File::open(path).unwrap(), &mut &mut out);
    let boxed: Box<dyn ReadSeek> = Box::new(File::open(path).unwrap());
    in_generic_code(boxed, &mut Cursor::new(Vec::new()));
    let file = std::fs::read(path).unwrap();
    assert_eq!(out, [&file[..], &file].concat());
}
