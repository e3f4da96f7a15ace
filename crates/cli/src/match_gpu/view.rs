//! The text output of `match`: a table for each container, or one for several GPUs, and a conclusion.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;

use device_select::{
    Answer, Candidate, Condition, Device, Given, Note, Override, Selection, Support, Unit,
};

use crate::ls::format_text;
use tool_kit::each_once::each_once;
use tool_kit::report;
use tool_kit::style::{
    self, COLUMN, ERROR, HEADING, Out, PLAIN, Style, TARGET, WARNING, part, show,
};
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
            .column("FORMAT", Align::Left, PLAIN)
            .optional(2)
            .column("SIZE", Align::Right, PLAIN)
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
        given.map(|(unit, answer)| cell(unit, answer)).collect()
    };
    let mut table = Table::default().column("CONTAINER", Align::Left, PLAIN);
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
        let mut table =
            Table::default().column("GPU", Align::Left, PLAIN).column("IMAGE", Align::Left, TARGET);
        for (gpu, cell) in gpus.iter().zip(cells) {
            table.row(&[gpu.name(), cell.clone()]);
        }
        table.print(out, "    ", width)?;
        show!(out)?;
    }
    Ok(())
}

fn cell(unit: &Unit, answer: &Answer) -> String {
    let given: Vec<_> = (unit.candidates().iter().zip(&answer.images))
        .filter_map(|(candidate, judged)| match &judged.given {
            Given::Yes => Some(candidate.label().to_owned()),
            Given::If(condition) => {
                Some(format!("{} if {}", candidate.label(), condition.as_str()))
            }
            Given::No => None,
        })
        .collect();
    match &answer.given {
        _ if answer.note == Some(Note::NoKernels) => "no kernels".to_owned(),
        _ if answer.note == Some(Note::Unlinked) => "not linked".to_owned(),
        _ if !given.is_empty() => given.join(", "),
        Given::Yes => "linked when loaded".to_owned(),
        Given::If(condition) => format!("if {}", condition.as_str()),
        Given::No if answer.counts() => "none".to_owned(),
        Given::No => "-".to_owned(),
    }
}

/// Prints a conclusion like `libfoo.so: 2 of 3 containers have code for gfx1100; section:.hip_fatbin/bundle:1 has none:
/// built for gfx906`.
pub(super) fn conclusion(
    out: &mut Out<'_>,
    file: &str,
    units: &[Unit],
    gpu: &Device,
    selection: &Selection,
) -> io::Result<()> {
    let (style, words) = conclude(units, gpu, selection);
    show!(out, "{HEADING}{file}{HEADING:#}: {style}{words}{style:#}")
}

/// Returns a conclusion in words, and how it is shown.
pub(crate) fn conclude(units: &[Unit], gpu: &Device, selection: &Selection) -> (Style, String) {
    let name = gpu.name();
    let all = || units.iter().zip(selection.answers());
    let left_out = |note| all().filter(move |(_, answer)| answer.note == Some(note));
    let counted: Vec<_> = all().filter(|(_, answer)| answer.counts()).collect();
    let lacks = counted.iter().filter(|(_, answer)| answer.lacks_code());
    let missing: Vec<&Unit> = lacks.map(|(unit, _)| *unit).collect();
    let elsewhere: Vec<&Unit> = left_out(Note::OtherGpus).map(|(unit, _)| unit).collect();
    let containers = match left_out(Note::NoKernels).next() {
        Some(_) if counted.is_empty() => return (ERROR, format!("has no kernels for {name}")),
        Some(_) => "containers with kernels",
        None if counted.iter().all(|(unit, _)| unit.module().is_some()) => "modules",
        None => "containers",
    };
    let conditions: Vec<&str> = (counted.iter())
        .filter_map(|(_, answer)| answer.given.condition().map(Condition::as_str))
        .collect();
    let all = counted.len() + elsewhere.len();
    let without = missing.len() + elsewhere.len();
    let style = match (selection.support(), &conditions[..]) {
        (Support::Yes, []) if elsewhere.is_empty() => TARGET,
        (Support::Yes | Support::Partly, _) => WARNING,
        (Support::Unknown | Support::No, _) => ERROR,
    };
    let is_unlinked = |(_, answer): &(_, &Answer)| answer.note == Some(Note::Unlinked);
    if all == without && counted.iter().any(is_unlinked) {
        let words =
            format!("has code for {name} that is not linked: it needs the offload link step");
        return (style, words);
    }
    let is_lost = |(_, answer): &&(_, &Answer)| answer.note == Some(Note::Lost);
    let lost = counted.iter().filter(is_lost).count();
    if lost > 0 && lost == missing.len() {
        let of =
            if lost == all { String::new() } else { format!(" in {lost} of {all} {containers}") };
        return (
            style,
            format!("has code for {name}{of} that no runtime finds: no wrapper leads to it"),
        );
    }
    if selection.support() == Support::Unknown {
        let words = format!("unknown for {name}: LTO-IR only, of which a linker makes code");
        return (style, words);
    }
    let needs: Option<Vec<_>> = counted
        .iter()
        .filter(|(_, answer)| answer.lacks_code())
        .map(|(_, answer)| answer.need())
        .collect();
    if let Some(need) = needs.and_then(|needs| needs.into_iter().max()) {
        let words = format!("has code for {name} that needs {need}");
        return (style, words);
    }
    let mut words = match (all, without) {
        (1, 0) => format!("has code for {name}{}", instead(&counted, &name)),
        (2, 0) => format!("both {containers} have code for {name}"),
        (all, 0) => format!("all {all} {containers} have code for {name}"),
        (all, without) if all == without => format!("has no code for {name}"),
        (all, without) => {
            let have = if all - without == 1 { "has" } else { "have" };
            let partly = if selection.support() == Support::Partly { "partly: " } else { "" };
            format!("{partly}{} of {all} {containers} {have} code for {name}", all - without)
        }
    };
    if let Some(condition) = conditions.first() {
        let same = conditions.iter().all(|other| other == condition);
        words.push_str(&match (all - without, same) {
            (1, _) => format!(", if {condition}"),
            (n, true) if n == conditions.len() => format!(", if {condition}"),
            (_, true) => format!(", {} of them if {condition}", conditions.len()),
            (_, false) => format!(", {} of them on a condition", conditions.len()),
        });
    }
    if all == without {
        words.push_str(&built_for(&missing, gpu));
    } else {
        words.push_str(&lacking(&missing));
        words.push_str(&only(&elsewhere));
    }
    (style, words)
}

/// Returns the image that is given, if it is not called like the GPU.
fn instead(counted: &[(&Unit, &Answer)], name: &str) -> String {
    let Some((unit, answer)) = counted.first() else { return String::new() };
    let mut judged = unit.candidates().iter().zip(&answer.images);
    let given =
        judged.find(|(_, judged)| judged.given == Given::Yes).map(|(candidate, _)| candidate);
    match given.map(Candidate::label) {
        Some(label) if label != name => format!(" ({label})"),
        _ => String::new(),
    }
}

/// Most lists of containers without code that a conclusion names.
const MOST_NAMED: usize = 3;

/// Groups units by their lists of targets: the first unit of each list, and the number of the others. Returns at most
/// as many lists as a conclusion names.
fn by_labels<'u>(units: &[&'u Unit]) -> Vec<(Vec<Cow<'u, str>>, &'u Unit, usize)> {
    let mut groups: Vec<(Vec<Cow<'_, str>>, &Unit, usize)> = Vec::new();
    for unit in units {
        let labels = unit.built_for();
        let is_full = groups.len() >= MOST_NAMED;
        match groups.iter_mut().find(|(other, ..)| *other == labels) {
            Some((_, _, more)) => *more += 1,
            None if is_full => {}
            None => groups.push((labels, unit, 0)),
        }
    }
    groups
}

/// Returns a text like `; 9 are for sm_120a only`.
fn only(elsewhere: &[&Unit]) -> String {
    let mut words = String::new();
    let mut named = 0;
    for (labels, _, more) in by_labels(elsewhere) {
        let are = if more == 0 { "is" } else { "are" };
        words.push_str(&format!("; {} {are} for {} only", more + 1, report::few(&labels)));
        named += more + 1;
    }
    if named < elsewhere.len() {
        words.push_str(&format!("; {} more are for other GPUs only", elsewhere.len() - named));
    }
    words
}

fn lacking(missing: &[&Unit]) -> String {
    let groups = by_labels(missing);
    let mut words = String::new();
    let mut named = 0;
    for (labels, first, more) in &groups {
        named += 1 + more;
        let place = first.place();
        let who = match more {
            0 if first.is_loose() => format!("{place} have none"),
            0 => format!("{place} has none"),
            n => format!("{place} and {n} more have none"),
        };
        words.push_str(&format!("; {who}: {}", listed(labels)));
    }
    if named < missing.len() {
        words.push_str(&format!("; {} more have none", missing.len() - named));
    }
    words
}

fn built_for(missing: &[&Unit], gpu: &Device) -> String {
    let labels = each_once(missing.iter().flat_map(|unit| unit.built_for()));
    let mut vendors = missing.iter().map(|unit| unit.vendor());
    match vendors.next() {
        Some(Some(vendor)) if vendor != gpu.vendor() && vendors.all(|v| v == Some(vendor)) => {
            format!(": built for {} GPUs, {}", vendor.as_str(), report::few(&labels))
        }
        _ => format!(": {}", listed(&labels)),
    }
}

fn listed(labels: &[Cow<'_, str>]) -> String {
    match labels {
        [] => "holds host code only".to_owned(),
        labels => format!("built for {}", report::few(labels)),
    }
}

/// Returns a suggestion: a processor of the family of the GPU for which there is code, if there is none for the GPU.
pub(crate) fn hint(units: &[Unit], gpu: &Device, answers: &[Answer]) -> Option<String> {
    let setting = Override::of(gpu)?;
    let mut missing =
        units.iter().zip(answers).filter(|(_, answer)| answer.lacks_code()).peekable();
    missing.peek()?;
    let (base, version) = (setting.processor(), setting.version());
    let has_it = |unit: &Unit| unit.candidates().iter().any(|image| image.target().id() == base);
    missing.all(|(unit, _)| has_it(unit)).then(|| {
        let name = gpu.id().processor();
        let likeness = match base {
            "gfx1030" => format!("{name} has the instructions of {base}"),
            _ => format!("{name} is of the family of {base}"),
        };
        format!(
            "{likeness}, for which there is code; on Linux some run that with HSA_OVERRIDE_GFX_VERSION={version}, which AMD does \
             not support"
        )
    })
}
