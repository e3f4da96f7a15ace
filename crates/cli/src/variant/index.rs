//! `offload variant index`: the file by which installers of an index know the variants of a version.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use gpu_packages::VariantMetadata;

use super::wheel::wheels;
use tool_inputs::limits::Limits;
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
    let mut versions: BTreeMap<String, VariantMetadata> = BTreeMap::new();
    for wheel in wheels.iter().filter(|wheel| wheel.is_variant()) {
        let name = wheel.shown();
        let mut faults = wheel.faults.clone();
        match (&wheel.metadata, wheel.name.label()) {
            (Some(metadata), Some(label)) if metadata.check_label(label).is_some() => {
                faults.extend(metadata.check_label(label));
            }
            (Some(metadata), Some(_)) => match versions.get_mut(&wheel.index_name()) {
                Some(version) => faults.extend(version.merge(metadata)),
                None => _ = versions.insert(wheel.index_name(), metadata.clone()),
            },
            (_, None) => faults.push("the name of the file has no label".to_owned()),
            (None, _) if faults.is_empty() => {
                faults.push("the wheel has no variant.json".to_owned());
            }
            (None, _) => {}
        }
        faults.iter().for_each(|fault| report::error(&format_args!("{name}: {fault}")));
        has_faults |= !faults.is_empty();
    }
    if versions.is_empty() && !has_faults {
        report::error(&"none of the wheels is a variant");
        has_faults = true;
    }
    if has_faults {
        return Ok(Outcome::Faults);
    }
    let (mut out, mut outputs) = (style::stdout(), Outputs::default());
    let directory = outputs.make_directory(&args.output)?;
    for (name, metadata) in &versions {
        let of_version = wheels.iter().filter(|wheel| wheel.index_name() == *name);
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
