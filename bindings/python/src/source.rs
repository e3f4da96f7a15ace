//! The files that programs name: paths, bytes, open files.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};
use tempfile::NamedTempFile;
use tool_inputs::inputs::Inputs;
use tool_inputs::online::{Network, name_of_url};
use tool_kit::remote::is_url;

use crate::fault::Finding;

/// A file, a package or a directory.
#[derive(Debug)]
pub(crate) struct Source {
    /// The path of the file, or of a copy; of a URL its name.
    pub(crate) path: PathBuf,
    /// The URL; its query may be a secret, and is not in the name.
    url: Option<String>,
    /// The name that the program gave.
    pub(crate) name: String,
    /// The copy of what has no path. It goes when this is dropped.
    copy: Option<NamedTempFile>,
    /// The process that made it.
    process: u32,
}

impl Drop for Source {
    fn drop(&mut self) {
        // A copy belongs to the process before a fork.
        if let Some(copy) = self.copy.take().filter(|_| self.process != process::id()) {
            let _ = copy.keep();
        }
    }
}

/// Bytes that are read from an open file at once.
const CHUNK: usize = 1 << 20;

impl Source {
    /// Returns the source that an argument is: `str`, `os.PathLike`, `bytes`, or an open binary file.
    pub(crate) fn of(argument: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        if let Ok(text) = argument.cast::<PyString>() {
            let text = text.to_string_lossy();
            if is_url(Path::new(&*text)) {
                return Ok(Self::of_url(&text));
            }
        }
        if argument.cast::<PyBytes>().is_ok() {
            return Self::of_bytes(argument.extract::<&[u8]>()?);
        }
        if argument.cast::<PyByteArray>().is_ok() || argument.cast::<PyMemoryView>().is_ok() {
            let bytes = argument.py().get_type::<PyBytes>().call1((argument,))?;
            return Self::of_bytes(bytes.extract::<&[u8]>()?);
        }
        if let Ok(path) = argument.extract::<PathBuf>() {
            return Self::of_path(path);
        }
        if argument.hasattr("read")? {
            return Self::of_file(argument);
        }
        let kind = argument.get_type().name()?.to_string();
        let text = format!("expected a path, a URL, bytes or a binary file, found {kind}");
        Err(PyTypeError::new_err(text))
    }

    fn of_path(path: PathBuf) -> PyResult<Arc<Self>> {
        check(&path)?;
        let name = path.display().to_string();
        // The tools read standard input under this name.
        let path = if path == Path::new("-") { Path::new(".").join(path) } else { path };
        Ok(Arc::new(Source { path, url: None, name, copy: None, process: process::id() }))
    }

    /// Returns the source at a URL. Nothing is asked for yet.
    fn of_url(url: &str) -> Arc<Self> {
        let path = name_of_url(url);
        let (name, url) = (path.display().to_string(), Some(url.to_owned()));
        Arc::new(Source { path, url, name, copy: None, process: process::id() })
    }

    fn of_bytes(bytes: &[u8]) -> PyResult<Arc<Self>> {
        let mut copy = NamedTempFile::new()?;
        copy.write_all(bytes)?;
        Ok(Self::of_copy(copy, "<bytes>".to_owned()))
    }

    /// Copies an open file from its start, or from where it is if it has none.
    fn of_file(file: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        let mut copy = NamedTempFile::new()?;
        if file.call_method0("seekable").is_ok_and(|is| is.is_truthy().unwrap_or(false)) {
            file.call_method1("seek", (0,))?;
        }
        loop {
            let piece = file.call_method1("read", (CHUNK,))?;
            let Ok(piece) = piece.cast::<PyBytes>() else {
                return Err(PyTypeError::new_err("expected a file that is open in binary mode"));
            };
            match piece.as_bytes() {
                [] => break,
                bytes => copy.write_all(bytes)?,
            }
        }
        let name = file.getattr("name").and_then(|name| name.extract::<String>());
        Ok(Self::of_copy(copy, name.unwrap_or_else(|_| "<file>".to_owned())))
    }

    fn of_copy(copy: NamedTempFile, name: String) -> Arc<Self> {
        Arc::new(Source {
            path: copy.path().to_owned(),
            url: None,
            name,
            copy: Some(copy),
            process: process::id(),
        })
    }

    /// Returns a text in which a copy has the name that the program gave.
    pub(crate) fn shown(&self, text: &str) -> String {
        match self.copy {
            Some(_) => text.replace(&self.path.display().to_string(), &self.name),
            None => text.to_owned(),
        }
    }

    /// Returns the same finding, in which a copy has the name that the program gave.
    pub(crate) fn finding(&self, finding: Finding) -> Finding {
        let (file, message) = (self.shown(&finding.file), self.shown(&finding.message));
        Finding { file, message, ..finding }
    }

    /// Returns the name without directories. URLs escape characters of versions.
    pub(crate) fn file_name(&self) -> Option<String> {
        let path = match self.url {
            Some(_) => self.name.split('?').next().unwrap_or_default(),
            None => &self.name,
        };
        let name = Path::new(path).file_name()?.to_string_lossy();
        if self.is_url() {
            return Some(name.replace("%2B", "+").replace("%2b", "+").replace("%21", "!"));
        }
        Some(name.into_owned())
    }

    /// Returns whether it is on a server.
    pub(crate) fn is_url(&self) -> bool {
        self.url.is_some()
    }

    /// Returns the inputs that it is.
    pub(crate) fn inputs(&self) -> Inputs {
        self.inputs_again(None)
    }

    /// Returns the input that was found by `argument`: a path, or the member of a package on a server.
    pub(crate) fn inputs_again(&self, argument: Option<&Path>) -> Inputs {
        let Some(url) = &self.url else {
            return Inputs::find(&[argument.unwrap_or(&self.path).to_owned()]);
        };
        Inputs::on_server(url, argument.and_then(Path::to_str), Network::default())
    }

    /// Opens the file; `None` for a directory or a URL, and for what cannot be opened.
    pub(crate) fn open(&self) -> Option<File> {
        if self.is_url() {
            return None;
        }
        let file = File::open(&self.path).ok()?;
        file.metadata().is_ok_and(|it| it.is_file()).then_some(file)
    }
}

/// Fails for a text that cannot be a path.
pub(crate) fn check(path: &Path) -> PyResult<()> {
    let fault = match path.as_os_str().as_encoded_bytes() {
        [] => "expected a path, found an empty text",
        bytes if bytes.contains(&0) => "expected a path, found a text with a null byte",
        _ => return Ok(()),
    };
    Err(PyValueError::new_err(fault))
}
