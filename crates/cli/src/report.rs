//! `offload report`: a page that shows where the bytes of files go.

mod trial;

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use device_account::{Account, Accountant};
use device_report::{File, Note, Report, Shell};

use crate::accounts::{self, Counted};
use tool_inputs::inputs::{Input, Inputs};
use tool_inputs::limits::Limits;
use tool_kit::document::{Document, Shape};
use tool_kit::finding::Level;
use tool_kit::output::{self, Outputs};
use tool_kit::permissions::NewPermissions;
use tool_kit::{Outcome, input};

/// Write a page of where the bytes of files go: treemap and table
///
/// The page is one HTML file, which loads nothing: open it in a browser, attach it to a ticket, keep it with a build. It shows files, the
/// libraries in them, their GPUs and the kernels of each as tiles and as rows. Host code and the rest have rows, too: all rows add up to
/// the size of the file, as `offload size` counts it. Choose a GPU to see what `offload thin` would remove, and the command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files to read, or directories; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write the page to FILE; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    limits: Limits,
}

/// Findings are collected, and nothing is printed as a document.
const SHAPE: Shape = Shape::new("report", "files", "");

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let inputs = Inputs::find(&args.files).once();
    // An argument stays also if it could not be read, or if only a member of it was asked for; an old page in a directory is replaced.
    let named = inputs.files().iter().filter(|file| file.is_named());
    check_output(&args.output, named.map(Input::path))?;
    Outputs::check(&args.output)?;
    let mut document = Document::silent(&SHAPE)?;
    let new = || Accountant::new().with_functions(true);
    let tries = |file: &Input, account: &Account, threads| {
        trial::tries(file, account, &args.limits, threads)
    };
    let (counted, looked) = accounts::count(&inputs, &args.limits, &new, &tries, &mut document)?;
    let outcome = document.looked(looked, counted.is_empty())?;
    if counted.is_empty() {
        return Ok(outcome);
    }
    let paths = paths(&inputs);
    let path_of = |one: &Counted<_>| paths.get(&*one.name).copied().flatten();
    check_output(&args.output, counted.iter().filter_map(path_of))?;
    let files: Vec<File<'_>> = counted
        .iter()
        .map(|one| {
            let mut file = File::new(&one.name, &one.accounts).with_tries(&one.also);
            if let Some(share) = &one.share {
                file = file.with_share(share);
            }
            if let Some(why) = &one.uneditable {
                file = file.with_uneditable(why.clone());
            }
            match path_of(one) {
                Some(path) => file.with_path(&input::bytes(path.as_os_str().to_owned())),
                None => file,
            }
        })
        .collect();
    let notes = document.take_findings();
    let notes = notes.into_iter().map(|finding| match finding.level {
        Level::Error => Note::error(&finding.file, finding.message),
        _ => Note::warning(&finding.file, finding.message),
    });
    let permissions = NewPermissions::of_all(counted.iter().map(|one| one.permissions));
    let shell = if cfg!(windows) { Shell::Windows } else { Shell::Posix };
    write(args, &Report::new(&files, notes.collect(), shell), permissions)?;
    Ok(outcome)
}

/// Fails if a new file would take the place of an input.
pub(crate) fn check_output<'p>(
    output: &'p Path,
    inputs: impl Iterator<Item = &'p Path>,
) -> io::Result<()> {
    if Outputs::appears_late(output) && output::named_in([output], inputs).is_some() {
        let path = output.display();
        return Err(io::Error::other(format!("'{path}': this is an input: choose another name")));
    }
    Ok(())
}

/// Returns the paths of files by their names, for command lines. Standard input has none, and neither have files that are named alike.
fn paths(inputs: &Inputs) -> HashMap<&str, Option<&Path>> {
    let mut paths = HashMap::new();
    for file in inputs.files().iter().filter(|file| file.path().as_os_str() != "-") {
        let of_name = paths.entry(file.name()).or_insert(Some(file.path()));
        *of_name = of_name.filter(|path| *path == file.path());
    }
    paths
}

fn write(args: &Args, page: &Report, permissions: NewPermissions) -> io::Result<()> {
    let mut outputs = Outputs::default();
    outputs.write_or_print(&args.output, permissions, |file| {
        let mut out = BufWriter::new(file);
        page.write(&mut out)?;
        out.flush()
    })?;
    outputs.commit()
}
