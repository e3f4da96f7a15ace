//! Types that the modules of formats hand to the walker: opened containers and their contents.
//!
//! No module walks into what it found. Each is a function from a window of a source to an [`Opened`]; [`Children`] name
//! what lies in that, one after the other, and the [walker](crate::walker) alone goes on.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::rc::Rc;

use device_code::FileFormat;

use crate::context::Context;
use crate::error::Error;
use crate::image::Description;
use crate::model::{Compression, Enter, PathStep};
use crate::source::Source;

/// A thing that lies in a container.
pub(crate) enum Child {
    /// An image in this window of the source.
    Image(Range<u64>, Box<Description>),
    /// Something wrong in the container that starts here.
    Finding(u64, Error),
    Container(Box<Opened>),
    /// A file that somebody has to open first.
    ThinMember(Member),
}

/// A container with sound headers.
pub(crate) struct Opened {
    pub(crate) step: PathStep,
    /// Its place in the source that it was found in.
    pub(crate) window: Range<u64>,
    pub(crate) compression: Option<Compression>,
    pub(crate) inside: Inside,
}

/// The place of the bytes that a container holds.
pub(crate) enum Inside {
    /// In the source of the container.
    Here(Content),
    /// In another source.
    Elsewhere(Inner),
    /// Compressed: nobody needs them before the consumer has answered.
    Closed(Box<dyn Closed>),
}

/// The bytes that a container holds. Only the walker finds out what is in unknown ones.
pub(crate) enum Content {
    Known(Box<dyn Children>),
    /// A file of any format: its first bytes tell.
    File(Range<u64>),
    /// A container of any format.
    Container(Range<u64>),
    /// A container of this format.
    One(Range<u64>, FileFormat),
}

impl Content {
    pub(crate) fn known(children: impl Children + 'static) -> Self {
        Content::Known(Box::new(children))
    }
}

/// A compressed container that nobody opened yet.
pub(crate) trait Closed {
    /// Decompresses the container in `window`.
    fn open(
        self: Box<Self>,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        window: &Range<u64>,
        answer: Enter,
    ) -> io::Result<Result<Inner, Error>>;
}

/// A container at the start of a window, and where it ends; `None` after a fault that hides the end.
pub(crate) type Container = (Opened, Option<u64>);

/// The start of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// No container, or one whose header is damaged.
    Nothing,
    /// A container whose header is in order.
    Container,
    /// Perhaps a container: the budget forbids to look.
    Unknown,
}

impl Start {
    pub(crate) fn of(is_sound: bool) -> Self {
        if is_sound { Start::Container } else { Start::Nothing }
    }
}

/// The object file for which bundles in it are its object form.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) window: Range<u64>,
    /// `true` once an entry was found that is the object itself.
    pub(crate) has_placeholder: Rc<Cell<bool>>,
}

/// A member, as its archive names it.
pub(crate) struct Member {
    pub(crate) name: Vec<u8>,
    /// Offset in the archive; `None` for a thin archive's member, which is a file of its own.
    pub(crate) start: Option<u64>,
    pub(crate) size: u64,
    /// The start of the archive.
    pub(crate) archive: u64,
}

/// A source of its own, and what lies in it.
pub(crate) struct Inner {
    pub(crate) source: Source<'static>,
    pub(crate) content: Content,
    /// Bytes that it takes of the bytes which may be held at a time, beside the bytes of a compressed container.
    pub(crate) held: u64,
    /// The hash of its bytes, which is still being compared.
    pub(crate) hash: Option<ccob::HashCheck>,
}

impl Opened {
    /// Returns a container whose contents lie in its own source.
    pub(crate) fn here(
        step: PathStep,
        window: Range<u64>,
        children: impl Children + 'static,
    ) -> Self {
        Self::of(step, window, Content::known(children))
    }

    /// Returns a container whose contents lie in its own source, whatever they are.
    pub(crate) fn file(step: PathStep, window: Range<u64>) -> Self {
        let content = Content::File(window.clone());
        Self::of(step, window, content)
    }

    fn of(step: PathStep, window: Range<u64>, content: Content) -> Self {
        Opened { step, window, compression: None, inside: Inside::Here(content) }
    }
}

/// Something to walk, in order.
#[derive(Default)]
pub(crate) struct Finds(VecDeque<Child>);

impl Finds {
    pub(crate) fn finding(&mut self, at: u64, error: impl Into<Error>) {
        self.0.push_back(Child::Finding(at, error.into()));
    }

    pub(crate) fn image(&mut self, window: Range<u64>, description: Description) {
        self.0.push_back(Child::Image(window, Box::new(description)));
    }

    pub(crate) fn container(&mut self, opened: Opened) {
        self.0.push_back(Child::Container(Box::new(opened)));
    }

    pub(crate) fn thin_member(&mut self, member: Member) {
        self.0.push_back(Child::ThinMember(member));
    }

    /// Puts a child before all others.
    pub(crate) fn first(&mut self, child: Child) {
        self.0.push_front(child);
    }

    pub(crate) fn next(&mut self) -> Option<Child> {
        self.0.pop_front()
    }
}

/// The contents of a container, one after the other.
pub(crate) trait Children {
    /// Adds the next children to `found`, perhaps none yet. Returns `false` after the last one.
    fn next(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<bool>;

    /// Receives the result of the container that was left: the last of these children that was one.
    fn left(&mut self, _: Walked) {}

    /// Returns the result of the walk through these children, for [`left`](Self::left) of the containers around.
    fn walked(&mut self) -> Walked {
        Walked::default()
    }
}

/// Facts about its place that a walk through a container finds.
#[derive(Default)]
pub(crate) struct Walked {
    /// The end, where other bytes may follow; `None` if nothing is known.
    pub(crate) end: Option<u64>,
    /// The parts of it that hold images, in order, where there is more than images.
    pub(crate) covered: Option<Vec<Range<u64>>>,
    /// Format of what was walked by its first bytes.
    pub(crate) format: Option<FileFormat>,
}

/// Nothing.
pub(crate) struct Nothing;

impl Children for Nothing {
    fn next(&mut self, _: &mut Context<'_>, _: &mut Source<'_>, _: &mut Finds) -> io::Result<bool> {
        Ok(false)
    }
}

/// A child that is known beforehand.
pub(crate) struct Known(pub(crate) Finds);

impl Children for Known {
    fn next(
        &mut self,
        _: &mut Context<'_>,
        _: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<bool> {
        found.0.append(&mut self.0.0);
        Ok(false)
    }
}
