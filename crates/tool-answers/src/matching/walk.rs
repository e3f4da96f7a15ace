//! The walk through a file: its units, and what is wrong in it.

use std::io;

use device_select::Collector;
use fat_edit::Registrable;
use fat_object::{Container, ErrorKind, Finding, Image, Summary, Visitor};

use super::Question;
use tool_inputs::complaint::Complaint;
use tool_inputs::inputs::Input;
use tool_kit::parallel::Threads;

/// Visitor that collects units, and complaints.
#[derive(Debug, Default)]
pub struct Walk<'a> {
    /// The name of the file.
    pub(super) name: &'a str,
    pub(super) collector: Collector,
    pub(super) errors: usize,
    pub(super) complaints: Vec<Complaint>,
    /// The containers that wrappers are to lead to.
    pub(super) registrable: Registrable,
}

impl<'a> Walk<'a> {
    /// Creates the walk through a file.
    pub fn new(file: &'a Input) -> Self {
        Walk { name: file.name(), ..Walk::default() }
    }

    /// Walks through a file. IDs decide, and they stand in the tables.
    pub fn through(
        question: &Question<'_>,
        file: &'a Input,
        threads: Threads,
    ) -> (Self, io::Result<Summary>) {
        let &Question { check, limits, .. } = question;
        let mut walk = Walk::new(file);
        let options = limits.options().with_tables_only(!check).with_check_compressed(check);
        let walked = file.walk(limits, &options, threads, &mut walk);
        (walk, walked)
    }
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
        self.collector.image(image)
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        if finding.severity() == fat_object::Severity::Error {
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
