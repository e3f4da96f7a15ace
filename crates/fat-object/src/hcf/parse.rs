//! The text of a container.

use std::collections::BTreeMap;
use std::ops::Range;
use std::string::String;
use std::sync::Arc;
use std::vec;
use std::vec::Vec;

use byte_parts::Window;

use crate::hcf::error::{Error, ErrorKind};
use crate::hcf::image::HcfImage;

/// The key of the first line, with which a container starts.
pub const MAGIC: &[u8] = b"object-id=";

/// The end of the text.
const MARKER: &[u8] = b"__hipsycl_hcf_binary_appendix";

/// The node that places an image.
const BINARY: &[u8] = b"__binary";

/// Bytes of text in which the marker is looked for.
const LONGEST_TEXT: usize = 64 << 20;

/// Bytes of a node's name. C++ makes long names of kernels.
const LONGEST_NAME: usize = 64 << 10;

/// Nodes around a node. AdaptiveCpp writes five.
const DEEPEST: usize = 32;

/// An HCF container by its text. Offsets count from its start.
#[derive(Debug)]
#[non_exhaustive]
pub struct Hcf {
    /// Images by place.
    pub images: Vec<HcfImage>,
    /// Faults of the images that cannot be read.
    pub faults: Vec<Error>,
    /// End of the last image that can be read, or of the text.
    pub end: u64,
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

/// Returns the text of a container of at most `available` bytes that starts with `prefix`; `None` if the text may end after
/// the prefix. The text is without its marker.
///
/// Read more, at least twice as much, and call it again: text is looked at up to 64 MiB.
///
/// ```
/// let start = b"object-id=1\n__hipsycl_hcf_binary_appendixcode";
/// assert_eq!(fat_object::hcf::text(start, 1000)?, Some(&b"object-id=1\n"[..]));
/// assert_eq!(fat_object::hcf::text(&start[..20], 1000)?, None);
/// # Ok::<(), fat_object::hcf::Error>(())
/// ```
///
/// # Errors
///
/// No marker ends the text before a zero, or in all that is available.
pub fn text(prefix: &[u8], available: u64) -> Result<Option<&[u8]>, Error> {
    let longest = usize::try_from(available).map_or(LONGEST_TEXT, |len| len.min(LONGEST_TEXT));
    let prefix = prefix.get(..longest).unwrap_or(prefix);
    let zero = prefix.iter().position(|&byte| byte == 0);
    let searched = zero.and_then(|zero| prefix.get(..zero)).unwrap_or(prefix);
    let marker = searched.windows(MARKER.len()).position(|bytes| bytes == MARKER);
    match marker.and_then(|at| searched.get(..at)) {
        None if zero.is_none() && prefix.len() < longest => Ok(None),
        None => {
            let looked_at = searched.len() as u64;
            let message = format!(
                "expected the text to end with __hipsycl_hcf_binary_appendix, found no such marker in {looked_at} bytes"
            );
            Err(Error::new(ErrorKind::NoMarker, looked_at, message))
        }
        text => Ok(text),
    }
}

impl Hcf {
    /// Reads the [text] of a container of at most `available` bytes, those of the text included.
    ///
    /// ```
    /// let text = b"object-id=1\n{.ptx\n{.__binary\nstart=0\nsize=4\n}.__binary\n}.ptx\n";
    /// let marker = "__hipsycl_hcf_binary_appendix".len();
    /// let available = (text.len() + marker + 4) as u64;
    /// let container = fat_object::hcf::Hcf::parse(text, available)?;
    /// assert_eq!(container.images[0].range(), available - 4..available);
    ///
    /// let cut_short = fat_object::hcf::Hcf::parse(text, available - 1)?;
    /// assert!(cut_short.images.is_empty());
    /// assert_eq!(cut_short.faults[0].kind(), fat_object::hcf::ErrorKind::Image);
    /// # Ok::<(), fat_object::hcf::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A line is malformed, or a node lacks a key or its end. The [`faults`](Self::faults) include errors in the
    /// place of one image.
    pub fn parse(text: &[u8], available: u64) -> Result<Self, Error> {
        let mut open = vec![Node::new(b"root", 0)];
        let mut has_id = false;
        let mut placed = Vec::new();
        let mut kernels: BTreeMap<&[u8], Vec<Arc<str>>> = BTreeMap::new();
        let mut kernel: Option<Arc<str>> = None;
        let mut next = 0;
        for line in text.split(|&byte| byte == b'\n') {
            let offset = next as u64;
            next += line.len() + 1;
            let line = line.trim_ascii();
            let wrong = |expected| Error::of_line(offset, expected, &short(line));
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
                    return Err(wrong("another name than an outer node"));
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
                    let start = node.start.ok_or_else(|| missing(&node, "start="))?;
                    let size = node.size.ok_or_else(|| missing(&node, "size="))?;
                    let around = open.last().map_or((&b"root"[..], None), |n| (n.name, n.format));
                    placed.push(Placed { name: around.0, format: around.1, start, size });
                }
            } else if let Some(at) = line.iter().position(|&byte| byte == b'=')
                && let (key, [_, value @ ..]) = line.split_at(at)
            {
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
        match &*open {
            [root] if !has_id => Err(missing(root, "object-id=")),
            [_] | [] => Ok(located(placed, &kernels, text.len(), available)),
            [.., last] => Err(missing(last, "its end")),
        }
    }
}

fn missing(node: &Node<'_>, expected: &'static str) -> Error {
    let (name, offset) = (short(node.name), node.offset);
    let message = format!("node {name} at {offset:#x}: expected {expected}, found none");
    Error::new(ErrorKind::Malformed, offset, message)
}

fn number(offset: u64, value: &[u8]) -> Result<u64, Error> {
    let text = core::str::from_utf8(value).ok();
    let digits = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Error::of_line(offset, "a decimal number of 64 bits", &short(value)))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the first bytes of a name or line, printable.
fn short(bytes: &[u8]) -> String {
    let mut text = String::new();
    for c in lossy(bytes.get(..256).unwrap_or(bytes)).chars() {
        if c.is_control() { text.extend(c.escape_default()) } else { text.push(c) }
    }
    text
}

/// Finds images in the bytes after the text.
fn located(
    mut placed: Vec<Placed<'_>>,
    kernels: &BTreeMap<&[u8], Vec<Arc<str>>>,
    text_len: usize,
    available: u64,
) -> Hcf {
    let appendix = (text_len + MARKER.len()) as u64;
    let after = Window::new(&(appendix..available));
    placed.sort_by_key(|image| image.start);
    let mut hcf = Hcf { images: Vec::new(), faults: Vec::new(), end: appendix };
    for Placed { name, format, start, size } in placed {
        let Some(range) = after.sized(start, size) else {
            // A start too large for a number lies past the end, too.
            let (name, offset) = (short(name), appendix.saturating_add(start));
            let len = after.len();
            let message = format!(
                "image {name} at {start} of {size} bytes: expected its end in the {len} bytes after the text"
            );
            hcf.faults.push(Error::new(ErrorKind::Image, offset, message));
            continue;
        };
        let Range { start, end } = range;
        if size > 0 && start < hcf.end {
            let name = short(name);
            let message = format!("image {name} at {start:#x}..{end:#x} overlaps another image");
            hcf.faults.push(Error::new(ErrorKind::Image, start, message));
            continue;
        }
        hcf.end = hcf.end.max(end);
        hcf.images.push(HcfImage {
            range,
            node: lossy(name),
            format: format.map(lossy),
            // Not every image has kernels.
            kernels: kernels.get(name).cloned().unwrap_or_default(),
        });
    }
    hcf
}
