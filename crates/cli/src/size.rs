//! `offload size`: where the bytes of files go.

mod view;

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;

use device_account::{Accountant, By, Copies, Row, Rows};
use device_select::{Rule, Wanted};
use fat_object::ImageInfo;
use serde_json::{Map, json};

use crate::accounts::{self, Counted};
use crate::suggest;
use tool_inputs::inputs::Inputs;
use tool_inputs::limits::Limits;
use tool_inputs::online::Network;
use tool_kit::document::{Document, Shape};
use tool_kit::format::ListFormat;
use tool_kit::{Outcome, style};

/// Show where the bytes of files go: by GPU, kind, kernel or package
///
/// Each byte of a file is in one row, and the rows add up to the size of the file. SIZE is the number of bytes in the file, PLAIN the
/// number of bytes that are not compressed. Compressed data is decompressed; its bytes in the file are apportioned to what is in it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files to read, or directories; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Choose what a row is
    ///
    /// Without this option a row is a kind of bytes of one GPU.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["duplicates", "dead"])]
    by: Option<Key>,
    /// Print equal images and kernels, where they are, and the bytes that copies waste
    ///
    /// Images are equal if all their bytes are. Kernels and other functions are equal if they are for the same GPU and have the same
    /// machine code and constants, whatever their names are. Functions in sections with relocations are not compared, as in relocatable
    /// files: what relocations refer to may differ. Hashes are compared (128-bit XXH3), which do not resist deliberate collisions. Wasted
    /// bytes are those of all copies but the largest one. Copies in different files count, too.
    #[arg(long, conflicts_with = "dead")]
    duplicates: bool,
    /// Print images that none of these GPUs loads. Repeatable
    ///
    /// These are the images that `thin --keep` with the same GPUs removes.
    #[arg(long, value_name = "GPU,...", value_delimiter = ',', value_parser = suggest::wanted)]
    dead: Vec<Wanted>,
    /// Print the N largest rows of each table, and one for the others
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    #[command(flatten)]
    format: ListFormat,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    network: Network,
}

/// Keys of `--by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Key {
    /// The GPU
    Target,
    /// The kind of bytes
    Kind,
    /// The kernel, or another function with code of its own
    Kernel,
    /// The package, or the file
    Package,
    /// The innermost container
    Container,
    /// The section of the host file
    Section,
}

const SHAPE: Shape = Shape::new("size", "rows", "file target stored plain");
const BY_KIND: Shape = Shape { columns: "file target kind stored plain", ..SHAPE };
const BY_KERNEL: Shape = Shape { columns: "file target kernel stored plain", ..SHAPE };
const BY_CONTAINER: Shape = Shape { columns: "file target container stored plain", ..SHAPE };
const BY_SECTION: Shape = Shape { columns: "file target section stored plain", ..SHAPE };
const COPIES: Shape = Shape { columns: "target kernel stored plain places", ..SHAPE };

impl Args {
    fn shape(&self) -> &'static Shape {
        match self.by {
            _ if self.duplicates => &COPIES,
            _ if !self.dead.is_empty() => &SHAPE,
            Some(Key::Target | Key::Package) => &SHAPE,
            None | Some(Key::Kind) => &BY_KIND,
            Some(Key::Kernel) => &BY_KERNEL,
            Some(Key::Container) => &BY_CONTAINER,
            Some(Key::Section) => &BY_SECTION,
        }
    }

    /// Returns the rows of accounts, and the column of their names: in tables, and in JSON.
    fn rows(&self) -> (By, &'static str, &'static str) {
        match self.by {
            None => (By::TargetAndKind, "KIND", "kind"),
            Some(Key::Target | Key::Package) => (By::Target, "", ""),
            Some(Key::Kind) => (By::Kind, "KIND", "kind"),
            Some(Key::Kernel) => (By::Function, "KERNEL", "kernel"),
            Some(Key::Container) => (By::Container, "CONTAINER", "container"),
            Some(Key::Section) => (By::Section, "SECTION", "section"),
        }
    }
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    suggest::explain_wanted(&args.dead);
    let mut document = Document::start(args.format.get(), args.shape())?;
    let has_functions = args.duplicates || args.by == Some(Key::Kernel);
    let new = || Accountant::new().with_functions(has_functions).with_hashes(args.duplicates);
    let inputs = Inputs::find_online(&args.files, args.network).once();
    let (counted, looked) =
        accounts::count(&inputs, &args.limits, &new, &|_, _, _| (), &mut document)?;
    print(args, &counted, &mut document)?;
    let outcome = document.looked(looked, false)?;
    document.end(outcome)
}

/// Returns the rows of a file or a package.
fn rows_of(args: &Args, one: &Counted) -> Rows {
    let (mut rows, by) = (Rows::default(), args.rows().0);
    let accounts = || one.accounts.iter().map(|(_, account)| account);
    match &one.share {
        Some(share) => rows.add_package(by, share, accounts()),
        None => accounts().for_each(|it| rows.add_all(&it.rows(by), it.size())),
    }
    rows
}

/// Returns the images that no GPU of a rule loads, by their targets.
fn dead(one: &Counted, rule: &Rule) -> Rows {
    const GONE: &str = "gone";
    let mut rows = Rows::default();
    for (at, (_, account)) in one.accounts.iter().enumerate() {
        let images: Vec<ImageInfo> =
            account.images().iter().map(|image| image.info.clone()).collect();
        let gone: HashSet<usize> = rule.decide(&images).go.iter().map(|it| it.index()).collect();
        // All bytes, since a package has its part of each.
        let mut own = Rows::default();
        for image in account.images() {
            let name = if gone.contains(&image.info.index()) { GONE } else { "" };
            own.add(&image.target(), name, image.amount());
        }
        account.rest().iter().for_each(|row| own.add(&row.target, "", row.amount));
        let stored = match &one.share {
            Some(share) => share.members.get(at).copied().unwrap_or(0),
            None => account.size(),
        };
        rows.add_all(own.all(), stored);
    }
    let mut dead = Rows::default();
    let gone = rows.all().iter().filter(|row| row.name == GONE);
    gone.for_each(|row| dead.add(&row.target, "", row.amount));
    dead
}

fn print(args: &Args, counted: &[Counted], document: &mut Document) -> io::Result<()> {
    let (_, title, field) = args.rows();
    let mut out = style::stdout();
    let mut all = Rows::default();
    // Files with holes may be of any size.
    let total = counted.iter().try_fold(0_u64, |sum, one| sum.checked_add(one.size));
    let total = total.ok_or_else(|| io::Error::other("these files are too large for a sum"))?;
    if args.duplicates {
        let files = counted.iter().flat_map(|one| &one.accounts);
        let copies = Copies::find(files.map(|(name, account)| (&**name, account)));
        if document.is_text() {
            return view::copies(&mut out, &copies, total, args.top);
        }
        return copies.iter().try_for_each(|one| {
            let places: Vec<_> = one.copies.iter().map(|copy| &copy.place).collect();
            let (wasted, kernel) = (one.wasted(), &one.function);
            document.row(&json!({ "target": one.target, "kernel": kernel, "places": places,
                "stored": wasted.stored, "plain": wasted.plain }))
        });
    }
    let rule = (!args.dead.is_empty()).then(|| Rule::keep(args.dead.clone()));
    for one in counted {
        let rows = match &rule {
            Some(rule) => dead(one, rule),
            None => rows_of(args, one),
        };
        let rows = rows.all();
        let rows = match args.by {
            Some(Key::Package) => {
                vec![Row::new("", &one.name, rows.iter().map(|row| row.amount).sum())]
            }
            _ => rows.to_vec(),
        };
        rows.iter().for_each(|row| all.add(&row.target, &row.name, row.amount));
        if !document.is_text() {
            for Row { target, name, amount, .. } in &rows {
                let mut value = Map::new();
                value.insert("target".to_owned(), json!(target));
                if !field.is_empty() && rule.is_none() {
                    value.insert(field.to_owned(), json!(name));
                }
                value.insert("stored".to_owned(), json!(amount.stored));
                value.insert("plain".to_owned(), json!(amount.plain));
                document.row_of(&one.name, &value)?;
            }
        } else if args.by != Some(Key::Package) {
            let is_dead = rule.is_some();
            view::table(&mut out, (&one.name, one.size), &rows, title, (is_dead, args.top))?;
        }
    }
    if !document.is_text() {
        return Ok(());
    }
    let (files, is_dead) = (style::files(counted.len()), rule.is_some());
    if args.by == Some(Key::Package) {
        view::table(&mut out, (&files, total), all.all(), "PACKAGE", (false, args.top))
    } else if counted.len() > 1 {
        let name = format!("all {files}");
        view::table(&mut out, (&name, total), all.all(), title, (is_dead, args.top))
    } else {
        Ok(())
    }
}
