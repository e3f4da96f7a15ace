//! The images and containers of a file, from one walk.

use std::io::{self, Read, Seek};
use std::sync::Arc;

use device_select::{Collector, Unit};
use fat_edit::Registrable;
use fat_object::{Container, ErrorKind, Finding, Image, Visitor};

use crate::fault::Fault;
use crate::files::{DeviceFile, FileVisitor, each_file};
use crate::images::{FileRow, ImageRow, Listing};
use crate::options::Options;

/// A file or a package that was read once, for any number of GPUs.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Survey {
    /// Its images.
    pub listing: Listing,
    pub(crate) files: Arc<Vec<Containers>>,
    /// Findings that only answers have.
    pub(crate) findings: Vec<Fault>,
}

/// The containers of a file, and of a member.
#[derive(Debug, Default)]
pub(crate) struct Containers {
    pub(crate) member: String,
    pub(crate) units: Vec<Unit>,
}

/// Reads the images and the containers of a file, or of the members of a package. Compressed images are read by their tables.
///
/// # Errors
///
/// Errors of reading. Damaged files are findings.
pub fn survey<R: Read + Seek + Clone>(reader: R, options: &Options) -> io::Result<Survey> {
    let mut surveyor = Surveyor::default();
    each_file(reader, options, &mut surveyor)?;
    let Surveyor { listing, files, findings } = surveyor;
    Ok(Survey { listing, files: Arc::new(files), findings })
}

/// Lists the images of a file, or of the members of a package. Compressed images are listed by their tables.
///
/// # Errors
///
/// Errors of reading. Damaged files are findings.
pub fn list<R: Read + Seek + Clone>(reader: R, options: &Options) -> io::Result<Listing> {
    Ok(survey(reader, options)?.listing)
}

#[derive(Default)]
struct Surveyor {
    listing: Listing,
    files: Vec<Containers>,
    findings: Vec<Fault>,
}

impl FileVisitor for Surveyor {
    fn package(&mut self) {
        self.listing.is_package = true;
    }

    fn file(&mut self, file: &mut DeviceFile<'_>) -> io::Result<()> {
        let options = file.options().clone().with_tables_only(true);
        let member = file.member();
        let (before, listing) = (self.listing.findings.len(), &mut self.listing);
        let mut walk = Walk {
            member,
            listing,
            collector: Collector::default(),
            registrable: Registrable::default(),
        };
        let summary = file.walk(&options, &mut walk)?;
        let Walk { collector, registrable, .. } = walk;
        let mut units = collector.finish();
        let registration = registrable.registration(summary.format, file.reader())?;
        let error = |fault: String| Fault::error(member, "verify/registration", fault);
        self.findings.extend(registration.faults().into_iter().map(error));
        for unit in &mut units {
            if unit.offset().is_some_and(|at| registration.loses(at)) {
                unit.set_lost();
            }
        }
        if let Some(fault) = file.moved_out()? {
            self.listing.findings.push(fault);
            // Rests of device code may be left: no loader looks there.
            units.clear();
        } else if summary.images == 0 && self.listing.findings.len() == before {
            let fault = file.nothing(&summary);
            // Only answers say that a file has no device code.
            let is_nothing = |fault: &Fault| fault.code == "targets/nothing";
            let findings = match &fault {
                Some(fault) if is_nothing(fault) => &mut self.findings,
                _ => &mut self.listing.findings,
            };
            findings.extend(fault);
        }
        let (size, format, images) = (file.size(), summary.format.to_string(), summary.images);
        self.listing.files.push(FileRow { member: member.to_owned(), size, format, images });
        self.files.push(Containers { member: member.to_owned(), units });
        Ok(())
    }

    fn fault(&mut self, fault: Fault) -> io::Result<()> {
        self.listing.findings.push(fault);
        Ok(())
    }
}

struct Walk<'w> {
    member: &'w str,
    listing: &'w mut Listing,
    collector: Collector,
    registrable: Registrable,
}

impl Visitor for Walk<'_> {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        self.registrable.enter(container);
        self.collector.enter(container)
    }

    fn leave(&mut self) -> io::Result<()> {
        self.collector.leave()
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let (member, info) = (self.member.to_owned(), image.info().clone());
        self.listing.images.push(ImageRow { member, image: info });
        self.collector.image(image)
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        let mut fault = Fault::new(self.member, finding);
        // The answers say it of the image.
        fault.is_in_answers = finding.error().kind() == ErrorKind::Disagreement;
        self.listing.findings.push(fault);
        Ok(())
    }
}
