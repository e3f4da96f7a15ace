//! The walk: from a file to its images, through any nesting of containers.

use std::fmt;
use std::io::{self, Read, Seek};
use std::ops::Range;

use byte_parts::{Window, internal};
use device_code::{FileFormat, MetalPlatform};

use crate::agreement::contradiction;
use crate::archive;
use crate::code::{self, Undone};
use crate::contents::Contents;
use crate::context::{Ahead, Context};
use crate::error::{Error, ErrorKind, Finding};
use crate::image::{Description, Image, ImageInfo};
use crate::model::{Compression, Container, ContainerKind, Enter, Location, PathStep};
use crate::opened::{Child, Children, Content, Finds, Inner, Inside, Member, Nothing, Opened};
use crate::options::Options;
use crate::sequence::One;
use crate::source::{Origin, ReadSeek, Source};
use crate::text::printable;
use crate::visitor::Visitor;

/// The summary of a finished walk.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// Format of the file itself. With no image found, [`FileFormat::is_read`] tells a file without device code (a
    /// plain object) from one that a walk does not read (a wheel, junk).
    pub format: FileFormat,
    /// Length of the file in bytes.
    pub size: u64,
    /// Length in bytes of all files that thin archives in it name, and that were opened.
    pub thin_size: u64,
    /// Images visited.
    pub images: usize,
    /// Findings reported.
    pub findings: usize,
    /// Host files, at any depth, that were not searched outside of their device sections ([`Options::with_scan`]).
    pub unsearched: usize,
}

/// Walks through everything in `input` that holds device images, in file order.
///
/// Time and memory grow no faster than the file, and with what of it is decompressed; see [the bounds](crate#bounds).
///
/// # Errors
///
/// An error of reading `input`, or the error that a method of `visitor` returned. A malformed file is not an error
/// of the walk: the visitor gets [`Finding`]s.
pub fn walk<R: Read + Seek>(
    input: R,
    options: &Options,
    visitor: &mut dyn Visitor,
) -> io::Result<Summary> {
    Walk::new(input, options)?.visit(visitor)
}

/// Walks through `data` as [`walk`] does, without copying the bytes: faster for data in memory, read or mapped.
/// [`ImageInfo::bytes_in`] returns the images that lie in `data`.
///
/// # Errors
///
/// The error that a method of `visitor` returned.
pub fn walk_slice(
    data: &[u8],
    options: &Options,
    visitor: &mut dyn Visitor,
) -> io::Result<Summary> {
    Walk::of_slice(data, options).visit(visitor)
}

/// Shows every image of a file to a closure, in file order: the shortest way to their bytes.
///
/// ```
/// use std::io::{Cursor, Read};
///
/// let layout = bundle_format::layout([("hip-amdgcn-amd-amdhsa--gfx906", 4)], 1)?;
/// let file = Cursor::new(layout.to_vec(&[b"code"])?);
/// let mut code = Vec::new();
/// fat_object::images(file, &fat_object::Options::default(), |image| {
///     assert_eq!(image.target().id(), "gfx906");
///     image.reader().read_to_end(&mut code).map(drop)
/// })?;
/// assert_eq!(code, b"code");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// An error of reading `input`, and the first of `each`. Damage that may hide images ends the walk with
/// [`InvalidData`](io::ErrorKind::InvalidData) and the [`Finding`] inside.
pub fn images<R: Read + Seek>(
    input: R,
    options: &Options,
    mut each: impl FnMut(&mut Image<'_, '_>) -> io::Result<()>,
) -> io::Result<Summary> {
    let mut walk = Walk::new(input, options)?;
    while let Some(event) = walk.next()? {
        match event {
            Event::Image(mut image) => each(&mut image)?,
            Event::Finding(finding) => finding.error_only()?,
            Event::Enter(_) | Event::Leave | Event::ThinMember(_) => {}
        }
    }
    Ok(walk.summary())
}

/// Something that a [`Walk`] came to.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'w, 'r> {
    /// A container. Everything up to its [`Leave`](Self::Leave) belongs to it; [`Walk::answer`] skips that. A
    /// compressed one is opened after this event: a finding about that is of what lies around.
    Enter(&'w Container),
    /// An image.
    Image(Image<'w, 'r>),
    /// Something wrong. The walk goes on wherever the damage leaves a way.
    Finding(&'w Finding),
    /// The end of the container that was entered last.
    Leave,
    /// A thin archive names a file: a path relative to the directory of the archive. [`Walk::open_thin_member`] hands it to
    /// the walk; without it there is a finding.
    ThinMember(&'w [u8]),
}

/// A walk whose events are pulled, one after the other: for whoever cannot give control away. [`walk`](crate::walk()) is this
/// one with a [`Visitor`].
///
/// It is not [`Send`], whatever its input is, because inputs need not be: their type is not part of its own. Async code makes and
/// drops it on a thread that may block, and sends [`ImageInfo`](crate::ImageInfo)s or a [`Listing`](crate::Listing), which are `Send`.
///
/// ```
/// use std::io::Cursor;
/// use fat_object::{ContainerKind, Enter, Event, Options, Walk};
///
/// let layout = bundle_format::layout([("hip-amdgcn-amd-amdhsa--gfx906", 4)], 1)?;
/// let mut walk = Walk::new(Cursor::new(layout.to_vec(&[b"code"])?), &Options::default())?;
/// let mut sizes = Vec::new();
/// while let Some(event) = walk.next()? {
///     match event {
///         Event::Enter(container) if container.kind() == ContainerKind::Ccob => walk.answer(Enter::Skip),
///         Event::Image(image) => sizes.push(image.size()),
///         _ => {}
///     }
/// }
/// assert_eq!(sizes, [4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Walk<'r> {
    cx: Context<'r>,
    /// The file, and in it what was decompressed or opened.
    sources: Vec<Source<'r>>,
    levels: Vec<Level>,
    state: State,
    answer: Enter,
    thin_member: Option<Box<dyn ReadSeek>>,
    format: FileFormat,
    size: u64,
    images: usize,
    findings: usize,
}

/// A container that the walk is in; the lowest is the file.
struct Level {
    children: Box<dyn Children>,
    found: Finds,
    /// `true` if there are no more children.
    is_done: bool,
    /// Its start in the enclosing source.
    start: u64,
    /// `true` if its bytes are a source of their own.
    has_source: bool,
    compression: Option<Compression>,
    /// Bytes that the containers around hold.
    held_before: u64,
    hash: Option<ccob::HashCheck>,
}

/// The state of an interrupted walk.
enum State {
    Between,
    /// A container is to be opened, if the answer is to do so.
    Asked(Container, Option<Box<Opened>>),
    Image(Box<Seen>),
    Finding(Finding),
    /// As the one before, about a container that could not be opened.
    Unopened(Finding),
    ThinMember(Member),
}

/// An image that is shown.
struct Seen {
    info: ImageInfo,
    window: Range<u64>,
    object: Option<Range<u64>>,
    /// `true` if it may hold further images, and these are asked for.
    is_entered: bool,
    /// The reason why it could not be checked.
    fault: Option<Error>,
}

/// The reason why the walk was interrupted.
enum Step {
    Ask,
    Enter,
    Image,
    Finding,
    Leave,
    /// The container could not be opened, so that nothing is left.
    Unopened,
    ThinMember,
    End,
}

impl<'r> Walk<'r> {
    /// Starts a walk through `input`.
    ///
    /// # Errors
    ///
    /// An error of seeking in `input`.
    pub fn new<R: Read + Seek + 'r>(input: R, options: &Options) -> io::Result<Self> {
        Ok(Self::start(Source::new(input, Origin::File)?, options, None))
    }

    /// Starts a walk through `data`, as [`walk_slice`] does.
    #[must_use]
    pub(crate) fn of_slice(data: &'r [u8], options: &Options) -> Self {
        Self::start(Source::of_bytes(data, Origin::File), options, None)
    }

    pub(crate) fn start(source: Source<'r>, options: &Options, ahead: Option<Ahead<'r>>) -> Self {
        let size = source.len();
        Walk {
            cx: Context::new(options, ahead, &source),
            sources: vec![source],
            levels: vec![Level::new(Box::new(Contents::new(0..size)), 0)],
            state: State::Between,
            answer: Enter::Open,
            thin_member: None,
            format: FileFormat::Unknown,
            size,
            images: 0,
            findings: 0,
        }
    }

    /// Goes on to the next event; `None` at the end.
    ///
    /// # Errors
    ///
    /// An error of reading the input.
    #[allow(clippy::should_implement_trait, reason = "events borrow from the walk")]
    pub fn next(&mut self) -> io::Result<Option<Event<'_, 'r>>> {
        loop {
            match self.step()? {
                // Its event was the question.
                Step::Enter => {}
                Step::Ask | Step::Image | Step::Finding | Step::ThinMember => break,
                Step::Leave | Step::Unopened => return Ok(Some(Event::Leave)),
                Step::End => return Ok(None),
            }
        }
        if let State::Image(_) = self.state {
            return self.image().map(|image| Some(Event::Image(image)));
        }
        match &self.state {
            State::Asked(container, _) => Ok(Some(Event::Enter(container))),
            State::Finding(finding) | State::Unopened(finding) => Ok(Some(Event::Finding(finding))),
            State::ThinMember(member) => Ok(Some(Event::ThinMember(&member.name))),
            State::Image(_) | State::Between => Err(no_event()),
        }
    }

    /// Answers the [`Enter`](Event::Enter) event that came last. Without an answer the container is [opened](Enter::Open).
    pub fn answer(&mut self, answer: Enter) {
        self.answer = answer;
    }

    /// Answers the [`ThinMember`](Event::ThinMember) event that came last.
    pub fn open_thin_member(&mut self, file: Box<dyn ReadSeek>) {
        self.thin_member = Some(file);
    }

    /// Returns the summary of the walk so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let Walk { format, size, images, findings, .. } = *self;
        let Context { thin_size, unsearched, .. } = self.cx;
        Summary { format, size, thin_size, images, findings, unsearched }
    }

    /// Shows all to a visitor.
    pub(crate) fn visit(mut self, visitor: &mut dyn Visitor) -> io::Result<Summary> {
        loop {
            let step = self.step()?;
            match (&self.state, step) {
                (_, Step::End) => return Ok(self.summary()),
                (_, Step::Leave) => visitor.leave()?,
                (State::Asked(container, _), Step::Ask) => {
                    let answer = visitor.opens(container);
                    self.answer = answer;
                }
                (State::Asked(container, _), Step::Enter) => visitor.enter(container)?,
                (State::Finding(finding) | State::Unopened(finding), Step::Finding) => {
                    visitor.finding(finding)?;
                }
                (State::ThinMember(member), Step::ThinMember) => {
                    let opened = visitor.open_thin_member(&member.name);
                    self.enter_thin_member(opened)?;
                }
                (State::Image(_), Step::Image) => visitor.image(&mut self.image()?)?,
                (_, Step::Unopened) => {}
                _ => return Err(no_event()),
            }
        }
    }

    /// Walks up to the next interruption, which `state` describes.
    fn step(&mut self) -> io::Result<Step> {
        match std::mem::replace(&mut self.state, State::Between) {
            State::Asked(container, Some(opened)) => {
                let answer = std::mem::replace(&mut self.answer, Enter::Open);
                return self.open(container, *opened, answer);
            }
            State::Unopened(_) => return Ok(Step::Unopened),
            State::Image(seen) => self.behind_image(*seen)?,
            State::ThinMember(member) => {
                let opened = self.thin_member.take().ok_or(io::ErrorKind::Unsupported.into());
                self.state = State::ThinMember(member);
                self.enter_thin_member(opened)?;
            }
            State::Asked(_, None) | State::Finding(_) | State::Between => {}
        }
        loop {
            let Some(level) = self.levels.last_mut() else { return Ok(Step::End) };
            let source = innermost(&mut self.sources)?;
            match level.found.next() {
                Some(Child::Image(window, description)) => {
                    return self.see_image(window, *description);
                }
                Some(Child::Finding(at, error)) => return Ok(self.find(at, error)),
                Some(Child::Container(opened)) => return Ok(self.ask(opened)),
                Some(Child::ThinMember(member)) => {
                    self.state = State::ThinMember(member);
                    return Ok(Step::ThinMember);
                }
                None if !level.is_done => {
                    let goes_on = level.children.next(&mut self.cx, source, &mut level.found)?;
                    level.is_done = !goes_on;
                }
                None => return self.leave(),
            }
        }
    }

    /// Asks whether a container is to be opened.
    fn ask(&mut self, opened: Box<Opened>) -> Step {
        let start = opened.window.start;
        let origin = match &opened.inside {
            // The file that a thin archive names is the member.
            Inside::Elsewhere(inner) if inner.source.origin() == Origin::ThinMember => {
                Origin::ThinMember
            }
            _ => self.origin(),
        };
        let location = Location::new(origin, start);
        let limit = self.cx.options.max_depth;
        if self.cx.path().len() >= limit {
            let message = format!("containers are nested more than {limit} deep");
            return self.find_at(location, Error::new(ErrorKind::Limit, message));
        }
        // Visitors keep the path of each container, too; the names of members and sections are counted where they are
        // read.
        if let Err(error) = self.cx.take_path() {
            return self.find_at(location, error);
        }
        let kind = opened.step.kind();
        self.cx.entered += 1;
        self.cx.push(opened.step.clone());
        let container = Container {
            path: self.cx.shared_path(),
            kind,
            location,
            size: Window::new(&opened.window).len(),
            compression: opened.compression,
        };
        self.state = State::Asked(container, Some(opened));
        Step::Ask
    }

    /// Opens a container that was asked about.
    fn open(&mut self, container: Container, opened: Opened, answer: Enter) -> io::Result<Step> {
        let Opened { window, compression, inside, .. } = opened;
        let is_skipped = answer == Enter::Skip;
        let mut level = Level::new(Box::new(Nothing), window.start);
        let inner = match inside {
            Inside::Here(content) => {
                level.children = children(content);
                None
            }
            Inside::Elsewhere(inner) => Some(inner),
            Inside::Closed(_) if is_skipped => None,
            Inside::Closed(closed) => {
                let source = innermost(&mut self.sources)?;
                match closed.open(&mut self.cx, source, &window, answer)? {
                    Ok(inner) => Some(inner),
                    Err(error) => {
                        self.cx.pop();
                        let location = Location::new(self.origin(), window.start);
                        self.state = State::Unopened(self.finding(location, error));
                        return Ok(Step::Finding);
                    }
                }
            }
        };
        let mut own = 0;
        if let Some(Inner { source, content, held, hash }) = inner {
            self.cx.in_thin_member |= source.origin() == Origin::ThinMember;
            self.sources.push(source);
            (level.children, level.hash) = (children(content), hash);
            (level.has_source, own) = (true, held);
        }
        if is_skipped {
            level.children = Box::new(Nothing);
        }
        level.compression = compression;
        // Only bitcode holds its own bytes, and that is never compressed.
        let held = compression.map_or(own, |compression| compression.uncompressed_size);
        level.held_before = self.cx.hold(held, compression);
        self.levels.push(level);
        self.state = State::Asked(container, None);
        Ok(Step::Enter)
    }

    /// Leaves the innermost container, or the file.
    fn leave(&mut self) -> io::Result<Step> {
        let mut level = self.levels.pop().ok_or_else(no_event)?;
        let walked = level.children.walked();
        let Some(around) = self.levels.last_mut() else {
            self.format = walked.format.unwrap_or(self.format);
            return Ok(Step::End);
        };
        if level.has_source {
            let source = self.sources.pop();
            // In such a file there is no other.
            if source.is_some_and(|source| source.origin() == Origin::ThinMember) {
                self.cx.in_thin_member = false;
            }
        }
        self.cx.release(level.held_before, level.compression);
        self.cx.pop();
        around.children.left(walked);
        if let Some(Err(error)) = level.hash.map(ccob::HashCheck::finish) {
            // Before the bytes that follow the damaged images.
            around.found.first(Child::Finding(level.start, error.into()));
        }
        Ok(Step::Leave)
    }

    /// Reports a problem in the container that starts at `at`.
    fn find(&mut self, at: u64, error: Error) -> Step {
        self.find_at(Location::new(self.origin(), at), error)
    }

    /// Returns the origin of offsets.
    fn origin(&self) -> Origin {
        self.sources.last().map_or(Origin::File, Source::origin)
    }

    fn find_at(&mut self, location: Location, error: Error) -> Step {
        self.state = State::Finding(self.finding(location, error));
        Step::Finding
    }

    fn finding(&mut self, location: Location, error: Error) -> Finding {
        self.findings += 1;
        Finding { path: self.cx.shared_path(), location, error }
    }

    /// Completes the description of an image by its first bytes.
    fn see_image(&mut self, window: Range<u64>, description: Description) -> io::Result<Step> {
        // Visitors keep the path of each image.
        if let Err(error) = self.cx.take_path() {
            return Ok(self.find(window.start, error));
        }
        let Description { mut info, format, object } = description;
        let source = innermost(&mut self.sources)?;
        let mut fault = None;
        let head = match (format, info.compression) {
            (None, _) => Some(source.peek(&window, FileFormat::SNIFF_LEN)?),
            (Some(_), Some(own)) if self.cx.options.check_compressed && own.is_known() => {
                let room = self.cx.room();
                match code::decompressed(source, &window, own, room, &mut self.cx.decompressed)? {
                    Ok(mut image) => {
                        image.truncate(FileFormat::SNIFF_LEN);
                        Some(image)
                    }
                    Err(undone) => {
                        fault = Some(undone);
                        None
                    }
                }
            }
            _ => None,
        };
        let sniffed = head.as_deref().map(FileFormat::sniff);
        info.format = format.or(sniffed).unwrap_or(FileFormat::Unknown);
        if let (Some(head), Some(own)) = (head, sniffed) {
            info.code_version = device_code::code_version(&head, own).or(info.code_version);
            info.platform = MetalPlatform::of(&head).or(info.platform);
            let contradiction = contradiction(&info, own, &head).map(Box::new);
            info.disagreement = info.disagreement.or(contradiction);
        }
        info.index = self.images;
        self.images += 1;
        info.path = self.cx.shared_path();
        info.location = Location::new(source.origin(), window.start);
        info.compression_around = self.cx.compression_around();
        info.size = match info.compression {
            Some(own) => own.uncompressed_size,
            None => Window::new(&window).len(),
        };
        // Bitcode for a device embeds nothing, and there can be much of it.
        let is_host = info.target.is_host();
        let may_hold =
            info.format.may_hold_images() || (info.format == FileFormat::Bitcode && is_host);
        // Archives of code for several GPUs of Intel are images as a whole.
        let is_whole = info.compression.is_some() || info.sycl.is_some();
        let is_entered = may_hold && !is_whole && self.cx.options.enter_images;
        let fault = fault.map(|undone| match undone {
            Undone::Codec(error) => {
                let message = format!("image {}: {error}", printable(&info.entry()));
                Error::new(ErrorKind::Image, message)
            }
            Undone::Limit(limit) => Error::decompressed_in_all(info.size, limit),
        });
        self.state = State::Image(Box::new(Seen { info, window, object, is_entered, fault }));
        Ok(Step::Image)
    }

    /// Returns the image that is shown.
    fn image(&mut self) -> io::Result<Image<'_, 'r>> {
        let State::Image(seen) = &self.state else { return Err(no_event()) };
        let source = innermost(&mut self.sources)?;
        Ok(Image {
            info: &seen.info,
            window: seen.window.clone(),
            object: seen.object.clone(),
            source,
            room: self.cx.room(),
            decompressed: &mut self.cx.decompressed,
        })
    }

    /// Queues the findings and the container that follow the image just shown: its disagreement with its name, and its
    /// contents.
    fn behind_image(&mut self, seen: Seen) -> io::Result<()> {
        let Seen { info, window, is_entered, fault, .. } = seen;
        let level = innermost(&mut self.levels)?;
        if is_entered {
            let name = info.id.clone().unwrap_or_else(|| info.index.to_string());
            let step = PathStep::new(ContainerKind::Image, name);
            let opened = Opened::file(step, window.clone());
            level.found.first(Child::Container(Box::new(opened)));
        }
        if let Some(fault) = fault {
            level.found.first(Child::Finding(window.start, fault));
        }
        if let Some(disagreement) = &info.disagreement {
            let entry = info.entry();
            let entry = printable(&entry);
            let message = format!("entry {entry} and its image disagree: {disagreement}");
            let error = Error::warning(ErrorKind::Disagreement, message);
            level.found.first(Child::Finding(window.start, error));
        }
        Ok(())
    }

    /// Goes on in the file that a thin archive names, if it was opened.
    fn enter_thin_member(&mut self, opened: io::Result<Box<dyn ReadSeek>>) -> io::Result<()> {
        let State::ThinMember(member) = std::mem::replace(&mut self.state, State::Between) else {
            return Err(no_event());
        };
        let level = innermost(&mut self.levels)?;
        level.is_done |= !archive::thin_member(&mut self.cx, &member, opened, &mut level.found)?;
        Ok(())
    }
}

impl fmt::Debug for Walk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.cx.path();
        f.debug_struct("Walk")
            .field("size", &self.size)
            .field("path", &path)
            .finish_non_exhaustive()
    }
}

/// Returns the innermost level or source.
fn innermost<T>(stack: &mut [T]) -> io::Result<&mut T> {
    stack.last_mut().ok_or_else(|| io::Error::other(internal!("a walk that is in no file")))
}

fn no_event() -> io::Error {
    io::Error::other(internal!("a walk whose state does not fit its event"))
}

/// Returns what lies in a container, one after the other.
fn children(content: Content) -> Box<dyn Children> {
    match content {
        Content::Known(children) => children,
        Content::File(window) => Box::new(Contents::new(window)),
        Content::Container(window) => Box::new(Contents::of_container(window)),
        Content::One(window, format) => Box::new(One::new(window, format)),
    }
}

impl Level {
    fn new(children: Box<dyn Children>, start: u64) -> Self {
        Level {
            children,
            found: Finds::default(),
            is_done: false,
            start,
            has_source: false,
            compression: None,
            held_before: 0,
            hash: None,
        }
    }
}
