//! The tables of kernels, and JSON.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use device_code::{KernelKind, Measure, Stored};

use super::collect::{Collected, Found, Row};
use super::{Args, Key};
use crate::style::{self, COLUMN, HEADING, PLAIN, TARGET};
use crate::table::{Align, Table};

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

pub(super) fn json(
    out: &mut dyn Write,
    file: &str,
    collected: &Collected,
    is_first: &mut bool,
) -> io::Result<()> {
    for row in &collected.rows {
        write!(out, "{}", if *is_first { "\n  " } else { ",\n  " })?;
        crate::json::write(out, &row.json(file, collected.image(row)))?;
        *is_first = false;
    }
    Ok(())
}

pub(super) fn text(out: &mut dyn Write, args: &Args, file: &str, found: &Found) -> io::Result<()> {
    if let Ok(summary) = &found.summary {
        let (file, size) = (style::printable(file), style::size(summary.size));
        writeln!(out, "{HEADING}{file}{HEADING:#}  {size}, {}", summary.format)?;
    }
    let collected = &found.collected;
    let key = args.sort.unwrap_or_default();
    let targets = targets(collected);
    if args.images {
        for (at, image) in collected.images.iter().enumerate() {
            let rows: Vec<&Row> = collected.rows.iter().filter(|row| row.image == at).collect();
            if rows.is_empty() {
                continue;
            }
            let name = style::printable(&image.target);
            writeln!(out, "  {COLUMN}#{}{COLUMN:#} {TARGET}{name}{TARGET:#}", image.index)?;
            one_gpu(out, args, key, rows)?;
        }
    } else if targets.len() > 1 {
        several_gpus(out, args, key, collected, &targets)?;
    } else if !collected.rows.is_empty() {
        one_gpu(out, args, key, collected.rows.iter().collect())?;
    }
    if !collected.rows.is_empty() {
        writeln!(out)?;
        totals(out, collected, &targets)?;
    }
    Ok(())
}

/// Returns the targets of images with kernels, in their order.
fn targets(collected: &Collected) -> Vec<&str> {
    let mut targets: Vec<&str> = Vec::new();
    for row in &collected.rows {
        let target = collected.target(row);
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    targets
}

/// Returns a number to sort by: what is not known comes first, what is not stored last.
fn rank(stored: Stored) -> Reverse<(u8, u64)> {
    Reverse(match stored {
        Stored::Unknown(least) => (2, least),
        Stored::Known(number) => (1, number),
        Stored::Absent => (0, 0),
    })
}

fn one_gpu(out: &mut dyn Write, args: &Args, key: Key, mut rows: Vec<&Row>) -> io::Result<()> {
    match key {
        Key::Name => rows.sort_by(|a, b| a.name(args.mangled).cmp(b.name(args.mangled))),
        Key::By(measure) => rows.sort_by_key(|row| rank(row.of(measure))),
    }
    let shown = rows.get(..args.top.unwrap_or(rows.len())).unwrap_or(&rows);
    let mut table = Table::default();
    for (at, (title, _)) in COLUMNS.into_iter().enumerate() {
        table = table.column(title, Align::Right, PLAIN);
        // The first columns go last.
        if at > 1 {
            table = table.optional(u8::try_from(COLUMNS.len() - at).unwrap_or(u8::MAX));
        }
    }
    table = table.column("WG", Align::Right, PLAIN).optional(1);
    table = table.column("KERNEL", Align::Left, TARGET).shrinks_at_end();
    for row in shown {
        let mut cells: Vec<String> = COLUMNS
            .into_iter()
            .map(|(_, measure)| {
                let is_there = rows.iter().any(|row| row.of(measure) != Stored::Absent);
                if is_there { row.text(measure) } else { String::new() }
            })
            .collect();
        cells.push(group_size(row));
        cells.push(name(row, args.mangled));
        table.row(&cells);
    }
    if !shown.is_empty() {
        table.print(out, "  ", style::terminal_width())?;
    }
    more(out, rows.len() - shown.len())
}

/// Returns the sizes of work-groups: `256x1x1` if there is one, else the most work-items.
fn group_size(row: &Row) -> String {
    match row.required_group_size() {
        Some([x, y, z]) => format!("{x}x{y}x{z}"),
        None => match row.of(Measure::GroupSize) {
            Stored::Known(most) => most.to_string(),
            _ => String::new(),
        },
    }
}

fn name(row: &Row, mangled: bool) -> String {
    let mark = match row.kind {
        KernelKind::Init => " (init)",
        KernelKind::Fini => " (fini)",
        KernelKind::Shader => " (shader)",
        _ => "",
    };
    format!("{}{mark}", row.name(mangled))
}

fn more(out: &mut dyn Write, hidden: usize) -> io::Result<()> {
    if hidden > 0 {
        writeln!(out, "  and {hidden} more kernel{}", if hidden == 1 { "" } else { "s" })?;
    }
    Ok(())
}

/// A kernel on several GPUs.
#[derive(Default)]
struct Line<'r> {
    name: String,
    /// The largest kernel of this name for each target.
    cells: BTreeMap<&'r str, &'r Row>,
}

fn several_gpus(
    out: &mut dyn Write,
    args: &Args,
    key: Key,
    collected: &Collected,
    targets: &[&str],
) -> io::Result<()> {
    let measure = key.measure();
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    for row in &collected.rows {
        let at = *by_name.entry(row.name(args.mangled)).or_insert(lines.len());
        if at == lines.len() {
            lines.push(Line { name: name(row, args.mangled), ..Line::default() });
        }
        if let Some(line) = lines.get_mut(at) {
            let cell = line.cells.entry(collected.target(row)).or_insert(row);
            if rank(row.of(measure)) < rank(cell.of(measure)) {
                *cell = row;
            }
        }
    }
    match key {
        Key::Name => lines.sort_by(|a, b| a.name.cmp(&b.name)),
        Key::By(_) => {
            lines.sort_by_key(|line| line.cells.values().map(|row| rank(row.of(measure))).min())
        }
    }
    let shown = lines.get(..args.top.unwrap_or(lines.len())).unwrap_or(&lines);
    let mut table = Table::default();
    for target in targets {
        table = table.column((*target).to_owned(), Align::Right, PLAIN);
    }
    table = table
        .column(format!("KERNEL: {}", measure.name().to_uppercase()), Align::Left, TARGET)
        .shrinks_at_end();
    for line in shown {
        let mut cells: Vec<String> = targets
            .iter()
            .map(|target| line.cells.get(target).map_or(" ".to_owned(), |row| row.text(measure)))
            .collect();
        cells.push(line.name.clone());
        table.row(&cells);
    }
    if !shown.is_empty() {
        table.print(out, "  ", style::terminal_width())?;
    }
    more(out, lines.len() - shown.len())
}

fn totals(out: &mut dyn Write, collected: &Collected, targets: &[&str]) -> io::Result<()> {
    let mut table = Table::default()
        .column("TOTAL FOR", Align::Left, TARGET)
        .column("IMAGES", Align::Right, PLAIN)
        .column("KERNELS", Align::Right, PLAIN)
        .column("CODE", Align::Right, PLAIN)
        .column("MOST REGS", Align::Right, PLAIN)
        .column("MOST GROUP", Align::Right, PLAIN)
        .column("MOST PRIVATE", Align::Right, PLAIN)
        .column("SPILLING", Align::Right, PLAIN);
    for target in targets {
        let rows: Vec<&Row> =
            collected.rows.iter().filter(|row| collected.target(row) == *target).collect();
        let known = |measure: Measure| rows.iter().filter_map(move |row| row.of(measure).known());
        let most =
            |measure| known(measure).max().map_or_else(|| "-".to_owned(), |most| most.to_string());
        let sum = known(Measure::Code).fold(0, u64::saturating_add);
        let has_code = known(Measure::Code).next().is_some();
        let spilling = known(Measure::VectorSpills).filter(|spills| *spills > 0).count();
        let stores_spills = known(Measure::VectorSpills).next().is_some();
        let images = collected.images.iter().filter(|image| image.target == *target).count();
        table.row(&[
            (*target).to_owned(),
            images.to_string(),
            rows.len().to_string(),
            if has_code { style::size(sum) } else { "-".to_owned() },
            most(Measure::Registers),
            most(Measure::GroupMemory),
            most(Measure::PrivateMemory),
            if stores_spills { spilling.to_string() } else { "-".to_owned() },
        ]);
    }
    table.print(out, "  ", style::terminal_width())
}
