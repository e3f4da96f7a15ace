//! `offload match`: which image each container gives a GPU, and why not the others.

mod printer;
mod view;

use std::io;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use device_select::{Device, PtxJit, Runtime, Software, Version};

use crate::suggest;
pub(crate) use printer::{Printer, Style};
use tool_answers::matching::{self, Question};
use tool_inputs::inputs::Inputs;
use tool_inputs::limits::Limits;
use tool_inputs::native::Installed;
use tool_inputs::online::Network;
use tool_kit::arguments::usage;
use tool_kit::document::{Document, Shape};
use tool_kit::finding::Level;
use tool_kit::format::JudgeFormat;
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
///
/// Each container image of an OCI layout, an OCI archive or an archive of `docker save` is answered as the files that a container sees:
/// files that a higher layer replaces or removes do not count.
#[derive(Debug, clap::Args)]
#[command(override_usage = "offload match [OPTIONS] <FILE>...")]
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
    #[command(flatten)]
    network: Network,
}

const SHAPE: Shape =
    Shape::new("match", "answers", "file path runtime gpu result condition counted served note");

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
            // The needs of code are in the code itself, often compressed.
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
    let style = if args.format.has_notes() { Style::Text } else { Style::Quiet };
    suggest::explain(&args.gpus, args.format.has_notes());
    let printer = Printer::new(&question, style, &mut document);
    let inputs = matching::prepared(Inputs::find_online(&args.files, args.network), &question.gpus);
    let (looked, fails, printer) = matching::answer(&question, &inputs, printer)?;
    printer.end()?;
    let mut has_errors = false;
    for one in matching::declared(&args.files, &inputs, &question.gpus) {
        let name = if one.file.is_empty() { String::new() } else { format!("{}: ", one.file) };
        let text = format!("{name}{}", one.message);
        if one.level == Level::Error {
            has_errors = true;
            report::error(&text);
        } else if style == Style::Text {
            report::warning(&text);
        }
        document.finding(one)?;
    }
    let outcome = document.looked(looked, true)?;
    document.end(if fails || has_errors { Outcome::Faults } else { outcome })
}
