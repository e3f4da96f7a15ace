//! Findings of a walk on standard error.

use std::io;

use fat_object::{Finding, Severity, Summary};
use tool_kit::report::{self, error, note, warning};

/// Reports what is wrong with a file; returns whether there is an error. Without one, `why` gives the reason why nothing is shown
/// of the file, which may be an error itself.
pub(crate) fn report(
    file: &str,
    complaints: &[Complaint],
    summary: &io::Result<Summary>,
    why: impl FnOnce(&Summary) -> Option<Result<String, String>>,
) -> bool {
    complaints.iter().for_each(Complaint::report);
    let why = match summary {
        Err(reason) => Some(Err(report::reason(reason))),
        Ok(_) if complaints.iter().any(|one| one.severity == Severity::Error) => return true,
        Ok(summary) => why(summary),
    };
    match &why {
        Some(Err(why)) => error(&format_args!("{file}: {why}")),
        Some(Ok(why)) => note(&format_args!("{file}: {why}")),
        None => {}
    }
    why.is_some_and(|why| why.is_err())
}

/// Something to say when its turn comes.
#[derive(Debug)]
pub(crate) struct Complaint {
    pub(crate) severity: Severity,
    pub(crate) message: String,
}

impl Complaint {
    /// Creates a finding of a walk.
    pub(crate) fn new(file: &str, finding: &Finding) -> Self {
        Complaint { severity: finding.severity(), message: format!("{file}: {finding}") }
    }

    pub(crate) fn report(&self) {
        match self.severity {
            Severity::Warning => warning(&self.message),
            Severity::Error => error(&self.message),
        }
    }
}
