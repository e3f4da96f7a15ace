//! Messages on standard error: `offload: error: FILE: what is wrong`.

use std::fmt::Display;
use std::io;

use anstream::eprintln;
use anstyle::Style;

use crate::style::{ERROR, NOTE, WARNING, printable};

const OFFLOAD: &str = "offload";

pub(crate) fn error(message: &dyn Display) {
    error_of(OFFLOAD, message);
}

pub(crate) fn warning(message: &dyn Display) {
    warning_of(OFFLOAD, message);
}

pub(crate) fn note(message: &dyn Display) {
    line(OFFLOAD, NOTE, "note", message);
}

/// An error of a tool that is not called `offload`.
pub(crate) fn error_of(tool: &str, message: &dyn Display) {
    line(tool, ERROR, "error", message);
}

/// A warning of a tool that is not called `offload`.
pub(crate) fn warning_of(tool: &str, message: &dyn Display) {
    line(tool, WARNING, "warning", message);
}

/// Says that a tool has a new name.
pub(crate) fn deprecated(name: &str, instead: &str) {
    eprintln!("{WARNING}warning: {WARNING:#}'{name}' is deprecated. Use '{instead}' instead.");
}

/// What the system says, without the number of the error.
pub(crate) fn reason(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::IsADirectory && error.get_ref().is_none() {
        return "Is a directory".to_owned();
    }
    let mut text = error.to_string();
    if let Some(at) = text.find(" (os error ") {
        text.truncate(at);
    }
    text
}

/// A finding of a walk, as an error or a warning.
pub(crate) fn finding(file: &str, finding: &fat_object::Finding<'_>) {
    let message = format!("{file}: {finding}");
    match finding.severity() {
        fat_object::Severity::Warning => warning(&message),
        fat_object::Severity::Error => error(&message),
    }
}

fn line(tool: &str, style: Style, severity: &str, message: &dyn Display) {
    let message = message.to_string();
    eprintln!("{tool}: {style}{severity}{style:#}: {}", printable(&message));
}
