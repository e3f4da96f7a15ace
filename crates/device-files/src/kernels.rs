//! The kernels of a file.

use std::io::{self, Read, Seek};

use device_code::{KernelCollector, KernelList, KernelRecord};
use device_select::Device;
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

/// Lists the kernels of a file, or of the members of a package, with their resources: those for one GPU, by the target ID of their
/// images, or all.
///
/// # Errors
///
/// Errors of reading. Damaged files are findings.
pub fn kernels<R: Read + Seek + Clone>(
    reader: R,
    options: &Options,
    gpu: Option<&Device>,
) -> io::Result<Kernels> {
    let mut collector = Collector { gpu, found: Kernels::default() };
    each_file(reader, options, &mut collector)?;
    Ok(collector.found)
}

struct Collector<'c> {
    gpu: Option<&'c Device>,
    found: Kernels,
}

impl FileVisitor for Collector<'_> {
    fn file(&mut self, file: &mut DeviceFile<'_>) -> io::Result<()> {
        let (member, options) = (file.member(), file.options().clone());
        let of_archive = |_| options.clone();
        let name = self.gpu.map(Device::name);
        let includes =
            |image: &ImageInfo| name.as_ref().is_none_or(|name| image.loaded_as().id() == name);
        let kernels = KernelCollector::default().with_arguments(true);
        let mut visitor = KernelVisitor::new(kernels, &of_archive, &includes);
        file.walk(&options, &mut visitor)?;
        let (list, complaints) = visitor.finish();
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
