//! Tests of packages.

#![forbid(unsafe_code)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "samples are small, and a test fails by panicking"
)]

mod change;
mod compression;
mod faults;
mod hostile;
mod images;
mod installers;
mod new;
mod peers;
mod properties;
mod read;
mod records;
mod rules;
mod variant;

use std::io::{Cursor, Read};
use std::ops::Range;

use gpu_packages::{
    Error, Finding, FindingKind, Member, MemberKind, MemberPath, Options, PackageKind, Visitor,
    walk,
};

/// All that a walk found.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) files: Vec<(String, Vec<u8>)>,
    pub(crate) links: Vec<(String, Vec<u8>)>,
    pub(crate) packages: Vec<(String, PackageKind)>,
    pub(crate) findings: Vec<(FindingKind, String)>,
    /// Places of contents in the file, and the contents.
    pub(crate) places: Vec<(Range<u64>, Vec<u8>)>,
}

impl Seen {
    pub(crate) fn names(&self) -> Vec<&str> {
        self.files.iter().map(|(name, _)| &name[..]).collect()
    }

    pub(crate) fn kinds(&self) -> Vec<FindingKind> {
        self.findings.iter().map(|(kind, _)| *kind).collect()
    }
}

impl Visitor for Seen {
    fn package(&mut self, path: &MemberPath, kind: PackageKind) -> bool {
        self.packages.push((path.to_string(), kind));
        true
    }

    fn member(&mut self, member: &Member, contents: &mut dyn Read) -> Result<(), Error> {
        match member.kind() {
            MemberKind::File => {
                let mut bytes = Vec::new();
                contents.read_to_end(&mut bytes)?;
                self.places.extend(member.place().map(|place| (place, bytes.clone())));
                self.files.push((member.path().to_string(), bytes));
            }
            MemberKind::Symlink | MemberKind::HardLink => {
                self.links.push((member.path().to_string(), member.link().to_vec()));
            }
            _ => {}
        }
        Ok(())
    }

    fn finding(&mut self, finding: Finding) {
        self.findings.push((finding.kind, finding.to_string()));
    }
}

pub(crate) fn seen(bytes: &[u8]) -> Seen {
    seen_with(bytes, &Options::default()).unwrap()
}

pub(crate) fn seen_with(bytes: &[u8], options: &Options) -> Result<Seen, Error> {
    let mut seen = Seen::default();
    walk(Cursor::new(bytes), options, &mut seen)?;
    for (place, contents) in &seen.places {
        assert_eq!(&bytes[place.start as usize..place.end as usize], contents);
    }
    Ok(seen)
}
