//! What `offload --help` says around what clap makes of the definitions, and how help texts look.

use std::fmt::Write;

use crate::style::HEADING;

/// The layout of `offload --help` and `offload -h`. The commands say the same of themselves.
pub(crate) const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

Look into files:
  ls           List every device image in any file: kind, triple, target, size
  match        Say which image a GPU gets, and why it does not get the others
  gpus         List the names of GPUs, with their processors and PCI IDs
  verify       Check structure, bounds, hashes and rules of composition

Take images out:
  extract      Write device images into files, under safe generated names
  unbundle     Take code objects for given targets out of a bundle or any file

Make containers:
  bundle       Put code objects into a bundle, as clang-offload-bundler does
  pack         Put device images into a package, which clang can embed

Edit what lies in files:
  thin         Remove device code for other GPUs from any file, linked or not
  remove       Remove entries of bundles and packages, in any file
  replace      Put images in the place of others, in any file
  add          Add images to a bundle or a package, in any file
  compress     Compress bundles and offload binaries in any file
  decompress   Decompress bundles and offload binaries, and check them

Link:
  wrap         Put device images into a module that registers them at run time

Set up:
  completions  Print the script that completes command lines in a shell
  man          Print a manual page, or write all of them
  help         Print this message or the help of the given subcommand(s)

Options:
{options}{after-help}";

/// The end of `offload -h`.
pub(crate) const SHORT: &str = "`offload COMMAND --help` has examples of each command.";

/// The end of `offload --help`, in sections: a title, and lines with a term and what there is to say of it.
pub(crate) const MORE: &str = "\
Start here:
  offload ls libfoo.so
      which GPUs does this library carry code for?
  offload match --gpu gfx1031 libfoo.so
      what would this one run, and if nothing, why?
  offload thin libfoo.so --keep gfx1100 -o small.so
      the same library, for one GPU

`offload COMMAND --help` has examples of each command, and `offload man COMMAND | man -l -` the \
same as a page. Output files appear whole. If a command fails or is interrupted, none of them appears.

Exit status:
  0    all is well
  1    a file is at fault, or cannot be read or written; no, from match and verify
  2    wrong usage
  141  whoever read the output left before its end

Environment:
  NO_COLOR        if set, text has no colours, as in files and pipes
  CLICOLOR_FORCE  if set, text has colours, in files and pipes as well
  COLUMNS         how wide help texts may be, where no terminal tells
  TMPDIR          where standard input is kept, and what else needs a file

The tools that stand in for LLVM's (clang-offload-bundler, llvm-offload-binary, also called \
clang-offload-packager, llvm-offload-wrapper and clang-offload-wrapper) have a --help of their own.";

/// A help text with its titles made visible: lines of their own that end in a colon. clap does so with those it knows.
pub(crate) fn with_titles(text: &str) -> String {
    let mut styled = String::new();
    for line in text.split_inclusive('\n') {
        match title(line.trim_end()) {
            // As clap's own.
            Some(title) => {
                let style = HEADING.underline();
                let _ = writeln!(styled, "{style}{title}:{style:#}");
            }
            None => styled.push_str(line),
        }
    }
    styled
}

/// The names of all commands.
pub(crate) fn commands() -> impl Iterator<Item = &'static str> {
    let lines = TEMPLATE.lines().filter_map(|line| line.strip_prefix("  "));
    lines.filter_map(|line| line.split_whitespace().next())
}

/// What a line is the title of.
pub(crate) fn title(line: &str) -> Option<&str> {
    let title = line.strip_suffix(':')?;
    let is_plain = |c: char| c.is_ascii_alphabetic() || c == ' ';
    (title.starts_with(|c: char| c.is_ascii_uppercase()) && title.chars().all(is_plain))
        .then_some(title)
}

/// A command line of a help text.
#[derive(Debug)]
pub(crate) struct Example {
    /// As it is typed: one line, or several that `\` puts together.
    pub(crate) command: Vec<String>,
    /// In a few words; empty if nothing is said.
    pub(crate) does: String,
}

/// The examples of a section: two spaces in, with what they do below, further in.
pub(crate) fn examples(lines: &[&str]) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    for line in lines {
        let goes_on = |example: &Example| example.command.last().is_some_and(|l| l.ends_with('\\'));
        match examples.last_mut() {
            Some(last) if goes_on(last) => {
                last.command.push(line.strip_prefix("  ").unwrap_or(line).to_owned());
            }
            Some(last) if line.starts_with("   ") => last.does.push_str(line.trim()),
            _ => {
                let command = vec![line.trim().to_owned()];
                examples.push(Example { command, does: String::new() });
            }
        }
    }
    examples
}
