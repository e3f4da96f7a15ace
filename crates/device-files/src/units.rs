//! The containers of a file from which a runtime chooses images.

use std::io::{self, Read, Seek};
use std::mem;

use device_select::{Collector, Unit};
use fat_edit::{Registrable, Registration};
use fat_object::{Container, FileFormat, Finding, Image, Visitor};

/// Collects the containers of a file from which a runtime chooses images, and looks whether wrappers lead to them.
#[derive(Debug, Default)]
pub struct UnitCollector {
    collector: Collector,
    registrable: Registrable,
}

impl UnitCollector {
    /// Returns the containers of the file, of the format that the walk found, and what keeps runtimes from their code. Containers that no
    /// wrapper leads to are marked as lost.
    ///
    /// # Errors
    ///
    /// Errors of reading the wrappers.
    pub fn finish<R: Read + Seek>(
        mut self,
        format: FileFormat,
        reader: R,
    ) -> io::Result<(Vec<Unit>, Vec<String>)> {
        let registration = mem::take(&mut self.registrable).registration(format, reader)?;
        let faults = registration.faults();
        Ok((self.into_units(&registration), faults))
    }

    /// Returns the containers of a file whose registration was read by others.
    #[must_use]
    pub fn into_units(self, registration: &Registration) -> Vec<Unit> {
        let mut units = self.collector.finish();
        for unit in &mut units {
            if unit.offset().is_some_and(|at| registration.loses(at)) {
                unit.set_lost();
            }
        }
        units
    }
}

impl Visitor for UnitCollector {
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

    fn finding(&mut self, _: &Finding) -> io::Result<()> {
        Ok(())
    }
}
