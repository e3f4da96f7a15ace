//! `offload variant split`: a wheel for each GPU or family, and one for all others.

use std::io;
use std::path::PathBuf;

use clap::ValueEnum;
use device_select::VariantValue;
use gpu_packages::VariantProperties;
use offload_check::{VariantLevel, VariantPart};

use super::making::{Making, NULL};
use tool_edits::{Options, Permits, SizeReport, Thinning, Uneditable};
use tool_kit::format::ListFormat;
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
    #[command(flatten)]
    making: Making,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    Gpu,
    Family,
}

pub(super) fn run(args: &Args) -> io::Result<Outcome> {
    let making = &args.making;
    let original = making.open(&args.file)?;
    if original.wheel.declared.is_variant() {
        let text =
            "it is a variant: expected the wheel that it was made of, or `offload variant make`";
        return Err(original.failed(&text));
    }
    let (code, justified) = making.justified(&original)?;
    if code.is_empty() {
        return Err(original.failed(&"no device code found"));
    }
    let level = match args.by {
        By::Gpu => VariantLevel::Gpu,
        By::Family => VariantLevel::Family,
    };
    let parts = VariantPart::of(&code, &justified, level);
    let parts = parts.map_err(|error| original.failed(&error))?;
    if parts.is_empty() {
        return Err(original.failed(&"it has no machine code for a GPU that an installer knows"));
    }
    // The list of all wheels, in one order.
    let namespaces = || justified.iter().map(VariantValue::namespace);
    let metadata = |label: &str, properties: VariantProperties| {
        let made = making.metadata((label, properties), namespaces(), []);
        made.map_err(|error| original.failed(&error))
    };
    // With a slash at its end it is a directory.
    let directory = making.output.join("");
    let options = Options::strict(Some(directory), (false, ListFormat::default()), &making.limits)
        .with_drop_signature(making.drop_signature);
    let mut table = Table::default()
        .column("VARIANT", Align::Left, TARGET)
        .numbers(["SIZE"])
        .column("DECLARES", Align::Left, PLAIN);
    let mut outcome = Outcome::Clean;
    for part in &parts {
        let properties = part.properties().map_err(|error| original.failed(&error))?;
        let declared = properties.to_string();
        let metadata = metadata(part.label(), properties)?;
        let thinning = Thinning { rule: part.rule(), permits: PERMITS, options: &options };
        let mut report = SizeReport::saying_errors();
        let edited = thinning.edit(std::slice::from_ref(&args.file), |editor| {
            editor.with_sums(part.rule()).with_variant(&metadata).run_with(&mut report)
        })?;
        if edited == Outcome::Faults {
            outcome = edited;
        } else {
            let size = report.size.map_or_else(|| "?".to_owned(), style::size);
            table.row(&[part.label().to_owned(), size, declared]);
        }
    }
    if !args.no_null && outcome == Outcome::Clean {
        let metadata = metadata(NULL, VariantProperties::default())?;
        let (_, size) = making.write(&original, &metadata)?;
        table.row(&[NULL.to_owned(), style::size(size), "nothing, and has all code".to_owned()]);
    }
    if outcome == Outcome::Faults {
        return Ok(outcome);
    }
    let mut out = style::stdout();
    let directory = input::display(&making.output);
    show!(out, "{HEADING}{}{HEADING:#} in {directory}:", original.wheel.shown())?;
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
