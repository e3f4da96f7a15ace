//! What `offload compress` and `offload decompress` share: files, outputs, reports.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use fat_object::{ReadSeek, RewriteError, Rewritten, RewrittenBundle};
use serde::Serialize;

use crate::output::Outputs;
use crate::progress::Progress;
use crate::table::{Align, Table};
use crate::{Outcome, input, report, style};

/// The files to rewrite, and where to.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Files {
    /// Files of bundles; - is standard input. Several only with --in-place
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The file to write; - is standard output
    #[arg(short, long, value_name = "OUT", required_unless_present = "in_place")]
    output: Option<PathBuf>,
    /// Replace the files themselves
    #[arg(long, conflicts_with = "output")]
    in_place: bool,
    /// Print one JSON array: what was done to which bundle of each file
    #[arg(long)]
    json: bool,
}

impl Files {
    /// What clap cannot check.
    fn fault(&self) -> Option<&'static str> {
        let is_dash = |path: &PathBuf| path.as_os_str() == "-";
        if self.output.is_some() && self.files.len() > 1 {
            return Some("--output takes one FILE; several are rewritten with --in-place");
        }
        if self.in_place && self.files.iter().any(is_dash) {
            return Some("standard input cannot be rewritten in place");
        }
        if self.json && self.output.as_ref().is_some_and(is_dash) {
            return Some("--json and --output=- would both write to standard output");
        }
        None
    }
}

/// Rewrites all files. `unchanged` says of a bundle why nothing was to be done.
pub(crate) fn run(
    files: &Files,
    rewrite: impl Fn(&mut dyn ReadSeek, &mut dyn Write) -> Result<Rewritten, RewriteError>,
    unchanged: &str,
) -> io::Result<Outcome> {
    if let Some(fault) = files.fault() {
        clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, format!("{fault}\n")).exit();
    }
    let mut outcome = Outcome::Clean;
    let mut rows = Vec::new();
    for path in &files.files {
        let file = input::display(path);
        let output = files.output.as_deref();
        let _progress = Progress::start(&file);
        match rewrite_file(path, output, &rewrite) {
            Ok(rewritten) => {
                if rewritten.changed() == 0 {
                    let n = rewritten.bundles.len();
                    let (bundles, are) = if n == 1 { ("bundle", "is") } else { ("bundles", "are") };
                    let left = if output.is_some() { "copied" } else { "left alone" };
                    report::note(&format_args!(
                        "{file}: nothing to do, {left}: its {n} {bundles} {are} {unchanged}"
                    ));
                }
                rows.push(Row::new(file, output.unwrap_or(path), &rewritten));
            }
            Err(message) => {
                report::error(&message);
                outcome = Outcome::Faults;
            }
        }
    }
    if files.json {
        let mut out = io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, &rows)?;
        writeln!(out)?;
        out.flush()?;
    } else if files.output.as_deref() != Some(Path::new("-")) {
        print(&rows)?;
    }
    Ok(outcome)
}

/// Rewrites one file, or says what is wrong, and with which file.
fn rewrite_file(
    path: &Path,
    output: Option<&Path>,
    rewrite: impl Fn(&mut dyn ReadSeek, &mut dyn Write) -> Result<Rewritten, RewriteError>,
) -> Result<Rewritten, String> {
    let file = input::display(path);
    let opened = match output {
        Some(_) => input::open_sized(path),
        None => input::open_regular(path),
    };
    let mut source = opened.map_err(|error| format!("{file}: {}", report::reason(&error)))?;
    let target = output.unwrap_or(path);
    let mut rewrite_to = |out: &mut File| match rewrite(&mut source, out) {
        Ok(rewritten) if rewritten.bundles.is_empty() => Err(match rewritten.input_size {
            0 => format!("{file}: the file is empty"),
            _ => format!("{file}: no bundle: the file is all zeros"),
        }),
        Ok(rewritten) => Ok(rewritten),
        Err(RewriteError::Write(error)) => {
            Err(format!("'{}': {}", target.display(), report::reason(&error)))
        }
        Err(RewriteError::Read(error)) => Err(format!("{file}: {}", report::reason(&error))),
        Err(error) => Err(format!("{file}: {error}")),
    };

    let of_output = |error: io::Error| report::reason(&error);
    if target.as_os_str() == "-" {
        // Nothing comes out before all is known to be well.
        let mut spool = tempfile::tempfile().map_err(of_output)?;
        let rewritten = rewrite_to(&mut spool)?;
        spool.rewind().map_err(of_output)?;
        let mut out = io::stdout().lock();
        let copied = io::copy(&mut spool, &mut out).and_then(|_| out.flush());
        return copied.map(|()| rewritten).map_err(of_output);
    }
    let mut outputs = Outputs::default();
    let rewritten = outputs.write_with(target, |out| Ok(rewrite_to(out))).map_err(of_output)??;
    if output.is_some() || rewritten.changed() > 0 {
        outputs.commit().map_err(of_output)?;
    }
    Ok(rewritten)
}

/// One file in the report.
#[derive(Debug, Serialize)]
struct Row {
    file: String,
    output: String,
    changed: usize,
    size_before: u64,
    size_after: u64,
    bundles: Vec<Bundle>,
}

#[derive(Debug, Serialize)]
struct Bundle {
    change: &'static str,
    offset_before: u64,
    size_before: u64,
    offset_after: u64,
    size_after: u64,
    uncompressed_size: u64,
}

impl Row {
    fn new(file: String, output: &Path, rewritten: &Rewritten) -> Self {
        Row {
            file,
            output: output.display().to_string(),
            changed: rewritten.changed(),
            size_before: rewritten.input_size,
            size_after: rewritten.output_size,
            bundles: rewritten.bundles.iter().map(Bundle::new).collect(),
        }
    }
}

impl Bundle {
    fn new(bundle: &RewrittenBundle) -> Self {
        Bundle {
            change: bundle.change.as_str(),
            offset_before: bundle.input.start,
            size_before: bundle.input.end - bundle.input.start,
            offset_after: bundle.output.start,
            size_after: bundle.output.end - bundle.output.start,
            uncompressed_size: bundle.uncompressed_size,
        }
    }
}

/// A line for each bundle, and one for each file with several.
fn print(rows: &[Row]) -> io::Result<()> {
    let left = |table: Table, title| table.column(title, Align::Left, style::PLAIN);
    let right = |table: Table, title| table.column(title, Align::Right, style::PLAIN);
    let mut table = left(Table::default(), "FILE");
    table = right(table, "BUNDLE");
    table = left(table, "CHANGE").optional();
    table = right(table, "BEFORE");
    table = right(table, "AFTER");
    table = right(table, "RATIO");
    let sizes =
        |before, after| [style::size(before), style::size(after), style::percent(after, before)];
    for row in rows {
        for (n, bundle) in row.bundles.iter().enumerate() {
            let mut cells = vec![row.output.clone(), n.to_string(), bundle.change.to_owned()];
            cells.extend(sizes(bundle.size_before, bundle.size_after));
            table.row(&cells);
        }
        if row.bundles.len() > 1 {
            let mut cells = vec![row.output.clone(), "all".to_owned(), String::new()];
            cells.extend(sizes(row.size_before, row.size_after));
            table.row(&cells);
        }
    }
    let mut out = anstream::stdout().lock();
    if !rows.is_empty() {
        table.print(&mut out, "", style::terminal_width())?;
    }
    out.flush()
}
