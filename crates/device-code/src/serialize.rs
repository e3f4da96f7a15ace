use serde::ser::{Serialize, Serializer};

use crate::format::FileFormat;

/// The name used in machine-readable output; nothing for what was not read.
impl Serialize for FileFormat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            FileFormat::NotRead => serializer.serialize_none(),
            format => serializer.serialize_str(format.as_str()),
        }
    }
}
