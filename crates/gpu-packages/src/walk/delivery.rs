//! Members on their way to the sink.

use std::cmp::Ordering;
use std::io::{self, Read};

use super::PackagePlace;
use crate::error::{Error, ErrorKind, Finding, FindingKind};
use crate::member::{Member, MemberKind};
use crate::names::Names;
use crate::path::{MemberPath, Shown, unsafe_name};
use crate::visitor::Sink;

/// Hands a member to the sink, after bytes that were read already.
pub(super) fn deliver(
    member: &Member,
    head: &[u8],
    contents: &mut dyn Read,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let mut watched = Watched { reader: head.chain(contents), has_failed: false };
    let result = sink.member(member, &mut watched);
    if watched.has_failed { finish(result, &member.path, sink) } else { result }
}

/// Makes a finding of a fault of a package or its contents. Only limits and failing readers end the walk.
pub(super) fn finish(
    result: Result<(), Error>,
    path: &MemberPath,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::Limit | ErrorKind::Io) => Err(error),
        Err(error) if error.kind() == ErrorKind::Refused => Err(error),
        Err(error) => {
            let kind = match error.kind() {
                ErrorKind::Unsupported => FindingKind::Unread,
                _ => FindingKind::Damaged,
            };
            let error = error.without_name(Shown(path.name()));
            sink.finding(Finding { path: path.clone(), kind, error });
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Reports a name that is unsafe.
pub(super) fn check_name(member: &Member, name: &[u8], sink: &mut dyn Sink) {
    if let Some(why) = unsafe_name(name) {
        let error = Error::at(ErrorKind::Malformed, member.offset, format!("the name {why}"));
        sink.finding(member.finding(FindingKind::UnsafeName, error));
    }
}

/// The most findings of repeated names in a package.
const MAX_REPEATED: usize = 1000;

/// The names in a stream, which are checked.
#[derive(Default)]
pub(super) struct CheckedNames {
    names: Names,
    repeated: usize,
}

impl CheckedNames {
    pub(super) fn check(&mut self, member: &Member, place: &PackagePlace, sink: &mut dyn Sink) {
        check_name(member, member.path.name(), sink);
        if !self.names.repeats(member.path.name(), member.kind == MemberKind::Directory) {
            return;
        }
        self.repeated += 1;
        let (path, text) = match self.repeated.cmp(&MAX_REPEATED) {
            Ordering::Less => (&member.path, "several members have its name"),
            Ordering::Equal => (&place.path, "more names that several members have"),
            Ordering::Greater => return,
        };
        let error = Error::at(ErrorKind::Malformed, member.offset, text);
        let (path, kind) = (path.clone(), FindingKind::Duplicate);
        sink.finding(Finding { path, kind, error });
    }
}

/// A reader that knows if it has failed.
pub(super) struct Watched<R> {
    pub(super) reader: R,
    pub(super) has_failed: bool,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buf);
        self.has_failed |=
            read.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted);
        read
    }
}
