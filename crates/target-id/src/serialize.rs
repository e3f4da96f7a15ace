//! Reading and writing by `serde`. What is text is a string there, too.
//!
//! By hand, because the derive macros would be one more thing to build, and the forms are not those of the structs.

use alloc::string::String;
use core::fmt::{self, Display};
use core::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::feature::{Feature, Features, Setting};
use crate::intel::IntelGpu;
use crate::kind::OffloadKind;
use crate::nvidia::NvidiaArch;
use crate::processor::Processor;
use crate::target::Target;
use crate::target_id::TargetId;
use crate::triple::Triple;
use crate::verdict::Verdict;

/// Reads a string: what is expected, and what makes a value of it or says why not.
struct Text<F>(&'static str, F);

impl<T, E: Display, F: FnOnce(&str) -> Result<T, E>> Visitor<'_> for Text<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<D: serde::de::Error>(self, text: &str) -> Result<T, D> {
        (self.1)(text).map_err(D::custom)
    }
}

/// The text, as in files. Every string is one.
impl Serialize for OffloadKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for OffloadKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text("an offload kind", Self::from_str))
    }
}

/// The whole text, unchanged. Every string is one.
impl Serialize for Triple {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Triple {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text("a target triple", Self::from_str))
    }
}

/// The name. Every string is one.
impl Serialize for Feature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Feature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text("the name of a target feature", Self::from_str))
    }
}

/// A sequence of names in alphabetical order. Only the known ones can be read.
impl Serialize for Features {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Features {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;

        impl<'de> Visitor<'de> for Names {
            type Value = Features;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("names of target features")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<Features, A::Error> {
                let mut features = Features::NONE;
                while let Some(feature) = names.next_element::<Feature>()? {
                    if feature.flag().is_empty() {
                        let expected = &["sramecc", "xnack"];
                        return Err(A::Error::unknown_variant(feature.as_str(), expected));
                    }
                    features = features.union(feature.flag());
                }
                Ok(features)
            }
        }

        deserializer.deserialize_seq(Names)
    }
}

/// `on` or `off`.
impl Serialize for Setting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text("\"on\" or \"off\"", Self::from_str))
    }
}

/// The canonical form; read as [`TargetId::parse`] does.
impl Serialize for TargetId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TargetId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text("a target ID", Self::from_str))
    }
}

/// The name; read as [`IntelGpu::find`] does.
impl Serialize for IntelGpu {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for IntelGpu {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text("a GPU of Intel's", Self::from_str))
    }
}

/// The name; read as [`NvidiaArch::parse`] does.
impl Serialize for NvidiaArch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for NvidiaArch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text("an NVIDIA architecture", Self::from_str))
    }
}

/// The primary name; read by any of its names, one that [`Processor::amdgpu`] does not know is an error.
impl Serialize for Processor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Processor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text("the name of an AMD GPU processor", Self::from_str))
    }
}

const TARGET_FIELDS: &[&str] = &["kind", "triple", "target"];

/// `kind`, `triple` and `target`, each a string as written or nothing: the fields of the same names in what
/// `offload ls --json` prints. Fields may be absent when it is read.
impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let id = Some(self.id()).filter(|id| !id.is_empty());
        let mut fields = serializer.serialize_struct("Target", TARGET_FIELDS.len())?;
        fields.serialize_field("kind", &self.kind())?;
        fields.serialize_field("triple", &self.triple())?;
        fields.serialize_field("target", &id)?;
        fields.end()
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        fn target(kind: Option<OffloadKind>, triple: Option<Triple>, id: Option<String>) -> Target {
            Target::new(kind, triple, &id.unwrap_or_default())
        }

        impl<'de> Visitor<'de> for Fields {
            type Value = Target;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a target with the fields kind, triple and target")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<Target, A::Error> {
                let short = |len| A::Error::invalid_length(len, &self);
                let kind = fields.next_element()?.ok_or_else(|| short(0))?;
                let triple = fields.next_element()?.ok_or_else(|| short(1))?;
                let id = fields.next_element()?.ok_or_else(|| short(2))?;
                Ok(target(kind, triple, id))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Target, A::Error> {
                let (mut kind, mut triple, mut id) = (None, None, None);
                while let Some(name) = fields.next_key::<String>()? {
                    match &*name {
                        "kind" => once(&mut kind, "kind", &mut fields)?,
                        "triple" => once(&mut triple, "triple", &mut fields)?,
                        "target" => once(&mut id, "target", &mut fields)?,
                        _ => drop(fields.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(target(kind.flatten(), triple.flatten(), id.flatten()))
            }
        }

        deserializer.deserialize_struct("Target", TARGET_FIELDS, Fields)
    }
}

/// Reads a field, unless it has been there before.
fn once<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    field: &mut Option<T>,
    name: &'static str,
    fields: &mut A,
) -> Result<(), A::Error> {
    match field.replace(fields.next_value()?) {
        None => Ok(()),
        Some(_) => Err(A::Error::duplicate_field(name)),
    }
}

/// `compatible`, `strict` and `reason`, the text. Nothing reads it: it is an answer.
impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Verdict", 3)?;
        fields.serialize_field("compatible", &self.is_compatible())?;
        fields.serialize_field("strict", &self.is_strict())?;
        fields.serialize_field("reason", &format_args!("{self}"))?;
        fields.end()
    }
}
