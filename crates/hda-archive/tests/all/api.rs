//! Promises of the public types, for any contents: if one is broken, this file does not compile.

use std::fs::File;
use std::io::{self, Cursor};

use bundle_format::{EntryId, Request};
use byte_parts::ReadSeek;
use hda_archive::{
    ArchiveCopy, Conflict, DeviceArchive, Error, ErrorKind, Member, Options, Unbundling, Warning,
    entries, no_thin_members, write_archive,
};

samples::promises! {
    sent: Conflict, Member<'_>, ArchiveCopy<'_>, DeviceArchive, Unbundling, Warning;
    value: ErrorKind;
    displayed: Conflict;
    error: Error, Warning;
}

/// Openers of members are closures, by value or by reference; inputs are what can be read and sought.
#[test]
fn openers_and_readers_may_be_of_any_kind() {
    let mut library = Vec::new();
    write_archive(&mut library, [Member::new("a.txt", b"text")]).unwrap();
    let options = Options::default();
    entries(Cursor::new(&library), &options, no_thin_members, |_| Ok(())).unwrap();
    let mut opened = 0;
    let mut open = |name: &[u8]| -> io::Result<Box<dyn ReadSeek>> {
        opened += 1;
        Ok(Box::new(File::open(String::from_utf8_lossy(name).into_owned())?))
    };
    let input: &mut dyn ReadSeek = &mut Cursor::new(library);
    let request = Request::new(&EntryId::parse("hip-amdgcn-amd-amdhsa--gfx906").unwrap());
    let plan = Unbundling::plan(&mut *input, [request], &options, &mut open).unwrap();
    plan.with_allow_missing(true).write(input, [io::sink()], &mut open).unwrap();
    assert_eq!(opened, 0);
}
