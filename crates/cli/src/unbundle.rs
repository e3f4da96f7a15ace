//! `offload unbundle`: entries of bundles into files.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use bundle_format::{Choice, EntryId, Request};
use byte_parts::ReadSeek;
use device_select::few;
use drop_ins::keep::{Keeper, Kept};
use fat_object::{ContainerKind, Finding, Image, Severity, Visitor};
use serde::Serialize;
use target_id::near::did_you_mean;

use crate::suggest::bundled;
use tool_inputs::complaint::Complaint;
use tool_inputs::limits::{Limits, walk_open};
use tool_kit::arguments::{split, usage};
use tool_kit::document::{self, Shape};
use tool_kit::failure::Failure;
use tool_kit::format::ListFormat;
use tool_kit::opened::Opened;
use tool_kit::output::{self, Outputs};
use tool_kit::progress::Progress;
use tool_kit::table::Table;
use tool_kit::{Outcome, input, report, style};

/// Extract the best code object for each target ID from any file
///
/// For each ID, writes the best image that its device can load: one with the same ID, else the one with the fewest
/// requirements. FILE is any file in which `offload ls` finds device code. Outputs appear together, after an image
/// was found for every ID.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File to extract from; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Bundle entry ID or target ID, and the file to write; - is standard output
    #[arg(required = true, value_name = "ID=FILE")]
    targets: Vec<OsString>,
    /// Write an empty file if there is no image for an ID
    #[arg(long)]
    allow_missing: bool,
    #[command(flatten)]
    format: ListFormat,
    #[command(flatten)]
    limits: Limits,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let wanted = args.targets.iter().map(Wanted::parse).collect::<Result<Vec<_>, _>>();
    let wanted = wanted.map_err(io::Error::other)?;
    let to_stdout = wanted.iter().filter(|one| one.output.as_os_str() == "-").count();
    if to_stdout > 1 || (to_stdout == 1 && !args.format.is_text()) {
        usage("standard output can be one output only");
    }
    // The same words are a slip even where they name a device, which takes several outputs.
    let outputs: Vec<_> = wanted.iter().map(|one| &*one.output).collect();
    let mut words = BTreeSet::new();
    let repeated = outputs.iter().copied().find(|path| !words.insert(*path));
    if let Some(path) = repeated.or_else(|| output::named_twice(outputs)) {
        usage(&format!("'{}' is the output of two IDs", path.display()));
    }

    let name = input::display(&args.file);
    let progress = Progress::start(&format!("unbundling {name}"));
    let done = unbundle(args, &name, wanted);
    drop(progress);
    match done {
        Ok(rows) if to_stdout == 0 => print(&rows, args.format),
        Ok(_) => Ok(Outcome::Clean),
        Err(failure) => {
            let outcome = failure.report(|complaint| report::error(&complaint))?;
            report::error(&format_args!("{name}: nothing was written"));
            Ok(outcome)
        }
    }
}

fn unbundle(args: &Args, name: &str, wanted: Vec<Wanted>) -> Result<Vec<Row>, Failure> {
    let in_file = |error: &io::Error| format!("{name}: {}", report::reason(error));
    let opened = Opened::new(&args.file, args.limits.max_input);
    let opened = opened.map_err(|error| in_file(&error))?;
    let mut outputs = Outputs::default();
    let keeper = Keeper::new(&mut outputs, opened.permissions().of_part());
    let mut taker = Taker {
        path: &args.file,
        name,
        wanted,
        keeper,
        images: 0,
        seen: Vec::new(),
        known: HashSet::new(),
        errors: Vec::new(),
    };
    walk_open(&opened, (&args.limits, &args.limits.options()), args.limits.threads, &mut taker)
        .map_err(|error| in_file(&error))?;
    let Taker { wanted, mut keeper, images, seen, mut errors, .. } = taker;
    if images == 0 && errors.is_empty() {
        errors.push(format!("{name}: no device images"));
    }
    for one in &wanted {
        let id = one.choice.request().id();
        match one.choice.best() {
            None if args.allow_missing => {
                report::warning(&format_args!(
                    "{name}: no image for {id}: an empty file is written"
                ));
            }
            None if images > 0 => {
                let (has, near) = (few(&seen), one.near(&seen));
                errors.push(format!("{name}: no image for {id}; the file has {has}{near}"));
            }
            Some(_) if one.choice.equals() > 0 => report::warning(&format_args!(
                "{name}: {} images fit {id} equally well, the first is written",
                one.choice.equals() + 1
            )),
            _ => {}
        }
    }
    if !errors.is_empty() {
        return Err(errors.into());
    }
    let kept = wanted
        .iter()
        .map(|one| (one.choice.best().map(|(_, kept)| kept.clone()), &*one.output))
        .collect();
    keeper.write_all(args.limits.threads, &opened.file, kept).map_err(|error| {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Failure::from(in_file(&error)),
            _ => Failure::from(&error),
        }
    })?;
    opened.check().map_err(|error| in_file(&error))?;
    outputs.commit()?;
    Ok(wanted.iter().map(Row::new).collect())
}

/// The request of one argument, and the images found so far.
struct Wanted {
    /// With the ID of the entry, or what is used for it.
    choice: Choice<(String, Kept)>,
    typed: String,
    output: PathBuf,
}

impl Wanted {
    fn parse(argument: &OsString) -> Result<Self, String> {
        let (id, output) = split(argument)?;
        let id = String::from_utf8_lossy(&id);
        let id = bundled(&id, "`offload extract --target` writes it")?;
        let id = EntryId::parse(&id).map_err(|error| error.to_string())?;
        if !id.kind().is_bundler_kind() {
            let near = did_you_mean(EntryId::near(id.as_str()).as_slice());
            return Err(format!("'{id}': unknown offload kind '{}'{near}", id.kind().as_str()));
        }
        if !id.target_id().is_empty() {
            id.target().target_id().map_err(|error| {
                format!("'{id}': {error}{}", did_you_mean(EntryId::near(id.as_str()).as_slice()))
            })?;
        }
        let typed = id.as_str().to_owned();
        Ok(Wanted { choice: Choice::new(Request::new(&id)), typed, output })
    }

    /// Returns a correction: an ID of the file, or one without slips.
    fn near(&self, seen: &[String]) -> String {
        const MOST: usize = 40;
        let near = EntryId::nearest(&self.typed, seen.iter().take(MOST).map(String::as_str));
        if near.is_empty() {
            did_you_mean(EntryId::near(&self.typed).as_slice())
        } else {
            did_you_mean(&near)
        }
    }
}

struct Taker<'a> {
    path: &'a Path,
    name: &'a str,
    wanted: Vec<Wanted>,
    keeper: Keeper<'a>,
    images: usize,
    /// The IDs of the images, or what is used for them, each once, for the message when none fits.
    seen: Vec<String>,
    known: HashSet<String>,
    errors: Vec<String>,
}

impl Visitor for Taker<'_> {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        if image.container() == ContainerKind::File {
            return Ok(());
        }
        self.images += 1;
        // Compressed images are handed out as stored, so they are not code.
        if image.compression().is_some() {
            return Ok(());
        }
        let target = image.target().clone();
        let id = image.id().map_or_else(|| target.to_string(), str::to_owned);
        for Wanted { choice, output, .. } in &mut self.wanted {
            choice.offer(&target, || {
                io::Result::Ok((id.clone(), self.keeper.keep(image, output)?))
            })?;
        }
        if self.known.insert(id.clone()) {
            self.seen.push(id);
        }
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        match finding.severity() {
            Severity::Warning => Complaint::new(self.name, finding).report(),
            Severity::Error => self.errors.push(format!("{}: {finding}", self.name)),
        }
        Ok(())
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        let member = input::open_thin_file(self.path, name)?;
        self.keeper.narrow(&member)?;
        Ok(Box::new(member))
    }
}

#[derive(Debug, Serialize)]
struct Row {
    /// The requested ID, in the standard form.
    id: String,
    /// The ID of the image that was written; null for an empty file.
    found: Option<String>,
    output: String,
    size: u64,
}

impl Row {
    fn new(wanted: &Wanted) -> Self {
        let best = wanted.choice.best();
        Row {
            id: wanted.choice.request().id().to_owned(),
            found: best.map(|(id, _)| id.clone()),
            output: wanted.output.display().to_string(),
            size: best.map_or(0, |(_, kept)| kept.size()),
        }
    }
}

const SHAPE: Shape = Shape::new("unbundle", "files", "id found output size/B");

fn print(rows: &[Row], format: ListFormat) -> io::Result<Outcome> {
    if !format.is_text() {
        return document::print(format.get(), &SHAPE, rows, Outcome::Clean);
    }
    let mut out = style::stdout();
    let mut table = Table::default().texts(["OUTPUT"]).numbers(["SIZE"]).texts(["IMAGE"]);
    for row in rows {
        let found = row.found.as_deref().unwrap_or("missing");
        table.row(&[row.output.clone(), style::size(row.size), found.to_owned()]);
    }
    table.print(&mut out, "", style::terminal_width())?;
    out.flush().map(|()| Outcome::Clean)
}
