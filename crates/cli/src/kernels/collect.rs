//! The kernels of a file, collected while it is walked.

use std::io;

use device_code::{KernelCollector, KernelList};
use device_select::ImageFilter;
use fat_object::{ImageInfo, KernelVisitor, Summary};

use tool_inputs::complaint::Complaint;
use tool_inputs::inputs::Input;
use tool_inputs::limits::Limits;
use tool_kit::parallel::Threads;

/// The result of a walk.
pub(crate) struct Found {
    pub(super) list: KernelList,
    pub(super) summary: io::Result<Summary>,
    /// Findings, errors first.
    pub(super) complaints: Vec<Complaint>,
}

impl Found {
    /// Returns the result of the walk.
    pub(crate) fn summary(&self) -> &io::Result<Summary> {
        &self.summary
    }
}

/// The kernels that are wanted.
pub(crate) struct Wanted<'a> {
    pub(crate) filter: &'a ImageFilter,
    /// A pattern of names.
    pub(crate) glob: Option<&'a str>,
    pub(crate) has_arguments: bool,
    pub(crate) limits: &'a Limits,
}

/// Collects the kernels of a file in a walk of its own.
pub(super) fn collect(wanted: &Wanted<'_>, file: &Input, threads: Threads) -> Found {
    let options = wanted.limits.options();
    collect_in(wanted, file, |visitor| file.walk(wanted.limits, &options, threads, visitor))
}

/// Collects the kernels of a file in a walk that others may take part in.
pub(crate) fn collect_in(
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
        text,
    });
    Found { list, summary, complaints: complaints.collect() }
}
