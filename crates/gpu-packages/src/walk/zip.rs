//! The walk over a zip file.

use std::io::{Read, Seek};

use byte_parts::Source;

use super::delivery::finish;
use super::{PackagePlace, Walker};
use crate::error::{Error, ErrorKind, Finding, FindingKind};
use crate::limits::Options;
use crate::member::{Member, MemberKind};
use crate::package::{PackageKind, is_conda_layer};
use crate::path::Shown;
use crate::visitor::{Sink, Unchecked, Visitor};
use crate::wheel;
use crate::zip::Zip;

/// A walk over a zip file whose members can be read by several threads, each with a reader and a visitor of its own:
/// together they keep to one limit.
#[derive(Debug)]
pub struct ZipWalker<'z> {
    walker: Walker,
    zip: &'z Zip,
    kind: PackageKind,
}

impl<'z> ZipWalker<'z> {
    /// Creates a walk over a zip file.
    #[must_use]
    pub fn new(options: &Options, zip: &'z Zip) -> Self {
        ZipWalker { walker: Walker::new(options, zip.file_len()), zip, kind: zip.kind() }
    }

    /// Returns the findings that need no reading of members or local headers: unsafe and duplicate names, encryption, and
    /// what programs read differently. [`Zip::check`] has more.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = self.zip.central_findings();
        if self.kind == PackageKind::Wheel {
            findings.extend(wheel::faults(self.zip));
        }
        findings
    }

    /// Hands a member to a visitor, or the members of the package that it is. Encrypted members are left out.
    ///
    /// # Errors
    ///
    /// As [`walk`](crate::walk()).
    pub fn member(
        &self,
        index: usize,
        reader: impl Read + Seek,
        visitor: &mut dyn Visitor,
    ) -> Result<(), Error> {
        let place = PackagePlace::of_file();
        let sink = &mut Unchecked(visitor);
        self.walker.one_of_zip(self.zip, self.kind, index, reader, &place, sink)
    }
}

impl Walker {
    /// Walks over a zip file.
    pub(super) fn zip(
        &self,
        zip: &Zip,
        kind: PackageKind,
        source: &mut Source<'_>,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        sink.zip(zip, source);
        let mut findings = zip.check_source(source)?;
        if kind == PackageKind::Wheel {
            findings.extend(wheel::faults(zip));
        }
        for mut finding in findings {
            finding.path =
                finding.path.names().fold(place.path.clone(), |path, name| path.join(name));
            sink.finding(finding);
        }
        let mut order: Vec<usize> = (0..zip.members().len()).collect();
        order.sort_by_key(|&index| zip.members().get(index).map_or(0, |member| member.offset()));
        for index in order {
            self.one_of_zip(zip, kind, index, source.reader(), place, sink)?;
        }
        Ok(())
    }

    /// Hands a member of a zip file to the sink, or the members of the package that it is.
    pub(super) fn one_of_zip(
        &self,
        zip: &Zip,
        kind: PackageKind,
        index: usize,
        reader: impl Read + Seek,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let Some(described) = zip.members().get(index) else { return Ok(()) };
        let is_link = described.is_symlink() && described.may_be_target();
        let member_kind = if described.is_directory() {
            MemberKind::Directory
        } else if is_link && kind != PackageKind::Wheel {
            MemberKind::Symlink
        } else {
            MemberKind::File
        };
        let path = place.path.join(described.name());
        let mut member = Member {
            mode: described.unix_mode(),
            zip_index: Some(index),
            ..Member::new(path, kind, member_kind, described.size(), described.offset())
        };
        let opened = match zip.open(index, reader) {
            Ok(opened) => opened,
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(error) => {
                if !described.is_encrypted() {
                    let error = error.without_name(Shown(member.path.name()));
                    sink.finding(member.finding(FindingKind::Unread, error));
                }
                return Ok(());
            }
        };
        member.place = opened.place().and_then(|range| place.within(range));
        let mut contents = self.allowance.count(opened);
        let is_layer = kind == PackageKind::Conda && is_conda_layer(described.name());
        if is_layer {
            let result = self.compressed_tar(&mut contents, kind, place, sink);
            return finish(result, &member.path, sink);
        }
        self.file(&member, &mut contents, place, sink)
    }
}
