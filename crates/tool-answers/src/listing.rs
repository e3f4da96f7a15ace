//! The images of a file.

use std::io;

use device_select::{ImageFilter, PassedOver, SplitLibrary};
use fat_object::{Container, Finding, Image, Summary, Visitor};
use tool_inputs::complaint::Complaint;
use tool_inputs::inputs::Input;
use tool_inputs::limits::Limits;
use tool_kit::parallel::Threads;

use crate::row::{self, Row};

/// A question about the images of a file: which ones, and what of them beyond what their containers say.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The images that are meant.
    pub filter: ImageFilter,
    /// The bounds.
    pub limits: Limits,
    /// Compressed bundles are read to their end, for the formats of their images.
    pub formats: bool,
    /// Images are compared with the names of their entries.
    pub check: bool,
    /// The hash of each image is taken.
    pub hash: bool,
    /// The hash of each image without its target is taken.
    pub same: bool,
    /// The software is found that images need.
    pub needs: bool,
}

/// Takes the images of a file, and the containers around them, in file order.
pub trait Sink {
    /// Takes a container: what follows lies in it.
    fn enter(&mut self, _: &Container) {}

    /// Takes the row of an image that is meant, and the image.
    ///
    /// # Errors
    ///
    /// An error ends the walk.
    fn image(&mut self, row: Row, image: &mut Image<'_, '_>) -> io::Result<()>;

    /// Takes the end of a container.
    fn leave(&mut self) {}
}

/// The result of a walk through a file, beside its images.
#[derive(Debug)]
pub struct Listed {
    /// The number of images that are meant.
    pub images: usize,
    /// The images that are not meant.
    pub passed: PassedOver,
    /// Findings of the walk.
    pub complaints: Vec<Complaint>,
    /// The format and the size of the file, or why it could not be read.
    pub summary: io::Result<Summary>,
}

impl Question {
    /// Hands the images of a file to a sink.
    pub fn list(&self, file: &Input, threads: Threads, sink: &mut dyn Sink) -> Listed {
        let (passed, complaints) = (PassedOver::default(), Vec::new());
        let mut lister = Lister { question: self, file, sink, images: 0, passed, complaints };
        let reads = self.formats || self.hash || self.check || self.same || self.needs;
        let options = self.limits.options().with_tables_only(!reads);
        let options = options.with_check_compressed(self.check || self.needs);
        let summary = file.walk(&self.limits, &options, threads, &mut lister);
        let Lister { images, passed, complaints, .. } = lister;
        Listed { images, passed, complaints, summary }
    }

    /// Returns the reason for a listing without images, or with images that no loader takes: an error if the file was not
    /// understood.
    pub fn why_nothing(
        &self,
        input: &Input,
        (images, passed): (usize, &PassedOver),
        summary: &Summary,
    ) -> Option<Result<String, String>> {
        match (input.split_host(), images) {
            (Some(host), 0) => Some(Ok(host.describe())),
            (Some(host), _) => {
                Some(Ok(format!("{}; no loader takes the images of this file", host.describe())))
            }
            (None, 0) if summary.images > 0 && !self.filter.is_everything() => {
                let (images, condition) = (summary.images, self.filter.condition());
                let (has, advice) = (passed.listed(), self.filter.advice(passed));
                Some(Ok(format!("none of its {images} images {condition}{has}{advice}")))
            }
            (None, 0) => Some(input.no_images(summary)),
            (None, _) => input.split_library().err().map(Err),
        }
    }
}

struct Lister<'a> {
    question: &'a Question,
    file: &'a Input,
    sink: &'a mut dyn Sink,
    images: usize,
    passed: PassedOver,
    complaints: Vec<Complaint>,
}

impl Visitor for Lister<'_> {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        self.sink.enter(container);
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let question = self.question;
        if !question.filter.includes(image) {
            self.passed.add(image);
            return Ok(());
        }
        let hash = if question.hash { row::hash(image)? } else { None };
        let same = if question.same { row::hash_without_target(image)? } else { None };
        let archive = row::archive(image);
        let needs = question.needs.then(|| device_select::needs(image));
        let listed = image.info().clone();
        self.images += 1;
        self.sink.image(Row { listed, hash, same, archive, needs }, image)
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.complaints.push(Complaint::new(self.file.name(), finding));
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        self.sink.leave();
        Ok(())
    }
}
