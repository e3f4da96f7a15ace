//! Messages on standard error: `offload: error: FILE: what is wrong`.

use std::fmt::Display;

use anstream::eprintln;
use anstyle::Style;

use crate::style::{ERROR, NOTE, WARNING, printable};

pub(crate) fn error(message: &dyn Display) {
    line(ERROR, "error", message);
}

pub(crate) fn warning(message: &dyn Display) {
    line(WARNING, "warning", message);
}

pub(crate) fn note(message: &dyn Display) {
    line(NOTE, "note", message);
}

/// A finding of a walk, as an error or a warning.
pub(crate) fn finding(file: &str, finding: &fat_object::Finding<'_>) {
    let message = format_args!("{file}: {finding}");
    match finding.severity() {
        fat_object::Severity::Warning => warning(&message),
        fat_object::Severity::Error => error(&message),
    }
}

fn line(style: Style, severity: &str, message: &dyn Display) {
    let message = message.to_string();
    eprintln!("offload: {style}{severity}{style:#}: {}", printable(&message));
}
