//! Results as Markdown.

use std::fmt::Write as _;

use crate::record::{Measurement, size_name};
use crate::targets::Target;

/// The head of the table of an operation.
pub(crate) fn head(operation: &str) -> &'static str {
    if compresses(operation) {
        "| input | command | time | beside ours | CPU time | memory | output |\n|---|---|---:|---:|---:|---:|---:|"
    } else {
        "| input | command | time | beside ours | CPU time | memory |\n|---|---|---:|---:|---:|---:|"
    }
}

/// The rows of a measurement.
pub(crate) fn rows(measurement: &Measurement) -> String {
    let runs = measurement.figures.first().map_or(0, |figures| figures.samples.len());
    let runs = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
    let input = [size_name(measurement.size), measurement.what.clone(), runs];
    let input: Vec<_> = input.into_iter().filter(|part| !part.is_empty()).collect();
    let mut input = input.join(", ");
    let is_sized = compresses(measurement.operation);
    let mut rows = Vec::new();
    for figures in &measurement.figures {
        let ratio = match measurement.ours() {
            Some(ours) if ours.name != figures.name => format!("{:.2} x", figures.ratio(ours)),
            _ => String::new(),
        };
        let [time, cpu] = [figures.time(), figures.cpu()].map(seconds);
        let (name, memory) = (&figures.name, figures.memory());
        let mut row = format!("| {input} | {name} | {time} | {ratio} | {cpu} | {memory:.1} MiB |");
        if is_sized {
            let _ = write!(row, " {} |", bytes(figures.output));
        }
        rows.push(row);
        input.clear();
    }
    if let Some(note) = &measurement.note {
        rows.push(format!("| | {note} | | | | |{}", if is_sized { " |" } else { "" }));
    }
    rows.join("\n")
}

/// Returns whether the size of the output is a result.
fn compresses(operation: &str) -> bool {
    matches!(operation, "compress" | "compress-library" | "thin-wheel")
}

/// The table of targets.
pub(crate) fn targets(targets: &[Target]) -> String {
    let mut text = String::from("| target | figure | promised | |\n|---|---:|---:|---|");
    for target in targets {
        let figure = target.figure().unwrap_or_default();
        let verdict = match target.verdict() {
            "met" => "met".to_owned(),
            other => format!("**{other}**"),
        };
        let _ = write!(text, "\n| {} | {figure} | {} | {verdict} |", target.what, target.promise());
    }
    text
}

fn seconds(seconds: f64) -> String {
    match seconds {
        0.0..0.01 => format!("{:.2} ms", seconds * 1e3),
        0.01..0.1 => format!("{:.1} ms", seconds * 1e3),
        0.1..1.0 => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

/// The number with a space between thousands.
fn bytes(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push('\u{a0}');
        }
        text.push(digit);
    }
    text
}
