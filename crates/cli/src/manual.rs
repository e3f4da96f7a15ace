//! `offload man`: manual pages, made of the definitions of commands and options.

mod clap_page;
mod llvm_page;
mod tools;

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Command;

use crate::help::{Group, More};
use target_id::near::{did_you_mean, nearest};
use tool_kit::output::Outputs;
use tool_kit::permissions::NewPermissions;
use tool_kit::{Outcome, report};
use tools::TOOLS;

/// The program, and when the text of its pages last changed in more than a word.
const EDITION: (&str, &str) = (concat!("offload ", env!("CARGO_PKG_VERSION")), "2026-11-22");

pub(crate) const MORE: More = More {
    examples: &[
        ("offload man | man -l -", "read the page of offload itself"),
        ("offload man thin | man -l -", "read the page of a command"),
        ("offload man --out share/man/man1", "write all pages, for a package"),
    ],
    notes: &[],
};

/// Print a manual page, or write all of them
///
/// There is a page for offload, for each of its commands, and for each drop-in replacement of an LLVM tool.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MORE.text())]
pub(crate) struct Args {
    /// Command, or tool such as clang-offload-bundler [default: offload]
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    page: Option<String>,
    /// Write all pages to this directory, created if it does not exist
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, mut command: Command, groups: &[Group]) -> io::Result<Outcome> {
    // The options of the commands are there only then.
    command.build();
    let Some(directory) = &args.out else {
        let name = args.page.as_deref().unwrap_or("offload");
        let Some((_, page)) = page(&command, groups, name) else {
            let near = did_you_mean(&nearest(name, names(groups)));
            report::error(&format_args!("no manual page for '{name}'{near}"));
            return Ok(Outcome::Faults);
        };
        let mut out = io::stdout().lock();
        out.write_all(page.as_bytes())?;
        out.flush()?;
        return Ok(Outcome::Clean);
    };
    let mut outputs = Outputs::default();
    let directory = outputs.make_directory(directory)?;
    for name in ["offload"].into_iter().chain(names(groups)) {
        let Some((title, page)) = page(&command, groups, name) else { continue };
        let write = |file: &mut File| file.write_all(page.as_bytes());
        outputs.write(
            &directory.file(format!("{title}.1")),
            NewPermissions::PLAIN.into(),
            write,
        )?;
    }
    outputs.commit()?;
    Ok(Outcome::Clean)
}

/// Returns the names of all pages but that of `offload`.
pub(crate) fn names(groups: &[Group]) -> Vec<&'static str> {
    let commands = groups.iter().flat_map(|(_, commands)| commands.iter().map(|(name, _)| *name));
    commands.chain(TOOLS.iter().map(|(name, _)| *name)).collect()
}

/// Returns the title of a page, and the page.
fn page(command: &Command, groups: &[Group], name: &str) -> Option<(String, String)> {
    if name == "offload" {
        return Some((name.to_owned(), clap_page::root(command, groups)));
    }
    if let Some((name, tool)) = TOOLS.iter().find(|(tool, _)| *tool == name) {
        return Some(((*name).to_owned(), llvm_page::page(name, tool)));
    }
    let name = name.strip_prefix("offload-").unwrap_or(name);
    for (_, commands) in groups {
        if let Some((name, more)) = commands.iter().find(|(command, _)| *command == name) {
            let command = command.find_subcommand(name)?;
            let title = format!("offload-{name}");
            let page = clap_page::command(&title, command, more, commands);
            return Some((title, page));
        }
    }
    None
}
