//! Findings of a walk on standard error.

use fat_object::{Finding, Severity};
use tool_kit::report::{error, warning};

/// Prints a finding of a walk, as an error or a warning.
pub(crate) fn finding(file: &str, finding: &Finding) {
    Complaint::new(file, finding).report();
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
