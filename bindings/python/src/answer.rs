//! `offload.match`.

use std::io;
use std::slice;
use std::sync::Arc;

use device_select::{Device, FileSet, Support};
use pyo3::prelude::*;
use serde_json::Value;
use tool_answers::matching::{self, File, Question, Reporter, SplitAnswer, VariantAnswer};
use tool_inputs::complaint::Complaint;
use tool_inputs::inputs::Input;
use tool_inputs::limits::Limits;
use tool_inputs::native::Found;
use tool_inputs::split_library::Host;
use tool_kit::document::OfFile;
use tool_kit::finding::Level;
use tool_kit::stop::Stop;
use tool_kit::{input, report};

use crate::argument;
use crate::fault::Finding;
use crate::source::Source;
use crate::value::of_json;
use crate::work::wait_for;

/// The verdict about a file, a package, or files that are alternatives.
#[pyclass(frozen, get_all, eq, module = "offload")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    /// The file or package.
    file: String,
    /// `yes`, `partly`, `unknown` or `no`.
    verdict: &'static str,
    /// The reason: ``has no code for gfx1102: built for gfx1100``.
    reason: String,
}

#[pymethods]
impl Verdict {
    fn __repr__(&self) -> String {
        format!("<Verdict {}: {}: {}>", self.verdict, self.file, self.reason)
    }
}

/// The answer of `match`. It is true if ``offload match`` exits with 0: all files were read, and no answer is ``unknown`` or ``no``.
#[pyclass(frozen, module = "offload")]
#[derive(Debug)]
pub(crate) struct Answer {
    gpu: String,
    verdict: Support,
    verdicts: Vec<Verdict>,
    containers: Vec<Value>,
    findings: Vec<Finding>,
    /// `true` if the tool would exit with 0.
    is_served: bool,
}

#[pymethods]
impl Answer {
    /// The target ID of the GPU.
    #[getter]
    fn gpu(&self) -> &str {
        &self.gpu
    }

    /// The worst of all verdicts, and at least ``unknown`` if files could not be read; ``no`` for a source without device code.
    #[getter]
    fn verdict(&self) -> &'static str {
        self.verdict.as_str()
    }

    /// The reasons, one line for each verdict; without one the reason why there is none.
    #[getter]
    fn reason(&self) -> String {
        let one = |verdict: &Verdict| match self.verdicts.len() {
            1 => verdict.reason.clone(),
            _ => format!("{}: {}", verdict.file, verdict.reason),
        };
        if self.verdicts.is_empty() {
            let nothing = self.findings.iter().find(|one| one.is_error());
            return nothing.map_or_else(String::new, |one| one.message.clone());
        }
        self.verdicts.iter().map(one).collect::<Vec<_>>().join("\n")
    }

    #[getter]
    fn verdicts(&self) -> Vec<Verdict> {
        self.verdicts.clone()
    }

    /// The answers of ``offload match --json``: one for each container, with all its images.
    #[getter]
    fn containers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        of_json(py, &Value::Array(self.containers.clone()))
    }

    /// Faults of files, and doubts about the GPU: a processor that is not known is a warning, ``targets/unknown``.
    #[getter]
    fn findings(&self) -> Vec<Finding> {
        self.findings.clone()
    }

    /// ``True`` if all files were read: nothing failed, and none is of a format that is not read.
    #[getter]
    fn ok(&self) -> bool {
        !self.findings.iter().any(|one| is_obstacle(one) || one.is_unread())
    }

    /// `True` if `offload match` exits with 0.
    fn __bool__(&self) -> bool {
        self.is_served
    }

    fn __repr__(&self) -> String {
        format!("<Answer {} for {}>", self.verdict(), self.gpu)
    }
}

/// Collects answers.
#[derive(Default)]
struct Collecting<'q> {
    question: Option<&'q Question<'q>>,
    verdicts: Vec<(String, Support, String)>,
    containers: Vec<Value>,
    findings: Vec<Finding>,
}

impl Collecting<'_> {
    fn row(&mut self, file: &str, record: &impl serde::Serialize) -> io::Result<()> {
        let row = serde_json::to_value(OfFile { file, record })?;
        self.containers.push(row);
        Ok(())
    }
}

impl Reporter for Collecting<'_> {
    fn complain(&mut self, complaints: &[Complaint]) -> io::Result<()> {
        let findings =
            complaints.iter().map(|one| Finding { offset: one.offset, ..one.finding().into() });
        self.findings.extend(findings);
        Ok(())
    }

    fn rows(&mut self, name: &str, file: &File) -> io::Result<()> {
        let Some(question) = self.question else { return Ok(()) };
        for n in 0..file.read.units.len() {
            for (gpu, answers) in question.gpus.iter().zip(&file.answers) {
                if let Some(record) = answers.record(&file.read.units, gpu, n) {
                    self.row(name, &record)?;
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, input: &Input, file: &File, is_judged_later: bool) -> io::Result<()> {
        let Some(question) = self.question.filter(|_| !is_judged_later && file.read.has_answer())
        else {
            return Ok(());
        };
        for (n, answers) in file.asked(question, input) {
            if let Some(gpu) = question.gpus.get(n) {
                let text = answers.conclusion(&file.read.units, gpu).text;
                self.verdicts.push((input.name().to_owned(), answers.support(), text));
            }
        }
        Ok(())
    }

    fn variants(
        &mut self,
        VariantAnswer { wheel, support, text, .. }: &VariantAnswer<'_>,
    ) -> io::Result<()> {
        self.verdicts.push(((*wheel).to_owned(), *support, text.clone()));
        Ok(())
    }

    fn set(&mut self, set: &FileSet, is_variant: bool) -> io::Result<()> {
        if is_variant {
            return Ok(());
        }
        let answers = set.answers().into_iter();
        self.verdicts
            .extend(answers.map(|one| (one.name.to_owned(), one.support, one.conclusion.text)));
        Ok(())
    }

    fn split_library(
        &mut self,
        input: &Input,
        _: &Host,
        answers: &[SplitAnswer],
    ) -> io::Result<()> {
        answers.iter().try_for_each(|answer| self.split(input.name(), answer))
    }

    fn split(&mut self, name: &str, answer: &SplitAnswer) -> io::Result<()> {
        self.row(name, &answer.record(|path| input::display(path)))?;
        let words = answer.words(|path| input::display(path));
        self.verdicts.push((name.to_owned(), answer.support(), words));
        Ok(())
    }
}

/// Answers the question about a source.
fn ask(
    source: &Source,
    (gpu, native): (Device, Option<Found>),
    check: bool,
    limits: &Limits,
    stop: &Stop,
) -> io::Result<Answer> {
    let (name, doubt) = (gpu.name(), gpu.doubt());
    // The needs of code are in the code itself, often compressed.
    let check = check || native.as_ref().is_some_and(Found::has_versions);
    let question = Question { gpus: vec![gpu], kinds: &[], check, is_strict: false, limits };
    let (done, messages) = report::collected(|| {
        native.iter().for_each(|found| report::note(&found.with_settings()));
        let inputs = matching::prepared(source.inputs(), &question.gpus);
        let collecting = Collecting { question: Some(&question), ..Collecting::default() };
        let (looked, fails, collecting) = matching::answer(&question, &inputs, collecting)?;
        let arguments = if source.has_path() { slice::from_ref(&source.path) } else { &[] };
        let declared = matching::declared(arguments, &inputs, &question.gpus);
        io::Result::Ok((looked, fails, collecting, declared))
    });
    stop.check()?;
    let (looked, fails, collecting, declared) = done?;
    let Collecting { verdicts, containers, mut findings, .. } = collecting;
    let has_errors = declared.iter().any(|one| one.level == Level::Error);
    findings.extend(looked.findings(true).into_iter().chain(declared).map(Finding::from));
    let place = source.path.display().to_string();
    findings.extend(messages.into_iter().map(|one| Finding::of_message(&place, one)));
    let is_empty = findings.iter().any(|one| one.code == "file/nothing");
    let is_served = !(fails || has_errors || looked.is_faulty() || is_empty);
    // It is said, and fails nothing.
    findings.extend(doubt.map(|text| Finding {
        level: Level::Warning.as_str(),
        ..Finding::error("targets/unknown", "", text)
    }));
    // A file that was not read could have code, and need some.
    let is_obstructed = findings.iter().any(is_obstacle)
        || verdicts.is_empty() && (looked.is_partial() || findings.iter().any(Finding::is_unread));
    let unknown = is_obstructed.then_some(Support::Unknown);
    // Without code there is none for the GPU.
    let worst = verdicts.iter().map(|(_, support, _)| *support).chain(unknown).max();
    let verdict = worst.unwrap_or(Support::No);
    let verdicts = verdicts.into_iter().map(|(file, support, reason)| Verdict {
        file,
        verdict: support.as_str(),
        reason,
    });
    Ok(Answer { gpu: name, verdict, verdicts: verdicts.collect(), containers, findings, is_served })
}

/// Ask which images a GPU loads, and why not the others.
///
/// With ``native`` the versions of the driver and of ROCm on this machine count, as for ``offload match --gpu native``; a note among
/// `Answer.findings` says what was found.
///
/// Example:
///     >>> answer = offload.match("foo.whl", "RX 7600")
///     >>> print(answer.verdict, answer.reason)
///     no has no code for gfx1102: built for gfx1100, gfx90a
///
/// Args:
///     source: A path, a URL, ``foo.whl:foo/libfoo.so`` for the member of a package, bytes, or a binary file.
///     gpu: A target ID (``gfx90a:xnack+``, ``sm_86``), a name (``RX 7600``), a PCI ID, or ``native`` for the GPU of this machine.
///     check: Decompress everything, and compare each image with the name of its entry.
///     threads: The most threads; without it one for each core.
///
/// Raises:
///     OSError: The source cannot be opened or read.
///     OffloadError: Nothing in the source was understood.
///     UrlError: A URL cannot be read.
///     UnknownGpuError: ``gpu`` names none, or several; ``native``: no GPU is found, or several different ones.
///     TypeError: An argument has another type; the text names it.
///     ValueError: ``source`` is empty, or ``threads`` is 0.
#[pyfunction]
#[pyo3(name = "match", signature = (source, gpu, /, *, check=false, threads=None))]
pub(crate) fn match_(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    gpu: &Bound<'_, PyAny>,
    check: bool,
    threads: Option<&Bound<'_, PyAny>>,
) -> PyResult<Answer> {
    let gpu = argument::gpu(gpu)?;
    let (source, limits) = (Source::of("source", source)?, argument::limits(threads)?);
    let of_thread = Arc::clone(&source);
    let answer = wait_for(py, move |stop| ask(&of_thread, gpu, check, &limits, stop))?;
    let answer = answer.map_err(|error| Finding::of_io(&source.name, &error).to_exception(py))?;
    // A question about something that is not there, or not understood at all, has no answer.
    match answer.findings.iter().find(|one| is_obstacle(one)) {
        Some(finding) if answer.verdicts.is_empty() => {
            Err(finding.clone().with_errno().to_exception(py))
        }
        _ => Ok(answer),
    }
}

/// Returns whether a finding keeps a question from being answered. "No device code" is an answer.
fn is_obstacle(finding: &Finding) -> bool {
    finding.is_error()
        && !matches!(&*finding.code, "targets/nothing" | "file/nothing" | "targets/missing")
}
