//! Receivers of a walk.

use std::io::Read;

use byte_parts::Source;

use crate::error::{Error, Finding};
use crate::hash::{Algorithm, Hash};
use crate::member::Member;
use crate::package::PackageKind;
use crate::path::MemberPath;
use crate::zip::Zip;

/// The receiver of a walk.
pub trait Visitor {
    /// Returns whether to enter a package that was found. One that is not entered is a member like others. The outermost
    /// package, whose path is empty, is always entered.
    fn package(&mut self, path: &MemberPath, kind: PackageKind) -> bool {
        let _ = (path, kind);
        true
    }

    /// Returns whether to enter a compressed file, not a tar file, by the first 512 bytes of its contents. One that is not
    /// entered is a member like others; alone, it is not a package.
    fn compressed(&mut self, path: &MemberPath, head: &[u8]) -> bool {
        let _ = (path, head);
        false
    }

    /// Takes a member. Contents that are not read are skipped.
    ///
    /// # Errors
    ///
    /// An error of `contents` becomes a [`Finding`], and the walk goes on. Any other error ends the walk.
    fn member(&mut self, member: &Member, contents: &mut dyn Read) -> Result<(), Error>;

    /// Takes a finding.
    fn finding(&mut self, finding: Finding) {
        let _ = finding;
    }

    /// Returns whether the walk may hold this many bytes from now on, which are not in the file: zip files in other
    /// packages, and records. Zero at its end. `false` counts as an exceeded limit.
    fn hold(&mut self, bytes: u64) -> bool {
        let _ = bytes;
        true
    }
}

/// The receiver of a walk inside of this crate: a [`Visitor`], or one that checks what passes.
pub(crate) trait Sink {
    /// Returns whether to enter a package, as [`Visitor::package`]. [`leave`](Self::leave) follows an entered one.
    fn package(&mut self, path: &MemberPath, kind: PackageKind) -> bool;

    /// Returns whether to enter a compressed file, as [`Visitor::compressed`].
    fn compressed(&mut self, path: &MemberPath, head: &[u8]) -> bool;

    /// Takes the directory of a zip file that was entered, before its members.
    fn zip(&mut self, _: &Zip, _: &mut Source<'_>) {}

    /// Takes the end of a package that was entered.
    fn leave(&mut self, _: &Result<(), Error>) {}

    /// Returns the hash to make of a member that comes next, or of the package that it is.
    fn begin(&mut self, _: &Member) -> Option<Algorithm> {
        None
    }

    /// Takes a member, as [`Visitor::member`]. Not called for a package that is entered.
    fn member(&mut self, member: &Member, contents: &mut dyn Read) -> Result<(), Error>;

    /// Takes the size and the hash of contents that were read to their end.
    fn end(&mut self, _: &Member, _: u64, _: Hash) -> Result<(), Error> {
        Ok(())
    }

    /// Takes a finding.
    fn finding(&mut self, finding: Finding);

    /// Returns whether the walk may hold this many bytes, as [`Visitor::hold`].
    fn hold(&mut self, bytes: u64) -> bool;
}

/// A visitor that sees all there is, unchecked.
pub(crate) struct Unchecked<'v>(pub(crate) &'v mut dyn Visitor);

impl Sink for Unchecked<'_> {
    fn package(&mut self, path: &MemberPath, kind: PackageKind) -> bool {
        self.0.package(path, kind)
    }

    fn compressed(&mut self, path: &MemberPath, head: &[u8]) -> bool {
        self.0.compressed(path, head)
    }

    fn member(&mut self, member: &Member, contents: &mut dyn Read) -> Result<(), Error> {
        self.0.member(member, contents)
    }

    fn finding(&mut self, finding: Finding) {
        self.0.finding(finding);
    }

    fn hold(&mut self, bytes: u64) -> bool {
        self.0.hold(bytes)
    }
}
