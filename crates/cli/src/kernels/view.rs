//! The tables of kernels, and JSON.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use device_code::{KernelList, KernelTotals, ListedKernel, Measure, RegisterLimits, Stored};
use device_select::each_once;

use super::{Args, Key};
use crate::ls;
use tool_answers::kernels::Found;
use tool_kit::style::{self, COLUMN, Out, PLAIN, TARGET, show};
use tool_kit::table::{Align, Table};

/// The columns of a table of one GPU, with titles.
const COLUMNS: [(&str, Measure); 12] = [
    ("CODE", Measure::Code),
    ("REGS", Measure::Registers),
    ("ALLOC", Measure::Allocated),
    ("AGPR", Measure::Accumulators),
    ("SGPR", Measure::Scalars),
    ("VSPILL", Measure::VectorSpills),
    ("SSPILL", Measure::ScalarSpills),
    ("GROUP", Measure::GroupMemory),
    ("PRIVATE", Measure::PrivateMemory),
    ("FRAME", Measure::Frame),
    ("ARGS", Measure::Arguments),
    ("BAR", Measure::Barriers),
];

/// Characters of a kernel's name that a terminal shows at least, unless they are more.
const NAME: usize = 36;
/// GPUs that have a column each at most, in a table of kernels.
const MOST_COLUMNS: usize = 256;

pub(super) fn text(out: &mut Out<'_>, args: &Args, file: &str, found: &Found) -> io::Result<()> {
    if let Ok(summary) = &found.summary {
        ls::heading(out, file, summary)?;
    }
    let list = &found.list;
    let key = args.sort.unwrap_or(Key::By(Measure::Code));
    let rows: Vec<&ListedKernel> = list.distinct().collect();
    let targets = targets(list, &rows);
    if args.images {
        let mut by_image: BTreeMap<usize, Vec<&ListedKernel>> = BTreeMap::new();
        for row in &list.kernels {
            by_image.entry(row.image).or_default().push(row);
        }
        for (at, rows) in by_image {
            let Some(image) = list.images.get(at) else { continue };
            let name = &image.target;
            let mark = if image.is_relocatable { "  relocatable" } else { "" };
            let index = image.index;
            show!(out, "  {COLUMN}#{index}{COLUMN:#} {TARGET}{name}{TARGET:#}{mark}")?;
            one_gpu(out, args, key, list, rows)?;
        }
    } else if targets.len() > 1 {
        several_gpus(out, args, key, list, &rows, &targets)?;
    } else if !rows.is_empty() {
        one_gpu(out, args, key, list, rows.clone())?;
    }
    if !rows.is_empty() {
        totals(out, list, &targets)?;
    }
    let copies = list.kernels.len() - rows.len();
    if copies > 0 && !args.images {
        show!(
            out,
            "  {COLUMN}{copies} copies in relocatable images, of kernels that are linked here, are left out: --images shows them{COLUMN:#}"
        )?;
    }
    Ok(())
}

/// Returns the targets of images with kernels, in their order.
fn targets<'c>(list: &'c KernelList, rows: &[&ListedKernel]) -> Vec<&'c str> {
    let has_kernels: HashSet<usize> = rows.iter().map(|row| row.image).collect();
    let with_kernels = list.images.iter().enumerate().filter(|(at, _)| has_kernels.contains(at));
    each_once(with_kernels.map(|(_, image)| image.target.as_str()))
}

/// Returns a number to sort by, the largest first.
fn rank(stored: Stored) -> Reverse<(u8, u64)> {
    Reverse(stored.rank())
}

fn one_gpu(
    out: &mut Out<'_>,
    args: &Args,
    key: Key,
    list: &KernelList,
    mut rows: Vec<&ListedKernel>,
) -> io::Result<()> {
    match key {
        Key::Name => rows.sort_by(|a, b| a.name(args.mangled).cmp(b.name(args.mangled))),
        Key::By(measure) => rows.sort_by_key(|row| rank(row.of(measure))),
    }
    let shown = rows.get(..args.top.unwrap_or(rows.len())).unwrap_or(&rows);
    let mut columns = COLUMNS.to_vec();
    if key == Key::By(Measure::Spills) {
        columns.insert(2, ("SPILLS", Measure::Spills));
    }
    let mut table = Table::default();
    for (at, (title, measure)) in columns.iter().copied().enumerate() {
        table = table.column(title, Align::Right, PLAIN);
        // The first columns go last, the column of the order never.
        if at > 1 && key != Key::By(measure) {
            table = table.optional(u8::try_from(columns.len() - at).unwrap_or(u8::MAX));
        }
    }
    table = table.numbers(["WG"]).optional(1);
    table = table.numbers(["WAVES"]).optional(2);
    let mut limits: Vec<RegisterLimits> = Vec::new();
    table = table.column("KERNEL", Align::Left, TARGET).shrinks_at_end().before_others(NAME);
    let is_stored: Vec<bool> = columns
        .iter()
        .map(|(_, measure)| rows.iter().any(|row| row.of(*measure) != Stored::Absent))
        .collect();
    for row in shown {
        let mut cells: Vec<String> = columns
            .iter()
            .zip(&is_stored)
            .map(|((_, measure), is)| if *is { row.text(*measure) } else { String::new() })
            .collect();
        cells.push(row.group_size());
        let occupancy = list.occupancy(row);
        cells.push(occupancy.map_or_else(String::new, |bound| bound.waves.to_string()));
        limits.extend(occupancy.map(|bound| bound.limits).filter(|one| !limits.contains(one)));
        cells.push(row.labelled(args.mangled));
        table.row(&cells);
    }
    let width = style::terminal_width();
    if !shown.is_empty() {
        table.print(out, "  ", width)?;
    }
    if !table.shows("WAVES", "  ", width) {
        limits.clear();
    }
    more(out, rows.len(), shown.len(), &limits)
}

/// Prints how many kernels of a table are not shown, what its waves follow from, and an empty line, unless no kernel was to be
/// shown.
fn more(out: &mut Out<'_>, all: usize, shown: usize, limits: &[RegisterLimits]) -> io::Result<()> {
    let hidden = all - shown;
    if shown == 0 {
        return Ok(());
    }
    if hidden > 0 {
        show!(out, "  and {hidden} more kernel{}", if hidden == 1 { "" } else { "s" })?;
    }
    for limits in limits {
        show!(out, "  {COLUMN}WAVES: at most, by registers: {limits}{COLUMN:#}")?;
    }
    show!(out)
}

/// A kernel on several GPUs.
struct Line<'r> {
    name: String,
    /// The largest kernel of this name for each target that has one, by the number of the target.
    cells: BTreeMap<usize, &'r ListedKernel>,
}

impl Line<'_> {
    /// Returns the ranks of its kernels, the largest first.
    fn ranks(&self, measure: Measure) -> impl Iterator<Item = Reverse<(u8, u64)>> {
        self.cells.values().map(move |row| rank(row.of(measure)))
    }
}

fn several_gpus(
    out: &mut Out<'_>,
    args: &Args,
    key: Key,
    list: &KernelList,
    rows: &[&ListedKernel],
    targets: &[&str],
) -> io::Result<()> {
    let measure = key.measure();
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    let columns: HashMap<&str, usize> =
        targets.iter().enumerate().map(|(at, target)| (*target, at)).collect();
    for row in rows {
        let at = *by_name.entry(row.name(args.mangled)).or_insert(lines.len());
        if at == lines.len() {
            lines.push(Line { name: row.labelled(args.mangled), cells: BTreeMap::new() });
        }
        let column = columns.get(list.target(row)).copied();
        let Some((line, column)) = lines.get_mut(at).zip(column) else { continue };
        let cell = line.cells.entry(column).or_insert(row);
        if rank(row.of(measure)) < rank(cell.of(measure)) {
            *cell = row;
        }
    }
    match key {
        Key::Name => lines.sort_by(|a, b| a.name.cmp(&b.name)),
        Key::By(_) => lines.sort_by_cached_key(|line| line.ranks(measure).min()),
    }
    let shown = lines.get(..args.top.unwrap_or(lines.len())).unwrap_or(&lines);
    let unit = if measure.is_in_bytes() { ", in bytes" } else { "" };
    if !shown.is_empty() {
        let measured = measure.name().to_uppercase();
        show!(out, "  {COLUMN}{measured} of each kernel by GPU{unit}{COLUMN:#}")?;
        let width = style::terminal_width();
        let table = (targets.len() <= MOST_COLUMNS).then(|| by_gpu(shown, measure, targets));
        let table = table.filter(|table| table.fits_but_for_last("  ", width));
        table.unwrap_or_else(|| ranges(shown, measure)).print(out, "  ", width)?;
    }
    more(out, lines.len(), shown.len(), &[])
}

/// Returns a table with a column for each GPU.
fn by_gpu(lines: &[Line<'_>], measure: Measure, targets: &[&str]) -> Table {
    let mut table = Table::default();
    for target in targets {
        table = table.column((*target).to_owned(), Align::Right, PLAIN);
    }
    table = table.column("KERNEL", Align::Left, TARGET).shrinks_at_end();
    for line in lines {
        let cells = (0..targets.len()).map(|target| line.cells.get(&target));
        let cells = cells.map(|cell| cell.map_or(" ".to_owned(), |row| row.text(measure)));
        table.row(&cells.chain([line.name.clone()]).collect::<Vec<_>>());
    }
    table
}

/// Returns a table of the least and the most of all GPUs, for terminals with too few columns for each.
fn ranges(lines: &[Line<'_>], measure: Measure) -> Table {
    let mut table = Table::default()
        .numbers(["LEAST", "MOST", "GPUS"])
        .column("KERNEL", Align::Left, TARGET)
        .shrinks_at_end();
    for line in lines {
        let rows = line.cells.values();
        let stored = rows.clone().filter(|row| row.of(measure) != Stored::Absent);
        let text =
            |row: Option<&&ListedKernel>| row.map_or("-".to_owned(), |row| row.text(measure));
        table.row(&[
            text(stored.clone().max_by_key(|row| rank(row.of(measure)))),
            text(stored.min_by_key(|row| rank(row.of(measure)))),
            rows.count().to_string(),
            line.name.clone(),
        ]);
    }
    table
}

fn totals(out: &mut Out<'_>, list: &KernelList, targets: &[&str]) -> io::Result<()> {
    let by_target = KernelTotals::of(list);
    // Not every target has kernels.
    let totals: Vec<(&str, KernelTotals)> = targets
        .iter()
        .map(|target| (*target, by_target.get(target).copied().unwrap_or_default()))
        .collect();
    let mut table = Table::default()
        .column("TOTAL FOR", Align::Left, TARGET)
        .numbers(["IMAGES"])
        .optional(1)
        .numbers(["KERNELS", "CODE", "MOST REGS", "MOST GROUP"])
        .optional(3)
        .numbers(["MOST PRIVATE"])
        .optional(2)
        .numbers(["SPILLING"]);
    // A column that no GPU has is left out.
    let cells = |of: &dyn Fn(&KernelTotals) -> Option<String>| {
        let cells: Vec<_> = totals.iter().map(|(_, total)| of(total)).collect();
        let none = if cells.iter().any(Option::is_some) { "-" } else { "" };
        let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| none.to_owned()));
        cells.collect::<Vec<_>>()
    };
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let columns = [
        cells(&|total| Some(total.kernels.to_string())),
        cells(&|total| total.code.map(style::size)),
        cells(&|total| number(total.registers)),
        cells(&|total| number(total.group_memory)),
        cells(&|total| {
            Some(total.private_memory.to_string())
                .filter(|_| total.private_memory != Stored::Absent)
        }),
        cells(&|total| number(total.spilling)),
    ];
    let mut columns = columns.map(Vec::into_iter);
    for (target, total) in &totals {
        let mut row = vec![(*target).to_owned(), total.with_kernels.to_string()];
        row.extend(columns.iter_mut().filter_map(Iterator::next));
        table.row(&row);
    }
    table.print(out, "  ", style::terminal_width())
}
