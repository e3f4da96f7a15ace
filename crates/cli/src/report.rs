//! Messages on standard error: `offload: error: FILE: what is wrong`.

use std::fmt::Display;
use std::io;

use anstream::eprintln;
use anstyle::Style;
use fat_object::{Finding, ImageFormat, Severity, Summary};

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
pub(crate) fn finding(file: &str, finding: &Finding<'_>) {
    let message = format!("{file}: {finding}");
    match finding.severity() {
        Severity::Warning => warning(&message),
        Severity::Error => error(&message),
    }
}

/// Why a file holds no images.
pub(crate) fn no_images(summary: &Summary) -> String {
    match summary.format {
        ImageFormat::Empty => "the file is empty".to_owned(),
        ImageFormat::Unknown => {
            "no device images: not an object, library, archive or container".to_owned()
        }
        // It may be a device image itself, or a module for the host.
        ImageFormat::Bitcode => "no device images: LLVM bitcode that embeds none".to_owned(),
        format if format.may_hold_images() => "no device images".to_owned(),
        format => format!("the file is a bare image ({format}), in no container"),
    }
}

fn line(tool: &str, style: Style, severity: &str, message: &dyn Display) {
    let message = message.to_string();
    eprintln!("{tool}: {style}{severity}{style:#}: {}", printable(&message));
}
