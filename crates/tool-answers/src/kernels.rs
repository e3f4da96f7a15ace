//! The kernels of a file, collected while it is walked.

use std::io;

use device_code::{KernelCollector, KernelList};
use device_select::ImageFilter;
use fat_object::{Image, ImageInfo, KernelVisitor, Severity, Summary, Visitor};

use tool_inputs::complaint::Complaint;
use tool_inputs::inputs::Input;
use tool_inputs::limits::Limits;
use tool_kit::parallel::Threads;

/// The result of a walk.
#[derive(Debug)]
pub struct Found {
    /// The kernels.
    pub list: KernelList,
    /// The format and the size of the file, or why it could not be read.
    pub summary: io::Result<Summary>,
    /// Findings, errors first.
    pub complaints: Vec<Complaint>,
}

impl Found {
    /// Returns the result of the walk.
    pub fn summary(&self) -> &io::Result<Summary> {
        &self.summary
    }
}

/// The kernels that are wanted.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// The images with kernels that are meant.
    pub filter: &'a ImageFilter,
    /// A pattern of names.
    pub glob: Option<&'a str>,
    /// `true` if the arguments of kernels are listed.
    pub has_arguments: bool,
    /// The bounds.
    pub limits: &'a Limits,
}

/// Faults of images, and images whose kernels are not listed. Errors come first.
pub type Faults = Vec<(Severity, String)>;

/// Counts the kernels of an image. `None` for images of formats whose kernels are not read, and for damaged ones. Returns what is
/// wrong, too.
///
/// # Errors
///
/// Errors of reading the file.
pub fn count(image: &mut Image<'_, '_>, limits: &Limits) -> io::Result<(Option<usize>, Faults)> {
    let (list, complaints) = of_image(image, limits)?;
    let count = list.kernels.iter().filter(|kernel| !kernel.is_copy).count();
    Ok((Some(count).filter(|_| !list.images.is_empty() && complaints.is_empty()), complaints))
}

/// Returns the kernels of an image, and what is wrong.
///
/// # Errors
///
/// Errors of reading the file.
pub fn of_image(image: &mut Image<'_, '_>, limits: &Limits) -> io::Result<(KernelList, Faults)> {
    let options = limits.options();
    let of_archive = |len| limits.for_file(&options, len);
    let collector = KernelCollector::default().with_arguments(true);
    let mut visitor = KernelVisitor::new(collector, &of_archive, &|_| true);
    visitor.image(image)?;
    Ok(visitor.finish())
}

/// Collects the kernels of a file in a walk of its own.
pub fn collect(wanted: &Wanted<'_>, file: &Input, threads: Threads) -> Found {
    let options = wanted.limits.options();
    collect_in(wanted, file, |visitor| file.walk(wanted.limits, &options, threads, visitor))
}

/// Collects the kernels of a file in a walk that others may take part in.
pub fn collect_in(
    wanted: &Wanted<'_>,
    file: &Input,
    walk: impl FnOnce(&mut KernelVisitor<'_>) -> io::Result<Summary>,
) -> Found {
    let collector = KernelCollector::default().with_glob(wanted.glob);
    let collector = collector.with_arguments(wanted.has_arguments);
    let (options, limits) = (wanted.limits.options(), wanted.limits);
    let of_archive = |len| limits.for_file(&options, len);
    let includes = |image: &ImageInfo| wanted.filter.includes(image);
    let mut visitor = KernelVisitor::new(collector, &of_archive, &includes);
    let summary = walk(&mut visitor);
    let (list, complaints) = visitor.finish();
    let complaints = complaints.into_iter().map(|(severity, text)| Complaint {
        severity,
        code: "verify/malformed",
        file: file.name().to_owned(),
        offset: None,
        text,
    });
    Found { list, summary, complaints: complaints.collect() }
}
