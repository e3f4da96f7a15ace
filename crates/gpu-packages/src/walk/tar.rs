//! The walk over a tar file.

use std::io::Read;

use super::delivery::CheckedNames;
use super::{PackagePlace, Walker};
use crate::error::{Error, ErrorKind, FindingKind};
use crate::member::{Member, MemberKind};
use crate::package::PackageKind;
use crate::path::without_dot;
use crate::tar::{TarKind, TarReader};
use crate::visitor::Sink;

impl Walker {
    /// Walks over a tar file.
    pub(super) fn tar<R: Read>(
        &self,
        mut tar: TarReader<R>,
        package: PackageKind,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let mut names = CheckedNames::default();
        while let Some(found) = tar.next_member()? {
            let name = match without_dot(found.name()) {
                b"" => b".",
                name => name,
            };
            let kind = match found.kind() {
                TarKind::File => MemberKind::File,
                TarKind::Directory => MemberKind::Directory,
                TarKind::Symlink => MemberKind::Symlink,
                TarKind::HardLink => MemberKind::HardLink,
                TarKind::Other => MemberKind::Other,
            };
            let path = place.path.join(name);
            let mut member = Member {
                mode: Some(found.mode()),
                link: found.link().to_vec(),
                ..Member::new(path, package, kind, found.size(), found.offset())
            };
            names.check(&member, place, sink);
            for fault in &found.faults {
                sink.finding(member.finding(fault.kind, fault.error()));
            }
            if !found.is_sparse {
                member.place = place.within(tar.contents());
                self.file(&member, &mut tar, place, sink)?;
                continue;
            }
            // Zeros that are not in the file.
            if found.size() > self.allowance.left() {
                let size = found.size();
                let text = format!("a sparse file of {size} bytes would exceed the limit");
                let error = Error::new(ErrorKind::Limit, text);
                sink.finding(member.finding(FindingKind::Unread, error));
                member.kind = MemberKind::Other;
            }
            self.file(&member, &mut self.allowance.count(&mut tar), place, sink)?;
        }
        Ok(())
    }
}
