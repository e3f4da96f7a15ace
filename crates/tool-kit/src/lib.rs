//! Files and terminals as command line tools need them: inputs that are opened once, output that is all or nothing, tables, colours,
//! JSON, progress, exit status. Knows no GPU. Made for the tools of this workspace, and no stable API.

#![forbid(unsafe_code)]

pub mod arguments;
pub mod attributes;
pub mod budget;
mod ci;
pub mod destination;
pub mod directory;
pub mod document;
mod erase;
pub mod explain;
pub mod failure;
pub mod file_part;
pub mod finding;
pub mod folded;
pub mod format;
pub mod help;
pub mod holes;
pub mod input;
mod json;
pub mod listed;
pub mod looked;
pub mod opened;
pub mod output;
pub mod parallel;
pub mod payload;
pub mod permissions;
pub mod piped;
pub mod positioned;
pub mod progress;
pub mod python;
pub mod real;
pub mod remote;
pub mod report;
pub mod retried;
pub mod roff;
pub mod scratch;
pub mod searched;
pub mod special;
pub mod stamp;
pub mod standard;
pub mod stop;
pub mod store;
pub mod style;
pub mod table;
pub mod temporary;
pub mod width;
pub mod wildcards;

/// The result of a command that did not fail outright.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing to complain about.
    Clean,
    /// Complaints were printed.
    Faults,
}
