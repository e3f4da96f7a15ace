//! The declaration of a wheel: its name and its `variant.json`.

use device_select::{Device, VariantValue, few};
use gpu_packages::{VariantMetadata, VariantProperties, WheelName, normalized_name};

use crate::subject::{Level, Violation};

/// The declaration of a wheel, or of a distribution that is installed.
///
/// ```
/// use device_select::Device;
/// use gpu_packages::{VariantMetadata, VariantProperties};
/// use offload_check::VariantDeclaration;
///
/// let mut properties = VariantProperties::default();
/// properties.add("nvidia", "sm_arch", "100_real")?;
/// let json = VariantMetadata::new("cu13", properties)?.to_json();
/// let installed = VariantDeclaration::of_installed("foo", json.as_bytes());
/// let said = installed.other_gpu(&Device::parse("RTX 4090")?).unwrap();
/// assert_eq!(said.code, "variant/other-gpu");
/// assert!(said.message.starts_with("installed as the variant cu13 for sm_100, and not for sm_89"));
/// assert!(installed.other_gpu(&Device::parse("sm_103")?).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct VariantDeclaration {
    pub(super) file: String,
    /// The name of the index of its version; empty for an installed distribution.
    pub(super) index: String,
    /// The label in the name of the file.
    pub(super) label: Option<String>,
    pub(super) is_installed: bool,
    pub(super) metadata: Option<VariantMetadata>,
    /// The places where the metadata breaks the rules of the form.
    pub(super) faults: Vec<String>,
}

impl VariantDeclaration {
    /// Reads the declaration of a wheel: its file name, and the contents of its `variant.json`, if it has one. `file` is the name in
    /// findings.
    #[must_use]
    pub fn of_wheel(file: &str, name: &WheelName, json: Option<&[u8]>) -> Self {
        let normal = normalized_name(name.name()).replace('-', "_");
        let index = format!("{normal}-{}{}", name.version(), INDEX_END);
        let label = name.label().map(str::to_owned);
        Self::new(file, json).with(index, label, false)
    }

    /// Reads the declaration of an installed distribution: the `variant.json` of its `dist-info`.
    #[must_use]
    pub fn of_installed(file: &str, json: &[u8]) -> Self {
        let one = Self::new(file, Some(json));
        let label = one.only_label().map(str::to_owned);
        one.with(String::new(), label, true)
    }

    fn new(file: &str, json: Option<&[u8]>) -> Self {
        let (metadata, faults) = match json.map(VariantMetadata::read) {
            None => (None, Vec::new()),
            Some(Ok((metadata, faults))) => (Some(metadata), faults),
            Some(Err(error)) => (None, vec![error.to_string()]),
        };
        let (file, index) = (file.to_owned(), String::new());
        VariantDeclaration { file, index, label: None, is_installed: false, metadata, faults }
    }

    fn with(self, index: String, label: Option<String>, is_installed: bool) -> Self {
        VariantDeclaration { index, label, is_installed, ..self }
    }

    /// Returns whether it has a label or declares something.
    #[must_use]
    pub fn is_variant(&self) -> bool {
        self.label.is_some() || self.metadata.is_some() || !self.faults.is_empty()
    }

    /// Returns the label: of the name of a wheel, or of the metadata of an installed distribution.
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// Returns the contents of `variant.json`; `None` if there are none, or no JSON.
    #[must_use]
    pub fn metadata(&self) -> Option<&VariantMetadata> {
        self.metadata.as_ref()
    }

    /// Returns the name of the index file of its version, `{name}-{version}-variants.json`: names are in lower case there. Empty for
    /// an installed distribution.
    #[must_use]
    pub fn index_name(&self) -> &str {
        &self.index
    }

    /// Returns all declared properties, as namespace, feature and value.
    pub fn properties(&self) -> impl Iterator<Item = [&str; 3]> {
        let variants = self.metadata.iter().flat_map(|metadata| metadata.variants());
        variants.flat_map(|(_, properties)| properties.iter())
    }

    /// Returns the declared properties that name GPUs.
    pub fn values(&self) -> impl Iterator<Item = VariantValue> {
        self.properties().filter_map(|[namespace, feature, value]| {
            VariantValue::parse(namespace, feature, value)
        })
    }

    /// Returns the declared properties that name no GPU, as namespace, feature and value.
    pub fn other_properties(&self) -> impl Iterator<Item = [&str; 3]> {
        self.properties().filter(|[namespace, feature, _]| !is_gpu(namespace, feature))
    }

    /// Returns whether it is compared with code: it has properties of its label.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        self.judged().is_some()
    }

    /// Returns whether it must be compared with the contents of code, not only with its headers: it has a bound for CUDA.
    #[must_use]
    pub fn needs_contents(&self) -> bool {
        self.properties().any(|[namespace, feature, _]| (namespace, feature) == LOWER_BOUND)
    }

    /// Returns a warning if an installer would not choose it for a GPU: it names GPUs, and this is not one of them. `None` if it names
    /// no GPU.
    #[must_use]
    pub fn other_gpu(&self, gpu: &Device) -> Option<Violation> {
        let values: Vec<VariantValue> = self.values().collect();
        if values.is_empty() || values.iter().any(|value| value.distance(gpu).is_some()) {
            return None;
        }
        let mut named: Vec<&str> = values.iter().map(VariantValue::processor).collect();
        named.dedup();
        let label = self.label().map_or_else(String::new, |label| format!(" {label}"));
        let (named, gpu) = (few(named), gpu.name());
        let text = format!(
            "installed as the variant{label} for {named}, and not for {gpu}: \
             install a variant for {gpu}, if there is one, or the variant null"
        );
        Some(Violation::error("variant/other-gpu", &self.file, text).with_level(Level::Warning))
    }

    /// Returns the properties that are compared with the code: of the label, if it is the only one of the metadata.
    pub(super) fn judged(&self) -> Option<&VariantProperties> {
        let (metadata, label) = (self.metadata.as_ref()?, self.label.as_deref()?);
        metadata.get(label)
    }

    /// Returns the properties of its label that name known GPUs, and whether there are properties for GPUs at all, known or not.
    /// `None` if the properties of its label are not known.
    pub(super) fn gpus(&self) -> Option<(Vec<VariantValue>, bool)> {
        let properties = || self.judged().map(VariantProperties::iter);
        let values = properties()?.filter_map(|[namespace, feature, value]| {
            VariantValue::parse(namespace, feature, value)
        });
        let names_gpu = |[namespace, feature, _]: [&str; 3]| is_gpu(namespace, feature);
        Some((values.collect(), properties()?.any(names_gpu)))
    }

    pub(super) fn only_label(&self) -> Option<&str> {
        let mut labels = self.metadata.iter().flat_map(|metadata| metadata.variants());
        let (label, _) = labels.next()?;
        labels.next().is_none().then_some(label)
    }
}

/// Returns whether the values of a feature are GPUs.
pub(super) fn is_gpu(namespace: &str, feature: &str) -> bool {
    matches!((namespace, feature), ("nvidia", "sm_arch") | ("amd", "gfx_arch"))
}

/// The property that promises a release of CUDA.
pub(super) const LOWER_BOUND: (&str, &str) = ("nvidia", "cuda_version_lower_bound");

/// The end of the names of index files.
pub const INDEX_END: &str = "-variants.json";
