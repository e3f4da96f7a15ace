//! Values that cargo prints, by their JSON pointers: `/metadata/house`.

use serde_json::Value;

use crate::process::{Result, Stop};

/// Reads what a command printed.
pub(crate) fn parse(what: &str, text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| Stop::Wrong(format!("{what}: {error}")))
}

/// Returns a text, empty if it is missing.
pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the items of a list.
pub(crate) fn items<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// Returns the items of a list of texts.
pub(crate) fn texts(value: &Value, pointer: &str) -> Vec<String> {
    items(value, pointer).map(|item| text(item, "").to_owned()).collect()
}

/// Returns the names of the members of an object.
pub(crate) fn keys(value: &Value, pointer: &str) -> Vec<String> {
    value
        .pointer(pointer)
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|all| all.keys().cloned())
        .collect()
}

/// Returns true if there is nothing.
pub(crate) fn is_null(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer).is_none_or(Value::is_null)
}
