//! `offload.thin`.

use std::io;
use std::path::PathBuf;
use std::slice;

use device_select::Rule;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;
use tool_answers::suggest;
use tool_edits::{FileRow, Options, Permits, Reporter, Thinning, Uneditable};
use tool_inputs::inputs::Input;
use tool_kit::Outcome;
use tool_kit::failure::Failure;
use tool_kit::format::ListFormat;
use tool_kit::report::{self, Collected, Message};

use crate::fault::{Finding, not_a_gpu};
use crate::image::limits;
use crate::source;
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
    /// The files of `offload thin --json`: the source first, then its members.
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

/// Removes code for other GPUs.
#[pyfunction]
#[pyo3(signature = (source, output, /, *, keep=None, drop=None, exact=false, drop_ptx=false, allow_missing=false, allow_empty=false, allow_unserved=false, databases=false, dry_run=false, threads=None))]
#[expect(
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools,
    reason = "they have names in Python"
)]
pub(crate) fn thin(
    py: Python<'_>,
    source: PathBuf,
    output: PathBuf,
    keep: Option<Vec<String>>,
    drop: Option<Vec<String>>,
    exact: bool,
    drop_ptx: bool,
    allow_missing: bool,
    allow_empty: bool,
    allow_unserved: bool,
    databases: bool,
    dry_run: bool,
    threads: Option<u32>,
) -> PyResult<Report> {
    let wanted = |typed: Vec<String>| {
        let all = typed.iter().map(|one| suggest::known(one));
        all.collect::<Result<Vec<_>, _>>().map_err(|text| not_a_gpu(py, &text))
    };
    let rule = match (keep, drop) {
        (Some(keep), None) if !keep.is_empty() => {
            Rule::keep(wanted(keep)?).with_exact(exact).with_drop_ptx(drop_ptx)
        }
        (None, Some(drop)) if !drop.is_empty() => Rule::drop(wanted(drop)?),
        _ => return Err(PyValueError::new_err("expected one of keep and drop, a list of GPUs")),
    };
    source::check(&source)?;
    source::check(&output)?;
    if [&source, &output].iter().any(|path| path.as_os_str() == "-") {
        return Err(PyValueError::new_err("expected the path of a file, found '-'"));
    }
    let permits = Permits {
        is_environment: false,
        missing: allow_missing,
        empty: allow_empty,
        unserved: allow_unserved,
        databases,
        uneditable: Uneditable::default(),
    };
    let options =
        Options::strict(Some(output.clone()), (dry_run, ListFormat::default()), &limits(threads)?);
    let settings = Settings { source, output, rule, permits, options };
    finish(py, move |_| settings.run())?.map_err(|finding| finding.to_exception(py))
}
