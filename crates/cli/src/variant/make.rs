//! `offload variant make`: a wheel that declares what it is for.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use device_select::{Support, VariantValue};
use gpu_packages::{VariantMetadata, VariantProperties, WheelEdit};

use super::code::Code;
use super::wheel::{Schema, Wheel, zip};
use tool_inputs::limits::Limits;
use tool_kit::output::{Outputs, at};
use tool_kit::style::{self, HEADING, show};
use tool_kit::{Outcome, input, report};

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

pub(super) fn run(args: &Args) -> io::Result<Outcome> {
    let wheel = Wheel::open(&args.file, &args.limits)?;
    let failed = |text: String| at(&args.file, &io::Error::other(text));
    let mut properties = VariantProperties::default();
    let mut namespaces = BTreeSet::new();
    for property in &args.properties {
        properties.add_text(property).map_err(|error| failed(error.to_string()))?;
    }
    if args.properties.is_empty() {
        let code = Code::read_whole(&wheel, &args.limits)?;
        let justified = justified(&code, &args.limits);
        namespaces = justified.iter().map(VariantValue::namespace).collect();
        if args.label != NULL {
            declare(&mut properties, &justified).map_err(failed)?;
            for [namespace, feature, value] in wheel.other_properties() {
                let added = properties.add(namespace, feature, value);
                added.map_err(|error| failed(error.to_string()))?;
            }
        }
        if properties.is_empty() && args.label != NULL {
            let text =
                "its code justifies no property: --property declares one, and --label null none";
            return Err(failed(text.to_owned()));
        }
    }
    let given = args.namespaces.iter().map(String::as_str);
    let metadata = VariantMetadata::default()
        .with_namespaces(given)
        .and_then(|metadata| metadata.with_variant(&args.label, properties))
        .and_then(|metadata| metadata.with_namespaces(namespaces))
        .and_then(|metadata| metadata.with_schema(args.schema.into()))
        .map_err(|error| failed(error.to_string()))?;
    let mut out = style::stdout();
    let (path, _) = write(&wheel, &metadata, (&args.output, args.drop_signature), &args.limits)?;
    let declared = metadata.get(&args.label).filter(|properties| !properties.is_empty());
    let declared = declared.map_or_else(|| "no properties".to_owned(), ToString::to_string);
    show!(out, "{HEADING}{}{HEADING:#}  {declared}", input::display(&path))?;
    out.flush()?;
    Ok(Outcome::Clean)
}

/// The label of the variant that is compatible with every system.
pub(super) const NULL: &str = "null";

/// Returns the properties of GPUs for which there is code. GPUs that have some only get a note.
pub(super) fn justified(code: &Code, limits: &Limits) -> Vec<VariantValue> {
    let mut justified = Vec::new();
    for value in code.values() {
        let (support, words) = code.answer(&value, limits);
        match support {
            Support::Yes => justified.push(value),
            Support::Partly => {
                report::note(&format_args!("{value}: {words}"));
                justified.push(value);
            }
            _ => report::note(&format_args!("{value} is not declared: the wheel {words}")),
        }
    }
    justified
}

/// Adds properties of GPUs.
pub(super) fn declare<'v>(
    properties: &mut VariantProperties,
    values: impl IntoIterator<Item = &'v VariantValue>,
) -> Result<(), String> {
    let mut values = values.into_iter();
    values.try_for_each(|value| {
        let added = properties.add(value.namespace(), value.feature(), &value.value());
        added.map_err(|error| error.to_string())
    })
}

/// Writes a wheel with these metadata and its other files as they are; returns its path and its size in bytes.
pub(super) fn write(
    wheel: &Wheel,
    metadata: &VariantMetadata,
    (directory, drops_signature): (&Path, bool),
    limits: &Limits,
) -> io::Result<(PathBuf, u64)> {
    let failed = |error: io::Error| at(&wheel.path, &error);
    let (opened, zip) = zip(&wheel.path, limits)?;
    let label = metadata.variants().next().map(|(label, _)| label);
    let planned = WheelEdit::new(&zip).and_then(|mut edit| {
        edit.variant(metadata).drop_signature(drops_signature).plan(opened.reader())
    });
    let rewrite = planned.map_err(|error| failed(io::Error::other(error)))?;
    let name = wheel.name.clone().with_label(label);
    let name = name.map_err(|error| failed(io::Error::other(error)))?.to_string();
    let mut outputs = Outputs::default();
    let file = outputs.make_directory(directory)?.file(&name);
    outputs.write(&file, opened.permissions().into(), |out| {
        rewrite.write_to(&opened.file, &mut *out).map_err(io::Error::other)?;
        opened.check()
    })?;
    outputs.commit()?;
    Ok((directory.join(name), rewrite.size()))
}
