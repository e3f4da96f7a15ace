//! Answers: rows with named fields.

use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use serde_json::Value;

use crate::text::{OffloadText, terminated};
use crate::{OffloadError, free, object};

/// The answer to a question: lists of rows with named fields.
#[derive(Debug)]
pub struct OffloadAnswers {
    lists: Value,
    json: OnceLock<String>,
}

impl OffloadAnswers {
    pub(crate) fn new(
        lists: impl Fn() -> serde_json::Result<Value>,
    ) -> Result<*mut Self, OffloadError> {
        let lists = lists().map_err(|error| OffloadError::internal(&error.to_string()))?;
        Ok(Box::into_raw(Box::new(OffloadAnswers { lists, json: OnceLock::new() })))
    }

    fn rows(&self, list: &str) -> &[Value] {
        self.lists.get(list).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
}

/// Returns a field of a row.
///
/// # Safety
///
/// `answers` is null, or from this library and not freed; `list` and `field` are null, or end with a zero.
unsafe fn field<'a>(
    answers: *const OffloadAnswers,
    list: *const c_char,
    row: usize,
    field: *const c_char,
) -> Option<&'a Value> {
    // SAFETY: as the caller promises.
    let (answers, list, field) =
        unsafe { (object(answers)?, terminated(list)?, terminated(field)?) };
    answers.rows(list).get(row)?.pointer(&format!("/{field}"))
}

/// Returns the number of rows in a list: `images`, `files`, `kernels`, `verdicts`, `answers` or `findings`. It is 0 for a list that
/// the answer does not have.
///
/// @param answers Answers of this library, not freed; NULL has no rows.
/// @param list The name of the list, ending with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn offload_count(
    answers: *const OffloadAnswers,
    list: *const c_char,
) -> usize {
    // SAFETY: as the caller promises.
    let found = unsafe { object(answers).zip(terminated(list)) };
    found.map_or(0, |(answers, list)| answers.rows(list).len())
}

/// Writes a field that is a text to `text`; returns false if the row has no such field, or it is not a text.
///
/// @param field The name of the field, ending with a zero: `target`. In a field that has fields or numbered values, names are
///   separated by a slash: `compression/method`, `path/0`.
/// @param text May be NULL. The text lives as long as the answers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn offload_text(
    answers: *const OffloadAnswers,
    list: *const c_char,
    row: usize,
    field: *const c_char,
    text: *mut OffloadText,
) -> bool {
    // SAFETY: as the caller promises.
    let found = unsafe { self::field(answers, list, row, field) }.and_then(Value::as_str);
    if let Some(found) = found.filter(|_| !text.is_null()) {
        // SAFETY: it is not null, and the caller may write it.
        unsafe { text.write(OffloadText::new(found)) };
    }
    found.is_some()
}

/// Writes a field that is a number to `number`; returns false if the row has no such field, or it is not a number that fits. Truth
/// values are 0 and 1.
///
/// @param field As for offload_text.
/// @param number May be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn offload_number(
    answers: *const OffloadAnswers,
    list: *const c_char,
    row: usize,
    field: *const c_char,
    number: *mut u64,
) -> bool {
    // SAFETY: as the caller promises.
    let value = unsafe { self::field(answers, list, row, field) };
    let found = value.and_then(|value| value.as_u64().or_else(|| value.as_bool().map(u64::from)));
    if let Some(found) = found.filter(|_| !number.is_null()) {
        // SAFETY: it is not null, and the caller may write it.
        unsafe { number.write(found) };
    }
    found.is_some()
}

/// Returns all lists as one JSON object: `{"images":[...],"files":[...],"findings":[...]}`. The text lives as long as the answers.
///
/// @param answers Answers of this library, not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn offload_json(answers: *const OffloadAnswers) -> OffloadText {
    // SAFETY: as the caller promises.
    let answers = unsafe { object(answers) };
    let json = |answers: &OffloadAnswers| {
        OffloadText::new(answers.json.get_or_init(|| answers.lists.to_string()))
    };
    catch_unwind(AssertUnwindSafe(|| answers.map(json)))
        .ok()
        .flatten()
        .unwrap_or(OffloadText::none())
}

/// Frees answers, and the texts of their rows.
///
/// @pre `answers` is NULL, or from this library and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn offload_answers_free(answers: *mut OffloadAnswers) {
    // SAFETY: as the caller promises.
    unsafe { free(answers) };
}
