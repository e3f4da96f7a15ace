//! Writing by `serde`. Types with a text form are strings there, too.
//!
//! By hand, because the derive macros would be one more thing to build, and the forms differ from the structs.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::kind::OffloadKind;
use crate::target::Target;
use crate::target_id::TargetId;
use crate::triple::Triple;

/// The text, as in files.
impl Serialize for OffloadKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The whole text, unchanged.
impl Serialize for Triple {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The canonical form.
impl Serialize for TargetId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// `kind`, `triple` and `target`, each a string as written or nothing: the fields of the same names in what
/// `offload ls --json` prints.
impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let id = Some(self.id()).filter(|id| !id.is_empty());
        let mut fields = serializer.serialize_struct("Target", 3)?;
        fields.serialize_field("kind", &self.kind())?;
        fields.serialize_field("triple", &self.triple())?;
        fields.serialize_field("target", &id)?;
        fields.end()
    }
}
