//! `offload match`: which image each container gives a GPU, and why not the others.

mod printer;
mod together;
mod view;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use device_select::{
    Device, FileSet, PtxJit, Runtime, Selection, Software, Support, Vendor, Version,
};
use fat_object::{FileFormat, Summary};

use crate::packs::answer::Answer as PackAnswer;
use crate::suggest;
pub(crate) use printer::{Printer, Style};
pub(crate) use together::Matcher;
use together::{PackFile, Together};
use tool_inputs::complaint::{Complaint, violation};
use tool_inputs::inputs::{Input, Inputs, nothing};
use tool_inputs::limits::Limits;
use tool_inputs::native::Installed;
use tool_inputs::package::HEADS;
use tool_inputs::split_library::Host;
use tool_inputs::units::{FileUnits, Walk};
use tool_inputs::variants;
use tool_kit::arguments::usage;
use tool_kit::document::{Document, Shape};
use tool_kit::format::JudgeFormat;
use tool_kit::looked::{Looked, Seen};
use tool_kit::parallel::Threads;
use tool_kit::{Outcome, report};

/// Show which image a GPU loads, and why not the others
///
/// A runtime chooses one image from each container: a bundle, a fatbinary, or all offload binaries of a section. A
/// library has one container for each source file and needs code in every container that holds kernels. CUDA loads a
/// container when one of its kernels is asked for, and a library may choose kernels by GPU: where some containers have
/// code for the GPU and others do not, the answer is `partly`. Exits with 1 if the answer is no, or if a file has no
/// device code.
///
/// Kernel databases have files for each GPU (rocblas/library, kernel packs), and one that is for the GPU is enough. Builds
/// for several versions of CUDA or ROCm (libfoo_cuda118.so, libfoo_cuda128.so) are one question.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Match these GPUs, separated by commas. Repeatable
    ///
    /// A GPU is a target ID (gfx90a:xnack+, sm_86), a name (RX 7600), a PCI ID (10de:2684), the output of rocminfo,
    /// a bundle entry ID, or `native`: the GPUs of this machine, as `offload gpus --native` lists them.
    ///
    /// Without this option, match the GPUs of this machine.
    #[arg(long = "gpu", required = true, value_name = "TARGET-ID", value_delimiter = ',', value_parser = suggest::gpu)]
    gpus: Vec<Device>,
    /// Files to read, or directories; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Show only containers of this kind. Repeatable
    #[arg(long = "kind", value_name = "KIND", value_parser = runtime())]
    kinds: Vec<Runtime>,
    /// Answer as if CUDA_FORCE_PTX_JIT or CUDA_DISABLE_PTX_JIT were set
    ///
    /// force: cubins are ignored (CUDA_FORCE_PTX_JIT=1). disable: PTX is not compiled (CUDA_DISABLE_PTX_JIT=1).
    #[arg(long, value_name = "HOW", overrides_with = "ptx_jit", value_parser = ptx_jit())]
    ptx_jit: Option<PtxJit>,
    /// Ignore code that needs a later NVIDIA driver than this, such as 550
    ///
    /// The version of PTX and the compression of fatbinaries decide. `native` is the driver of this machine.
    #[arg(long, value_name = "VERSION", overrides_with = "driver")]
    driver: Option<Installed>,
    /// Ignore code that needs a later ROCm than this, such as 6.3
    ///
    /// The versions of code objects and of compressed bundles decide. `native` is the version in /opt/rocm.
    #[arg(long, value_name = "VERSION", overrides_with = "rocm")]
    rocm: Option<Installed>,
    /// Decompress everything and compare each image with the name of its entry
    ///
    /// Entries of bundles, offload binaries and fatbinaries name the GPU of an image, and runtimes choose by that name.
    /// No runtime loads an image for a GPU other than the one named. Without this option only uncompressed images are
    /// compared.
    #[arg(long)]
    check: bool,
    /// Exit with 1 also if only some containers have code for a GPU
    ///
    /// CUDA programs may choose kernels by GPU, and such a file has code for each GPU in some containers only.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    format: JudgeFormat,
    #[command(flatten)]
    limits: Limits,
}

const SHAPE: Shape =
    Shape::new("match", "answers", "file path runtime gpu result condition counted served note");

/// A question about files.
pub(crate) struct Question<'a> {
    pub(crate) gpus: Vec<Device>,
    /// Only containers of these kinds; of all kinds if there are none.
    pub(crate) kinds: &'a [Runtime],
    /// `true` if images are compared with the names of their entries.
    pub(crate) check: bool,
    /// `true` if some of the code is not enough.
    pub(crate) is_strict: bool,
    pub(crate) limits: &'a Limits,
}

impl Question<'_> {
    /// Returns whether an answer is one for exit status 1.
    fn fails(&self, support: Support) -> bool {
        match support {
            Support::Yes => false,
            Support::Partly => self.is_strict,
            Support::Unknown | Support::No => true,
        }
    }
}

impl Args {
    /// Returns the versions of the software that loads code.
    fn installed(&self) -> Vec<(Software, Version)> {
        let asked = [(Software::Driver, &self.driver), (Software::Rocm, &self.rocm)];
        let asked = asked.into_iter().filter_map(|(software, of)| Some((software, of.as_ref()?)));
        asked
            .map(|(software, of)| {
                (software, of.version(software).unwrap_or_else(|fault| usage(&fault)))
            })
            .collect()
    }

    fn question(&self) -> Question<'_> {
        let ptx_jit = self.ptx_jit.unwrap_or(PtxJit::Needed);
        let installed = self.installed();
        let gpu = |gpu: &Device| {
            let gpu = gpu.clone().with_ptx_jit(ptx_jit);
            installed
                .iter()
                .fold(gpu, |gpu, &(software, version)| gpu.with_installed(software, version))
        };
        Question {
            gpus: self.gpus.iter().map(gpu).collect(),
            kinds: &self.kinds,
            // The needs of code stand in it, often compressed.
            check: self.check || self.driver.is_some() || self.rocm.is_some(),
            is_strict: self.strict,
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

/// Reads a setting of the CUDA driver.
fn ptx_jit() -> impl TypedValueParser<Value = PtxJit> {
    let how = PossibleValuesParser::new(["force", "disable"]);
    how.map(|how| if how == "force" { PtxJit::Forced } else { PtxJit::Disabled })
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    for doubt in args.gpus.iter().filter_map(Device::doubt) {
        report::warning(&doubt);
    }
    let question = args.question();
    let mut document = Document::start(args.format.get(), &SHAPE)?;
    let style =
        if args.format.is_quiet() || !document.is_text() { Style::Quiet } else { Style::Text };
    if style == Style::Text {
        suggest::explain(&args.gpus);
    }
    let printer = Printer::new(&question, style, &mut document);
    let (looked, fails) = answer(&question, &args.files, printer)?;
    for one in variants::distributions_in(&args.files) {
        for one in variants::judge_installed(&one, &question.gpus, None).into_iter().map(violation)
        {
            if style == Style::Text {
                report::warning(&format_args!("{}: {}", one.file, one.message));
            }
            document.finding(one)?;
        }
    }
    let outcome = document.looked(looked, true)?;
    document.end(if fails { Outcome::Faults } else { outcome })
}

/// Answers a question about files. Returns the look, and whether an answer is one for exit status 1.
pub(crate) fn answer(
    question: &Question<'_>,
    files: &[PathBuf],
    printer: Printer<'_>,
) -> io::Result<(Looked, bool)> {
    let inputs = Inputs::find(files).seeking(SOUGHT);
    let mut matcher = Matcher::new(question, &inputs, printer);
    let read = |file: &Input, threads| {
        Read::of(question, file, |file| {
            Walk::through(file, (question.check, question.limits), threads)
        })
    };
    let looked = inputs.look((question.limits, HEADS), "matching", read, |input, read| {
        matcher.take(input, read)
    })?;
    let fails = matcher.end()?;
    Ok((looked, fails))
}

/// The words for what is looked for.
pub(crate) const SOUGHT: &str = "code for these GPUs";

/// The result of reading a file.
pub(crate) enum Read {
    File(Option<File>, Vec<Complaint>),
    /// A library whose device code is in kernel packs, with an answer for each GPU of AMD's.
    Split(Arc<Host>, Vec<PackAnswer>),
    /// A kernel pack of such a library, which speaks for it.
    Passed,
    /// Such a library in a package.
    Member(Arc<Host>),
    /// A kernel pack in a package.
    Pack(Box<PackFile>),
}

impl Read {
    /// Reads a file; `walked` walks through it, if that is needed.
    pub(crate) fn of<'f>(
        question: &Question<'_>,
        file: &'f Input,
        walked: impl FnOnce(&'f Input) -> (Walk<'f>, io::Result<Summary>),
    ) -> Self {
        if file.is_pack_of_library() {
            return Read::Passed;
        }
        // Rests of device code may be left in a split library: no loader looks there.
        match file.split_host() {
            Some(host) if file.is_in_package() => Read::Member(host),
            Some(host) => {
                let gpus = question.gpus.iter();
                let gpus = gpus.filter(|gpu| file.is_named() || gpu.vendor() == Vendor::Amd);
                let answers = gpus.map(|gpu| host.answer(gpu)).collect();
                Read::Split(host, answers)
            }
            None => {
                let (found, complaints) = File::of(question, file, walked(file));
                match found {
                    Some(found) if found.is_pack_in(file) => {
                        match file.pack_table(question.limits.max_input) {
                            Some((path, toc)) => {
                                let mut input = file.clone();
                                input.take_bytes();
                                Read::Pack(Box::new(PackFile { input, file: found, toc, path }))
                            }
                            None => Read::File(Some(found), complaints),
                        }
                    }
                    found => Read::File(found, complaints),
                }
            }
        }
    }
}

/// A file and what becomes of its units.
pub(crate) struct File {
    read: FileUnits,
    /// One for each GPU.
    answers: Vec<Selection>,
}

impl File {
    /// Walks a file; returns `None` if it could not be read, and all complaints.
    pub(crate) fn read(
        question: &Question<'_>,
        file: &Input,
        threads: Threads,
    ) -> (Option<File>, Vec<Complaint>) {
        File::of(question, file, Walk::through(file, (question.check, question.limits), threads))
    }

    /// Completes what a walk found.
    fn of(
        question: &Question<'_>,
        file: &Input,
        walked: (Walk<'_>, io::Result<Summary>),
    ) -> (Option<File>, Vec<Complaint>) {
        let (read, complaints) = FileUnits::of(file, (question.kinds, question.limits), walked);
        let file = read.map(|read| {
            let gpus = question.gpus.iter();
            let answers = gpus.map(|gpu| device_select::select(&read.units, gpu)).collect();
            File { read, answers }
        });
        (file, complaints)
    }

    /// Returns what came of a file; an error if nothing is worth a word.
    fn seen(together: &Together<'_>, input: &Input, file: Option<&File>) -> Result<Seen, Seen> {
        let question = together.question;
        let Some(file) = file else { return Ok(Seen::Faults) };
        let mut asked = file.asked(question, input).map(|(_, answers)| answers).peekable();
        if !input.is_named() && !file.is_damaged() && asked.peek().is_none() {
            return Err(nothing(&file.read.summary));
        }
        let fails = |answers: &Selection| question.fails(answers.support());
        let is_alone = !together.is_about(input);
        Ok(Seen::faults(!file.is_sound() || is_alone && asked.any(fails)))
    }

    /// Adds it to others, under a name.
    pub(crate) fn add_to(
        &self,
        set: &mut FileSet,
        name: &str,
        question: &Question<'_>,
        input: &Input,
    ) {
        set.add(name, &self.read.units, self.asked(question, input));
    }

    /// Returns the numbers of the GPUs that the file is to have code for, with the answers. Directories have files for GPUs of several
    /// vendors: each is only asked about GPUs of its own. LLVM bitcode there is a library for compilers.
    fn asked<'a>(
        &'a self,
        question: &'a Question<'_>,
        input: &'a Input,
    ) -> impl Iterator<Item = (usize, &'a Selection)> {
        let is_pack = self.read.summary.format == FileFormat::Kpack;
        let gpus = question.gpus.iter().zip(&self.answers).enumerate();
        let asked = gpus.filter(move |(_, (gpu, answers))| {
            input.is_named()
                || answers.concerns(&self.read.units, gpu)
                    && (!is_pack
                        || input.package().is_some()
                        || answers.support() < Support::Unknown)
        });
        asked.map(|(n, (_, answers))| (n, answers))
    }

    /// Returns whether it is a kernel pack in a package, and in order.
    fn is_pack_in(&self, input: &Input) -> bool {
        let is_pack = self.read.summary.format == FileFormat::Kpack;
        is_pack && input.is_in_package() && !input.is_named() && !self.is_damaged()
    }

    /// Returns whether something is wrong with its containers.
    pub(crate) fn is_damaged(&self) -> bool {
        self.read.is_damaged()
    }

    /// Returns whether there is device code, and nothing is wrong with its containers.
    fn is_sound(&self) -> bool {
        !self.is_damaged() && !self.read.units.is_empty()
    }
}
