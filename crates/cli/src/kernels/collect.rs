//! The kernels of a file, collected while it is walked.

use std::borrow::Cow;
use std::fmt::Display;
use std::io;

use device_code::{KernelCollector, KernelList};
use fat_object::{FileFormat, Finding, Image, ImageInfo, Severity, Summary, Visitor};

use crate::complaint::Complaint;
use crate::inputs::Input;
use crate::limits::Limits;
use crate::select::Selection;
use tool_kit::parallel::Threads;

/// The result of a walk.
pub(super) struct Found {
    pub(super) list: KernelList,
    pub(super) summary: io::Result<Summary>,
    /// What is wrong, errors first.
    pub(super) complaints: Vec<Complaint>,
}

impl Found {
    pub(super) fn is_faulty(&self) -> bool {
        self.complaints.first().is_some_and(|first| first.severity == Severity::Error)
    }
}

/// The kernels that are wanted.
pub(super) struct Wanted<'a> {
    pub(super) selection: &'a Selection,
    /// A pattern of names.
    pub(super) glob: Option<&'a str>,
    pub(super) has_arguments: bool,
    pub(super) limits: &'a Limits,
}

pub(super) fn collect(wanted: &Wanted<'_>, file: &Input, threads: Threads) -> Found {
    let mut collector = Collector {
        file,
        wanted,
        kernels: KernelCollector::default()
            .with_glob(wanted.glob)
            .with_arguments(wanted.has_arguments),
        complaints: Vec::new(),
        archive: None,
    };
    let (options, limits) = (wanted.limits.options(), wanted.limits);
    let summary = file.walk(limits, &options, threads, &mut collector);
    let Collector { kernels, mut complaints, .. } = collector;
    complaints.sort_by_key(|one| one.severity != Severity::Error);
    Found { list: kernels.finish(), summary, complaints }
}

struct Collector<'a> {
    file: &'a Input,
    wanted: &'a Wanted<'a>,
    kernels: KernelCollector,
    complaints: Vec<Complaint>,
    /// The number of the image that is an archive, and is looked into.
    archive: Option<usize>,
}

impl Collector<'_> {
    fn complain(&mut self, severity: Severity, message: impl Display) {
        let message = format!("{}: {message}", self.file.name());
        self.complaints.push(Complaint { severity, message });
    }

    /// Looks into an archive of machine code for several of Intel's GPUs, which is compressed as one image.
    fn archive(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let index = image.index();
        let Some(code) = self.code(image)? else { return Ok(()) };
        let outer = self.archive.replace(index);
        let limits = self.wanted.limits;
        let options = limits.for_file(&limits.options(), code.len() as u64);
        let walked = fat_object::walk_slice(&code, &options, self);
        self.archive = outer;
        walked.map(drop)
    }

    /// Returns the bytes of an image, not compressed; `None` if they are damaged.
    fn code<'i>(&mut self, image: &'i mut Image<'_, '_>) -> io::Result<Option<Cow<'i, [u8]>>> {
        match image.bytes() {
            Ok(code) => Ok(Some(code)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.complain(Severity::Error, error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl Visitor for Collector<'_> {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        if image.format() == FileFormat::Archive && image.compression().is_some() {
            return self.archive(image);
        }
        if image.format().is_container() || !self.wanted.selection.includes(image) {
            return Ok(());
        }
        let info = image.info();
        let Some(code) = self.code(image)? else { return Ok(()) };
        let index = self.archive.unwrap_or(info.index());
        let Some(found) = device_code::kernels(&code) else { return Ok(()) };
        for fault in &found.faults {
            self.complain(Severity::Error, format_args!("image {index}: {fault}"));
        }
        self.kernels.add(&target(info), index, code.len() as u64, &found);
        if found.kernels.is_none() {
            let which = match found.format {
                FileFormat::Bitcode => "the kernels of LLVM bitcode are not read".to_owned(),
                format => format!("{format}: kernels of this format are not listed"),
            };
            self.complain(Severity::Warning, format_args!("image {index}: {which}"));
        }
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.complain(finding.severity(), finding);
        Ok(())
    }
}

/// Returns the name of an image's target, of PTX that of the virtual architecture.
fn target(image: &ImageInfo) -> String {
    image.marked(image.label_of(&image.loaded_as()))
}
