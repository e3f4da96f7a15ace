//! `offload diff`: images and kernels that came, went and changed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::slice;

use device_code::{KernelGate, KernelList, KernelPair, KernelRule, KernelTotals};
use fat_object::Severity;
use serde_json::{Value, json};

use super::markdown::{self, Comment, arrow, name};
use super::{complain, report_hits};
use crate::select::Selection;
use tool_answers::kernels::{Found, Wanted, collect};
use tool_inputs::complaint::Complaint;
use tool_inputs::inputs::{Input, Inputs};
use tool_inputs::limits::Limits;
use tool_kit::document::{Document, Shape};
use tool_kit::finding::Finding;
use tool_kit::format::{Format, JudgeFormat};
use tool_kit::looked::Seen;
use tool_kit::store::Keep;
use tool_kit::style::{self, HEADING, Out, TARGET, show};
use tool_kit::table::{Align, Table};
use tool_kit::{Outcome, input, report};

/// Show which images and kernels came, went, changed
///
/// Reads whatever `offload ls` reads. Lists, for each GPU, kernels that are new or gone or have other resources, and
/// totals. Files with equal kernels give totals only.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file as it was
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The file as it is
    #[arg(value_name = "NEW")]
    new: PathBuf,
    #[command(flatten)]
    selection: Selection,
    /// Compare only kernels whose name matches this pattern (* and ?)
    #[arg(long, value_name = "GLOB")]
    name: Option<String>,
    /// Show at most N kernels, those with the largest changes of code first
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Print names as stored, not as in the source
    #[arg(long)]
    mangled: bool,
    #[command(flatten)]
    format: JudgeFormat,
    /// Fail if a kernel or a GPU hits this rule: vgpr_spills>0, code>+5%. Repeatable
    ///
    /// A measure that no selected kernel stores is an error.
    #[arg(long, value_name = "RULE")]
    fail_on: Vec<KernelRule>,
    /// Fail if a kernel or an image is gone
    #[arg(long)]
    fail_on_removed: bool,
    #[command(flatten)]
    limits: Limits,
}

const SHAPE: Shape = Shape::new(
    "diff",
    "changes",
    "target demangled changes old.code/B new.code/B old.registers new.registers old.spills new.spills old.private/B new.private/B",
);

/// The kernels of one of the two files, or of all files below a directory.
struct Side {
    list: KernelList,
    is_faulty: bool,
    is_read: bool,
}

fn side(
    document: &mut Document,
    args: &Args,
    wanted: &Wanted<'_>,
    path: &PathBuf,
) -> io::Result<Side> {
    let mut side = Side { list: KernelList::default(), is_faulty: false, is_read: true };
    let collect = |file: &Input, threads| collect(wanted, file, threads);
    let inputs = Inputs::find(slice::from_ref(path));
    let looked =
        inputs.look((&args.limits, Keep::All), "reading", collect, |file, found: Found| {
            if let Some(seen) = file.passed_over(!found.list.images.is_empty(), &found.summary) {
                return Ok(seen);
            }
            let seen = Seen::faults(complain(document, wanted, file, &found)?);
            side.is_read &= is_read(&found);
            side.list.append(found.list);
            Ok(seen)
        })?;
    side.is_faulty = document.looked(looked, false)? == Outcome::Faults;
    Ok(side)
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let filter = args.selection.filter(args.format.has_notes());
    let wanted = Wanted {
        filter: &filter,
        glob: args.name.as_deref(),
        has_arguments: false,
        limits: &args.limits,
    };
    let format = args.format.get();
    // The comment for a pull request is not a list of rows.
    let as_rows = if format == Format::Markdown { Format::Text } else { format };
    let mut document = Document::start(as_rows, &SHAPE)?;
    document.field("old", &input::display(&args.old))?;
    document.field("new", &input::display(&args.new))?;
    let old = side(&mut document, args, &wanted, &args.old)?;
    let new = side(&mut document, args, &wanted, &args.new)?;
    let mut is_faulty = old.is_faulty || new.is_faulty;
    // A comparison with a file that was not read would show that everything is new, or gone.
    if !(old.is_read && new.is_read) {
        document.field("gpus", &gpus(&BTreeMap::new()))?;
        return document.end(Outcome::Faults);
    }
    let (old, new) = (&old.list, &new.list);
    let (pairs, sums) = (KernelPair::of(old, new), KernelTotals::of_both(old, new));
    pairs.iter().filter(|pair| pair.is_changed()).try_for_each(|pair| document.row(pair))?;
    document.field("gpus", &gpus(&sums))?;
    if format == Format::Text && !args.format.is_quiet() {
        let mut out = style::stdout();
        text(&mut out, args, &pairs, &sums)?;
        out.flush()?;
    }
    let mut gate = KernelGate::new(&args.fail_on, args.mangled);
    gate.check(&input::display(&args.new), new);
    gate.check_growth(&pairs, &sums);
    is_faulty |= report_hits(&mut document, &gate)?;
    if args.fail_on_removed {
        let images = sums.iter().filter(|(_, [old, new])| new.images < old.images);
        let images = images.map(|(target, [old, new])| {
            ("diff/image", format!("{target}: images {} -> {}", old.images, new.images))
        });
        let kernels = pairs.iter().filter(|pair| pair.new.is_none());
        let kernels = kernels
            .map(|pair| ("diff/kernel", format!("{}: {}", pair.target, name(pair, args.mangled))));
        for (code, text) in images.chain(kernels) {
            report::error(&format_args!("--fail-on-removed: {text}"));
            document.finding(Finding::error(
                code,
                &input::display(&args.new),
                format!("{text} is gone"),
            ))?;
            is_faulty = true;
        }
    }
    if format == Format::Markdown {
        let comment = Comment {
            files: [&args.old, &args.new].map(|path| input::display(path)),
            rules: &args.fail_on,
            top: args.top,
            mangled: args.mangled,
        };
        markdown::print(&comment, &pairs, &sums, document.all_findings())?;
    }
    document.end(if is_faulty { Outcome::Faults } else { Outcome::Clean })
}

/// Returns whether a file could be read, if not without faults.
fn is_read(found: &Found) -> bool {
    match &found.summary {
        Ok(summary) if found.list.images.is_empty() => {
            let is_error = |first: &Complaint| first.severity == Severity::Error;
            !found.complaints.first().is_some_and(is_error)
                && (summary.images > 0 || summary.no_images().is_ok())
        }
        summary => summary.is_ok(),
    }
}

/// Returns the same for people.
fn label(pair: &KernelPair<'_>, mangled: bool) -> String {
    pair.either().map_or_else(String::new, |kernel| kernel.labelled(mangled))
}

fn text(
    out: &mut Out<'_>,
    args: &Args,
    pairs: &[KernelPair<'_>],
    sums: &BTreeMap<&str, [KernelTotals; 2]>,
) -> io::Result<()> {
    let mut changed: Vec<_> = pairs.iter().filter(|pair| pair.is_changed()).collect();
    // The GPUs of a kernel lie together, at the place of its largest change.
    let mut largest: HashMap<&str, u64> = HashMap::new();
    for pair in &changed {
        let largest = largest.entry(name(pair, args.mangled)).or_default();
        *largest = pair.code_difference().max(*largest);
    }
    changed.sort_by_cached_key(|pair| {
        let name = name(pair, args.mangled);
        let most = largest.get(name).copied();
        (Reverse(most), name.to_owned(), Reverse(pair.code_difference()), pair.target)
    });
    let shown = changed.get(..args.top.unwrap_or(changed.len())).unwrap_or(&changed);
    let width = shown.iter().map(|pair| pair.target.len()).max().unwrap_or(0);
    for pairs in shown.chunk_by(|one, next| name(one, args.mangled) == name(next, args.mangled)) {
        let Some(first) = pairs.first() else { continue };
        show!(out, "{HEADING}{}{HEADING:#}", label(first, args.mangled))?;
        // Several files may have the same kernel.
        for pairs in pairs.chunk_by(|a, b| (a.target, a.to_string()) == (b.target, b.to_string())) {
            let Some(pair) = pairs.first() else { continue };
            let times =
                if pairs.len() > 1 { format!(" ({} times)", pairs.len()) } else { String::new() };
            let target = pair.target;
            show!(out, "  {TARGET}{target:width$}{TARGET:#}  {pair}{times}")?;
        }
    }
    if !shown.is_empty() {
        let hidden = changed.len() - shown.len();
        if hidden > 0 {
            show!(out, "and {hidden} more kernel{}", if hidden == 1 { "" } else { "s" })?;
        }
        show!(out)?;
    }
    let mut table = Table::default()
        .column("TOTAL FOR", Align::Left, TARGET)
        .numbers(["IMAGES"])
        .optional(1)
        .numbers(["SIZE"])
        .optional(2)
        .numbers(["KERNELS"])
        .optional(3)
        .numbers(["NEW", "GONE", "CHANGED", "CODE", "GROWTH"]);
    // The new, gone and changed kernels of each target.
    let mut counts: HashMap<&str, [u64; 3]> = HashMap::new();
    for pair in pairs {
        let is = [pair.old.is_none(), pair.new.is_none(), !pair.changes().is_empty()];
        let counts = counts.entry(pair.target).or_default();
        counts.iter_mut().zip(is).for_each(|(count, is)| *count += u64::from(is));
    }
    for (target, [old, new]) in sums {
        // Not every target has kernels.
        let counts = counts.get(target).copied().unwrap_or_default();
        let [new_kernels, gone, changed] = counts.map(|count| count.to_string());
        let has_code = old.code.is_some() || new.code.is_some();
        let [before, after] = [old, new].map(|total| total.code.unwrap_or(0));
        let percent = match before {
            0 => String::new(),
            before => format!("{:+.1} %", (after as f64 / before as f64 - 1.0) * 100.0),
        };
        table.row(&[
            (*target).to_owned(),
            arrow(&old.images.to_string(), &new.images.to_string()),
            arrow(&style::size(old.size), &style::size(new.size)),
            arrow(&old.kernels.to_string(), &new.kernels.to_string()),
            new_kernels,
            gone,
            changed,
            if has_code {
                arrow(&style::size(before), &style::size(after))
            } else {
                "-".to_owned()
            },
            if has_code { percent } else { String::new() },
        ]);
    }
    if sums.is_empty() {
        return Ok(());
    }
    table.print(out, "", style::terminal_width())
}

/// Returns the numbers of each GPU.
fn gpus(sums: &BTreeMap<&str, [KernelTotals; 2]>) -> Value {
    let gpu = |(target, [old, new]): (&&str, &[KernelTotals; 2])| json!({ "target": target, "old": old, "new": new });
    sums.iter().map(gpu).collect()
}
