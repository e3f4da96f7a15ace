//! Checks of structure, bounds, hashes and rules of composition, of files and of packages.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use device_select::{PackSet, each_once};
use fat_edit::Registrable;
use fat_object::{Container, ContainerKind, FileFormat, Image, PathStep, Summary, Visitor};
use gpu_packages::{FindingKind, Verified};
use kpack::Toc;
use offload_check::Violation;

use crate::complaint::{self, violation};
use crate::headings::Headings;
use crate::inputs::{Input, Inputs};
use crate::limits::Limits;
use crate::package::HEADS;
use crate::several::Several;
use crate::split_library::{Host, without_features};
use crate::units::Walk;
use crate::variants::{self, InstalledCode, InstalledFiles, InstalledVariant};
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

    /// Takes variants that are installed, and what is wrong with them. Returns whether something is.
    fn installed(&mut self, variants: Vec<Variant>, limits: &Limits) -> io::Result<bool> {
        let mut is_faulty = false;
        for variant in variants {
            let (name, faults, found) = variant.judge(limits);
            for fault in &faults {
                self.fault(&name, fault)?;
            }
            let found: Vec<Finding> = found.into_iter().map(violation).collect();
            let has_errors =
                !faults.is_empty() || found.iter().any(|one| one.level == Level::Error);
            for one in found {
                if self.prints {
                    let level = if one.level == Level::Error { "" } else { "warning: " };
                    show!(self.out, "{}: {level}{}", one.file, one.message)?;
                }
                self.document.finding(one)?;
            }
            self.document.file(&name, &Seen::faults(has_errors));
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
    let (mut installed, faults) = Installed::find(files);
    let variants = std::mem::take(&mut installed.variants);
    let work = |file: &Input, threads| {
        if file.verified().is_some() {
            return None;
        }
        let (mut findings, mut code) = (Findings::default(), None);
        let mut all = Several::new([&mut findings as &mut dyn Visitor]);
        if installed.has(file) {
            all.push(code.insert(Walk::new(file)));
        }
        let walked = file.walk(limits, &options, threads, &mut all);
        Some(Checked::of(file, limits, walked, (findings, code)))
    };
    let inputs = Inputs::find(files).verifying().merging();
    let mut checker = Checker::new(sink, require_images);
    let mut codes: HashMap<Owner, Vec<(String, InstalledCode)>> = HashMap::new();
    let mut read = HashSet::new();
    let looked = inputs.look((limits, HEADS), "checking", work, |file, mut checked| {
        if let Some(code) = checked.as_mut().and_then(|checked| checked.code.take()) {
            if installed.is_alone(file) {
                read.extend(installed.owners.get_key_value(&file.identity()).map(|(key, _)| key));
            }
            let owners = installed.owners_of(file);
            for (owner, path) in owners {
                codes.entry(owner).or_default().push((path, code.clone()));
            }
        }
        checker.take(file, checked)
    })?;
    let mut has_faults = checker.end()?;
    for fault in &faults {
        sink.fault("", fault)?;
        has_faults = true;
    }
    let of_images = inputs.take_image_variants();
    let of_images = of_images.iter().map(|it| {
        let faults = it.fault.iter().cloned().collect();
        let variant = InstalledVariant::of_image(it, &[]);
        (Owner::InImage(Arc::clone(&it.name)), Variant::new(it.name.to_string(), variant, faults))
    });
    let on_disk = variants.into_iter().enumerate();
    let on_disk = on_disk.map(|(number, variant)| (Owner::OnDisk(number), variant));
    let all = on_disk.chain(of_images).map(|(owner, mut variant)| {
        if let Some(found) = codes.remove(&owner) {
            variant.codes = found;
        }
        variant.left.retain(|(file, _)| !read.contains(&file.identity()));
        variant
    });
    has_faults |= sink.installed(all.collect(), limits)?;
    Ok(looked.with_faults(has_faults))
}

/// A variant that a file is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Owner {
    OnDisk(usize),
    InImage(Arc<str>),
}

/// The identity of a file, under any name.
type Identity = Result<(u64, u64), Option<PathBuf>>;

/// Variants that are installed in environments, and the files that they are compared with.
#[derive(Debug, Default)]
struct Installed {
    variants: Vec<Variant>,
    /// For each file the variants that it is of, by number, with its path in each.
    owners: HashMap<Identity, Vec<(usize, String)>>,
}

/// A variant that is installed.
#[derive(Debug)]
struct Variant {
    name: String,
    variant: InstalledVariant,
    faults: Vec<String>,
    /// The code of its files, with their paths.
    codes: Vec<(String, InstalledCode)>,
    /// Files whose code is not read yet.
    left: Vec<(Input, String)>,
}

impl Installed {
    /// Finds the variants in environments among arguments, and the faults of directories.
    fn find(arguments: &[PathBuf]) -> (Self, Vec<String>) {
        let (distributions, faults) = variants::distributions_in(arguments);
        let mut found = Installed::default();
        for one in &distributions {
            let Some(variant) = InstalledVariant::of(one, &[]) else { continue };
            let InstalledFiles { files, faults, .. } = if variant.is_judged() {
                InstalledFiles::of(one)
            } else {
                InstalledFiles::default()
            };
            let number = found.variants.len();
            for (file, path) in &files {
                found.owners.entry(file.identity()).or_default().push((number, path.clone()));
            }
            let variant = Variant::new(one.name().to_owned(), variant, faults);
            found.variants.push(Variant { left: files, ..variant });
        }
        (found, faults)
    }

    /// Returns whether a file is one of a variant.
    fn has(&self, file: &Input) -> bool {
        file.places().iter().any(|place| !place.variants.is_empty())
            || self.is_alone(file) && self.owners.contains_key(&file.identity())
    }

    /// Returns whether a file is looked up by its identity: it is not a member, and all of it is looked into.
    fn is_alone(&self, file: &Input) -> bool {
        !self.owners.is_empty() && !file.is_in_package() && !file.is_pack_of_library()
    }

    /// Returns the variants that a file is of, with its path in each.
    fn owners_of(&self, file: &Input) -> Vec<(Owner, String)> {
        let of_images = file.places().iter().flat_map(|place| &place.variants);
        let of_images =
            of_images.map(|(name, path)| (Owner::InImage(Arc::clone(name)), path.clone()));
        let on_disk = Some(()).filter(|()| self.is_alone(file));
        let on_disk = on_disk.and_then(|()| self.owners.get(&file.identity()));
        let on_disk = on_disk.into_iter().flatten();
        of_images
            .chain(on_disk.map(|(number, path)| (Owner::OnDisk(*number), path.clone())))
            .collect()
    }
}

impl Variant {
    fn new(name: String, variant: InstalledVariant, faults: Vec<String>) -> Self {
        Variant { name, variant, faults, codes: Vec::new(), left: Vec::new() }
    }

    /// Compares it with its code, and reads what is left of that. Returns its name and what is wrong with it.
    fn judge(mut self, limits: &Limits) -> (String, Vec<String>, Vec<Violation>) {
        if self.variant.is_judged() {
            for (path, code) in self.codes {
                self.variant.add(&path, code);
            }
            let how = (self.variant.needs_contents(), limits);
            for (file, path) in self.left {
                // The files themselves are checked one by one.
                if let (Some(code), _) = InstalledCode::read(&file, how) {
                    self.variant.add(&path, code);
                }
            }
        }
        (self.name, self.faults, self.variant.judge())
    }
}

/// The result of a walk through a file.
#[derive(Debug)]
pub struct Checked {
    result: io::Result<Summary>,
    findings: Findings,
    /// Its device code, if a variant that is installed has it.
    code: Option<InstalledCode>,
}

impl Checked {
    /// Completes what a walk found, with compressed images checked. The containers are those of a file of an installed variant.
    pub fn of(
        file: &Input,
        limits: &Limits,
        walked: io::Result<Summary>,
        (mut findings, walk): (Findings, Option<Walk<'_>>),
    ) -> Self {
        let mut code = None;
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
            code = walk.map(|walk| match &findings.host {
                // The packs of this machine are not those of the image.
                Some(_) if findings.is_member => InstalledCode::Elsewhere,
                Some(host) => InstalledCode::Split(Arc::clone(host)),
                None => InstalledCode::Units(walk.into_file(&summary, &registration)),
            });
            Ok(summary)
        });
        Checked { result, findings, code }
    }
}

/// The judgement of files, one after the other, and of split libraries with their kernel packs.
#[derive(Debug)]
pub struct Checker<'s, 'd> {
    sink: &'s mut Sink<'d>,
    require_images: bool,
    /// The split libraries and kernel packs of each container image, and of all other files.
    split: BTreeMap<String, PackSet<Host>>,
}

impl<'s, 'd> Checker<'s, 'd> {
    /// Creates a judgement of no file, of several to come.
    pub fn new(sink: &'s mut Sink<'d>, require_images: bool) -> Self {
        Checker { sink, require_images, split: BTreeMap::new() }
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
        let Some(Checked { result, findings, .. }) = checked else { return Ok(Seen::Nothing) };
        let name = file.name();
        let is_sound =
            result.as_ref().is_ok_and(|summary| summary.findings == 0) && !findings.is_misled;
        sink.document.about(name, || result.as_ref().ok().map(complaint::about));
        if let Some(host) = findings.host.as_ref().filter(|_| is_sound) {
            for set in file.sets() {
                let host = set.path.map_or_else(|| Arc::clone(host), |path| host.at(path));
                let split = split.entry(set.image.to_owned()).or_default();
                split.add_library(name, &host, !findings.is_member);
            }
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
            for set in file.sets() {
                let path = set.path.unwrap_or(path);
                let split = split.entry(set.image.to_owned()).or_default();
                split.add_pack(path.to_owned(), without_features(path), name, toc);
            }
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
        let checked: Vec<_> = split.values().map(PackSet::check).collect();
        // Images may share a file.
        let sound: BTreeSet<_> = checked.iter().flat_map(|(sound, _)| sound).collect();
        for (name, wrappers) in sound {
            let wrappers = count(*wrappers, "wrapper");
            sink.ok(name, &format!("{wrappers} with device code in kernel packs"))?;
        }
        let faults = each_once(checked.iter().flat_map(|(_, faults)| faults));
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
    let kind = verified.kind.to_string();
    let kind = if file.is_verified_image() { "container image" } else { &kind };
    sink.ok(name, &format!("{kind}, {members}{recorded}"))?;
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
