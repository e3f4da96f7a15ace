//! Kernel packs: libraries split into a host and packs, and joined again.

pub(crate) mod answer;
pub(crate) mod join;
mod join_wheel;
pub(crate) mod split;
mod split_wheel;

use fat_edit::EditPlan;
use tool_edits::describe_host;
use tool_kit::report;

/// Prints the remarks about an edit of a file.
fn note(name: &str, plan: &EditPlan) {
    for text in plan.notes().iter().filter_map(describe_host) {
        report::note(&format_args!("{name}: {text}"));
    }
}
