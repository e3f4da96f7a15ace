//! The kernels of a file.

use std::cell::RefCell;
use std::io::{self, Read, Seek};

use device_code::{KernelCollector, KernelList, KernelRecord};
use device_select::{Device, ImageFilter, PassedOver, Wanted};
use fat_object::{ImageInfo, KernelVisitor};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::fault::Fault;
use crate::files::{DeviceFile, FileVisitor, each_file};
use crate::options::Options;

/// A kernel: one object of `offload kernels --json`, with the member instead of the file.
#[derive(serde::Serialize)]
#[non_exhaustive]
pub struct KernelRow<'k> {
    /// The member of the package; empty for the file itself.
    pub member: &'k str,
    /// The kernel.
    #[serde(flatten)]
    pub kernel: KernelRecord<'k>,
}

impl std::fmt::Debug for KernelRow<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelRow").field("member", &self.member).finish_non_exhaustive()
    }
}

/// The kernels of a file or a package.
#[derive(Debug, Default)]
pub struct Kernels {
    lists: Vec<(String, KernelList)>,
    findings: Vec<Fault>,
}

impl Kernels {
    /// Returns the kernels, in the order of the file.
    pub fn rows(&self) -> impl Iterator<Item = KernelRow<'_>> {
        self.lists.iter().flat_map(|(member, list)| {
            list.kernels.iter().map(move |kernel| KernelRow { member, kernel: list.record(kernel) })
        })
    }

    /// Returns everything that is wrong.
    #[must_use]
    pub fn findings(&self) -> &[Fault] {
        &self.findings
    }
}

/// `kernels`, `findings`.
impl Serialize for Kernels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Kernels", 2)?;
        fields.serialize_field("kernels", &Vec::from_iter(self.rows()))?;
        fields.serialize_field("findings", &self.findings)?;
        fields.end()
    }
}

/// Lists the kernels of a file, or of the members of a package, with their resources. With a GPU, only images that it loads count,
/// and generic code is among these. A finding says if it loads none.
///
/// # Errors
///
/// Errors of reading; [`InvalidInput`](io::ErrorKind::InvalidInput) for a GPU whose name is not a target. Damaged files are findings.
pub fn kernels<R: Read + Seek + Clone>(
    reader: R,
    options: &Options,
    gpu: Option<&Device>,
) -> io::Result<Kernels> {
    let wanted = gpu.map(|gpu| Wanted::parse(&gpu.name())).transpose();
    let wanted = wanted.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let mut collector =
        Collector { filter: ImageFilter::default().with_wanted(wanted), ..Collector::default() };
    each_file(reader, options, &mut collector)?;
    let Collector { filter, mut found, seen } = collector;
    let Seen { passed, images, meant } = seen.into_inner();
    if images > 0 && meant == 0 {
        let (condition, has, advice) =
            (filter.condition(), passed.listed(), filter.advice(&passed));
        let text = format!("none of its {images} images {condition}{has}{advice}");
        found.findings.push(Fault::error("", "targets/nothing", text));
    }
    Ok(found)
}

#[derive(Default)]
struct Collector {
    filter: ImageFilter,
    found: Kernels,
    seen: RefCell<Seen>,
}

/// The images that were seen.
#[derive(Default)]
struct Seen {
    /// The images that are not meant.
    passed: PassedOver,
    images: usize,
    meant: usize,
}

impl FileVisitor for Collector {
    fn file(&mut self, file: &mut DeviceFile<'_>) -> io::Result<()> {
        let (member, options) = (file.member(), file.options().clone());
        let of_archive = |_| options.clone();
        let includes = |image: &ImageInfo| {
            let (is_meant, mut seen) = (self.filter.includes(image), self.seen.borrow_mut());
            seen.images += 1;
            if is_meant {
                seen.meant += 1;
            } else {
                seen.passed.add(image);
            }
            is_meant
        };
        let kernels = KernelCollector::default().with_arguments(true);
        let mut visitor = KernelVisitor::new(kernels, &of_archive, &includes);
        let summary = fat_object::walk(file.reader(), &options, &mut visitor)?;
        let (list, complaints) = visitor.finish();
        let moved_out = file.moved_out()?;
        let has_more = summary.images > 0 || !complaints.is_empty() || moved_out.is_some();
        let unread = if has_more { file.rest(&summary) } else { file.nothing(&summary) };
        self.found.findings.extend(moved_out.into_iter().chain(unread));
        let fault = |(severity, message)| {
            Fault::error(member, "verify/malformed", message).with_level(severity)
        };
        self.found.findings.extend(complaints.into_iter().map(fault));
        self.found.lists.push((member.to_owned(), list));
        Ok(())
    }

    fn fault(&mut self, fault: Fault) -> io::Result<()> {
        self.found.findings.push(fault);
        Ok(())
    }
}
