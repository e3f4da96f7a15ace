//! Manual pages in the language of `man`, with the macros that every `man` knows; made of the definitions of commands.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use byte_parts::internal;
use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command};

use crate::Outcome;
use crate::help::{Group, More, Terms};
use crate::output::Outputs;
use crate::permissions::NewPermissions;

/// When the text of the pages last changed in more than a word.
const DATE: &str = "2026-11-22";

/// A page that is written from its top down.
#[derive(Debug)]
pub struct Page {
    text: String,
    /// `true` if nothing stands below the last title: the first paragraph there needs no macro.
    is_titled: bool,
}

impl Page {
    /// Creates a page of section 1, with the purpose of the command.
    pub fn new(name: &str, about: &str) -> Self {
        let version = concat!("offload ", env!("CARGO_PKG_VERSION"));
        let title = name.to_uppercase();
        let mut page = Page { text: String::new(), is_titled: false };
        page.line(&format!(".TH \"{title}\" \"1\" \"{DATE}\" \"{version}\" \"User Commands\""));
        // Lines are ragged, and no word is cut: most of them are names.
        page.line(".nh");
        page.line(".ad l");
        page.section("NAME");
        page.line(&format!("{} \\- {}", escaped(name), text(about)));
        page
    }

    /// Creates the page of a command: name, usage, description, arguments and options.
    pub fn of_command(name: &str, command: &Command) -> Self {
        let mut page = Page::new(name, &about(command));
        page.section("Synopsis");
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ");
        let words = command.get_bin_name().unwrap_or(command.get_name());
        let rest = usage.strip_prefix(words).unwrap_or(usage);
        page.line(&format!("{}{}", bold(words), escaped(rest)));
        let long = command.get_long_about().map(ToString::to_string).unwrap_or_default();
        page.section("Description");
        match long.split_once("\n\n") {
            Some((_, description)) => page.prose(description),
            None => page.prose(&format!("{}.", about(command))),
        }
        page
    }

    /// Adds a command of a command: its usage, description, arguments and options.
    fn nested(&mut self, command: &Command) {
        self.section(command.get_bin_name().unwrap_or(command.get_name()));
        let long = command.get_long_about().or_else(|| command.get_about());
        if let Some(long) = long {
            self.prose(&long.to_string());
        }
        for arg in command.get_positionals() {
            self.item(&values(arg), &words(arg));
        }
        self.option_items(command);
    }

    /// Adds the arguments and the options of a command.
    pub fn options(&mut self, command: &Command) {
        let mut arguments = command.get_positionals().peekable();
        if arguments.peek().is_some() {
            self.section("Arguments");
            arguments.for_each(|arg| self.item(&values(arg), &words(arg)));
        }
        self.section("Options");
        self.option_items(command);
    }

    fn option_items(&mut self, command: &Command) {
        for arg in command.get_arguments().filter(|arg| !arg.is_positional() && !arg.is_hide_set())
        {
            let short = arg.get_short().map(|short| bold(&format!("-{short}")));
            let long = arg.get_long().map(|long| bold(&format!("--{long}")));
            let names: Vec<_> = short.into_iter().chain(long).collect();
            let values = if is_flag(arg) { String::new() } else { format!(" {}", values(arg)) };
            self.item(&format!("{}{values}", names.join(", ")), &words(arg));
        }
    }

    /// Adds command lines, each with what it does.
    fn examples(&mut self, more: &More) {
        self.section("Examples");
        for (command, does) in more.examples() {
            let colon = if does.ends_with('?') { "" } else { ":" };
            self.prose(&format!("{}{colon}", capitalized(does)));
            self.literal(command.lines());
        }
    }

    /// Adds terms under a title.
    pub fn terms(&mut self, title: &str, terms: &[(&str, &str)]) {
        self.section(title);
        for (term, words) in terms {
            self.item(&bold(term), &format!("{}.", capitalized(words)));
        }
    }

    /// Adds notes, if there are some.
    fn notes(&mut self, more: &More) {
        let mut notes = more.notes().peekable();
        if notes.peek().is_some() {
            self.section("Notes");
            for note in notes {
                if note.starts_with("  ") {
                    self.literal(note.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)));
                } else {
                    self.prose(&note);
                }
            }
        }
    }

    /// Adds a section.
    pub fn section(&mut self, title: &str) {
        self.line(&format!(".SH {}", quoted(&title.to_uppercase())));
        self.is_titled = true;
    }

    /// Adds a section in a section.
    pub fn subsection(&mut self, title: &str) {
        self.line(&format!(".SS {}", quoted(title)));
        self.is_titled = true;
    }

    /// Adds paragraphs, separated by empty lines. Text between backquotes becomes bold.
    pub fn prose(&mut self, prose: &str) {
        for paragraph in prose.split("\n\n").map(str::trim).filter(|text| !text.is_empty()) {
            self.paragraph();
            self.sentences(paragraph);
        }
    }

    /// Adds a term and its description.
    pub fn item(&mut self, term: &str, prose: &str) {
        self.line(".TP");
        self.line(term);
        let mut paragraphs = prose.split("\n\n").map(str::trim).filter(|text| !text.is_empty());
        match paragraphs.next() {
            Some(first) => self.sentences(first),
            // No term without a text.
            None => self.line("\\&"),
        }
        for paragraph in paragraphs {
            self.line(".IP");
            self.sentences(paragraph);
        }
    }

    /// Adds lines unchanged, in the font of typed text.
    pub fn literal<'t>(&mut self, lines: impl IntoIterator<Item = &'t str>) {
        self.paragraph();
        self.line(".RS 4");
        self.line(".nf");
        for line in lines {
            self.line(&format!("\\fB{}\\fR", escaped(line)));
        }
        self.line(".fi");
        self.line(".RE");
    }

    /// Adds the related pages, all of section 1.
    pub fn see_also(&mut self, mut names: Vec<&str>) {
        self.section("SEE ALSO");
        names.sort_unstable();
        let names = names.iter().map(|name| format!("\\fB{}\\fR(1)", escaped(name)));
        self.line(&names.collect::<Vec<_>>().join(",\n"));
    }

    /// Adds a formatted line.
    pub fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.is_titled = false;
    }

    /// Returns the text of the page.
    pub fn finish(self) -> String {
        self.text
    }

    fn paragraph(&mut self) {
        if !self.is_titled {
            self.line(".PP");
        }
    }

    /// Adds text that is filled; each sentence ends a line of the source.
    fn sentences(&mut self, paragraph: &str) {
        const WIDTH: usize = 80;
        let mut line = String::new();
        for word in text(paragraph).split_whitespace() {
            if line.len() + word.len() >= WIDTH || line.ends_with('.') {
                self.line(&std::mem::take(&mut line));
            }
            match line.is_empty() {
                // Nothing but a request or a macro may begin so.
                true if word.starts_with(['.', '\'']) => line.push_str("\\&"),
                true => {}
                false => line.push(' '),
            }
            line.push_str(word);
        }
        if !line.is_empty() {
            self.line(&line);
        }
    }
}

/// The manual pages of a program with commands.
#[derive(Debug)]
pub struct Manual<'a> {
    /// The definition, built.
    pub command: &'a Command,
    /// The commands, as people look for them.
    pub groups: &'a [Group],
    /// The examples and notes of the program itself.
    pub start: &'a More,
    /// The terms on all pages.
    pub terms: &'a [Terms],
    /// The names of related programs.
    pub related: &'a [&'a str],
}

impl Manual<'_> {
    /// Returns the page of the program.
    pub fn root(&self) -> String {
        let program = self.command.get_name();
        let mut page = Page::of_command(program, self.command);
        page.section("Commands");
        let mut names = Vec::new();
        for (title, commands) in self.groups {
            page.subsection(title);
            for (name, _) in *commands {
                let own = format!("{program}-{name}");
                let missing = || internal!("a group with a command that is not there").to_owned();
                let purpose = self.command.find_subcommand(name).map_or_else(missing, about);
                page.item(&format!("{}(1)", bold(&own)), &purpose);
                names.push(own);
            }
        }
        page.options(self.command);
        page.examples(self.start);
        self.terms.iter().for_each(|(title, terms)| page.terms(title, terms));
        page.notes(self.start);
        page.see_also(
            self.related.iter().copied().chain(names.iter().map(|name| &**name)).collect(),
        );
        page.finish()
    }

    /// Returns the title and the page of a command, with links to the others of its group; `None` if there is none with this name.
    pub fn of_command(&self, name: &str) -> Option<(String, String)> {
        let program = self.command.get_name();
        let of_group = |(_, commands): &(_, &'static [(&'static str, &'static More)])| {
            let (_, more) = commands.iter().find(|(command, _)| *command == name)?;
            Some((*more, *commands))
        };
        let (more, group) = self.groups.iter().find_map(of_group)?;
        let command = self.command.find_subcommand(name)?;
        let title = format!("{program}-{name}");
        let mut page = Page::of_command(&title, command);
        let nested = command.get_subcommands().filter(|nested| nested.get_name() != "help");
        nested.for_each(|nested| page.nested(nested));
        page.options(command);
        page.examples(more);
        page.notes(more);
        self.terms.iter().for_each(|(title, terms)| page.terms(title, terms));
        let others: Vec<_> = group.iter().map(|(other, _)| format!("{program}-{other}")).collect();
        let others = others.iter().filter(|other| **other != title).map(|other| &**other);
        page.see_also(others.chain([program]).collect());
        Some((title, page.finish()))
    }
}

/// Returns the purpose of a command; nothing where it has none.
fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn is_flag(arg: &Arg) -> bool {
    !arg.is_positional() && !matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

/// Returns the names of the values of an argument.
fn values(arg: &Arg) -> String {
    let names = arg.get_value_names().into_iter().flatten();
    let mut values: Vec<_> = names.map(|name| italic(name)).collect();
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
        let names: Vec<_> = possible.iter().map(PossibleValue::get_name).collect();
        words.push_str(&format!("\n\nPossible values: {}.", names.join(", ")));
    }
    words
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next();
    first.into_iter().flat_map(char::to_uppercase).chain(chars).collect()
}

/// Returns text with its quoted commands in bold.
fn text(prose: &str) -> String {
    let parts = prose.split('`').enumerate().map(|(nth, part)| match nth {
        0 => escaped(part),
        _ if nth % 2 == 1 => format!("\\fB{}\\fR", escaped(part)),
        _ => escaped_within(part),
    });
    parts.collect()
}

/// Returns text that is typed literally.
pub fn bold(text: &str) -> String {
    format!("\\fB{}\\fR", escaped_within(text))
}

/// Returns text that is replaced by a value.
pub fn italic(text: &str) -> String {
    format!("\\fI{}\\fR", escaped_within(text))
}

/// Returns text that may begin a line.
pub fn escaped(text: &str) -> String {
    let escaped = escaped_within(text);
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}

/// Returns text with no character that means something else, or becomes another one in a terminal.
fn escaped_within(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '\'' => escaped.push_str("\\(aq"),
            '`' => escaped.push_str("\\(ga"),
            '^' => escaped.push_str("\\(ha"),
            '~' => escaped.push_str("\\(ti"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Returns an argument of a macro.
fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped_within(text).replace('"', "\\(dq"))
}

/// Prints a page on standard output.
pub fn print(page: &str) -> io::Result<Outcome> {
    let mut out = io::stdout().lock();
    out.write_all(page.as_bytes())?;
    out.flush()?;
    Ok(Outcome::Clean)
}

/// Writes pages, each with its title, to files of a directory, which is created if it does not exist.
pub fn write_all(
    directory: &Path,
    pages: impl IntoIterator<Item = (String, String)>,
) -> io::Result<Outcome> {
    let mut outputs = Outputs::default();
    let directory = outputs.make_directory(directory)?;
    for (title, page) in pages {
        let name = directory.file(format!("{title}.1"));
        let write = |file: &mut File| file.write_all(page.as_bytes());
        outputs.write(&name, NewPermissions::PLAIN.into(), write)?;
    }
    outputs.commit()?;
    Ok(Outcome::Clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_never_becomes_a_request() {
        assert_eq!(escaped(".hip_fatbin"), "\\&.hip_fatbin");
        assert_eq!(escaped("'a'"), "\\(aqa\\(aq");
        assert_eq!(escaped("a\\b -c ~"), "a\\eb \\-c \\(ti");
    }

    #[test]
    fn quoted_commands_are_bold() {
        assert_eq!(text("see `offload ls`."), "see \\fBoffload ls\\fR.");
    }
}
