//! Members of packages.

use std::ops::Range;

use crate::error::{Error, Finding, FindingKind};
use crate::package::PackageKind;
use crate::path::MemberPath;

/// A member of a package.
#[derive(Clone, Debug)]
pub struct Member {
    pub(crate) path: MemberPath,
    pub(crate) package: PackageKind,
    pub(crate) kind: MemberKind,
    pub(crate) size: u64,
    pub(crate) mode: Option<u32>,
    pub(crate) link: Vec<u8>,
    pub(crate) offset: u64,
    pub(crate) zip_index: Option<usize>,
    pub(crate) place: Option<Range<u64>>,
}

/// Kind of a [`Member`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemberKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A hard link.
    HardLink,
    /// A device, a FIFO, a sparse file that cannot be read.
    Other,
}

impl Member {
    /// Creates a member without what only some packages say.
    pub(crate) fn new(
        path: MemberPath,
        package: PackageKind,
        kind: MemberKind,
        size: u64,
        offset: u64,
    ) -> Self {
        let (mode, link, zip_index, place) = (None, Vec::new(), None, None);
        Member { path, package, kind, size, mode, link, offset, zip_index, place }
    }

    /// Returns a finding about the member.
    pub(crate) fn finding(&self, kind: FindingKind, error: Error) -> Finding {
        Finding { path: self.path.clone(), kind, error }
    }

    /// Returns the path, with the packages that it lies in.
    #[must_use]
    pub fn path(&self) -> &MemberPath {
        &self.path
    }

    /// Returns the kind of the package that it lies in.
    #[must_use]
    pub fn package(&self) -> PackageKind {
        self.package
    }

    /// Returns the kind of the member.
    #[must_use]
    pub fn kind(&self) -> MemberKind {
        self.kind
    }

    /// Returns the size of the contents in bytes, as the package says; 0 in a compressed file, which does not say it.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the permissions, if the package has them.
    #[must_use]
    pub fn mode(&self) -> Option<u32> {
        self.mode
    }

    /// Returns the target of a link; empty for links in zip files, whose contents are the target.
    #[must_use]
    pub fn link(&self) -> &[u8] {
        &self.link
    }

    /// Returns the place of the member: of its local header in a zip file, of its first header in a tar or cpio file
    /// after decompression.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the member without its bytes after `size`.
    pub(crate) fn cut(&self, size: u64) -> Self {
        let place = self
            .place
            .as_ref()
            .map(|place| place.start..place.start + size.min(place.end - place.start));
        Member { size, place, ..self.clone() }
    }

    /// Returns whether the member has contents that may be extracted to a file: it is a regular file, or a symbolic link of
    /// a zip file, which some programs extract as one.
    #[must_use]
    pub fn has_file_contents(&self) -> bool {
        self.kind == MemberKind::File
            || self.kind == MemberKind::Symlink && self.zip_index.is_some()
    }

    /// Returns the place of the contents in the file that is walked, if they lie there as they are: in a tar or zip file,
    /// not compressed. A reader of that place does not check the CRC-32 of a zip file.
    #[must_use]
    pub fn place(&self) -> Option<Range<u64>> {
        self.place.clone()
    }

    /// Returns the index in a zip file.
    #[must_use]
    pub fn zip_index(&self) -> Option<usize> {
        self.zip_index
    }
}
