//! `offload bundle`: writes a bundle of code objects.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use bundle_format::{EntryId, HIP_ALIGN};
use serde::Serialize;
use target_id::near::{did_you_mean, target_ids};

use crate::compression::Compression;
use crate::suggest::bundled;
use drop_ins::bundler::{self, BundleJob, FileType, Mode, Notes, Reading};
use tool_kit::arguments::{split, usage};
use tool_kit::document::{Document, Shape};
use tool_kit::failure::Failure;
use tool_kit::format::ListFormat;
use tool_kit::opened::MaxInput;
use tool_kit::output::Outputs;
use tool_kit::parallel::Threads;
use tool_kit::progress::Progress;
use tool_kit::style::show;
use tool_kit::table::Table;
use tool_kit::{Outcome, input, report, style};

/// Bundle code objects, as clang-offload-bundler does
///
/// Each entry is a bundle entry ID and the file with the code: kind (host, hip, hipv4, openmp), triple and target
/// ID. A target ID alone is code for HIP: gfx906 is hipv4-amdgcn-amd-amdhsa--gfx906. Entries keep their order.
/// IDs are written in canonical form. Kinds other than HIP need an entry for the
/// host, usually the first; it may be empty (/dev/null).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write the bundle to FILE; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Entries: bundle entry ID or target ID, and file; - is standard input
    #[arg(required = true, value_name = "ID=FILE")]
    entries: Vec<OsString>,
    /// Set the file type: i, ii, cui, hipi, d, ll, bc, s, o, gch or ast
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type)]
    file_type: Option<FileType>,
    /// Align code objects to multiples of N bytes (default: 4096 for HIP, else 1)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    align: Option<u64>,
    /// Compress the bundle
    #[arg(long)]
    compress: bool,
    #[command(flatten)]
    how: Compression,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    max_input: MaxInput,
    #[command(flatten)]
    format: ListFormat,
}

const SHAPE: Shape = Shape::new("bundle", "entries", "id file offset size/B");

/// The types of files that bundles can have.
pub(crate) const TYPES: [&str; 11] =
    ["i", "ii", "cui", "hipi", "d", "ll", "bc", "s", "o", "gch", "ast"];

fn parse_type(name: &str) -> Result<FileType, String> {
    FileType::from_name(name)
        .filter(|file_type| *file_type != FileType::Archive)
        .ok_or_else(|| "expected i, ii, cui, hipi, d, ll, bc, s, o, gch or ast".to_owned())
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let to_stdout = args.output.as_os_str() == "-";
    if (args.how.is_given() || args.threads.given().is_some()) && !args.compress {
        usage("--method, --level, --format-version and --threads need --compress");
    }
    if to_stdout && !args.format.is_text() {
        usage("--format and --output=- would both write to standard output");
    }
    match bundle(args) {
        Ok(report) if to_stdout => {
            debug_assert_eq!(report.entries.len(), args.entries.len());
            Ok(Outcome::Clean)
        }
        Ok(report) => report.print(args.format),
        Err(failure) => failure.report(|complaint| report::error(&complaint)),
    }
}

fn bundle(args: &Args) -> Result<Report, Failure> {
    let entries = args.entries.iter().map(split).collect::<Result<Vec<_>, _>>()?;
    let (mut typed, files): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
    for id in &mut typed {
        if let Ok(text) = str::from_utf8(id) {
            *id = bundled(text, "`offload fatbin` packs it")?.into_bytes();
        }
    }
    let ids = bundler::targets(&typed, Mode::Bundle, Reading::TargetId)
        .map_err(|fault| format!("{fault}{}", did_you_mean(&meant(&typed))))?;
    for id in &ids {
        let near = EntryId::near(id.as_str());
        let doubts = bundler::doubts(std::slice::from_ref(id));
        for doubt in &doubts {
            report::warning(&format_args!("{doubt}{}", did_you_mean(near.as_slice())));
        }
        if let (Some(near), true) = (near, doubts.is_empty()) {
            report::warning(&format_args!("'{id}' is taken as it is; did you mean {near}?"));
        }
    }
    let file_type = match args.file_type {
        Some(file_type) => file_type,
        None => FileType::of_files(&files)?,
    };
    let is_hip = |id: &EntryId<'_>| matches!(id.kind().as_str(), "hip" | "hipv4");
    let align = if ids.iter().any(is_hip) { HIP_ALIGN } else { 1 };
    let job = BundleJob {
        file_type,
        entries: ids.iter().map(EntryId::canonical).zip(files).collect(),
        align: args.align.unwrap_or(align),
        max_input: args.max_input,
        compression: args.compress.then(|| args.how.options(args.threads)),
        output: args.output.clone(),
        dry_run: false,
    };
    let mut outputs = Outputs::default();
    let mut notes = Notes::default();
    let progress = Progress::start(&format!("bundling {}", input::display(&args.output)));
    let done = bundler::bundle(&job, &mut outputs, &mut notes);
    drop(progress);
    notes.warnings.iter().for_each(|warning| report::warning(warning));
    done?;
    outputs.commit()?;
    Ok(Report::new(&job, &notes))
}

/// Returns a correction of the first mistyped ID.
fn meant(typed: &[Vec<u8>]) -> Vec<String> {
    let near = |text: &Vec<u8>| {
        let text = String::from_utf8_lossy(text);
        let is_whole = text.contains('-');
        if is_whole { EntryId::near(&text) } else { target_ids(&text).into_iter().next() }
    };
    typed.iter().filter_map(near).take(1).collect()
}

#[derive(Debug)]
struct Report {
    output: String,
    /// `binary`, `text` or `object`.
    form: &'static str,
    compressed: bool,
    size: u64,
    entries: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    id: String,
    file: String,
    /// In the bundle before compression; null for the sections of an object.
    offset: Option<u64>,
    size: u64,
}

impl Report {
    fn new(job: &BundleJob, notes: &Notes) -> Self {
        let is_object = notes.places.iter().any(|place| place.offset.is_none());
        let form = match job.file_type {
            FileType::Text(_) => "text",
            _ if is_object => "object",
            _ => "binary",
        };
        let rows = job.entries.iter().zip(&notes.places).map(|((id, file), place)| Row {
            id: id.clone(),
            file: input::display(file),
            offset: place.offset,
            size: place.size,
        });
        Report {
            output: job.output.display().to_string(),
            form,
            compressed: job.compression.is_some() && !is_object,
            size: std::fs::metadata(&job.output).map_or(0, |metadata| metadata.len()),
            entries: rows.collect(),
        }
    }

    fn print(&self, format: ListFormat) -> io::Result<Outcome> {
        let mut document = Document::start(format.get(), &SHAPE)?;
        self.entries.iter().try_for_each(|entry| document.row(entry))?;
        document.field("output", &self.output)?;
        document.field("form", &self.form)?;
        document.field("compressed", &self.compressed)?;
        document.field("size", &self.size)?;
        if !document.is_text() {
            return document.end(Outcome::Clean);
        }
        let mut out = style::stdout();
        let table = Table::default().texts(["ID"]).numbers(["OFFSET", "SIZE"]);
        let mut table = table.texts(["FILE"]).optional(1);
        for row in &self.entries {
            let offset = row.offset.map(|offset| offset.to_string()).unwrap_or_default();
            table.row(&[row.id.clone(), offset, style::size(row.size), row.file.clone()]);
        }
        table.print(&mut out, "", style::terminal_width())?;
        let n = self.entries.len();
        let entries = if n == 1 { "entry" } else { "entries" };
        let form = match (self.form, self.compressed) {
            ("object", _) => "sections of the host object",
            ("text", false) => "text bundle",
            ("text", true) => "compressed text bundle",
            (_, false) => "binary bundle",
            (_, true) => "compressed bundle",
        };
        let (output, size) = (&self.output, style::size(self.size));
        show!(out, "{output}  {size}  {n} {entries}, {form}")?;
        out.flush().map(|()| Outcome::Clean)
    }
}
