//! The files that programs name: paths, bytes, open files.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};
use tool_inputs::inputs::Inputs;
use tool_inputs::online::{Network, name_of_url};
use tool_kit::opened::{Contents, Opened};
use tool_kit::remote::is_url;
use tool_kit::scratch;

use crate::argument::unexpected;

/// A file, a package or a directory.
#[derive(Debug)]
pub(crate) struct Source {
    /// The path; without one the name.
    pub(crate) path: PathBuf,
    place: Place,
    /// The name that the program gave.
    pub(crate) name: String,
}

/// The way to a source.
#[derive(Debug)]
enum Place {
    /// Its path.
    Path,
    /// The URL; its query may be a secret, and is not in the name.
    Url(String),
    /// Bytes of Python, or a copy of what an open file has. The copy has no name, so it goes with the process.
    Contents(Contents),
}

/// The types of sources, in words.
const KINDS: &str = "a path, a URL, bytes or a binary file";

/// The contents of temporary files here.
const COPY: &str = "a copy of the open file";

/// Bytes that are read from an open file at once.
const CHUNK: usize = 1 << 20;

impl Source {
    /// Returns the source that an argument of this name is: `str`, `os.PathLike`, `bytes`, or an open binary file.
    pub(crate) fn of(name: &str, argument: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        if let Ok(text) = argument.cast::<PyString>() {
            let text = text.to_string_lossy();
            if is_url(Path::new(&*text)) {
                return Ok(Self::of_url(&text));
            }
        }
        if let Ok(bytes) = argument.cast::<PyBytes>() {
            return Ok(Self::of_bytes(bytes.clone()));
        }
        if argument.cast::<PyByteArray>().is_ok() || argument.cast::<PyMemoryView>().is_ok() {
            // Their bytes may change.
            let bytes = argument.py().get_type::<PyBytes>().call1((argument,))?;
            return Ok(Self::of_bytes(bytes.cast_into()?));
        }
        if let Ok(path) = argument.extract::<PathBuf>() {
            return Self::of_path(name, path);
        }
        if argument.hasattr("read")? {
            return Self::of_file(name, argument);
        }
        Err(unexpected(name, KINDS, argument))
    }

    fn of_path(argument: &str, path: PathBuf) -> PyResult<Arc<Self>> {
        check(argument, &path)?;
        let name = path.display().to_string();
        // The tools read standard input under this name.
        let path = if path == Path::new("-") { Path::new(".").join(path) } else { path };
        Ok(Arc::new(Source { path, place: Place::Path, name }))
    }

    /// Returns the source at a URL. Nothing is asked for yet.
    fn of_url(url: &str) -> Arc<Self> {
        let path = name_of_url(url);
        let (name, place) = (path.display().to_string(), Place::Url(url.to_owned()));
        Arc::new(Source { path, place, name })
    }

    /// Holds a reference to the bytes.
    fn of_bytes(bytes: Bound<'_, PyBytes>) -> Arc<Self> {
        let bytes = Contents::Bytes(Arc::new(PyBackedBytes::from(bytes)));
        Self::of_contents(bytes, "<bytes>".to_owned())
    }

    /// Copies an open file from its start, or from where it is if it has none.
    fn of_file(argument: &str, file: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        let mut copy = scratch::file(COPY)?;
        if file.call_method0("seekable").is_ok_and(|is| is.is_truthy().unwrap_or(false)) {
            file.call_method1("seek", (0,))?;
        }
        loop {
            let piece = file.call_method1("read", (CHUNK,))?;
            let Ok(bytes) = piece.cast::<PyBytes>() else {
                let expected = "a file that is open in binary mode, whose read() returns bytes";
                return Err(unexpected(argument, expected, &piece));
            };
            match bytes.as_bytes() {
                [] => break,
                bytes => copy.write_all(bytes).map_err(|error| scratch::copying(COPY, error))?,
            }
        }
        let name = file.getattr("name").and_then(|name| name.extract::<String>());
        let name = name.unwrap_or_else(|_| "<file>".to_owned());
        Ok(Self::of_contents(Contents::File(Arc::new(copy)), name))
    }

    fn of_contents(contents: Contents, name: String) -> Arc<Self> {
        let (path, place) = (PathBuf::from(&name), Place::Contents(contents));
        Arc::new(Source { path, place, name })
    }

    /// Returns the name without directories. URLs escape characters of versions.
    pub(crate) fn file_name(&self) -> Option<String> {
        let path = if self.is_url() {
            self.name.split('?').next().unwrap_or_default()
        } else {
            &self.name
        };
        let name = Path::new(path).file_name()?.to_string_lossy();
        if self.is_url() {
            return Some(name.replace("%2B", "+").replace("%2b", "+").replace("%21", "!"));
        }
        Some(name.into_owned())
    }

    /// Returns whether it is on a server.
    pub(crate) fn is_url(&self) -> bool {
        matches!(self.place, Place::Url(_))
    }

    /// Returns whether it is a file or a directory of the system.
    pub(crate) fn has_path(&self) -> bool {
        matches!(self.place, Place::Path)
    }

    /// Returns the inputs that it is.
    pub(crate) fn inputs(&self) -> Inputs {
        self.inputs_again(None)
    }

    /// Returns the input that was found by `argument`: a path, or the member of a package that has none.
    pub(crate) fn inputs_again(&self, argument: Option<&Path>) -> Inputs {
        let member = argument.and_then(Path::to_str);
        match &self.place {
            Place::Path => Inputs::find(&[argument.unwrap_or(&self.path).to_owned()]),
            Place::Url(url) => Inputs::on_server(url, member, Network::default()),
            Place::Contents(contents) => Inputs::of_program(&self.name, member, contents.clone()),
        }
    }

    /// Opens the file; `None` for a directory or a URL, and for what cannot be opened.
    pub(crate) fn open(&self) -> Option<Opened> {
        match &self.place {
            Place::Path => Opened::regular(&self.path).ok(),
            Place::Url(_) => None,
            Place::Contents(contents) => Opened::of_contents(contents).ok(),
        }
    }
}

/// Fails for a text that cannot be a path. `argument` is its name.
pub(crate) fn check(argument: &str, path: &Path) -> PyResult<()> {
    let found = match path.as_os_str().as_encoded_bytes() {
        [] => "an empty text",
        bytes if bytes.contains(&0) => "a text with a null byte",
        _ => return Ok(()),
    };
    Err(PyValueError::new_err(format!("{argument}: expected a path, found {found}")))
}
