//! The variants that a wheel with code for several GPUs is split into.

use device_select::{NotADevice, PackageGroup, PackageLevel, Rule, VariantValue, Wanted};
use gpu_packages::{Error, VariantProperties};

use super::code::VariantCode;

/// The GPUs that share a variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum VariantLevel {
    /// Each GPU has one.
    #[default]
    Gpu,
    /// The GPUs of a family have one: `sm_9x`, `gfx11`.
    Family,
}

/// A variant that a wheel is split into.
///
/// ```
/// use offload_check::{VariantCode, VariantLevel, VariantPart};
///
/// let file = std::fs::File::open("../../examples/data/hip.hipfb")?;
/// let mut code = VariantCode::new("foo-1.0-py3-none-any.whl", false);
/// code.add("foo/hip.hipfb", device_select::units(file)?);
/// let values: Vec<_> = code.justified().map(|one| one.value).collect();
/// let parts = VariantPart::of(&code, &values, VariantLevel::Family)?;
/// let labels: Vec<_> = parts.iter().map(|part| part.label()).collect();
/// assert!(labels.contains(&"gfx11"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct VariantPart {
    label: String,
    values: Vec<VariantValue>,
    rule: Rule,
}

impl VariantPart {
    /// Returns the variants for the GPUs that these properties name, in the order of the first of each. PTX is for the GPUs that no
    /// machine code is for: they take the variant `null`.
    ///
    /// # Errors
    ///
    /// The name of a GPU is not one of a target.
    pub fn of(
        code: &VariantCode,
        values: &[VariantValue],
        level: VariantLevel,
    ) -> Result<Vec<Self>, NotADevice> {
        let mut groups: Vec<(String, Vec<VariantValue>)> = Vec::new();
        for value in values.iter().filter(|value| !value.is_portable()) {
            let label = label(value, level);
            match groups.iter_mut().find(|(known, _)| *known == label) {
                Some((_, values)) => values.push(value.clone()),
                None => groups.push((label, vec![value.clone()])),
            }
        }
        let part = |(label, own): (String, Vec<VariantValue>)| {
            let rule = rule(code, &own, values)?;
            Ok(VariantPart { label, values: own, rule })
        };
        groups.into_iter().map(part).collect()
    }

    /// Returns the label: `sm_90`, `gfx1100`; for a family `sm_9x`, `gfx11`.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Returns the properties that it declares.
    ///
    /// # Errors
    ///
    /// [`Malformed`](gpu_packages::ErrorKind::Malformed) for a name that no property may have.
    pub fn properties(&self) -> Result<VariantProperties, Error> {
        declared(&self.values)
    }

    /// Returns the rule that keeps the code of all GPUs for which installers choose it.
    #[must_use]
    pub fn rule(&self) -> &Rule {
        &self.rule
    }
}

/// Returns the properties of a variant for GPUs.
///
/// # Errors
///
/// [`Malformed`](gpu_packages::ErrorKind::Malformed) for a name that no property may have.
pub fn declared<'v>(
    values: impl IntoIterator<Item = &'v VariantValue>,
) -> Result<VariantProperties, Error> {
    let mut properties = VariantProperties::default();
    for value in values {
        properties.add(value.namespace(), value.feature(), &value.value())?;
    }
    Ok(properties)
}

/// Returns the rule that keeps what all GPUs load for which installers prefer a wheel with these properties to one with others of `all`.
fn rule(
    code: &VariantCode,
    values: &[VariantValue],
    all: &[VariantValue],
) -> Result<Rule, NotADevice> {
    let mut wanted = Vec::new();
    for value in values {
        for device in code.devices(value) {
            let takes = |other: &&VariantValue| {
                !other.is_portable()
                    && code.devices(other).iter().any(|one| one.name() == device.name())
            };
            // They are in the order of releases.
            if all.iter().rfind(takes) == Some(value) {
                wanted.push(Wanted::parse_known(&device.name())?);
            }
        }
    }
    Ok(Rule::keep(wanted))
}

fn label(value: &VariantValue, level: VariantLevel) -> String {
    let processor = value.processor();
    if level == VariantLevel::Gpu {
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
