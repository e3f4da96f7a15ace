//! Examples, notes and layout of help texts and manual pages.

use std::fmt::Write;

use clap::Command;

/// A command line, and what it does.
pub(crate) type Example = (&'static str, &'static str);

/// The end of the help of a command.
#[derive(Debug)]
pub(crate) struct More {
    pub(crate) examples: &'static [Example],
    /// Paragraphs.
    pub(crate) notes: &'static [&'static str],
}

/// Commands under a title, each with the end of its help.
pub(crate) type Group = (&'static str, &'static [(&'static str, &'static More)]);

/// Terms under a title, each with its description.
pub(crate) type Terms = (&'static str, &'static [(&'static str, &'static str)]);

/// The end of `offload -h`.
pub(crate) const SHORT: &str = "`offload COMMAND --help` shows examples of each command.";

/// The end of `offload --help`. [`TERMS`] precede the last paragraph.
pub(crate) const START: More = More {
    examples: &[
        ("offload ls libfoo.so", "list the GPUs that a library has code for"),
        (
            "offload match --gpu gfx1031 libfoo.so",
            "show what this GPU would load, or why it loads nothing",
        ),
        ("offload thin libfoo.so --keep gfx1100 -o small.so", "keep only the code for one GPU"),
    ],
    notes: &[
        "`offload COMMAND --help` shows examples of each command; `offload man COMMAND | man -l -` shows its \
         manual page. Output files appear complete or not at all, even if a command fails or is interrupted.",
        "The drop-in replacements for LLVM's, AMD's and NVIDIA's tools have their own --help: clang-offload-bundler, \
         llvm-offload-binary (also called clang-offload-packager), llvm-offload-wrapper, clang-offload-wrapper, \
         clang-linker-wrapper, roc-obj-ls, roc-obj-extract and fatbinary.",
    ],
};

/// Exit statuses and environment variables of all commands.
pub(crate) const TERMS: [Terms; 2] = [
    (
        "Exit status",
        &[
            ("0", "success"),
            ("1", "a file is malformed or unreadable, match found no image, or a check failed"),
            ("2", "the command line is invalid"),
            ("141", "standard output was closed early (broken pipe)"),
        ],
    ),
    (
        "Environment",
        &[
            ("NO_COLOR", "if set, never print colours"),
            ("CLICOLOR_FORCE", "if set, print colours even to files and pipes"),
            ("COLUMNS", "width of help texts if standard output is not a terminal"),
            ("TMPDIR", "directory for temporary files, such as a copy of standard input"),
        ],
    ),
];

impl More {
    /// Returns the examples and the notes.
    pub(crate) fn text(&self) -> String {
        let mut text = examples("Examples", self.examples);
        self.notes.iter().for_each(|note| text.push_str(&format!("\n{note}\n")));
        text
    }
}

/// Returns the end of `offload --help`.
pub(crate) fn more() -> String {
    let mut text = examples("Start here", START.examples);
    let (last, first) = START.notes.split_last().unwrap_or((&"", &[]));
    first.iter().for_each(|note| text.push_str(&format!("\n{note}\n")));
    for (title, terms) in TERMS {
        let width = terms.iter().map(|(term, _)| term.len()).max().unwrap_or(0);
        text.push_str(&format!("\n{}\n", heading(title)));
        terms
            .iter()
            .for_each(|(term, words)| text.push_str(&format!("  {term:width$}  {words}\n")));
    }
    text.push_str(&format!("\n{last}"));
    text
}

fn examples(title: &str, examples: &[Example]) -> String {
    let mut text = format!("{}\n", heading(title));
    for (command, does) in examples {
        command.lines().for_each(|line| text.push_str(&format!("  {line}\n")));
        text.push_str(&format!("      {does}\n"));
    }
    text
}

/// Returns a title in the style of clap.
fn heading(title: &str) -> String {
    let style = anstyle::Style::new().bold().underline();
    format!("{style}{title}:{style:#}")
}

/// Returns the layout of `offload --help` and `offload -h`, with a line for each command.
pub(crate) fn template(command: &Command, groups: &[Group]) -> String {
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
