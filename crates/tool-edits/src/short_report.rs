//! The report of `shrink`: three lines about all files, and the reasons why code stays.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use device_select::{Rule, Shrunk, Stay};
use gpu_packages::{Algorithm, Extras, hash_reader};

use super::loose::LeftPlace;
use super::options::Options;
use super::report::{About, EDIT, FileRow, Stays};
use super::reporter::Reporter;
use tool_inputs::environment::slashed;
use tool_inputs::inputs::{Input, Inputs};
use tool_kit::Outcome;
use tool_kit::document::{Document, Shape};
use tool_kit::failure::Failure;
use tool_kit::holes;
use tool_kit::opened::MaxInput;
use tool_kit::progress::Progress;
use tool_kit::report::{self as messages, Message};
use tool_kit::stamp::Stamp;
use tool_kit::style::{self, Out, show};
use tool_kit::table::Table;

/// The most reasons that are printed: they fit on a screen.
const MOST_REASONS: usize = 20;

/// Sums about all files. Nothing is said about single files unless they fail.
#[derive(Debug)]
pub struct ShortReport<'a> {
    options: &'a Options,
    shrunk: Shrunk,
    /// Packages that changed: the lists of installed ones with names, and the files that are packages.
    packages: BTreeSet<(PathBuf, String)>,
    rows: Vec<FileRow>,
    /// Files with several names, by their identity, and which of them a path leads to.
    linked: HashMap<(u64, u64), Linked>,
    links: HashMap<PathBuf, (u64, u64)>,
    has_failed: bool,
    why: bool,
    /// `true` if a printed reason names an option, which `shrink` lacks.
    names_option: bool,
    /// Bytes of what else takes space in directories, if nothing is written.
    extras: Option<Vec<(&'static str, u128)>>,
}

/// A file with several names (hard links).
#[derive(Debug)]
struct Linked {
    names: u64,
    /// The number of names that were looked into.
    seen: u64,
    /// The number of names that got another file.
    changed: u64,
}

const SHAPE: Shape = Shape { command: "shrink", ..EDIT };

impl<'a> ShortReport<'a> {
    /// Returns the report of no file, with sums by a rule; `why` adds the reasons why code stays.
    pub fn new(options: &'a Options, rule: &Rule, why: bool) -> Self {
        ShortReport {
            options,
            shrunk: Shrunk::new(rule),
            packages: BTreeSet::new(),
            rows: Vec::new(),
            linked: HashMap::new(),
            links: HashMap::new(),
            has_failed: false,
            why,
            names_option: false,
            extras: None,
        }
    }

    fn add(&mut self, path: &Path, row: FileRow) {
        if row.about == About::Layer {
            self.rows.extend(Some(row).filter(|_| !self.options.output.format.is_text()));
            return;
        }
        let shrunk = &mut self.shrunk;
        let linked = self.links.get(path).filter(|_| row.about != About::Member);
        let linked = linked.and_then(|file| self.linked.get_mut(file));
        let (mut is_seen, mut is_new) = (false, true);
        if let Some(linked) = linked {
            (is_seen, is_new) = (linked.seen > 0 && !row.changed, linked.changed == 0);
            linked.seen += 1;
            linked.changed += u64::from(row.changed);
        }
        if is_seen {
            self.rows.extend(Some(row).filter(|_| !self.options.output.format.is_text()));
            return;
        }
        shrunk.add(&row.tally);
        if let (About::Package, Stays::Refused(why)) = (row.about, &row.stays) {
            messages::note_about(&row.file, why);
            self.names_option |= has_option(why);
        }
        match &row.stays {
            Stays::Nothing => {}
            Stays::Unconcerned => shrunk.leave(&row.tally, 1, &row.file),
            Stays::Refused(why) => shrunk.stay(why, row.tally.stuck.total(), &row.file),
            Stays::Parts(parts) => {
                parts.iter().for_each(|(why, bytes)| shrunk.stay(why, *bytes, &row.file));
            }
        }
        if row.changed {
            if row.about != About::Member {
                // The old contents of several names go once.
                let before = if is_new { row.size_before } else { 0 };
                shrunk.resize(before, row.size_after);
                if !is_new {
                    shrunk.count_split();
                }
            }
            if row.about == About::Package {
                self.packages.insert((row.file.clone().into(), String::new()));
            } else if row.deleted {
                shrunk.count_deleted();
            } else {
                shrunk.count_changed(&row.tally);
            }
            let made = || fs::File::open(&row.output).map(|file| holes::of(&file));
            shrunk.add_holes(match row.holes {
                // Packages compress zeros.
                _ if row.about != About::File => 0,
                // Not every file system has holes, and others were there before.
                holes @ 1.. if !row.dry_run => made().map_or(0, holes::size).min(holes),
                holes => holes,
            });
            self.packages.extend(row.distributions.iter().cloned());
        }
        self.rows.extend(Some(row).filter(|_| !self.options.output.format.is_text()));
    }
}

impl ShortReport<'_> {
    /// Says which command has the options that reasons name.
    fn explain_options(&self) {
        if self.names_option {
            messages::note(&"the options that these reasons name are those of `offload thin`");
        }
    }
}

/// Returns whether a reason names an option.
fn has_option(reason: &str) -> bool {
    reason.contains("(--") || reason.contains(" --")
}

impl Reporter for ShortReport<'_> {
    fn start(&mut self, inputs: &Inputs) {
        let mut known = HashSet::new();
        for file in inputs.files() {
            // The edit complains of files that are not there.
            let Some(metadata) = metadata(file) else { continue };
            let identity = Stamp::new(&metadata).file();
            if identity.is_none_or(|identity| known.insert(identity)) {
                self.shrunk.add_file(metadata.len());
            }
            let names = names_of(&metadata);
            if let Some(identity) = identity.filter(|_| names > 1 && self.options.output.in_place) {
                self.links.insert(file.path().to_owned(), identity);
                self.linked.insert(identity, Linked { names, seen: 0, changed: 0 });
            }
        }
        if self.options.output.dry_run && inputs.first_directory().is_some() {
            self.extras = Some(extras(inputs, self.options.limits.max_input));
        }
    }

    fn take(&mut self, file: &Input, edited: Result<Vec<FileRow>, Failure>) -> io::Result<()> {
        match edited {
            Ok(rows) => {
                let is_sized = !file.is_named() || metadata(file).is_some();
                for row in rows {
                    if !is_sized && !row.about.is_part() {
                        self.shrunk.add_file(row.size_before);
                    }
                    self.add(file.path(), row);
                }
            }
            Err(Failure::NoCode) => {}
            Err(failure) => {
                let name = file.name();
                let why = failure.complaints()?;
                for why in why {
                    messages::error(&format_args!("{name}: {why}"));
                    self.names_option |= has_option(&why);
                }
                self.fail();
            }
        }
        Ok(())
    }

    fn leave(&mut self, LeftPlace { name, images, tally }: &LeftPlace) {
        self.shrunk.add(tally);
        self.shrunk.leave(tally, *images, &format!("{name} ({images} loose images)"));
    }

    fn say(&mut self, message: &Message) {
        if let Message::Error(_) = message {
            message.print();
        }
    }

    fn fail(&mut self) {
        self.has_failed = true;
    }

    fn has_failed(&self) -> bool {
        self.has_failed
    }

    fn outcome(&self) -> Outcome {
        let is_well = self.shrunk.has_code() && !self.has_failed;
        if is_well { Outcome::Clean } else { Outcome::Faults }
    }

    fn end(&mut self, _: bool) -> io::Result<Outcome> {
        let ShortReport { shrunk, options, .. } = self;
        if !shrunk.has_code() {
            if !self.has_failed {
                messages::error(&shrunk.nothing());
            }
            self.explain_options();
            return Ok(Outcome::Faults);
        }
        shrunk.set_packages(self.packages.len());
        let format = options.output.format;
        if !format.is_text() {
            let mut document = Document::start(format.get(), &SHAPE)?;
            self.rows.iter().try_for_each(|row| document.row(row))?;
            document.field("sums", shrunk)?;
            document.end(if self.has_failed { Outcome::Faults } else { Outcome::Clean })?;
        } else if !options.output.is_stdout() {
            let mut out = style::stdout();
            for line in shrunk.lines(options.output.dry_run) {
                show!(out, "{line}")?;
            }
            if self.why {
                let reasons = shrunk.reasons();
                print_reasons(&mut out, &reasons)?;
                self.names_option |= reasons.iter().any(|stay| has_option(&stay.reason));
            }
            if let Some(mut extras) = self.extras.take() {
                let others = shrunk.tally().other_vendors;
                extras.push(("code for GPUs of other vendors", others.into()));
                print_extras(&mut out, extras)?;
            }
            out.flush()?;
        }
        let kept = self.linked.values().filter(|one| (1..one.names).contains(&one.changed)).count();
        if kept > 0 {
            let text = "files with other names (hard links), which keep the old contents";
            messages::note(&format_args!("{text}: {kept}"));
        }
        let split: u64 = self.linked.values().map(|one| one.changed).filter(|&n| n > 1).sum();
        if split > 0 {
            let text = "names of one file (hard links) that get files of their own";
            messages::note(&format_args!("{text}: {split}"));
        }
        self.explain_options();
        Ok(self.outcome())
    }
}

/// Returns what the system says of a file; `None` for standard input and pipes, whose size is known once they are read.
fn metadata(file: &Input) -> Option<Metadata> {
    let path = Some(file.path()).filter(|path| path.as_os_str() != "-")?;
    fs::metadata(path).ok().filter(Metadata::is_file)
}

/// Returns the number of names of a file.
#[cfg(unix)]
fn names_of(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(metadata)
}

/// Returns 1: other systems do not tell.
#[cfg(not(unix))]
fn names_of(_: &Metadata) -> u64 {
    1
}

/// Returns the bytes of what else takes space in directories. A file that cannot be read has none.
fn extras(inputs: &Inputs, max: MaxInput) -> Vec<(&'static str, u128)> {
    let _progress = Progress::start("looking for what else takes space");
    let (mut extras, mut symbols, mut files) = (Extras::default(), 0, Vec::new());
    let mut known = HashSet::new();
    for file in inputs.files() {
        let Ok(opened) = file.open(max) else { continue };
        // Names of one file take no space.
        if cfg!(unix) && !known.insert(opened.stamp()) {
            continue;
        }
        extras.add(&slashed(file.path()), opened.metadata().len(), opened.head());
        files.push(file);
        symbols += u128::from(fat_object::host_symbols(opened.reader()).unwrap_or(0));
    }
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    let hash = |nth: usize| {
        let opened = files.get(nth).ok_or_else(missing)?.open(max)?;
        hash_reader(Algorithm::Sha256, &mut opened.reader()).map(|(_, hash)| hash)
    };
    let mut sums = extras.sums(hash);
    sums.extend(Some(("symbols of host code, which strip removes", symbols)));
    sums
}

/// Prints what else takes space, the most first.
fn print_extras(out: &mut Out<'_>, mut extras: Vec<(&'static str, u128)>) -> io::Result<()> {
    extras.retain(|(_, bytes)| *bytes > 0);
    extras.sort_by_key(|(_, bytes)| Reverse(*bytes));
    if extras.is_empty() {
        return Ok(());
    }
    let mut table = Table::default().numbers(["SIZE"]).texts(["ALSO THERE, AND NOT REMOVED"]);
    for (what, bytes) in extras {
        let size = u64::try_from(bytes).map_or_else(|_| "-".to_owned(), style::size);
        table.row(&[size, what.to_owned()]);
    }
    show!(out)?;
    table.print(out, "", style::terminal_width())
}

/// Prints the reasons why code stays, one in a line.
fn print_reasons(out: &mut Out<'_>, reasons: &[Stay]) -> io::Result<()> {
    let mut table = Table::default().numbers(["STAYS", "FILES"]).texts(["WHY", "WHERE"]).shrinks();
    for Stay { reason, bytes, files, names, has_more, .. } in reasons.iter().take(MOST_REASONS) {
        let names: Vec<&str> = names.iter().map(|name| end_of(name)).collect();
        let more = if *has_more { ", ..." } else { "" };
        let bytes = if *bytes == 0 { "-".to_owned() } else { style::size(*bytes) };
        table.row(&[bytes, files.to_string(), reason.clone(), names.join(", ") + more]);
    }
    if reasons.is_empty() {
        return Ok(());
    }
    show!(out)?;
    table.print(out, "", style::terminal_width())?;
    if let Some(more @ 1..) = reasons.len().checked_sub(MOST_REASONS) {
        show!(out, "... and {more} more reasons")?;
    }
    Ok(())
}

/// Returns the last two names of a path.
fn end_of(path: &str) -> &str {
    let slash = path.rmatch_indices('/').nth(1);
    slash.and_then(|(at, _)| path.get(at + 1..)).unwrap_or(path)
}
