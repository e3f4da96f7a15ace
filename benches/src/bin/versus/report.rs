//! Results as text for the terminal.

use std::fmt::Write as _;

use crate::record::{Measurement, Who, size_name};
use crate::targets::{MISSED, Target};

/// A table of a measurement.
pub(crate) fn table(measurement: &Measurement) -> String {
    let mut text = format!("\n{}", size_name(measurement.size));
    if !measurement.what.is_empty() {
        let _ = write!(text, ", {}", measurement.what);
    }
    let runs = measurement.figures.first().map_or(0, |figures| figures.samples.len());
    let runs = format!("median of {runs}");
    let _ = write!(text, "\n  {runs:<44} {:>11} {:>11} {:>11}", "time", "CPU time", "memory");
    let first = measurement.figures.first();
    for figures in &measurement.figures {
        let (time, cpu) = (figures.time() * 1e3, figures.cpu() * 1e3);
        let _ = write!(text, "\n  {:<44} {time:>8.2} ms {cpu:>8.2} ms", figures.name);
        let _ = write!(text, " {:>7.1} MiB", figures.memory());
        if let Some(first) = first.filter(|first| first.name != figures.name) {
            let _ = write!(text, "  {:.2} x ours", figures.ratio(first));
        }
    }
    if compresses(measurement) {
        for figures in measurement.figures.iter().filter(|figures| figures.who != Who::Cp) {
            let _ = write!(text, "\n  {:<44} {:>11} bytes", figures.name, figures.output);
        }
    }
    if let Some(note) = &measurement.note {
        let _ = write!(text, "\n  {note}");
    }
    text
}

/// Returns whether the size of the output is a result.
pub(crate) fn compresses(measurement: &Measurement) -> bool {
    matches!(measurement.operation, "compress" | "compress-library" | "thin-wheel")
}

/// A line for a target.
pub(crate) fn target(target: &Target) -> String {
    let figure = target.figure().unwrap_or_default();
    format!("  => {}: {figure}, target {}: {}", target.what, target.promise(), target.verdict())
}

/// All targets that were measured.
pub(crate) fn summary(targets: &[Target]) -> String {
    let mut text = String::from("# Targets\n");
    for target in targets {
        if let Some(figure) = target.figure() {
            let (verdict, what, promise) = (target.verdict(), target.what, target.promise());
            let _ = write!(text, "\n{verdict:<7} {what}: {figure} (target: {promise})");
        }
    }
    let missed = targets.iter().filter(|target| target.verdict() == MISSED).count();
    let measured = targets.iter().filter(|target| target.figure().is_some()).count();
    let _ = write!(text, "\n\n{missed} missed of {measured}, of {} in total", targets.len());
    text
}
