//! The table, the tree and the totals.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use byte_parts::internal;
use device_select::CodeKind;
use fat_object::{Container, FileFormat, ImageInfo, Summary, TargetTotal, TargetTotals};
use target_id::OffloadKind;

use super::needs::Needs;
use tool_answers::row::Row;
use tool_kit::style::{self, BAR, COLUMN, HEADING, Out, TARGET, part, show};
use tool_kit::table::{Align, Table};

/// Returns the name of a format; a dash for an image that was not read.
pub(crate) fn format_text(format: FileFormat) -> String {
    match format {
        FileFormat::NotRead => "-".to_owned(),
        format => format.to_string(),
    }
}

/// Returns the text of the STORED column: empty for an image that is not compressed.
fn stored_text(image: &ImageInfo) -> String {
    match (image.compression_around().or(image.compression()), image.stored_size()) {
        (None, _) => String::new(),
        _ if image.size() == 0 => String::new(),
        (Some(_), Some(stored)) => style::size(stored),
        (Some(_), None) => format!("~{}", style::size(image.stored_estimate())),
    }
}

/// Keys of `--sort`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Key {
    /// In file order
    File,
    /// Largest first
    Size,
    /// Largest share of the file first
    Stored,
    /// By target ID
    Target,
}

impl Key {
    /// Sorts images.
    pub(super) fn sort(self, images: &mut [&Row]) {
        match self {
            Key::File => {}
            Key::Size => images.sort_by_key(|image| Reverse(image.listed.size())),
            Key::Stored => images.sort_by_key(|image| Reverse(image.listed.stored_estimate())),
            Key::Target => images.sort_by_cached_key(|image| image.listed.total_name()),
        }
    }

    /// Sorts sums, each with something about it.
    pub(super) fn sort_sums<T>(self, sums: &mut [(T, &TargetTotal)]) {
        match self {
            Key::File => {}
            Key::Size => sums.sort_by_key(|(_, total)| Reverse(total.size)),
            Key::Stored => sums.sort_by_key(|(_, total)| Reverse(total.stored)),
            Key::Target => sums.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name)),
        }
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
    Image(Box<Row>),
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

    pub(super) fn image(depth: usize, image: Row) -> Self {
        Item { depth, what: What::Image(Box::new(image)) }
    }

    pub(super) fn as_image(&self) -> Option<&Row> {
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

pub(super) fn flat(out: &mut Out<'_>, images: &[&Row], file_size: u64) -> io::Result<()> {
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
        let Row { listed: image, hash, .. } = one;
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
            one.path(),
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
                let Row { listed: image, hash, .. } = &**one;
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

/// Sums of images, of one file or of several.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// By the kind of the code, if it was read. One file has one list.
    targets: BTreeMap<Option<CodeKind>, TargetTotals>,
    needs: Needs,
    file_size: u64,
    files: usize,
    /// The number of files with images of each row, if there may be several.
    files_of: Option<HashMap<(Option<CodeKind>, String), usize>>,
}

impl Totals {
    /// Returns the sums of no file, of several to come.
    pub(super) fn of_several() -> Self {
        Totals { files_of: Some(HashMap::new()), ..Totals::default() }
    }

    /// Adds a file; a size that is not known is left out.
    pub(super) fn add(&mut self, size: Option<u64>, images: &[&Row]) {
        if let Some(size) = size {
            self.files += 1;
            // Sparse files may have any size.
            self.file_size = self.file_size.saturating_add(size);
        }
        let mut seen = HashSet::new();
        for image in images {
            let is_known = self.files_of.is_some() && image.listed.format() != FileFormat::NotRead;
            let kind = CodeKind::of(&image.listed).filter(|_| is_known);
            self.targets.entry(kind).or_default().add(&image.listed);
            self.needs.add(image);
            if let Some(files) = self.files_of.as_mut().filter(|_| image.listed.is_counted()) {
                let row = (kind, image.listed.total_name());
                if seen.insert(row.clone()) {
                    *files.entry(row).or_default() += 1;
                }
            }
        }
    }

    pub(super) fn file_size(&self) -> u64 {
        self.file_size
    }

    /// Returns the number and the size of the files in words.
    pub(super) fn files(&self) -> (String, String) {
        (style::files(self.files), style::size(self.file_size))
    }

    /// Returns whether there is only one file, or none.
    pub(super) fn is_single(&self) -> bool {
        self.files < 2
    }

    pub(super) fn is_empty(&self) -> bool {
        self.targets.values().all(|targets| targets.all().is_empty())
    }

    /// Prints the needs of all images.
    pub(super) fn print_needs(&self, out: &mut Out<'_>) -> io::Result<()> {
        self.needs.print(out)
    }

    /// Prints a row for each target, and for several files also by the kind of code.
    pub(super) fn print(&self, out: &mut Out<'_>, key: Key, below_rows: bool) -> io::Result<()> {
        let by_kind = self
            .targets
            .iter()
            .flat_map(|(kind, targets)| targets.all().iter().map(move |total| (*kind, total)));
        let mut sums: Vec<_> = by_kind.collect();
        if sums.is_empty() {
            return Ok(());
        }
        key.sort_sums(&mut sums);
        if below_rows {
            show!(out)?;
        }
        let stored = sums.iter().try_fold(0u64, |sum, (_, total)| sum.checked_add(total.stored));
        let is_estimate = sums.iter().any(|(_, total)| total.is_estimate);
        let mut table = Table::default()
            .column("TOTAL FOR", Align::Left, TARGET)
            .texts(["CODE"])
            .numbers(["FILES"])
            .optional(3)
            .numbers(["IMAGES"])
            .optional(2)
            .numbers(["SIZE", "STORED"])
            .column("", Align::Left, BAR)
            .optional(1)
            .numbers(["SHARE"]);
        for (kind, total) in sums {
            let files = self.files_of.as_ref();
            let unknown = if files.is_some() { "-" } else { "" };
            let files = files.and_then(|files| files.get(&(kind, total.name.clone())));
            table.row(&[
                total.name.clone(),
                kind.map_or(unknown, CodeKind::as_str).to_owned(),
                files.map_or_else(String::new, usize::to_string),
                total.images.to_string(),
                style::size(total.size),
                match total.stored == total.size {
                    true => String::new(),
                    false if total.is_estimate => format!("~{}", style::size(total.stored)),
                    false => style::size(total.stored),
                },
                style::bar(total.stored, self.file_size),
                style::percent(total.stored, self.file_size),
            ]);
        }
        // Tables may state more bytes than the file has.
        let rest = stored.and_then(|stored| self.file_size.checked_sub(stored));
        if let Some(rest) = rest.filter(|&rest| rest > 0) {
            let what = if self.is_single() { "rest of the file" } else { "rest of the files" };
            let about = if is_estimate { "~" } else { "" };
            table.row(&[
                what.to_owned(),
                String::new(),
                String::new(),
                String::new(),
                format!("{about}{}", style::size(rest)),
                String::new(),
                style::bar(rest, self.file_size),
                style::percent(rest, self.file_size),
            ]);
        }
        table.print(out, "  ", style::terminal_width())
    }
}
