//! The text output of `match`: a table for each container, or one for several GPUs, and a conclusion.

use std::collections::HashMap;
use std::io;

use device_select::{Answer, Conclusion, Device, Given, Note, Selection, Tone, Unit};

use crate::ls::format_text;
use tool_kit::style::{self, COLUMN, ERROR, HEADING, Out, PLAIN, TARGET, WARNING, part, show};
use tool_kit::table::{Align, Table};

/// Groups units that look alike, in file order: libraries have one for each of their many source files.
fn groups<K: Eq + std::hash::Hash>(units: &[Unit], key: impl Fn(usize) -> K) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut by_key: HashMap<K, usize> = HashMap::new();
    for n in 0..units.len() {
        let at = *by_key.entry(key(n)).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.push(n),
            None => groups.push(vec![n]),
        }
    }
    groups
}

/// Returns a text like `section:.hip_fatbin/bundle:0 and 3 more like it`.
fn places(units: &[Unit], group: &[usize]) -> String {
    let first = group.first().and_then(|n| units.get(*n)).map(Unit::place).unwrap_or_default();
    match group.len() {
        0 | 1 => first,
        n => format!("{first} and {} more like it", n - 1),
    }
}

/// Prints every image of every unit and its answer.
pub(super) fn one_gpu(
    out: &mut Out<'_>,
    units: &[Unit],
    gpu: &Device,
    answers: &[Answer],
) -> io::Result<()> {
    let rows = |n: usize| -> Vec<[String; 4]> {
        let Some((unit, answer)) = units.get(n).zip(answers.get(n)) else { return Vec::new() };
        let judged = unit.candidates().iter().zip(&answer.images);
        judged
            .map(|(candidate, judged)| {
                let (mark, word) = match &judged.given {
                    Given::Yes => ("=>", "yes".to_owned()),
                    Given::If(condition) => ("=>", format!("if {}", condition.as_str())),
                    Given::No => ("", "no".to_owned()),
                };
                let label = candidate.label().to_owned();
                let empty = if candidate.holds_code() == Some(false) && candidate.size() > 0 {
                    "; it holds no kernels"
                } else {
                    ""
                };
                let fate = format!("{word}: {}{empty}", judged.reason());
                [mark.to_owned(), label, format_text(candidate.format()), fate]
            })
            .collect()
    };
    let note = |n: usize| answers.get(n).and_then(|answer| answer.note).map(Note::as_str);
    for group in groups(units, |n| (rows(n), note(n))) {
        let Some(&first) = group.first() else { continue };
        part!(out, "  {HEADING}{}{HEADING:#}", places(units, &group));
        match note(first) {
            Some(note) => show!(out, " ({note})")?,
            None => show!(out)?,
        }
        let mut table = Table::default()
            .column("", Align::Left, TARGET)
            .column("#", Align::Right, COLUMN)
            .column("IMAGE", Align::Left, TARGET)
            .texts(["FORMAT"])
            .optional(2)
            .numbers(["SIZE"])
            .optional(1)
            .column(format!("FOR {}", gpu.name()), Align::Left, PLAIN);
        let candidates = units.get(first).map(|unit| unit.candidates()).unwrap_or_default();
        for (candidate, [mark, label, format, fate]) in candidates.iter().zip(rows(first)) {
            // The numbers and sizes of one are not those of all.
            let own = |text: String| if group.len() == 1 { text } else { String::new() };
            let (index, size) =
                (own(candidate.index().to_string()), own(style::size(candidate.size())));
            table.row(&[mark, index, label, format, size, fate]);
        }
        table.print(out, "    ", style::terminal_width())?;
        show!(out)?;
    }
    Ok(())
}

/// Prints a row for each unit, a column for each GPU.
pub(super) fn several_gpus(
    out: &mut Out<'_>,
    units: &[Unit],
    gpus: &[Device],
    answers: &[Selection],
) -> io::Result<()> {
    let cells = |n: usize| -> Vec<String> {
        let given = answers.iter().filter_map(|all| units.get(n).zip(all.answers().get(n)));
        given.map(|(unit, answer)| answer.in_short(unit)).collect()
    };
    let mut table = Table::default().texts(["CONTAINER"]);
    for gpu in gpus {
        table = table.column(gpu.name(), Align::Left, TARGET);
    }
    let mut rows = Vec::new();
    for group in groups(units, cells) {
        let first = group.first().map(|n| cells(*n)).unwrap_or_default();
        let row: Vec<_> = [places(units, &group)].into_iter().chain(first).collect();
        table.row(&row);
        rows.push(row);
    }
    let width = style::terminal_width();
    if table.fits("  ", width) {
        table.print(out, "  ", width)?;
        return show!(out);
    }
    // A line for each GPU always fits.
    for row in rows {
        let Some((place, cells)) = row.split_first() else { continue };
        show!(out, "  {HEADING}{place}{HEADING:#}")?;
        let mut table = Table::default().texts(["GPU"]).column("IMAGE", Align::Left, TARGET);
        for (gpu, cell) in gpus.iter().zip(cells) {
            table.row(&[gpu.name(), cell.clone()]);
        }
        table.print(out, "    ", width)?;
        show!(out)?;
    }
    Ok(())
}

/// Prints a conclusion like `libfoo.so: 2 of 3 containers have code for gfx1100`.
pub(super) fn conclusion(out: &mut Out<'_>, name: &str, answer: &Conclusion) -> io::Result<()> {
    let style = match answer.tone {
        Tone::Good => TARGET,
        Tone::Mixed => WARNING,
        Tone::Bad => ERROR,
    };
    show!(out, "{HEADING}{name}{HEADING:#}: {style}{}{style:#}", answer.text)
}
