//! `offload variant show`: what wheels declare, and what their code justifies.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use device_select::VariantValue;
use gpu_packages::VariantSchema;
use offload_check::VariantCode;
use serde::Serialize;

use tool_inputs::limits::Limits;
use tool_inputs::variants::{Wheel, wheels};
use tool_kit::Outcome;
use tool_kit::document::{Document, Shape};
use tool_kit::format::ListFormat;
use tool_kit::looked::Seen;
use tool_kit::style::{self, HEADING, TARGET, show};
use tool_kit::table::{Align, Table};

/// Show what wheels declare, beside what their code is for
///
/// Also for other wheels: their code says which properties a variant could declare.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Wheels, or directories with wheels
    #[arg(required = true, value_name = "WHEEL")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    format: ListFormat,
    #[command(flatten)]
    limits: Limits,
}

/// A property of a wheel; the fields of one JSON object, in this order.
#[derive(Debug, Serialize)]
struct Row<'w> {
    file: &'w str,
    label: Option<&'w str>,
    /// The form of the metadata.
    schema: Option<&'static str>,
    property: String,
    declared: bool,
    /// The answer for the GPU: `yes`, `partly`, `unknown`, `no`; null for properties that are not about code.
    code: Option<&'static str>,
    why: Option<String>,
}

const SHAPE: Shape =
    Shape::new("variant-show", "properties", "file label property declared code why");

pub(super) fn run(args: &Args) -> io::Result<Outcome> {
    let (wheels, mut has_faults) = wheels(&args.files, &args.limits)?;
    let mut document = Document::start(args.format.get(), &SHAPE)?;
    for wheel in &wheels {
        let code = wheel.code(false, &args.limits)?;
        has_faults |= code.is_damaged();
        let shown = wheel.shown();
        let rows = rows(wheel, &shown, &code);
        document.file(&shown, &Seen::faults(code.is_damaged()));
        rows.iter().try_for_each(|row| document.row(row))?;
        if document.is_text() {
            print(wheel, &rows)?;
        }
    }
    document.end(if has_faults { Outcome::Faults } else { Outcome::Clean })
}

/// Returns the properties that are declared, or justified by code.
fn rows<'w>(wheel: &'w Wheel, file: &'w str, code: &VariantCode) -> Vec<Row<'w>> {
    // Properties of GPUs come in the order of their releases.
    let mut properties: BTreeMap<(Option<VariantValue>, String), bool> = BTreeMap::new();
    for value in code.values() {
        let name = value.to_string();
        properties.insert((Some(value), name), false);
    }
    for [namespace, feature, value] in wheel.declared.properties() {
        let known = VariantValue::parse(namespace, feature, value);
        properties.insert((known, format!("{namespace} :: {feature} :: {value}")), true);
    }
    let schema = wheel.declared.metadata().map(|metadata| match metadata.schema() {
        VariantSchema::Variantlib => "variantlib",
        _ => "pep825",
    });
    let label = wheel.name.label();
    let row = |((value, property), declared): ((Option<VariantValue>, String), bool)| {
        let answer = value.map(|value| code.answer(&value));
        let (code, why) = answer.map(|(support, words)| (support.as_str(), words)).unzip();
        Row { file, label, schema, property, declared, code, why }
    };
    properties.into_iter().map(row).collect()
}

fn print(wheel: &Wheel, rows: &[Row<'_>]) -> io::Result<()> {
    let mut out = style::stdout();
    let what = match wheel.name.label() {
        Some(label) => format!("variant {label}"),
        None => "not a variant".to_owned(),
    };
    show!(out, "{HEADING}{}{HEADING:#}  {what}", wheel.shown())?;
    if rows.is_empty() {
        show!(out, "  declares nothing, and has no device code")?;
    }
    let mut table = Table::default()
        .column("PROPERTY", Align::Left, TARGET)
        .column("DECLARED", Align::Left, style::PLAIN)
        .column("CODE", Align::Left, style::PLAIN);
    for row in rows {
        let declared = if row.declared { "yes" } else { "no" };
        table.row(&[row.property.clone(), declared.to_owned(), row.code.unwrap_or("-").to_owned()]);
    }
    if !rows.is_empty() {
        table.print(&mut out, "  ", style::terminal_width())?;
    }
    out.flush()
}
