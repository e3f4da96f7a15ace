//! Examples, notes and layout of help texts.

use std::fmt::Write;

use clap::Command;

/// The end of the help of a command: paragraphs. One that starts with a dollar sign is an example, a command line above what it does;
/// the others are notes.
#[derive(Debug)]
pub struct More(pub &'static str);

/// Commands under a title, each with the end of its help.
pub type Group = (&'static str, &'static [(&'static str, &'static More)]);

/// Terms under a title, each with its description.
pub type Terms = (&'static str, &'static [(&'static str, &'static str)]);

impl More {
    fn paragraphs(&self) -> impl Iterator<Item = &'static str> {
        self.0.trim_end().split("\n\n")
    }

    /// Returns command lines, each with what it does.
    pub fn examples(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.paragraphs().filter_map(|text| text.strip_prefix("$ ")?.rsplit_once('\n'))
    }

    /// Returns the notes. Lines of one that starts with two spaces stay lines.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let notes = self.paragraphs().filter(|text| !text.starts_with("$ "));
        notes.map(|text| {
            let is_verbatim = text.starts_with("  ");
            if is_verbatim { text.to_owned() } else { text.replace('\n', " ") }
        })
    }

    /// Returns the examples and the notes.
    pub fn text(&self) -> String {
        let mut text = self.examples_under("Examples");
        self.notes().for_each(|note| text.push_str(&format!("\n{note}\n")));
        text
    }

    fn examples_under(&self, title: &str) -> String {
        let mut text = format!("{}\n", heading(title));
        for (command, does) in self.examples() {
            command.lines().for_each(|line| text.push_str(&format!("  {line}\n")));
            text.push_str(&format!("      {does}\n"));
        }
        text
    }

    /// Returns the end of the help of a program with commands, which has terms before its last paragraph.
    pub fn start(&self, terms: &[Terms]) -> String {
        let mut text = self.examples_under("Start here");
        let mut notes: Vec<String> = self.notes().collect();
        // A text may have no notes.
        let last = notes.pop().unwrap_or_default();
        notes.iter().for_each(|note| text.push_str(&format!("\n{note}\n")));
        for (title, terms) in terms {
            let width = terms.iter().map(|(term, _)| term.len()).max().unwrap_or(0);
            text.push_str(&format!("\n{}\n", heading(title)));
            terms
                .iter()
                .for_each(|(term, words)| text.push_str(&format!("  {term:width$}  {words}\n")));
        }
        text.push_str(&format!("\n{last}"));
        text
    }
}

/// Returns a title in the style of clap.
fn heading(title: &str) -> String {
    let style = anstyle::Style::new().bold().underline();
    format!("{style}{title}:{style:#}")
}

/// Returns the layout of `offload --help` and `offload -h`, with a line for each command.
pub fn template(command: &Command, groups: &[Group]) -> String {
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (title, commands) in groups {
        let _ = write!(text, "\n{}\n", heading(title));
        for (name, _) in *commands {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let _ = writeln!(text, "  {name:<12} {}", about.unwrap_or_default());
        }
    }
    // clap adds this command.
    text.push_str("  help         Print this message or the help of the given subcommand(s)\n");
    let _ = write!(text, "\n{}\n{{options}}{{after-help}}", heading("Options"));
    text
}
