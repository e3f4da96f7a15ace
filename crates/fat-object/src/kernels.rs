//! The kernels of the images of a file.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::io;

use device_code::{FileFormat, KernelCollector, KernelList, kernels};

use crate::error::Finding;
use crate::image::{Image, ImageInfo};
use crate::model::Severity;
use crate::options::Options;
use crate::visitor::Visitor;
use crate::walker::walk_slice;

/// A visitor that collects the kernels of a file's images.
///
/// ```
/// use device_code::KernelCollector;
/// use fat_object::{KernelVisitor, Options, walk};
///
/// let (file, options) = (std::fs::File::open("../../examples/data/hip.o")?, Options::default());
/// let includes = |image: &fat_object::ImageInfo| image.target().id() == "gfx1100";
/// let of_archive = |_len| Options::default();
/// let mut visitor = KernelVisitor::new(KernelCollector::default(), &of_archive, &includes);
/// walk(file, &options, &mut visitor)?;
/// let (list, complaints) = visitor.finish();
/// assert!(list.kernels.iter().all(|kernel| list.target(kernel) == "gfx1100"));
/// assert!(!list.kernels.is_empty() && complaints.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct KernelVisitor<'a> {
    kernels: KernelCollector,
    options: &'a dyn Fn(u64) -> Options,
    includes: &'a dyn Fn(&ImageInfo) -> bool,
    complaints: Vec<(Severity, String)>,
    /// The number of the image that is an archive, and is looked into.
    archive: Option<usize>,
}

impl fmt::Debug for KernelVisitor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelVisitor").field("kernels", &self.kernels).finish_non_exhaustive()
    }
}

impl<'a> KernelVisitor<'a> {
    /// Creates a visitor that adds the kernels of images which `includes` selects to `kernels`. `options` returns the options of a
    /// walk through an archive of this length in an image.
    pub fn new(
        kernels: KernelCollector,
        options: &'a dyn Fn(u64) -> Options,
        includes: &'a dyn Fn(&ImageInfo) -> bool,
    ) -> Self {
        KernelVisitor { kernels, options, includes, complaints: Vec::new(), archive: None }
    }

    /// Returns the kernels, and what is wrong: damaged images, and images whose kernels are not listed. Errors come first.
    #[must_use]
    pub fn finish(self) -> (KernelList, Vec<(Severity, String)>) {
        let mut complaints = self.complaints;
        complaints.sort_by_key(|(severity, _)| *severity != Severity::Error);
        (self.kernels.finish(), complaints)
    }

    fn complain(&mut self, severity: Severity, message: impl Display) {
        self.complaints.push((severity, message.to_string()));
    }

    /// Looks into an archive of machine code for several of Intel's GPUs, which is compressed as one image.
    fn archive(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let index = image.index();
        let Some(code) = self.code(image)? else { return Ok(()) };
        let outer = self.archive.replace(index);
        let walked = walk_slice(&code, &(self.options)(code.len() as u64), self);
        self.archive = outer;
        walked.map(drop)
    }

    /// Returns the bytes of an image, not compressed; `None` if they are damaged.
    fn code<'i>(&mut self, image: &'i mut Image<'_, '_>) -> io::Result<Option<Cow<'i, [u8]>>> {
        match image.bytes() {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.complain(Severity::Error, error);
                Ok(None)
            }
            code => code.map(Some),
        }
    }
}

impl Visitor for KernelVisitor<'_> {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        if image.format() == FileFormat::Archive && image.compression().is_some() {
            return self.archive(image);
        }
        if image.format().is_container() || !(self.includes)(image) {
            return Ok(());
        }
        let info = image.info();
        let Some(code) = self.code(image)? else { return Ok(()) };
        let index = self.archive.unwrap_or(info.index());
        let Some(found) = kernels(&code) else { return Ok(()) };
        for fault in &found.faults {
            self.complain(Severity::Error, format_args!("image {index}: {fault}"));
        }
        // PTX goes by its virtual architecture.
        let target = info.marked(info.label_of(&info.loaded_as()));
        self.kernels.add(&target, index, code.len() as u64, &found);
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
