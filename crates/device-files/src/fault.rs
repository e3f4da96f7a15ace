//! Findings: errors and warnings about a file.

use std::io;

use fat_object::{ErrorKind, Finding, Severity};
use serde::Serialize;

/// A finding: one object of `findings` in the tools' JSON, with the member instead of the file, and the offset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Fault {
    /// The code, such as `verify/malformed`.
    pub code: &'static str,
    /// The severity: `error` or `warning`.
    pub level: &'static str,
    /// The member of the package; empty for the file itself.
    pub member: String,
    /// The offset in the file, or in the member, in bytes; `None` if it is not known.
    pub offset: Option<u64>,
    /// One sentence.
    pub message: String,
    /// `true` if answers about GPUs say it of the image.
    #[serde(skip)]
    pub(crate) is_in_answers: bool,
    /// `true` if no answer counts what it names: a container image without an answer, a file that no image sees.
    #[serde(skip)]
    pub(crate) is_apart: bool,
}

impl Fault {
    /// Creates a finding of a walk.
    #[must_use]
    pub fn new(member: &str, finding: &Finding) -> Self {
        let code = finding_code(finding.error().kind());
        let (level, offset) = (level(finding.severity()), finding.location().file_offset());
        Fault {
            code,
            level,
            member: member.to_owned(),
            offset,
            message: finding.to_string(),
            is_in_answers: false,
            is_apart: false,
        }
    }

    /// Creates an error.
    pub(crate) fn error(member: &str, code: &'static str, message: impl Into<String>) -> Self {
        let (member, message) = (member.to_owned(), message.into());
        let (is_in_answers, is_apart) = (false, false);
        Fault { code, level: "error", member, offset: None, message, is_in_answers, is_apart }
    }

    /// Creates a warning.
    pub(crate) fn warning(member: &str, code: &'static str, message: impl Into<String>) -> Self {
        Fault { level: "warning", ..Fault::error(member, code, message) }
    }

    /// Returns whether it may have kept device code from being seen.
    pub(crate) fn hides_code(&self) -> bool {
        self.level == "error" && !self.is_apart && hides_code(self.code)
    }

    pub(crate) fn with_level(self, severity: Severity) -> Self {
        Fault { level: level(severity), ..self }
    }

    /// Creates an error about a package.
    pub(crate) fn of_package(member: &str, error: &gpu_packages::Error) -> Self {
        let offset = error.offset();
        Fault { offset, ..Fault::error(member, "file/error", error.to_string()) }
    }

    /// Creates an error of reading.
    #[must_use]
    pub fn of_io(member: &str, error: &io::Error) -> Self {
        if let Some(inner) = error.get_ref() {
            if let Some(finding) = inner.downcast_ref::<Finding>() {
                return Fault::new(member, finding);
            }
            if let Some(error) = inner.downcast_ref::<gpu_packages::Error>() {
                return Fault::of_package(member, error);
            }
        }
        Fault::error(member, "file/error", error.to_string())
    }
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// Returns whether an error with this code may have kept device code from being seen.
#[must_use]
pub fn hides_code(code: &str) -> bool {
    !matches!(code, "targets/nothing" | "verify/registration")
}

/// Returns the code of findings of a kind.
#[must_use]
pub fn finding_code(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::HostFile => "verify/host-file",
        ErrorKind::Archive => "verify/archive",
        ErrorKind::ThinMember | ErrorKind::ThinMemberSize => "verify/thin-member",
        ErrorKind::Image => "verify/image",
        ErrorKind::UnknownContents => "verify/unknown-contents",
        ErrorKind::TrailingData => "verify/trailing-data",
        ErrorKind::Composition => "verify/composition",
        ErrorKind::Disagreement => "verify/disagreement",
        ErrorKind::RepeatedKey => "verify/repeated-key",
        ErrorKind::Limit | ErrorKind::Names => "verify/limit",
        ErrorKind::NotRead => "file/unknown",
        ErrorKind::Io => "file/error",
        _ => "verify/malformed",
    }
}
