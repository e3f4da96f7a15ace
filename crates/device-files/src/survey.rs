//! The images and containers of a file, from one walk.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use device_select::Unit;
use fat_object::{Container, ErrorKind, Finding, Image, Visitor};

use crate::fault::Fault;
use crate::files::{DeviceFile, FileVisitor, each_file};
use crate::images::{FileRow, ImageRow, Listing};
use crate::layers::ContainerImages;
use crate::members::HEAD;
use crate::options::Options;
use crate::units::UnitCollector;

/// A file or a package that was read once, for any number of GPUs.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Survey {
    /// Its images.
    pub listing: Listing,
    pub(crate) files: Arc<Vec<Containers>>,
    /// The names of the container images in it.
    pub(crate) images: Arc<[String]>,
    /// Findings that only answers have.
    pub(crate) findings: Vec<Fault>,
}

/// The containers of a file, and of a member.
#[derive(Debug, Default)]
pub(crate) struct Containers {
    pub(crate) member: String,
    pub(crate) units: Vec<Unit>,
    /// The places where container images see it: their numbers, and its path in each.
    pub(crate) places: Vec<(usize, String)>,
}

/// Reads the images and the containers of a file, or of the members of a package. Compressed images are read by their tables.
///
/// An archive of container images is judged by the files that each image sees, its layers on top of each other.
///
/// # Errors
///
/// Errors of reading. Damaged files are findings.
pub fn survey<R: Read + Seek + Clone>(mut reader: R, options: &Options) -> io::Result<Survey> {
    let len = reader.seek(SeekFrom::End(0))?;
    reader.rewind()?;
    let mut head = Vec::new();
    reader.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
    reader.rewind()?;
    let mut surveyor = Surveyor::default();
    match ContainerImages::read(reader.clone(), (&head, len), options) {
        Ok(images) => surveyor.images = images,
        Err(error) if error.kind() == gpu_packages::ErrorKind::Io => return Err(error.into()),
        Err(error) => {
            surveyor.is_unclear = true;
            surveyor.findings.push(Fault::of_package("", &error));
        }
    }
    each_file(reader, options, &mut surveyor)?;
    let Surveyor { listing, files, mut findings, images, .. } = surveyor;
    let (names, of_images) = images.map_or((Vec::new(), Vec::new()), |it| (it.names, it.findings));
    findings.extend(of_images);
    Ok(Survey { listing, files: Arc::new(files), images: names.into(), findings })
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
    images: Option<ContainerImages>,
    /// `true` if container images cannot be read: it is not known which files they see.
    is_unclear: bool,
}

impl FileVisitor for Surveyor {
    fn package(&mut self) {
        self.listing.is_package = true;
    }

    fn file(&mut self, file: &mut DeviceFile<'_>) -> io::Result<()> {
        let options = file.options().clone().with_tables_only(true);
        let member = file.member();
        let member_of = self.images.as_ref().zip(file.package_member());
        let places = member_of.map_or(Some(Vec::new()), |(images, of)| images.places(of));
        // No container image sees a file that has none.
        let is_hidden = places.is_none();
        let (before, others) = (self.listing.findings.len(), self.findings.len());
        let listing = &mut self.listing;
        let mut walk = Walk { member, listing, units: UnitCollector::default() };
        let summary = file.walk(&options, &mut walk)?;
        let (mut units, faults) = walk.units.finish(summary.format, file.reader())?;
        let error = |fault: String| Fault::error(member, "verify/registration", fault);
        self.findings.extend(faults.into_iter().map(error));
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
        if is_hidden || self.is_unclear {
            units.clear();
        }
        if is_hidden {
            let listed = self.listing.findings.iter_mut().skip(before);
            listed.chain(self.findings.iter_mut().skip(others)).for_each(|it| it.is_apart = true);
        }
        let places = match places {
            Some(places) if !units.is_empty() => places,
            _ => Vec::new(),
        };
        let (size, format, images) = (file.size(), summary.format.to_string(), summary.images);
        self.listing.files.push(FileRow { member: member.to_owned(), size, format, images });
        self.files.push(Containers { member: member.to_owned(), units, places });
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
    units: UnitCollector,
}

impl Visitor for Walk<'_> {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        self.units.enter(container)
    }

    fn leave(&mut self) -> io::Result<()> {
        self.units.leave()
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let (member, info) = (self.member.to_owned(), image.info().clone());
        self.listing.images.push(ImageRow { member, image: info });
        self.units.image(image)
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        let mut fault = Fault::new(self.member, finding);
        // The answers say it of the image.
        fault.is_in_answers = finding.error().kind() == ErrorKind::Disagreement;
        self.listing.findings.push(fault);
        Ok(())
    }
}
