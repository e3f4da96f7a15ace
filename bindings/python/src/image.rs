//! `offload.images`.

use std::collections::VecDeque;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use device_select::Vendor;
use fat_object::ImageInfo;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use target_id::OffloadKind;
use tool_answers::kernels;
use tool_answers::listing::Question;
use tool_answers::row::contents;
use tool_kit::document::OfFile as RowOfFile;
use tool_kit::output::{Name, Outputs};
use tool_kit::permissions::NewPermissions;
use tool_kit::stop::Stop;

use crate::argument;
use crate::fault::Finding;
use crate::look::{self, Asked, Event, Found, OfFile};
use crate::source::Source;
use crate::value::{of_json, to_python};
use crate::work::{Events, finish, wait_for};

/// The compression of device code.
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

/// A device image: code for one target. The attributes have the names of the fields of ``offload ls --json``.
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
    /// The file, or ``foo.whl:foo/libfoo.so`` for the member of a package.
    #[getter]
    fn file(&self) -> &str {
        &self.found.file.name
    }

    /// The path in the package or directory that was named; ``None`` if the source is the file itself.
    #[getter]
    fn member(&self) -> Option<&str> {
        look::place_in(&self.source.path, &self.found.file.name)
    }

    /// The position among the images of the file, from 0.
    #[getter]
    fn index(&self) -> usize {
        self.info().index()
    }

    /// The containers from outside in, each as ``kind:name``.
    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.info().path())
    }

    /// The same in one text, separated by blanks.
    #[getter]
    fn place(&self) -> String {
        self.found.row.path()
    }

    /// The format of the innermost container: ``bundle``, ``ccob``, ``fatbinary``.
    #[getter]
    fn container(&self) -> &'static str {
        self.info().container().as_str()
    }

    /// The offload kind: ``hip``, ``hipv4``, ``cuda``, ``openmp``, ``sycl``, ``host``.
    #[getter]
    fn kind(&self) -> Option<&str> {
        self.info().target().kind().map(OffloadKind::as_str)
    }

    /// ``AMD``, ``NVIDIA`` or ``Intel``, if the container shows it.
    #[getter]
    fn vendor(&self) -> Option<&'static str> {
        Vendor::of_image(self.info()).map(Vendor::as_str)
    }

    #[getter]
    fn triple<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "triple")
    }

    /// The target ID: ``gfx90a:xnack+``, ``sm_90``.
    #[getter]
    fn target(&self) -> Option<&str> {
        Some(self.info().target().id()).filter(|id| !id.is_empty())
    }

    /// The bundle entry ID, as stored.
    #[getter]
    fn id(&self) -> Option<&str> {
        self.info().id()
    }

    /// The offset in the file in bytes; ``None`` for code in compressed data.
    #[getter]
    fn offset(&self) -> Option<u64> {
        self.info().location().file_offset()
    }

    #[getter]
    fn offset_in_container(&self) -> u64 {
        self.info().offset_in_container()
    }

    /// Bytes without the compression of bundles.
    #[getter]
    fn size(&self) -> u64 {
        self.info().size()
    }

    /// Bytes in the file; ``None`` for code that is compressed together with other code.
    #[getter]
    fn stored_size(&self) -> Option<u64> {
        self.info().stored_size()
    }

    /// Bytes in the file, estimated where code is compressed together.
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

    /// The format: ``elf``, ``ptx``, ``spirv``; ``None`` if it was not read (``formats=True`` reads it).
    #[getter]
    fn image_format<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.info().format())
    }

    /// 64-bit XXH3 of the bytes that `extract` gives, in 16 hexadecimal digits; ``None`` without ``hash=True``.
    #[getter]
    fn hash(&self) -> Option<&str> {
        self.found.row.hash.as_deref()
    }

    /// The GPUs of an archive of machine code of SYCL.
    #[getter]
    fn archive(&self) -> Option<Vec<String>> {
        self.found.row.archive.clone()
    }

    /// The oldest drivers that load it; ``None`` without ``needs=True``.
    #[getter]
    fn needs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.found.row.needs)
    }

    /// The number of kernels; ``None`` without ``kernels=True``, and for formats whose kernels are not read.
    #[getter]
    fn kernel_count(&self) -> Option<u64> {
        self.found.kernels
    }

    /// Return the row of ``offload ls --json``: the fields have the names of the attributes. Sizes and offsets are in bytes.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &RowOfFile { file: self.file(), record: &self.found.row })
    }

    /// Read the file again and return the kernels with their resources.
    ///
    /// The fields are those of ``offload kernels --json``: ``name``, ``demangled``, ``code`` (bytes), ``registers``,
    /// ``vgpr_spills``, ``group`` (bytes), ``arguments``.
    ///
    /// Example:
    ///     >>> [(kernel["name"], kernel["registers"]) for kernel in image.kernels()]
    ///
    /// Raises:
    ///     OSError: The file cannot be read, or was changed.
    ///     DamagedError: The image is malformed.
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

    /// Read the file again and return the bytes of the image, or write them to a file.
    ///
    /// ``offload extract`` writes the same bytes: compressed code is decompressed. A file at ``path`` appears when it is complete, and
    /// replaces an older one.
    ///
    /// Example:
    ///     >>> for image in offload.images("libfoo.so", gpu="gfx90a"):
    ///     ...     image.extract(f"image-{image.index}.bin")
    ///
    /// Args:
    ///     path: The path of the new file; without it the bytes are returned.
    ///
    /// Raises:
    ///     OSError: A file cannot be read or written.
    ///     DamagedError: The image cannot be decompressed.
    #[pyo3(signature = (path=None))]
    fn extract<'py>(
        &self,
        py: Python<'py>,
        path: Option<&Bound<'py, PyAny>>,
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
                let path = argument::path("path", path)?;
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

/// Iterator of the images of a source.
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

    /// The findings so far: all of them at the end.
    #[getter]
    fn findings(&self) -> Vec<Finding> {
        self.state().findings.clone()
    }

    /// End the iteration.
    fn close(&self) {
        let mut state = self.state();
        state.events = None;
        state.ready.clear();
    }
}

/// Return an iterator of the device images of a file, of the members of a package, or of all files of a directory.
///
/// Memory holds the images of a few files at a time. Bytes are read where they are; an open file is copied to a temporary file. A URL is
/// read by ranges with device code; `Images.findings` says what was not read. Sizes and offsets of images are in bytes.
///
/// Example:
///     >>> for image in offload.images("foo.whl", gpu="RX 7600"):
///     ...     print(image.member, image.target, image.size)
///
/// Args:
///     source: A path, a URL, ``foo.whl:foo/libfoo.so`` for the member of a package, bytes, or a binary file.
///     gpu: Only images that this GPU loads: a target ID (``gfx90a:xnack+``, ``sm_86``), a name (``RX 7600``), a PCI ID, or
///         ``native`` for the GPUs of this machine.
///     hash: Hash each image.
///     kernels: Count the kernels of each image.
///     needs: Find the oldest drivers that load each image.
///     formats: Decompress everything, for the formats of images.
///     check: Decompress everything, and compare each image with the name of its entry.
///     on_error: ``raise`` ends the iteration at the first error; ``collect`` goes on, and `Images.findings` has all.
///     threads: The most threads; without it one for each core.
///
/// Raises:
///     OSError: A file cannot be opened or read.
///     DamagedError: A file is malformed, after its images.
///     NotReadError: The format of the source is not read.
///     UrlError: A URL cannot be read.
///     UnknownGpuError: ``gpu`` names none, or is ``native`` and no GPU is found.
///     TypeError: An argument has another type; the text names it.
///     ValueError: ``source`` is empty, ``threads`` is 0, or ``on_error`` is another word.
#[pyfunction]
#[pyo3(signature = (source, /, *, gpu=None, hash=false, kernels=false, needs=false, formats=false, check=false, on_error=None, threads=None), text_signature = "(source, /, *, gpu=None, hash=False, kernels=False, needs=False, formats=False, check=False, on_error='raise', threads=None)")]
#[expect(
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools,
    reason = "they have names in Python"
)]
pub(crate) fn images(
    source: &Bound<'_, PyAny>,
    gpu: Option<&Bound<'_, PyAny>>,
    hash: bool,
    kernels: bool,
    needs: bool,
    formats: bool,
    check: bool,
    on_error: Option<&Bound<'_, PyAny>>,
    threads: Option<&Bound<'_, PyAny>>,
) -> PyResult<Images> {
    let raises = argument::raises(on_error, true, "collect")?;
    let mut question =
        Question { hash, needs, check, limits: argument::limits(threads)?, ..Question::default() };
    question.formats = formats || kernels;
    if let Some(gpu) = gpu {
        question.filter = question.filter.with_wanted(argument::wanted("gpu", gpu)?);
    }
    let asked = Arc::new(Asked { question, kernels });
    let source = Source::of("source", source)?;
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
