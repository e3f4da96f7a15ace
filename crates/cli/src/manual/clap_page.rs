//! Pages of `offload` and its commands.

use clap::{Arg, ArgAction, Command};

use super::roff::{Page, bold, escaped, italic};
use super::tools::TOOLS;
use crate::help;

/// The names of the commands that have a page.
pub(super) fn commands(root: &Command) -> impl Iterator<Item = &str> {
    root.get_subcommands().map(Command::get_name).filter(|name| *name != "help")
}

/// The page of `offload`.
pub(super) fn root(root: &Command) -> String {
    let mut page = top("offload", root);
    page.section("Commands");
    for (title, commands) in groups(root) {
        page.subsection(title);
        for command in commands {
            let name = command.get_name();
            page.item(&format!("{}(1)", bold(&format!("offload-{name}"))), &about(command));
        }
    }
    options(&mut page, root);
    let more = root.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    after(&mut page, &more);
    let own = commands(root).map(|name| format!("offload-{name}"));
    let mut names: Vec<String> = own.chain(TOOLS.iter().map(|(name, _)| (*name).into())).collect();
    names.sort();
    page.see_also(names.iter().map(String::as_str));
    page.finish()
}

/// The page of a command.
pub(super) fn command(root: &Command, command: &Command) -> String {
    let name = format!("offload-{}", command.get_name());
    let mut page = top(&name, command);
    options(&mut page, command);
    let own = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    after(&mut page, &own);
    // What holds for all of them.
    let shared = root.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    for (title, lines) in sections(&shared) {
        if matches!(title, Some("Exit status" | "Environment")) {
            definitions(&mut page, title.unwrap_or_default(), &lines);
        }
    }
    let related = groups(root).into_iter().find(|(_, commands)| {
        commands.iter().any(|related| related.get_name() == command.get_name())
    });
    let related = related.into_iter().flat_map(|(_, commands)| commands);
    let related = related.map(Command::get_name).filter(|name| *name != command.get_name());
    let related = related.map(|name| format!("offload-{name}"));
    let mut names: Vec<String> = related.chain(["offload".to_owned()]).collect();
    names.sort();
    page.see_also(names.iter().map(String::as_str));
    page.finish()
}

/// Name, usage, description.
fn top(name: &str, command: &Command) -> Page {
    let mut page = Page::new(name, &about(command));
    page.section("Synopsis");
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let words = command.get_bin_name().unwrap_or("offload");
    let rest = usage.strip_prefix(words).unwrap_or(usage);
    page.line(&format!("{}{}", bold(words), escaped(rest)));
    let long = command.get_long_about().map(ToString::to_string).unwrap_or_default();
    let description = long.split_once("\n\n").map_or("", |(_, description)| description);
    page.section("Description");
    match description.is_empty() {
        true => page.prose(&format!("{}.", about(command))),
        false => page.prose(description),
    }
    page
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn options(page: &mut Page, command: &Command) {
    let arguments: Vec<&Arg> = command.get_positionals().collect();
    if !arguments.is_empty() {
        page.section("Arguments");
        arguments.into_iter().for_each(|arg| page.item(&values(arg), &words(arg)));
    }
    page.section("Options");
    for arg in command.get_arguments().filter(|arg| !arg.is_positional() && !arg.is_hide_set()) {
        let short = arg.get_short().map(|short| bold(&format!("-{short}")));
        let long = arg.get_long().map(|long| bold(&format!("--{long}")));
        let names: Vec<_> = short.into_iter().chain(long).collect();
        let values = if is_flag(arg) { String::new() } else { format!(" {}", values(arg)) };
        page.item(&format!("{}{values}", names.join(", ")), &words(arg));
    }
}

fn is_flag(arg: &Arg) -> bool {
    !arg.is_positional() && !matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

/// What an argument takes.
fn values(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let mut values: Vec<_> = names.iter().map(|name| italic(name)).collect();
    if arg.is_positional() && matches!(arg.get_action(), ArgAction::Append) {
        values.push("...".to_owned());
    }
    values.join(" ")
}

/// What help texts say of an argument.
fn words(arg: &Arg) -> String {
    if matches!(arg.get_action(), ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong) {
        return "Print help: -h a summary, --help all of it, with examples.".to_owned();
    }
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let mut words = help.map(ToString::to_string).unwrap_or_default();
    if !words.ends_with(['.', ']', ')']) {
        words.push('.');
    }
    let defaults: Vec<_> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if !defaults.is_empty() && !is_flag(arg) {
        words.push_str(&format!("\n\nThe default is {}.", defaults.join(", ")));
    }
    let possible = arg.get_possible_values();
    if !possible.is_empty() && !is_flag(arg) && !arg.is_hide_possible_values_set() {
        let names: Vec<_> = possible.iter().map(clap::builder::PossibleValue::get_name).collect();
        words.push_str(&format!("\n\nPossible values: {}.", names.join(", ")));
    }
    words
}

/// The commands under the titles that `offload --help` has.
fn groups(root: &Command) -> Vec<(&'static str, Vec<&Command>)> {
    let mut groups: Vec<(&str, Vec<&Command>)> = Vec::new();
    for line in help::TEMPLATE.lines() {
        if let Some(title) = help::title(line) {
            groups.push((title, Vec::new()));
        }
        let name = line.strip_prefix("  ").and_then(|line| line.split_whitespace().next());
        let command =
            name.filter(|name| *name != "help").and_then(|name| root.find_subcommand(name));
        if let (Some((_, commands)), Some(command)) = (groups.last_mut(), command) {
            commands.push(command);
        }
    }
    groups.retain(|(_, commands)| !commands.is_empty());
    groups
}

/// What stands behind the options: sections with a title, and paragraphs without.
fn sections(text: &str) -> Vec<(Option<&str>, Vec<&str>)> {
    let blocks = text.split("\n\n").map(|block| block.lines().collect::<Vec<_>>());
    blocks
        .map(|lines| match lines.split_first() {
            Some((first, rest)) if help::title(first).is_some() => {
                (help::title(first), rest.to_vec())
            }
            _ => (None, lines),
        })
        .collect()
}

fn after(page: &mut Page, text: &str) {
    let sections = sections(text);
    for (title, lines) in &sections {
        match title {
            Some(title @ ("Examples" | "Start here")) => {
                page.section(if *title == "Examples" { title } else { "Examples" });
                examples(page, lines);
            }
            Some(title) => definitions(page, title, lines),
            None => {}
        }
    }
    let notes: Vec<_> = sections.iter().filter(|(title, _)| title.is_none()).collect();
    if !notes.is_empty() {
        page.section("Notes");
        notes.iter().for_each(|(_, lines)| page.prose(&lines.join("\n")));
    }
}

/// Lines with a term and what there is to say of it.
fn definitions(page: &mut Page, title: &str, lines: &[&str]) {
    page.section(title);
    for line in lines {
        let (term, words) = line.trim().split_once("  ").unwrap_or((line.trim(), ""));
        page.item(&bold(term), &format!("{}.", capitalized(words.trim())));
    }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Commands, each with what it does.
fn examples(page: &mut Page, lines: &[&str]) {
    for example in help::examples(lines) {
        let colon = if example.does.ends_with('?') { "" } else { ":" };
        page.prose(&format!("{}{colon}", capitalized(&example.does)));
        page.literal(example.command.iter().map(String::as_str));
    }
}
