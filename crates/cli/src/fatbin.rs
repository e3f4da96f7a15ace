//! `offload fatbin`: cubins, PTX and LTO-IR into an NVIDIA fatbinary.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use nv_fatbin::{CompressionMode, Flags};

use drop_ins::fatbinary::{Image, Options, host, make};
use tool_kit::opened::MaxInput;
use tool_kit::output::Outputs;
use tool_kit::style::show;
use tool_kit::{Outcome, input, standard, style};

/// Pack cubins, PTX and LTO-IR into an NVIDIA fatbinary
///
/// NVIDIA's fatbinary of CUDA 13 writes the same bytes, except LTO-IR, which is not scrambled here.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write the fatbinary to FILE; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Add a file: sm_90=CUBIN, compute_90=PTX, lto_90=LTO-IR, PTX or a fatbinary
    ///
    /// Entries of a fatbinary stay as they are, and come first.
    #[arg(long = "image", value_name = "[ARCH=]FILE", required = true)]
    images: Vec<OsString>,
    /// Compress: default (zstd 5), size (zstd 19), speed (LZ4) or none
    ///
    /// `default` and `speed` leave cubins as they are, except with --compress-all, --debug and --relocatable.
    #[arg(long, default_value = "default", value_parser = mode(), hide_possible_values = true)]
    mode: CompressionMode,
    /// Compress cubins in every mode but none
    #[arg(long)]
    compress_all: bool,
    /// Compress images of a kind as one, which makes the fatbinary smaller
    ///
    /// CUDA 13.5 and later read it.
    #[arg(long)]
    concat: bool,
    /// Mark the code as having debug information
    #[arg(short = 'g', long)]
    debug: bool,
    /// Pack relocatable code (nvcc -dc)
    #[arg(short = 'c', long)]
    relocatable: bool,
    /// Set the identifier of the entries
    #[arg(long, value_name = "NAME")]
    ident: Option<String>,
    /// Store options of ptxas with PTX
    #[arg(
        long,
        value_name = "OPTIONS",
        default_value = "",
        allow_hyphen_values = true,
        hide_default_value = true
    )]
    ptx_options: String,
    /// Store options of the compiler with LTO-IR
    #[arg(
        long,
        value_name = "OPTIONS",
        default_value = "",
        allow_hyphen_values = true,
        hide_default_value = true
    )]
    lto_options: String,
    /// Set the system of the host: linux, macos or windows [default: this one]
    #[arg(long, value_parser = system(), hide_possible_values = true)]
    host: Option<Flags>,
    #[command(flatten)]
    max_input: MaxInput,
}

/// Reads a mode of compression.
fn mode() -> impl TypedValueParser<Value = CompressionMode> {
    let default = PossibleValue::new("default").alias("balance");
    let others = ["size", "speed", "none"].map(PossibleValue::new);
    PossibleValuesParser::new([default].into_iter().chain(others)).map(|name| match &*name {
        "size" => CompressionMode::Size,
        "speed" => CompressionMode::Speed,
        "none" => CompressionMode::None,
        _ => CompressionMode::Default,
    })
}

/// Reads the system of a host.
fn system() -> impl TypedValueParser<Value = Flags> {
    PossibleValuesParser::new(["linux", "macos", "windows"]).map(|name| match &*name {
        "linux" => Flags::LINUX,
        "macos" => Flags::MACOS,
        _ => Flags::WINDOWS,
    })
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    if args.concat && args.mode == CompressionMode::None {
        return Err(io::Error::other(
            "--concat needs compression: expected another --mode than none",
        ));
    }
    let mut flags = args.host.unwrap_or_else(host);
    flags.set(Flags::DEBUG, args.debug);
    let options = Options {
        mode: args.mode,
        compress_all: args.compress_all || args.relocatable,
        concatenate: args.concat,
        identifier: args.ident.clone().map(String::into_bytes),
        ptx_options: args.ptx_options.clone().into_bytes(),
        lto_options: args.lto_options.clone().into_bytes(),
        ..Options::new(flags)
    };
    let images = args.images.iter().map(|image| Image::parse(&input::bytes(image.clone())));
    let images = images.collect::<io::Result<Vec<_>>>()?;
    let made = make(&images, &options, args.max_input)?;
    if args.output == Path::new("-") {
        standard::output()?.write_all(&made.bytes)?;
        return Ok(Outcome::Clean);
    }
    let mut outputs = Outputs::default();
    outputs.write_or_print(&args.output, made.permissions, |file| file.write_all(&made.bytes))?;
    outputs.commit()?;
    let mut out = style::stdout();
    for (name, stored, size) in &made.entries {
        let (stored, size) = (style::size(*stored), style::size(*size));
        let of = if stored == size { String::new() } else { format!(" of {size}") };
        show!(out, "{name}  {stored}{of}")?;
    }
    let count = made.entries.len();
    let plural = if count == 1 { "entry" } else { "entries" };
    let size = style::size(made.bytes.len() as u64);
    show!(out, "{}  {size}  {count} {plural}", args.output.display())?;
    out.flush().map(|()| Outcome::Clean)
}
