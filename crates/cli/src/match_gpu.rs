//! `offload match`: which image each container gives a GPU, and why not the others.

mod json;
mod package;
pub(crate) mod view;
mod walk;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use device_select::{Device, PtxJit, Runtime, Selection, Unit, Vendor};
use fat_object::{FileFormat, Severity, Summary};

use crate::help::More;
use crate::inputs::{Input, Inputs, Seen};
use crate::json::Array;
use crate::packs::answer::{Answer as PackAnswer, SplitRecord};
use crate::packs::host::Host;
use crate::parallel::Threads;
use crate::store::Keep;
use crate::style::{HEADING, show};
use crate::{Outcome, input, ls, report, style, suggest};
use json::Record;
use package::Package;
use walk::Walk;

pub(crate) const MORE: More = More {
    examples: &[
        (
            "offload match --gpu gfx1031 libfoo.so",
            "find out why a library does not run on a Radeon",
        ),
        ("offload match --gpu sm_86 packages.offload", "check an offload binary for a GeForce"),
        (
            "offload match --gpu gfx906,gfx942,gfx1100 *.so",
            "print a table of what each of these GPUs loads",
        ),
        ("offload match -q --gpu gfx1100 *.so || echo no", "test the exit status in a script"),
        (
            "offload match --gpu gfx906,gfx1100 foo-1.0-py3-none-any.whl",
            "print a line for each package and GPU: the gate for a release",
        ),
    ],
    notes: &[
        "A package (wheel, zip, tar, deb, conda, RPM) is answered for in one line for each GPU; name a file in it \
         (foo.whl:foo/libfoo.so) to see why. Files in packages and directories are only asked about GPUs of their own vendor.",
        "A GPU without features (gfx90a) may run with xnack and sramecc on or off; the answer says so if that \
         matters. `native` is such a GPU; rocminfo prints AMD GPUs with features. nvidia-smi --query-gpu=compute_cap prints 8.6 for sm_86.",
        "Containers for GPUs of other vendors are shown, but count only if the file has no others. Containers \
         without kernels never count. A container that holds only architecture-specific code for other NVIDIA GPUs (sm_90a, sm_100f) is reported, but is not an error if another container has code for this GPU. Images that are not read are assumed to hold kernels: those in compressed bundles, and compressed images of more than 64 KiB in fatbinaries.",
    ],
};

/// Show which image a GPU loads, and why not the others
///
/// A runtime chooses one image from each container: a bundle, a fatbinary, or all offload binaries of a section. A
/// library has one container for each source file and needs code in every container that holds kernels. Exits with 1 if
/// such a container has no image for the GPU, or if a file has no device code.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MORE.text())]
pub(crate) struct Args {
    /// Match these GPUs, separated by commas. Repeatable
    ///
    /// A GPU is a target ID (gfx90a:xnack+, sm_86), a name (RX 7600), a PCI ID (10de:2684), the output of rocminfo,
    /// a bundle entry ID, or `native`: the GPUs of this machine, as `offload gpus --native` lists them.
    #[arg(long = "gpu", required = true, value_name = "TARGET-ID", value_delimiter = ',', value_parser = gpu)]
    gpus: Vec<Device>,
    /// Files to read, or directories; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Show only containers of this kind. Repeatable
    #[arg(long = "kind", value_name = "KIND", value_parser = runtime())]
    kinds: Vec<Runtime>,
    /// Decide as the CUDA driver does while PTX is always compiled, or never
    ///
    /// force: cubins are ignored (CUDA_FORCE_PTX_JIT=1). disable: PTX is not compiled (CUDA_DISABLE_PTX_JIT=1).
    #[arg(long, value_name = "HOW")]
    ptx_jit: Option<Jit>,
    /// Decompress everything and compare each image with the name of its entry
    ///
    /// Entries of bundles, offload binaries and fatbinaries name the GPU of an image, and runtimes choose by that name.
    /// No runtime loads an image for a GPU other than the one named. Without this option only uncompressed images are
    /// compared.
    #[arg(long)]
    check: bool,
    /// Print one JSON array of all containers, with one object for each GPU
    #[arg(long)]
    json: bool,
    /// Print errors only; use the exit status
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    limits: input::Limits,
}

/// The settings of the CUDA driver.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Jit {
    Force,
    Disable,
}

/// A question about files.
pub(crate) struct Question<'a> {
    pub(crate) gpus: Vec<Device>,
    /// Only containers of these kinds; of all kinds if there are none.
    pub(crate) kinds: &'a [Runtime],
    /// `true` if images are compared with the names of their entries.
    pub(crate) check: bool,
    pub(crate) limits: &'a input::Limits,
}

impl Args {
    fn question(&self) -> Question<'_> {
        let ptx_jit = match self.ptx_jit {
            None => PtxJit::Needed,
            Some(Jit::Force) => PtxJit::Forced,
            Some(Jit::Disable) => PtxJit::Disabled,
        };
        Question {
            gpus: self.gpus.iter().map(|gpu| gpu.clone().with_ptx_jit(ptx_jit)).collect(),
            kinds: &self.kinds,
            check: self.check,
            limits: &self.limits,
        }
    }
}

/// Reads the name of a runtime.
fn runtime() -> impl TypedValueParser<Value = Runtime> {
    let names = Runtime::ALL.iter().filter_map(|runtime| runtime.as_str());
    PossibleValuesParser::new(names)
        .try_map(|name| Runtime::from_name(&name).ok_or("not a runtime"))
}

/// Reads the name of a GPU.
pub(crate) fn gpu(typed: &str) -> Result<Device, String> {
    Device::parse(typed).map_err(|reason| suggest::not_a_device(typed, &reason))
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    for gpu in &args.gpus {
        if let Some(doubt) = suggest::doubt(gpu) {
            report::warning(&doubt);
        }
    }
    if args.json { run_json(args) } else { run_table(args) }
}

fn run_table(args: &Args) -> io::Result<Outcome> {
    let mut out = style::stdout();
    let mut hints = Vec::new();
    let mut printed = false;
    // The members of a package come one after the other.
    let mut package: Option<Package> = None;
    let question = args.question();
    let read = |file: &Input, threads| Read::of(&question, file, threads);
    let inputs = Inputs::find(&args.files).seeking("code for such GPUs");
    let looked = inputs.look(
        (&args.limits, Keep::Heads),
        args.threads,
        "matching",
        read,
        |input, read| {
            let (file, complaints) = match read {
                Read::File(file, complaints) => (file, complaints),
                Read::Split(host, answers) => {
                    let seen = Seen::faults(answers.iter().any(|answer| !answer.is_served()));
                    if args.quiet {
                        return Ok(seen);
                    }
                    if input.is_named() {
                        let name = input.name();
                        show!(out, "{HEADING}{name}{HEADING:#}  {}", host.describe())?;
                        answers.iter().try_for_each(|answer| answer.print_tried(&mut out))?;
                    }
                    answers.iter().try_for_each(|answer| answer.print(&mut out, input.name()))?;
                    out.flush()?;
                    return Ok(seen);
                }
                Read::Passed => return Ok(Seen::Nothing),
            };
            if let Some(done) = package.take_if(|done| input.package() != Some(done.name())) {
                done.print(&mut out)?;
                out.flush()?;
            }
            let Some(seen) = File::seen(&question, input, file.as_ref()) else {
                return Ok(Seen::Nothing);
            };
            complaints.iter().for_each(report::Complaint::report);
            let name = input.name();
            let Some(file) = file.filter(|file| !args.quiet && !file.units.is_empty()) else {
                return Ok(seen);
            };
            if printed && input.is_named() {
                show!(out)?;
            }
            printed = true;
            if input.is_named() {
                ls::heading(&mut out, name, &file.summary, file.thin_size)?;
                match (&args.gpus[..], &file.answers[..]) {
                    ([gpu], [answers]) => {
                        view::one_gpu(&mut out, &file.units, gpu, answers.answers())?;
                    }
                    (gpus, answers) => view::several_gpus(&mut out, &file.units, gpus, answers)?,
                }
            }
            for (gpu, answers) in file.asked(&question, input) {
                if let Some(name) = input.package() {
                    let package = package.get_or_insert_with(|| Package::new(name, &args.gpus));
                    package.add(gpu, input.name(), &file.units, answers);
                    hints.extend(view::hint(&file.units, gpu, answers.answers()));
                    continue;
                }
                let answers = answers.answers();
                view::conclusion(&mut out, name, &file.units, gpu, answers)?;
                hints.extend(view::hint(&file.units, gpu, answers));
            }
            // Keep what is printed and what is complained about in order on a shared terminal.
            out.flush()?;
            Ok(seen)
        },
    )?;
    if let Some(package) = package {
        package.print(&mut out)?;
        out.flush()?;
    }
    hints.sort();
    hints.dedup();
    for hint in hints {
        report::note(&hint);
    }
    Ok(looked.needing_code())
}

fn run_json(args: &Args) -> io::Result<Outcome> {
    let mut rows = Array::start()?;
    let question = args.question();
    let read = |file: &Input, threads| Read::of(&question, file, threads);
    let inputs = Inputs::find(&args.files).seeking("code for such GPUs");
    let looked = inputs.look(
        (&args.limits, Keep::Heads),
        args.threads,
        "matching",
        read,
        |input, read| {
            let (file, complaints) = match read {
                Read::File(file, complaints) => (file, complaints),
                Read::Split(_, answers) => {
                    for answer in &answers {
                        rows.row(&SplitRecord::new(input.name(), answer))?;
                    }
                    return Ok(Seen::faults(answers.iter().any(|answer| !answer.is_served())));
                }
                Read::Passed => return Ok(Seen::Nothing),
            };
            let Some(seen) = File::seen(&question, input, file.as_ref()) else {
                return Ok(Seen::Nothing);
            };
            complaints.iter().for_each(report::Complaint::report);
            let Some(file) = file else { return Ok(seen) };
            for (n, unit) in file.units.iter().enumerate() {
                for (gpu, answers) in args.gpus.iter().zip(&file.answers) {
                    let Some(answer) = answers.answers().get(n) else { continue };
                    rows.row(&Record::new(input.name(), unit, gpu, answer))?;
                }
            }
            Ok(seen)
        },
    )?;
    rows.end()?;
    Ok(looked.needing_code())
}

/// The result of reading a file.
enum Read {
    File(Option<File>, Vec<report::Complaint>),
    /// A library whose device code is in kernel packs, with an answer for each GPU of AMD's.
    Split(Arc<Host>, Vec<PackAnswer>),
    /// A kernel pack of such a library, which speaks for it.
    Passed,
}

impl Read {
    fn of(question: &Question<'_>, file: &Input, threads: Threads) -> Self {
        if file.is_pack_of_library() {
            return Read::Passed;
        }
        // Rests of device code may be left in a split library: no loader looks there.
        match file.split_host() {
            Some(host) => {
                let gpus = question.gpus.iter();
                let gpus = gpus.filter(|gpu| file.is_named() || gpu.vendor() == Vendor::Amd);
                let answers = gpus.map(|gpu| PackAnswer::of(&host, gpu)).collect();
                Read::Split(host, answers)
            }
            None => {
                let (found, complaints) = File::read(question, file, threads);
                Read::File(found, complaints)
            }
        }
    }
}

/// A file and what becomes of its units.
pub(crate) struct File {
    summary: Summary,
    thin_size: u64,
    errors: usize,
    pub(crate) units: Vec<Unit>,
    /// One for each GPU.
    answers: Vec<Selection>,
}

impl File {
    /// Walks a file; returns `None` if it could not be read, and all complaints.
    pub(crate) fn read(
        question: &Question<'_>,
        file: &Input,
        threads: Threads,
    ) -> (Option<File>, Vec<report::Complaint>) {
        let &Question { ref gpus, kinds, check, limits } = question;
        let name = file.name();
        let mut walk = Walk::new(file);
        // IDs decide, and they stand in the tables.
        let options = limits.options();
        let options = options.with_tables_only(!check).with_check_compressed(check);
        let walked = file.walk(limits, &options, threads, &mut walk);
        let mut complaints = std::mem::take(&mut walk.complaints);
        let error = |message| report::Complaint { severity: Severity::Error, message };
        let summary = match walked {
            Ok(summary) => summary,
            Err(reason) => {
                complaints.push(error(format!("{name}: {}", report::reason(&reason))));
                return (None, complaints);
            }
        };
        let (errors, thin_size) = (walk.errors, walk.thin_size);
        let mut units = walk.finish();
        units.retain(|unit| kinds.is_empty() || kinds.contains(&unit.runtime()));
        if units.is_empty() && errors == 0 {
            let why = match (summary.images, kinds) {
                (0, _) => report::no_images(&summary).unwrap_or_else(|error| error),
                (images, _) => format!("none of its {images} images is of the given kind"),
            };
            complaints.push(error(format!("{name}: {why}")));
        }
        let answers = gpus.iter().map(|gpu| device_select::select(&units, gpu)).collect();
        (Some(File { summary, thin_size, errors, units, answers }), complaints)
    }

    /// Returns what came of a file; `None` if nothing is worth a word.
    fn seen(question: &Question<'_>, input: &Input, file: Option<&File>) -> Option<Seen> {
        let Some(file) = file else { return Some(Seen::Faults) };
        let mut asked = file.asked(question, input).peekable();
        if !input.is_named() && file.errors == 0 && asked.peek().is_none() {
            return None;
        }
        Some(Seen::faults(!file.is_sound() || asked.any(|(_, answers)| !answers.is_served())))
    }

    /// Returns the GPUs that the file is to have code for, with the answers. Directories have files for GPUs of several
    /// vendors: each is only asked about GPUs of its own. LLVM bitcode there is a library for compilers.
    pub(crate) fn asked<'a>(
        &'a self,
        question: &'a Question<'_>,
        input: &'a Input,
    ) -> impl Iterator<Item = (&'a Device, &'a Selection)> {
        let is_pack = self.summary.format == FileFormat::Kpack;
        question.gpus.iter().zip(&self.answers).filter(move |(gpu, answers)| {
            let is_for = |unit: &Unit| unit.vendor().is_none_or(|vendor| vendor == gpu.vendor());
            let is_loaded = |unit: &Unit| {
                unit.candidates().iter().any(|image| image.format() != FileFormat::Bitcode)
            };
            input.is_named()
                || self.units.iter().any(|unit| is_for(unit) && is_loaded(unit))
                    && (!is_pack || answers.is_served())
        })
    }

    /// Returns whether something is wrong with its containers.
    pub(crate) fn is_damaged(&self) -> bool {
        self.errors > 0
    }

    /// Returns whether there is device code, and nothing is wrong with its containers.
    fn is_sound(&self) -> bool {
        !self.is_damaged() && !self.units.is_empty()
    }
}
