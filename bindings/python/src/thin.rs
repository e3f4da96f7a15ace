//! `offload.thin`.

use std::io;
use std::path::PathBuf;
use std::slice;

use device_select::Rule;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;
use tool_edits::{FileRow, Options, Permits, Reporter, Thinning, Uneditable};
use tool_inputs::inputs::Input;
use tool_kit::Outcome;
use tool_kit::failure::Failure;
use tool_kit::format::ListFormat;
use tool_kit::report::{self, Collected, Message};

use crate::argument;
use crate::fault::Finding;
use crate::value::of_json;
use crate::work::finish;

/// The report of an edit.
#[pyclass(frozen, module = "offload")]
#[derive(Debug, Default)]
pub(crate) struct Report {
    files: Vec<Value>,
    size_before: u64,
    size_after: u64,
    findings: Vec<Finding>,
}

#[pymethods]
impl Report {
    /// The files of ``offload thin --json``: the source first, then its members. Sizes are in bytes.
    #[getter]
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        of_json(py, &Value::Array(self.files.clone()))
    }

    /// Bytes of the source.
    #[getter]
    fn size_before(&self) -> u64 {
        self.size_before
    }

    /// Bytes of the new file.
    #[getter]
    fn size_after(&self) -> u64 {
        self.size_after
    }

    #[getter]
    fn findings(&self) -> Vec<Finding> {
        self.findings.clone()
    }

    fn __repr__(&self) -> String {
        format!("<Report {} -> {} bytes>", self.size_before(), self.size_after())
    }
}

/// Collects what is said about an edit.
#[derive(Default)]
struct Collecting {
    /// The source, as messages name it.
    source: String,
    report: Report,
    has_failed: bool,
}

impl Reporter for Collecting {
    fn take(&mut self, file: &Input, edited: Result<Vec<FileRow>, Failure>) -> io::Result<()> {
        match edited {
            Ok(rows) => {
                for row in rows {
                    if let Some([before, after]) = row.sizes() {
                        self.report.size_before = self.report.size_before.saturating_add(before);
                        self.report.size_after = self.report.size_after.saturating_add(after);
                    }
                    self.report.files.push(serde_json::to_value(row)?);
                }
            }
            Err(Failure::NoCode | Failure::NotConcerned(_)) if !file.is_named() => {}
            Err(failure) => {
                self.report
                    .findings
                    .extend(failure.findings(file.name()).into_iter().map(Finding::from));
                self.has_failed = true;
            }
        }
        Ok(())
    }

    fn say(&mut self, message: &Message) {
        let said = Collected { file: None, code: message.code(), message: message.clone() };
        self.report.findings.push(Finding::of_message(&self.source, said));
    }

    fn fail(&mut self) {
        self.has_failed = true;
    }

    fn has_failed(&self) -> bool {
        self.has_failed
    }
}

/// The settings of an edit.
struct Settings {
    source: PathBuf,
    output: PathBuf,
    rule: Rule,
    permits: Permits,
    options: Options,
}

impl Settings {
    /// Thins the source. An error is the finding that stopped it.
    fn run(&self) -> Result<Report, Finding> {
        let Settings { source, output, rule, permits, options } = self;
        let thinning = Thinning { rule, permits: *permits, options };
        let name = source.display().to_string();
        let mut collecting = Collecting { source: name.clone(), ..Collecting::default() };
        let (done, messages) = report::collected(|| {
            thinning.edit(slice::from_ref(source), |editor| editor.run_with(&mut collecting))
        });
        let Collecting { mut report, has_failed, .. } = collecting;
        let messages = messages.into_iter().map(|one| Finding::of_message(&name, one));
        let messages: Vec<_> = messages.filter(|one| !report.findings.contains(one)).collect();
        report.findings.extend(messages);
        let done = done.map_err(|error| Finding::of_io(&name, &error))?;
        if has_failed || matches!(done, Outcome::Faults) {
            let of_output = format!("'{}': ", output.display());
            let first = report.findings.iter().find(|one| one.is_error()).cloned();
            let first = first.map(|one| match one.message.strip_prefix(&of_output) {
                Some(reason) => {
                    Finding::error(&one.code, &output.display().to_string(), reason).with_errno()
                }
                None => one.with_errno(),
            });
            return Err(
                first.unwrap_or_else(|| Finding::error("edit/refused", &name, "was not edited"))
            );
        }
        Ok(report)
    }
}

/// Returns the path of a file on the disk.
fn of_file(name: &str, argument: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let path = argument::path(name, argument)?;
    if path.as_os_str() == "-" {
        let text = format!("{name}: expected the path of a file, found '-'");
        return Err(PyValueError::new_err(text));
    }
    Ok(path)
}

/// Write a file without the code for other GPUs. The options are those of ``offload thin``.
///
/// The output appears when it is complete. Ctrl-C stops the edit: the output stays as it was, and nothing else is left. The exception comes
/// once the edit has ended; a second Ctrl-C does not wait for that.
///
/// Example:
///     >>> report = offload.thin("foo.whl", "small.whl", keep=["gfx1102"])
///     >>> print(report.size_before, "->", report.size_after, "bytes")
///
/// Args:
///     source: The path of a library, a program, a wheel or another package.
///     output: The path of the new file, or of a directory that gets a file of the same name.
///     keep: Keep code that these GPUs load: target IDs, names, PCI IDs, or ``native`` for the GPUs of this machine.
///     drop: Drop code that was built for these targets.
///     exact: Keep exact matches only; drop generic code and SPIR-V.
///     drop_ptx: Drop PTX of fatbinaries, even if a GPU loses all its code.
///     allow_missing: Do not fail if a GPU has no code.
///     allow_empty: Allow containers to lose all their images.
///     allow_unserved: Allow removing code that a GPU of ``keep`` loads.
///     databases: Delete files of kernel databases and loose images for other GPUs.
///     dry_run: Write nothing.
///     threads: The most threads; without it one for each core.
///
/// Raises:
///     OSError: A file cannot be read or written.
///     RefusedError: The edit would remove too much, or the file cannot be edited.
///     UrlError: The source is a URL: download it first.
///     UnknownGpuError: A target is not known, or ``native`` finds no GPU.
///     TypeError: An argument has another type; the text names it. Write bytes to a file first.
///     ValueError: Both or none of ``keep`` and ``drop`` are given, or a path is empty.
#[pyfunction]
#[pyo3(signature = (source, output, /, *, keep=None, drop=None, exact=false, drop_ptx=false, allow_missing=false, allow_empty=false, allow_unserved=false, databases=false, dry_run=false, threads=None))]
#[expect(
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools,
    reason = "they have names in Python"
)]
pub(crate) fn thin(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    output: &Bound<'_, PyAny>,
    keep: Option<&Bound<'_, PyAny>>,
    drop: Option<&Bound<'_, PyAny>>,
    exact: bool,
    drop_ptx: bool,
    allow_missing: bool,
    allow_empty: bool,
    allow_unserved: bool,
    databases: bool,
    dry_run: bool,
    threads: Option<&Bound<'_, PyAny>>,
) -> PyResult<Report> {
    let wanted = |name, list: Option<&Bound<'_, PyAny>>| {
        list.map_or_else(|| Ok(Vec::new()), |list| argument::all_wanted(name, list))
    };
    let are_both = keep.is_some() && drop.is_some();
    let (keep, drop) = (wanted("keep", keep)?, wanted("drop", drop)?);
    let rule = match (keep.is_empty() || are_both, drop.is_empty()) {
        (false, true) => Rule::keep(keep).with_exact(exact).with_drop_ptx(drop_ptx),
        (true, false) if !are_both => Rule::drop(drop),
        _ => return Err(PyValueError::new_err("expected one of keep and drop, a list of GPUs")),
    };
    let (source, output) = (of_file("source", source)?, of_file("output", output)?);
    let permits = Permits {
        is_environment: false,
        missing: allow_missing,
        empty: allow_empty,
        unserved: allow_unserved,
        databases,
        uneditable: Uneditable::default(),
    };
    let options = Options::strict(
        Some(output.clone()),
        (dry_run, ListFormat::default()),
        &argument::limits(threads)?,
    );
    let settings = Settings { source, output, rule, permits, options };
    finish(py, move |_| settings.run())?.map_err(|finding| finding.to_exception(py))
}
