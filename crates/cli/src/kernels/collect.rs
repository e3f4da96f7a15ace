//! The kernels of a file, collected while it is walked.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use byte_parts::ReadSeek;
use device_code::{Argument, Kernel, KernelKind, KernelRule, Measure, Stored, Version, demangled};
use fat_object::{FileFormat, Finding, Image, ImageInfo, Severity, Summary, Visitor};
use serde_json::{Map, Value, json};

use crate::input;
use crate::naming::{group, marked};
use crate::parallel::Threads;
use crate::select::Selection;

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
    /// Bytes of the image, not compressed.
    pub(super) size: u64,
}

/// A kernel.
pub(super) struct Row {
    /// Position of its image.
    pub(super) image: usize,
    name: String,
    demangled: Option<String>,
    pub(super) kind: KernelKind,
    is_estimated: bool,
    kernel: Kernel<'static>,
    /// Text of the names of its arguments, with kinds, places and sizes.
    arguments: Option<Vec<Value>>,
}

impl Collected {
    /// Returns the target of a kernel's image.
    pub(super) fn target(&self, row: &Row) -> &str {
        self.images.get(row.image).map_or("", |image| &image.target)
    }

    pub(super) fn image(&self, row: &Row) -> Option<&ListedImage> {
        self.images.get(row.image)
    }
}

impl Row {
    fn new(image: usize, kernel: &Kernel<'_>, has_arguments: bool) -> Self {
        let name = String::from_utf8_lossy(kernel.name).into_owned();
        let source = demangled(kernel.name);
        let demangled = (source != name).then(|| source.into_owned());
        let arguments = kernel.arguments.as_ref().filter(|_| has_arguments);
        Row {
            image,
            name,
            demangled,
            kind: kernel.kind,
            is_estimated: kernel.is_code_size_estimated,
            arguments: arguments.map(|arguments| arguments.iter().map(argument).collect()),
            kernel: kernel.without_names(),
        }
    }

    /// Returns the name in the source, or as stored.
    pub(super) fn name(&self, mangled: bool) -> &str {
        self.demangled.as_deref().filter(|_| !mangled).unwrap_or(&self.name)
    }

    pub(super) fn of(&self, measure: Measure) -> Stored {
        measure.of(&self.kernel)
    }

    pub(super) fn hits(&self, rule: &KernelRule) -> Option<bool> {
        rule.hits(&self.kernel)
    }

    pub(super) fn required_group_size(&self) -> Option<[u32; 3]> {
        self.kernel.required_group_size
    }

    /// Returns the number of a measure as tables show it.
    pub(super) fn text(&self, measure: Measure) -> String {
        let mark = if measure == Measure::Code && self.is_estimated { "~" } else { "" };
        match self.of(measure) {
            Stored::Absent => "-".to_owned(),
            Stored::Unknown(0) => "?".to_owned(),
            Stored::Unknown(least) => format!("{least}+?"),
            Stored::Known(number) => format!("{mark}{number}"),
        }
    }

    fn matches(&self, glob: &str) -> bool {
        matches(glob, &self.name)
            || self.demangled.as_deref().is_some_and(|name| matches(glob, name))
    }

    /// Returns the record of the kernel: all that is stored, `null` for what is not.
    pub(super) fn json(&self, file: &str, image: Option<&ListedImage>) -> Value {
        let mut record = Map::new();
        record.insert("file".to_owned(), json!(file));
        if let Some(image) = image {
            record.insert("image".to_owned(), json!(image.index));
            record.insert("target".to_owned(), json!(image.target));
            record.insert("format".to_owned(), json!(image.format.as_str()));
            record.insert("version".to_owned(), json!(image.version.map(version)));
        }
        record.insert("name".to_owned(), json!(self.name));
        record.insert("demangled".to_owned(), json!(self.name(false)));
        let kind = match self.kind {
            KernelKind::Init => "init",
            KernelKind::Fini => "fini",
            KernelKind::Shader => "shader",
            _ => "kernel",
        };
        record.insert("kind".to_owned(), json!(kind));
        for measure in Measure::all() {
            record.insert(measure.name().to_owned(), json!(self.of(measure).known()));
        }
        record.insert("code_is_estimated".to_owned(), json!(self.is_estimated));
        let is_unknown = matches!(self.kernel.private_memory, Stored::Unknown(_));
        record.insert("private_is_unknown".to_owned(), json!(is_unknown));
        let kernel = &self.kernel;
        record.insert("group_reserved".to_owned(), json!(kernel.group_memory_reserved));
        record.insert("wave_size".to_owned(), json!(kernel.wave_size));
        record.insert("required_workgroup".to_owned(), json!(kernel.required_group_size));
        record.insert("max_registers".to_owned(), json!(kernel.max_registers));
        let banks = kernel.constants.iter().map(|(bank, size)| (bank.to_string(), json!(size)));
        record.insert("constants".to_owned(), Value::Object(banks.collect()));
        record.insert("argument_list".to_owned(), json!(self.arguments));
        Value::Object(record)
    }
}

/// Returns the version of a format as text.
fn version(version: Version) -> String {
    match version {
        Version::CodeObject(version) | Version::CubinAbi(version) => version.to_string(),
        Version::Ptx(major, minor) => format!("{major}.{minor}"),
        Version::SpirV(major, minor) => format!("{major}.{minor}"),
        _ => String::new(),
    }
}

fn argument(argument: &Argument<'_>) -> Value {
    let text =
        |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    json!({
        "name": text(argument.name),
        "kind": text(argument.kind),
        "offset": argument.offset,
        "size": argument.size,
    })
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
    pub(super) limits: &'a input::Limits,
}

pub(super) fn collect(wanted: &Wanted<'_>, path: &Path, threads: Threads) -> Found {
    let mut collector = Collector {
        path,
        wanted,
        collected: Collected::default(),
        faults: Vec::new(),
        warnings: Vec::new(),
    };
    let (options, max) = (wanted.limits.options(), wanted.limits.max_input);
    let summary = input::walk(path, max, &options, threads, &mut collector);
    let Collector { collected, faults, warnings, .. } = collector;
    Found { collected, summary, faults, warnings }
}

struct Collector<'a> {
    path: &'a Path,
    wanted: &'a Wanted<'a>,
    collected: Collected,
    faults: Vec<String>,
    warnings: Vec<String>,
}

impl Visitor for Collector<'_> {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        if image.format().is_container() || !self.wanted.selection.includes(image) {
            return Ok(());
        }
        let code = match image.code() {
            Ok(Some(code)) => Cow::Owned(code),
            Ok(None) => {
                let mut code = Vec::new();
                image.pieces(&mut |piece| {
                    code.extend_from_slice(piece);
                    Ok(())
                })?;
                Cow::Owned(code)
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.faults.push(error.to_string());
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let Some(found) = device_code::kernels(&code) else { return Ok(()) };
        let at = self.collected.images.len();
        for fault in &found.faults {
            self.faults.push(format!("image {}: {fault}", image.index()));
        }
        self.collected.images.push(ListedImage {
            target: target(image),
            index: image.index(),
            format: found.format,
            version: found.version,
            size: u64::try_from(code.len()).unwrap_or(u64::MAX),
        });
        if found.kernels.is_none() {
            let (index, format) = (image.index(), found.format);
            self.warnings.push(format!("image {index}: the kernels of {format} are not read"));
        }
        for kernel in found.kernels.iter().flatten() {
            let row = Row::new(at, kernel, self.wanted.has_arguments);
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
        input::open_thin_member(self.path, name)
    }
}

/// Returns the name of an image's target, of PTX that of the virtual architecture.
fn target(image: &ImageInfo) -> String {
    marked(&group(&image.loaded_as(), image.id()), image.disagreement())
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
