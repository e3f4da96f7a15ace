//! `offload.scan`: the images of many sources as an Arrow stream.

use std::fmt::Write as _;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Instant;
use std::vec;

use arrow_array::builder::{ListBuilder, StringBuilder, UInt64Builder};
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use device_select::Vendor;
use gpu_packages::WheelName;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyCapsule, PyMemoryView, PyString};
use sha2::{Digest, Sha256};
use target_id::OffloadKind;
use tool_answers::listing::Question;
use tool_answers::row::Row;
use tool_kit::parallel::{self, Threads};
use tool_kit::stop::Stop;

use crate::argument;
use crate::fault::Finding;
use crate::look::{self, Asked, Event, Found};
use crate::source::Source;
use crate::work::{Events, Hand, PAUSE, Wait, words};

/// Rows of a batch, at least, unless it is the last.
const BATCH: usize = 4096;

/// Bytes of text after which a batch ends. A column holds 2 GiB.
const BATCH_BYTES: usize = 64 << 20;

/// The result of a source of a scan.
#[pyclass(frozen, get_all, module = "offload")]
#[derive(Clone, Debug)]
pub(crate) struct SourceResult {
    /// The source, as it was given.
    source: String,
    /// The package, of the name of a wheel.
    package: Option<String>,
    /// Its version.
    version: Option<String>,
    /// The number of images.
    images: u64,
    /// Errors, warnings, notes.
    findings: Vec<Finding>,
    /// Requests to a server; 0 for a file.
    requests: u64,
    /// Bytes of contents that a server sent; 0 for a file.
    bytes_received: u64,
}

#[pymethods]
impl SourceResult {
    /// ``True`` if there is no error, and the format of each file is read.
    #[getter]
    fn ok(&self) -> bool {
        !self.findings.iter().any(|one| one.is_error() || one.is_unread())
    }

    fn __repr__(&self) -> String {
        let errors = self.findings.iter().filter(|one| one.is_error()).count();
        format!("<SourceResult {}: {} images, {errors} errors>", self.source, self.images)
    }
}

/// The settings of a scan.
#[derive(Debug)]
struct Settings {
    sources: Vec<Arc<Source>>,
    asked: Asked,
    sha256: bool,
    /// Errors end the stream, else they are rows.
    raises: bool,
}

/// The images of many sources as an Arrow stream, for every library that takes one.
///
/// ``pyarrow.RecordBatchReader.from_stream(scan)``, ``pyarrow.table(scan)``, ``polars.DataFrame(scan)``,
/// ``duckdb.from_arrow(...)``. Each stream starts from the first source.
///
/// Ctrl-C ends a stream. The library that reads it raises an exception of its own first (``polars.exceptions.ComputeError``,
/// ``pyarrow.ArrowInvalid``) with the text ``interrupted``, because Arrow's interface passes a text only. ``KeyboardInterrupt``
/// follows at once, also while the first one is handled: catch it around the whole ``try`` statement.
#[pyclass(frozen, module = "offload")]
#[derive(Debug)]
pub(crate) struct Scan {
    settings: Arc<Settings>,
    /// The results of the last stream.
    results: Mutex<Results>,
}

/// The results of a stream.
type Results = Arc<Mutex<Vec<SourceResult>>>;

/// Facts about a source that all its rows have.
#[derive(Clone, Debug, Default)]
struct OfSource {
    package: Option<String>,
    version: Option<String>,
    sha256: Option<String>,
}

/// Something that a scan came to.
#[derive(Debug)]
enum Step {
    Facts(usize, OfSource),
    Look(usize, Event),
    /// The source is done.
    End,
}

#[pymethods]
impl Scan {
    /// Exports the scan as an Arrow stream; each call starts one from the first source.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer must take any schema that it gets.
        let _ = requested_schema;
        let stream = FFI_ArrowArrayStream::new(Box::new(self.start()?));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Exports the types of the columns.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*schema())
            .map_err(|error| crate::fault::internal(&error))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The sources that the last stream is done with, in order, all of whose rows it gave. All others were not, or not wholly, read.
    #[getter]
    fn results(&self) -> Vec<SourceResult> {
        lock(&lock(&self.results)).clone()
    }

    /// The errors of these sources.
    #[getter]
    fn errors(&self) -> Vec<Finding> {
        let results = self.results();
        let all = results.iter().flat_map(|one| &one.findings);
        all.filter(|one| one.is_error()).cloned().collect()
    }

    fn __repr__(&self) -> String {
        format!("<Scan of {} sources>", self.settings.sources.len())
    }
}

impl Scan {
    fn start(&self) -> PyResult<Reader> {
        let settings = Arc::clone(&self.settings);
        let events = Events::start(4, move |hand, stop| {
            // Nobody waits any more if this fails.
            let _ = settings.scan(hand, stop);
        })?;
        let (settings, results) = (Arc::clone(&self.settings), Results::default());
        *lock(&self.results) = Arc::clone(&results);
        Ok(Reader {
            events,
            thread: thread::current().id(),
            looked: Instant::now(),
            current: (
                0,
                OfSource::default(),
                SourceResult::new(&settings, 0, &OfSource::default()),
            ),
            waiting: Vec::new().into_iter(),
            ended: Vec::new(),
            failed: None,
            settings,
            results,
            is_over: false,
        })
    }
}

impl Settings {
    /// Looks into all sources, several at the same time.
    fn scan(&self, hand: &Hand<Step>, stop: &Stop) -> io::Result<()> {
        if let [source] = &self.sources[..] {
            return self
                .look(source, &self.asked, stop, &mut |event| hand.give(event.step(0)))
                .and_then(|()| hand.give(Step::End));
        }
        // Each thread has one source.
        let mut asked = self.asked.clone();
        let threads = asked.question.limits.threads;
        asked.question.limits.threads = Threads::one();
        let numbers: Vec<usize> = (0..self.sources.len()).collect();
        let look = |number: &usize| {
            let mut events = Vec::new();
            let Some(source) = self.sources.get(*number) else { return Ok(events) };
            self.look(source, &asked, stop, &mut |event| {
                stop.check()?;
                events.push(event);
                Ok(())
            })?;
            io::Result::Ok(events)
        };
        parallel::in_order(threads.count(), &numbers, look, |number, events| {
            for event in events? {
                hand.give(event.step(*number))?;
            }
            hand.give(Step::End)
        })
    }

    fn look(
        &self,
        source: &Source,
        asked: &Asked,
        stop: &Stop,
        take: &mut dyn FnMut(Told) -> io::Result<()>,
    ) -> io::Result<()> {
        take(Told::Facts(OfSource::of(source, self.sha256, stop)?))?;
        if self.sha256 && source.is_url() {
            let text = "SHA-256 not computed: expected a file; download it first";
            let note = Finding::error("network/not-read", &source.name, text).into_note();
            take(Told::Event(Event::Finding(note)))?;
        }
        let looked = look::look(source, asked, stop, &mut |event| take(Told::Event(event)));
        if let Err(error) = looked {
            stop.check()?;
            take(Told::Event(Event::Finding(Finding::of_io(&source.name, &error))))?;
        }
        Ok(())
    }
}

/// Something about one source.
enum Told {
    Facts(OfSource),
    Event(Event),
}

impl Told {
    fn step(self, number: usize) -> Step {
        match self {
            Told::Facts(facts) => Step::Facts(number, facts),
            Told::Event(event) => Step::Look(number, event),
        }
    }
}

impl OfSource {
    fn of(source: &Source, has_hash: bool, stop: &Stop) -> io::Result<Self> {
        let name = source.file_name().and_then(|name| WheelName::parse(&name).ok());
        let package = name.as_ref().map(|name| name.name().to_owned());
        let version = name.as_ref().map(|name| name.version().to_owned());
        let sha256 = if has_hash { sha256(source, stop)? } else { None };
        Ok(OfSource { package, version, sha256 })
    }
}

/// Returns the SHA-256 of a file, in hexadecimal digits; `None` for a directory, and for what cannot be read.
fn sha256(source: &Source, stop: &Stop) -> io::Result<Option<String>> {
    let Some(opened) = source.open() else { return Ok(None) };
    let mut file = opened.reader();
    let (mut hasher, mut piece) = (Sha256::new(), vec![0; 1 << 18]);
    loop {
        stop.check()?;
        let Ok(count) = file.read(&mut piece) else { return Ok(None) };
        match piece.get(..count) {
            None | Some([]) => break,
            Some(bytes) => hasher.update(bytes),
        }
    }
    let mut text = String::new();
    for byte in hasher.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(Some(text))
}

impl SourceResult {
    fn new(settings: &Settings, number: usize, facts: &OfSource) -> Self {
        let source =
            settings.sources.get(number).map_or_else(String::new, |source| source.name.clone());
        let OfSource { package, version, .. } = facts.clone();
        let (requests, bytes_received) = (0, 0);
        SourceResult {
            source,
            package,
            version,
            images: 0,
            findings: Vec::new(),
            requests,
            bytes_received,
        }
    }
}

/// Makes batches of what a scan comes to.
struct Reader {
    settings: Arc<Settings>,
    events: Events<Step>,
    results: Results,
    /// The thread that asked for the stream: signals are looked at there.
    thread: ThreadId,
    /// The time of the last look at signals.
    looked: Instant,
    /// The source that rows come from.
    current: (usize, OfSource, SourceResult),
    /// Images of the source that are rows to come.
    waiting: vec::IntoIter<Found>,
    /// Sources that are done with the rows of the present batch.
    ended: Vec<SourceResult>,
    /// The error that follows the rows before it.
    failed: Option<Failed>,
    is_over: bool,
}

/// The end of a stream before its time.
enum Failed {
    Error(ArrowError),
    /// Python has an exception of a signal to raise.
    Signal,
}

impl Reader {
    /// Returns the next batch; `None` after the last. Rows come before an error, which is the next thing then.
    fn batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let mut rows = Rows::default();
        while !self.is_over && self.failed.is_none() && !rows.is_full() {
            if let Some(found) = self.waiting.next() {
                let (number, facts, _) = &self.current;
                if let Some(source) = self.settings.sources.get(*number) {
                    rows.add_image((source, facts), &found);
                }
                continue;
            }
            self.failed = self.step(&mut rows).err();
        }
        let batch = if rows.count > 0 { Some(rows.finish()?) } else { None };
        // All their rows are there.
        lock(&self.results).append(&mut self.ended);
        if batch.is_some() {
            return Ok(batch);
        }
        match self.failed.take() {
            Some(failed) => Err(failed.raise()),
            None => Ok(None),
        }
    }

    /// Takes the next event, or waits for one.
    fn step(&mut self, rows: &mut Rows) -> Result<(), Failed> {
        if self.events.is_elsewhere() {
            return Err(Failed::Error(error("this stream was started before a fork")));
        }
        match self.events.wait() {
            Wait::Event(step) => self.take(step, rows).map_err(Failed::Error)?,
            Wait::Done => self.is_over = true,
            Wait::Panic(panic) => return Err(Failed::Error(internal(&panic))),
            Wait::Pause => {}
        }
        if self.looked.elapsed() >= PAUSE {
            self.look_at_signals()?;
            self.looked = Instant::now();
        }
        Ok(())
    }

    fn take(&mut self, step: Step, rows: &mut Rows) -> Result<(), ArrowError> {
        match step {
            Step::Facts(number, facts) => {
                let result = SourceResult::new(&self.settings, number, &facts);
                self.current = (number, facts, result);
            }
            Step::Look(_, Event::Images(found)) => {
                self.current.2.images += found.len() as u64;
                self.waiting = found.into_iter();
            }
            Step::Look(_, Event::Received(received)) => {
                let result = &mut self.current.2;
                result.requests += received.requests;
                result.bytes_received += received.bytes;
            }
            Step::Look(number, Event::Finding(finding)) => {
                let (_, facts, result) = &mut self.current;
                if finding.is_error() || finding.is_unread() {
                    let Some(source) = self.settings.sources.get(number) else { return Ok(()) };
                    if self.settings.raises && finding.is_error() {
                        let text = format!("{}: {}", finding.file, finding.message);
                        result.findings.push(finding);
                        self.end_source();
                        return Err(error(&text));
                    }
                    rows.add_error((source, facts), &finding);
                }
                result.findings.push(finding);
            }
            Step::End => self.end_source(),
        }
        Ok(())
    }

    fn end_source(&mut self) {
        self.ended.push(self.current.2.clone());
    }

    /// Looks at signals in the thread that asked for the stream. In others it could wait for the interpreter, which may wait for
    /// this.
    fn look_at_signals(&self) -> Result<(), Failed> {
        if thread::current().id() != self.thread {
            return Ok(());
        }
        let is_raised = Python::try_attach(|py| py.check_signals().is_err());
        if is_raised == Some(true) { Err(Failed::Signal) } else { Ok(()) }
    }
}

impl Failed {
    fn raise(self) -> ArrowError {
        let Failed::Error(error) = self else {
            // The consumer has an exception of its own for the end of a stream: the signal is raised after it.
            Python::try_attach(|py| {
                let _ =
                    py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main"));
            });
            return error("interrupted");
        };
        error
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // A consumer that stops before the error gets the signal, too.
        let is_here = thread::current().id() == self.thread;
        if let Some(failed @ Failed::Signal) = self.failed.take().filter(|_| is_here) {
            failed.raise();
        }
    }
}

fn error(text: &str) -> ArrowError {
    ArrowError::ExternalError(text.into())
}

fn internal(panic: &str) -> ArrowError {
    error(&format!("internal error: {panic}"))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over && self.failed.is_none() {
            return None;
        }
        // This is called by C, through which no panic may go.
        let next = catch_unwind(AssertUnwindSafe(|| self.batch()));
        let next = next.unwrap_or_else(|panic| Err(internal(&words(&*panic))));
        if !matches!(next, Ok(Some(_))) {
            (self.is_over, self.failed) = (true, None);
        }
        next.transpose()
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        schema()
    }
}

/// Names of the columns of text before the sizes, and after.
const BEFORE: [&str; 12] = [
    "source",
    "package",
    "version",
    "file_sha256",
    "member",
    "container",
    "place",
    "kind",
    "vendor",
    "target",
    "format",
    "compression",
];

/// Returns the columns.
fn schema() -> SchemaRef {
    let text = |name: &&str| Field::new(*name, DataType::Utf8, *name != "source");
    let mut fields: Vec<Field> = BEFORE.iter().map(text).collect();
    let number = |name: &str| Field::new(name, DataType::UInt64, true);
    fields.extend([number("stored"), number("size"), text(&"image_hash"), number("kernels")]);
    let item = Arc::new(Field::new("item", DataType::Utf8, true));
    fields.extend([Field::new("needs", DataType::List(item), true), text(&"error")]);
    Arc::new(Schema::new(fields))
}

/// Rows of a batch.
#[derive(Default)]
struct Rows {
    count: usize,
    /// Bytes of their text. No column has more.
    bytes: usize,
    before: [StringBuilder; BEFORE.len()],
    stored: UInt64Builder,
    size: UInt64Builder,
    hash: StringBuilder,
    kernels: UInt64Builder,
    needs: ListBuilder<StringBuilder>,
    error: StringBuilder,
}

impl Rows {
    /// Returns whether they are enough for a batch.
    fn is_full(&self) -> bool {
        self.count >= BATCH || self.bytes >= BATCH_BYTES
    }

    fn add_before(&mut self, values: [Option<&str>; BEFORE.len()]) {
        self.bytes += values.iter().flatten().map(|text| text.len()).sum::<usize>();
        self.before.iter_mut().zip(values).for_each(|(column, value)| column.append_option(value));
        self.count += 1;
    }

    fn add_image(&mut self, (source, facts): (&Source, &OfSource), found: &Found) {
        let Row { listed: info, hash, needs, .. } = &found.row;
        let format = serde_json::to_value(info.format()).unwrap_or_default();
        let compression = info.compression_around().or(info.compression());
        let compression = compression.map(|it| it.method().to_string());
        let target = info.target();
        self.add_before([
            Some(&source.name),
            facts.package.as_deref(),
            facts.version.as_deref(),
            facts.sha256.as_deref(),
            look::place_in(&source.path, &found.file.name),
            Some(info.container().as_str()),
            Some(&found.row.path()),
            target.kind().map(OffloadKind::as_str),
            Vendor::of_image(info).map(Vendor::as_str),
            Some(target.id()).filter(|id| !id.is_empty()),
            format.as_str(),
            compression.as_deref(),
        ]);
        self.stored.append_value(info.stored_estimate());
        self.size.append_value(info.size());
        self.hash.append_option(hash.as_deref());
        self.kernels.append_option(found.kernels);
        let needs = needs.as_ref();
        let needs: Option<Vec<_>> = needs.map(|all| all.iter().map(ToString::to_string).collect());
        self.bytes += needs.iter().flatten().map(String::len).sum::<usize>();
        self.needs.append_option(needs.map(|needs| needs.into_iter().map(Some)));
        self.error.append_null();
    }

    fn add_error(&mut self, (source, facts): (&Source, &OfSource), finding: &Finding) {
        let mut values = [None; BEFORE.len()];
        let [name, package, version, sha256, member, ..] = &mut values;
        *name = Some(&*source.name);
        (*package, *version) = (facts.package.as_deref(), facts.version.as_deref());
        *sha256 = facts.sha256.as_deref();
        *member = look::place_in(Path::new(&source.name), &finding.file);
        self.add_before(values);
        for column in [&mut self.stored, &mut self.size, &mut self.kernels] {
            column.append_null();
        }
        self.hash.append_null();
        self.needs.append_null();
        let text = format!("{}: {}", finding.code, finding.message);
        self.bytes += text.len();
        self.error.append_value(text);
    }

    fn finish(mut self) -> Result<RecordBatch, ArrowError> {
        let before = self.before.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef);
        let mut columns: Vec<ArrayRef> = before.collect();
        columns.push(Arc::new(self.stored.finish()));
        columns.push(Arc::new(self.size.finish()));
        columns.push(Arc::new(self.hash.finish()));
        columns.push(Arc::new(self.kernels.finish()));
        columns.push(Arc::new(self.needs.finish()));
        columns.push(Arc::new(self.error.finish()));
        RecordBatch::try_new(schema(), columns)
    }
}

/// Return the images of many files, packages and directories as an Arrow stream with a row for each image.
///
/// Columns: ``source``, ``package``, ``version`` (of the names of wheels), ``file_sha256``, ``member``, ``container``,
/// ``place``, ``kind``, ``vendor``, ``target``, ``format``, ``compression``, ``stored`` (bytes, estimated where code is
/// compressed together), ``size`` (bytes), ``image_hash``, ``kernels`` (their number), ``needs`` (a list of texts),
/// ``error``. Columns that were not asked for are null. Nothing is lost: each error, and each file of a format that is not read, is a row
/// with ``source``, ``member`` and ``error``, and `Scan.results` has all sources that are done.
///
/// Example:
///     >>> scan = offload.scan(["a.whl", "/opt/venv"], kernels=True)
///     >>> print(polars.DataFrame(scan).group_by("target").agg(polars.col("stored").sum()))
///
/// Args:
///     sources: A path, a URL, bytes or a binary file, or several of them.
///     hash: Hash each image (``image_hash``).
///     kernels: Count the kernels of each image.
///     needs: Find the oldest drivers that load each image.
///     formats: Decompress everything, for the formats of images.
///     sha256: Hash each source that is a file (``file_sha256``): all its bytes are read. A URL is not hashed.
///     on_error: ``row`` makes errors rows; ``raise`` ends the stream at the first one, after the rows before it.
///     threads: Sources that are read at the same time; without it one for each core.
///
/// Raises:
///     TypeError: An argument, or one of the sources, has another type; the text names it.
///     ValueError: A path is empty, ``threads`` is 0, or ``on_error`` is another word.
#[pyfunction]
#[pyo3(signature = (sources, /, *, hash=false, kernels=false, needs=false, formats=false, sha256=false, on_error=None, threads=None), text_signature = "(sources, /, *, hash=False, kernels=False, needs=False, formats=False, sha256=False, on_error='row', threads=None)")]
#[expect(
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools,
    reason = "they have names in Python"
)]
pub(crate) fn scan(
    sources: &Bound<'_, PyAny>,
    hash: bool,
    kernels: bool,
    needs: bool,
    formats: bool,
    sha256: bool,
    on_error: Option<&Bound<'_, PyAny>>,
    threads: Option<&Bound<'_, PyAny>>,
) -> PyResult<Scan> {
    let raises = argument::raises(on_error, false, "row")?;
    let question = Question {
        hash,
        needs,
        formats: formats || kernels,
        limits: argument::limits(threads)?,
        ..Question::default()
    };
    let is_one = sources.is_instance_of::<PyString>()
        || sources.is_instance_of::<PyBytes>()
        || sources.is_instance_of::<PyByteArray>()
        || sources.is_instance_of::<PyMemoryView>()
        || sources.hasattr("__fspath__")?
        || sources.hasattr("read")?;
    let sources: Vec<_> = if is_one {
        vec![Source::of("sources", sources)?]
    } else {
        let expected = "a path, a URL, bytes, a binary file, or several of them";
        let all =
            sources.try_iter().map_err(|_| argument::unexpected("sources", expected, sources))?;
        all.map(|source| Source::of("sources", &source?)).collect::<PyResult<_>>()?
    };
    let settings = Settings { sources, asked: Asked { question, kernels }, sha256, raises };
    Ok(Scan { settings: Arc::new(settings), results: Mutex::default() })
}
