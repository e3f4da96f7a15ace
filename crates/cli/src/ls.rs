//! `offload ls`: every device image in any file.

mod row;
mod same;
mod view;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use byte_parts::ReadSeek;
use fat_object::{Container, ContainerKind, Finding, Image, Location, Severity, Summary, Visitor};

use crate::help::More;
use crate::parallel::{self, Threads};
use crate::select::{Passed, Selection};
use crate::{Outcome, input, report, style};
use row::{Hashed, Key, Row};
pub(crate) use view::heading;
use view::{Item, Totals};

pub(crate) const MORE: More = More {
    examples: &[
        ("offload ls libfoo.so", "list every image, and how much of the file each GPU takes"),
        ("offload ls --tree libfoo.a", "show the nesting of containers"),
        ("offload ls --target gfx1100 *.so", "list only images that this GPU can load"),
        (
            "offload ls --totals --sort size *.so",
            "show how much each GPU takes of each file, and of all files",
        ),
        (
            "offload ls --json libfoo.so | jq -r '.[].target' | sort -u",
            "list the targets, for a script",
        ),
    ],
    notes: &[
        "STORED (~) and SHARE of an image in a compressed bundle are its part of the compressed size. If a file \
         has more images than the terminal has lines, only totals are shown; --rows shows all images. Narrow terminals omit the bar, FORMAT, TRIPLE, SHARE and STORED; then IN is truncated at its start.",
    ],
};

/// List every device image in any file: kind, triple, target, size
///
/// Reads ELF, COFF, PE, Mach-O and WebAssembly files, archives, bundles, compressed bundles, offload binaries and
/// NVIDIA fatbinaries, at any depth, and lists images in file order with totals per target. Compressed bundles are
/// decompressed only as far as the list needs.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MORE.text())]
pub(crate) struct Args {
    /// Files to read; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    selection: Selection,
    /// Print one JSON array of all images
    #[arg(long)]
    json: bool,
    /// Print images below their containers
    #[arg(long, conflicts_with = "json")]
    tree: bool,
    /// Print totals only, per file and for all files
    #[arg(long, conflicts_with_all = ["json", "tree", "rows", "hash"])]
    totals: bool,
    /// Print all images, even on a terminal with fewer lines
    #[arg(long, conflicts_with = "json")]
    rows: bool,
    /// Sort the images of each file, and the totals
    #[arg(
        long,
        value_name = "KEY",
        default_value = "file",
        hide_default_value = true,
        conflicts_with = "tree"
    )]
    sort: Key,
    /// Print a hash of each image: 64-bit XXH3, as xxhsum -H3 prints it
    ///
    /// Equal images have equal hashes; the hash is that of the file that `offload extract` writes. It does not
    /// resist deliberate collisions. Compressed images in NVIDIA's fatbinaries are hashed as stored; those of
    /// SYCL's tables are decompressed.
    #[arg(long)]
    hash: bool,
    /// Decompress everything: print the formats of images, check hashes
    ///
    /// Without this option, compressed bundles are read to the end of their tables of entries, which contain
    /// everything but the formats of images: damage after the table is not found, and the format is -, or null.
    /// Bundles that hold more than code for AMD GPUs are still read to their end, to search their images for
    /// images. `offload verify` checks everything.
    #[arg(long)]
    formats: bool,
    /// Decompress everything and compare each image with the name of its entry
    ///
    /// An image for a GPU other than the one named is marked: gfx906 (holds gfx1250). No GPU loads it. Without this
    /// option only uncompressed images are compared.
    #[arg(long)]
    check: bool,
    /// Print images that are equal but for the name of their target, with advice
    ///
    /// Code objects for AMD GPUs are compared without the name of the target in their metadata and the flags of their
    /// headers. With --json, images that are equal in this way have the same value of same.
    #[arg(long, conflicts_with_all = ["tree", "totals"])]
    same: bool,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    limits: input::Limits,
}

/// The printed part of a file's listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    Rows,
    Tree,
    Totals,
    /// Totals only, as the terminal has too few lines.
    TotalsUnasked,
}

impl Args {
    fn shows(&self, images: usize) -> Shows {
        let unasked = !(self.rows || self.hash || self.formats || self.check || self.same);
        match (self.tree, self.totals) {
            (true, _) => Shows::Tree,
            (_, true) => Shows::Totals,
            _ if unasked && images > style::terminal_height() => Shows::TotalsUnasked,
            _ => Shows::Rows,
        }
    }
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    args.selection.warn();
    if args.json { run_json(args) } else { run_table(args) }
}

fn run_table(args: &Args) -> io::Result<Outcome> {
    let mut out = style::stdout();
    let mut outcome = Outcome::Clean;
    let mut totals = Totals::default();
    let mut first = true;
    let (files, threads) = args.threads.for_files(&args.files);
    let list = |path| list(args, path, threads);
    parallel::in_order(files, &args.files, list, |path, (listing, summary)| {
        if !std::mem::take(&mut first) {
            writeln!(out)?;
        }
        let file = input::display(path);
        let images = listing.sorted(args.sort);
        let mut own = Totals::default();
        if let Ok(summary) = &summary {
            heading(&mut out, &file, summary, listing.thin_size)?;
            own.add_file(summary.size + listing.thin_size);
            totals.add_file(summary.size + listing.thin_size);
        }
        for image in &images {
            own.add(&image.listed);
            totals.add(&image.listed);
        }
        own.sort(args.sort);
        if args.same {
            same::print(&mut out, &images)?;
        } else if !images.is_empty() {
            let shows = args.shows(images.len());
            match shows {
                Shows::Tree => view::tree(&mut out, &listing.items)?,
                Shows::Rows => view::flat(&mut out, &images, own.file_size())?,
                Shows::Totals | Shows::TotalsUnasked => {}
            }
            view::totals(&mut out, &own, !matches!(shows, Shows::Totals | Shows::TotalsUnasked))?;
            if shows == Shows::TotalsUnasked {
                view::hint(&mut out, images.len())?;
            }
        }
        // Keep what is printed and what is complained about in order on a shared terminal.
        out.flush()?;
        if complain(&file, &listing, &summary, &args.selection) {
            outcome = Outcome::Faults;
        }
        io::Result::Ok(())
    })?;
    totals.sort(args.sort);
    if args.files.len() > 1 && totals.images() > 0 {
        writeln!(out)?;
        view::grand_total(&mut out, &totals)?;
    }
    out.flush()?;
    Ok(outcome)
}

fn run_json(args: &Args) -> io::Result<Outcome> {
    let mut out = style::plain_stdout();
    let mut outcome = Outcome::Clean;
    let mut first = true;
    write!(out, "[")?;
    let (files, threads) = args.threads.for_files(&args.files);
    let list = |path| list(args, path, threads);
    parallel::in_order(files, &args.files, list, |path, (listing, summary)| {
        let file = input::display(path);
        for Hashed { listed: image, hash, same } in listing.sorted(args.sort) {
            write!(out, "{}", if first { "\n  " } else { ",\n  " })?;
            crate::json::write(
                &mut out,
                &Row { file: &file, image, hash: hash.as_deref(), same: same.as_deref() },
            )?;
            first = false;
        }
        if complain(&file, &listing, &summary, &args.selection) {
            outcome = Outcome::Faults;
        }
        io::Result::Ok(())
    })?;
    writeln!(out, "{}]", if first { "" } else { "\n" })?;
    out.flush()?;
    Ok(outcome)
}

/// Prints the faults of a file; returns `true` if there were any.
fn complain(
    file: &str,
    listing: &Listing<'_>,
    summary: &io::Result<Summary>,
    selection: &Selection,
) -> bool {
    for (severity, message) in &listing.findings {
        match severity {
            Severity::Error => report::error(&format_args!("{file}: {message}")),
            Severity::Warning => report::warning(&format_args!("{file}: {message}")),
        }
    }
    let errors = listing.findings.iter().any(|(severity, _)| *severity == Severity::Error);
    match summary {
        Err(error) => {
            report::error(&format_args!("{file}: {}", report::reason(error)));
            true
        }
        Ok(summary) => {
            if !listing.is_empty() || errors {
                return errors;
            }
            match nothing(summary, selection, &listing.passed) {
                Ok(why) => report::note(&format_args!("{file}: {why}")),
                Err(why) => {
                    report::error(&format_args!("{file}: {why}"));
                    return true;
                }
            }
            false
        }
    }
}

/// Returns the reason for an empty listing: an error if the file was not understood.
fn nothing(summary: &Summary, selection: &Selection, passed: &Passed) -> Result<String, String> {
    if summary.images > 0 && !selection.is_everything() {
        let (images, condition) = (summary.images, selection.condition());
        let (has, advice) = (passed.listed(), selection.advice(passed));
        return Ok(format!("none of its {images} images {condition}{has}{advice}"));
    }
    report::no_images(summary)
}

fn list<'a>(
    args: &'a Args,
    path: &'a PathBuf,
    threads: Threads,
) -> (Listing<'a>, io::Result<Summary>) {
    let mut listing = Listing {
        path,
        selection: &args.selection,
        hashes: args.hash,
        same: args.same,
        depth: 0,
        thin_size: 0,
        items: Vec::new(),
        passed: Passed::default(),
        findings: Vec::new(),
    };
    let reads = args.formats || args.hash || args.check || args.same;
    let options = args.limits.options();
    let options = options.with_tables_only(!reads).with_check_compressed(args.check);
    let summary = input::walk(path, args.limits.max_input, &options, threads, &mut listing);
    (listing, summary)
}

/// Collects the images of one file that are meant.
struct Listing<'a> {
    path: &'a Path,
    selection: &'a Selection,
    hashes: bool,
    same: bool,
    depth: usize,
    /// Size of the files that a thin archive names: its images lie there.
    thin_size: u64,
    items: Vec<Item>,
    passed: Passed,
    findings: Vec<(Severity, String)>,
}

impl Listing<'_> {
    fn sorted(&self, key: Key) -> Vec<&Hashed> {
        let mut images: Vec<_> = self.items.iter().filter_map(Item::as_image).collect();
        key.sort(&mut images);
        images
    }

    fn is_empty(&self) -> bool {
        !self.items.iter().any(|item| item.as_image().is_some())
    }
}

impl Visitor for Listing<'_> {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        if container.kind() == ContainerKind::Member
            && container.location() == Location::ThinMember(0)
        {
            self.thin_size = self.thin_size.saturating_add(container.size());
        }
        self.items.push(Item::container(self.depth, container));
        self.depth += 1;
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        if self.selection.includes(image) {
            let hash = if self.hashes { row::hash(image)? } else { None };
            let same = if self.same { same::hash(image)? } else { None };
            let listed = image.info().clone();
            self.items.push(Item::image(self.depth, Hashed { listed, hash, same }));
        } else {
            self.passed.add(image);
        }
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.findings.push((finding.severity(), finding.to_string()));
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        self.depth -= 1;
        // A container in which nothing was listed is not worth a line.
        if self
            .items
            .last()
            .is_some_and(|item| item.as_image().is_none() && item.depth() >= self.depth)
        {
            self.items.pop();
        }
        Ok(())
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        input::open_thin_member(self.path, name)
    }
}
