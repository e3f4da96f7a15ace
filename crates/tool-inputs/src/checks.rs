//! Checks of structure, bounds, hashes and rules of composition, of files and of packages.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use device_select::PackSet;
use fat_edit::Registrable;
use fat_object::{Container, ContainerKind, FileFormat, Image, PathStep, Summary, Visitor};
use gpu_packages::{FindingKind, Verified};
use kpack::Toc;

use crate::complaint::{self, violation};
use crate::headings::Headings;
use crate::inputs::{Input, Inputs};
use crate::limits::Limits;
use crate::package::HEADS;
use crate::split_library::{Host, without_features};
use crate::variants::{self, InstalledVariant};
use tool_kit::document::Document;
use tool_kit::finding::{Finding, Level};
use tool_kit::looked::{Looked, Seen};
use tool_kit::report;
use tool_kit::style::{self, Out, count, show};

/// The results, as they come.
#[derive(Debug)]
pub struct Sink<'d> {
    document: &'d mut Document,
    out: Out<'static>,
    /// `true` if findings are printed as text.
    prints: bool,
    /// `true` if valid files are printed, too.
    prints_all: bool,
    sound: usize,
    faulty: usize,
    /// The number of installed packages that were compared with their variants, and how many of them have errors.
    packages: (usize, usize),
    names: Headings,
    /// The package of the file that is checked.
    package: Option<String>,
}

impl<'d> Sink<'d> {
    /// Creates a sink that prints nothing as text.
    pub fn silent(document: &'d mut Document) -> Self {
        Sink {
            document,
            out: style::stdout(),
            prints: false,
            prints_all: false,
            sound: 0,
            faulty: 0,
            packages: (0, 0),
            names: Headings::new(),
            package: None,
        }
    }

    /// Creates a sink that prints findings, and a line for each valid file if it is not `quiet`, unless there is a document.
    pub fn printing(document: &'d mut Document, quiet: bool) -> Self {
        let prints = document.is_text();
        Sink { prints, prints_all: prints && !quiet, ..Sink::silent(document) }
    }

    /// Prints a summary of several files.
    pub fn end(mut self) -> io::Result<()> {
        let all = self.sound + self.faulty;
        if self.prints_all && all > 1 {
            let files = style::files(all);
            match self.faulty {
                0 => show!(self.out, "{files}: ok")?,
                faulty => show!(self.out, "{files}: {faulty} not ok")?,
            }
        }
        let (packages, faulty) = self.packages;
        if self.prints_all && packages > 0 {
            let packages = count(packages, "installed variant");
            match faulty {
                0 => show!(self.out, "{packages}: ok")?,
                faulty => show!(self.out, "{packages}: {faulty} not ok")?,
            }
        }
        self.out.flush()
    }

    /// Takes a finding, whose text is printed after `name`.
    fn finding(
        &mut self,
        code: &'static str,
        (name, colon): (&str, &str),
        text: &str,
    ) -> io::Result<()> {
        if self.prints {
            let name = self.names.member(&mut self.out, self.package.as_deref(), name)?;
            show!(self.out, "{name}{colon}{text}")?;
        }
        self.document.finding(Finding::error(code, name, text))
    }

    /// Takes a file that could not be checked.
    fn error(&mut self, code: &'static str, name: &str, why: &str) -> io::Result<Seen> {
        self.faulty += 1;
        self.out.flush()?;
        if !self.document.is_silent() {
            report::error(&format_args!("{name}: {why}"));
        }
        self.document.finding(Finding::error(code, name, why))?;
        Ok(Seen::Faults)
    }

    /// Takes a valid file.
    fn ok(&mut self, name: &str, what: &str) -> io::Result<()> {
        self.sound += 1;
        if !self.prints_all {
            return Ok(());
        }
        let shown = self.names.member(&mut self.out, self.package.as_deref(), name)?;
        show!(self.out, "{shown}: ok, {what}")
    }

    /// Takes variants that are installed in environments, and what is wrong with them. Returns whether something is.
    fn installed(&mut self, files: &[PathBuf], limits: &Limits) -> io::Result<bool> {
        let (distributions, faults) = variants::distributions_in(files);
        let mut is_faulty = !faults.is_empty();
        for fault in &faults {
            self.fault("", fault)?;
        }
        for one in &distributions {
            let Some(mut variant) = InstalledVariant::of(one, &[]) else { continue };
            let mut faults = Vec::new();
            if variant.is_judged() {
                let how = (variant.needs_contents(), limits);
                // The files themselves are checked one by one.
                faults =
                    variants::read_installed(one, how, |_, path, code| variant.add(path, code))
                        .tree;
            }
            for fault in &faults {
                self.fault(one.name(), fault)?;
            }
            let found: Vec<Finding> = variant.judge().into_iter().map(violation).collect();
            let has_errors =
                !faults.is_empty() || found.iter().any(|one| one.level == Level::Error);
            for one in found {
                if self.prints {
                    let level = if one.level == Level::Error { "" } else { "warning: " };
                    show!(self.out, "{}: {level}{}", one.file, one.message)?;
                }
                self.document.finding(one)?;
            }
            self.document.file(one.name(), &Seen::faults(has_errors));
            self.packages.0 += 1;
            self.packages.1 += usize::from(has_errors);
            is_faulty |= has_errors;
        }
        self.out.flush()?;
        Ok(is_faulty)
    }

    /// Takes what keeps a package or an environment from being read as a whole; the text has the path.
    fn fault(&mut self, name: &str, text: &str) -> io::Result<()> {
        self.out.flush()?;
        if !self.document.is_silent() {
            report::error(&text);
        }
        self.document.finding(Finding::error("file/error", name, text))
    }

    /// Takes the end of a file with findings.
    fn faults(&mut self) -> Seen {
        self.faulty += 1;
        Seen::Faults
    }
}

/// Checks files.
pub fn check(
    files: &[PathBuf],
    require_images: bool,
    limits: &Limits,
    sink: &mut Sink<'_>,
) -> io::Result<Looked> {
    let options = limits.options().with_check_compressed(true);
    let work = |file: &Input, threads| {
        if file.verified().is_some() {
            return None;
        }
        let mut findings = Findings::default();
        let walked = file.walk(limits, &options, threads, &mut findings);
        Some(Checked::of(file, limits, walked, findings))
    };
    let inputs = Inputs::find(files).verifying();
    let mut checker = Checker::new(sink, require_images);
    let looked = inputs
        .look((limits, HEADS), "checking", work, |file, checked| checker.take(file, checked))?;
    let has_faults = checker.end()? | sink.installed(files, limits)?;
    Ok(looked.with_faults(has_faults))
}

/// The result of a walk through a file.
#[derive(Debug)]
pub struct Checked {
    result: io::Result<Summary>,
    findings: Findings,
}

impl Checked {
    /// Completes what a walk found, with compressed images checked.
    pub fn of(
        file: &Input,
        limits: &Limits,
        walked: io::Result<Summary>,
        mut findings: Findings,
    ) -> Self {
        let result = walked.and_then(|summary| {
            let registrable = std::mem::take(&mut findings.registrable);
            let registration = file.with_reader(limits.max_input, |reader| {
                registrable.registration(summary.format, reader)
            })?;
            findings.is_member = file.is_in_package();
            let faults = registration.faults();
            findings.is_misled = !faults.is_empty();
            findings.all.extend(faults.into_iter().map(|fault| ("verify/registration", fault)));
            match file.split_library() {
                Ok(host) => findings.host = host,
                Err(text) => {
                    findings.is_misled = true;
                    findings.all.push(("verify/kernel-packs", text));
                }
            }
            if summary.format == FileFormat::Kpack && summary.findings == 0 {
                findings.pack = file.pack_table(limits.max_input)?;
            }
            Ok(summary)
        });
        Checked { result, findings }
    }
}

/// The judgement of files, one after the other, and of split libraries with their kernel packs.
#[derive(Debug)]
pub struct Checker<'s, 'd> {
    sink: &'s mut Sink<'d>,
    require_images: bool,
    split: PackSet<Host>,
}

impl<'s, 'd> Checker<'s, 'd> {
    /// Creates a judgement of no file, of several to come.
    pub fn new(sink: &'s mut Sink<'d>, require_images: bool) -> Self {
        Checker { sink, require_images, split: PackSet::default() }
    }

    /// Judges a file, or, without the result of a walk, a package as a whole.
    ///
    /// # Errors
    ///
    /// Errors of the output.
    pub fn take(&mut self, file: &Input, checked: Option<Checked>) -> io::Result<Seen> {
        let Checker { sink, split, .. } = self;
        sink.package = file.package().map(str::to_owned);
        if let Some(verified) = file.verified() {
            return report_package(sink, file, verified);
        }
        let Some(Checked { result, findings }) = checked else { return Ok(Seen::Nothing) };
        let name = file.name();
        let is_sound =
            result.as_ref().is_ok_and(|summary| summary.findings == 0) && !findings.is_misled;
        sink.document.about(name, || result.as_ref().ok().map(complaint::about));
        if let Some(host) = findings.host.as_ref().filter(|_| is_sound) {
            split.add_library(name, host, !findings.is_member);
            if findings.is_member {
                return Ok(Seen::Well);
            }
            return match host.check() {
                Ok(text) => sink.ok(name, &text).map(|()| Seen::Well),
                Err(faults) => {
                    for fault in faults {
                        sink.finding("verify/kernel-packs", (name, ": "), &fault)?;
                    }
                    Ok(sink.faults())
                }
            };
        }
        if let Some((path, toc)) = &findings.pack {
            split.add_pack(path.clone(), without_features(path), name, toc);
        }
        if let Ok(summary) = &result
            && name.ends_with(".kpack")
            && summary.format != FileFormat::Kpack
        {
            let text = format!("expected a kernel pack by its name, found: {}", summary.format);
            sink.finding("verify/kernel-packs", (name, ": "), &text)?;
            return Ok(sink.faults());
        }
        let shows = result.as_ref().is_ok_and(|summary| summary.images > 0) || findings.is_misled;
        if let Some(seen) = file.passed_over(shows, &result) {
            return Ok(seen);
        }
        for &(code, ref text) in &findings.all {
            sink.finding(code, (name, ": "), text)?;
        }
        match result {
            Ok(summary) if summary.findings > 0 || findings.is_misled => Ok(sink.faults()),
            Ok(summary) => match judge(self.require_images, file.path(), &summary, &findings) {
                Ok(what) => sink.ok(name, &what).map(|()| Seen::Well),
                Err(why) => {
                    let is_read = summary.no_images().is_ok() || summary.images > 0;
                    let code = if is_read { "targets/nothing" } else { "file/unknown" };
                    sink.error(code, name, &why)
                }
            },
            Err(error) => sink.error("file/error", name, &report::reason(&error)),
        }
    }

    /// Judges split libraries with their packs; returns whether something is wrong with them.
    ///
    /// # Errors
    ///
    /// Errors of the output.
    pub fn end(self) -> io::Result<bool> {
        let Checker { sink, split, .. } = self;
        sink.package = None;
        let (sound, faults) = split.check();
        for (name, wrappers) in sound {
            let wrappers = count(wrappers, "wrapper");
            sink.ok(name, &format!("{wrappers} with device code in kernel packs"))?;
        }
        for fault in &faults {
            sink.faulty += 1;
            sink.finding("verify/kernel-packs", ("", ""), fault)?;
        }
        sink.out.flush()?;
        Ok(!faults.is_empty())
    }
}

/// Takes each finding of a package, or a line if there is none.
fn report_package(
    sink: &mut Sink<'_>,
    file: &Input,
    checked: &io::Result<Verified>,
) -> io::Result<Seen> {
    let name = file.name();
    let verified = match checked {
        Ok(verified) => verified,
        Err(error) => return sink.error("file/error", name, &report::reason(error)),
    };
    for finding in &verified.findings {
        // A member is named by the package and its path.
        let file = if finding.path.is_empty() {
            name.to_owned()
        } else {
            format!("{name}:{}", finding.path)
        };
        sink.finding(package_code(finding.kind), (&file, ": "), &finding.error.to_string())?;
    }
    if !verified.findings.is_empty() {
        return Ok(sink.faults());
    }
    // A directory cannot have more of them.
    let members = usize::try_from(verified.members).unwrap_or(usize::MAX);
    let members = count(members, "member");
    let recorded = match verified.recorded {
        0 => String::new(),
        n => format!(", {n} with the recorded hash"),
    };
    sink.ok(name, &format!("{}, {members}{recorded}", verified.kind))?;
    sink.names.started(name);
    // Its members tell if it holds device code.
    Ok(Seen::Nothing)
}

/// Returns the code of findings of packages.
fn package_code(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Damaged => "package/damaged",
        FindingKind::UnsafeName => "package/unsafe-name",
        FindingKind::Duplicate => "package/duplicate",
        FindingKind::Overlap => "package/overlap",
        FindingKind::HeaderMismatch => "package/header-mismatch",
        FindingKind::Gap => "package/gap",
        FindingKind::Encrypted => "package/encrypted",
        FindingKind::Record => "package/record",
        FindingKind::Ambiguous => "package/ambiguous",
        _ => "package/unread",
    }
}

/// Returns the text for a file without findings, or the reason why it does not pass.
fn judge(
    require_images: bool,
    path: &Path,
    summary: &Summary,
    findings: &Findings,
) -> Result<String, String> {
    if summary.images > 0 {
        if require_images && findings.device_images == 0 {
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
    if require_images || is_empty_pipe {
        return Err(why);
    }
    let text = match summary.format {
        FileFormat::LinkerScript => "no device code (linker script)",
        FileFormat::Empty => "empty file",
        _ => "no device code",
    };
    Ok(text.to_owned())
}

/// A visitor that collects what is wrong with a file.
#[derive(Debug, Default)]
pub struct Findings {
    /// Codes and texts.
    all: Vec<(&'static str, String)>,
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

    fn finding(&mut self, finding: &fat_object::Finding) -> io::Result<()> {
        self.all.push((complaint::code(finding.error().kind()), finding.to_string()));
        Ok(())
    }
}
