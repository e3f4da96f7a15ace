//! Answers of several variants of a wheel.

use std::collections::BTreeMap;

use device_select::{Device, FileSet, Support, VariantValue};
use gpu_packages::WheelName;

use super::declaration::VariantDeclaration;

/// The answers of wheels that are variants of one wheel, in one directory. An installer takes one of them for a GPU, so that it does
/// not matter what the others lack: of the variants that name the GPU the nearest, and if none names it, one that names no GPU, such
/// as `null`.
///
/// ```
/// use device_select::{Device, FileSet, Support};
/// use offload_check::VariantAnswers;
///
/// let (gpus, name) = ([Device::parse("gfx1100")?], |label| format!("foo-1.0-py3-none-any-{label}.whl"));
/// let names = [&*name("gfx1100"), &*name("null"), "bar-1.0-py3-none-any-x.whl"];
/// let mut answers = VariantAnswers::of(names, &gpus);
/// let mut set = FileSet::new(gpus.clone()).with_package(&name("null"));
/// let units = device_select::units(std::fs::File::open("../../examples/data/hip.hipfb").unwrap()).unwrap();
/// set.add("hip.hipfb", &units, [(0, &device_select::select(&units, &gpus[0]))]);
/// assert!(answers.take(&set));
/// assert!(!answers.take(&FileSet::new(gpus.clone()).with_package("bar-1.0-py3-none-any-x.whl")));
/// let all: Vec<_> = answers.all().collect();
/// assert_eq!(all[0].support, Support::Yes);
/// assert_eq!(all[0].text, "variants with code for gfx1100: null (variant.json was not read: gfx1100, null)");
/// # Ok::<(), device_select::NotADevice>(())
/// ```
#[derive(Debug)]
pub struct VariantAnswers {
    gpus: Vec<Device>,
    /// The variants by label, for each wheel: its directory, and its name without a label.
    wheels: BTreeMap<String, BTreeMap<String, Variant>>,
}

/// One variant: what it declares, if that was read, and an answer for each GPU, if it has code for GPUs of that vendor.
#[derive(Debug, Default)]
struct Variant {
    declared: Option<(Vec<VariantValue>, bool)>,
    answers: Vec<Option<Support>>,
}

/// The answer of the variants of a wheel for a GPU.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VariantAnswer<'a> {
    /// The path of the wheel, without a label.
    pub wheel: &'a str,
    /// The GPU.
    pub gpu: &'a Device,
    /// The best answer of the variants that an installer takes.
    pub support: Support,
    /// The answer in words.
    pub text: String,
}

impl Variant {
    fn support(&self, gpu: usize) -> Option<Support> {
        self.answers.get(gpu).copied().flatten()
    }

    /// Returns the distance of a GPU from the nearest that it names; `None` if it is not for the GPU.
    fn distance(&self, gpu: &Device) -> Option<u16> {
        let (values, _) = self.declared.as_ref()?;
        values.iter().filter_map(|value| value.distance(gpu)).min()
    }
}

impl VariantAnswers {
    /// Creates the answers of those wheels that several of these files are variants of, by their paths. There are no answers yet.
    #[must_use]
    pub fn of<'n>(names: impl IntoIterator<Item = &'n str>, gpus: &[Device]) -> Self {
        let mut wheels: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for (wheel, label) in names.into_iter().filter_map(variant_of) {
            wheels.entry(wheel).or_default().insert(label, Variant::default());
        }
        wheels.retain(|_, variants| variants.len() > 1);
        VariantAnswers { gpus: gpus.to_vec(), wheels }
    }

    /// Returns whether a file is one of several variants, by its path.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        variant_of(name).is_some_and(|(wheel, label)| {
            self.wheels.get(&wheel).is_some_and(|variants| variants.contains_key(&label))
        })
    }

    /// Takes the declaration of a file, if it is one of several variants. A variant without a declaration may be for any GPU.
    pub fn declare(&mut self, name: &str, declared: &VariantDeclaration) {
        if let Some(variant) = self.variant(name) {
            variant.declared = declared.gpus();
        }
    }

    /// Takes the answers of a package for the same GPUs, if it is one of several variants; returns whether it is.
    pub fn take(&mut self, set: &FileSet) -> bool {
        let answers = (0..self.gpus.len()).map(|n| set.support(n)).collect();
        let variant = self.variant(set.name());
        variant.map(|variant| variant.answers = answers).is_some()
    }

    /// Returns the answers for each wheel and each GPU for whose vendor some variant has code.
    pub fn all(&self) -> impl Iterator<Item = VariantAnswer<'_>> {
        self.wheels.iter().flat_map(|(wheel, variants)| {
            let gpus = self.gpus.iter().enumerate();
            gpus.filter_map(|(n, gpu)| {
                let is_asked = variants.values().any(|variant| variant.support(n).is_some());
                let (support, text) = is_asked.then(|| answer(variants, (n, gpu)))?;
                Some(VariantAnswer { wheel, gpu, support, text })
            })
        })
    }

    fn variant(&mut self, name: &str) -> Option<&mut Variant> {
        let (wheel, label) = variant_of(name)?;
        self.wheels.get_mut(&wheel)?.get_mut(&label)
    }
}

/// Returns the best answer of the variants that an installer takes for a GPU, and words.
fn answer(variants: &BTreeMap<String, Variant>, (n, gpu): (usize, &Device)) -> (Support, String) {
    let nearest = variants.values().filter_map(|variant| variant.distance(gpu)).min();
    let is_taken = |variant: &Variant| match &variant.declared {
        None => true,
        Some((_, names_gpus)) => match nearest {
            Some(nearest) => variant.distance(gpu) == Some(nearest),
            None => !names_gpus,
        },
    };
    let labels = |is_wanted: &dyn Fn(&Variant) -> bool| {
        let wanted = variants.iter().filter(|(_, variant)| is_wanted(variant));
        wanted.map(|(label, _)| label.as_str()).collect::<Vec<_>>().join(", ")
    };
    let has_code = |variant: &Variant| variant.support(n).is_some_and(|it| it < Support::Unknown);
    let taken = variants.values().filter(|variant| is_taken(variant));
    let best = taken.filter_map(|variant| variant.support(n)).min().unwrap_or(Support::No);
    let others = labels(&|variant| !is_taken(variant) && has_code(variant));
    let name = gpu.name();
    let mut text = match best {
        Support::Yes | Support::Partly => {
            let with_code = labels(&|variant| is_taken(variant) && has_code(variant));
            format!("variants with code for {name}: {with_code}")
        }
        Support::Unknown => format!("not known whether a variant has code for {name}"),
        Support::No if others.is_empty() => format!("no variant has code for {name}"),
        Support::No => match &*labels(&is_taken) {
            "" => format!("no variant is declared for {name}; variants with code for it: {others}"),
            taken => format!(
                "installers take {taken} for {name}, which lacks code; variants with code for it: {others}"
            ),
        },
    };
    let unread = labels(&|variant| variant.declared.is_none());
    if !unread.is_empty() {
        text.push_str(&format!(" (variant.json was not read: {unread})"));
    }
    (best, text)
}

/// Returns the path of a variant of a wheel without its label, and the label.
fn variant_of(path: &str) -> Option<(String, String)> {
    let start = path.rfind(['/', '\\']).map_or(0, |at| at + 1);
    let (directory, name) = path.split_at(start);
    // A URL may have the sign of a query, and a number; the name of a wheel has neither.
    let wheel = WheelName::parse(name.split(['?', ' ']).next()?).ok()?;
    let label = wheel.label()?.to_owned();
    Some((format!("{directory}{}", wheel.with_label(None).ok()?), label))
}

#[cfg(test)]
mod tests {
    use device_select::{Device, FileSet, Support, Vendor};
    use gpu_packages::{VariantMetadata, VariantProperties, WheelName};

    use super::{VariantAnswers, VariantDeclaration};

    /// A variant: its label, the GPU that it declares, and its answer for each GPU.
    type Made<'a> = (&'a str, Option<[&'a str; 3]>, &'a [Option<bool>]);

    fn name(label: &str) -> String {
        format!("dist/foo-1.0-py3-none-any-{label}.whl")
    }

    fn set(name: &str, gpus: &[Device], answers: &[Option<bool>]) -> FileSet {
        let mut set = FileSet::new(gpus.to_vec()).with_package(name);
        let asked = answers.iter().enumerate().filter_map(|(n, answer)| Some((n, (*answer)?)));
        for (n, has_code) in asked {
            set.add_split("foo.so", Vendor::Amd, [(n, has_code, String::new())]);
        }
        set
    }

    fn ask(gpus: &[&str], variants: &[Made<'_>]) -> Vec<(Support, String)> {
        let gpus: Vec<_> = gpus.iter().map(|gpu| Device::parse(gpu).unwrap()).collect();
        let names: Vec<_> = variants.iter().map(|(label, ..)| name(label)).collect();
        let mut answers = VariantAnswers::of(names.iter().map(String::as_str), &gpus);
        for ((label, declared, of_gpus), path) in variants.iter().zip(&names) {
            let mut properties = VariantProperties::default();
            for [namespace, feature, value] in declared.iter() {
                properties.add(namespace, feature, value).unwrap();
            }
            let json = VariantMetadata::new(label, properties).unwrap().to_json();
            let wheel = WheelName::parse(path.rsplit('/').next().unwrap()).unwrap();
            let declared = VariantDeclaration::of_wheel(path, &wheel, Some(json.as_bytes()));
            answers.declare(path, &declared);
            assert_eq!(answers.take(&set(path, &gpus, of_gpus)), variants.len() > 1);
        }
        answers.all().map(|one| (one.support, one.text)).collect()
    }

    #[test]
    fn variants_without_code_for_a_vendor_are_not_asked() {
        let v3 = ("v3", Some(["x86_64", "level", "v3"]), &[None, None][..]);
        let null = ("null", None, &[None, None][..]);
        assert!(ask(&["sm_90", "gfx1100"], &[v3, null]).is_empty());
        let answers = ask(&["sm_90", "gfx1100"], &[("null", None, &[Some(true), None]), v3]);
        assert_eq!(answers, [(Support::Yes, "variants with code for sm_90: null".to_owned())]);
    }

    #[test]
    fn a_variant_that_no_installer_takes_does_not_count() {
        let gfx1100 = Some(["amd", "gfx_arch", "gfx1100"]);
        let lacks = ("gfx1100", gfx1100, &[Some(false)][..]);
        let null = ("null", None, &[Some(true)][..]);
        let text = "installers take gfx1100 for gfx1100, which lacks code; variants with code for it: null";
        assert_eq!(ask(&["gfx1100"], &[lacks, null]), [(Support::No, text.to_owned())]);
        let text = "no variant is declared for gfx1201; variants with code for it: gfx1100";
        let other = ("gfx906", Some(["amd", "gfx_arch", "gfx906"]), &[None][..]);
        let has = ("gfx1100", gfx1100, &[Some(true)][..]);
        assert_eq!(ask(&["gfx1201"], &[has, other]), [(Support::No, text.to_owned())]);
        // The nearest is taken.
        let sm_80 = ("sm_80", Some(["nvidia", "sm_arch", "80_real"]), &[Some(true)][..]);
        let sm_86 = ("sm_86", Some(["nvidia", "sm_arch", "86_real"]), &[Some(false)][..]);
        assert_eq!(ask(&["sm_89"], &[sm_80, sm_86])[0].0, Support::No);
        assert_eq!(ask(&["sm_80"], &[sm_80, sm_86])[0].0, Support::Yes);
    }

    #[test]
    fn variants_of_different_directories_are_different() {
        let gpus = [Device::parse("gfx1100").unwrap()];
        let names = ["a/foo-1.0-py3-none-any-x.whl", "b/foo-1.0-py3-none-any-x.whl"];
        let mut answers = VariantAnswers::of(names.into_iter().chain(names), &gpus);
        assert!(!answers.has(names[0]) && !answers.take(&set(names[0], &gpus, &[Some(true)])));
        let answers =
            VariantAnswers::of(["a/foo-1.0-py3-none-any-y.whl", names[0], names[1]], &gpus);
        assert!(answers.has(names[0]) && !answers.has(names[1]));
    }
}
