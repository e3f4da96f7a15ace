//! The images of a source, as the tool lists them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fat_object::{Finding as WalkFinding, Image, ImageInfo, Severity, Visitor};
use tool_answers::kernels;
use tool_answers::listing::{Listed, Question, Sink};
use tool_answers::row::Row;
use tool_inputs::complaint::{self, Complaint};
use tool_inputs::inputs::Input;
use tool_inputs::online::Received;
use tool_inputs::package::HEADS;
use tool_kit::finding::Level;
use tool_kit::looked::Seen;
use tool_kit::parallel::Threads;
use tool_kit::report;
use tool_kit::stop::Stop;
use tool_kit::store::Keep;

use crate::fault::Finding;
use crate::source::Source;

/// The facts that are wanted of images.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) question: Question,
    /// The number of kernels of each image.
    pub(crate) kernels: bool,
}

/// A file that has images: one on the disk, or a member of a package.
#[derive(Debug)]
pub(crate) struct OfFile {
    /// The name in messages.
    pub(crate) name: String,
    /// The argument by which the tools find it again; without a path the member of a package.
    argument: Option<PathBuf>,
}

/// An image that was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) file: Arc<OfFile>,
    pub(crate) row: Row,
    pub(crate) kernels: Option<u64>,
}

/// Something that a look came to.
#[derive(Debug)]
pub(crate) enum Event {
    /// The images of a file.
    Images(Vec<Found>),
    /// Something that was found in a file.
    Finding(Finding),
    /// The cost of a file on a server.
    Received(Received),
}

/// A function that takes events; an error ends the look.
pub(crate) type Take<'t> = dyn FnMut(Event) -> io::Result<()> + 't;

impl OfFile {
    fn new(source: &Source, file: &Input) -> Self {
        let name = file.name().to_owned();
        if !source.has_path() {
            let argument = file.is_in_package().then(|| file.path().to_owned());
            return OfFile { name, argument };
        }
        let argument = match name.split_once(" -> ") {
            // The library leads to its kernel packs.
            Some((library, _)) if file.is_pack_of_library() => PathBuf::from(library),
            _ if file.is_in_package() => {
                let mut argument = file.on_disk().as_os_str().to_owned();
                argument.push(":");
                argument.push(file.path());
                PathBuf::from(argument)
            }
            _ => file.path().to_owned(),
        };
        OfFile { name, argument: Some(argument) }
    }
}

/// Looks into a source. Findings about files that could not be read come last.
pub(crate) fn look(
    source: &Source,
    asked: &Asked,
    stop: &Stop,
    take: &mut Take<'_>,
) -> io::Result<()> {
    let (looked, messages) = report::collected(|| {
        let inputs = source.inputs();
        let limits = &asked.question.limits;
        let reads = asked.kernels || asked.question.hash;
        let keep = if reads { Keep::All } else { HEADS };
        let work = |file: &Input, threads| list(source, (asked, stop), file, threads);
        let looked = inputs.look((limits, keep), "listing", work, |file, (found, listed)| {
            let Listed { images, passed, complaints, summary } = listed;
            if let Some(seen) = file.passed_over(images > 0, &summary) {
                return Ok(seen);
            }
            if !found.is_empty() {
                take(Event::Images(found))?;
            }
            let last = complaint::last(file.name(), &complaints, &summary, |summary| {
                asked.question.why_nothing(file, (images, &passed), summary)
            });
            let is_faulty = matches!(last, Some(Err(_)))
                || complaints.iter().any(|one| one.severity == Severity::Error);
            for complaint in complaints {
                take(Event::Finding(complaint.into()))?;
            }
            match (last, &summary) {
                (Some(Err(_)), Err(error)) => {
                    take(Event::Finding(Finding::of_io(file.name(), error)))?;
                }
                (Some(Err(complaint)), Ok(_)) => take(Event::Finding(complaint.into()))?,
                (Some(Ok(note)), _) => {
                    let note = Finding::error("file/nothing", file.name(), note);
                    take(Event::Finding(Finding { level: Level::Note.as_str(), ..note }))?;
                }
                (None, _) => {}
            }
            Ok(Seen::faults(is_faulty))
        });
        if let Some(received) = inputs.received() {
            take(Event::Received(received))?;
        }
        looked
    });
    let findings = looked?.findings(false).into_iter().map(Finding::from);
    let name = source.path.display().to_string();
    let messages = messages.into_iter().map(|one| Finding::of_message(&name, one));
    findings.chain(messages).try_for_each(|finding| take(Event::Finding(finding)))
}

/// Lists the images of a file.
fn list(
    source: &Source,
    (asked, stop): (&Asked, &Stop),
    file: &Input,
    threads: Threads,
) -> (Vec<Found>, Listed) {
    let of = Arc::new(OfFile::new(source, file));
    let (found, faults) = (Vec::new(), Vec::new());
    let mut collecting = Collecting { asked, stop, of, found, faults };
    let mut listed = asked.question.list(file, threads, &mut collecting);
    let Collecting { found, faults, .. } = collecting;
    let faults = faults.into_iter();
    listed
        .complaints
        .extend(faults.map(|text| Complaint::error(file.name(), "verify/malformed", text)));
    (found, listed)
}

/// Collects the images of a file.
struct Collecting<'a> {
    asked: &'a Asked,
    stop: &'a Stop,
    of: Arc<OfFile>,
    found: Vec<Found>,
    /// Damage of images whose kernels were read.
    faults: Vec<String>,
}

impl Sink for Collecting<'_> {
    fn image(&mut self, row: Row, image: &mut Image<'_, '_>) -> io::Result<()> {
        self.stop.check()?;
        let mut kernels = None;
        if self.asked.kernels {
            let (count, faults) = kernels::count(image, &self.asked.question.limits)?;
            kernels = count.map(|count| count as u64);
            let errors = faults.into_iter().filter(|(severity, _)| *severity == Severity::Error);
            self.faults.extend(errors.map(|(_, text)| text));
        }
        self.found.push(Found { file: Arc::clone(&self.of), row, kernels });
        Ok(())
    }
}

/// Does something with one image of a file, which is read again.
pub(crate) fn again(
    (source, file): (&Source, &OfFile),
    image: &ImageInfo,
    (asked, stop): (&Asked, &Stop),
    mut each: impl FnMut(&mut Image<'_, '_>) -> io::Result<()> + Send,
) -> Result<(), Finding> {
    let again = Mutex::new(Again { wanted: image, stop, each: &mut each, result: None });
    let (looked, _) = report::collected(|| {
        let limits = asked.question.limits.clone();
        let inputs = source.inputs_again(file.argument.as_deref());
        let options = limits.options();
        let work = |input: &Input, threads| {
            let mut again = again.lock().unwrap_or_else(PoisonError::into_inner);
            if input.name() != file.name || again.result.is_some() {
                return Ok(());
            }
            let walked = input.walk(&limits, &options, threads, &mut *again);
            // The image itself ends the walk.
            if again.result.is_some() { Ok(()) } else { walked.map(drop) }
        };
        let mut failed = Ok(());
        let looked = inputs.look((&limits, Keep::All), "reading", work, |_, walked| {
            failed = std::mem::replace(&mut failed, Ok(())).and(walked);
            Ok(Seen::Well)
        });
        looked.and_then(|looked| failed.map(|()| looked.findings(false)))
    });
    let Again { result, .. } = again.into_inner().unwrap_or_else(PoisonError::into_inner);
    let name = &*file.name;
    match (result, looked) {
        (Some(Ok(())), _) => Ok(()),
        (Some(Err(error)), _) | (None, Err(error)) => Err(Finding::of_io(name, &error)),
        (None, Ok(findings)) => {
            let mut reasons = findings.into_iter().map(Finding::from);
            let text =
                format!("image {} is not there any more: the file was changed", image.index());
            let changed = || Finding::error("file/error", name, text);
            Err(reasons.find(Finding::is_error).unwrap_or_else(changed))
        }
    }
}

/// Finds one image again.
struct Again<'a> {
    wanted: &'a ImageInfo,
    stop: &'a Stop,
    each: &'a mut (dyn FnMut(&mut Image<'_, '_>) -> io::Result<()> + Send),
    result: Option<io::Result<()>>,
}

impl Visitor for Again<'_> {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        self.stop.check()?;
        let of = |info: &ImageInfo| (info.index(), info.size(), info.offset_in_container());
        if of(image) != of(self.wanted) || image.target() != self.wanted.target() {
            return Ok(());
        }
        self.result = Some((self.each)(image));
        Err(io::Error::other("the image was found"))
    }

    fn finding(&mut self, _: &WalkFinding) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the place of a file in its source: a path in a directory, or a member of a package; `None` for the source itself.
pub(crate) fn place_in<'n>(source: &Path, name: &'n str) -> Option<&'n str> {
    let rest = name.strip_prefix(&*source.display().to_string())?;
    Some(rest.trim_start_matches(['/', ':', ' '])).filter(|rest| !rest.is_empty())
}
