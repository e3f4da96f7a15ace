//! Kernel packs: libraries split into a host and packs, and joined again.

pub(crate) mod answer;
pub(crate) mod host;
pub(crate) mod join;
pub(crate) mod split;

use fat_edit::EditPlan;

use crate::edit::describe_host;
use tool_kit::report;

/// Prints the remarks about an edit of a file.
fn note(name: &str, plan: &EditPlan) {
    for text in plan.notes().iter().filter_map(describe_host) {
        report::note(&format_args!("{name}: {text}"));
    }
}
