//! The text output of `match`: a table for each container, or one for several GPUs, and a conclusion.

use std::collections::HashMap;
use std::io;

use device_select::{Answer, Conclusion, Device, Given, Note, Selection, Tone, Unit};

use crate::ls::format_text;
use tool_kit::style::{
    self, COLUMN, ERROR, HEADING, Out, PLAIN, Style, TARGET, WARNING, part, show,
};
use tool_kit::table::{Align, Table};

/// Units that look alike: the first one with its position, and the number of the others.
struct Group<'u> {
    unit: &'u Unit,
    position: usize,
    others: usize,
}

impl Group<'_> {
    /// Returns a text like `section:.hip_fatbin/bundle:0 and 3 more like it`.
    fn places(&self) -> String {
        let first = self.unit.place();
        match self.others {
            0 => first,
            n => format!("{first} and {n} more like it"),
        }
    }
}

/// Groups units that look alike, in file order: libraries have one for each of their many source files.
fn groups<K: Eq + std::hash::Hash>(units: &[Unit], key: impl Fn(usize) -> K) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut by_key: HashMap<K, usize> = HashMap::new();
    for (position, unit) in units.iter().enumerate() {
        let at = *by_key.entry(key(position)).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.others += 1,
            None => groups.push(Group { unit, position, others: 0 }),
        }
    }
    groups
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
        part!(out, "  {HEADING}{}{HEADING:#}", group.places());
        match note(group.position) {
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
        let rows = group.unit.candidates().iter().zip(rows(group.position));
        for (candidate, [mark, label, format, fate]) in rows {
            // The numbers and sizes of one are not those of all.
            let own = |text: String| if group.others == 0 { text } else { String::new() };
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
        let row: Vec<_> = [group.places()].into_iter().chain(cells(group.position)).collect();
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
    let style = style_of(answer);
    show!(out, "{HEADING}{name}{HEADING:#}: {style}{}{style:#}", answer.text)
}

/// Prints a conclusion about a file whose name is above.
pub(super) fn below(out: &mut Out<'_>, answer: &Conclusion) -> io::Result<()> {
    let style = style_of(answer);
    show!(out, "  {style}{}{style:#}", answer.text)
}

fn style_of(answer: &Conclusion) -> Style {
    match answer.tone {
        Tone::Good => TARGET,
        Tone::Mixed => WARNING,
        Tone::Bad => ERROR,
    }
}
