//! Extraction: which images of a file, under which names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use fat_object::{FileFormat, Severity};
use hda_archive::Member;
use offload_binary::OffloadKind;
use offload_binary::llvm::Release;

use super::candidates::{Candidate, Collector};
use super::names;
use super::options::{ImageSpec, Options};
use tool_kit::opened::{MaxInput, Opened};
use tool_kit::output::{Name, Outputs};
use tool_kit::report::{reason, reason_first};
use tool_kit::stamp::Stamp;
use tool_kit::style::show;
use tool_kit::{input, standard, style};

/// The output of an extraction. Nothing was written if there are errors.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) warnings: Vec<String>,
    pub(super) errors: Vec<String>,
}

/// Extracts the images that the options select. Without an error all files appear, else none.
pub(super) fn extract(options: &Options, report: &mut Report) -> io::Result<()> {
    let path = input::path(&options.input);
    let name = input::display(&path);
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("'{name}': {}", reason(&error)));
    let opened = Opened::new(&path, MaxInput::default()).map_err(named)?;
    let mut found = Collector::new(&path, opened.permissions().of_part(), options.release);
    let mut file = opened.file;
    let stamp = Stamp::of(&file).map_err(named)?;
    // Offload binaries in compressed bundles do not count: no more of those is read than their tables.
    let walked = fat_object::Options::default().with_tables_only(true).with_scan(false);
    fat_object::walk(&mut file, &walked, &mut found).map_err(named)?;

    let mut plan = Plan::default();
    let complete = plan.make(options, &found.candidates, report);
    for fault in &found.faults {
        let message = format!("'{name}': {}", fault.message);
        match fault.severity {
            _ if fault.parent.is_some_and(|parent| !plan.opened.contains(&parent)) => {}
            Severity::Warning => report.warnings.push(message),
            Severity::Error => report.errors.push(match fault.llvm_words {
                Some(words) => format!("{words}: {message}"),
                None => message,
            }),
        }
    }
    if !report.errors.is_empty() || !complete {
        return Ok(());
    }
    if found.candidates.is_empty() {
        report.warnings.push(format!("'{name}': no packaged images"));
    }
    let outputs = plan.write(&found, &mut file).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => named(error),
        _ => reason_first(error),
    })?;
    stamp.check(&file).map_err(named)?;
    outputs.commit().map_err(reason_first)?;
    plan.tell(options.release)
}

/// The files to write, decided before anything is written.
#[derive(Debug, Default)]
struct Plan {
    files: BTreeMap<PathBuf, Output>,
    /// Contents for standard output, in order.
    stdout: Vec<Content>,
    /// Names that were made up, in order.
    generated: Vec<String>,
    /// Images that are offload binaries, whose contents are extracted.
    opened: BTreeSet<usize>,
    /// The candidates in each of them.
    inside: BTreeMap<usize, Vec<usize>>,
}

#[derive(Debug)]
struct Output {
    content: Content,
    generated: bool,
}

/// The contents of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    /// The candidate with this number.
    Image(usize),
    /// An archive of these candidates.
    Archive(Vec<usize>),
}

impl Plan {
    /// Applies each `--image` in turn; false after an error.
    fn make(&mut self, options: &Options, candidates: &[Candidate], report: &mut Report) -> bool {
        let everything = [None];
        let filters: Vec<Option<&ImageSpec>> = options.images.iter().map(Some).collect();
        let filters = match filters.is_empty() {
            // LLVM 22 extracts nothing without a selection.
            true if options.release == Release::Llvm22 => return true,
            true => &everything[..],
            false => &filters,
        };
        for (index, candidate) in candidates.iter().enumerate() {
            if let Some(parent) = candidate.parent {
                self.inside.entry(parent).or_default().push(index);
            }
        }
        for filter in filters {
            if let Some(spec) = filter
                && let Err(kind) = spec.kind()
            {
                let text = spec.text();
                report.warnings.push(format!(
                    "'--image={text}': unknown offload kind '{kind}' is taken for none"
                ));
            }
            let matching: Vec<usize> = candidates
                .iter()
                .enumerate()
                .filter(|(_, candidate)| candidate.parent.is_none())
                .filter(|(_, candidate)| {
                    filter.is_none_or(|spec| matches(options.release, spec, candidate))
                })
                .map(|(index, _)| index)
                .collect();
            if let Err(error) = self.add(options, candidates, *filter, matching, report) {
                report.errors.push(error);
                return false;
            }
        }
        true
    }

    /// Adds the images that one `--image` selects.
    fn add(
        &mut self,
        options: &Options,
        candidates: &[Candidate],
        filter: Option<&ImageSpec>,
        matching: Vec<usize>,
        report: &mut Report,
    ) -> Result<(), String> {
        let Some(&last) = matching.last() else {
            if let Some(spec) = filter.filter(|_| !candidates.is_empty()) {
                report.warnings.push(format!("'--image={}' matches no image", spec.text()));
            }
            return Ok(());
        };
        let several = matching.len() > 1;
        match (filter.and_then(|spec| spec.get("file")), options.archive) {
            (Some(file), true) => self.explicit(file, Content::Archive(matching), report),
            (None, true) => Err("Image must have a 'file' argument.".to_owned()),
            (Some(file), false) => {
                if several {
                    let file = String::from_utf8_lossy(file);
                    report
                        .warnings
                        .push(format!("Multiple inputs match to a single file, '{file}'"));
                }
                self.explicit(file, Content::Image(last), report)
            }
            (None, false) => {
                let mut index = 0;
                matching
                    .into_iter()
                    .try_for_each(|image| self.generate(options, candidates, image, &mut index))
            }
        }
    }

    /// Adds a file whose name is on the command line. A later one replaces an earlier one.
    fn explicit(
        &mut self,
        file: &[u8],
        content: Content,
        report: &mut Report,
    ) -> Result<(), String> {
        let path = input::path(file);
        let shown = path.display().to_string();
        if path.as_os_str().is_empty() {
            return Err("No such file or directory: 'file' has no value".to_owned());
        }
        if shown == "-" {
            self.stdout.push(content);
            return Ok(());
        }
        let output = Output { content: content.clone(), generated: false };
        match self.files.insert(path, output) {
            Some(Output { generated: true, .. }) => Err(clash(&shown)),
            Some(before) if before.content != content => {
                report
                    .warnings
                    .push(format!("several images are for '{shown}', the last is written"));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Adds files with generated names: the image, or the images in it when it is an offload binary.
    fn generate(
        &mut self,
        options: &Options,
        candidates: &[Candidate],
        image: usize,
        index: &mut usize,
    ) -> Result<(), String> {
        let Some(candidate) = candidates.get(image) else {
            return Ok(());
        };
        if candidate.format == FileFormat::OffloadBinary && options.release != Release::Llvm22 {
            self.opened.insert(image);
            // Images found for an earlier filter are written for this one, too.
            let Some(inside) = self.inside.get(&image).cloned() else { return Ok(()) };
            return inside
                .into_iter()
                .try_for_each(|inner| self.generate(options, candidates, inner, index));
        }
        let name = names::generated(options.release, &options.input, &candidate.entry, *index);
        *index += 1;
        let content = Content::Image(image);
        let path = PathBuf::from(&name);
        match self.files.get(&path) {
            Some(before) if before.content == content && before.generated => return Ok(()),
            Some(_) => return Err(clash(&name)),
            None => {}
        }
        self.files.insert(path, Output { content, generated: true });
        self.generated.push(name);
        Ok(())
    }

    fn write(&self, found: &Collector<'_>, input: &mut File) -> io::Result<Outputs> {
        let mut outputs = Outputs::default();
        let here = outputs.make_directory(Path::new(""))?;
        for (path, output) in &self.files {
            let name = if output.generated { here.file(path) } else { Name::Typed(path.clone()) };
            let write = |file: &mut File| write_content(&output.content, found, input, file);
            outputs.write(&name, found.new_permissions.into(), write)?;
        }
        if self.stdout.is_empty() {
            return Ok(outputs);
        }
        let mut out = BufWriter::new(standard::output()?);
        for content in &self.stdout {
            write_content(content, found, input, &mut out)?;
        }
        out.flush()?;
        Ok(outputs)
    }

    /// Says which names were made up.
    fn tell(&self, release: Release) -> io::Result<()> {
        let mut out = style::stdout();
        for name in &self.generated {
            if release != Release::Llvm22 {
                show!(out, "Extracted: {name}")?;
            }
        }
        out.flush()
    }
}

fn write_content<W: Write>(
    content: &Content,
    found: &Collector<'_>,
    input: &mut File,
    out: &mut W,
) -> io::Result<()> {
    match content {
        Content::Image(index) => match found.candidates.get(*index) {
            Some(candidate) => found.copy(candidate, input, out),
            None => Ok(()),
        },
        Content::Archive(indexes) => {
            let mut members = Vec::new();
            for candidate in indexes.iter().filter_map(|index| found.candidates.get(*index)) {
                let mut data = Vec::new();
                found.copy(candidate, input, &mut data)?;
                members.push(Member::new(&*candidate.source, data));
            }
            hda_archive::write_archive(out, members)
        }
    }
}

fn clash(name: &str) -> String {
    format!("different images would be written to '{name}': give them names with 'file'")
}

/// Returns whether `--image` selects an image: all keys but `file` must agree, and a missing one counts as empty.
fn matches(release: Release, spec: &ImageSpec, candidate: &Candidate) -> bool {
    spec.pairs().all(|(key, value)| match key {
        b"file" => true,
        b"kind" => {
            let kind = spec.kind().unwrap_or(OffloadKind::NONE);
            candidate.entry.offload_kind().current() == kind
        }
        b"member" if release != Release::Llvm22 => {
            let name =
                candidate.source.rsplit_once('/').map_or(&*candidate.source, |(_, name)| name);
            name.as_bytes() == value
        }
        // An empty value asks for images without the key, too.
        key => candidate.entry.get(key).unwrap_or_default() == value,
    })
}
