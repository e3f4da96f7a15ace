//! `offload.images`.

use std::collections::VecDeque;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use device_select::Vendor;
use fat_object::ImageInfo;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use target_id::OffloadKind;
use tool_answers::listing::Question;
use tool_answers::row::contents;
use tool_answers::{kernels, suggest};
use tool_inputs::limits::Limits;
use tool_kit::document::OfFile as RowOfFile;
use tool_kit::output::{Name, Outputs};
use tool_kit::parallel::Threads;
use tool_kit::permissions::NewPermissions;
use tool_kit::stop::Stop;

use crate::fault::{Finding, not_a_gpu};
use crate::look::{self, Asked, Event, Found, OfFile};
use crate::source::{self, Source};
use crate::value::{of_json, to_python};
use crate::work::{Events, finish, wait_for};

/// A compression of device code.
#[pyclass(frozen, get_all, eq, module = "offload")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Compression {
    /// The method: `zstd`, `zlib`, `lz4`.
    method: String,
    /// Bytes in the file.
    stored_size: u64,
    /// Bytes without compression.
    uncompressed_size: u64,
}

#[pymethods]
impl Compression {
    fn __repr__(&self) -> String {
        let Compression { method, stored_size, uncompressed_size } = self;
        format!("<Compression {method}: {stored_size} of {uncompressed_size} bytes>")
    }
}

/// A device image in a file.
#[pyclass(frozen, module = "offload")]
#[derive(Debug)]
pub(crate) struct Image {
    source: Arc<Source>,
    asked: Arc<Asked>,
    found: Arc<Found>,
}

impl Image {
    fn info(&self) -> &ImageInfo {
        &self.found.row.listed
    }

    /// Does something with the image, which is read again, in a thread.
    fn again<T: Default + Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Source, &OfFile, &ImageInfo, (&Asked, &Stop)) -> Result<T, Finding>
        + Send
        + 'static,
    ) -> PyResult<T> {
        let (source, asked) = (Arc::clone(&self.source), Arc::clone(&self.asked));
        let found = Arc::clone(&self.found);
        let done = wait_for(py, move |stop| {
            work(&source, &found.file, &found.row.listed, (&asked, stop))
        })?;
        done.map_err(|finding| finding.to_exception(py))
    }
}

#[pymethods]
impl Image {
    #[getter]
    fn file(&self) -> &str {
        &self.found.file.name
    }

    #[getter]
    fn member(&self) -> Option<&str> {
        look::place_in(&self.source.path, &self.found.file.name)
    }

    #[getter]
    fn index(&self) -> usize {
        self.info().index()
    }

    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.info().path())
    }

    #[getter]
    fn place(&self) -> String {
        self.found.row.path()
    }

    #[getter]
    fn container(&self) -> &'static str {
        self.info().container().as_str()
    }

    #[getter]
    fn kind(&self) -> Option<&str> {
        self.info().target().kind().map(OffloadKind::as_str)
    }

    #[getter]
    fn vendor(&self) -> Option<&'static str> {
        Vendor::of_image(self.info()).map(Vendor::as_str)
    }

    #[getter]
    fn triple<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "triple")
    }

    #[getter]
    fn target(&self) -> Option<&str> {
        Some(self.info().target().id()).filter(|id| !id.is_empty())
    }

    #[getter]
    fn id(&self) -> Option<&str> {
        self.info().id()
    }

    #[getter]
    fn offset(&self) -> Option<u64> {
        self.info().location().file_offset()
    }

    #[getter]
    fn offset_in_container(&self) -> u64 {
        self.info().offset_in_container()
    }

    #[getter]
    fn size(&self) -> u64 {
        self.info().size()
    }

    #[getter]
    fn stored_size(&self) -> Option<u64> {
        self.info().stored_size()
    }

    #[getter]
    fn stored_estimate(&self) -> u64 {
        self.info().stored_estimate()
    }

    #[getter]
    fn compression(&self) -> Option<Compression> {
        let info = self.info();
        info.compression_around().or(info.compression()).map(|it| Compression {
            method: it.method().to_string(),
            stored_size: it.stored_size(),
            uncompressed_size: it.uncompressed_size(),
        })
    }

    #[getter]
    fn image_format<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.info().format())
    }

    #[getter]
    fn hash(&self) -> Option<&str> {
        self.found.row.hash.as_deref()
    }

    #[getter]
    fn archive(&self) -> Option<Vec<String>> {
        self.found.row.archive.clone()
    }

    #[getter]
    fn needs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.found.row.needs)
    }

    #[getter]
    fn kernel_count(&self) -> Option<u64> {
        self.found.kernels
    }

    /// Returns the fields of the JSON that the tool prints.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &RowOfFile { file: self.file(), record: &self.found.row })
    }

    /// Returns the kernels, as `offload kernels --json` prints them.
    fn kernels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let found = self.again(py, |source, file, info, (asked, stop)| {
            let (mut values, mut faults) = (Vec::new(), Vec::new());
            look::again((source, file), info, (asked, stop), |image| {
                let (list, found) = kernels::of_image(image, &asked.question.limits)?;
                let records = list.kernels.iter().map(|kernel| list.record(kernel));
                let all: Result<Vec<_>, _> = records.map(serde_json::to_value).collect();
                (values, faults) = (all?, found);
                Ok(())
            })?;
            match faults.into_iter().find(|(severity, _)| *severity == fat_object::Severity::Error)
            {
                Some((_, text)) => Err(Finding::error("verify/malformed", &file.name, text)),
                None => Ok(values),
            }
        })?;
        let list = PyList::empty(py);
        for mut kernel in found {
            if let Some(fields) = kernel.as_object_mut() {
                // It is the position in this list of one image.
                fields.remove("index");
            }
            list.append(of_json(py, &kernel)?)?;
        }
        Ok(list)
    }

    /// Returns the bytes, or writes them to a file.
    #[pyo3(signature = (path=None))]
    fn extract<'py>(
        &self,
        py: Python<'py>,
        path: Option<PathBuf>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        match path {
            None => {
                let bytes = self.again(py, |source, file, info, asked| {
                    let mut bytes = Vec::new();
                    extract((source, file), info, asked, &mut bytes)?;
                    Ok(bytes)
                })?;
                Ok(Some(PyBytes::new(py, &bytes)))
            }
            Some(path) => {
                source::check(&path)?;
                let (source, asked) = (Arc::clone(&self.source), Arc::clone(&self.asked));
                let found = Arc::clone(&self.found);
                let work = move |stop: &Stop| {
                    let (file, info) = (&found.file, &found.row.listed);
                    write(&path, |out| extract((&source, file), info, (&asked, stop), out))
                };
                finish(py, work)?.map_err(|finding| finding.to_exception(py))?;
                Ok(None)
            }
        }
    }

    fn __repr__(&self) -> String {
        format!("<Image {} of {}: {}>", self.index(), self.file(), self.info())
    }
}

impl Image {
    /// Returns a field of the JSON.
    fn field<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let all = to_python(py, self.info())?;
        all.cast_into::<PyDict>()?
            .get_item(name)
            .map(|value| value.unwrap_or_else(|| py.None().into_bound(py)))
    }
}

/// Writes the bytes of an image.
fn extract(
    of: (&Source, &OfFile),
    info: &ImageInfo,
    asked: (&Asked, &Stop),
    out: &mut (dyn Write + Send),
) -> Result<(), Finding> {
    let mut is_whole = false;
    look::again(of, info, asked, |image| {
        is_whole = contents(image, &mut |piece| out.write_all(piece))?;
        Ok(())
    })?;
    if is_whole {
        return Ok(());
    }
    let text = format!("image {} cannot be decompressed", info.index());
    Err(Finding::error("verify/malformed", &of.1.name, text))
}

/// Writes a file, which appears when it is complete.
fn write(
    path: &Path,
    fill: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Finding>,
) -> Result<(), Finding> {
    let mut outputs = Outputs::default();
    let mut failed = None;
    let written =
        outputs.write(&Name::Typed(path.to_owned()), NewPermissions::PLAIN.into(), |file| {
            fill(file).map_err(|finding| {
                let error = std::io::Error::other(finding.message.clone());
                failed = Some(finding);
                error
            })
        });
    if let Some(finding) = failed {
        return Err(finding);
    }
    let done = written.and_then(|()| outputs.commit());
    done.map_err(|error| Finding::of_io(&path.display().to_string(), &error))
}

/// An iterator of the images of a source.
#[pyclass(frozen, module = "offload")]
#[derive(Debug)]
pub(crate) struct Images {
    source: Arc<Source>,
    asked: Arc<Asked>,
    raises: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` once all is over.
    events: Option<Arc<Events<Event>>>,
    ready: VecDeque<Found>,
    findings: Vec<Finding>,
}

impl Images {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Images {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Image>> {
        loop {
            let events = {
                let mut state = self.state();
                if let Some(found) = state.ready.pop_front() {
                    let (source, asked) = (Arc::clone(&self.source), Arc::clone(&self.asked));
                    return Ok(Some(Image { source, asked, found: Arc::new(found) }));
                }
                state.events.clone()
            };
            let Some(events) = events else { return Ok(None) };
            // Nothing is locked while this waits.
            let event = events.next(py);
            let mut state = self.state();
            match event {
                Ok(Some(Event::Images(found))) => state.ready.extend(found),
                Ok(Some(Event::Received(_))) => {}
                Ok(Some(Event::Finding(finding))) if finding.is_error() && self.raises => {
                    state.events = None;
                    state.findings.push(finding.clone());
                    return Err(finding.to_exception(py));
                }
                Ok(Some(Event::Finding(finding))) => state.findings.push(finding),
                Ok(None) => state.events = None,
                Err(error) => {
                    state.events = None;
                    return Err(error);
                }
            }
        }
    }

    /// The findings so far.
    #[getter]
    fn findings(&self) -> Vec<Finding> {
        self.state().findings.clone()
    }

    /// Ends the look.
    fn close(&self) {
        let mut state = self.state();
        state.events = None;
        state.ready.clear();
    }
}

/// Reads the word for what becomes of errors; returns whether they are raised.
pub(crate) fn raises(on_error: &str, other: &str) -> PyResult<bool> {
    match on_error {
        "raise" => Ok(true),
        word if word == other => Ok(false),
        word => {
            let text = format!("on_error: expected 'raise' or '{other}', found '{word}'");
            Err(PyValueError::new_err(text))
        }
    }
}

/// Returns bounds with this number of threads.
pub(crate) fn limits(threads: Option<u32>) -> PyResult<Limits> {
    let Some(threads) = threads else { return Ok(Limits::default()) };
    let threads = std::num::NonZeroU32::new(threads);
    let threads =
        threads.ok_or_else(|| PyValueError::new_err("threads: expected at least 1, found 0"))?;
    Ok(Limits::with_threads(Threads::of(threads)))
}

/// Returns an iterator of the images of a source.
#[pyfunction]
#[pyo3(signature = (source, /, *, gpu=None, hash=false, kernels=false, needs=false, formats=false, check=false, on_error="raise", threads=None))]
#[expect(
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools,
    reason = "they have names in Python"
)]
pub(crate) fn images(
    source: &Bound<'_, PyAny>,
    gpu: Option<&str>,
    hash: bool,
    kernels: bool,
    needs: bool,
    formats: bool,
    check: bool,
    on_error: &str,
    threads: Option<u32>,
) -> PyResult<Images> {
    let raises = raises(on_error, "collect")?;
    let mut question =
        Question { hash, needs, check, limits: limits(threads)?, ..Question::default() };
    question.formats = formats || kernels;
    if let Some(gpu) = gpu {
        let wanted = suggest::known(gpu).map_err(|text| not_a_gpu(source.py(), &text))?;
        question.filter = question.filter.with_wanted([wanted]);
    }
    let asked = Arc::new(Asked { question, kernels });
    let source = Source::of(source)?;
    let of_thread = (Arc::clone(&source), Arc::clone(&asked));
    let events = Events::start(2, move |hand, stop| {
        let (source, asked) = of_thread;
        if let Err(error) = look::look(&source, &asked, stop, &mut |event| hand.give(event)) {
            let _ = hand.give(Event::Finding(Finding::of_io(&source.name, &error)));
        }
    })?;
    let state =
        State { events: Some(Arc::new(events)), ready: VecDeque::new(), findings: Vec::new() };
    Ok(Images { source, asked, raises, state: Mutex::new(state) })
}
