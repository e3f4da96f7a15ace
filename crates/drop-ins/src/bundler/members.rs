//! Storage of the members of an archive, for `--verbose`.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Instant;

use byte_parts::ReadSeek;
use fat_object::{
    Compression, Container, ContainerKind, Enter, ErrorKind, Finding, Image, Location, Options,
    PathStep, Severity, Visitor, walk,
};

use super::verbose;
use tool_kit::input;
use tool_kit::positioned::Positioned;

/// LLVM's tool says nothing of shorter members.
const SHORTEST: u64 = 8;

/// Adds a line for each member that says how it is stored, up to a fault of the archive.
pub(super) fn tell(
    path: &Path,
    file: &File,
    limits: &Options,
    lines: &mut Vec<String>,
) -> io::Result<()> {
    let options = limits.clone().with_enter_images(false);
    let mut teller =
        Teller { path, file, lines, plain: false, since: Instant::now(), ended: false };
    match walk(&mut Positioned::new(file), &options, &mut teller) {
        // Unbundling the archive reports errors.
        Err(_) if teller.ended => Ok(()),
        done => done.map(drop),
    }
}

struct Teller<'a> {
    path: &'a Path,
    file: &'a File,
    lines: &'a mut Vec<String>,
    /// `true` if the member was not found to be compressed yet.
    plain: bool,
    since: Instant,
    /// `true` if there was a fault.
    ended: bool,
}

impl Teller<'_> {
    fn compressed(
        &mut self,
        member: &PathStep,
        location: Location,
        compression: Compression,
    ) -> io::Result<()> {
        let time = self.since.elapsed();
        let lines = match location {
            Location::File(at) => {
                verbose::read(&mut Positioned::new(self.file), at, compression, time)?
            }
            Location::ThinMember(at) => {
                let mut file = input::open_thin_member(self.path, member.name_bytes())?;
                verbose::read(&mut *file, at, compression, time)?
            }
            _ => return Ok(()),
        };
        self.lines.extend(lines);
        Ok(())
    }
}

impl Visitor for Teller<'_> {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        match (container.path(), container.compression()) {
            ([member], _) if member.kind() == ContainerKind::Member => {
                self.plain = container.size() >= SHORTEST;
            }
            ([member, _], Some(compression)) if member.kind() == ContainerKind::Member => {
                self.plain = false;
                self.compressed(member, container.location(), compression)?;
            }
            _ => {}
        }
        self.since = Instant::now();
        Ok(())
    }

    /// Opens members, and compressed bundles, whose decompression is measured.
    fn opens(&mut self, container: &Container) -> Enter {
        let depth = container.path().len();
        let opens = depth < 2 || depth == 2 && container.compression().is_some();
        if opens { Enter::Open } else { Enter::Skip }
    }

    fn leave(&mut self) -> io::Result<()> {
        // After a member, or the first thing in it.
        if std::mem::take(&mut self.plain) {
            self.lines.push("Uncompressed bundle.".to_owned());
        }
        Ok(())
    }

    fn image(&mut self, _: &mut Image<'_, '_>) -> io::Result<()> {
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        let of_bundles = finding.error().container() == Some(ContainerKind::Ccob);
        // LLVM does not compare the sizes of a thin archive's members.
        let of_archive =
            finding.path().is_empty() && finding.error().kind() != ErrorKind::ThinMemberSize;
        if finding.severity() == Severity::Error && (of_bundles || of_archive) {
            self.ended = true;
            return Err(io::Error::other("the walk was ended"));
        }
        Ok(())
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        input::open_thin_member(self.path, name)
    }
}
