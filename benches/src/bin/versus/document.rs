//! The page of results: words by hand, and between two markers tables, and plots beside the page.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::bench::Bench;
use crate::operations::{OPERATIONS, Operation};
use crate::plot::plot;
use crate::record::{Measurement, size_name};
use crate::report::compresses;

const BEGIN: &str = "<!-- begin: written by versus --write -->";
const END: &str = "<!-- end: written by versus --write -->";

/// Fails if there is no page with markers: before anything is measured.
pub(crate) fn check(path: &Path) -> Result<(), Box<dyn Error>> {
    replace(path, "").map(drop)
}

/// Writes plots, and tables into the page.
pub(crate) fn write(path: &Path, bench: &Bench) -> Result<(), Box<dyn Error>> {
    let plots = path.with_extension("");
    let name = plots.file_name().unwrap_or_default().to_string_lossy().into_owned();
    fs::create_dir_all(&plots)?;
    for entry in fs::read_dir(&plots)? {
        let old = entry?.path();
        if old.extension().is_some_and(|extension| extension == "svg") {
            fs::remove_file(old)?;
        }
    }
    let mut text = format!("Measured on: {}.\n\n{}", bench.machine, targets(bench));
    for operation in OPERATIONS {
        let all = || bench.measurements.iter().filter(|m| m.operation == operation.name);
        if all().next().is_none() {
            continue;
        }
        let (first, rest) = operation.about.split_at(1);
        let about = format!("{}{rest}", first.to_uppercase());
        write!(text, "\n### `{}`\n\n{about}.\n", operation.name)?;
        let mut whats: Vec<&str> = Vec::new();
        for measurement in all() {
            if !whats.contains(&kind(measurement)) {
                whats.push(kind(measurement));
            }
        }
        for what in whats {
            let some: Vec<_> = all().filter(|measurement| kind(measurement) == what).collect();
            let file = if what.is_empty() { "" } else { "-" };
            let file = format!("{}{file}{what}.svg", operation.name);
            let title = title(operation, what);
            if let Some(svg) = plot(&title, &some) {
                fs::write(plots.join(&file), svg)?;
                write!(text, "\n![{title}: time and memory against size]({name}/{file})\n")?;
            }
        }
        text.push_str(&table(&all().collect::<Vec<_>>())?);
    }
    let page = replace(path, &text)?;
    Ok(fs::write(path, page)?)
}

fn title(operation: &Operation, what: &str) -> String {
    match what {
        "" => format!("{}: {}", operation.name, operation.about),
        _ => format!("{}, {what}: {}", operation.name, operation.about),
    }
}

/// Returns the subject of a plot; numbers of members and fatbinaries are sizes.
fn kind(measurement: &Measurement) -> &str {
    if ["members", "fatbinaries"].iter().any(|word| measurement.what.ends_with(word)) {
        ""
    } else {
        &measurement.what
    }
}

/// The page, with `text` between its markers.
fn replace(path: &Path, text: &str) -> Result<String, Box<dyn Error>> {
    let page = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let parts = page.split_once(BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(END)?)));
    let Some((head, (_, tail))) = parts else {
        return Err(format!("{}: no lines {BEGIN} and {END}", path.display()).into());
    };
    Ok(format!("{head}{BEGIN}\n\n{}\n\n{END}{tail}", text.trim_end()))
}

fn targets(bench: &Bench) -> String {
    let mut text = String::from("| target | figure | promised | |\n|---|---:|---:|---|\n");
    for target in &bench.targets {
        let figure = target.figure().unwrap_or_default();
        let verdict = match target.verdict() {
            "met" => "met".to_owned(),
            other => format!("**{other}**"),
        };
        let _ = writeln!(text, "| {} | {figure} | {} | {verdict} |", target.what, target.promise());
    }
    text
}

/// All sizes of an operation.
fn table(measurements: &[&Measurement]) -> Result<String, Box<dyn Error>> {
    let sizes = measurements.iter().any(|measurement| compresses(measurement));
    let mut text = String::from("\n| input | command | time | beside ours | CPU time | memory |");
    text.push_str(if sizes { " output |\n" } else { "\n" });
    text.push_str("|---|---|---:|---:|---:|---:|");
    text.push_str(if sizes { "---:|\n" } else { "\n" });
    for measurement in measurements {
        let runs = measurement.figures.first().map_or(0, |figures| figures.samples.len());
        let what = [size_name(measurement.size), measurement.what.clone()];
        let what: Vec<_> = what.into_iter().filter(|part| !part.is_empty()).collect();
        let mut input = format!("{}, {runs} runs", what.join(", "));
        if runs == 1 {
            input.pop();
        }
        if what.is_empty() {
            input = input.trim_start_matches([',', ' ']).to_owned();
        }
        for figures in &measurement.figures {
            let ratio = match measurement.ours() {
                Some(ours) if ours.name != figures.name => format!("{:.2} x", figures.ratio(ours)),
                _ => String::new(),
            };
            let [time, cpu] = [figures.time(), figures.cpu()].map(seconds);
            let name = &figures.name;
            write!(
                text,
                "| {input} | {name} | {time} | {ratio} | {cpu} | {:.1} MiB |",
                figures.memory()
            )?;
            if sizes {
                write!(text, " {} |", bytes(figures.output))?;
            }
            text.push('\n');
            input.clear();
        }
        if let Some(note) = &measurement.note {
            writeln!(text, "| | {note} | | | | |{}", if sizes { " |" } else { "" })?;
        }
    }
    Ok(text)
}

fn seconds(seconds: f64) -> String {
    match seconds {
        0.0..0.01 => format!("{:.2} ms", seconds * 1e3),
        0.01..0.1 => format!("{:.1} ms", seconds * 1e3),
        0.1..1.0 => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

/// With a space between thousands.
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
