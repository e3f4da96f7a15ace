//! `offload check`: whether files keep to a policy.

mod look;

use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use device_select::{Device, Wanted};
use offload_check::{Bytes, Percent, Policy, growth};

use crate::suggest;
use tool_inputs::complaint::violation;
use tool_inputs::limits::Limits;
use tool_kit::arguments::usage;
use tool_kit::document::{Document, FINDINGS, Shape};
use tool_kit::finding::{self, Level};
use tool_kit::format::{Format, JudgeFormat};
use tool_kit::opened::open_regular;
use tool_kit::special::is_null;
use tool_kit::style::{self, ERROR, HEADING, NOTE, WARNING, show};
use tool_kit::{Outcome, input, report};

/// Check files against a policy: targets, sizes, kernels, needs
///
/// The policy is offload.toml in the working directory, or --config. Options replace what it says. Each FILE is judged by itself: a
/// file, a package or a member of it, or all files below a directory. Pipes and standard input are refused: they have no size.
/// Exits with 1 if there is an error, and with 2 if the policy has one. `offload explain CODE` explains findings.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files to check, or directories
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Read the policy from FILE [default: offload.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Require code for these GPUs, separated by commas. Repeatable
    #[arg(long, value_name = "TARGET-ID", value_delimiter = ',', value_parser = suggest::gpu)]
    require: Vec<Device>,
    /// Permit only code that one of these GPUs can load. Repeatable
    #[arg(long, value_name = "TARGET-ID", value_delimiter = ',', value_parser = suggest::wanted)]
    only: Vec<Wanted>,
    /// Limit the device code of each FILE, as stored: 200M
    #[arg(long, value_name = "SIZE")]
    device_code: Option<Bytes>,
    /// Limit the size of each FILE: 2G
    #[arg(long, value_name = "SIZE")]
    file_size: Option<Bytes>,
    /// Limit the growth of device code against --base: 5%
    #[arg(long, value_name = "PERCENT")]
    growth: Option<Percent>,
    /// Compare the device code of all FILEs with the code of OLD
    #[arg(long, value_name = "OLD")]
    base: Option<String>,
    #[command(flatten)]
    format: JudgeFormat,
    #[command(flatten)]
    limits: Limits,
}

const SHAPE: Shape = Shape::new("check", "findings", FINDINGS);

/// The name of the policy in the working directory.
const CONFIG: &str = "offload.toml";

/// The most bytes of a policy.
const MOST: u64 = 1 << 20;

impl Args {
    /// Returns the policy, with what the options replace.
    fn policy(&self) -> io::Result<Policy> {
        // A link that leads nowhere is there.
        let is_absent = |path: &PathBuf| {
            fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
        };
        let here = || Some(PathBuf::from(CONFIG)).filter(|path| !is_absent(path));
        let path = self.config.clone().or_else(here);
        let mut policy = match &path {
            Some(path) => read(path).map_err(|error| {
                let (name, why) = (input::display(path), report::reason(&error));
                io::Error::other(format!("{name}: {why}"))
            })?,
            None => Policy::default(),
        };
        let replace = |to: &mut Option<Bytes>, by: Option<Bytes>| *to = by.or(*to);
        replace(&mut policy.budget.device_code, self.device_code);
        replace(&mut policy.budget.file, self.file_size);
        policy.budget.growth = self.growth.or(policy.budget.growth);
        policy.budget.base = self.base.clone().or(policy.budget.base);
        if !self.require.is_empty() {
            policy.targets.require.clone_from(&self.require);
        }
        if !self.only.is_empty() {
            policy.targets.only.clone_from(&self.only);
        }
        if policy.is_empty() && policy.missing().is_none() {
            let why = match &path {
                Some(path) => format!("{}: the policy has no rule", input::display(path)),
                None => {
                    format!("no {CONFIG} here: expected a policy, or options such as --require")
                }
            };
            return Err(io::Error::other(why));
        }
        policy.missing().map_or(Ok(policy), |what| Err(io::Error::other(what)))
    }
}

/// Reads a policy from a file.
fn read(path: &Path) -> io::Result<Policy> {
    let mut text = String::new();
    open_regular(path)?.take(MOST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST {
        return Err(io::Error::other("exceeds 1 MiB: expected a policy"));
    }
    Policy::parse(&text).map_err(io::Error::other)
}

/// Ends the process for an input that has no size.
fn require_files<'p>(paths: impl IntoIterator<Item = &'p Path>) {
    for path in paths {
        // A path that leads nowhere may be a member of a package.
        let is_special = fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir());
        if path.as_os_str() == "-" || is_special || is_null(path) {
            let name = input::display(path);
            usage(&format!("{name}: expected a file or a directory, which has a size"));
        }
    }
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let policy = args.policy().unwrap_or_else(|error| usage(&error.to_string()));
    require_files(args.files.iter().map(PathBuf::as_path));
    require_files(policy.budget.base.as_ref().map(Path::new));
    let mut document = Document::start(args.format.get(), &SHAPE)?;
    suggest::explain(&policy.targets.require, args.format.has_notes());
    suggest::explain_wanted(&policy.targets.only, args.format.has_notes());
    // Findings of several questions about one file are there once.
    let mut found = Document::silent(&SHAPE)?;
    let mut are_read = true;
    let mut sizes = Vec::new();
    for path in &args.files {
        let (code, is_read) = look::judge(&policy, &args.limits, path, &mut found)?;
        sizes.push(code);
        are_read &= is_read;
    }
    let mut is_faulty = !are_read;
    if let Some(base) = &policy.budget.base {
        let (code, is_read) = look::sum(&policy, &args.limits, Path::new(base), &mut found)?;
        is_faulty |= !is_read;
        if is_read && code.bytes == 0 {
            let why = "has no device code to compare with";
            found.finding(finding::Finding::error("file/nothing", base, why))?;
        } else if is_read && are_read {
            // There is no growth of a part.
            found.findings(growth(&policy, code, sizes).map(violation))?;
        }
    }
    document.take_files(&mut found);
    let mut seen = HashSet::new();
    for one in found.take_findings() {
        if seen.insert((one.code, one.file.clone(), one.message.clone())) {
            is_faulty |= one.level == Level::Error;
            document.finding(one)?;
        }
    }
    if args.format.get() == Format::Text {
        print(document.all_findings(), args.files.len(), args.format.is_quiet())?;
    }
    document.end(if is_faulty { Outcome::Faults } else { Outcome::Clean })
}

/// Prints a line for each finding, and a summary unless it is quiet.
fn print(findings: &[finding::Finding], files: usize, is_quiet: bool) -> io::Result<()> {
    let mut out = style::stdout();
    for one in findings {
        let style = match one.level {
            Level::Error => ERROR,
            Level::Warning => WARNING,
            Level::Note => NOTE,
        };
        let (level, code, message) = (one.level.as_str(), one.code, &one.message);
        let file = if one.file.is_empty() { "all files" } else { &one.file };
        show!(out, "{HEADING}{file}{HEADING:#}: {style}{level}{style:#}[{code}]: {message}")?;
        if let Some(help) = &one.help {
            show!(out, "  help: {help}")?;
        }
    }
    if is_quiet {
        return out.flush();
    }
    let files = style::files(files);
    match findings.first() {
        Some(first) => {
            let findings = style::count(findings.len(), "finding");
            show!(out, "{files}: {findings} (offload explain {})", first.code)?;
        }
        None => show!(out, "{files}: ok")?,
    }
    out.flush()
}
