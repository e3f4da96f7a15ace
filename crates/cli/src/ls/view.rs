//! The table, the tree and the totals.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;

use fat_object::{Container, FileFormat, ImageInfo, Summary};
use target_id::OffloadKind;

use super::row::{Hashed, Key, group, path, stored, stored_text};
use tool_kit::style::{self, BAR, COLUMN, HEADING, Out, PLAIN, TARGET, part, show};
use tool_kit::table::{Align, Table};

/// Returns the name of a format; a dash for an image that was not read.
pub(crate) fn format_text(format: FileFormat) -> String {
    match format {
        FileFormat::NotRead => "-".to_owned(),
        format => format.to_string(),
    }
}

/// A line of the tree: a container, or an image at its depth.
#[derive(Debug)]
pub(super) struct Item {
    depth: usize,
    what: What,
}

#[derive(Debug)]
enum What {
    Container(String),
    Image(Box<Hashed>),
}

impl Item {
    pub(super) fn container(depth: usize, container: &Container) -> Self {
        let name = container.path().last().map(ToString::to_string).unwrap_or_default();
        let size = style::size(container.size());
        let text = match container.compression() {
            Some(c) => {
                format!("{name}  {}, {size} of {}", c.method(), style::size(c.uncompressed_size()))
            }
            None => format!("{name}  {size}"),
        };
        Item { depth, what: What::Container(text) }
    }

    pub(super) fn image(depth: usize, image: Hashed) -> Self {
        Item { depth, what: What::Image(Box::new(image)) }
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    pub(super) fn as_image(&self) -> Option<&Hashed> {
        match &self.what {
            What::Container(_) => None,
            What::Image(image) => Some(image),
        }
    }
}

/// Prints a heading like `libfoo.so  1.2 MiB, ELF`; `thin` is the size of the files that a thin archive names.
pub(crate) fn heading(
    out: &mut Out<'_>,
    file: &str,
    summary: &Summary,
    thin: u64,
) -> io::Result<()> {
    let size = style::size(summary.size);
    part!(out, "{HEADING}{file}{HEADING:#}  {size}, {}", summary.format);
    if thin > 0 {
        part!(out, ", naming files of {}", style::size(thin));
    }
    show!(out)
}

pub(super) fn flat(out: &mut Out<'_>, images: &[&Hashed], file_size: u64) -> io::Result<()> {
    let mut table = Table::default()
        .column("#", Align::Right, COLUMN)
        .column("KIND", Align::Left, PLAIN)
        .column("TRIPLE", Align::Left, PLAIN)
        .optional(3)
        .column("TARGET", Align::Left, TARGET)
        .column("FORMAT", Align::Left, PLAIN)
        .optional(2)
        .column("SIZE", Align::Right, PLAIN)
        .column("STORED", Align::Right, PLAIN)
        .optional(5)
        .column("", Align::Left, BAR)
        .optional(1)
        .column("SHARE", Align::Right, PLAIN)
        .optional(4)
        .column("HASH", Align::Left, PLAIN)
        .column("IN", Align::Left, COLUMN)
        .shrinks();
    for one in images {
        let Hashed { listed: image, hash, .. } = one;
        let target = image.target();
        table.row(&[
            image.index().to_string(),
            or_dash(target.kind().map(OffloadKind::as_str)),
            or_dash(target.triple_text()),
            one.target(),
            format_text(image.format()),
            style::size(image.size()),
            stored_text(image),
            style::bar(stored(image), file_size),
            style::percent(stored(image), file_size),
            hash.clone().unwrap_or_default(),
            path(image),
        ]);
    }
    table.print(out, "  ", style::terminal_width())
}

pub(super) fn tree(out: &mut Out<'_>, items: &[Item]) -> io::Result<()> {
    for item in items {
        part!(out, "{:indent$}", "", indent = 2 + 2 * item.depth);
        match &item.what {
            What::Container(text) => show!(out, "{text}")?,
            What::Image(image) => {
                let one = image;
                let Hashed { listed: image, hash, .. } = &**one;
                let target = image.target();
                let parts = [target.kind().map(OffloadKind::as_str), target.triple_text()];
                let what: String =
                    parts.into_iter().flatten().flat_map(|part| [part, " "]).collect();
                let target = one.target();
                let (index, size) = (image.index(), style::size(image.size()));
                part!(out, "{COLUMN}#{index}{COLUMN:#} {what}{TARGET}{target}{TARGET:#}  ");
                match image.format() {
                    FileFormat::NotRead => part!(out, "{size}"),
                    format => part!(out, "{format}, {size}"),
                }
                match hash {
                    Some(hash) => show!(out, ", {hash}")?,
                    None => show!(out)?,
                }
            }
        }
    }
    Ok(())
}

fn or_dash(text: Option<&str>) -> String {
    text.unwrap_or("-").to_owned()
}

/// Sums per target, in the order in which targets first appear.
#[derive(Debug, Default)]
pub(super) struct Totals {
    groups: Vec<Group>,
    /// Positions in `groups` by name.
    by_name: HashMap<String, usize>,
    file_size: u64,
    files: usize,
}

#[derive(Debug)]
struct Group {
    name: String,
    images: usize,
    size: u64,
    stored: u64,
    /// `true` if a part of `stored` is an estimate.
    is_estimate: bool,
}

impl Totals {
    pub(super) fn add_file(&mut self, size: u64) {
        self.files += 1;
        self.file_size = self.file_size.saturating_add(size);
    }

    pub(super) fn files(&self) -> usize {
        self.files
    }

    /// Counts an image, unless it has no bytes of its own: the placeholders of the host, and containers whose
    /// images are counted themselves.
    pub(super) fn add(&mut self, image: &ImageInfo) {
        let format = image.format();
        let is_entered = image.compression().is_none() && image.sycl().is_none();
        let is_around = format.is_container() && is_entered;
        if image.size() == 0 || format == FileFormat::HostPlaceholder || is_around {
            return;
        }
        let name = group(image);
        let at = *self.by_name.entry(name.clone()).or_insert(self.groups.len());
        if at == self.groups.len() {
            self.groups.push(Group { name, images: 0, size: 0, stored: 0, is_estimate: false });
        }
        if let Some(group) = self.groups.get_mut(at) {
            group.images += 1;
            group.size = group.size.saturating_add(image.size());
            group.stored = group.stored.saturating_add(stored(image));
            group.is_estimate |= image.stored_size().is_none();
        }
    }

    /// Puts targets in an order.
    pub(super) fn sort(&mut self, key: Key) {
        match key {
            Key::File => {}
            Key::Size => self.groups.sort_by_key(|group| Reverse(group.size)),
            Key::Stored => self.groups.sort_by_key(|group| Reverse(group.stored)),
            Key::Target => self.groups.sort_by(|a, b| a.name.cmp(&b.name)),
        }
    }

    pub(super) fn file_size(&self) -> u64 {
        self.file_size
    }

    pub(super) fn images(&self) -> usize {
        self.groups.iter().map(|group| group.images).sum()
    }
}

/// Prints the totals of one file.
pub(super) fn totals(out: &mut Out<'_>, totals: &Totals, below_rows: bool) -> io::Result<()> {
    if totals.groups.is_empty() {
        return Ok(());
    }
    if below_rows {
        show!(out)?;
    }
    let mut table = Table::default()
        .column("TOTAL FOR", Align::Left, TARGET)
        .column("IMAGES", Align::Right, PLAIN)
        .column("SIZE", Align::Right, PLAIN)
        .column("STORED", Align::Right, PLAIN)
        .column("", Align::Left, BAR)
        .optional(1)
        .column("SHARE", Align::Right, PLAIN);
    for group in &totals.groups {
        table.row(&[
            group.name.clone(),
            group.images.to_string(),
            style::size(group.size),
            match group.stored == group.size {
                true => String::new(),
                false if group.is_estimate => format!("~{}", style::size(group.stored)),
                false => style::size(group.stored),
            },
            style::bar(group.stored, totals.file_size),
            style::percent(group.stored, totals.file_size),
        ]);
    }
    table.print(out, "  ", style::terminal_width())
}

/// Prints the number of images and the option that shows them.
pub(super) fn hint(out: &mut Out<'_>, images: usize) -> io::Result<()> {
    show!(out, "  {COLUMN}{images} images: --rows shows them{COLUMN:#}")
}

/// Prints the totals of all files.
pub(super) fn grand_total(out: &mut Out<'_>, all: &Totals) -> io::Result<()> {
    let size = style::size(all.file_size);
    show!(out, "{HEADING}all {} files{HEADING:#}  {size}", all.files)?;
    totals(out, all, true)
}
