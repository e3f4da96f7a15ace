//! The kernels of many images: of a file, or of all files below a directory.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use byte_parts::is_like;

use super::{Kernel, KernelKind, Kernels, Measure, Occupancy, Stored, Version};
#[cfg(feature = "demangle")]
use crate::demangle::demangled;
use crate::format::FileFormat;

/// Images, and their kernels. [`KernelCollector`] makes it.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct KernelList {
    /// The images that may have kernels.
    pub images: Vec<ListedImage>,
    /// The kernels, in the order of their images.
    pub kernels: Vec<ListedKernel>,
}

/// An image of a [`KernelList`].
#[derive(Debug)]
#[non_exhaustive]
pub struct ListedImage {
    /// The name of its target.
    pub target: String,
    /// Its number in the file.
    pub index: usize,
    /// The format.
    pub format: FileFormat,
    /// The version of the format.
    pub version: Option<Version>,
    /// `true` for an object that a linker makes an image of.
    pub is_relocatable: bool,
    /// Bytes of the image, not compressed.
    pub size: u64,
}

/// A kernel of a [`KernelList`].
#[derive(Debug)]
#[non_exhaustive]
pub struct ListedKernel {
    /// The position of its image among [`KernelList::images`].
    pub image: usize,
    /// `true` if the file has the kernel linked as well.
    pub is_copy: bool,
    name: Arc<Name>,
    /// Its numbers, without names.
    pub kernel: Kernel<'static>,
    /// Its arguments, if they are described and wanted.
    pub arguments: Option<Vec<ListedArgument>>,
}

/// A kernel with what its image says: [`KernelList::record`].
#[derive(Debug)]
#[non_exhaustive]
pub struct KernelRecord<'l> {
    /// Its image.
    pub image: Option<&'l ListedImage>,
    /// The kernel.
    pub kernel: &'l ListedKernel,
    /// The waves that registers allow at most.
    pub occupancy: Option<Occupancy>,
}

/// An argument of a [`ListedKernel`].
#[derive(Debug)]
#[non_exhaustive]
pub struct ListedArgument {
    /// The name in the source.
    pub name: Option<Arc<str>>,
    /// The kind.
    pub kind: Option<Arc<str>>,
    /// The place in the block of arguments.
    pub offset: u64,
    /// The size in bytes.
    pub size: u64,
}

/// A name as stored and as in the source. Kernels for several GPUs share it.
#[derive(Debug)]
struct Name {
    stored: String,
    demangled: Option<String>,
}

impl Name {
    fn new(name: &[u8]) -> Self {
        let stored = String::from_utf8_lossy(name).into_owned();
        #[cfg(feature = "demangle")]
        let demangled = Some(demangled(name).into_owned()).filter(|source| *source != stored);
        #[cfg(not(feature = "demangle"))]
        let demangled = None;
        Name { stored, demangled }
    }
}

/// Collects the kernels of images.
///
/// ```
/// use device_code::{KernelCollector, kernels};
///
/// let ptx = b".version 8.0\n.target sm_90\n.entry scale() { ret; }\n.entry add() { ret; }\n";
/// let mut collector = KernelCollector::default().with_glob(Some("s*"));
/// collector.add("sm_90", 0, ptx.len() as u64, &kernels(ptx).ok_or("no image")?);
/// let list = collector.finish();
/// assert_eq!(list.kernels.len(), 1);
/// assert_eq!((list.kernels[0].name(false), list.target(&list.kernels[0])), ("scale", "sm_90"));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Default)]
pub struct KernelCollector {
    list: KernelList,
    names: BTreeMap<Vec<u8>, Arc<Name>>,
    /// Names of arguments, and of their kinds.
    others: BTreeMap<Vec<u8>, Arc<str>>,
    glob: Option<String>,
    has_arguments: bool,
}

impl KernelCollector {
    /// Keeps only kernels with a name like this, as stored or as in the source. `*` matches any characters and `?` one.
    #[must_use]
    pub fn with_glob(self, glob: Option<&str>) -> Self {
        KernelCollector { glob: glob.map(str::to_owned), ..self }
    }

    /// Keeps the arguments of kernels.
    #[must_use]
    pub fn with_arguments(self, has_arguments: bool) -> Self {
        KernelCollector { has_arguments, ..self }
    }

    /// Adds an image of this many bytes, and its kernels.
    pub fn add(&mut self, target: &str, index: usize, size: u64, found: &Kernels<'_>) {
        let image = self.list.images.len();
        self.list.images.push(ListedImage {
            target: target.to_owned(),
            index,
            format: found.format,
            version: found.version,
            is_relocatable: found.is_relocatable,
            size,
        });
        for kernel in found.kernels.iter().flatten() {
            let row = self.listed(image, kernel);
            if self.glob.as_deref().is_none_or(|glob| row.is_like(glob)) {
                self.list.kernels.push(row);
            }
        }
    }

    /// Returns the list.
    #[must_use]
    pub fn finish(self) -> KernelList {
        let mut list = self.list;
        list.mark_copies();
        list
    }

    fn listed(&mut self, image: usize, kernel: &Kernel<'_>) -> ListedKernel {
        let name = match self.names.get(kernel.name) {
            Some(known) => Arc::clone(known),
            None => {
                let new = Arc::new(Name::new(kernel.name));
                self.names.insert(kernel.name.to_vec(), Arc::clone(&new));
                new
            }
        };
        let arguments = kernel.arguments.as_ref().filter(|_| self.has_arguments);
        let arguments = arguments.map(|arguments| {
            let arguments = arguments.iter().map(|argument| ListedArgument {
                name: argument.name.map(|name| self.other(name)),
                kind: argument.kind.map(|kind| self.other(kind)),
                offset: argument.offset,
                size: argument.size,
            });
            arguments.collect()
        });
        ListedKernel { image, is_copy: false, name, arguments, kernel: kernel.without_names() }
    }

    fn other(&mut self, name: &[u8]) -> Arc<str> {
        if let Some(known) = self.others.get(name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = String::from_utf8_lossy(name).into();
        self.others.insert(name.to_vec(), Arc::clone(&new));
        new
    }
}

impl KernelList {
    /// Adds those of another file.
    pub fn append(&mut self, mut other: KernelList) {
        let before = self.images.len();
        other.kernels.iter_mut().for_each(|kernel| kernel.image += before);
        self.images.append(&mut other.images);
        self.kernels.append(&mut other.kernels);
    }

    /// Returns the image of a kernel.
    #[must_use]
    pub fn image(&self, kernel: &ListedKernel) -> Option<&ListedImage> {
        self.images.get(kernel.image)
    }

    /// Returns the target of a kernel's image.
    #[must_use]
    pub fn target(&self, kernel: &ListedKernel) -> &str {
        self.image(kernel).map_or("", |image| &image.target)
    }

    /// Returns the waves that registers allow at most, of code that a GPU loads.
    #[must_use]
    pub fn occupancy(&self, kernel: &ListedKernel) -> Option<Occupancy> {
        let image = self.image(kernel).filter(|image| !image.is_relocatable)?;
        kernel.kernel.occupancy(&image.target)
    }

    /// Returns a kernel with what its image says. With the feature `serde` it can be serialized, as `offload kernels --json` prints it.
    #[must_use]
    pub fn record<'l>(&'l self, kernel: &'l ListedKernel) -> KernelRecord<'l> {
        KernelRecord { image: self.image(kernel), kernel, occupancy: self.occupancy(kernel) }
    }

    /// Returns the kernels without copies.
    pub fn distinct(&self) -> impl Iterator<Item = &ListedKernel> {
        self.kernels.iter().filter(|kernel| !kernel.is_copy)
    }

    /// Marks kernels of relocatable images that linked images for the same GPU have as well: nvcc leaves both in a file.
    fn mark_copies(&mut self) {
        let KernelList { images, kernels } = self;
        if !images.iter().any(|image| image.is_relocatable) {
            return;
        }
        let key = |kernel: &ListedKernel| {
            let image = images.get(kernel.image)?;
            Some((image.target.as_str(), Arc::as_ptr(&kernel.name)))
        };
        let is_linked = |kernel: &ListedKernel| {
            images.get(kernel.image).is_some_and(|image| !image.is_relocatable)
        };
        let linked: BTreeSet<_> = kernels.iter().filter(|one| is_linked(one)).map(key).collect();
        let copies = kernels.iter_mut().filter(|one| !is_linked(one) && linked.contains(&key(one)));
        copies.for_each(|kernel| kernel.is_copy = true);
    }
}

impl ListedKernel {
    /// Returns the name as stored if `mangled` is set, otherwise as in the source if the feature `demangle` is on.
    #[must_use]
    pub fn name(&self, mangled: bool) -> &str {
        let Name { stored, demangled } = &*self.name;
        demangled.as_deref().filter(|_| !mangled).unwrap_or(stored)
    }

    /// Returns the number of a measure.
    #[must_use]
    pub fn of(&self, measure: Measure) -> Stored {
        measure.of(&self.kernel)
    }

    /// Returns the number of a measure for people: `~` marks the size of code that reaches to the next function.
    #[must_use]
    pub fn text(&self, measure: Measure) -> String {
        let is_estimated = measure == Measure::Code && self.kernel.is_code_size_estimated;
        let mark = if is_estimated { "~" } else { "" };
        format!("{mark}{}", self.of(measure))
    }

    /// Returns the sizes of work-groups: `256x1x1` if there is one, else the most work-items; empty if that is not known.
    #[must_use]
    pub fn group_size(&self) -> String {
        match (self.kernel.required_group_size, self.of(Measure::GroupSize)) {
            (Some([x, y, z]), _) => format!("{x}x{y}x{z}"),
            (None, Stored::Known(most)) => most.to_string(),
            _ => String::new(),
        }
    }

    /// Returns the [name](Self::name) for people: with the kind if it is not a kernel, without the return type `void` of templates, which
    /// is the same for all.
    #[must_use]
    pub fn labelled(&self, mangled: bool) -> String {
        let name = self.name(mangled);
        let name = name.strip_prefix("void ").unwrap_or(name);
        match self.kernel.kind {
            KernelKind::Kernel => name.to_owned(),
            kind => format!("{name} ({})", kind.as_str()),
        }
    }

    pub(super) fn is_like(&self, glob: &str) -> bool {
        let Name { stored, demangled } = &*self.name;
        is_like(stored, glob) || demangled.as_deref().is_some_and(|name| is_like(name, glob))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_are_linked_as_well_are_copies() {
        let found = |is_relocatable| Kernels {
            format: FileFormat::Cubin,
            version: None,
            is_relocatable,
            kernels: Some(
                [&b"one"[..], b"two"].map(|name| Kernel { name, ..Kernel::default() }).to_vec(),
            ),
            faults: Vec::new(),
        };
        let mut collector = KernelCollector::default();
        for (target, is_relocatable) in [("sm_90", true), ("sm_90", false), ("sm_80", true)] {
            collector.add(target, 0, 1, &found(is_relocatable));
        }
        let mut list = collector.finish();
        let copies: Vec<bool> = list.kernels.iter().map(|kernel| kernel.is_copy).collect();
        assert_eq!(copies, [true, true, false, false, false, false]);
        let mut other = KernelCollector::default();
        other.add("gfx90a", 3, 1, &found(false));
        list.append(other.finish());
        assert_eq!(list.kernels.last().map(|last| list.target(last)), Some("gfx90a"));
        assert_eq!(list.distinct().count(), 6);
    }
}
