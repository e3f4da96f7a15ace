//! Kernel packs: libraries split into a host and packs, and joined again.

pub(crate) mod answer;
pub(crate) mod join;
mod join_wheel;
pub(crate) mod split;
mod split_wheel;

use fat_edit::EditPlan;

use tool_edits::describe_host;
use tool_kit::failure::Failure;
use tool_kit::{report, scratch};

/// The contents of temporary files.
const CODES: &str = "code objects";

/// Prints the remarks about an edit of a file.
fn note(name: &str, plan: &EditPlan) {
    for text in plan.notes().iter().filter_map(describe_host) {
        report::note(&format_args!("{name}: {text}"));
    }
}

/// Returns the failure of a plan, with the option that helps.
fn failed(error: fat_edit::Error) -> Failure {
    let option = match error.host().map(object_edit::Error::kind) {
        Some(object_edit::ErrorKind::NoRoom) => " (--grow, or --compress)",
        Some(object_edit::ErrorKind::Signed) => " (--drop-signature drops it)",
        _ => "",
    };
    match error.io() {
        Some(_) => scratch::copying(CODES, error.into()).into(),
        None => format!("{error}{option}").into(),
    }
}
