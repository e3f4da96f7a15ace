//! `offload man`: manual pages, made of the definitions of commands and options.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Command;
use drop_ins::manual::TOOLS;

use crate::help::{Group, More, START, TERMS};
use target_id::near::{did_you_mean, nearest};
use tool_kit::output::Outputs;
use tool_kit::permissions::NewPermissions;
use tool_kit::roff::{Page, about, bold};
use tool_kit::{Outcome, report};

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
        return Some((name.to_owned(), root(command, groups)));
    }
    if let Some((name, tool)) = TOOLS.iter().find(|(tool, _)| *tool == name) {
        return Some(((*name).to_owned(), drop_ins::manual::page(name, tool)));
    }
    let name = name.strip_prefix("offload-").unwrap_or(name);
    for (_, commands) in groups {
        if let Some((name, more)) = commands.iter().find(|(command, _)| *command == name) {
            let command = command.find_subcommand(name)?;
            let title = format!("offload-{name}");
            let page = of_command(&title, command, more, commands);
            return Some((title, page));
        }
    }
    None
}

/// Returns the page of `offload`.
fn root(root: &Command, groups: &[Group]) -> String {
    let mut page = Page::of_command("offload", root);
    page.section("Commands");
    let mut names = Vec::new();
    for (title, commands) in groups {
        page.subsection(title);
        for (name, _) in *commands {
            let own = format!("offload-{name}");
            let about = root.find_subcommand(name).map(about).unwrap_or_default();
            page.item(&format!("{}(1)", bold(&own)), &about);
            names.push(own);
        }
    }
    page.options(root);
    page.examples(START.examples);
    TERMS.iter().for_each(|(title, terms)| page.terms(title, terms));
    page.notes(START.notes);
    let tools = TOOLS.iter().map(|(name, _)| *name);
    page.see_also(tools.chain(names.iter().map(String::as_str)).collect());
    page.finish()
}

/// Returns the page of a command, with links to the others of its group.
fn of_command(name: &str, command: &Command, more: &More, group: &[(&str, &More)]) -> String {
    let mut page = Page::of_command(name, command);
    page.options(command);
    page.examples(more.examples);
    page.notes(more.notes);
    TERMS.iter().for_each(|(title, terms)| page.terms(title, terms));
    let related: Vec<_> = group.iter().map(|(related, _)| format!("offload-{related}")).collect();
    let others = related.iter().map(String::as_str).filter(|related| *related != name);
    page.see_also(others.chain(["offload"]).collect());
    page.finish()
}
