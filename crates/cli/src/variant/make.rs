//! `offload variant make`: a wheel that declares what it is for.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use device_select::VariantValue;
use gpu_packages::VariantProperties;

use super::making::{Making, NULL};
use tool_kit::style::{self, HEADING, show};
use tool_kit::{Outcome, input};

/// Make a variant of a wheel
///
/// The new wheel has the same files, a variant.json, and the label in its name. Without --property it declares the GPUs for which it
/// has all code, and those for which it has some; a variant keeps what else it declares.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A wheel
    #[arg(value_name = "WHEEL")]
    file: PathBuf,
    /// Name the variant so; null is the variant without properties
    #[arg(long, value_name = "LABEL")]
    label: String,
    /// Declare this property, such as "x86_64 :: level :: v3". Repeatable
    #[arg(short, long = "property", value_name = "PROPERTY")]
    properties: Vec<String>,
    /// Put this namespace before others, also if only other wheels use it. Repeatable
    ///
    /// Installers choose by the first namespace, then by the next. All wheels of a version must have the same order.
    #[arg(long = "namespace", value_name = "NAME")]
    namespaces: Vec<String>,
    #[command(flatten)]
    making: Making,
}

pub(super) fn run(args: &Args) -> io::Result<Outcome> {
    let original = args.making.open(&args.file)?;
    let failed = |error: gpu_packages::Error| original.failed(&error);
    let mut properties = VariantProperties::default();
    let mut namespaces = BTreeSet::new();
    for property in &args.properties {
        properties.add_text(property).map_err(failed)?;
    }
    if args.properties.is_empty() {
        let (_, justified) = args.making.justified(&original)?;
        namespaces = justified.iter().map(VariantValue::namespace).collect();
        if args.label != NULL {
            properties = offload_check::declared(&justified).map_err(failed)?;
            for [namespace, feature, value] in original.wheel.declared.other_properties() {
                properties.add(namespace, feature, value).map_err(failed)?;
            }
        }
        if properties.is_empty() && args.label != NULL {
            let text =
                "its code justifies no property: --property declares one, and --label null none";
            return Err(original.failed(&text));
        }
    }
    let given = args.namespaces.iter().map(String::as_str);
    let metadata = args.making.metadata((&args.label, properties), given, namespaces);
    let metadata = metadata.map_err(failed)?;
    let mut out = style::stdout();
    let (path, _) = args.making.write(&original, &metadata)?;
    let declared = metadata.get(&args.label).filter(|properties| !properties.is_empty());
    let declared = declared.map_or_else(|| "no properties".to_owned(), ToString::to_string);
    show!(out, "{HEADING}{}{HEADING:#}  {declared}", input::display(&path))?;
    out.flush()?;
    Ok(Outcome::Clean)
}
