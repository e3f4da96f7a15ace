//! Kinds of packages, and how they are recognised.

use std::fmt;

use crate::ar;
use crate::rpm;
use crate::tar;
use crate::wheel;
use crate::zip::Zip;

/// Kind of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PackageKind {
    /// A zip file with a directory `.dist-info`.
    Wheel,
    /// A conda package of version 2: a zip file of two compressed tar files.
    Conda,
    /// Another zip file.
    Zip,
    /// A tar file, compressed or not: a source distribution, a conda package of version 1, an image of containers or
    /// one of its layers.
    Tar,
    /// A Debian package.
    Deb,
    /// An RPM package.
    Rpm,
    /// A compressed file, but not a tar file: its contents are its only member, by the name `contents`.
    Compressed,
}

impl fmt::Display for PackageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PackageKind::Wheel => "wheel",
            PackageKind::Conda => "conda package",
            PackageKind::Zip => "zip file",
            PackageKind::Tar => "tar file",
            PackageKind::Deb => "Debian package",
            PackageKind::Rpm => "RPM package",
            PackageKind::Compressed => "compressed file",
        })
    }
}

/// Recognises a package by its first 512 bytes. Compressed streams are `None`: [`Codec::sniff`](crate::Codec::sniff) knows
/// them, and their contents decide.
///
/// ```
/// use gpu_packages::{PackageKind, sniff};
///
/// assert_eq!(sniff(b"PK\x03\x04"), Some(PackageKind::Zip));
/// assert_eq!(sniff(b"\x7fELF"), None);
/// ```
#[must_use]
pub fn sniff(head: &[u8]) -> Option<PackageKind> {
    match head {
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(PackageKind::Zip),
        _ if head.starts_with(ar::DEB) => Some(PackageKind::Deb),
        _ if head.starts_with(&rpm::MAGIC) => Some(PackageKind::Rpm),
        _ if tar::is_tar(head) => Some(PackageKind::Tar),
        _ => None,
    }
}

impl Zip {
    /// Returns the kind of the package, by the names of its members.
    #[must_use]
    pub fn kind(&self) -> PackageKind {
        if wheel::is_wheel(self) {
            return PackageKind::Wheel;
        }
        let mut names = self.members().iter().map(|member| member.name());
        if names.any(is_conda_layer) && self.find(b"metadata.json").is_some() {
            PackageKind::Conda
        } else {
            PackageKind::Zip
        }
    }
}

/// Returns whether a member of a conda package has this name because it is one of its compressed tar files.
pub(crate) fn is_conda_layer(name: &[u8]) -> bool {
    (name.starts_with(b"pkg-") || name.starts_with(b"info-"))
        && name.ends_with(b".tar.zst")
        && !name.contains(&b'/')
}
