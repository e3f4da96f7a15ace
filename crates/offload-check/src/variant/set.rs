//! Declarations that are checked together: of the wheels of a version, and of the file of an index.

use std::collections::{BTreeMap, BTreeSet};

use device_select::{Support, VariantValue, Version, driver_of_cuda, few};
use gpu_packages::{Error, VariantMetadata, VariantProperties};

use super::code::VariantCode;
use super::declaration::{LOWER_BOUND, VariantDeclaration, is_gpu};
use crate::subject::{Level, Violation};

/// Declarations of wheels, compared with each other, with the files of indices, and with code.
///
/// ```
/// use gpu_packages::{VariantMetadata, VariantProperties, WheelName};
/// use offload_check::{VariantCode, VariantDeclaration, VariantSet};
///
/// let mut properties = VariantProperties::default();
/// properties.add("amd", "gfx_arch", "gfx1100")?;
/// let json = VariantMetadata::new("gfx1100", properties)?.to_json();
/// let name = "foo-1.0-py3-none-any-gfx1100.whl";
/// let wheel = VariantDeclaration::of_wheel(name, &WheelName::parse(name)?, Some(json.as_bytes()));
/// let mut set = VariantSet::default();
/// assert!(set.add(&wheel).is_empty());
/// let found = set.judge(&wheel, &VariantCode::new(name, false));
/// assert_eq!(found[0].code, "variant/missing-code");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct VariantSet {
    /// The processors that wheels declare, each with the name of their index.
    declared: BTreeSet<(String, String)>,
    versions: BTreeMap<String, VariantMetadata>,
}

impl VariantSet {
    /// Adds a declaration. Returns what is wrong with it alone, values that are not known among it, and where it contradicts an earlier
    /// one of its version.
    pub fn add(&mut self, wheel: &VariantDeclaration) -> Vec<Violation> {
        let values =
            wheel.values().map(|value| (wheel.index.clone(), value.processor().to_owned()));
        self.declared.extend(values);
        let VariantDeclaration { file, label, metadata, faults, .. } = wheel;
        let error = |code, text: String| Violation::error(code, file, text);
        let form = |fault: &String| error("variant/form", format!("variant.json: {fault}"));
        let mut found: Vec<Violation> = faults.iter().map(form).collect();
        let text = match (metadata, label) {
            (None, _) if !found.is_empty() => return found,
            (None, None) => return found,
            (None, Some(_)) => {
                "the name of the file has the label of a variant, and the wheel has no variant.json"
            }
            (Some(metadata), None) if wheel.is_installed => {
                let count = metadata.variants().len();
                let text = format!("variant.json: variants: expected one, found {count}");
                found.push(error("variant/label", text));
                return found;
            }
            (Some(_), None) => {
                "variant.json declares a variant, and the name of the file has no label"
            }
            (Some(metadata), Some(label)) => {
                let fault = metadata.check_label(label);
                found.extend(
                    fault.map(|fault| error("variant/label", format!("variant.json: {fault}"))),
                );
                if !wheel.is_installed && wheel.only_label().is_some() {
                    found.extend(self.merge(wheel, metadata));
                }
                let properties = metadata.get(label);
                found.extend(properties.into_iter().flat_map(|it| read(file, it).0));
                return found;
            }
        };
        found.push(error("variant/label", text.to_owned()));
        found
    }

    fn merge(&mut self, wheel: &VariantDeclaration, metadata: &VariantMetadata) -> Vec<Violation> {
        let Some(version) = self.versions.get_mut(&wheel.index) else {
            self.versions.insert(wheel.index.clone(), metadata.clone());
            return Vec::new();
        };
        let faults = version.merge(metadata).into_iter();
        faults.map(|fault| contradicts(&wheel.file, fault)).collect()
    }

    /// Returns the names of index files, each with the union of what the wheels of its version declare.
    pub fn versions(&self) -> impl ExactSizeIterator<Item = (&str, &VariantMetadata)> {
        self.versions.iter().map(|(name, metadata)| (&**name, metadata))
    }

    /// Compares a declaration with the code of its wheel, after all of the set were added: another wheel may be for the GPUs that
    /// this one lacks code for.
    #[must_use]
    pub fn judge(&self, wheel: &VariantDeclaration, code: &VariantCode) -> Vec<Violation> {
        let Some(properties) = wheel.judged() else { return Vec::new() };
        let name = &wheel.file;
        let error = |code, text: String| Violation::error(code, name, text);
        let warning = |code, text: String| error(code, text).with_level(Level::Warning);
        let (_, values, bound) = read(name, properties);
        let mut found = Vec::new();
        // The reader of an installed distribution says of each file why it could not be read.
        if code.is_damaged() && !wheel.is_installed {
            let text = "some of its device code could not be read: see `offload verify`";
            found.push(error("file/error", text.to_owned()));
        }
        let mut wrong = Vec::new();
        let subject = if wheel.is_installed { "the package" } else { "the wheel" };
        for value in &values {
            let mut judged = code.judge(value, None).into_iter();
            let Some(named) = judged.next() else { continue };
            let text = format!("{value}: {subject} {}", named.words);
            match named.support {
                Support::Yes => {}
                Support::Partly => found.push(warning("variant/missing-code", text)),
                _ if code.is_elsewhere() && value.namespace() == "amd" => {
                    let text = format!(
                        "{value}: not compared: the code of a library is in kernel packs outside of {subject}"
                    );
                    found.push(warning("variant/not-compared", text));
                }
                _ => wrong.push(error("variant/missing-code", text)),
            }
            let others: Vec<String> = judged
                .filter(|one| named.support == Support::Yes && one.support == Support::No)
                .map(|one| one.device.name())
                // An installer prefers the wheel that names the GPU.
                .filter(|gpu| !self.declared.contains(&(wheel.index.clone(), gpu.clone())))
                .collect();
            if !others.is_empty() && !wheel.is_installed {
                let others = few(others);
                let text = format!(
                    "{value}: installers take it for {others} as well, for which it lacks code"
                );
                found.push(warning("variant/wider", text));
            }
        }
        found.append(&mut wrong);
        if let Some((property, driver)) = bound {
            found.extend(
                needs(code, &values, (&property, driver))
                    .map(|text| warning("variant/bound", text)),
            );
        }
        if !properties.is_empty() && !wheel.is_installed {
            let is_declared = |value: &VariantValue| {
                values.iter().any(|one| one.processor() == value.processor())
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
        found
    }

    /// Compares the file of an index with the wheels that were added. `name` is its file name, `file` its name in findings.
    ///
    /// # Errors
    ///
    /// [`Malformed`](gpu_packages::ErrorKind::Malformed) if it is not JSON, or no object.
    pub fn check_index(
        &self,
        file: &str,
        name: &str,
        json: &[u8],
    ) -> Result<Vec<Violation>, Error> {
        let (index, faults) = VariantMetadata::read(json)?;
        let form = |fault: String| Violation::error("variant/form", file, fault);
        let mut found: Vec<Violation> = faults.into_iter().map(form).collect();
        let Some(wheels) = self.versions.get(&name.to_lowercase()) else { return Ok(found) };
        found.extend(index.clone().merge(wheels).into_iter().map(|fault| contradicts(file, fault)));
        for (label, _) in wheels.variants().filter(|(label, _)| index.get(label).is_none()) {
            let text = format!(
                "variants: a wheel with the label {label} is there, and the index lacks it"
            );
            found.push(contradicts(file, text));
        }
        for (label, _) in index.variants().filter(|(label, _)| wheels.get(label).is_none()) {
            let text = format!("variants.{label}: no wheel with this label was given");
            found.push(contradicts(file, text).with_level(Level::Warning));
        }
        Ok(found)
    }

    /// Returns warnings of labels with the same properties; each names the index of its version.
    pub fn same(&self) -> impl Iterator<Item = Violation> {
        self.versions.iter().flat_map(|(version, metadata)| {
            metadata.equal_labels().into_iter().map(|(label, first)| {
                let text = format!("the variants {first} and {label} declare the same properties");
                Violation::error("variant/same", version, text).with_level(Level::Warning)
            })
        })
    }
}

fn contradicts(name: &str, fault: String) -> Violation {
    Violation::error("variant/contradicts", name, fault)
}

/// A property that promises a release of CUDA, and the driver that comes with that.
type Bound = (String, Version);

/// Reads properties. Returns the faults of their values, the properties that name GPUs, and the bound.
fn read(
    name: &str,
    properties: &VariantProperties,
) -> (Vec<Violation>, Vec<VariantValue>, Option<Bound>) {
    let (mut found, mut values, mut bound) = (Vec::new(), Vec::new(), None);
    let error = |text: String| Violation::error("variant/unknown-value", name, text);
    for [namespace, feature, value] in properties.iter() {
        let property = format!("{namespace} :: {feature} :: {value}");
        match (VariantValue::parse(namespace, feature, value), (namespace, feature)) {
            (Some(value), _) => values.push(value),
            (None, LOWER_BOUND) => match driver_of_cuda(value) {
                Some(driver) => bound = Some((property, driver)),
                None => found.push(
                    error(format!("{property}: not a release of CUDA that is known"))
                        .with_level(Level::Warning),
                ),
            },
            (None, ("nvidia", "cuda_version_upper_bound")) if value.parse::<f64>().is_err() => {
                let text = format!("{property}: not a release of CUDA");
                found.push(error(text).with_level(Level::Warning));
            }
            (None, (namespace, feature)) if is_gpu(namespace, feature) => {
                found.push(error(format!("{property}: no installer knows a GPU of this name")));
            }
            (None, _) => {}
        }
    }
    (found, values, bound)
}

/// Returns what code needs a later driver than a lower bound of CUDA promises.
fn needs(
    code: &VariantCode,
    values: &[VariantValue],
    (property, driver): (&str, Version),
) -> Option<String> {
    let fails = values.iter().find_map(|value| {
        let named = |driver| code.judge(value, driver).into_iter().next();
        let (any, this) = (named(None)?, named(Some(driver))?);
        let is_worse = any.support <= Support::Partly && this.support > any.support;
        is_worse.then(|| format!("{value}: {}", this.words))
    });
    fails.map(|why| format!("{property} is driver {driver}, which does not load all: {why}"))
}
