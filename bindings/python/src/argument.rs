//! Arguments of programs, and the errors about those of another type.

use std::num::NonZeroU32;
use std::path::PathBuf;

use device_select::{Device, Wanted};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};
use tool_answers::suggest;
use tool_inputs::limits::Limits;
use tool_inputs::native::{Found, Root};
use tool_kit::parallel::Threads;

use crate::fault::not_a_gpu;
use crate::source;

/// The words for a GPU.
const GPU: &str = "a text such as 'gfx90a', 'sm_86', 'RX 7600' or 'native'";

/// Returns the error about an argument of another type.
pub(crate) fn unexpected(name: &str, expected: &str, found: &Bound<'_, PyAny>) -> PyErr {
    let kind = found.get_type().name().map_or_else(|_| "?".to_owned(), |kind| kind.to_string());
    PyTypeError::new_err(format!("{name}: expected {expected}, found {kind}"))
}

fn text(name: &str, expected: &str, argument: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = argument.cast::<PyString>().map_err(|_| unexpected(name, expected, argument))?;
    Ok(text.to_string_lossy().into_owned())
}

/// Returns the path of a file.
pub(crate) fn path(name: &str, argument: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let path = argument.extract::<PathBuf>();
    let path = path.map_err(|_| unexpected(name, "the path of a file", argument))?;
    source::check(name, &path)?;
    Ok(path)
}

/// Reads the word for what becomes of errors; returns whether they are raised.
pub(crate) fn raises(
    argument: Option<&Bound<'_, PyAny>>,
    default: bool,
    other: &str,
) -> PyResult<bool> {
    let Some(argument) = argument else { return Ok(default) };
    let expected = format!("'raise' or '{other}'");
    match &*text("on_error", &expected, argument)? {
        "raise" => Ok(true),
        word if word == other => Ok(false),
        word => {
            Err(PyValueError::new_err(format!("on_error: expected {expected}, found '{word}'")))
        }
    }
}

/// Returns bounds with this number of threads.
pub(crate) fn limits(argument: Option<&Bound<'_, PyAny>>) -> PyResult<Limits> {
    let Some(argument) = argument else { return Ok(Limits::default()) };
    let threads = argument.extract::<u32>().ok().and_then(NonZeroU32::new);
    let threads = threads.ok_or_else(|| {
        let is_number = argument.cast::<PyInt>().is_ok() || argument.extract::<u32>().is_ok();
        if !is_number {
            return unexpected("threads", "a number", argument);
        }
        let most = u32::MAX;
        PyValueError::new_err(format!("threads: expected 1 to {most}, found {argument}"))
    })?;
    Ok(Limits::with_threads(Threads::of(threads)))
}

/// Returns the GPU that a question is about, and the machine that has it if it is `native`.
pub(crate) fn gpu(argument: &Bound<'_, PyAny>) -> PyResult<(Device, Option<Found>)> {
    let (py, typed) = (argument.py(), text("gpu", GPU, argument)?);
    let Some(found) = native(py, &typed)? else {
        let gpu = suggest::gpu(&typed).map_err(|text| not_a_gpu(py, &text))?;
        return Ok((gpu, None));
    };
    let devices = found.devices().map_err(|reason| not_a_gpu(py, &reason.to_string()))?;
    match &devices[..] {
        [device] => Ok((device.clone(), Some(found))),
        _ => {
            let text = format!("{}: expected one GPU: name one of these", found.described);
            Err(not_a_gpu(py, &text))
        }
    }
}

/// Returns the targets that an argument names: several if it is `native`.
pub(crate) fn wanted(name: &str, argument: &Bound<'_, PyAny>) -> PyResult<Vec<Wanted>> {
    let (py, typed) = (argument.py(), text(name, GPU, argument)?);
    let known = |id: &str| suggest::known(id).map_err(|text| not_a_gpu(py, &text));
    match native(py, &typed)? {
        Some(found) => found.ids.iter().map(|id| known(id)).collect(),
        None => Ok(vec![known(&typed)?]),
    }
}

/// Returns the targets of a list.
pub(crate) fn all_wanted(name: &str, argument: &Bound<'_, PyAny>) -> PyResult<Vec<Wanted>> {
    let refused = |_| unexpected(name, "a list of GPUs, such as ['gfx90a']", argument);
    if argument.cast::<PyString>().is_ok() {
        return Err(refused(()));
    }
    let all = argument.try_iter().map_err(|_| refused(()))?;
    let all: Vec<Vec<Wanted>> = all.map(|one| wanted(name, &one?)).collect::<PyResult<_>>()?;
    Ok(all.into_iter().flatten().collect())
}

/// Returns the machine that a text names, as the tools read `native`.
fn native(py: Python<'_>, typed: &str) -> PyResult<Option<Found>> {
    let Some(machine) = Root::named(typed) else { return Ok(None) };
    // It may run programs of the drivers.
    let found = py.detach(|| machine.found(typed));
    found.map(Some).map_err(|why| not_a_gpu(py, &format!("{typed}: {why}")))
}
