//! The walk through a file: its units, and what is wrong in it.

use std::io;

use device_select::Collector;
use fat_edit::Registrable;
use fat_object::{Container, ErrorKind, Finding, Image, Visitor};

use tool_inputs::complaint::Complaint;

/// Visitor that collects units, and complaints.
#[derive(Debug, Default)]
pub(super) struct Walk<'a> {
    /// The name of the file.
    pub(super) name: &'a str,
    pub(super) collector: Collector,
    pub(super) errors: usize,
    pub(super) complaints: Vec<Complaint>,
    /// The containers that wrappers are to lead to.
    pub(super) registrable: Registrable,
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
