//! `offload variant check`: whether declarations of wheels agree with their code, and with each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::PathBuf;

use device_select::{Support, VariantValue, Version, driver_of_cuda, few};
use gpu_packages::{VariantMetadata, VariantProperties};

use super::code::Code;
use super::wheel::{INDEX, Wheel, bounded, files, wheels};
use tool_inputs::limits::Limits;
use tool_kit::document::{Document, FINDINGS, Shape};
use tool_kit::finding::{Finding, Level};
use tool_kit::format::JudgeFormat;
use tool_kit::looked::Seen;
use tool_kit::style::{self, HEADING, show};
use tool_kit::{Outcome, input, report};

/// Check what wheels declare against their code, and against each other
///
/// A wheel is compared with its label, with the rules of the form, and with its device code: it must have all code for each GPU that
/// it declares. Wheels of one version, and the file of an index (NAME-VERSION-variants.json), must agree. Exits with 1 if there is
/// an error.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Wheels and index files, or directories with these
    #[arg(required = true, value_name = "WHEEL")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    format: JudgeFormat,
    #[command(flatten)]
    limits: Limits,
}

const SHAPE: Shape = Shape::new("variant-check", "findings", FINDINGS);

pub(super) fn run(args: &Args) -> io::Result<Outcome> {
    let (wheels, mut has_faults) = wheels(&args.files, &args.limits)?;
    let mut document = Document::start(args.format.get(), &SHAPE)?;
    let is_text = document.is_text();
    let mut versions: BTreeMap<String, VariantMetadata> = BTreeMap::new();
    let all = declared(&wheels);
    for wheel in &wheels {
        let name = wheel.shown();
        if !wheel.is_variant() {
            if is_text && !args.format.is_quiet() {
                report::note(&format_args!("{name}: not a variant"));
            }
            continue;
        }
        let mut found = own_findings(wheel, &all, &args.limits)?;
        let is_one = |metadata: &&VariantMetadata| metadata.variants().len() == 1;
        if let Some(metadata) = wheel.metadata.as_ref().filter(is_one) {
            match versions.get_mut(&wheel.index_name()) {
                Some(version) => {
                    let faults = version.merge(metadata);
                    found.extend(faults.into_iter().map(|fault| contradicts(&name, fault)));
                }
                None => _ = versions.insert(wheel.index_name(), metadata.clone()),
            }
        }
        has_faults |= take(&mut document, &name, found, args.format.is_quiet())?;
    }
    for path in files(&args.files, INDEX)? {
        let name = input::display(&path);
        let found = index_findings(&path, &name, &versions);
        let found =
            found.unwrap_or_else(|reason| vec![Finding::error("file/error", &name, reason)]);
        has_faults |= take(&mut document, &name, found, args.format.is_quiet())?;
    }
    for (version, metadata) in &versions {
        let found = metadata.equal_labels().into_iter().map(|(label, first)| {
            let text = format!("the variants {first} and {label} declare the same properties");
            Finding::error("variant/same", version, text).with_level(Level::Warning)
        });
        let found: Vec<Finding> = found.collect();
        if !found.is_empty() {
            has_faults |= take(&mut document, version, found, args.format.is_quiet())?;
        }
    }
    document.end(if has_faults { Outcome::Faults } else { Outcome::Clean })
}

/// Prints and adds the findings of a file; returns whether one is an error.
fn take(
    document: &mut Document,
    name: &str,
    found: Vec<Finding>,
    is_quiet: bool,
) -> io::Result<bool> {
    let is_faulty = found.iter().any(|one| one.level == Level::Error);
    if document.is_text() {
        for Finding { level, message, .. } in &found {
            match level {
                Level::Error => report::error(&format_args!("{name}: {message}")),
                _ => report::warning(&format_args!("{name}: {message}")),
            }
        }
        if found.is_empty() && !is_quiet {
            let mut out = style::stdout();
            show!(out, "{HEADING}{name}{HEADING:#}: valid")?;
            out.flush()?;
        }
    }
    document.file(name, &Seen::faults(is_faulty));
    document.findings(found)?;
    Ok(is_faulty)
}

fn contradicts(name: &str, fault: String) -> Finding {
    Finding::error("variant/contradicts", name, fault)
}

/// The processors that wheels declare, each with the name of their index.
type Declared = BTreeSet<(String, String)>;

fn declared(wheels: &[Wheel]) -> Declared {
    let mut all = Declared::new();
    for wheel in wheels {
        let variants = wheel.metadata.iter().flat_map(|metadata| metadata.variants());
        let values = variants.flat_map(|(_, properties)| properties.iter());
        let values =
            values.filter_map(|[name, feature, value]| VariantValue::parse(name, feature, value));
        all.extend(values.map(|value| (wheel.index_name(), value.processor().to_owned())));
    }
    all
}

/// Returns what is wrong with a wheel, whatever others declare.
fn own_findings(wheel: &Wheel, all: &Declared, limits: &Limits) -> io::Result<Vec<Finding>> {
    let name = wheel.shown();
    let form =
        |fault: &String| Finding::error("variant/form", &name, format!("variant.json: {fault}"));
    let mut found: Vec<Finding> = wheel.faults.iter().map(form).collect();
    let label = |text: String| Finding::error("variant/label", &name, text);
    let Some(metadata) = &wheel.metadata else {
        if found.is_empty() {
            let text = "the name of the file has the label of a variant, and the wheel has no variant.json";
            found.push(label(text.to_owned()));
        }
        return Ok(found);
    };
    let Some(typed) = wheel.name.label() else {
        found.push(label(
            "variant.json declares a variant, and the name of the file has no label".to_owned(),
        ));
        return Ok(found);
    };
    found.extend(metadata.check_label(typed).map(|fault| label(format!("variant.json: {fault}"))));
    if let Some(properties) = metadata.get(typed) {
        found.extend(code_findings(wheel, properties, all, limits)?);
    }
    Ok(found)
}

/// Compares properties with the code of their wheel.
fn code_findings(
    wheel: &Wheel,
    properties: &VariantProperties,
    all: &Declared,
    limits: &Limits,
) -> io::Result<Vec<Finding>> {
    let name = wheel.shown();
    let error = |code, text: String| Finding::error(code, &name, text);
    let warning = |code, text: String| error(code, text).with_level(Level::Warning);
    let (mut found, mut values) = (Vec::new(), Vec::new());
    let mut bound = None;
    for [namespace, feature, value] in properties.iter() {
        let property = format!("{namespace} :: {feature} :: {value}");
        match (VariantValue::parse(namespace, feature, value), (namespace, feature)) {
            (Some(value), _) => values.push(value),
            (None, ("nvidia", "cuda_version_lower_bound")) => match driver_of_cuda(value) {
                Some(driver) => bound = Some((property, driver)),
                None => found.push(warning(
                    "variant/unknown-value",
                    format!("{property}: not a release of CUDA that is known"),
                )),
            },
            (None, ("nvidia", "cuda_version_upper_bound")) if value.parse::<f64>().is_err() => {
                let text = format!("{property}: not a release of CUDA");
                found.push(warning("variant/unknown-value", text));
            }
            (None, ("nvidia", "sm_arch") | ("amd", "gfx_arch")) => found.push(error(
                "variant/unknown-value",
                format!("{property}: no installer knows a GPU of this name"),
            )),
            (None, _) => {}
        }
    }
    let code = Code::read(wheel, bound.is_some(), limits)?;
    if code.is_damaged {
        let text = "some of its device code could not be read: see `offload verify`";
        found.push(error("file/error", text.to_owned()));
    }
    let mut wrong = Vec::new();
    for value in &values {
        let judged = code.judge(value, None, limits);
        let mut judged = judged.into_iter();
        let Some(named) = judged.next() else { continue };
        let text = format!("{value}: the wheel {}", named.words);
        match named.support {
            Support::Yes => {}
            Support::Partly => found.push(warning("variant/missing-code", text)),
            _ => wrong.push(error("variant/missing-code", text)),
        }
        let others: Vec<String> = judged
            .filter(|one| named.support == Support::Yes && one.support == Support::No)
            .map(|one| one.device.name())
            // An installer prefers the wheel that names the GPU.
            .filter(|name| !all.contains(&(wheel.index_name(), name.clone())))
            .collect();
        if !others.is_empty() {
            found.push(warning(
                "variant/wider",
                format!(
                    "{value}: installers take it for {} as well, for which it lacks code",
                    few(others)
                ),
            ));
        }
    }
    found.append(&mut wrong);
    if let Some((property, driver)) = bound {
        found.extend(
            needs(&code, &values, (&property, driver), limits)
                .map(|text| warning("variant/bound", text)),
        );
    }
    if !properties.is_empty() {
        let is_declared = |value: &VariantValue| {
            values.iter().any(|one| one == value || one.processor() == value.processor())
        };
        // PTX may be there for later GPUs, which take the wheel by its machine code.
        let all = code.values().into_iter().filter(|value| !value.is_portable());
        let more = all.filter(|value| !is_declared(value));
        let of_declared =
            more.filter(|value| values.iter().any(|one| one.namespace() == value.namespace()));
        let more: Vec<String> = of_declared.map(|value| value.to_string()).collect();
        if !more.is_empty() {
            let text = format!("has code that no property declares: {}", few(more));
            found.push(warning("variant/undeclared", text));
        }
    }
    Ok(found)
}

/// Returns what code needs a later driver than a lower bound of CUDA promises.
fn needs(
    code: &Code,
    values: &[VariantValue],
    (property, driver): (&str, Version),
    limits: &Limits,
) -> Option<String> {
    let fails = values.iter().find_map(|value| {
        let named = |driver| code.judge(value, driver, limits).into_iter().next();
        let (any, this) = (named(None)?, named(Some(driver))?);
        let is_worse = any.support <= Support::Partly && this.support > any.support;
        is_worse.then(|| format!("{value}: {}", this.words))
    });
    fails.map(|why| format!("{property} is driver {driver}, which does not load all: {why}"))
}

/// Compares the file of an index with the wheels that were checked.
fn index_findings(
    path: &std::path::Path,
    name: &str,
    versions: &BTreeMap<String, VariantMetadata>,
) -> Result<Vec<Finding>, String> {
    let json = File::open(path).and_then(bounded).map_err(|error| report::reason(&error))?;
    let (index, faults) = VariantMetadata::read(&json).map_err(|error| error.to_string())?;
    let form = |fault: String| Finding::error("variant/form", name, fault);
    let mut found: Vec<Finding> = faults.into_iter().map(form).collect();
    let file = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
    let Some(wheels) = file.and_then(|file| versions.get(&file)) else { return Ok(found) };
    found.extend(index.clone().merge(wheels).into_iter().map(|fault| contradicts(name, fault)));
    for (label, _) in wheels.variants().filter(|(label, _)| index.get(label).is_none()) {
        let text =
            format!("variants: a wheel with the label {label} is there, and the index lacks it");
        found.push(contradicts(name, text));
    }
    for (label, _) in index.variants().filter(|(label, _)| wheels.get(label).is_none()) {
        let text = format!("variants.{label}: no wheel with this label was given");
        found.push(contradicts(name, text).with_level(Level::Warning));
    }
    Ok(found)
}
