//! Plots: time and memory against the size of the input, as SVG that is legible on light and on dark pages.

use std::fmt::Write as _;

use crate::record::{Figures, Measurement, Who, size_name};

/// Width of a panel, in pixels of the picture.
const WIDTH: f64 = 330.0;
const HEIGHT: f64 = 230.0;
const TOP: f64 = 56.0;
/// Left of each panel there is room for the labels of its axis.
const LEFT: f64 = 78.0;
const BOTTOM: f64 = 46.0;
const LINE: f64 = 18.0;

const STYLE: &str = "
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .title { font-size: 14px; font-weight: 600 }
  .label { fill: #57606a }
  .frame { fill: none; stroke: #8c959f }
  .grid { stroke: #d0d7de; stroke-width: 1 }
  polyline { fill: none; stroke-width: 2 }
  .c0 { stroke: #0969da } .p0 { fill: #0969da }
  .c1 { stroke: #cf222e } .p1 { fill: #cf222e }
  .c2 { stroke: #6e7781 } .p2 { fill: #6e7781 }
  .c3 { stroke: #8250df } .p3 { fill: #8250df }
  .c4 { stroke: #bf8700 } .p4 { fill: #bf8700 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .label { fill: #9198a1 }
    .frame { stroke: #6e7681 }
    .grid { stroke: #30363d }
    .c0 { stroke: #58a6ff } .p0 { fill: #58a6ff }
    .c1 { stroke: #ff7b72 } .p1 { fill: #ff7b72 }
    .c2 { stroke: #9198a1 } .p2 { fill: #9198a1 }
    .c3 { stroke: #bc8cff } .p3 { fill: #bc8cff }
    .c4 { stroke: #e3b341 } .p4 { fill: #e3b341 }
  }
";

/// Times of one command, by size.
struct Series<'a> {
    name: &'a str,
    class: usize,
    /// Bytes, milliseconds, MiB.
    points: Vec<(f64, f64, f64)>,
}

/// The plot of an operation; none where there is but one size.
pub(crate) fn plot(title: &str, measurements: &[&Measurement]) -> Option<String> {
    let mut series: Vec<Series<'_>> = Vec::new();
    for measurement in measurements {
        for figures in &measurement.figures {
            let point = (measurement.size as f64, figures.time() * 1e3, figures.memory());
            match series.iter_mut().find(|series| series.name == figures.name) {
                Some(series) => series.points.push(point),
                None => {
                    let class = class(figures, &series);
                    series.push(Series { name: &figures.name, class, points: vec![point] });
                }
            }
        }
    }
    let mut sizes: Vec<u64> = measurements.iter().map(|measurement| measurement.size).collect();
    sizes.dedup();
    if sizes.len() < 2 {
        return None;
    }
    let height = TOP + HEIGHT + BOTTOM + LINE * series.len() as f64 + 8.0;
    let width = 2.0 * (LEFT + WIDTH) + 40.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
        width=\"{width}\" height=\"{height}\" role=\"img\">\n<title>{0}</title>\n\
        <style>{STYLE}</style>\n<text class=\"title\" x=\"{LEFT}\" y=\"20\">{0}</text>\n",
        escape(title)
    );
    let times = |point: &(f64, f64, f64)| (point.0, point.1);
    let memories = |point: &(f64, f64, f64)| (point.0, point.2);
    panel(&mut svg, LEFT, "time", &TIMES, &sizes, &series, times);
    panel(&mut svg, 2.0 * LEFT + WIDTH, "peak memory", &MEMORIES, &sizes, &series, memories);
    for (n, series) in series.iter().enumerate() {
        let y = TOP + HEIGHT + BOTTOM + LINE * (n as f64 + 0.5);
        let (from, to, middle) = (LEFT, LEFT + 26.0, LEFT + 13.0);
        let class = series.class;
        let _ = writeln!(
            svg,
            "<polyline class=\"c{class}\"{} points=\"{from},{y} {to},{y}\"/>{}\
            <text x=\"{}\" y=\"{}\">{}</text>",
            dashes(series),
            marker(series, middle, y),
            to + 8.0,
            y + 4.0,
            escape(series.name)
        );
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

/// A colour for each of whom the tools are; dashes tell the tools of one apart.
fn class(figures: &Figures, others: &[Series<'_>]) -> usize {
    match figures.who {
        Who::Ours if others.iter().any(|series| series.class == 0) => 3,
        Who::Ours => 0,
        Who::Llvm | Who::Nvidia => 1,
        Who::Cp => 2,
        Who::Zstd | Who::Python => 4,
    }
}

/// Names of values on an axis, from 10 to some power on.
type Ticks = [&'static str];

/// Powers of ten of milliseconds, from 0.1 ms on.
const TIMES: [&str; 7] = ["0.1 ms", "1 ms", "10 ms", "0.1 s", "1 s", "10 s", "100 s"];
/// Powers of ten of MiB, from 0.1 MiB on.
const MEMORIES: [&str; 7] =
    ["0.1 MiB", "1 MiB", "10 MiB", "100 MiB", "1000 MiB", "10\u{a0}000 MiB", "100\u{a0}000 MiB"];

fn panel(
    svg: &mut String,
    left: f64,
    what: &str,
    ticks: &Ticks,
    sizes: &[u64],
    series: &[Series<'_>],
    value: impl Fn(&(f64, f64, f64)) -> (f64, f64),
) {
    let values = || series.iter().flat_map(|series| &series.points).map(&value);
    let log = |value: f64| value.max(0.1).log10();
    let low = values().map(|(_, y)| log(y).floor()).fold(f64::INFINITY, f64::min);
    let high = values().map(|(_, y)| log(y).ceil()).fold(low + 1.0, f64::max);
    let ends = values().map(|(x, _)| x.log2());
    let (start, end) =
        ends.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), x| (low.min(x), high.max(x)));
    let to_x = |x: f64| left + (x.log2() - start) / (end - start) * WIDTH;
    let to_y = |y: f64| TOP + HEIGHT - (log(y) - low) / (high - low) * HEIGHT;
    let (right, bottom) = (left + WIDTH, TOP + HEIGHT);
    let _ = writeln!(svg, "<text class=\"label\" x=\"{left}\" y=\"{}\">{what}</text>", TOP - 10.0);
    for (n, tick) in ticks.iter().enumerate() {
        let power = n as f64 - 1.0;
        if power >= low && power <= high {
            let y = to_y(10_f64.powf(power));
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{left}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
                <text class=\"label\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
                left - 6.0,
                y + 4.0
            );
        }
    }
    let mut free = f64::NEG_INFINITY;
    for &size in sizes {
        let x = to_x(size as f64);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>"
        );
        // Labels do not overlap.
        if x > free {
            let _ = writeln!(
                svg,
                "<text class=\"label\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 17.0,
                size_name(size)
            );
            free = x + 52.0;
        }
    }
    let _ = writeln!(
        svg,
        "<rect class=\"frame\" x=\"{left}\" y=\"{TOP}\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>"
    );
    let _ = writeln!(
        svg,
        "<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">size of the input</text>",
        left + WIDTH / 2.0,
        bottom + 35.0
    );
    // Ours last, on top of the others.
    for series in series.iter().rev() {
        let points = series.points.iter().map(|point| {
            let (x, y) = value(point);
            (to_x(x), to_y(y))
        });
        let line: Vec<_> = points.clone().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let (class, dashes) = (series.class, dashes(series));
        let line = line.join(" ");
        let _ = writeln!(svg, "<polyline class=\"c{class}\"{dashes} points=\"{line}\"/>");
        for (x, y) in points {
            let _ = writeln!(svg, "{}", marker(series, x, y));
        }
    }
}

/// Circles for tools of ours, squares for others: colours alone are not for everybody.
fn marker(series: &Series<'_>, x: f64, y: f64) -> String {
    let class = series.class;
    match class {
        0 | 3 => format!("<circle class=\"p{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>"),
        _ => {
            let (x, y) = (x - 3.0, y - 3.0);
            format!("<rect class=\"p{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"6\" height=\"6\"/>")
        }
    }
}

/// Dashes for what is not a tool of containers, and dots for the second of its kind.
fn dashes(series: &Series<'_>) -> &'static str {
    match series.class {
        2 if series.name.ends_with("library") => " stroke-dasharray=\"2 3\"",
        4 if series.name.ends_with("-T0") => " stroke-dasharray=\"2 3\"",
        2 | 4 => " stroke-dasharray=\"6 3\"",
        _ => "",
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
