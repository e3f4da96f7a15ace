//! `offload verify`: structure, bounds, hashes and composition rules.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use device_select::PackSet;
use fat_edit::Registrable;
use fat_object::{
    Container, ContainerKind, FileFormat, Finding, Image, PathStep, Summary, Visitor,
};
use gpu_packages::Verified;
use kpack::Toc;

use tool_inputs::headings::Headings;
use tool_inputs::inputs::{Input, Inputs};
use tool_inputs::limits::Limits;
use tool_inputs::package::HEADS;
use tool_inputs::split_library::{Host, without_features};
use tool_kit::looked::Seen;
use tool_kit::style::{Out, count, show};
use tool_kit::{Outcome, report, style};

/// Check structure, bounds, hashes and rules of composition
///
/// Compressed bundles are decompressed and compared with their hashes. Prints one line for each finding, or one
/// line for a valid file. Packages (wheels, zip, tar, deb, conda, RPM) are compared with their checksums and records as
/// well: CRC-32, RECORD, md5sums, paths.json, names of blobs. Exits with 1 if there is a finding or a file cannot be
/// checked: other compressed files, unknown formats and empty standard input are errors. Objects, libraries, linker
/// scripts and empty files without device code are valid, unless --require-images is given.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files to check, or directories; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Fail if a file has no device images
    #[arg(long)]
    require_images: bool,
    #[command(flatten)]
    limits: Limits,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let mut out = style::stdout();
    let check = |file: &Input, threads| {
        if file.verified().is_some() {
            return None;
        }
        let mut findings = Findings::default();
        let options = args.limits.options().with_check_compressed(true);
        let result = file.walk(&args.limits, &options, threads, &mut findings);
        let result = result.and_then(|summary| {
            let registrable = std::mem::take(&mut findings.registrable);
            let registration = file.with_reader(args.limits.max_input, |reader| {
                registrable.registration(summary.format, reader)
            })?;
            findings.host = file.split_host();
            findings.is_member = file.is_in_package();
            let faults = registration.faults();
            findings.is_misled = !faults.is_empty();
            findings.texts.extend(faults);
            if summary.format == FileFormat::Kpack && summary.findings == 0 {
                findings.pack = file.pack_table(args.limits.max_input);
            }
            Ok(summary)
        });
        Some((result, findings))
    };
    let inputs = Inputs::find(&args.files).verifying();
    let mut split = PackSet::default();
    let mut names = Headings::new();
    let looked = inputs.look((&args.limits, HEADS), "checking", check, |file, checked| {
        if let Some(verified) = file.verified() {
            names.started(file.name());
            return report_package(&mut out, file, verified);
        }
        let Some((result, visitor)) = checked else { return Ok(Seen::Nothing) };
        let is_sound =
            result.as_ref().is_ok_and(|summary| summary.findings == 0) && !visitor.is_misled;
        if let Some(host) = visitor.host.as_ref().filter(|_| is_sound) {
            split.add_library(file.name(), host, !visitor.is_member);
            if visitor.is_member {
                return Ok(Seen::Well);
            }
            let checked = host.check();
            let is_faulty = checked.is_err();
            let lines = checked.map_or_else(|faults| faults, |text| vec![format!("ok, {text}")]);
            let shown = names.name(&mut out, file)?;
            for line in lines {
                show!(out, "{shown}: {line}")?;
            }
            return Ok(Seen::faults(is_faulty));
        }
        if let Some((path, toc)) = &visitor.pack {
            split.add_pack(path.clone(), without_features(path), file.name(), toc);
        }
        let shows = result.as_ref().is_ok_and(|summary| summary.images > 0) || visitor.is_misled;
        if let Some(seen) = file.passed_over(shows, &result) {
            return Ok(seen);
        }
        let shown = names.name(&mut out, file)?;
        for finding in &visitor.texts {
            show!(out, "{shown}: {finding}")?;
        }
        let verdict = match result {
            Ok(summary) if summary.findings > 0 || visitor.is_misled => {
                return Ok(Seen::Faults);
            }
            Ok(summary) => judge(args, file.path(), &summary, &visitor),
            Err(error) => Err(report::reason(&error)),
        };
        match verdict {
            Ok(what) => {
                show!(out, "{shown}: ok, {what}")?;
                Ok(Seen::Well)
            }
            Err(why) => {
                out.flush()?;
                report::error(&format_args!("{}: {why}", file.name()));
                Ok(Seen::Faults)
            }
        }
    })?;
    let (sound, faults) = split.check();
    for (name, wrappers) in sound {
        show!(out, "{name}: ok, {} with device code in kernel packs", count(wrappers, "wrapper"))?;
    }
    for fault in &faults {
        show!(out, "{fault}")?;
    }
    let looked = looked.with_faults(!faults.is_empty());
    out.flush()?;
    Ok(if args.require_images { looked.needing() } else { looked.outcome() })
}

/// Prints a line for each finding of a package, or one if there is none.
fn report_package(
    out: &mut Out<'_>,
    file: &Input,
    checked: &io::Result<Verified>,
) -> io::Result<Seen> {
    let name = file.name();
    let verified = match checked {
        Ok(verified) => verified,
        Err(error) => {
            out.flush()?;
            report::error(&format_args!("{}: {}", file.name(), report::reason(error)));
            return Ok(Seen::Faults);
        }
    };
    for finding in &verified.findings {
        // A member is named by the package and its path.
        let colon = if finding.path.is_empty() { ": " } else { ":" };
        show!(out, "{name}{colon}{finding}")?;
    }
    if !verified.findings.is_empty() {
        return Ok(Seen::Faults);
    }
    // A directory cannot have more of them.
    let members = usize::try_from(verified.members).unwrap_or(usize::MAX);
    let members = count(members, "member");
    let recorded = match verified.recorded {
        0 => String::new(),
        n => format!(", {n} with the recorded hash"),
    };
    show!(out, "{name}: ok, {}, {members}{recorded}", verified.kind)?;
    // Its members tell if it holds device code.
    Ok(Seen::Nothing)
}

/// Returns the text for a file without findings, or the reason why it does not pass.
fn judge(
    args: &Args,
    path: &Path,
    summary: &Summary,
    findings: &Findings,
) -> Result<String, String> {
    if summary.images > 0 {
        if args.require_images && findings.device_images == 0 {
            return Err("no device images".to_owned());
        }
        if let Some(bare) = &findings.bare {
            return Ok(bare.clone());
        }
        let images = count(summary.images, "image");
        return Ok(match findings.containers {
            0 => images,
            n => format!("{images} in {}", count(n, "container")),
        });
    }
    let why = summary.no_images()?;
    let is_file =
        path.as_os_str() != "-" && fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    // An empty pipe is one whose writer failed.
    let is_empty_pipe = summary.format == FileFormat::Empty && !is_file;
    if args.require_images || is_empty_pipe {
        return Err(why);
    }
    let text = match summary.format {
        FileFormat::LinkerScript => "no device code (linker script)",
        FileFormat::Empty => "empty file",
        _ => "no device code",
    };
    Ok(text.to_owned())
}

#[derive(Default)]
struct Findings {
    texts: Vec<String>,
    containers: usize,
    /// The text for a file that is an image itself.
    bare: Option<String>,
    /// Images that are for a device and not empty.
    device_images: usize,
    /// The wrappers of a split library, and the table of a kernel pack.
    host: Option<Arc<Host>>,
    is_member: bool,
    pack: Option<(PathBuf, Arc<Toc>)>,
    /// The containers that wrappers are to lead to.
    registrable: Registrable,
    /// `true` if registration does not lead to the device code.
    is_misled: bool,
}

impl Visitor for Findings {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        // A compressed bundle and the bundle in it are one thing for its reader.
        let around = container.path().iter().rev().nth(1).map(PathStep::kind);
        self.registrable.enter(container);
        if container.kind().is_format() && around != Some(ContainerKind::Ccob) {
            self.containers += 1;
        }
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        if image.container() == ContainerKind::File && image.path().is_empty() {
            let target = image.target();
            let parts = [target.triple_text(), Some(target.id()).filter(|id| !id.is_empty())];
            let parts: Vec<_> = parts.into_iter().flatten().collect();
            let target = parts.join(" ");
            let format = image.format();
            self.bare = Some(match &*target {
                "" => format!("a bare image ({format})"),
                target => format!("a bare image ({format}, {target})"),
            });
        }
        let is_device = !image.target().is_host() && image.size() > 0;
        self.device_images += usize::from(is_device);
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.texts.push(finding.to_string());
        Ok(())
    }
}
