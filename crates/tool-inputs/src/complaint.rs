//! Findings of a walk on standard error, and in documents.

use std::io;

pub use device_files::finding_code as code;
use fat_object::{Severity, Summary};
use offload_check::Violation;
use tool_kit::document::{About, Document};
use tool_kit::finding::{Finding, Level};
use tool_kit::report::{self, error, note, warning};

/// Reports what is wrong with a file; returns whether there is an error. Without one, `why` gives the reason why nothing is shown
/// of the file, which may be an error itself.
pub fn report(
    document: &mut Document,
    file: &str,
    complaints: &[Complaint],
    summary: &io::Result<Summary>,
    why: impl FnOnce(&Summary) -> Option<Result<String, String>>,
) -> io::Result<bool> {
    report_all(document, complaints)?;
    document.about(file, || summary.as_ref().ok().map(about));
    let has_errors = complaints.iter().any(|one| one.severity == Severity::Error);
    match last(file, complaints, summary, why) {
        Some(Err(complaint)) => {
            report_all(document, &[complaint])?;
            Ok(true)
        }
        Some(Ok(why)) => {
            if !document.is_silent() {
                note(&format_args!("{file}: {why}"));
            }
            Ok(false)
        }
        None => Ok(has_errors),
    }
}

/// Returns what is to be said about a file after its complaints: why it could not be read, or why nothing is shown of it, if
/// that is an error; else a note.
pub fn last(
    file: &str,
    complaints: &[Complaint],
    summary: &io::Result<Summary>,
    why: impl FnOnce(&Summary) -> Option<Result<String, String>>,
) -> Option<Result<String, Complaint>> {
    match summary {
        Err(reason) => Some(Err(Complaint::error(file, "file/error", report::reason(reason)))),
        Ok(_) if complaints.iter().any(|one| one.severity == Severity::Error) => None,
        Ok(summary) => {
            Some(why(summary)?.map_err(|why| Complaint::error(file, "file/unknown", why)))
        }
    }
}

/// Reports findings of a walk.
pub fn report_all(document: &mut Document, complaints: &[Complaint]) -> io::Result<()> {
    if !document.is_silent() {
        complaints.iter().for_each(Complaint::report);
    }
    document.findings(complaints.iter().map(Complaint::finding))
}

/// Returns the size and the format of a file.
pub fn about(summary: &Summary) -> About {
    let (size, format) = (summary.size, summary.format.to_string());
    About { size, format, has_code: summary.images > 0 }
}

/// Something to say when its turn comes.
#[derive(Debug)]
pub struct Complaint {
    /// The severity.
    pub severity: Severity,
    /// The code of the finding.
    pub code: &'static str,
    /// The name of the file.
    pub file: String,
    /// The offset in the file, in bytes, of the container that it is about, if that lies in the file as it is.
    pub offset: Option<u64>,
    /// One sentence.
    pub text: String,
}

impl Complaint {
    /// Creates a finding of a walk.
    pub fn new(file: &str, finding: &fat_object::Finding) -> Self {
        let (severity, code) = (finding.severity(), code(finding.error().kind()));
        let offset = finding.location().file_offset();
        Complaint { severity, code, file: file.to_owned(), offset, text: finding.to_string() }
    }

    /// Creates an error about a file.
    pub fn error(file: &str, code: &'static str, text: impl Into<String>) -> Self {
        let (file, text) = (file.to_owned(), text.into());
        Complaint { severity: Severity::Error, code, file, offset: None, text }
    }

    /// Returns whether it may have kept device code from being seen.
    pub fn hides_code(&self) -> bool {
        self.severity == Severity::Error && device_files::hides_code(self.code)
    }

    /// Returns the text with the name of the file.
    pub fn message(&self) -> String {
        format!("{}: {}", self.file, self.text)
    }

    /// Returns the finding of a document.
    pub fn finding(&self) -> Finding {
        let level = match self.severity {
            Severity::Warning => Level::Warning,
            Severity::Error => Level::Error,
        };
        Finding::error(self.code, &self.file, &*self.text).with_level(level)
    }

    /// Prints it.
    pub fn report(&self) {
        match self.severity {
            Severity::Warning => warning(&self.message()),
            Severity::Error => error(&self.message()),
        }
    }
}

/// Returns the finding of a document for a violation of a policy, or of a declaration.
pub fn violation(one: Violation) -> Finding {
    let level = match one.level {
        offload_check::Level::Warning => Level::Warning,
        offload_check::Level::Error => Level::Error,
    };
    Finding::error(one.code, &one.file, one.message).with_level(level).with_help(one.help)
}
