//! The help texts, laid out as LLVM does.

use std::fmt::Write;

use super::table::{GENERIC, Kind, Opt, Tool, Visibility, dashes};

/// Returns the text of `--help` and `--help-hidden`: options under headings.
pub(crate) fn help(tool: &Tool, program: &str, hidden: bool) -> String {
    let mut text = head(tool, program);
    // LLVM shows the way to the other list only where there are headings.
    let shown = |option: &&Opt| option.is_in(hidden) || option.name == "help-list";
    let width = width(tool.all().filter(shown));
    for (heading, options) in [("Generic Options:", &GENERIC[..]), (tool.heading, tool.options)] {
        let _ = write!(text, "\n{heading}\n\n");
        rows(&mut text, options.iter().filter(shown), width);
    }
    text
}

/// Returns the text of `--help-list` and `--help-list-hidden`: options in one list.
pub(crate) fn help_list(tool: &Tool, program: &str, hidden: bool) -> String {
    let mut text = head(tool, program);
    let options: Vec<&Opt> = tool.all().filter(|option| option.is_in(hidden)).collect();
    let width = width(options.iter().copied());
    rows(&mut text, options.into_iter(), width);
    text
}

fn head(tool: &Tool, program: &str) -> String {
    let Tool { overview, positionals, .. } = tool;
    let space = if positionals.is_empty() { "" } else { " " };
    format!("OVERVIEW: {overview}\n\nUSAGE: {program} [options]{space}{positionals}\n\nOPTIONS:\n")
}

fn rows<'a>(text: &mut String, options: impl Iterator<Item = &'a Opt>, width: usize) {
    let mut options: Vec<_> = options.collect();
    options.sort_by_key(|option| option.name);
    for option in options {
        let (first, lines) = option.help.split_once('\n').unwrap_or((option.help, ""));
        let _ = writeln!(text, "  {:width$} - {first}", option.usage());
        for line in lines.lines() {
            let _ = writeln!(text, "  {:width$}   {line}", "");
        }
        if let Kind::Named(choices) = option.kind {
            for (name, help) in choices {
                let name = format!("  ={name}");
                let _ = writeln!(text, "  {name:width$} -   {help}");
            }
        }
    }
}

fn width<'a>(options: impl Iterator<Item = &'a Opt>) -> usize {
    options.map(|option| option.usage().len()).max().unwrap_or(0)
}

impl Opt {
    fn is_in(&self, hidden: bool) -> bool {
        self.visibility <= if hidden { Visibility::Hidden } else { Visibility::Shown }
    }

    /// Returns `-o <file>`, `--image=<value>` or `--archive`.
    fn usage(&self) -> String {
        let Opt { name, value_name, .. } = self;
        let dashes = dashes(name);
        match (value_name.is_empty(), name.len()) {
            (true, _) => format!("{dashes}{name}"),
            (false, 1) => format!("{dashes}{name} <{value_name}>"),
            (false, _) => format!("{dashes}{name}=<{value_name}>"),
        }
    }
}
