//! `offload ls`: every device image in any file.

mod by_package;
mod names;
mod needs;
mod same;
mod view;

use std::io;
use std::path::PathBuf;

use fat_object::{Container, Image};

use crate::select::Selection;
use tool_answers::listing::{Listed, Question, Sink};
use tool_answers::row::Row;
use tool_inputs::complaint;
use tool_inputs::headings::Headings;
use tool_inputs::inputs::{Input, Inputs};
use tool_inputs::limits::Limits;
use tool_inputs::online::Network;
use tool_inputs::package::HEADS;
use tool_kit::document::{Document, Shape};
use tool_kit::format::ListFormat;
use tool_kit::looked::Seen;
use tool_kit::parallel::Threads;
use tool_kit::style::{COLUMN, HEADING, Out, separate, show};
use tool_kit::{Outcome, style};
use view::{Item, Key, Totals};
pub(crate) use view::{format_text, heading};

/// List every device image in any file: kind, triple, target, size
///
/// Reads ELF, COFF, PE, Mach-O and WebAssembly files, archives, bundles, compressed bundles, offload binaries and
/// NVIDIA fatbinaries, at any depth, and lists images in file order with totals per target. Compressed bundles are
/// decompressed only up to what the list needs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files to read, or directories; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    format: ListFormat,
    /// Print images below their containers
    #[arg(long, conflicts_with_all = ["json", "format"])]
    tree: bool,
    /// Print totals only: for each file or directory, and for all
    ///
    /// A directory and a package are one table each: the code of all their files, by target and kind of code, with the
    /// number of files. The kind is - for code of compressed bundles that only --formats decompresses. Without this option,
    /// `ls DIR` lists the images of each file; --by-package prints a line for each package.
    #[arg(long, conflicts_with_all = ["json", "format", "tree", "rows", "hash"])]
    totals: bool,
    /// Print all images, even on a terminal with fewer lines
    #[arg(long, conflicts_with_all = ["json", "format"])]
    rows: bool,
    /// Print only the names of files with device code, one in each line
    ///
    /// With --target, --gpu, --kind or --id: of files with such images. A package is one name. Names are as stored, for
    /// other programs.
    #[arg(
        long,
        short = 'l',
        alias = "files-with-matches",
        conflicts_with_all = ["json", "format", "tree", "totals", "rows", "sort", "hash", "same", "needs", "by_package"]
    )]
    names: bool,
    /// End each name with a NUL byte instead of a line break, for xargs -0
    #[arg(long, short = '0', requires = "names")]
    null: bool,
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
    /// Equal images have equal hashes; the file that `offload extract` writes has the same hash. It does not
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
    /// Find identical code under several target names, and suggest generic targets
    ///
    /// Code objects for AMD GPUs are compared without the name of the target in their metadata and the flags of their
    /// headers. With --json, images that are equal in this way have the same value of same.
    #[arg(long, conflicts_with_all = ["tree", "totals"])]
    same: bool,
    /// Print the oldest driver and ROCm that can load all images
    ///
    /// The compression of fatbinaries and bundles decides, and the versions of PTX and of code objects. Images of compressed
    /// bundles are decompressed for it. With --json, each image has a list of needs.
    #[arg(long)]
    needs: bool,
    /// Print one line for each package: code for the GPUs, for others, PTX, LTO-IR
    ///
    /// Packages are those whose lists (RECORD of Python, conda-meta) have a file, and packages that are not installed, such as
    /// wheels. --gpu says which GPUs are meant; without it they are those of this machine, or all if it has none. Sizes are of
    /// code as stored, and of the contents of a file that is compressed as a whole. LOOSE is the part of them in files that
    /// are device code as a whole. NOT READ is the size of files that may hold device code, and are damaged or of a format
    /// that is not read.
    #[arg(
        long,
        conflicts_with_all = ["tree", "totals", "rows", "hash", "same", "needs", "sort", "ids", "kinds", "exact"]
    )]
    by_package: bool,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    network: Network,
}

const SHAPE: Shape = Shape::new(
    "ls",
    "images",
    "file index kind triple target image_format size/B stored_estimate/B hash path",
);

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
    fn question(&self) -> Question {
        let &Args { formats, check, hash, same, needs, .. } = self;
        let (filter, limits) = (self.selection.filter(), self.limits.clone());
        Question { filter, limits, formats, check, hash, same, needs }
    }

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
    if args.by_package {
        return by_package::run(args);
    }
    if args.names {
        return names::run(args);
    }
    let question = args.question();
    let mut document = Document::start(args.format.get(), &SHAPE)?;
    let mut out = style::stdout();
    let mut all = Totals::of_several();
    // With --totals, sums of the directory or package that the last file lies in.
    let mut group: Option<(String, Totals)> = None;
    let mut blocks = 0;
    let mut names = Headings::new();
    let inputs = Inputs::find_online(&args.files, args.network);
    let list = |file: &Input, threads| list(&question, file, threads);
    let limits = (&args.limits, HEADS);
    let looked = inputs.look(limits, "listing", list, |file, listing| {
        let summary = &listing.listed.summary;
        if let Some(seen) = file.passed_over(!listing.is_empty(), summary) {
            return Ok(seen);
        }
        let images = listing.sorted(args.sort);
        if !document.is_text() {
            images.iter().try_for_each(|image| document.row_of(file.name(), image))?;
        } else {
            let size = summary.as_ref().ok().map(|summary| summary.size + summary.thin_size);
            all.add(size, &images);
            let around = around(&inputs, file).filter(|_| args.totals);
            if let Some(last) = group.take_if(|(name, _)| around != Some(&**name)) {
                print_group(&mut out, args, &last, &mut blocks)?;
            }
            if let Some(name) = around {
                let (_, own) = group.get_or_insert_with(|| (name.to_owned(), Totals::of_several()));
                own.add(size, &images);
            } else {
                separate(&mut out, &mut blocks)?;
                if let Ok(summary) = summary {
                    let name = names.name(&mut out, file)?;
                    heading(&mut out, &name, summary)?;
                }
                let mut own = Totals::default();
                own.add(size, &images);
                if args.same {
                    same::print(&mut out, &images)?;
                } else if !images.is_empty() {
                    print(&mut out, args, &listing, &images, &own)?;
                }
            }
            // Keep what is printed and what is complained about in order on a shared terminal.
            out.flush()?;
        }
        Ok(Seen::faults(complain(&mut document, file, &question, &listing)?))
    })?;
    if let Some(last) = group {
        print_group(&mut out, args, &last, &mut blocks)?;
    }
    if inputs.are_many() && blocks > 1 && !all.is_single() && !all.is_empty() {
        show!(out)?;
        let (files, size) = all.files();
        show!(out, "{HEADING}all {files}{HEADING:#}  {size}")?;
        all.print(&mut out, args.sort, true)?;
    }
    out.flush()?;
    let outcome = document.looked(looked, false)?;
    document.end(outcome)
}

/// Returns the directory or the package that a file belongs to; `None` for a file that the user named.
fn around<'f>(inputs: &'f Inputs, file: &'f Input) -> Option<&'f str> {
    let directory = Some(inputs.directory_of(file)).filter(|name| !name.is_empty());
    directory.or_else(|| file.package())
}

/// Prints the totals of a directory or a package.
fn print_group(
    out: &mut Out<'_>,
    args: &Args,
    (name, totals): &(String, Totals),
    blocks: &mut usize,
) -> io::Result<()> {
    // Findings alone are complained about.
    if totals.is_empty() {
        return Ok(());
    }
    separate(out, blocks)?;
    let (files, size) = totals.files();
    show!(out, "{HEADING}{name}{HEADING:#}  {size}, {files}")?;
    totals.print(out, args.sort, false)?;
    totals.print_needs(out)?;
    out.flush()
}

/// Prints the images of a file, and their totals.
fn print(
    out: &mut Out<'_>,
    args: &Args,
    listing: &Listing,
    images: &[&Row],
    totals: &Totals,
) -> io::Result<()> {
    let shows = args.shows(images.len());
    match shows {
        Shows::Tree => view::tree(out, &listing.items)?,
        Shows::Rows => view::flat(out, images, totals.file_size())?,
        Shows::Totals | Shows::TotalsUnasked => {}
    }
    totals.print(out, args.sort, matches!(shows, Shows::Tree | Shows::Rows))?;
    totals.print_needs(out)?;
    if shows == Shows::TotalsUnasked {
        let images = images.len();
        show!(out, "  {COLUMN}{images} images: --rows shows them{COLUMN:#}")?;
    }
    Ok(())
}

/// Prints the faults of a file; returns `true` if there were any.
fn complain(
    document: &mut Document,
    input: &Input,
    question: &Question,
    listing: &Listing,
) -> io::Result<bool> {
    let Listed { images, passed, complaints, summary } = &listing.listed;
    complaint::report(document, input.name(), complaints, summary, |summary| {
        question.why_nothing(input, (*images, passed), summary)
    })
}

fn list(question: &Question, file: &Input, threads: Threads) -> Listing {
    let mut tree = Tree::default();
    let listed = question.list(file, threads, &mut tree);
    Listing { items: tree.items, listed }
}

/// The images of one file that are meant.
struct Listing {
    items: Vec<Item>,
    listed: Listed,
}

impl Listing {
    fn sorted(&self, key: Key) -> Vec<&Row> {
        let mut images: Vec<_> = self.items.iter().filter_map(Item::as_image).collect();
        key.sort(&mut images);
        images
    }

    fn is_empty(&self) -> bool {
        self.listed.images == 0
    }
}

/// Collects the images of one file with their containers.
#[derive(Default)]
struct Tree {
    depth: usize,
    items: Vec<Item>,
}

impl Sink for Tree {
    fn enter(&mut self, container: &Container) {
        self.items.push(Item::container(self.depth, container));
        self.depth += 1;
    }

    fn image(&mut self, row: Row, _: &mut Image<'_, '_>) -> io::Result<()> {
        self.items.push(Item::image(self.depth, row));
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
        // A container in which nothing was listed is not worth a line.
        let is_bare = |item: &Item| item.as_image().is_none() && item.depth >= self.depth;
        self.items.pop_if(|item| is_bare(item));
    }
}
