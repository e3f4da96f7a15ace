//! Reports of edits, as tables and as JSON.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};

use device_select::{Need, Rule, Software, Tally};
use fat_edit::{Change, EditNote, EditPlan, EditableFile, TargetChange};
use fat_object::ContainerKind;
use serde::Serialize;

use super::wishes::Wishes;
use tool_kit::document::Shape;
use tool_kit::folded::Folded;
use tool_kit::style::{self, HEADING, Out, TARGET, separate, show};
use tool_kit::table::{Align, Table};
use tool_kit::{holes, input, report as messages};

/// The kind of work, for the reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Images are removed, replaced or added.
    Edit,
    /// Bundles and fatbinaries are compressed.
    Compress,
    /// They are decompressed.
    Decompress,
}

impl Work {
    pub(crate) fn doing(self) -> &'static str {
        match self {
            Work::Edit => "editing",
            Work::Compress => "compressing",
            Work::Decompress => "decompressing",
        }
    }

    /// Returns the shape of its document.
    pub(crate) fn shape(self) -> &'static Shape {
        match self {
            Work::Edit => &EDIT,
            Work::Compress => &Shape { command: "compress", ..EDIT },
            Work::Decompress => &Shape { command: "decompress", ..EDIT },
        }
    }
}

pub(crate) const EDIT: Shape =
    Shape::new("edit", "files", "file output changed deleted size_before/B size_after/B");

/// One file in the report.
#[derive(Debug, Default, Serialize)]
pub struct FileRow {
    pub(crate) file: String,
    pub(crate) output: String,
    pub(crate) dry_run: bool,
    /// `true` if the new file is not the old one.
    pub(crate) changed: bool,
    pub(crate) deleted: bool,
    pub(crate) size_before: u64,
    pub(crate) size_after: u64,
    /// Bytes of the new file that were device code and are zeros now.
    zeros: u64,
    targets: Vec<TargetRow>,
    containers: Vec<ContainerRow>,
    pub(crate) notes: Vec<String>,
    pub(crate) warnings: Vec<String>,
    /// `true` if the output is the input.
    #[serde(skip)]
    in_place: bool,
    #[serde(skip)]
    pub(crate) about: About,
    /// Number of offload binaries that stay plain for their readers.
    #[serde(skip)]
    stay: usize,
    /// The installed distributions that have the file: the path of the list of each, and the name.
    #[serde(skip)]
    pub(crate) distributions: BTreeSet<(PathBuf, String)>,
    /// Sums by a rule, if it is asked for them.
    #[serde(skip)]
    pub(crate) tally: Tally,
    #[serde(skip_serializing_if = "Stays::is_nothing")]
    pub(crate) stays: Stays,
    /// Bytes of whole pages of new zeros.
    #[serde(skip)]
    pub(crate) holes: u64,
    /// The drivers and runtimes that can read the changed containers.
    #[serde(skip)]
    needs: BTreeSet<Need>,
}

/// The code that stays although a rule drops it.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stays {
    #[default]
    Nothing,
    /// Parts of the file: the reason, and bytes of code.
    Parts(Vec<(&'static str, u64)>),
    /// The file was refused.
    Refused(String),
    /// Nothing in the file is for the targets of the rule.
    Unconcerned,
}

impl Stays {
    fn is_nothing(&self) -> bool {
        matches!(self, Stays::Nothing)
    }
}

/// The thing that a row is about.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum About {
    #[default]
    File,
    Member,
    /// A layer of an image, whose bytes are those of the image.
    Layer,
    Package,
}

impl About {
    /// Returns whether sizes of the row are part of those of another.
    pub(crate) fn is_part(self) -> bool {
        matches!(self, About::Member | About::Layer)
    }
}

/// Images before and after, of one target. Sizes are without compression.
#[derive(Debug, Serialize)]
struct TargetRow {
    target: String,
    images_before: usize,
    images_after: usize,
    size_before: u64,
    size_after: u64,
}

impl TargetRow {
    fn of(change: TargetChange) -> Self {
        let TargetChange { target, images: [images_before, images_after], .. } = change;
        let [size_before, size_after] = change.size;
        TargetRow { target, images_before, images_after, size_before, size_after }
    }
}

/// A bundle or offload binary before and after.
#[derive(Debug, Serialize)]
struct ContainerRow {
    /// From outside in, each as `kind:name`.
    path: Vec<String>,
    change: &'static str,
    /// Bytes as stored.
    size_before: u64,
    size_after: u64,
    /// Bytes of what it holds, without compression.
    uncompressed_before: u64,
    uncompressed_after: u64,
    #[serde(skip)]
    kind: ContainerKind,
    /// `true` if there are compressed ones of its kind.
    #[serde(skip)]
    has_form: bool,
    /// `true` if it was compressed before.
    #[serde(skip)]
    is_compressed: bool,
}

impl FileRow {
    /// Returns the sizes before and after, in bytes; `None` for a part of another file.
    pub fn sizes(&self) -> Option<[u64; 2]> {
        (!self.about.is_part()).then_some([self.size_before, self.size_after])
    }

    /// Returns the row of an edited file, with sums by a rule, and what stays although the rule drops it, if there is one.
    pub(crate) fn new(
        (file, output): (&str, &Path),
        contents: &EditableFile,
        plan: &EditPlan,
        wishes: &Wishes,
        rule: Option<&Rule>,
    ) -> Self {
        let containers = plan.containers().iter().filter_map(|change| {
            let container = contents.containers().get(change.container)?;
            let path = container.path().iter();
            Some(ContainerRow {
                path: path.map(|step| format!("{}:{}", step.kind(), step.name())).collect(),
                change: change.change.as_str(),
                size_before: change.size_before,
                size_after: change.size_after,
                uncompressed_before: change.uncompressed_before,
                uncompressed_after: change.uncompressed_after,
                kind: container.kind(),
                has_form: container.has_compressed_form(),
                is_compressed: contents.is_compressed(container),
            })
        });
        let mut row = FileRow {
            file: file.to_owned(),
            output: input::display(output),
            changed: !plan.is_unchanged(),
            size_before: contents.size(),
            size_after: plan.size(),
            zeros: plan.zeroed(),
            targets: plan.targets(contents).into_iter().map(TargetRow::of).collect(),
            containers: containers.collect(),
            notes: wishes.notes.clone(),
            warnings: wishes.warnings.clone(),
            stay: plan.notes().iter().map(staying).sum(),
            needs: plan.needs().clone(),
            ..FileRow::default()
        };
        if let Some(rule) = rule {
            row.tally = plan.tally(rule, contents);
            row.holes = holes::size(plan.zeros(&[]));
            if row.tally.stuck.total() > 0 {
                row.stays = Stays::Parts(plan.stuck(contents, &wishes.edit));
            }
        }
        row
    }

    /// Returns the row of a file of this many bytes that stays as it is.
    pub(crate) fn staying(file: &str, size: u64, tally: Tally, stays: Stays) -> Self {
        let (size_before, size_after) = (size, size);
        let (file, output) = (file.to_owned(), file.to_owned());
        FileRow { file, output, size_before, size_after, tally, stays, ..FileRow::default() }
    }

    /// Returns the row of the file if it stays as it is, for this reason.
    pub(crate) fn unchanged(mut self, why: String) -> Self {
        self.tally.stuck += std::mem::take(&mut self.tally.removed);
        self.tally.unserved = 0;
        FileRow {
            file: self.file,
            output: self.output,
            dry_run: self.dry_run,
            size_before: self.size_before,
            size_after: self.size_before,
            about: self.about,
            tally: self.tally,
            stays: Stays::Refused(why),
            ..FileRow::default()
        }
    }

    /// Returns the row of a file of this many bytes that is deleted.
    pub(crate) fn deleted(file: &str, size_before: u64) -> Self {
        let (file, output) = (file.to_owned(), file.to_owned());
        FileRow { file, output, changed: true, deleted: true, size_before, ..FileRow::default() }
    }

    /// Returns the row of a file that was not looked into, as nothing in it changes.
    pub(crate) fn untouched(file: &str, size: u64) -> Self {
        let mut tally = Tally::default();
        tally.kept.machine_code = size;
        FileRow::staying(file, size, tally, Stays::Nothing)
    }

    /// Returns whether fatbinaries in the file were compressed, by a method that every driver reads.
    fn is_read_by_every_driver(&self) -> bool {
        let is_compressed = |row: &ContainerRow| {
            row.kind == ContainerKind::NvFatbin && row.change == Change::Compressed.as_str()
        };
        self.containers.iter().any(is_compressed)
            && !self.needs.iter().any(|need| need.software() == Software::Driver)
    }

    /// Returns the directory or the package that the file lies in.
    fn directory(&self) -> &str {
        let ends: &[char] = if self.about == About::Member { &['/', ':'] } else { &['/'] };
        self.file.rsplit_once(ends).map_or(".", |(directory, _)| directory)
    }

    /// Returns the name of a member in the package of this name.
    fn member_of(&self, package: &str) -> Option<&str> {
        // A directory may be named with a slash at its end.
        let package = package.trim_end_matches(['/', '\\']);
        let member = self.file.strip_prefix(package)?.strip_prefix([':', '/', '\\'])?;
        self.about.is_part().then_some(member)
    }

    /// Returns the name of a member in one of the layers of an image, which a table above names, or in a package.
    fn name_in(&self, package: &FileRow, layers: &[&FileRow]) -> Option<&str> {
        let in_layer = layers.iter().find_map(|layer| self.member_of(&layer.file));
        in_layer.or_else(|| self.member_of(&package.file))
    }

    /// Says that the file is a member of a package.
    pub(crate) fn of_package(self, dry_run: bool) -> Self {
        FileRow { dry_run, about: About::Member, ..self }
    }

    /// Says how the new file is written: not at all, or in the place of the old one.
    pub(crate) fn written(mut self, dry_run: bool, in_place: bool) -> Self {
        (self.dry_run, self.in_place) = (dry_run, in_place);
        self
    }

    /// Adds notes and warnings to those of other files.
    pub(crate) fn messages(&self, work: Work, is_named: bool, all: &mut Folded) {
        let file = &self.file;
        // Other members have the same package before the first colon that a path of theirs follows.
        let package = file.rsplit_once(':').map(|(package, _)| package);
        let package = package.filter(|_| self.about == About::Member);
        if !self.changed && is_named {
            let left = match (self.dry_run, self.in_place) {
                (true, _) => "",
                (false, true) => ", left alone",
                (false, false) => ", copied",
            };
            all.note(file, package, &format!("nothing to do{left}{}", self.why(work)));
        }
        for note in &self.notes {
            all.note(file, package, note);
        }
        for warning in &self.warnings {
            all.warning(file, package, warning);
        }
    }

    /// Returns the reason why there is nothing to do.
    fn why(&self, work: Work) -> String {
        if work == Work::Edit {
            return String::new();
        }
        let places: Vec<_> = self.containers.iter().filter(|place| place.has_form).collect();
        let n = places.len();
        let count = |kind| places.iter().filter(|place| place.kind == kind).count();
        let (packages, fatbinaries) =
            (count(ContainerKind::OffloadBinary), count(ContainerKind::NvFatbin));
        let noun = match (packages, fatbinaries) {
            (0, 0) if n == 1 => "bundle",
            (0, 0) => "bundles",
            (1, 0) if n == 1 => "offload binary",
            (0, 1) if n == 1 => "fatbinary",
            (packages, 0) if packages == n => "offload binaries",
            (0, fatbinaries) if fatbinaries == n => "fatbinaries",
            (_, 0) => "bundles and offload binaries",
            _ => "containers",
        };
        let is = if n == 1 { "is" } else { "are" };
        match work {
            _ if n == 0 => ": there is no bundle in it".to_owned(),
            Work::Decompress => format!(": its {n} {noun} {is} not compressed"),
            _ if places.iter().all(|place| place.is_compressed) => {
                format!(": its {n} {noun} {is} compressed already")
            }
            // Notes say which, and why.
            _ if self.stay > 0 => String::new(),
            _ => format!(": its {n} {noun} would not get smaller"),
        }
    }
}

/// Returns the number of offload binaries that stay plain according to a note.
fn staying(note: &EditNote) -> usize {
    match note {
        EditNote::OlderOffloadBinaries { count }
        | EditNote::RegisteredOffloadBinaries { count } => *count,
        _ => 0,
    }
}

/// Prints a heading and a table for each file that changes.
pub(crate) fn print(rows: &[FileRow], work: Work) -> io::Result<()> {
    let mut out = style::stdout();
    for (nth, row) in rows.iter().filter(|row| row.changed).enumerate() {
        if nth > 0 {
            show!(out)?;
        }
        print_heading(&mut out, row)?;
        let table = match work {
            Work::Edit => target_table(&row.targets),
            Work::Compress | Work::Decompress => container_table(&row.containers),
        };
        table.print(&mut out, "  ", style::terminal_width())?;
    }
    out.flush()
}

/// Prints the name of a file or a package with its sizes.
fn print_heading(out: &mut Out<'_>, row: &FileRow) -> io::Result<()> {
    let (file, dry) = if row.dry_run { (&row.file, ", not written") } else { (&row.output, "") };
    let [before, after] = [row.size_before, row.size_after].map(style::size);
    let part = style::percent(row.size_after, row.size_before);
    let zeros = match row.zeros {
        0 => String::new(),
        zeros => format!(", {} of it zeros", style::size(zeros)),
    };
    show!(out, "{HEADING}{file}{HEADING:#}  {before} -> {after}, {part}{zeros}{dry}")
}

/// Prints a line for each file that changes, and the total: below each package its members.
pub(crate) fn print_files(rows: &[FileRow]) -> io::Result<()> {
    let is_whole = |row: &&FileRow| row.about == About::Package;
    let changed = rows.iter().filter(|row| row.changed && row.about != About::Layer);
    let (packages, mut changed): (Vec<&FileRow>, Vec<&FileRow>) = changed.partition(is_whole);
    if changed.is_empty() && packages.is_empty() {
        if !rows.is_empty() {
            let is_file = |row: &&FileRow| !is_whole(row) && row.about != About::Layer;
            let files = rows.iter().filter(is_file).count();
            messages::note(&format_args!("nothing to do in {}", style::files(files)));
        }
        return Ok(());
    }
    let mut out = style::stdout();
    let mut blocks = 0;
    for package in packages {
        let members = changed.extract_if(.., |row| row.member_of(&package.file).is_some());
        let members: Vec<&FileRow> = members.collect();
        separate(&mut out, &mut blocks)?;
        print_heading(&mut out, package)?;
        let is_layer =
            |row: &&FileRow| row.about == About::Layer && row.member_of(&package.file).is_some();
        let layers: Vec<&FileRow> = rows.iter().filter(is_layer).collect();
        print_layers(&mut out, &layers, &members, package)?;
        print_table(&mut out, &members, "  ", &|row| row.name_in(package, &layers))?;
    }
    if !changed.is_empty() {
        separate(&mut out, &mut blocks)?;
        print_table(&mut out, &changed, "", &|_| None)?;
    }
    out.flush()
}

/// Prints a table of the layers of an image that change, and of all others together.
fn print_layers(
    out: &mut Out<'_>,
    layers: &[&FileRow],
    members: &[&FileRow],
    image: &FileRow,
) -> io::Result<()> {
    if layers.is_empty() {
        return Ok(());
    }
    let mut table = Table::default().texts(["LAYER"]).shrinks();
    table = table.numbers(["FILES", "BEFORE", "AFTER", "RATIO"]);
    let mut add = |name: &str, files: String, rows: &[&FileRow]| {
        let [before, after] = sum(rows);
        let ratio = style::percent(after, before);
        table.row(&[name.to_owned(), files, style::size(before), style::size(after), ratio]);
    };
    let (changed, others): (Vec<&FileRow>, Vec<&FileRow>) =
        layers.iter().partition(|layer| layer.changed);
    for layer in changed {
        let files = members.iter().filter(|row| row.member_of(&layer.file).is_some()).count();
        add(layer.member_of(&image.file).unwrap_or(&layer.file), files.to_string(), &[layer]);
    }
    if !others.is_empty() {
        let noun = if others.len() == 1 { "other layer" } else { "other layers" };
        add(&format!("{} {noun}", others.len()), "0".to_owned(), &others);
    }
    table.print(out, "  ", style::terminal_width())
}

/// Prints a table of files, by the names that they have there.
fn print_table<'r>(
    out: &mut Out<'_>,
    rows: &[&'r FileRow],
    indent: &str,
    name: &dyn Fn(&FileRow) -> Option<&str>,
) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut table = sizes("FILE");
    for (whole, files) in lines(rows) {
        let short = match files[..] {
            [one] if !one.deleted => name(one),
            _ => None,
        };
        add_sizes(&mut table, short.unwrap_or(&whole), &files);
    }
    if rows.len() > 1 {
        let dry = if rows.iter().any(|row| row.dry_run) { ", not written" } else { "" };
        add_sizes(&mut table, &format!("{}{dry}", style::files(rows.len())), rows);
    }
    table.print(out, indent, style::terminal_width())
}

/// Prints what compression saves in total, unless the sizes of the only file are above, and what must be able to read the files then.
pub(crate) fn print_saved(rows: &[FileRow], is_alone: bool) -> io::Result<()> {
    let changed = || rows.iter().filter(|row| row.changed);
    let wholes: Vec<_> = changed().filter(|row| !row.about.is_part()).collect();
    if wholes.is_empty() {
        return Ok(());
    }
    let files = |is: &dyn Fn(&FileRow) -> bool| {
        let is_file = |row: &&FileRow| matches!(row.about, About::File | About::Member);
        style::files(changed().filter(is_file).filter(|row| is(row)).count())
    };
    let (would, need) = if wholes.iter().any(|row| row.dry_run) {
        ("would be ", "would need")
    } else {
        ("", "needs")
    };
    let [before, after] = sum(&wholes);
    // Packages compress plain code better than code that is compressed by itself.
    let saved = match before.checked_sub(after) {
        Some(saved) => format!("{} {would}saved", style::size(saved)),
        None => format!("{} more", style::size(after - before)),
    };
    let [before, after] = [before, after].map(style::size);
    let mut out = style::stdout();
    if !is_alone {
        show!(out)?;
        show!(out, "{before} -> {after}: {saved} in {}", files(&|_| true))?;
    }
    let needs: BTreeSet<&Need> = changed().flat_map(|row| &row.needs).collect();
    for one in needs {
        show!(out, "{need} {one} ({})", files(&|row| row.needs.contains(one)))?;
    }
    let any = files(&FileRow::is_read_by_every_driver);
    if changed().any(FileRow::is_read_by_every_driver) {
        show!(out, "every driver reads the compressed fatbinaries of {any} (LZ4)")?;
    }
    out.flush()
}

/// Returns the lines of a table of files: one for each, and one for deleted files of one directory.
fn lines<'r>(rows: &[&'r FileRow]) -> Vec<(String, Vec<&'r FileRow>)> {
    let mut lines: Vec<(String, Vec<&FileRow>)> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for row in rows {
        let next = lines.len();
        let at = if row.deleted { *known.entry(row.directory()).or_insert(next) } else { next };
        match lines.get_mut(at) {
            Some((name, files)) => {
                files.push(row);
                *name =
                    format!("{}: {} for other GPUs", row.directory(), style::files(files.len()));
            }
            None => lines.push((row.file.clone(), vec![row])),
        }
    }
    lines
}

/// Prints a line for each installed distribution that has changed files.
pub(crate) fn print_distributions(rows: &[FileRow]) -> io::Result<()> {
    let mut named: BTreeMap<_, Vec<&FileRow>> = BTreeMap::new();
    for row in rows {
        row.distributions.iter().for_each(|one| named.entry(one).or_default().push(row));
    }
    named.retain(|_, files| files.iter().any(|row| row.changed));
    let mut out = style::stdout();
    if !named.is_empty() {
        let mut table = sizes("PACKAGE");
        named.iter().for_each(|((_, name), files)| add_sizes(&mut table, name, files));
        show!(out)?;
        table.print(&mut out, "", style::terminal_width())?;
    }
    out.flush()
}

/// Returns a table of sizes before and after.
fn sizes(heading: &'static str) -> Table {
    Table::default().texts([heading]).shrinks().numbers(["BEFORE", "AFTER", "RATIO"])
}

/// Returns the bytes of files before and after.
fn sum(files: &[&FileRow]) -> [u64; 2] {
    // Sparse files may have any size.
    files.iter().fold([0_u64; 2], |[before, after], file| {
        [before.saturating_add(file.size_before), after.saturating_add(file.size_after)]
    })
}

fn add_sizes(table: &mut Table, name: &str, files: &[&FileRow]) {
    let [before, after] = sum(files);
    let ratio = style::percent(after, before);
    table.row(&[name.to_owned(), style::size(before), style::size(after), ratio]);
}

fn target_table(rows: &[TargetRow]) -> Table {
    let mut table = Table::default()
        .column("TARGET", Align::Left, TARGET)
        .numbers(["IMAGES", "LEFT", "BEFORE", "AFTER"]);
    for row in rows {
        table.row(&[
            row.target.clone(),
            row.images_before.to_string(),
            row.images_after.to_string(),
            style::size(row.size_before),
            style::size(row.size_after),
        ]);
    }
    table
}

fn container_table(rows: &[ContainerRow]) -> Table {
    let is_bundle =
        |row: &ContainerRow| matches!(row.kind, ContainerKind::Bundle | ContainerKind::Ccob);
    let has_bundles_only = rows.iter().filter(|row| row.has_form).all(is_bundle);
    let heading = if has_bundles_only { "BUNDLE" } else { "CONTAINER" };
    let table = Table::default().texts([heading, "CHANGE"]).optional(1);
    let mut table = table.numbers(["BEFORE", "AFTER", "RATIO"]);
    for row in rows.iter().filter(|row| row.has_form) {
        table.row(&[
            row.path.join(" "),
            row.change.to_owned(),
            style::size(row.size_before),
            style::size(row.size_after),
            style::percent(row.size_after, row.size_before),
        ]);
    }
    table
}
