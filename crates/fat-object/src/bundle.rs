//! Bundles, binary and text: from their entries to images.

use std::io;
use std::ops::Range;
use std::vec;

use bundle_format::text::{TAIL_LEN, TextBundle, ends_in_marker};
use bundle_format::{Bundle, EntryId, MAGIC};
use byte_parts::{Budget, internal};
use device_code::FileFormat;

use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::image::{BundleForm, Description};
use crate::model::{ContainerKind, PathStep};
use crate::opened::{Children, Container, Finds, Object, Opened, Start};
use crate::source::Source;
use crate::text::{lossy, printable};

/// Opens the binary bundle at the start of the window.
pub(crate) fn open(
    cx: &Context<'_>,
    source: &mut Source<'_>,
    window: &Range<u64>,
    ordinal: usize,
) -> io::Result<Result<Container, Error>> {
    let prefix = prefix(source, window)?;
    let bundle = match Bundle::parse_prefix(&prefix, window.end - window.start) {
        Ok(bundle) => bundle,
        Err(error) => return Ok(Err(error.into())),
    };
    let container = container_of(cx.directly_in(ContainerKind::Ccob));
    let opened = opened(container, &bundle, window.start, ordinal);
    let end = opened.window.end;
    Ok(Ok((opened, Some(end))))
}

/// Returns the bundle that starts here.
pub(crate) fn opened(
    container: ContainerKind,
    bundle: &Bundle<'_>,
    start: u64,
    ordinal: usize,
) -> Opened {
    let entries = bundle.entries().map(|entry| (lossy(entry.id()), entry.offset(), entry.size()));
    let entries = Entries::new(container, BundleForm::Binary, start, entries);
    let step = PathStep::new(ContainerKind::Bundle, ordinal.to_string());
    Opened::here(step, start..start + bundle.end(), entries)
}

/// Returns the container that an entry reports: the compressed bundle, for an entry of one.
pub(crate) fn container_of(is_compressed: bool) -> ContainerKind {
    if is_compressed { ContainerKind::Ccob } else { ContainerKind::Bundle }
}

/// The entries of a bundle: ID, offset from its start, size.
struct Entries {
    container: ContainerKind,
    form: BundleForm,
    start: u64,
    ids: Vec<String>,
    places: vec::IntoIter<(u64, u64)>,
    next: usize,
}

impl Entries {
    fn new(
        container: ContainerKind,
        form: BundleForm,
        start: u64,
        entries: impl Iterator<Item = (String, u64, u64)>,
    ) -> Self {
        let (ids, places): (Vec<_>, Vec<_>) =
            entries.map(|(id, offset, size)| (id, (offset, size))).unzip();
        Entries { container, form, start, ids, places: places.into_iter(), next: 0 }
    }

    fn composition(&self, cx: &mut Context<'_>, found: &mut Finds) {
        for finding in cx.composition(&self.ids) {
            found.finding(self.start, Error::of_composition(finding));
        }
    }
}

impl Children for Entries {
    fn next(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<bool> {
        if self.next == 0 {
            self.composition(cx, found);
        }
        let Some((offset, size)) = self.places.next() else { return Ok(false) };
        let id = self.ids.get_mut(self.next).map(std::mem::take);
        let id = id.ok_or_else(|| io::Error::other(internal!("a bundle entry without an ID")))?;
        self.next += 1;
        let start = self.start + offset;
        let window = start..start + size;
        let mut description = Description::of_entry(cx, self.container, self.form, id, offset);
        if source.is_start() {
            description.format = Some(match size {
                0 => FileFormat::Empty,
                _ => FileFormat::NotRead,
            });
        }
        found.image(window, description);
        Ok(true)
    }
}

impl Description {
    /// Returns the description of an image that a bundle entry ID names.
    fn of_entry(
        cx: &mut Context<'_>,
        container: ContainerKind,
        form: BundleForm,
        id: String,
        offset_in_container: u64,
    ) -> Self {
        let mut description = Description::new(container, cx.target_of(&id));
        description.info.id = Some(id);
        description.info.bundle_form = Some(form);
        description.info.offset_in_container = offset_in_container;
        description
    }
}

/// Completes the description of an entry of a bundle in the object form.
fn in_object(
    source: &mut Source<'_>,
    object: &Object,
    window: &Range<u64>,
    description: &mut Description,
    found: &mut Finds,
) -> io::Result<()> {
    description.object = Some(object.window.clone());
    // One zero byte marks the host object. A device image can be one zero byte, too: the kind decides.
    let is_host = description.info.target.is_host();
    if is_host && source.peek(window, 2)? == [0] {
        // It marks the whole object: a second one would make its contents a multiple of it.
        if object.has_placeholder.replace(true) {
            let id = description.info.id.as_deref().unwrap_or("");
            let message = format!("duplicate host placeholder {}", printable(id));
            found.finding(window.start, Error::new(ErrorKind::Composition, message));
        } else {
            description.format = Some(FileFormat::HostPlaceholder);
        }
    }
    Ok(())
}

/// A section that is a bundle entry itself, as the bundler puts them into objects.
pub(crate) struct SectionEntry {
    pub(crate) object: Object,
    pub(crate) window: Range<u64>,
    pub(crate) id: String,
}

impl Children for SectionEntry {
    fn next(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<bool> {
        let id = std::mem::take(&mut self.id);
        for finding in cx.composition(std::slice::from_ref(&id)) {
            found.finding(self.window.start, Error::of_composition(finding));
        }
        let (container, form) = (ContainerKind::Section, BundleForm::Section);
        let mut description = Description::of_entry(cx, container, form, id, 0);
        in_object(source, &self.object, &self.window, &mut description, found)?;
        found.image(self.window.clone(), description);
        Ok(false)
    }
}

/// A text bundle, which takes the whole window: its end is nowhere recorded.
pub(crate) struct Text {
    window: Range<u64>,
}

impl Text {
    pub(crate) fn new(window: Range<u64>) -> Self {
        Text { window }
    }

    fn opened<'e>(
        &self,
        cx: &Context<'_>,
        form: BundleForm,
        entries: impl Iterator<Item = bundle_format::text::Entry<'e>>,
    ) -> Opened {
        let container = container_of(cx.directly_in(ContainerKind::Ccob));
        let entries = entries.map(|entry| (lossy(entry.id()), entry.offset(), entry.size()));
        let entries = Entries::new(container, form, self.window.start, entries);
        let step = PathStep::new(ContainerKind::Bundle, "0");
        Opened::here(step, self.window.clone(), entries)
    }

    fn parse(&self, cx: &Context<'_>, bytes: &[u8]) -> Result<Opened, bundle_format::Error> {
        let bundle = TextBundle::parse(bytes)?;
        Ok(self.opened(cx, BundleForm::Text(bundle.leader()), bundle.entries()))
    }
}

impl Children for Text {
    fn next(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<bool> {
        let bytes = source.range(&self.window)?;
        match self.parse(cx, &bytes) {
            Ok(opened) => found.container(opened),
            Err(error) => found.finding(self.window.start, error),
        }
        Ok(false)
    }
}

/// Reads the start of a binary bundle with its table of entries.
pub(crate) fn prefix(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Vec<u8>> {
    source.read_prefix(window, |prefix, available| {
        Bundle::parse_prefix(prefix, available).err().and_then(|error| error.needed())
    })
}

/// Returns whether a bundle of any entries starts here. Counts the bytes that it reads against `headers`.
pub(crate) fn is_start(
    source: &mut Source<'_>,
    window: &Range<u64>,
    head: &[u8],
    headers: &mut Budget,
) -> io::Result<Start> {
    if !head.starts_with(&MAGIC) {
        return Ok(Start::Nothing);
    }
    if headers.left() == 0 {
        return Ok(Start::Unknown);
    }
    let prefix = prefix(source, window)?;
    headers.spend(prefix.len() as u64);
    // Programs that read bundles have the magic among their constants, followed by zeros.
    let bundle = Bundle::parse_prefix(&prefix, window.end - window.start);
    Ok(Start::of(bundle.is_ok_and(|bundle| !bundle.is_empty())))
}

/// Returns the size of a bundle in which each entry has an ID.
pub(crate) fn size(
    source: &mut Source<'_>,
    window: &Range<u64>,
    head: &[u8],
    read: &mut u64,
) -> io::Result<Option<u64>> {
    let available = window.end - window.start;
    // Most are refused by the first bytes.
    let is_refused = Bundle::parse_prefix(head, available).is_err_and(|e| e.needed().is_none());
    if !head.starts_with(&MAGIC) || is_refused {
        return Ok(None);
    }
    let prefix = prefix(source, window)?;
    *read += prefix.len() as u64;
    let bundle = Bundle::parse_prefix(&prefix, available).ok().filter(|bundle| {
        !bundle.is_empty()
            && bundle.entries().all(|entry| EntryId::parse(&lossy(entry.id())).is_ok())
    });
    Ok(bundle.map(|bundle| bundle.end()))
}

/// Returns whether the window, whose first bytes are `head`, holds a text whose last line is the marker of a text
/// bundle: something may stand before its first one. Reads a few kilobytes once, whatever the window holds.
pub(crate) fn is_text_ending_in_marker(
    source: &mut Source<'_>,
    window: &Range<u64>,
    head: &[u8],
) -> io::Result<bool> {
    if head.contains(&0) {
        return Ok(false);
    }
    let start = window.end - (TAIL_LEN as u64).min(window.end - window.start);
    Ok(ends_in_marker(&source.read_range(&(start..window.end))?))
}
