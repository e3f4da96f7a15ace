//! `offload extract`: device images into files of their own.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use byte_parts::ReadSeek;
use device_select::{ImageFilter, PassedOver, few};
use fat_object::{FileFormat, Finding, Image, Location, Severity, Visitor};
use serde::Serialize;

use crate::select::Selection;
use tool_inputs::complaint::Complaint;
use tool_inputs::inputs::{Input, Inputs};
use tool_inputs::limits::Limits;
use tool_kit::arguments::usage;
use tool_kit::document::{self, Shape};
use tool_kit::format::ListFormat;
use tool_kit::looked::Seen;
use tool_kit::output::{self, Name, OutputDirectory, Outputs, plain_name, safe_name};
use tool_kit::parallel::Threads;
use tool_kit::permissions::NewPermissions;
use tool_kit::store::Keep;
use tool_kit::style::show;
use tool_kit::{Outcome, input, report, scratch, standard, style};

/// Write device images to files with safe generated names
///
/// Writes every image that --target, --id and --index select, and prints one line for each. All files appear
/// together after the input was read to its end without error; a malformed input writes nothing. Empty images and
/// host placeholders of the bundler are written only if --index selects them. A directory or a package (wheel, zip,
/// tar, deb, conda, RPM) means the files in it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files to extract from, directories or packages; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    selection: Selection,
    /// Extract only the image with this number in `offload ls`. Repeatable
    #[arg(long, value_name = "N")]
    index: Vec<usize>,
    /// Write to this directory, created if it does not exist
    #[arg(short, long, value_name = "DIR", default_value = ".", conflicts_with = "stdout")]
    output: PathBuf,
    /// Write the only selected image to standard output
    #[arg(long)]
    stdout: bool,
    /// Write entries of NVIDIA fatbinaries and SYCL images without decompression
    #[arg(long)]
    as_stored: bool,
    #[command(flatten)]
    format: ListFormat,
    #[command(flatten)]
    limits: Limits,
}

const SHAPE: Shape = Shape::new("extract", "images", "file index target id size/B output");

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    if args.stdout && !args.format.is_text() {
        usage("--stdout: the image would be printed among the document");
    }
    let filter = args.selection.filter(args.format.is_text());
    let mut inputs = Inputs::find(&args.files);
    let is_one = inputs.open_only(args.limits.max_input);
    let shared = Mutex::new(Extracted::new(args)?);
    let extract = |file: &Input, threads: Threads| {
        let mut extracted = shared.lock().unwrap_or_else(PoisonError::into_inner);
        extract_from((args, &filter), file, threads, &mut extracted)
    };
    // The names of files depend on the order of their writing.
    let mut limits = args.limits.clone();
    if !is_one {
        limits.threads = Threads::one();
    }
    let looked = inputs.look((&limits, Keep::File), "extracting", extract, |file, result| {
        let name = file.name();
        Ok(match result {
            Ok(0) if file.is_named() && !is_one && file.split_host().is_none() => {
                report::error(&format_args!("{name}: no image matches"));
                Seen::Faults
            }
            Ok(0) => Seen::Nothing,
            Ok(_) => Seen::Well,
            Err(faults) => {
                faults.iter().for_each(|fault| report::error(&format_args!("{name}: {fault}")));
                Seen::Faults
            }
        })
    })?;
    let is_faulty = looked.is_faulty();
    let Extracted { sink, written, seen, passed, .. } =
        shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    let what = inputs.names();
    if is_faulty {
        return Err(io::Error::other(format!("{what}: nothing was written")));
    }
    if written.is_empty() {
        let advice = filter.advice(&passed);
        let why = if seen.is_empty() {
            "no device images".to_owned()
        } else {
            format!("no image matches; it has {}", few(&seen))
        };
        return Err(io::Error::other(format!("{what}: {why}{advice}")));
    }
    match sink {
        Sink::Files(outputs, _) => {
            outputs.commit()?;
            if args.format.is_text() {
                let mut out = style::stdout();
                for Written { output, size, what, .. } in &written {
                    show!(out, "{output}  {}  {what}", style::size(*size))?;
                }
                out.flush()?;
            }
            return document::print(args.format.get(), &SHAPE, &written, Outcome::Clean);
        }
        Sink::Stdout(mut spool) if written.len() == 1 => {
            spool.rewind()?;
            io::copy(&mut spool, &mut standard::output()?)?;
        }
        Sink::Stdout(_) => {
            let n = written.len();
            return Err(io::Error::other(format!(
                "{what}: --stdout: expected one image, found {n}; choose with --index N"
            )));
        }
    }
    Ok(Outcome::Clean)
}

/// Writes the images of a file, which do not appear yet. Returns their number, or what is wrong.
fn extract_from(
    (args, filter): (&Args, &ImageFilter),
    file: &Input,
    threads: Threads,
    extracted: &mut Extracted,
) -> Result<usize, Vec<String>> {
    let reason = |error: &io::Error| vec![report::reason(error)];
    let opened = file.open(args.limits.max_input).map_err(|error| reason(&error))?;
    let new_permissions = opened.permissions().of_part();
    let input = file.as_member().unwrap_or(&opened.file);
    let before = extracted.written.len();
    let stem = extracted.stem(file.path());
    let mut extractor = Extractor {
        args,
        filter,
        file,
        input,
        stem,
        new_permissions,
        parts: Vec::new(),
        errors: 0,
        extracted,
    };
    let walked = file.walk(&args.limits, &args.limits.options(), threads, &mut extractor);
    let Extractor { parts, errors, new_permissions, .. } = extractor;
    walked.map_err(|error| reason(&error))?;
    if errors > 0 {
        return Err(Vec::new());
    }
    if let Sink::Files(outputs, _) = &mut extracted.sink {
        let copied = outputs.write_parts(threads, input, new_permissions, &parts);
        copied.and_then(|()| opened.check()).map_err(|error| reason(&error))?;
    }
    Ok(extracted.written.len() - before)
}

/// The images that are extracted.
struct Extracted {
    sink: Sink,
    written: Vec<Written>,
    /// Names of the images that were not chosen, for the message when none was.
    seen: Vec<String>,
    passed: PassedOver,
    /// The number of files with each name without extension.
    stems: BTreeMap<String, usize>,
}

impl Extracted {
    fn new(args: &Args) -> io::Result<Self> {
        let sink = if args.stdout {
            Sink::Stdout(scratch::file("images for standard output")?)
        } else {
            let mut outputs = Outputs::default();
            let directory = outputs.make_directory(&args.output)?;
            Sink::Files(outputs, directory)
        };
        let (passed, stems) = (PassedOver::default(), BTreeMap::new());
        Ok(Extracted { sink, written: Vec::new(), seen: Vec::new(), passed, stems })
    }

    /// Returns what the names of the images of a file start with: its name, with a number if others have the same.
    fn stem(&mut self, path: &Path) -> String {
        let stem = path.file_stem().filter(|_| path.as_os_str() != "-");
        let stem = safe_name(&stem.map_or("stdin".into(), |stem| stem.to_string_lossy()));
        let count = self.stems.entry(stem.clone()).or_default();
        *count += 1;
        match *count {
            1 => stem,
            n => format!("{stem}-{n}"),
        }
    }
}

/// The destination of images until the whole input was read.
enum Sink {
    Files(Outputs, OutputDirectory),
    Stdout(File),
}

/// An image that was written; the fields of one JSON object, in this order.
#[derive(Serialize)]
struct Written {
    file: String,
    index: usize,
    kind: Option<String>,
    triple: Option<String>,
    target: Option<String>,
    id: Option<String>,
    image_format: FileFormat,
    size: u64,
    output: String,
    /// The ID or target in words.
    #[serde(skip)]
    what: String,
}

struct Extractor<'a> {
    args: &'a Args,
    filter: &'a ImageFilter,
    file: &'a Input,
    input: &'a File,
    stem: String,
    /// Permissions of new files.
    new_permissions: NewPermissions,
    /// Outputs that are parts of the input.
    parts: Vec<(Name, Range<u64>)>,
    errors: usize,
    extracted: &'a mut Extracted,
}

impl Extractor<'_> {
    fn chooses(&self, image: &Image<'_, '_>) -> bool {
        if !self.args.index.is_empty() {
            return self.args.index.contains(&image.index()) && self.filter.includes(image);
        }
        let substance = !matches!(image.format(), FileFormat::Empty | FileFormat::HostPlaceholder);
        substance && self.filter.includes(image)
    }
}

impl Visitor for Extractor<'_> {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let what = describe(image);
        if !self.chooses(image) {
            self.extracted.seen.push(format!("#{} {what}", image.index()));
            self.extracted.passed.add(image);
            return Ok(());
        }
        let Extracted { sink, written, .. } = &mut *self.extracted;
        let is_only_counted = matches!(sink, Sink::Stdout(_)) && !written.is_empty();
        let code = if self.args.as_stored || is_only_counted { None } else { image.code()? };
        if let Some(compression) = image.compression()
            && !compression.is_known()
            && !self.args.as_stored
        {
            report::warning(&format_args!(
                "{}: image {} is compressed ({}) and is written as stored",
                self.file.name(),
                image.index(),
                compression.method()
            ));
        }
        let name = file_name(&self.stem, image, code.is_some());
        let size = match sink {
            Sink::Files(outputs, directory) => {
                let output = directory.file(&name);
                match (&code, image.location()) {
                    (None, Location::File(start)) => {
                        let size = stored_size(image);
                        self.parts.push((output, start..start + size));
                        size
                    }
                    _ => outputs.write(&output, self.new_permissions.into(), |out| {
                        copy(image, code, self.input, out)
                    })?,
                }
            }
            // One image at most reaches standard output; the others are only counted.
            Sink::Stdout(spool) if written.is_empty() => copy(image, code, self.input, spool)?,
            Sink::Stdout(_) => 0,
        };
        let target = image.target();
        written.push(Written {
            file: self.file.name().to_owned(),
            index: image.index(),
            kind: target.kind().map(ToString::to_string),
            triple: target.triple_text().map(str::to_owned),
            target: Some(target.id().to_owned()).filter(|id| !id.is_empty()),
            id: image.id().map(str::to_owned),
            image_format: image.format(),
            size,
            output: input::display(&self.args.output.join(&name)),
            what,
        });
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        Complaint::new(self.file.name(), finding).report();
        self.errors += usize::from(finding.severity() == Severity::Error);
        Ok(())
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        let member = self.file.open_thin_member(name)?;
        self.new_permissions = self.new_permissions.and_of(&member)?;
        Ok(Box::new(member))
    }
}

/// Returns the bytes of the image in its container.
fn stored_size(image: &Image<'_, '_>) -> u64 {
    image.compression().map_or(image.size(), |compression| compression.stored_size())
}

/// Writes the code of an image, or the image as it is stored. Bytes that lie in the input are copied from file to file.
fn copy(
    image: &mut Image<'_, '_>,
    code: Option<Vec<u8>>,
    input: &File,
    out: &mut File,
) -> io::Result<u64> {
    if let Some(code) = code {
        out.write_all(&code)?;
        return Ok(code.len() as u64);
    }
    let size = stored_size(image);
    match image.location() {
        Location::File(start) => output::copy_part(input, start..start + size, out),
        _ => {
            image.pieces(&mut |piece| out.write_all(piece))?;
            Ok(size)
        }
    }
}

/// Returns the bundle entry ID, or the target elsewhere, and the target that the image really holds if that differs.
fn describe(image: &Image<'_, '_>) -> String {
    let name = image.id().map_or_else(|| identity(image), str::to_owned);
    image.marked(&name)
}

/// Returns `kind-triple-target`, without the parts that are not known.
fn identity(image: &Image<'_, '_>) -> String {
    let target = image.target();
    let kind = target.kind().map(ToString::to_string);
    let parts =
        [kind.as_deref(), target.triple_text(), Some(target.id()).filter(|id| !id.is_empty())];
    let known: Vec<_> = parts.into_iter().flatten().collect();
    if known.is_empty() { "image".to_owned() } else { known.join("-") }
}

fn file_name(stem: &str, image: &Image<'_, '_>, is_code: bool) -> String {
    let name = format!("{stem}.{}.{}", image.index(), safe_name(&identity(image)));
    let extension = match image.compression() {
        Some(compression) if !is_code => {
            format!("{}.{}", image.format().extension(), compression.method())
        }
        _ => image.format().extension().to_owned(),
    };
    plain_name(&name, &extension)
}
