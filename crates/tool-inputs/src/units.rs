//! The containers of a file from which a runtime chooses images, and what is wrong with it.

use std::io;

use device_files::UnitCollector;
use device_select::{Runtime, Unit};
use fat_edit::Registration;
use fat_object::{Container, ErrorKind, Finding, Image, Severity, Summary, Visitor};

use crate::complaint::Complaint;
use crate::inputs::{Input, Inputs};
use crate::limits::Limits;
use crate::package::HEADS;
use tool_kit::looked::{Looked, Seen};
use tool_kit::parallel::Threads;
use tool_kit::report;

/// A file that was read.
#[derive(Clone, Debug)]
pub struct FileUnits {
    /// The result of the walk.
    pub summary: Summary,
    /// The number of errors.
    pub errors: usize,
    /// Its containers.
    pub units: Vec<Unit>,
    /// `true` if its code is in kernel packs; [`read_all`](Self::read_all) looks for that.
    pub is_split: bool,
    /// `true` if a part was not read that may hold device code.
    pub is_partial: bool,
}

impl FileUnits {
    /// Walks a file; returns `None` if it could not be read, and all complaints. With `check`, compressed code is read as well.
    pub fn read(
        file: &Input,
        (check, limits): (bool, &Limits),
        threads: Threads,
    ) -> (Option<Self>, Vec<Complaint>) {
        Self::of(file, (&[], limits), Walk::through(file, (check, limits), threads))
    }

    /// Completes what a walk found, with containers of these kinds; of all kinds if there are none.
    pub fn of(
        file: &Input,
        (kinds, limits): (&[Runtime], &Limits),
        (mut walk, walked): (Walk<'_>, io::Result<Summary>),
    ) -> (Option<Self>, Vec<Complaint>) {
        let name = file.name();
        let mut complaints = std::mem::take(&mut walk.complaints);
        let summary = match walked {
            Ok(summary) => summary,
            Err(reason) => {
                complaints.push(Complaint::error(name, "file/error", report::reason(&reason)));
                return (None, complaints);
            }
        };
        let units = walk.units;
        let finished =
            file.with_reader(limits.max_input, |reader| units.finish(summary.format, reader));
        let (mut units, faults) = match finished {
            Ok(finished) => finished,
            Err(reason) => {
                complaints.push(Complaint::error(name, "file/error", report::reason(&reason)));
                return (None, complaints);
            }
        };
        let errors = walk.errors + faults.len();
        let error = |fault: String| Complaint::error(name, "verify/registration", fault);
        complaints.extend(faults.into_iter().map(error));
        units.retain(|unit| kinds.is_empty() || kinds.contains(&unit.runtime()));
        let is_partial = is_partial(&summary, &complaints)
            || file.package().is_none() && file.partial().is_set();
        if units.is_empty() && errors == 0 && !is_empty_part(&summary) {
            let (code, why) = match (summary.images, summary.no_images()) {
                (0, Ok(why)) => ("targets/nothing", why),
                (0, Err(why)) => ("file/unknown", why),
                (images, _) => {
                    let why = format!("none of its {images} images is of the given kind");
                    ("targets/nothing", why)
                }
            };
            complaints.push(Complaint::error(name, code, why));
        }
        (Some(FileUnits { summary, errors, units, is_split: false, is_partial }), complaints)
    }

    /// Reads all files of inputs, and hands over those with containers, and libraries whose code is in kernel packs; prints what cannot be read.
    ///
    /// # Errors
    ///
    /// Errors of the output.
    pub fn read_all(
        inputs: &Inputs,
        (check, limits): (bool, &Limits),
        mut take: impl FnMut(&Input, Self),
    ) -> io::Result<Looked> {
        let read = |file: &Input, threads| {
            let read = Self::read(file, (check, limits), threads).0?;
            Some(FileUnits { is_split: file.split_host().is_some(), ..read })
        };
        inputs.look((limits, HEADS), "reading", read, |input, read| {
            let Some(file) = read else { return Ok(Seen::Faults) };
            if file.units.is_empty() && !file.is_damaged() && !file.is_split {
                return Ok(Seen::Nothing);
            }
            take(input, file);
            Ok(Seen::Well)
        })
    }

    /// Returns whether something is wrong with its containers.
    pub fn is_damaged(&self) -> bool {
        self.errors > 0
    }

    /// Returns whether there is an answer about it: without containers only if it was not searched as a whole. Otherwise a complaint
    /// has the reason.
    pub fn has_answer(&self) -> bool {
        !self.units.is_empty() || is_empty_part(&self.summary)
    }
}

/// Returns whether nothing was found in a file that was not searched as a whole.
fn is_empty_part(summary: &Summary) -> bool {
    summary.images == 0 && summary.unsearched > 0 && summary.no_images().is_ok()
}

/// Returns whether a part of a file that may hold device code was not read.
fn is_partial(summary: &Summary, complaints: &[Complaint]) -> bool {
    summary.unsearched > 0 || complaints.iter().any(Complaint::hides_code)
}

/// Visitor that collects units, and complaints.
#[derive(Debug, Default)]
pub struct Walk<'a> {
    /// The name of the file.
    name: &'a str,
    units: UnitCollector,
    errors: usize,
    complaints: Vec<Complaint>,
}

impl<'a> Walk<'a> {
    /// Creates the walk through a file.
    pub fn new(file: &'a Input) -> Self {
        Walk { name: file.name(), ..Walk::default() }
    }

    /// Completes what a walk found in a file whose registration was read for others as well.
    pub(crate) fn into_file(self, summary: &Summary, registration: &Registration) -> FileUnits {
        let errors = self.errors + registration.faults().len();
        let is_partial = is_partial(summary, &self.complaints);
        let units = self.units.into_units(registration);
        FileUnits { summary: summary.clone(), errors, units, is_split: false, is_partial }
    }

    /// Walks through a file. IDs decide, and they stand in the tables; with `check`, images are read as well.
    pub fn through(
        file: &'a Input,
        (check, limits): (bool, &Limits),
        threads: Threads,
    ) -> (Self, io::Result<Summary>) {
        let mut walk = Walk::new(file);
        let options = limits.options().with_tables_only(!check).with_check_compressed(check);
        let walked = file.walk(limits, &options, threads, &mut walk);
        (walk, walked)
    }
}

impl Visitor for Walk<'_> {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        self.units.enter(container)
    }

    fn leave(&mut self) -> io::Result<()> {
        self.units.leave()
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        self.units.image(image)
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        if finding.severity() == Severity::Error {
            self.errors += 1;
        }
        // The table says it of the image.
        if finding.error().kind() == ErrorKind::Disagreement {
            return Ok(());
        }
        self.complaints.push(Complaint::new(self.name, finding));
        Ok(())
    }
}
