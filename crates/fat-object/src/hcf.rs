//! HCF, the container of AdaptiveCpp: text, a marker, and the images.
//!
//! The text is lines of `key=value` and nodes, `{.name` up to `}.name`. A node `__binary` gives the place of an image in
//! the bytes after the marker: `start` and `size`, decimal (`hipSYCL/common/hcf_container.hpp`).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::vec;
use std::{fmt, io};

use device_code::FileFormat;
use target_id::{OffloadKind, Target};

use crate::bundle::lossy;
use crate::context::Context;
use crate::error::Problem;
use crate::image::Description;
use crate::image_target;
use crate::model::{ContainerKind, PathStep, printable};
use crate::opened::{Children, Found, Opened};
use crate::sequence::Container;
use crate::source::Source;

/// The key of the first line.
pub(crate) const MAGIC: &[u8] = b"object-id=";

/// The end of the text.
const MARKER: &[u8] = b"__hipsycl_hcf_binary_appendix";

/// The node that places an image.
const BINARY: &[u8] = b"__binary";

/// Bytes of text in which the marker is looked for.
const LONGEST_TEXT: u64 = 64 << 20;

/// Bytes of a node's name. C++ makes long names of kernels.
const LONGEST_NAME: usize = 64 << 10;

/// Nodes around a node. AdaptiveCpp writes five.
const DEEPEST: usize = 32;

/// A malformed HCF container. Offsets count from its start.
#[derive(Clone, Debug)]
pub(crate) enum Error {
    NoMarker { looked_at: u64 },
    Line { offset: u64, expected: &'static str, found: String },
    Missing { name: String, offset: u64, expected: &'static str },
    ImageBeyondEnd { name: String, start: u64, size: u64, available: u64 },
    Overlap { name: String, start: u64, end: u64 },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMarker { looked_at } => write!(
                f,
                "malformed HCF container: expected the text to end with __hipsycl_hcf_binary_appendix, found no such marker in {looked_at} bytes"
            ),
            Self::Line { offset, expected, found } => write!(
                f,
                "malformed HCF container: byte {offset:#x}: expected {expected}, found {found}",
                found = printable(found)
            ),
            Self::Missing { name, offset, expected } => write!(
                f,
                "malformed HCF container: node {name} at {offset:#x}: expected {expected}, found none",
                name = printable(name)
            ),
            Self::ImageBeyondEnd { name, start, size, available } => write!(
                f,
                "malformed HCF container: image {name} at {start} of {size} bytes: expected its end in the {available} bytes after the text",
                name = printable(name)
            ),
            Self::Overlap { name, start, end } => write!(
                f,
                "malformed HCF container: image {name} at {start:#x}..{end:#x} overlaps another image",
                name = printable(name)
            ),
        }
    }
}

/// Description of an image in an HCF container of AdaptiveCpp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HcfImage {
    node: String,
    format: Option<String>,
    kernels: Vec<Arc<str>>,
}

impl HcfImage {
    /// The name of the image's node: `llvm-ir.global`.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The recorded format: `llvm-ir`. [`ImageInfo::format`](crate::ImageInfo::format) tells what the bytes are.
    #[must_use]
    pub fn format(&self) -> Option<&str> {
        self.format.as_deref()
    }

    /// Names of the kernels that list this image among their providers, in stored order.
    pub fn kernels(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.kernels.iter().map(|name| &**name)
    }

    /// Bytes of all names.
    fn names(&self) -> u64 {
        let kernels = self.kernels.iter().map(|name| name.len() as u64).sum::<u64>();
        kernels + self.node.len() as u64 + self.format.as_ref().map_or(0, String::len) as u64
    }
}

/// A container; offsets count from its start.
struct Hcf {
    /// By place.
    images: Vec<(Range<u64>, HcfImage)>,
    faults: Vec<Error>,
    end: u64,
}

/// A node that is open.
struct Node<'t> {
    name: &'t [u8],
    offset: u64,
    start: Option<u64>,
    size: Option<u64>,
    format: Option<&'t [u8]>,
}

impl<'t> Node<'t> {
    fn new(name: &'t [u8], offset: u64) -> Self {
        Node { name, offset, start: None, size: None, format: None }
    }
}

/// An image as its node places it.
struct Placed<'t> {
    name: &'t [u8],
    format: Option<&'t [u8]>,
    start: u64,
    size: u64,
}

fn short(bytes: &[u8]) -> String {
    lossy(bytes.get(..256).unwrap_or(bytes))
}

/// Reads the text at the start of the window, without the marker.
fn text(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Result<Vec<u8>, Error>> {
    const FIRST: u64 = 4096;
    let available = (window.end - window.start).min(LONGEST_TEXT);
    let mut text = Vec::new();
    let mut len = FIRST;
    loop {
        let searched = text.len().saturating_sub(MARKER.len());
        let start = window.start + text.len() as u64;
        source.append_range(&(start..window.start + len.min(available)), &mut text)?;
        let new = text.get(searched..).unwrap_or_default();
        let marker = new.windows(MARKER.len()).position(|bytes| bytes == MARKER);
        let zero = new.iter().position(|&byte| byte == 0);
        match (marker, zero) {
            (Some(at), zero) if zero.is_none_or(|zero| at < zero) => {
                text.truncate(searched + at);
                return Ok(Ok(text));
            }
            (_, Some(zero)) => {
                return Ok(Err(Error::NoMarker { looked_at: (searched + zero) as u64 }));
            }
            _ if len >= available => return Ok(Err(Error::NoMarker { looked_at: available })),
            _ => len *= 2,
        }
    }
}

fn number(offset: u64, value: &[u8]) -> Result<u64, Error> {
    let text = std::str::from_utf8(value).ok();
    let digits = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|text| text.parse().ok()).ok_or_else(|| Error::Line {
        offset,
        expected: "a decimal number of 64 bits",
        found: short(value),
    })
}

/// Reads the text of a container up to a number of bytes.
fn parse(text: &[u8], available: u64) -> Result<Hcf, Error> {
    let mut open = vec![Node::new(b"root", 0)];
    let mut has_id = false;
    let mut placed = Vec::new();
    let mut kernels: HashMap<&[u8], Vec<Arc<str>>> = HashMap::new();
    let mut kernel: Option<Arc<str>> = None;
    let mut next = 0;
    for line in text.split(|&byte| byte == b'\n') {
        let offset = next as u64;
        next += line.len() + 1;
        let line = line.trim_ascii();
        let wrong = |expected| Error::Line { offset, expected, found: short(line) };
        if line.is_empty() {
            continue;
        }
        if let Some(name) = line.strip_prefix(b"{.") {
            let name = name.trim_ascii();
            if name.len() > LONGEST_NAME {
                return Err(wrong("a name of at most 65536 bytes"));
            }
            if open.len() > DEEPEST {
                return Err(wrong("at most 32 nodes around a node"));
            }
            if open.iter().skip(1).any(|around| around.name == name) {
                return Err(wrong("another name than that of a node around"));
            }
            match &*open {
                [_, list] if list.name == b"kernels" => kernel = Some(lossy(name).into()),
                [_, list, _, providers]
                    if list.name == b"kernels" && providers.name == b"image-providers" =>
                {
                    kernels.entry(name).or_default().extend(kernel.clone());
                }
                _ => {}
            }
            open.push(Node::new(name, offset));
        } else if open.len() > 1
            && let Some(node) = open.pop_if(|node| line.strip_prefix(b"}.") == Some(node.name))
        {
            if node.name == BINARY {
                let missing = |expected| Error::Missing {
                    name: short(node.name),
                    offset: node.offset,
                    expected,
                };
                let start = node.start.ok_or_else(|| missing("start="))?;
                let size = node.size.ok_or_else(|| missing("size="))?;
                let around = open.last().map_or((&b"root"[..], None), |n| (n.name, n.format));
                placed.push(Placed { name: around.0, format: around.1, start, size });
            }
        } else if let Some(at) = line.iter().position(|&byte| byte == b'=') {
            let (key, value) = line.split_at(at);
            let value = value.get(1..).unwrap_or_default();
            let is_root = open.len() == 1;
            let Some(node) = open.last_mut() else { break };
            // The first counts of keys that are there twice.
            match key {
                b"start" if node.name == BINARY => {
                    let start = number(offset, value)?;
                    node.start.get_or_insert(start);
                }
                b"size" if node.name == BINARY => {
                    let size = number(offset, value)?;
                    node.size.get_or_insert(size);
                }
                b"format" => {
                    node.format.get_or_insert(value);
                }
                b"object-id" if is_root => {
                    number(offset, value)?;
                    has_id = true;
                }
                _ => {}
            }
        } else if line.starts_with(b"}.") {
            return Err(wrong("the end of the node that was opened last"));
        } else {
            return Err(wrong("key=value, {.node or }.node"));
        }
    }
    let missing = |node: &Node<'_>, expected| {
        Err(Error::Missing { name: short(node.name), offset: node.offset, expected })
    };
    match &*open {
        [root] if !has_id => missing(root, "object-id="),
        [_] | [] => Ok(located(placed, &kernels, text.len(), available)),
        [.., last] => missing(last, "its end"),
    }
}

/// Finds images in the bytes after the text.
fn located(
    mut placed: Vec<Placed<'_>>,
    kernels: &HashMap<&[u8], Vec<Arc<str>>>,
    text_len: usize,
    available: u64,
) -> Hcf {
    let appendix = (text_len + MARKER.len()) as u64;
    let after = available.saturating_sub(appendix);
    placed.sort_by_key(|image| image.start);
    let mut hcf = Hcf { images: Vec::new(), faults: Vec::new(), end: appendix };
    for Placed { name, format, start, size } in placed {
        let Some(end) = start.checked_add(size).filter(|&end| end <= after) else {
            let name = short(name);
            hcf.faults.push(Error::ImageBeyondEnd { name, start, size, available: after });
            continue;
        };
        let (start, end) = (appendix + start, appendix + end);
        if size > 0 && start < hcf.end {
            hcf.faults.push(Error::Overlap { name: short(name), start, end });
            continue;
        }
        hcf.end = hcf.end.max(end);
        let description = HcfImage {
            node: lossy(name),
            format: format.map(lossy),
            kernels: kernels.get(name).cloned().unwrap_or_default(),
        };
        hcf.images.push((start..end, description));
    }
    hcf
}

/// Returns the size of the container at the start of the window; `None` if it is malformed or holds nothing. Adds what is
/// read to `read`.
pub(crate) fn size(
    source: &mut Source<'_>,
    window: &Range<u64>,
    read: &mut u64,
) -> io::Result<Option<u64>> {
    let text = match text(source, window)? {
        Ok(text) => text,
        Err(Error::NoMarker { looked_at }) => {
            *read += looked_at;
            return Ok(None);
        }
        Err(_) => return Ok(None),
    };
    *read += text.len() as u64;
    let hcf = parse(&text, window.end - window.start).ok();
    let sound = hcf.filter(|hcf| hcf.faults.is_empty() && !hcf.images.is_empty());
    Ok(sound.map(|hcf| hcf.end))
}

/// Opens the container at the start of the window. Its end is not known if an image in it is damaged.
pub(crate) fn open(
    source: &mut Source<'_>,
    window: &Range<u64>,
    ordinal: usize,
) -> io::Result<Result<Container, Problem>> {
    let start = window.start;
    let parsed = text(source, window)?.and_then(|text| parse(&text, window.end - start));
    let Hcf { images, faults, end } = match parsed {
        Ok(hcf) => hcf,
        Err(error) => return Ok(Err(error.into())),
    };
    let sound_end = faults.is_empty().then_some(start + end);
    let images = Images { start, faults, images: images.into_iter() };
    let step = PathStep::new(ContainerKind::Hcf, ordinal.to_string());
    Ok(Ok((Opened::here(step, start..start + end, images), sound_end)))
}

/// The images of a container.
struct Images {
    start: u64,
    faults: Vec<Error>,
    images: vec::IntoIter<(Range<u64>, HcfImage)>,
}

impl Children for Images {
    fn next(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Found,
    ) -> io::Result<bool> {
        for fault in self.faults.drain(..) {
            found.finding(self.start, fault);
        }
        let Some((range, image)) = self.images.next() else { return Ok(false) };
        if let Err(error) = cx.take_names(image.names()) {
            found.finding(self.start, error);
            return Ok(false);
        }
        let window = self.start + range.start..self.start + range.end;
        let own = match FileFormat::sniff(&source.peek(&window, FileFormat::SNIFF_LEN)?) {
            // Its triple is that of the host: code for all GPUs is made of it.
            FileFormat::Bitcode => None,
            format => image_target::of_window(source, &window, format)?,
        };
        let triple = own.as_ref().and_then(Target::triple).cloned();
        let id = own.as_ref().map(Target::id).unwrap_or_default();
        let target = Target::new(Some(OffloadKind::Sycl), triple, id);
        let mut description = Description::new(ContainerKind::Hcf, target.into());
        description.info.offset_in_container = range.start;
        description.info.hcf = Some(image.into());
        found.image(window, description);
        Ok(true)
    }
}
