//! `offload man`: manual pages, made of the definitions of commands and options.

mod clap_page;
mod llvm_page;
mod roff;
mod tools;

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Command;

use crate::output::Outputs;
use crate::permissions::NewPermissions;
use crate::suggest::{did_you_mean, nearest};
use crate::{Outcome, report};
use tools::TOOLS;

/// Print a manual page, or write all of them
///
/// There is a page for offload, one for each of its commands, and one for each of the tools that stand in for LLVM's.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  offload man | man -l -
      the page of offload itself
  offload man thin | man -l -
      that of a command
  offload man --out share/man/man1
      all pages, for a package")]
pub(crate) struct Args {
    /// A command, or a tool such as clang-offload-bundler; without, offload itself
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    page: Option<String>,
    /// Write all pages into this directory, made if it does not exist
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, mut command: Command) -> io::Result<Outcome> {
    // The options of the commands are there only then.
    command.build();
    let Some(directory) = &args.out else {
        let name = args.page.as_deref().unwrap_or("offload");
        let Some(page) = page(&command, name) else {
            let near = did_you_mean(&nearest(name, names()));
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
    for (file, name) in pages(&command) {
        let Some(page) = page(&command, &name) else { continue };
        let write = |file: &mut File| file.write_all(page.as_bytes());
        outputs.write(&directory.file(&file), NewPermissions::PLAIN.into(), write)?;
    }
    outputs.commit()?;
    Ok(Outcome::Clean)
}

/// All pages: their files, and what they are asked for by.
fn pages(command: &Command) -> Vec<(String, String)> {
    let commands = clap_page::commands(command);
    let commands = commands.map(|name| (format!("offload-{name}.1"), name.to_owned()));
    let tools = TOOLS.iter().map(|(name, _)| (format!("{name}.1"), (*name).to_owned()));
    let own = ("offload.1".to_owned(), "offload".to_owned());
    [own].into_iter().chain(commands).chain(tools).collect()
}

/// What pages can be asked for by.
pub(crate) fn names() -> Vec<&'static str> {
    let tools = TOOLS.iter().map(|(name, _)| *name);
    crate::help::commands().filter(|name| *name != "help").chain(tools).collect()
}

fn page(command: &Command, name: &str) -> Option<String> {
    if name == "offload" {
        return Some(clap_page::root(command));
    }
    if let Some((name, tool)) = TOOLS.iter().find(|(tool, _)| *tool == name) {
        return Some(llvm_page::page(name, tool));
    }
    let name = name.strip_prefix("offload-").unwrap_or(name);
    Some(clap_page::command(command, command.find_subcommand(name)?))
}
