//! `offload doctor`: whether the packages of a Python environment have code for the GPUs of a machine.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use device_select::{Device, FileSet, Support, Vendor};
use fat_object::Severity;
use gpu_packages::{TreeFault, normalized_name};
use serde::Serialize;

use crate::environment::{self, Distribution};
use crate::help::More;
use crate::limits::Limits;
use crate::match_gpu::{File, Question};
use crate::native;
use crate::packs::answer;
use crate::packs::host::Host;
use crate::suggest;
use tool_kit::parallel::{self, Threads};
use tool_kit::progress::Progress;
use tool_kit::style::{self, ERROR, HEADING, PLAIN, TARGET, WARNING, show};
use tool_kit::{Outcome, input, report};

pub(crate) const MORE: More = More {
    examples: &[
        (
            "offload doctor --gpu gfx1100 --json | jq -r '.[].answer' | sort | uniq -c",
            "count the answers, for a script",
        ),
        ("offload doctor --gpu gfx1100", "ask of all packages whether they run on this GPU"),
        (
            "offload doctor --prefix env --gpu gfx1100 foo",
            "ask of a package in another environment",
        ),
    ],
    notes: &[
        "Files of a package are judged together, as by `offload match` of a wheel: builds for several versions of CUDA are \
         alternatives, and of kernel databases the files for the GPU count. Code in other places than the files of packages, such as \
         that of the system's libraries, is not looked for.",
    ],
};

/// Tell which Python packages have code for this machine's GPUs
///
/// Finds packages as pip does: in the environment of python3, or below --prefix. Answers for each in one line: whether it has
/// code for the GPUs, why not, and what helps. Exits with 1 if a package with device code has none for a GPU.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MORE.text())]
pub(crate) struct Args {
    /// Packages to ask of; all if there are none
    #[arg(value_name = "PACKAGE")]
    packages: Vec<String>,
    /// Ask for these GPUs, not for those of this machine. Repeatable
    #[arg(long = "gpu", value_name = "TARGET-ID", value_delimiter = ',', value_parser = suggest::gpu)]
    gpus: Vec<Device>,
    /// Look into this environment, not into that of python3
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
    /// Show packages without device code, too
    #[arg(long)]
    all: bool,
    /// Print one JSON array of all packages
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    limits: Limits,
}

/// The answer for a package and a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    Serves,
    Partly,
    DoesNotServe,
    /// It has code for GPUs of other vendors only.
    OtherVendors,
    NoDeviceCode,
}

/// One package and one GPU; the fields of one JSON object, in this order.
#[derive(Debug, Serialize)]
struct Row {
    package: String,
    version: String,
    gpu: String,
    answer: Answer,
    why: String,
    /// Files with code for GPUs of this vendor, and those of them with code for this GPU.
    files: usize,
    serving: usize,
}

/// A package, and what its files say.
struct Package {
    has_code: bool,
    vendors: BTreeSet<&'static str>,
    files: FileSet,
    /// For each GPU the first reason why a file has no code for it.
    why: Vec<Option<String>>,
    faults: Vec<String>,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let found = gpus(args).and_then(|gpus| Ok((gpus, packages(args)?)));
    let (gpus, (distributions, faults)) = match found {
        Ok(found) => found,
        Err(error) => {
            report::error(&error);
            return Ok(Outcome::Faults);
        }
    };
    let question =
        Question { gpus, kinds: &[], check: false, is_strict: false, limits: &args.limits };
    let progress = Progress::start("looking into packages");
    let mut rows = Vec::new();
    let mut outcome = if faults.is_empty() { Outcome::Clean } else { Outcome::Faults };
    faults.iter().for_each(|fault| report::error(fault));
    let look = |one: &Distribution| look(&question, one);
    parallel::in_order(args.threads.count(), &distributions, look, |one, package| {
        for fault in &package.faults {
            report::error(fault);
            outcome = Outcome::Faults;
        }
        for (n, gpu) in question.gpus.iter().enumerate() {
            let row = package.row(one, gpu, n);
            if row.answer == Answer::DoesNotServe {
                outcome = Outcome::Faults;
            }
            if row.answer != Answer::NoDeviceCode || args.all || !args.packages.is_empty() {
                rows.push(row);
            }
        }
        io::Result::Ok(())
    })?;
    drop(progress);
    if args.json {
        tool_kit::json::print(&rows)?;
        return Ok(outcome);
    }
    print(&rows, distributions.len())?;
    Ok(outcome)
}

/// Returns the GPUs that are asked for.
fn gpus(args: &Args) -> Result<Vec<Device>, String> {
    if !args.gpus.is_empty() {
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
    let sites = match &args.prefix {
        Some(prefix) => environment::search_path_of(prefix)?,
        None => environment::search_path()?,
    };
    let (mut found, faults) = sites.distributions();
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

/// Looks into all files of a package.
fn look(question: &Question<'_>, distribution: &Distribution) -> Package {
    let mut package = Package {
        has_code: false,
        vendors: BTreeSet::new(),
        files: FileSet::new(question.gpus.len()),
        why: vec![None; question.gpus.len()],
        faults: Vec::new(),
    };
    let tree = distribution.tree();
    let texts =
        |faults: &[TreeFault]| faults.iter().map(|fault| tree.text(fault)).collect::<Vec<_>>();
    package.faults = texts(distribution.faults());
    let files = match distribution.files(may_be_library) {
        Ok(files) => files,
        Err(fault) => {
            package.faults.push(tree.text(&fault));
            return package;
        }
    };
    package.faults.extend(texts(&files.faults));
    for path in files.paths {
        let (input, path) = (tree.input(&path), input::path(&path));
        if let Some(host) = input.split_host() {
            package.add_split(question, &host, &path);
            continue;
        }
        let (file, complaints) = File::read(question, &input, Threads::one());
        if file.as_ref().is_none_or(File::is_damaged) {
            let errors = complaints.into_iter().filter(|one| one.severity == Severity::Error);
            package.faults.extend(errors.map(|complaint| complaint.message));
        }
        let Some(file) = file.filter(|file| !file.units.is_empty()) else { continue };
        package.has_code = true;
        package.vendors.extend(file.units.iter().filter_map(|unit| Some(unit.vendor()?.as_str())));
        let name = path.to_string_lossy();
        let name = name.rsplit_once("site-packages/").map_or(&*name, |(_, name)| name);
        for (gpu, answers) in file.asked(question, &input) {
            let Some(at) = question.gpus.iter().position(|other| std::ptr::eq(other, gpu)) else {
                continue;
            };
            package.files.add(name, at, &file.units, answers);
            let why = package.why.get_mut(at).filter(|why| why.is_none());
            if let Some(why) = why.filter(|_| answers.support() >= Support::Unknown) {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let words = answers.conclusion(&file.units, gpu).text;
                let hint = answers.hint(&file.units, gpu);
                let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
                *why = Some(format!("{name} {words}{hint}"));
            }
        }
    }
    package
}

/// Returns whether a file with this name may hold device code, as far as names tell.
fn may_be_library(name: &str) -> bool {
    const EXTENSIONS: [&str; 16] = [
        "so", "pyd", "dll", "dylib", "a", "lib", "o", "obj", "co", "hsaco", "kpack", "cubin",
        "fatbin", "hipfb", "ptx", "spv",
    ];
    let extension = Path::new(name).extension();
    name.contains(".so.") || extension.is_some_and(|it| EXTENSIONS.iter().any(|one| it == *one))
}

impl Package {
    /// Adds a library whose device code is in kernel packs.
    fn add_split(&mut self, question: &Question<'_>, host: &Host, path: &Path) {
        self.has_code = true;
        self.vendors.insert(Vendor::Amd.as_str());
        let name = path.to_string_lossy();
        let name = name.rsplit_once("site-packages/").map_or(&*name, |(_, name)| name);
        for (at, gpu) in question.gpus.iter().enumerate() {
            if gpu.vendor() != Vendor::Amd {
                continue;
            }
            let answer = host.answer(gpu);
            let support = if answer.is_served() { Support::Yes } else { Support::No };
            self.files.add_answer(name, at, support);
            let why = self.why.get_mut(at).filter(|why| why.is_none() && support == Support::No);
            if let Some(why) = why {
                *why = Some(format!("{name} {}", answer::words(&answer)));
            }
        }
    }

    fn row(&self, one: &Distribution, gpu: &Device, at: usize) -> Row {
        let (name, questions) = (gpu.name(), self.files.questions());
        let of_gpu = || questions.iter().map(|question| question.files(at));
        let files = of_gpu().map(|(files, _)| files).sum();
        let serving = of_gpu().map(|(_, serving)| serving).sum();
        let conclusion = self.files.support(at).zip(self.files.conclusion(at, &name));
        let (answer, why) = match conclusion {
            _ if !self.has_code => (Answer::NoDeviceCode, "no device code".to_owned()),
            None => {
                let vendors = Vec::from_iter(self.vendors.iter().copied()).join(", ");
                let vendor = gpu.vendor().as_str();
                let why = if self.vendors.contains(vendor) {
                    "has kernel packs for other GPUs only".to_owned()
                } else {
                    format!(
                        "has code for GPUs of {vendors} only; install its build for {vendor}, if it is to use {name}"
                    )
                };
                (Answer::OtherVendors, why)
            }
            Some((Support::Yes, _)) if files == serving => {
                (Answer::Serves, format!("has code for {name} in {}", style::files(files)))
            }
            Some((Support::Yes, _)) => {
                let files = style::files(files);
                (Answer::Serves, format!("has code for {name} in {serving} of {files}"))
            }
            Some((Support::Partly, words)) => (Answer::Partly, words.text),
            Some((Support::Unknown | Support::No, words)) => {
                let advice = match gpu.vendor() {
                    Vendor::Amd => "install a build for it, or one with generic code",
                    Vendor::Nvidia => "install a build for it, or one with PTX",
                    Vendor::Intel => "install a build for it, or one with SPIR-V",
                    _ => "install a build for it",
                };
                // More can be said about a single file.
                let why = self.why.get(at).cloned().flatten().filter(|_| questions.len() == 1);
                (Answer::DoesNotServe, format!("{}; {advice}", why.unwrap_or(words.text)))
            }
        };
        Row {
            package: one.name().to_owned(),
            version: one.version().to_owned(),
            gpu: gpu.name(),
            answer,
            why,
            files,
            serving,
        }
    }
}

fn print(rows: &[Row], packages: usize) -> io::Result<()> {
    let mut out = style::stdout();
    if rows.is_empty() {
        let noun = if packages == 1 { "package has" } else { "packages have" };
        report::note(&format_args!("none of {packages} {noun} device code"));
        return out.flush();
    }
    for row in rows {
        let style = match row.answer {
            Answer::Serves => TARGET,
            Answer::DoesNotServe => ERROR,
            Answer::Partly => WARNING,
            Answer::OtherVendors | Answer::NoDeviceCode => PLAIN,
        };
        let Row { package, version, why, .. } = row;
        show!(out, "{HEADING}{package} {version}{HEADING:#}: {style}{why}{style:#}")?;
    }
    out.flush()
}
