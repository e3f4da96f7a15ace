//! The files that programs name: paths, URLs, bytes, open files.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process;
use std::slice;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};
use tempfile::NamedTempFile;
use tool_inputs::inputs::Inputs;
use tool_inputs::online::Network;
use tool_kit::remote::is_url;
use tool_network::Url;

use crate::fault::Finding;
use crate::look::place_in;

/// A file, a package or a directory.
#[derive(Debug)]
pub(crate) struct Source {
    /// The path of the file, or of a copy; the URL of a file on a server.
    pub(crate) path: PathBuf,
    /// The name that the program gave; a URL without its query, which may be a secret.
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
                return Self::of_url(argument.py(), &text);
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
        Ok(Arc::new(Source { path, name, copy: None, process: process::id() }))
    }

    /// Returns the source at a URL. Nothing is asked for yet.
    fn of_url(py: Python<'_>, url: &str) -> PyResult<Arc<Self>> {
        let shown = Url::parse(url)
            .map_err(|text| Finding::error("file/url", "", text).to_exception(py))?;
        let (path, name) = (PathBuf::from(url), shown.to_string());
        Ok(Arc::new(Source { path, name, copy: None, process: process::id() }))
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
            name,
            copy: Some(copy),
            process: process::id(),
        })
    }

    /// Returns whether it is on a server.
    pub(crate) fn is_url(&self) -> bool {
        is_url(&self.path)
    }

    /// Returns the files that it names.
    pub(crate) fn inputs(&self) -> Inputs {
        Inputs::find_online(slice::from_ref(&self.path), Network::default())
    }

    /// Returns the place of a file in it: a path in a directory, or a member of a package; `None` for the source itself.
    pub(crate) fn place_of<'n>(&self, name: &'n str) -> Option<&'n str> {
        place_in(if self.is_url() { Path::new(&self.name) } else { &self.path }, name)
    }

    /// Returns a text in which a copy has the name that the program gave.
    pub(crate) fn shown(&self, text: &str) -> String {
        match self.copy {
            Some(_) => text.replace(&self.path.display().to_string(), &self.name),
            None => text.to_owned(),
        }
    }

    /// Returns the same finding, in which a copy has the name that the program gave. An error of a server has a code of its own.
    pub(crate) fn finding(&self, mut finding: Finding) -> Finding {
        if self.is_url() && finding.code == "file/error" {
            finding = Finding { code: "file/url".into(), errno: None, ..finding };
        }
        let (file, message) = (self.shown(&finding.file), self.shown(&finding.message));
        Finding { file, message, ..finding }
    }

    /// Opens the file; `None` for a directory, and for what cannot be opened.
    pub(crate) fn open(&self) -> Option<File> {
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
