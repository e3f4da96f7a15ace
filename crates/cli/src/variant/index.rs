//! `offload variant index`: the file by which installers of an index know the variants of a version.

use std::io::{self, Write};
use std::path::PathBuf;

use offload_check::VariantSet;

use tool_inputs::limits::Limits;
use tool_inputs::variants::wheels;
use tool_kit::output::Outputs;
use tool_kit::permissions::NewPermissions;
use tool_kit::style::{self, HEADING, show};
use tool_kit::{Outcome, input, report};

/// Write the file of an index for the variants of each version
///
/// It is NAME-VERSION-variants.json, the union of what the wheels declare. Wheels that contradict each other are errors, and nothing is
/// written.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Wheels, or directories with wheels
    #[arg(required = true, value_name = "WHEEL")]
    files: Vec<PathBuf>,
    /// Write to this directory, created if it does not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    limits: Limits,
}

pub(super) fn run(args: &Args) -> io::Result<Outcome> {
    let (wheels, mut has_faults) = wheels(&args.files, &args.limits)?;
    let mut set = VariantSet::default();
    for one in wheels.iter().flat_map(|wheel| set.add(&wheel.declared)) {
        report::error(&format_args!("{}: {}", one.file, one.message));
        has_faults = true;
    }
    if set.versions().len() == 0 && !has_faults {
        report::error(&"none of the wheels is a variant");
        has_faults = true;
    }
    if has_faults {
        return Ok(Outcome::Faults);
    }
    let (mut out, mut outputs) = (style::stdout(), Outputs::default());
    let directory = outputs.make_directory(&args.output)?;
    for (name, metadata) in set.versions() {
        let of_version = wheels.iter().filter(|wheel| wheel.declared.index_name() == name);
        let how = NewPermissions::of_all(of_version.map(|wheel| wheel.permissions));
        let json = metadata.to_json();
        let file = directory.file(name);
        outputs.write(&file, how.into(), |out| out.write_all(json.as_bytes()))?;
        let path = input::display(&args.output.join(name));
        let variants = style::count(metadata.variants().len(), "variant");
        show!(out, "{HEADING}{path}{HEADING:#}  {variants}")?;
    }
    outputs.commit()?;
    out.flush()?;
    Ok(Outcome::Clean)
}
