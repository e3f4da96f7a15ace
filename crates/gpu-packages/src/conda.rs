//! Rows of conda's lists of files: `paths.json` in packages, `conda-meta/NAME.json` in environments.

use serde_json::Value;

use crate::hash::{Algorithm, Hash};

/// A file that is listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct CondaRow {
    pub(crate) path: String,
    pub(crate) size: Option<u64>,
    pub(crate) hash: Option<String>,
}

impl CondaRow {
    /// Reads a row whose hash is in this field; `None` if it lacks a path.
    pub(crate) fn of(row: &Value, hash: &str) -> Option<Self> {
        let text = |key: &str| row.get(key).and_then(Value::as_str).map(str::to_owned);
        let size = row.get("size_in_bytes").and_then(Value::as_u64);
        Some(CondaRow { path: text("_path")?, size, hash: text(hash) })
    }

    /// Returns how the size of a file differs, if it does.
    pub(crate) fn size_fault(&self, size: u64) -> Option<String> {
        let recorded = self.size.filter(|&recorded| recorded != size)?;
        Some(format!("has the size {recorded}, found {size}"))
    }

    /// Returns how a file differs, if it does. Without a hash only sizes are compared.
    pub(crate) fn fault(&self, size: u64, hash: Option<&Hash>) -> Option<String> {
        if let Some(fault) = self.size_fault(size) {
            return Some(fault);
        }
        let recorded = self.hash.as_deref()?;
        match (Hash::from_hex(Algorithm::Sha256, recorded), hash) {
            (None, _) => Some(format!("has a hash that cannot be read: '{recorded}'")),
            (Some(expected), Some(found)) if expected != *found => {
                Some(format!("has the hash {recorded}, found {}", found.to_hex()))
            }
            _ => None,
        }
    }
}
