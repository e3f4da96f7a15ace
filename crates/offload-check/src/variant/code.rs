//! The device code of a wheel, and the properties that it justifies.

use std::collections::BTreeSet;

use device_select::{
    Candidate, Device, FileSet, Selection, Software, Support, Unit, VariantValue, Vendor, Version,
    select,
};

/// The device code of a wheel or of an installed distribution.
///
/// ```
/// use offload_check::VariantCode;
///
/// let file = std::fs::File::open("../../examples/data/hip.hipfb")?;
/// let mut code = VariantCode::new("foo-1.0-py3-none-any.whl", false);
/// code.add("foo/hip.hipfb", device_select::units(file)?);
/// let justified: Vec<_> = code.justified().map(|one| one.value.to_string()).collect();
/// assert!(justified.contains(&"amd :: gfx_arch :: gfx1100".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct VariantCode {
    name: String,
    on_arm: bool,
    files: Vec<(String, Vec<Unit>)>,
    split: Vec<SplitFile>,
    is_damaged: bool,
    is_elsewhere: bool,
}

/// A property of a GPU for which there may be code, with the answer for that GPU.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JustifiedValue {
    /// The property.
    pub value: VariantValue,
    /// The answer; the code justifies the property if it is [`Yes`](Support::Yes) or [`Partly`](Support::Partly).
    pub support: Support,
    /// The answer in words, after the name of the wheel.
    pub words: String,
}

/// The path of a library whose code is in kernel packs, and for devices whether all of it is there, in words as well.
type SplitFile = (String, Vec<(Device, bool, String)>);

/// An answer for a device, with words.
pub(super) struct Judged {
    pub(super) device: Device,
    pub(super) support: Support,
    pub(super) words: String,
}

impl VariantCode {
    /// Creates the code of no file. `on_arm` is `true` for machines with Arm processors: only these have the GPUs of Jetson modules.
    #[must_use]
    pub fn new(name: &str, on_arm: bool) -> Self {
        let (name, files, split) = (name.to_owned(), Vec::new(), Vec::new());
        VariantCode { name, on_arm, files, split, is_damaged: false, is_elsewhere: false }
    }

    /// Adds the containers of a file. A file without containers is ignored.
    pub fn add(&mut self, path: &str, units: Vec<Unit>) {
        if !units.is_empty() {
            self.files.push((path.to_owned(), units));
        }
    }

    /// Adds a library whose code is in kernel packs, with answers for GPUs: whether all code is there, and words. It is not asked about
    /// other GPUs.
    pub fn add_split(
        &mut self,
        path: &str,
        answers: impl IntoIterator<Item = (Device, bool, String)>,
    ) {
        self.split.push((path.to_owned(), answers.into_iter().collect()));
    }

    /// Notes that some code could not be read. Nothing: all was read.
    pub fn set_damaged(&mut self) {
        self.is_damaged = true;
    }

    /// Notes that code for AMD's GPUs lies elsewhere, in kernel packs of other distributions. A GPU that lacks code here is not compared
    /// then.
    pub fn set_elsewhere(&mut self) {
        self.is_elsewhere = true;
    }

    /// Returns whether some code could not be read.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// Returns whether some code lies elsewhere.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        self.is_elsewhere
    }

    /// Returns whether there is no code.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.split.is_empty()
    }

    /// Returns the properties that images may justify, sorted.
    #[must_use]
    pub fn values(&self) -> BTreeSet<VariantValue> {
        let units = self.files.iter().flat_map(|(_, units)| units);
        let images = units.flat_map(|unit| unit.candidates());
        images.map(Candidate::target).flat_map(VariantValue::of_target).collect()
    }

    /// Returns the answer for the device that a property names, in words as well.
    #[must_use]
    pub fn answer(&self, value: &VariantValue) -> (Support, String) {
        let first = self.judge(value, None).into_iter().next();
        first.map_or((Support::No, String::new()), |judged| (judged.support, judged.words))
    }

    /// Returns the answers for all properties that images may justify, sorted by property.
    pub fn justified(&self) -> impl Iterator<Item = JustifiedValue> {
        self.values().into_iter().map(|value| {
            let (support, words) = self.answer(&value);
            JustifiedValue { value, support, words }
        })
    }

    /// Returns the devices for which installers take the wheel by a property, the one first that it names.
    pub(super) fn devices(&self, value: &VariantValue) -> Vec<Device> {
        value.devices(self.on_arm)
    }

    /// Returns the answers for all devices that a property is for, the one first that it names. With a driver, for machines
    /// where it is installed.
    pub(super) fn judge(&self, value: &VariantValue, driver: Option<Version>) -> Vec<Judged> {
        let with_driver = |device: Device| match driver {
            Some(version) => device.with_installed(Software::Driver, version),
            None => device,
        };
        let devices: Vec<Device> = self.devices(value).into_iter().map(with_driver).collect();
        let mut set = FileSet::new(devices.clone()).with_package(&self.name);
        for (path, units) in &self.files {
            let answers: Vec<Selection> = devices.iter().map(|gpu| select(units, gpu)).collect();
            let all = devices.iter().zip(&answers).enumerate();
            let asked = all.filter(|(_, (gpu, answers))| answers.concerns(units, gpu));
            set.add(path, units, asked.map(|(n, (_, answers))| (n, answers)));
        }
        for (path, answers) in &self.split {
            let answer = |(n, device): (usize, &Device)| {
                let is_it = |one: &Device| one.id().processor() == device.id().processor();
                let found = answers.iter().find(|(one, ..)| is_it(one));
                found.map(|(_, is_served, words)| (n, *is_served, words.clone()))
            };
            set.add_split(path, Vendor::Amd, devices.iter().enumerate().filter_map(answer));
        }
        let judged = devices.into_iter().enumerate().map(|(n, device)| {
            let support = set.support(n).unwrap_or(Support::No);
            let words = set.conclusion(n).map_or_else(
                || format!("lacks code for {}", device.name()),
                |conclusion| conclusion.text,
            );
            Judged { device, support, words }
        });
        judged.collect()
    }
}
