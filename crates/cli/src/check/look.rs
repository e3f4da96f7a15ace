//! The one look into the files of an argument that answers all questions of a policy.

use std::io;
use std::path::Path;
use std::slice;

use device_code::KernelGate;
use device_select::ImageFilter;
use fat_object::{Finding, Image, ImageInfo, Options, Summary, Visitor};
use offload_check::{DeviceCode, Policy, Subject, Unknown};

use super::SHAPE;
use crate::kernels;
use crate::match_gpu::{Printer, Style};
use tool_answers::kernels::{Found, Wanted, collect_in};
use tool_answers::matching::{Matcher, Question, Read, sought};
use tool_inputs::checks::{Checked, Checker, Findings, Sink};
use tool_inputs::complaint::{self, Complaint, violation};
use tool_inputs::inputs::{Input, Inputs, again};
use tool_inputs::limits::Limits;
use tool_inputs::package::HEADS;
use tool_inputs::several::Several;
use tool_inputs::units::Walk;
use tool_kit::document::Document;
use tool_kit::finding::Level;
use tool_kit::input;
use tool_kit::looked::{Looked, Seen, Tally};
use tool_kit::parallel::Threads;
use tool_kit::store::Keep;

const UNKNOWN: &str = "file/unknown";

/// Findings of packages that are verified: they, or members of them, were not read to their ends.
const UNREAD: [&str; 4] = ["file/error", "package/damaged", "package/encrypted", "package/unread"];

/// The images of a file, and what is wrong with it.
#[derive(Default)]
struct Listing {
    name: String,
    images: Vec<ImageInfo>,
    complaints: Vec<Complaint>,
}

impl Visitor for Listing {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        self.images.push(image.info().clone());
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.complaints.push(Complaint::new(&self.name, finding));
        Ok(())
    }
}

/// The results of one walk through a file, for each question.
struct Walked {
    listing: Listing,
    summary: io::Result<Summary>,
    matched: Option<Read>,
    kernels: Option<Found>,
    checked: Option<Checked>,
}

/// The questions of a policy.
struct Questions<'a> {
    limits: &'a Limits,
    options: Options,
    /// The GPUs that are required, if there are some.
    targets: Option<&'a Question<'a>>,
    kernels: Option<&'a Wanted<'a>>,
    is_verified: bool,
}

impl Questions<'_> {
    /// Walks through a file once; `None` for a package as a whole.
    fn walk(&self, file: &Input, threads: Threads) -> Option<Walked> {
        if file.verified().is_some() {
            return None;
        }
        let mut listing = Listing { name: file.name().to_owned(), ..Listing::default() };
        let mut matching = Walk::new(file);
        let mut checking = Findings::default();
        let mut all = Several::new([&mut listing as &mut dyn Visitor]);
        if self.targets.is_some() {
            all.push(&mut matching);
        }
        if self.is_verified {
            all.push(&mut checking);
        }
        let walk =
            |visitor: &mut dyn Visitor| file.walk(self.limits, &self.options, threads, visitor);
        let kernels = self.kernels.map(|wanted| {
            collect_in(wanted, file, |visitor| {
                walk(&mut Several::new([&mut all as &mut dyn Visitor, visitor]))
            })
        });
        let summary = match &kernels {
            Some(found) => repeated(found.summary()),
            None => walk(&mut all),
        };
        let matched = self
            .targets
            .map(|question| Read::of(question, file, |_| (matching, repeated(&summary))));
        let checked = self
            .is_verified
            .then(|| Checked::of(file, self.limits, repeated(&summary), (checking, None)));
        Some(Walked { listing, summary, matched, kernels, checked })
    }
}

/// Returns the same result of a walk.
fn repeated(summary: &io::Result<Summary>) -> io::Result<Summary> {
    summary.as_ref().cloned().map_err(again)
}

/// Judges an argument. Returns the bytes of its device code, and whether all was read.
pub(super) fn judge(
    policy: &Policy,
    limits: &Limits,
    path: &Path,
    found: &mut Document,
) -> io::Result<(DeviceCode, bool)> {
    look(policy, limits, path, found, true)
}

/// Sums the device code of an argument. Returns it, and whether all was read.
pub(super) fn sum(
    policy: &Policy,
    limits: &Limits,
    path: &Path,
    found: &mut Document,
) -> io::Result<(DeviceCode, bool)> {
    look(policy, limits, path, found, false)
}

fn look(
    policy: &Policy,
    limits: &Limits,
    path: &Path,
    found: &mut Document,
    judges: bool,
) -> io::Result<(DeviceCode, bool)> {
    let gpus = policy.targets.require.clone();
    let question = Question { gpus, kinds: &[], check: false, is_strict: false, limits };
    let filter = ImageFilter::default();
    let wanted = Wanted { filter: &filter, glob: None, has_arguments: false, limits };
    let has_needs = judges && (policy.needs.driver.is_some() || policy.needs.rocm.is_some());
    let is_verified = judges && policy.verify.enabled;
    let targets = Some(&question).filter(|question| judges && !question.gpus.is_empty());
    let kernels = Some(&wanted).filter(|_| judges && !policy.kernels.is_empty());
    let reads = has_needs || is_verified || kernels.is_some();
    let options = limits.options().with_tables_only(!reads);
    let options = options.with_check_compressed(has_needs || is_verified);
    let questions = Questions { limits, options, targets, kernels, is_verified };

    let mut inputs = Inputs::find(slice::from_ref(&path.to_owned())).merging();
    if is_verified {
        inputs = inputs.verifying();
    }
    if let Some(question) = targets {
        inputs = inputs.seeking(sought(&question.gpus));
    }
    let mut subject = Subject::new(policy, &input::display(path));
    // The members of a package that an argument names are judged, and not the package.
    let (on_disk, named): (Vec<_>, Vec<_>) =
        inputs.files().iter().partition(|file| !file.is_member());
    on_disk.iter().for_each(|file| subject.add_file(file.size()));

    let [mut of_targets, mut of_kernels, mut of_checks] =
        [Document::silent(&SHAPE)?, Document::silent(&SHAPE)?, Document::silent(&SHAPE)?];
    let mut matcher = targets.map(|question| {
        Matcher::new(question, &inputs, Printer::new(question, Style::Quiet, &mut of_targets))
    });
    let mut gate = policy
        .kernels
        .iter()
        .fold(KernelGate::new(&[], false), |gate, one| gate.with_exceptions(&one.rule, &one.allow));
    let mut sink = Sink::silent(&mut of_checks);
    let mut checker = Checker::new(&mut sink, false);
    // The files with their results, whatever the policy asks.
    let mut facts = Looked::new("device code".to_owned(), "device code", 0);
    let keep = if kernels.is_some() { Keep::All } else { HEADS };
    let work = |file: &Input, threads| questions.walk(file, threads);
    let looked = inputs.look((limits, keep), "checking", work, |file, walked| {
        let Some(walked) = walked else { return checker.take(file, None).map(|_| Seen::Nothing) };
        let Walked { listing, summary, matched, kernels: listed, checked } = walked;
        checker.take(file, checked)?;
        if let Some((wanted, listed)) = kernels.zip(listed) {
            kernels::check(&mut gate, &mut of_kernels, wanted, file, &listed)?;
        }
        let seen = seen(file, &listing, &summary, found)?;
        if let Some(summary) = summary.as_ref().ok().filter(|_| !named.is_empty()) {
            subject.add_file(summary.size);
        }
        listing.images.iter().for_each(|image| subject.add_image(file.name(), image));
        facts.add(file.name(), seen.clone(), &mut Tally::default());
        let of_targets = matcher.as_mut().zip(matched).map(|(it, read)| it.take(file, read));
        of_targets.unwrap_or(Ok(seen))
    })?;
    if let Some(matcher) = matcher {
        matcher.end()?;
    }
    checker.end()?;
    if kernels.is_some() {
        kernels::report_hits(&mut of_kernels, &gate)?;
    }

    let has_unread = of_checks.all_findings().iter().any(|one| UNREAD.contains(&one.code));
    let mut is_read = !facts.is_faulty() && !inputs.have_faults() && !has_unread;
    for one in looked.findings(targets.is_some()) {
        match one.code {
            UNKNOWN => {}
            "file/error" => {
                is_read = false;
                found.finding(one)?;
            }
            _ => of_targets.finding(one)?,
        }
    }
    for one in facts.findings(false) {
        if judges {
            subject.add_unknown(&one.file, &one.message);
        } else if is_read && policy.files.unknown != Unknown::Allow {
            // There is no growth against a part.
            is_read = false;
            found.finding(one.with_level(Level::Error))?;
        }
    }
    let code = subject.device_code();
    if judges {
        facts.files().iter().for_each(|(name, seen)| found.file(name, seen));
        found.findings(subject.judge().into_iter().map(violation))?;
    }
    if judges {
        // A policy is for files of several vendors, which store different numbers.
        of_kernels.soften("kernel/not-stored");
        // The answer may be in members that were not read.
        let answers = [of_targets, of_kernels].into_iter().filter(|_| is_read);
        let answers = answers.flat_map(|mut one| one.take_findings());
        // Nothing else tells the faults of packages that are verified.
        let is_told =
            |code: &str| is_read || code.starts_with("package/") || UNREAD.contains(&code);
        let checks = of_checks.take_findings().into_iter().filter(|one| is_told(one.code));
        // The policy says what is done about files that are not understood.
        found.findings(answers.chain(checks).filter(|one| one.code != UNKNOWN))?;
    }
    Ok((code, is_read))
}

/// Reports the faults of a file, and returns what was seen in it.
fn seen(
    file: &Input,
    listing: &Listing,
    summary: &io::Result<Summary>,
    found: &mut Document,
) -> io::Result<Seen> {
    if let Some(seen) = file.passed_over(!listing.images.is_empty(), summary) {
        return Ok(seen);
    }
    let faults = complaint::report(found, file.name(), &listing.complaints, summary, |_| None)?;
    Ok(match summary {
        Ok(summary) if summary.images == 0 && summary.no_images().is_err() => {
            Seen::Unread(summary.format.to_string())
        }
        _ => Seen::faults(faults),
    })
}
