//! What help texts and manual pages say around what clap makes of the definitions.

use std::fmt::Write;

use clap::Command;

use crate::style::HEADING;

/// A command line, and what it does in a few words.
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

/// Terms under a title, and what there is to say of each.
pub(crate) type Terms = (&'static str, &'static [(&'static str, &'static str)]);

/// The end of `offload -h`.
pub(crate) const SHORT: &str = "`offload COMMAND --help` has examples of each command.";

/// The end of `offload --help`: [`TERMS`] stand before the last paragraph.
pub(crate) const START: More = More {
    examples: &[
        ("offload ls libfoo.so", "which GPUs does this library carry code for?"),
        ("offload match --gpu gfx1031 libfoo.so", "what would this one run, and if nothing, why?"),
        ("offload thin libfoo.so --keep gfx1100 -o small.so", "the same library, for one GPU"),
    ],
    notes: &[
        "`offload COMMAND --help` has examples of each command, and `offload man COMMAND | man -l -` the same as a \
         page. Output files appear whole. If a command fails or is interrupted, none of them appears.",
        "The tools that stand in for LLVM's (clang-offload-bundler, llvm-offload-binary, also called \
         clang-offload-packager, llvm-offload-wrapper and clang-offload-wrapper) have a --help of their own.",
    ],
};

/// What holds for all commands.
pub(crate) const TERMS: [Terms; 2] = [
    (
        "Exit status",
        &[
            ("0", "all is well"),
            ("1", "a file is at fault, or cannot be read or written; no, from match and verify"),
            ("2", "wrong usage"),
            ("141", "whoever read the output left before its end"),
        ],
    ),
    (
        "Environment",
        &[
            ("NO_COLOR", "if set, text has no colours, as in files and pipes"),
            ("CLICOLOR_FORCE", "if set, text has colours, in files and pipes as well"),
            ("COLUMNS", "how wide help texts may be, where no terminal tells"),
            ("TMPDIR", "where standard input is kept, and what else needs a file"),
        ],
    ),
];

impl More {
    /// The examples and the notes.
    pub(crate) fn text(&self) -> String {
        let mut text = examples("Examples", self.examples);
        self.notes.iter().for_each(|note| text.push_str(&format!("\n{note}\n")));
        text
    }
}

/// The end of `offload --help`.
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

/// A title, as clap's own look.
fn heading(title: &str) -> String {
    let style = HEADING.underline();
    format!("{style}{title}:{style:#}")
}

/// The layout of `offload --help` and `offload -h`, with what the commands say of themselves.
pub(crate) fn template(command: &Command, groups: &[Group]) -> String {
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (title, commands) in groups {
        let _ = write!(text, "\n{}\n", heading(title));
        for (name, _) in *commands {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let _ = writeln!(text, "  {name:<12} {}", about.unwrap_or_default());
        }
    }
    // The one that clap adds.
    text.push_str("  help         Print this message or the help of the given subcommand(s)\n");
    let _ = write!(text, "\n{}\n{{options}}{{after-help}}", heading("Options"));
    text
}
