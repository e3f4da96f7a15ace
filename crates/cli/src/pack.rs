//! `offload pack`: device images into an offload binary.

use std::io;
use std::path::{Path, PathBuf};

use ccob::{Method, WriteOptions};
use offload_binary::FormatVersion;
use offload_binary::llvm::Release;
use target_id::may_be_processor;
use target_id::near::{self, did_you_mean, nearest};

use drop_ins::packager::{ImageSpec, Package};
use tool_kit::opened::MaxInput;
use tool_kit::output::Outputs;
use tool_kit::parallel::Threads;
use tool_kit::style::show;
use tool_kit::{Outcome, input, report, standard, style};

/// Pack device images into an offload binary, which clang can embed
///
/// Each IMAGE describes an image and names its file. Linkers read kind, triple and arch; other keys are stored
/// unchanged. Images are copied, not interpreted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write the offload binary to FILE; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Write this version of the format: 1, 2 or 3 [default: 1, with --compress 3]
    ///
    /// Every release of LLVM reads version 1; LLVM 23 and later read version 2; LLVM 24 reads version 3.
    #[arg(long, value_name = "N", value_parser = ["1", "2", "3"])]
    format_version: Option<String>,
    /// Compress the offload binary (version 3 only)
    #[arg(long)]
    compress: bool,
    /// Compress with METHOD: zstd (default) or zlib
    #[arg(long, value_name = "METHOD", value_parser = ["zstd", "zlib"], hide_possible_values = true, requires = "compress")]
    method: Option<String>,
    /// Set the compression level: zstd up to 22 (default 5), zlib 0 to 9 (default 6)
    ///
    /// Negative levels of zstd are faster.
    #[arg(long, value_name = "N", allow_negative_numbers = true, requires = "compress")]
    level: Option<i32>,
    #[command(flatten)]
    max_input: MaxInput,
    /// Image, as KEY=VALUE,...: kind (openmp, cuda, hip, sycl), triple, arch, file
    #[arg(required = true, value_name = "IMAGE")]
    images: Vec<std::ffi::OsString>,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let specs: Vec<ImageSpec> =
        args.images.iter().map(|image| ImageSpec::parse(&input::bytes(image.clone()))).collect();
    let mut refused = false;
    for spec in &specs {
        let text = spec.text();
        if !text.contains('=') {
            report::error(&format_args!(
                "'{text}': expected KEY=VALUE,...: file={text},triple=amdgcn-amd-amdhsa,arch=gfx1100,kind=hip"
            ));
            refused = true;
            continue;
        }
        if let Err(kind) = spec.kind() {
            let near = did_you_mean(&nearest(&kind, ["openmp", "cuda", "hip", "sycl"]));
            report::error(&format_args!(
                "'{text}': unknown offload kind: expected openmp, cuda, hip, sycl or none, found '{kind}'{near}"
            ));
            refused = true;
        }
        if spec.get("file").is_none_or(<[u8]>::is_empty) {
            report::error(&format_args!("'{text}': no file: expected file=NAME"));
            refused = true;
        }
        if let Some((key, _)) = spec.pairs().find(|(key, value)| key.is_empty() || value.is_empty())
        {
            let key = String::from_utf8_lossy(key);
            report::error(&format_args!("'{text}': key '{key}' has no name or no value"));
            refused = true;
        }
        for doubt in doubts(spec) {
            report::warning(&format_args!("'{text}': {doubt}"));
        }
        if spec.get("triple").is_none() {
            report::warning(&format_args!("'{text}': no triple: linkers may not find the image"));
        }
    }
    if refused {
        return Ok(Outcome::Faults);
    }
    let version = match args.format_version.as_deref() {
        Some("1") => FormatVersion::V1,
        Some("2") => FormatVersion::V2,
        None if !args.compress => FormatVersion::V1,
        _ => FormatVersion::V3,
    };
    let mut package = Package::new(&specs, version, Release::Llvm23, args.max_input)?;
    if args.compress {
        let method = args.method.as_deref().and_then(Method::from_name).unwrap_or(Method::ZSTD);
        let how = WriteOptions::default().with_method(method).with_level(args.level);
        package.compress(&how.with_threads(Threads::default().number()))?;
    }
    if args.output == Path::new("-") {
        package.write_to(&mut standard::output()?)?;
        return Ok(Outcome::Clean);
    }
    let mut outputs = Outputs::default();
    let how = package.permissions();
    outputs.write_or_print(&args.output, how, |file| package.write_to(file))?;
    outputs.commit()?;
    let mut out = style::stdout();
    for (file, size) in package.images() {
        show!(out, "{}  {}", input::display(file), style::size(size))?;
    }
    let images = package.images().len();
    let plural = if images == 1 { "" } else { "s" };
    let (file, size) = (args.output.display().to_string(), style::size(package.size()));
    let how = if args.compress { ", compressed" } else { "" };
    show!(out, "{file}  {size}  {images} image{plural}, format version {version}{how}")?;
    out.flush().map(|()| Outcome::Clean)
}

/// Returns warnings about values that look mistyped.
fn doubts(spec: &ImageSpec) -> Vec<String> {
    const KEYS: [&str; 4] = ["kind", "triple", "arch", "file"];
    let mut doubts = Vec::new();
    for key in spec.keys() {
        let key = String::from_utf8_lossy(key);
        let near = nearest(&key, KEYS);
        if !near.is_empty() && !KEYS.contains(&&*key) {
            doubts.push(format!("key '{key}' has no meaning here{}", did_you_mean(&near)));
        }
    }
    let text = |key| spec.get(key).map(String::from_utf8_lossy);
    if let Some((typed, near)) = text("triple").and_then(|t| near::triple(&t).map(|n| (t, n))) {
        doubts.push(format!("triple '{typed}' is taken as it is; did you mean {near}?"));
    }
    if let Some(typed) = text("arch") {
        let near = near::target_ids(&typed);
        let name = near::processor(&typed);
        if !near.is_empty() && !may_be_processor(name) {
            doubts.push(format!("unknown processor {name}{}", did_you_mean(&near)));
        }
    }
    doubts
}
