//! `offload verify`: structure, bounds, hashes and composition rules.

use std::io;
use std::path::PathBuf;

use tool_inputs::checks::{self, Sink};
use tool_inputs::limits::Limits;
use tool_kit::Outcome;
use tool_kit::document::{Document, FINDINGS, Shape};
use tool_kit::format::JudgeFormat;

/// Check structure, bounds, hashes and rules of composition
///
/// Compressed bundles are decompressed and compared with their hashes. Prints one line for each finding, or one
/// line for a valid file. Packages (wheels, zip, tar, deb, conda, RPM) are compared with their checksums and records as
/// well: CRC-32, RECORD, md5sums, paths.json, names of blobs. Exits with 1 if there is a finding or a file cannot be
/// checked: other compressed files, unknown formats and empty standard input are errors. Objects, libraries, linker
/// scripts and empty files without device code are valid, unless --require-images is given.
///
/// Device code in container images is checked in the files that a container sees. All digests of an image are compared.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files to check, or directories; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Fail if a file has no device images
    #[arg(long)]
    require_images: bool,
    #[command(flatten)]
    format: JudgeFormat,
    #[command(flatten)]
    limits: Limits,
}

const SHAPE: Shape = Shape::new("verify", "findings", FINDINGS);

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let mut document = Document::start(args.format.get(), &SHAPE)?;
    let mut sink = Sink::printing(&mut document, args.format.is_quiet());
    let looked = checks::check(&args.files, args.require_images, &args.limits, &mut sink)?;
    sink.end()?;
    let outcome = document.looked(looked, args.require_images)?;
    document.end(outcome)
}
