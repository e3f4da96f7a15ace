//! The table, the tree and the totals.

use std::io;

use byte_parts::internal;
use fat_object::{Container, FileFormat, Summary, TargetTotals};
use target_id::OffloadKind;

use super::row::{Hashed, Key, path, stored_text};
use tool_kit::style::{self, BAR, COLUMN, HEADING, Out, TARGET, part, show};
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
    pub(super) depth: usize,
    what: What,
}

#[derive(Debug)]
enum What {
    Container(String),
    Image(Box<Hashed>),
}

impl Item {
    pub(super) fn container(depth: usize, container: &Container) -> Self {
        let name = match container.path().last() {
            Some(step) => step.to_string(),
            None => internal!("a container has a step").to_owned(),
        };
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

    pub(super) fn as_image(&self) -> Option<&Hashed> {
        match &self.what {
            What::Container(_) => None,
            What::Image(image) => Some(image),
        }
    }
}

/// Prints a heading like `libfoo.so  1.2 MiB, ELF`.
pub(crate) fn heading(out: &mut Out<'_>, file: &str, summary: &Summary) -> io::Result<()> {
    let size = style::size(summary.size);
    part!(out, "{HEADING}{file}{HEADING:#}  {size}, {}", summary.format);
    if summary.thin_size > 0 {
        part!(out, ", naming files of {}", style::size(summary.thin_size));
    }
    show!(out)
}

pub(super) fn flat(out: &mut Out<'_>, images: &[&Hashed], file_size: u64) -> io::Result<()> {
    let mut table = Table::default()
        .column("#", Align::Right, COLUMN)
        .texts(["KIND", "TRIPLE"])
        .optional(3)
        .column("TARGET", Align::Left, TARGET)
        .texts(["FORMAT"])
        .optional(2)
        .numbers(["SIZE", "STORED"])
        .optional(5)
        .column("", Align::Left, BAR)
        .optional(1)
        .numbers(["SHARE"])
        .optional(4)
        .texts(["HASH"])
        .column("IN", Align::Left, COLUMN)
        .shrinks();
    for one in images {
        let Hashed { listed: image, hash, .. } = one;
        let target = image.target();
        table.row(&[
            image.index().to_string(),
            target.kind().map_or("-", OffloadKind::as_str).to_owned(),
            target.triple_text().unwrap_or("-").to_owned(),
            one.target(),
            format_text(image.format()),
            style::size(image.size()),
            stored_text(image),
            style::bar(image.stored_estimate(), file_size),
            style::percent(image.stored_estimate(), file_size),
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

/// Sums of one file, or of all.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) targets: TargetTotals,
    pub(super) file_size: u64,
    pub(super) files: usize,
}

impl Totals {
    pub(super) fn add_file(&mut self, size: u64) {
        self.files += 1;
        // Sparse files may have any size.
        self.file_size = self.file_size.saturating_add(size);
    }
}

/// Prints the totals of one file.
pub(super) fn totals(
    out: &mut Out<'_>,
    totals: &Totals,
    key: Key,
    below_rows: bool,
) -> io::Result<()> {
    let groups = key.sorted(&totals.targets);
    if groups.is_empty() {
        return Ok(());
    }
    if below_rows {
        show!(out)?;
    }
    let mut table = Table::default()
        .column("TOTAL FOR", Align::Left, TARGET)
        .numbers(["IMAGES", "SIZE", "STORED"])
        .column("", Align::Left, BAR)
        .optional(1)
        .numbers(["SHARE"]);
    for group in groups {
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
