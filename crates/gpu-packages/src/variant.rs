//! Variants of wheels: the properties that a wheel declares, in `variant.json` and in the file of an index.
//!
//! PEP 825, "Wheel Variants: Package Format", a draft: this is version 0.1.1 of its format. Versions before 1 promise nothing, so
//! everything of it is in this file, and in the names of wheels ([`WheelName`](crate::WheelName)).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

use crate::error::{Error, ErrorKind};
use crate::wheel_name::is_label;

/// The most bytes of a `variant.json` or of an index that are read.
pub const MAX_VARIANT_JSON: u64 = 4 << 20;

/// The name of the file in the directory `.dist-info`.
pub(crate) const VARIANT_JSON: &str = "variant.json";

/// The label of the variant that has no properties, and is compatible with every system.
const NULL: &str = "null";

/// The form of the metadata of variants.
///
/// Both are drafts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VariantSchema {
    /// Version 0.1.1 of PEP 825.
    #[default]
    Pep825,
    /// Version 0.2.0 of `variantlib`, which also names the plugins that detect properties.
    Variantlib,
}

impl VariantSchema {
    /// Returns the address that the metadata names.
    #[must_use]
    pub fn url(self) -> &'static str {
        match self {
            VariantSchema::Pep825 => "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
            VariantSchema::Variantlib => "https://variants-schema.wheelnext.dev/v0.2.0.json",
        }
    }

    fn of(url: &str) -> Option<Self> {
        [VariantSchema::Pep825, VariantSchema::Variantlib].into_iter().find(|it| it.url() == url)
    }
}

/// The properties of a variant: values of features of namespaces. A system is compatible if at least one value of each feature is.
///
/// ```
/// use gpu_packages::VariantProperties;
///
/// let mut properties = VariantProperties::default();
/// properties.add("nvidia", "sm_arch", "90_real")?;
/// properties.add("nvidia", "sm_arch", "100_real")?;
/// assert_eq!(properties.to_string(), "nvidia :: sm_arch :: 100_real, 90_real");
/// # Ok::<(), gpu_packages::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariantProperties {
    features: BTreeMap<(String, String), BTreeSet<String>>,
}

impl VariantProperties {
    /// Adds a value.
    ///
    /// # Errors
    ///
    /// [`Malformed`](ErrorKind::Malformed) unless namespace and feature are of `a` to `z`, digits and `_`, and the value of these and `.`.
    pub fn add(&mut self, namespace: &str, feature: &str, value: &str) -> Result<(), Error> {
        if !(is_name(namespace) && is_name(feature) && is_label(value)) {
            let text = format!(
                "expected a property NAMESPACE :: FEATURE :: VALUE of lower-case letters, digits, '_', and '.' in the value, \
                 found '{namespace} :: {feature} :: {value}'"
            );
            return Err(Error::new(ErrorKind::Malformed, text));
        }
        let values = self.features.entry((namespace.to_owned(), feature.to_owned())).or_default();
        values.insert(value.to_owned());
        Ok(())
    }

    /// Adds a property that is written as `NAMESPACE :: FEATURE :: VALUE`.
    ///
    /// # Errors
    ///
    /// [`Malformed`](ErrorKind::Malformed) if the text is not a property.
    pub fn add_text(&mut self, property: &str) -> Result<(), Error> {
        let parts: Vec<&str> = property.split("::").map(str::trim).collect();
        match parts[..] {
            [namespace, feature, value] => self.add(namespace, feature, value),
            _ => {
                let text = format!("expected NAMESPACE :: FEATURE :: VALUE, found '{property}'");
                Err(Error::new(ErrorKind::Malformed, text))
            }
        }
    }

    /// Returns whether there are none, as of the variant `null`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.features.is_empty()
    }

    /// Returns all properties, as namespace, feature and value, sorted.
    pub fn iter(&self) -> impl Iterator<Item = [&str; 3]> {
        self.features.iter().flat_map(|((namespace, feature), values)| {
            values.iter().map(|value| [&**namespace, &**feature, &**value])
        })
    }

    /// Returns the namespaces, each once and sorted.
    fn namespaces(&self) -> impl Iterator<Item = &str> {
        let names: BTreeSet<&str> = self.features.keys().map(|(name, _)| &**name).collect();
        names.into_iter()
    }

    fn to_value(&self) -> Value {
        let mut namespaces = Map::new();
        for ((namespace, feature), values) in &self.features {
            let features = namespaces.entry(namespace.clone()).or_insert_with(|| json!({}));
            if let Value::Object(features) = features {
                features.insert(feature.clone(), json!(values));
            }
        }
        Value::Object(namespaces)
    }
}

/// `nvidia :: sm_arch :: 80_real, 90_real; x86_64 :: level :: v3`; nothing for the variant `null`.
impl fmt::Display for VariantProperties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, ((namespace, feature), values)) in self.features.iter().enumerate() {
            let between = if nth == 0 { "" } else { "; " };
            let values = Vec::from_iter(values.iter().map(String::as_str)).join(", ");
            write!(f, "{between}{namespace} :: {feature} :: {values}")?;
        }
        Ok(())
    }
}

/// The declarations of variants: of one wheel (`*.dist-info/variant.json`), or of all wheels of a version
/// (`{name}-{version}-variants.json` of an index).
///
/// ```
/// use gpu_packages::{VariantMetadata, VariantProperties};
///
/// let mut properties = VariantProperties::default();
/// properties.add("amd", "gfx_arch", "gfx1100")?;
/// let wheel = VariantMetadata::new("gfx1100", properties)?;
/// let json = wheel.to_json();
/// let (read, faults) = VariantMetadata::read(json.as_bytes())?;
/// assert_eq!((read, faults.len()), (wheel, 0));
/// # Ok::<(), gpu_packages::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VariantMetadata {
    schema: VariantSchema,
    /// By priority, the highest first.
    namespaces: Vec<String>,
    /// The plugins of `variantlib`'s form, as they stand there.
    providers: Map<String, Value>,
    variants: BTreeMap<String, VariantProperties>,
}

impl VariantMetadata {
    /// Creates the metadata of a wheel, in PEP 825's form. A variant `null` has no properties.
    ///
    /// # Errors
    ///
    /// [`Malformed`](ErrorKind::Malformed) if the label has other characters than `a` to `z`, digits, `_` and `.`, or if it is `null`
    /// and there are properties, or none and it is not.
    pub fn new(label: &str, properties: VariantProperties) -> Result<Self, Error> {
        VariantMetadata::default().with_variant(label, properties)
    }

    /// Adds a variant. Namespaces that were not there come last.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_variant(
        mut self,
        label: &str,
        properties: VariantProperties,
    ) -> Result<Self, Error> {
        let fault = match (is_label(label), label == NULL, properties.is_empty()) {
            (false, ..) => "expected a label of lower-case letters, digits, '_' and '.'",
            (true, true, false) => "expected no properties of the variant null",
            (true, false, true) => "expected properties: only the variant null has none",
            _ => {
                self = self.with_namespaces(properties.namespaces())?;
                self.variants.insert(label.to_owned(), properties);
                return Ok(self);
            }
        };
        Err(Error::new(ErrorKind::Malformed, format!("variant '{label}': {fault}")))
    }

    /// Adds namespaces that other wheels of the version use, by priority: an index needs at least one, also for the variant `null`.
    ///
    /// # Errors
    ///
    /// [`Malformed`](ErrorKind::Malformed) for a name with other characters than `a` to `z`, digits and `_`.
    pub fn with_namespaces<'n>(
        mut self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Self, Error> {
        for name in names {
            if !is_name(name) {
                let text = format!(
                    "expected a namespace of lower-case letters, digits and '_', found '{name}'"
                );
                return Err(Error::new(ErrorKind::Malformed, text));
            }
            if !self.namespaces.iter().any(|one| one == name) {
                self.namespaces.push(name.to_owned());
            }
        }
        Ok(self)
    }

    /// Returns the same in another form.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](ErrorKind::Unsupported) for `variantlib`'s form with a namespace other than `amd` and `nvidia`: it names plugins, and
    /// only these two are known here.
    pub fn with_schema(mut self, schema: VariantSchema) -> Result<Self, Error> {
        self.schema = schema;
        if schema == VariantSchema::Variantlib {
            for name in &self.namespaces {
                let known = PROVIDERS.into_iter().find(|(known, ..)| known == name);
                let Some((_, package, plugin)) = known else {
                    if self.providers.contains_key(name) {
                        continue;
                    }
                    let text = format!("the plugin of the namespace '{name}' is not known");
                    return Err(Error::new(ErrorKind::Unsupported, text));
                };
                let provider = json!({"plugin-api": plugin, "requires": [package]});
                self.providers.entry(name.clone()).or_insert(provider);
            }
        }
        Ok(self)
    }

    /// Reads the metadata of a wheel or an index, in the form of PEP 825 or `variantlib`. Returns the breaks of
    /// the rules of the form as well, each with its place; the rest is read. A key that is there twice has its last value.
    ///
    /// # Errors
    ///
    /// [`Malformed`](ErrorKind::Malformed) if it is not JSON, or no object.
    pub fn read(json: &[u8]) -> Result<(Self, Vec<String>), Error> {
        let malformed = |text: String| Error::new(ErrorKind::Malformed, text);
        let value: Value =
            serde_json::from_slice(json).map_err(|error| malformed(format!("no JSON: {error}")))?;
        let Value::Object(root) = value else {
            return Err(malformed("expected a JSON object".to_owned()));
        };
        let mut reader = Reader { faults: Vec::new() };
        let repeated = Repeated { place: String::new(), faults: &mut reader };
        let mut again = serde_json::Deserializer::from_slice(json);
        let again = repeated.deserialize(&mut again);
        again.map_err(|error| malformed(format!("no JSON: {error}")))?;
        let read = reader.root(&root);
        Ok((read, reader.faults))
    }

    /// Returns the form.
    #[must_use]
    pub fn schema(&self) -> VariantSchema {
        self.schema
    }

    /// Returns the namespaces by priority, the highest first.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.namespaces.iter().map(String::as_str)
    }

    /// Returns the labels with their properties, sorted.
    pub fn variants(&self) -> impl ExactSizeIterator<Item = (&str, &VariantProperties)> {
        self.variants.iter().map(|(label, properties)| (&**label, properties))
    }

    /// Returns the properties of a label.
    #[must_use]
    pub fn get(&self, label: &str) -> Option<&VariantProperties> {
        self.variants.get(label)
    }

    /// Checks the metadata of a wheel: it has one variant, with the label that the name of the file has.
    #[must_use]
    pub fn check_label(&self, label: &str) -> Option<String> {
        let mut labels = self.variants.keys();
        match (labels.next(), labels.next()) {
            (Some(only), None) if only == label => None,
            (Some(only), None) => {
                Some(format!("variants: it is for '{only}', the name of the file says '{label}'"))
            }
            _ => Some(format!("variants: expected one, '{label}', found {}", self.variants.len())),
        }
    }

    /// Adds the metadata of another wheel of the same version, and returns where the two contradict each other: PEP 825, "Metadata
    /// consistency". In these places the first one stays.
    pub fn merge(&mut self, other: &VariantMetadata) -> Vec<String> {
        let mut faults = Vec::new();
        for (label, properties) in &other.variants {
            match self.variants.get(label) {
                None => drop(self.variants.insert(label.clone(), properties.clone())),
                Some(own) if own == properties => {}
                Some(own) => faults.push(format!(
                    "variants.{label}: '{properties}' contradicts '{own}' of another wheel"
                )),
            }
        }
        let (own, others) = (&self.namespaces, &other.namespaces);
        if own.starts_with(others) {
            // It is the longer one.
        } else if others.starts_with(own) {
            self.namespaces.clone_from(others);
        } else {
            faults.push(format!(
                "default-priorities.namespace: '{}' contradicts '{}' of another wheel: one must begin with the other",
                others.join(", "),
                own.join(", ")
            ));
        }
        for (name, provider) in &other.providers {
            let own = self.providers.entry(name.clone()).or_insert_with(|| provider.clone());
            if own != provider {
                faults.push(format!("providers.{name}: it differs in another wheel"));
            }
        }
        if other.schema != self.schema {
            let [own, others] = [self.schema, other.schema].map(VariantSchema::url);
            faults.push(format!("$schema: {others} is another form than {own} of another wheel"));
        }
        faults
    }

    /// Returns the labels that have the same properties as one before them, each with that one.
    #[must_use]
    pub fn equal_labels(&self) -> Vec<(&str, &str)> {
        let mut firsts = BTreeMap::new();
        let mut equal = Vec::new();
        for (label, properties) in self.variants() {
            let first = *firsts.entry(properties).or_insert(label);
            equal.extend((first != label).then_some((label, first)));
        }
        equal
    }

    /// Returns the JSON, indented, with a line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let variants: Map<String, Value> =
            self.variants().map(|(label, it)| (label.to_owned(), it.to_value())).collect();
        let mut root = json!({
            "$schema": self.schema.url(),
            "default-priorities": {"namespace": self.namespaces},
            "variants": variants,
        });
        if let (VariantSchema::Variantlib, Value::Object(root)) = (self.schema, &mut root) {
            root.insert("providers".to_owned(), Value::Object(self.providers.clone()));
        }
        format!("{root:#}\n")
    }
}

/// The namespaces of GPUs, each with the package that detects them and its plugin.
const PROVIDERS: [(&str, &str, &str); 2] = [
    ("amd", "rocm-bootstrap", "rocm_bootstrap.variant_provider:AMDVariantPlugin"),
    ("nvidia", "nvidia-variant-provider", "nvidia_variant_provider.plugin:NvidiaVariantPlugin"),
];

/// Returns whether a text is a namespace or the name of a feature.
fn is_name(text: &str) -> bool {
    let is_part = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'_');
    !text.is_empty() && text.bytes().all(is_part)
}

/// The most faults of one file.
const MOST_FAULTS: usize = 50;

/// Collects the faults of metadata.
struct Reader {
    faults: Vec<String>,
}

impl Reader {
    fn fault(&mut self, place: &str, text: impl fmt::Display) {
        match self.faults.len() {
            MOST_FAULTS => self.faults.push("further faults are not listed".to_owned()),
            count if count < MOST_FAULTS => self.faults.push(format!("{place}: {text}")),
            _ => {}
        }
    }

    fn object<'v>(
        &mut self,
        place: &str,
        value: Option<&'v Value>,
    ) -> impl Iterator<Item = (&'v String, &'v Value)> + use<'v> {
        let object = value.and_then(Value::as_object);
        if object.is_none() {
            let found = value.map_or("nothing", kind);
            self.fault(place, format_args!("expected an object, found {found}"));
        }
        object.into_iter().flatten()
    }

    /// Returns the strings of a list; each once.
    fn strings<'v>(&mut self, place: &str, value: Option<&'v Value>) -> Vec<&'v str> {
        let Some(items) = value.and_then(Value::as_array) else {
            let found = value.map_or("nothing", kind);
            self.fault(place, format_args!("expected a list, found {found}"));
            return Vec::new();
        };
        let mut strings = Vec::new();
        let mut seen = BTreeSet::new();
        for (nth, item) in items.iter().enumerate() {
            let place = format!("{place}[{nth}]");
            match item.as_str() {
                None => self.fault(&place, format_args!("expected a string, found {}", kind(item))),
                Some(text) if !seen.insert(text) => {
                    self.fault(&place, format_args!("'{text}' is there twice"));
                }
                Some(text) => strings.push(text),
            }
        }
        if items.is_empty() {
            self.fault(place, "expected a value, found an empty list");
        }
        strings
    }

    fn root(&mut self, root: &Map<String, Value>) -> VariantMetadata {
        let mut read = VariantMetadata::default();
        let url = root.get("$schema").and_then(Value::as_str);
        match url.and_then(VariantSchema::of) {
            Some(schema) => read.schema = schema,
            None => {
                let known = VariantSchema::default().url();
                let found = url.unwrap_or("none");
                self.fault("$schema", format_args!("expected {known}, found {found}"));
            }
        }
        let known = |key: &str| {
            matches!(key, "$schema" | "default-priorities" | "variants")
                || key == "providers" && read.schema == VariantSchema::Variantlib
        };
        for key in root.keys().filter(|key| !known(key)) {
            self.fault(&place_in("", key), "the form has no such key");
        }
        let (place, priorities) = ("default-priorities", root.get("default-priorities"));
        let mut namespaces = None;
        for (key, value) in self.object(place, priorities) {
            match key.as_str() {
                "namespace" => namespaces = Some(value),
                key => self.fault(&place_in(place, key), "the form has no such key"),
            }
        }
        let place = "default-priorities.namespace";
        for name in self.strings(place, namespaces) {
            if is_name(name) {
                read.namespaces.push(name.to_owned());
            } else {
                self.fault(place, format_args!("'{name}' is not the name of a namespace"));
            }
        }
        if read.schema == VariantSchema::Variantlib {
            read.providers = self.providers(root.get("providers"), &read.namespaces);
        }
        let known: BTreeSet<&str> = read.namespaces.iter().map(String::as_str).collect();
        for (label, namespaces) in self.object("variants", root.get("variants")) {
            let place = place_in("variants", label);
            if !is_label(label) {
                self.fault(
                    &place,
                    "not a label: it has other characters than a to z, digits, _ and .",
                );
            }
            let properties = self.properties(&place, namespaces);
            match (label == NULL, properties.is_empty()) {
                (true, false) => self.fault(&place, "the variant null has properties"),
                (false, true) => {
                    self.fault(&place, "no properties: only the variant null has none");
                }
                _ => {}
            }
            for name in properties.namespaces() {
                if !known.contains(name) {
                    self.fault(&place_in(&place, name), "default-priorities.namespace lacks it");
                }
            }
            read.variants.insert(label.clone(), properties);
        }
        read
    }

    /// Returns the plugins of `variantlib`'s form: one for each namespace, which is installed, built in, or replaced by a list.
    fn providers(&mut self, value: Option<&Value>, namespaces: &[String]) -> Map<String, Value> {
        let mut providers = Map::new();
        let mut missing: BTreeSet<&str> = namespaces.iter().map(String::as_str).collect();
        for (name, provider) in self.object("providers", value) {
            let place = place_in("providers", name);
            if !missing.remove(&**name) {
                self.fault(&place, "default-priorities.namespace lacks it");
            }
            let forms = ["requires", "static-properties", "builtin"];
            let given = forms.iter().filter(|form| provider.get(form).is_some()).count();
            if given != 1 {
                let forms = forms.join(", ");
                self.fault(&place, format_args!("expected one of {forms}, found {given}"));
            }
            providers.insert(name.clone(), provider.clone());
        }
        for name in missing {
            self.fault("providers", format_args!("lacks the namespace '{name}'"));
        }
        providers
    }

    fn properties(&mut self, place: &str, namespaces: &Value) -> VariantProperties {
        let mut properties = VariantProperties::default();
        for (namespace, features) in self.object(place, Some(namespaces)) {
            let place = place_in(place, namespace);
            for (feature, values) in self.object(&place, Some(features)) {
                let place = place_in(&place, feature);
                let values = self.strings(&place, Some(values));
                if !values.is_sorted() {
                    self.fault(&place, "the values are not sorted");
                }
                for value in values {
                    if let Err(error) = properties.add(namespace, feature, value) {
                        self.fault(&place, error);
                    }
                }
            }
        }
        properties
    }
}

/// Finds the keys that are there again in their object, each with the keys around it. Readers take either value.
struct Repeated<'f> {
    place: String,
    faults: &'f mut Reader,
}

impl<'de> DeserializeSeed<'de> for Repeated<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Repeated<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            let place = place_in(&self.place, &key);
            if !keys.insert(key) {
                self.faults.fault(&place, "the key is there twice: expected it once");
            }
            map.next_value_seed(Repeated { place, faults: &mut *self.faults })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Repeated { place, faults } = self;
        while let Some(()) =
            seq.next_element_seed(Repeated { place: place.clone(), faults: &mut *faults })?
        {
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

/// Returns the place of a key, shortened: keys may be as long as the file.
fn place_in(around: &str, key: &str) -> String {
    /// The most characters of a key.
    const MOST_OF_KEY: usize = 80;
    /// The most bytes of a place.
    const MOST_OF_PLACE: usize = 1000;
    if around.len() > MOST_OF_PLACE {
        return around.to_owned();
    }
    let short: String = key.chars().take(MOST_OF_KEY).collect();
    let dots = if short.len() < key.len() { "..." } else { "" };
    let dot = if around.is_empty() { "" } else { "." };
    format!("{around}{dot}{short}{dots}")
}

/// Returns the kind of a JSON value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
