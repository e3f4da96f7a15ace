//! `offload`: see, extract and verify the GPU code in any file.

use std::borrow::Cow;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::help::Group;
use crate::{
    add, bundle, completions, compress, decompress, doctor, extract, fatbin, gpus, help, kernels,
    link, ls, manual, match_gpu, native, pack, packs, remove, replace, thin, unbundle, verify, why,
    wrap,
};
use tool_kit::{Outcome, report, style};

/// See, extract, edit and verify the GPU code in any file
///
/// Files are objects, libraries, programs and archives of any system, bundles and offload binaries.
#[derive(Debug, Parser)]
#[command(name = "offload", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = help::SHORT, after_long_help = help::more())]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Each with the first line of its help: the options of a command are only put together when it is called.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Command {
    /// List every device image in any file: kind, triple, target, size
    Ls(ls::Args),
    /// Show which image a GPU loads, and why not the others
    Match(match_gpu::Args),
    /// List the kernels of images, and their resources
    Kernels(kernels::Args),
    /// Show which images and kernels came, went, changed
    Diff(kernels::diff::Args),
    /// Tell which Python packages have code for this machine's GPUs
    Doctor(doctor::Args),
    /// Explain an error message about device code, and what helps
    Why(why::Args),
    /// List the names of GPUs, with their processors and PCI IDs
    Gpus(gpus::Args),
    /// Check structure, bounds, hashes and rules of composition
    Verify(verify::Args),
    /// Write device images to files with safe generated names
    Extract(extract::Args),
    /// Extract the best code object for each target ID from any file
    Unbundle(unbundle::Args),
    /// Bundle code objects, as clang-offload-bundler does
    Bundle(bundle::Args),
    /// Pack device images into an offload binary, which clang can embed
    Pack(pack::Args),
    /// Pack cubins, PTX and LTO-IR into an NVIDIA fatbinary
    Fatbin(fatbin::Args),
    /// Remove device code for other GPUs from any file, linked or not
    Thin(thin::Args),
    /// Remove entries of bundles and offload binaries, in any file
    Remove(remove::Args),
    /// Replace images in any file
    Replace(replace::Args),
    /// Add images to a bundle, offload binary or fatbinary, in any file
    Add(add::Args),
    /// Compress bundles, offload binaries and fatbinaries in any file
    Compress(compress::Args),
    /// Decompress and check bundles, offload binaries and fatbinaries
    Decompress(decompress::Args),
    /// Move device code of HIP from libraries to kernel packs
    Split(packs::split::Args),
    /// Move device code from kernel packs into their library
    Join(packs::join::Args),
    /// Link device code of objects, and register it in one object
    Link(link::Args),
    /// Wrap device images in a module that registers them at run time
    Wrap(wrap::Args),
    /// Print a shell completion script
    Completions(completions::Args),
    /// Print a manual page, or write all of them
    Man(manual::Args),
}

/// The commands, as people look for them.
const GROUPS: [Group; 6] = [
    (
        "Inspect",
        &[
            ("ls", &ls::MORE),
            ("match", &match_gpu::MORE),
            ("kernels", &kernels::MORE),
            ("diff", &kernels::diff::MORE),
            ("doctor", &doctor::MORE),
            ("why", &why::MORE),
            ("gpus", &gpus::MORE),
            ("verify", &verify::MORE),
        ],
    ),
    ("Extract", &[("extract", &extract::MORE), ("unbundle", &unbundle::MORE)]),
    ("Create", &[("bundle", &bundle::MORE), ("pack", &pack::MORE), ("fatbin", &fatbin::MORE)]),
    (
        "Edit",
        &[
            ("thin", &thin::MORE),
            ("remove", &remove::MORE),
            ("replace", &replace::MORE),
            ("add", &add::MORE),
            ("compress", &compress::MORE),
            ("decompress", &decompress::MORE),
            ("split", &packs::split::MORE),
            ("join", &packs::join::MORE),
        ],
    ),
    ("Link", &[("link", &link::MORE), ("wrap", &wrap::MORE)]),
    ("Set up", &[("completions", &completions::MORE), ("man", &manual::MORE)]),
];

/// Returns the definition of the command line.
fn definition() -> clap::Command {
    let command = Cli::command();
    let template = help::template(&command, &GROUPS);
    command.help_template(template)
}

/// Runs `offload` with the arguments of this process.
pub fn main() -> ExitCode {
    let arguments = match native::expand(std::env::args_os()) {
        Ok(expanded) => {
            expanded.note.iter().for_each(|note| report::note(note));
            expanded.arguments
        }
        Err(error) => {
            report::error(&error);
            return ExitCode::FAILURE;
        }
    };
    let parsed = definition().try_get_matches_from(arguments);
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        // Help and versions are asked for, and are the output then.
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            return report::print_help(report::OFFLOAD, &error.render().ansi().to_string());
        }
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            return ExitCode::from(2);
        }
        Err(error) if !error.use_stderr() => {
            return match error.print() {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => report::end(report::OFFLOAD, &error),
            };
        }
        Err(error) => return usage(&error),
    };
    let result = match cli.command {
        Command::Ls(args) => ls::run(&args),
        Command::Match(args) => match_gpu::run(&args),
        Command::Kernels(args) => kernels::run(&args),
        Command::Diff(args) => kernels::diff::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Why(args) => why::run(&args),
        Command::Gpus(args) => gpus::run(&args),
        Command::Extract(args) => extract::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Pack(args) => pack::run(&args),
        Command::Fatbin(args) => fatbin::run(&args),
        Command::Bundle(args) => bundle::run(&args),
        Command::Unbundle(args) => unbundle::run(&args),
        Command::Compress(args) => compress::run(&args),
        Command::Decompress(args) => decompress::run(&args),
        Command::Thin(args) => thin::run(&args),
        Command::Remove(args) => remove::run(&args),
        Command::Replace(args) => replace::run(&args),
        Command::Add(args) => add::run(&args),
        Command::Split(args) => packs::split::run(&args),
        Command::Join(args) => packs::join::run(&args),
        Command::Link(args) => link::run(&args),
        Command::Wrap(args) => wrap::run(&args),
        Command::Completions(args) => {
            completions::run(&args, definition(), &manual::names(&GROUPS))
        }
        Command::Man(args) => manual::run(&args, definition(), &GROUPS),
    };
    match result {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Faults) => ExitCode::FAILURE,
        Err(error) => report::end(report::OFFLOAD, &error),
    }
}

/// Reports an error of the command line, which may contain names of files.
fn usage(error: &clap::Error) -> ExitCode {
    match style::printable_lines(&error.render().to_string()) {
        // With its colours.
        Cow::Borrowed(_) => error.exit(),
        Cow::Owned(text) => report::say_lines(&format!("{}\n", text.trim_end())),
    }
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn command_line_is_consistent() {
        // With the options of all commands, which are put together only then.
        super::Cli::command().debug_assert();
    }

    #[test]
    fn commands_have_the_same_description_in_the_list() {
        let listed = super::Cli::command();
        let mut built = listed.clone();
        built.build();
        for command in listed.get_subcommands() {
            let itself = built.find_subcommand(command.get_name()).unwrap();
            let [listed, own] = [command, itself].map(|c| c.get_about().unwrap().to_string());
            assert_eq!(listed, own);
        }
        let grouped: Vec<_> = super::GROUPS.iter().flat_map(|(_, commands)| *commands).collect();
        let names = grouped.into_iter().map(|(name, _)| *name);
        assert!(names.eq(listed.get_subcommands().map(|command| command.get_name())));
        let help = built.find_subcommand("help").unwrap().get_about().unwrap().to_string();
        assert!(crate::help::template(&listed, &super::GROUPS).contains(&help));
    }
}
