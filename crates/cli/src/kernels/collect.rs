//! The kernels of a file, collected while it is walked.

use crate::limits::Limits;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use byte_parts::ReadSeek;
use device_code::{Kernel, KernelKind, KernelRule, Measure, Occupancy, Stored, Version, demangled};
use fat_object::{FileFormat, Finding, Image, ImageInfo, Severity, Summary, Visitor};

use crate::inputs::Input;
use crate::select::Selection;
use tool_kit::parallel::Threads;

/// The result of a walk.
pub(super) struct Found {
    pub(super) collected: Collected,
    pub(super) summary: io::Result<Summary>,
    pub(super) faults: Vec<String>,
    pub(super) warnings: Vec<String>,
}

/// The images of a file that may have kernels, and the kernels.
#[derive(Default)]
pub(super) struct Collected {
    pub(super) images: Vec<ListedImage>,
    pub(super) rows: Vec<Row>,
}

/// An image.
pub(super) struct ListedImage {
    pub(super) target: String,
    pub(super) index: usize,
    pub(super) format: FileFormat,
    pub(super) version: Option<Version>,
    pub(super) is_relocatable: bool,
    /// Bytes of the image, not compressed.
    pub(super) size: u64,
}

/// A kernel.
pub(super) struct Row {
    /// Position of its image.
    pub(super) image: usize,
    /// `true` if the file has the kernel linked as well.
    pub(super) is_copy: bool,
    name: Arc<Name>,
    /// Its numbers, without names.
    pub(super) kernel: Kernel<'static>,
    pub(super) arguments: Option<Vec<Argument>>,
}

/// A name as stored and as in the source. Kernels for several GPUs share it.
struct Name {
    stored: String,
    demangled: Option<String>,
}

/// An argument of a kernel.
pub(super) struct Argument {
    pub(super) name: Option<Arc<str>>,
    pub(super) kind: Option<Arc<str>>,
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// The names of a file.
#[derive(Default)]
struct Names {
    of_kernels: HashMap<Vec<u8>, Arc<Name>>,
    others: HashMap<Vec<u8>, Arc<str>>,
}

impl Names {
    fn kernel(&mut self, name: &[u8]) -> Arc<Name> {
        if let Some(known) = self.of_kernels.get(name) {
            return Arc::clone(known);
        }
        let stored = String::from_utf8_lossy(name).into_owned();
        let source = demangled(name);
        let demangled = (source != stored).then(|| source.into_owned());
        let new = Arc::new(Name { stored, demangled });
        self.of_kernels.insert(name.to_vec(), Arc::clone(&new));
        new
    }

    fn other(&mut self, name: &[u8]) -> Arc<str> {
        if let Some(known) = self.others.get(name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = String::from_utf8_lossy(name).into();
        self.others.insert(name.to_vec(), Arc::clone(&new));
        new
    }

    fn row(&mut self, image: usize, kernel: &Kernel<'_>, has_arguments: bool) -> Row {
        let arguments = kernel.arguments.as_ref().filter(|_| has_arguments);
        let arguments = arguments.map(|arguments| {
            let arguments = arguments.iter().map(|argument| Argument {
                name: argument.name.map(|name| self.other(name)),
                kind: argument.kind.map(|kind| self.other(kind)),
                offset: argument.offset,
                size: argument.size,
            });
            arguments.collect()
        });
        Row {
            image,
            is_copy: false,
            name: self.kernel(kernel.name),
            arguments,
            kernel: kernel.without_names(),
        }
    }
}

impl Collected {
    /// Adds those of another file.
    pub(super) fn append(&mut self, mut other: Collected) {
        let before = self.images.len();
        other.rows.iter_mut().for_each(|row| row.image += before);
        self.images.append(&mut other.images);
        self.rows.append(&mut other.rows);
    }

    /// Returns the target of a kernel's image.
    pub(super) fn target(&self, row: &Row) -> &str {
        self.image(row).map_or("", |image| &image.target)
    }

    pub(super) fn image(&self, row: &Row) -> Option<&ListedImage> {
        self.images.get(row.image)
    }

    /// Returns the waves that registers allow at most, of code that a GPU loads.
    pub(super) fn occupancy(&self, row: &Row) -> Option<Occupancy> {
        let image = self.image(row).filter(|image| !image.is_relocatable)?;
        row.kernel.occupancy(&image.target)
    }

    /// Returns the kernels without copies.
    pub(super) fn distinct(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| !row.is_copy)
    }

    /// Marks kernels of relocatable images that linked images for the same GPU have as well: nvcc leaves both in a file.
    fn mark_copies(&mut self) {
        let Collected { images, rows } = self;
        if !images.iter().any(|image| image.is_relocatable) {
            return;
        }
        let key = |row: &Row| {
            let image = images.get(row.image)?;
            Some((image.target.as_str(), Arc::as_ptr(&row.name)))
        };
        let is_linked =
            |row: &Row| images.get(row.image).is_some_and(|image| !image.is_relocatable);
        let linked: HashSet<_> = rows.iter().filter(|row| is_linked(row)).map(key).collect();
        let copies = rows.iter_mut().filter(|row| !is_linked(row) && linked.contains(&key(row)));
        copies.for_each(|row| row.is_copy = true);
    }
}

impl Row {
    /// Returns the name in the source, or as stored.
    pub(super) fn name(&self, mangled: bool) -> &str {
        let Name { stored, demangled } = &*self.name;
        demangled.as_deref().filter(|_| !mangled).unwrap_or(stored)
    }

    pub(super) fn of(&self, measure: Measure) -> Stored {
        measure.of(&self.kernel)
    }

    pub(super) fn hits(&self, rule: &KernelRule) -> Option<bool> {
        rule.hits(&self.kernel)
    }

    pub(super) fn kind(&self) -> KernelKind {
        self.kernel.kind
    }

    /// Returns the number of a measure as tables show it.
    pub(super) fn text(&self, measure: Measure) -> String {
        let is_estimated = measure == Measure::Code && self.kernel.is_code_size_estimated;
        let mark = if is_estimated { "~" } else { "" };
        format!("{mark}{}", super::view::stored(self.of(measure)))
    }

    fn matches(&self, glob: &str) -> bool {
        let Name { stored, demangled } = &*self.name;
        matches(glob, stored) || demangled.as_deref().is_some_and(|name| matches(glob, name))
    }
}

/// Returns whether a name is like a pattern, in which `*` stands for any characters and `?` for one.
fn matches(glob: &str, name: &str) -> bool {
    let (glob, name): (Vec<char>, Vec<char>) = (glob.chars().collect(), name.chars().collect());
    // The places after the last star: what follows it is tried again one character later.
    let (mut at, mut of_name, mut retry) = (0, 0, None);
    while let Some(char) = name.get(of_name) {
        match glob.get(at) {
            Some('*') => {
                retry = Some((at + 1, of_name));
                at += 1;
            }
            Some(one) if *one == '?' || one == char => {
                at += 1;
                of_name += 1;
            }
            _ => match &mut retry {
                Some((after, from)) => {
                    *from += 1;
                    (at, of_name) = (*after, *from);
                }
                None => return false,
            },
        }
    }
    glob.get(at..).unwrap_or_default().iter().all(|char| *char == '*')
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
        collected: Collected::default(),
        names: Names::default(),
        faults: Vec::new(),
        warnings: Vec::new(),
        archive: None,
    };
    let (options, limits) = (wanted.limits.options(), wanted.limits);
    let summary = file.walk(limits, &options, threads, &mut collector);
    let Collector { mut collected, faults, warnings, .. } = collector;
    collected.mark_copies();
    Found { collected, summary, faults, warnings }
}

struct Collector<'a> {
    file: &'a Input,
    wanted: &'a Wanted<'a>,
    collected: Collected,
    names: Names,
    faults: Vec<String>,
    warnings: Vec<String>,
    /// The number of the image that is an archive, and is looked into.
    archive: Option<usize>,
}

impl Collector<'_> {
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
                self.faults.push(error.to_string());
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
        let at = self.collected.images.len();
        for fault in &found.faults {
            self.faults.push(format!("image {index}: {fault}"));
        }
        self.collected.images.push(ListedImage {
            target: target(info),
            index,
            format: found.format,
            version: found.version,
            is_relocatable: found.is_relocatable,
            size: u64::try_from(code.len()).unwrap_or(u64::MAX),
        });
        if found.kernels.is_none() {
            self.warnings.push(match found.format {
                FileFormat::Bitcode => {
                    format!("image {index}: the kernels of LLVM bitcode are not read")
                }
                format => format!("image {index}: {format}: kernels of this format are not listed"),
            });
        }
        for kernel in found.kernels.iter().flatten() {
            let row = self.names.row(at, kernel, self.wanted.has_arguments);
            if self.wanted.glob.is_none_or(|glob| row.matches(glob)) {
                self.collected.rows.push(row);
            }
        }
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        match finding.severity() {
            Severity::Error => self.faults.push(finding.to_string()),
            Severity::Warning => self.warnings.push(finding.to_string()),
        }
        Ok(())
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        self.file.open_thin_member(name)
    }
}

/// Returns the name of an image's target, of PTX that of the virtual architecture.
fn target(image: &ImageInfo) -> String {
    image.marked(image.label_of(&image.loaded_as()))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn globs_match_whole_names() {
        for (glob, name, is_like) in [
            ("add", "add", true),
            ("add", "add2", false),
            ("*", "", true),
            ("*gemm*", "cutlass::gemm<float*>", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*ab", "aab", true),
            ("*a*b*c", "xaybzc", true),
            ("*a*b*c", "xaybz", false),
            ("", "a", false),
        ] {
            assert_eq!(matches(glob, name), is_like, "{glob} {name}");
        }
    }
}
