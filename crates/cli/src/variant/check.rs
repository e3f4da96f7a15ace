//! `offload variant check`: whether declarations of wheels agree with their code, and with each other.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use offload_check::{INDEX_END, VariantSet, Violation};

use tool_inputs::complaint::violation;
use tool_inputs::limits::Limits;
use tool_inputs::variants::{bounded, files, wheels};
use tool_kit::document::{Document, FINDINGS, Shape};
use tool_kit::finding::{Finding, Level};
use tool_kit::format::JudgeFormat;
use tool_kit::looked::Seen;
use tool_kit::style::{self, HEADING, show};
use tool_kit::{Outcome, input, report};

/// Check what wheels declare against their code, and against each other
///
/// A wheel is compared with its label, with the rules of the form, and with its device code: it must have all code for each GPU that
/// it declares. Wheels of one version, and the file of an index (NAME-VERSION-variants.json), must agree. Exits with 1 if there is
/// an error.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Wheels and index files, or directories with these
    #[arg(required = true, value_name = "WHEEL")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    format: JudgeFormat,
    #[command(flatten)]
    limits: Limits,
}

const SHAPE: Shape = Shape::new("variant-check", "findings", FINDINGS);

pub(super) fn run(args: &Args) -> io::Result<Outcome> {
    let (wheels, mut has_faults) = wheels(&args.files, &args.limits)?;
    let mut document = Document::start(args.format.get(), &SHAPE)?;
    let is_text = document.is_text();
    let mut set = VariantSet::default();
    // Another wheel may have the code that one lacks.
    let found: Vec<Vec<Violation>> = wheels.iter().map(|wheel| set.add(&wheel.declared)).collect();
    for (wheel, mut found) in wheels.iter().zip(found) {
        let name = wheel.shown();
        if !wheel.declared.is_variant() {
            if is_text && !args.format.is_quiet() {
                report::note(&format_args!("{name}: not a variant"));
            }
            continue;
        }
        if wheel.declared.is_judged() {
            let code = wheel.code(wheel.declared.needs_contents(), &args.limits)?;
            found.extend(set.judge(&wheel.declared, &code));
        }
        has_faults |= take(&mut document, &name, found, args.format.is_quiet())?;
    }
    for path in files(&args.files, INDEX_END)? {
        let name = input::display(&path);
        let found = of_index(&path, &name, &set);
        has_faults |= take(&mut document, &name, found, args.format.is_quiet())?;
    }
    let same: Vec<Violation> = set.same().collect();
    for of_version in same.chunk_by(|one, next| one.file == next.file) {
        let Some(Violation { file, .. }) = of_version.first() else { continue };
        has_faults |= take(&mut document, file, of_version.to_vec(), args.format.is_quiet())?;
    }
    document.end(if has_faults { Outcome::Faults } else { Outcome::Clean })
}

/// Compares the file of an index with wheels.
fn of_index(path: &Path, name: &str, set: &VariantSet) -> Vec<Violation> {
    let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let json = File::open(path).and_then(bounded);
    let found = json.and_then(|json| set.check_index(name, &file, &json).map_err(io::Error::other));
    found.unwrap_or_else(|error| vec![Violation::error("file/error", name, report::reason(&error))])
}

/// Prints and adds the findings of a file; returns whether one is an error.
fn take(
    document: &mut Document,
    name: &str,
    found: Vec<Violation>,
    is_quiet: bool,
) -> io::Result<bool> {
    let found: Vec<Finding> = found.into_iter().map(violation).collect();
    let is_faulty = found.iter().any(|one| one.level == Level::Error);
    if document.is_text() {
        for Finding { level, message, .. } in &found {
            match level {
                Level::Error => report::error(&format_args!("{name}: {message}")),
                _ => report::warning(&format_args!("{name}: {message}")),
            }
        }
        if found.is_empty() && !is_quiet {
            let mut out = style::stdout();
            show!(out, "{HEADING}{name}{HEADING:#}: valid")?;
            out.flush()?;
        }
    }
    document.file(name, &Seen::faults(is_faulty));
    document.findings(found)?;
    Ok(is_faulty)
}
