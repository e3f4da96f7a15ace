//! Answers of several variants of a wheel.

use std::collections::BTreeMap;

use device_select::{Device, FileSet, Support};
use gpu_packages::WheelName;

/// The best answer of a variant for a GPU, and the labels of the variants with code for it.
type Best = (Support, Vec<String>);

/// The answers of wheels that are variants of one wheel. An installer takes one of them, so that it does not matter what the others lack.
///
/// ```
/// use device_select::{Device, FileSet, Support};
/// use offload_check::VariantAnswers;
///
/// let (gpus, name) = ([Device::parse("gfx1100")?], |label| format!("foo-1.0-py3-none-any-{label}.whl"));
/// let mut answers = VariantAnswers::of([&*name("gfx1100"), &*name("null"), "bar-1.0-py3-none-any-x.whl"], &gpus);
/// assert!(answers.take(&FileSet::new(gpus.clone()).with_package(&name("null"))));
/// assert!(!answers.take(&FileSet::new(gpus.clone()).with_package("bar-1.0-py3-none-any-x.whl")));
/// let all: Vec<_> = answers.all().collect();
/// assert_eq!(all[0].2, Support::No);
/// assert_eq!(all[0].3, "no variant has code for gfx1100");
/// # Ok::<(), device_select::NotADevice>(())
/// ```
#[derive(Debug)]
pub struct VariantAnswers {
    gpus: Vec<Device>,
    wheels: BTreeMap<String, Vec<Best>>,
}

impl VariantAnswers {
    /// Creates the answers of those wheels that several of these files are variants of, by their names. There are no answers yet.
    #[must_use]
    pub fn of<'n>(names: impl IntoIterator<Item = &'n str>, gpus: &[Device]) -> Self {
        let mut counts = BTreeMap::new();
        for (wheel, _) in names.into_iter().filter_map(variant_of) {
            *counts.entry(wheel).or_insert(0) += 1;
        }
        let none = || gpus.iter().map(|_| (Support::No, Vec::new())).collect();
        let several = counts.into_iter().filter(|(_, count)| *count > 1);
        let wheels = several.map(|(wheel, _)| (wheel, none())).collect();
        VariantAnswers { gpus: gpus.to_vec(), wheels }
    }

    /// Takes the answers of a package for the same GPUs, if it is one of several variants; returns whether it is.
    pub fn take(&mut self, set: &FileSet) -> bool {
        let variant = variant_of(set.name());
        let known = variant.and_then(|(wheel, label)| Some((self.wheels.get_mut(&wheel)?, label)));
        let Some((answers, label)) = known else { return false };
        for (n, (best, labels)) in answers.iter_mut().enumerate() {
            let support = set.support(n).unwrap_or(Support::No);
            *best = support.min(*best);
            labels.extend((support < Support::Unknown).then(|| label.clone()));
        }
        true
    }

    /// Returns the answers: the name of the wheel without a label, the GPU, the best answer of a variant, and words.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Device, Support, String)> {
        self.wheels.iter().flat_map(|(wheel, answers)| {
            self.gpus.iter().zip(answers).map(|(gpu, (best, labels))| {
                let text = match &**labels {
                    [] => format!("no variant has code for {}", gpu.name()),
                    labels => {
                        format!("variants with code for {}: {}", gpu.name(), labels.join(", "))
                    }
                };
                (&**wheel, gpu, *best, text)
            })
        })
    }
}

/// Returns the name of a variant of a wheel without its label, and the label.
fn variant_of(name: &str) -> Option<(String, String)> {
    // A URL may have the sign of a query, and a number; the name of a wheel has neither.
    let name = name.split(['?', ' ']).next()?.rsplit(['/', '\\']).next()?;
    let wheel = WheelName::parse(name).ok()?;
    let label = wheel.label()?.to_owned();
    Some((wheel.with_label(None).ok()?.to_string(), label))
}
