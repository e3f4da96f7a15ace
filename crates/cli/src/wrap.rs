//! `offload wrap`: wraps device images in code that registers them.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use target_id::is_known_processor;
use target_id::near::{self, did_you_mean, nearest};
use wrapper_ir::{Abi, OffloadKind};

use drop_ins::fatbinary;
use drop_ins::wrapper::{Emit, Request, host_triple, kind_named, kind_names};
use tool_kit::opened::MaxInput;
use tool_kit::{Outcome, report};

/// Wrap device images in a module that registers them at run time
///
/// The module is linked with the host objects of the program. --abi must match the compiler that made them: a
/// mismatch links without error, but no kernel is found at run time.
#[derive(Debug, clap::Args)]
#[command(override_usage = "offload wrap [OPTIONS] --kind <KIND> --output <FILE> <IMAGE>...")]
pub(crate) struct Args {
    /// Set the programming model: openmp, cuda, hip or sycl
    #[arg(long)]
    kind: String,
    /// Set the ABI: aomp, 18, 19, 22, current (LLVM 21 to 23) or 24
    #[arg(long, default_value_t = Abi::Current.to_string())]
    abi: String,
    /// Write LLVM IR (ll), bitcode (bc) or an object (obj) [default: by extension, else bc]
    ///
    /// The default is ll for FILE.ll, obj for FILE.o and FILE.obj.
    #[arg(long, value_name = "FORM", value_parser = ["ll", "bc", "obj"])]
    emit: Option<String>,
    /// Set the target triple of the host [default: this machine's]
    #[arg(long)]
    triple: Option<String>,
    /// Set the target of each image, in order (--abi aomp)
    #[arg(long, value_name = "TARGET-ID")]
    offload_arch: Vec<String>,
    /// Place OpenMP images in a section that later device links ignore
    #[arg(long)]
    relocatable: bool,
    /// Print the arguments that cc or rustc needs to link the module, one per line
    ///
    /// Without them, ld.lld --gc-sections, Rust's default on x86-64 Linux, drops the entries that clang makes, as
    /// it needs -z nostart-stop-gc.
    #[arg(long)]
    print_link_args: bool,
    #[command(flatten)]
    max_input: MaxInput,
    /// Write the module to FILE; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Device images; - is standard input
    ///
    /// For CUDA also sm_90=CUBIN, compute_90=PTX and lto_90=LTO-IR.
    #[arg(value_name = "IMAGE")]
    images: Vec<PathBuf>,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    for id in &args.offload_arch {
        let near = near::target_ids(id);
        let name = near::processor(id);
        if !near.is_empty() && !is_known_processor(name) {
            report::warning(&format_args!("unknown processor {name}{}", did_you_mean(&near)));
        }
    }
    // Unknown names end as invalid images do, as with the drop-in tools.
    let kind = kind_named(&args.kind)
        .map_err(|error| unknown(&error, &args.kind, &kind_names().collect::<Vec<_>>()))?;
    let triple = args.triple.clone().unwrap_or_else(host_triple);
    let made = match kind {
        OffloadKind::CUDA => fatbinary::to_wrap(&args.images, &triple, args.max_input)?,
        _ => None,
    };
    let request = Request {
        kind,
        abi: Abi::from_name(&args.abi)
            .map_err(|error| unknown(&error, &args.abi, &Abi::ALL.map(Abi::name)))?,
        triple,
        relocatable: args.relocatable,
        retain: false,
        as_llvm: false,
        images: args.images.clone(),
        made,
        target_ids: args.offload_arch.clone(),
        max_input: args.max_input,
    };
    if args.print_link_args {
        check_output(&args.output)?;
    }
    let mut wrapped = request.wrap()?;
    wrapped.write(Emit::of(args.emit.as_deref(), &args.output), &args.output)?;
    if args.print_link_args {
        print_link_args(wrapped.link_args())?;
    }
    Ok(Outcome::Clean)
}

/// Fails if standard output, where the arguments of a link are printed, holds the output.
pub(crate) fn check_output(output: &Path) -> io::Result<()> {
    if output.as_os_str() == "-" {
        return Err(io::Error::other(
            "--print-link-args: standard output holds the object: expected -o FILE",
        ));
    }
    Ok(())
}

/// Prints the arguments of a link, one in a line.
pub(crate) fn print_link_args(arguments: &[&str]) -> io::Result<()> {
    let lines = arguments.iter().map(|argument| format!("{argument}\n"));
    io::stdout().write_all(lines.collect::<String>().as_bytes())
}

fn unknown(error: &dyn fmt::Display, typed: &str, names: &[&str]) -> io::Error {
    let near = match typed.parse() {
        // Generations go by releases of LLVM.
        Ok(13..=17) => vec!["aomp"],
        Ok(21..=23) => vec!["current"],
        _ => nearest(typed, names.iter().copied()),
    };
    io::Error::other(format!("{error}{}", did_you_mean(&near)))
}
