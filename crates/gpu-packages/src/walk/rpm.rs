//! The walk over an RPM package.

use std::io::Read;

use super::delivery::CheckedNames;
use super::{PackagePlace, Walker};
use crate::codec::decoded;
use crate::cpio::CpioReader;
use crate::error::Error;
use crate::member::{Member, MemberKind};
use crate::package::PackageKind;
use crate::path::without_dot;
use crate::rpm;
use crate::visitor::Sink;

impl Walker {
    /// Walks over an RPM package.
    pub(super) fn rpm(
        &self,
        reader: &mut dyn Read,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let sizes = rpm::read_headers(reader)?;
        let mut cpio = CpioReader::new(self.allowance.count(decoded(reader)?), sizes);
        let mut names = CheckedNames::default();
        while let Some(found) = cpio.next_member()? {
            // Names in RPM packages may be absolute.
            let name = without_dot(&found.name);
            let name = name.strip_prefix(b"/").unwrap_or(name);
            let kind = match found.mode & 0o170_000 {
                0o100_000 => MemberKind::File,
                0o040_000 => MemberKind::Directory,
                0o120_000 => MemberKind::Symlink,
                _ => MemberKind::Other,
            };
            let path = place.path.join(name);
            let member = Member {
                mode: Some(found.mode),
                ..Member::new(path, PackageKind::Rpm, kind, found.size, found.offset)
            };
            names.check(&member, place, sink);
            self.file(&member, &mut cpio, place, sink)?;
        }
        Ok(())
    }
}
