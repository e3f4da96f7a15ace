//! `offload man`: manual pages, made of the definitions of commands and options.

use std::io;
use std::path::PathBuf;

use clap::Command;
use drop_ins::manual::TOOLS;

use crate::help::{START, TERMS};
use target_id::near::{did_you_mean, nearest};
use tool_kit::Outcome;
use tool_kit::help::Group;
use tool_kit::roff::{self, Manual};

/// Print a manual page, or write all of them
///
/// There is a page for offload, for each of its commands, and for each drop-in replacement of an LLVM tool.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Command, or tool such as clang-offload-bundler [default: offload]
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    page: Option<String>,
    /// Write all pages to this directory, created if it does not exist
    #[arg(long, short, alias = "output", value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, mut command: Command, groups: &[Group]) -> io::Result<Outcome> {
    // The options of the commands are there only then.
    command.build();
    let related = TOOLS.map(|(name, _)| name);
    let manual =
        Manual { command: &command, groups, start: &START, terms: &TERMS, related: &related };
    let names = names(groups);
    let page = |name: &str| page(&manual, name);
    if let Some(directory) = &args.out {
        return roff::write_all(directory, ["offload"].into_iter().chain(names).filter_map(page));
    }
    let name = args.page.as_deref().unwrap_or("offload");
    let near = || did_you_mean(&nearest(name, names));
    let (_, page) = page(name)
        .ok_or_else(|| io::Error::other(format!("no manual page for '{name}'{}", near())))?;
    roff::print(&page)
}

/// Returns the names of all pages except `offload`'s.
pub(crate) fn names(groups: &[Group]) -> Vec<&'static str> {
    let commands = groups.iter().flat_map(|(_, commands)| commands.iter().map(|(name, _)| *name));
    commands.chain(TOOLS.iter().map(|(name, _)| *name)).collect()
}

/// Returns the title of a page, and the page.
fn page(manual: &Manual<'_>, name: &str) -> Option<(String, String)> {
    if name == "offload" {
        return Some((name.to_owned(), manual.root()));
    }
    match TOOLS.iter().find(|(tool, _)| *tool == name) {
        Some((_, tool)) => Some((name.to_owned(), drop_ins::manual::page(name, tool))),
        None => manual.of_command(name.strip_prefix("offload-").unwrap_or(name)),
    }
}
