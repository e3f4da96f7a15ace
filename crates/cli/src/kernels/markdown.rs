//! `offload diff --format markdown`: the comment below a pull request.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use device_code::{KernelPair, KernelRule, KernelTotals};

use tool_kit::document::in_markdown;
use tool_kit::finding::Finding;
use tool_kit::style;

/// Kernels that are shown, if the user does not say how many.
const TOP: usize = 10;

/// A comparison, and how it is shown.
pub(super) struct Comment<'a> {
    /// The names of both files.
    pub(super) files: [String; 2],
    pub(super) rules: &'a [KernelRule],
    pub(super) top: Option<usize>,
    pub(super) mangled: bool,
}

/// Prints a summary in one line, a table of GPUs, findings, and the largest changes folded.
pub(super) fn print(
    comment: &Comment<'_>,
    pairs: &[KernelPair<'_>],
    sums: &BTreeMap<&str, [KernelTotals; 2]>,
    findings: &[Finding],
) -> io::Result<()> {
    let mut out = style::buffered_stdout();
    // Headers state the sizes, which may be too large for a number in total.
    let sum = |side: fn(&[KernelTotals; 2]) -> u64| {
        sums.values().map(side).try_fold(0u64, u64::checked_add)
    };
    let both = sum(|[old, _]| old.size).zip(sum(|[_, new]| new.size));
    let sizes = both.map_or_else(
        || "more than 16 EiB".to_owned(),
        |(old, new)| format!("{}{}", arrow(&style::size(old), &style::size(new)), growth(old, new)),
    );
    let rules: Vec<String> = comment.rules.iter().map(ToString::to_string).collect();
    let limits = match &rules[..] {
        [] => String::new(),
        rules => format!(" (limit {})", in_markdown(&rules.join(", "))),
    };
    let verdict = match findings {
        [] if rules.is_empty() => "",
        [] => " passes",
        _ => " **FAILS**",
    };
    writeln!(out, "### Device code: {sizes}{verdict}{limits}\n")?;
    let [before, after] = comment.files.each_ref().map(|name| in_markdown(name));
    writeln!(out, "{before} -> {after}\n")?;
    writeln!(out, "| GPU | size | kernels | spilling |\n|---|--:|--:|--:|")?;
    for (target, [old, new]) in sums {
        let sizes = arrow(&style::size(old.size), &style::size(new.size));
        let kernels = arrow(&old.kernels.to_string(), &new.kernels.to_string());
        let spilling = |of: &KernelTotals| of.spilling.map_or("-".to_owned(), |n| n.to_string());
        let worse = new.spilling > old.spilling;
        let spilling = arrow(&spilling(old), &spilling(new));
        let spilling = if worse { format!("**{spilling}**") } else { spilling };
        let growth = growth(old.size, new.size);
        writeln!(out, "| {} | {sizes}{growth} | {kernels} | {spilling} |", in_markdown(target))?;
    }
    if !findings.is_empty() {
        writeln!(out)?;
        for finding in findings {
            writeln!(out, "- {}: {}", in_markdown(finding.code), in_markdown(&finding.message))?;
        }
    }
    let mut changed: Vec<_> = pairs.iter().filter(|pair| pair.is_changed()).collect();
    changed.sort_by_key(|pair| Reverse(pair.code_difference()));
    let shown = changed.get(..comment.top.unwrap_or(TOP)).unwrap_or(&changed);
    if !shown.is_empty() {
        let all = changed.len();
        let what = if shown.len() < all {
            format!("{} largest of {all} changes", shown.len())
        } else {
            style::count(all, "change")
        };
        writeln!(out, "\n<details><summary>{what}</summary>\n")?;
        writeln!(out, "| GPU | kernel | change |\n|---|---|---|")?;
        for pair in shown {
            let name = in_markdown(name(pair, comment.mangled));
            let change = in_markdown(&pair.to_string());
            writeln!(out, "| {} | {name} | {change} |", in_markdown(pair.target))?;
        }
        writeln!(out, "\n</details>")?;
    }
    out.flush()
}

/// Returns the growth in percent; nothing if there is none.
fn growth(old: u64, new: u64) -> String {
    if old == 0 || old == new {
        return String::new();
    }
    format!(" ({:+.1} %)", (new as f64 / old as f64 - 1.0) * 100.0)
}

/// Returns the name of a pair.
pub(super) fn name<'l>(pair: &KernelPair<'l>, mangled: bool) -> &'l str {
    pair.either().map_or("", |kernel| kernel.name(mangled))
}

/// Returns `old -> new`, or one of them if they are equal.
pub(super) fn arrow(old: &str, new: &str) -> String {
    if old == new { new.to_owned() } else { format!("{old} -> {new}") }
}
