//! Pages of `offload` and its commands.

use clap::{Arg, ArgAction, Command};

use super::EDITION;
use super::tools::TOOLS;
use crate::help::{Example, Group, More, START, TERMS};
use tool_kit::roff::{Page, bold, escaped, italic};

/// Returns the page of `offload`.
pub(super) fn root(root: &Command, groups: &[Group]) -> String {
    let mut page = top("offload", root);
    let mut names: Vec<String> = TOOLS.iter().map(|(name, _)| (*name).to_owned()).collect();
    page.section("Commands");
    for (title, commands) in groups {
        page.subsection(title);
        for (name, _) in *commands {
            let own = format!("offload-{name}");
            let about = root.find_subcommand(name).map(about).unwrap_or_default();
            page.item(&format!("{}(1)", bold(&own)), &about);
            names.push(own);
        }
    }
    options(&mut page, root);
    examples(&mut page, START.examples);
    terms(&mut page);
    notes(&mut page, START.notes);
    names.sort();
    page.see_also(names.iter().map(String::as_str));
    page.finish()
}

/// Returns the page of a command, with links to the others of its group.
pub(super) fn command(
    name: &str,
    command: &Command,
    more: &More,
    group: &[(&str, &More)],
) -> String {
    let mut page = top(name, command);
    options(&mut page, command);
    examples(&mut page, more.examples);
    notes(&mut page, more.notes);
    terms(&mut page);
    let related = group.iter().map(|(related, _)| format!("offload-{related}"));
    let mut names: Vec<String> = related.filter(|related| related != name).collect();
    names.push("offload".to_owned());
    names.sort();
    page.see_also(names.iter().map(String::as_str));
    page.finish()
}

/// Adds name, usage and description.
fn top(name: &str, command: &Command) -> Page {
    let mut page = Page::new(name, &about(command), EDITION);
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

/// Returns the names of the values of an argument.
fn values(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let mut values: Vec<_> = names.iter().map(|name| italic(name)).collect();
    if arg.is_positional() && matches!(arg.get_action(), ArgAction::Append) {
        values.push("...".to_owned());
    }
    values.join(" ")
}

/// Returns the help text of an argument.
fn words(arg: &Arg) -> String {
    if matches!(arg.get_action(), ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong) {
        return "Print help: a summary with -h, all of it with --help.".to_owned();
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

/// Adds commands, each with its description.
fn examples(page: &mut Page, examples: &[Example]) {
    page.section("Examples");
    for (command, does) in examples {
        let colon = if does.ends_with('?') { "" } else { ":" };
        page.prose(&format!("{}{colon}", capitalized(does)));
        page.literal(command.lines());
    }
}

/// Adds the exit statuses and environment variables of all commands.
fn terms(page: &mut Page) {
    for (title, terms) in TERMS {
        page.section(title);
        for (term, words) in terms {
            page.item(&bold(term), &format!("{}.", capitalized(words)));
        }
    }
}

fn notes(page: &mut Page, notes: &[&str]) {
    if !notes.is_empty() {
        page.section("Notes");
        notes.iter().for_each(|note| page.prose(note));
    }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
