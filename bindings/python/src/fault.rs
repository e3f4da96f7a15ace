//! Findings, and the exceptions that they become.

use std::fmt::Display;
use std::fs::File;
use std::io;
use std::path::Path;

use fat_object::Severity;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use tool_inputs::complaint::Complaint;
use tool_kit::finding::{self, Level};
use tool_kit::remote::is_url;
use tool_kit::report::{self, Collected, Message};

/// Something that was found in a file. ``offload explain CODE`` explains its code.
#[pyclass(frozen, get_all, eq, module = "offload")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    /// `error`, `warning` or `note`.
    pub(crate) level: &'static str,
    /// The code: ``verify/malformed``.
    pub(crate) code: String,
    /// The file, or the member of a package, as messages name it.
    pub(crate) file: String,
    /// The offset in the file in bytes, of the container concerned, if it is known.
    pub(crate) offset: Option<u64>,
    /// One sentence.
    pub(crate) message: String,
    /// The number of the system's error, if it is one.
    pub(crate) errno: Option<i32>,
}

#[pymethods]
impl Finding {
    fn __repr__(&self) -> String {
        format!("<Finding {} {}: {}: {}>", self.level, self.code, self.file, self.message)
    }
}

impl Finding {
    /// Creates an error.
    pub(crate) fn error(code: &str, file: &str, message: impl Display) -> Self {
        let (code, file, message) = (code.to_owned(), file.to_owned(), message.to_string());
        let level = Level::Error.as_str();
        Finding { level, code, file, offset: None, message, errno: None }
    }

    /// Returns it as a note.
    pub(crate) fn into_note(self) -> Self {
        Finding { level: Level::Note.as_str(), ..self }
    }

    /// Creates the error about a file that cannot be read or written.
    pub(crate) fn of_io(file: &str, error: &io::Error) -> Self {
        let errno = error.raw_os_error();
        Finding { errno, ..Finding::error("file/error", file, report::reason(error)) }
    }

    /// Adds the number of the system's error, if it is what keeps the file from being opened.
    pub(crate) fn with_errno(self) -> Self {
        if self.code != "file/error" || self.errno.is_some() {
            return self;
        }
        let tries = [File::open(&self.file), File::options().write(true).open(&self.file)];
        let errors = tries.into_iter().filter_map(Result::err);
        let mut same = errors.filter(|error| report::reason(error) == self.message);
        Finding { errno: same.find_map(|error| error.raw_os_error()), ..self }
    }

    /// Creates a finding of a message. One that was not collected with its file names it first, if it is `source` or a part of it.
    pub(crate) fn of_message(source: &str, collected: Collected) -> Self {
        let Collected { file, code, message } = collected;
        let (level, text) = match message {
            Message::Error(text) => (Level::Error, text),
            Message::Warning(text) => (Level::Warning, text),
            Message::Note(text) => (Level::Note, text),
        };
        let named = || {
            let (member, message) = text.strip_prefix(source)?.split_once(": ")?;
            Some((format!("{source}{member}"), message.to_owned()))
        };
        let (file, message) = match file {
            Some(file) => (file, text),
            None => named().unwrap_or_else(|| (String::new(), text.clone())),
        };
        Finding { level: level.as_str(), ..Finding::error(code, &file, message) }
    }

    /// Returns whether it is a file of a format that is not read.
    pub(crate) fn is_unread(&self) -> bool {
        self.code == "file/unknown"
    }

    /// Returns whether it is an error.
    pub(crate) fn is_error(&self) -> bool {
        self.level == Level::Error.as_str()
    }

    /// Returns the exception that it is.
    pub(crate) fn to_exception(&self, py: Python<'_>) -> PyErr {
        if let Some(errno) = self.errno {
            return PyOSError::new_err((errno, self.message.clone(), self.file.clone()));
        }
        let name = match &*self.code {
            "file/unknown" => "NotReadError",
            "edit/refused" | "targets/nothing" => "RefusedError",
            "file/error" if is_url(Path::new(&self.file)) => "UrlError",
            "internal" => "InternalError",
            code if code.starts_with("verify/") => "DamagedError",
            _ => "OffloadError",
        };
        let Finding { message, file, offset, code, .. } = self;
        let file = Some(file).filter(|file| !file.is_empty());
        exception(py, name, (message.as_str(), file, *offset, code.as_str()))
    }
}

/// Returns an exception of `offload._errors`, with message, file, offset, and code.
fn exception(
    py: Python<'_>,
    name: &str,
    arguments: (&str, Option<&String>, Option<u64>, &str),
) -> PyErr {
    let make = || py.import("offload._errors")?.getattr(name)?.call1(arguments);
    match make() {
        Ok(made) => PyErr::from_value(made),
        Err(error) => error,
    }
}

/// Returns the exception about text that names no GPU.
pub(crate) fn not_a_gpu(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "UnknownGpuError", (message, None, None, "gpu"))
}

/// Returns the exception about something that this module did wrong.
pub(crate) fn internal(error: &dyn Display) -> PyErr {
    Python::attach(|py| Finding::error("internal", "", error).to_exception(py))
}

impl From<Complaint> for Finding {
    fn from(complaint: Complaint) -> Self {
        let level = match complaint.severity {
            Severity::Warning => Level::Warning,
            Severity::Error => Level::Error,
        };
        let Complaint { code, file, offset, text, .. } = complaint;
        Finding { level: level.as_str(), offset, ..Finding::error(code, &file, text) }
    }
}

impl From<finding::Finding> for Finding {
    fn from(found: finding::Finding) -> Self {
        let finding::Finding { code, level, file, message, .. } = found;
        Finding { level: level.as_str(), ..Finding::error(code, &file, message) }
    }
}
