//! `offload kernels`: the kernels of device images, and the resources that they use.

pub(crate) mod diff;
mod markdown;
mod view;

use std::io;
use std::path::PathBuf;

use device_code::{KernelGate, KernelRule, Measure, NotARule};
use device_select::SplitLibrary;

use crate::select::Selection;
use tool_answers::kernels::{Found, Wanted, collect};
use tool_inputs::complaint;
use tool_inputs::headings::Headings;
use tool_inputs::inputs::{Input, Inputs};
use tool_inputs::limits::Limits;
use tool_inputs::online::Network;
use tool_kit::document::{Document, Shape};
use tool_kit::finding::Finding;
use tool_kit::format::JudgeFormat;
use tool_kit::looked::Seen;
use tool_kit::store::Keep;
use tool_kit::style::show;
use tool_kit::{Outcome, report, style};

/// List the kernels of images, and their resources
///
/// Reads whatever `offload ls` reads. Kernels of one GPU are listed with all their resources, those of several GPUs in
/// one table with a column for each GPU. Totals for each GPU follow.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files to read, or directories; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    selection: Selection,
    /// Show only kernels whose name matches this pattern (* and ?)
    ///
    /// The name as stored or as in the source must match as a whole.
    #[arg(long, value_name = "GLOB")]
    name: Option<String>,
    /// Sort by a measure, the largest first, or by name [default: code]
    ///
    /// With several GPUs the columns show this measure.
    #[arg(long, value_name = "MEASURE", value_parser = key)]
    sort: Option<Key>,
    /// Show at most N kernels of each table
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Print a table for each image
    #[arg(long, conflicts_with_all = ["json", "format"])]
    images: bool,
    /// Print names as stored, not as in the source
    #[arg(long)]
    mangled: bool,
    #[command(flatten)]
    format: JudgeFormat,
    /// Fail if a kernel hits this rule, such as vgpr_spills>0. Repeatable
    ///
    /// A measure that no selected kernel stores is an error.
    #[arg(long, value_name = "RULE", value_parser = absolute)]
    fail_on: Vec<KernelRule>,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    network: Network,
}

const SHAPE: Shape = Shape::new(
    "kernels",
    "kernels",
    "file target demangled code/B registers accumulators scalars vgpr_spills sgpr_spills spill_memory/B group/B private/B frame/B arguments/B workgroup occupancy.waves_at_most",
);

/// Keys of `--sort`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Name,
    By(Measure),
}

impl Key {
    /// Returns the measure that columns show.
    fn measure(self) -> Measure {
        match self {
            Key::Name => Measure::Code,
            Key::By(measure) => measure,
        }
    }
}

fn key(text: &str) -> Result<Key, String> {
    match text {
        "name" => Ok(Key::Name),
        _ => Measure::from_name(text).map(Key::By).ok_or_else(|| {
            let names = Measure::all().map(Measure::name).collect::<Vec<_>>().join(", ");
            format!("expected name or a measure: {names}")
        }),
    }
}

/// Reads a rule about kernels of one file.
fn absolute(text: &str) -> Result<KernelRule, String> {
    let rule: KernelRule = text.parse().map_err(|error: NotARule| error.to_string())?;
    if rule.is_relative() {
        Err("growth needs two files: see `offload diff`".to_owned())
    } else {
        Ok(rule)
    }
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let filter = args.selection.filter();
    let mut document = Document::start(args.format.get(), &SHAPE)?;
    let mut out = style::stdout();
    let mut gate = KernelGate::new(&args.fail_on, args.mangled);
    let mut is_first = true;
    let mut names = Headings::new();
    let wanted = Wanted {
        filter: &filter,
        glob: args.name.as_deref(),
        has_arguments: args.format.get().is_json(),
        limits: &args.limits,
    };
    let work = |file: &Input, threads| collect(&wanted, file, threads);
    let inputs = Inputs::find_online(&args.files, args.network);
    let looked =
        inputs.look((&args.limits, Keep::All), "reading", work, |input, found: Found| {
            if let Some(seen) = input.passed_over(!found.list.images.is_empty(), &found.summary) {
                return Ok(seen);
            }
            let file = input.name();
            gate.check(file, &found.list);
            if !document.is_text() {
                let list = &found.list;
                let mut all = list.kernels.iter().map(|kernel| list.record(kernel));
                all.try_for_each(|kernel| document.row_of(file, &kernel))?;
            } else if !args.format.is_quiet() {
                if !std::mem::take(&mut is_first) {
                    show!(out)?;
                }
                let name = names.name(&mut out, input)?;
                view::text(&mut out, args, &name, &found)?;
                out.flush()?;
            }
            Ok(Seen::faults(complain(&mut document, &wanted, input, &found)?))
        })?;
    let outcome = document.looked(looked, false)?;
    let is_hit = report_hits(&mut document, &gate)?;
    document.end(if is_hit { Outcome::Faults } else { outcome })
}

/// Applies rules to the kernels of a file.
pub(crate) fn check(
    gate: &mut KernelGate<'_>,
    document: &mut Document,
    wanted: &Wanted<'_>,
    input: &Input,
    found: &Found,
) -> io::Result<()> {
    if input.passed_over(!found.list.images.is_empty(), &found.summary).is_some() {
        return Ok(());
    }
    gate.check(input.name(), &found.list);
    complain(document, wanted, input, found).map(drop)
}

/// Reports what rules hit; returns `true` if there is anything.
pub(crate) fn report_hits(document: &mut Document, gate: &KernelGate<'_>) -> io::Result<bool> {
    let faults = gate.faults();
    for fault in &faults {
        if !document.is_silent() {
            report::error(&format_args!("--fail-on {fault}"));
        }
        let file = fault.file.as_deref().unwrap_or("");
        let text = format!("{} ({})", fault.text, fault.rule);
        document.finding(Finding::error(fault.code(), file, text))?;
    }
    Ok(!faults.is_empty())
}

/// Prints the faults of a file; returns `true` if there were any.
fn complain(
    document: &mut Document,
    wanted: &Wanted<'_>,
    input: &Input,
    found: &Found,
) -> io::Result<bool> {
    let (list, filter) = (&found.list, wanted.filter);
    complaint::report(document, input.name(), &found.complaints, &found.summary, |summary| {
        if !list.images.is_empty() {
            let glob = wanted.glob.filter(|_| list.kernels.is_empty());
            return glob.map(|glob| Ok(format!("no kernel has a name like {glob}")));
        }
        Some(if summary.images > 0 && !filter.is_everything() {
            Ok(format!("none of its {} images {}", summary.images, filter.condition()))
        } else {
            input.split_host().map_or_else(|| summary.no_images(), |host| Ok(host.describe()))
        })
    })
}
