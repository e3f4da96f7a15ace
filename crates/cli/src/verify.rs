//! `offload verify`: structure, bounds, hashes and composition rules.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fat_object::{
    Container, ContainerKind, Finding, Image, ImageFormat, ReadSeek, Segment, Visitor,
};

use crate::parallel::{self, Threads};
use crate::{Outcome, input, report, style};

/// Check structure, bounds, hashes and rules of composition
///
/// Compressed bundles are decompressed and compared with their hashes. Prints one line for each finding, or one line
/// for a sound file. Exits with 1 when there is a finding, or when a file cannot be checked: packages (wheels, deb, RPM,
/// tar), compressed files and unknown formats are errors. Objects, libraries and linker scripts without device code
/// are sound.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  offload verify libfoo.so
      one line for each thing that is wrong, or \"ok\"
  offload verify *.so *.a && echo all well
      for build scripts
  cat kernels.ccob | offload verify -
      decompress, and compare with the hash")]
pub(crate) struct Args {
    /// Files to check; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    limits: input::Limits,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let mut out = style::plain_stdout();
    let mut outcome = Outcome::Clean;
    let (files, threads) = args.threads.for_files(&args.files);
    let check = |path: &PathBuf| {
        let mut findings = Findings::default();
        let mut visitor = Checker { path, findings: &mut findings };
        let result = input::walk(path, &args.limits.options(), threads, &mut visitor);
        (result, findings)
    };
    parallel::in_order(files, &args.files, check, |path, (result, visitor)| {
        let file = input::display(path);
        let shown = style::printable(&file);
        for finding in &visitor.findings {
            writeln!(out, "{shown}: {}", style::printable(finding))?;
        }
        let containers = visitor.containers;
        match result {
            Ok(summary) if summary.findings > 0 => outcome = Outcome::Faults,
            Ok(summary) if summary.images == 0 => match report::no_images(&summary) {
                Ok(_) => writeln!(out, "{shown}: ok, {}", nothing(summary.format))?,
                Err(why) => {
                    out.flush()?;
                    report::error(&format_args!("{file}: {why}"));
                    outcome = Outcome::Faults;
                }
            },
            Ok(summary) => {
                let images = count(summary.images, "image");
                match containers {
                    0 => writeln!(out, "{shown}: ok, {images}")?,
                    n => writeln!(out, "{shown}: ok, {images} in {}", count(n, "container"))?,
                }
            }
            Err(error) => {
                out.flush()?;
                report::error(&format_args!("{file}: {}", report::reason(&error)));
                outcome = Outcome::Faults;
            }
        }
        io::Result::Ok(())
    })?;
    out.flush()?;
    Ok(outcome)
}

/// What there is in a file that holds no images.
fn nothing(format: ImageFormat) -> String {
    match format {
        ImageFormat::SpirV | ImageFormat::Ptx | ImageFormat::Cubin => {
            format!("a bare image ({format}), in no container")
        }
        ImageFormat::LinkerScript => "no device code (linker script)".to_owned(),
        _ => "no device code".to_owned(),
    }
}

fn count(n: usize, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}

#[derive(Default)]
struct Findings {
    findings: Vec<String>,
    containers: usize,
}

struct Checker<'a> {
    path: &'a Path,
    findings: &'a mut Findings,
}

impl Visitor for Checker<'_> {
    fn enter(&mut self, container: &Container<'_>) -> io::Result<()> {
        use ContainerKind::{Bundle, Ccob, NvFatbin, OffloadBinary};
        // A compressed bundle and the bundle in it are one thing for its reader.
        let around = container.path().iter().rev().nth(1).map(Segment::kind);
        let counts = matches!(container.kind(), Bundle | Ccob | NvFatbin | OffloadBinary);
        if counts && around != Some(Ccob) {
            self.findings.containers += 1;
        }
        Ok(())
    }

    fn image(&mut self, _: &mut Image<'_, '_>) -> io::Result<()> {
        Ok(())
    }

    fn finding(&mut self, finding: &Finding<'_>) -> io::Result<()> {
        self.findings.findings.push(finding.to_string());
        Ok(())
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        input::open_thin_member(self.path, name)
    }
}
