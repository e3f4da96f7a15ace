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
pub(super) struct Found {
    pub(super) list: KernelList,
    pub(super) summary: io::Result<Summary>,
    /// Findings, errors first.
    pub(super) complaints: Vec<Complaint>,
}

/// The kernels that are wanted.
pub(super) struct Wanted<'a> {
    pub(super) filter: &'a ImageFilter,
    /// A pattern of names.
    pub(super) glob: Option<&'a str>,
    pub(super) has_arguments: bool,
    pub(super) limits: &'a Limits,
}

pub(super) fn collect(wanted: &Wanted<'_>, file: &Input, threads: Threads) -> Found {
    let collector = KernelCollector::default().with_glob(wanted.glob);
    let collector = collector.with_arguments(wanted.has_arguments);
    let (options, limits) = (wanted.limits.options(), wanted.limits);
    let of_archive = |len| limits.for_file(&options, len);
    let includes = |image: &ImageInfo| wanted.filter.includes(image);
    let mut visitor = KernelVisitor::new(collector, &of_archive, &includes);
    let summary = file.walk(limits, &options, threads, &mut visitor);
    let (list, complaints) = visitor.finish();
    let complaints = complaints.into_iter().map(|(severity, text)| Complaint {
        severity,
        code: "verify/malformed",
        file: file.name().to_owned(),
        text,
    });
    Found { list, summary, complaints: complaints.collect() }
}
