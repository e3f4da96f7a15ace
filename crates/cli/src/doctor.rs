//! `offload doctor`: whether the packages of a Python environment have code for the GPUs of a machine.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use device_select::{Device, FileSet, Vendor, Verdict, VerdictKind};
use gpu_packages::normalized_name;
use offload_check::Violation;
use serde::Serialize;

use crate::suggest;
use tool_answers::matching::{File, Question};
use tool_inputs::complaint::{Complaint, violation};
use tool_inputs::environment::{self, Distribution};
use tool_inputs::limits::Limits;
use tool_inputs::native;
use tool_inputs::variants::{self, InstalledCode, InstalledVariant};
use tool_kit::document::{Document, Shape};
use tool_kit::finding::{Finding, Level};
use tool_kit::format::JudgeFormat;
use tool_kit::parallel;
use tool_kit::progress::Progress;
use tool_kit::style::{self, ERROR, HEADING, PLAIN, TARGET, WARNING, show};
use tool_kit::{Outcome, input, report};

/// Show which Python packages have code for this machine's GPUs
///
/// Finds packages as pip does: in the environment of python3, or below --prefix. Prints one line per package: whether it has
/// code for the GPUs, why not, and what helps. Exits with 1 if a package with device code has none for a GPU.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Packages to check (default: all)
    #[arg(value_name = "PACKAGE")]
    packages: Vec<String>,
    /// Check these GPUs instead of this machine's. Repeatable
    #[arg(long = "gpu", value_name = "TARGET-ID", value_delimiter = ',', value_parser = suggest::gpu)]
    gpus: Vec<Device>,
    /// Check this environment instead of python3's
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
    /// Show packages without device code, too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    format: JudgeFormat,
    #[command(flatten)]
    limits: Limits,
}

/// One package and one GPU; the fields of one JSON object, in this order.
#[derive(Debug, Serialize)]
struct Row {
    package: String,
    version: String,
    gpu: String,
    answer: &'static str,
    why: String,
    /// Files with code for GPUs of this vendor, and those of them with code for this GPU.
    files: usize,
    serving: usize,
}

const SHAPE: Shape =
    Shape::new("doctor", "packages", "package version gpu answer files serving why");

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let gpus = gpus(args).map_err(io::Error::other)?;
    let (distributions, faults) = packages(args).map_err(io::Error::other)?;
    let question =
        Question { gpus, kinds: &[], check: false, is_strict: false, limits: &args.limits };
    let progress = Progress::start("looking into packages");
    let mut document = Document::start(args.format.get(), &SHAPE)?;
    let mut rows = Vec::new();
    let mut outcome = if faults.is_empty() { Outcome::Clean } else { Outcome::Faults };
    for fault in &faults {
        report::error(fault);
        document.finding(Finding::error("file/error", "", fault))?;
    }
    let mut said = Vec::new();
    parallel::in_order(
        args.limits.threads.count(),
        &distributions,
        |one: &Distribution| look(&question, one),
        |one, (files, faults, variant)| {
            for fault in &faults {
                report::error(fault);
                document.finding(Finding::error("file/error", one.name(), fault))?;
                outcome = Outcome::Faults;
            }
            for (n, gpu) in question.gpus.iter().enumerate() {
                let Verdict { kind, why, files, serving, .. } = files.verdict(n);
                let (code, level) = match kind {
                    VerdictKind::DoesNotServe => ("targets/missing", Level::Error),
                    VerdictKind::Unknown => ("targets/unknown", Level::Error),
                    _ => ("targets/partly", Level::Warning),
                };
                if level == Level::Error {
                    outcome = Outcome::Faults;
                }
                if level == Level::Error || kind == VerdictKind::Partly {
                    document.finding(Finding::error(code, one.name(), &*why).with_level(level))?;
                }
                if kind != VerdictKind::NoDeviceCode || args.all || !args.packages.is_empty() {
                    let (package, version) = (one.name().to_owned(), one.version().to_owned());
                    let (gpu, answer) = (gpu.name(), kind.as_str());
                    let row = Row { package, version, gpu, answer, why, files, serving };
                    document.row(&row)?;
                    rows.push((kind, row));
                }
            }
            for one in variant.into_iter().map(violation) {
                if one.level == Level::Error {
                    outcome = Outcome::Faults;
                }
                document.finding(one.clone())?;
                said.push(one);
            }
            io::Result::Ok(())
        },
    )?;
    drop(progress);
    if document.is_text() {
        print(&rows, &said, distributions.len(), args.format.is_quiet())?;
    }
    document.end(outcome)
}

/// Returns the GPUs that are asked for.
fn gpus(args: &Args) -> Result<Vec<Device>, String> {
    if !args.gpus.is_empty() {
        suggest::explain(&args.gpus, args.format.has_notes());
        return Ok(args.gpus.clone());
    }
    let found = native::visible_here()?;
    let ids: BTreeSet<&str> = found.all().iter().map(|gpu| gpu.id()).collect();
    report::note(&format_args!(
        "GPUs of this machine: {}",
        Vec::from_iter(ids.iter().copied()).join(", ")
    ));
    ids.iter().map(|id| suggest::gpu(id)).collect()
}

/// Returns the packages that are asked for, and faults that may hide some.
fn packages(args: &Args) -> Result<(Vec<Distribution>, Vec<String>), String> {
    let (mut found, faults) = environment::distributions(args.prefix.as_deref())?;
    let wanted: Vec<String> = args.packages.iter().map(|name| normalized_name(name)).collect();
    if let Some((typed, _)) = (args.packages.iter().zip(&wanted))
        .find(|(_, name)| !found.iter().any(|one| normalized_name(one.name()) == **name))
    {
        let hint = if Path::new(typed).is_dir() {
            "; to look into this directory: --prefix for an environment, match for files"
        } else {
            ""
        };
        return Err(format!("{typed}: no such package is installed{hint}"));
    }
    if !wanted.is_empty() {
        found.retain(|one| wanted.contains(&normalized_name(one.name())));
    }
    Ok((found, faults))
}

/// Looks into all files of a package. Returns the answers, what is wrong with the files, and with the variant that it was installed
/// from.
fn look(
    question: &Question<'_>,
    distribution: &Distribution,
) -> (FileSet, Vec<String>, Vec<Violation>) {
    let mut set = FileSet::new(question.gpus.clone());
    let mut variant = InstalledVariant::of(distribution, &question.gpus);
    let check = variant.as_ref().is_some_and(InstalledVariant::needs_contents);
    let how = (check, question.limits);
    let faults = variants::read_installed(distribution, how, |input, name, code| {
        let code = match code {
            InstalledCode::Split(host) => {
                let gpus = question.gpus.iter().enumerate();
                let gpus = gpus.filter(|(_, gpu)| gpu.vendor() == Vendor::Amd);
                let answers = gpus.map(|(n, gpu)| {
                    let answer = host.answer(gpu);
                    (n, answer.is_served(), answer.words(|path| input::display(path)))
                });
                set.add_split(name, Vendor::Amd, answers);
                InstalledCode::Split(host)
            }
            InstalledCode::Units(read) => {
                let file = File::with_answers(question, read);
                file.add_to(&mut set, name, question, input);
                InstalledCode::Units(file.read)
            }
            InstalledCode::Elsewhere => code,
        };
        if let Some(variant) = &mut variant {
            variant.add(name, code);
        }
    });
    match (faults.is_partial, faults.tree.is_empty() && faults.files.is_empty()) {
        (true, true) => set.add_unread(distribution.name()),
        (true, false) => set.add_failed(distribution.name()),
        (false, _) => {}
    }
    let files = faults.files.iter().map(Complaint::message);
    let found = variant.map_or_else(Vec::new, InstalledVariant::judge);
    (set, faults.tree.into_iter().chain(files).collect(), found)
}

fn print(
    rows: &[(VerdictKind, Row)],
    said: &[Finding],
    packages: usize,
    is_quiet: bool,
) -> io::Result<()> {
    let mut out = style::stdout();
    if rows.is_empty() && said.is_empty() {
        let noun = if packages == 1 { "package has" } else { "packages have" };
        report::note(&format_args!("none of {packages} {noun} device code"));
        return out.flush();
    }
    let is_shown = |kind| !is_quiet || kind != VerdictKind::Serves;
    for (kind, row) in rows.iter().filter(|(kind, _)| is_shown(*kind)) {
        let style = match kind {
            VerdictKind::Serves => TARGET,
            VerdictKind::DoesNotServe | VerdictKind::Unknown => ERROR,
            VerdictKind::Partly => WARNING,
            _ => PLAIN,
        };
        let Row { package, version, why, .. } = row;
        show!(out, "{HEADING}{package} {version}{HEADING:#}: {style}{why}{style:#}")?;
    }
    for Finding { level, file, message, .. } in said {
        let style = if *level == Level::Error { ERROR } else { WARNING };
        show!(out, "{HEADING}{file}{HEADING:#}: {style}{message}{style:#}")?;
    }
    out.flush()
}
