//! `--names`: the names of files with images that are meant.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Args, Listing, SHAPE, list};
use tool_inputs::complaint;
use tool_inputs::inputs::{Input, Inputs};
use tool_inputs::package::HEADS;
use tool_kit::Outcome;
use tool_kit::document::Document;
use tool_kit::format::Format;
use tool_kit::looked::Seen;
use tool_kit::style;

pub(super) fn run(args: &Args) -> io::Result<Outcome> {
    let question = args.question();
    let mut document = Document::start(Format::Text, &SHAPE)?;
    let mut out = style::buffered_stdout();
    // The members of a package come one after the other.
    let mut last: Option<PathBuf> = None;
    let inputs = Inputs::find_online(&args.files, args.network);
    let list = |file: &Input, threads| list(&question, file, threads);
    let limits = (&args.limits, HEADS);
    let looked = inputs.look(limits, "listing", list, |file, listing| {
        if let Some(seen) = file.passed_over(!listing.is_empty(), &listing.listed.summary) {
            return Ok(seen);
        }
        let path = file.on_disk();
        if !listing.is_empty() && last.as_deref() != Some(path) {
            write(&mut out, path, args.null)?;
            last = Some(path.to_owned());
        }
        out.flush()?;
        Ok(Seen::faults(complain(&mut document, file, &listing)?))
    })?;
    out.flush()?;
    let outcome = document.looked(looked, false)?;
    document.end(outcome)
}

/// Writes a name as it is stored; to a terminal without characters that deceive.
fn write(out: &mut impl Write, path: &Path, ends_with_null: bool) -> io::Result<()> {
    if style::is_terminal() && !ends_with_null {
        return writeln!(out, "{}", style::printable(&path.to_string_lossy()));
    }
    out.write_all(path.as_os_str().as_encoded_bytes())?;
    out.write_all(if ends_with_null { b"\0" } else { b"\n" })
}

/// Prints the faults of a file; returns `true` if there were any. A file without such images has no fault.
fn complain(
    document: &mut Document,
    file: &Input,
    Listing { listed, .. }: &Listing,
) -> io::Result<bool> {
    complaint::report(document, file.name(), &listed.complaints, &listed.summary, |summary| {
        let is_unread = summary.images == 0 && file.split_host().is_none();
        is_unread.then(|| summary.no_images().err()).flatten().map(Err)
    })
}
