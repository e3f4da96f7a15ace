//! `offload variant split`: a wheel for each GPU or family, and one for all others.

use std::io;
use std::path::PathBuf;

use clap::ValueEnum;
use device_select::{PackageGroup, PackageLevel, Rule, VariantValue, Wanted};
use gpu_packages::{VariantMetadata, VariantProperties};

use super::code::Code;
use super::make::{NULL, declare, justified, write};
use super::wheel::{Schema, Wheel};
use tool_edits::{Options, Permits, SizeReport, Thinning, Uneditable};
use tool_inputs::limits::Limits;
use tool_kit::format::ListFormat;
use tool_kit::output::at;
use tool_kit::style::{self, HEADING, PLAIN, TARGET, show};
use tool_kit::table::{Align, Table};
use tool_kit::{Outcome, input};

/// Split a wheel into a variant for each GPU
///
/// Each variant has the code that its GPUs load, as `offload shrink` keeps it, and declares these GPUs. The variant null has all code
/// and declares nothing: installers take it where no other is compatible. If one fails, the wheels before it stay, and no variant null
/// is made.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A wheel with code for several GPUs
    #[arg(value_name = "WHEEL")]
    file: PathBuf,
    /// Make a variant for each gpu, or for each family: sm_8x, gfx11
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        default_value = "gpu",
        hide_possible_values = true
    )]
    by: By,
    /// Make no variant null
    #[arg(long)]
    no_null: bool,
    /// Write metadata of this form
    #[arg(long, value_enum, value_name = "FORM", default_value = "pep825")]
    schema: Schema,
    /// Write to this directory, created if it does not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Allow changing a signed wheel; remove its signature
    #[arg(long)]
    drop_signature: bool,
    #[command(flatten)]
    limits: Limits,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum By {
    Gpu,
    Family,
}

pub(super) fn run(args: &Args) -> io::Result<Outcome> {
    let wheel = Wheel::open(&args.file, &args.limits)?;
    let failed = |text: String| at(&args.file, &io::Error::other(text));
    if wheel.is_variant() {
        let text =
            "it is a variant: expected the wheel that it was made of, or `offload variant make`";
        return Err(failed(text.to_owned()));
    }
    let code = Code::read_whole(&wheel, &args.limits)?;
    if !code.is_there() {
        return Err(failed("no device code found".to_owned()));
    }
    let justified = justified(&code, &args.limits);
    let mut groups: Vec<(String, Vec<VariantValue>)> = Vec::new();
    // PTX is for the GPUs that no machine code is for: they take the variant null.
    for value in justified.iter().filter(|value| !value.is_portable()) {
        let label = label(value, args.by);
        match groups.iter_mut().find(|(known, _)| *known == label) {
            Some((_, values)) => values.push(value.clone()),
            None => groups.push((label, vec![value.clone()])),
        }
    }
    let mut namespaces: Vec<&str> = justified.iter().map(VariantValue::namespace).collect();
    namespaces.dedup();
    if groups.is_empty() {
        return Err(failed("it has no machine code for a GPU that an installer knows".to_owned()));
    }
    // With a slash at its end it is a directory.
    let directory = args.output.join("");
    let options = Options::strict(Some(directory), (false, ListFormat::default()), &args.limits)
        .with_drop_signature(args.drop_signature);
    let mut table = Table::default()
        .column("VARIANT", Align::Left, TARGET)
        .numbers(["SIZE"])
        .column("DECLARES", Align::Left, PLAIN);
    let mut outcome = Outcome::Clean;
    for (label, values) in &groups {
        let mut properties = VariantProperties::default();
        declare(&mut properties, values).map_err(failed)?;
        let declared = properties.to_string();
        let metadata = metadata(label, properties, &namespaces, args.schema).map_err(failed)?;
        let rule = rule(&code, values, &justified).map_err(failed)?;
        let thinning = Thinning { rule: &rule, permits: PERMITS, options: &options };
        let mut report = SizeReport::saying_errors();
        let edited = thinning.edit(std::slice::from_ref(&args.file), |editor| {
            editor.with_sums(&rule).with_variant(&metadata).run_with(&mut report)
        })?;
        if edited == Outcome::Faults {
            outcome = edited;
        } else {
            let size = report.size.map_or_else(|| "?".to_owned(), style::size);
            table.row(&[label.clone(), size, declared]);
        }
    }
    if !args.no_null && outcome == Outcome::Clean {
        let none = VariantProperties::default();
        let metadata = metadata(NULL, none, &namespaces, args.schema).map_err(failed)?;
        let (_, size) =
            write(&wheel, &metadata, (&args.output, args.drop_signature), &args.limits)?;
        table.row(&[NULL.to_owned(), style::size(size), "nothing, and has all code".to_owned()]);
    }
    if outcome == Outcome::Faults {
        return Ok(outcome);
    }
    let mut out = style::stdout();
    let directory = input::display(&args.output);
    show!(out, "{HEADING}{}{HEADING:#} in {directory}:", wheel.shown())?;
    table.print(&mut out, "  ", style::terminal_width())?;
    out.flush()?;
    Ok(outcome)
}

/// As `offload shrink` has them.
const PERMITS: Permits = Permits {
    is_environment: true,
    missing: false,
    empty: true,
    unserved: false,
    databases: true,
    uneditable: Uneditable::SKIPPED,
};

fn metadata(
    label: &str,
    properties: VariantProperties,
    namespaces: &[&str],
    schema: Schema,
) -> Result<VariantMetadata, String> {
    // The list of all wheels, in one order.
    VariantMetadata::default()
        .with_namespaces(namespaces.iter().copied())
        .and_then(|metadata| metadata.with_variant(label, properties))
        .and_then(|metadata| metadata.with_schema(schema.into()))
        .map_err(|error| error.to_string())
}

/// Returns the rule that keeps what all GPUs load for which installers prefer a wheel with these properties to one with others of `all`.
fn rule(code: &Code, values: &[VariantValue], all: &[VariantValue]) -> Result<Rule, String> {
    let mut wanted = Vec::new();
    for value in values {
        for device in code.devices(value) {
            let takes = |other: &&VariantValue| {
                !other.is_portable() && code.devices(other).any(|one| one.name() == device.name())
            };
            // They are in the order of releases.
            if all.iter().rfind(takes) == Some(value) {
                wanted
                    .push(Wanted::parse_known(&device.name()).map_err(|error| error.to_string())?);
            }
        }
    }
    Ok(Rule::keep(wanted))
}

/// Returns the label of the variant for a GPU: `sm_90`, `gfx1100`; or for its family: `sm_9x`, `gfx11`.
fn label(value: &VariantValue, by: By) -> String {
    let processor = value.processor();
    if by == By::Gpu {
        return processor.to_owned();
    }
    let chain = PackageGroup::of(processor).into_iter().flat_map(|group| group.chain());
    let family = chain.into_iter().find(|group| group.level() == PackageLevel::Family);
    match family {
        Some(family) => family.key().to_owned(),
        None => {
            let mut major = processor.to_owned();
            major.pop();
            format!("{major}x")
        }
    }
}
