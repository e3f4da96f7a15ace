//! A list of conda's: `conda-meta/NAME.json`.

use std::collections::HashMap;
use std::io;
use std::ops::Range;

use gpu_packages::{Algorithm, Hash};
use serde_json::Value;

/// The text, and the files that it lists.
#[derive(Debug)]
pub(super) struct CondaList {
    text: String,
    files: HashMap<String, Listed>,
}

#[derive(Debug)]
struct Listed {
    hash: Option<String>,
    size: Option<u64>,
}

impl CondaList {
    pub(super) fn parse(text: Vec<u8>) -> io::Result<Self> {
        let text = String::from_utf8(text).map_err(io::Error::other)?;
        let list: Value = serde_json::from_str(&text)?;
        let files = list.pointer("/paths_data/paths").and_then(Value::as_array);
        let files = files.into_iter().flatten().filter_map(|file| {
            let hash = file.get("sha256_in_prefix").and_then(Value::as_str);
            let size = file.get("size_in_bytes").and_then(Value::as_u64);
            let listed = Listed { hash: hash.map(str::to_owned), size };
            Some((file.get("_path")?.as_str()?.to_owned(), listed))
        });
        let files = files.collect();
        Ok(CondaList { text, files })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the paths of all files.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    fn listed(&self, path: &[u8]) -> Option<(&str, &Listed)> {
        let (path, listed) = self.files.get_key_value(std::str::from_utf8(path).ok()?)?;
        Some((path, listed))
    }

    /// Returns how a file differs from its entry, if it does.
    pub(super) fn fault(&self, path: &[u8], size: u64, hash: Option<&Hash>) -> Option<String> {
        let (_, listed) = self.listed(path)?;
        if let Some(recorded) = listed.size.filter(|&recorded| recorded != size) {
            return Some(format!("has the size {recorded}, found {size}"));
        }
        let recorded = listed.hash.as_deref()?;
        match (Hash::from_hex(Algorithm::Sha256, recorded), hash) {
            (None, _) => Some(format!("has a hash that cannot be read: '{recorded}'")),
            (Some(expected), Some(found)) if expected != *found => {
                Some(format!("has the hash {recorded}, found {}", found.to_hex()))
            }
            _ => None,
        }
    }

    /// Replaces size and hash of a file. The rest of the text keeps its bytes.
    pub(super) fn replace(&mut self, path: &[u8], size: u64, hash: &Hash) -> io::Result<()> {
        let Some((path, listed)) = self.listed(path) else { return Ok(()) };
        let quoted = serde_json::to_string(path)?;
        let Some(object) = object_around(&self.text, &format!("\"_path\": {quoted}")) else {
            return Err(io::Error::other(format!("no entry of {quoted} in the usual form")));
        };
        let mut new = self.text.get(object.clone()).unwrap_or_default().to_owned();
        if let Some(old) = &listed.hash {
            let place = "\"sha256_in_prefix\": ";
            let (old, hash) =
                (format!("{place}\"{old}\""), format!("{place}\"{}\"", hash.to_hex()));
            new = new.replacen(&old, &hash, 1);
        }
        if let Some(old) = listed.size {
            let place = "\"size_in_bytes\": ";
            new = new.replacen(&format!("{place}{old}"), &format!("{place}{size}"), 1);
        }
        self.text.replace_range(object, &new);
        Ok(())
    }
}

/// Returns the range of the innermost object of JSON around this text, which has no objects in it.
fn object_around(json: &str, text: &str) -> Option<Range<usize>> {
    let at = json.find(text)?;
    let start = json.get(..at)?.rfind('{')?;
    let end = at + json.get(at..)?.find('}')? + 1;
    Some(start..end)
}
