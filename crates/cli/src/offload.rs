//! `offload`: see, extract and verify the GPU code in any file.

use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::{
    add, advice, bundle, check, completions, compress, decompress, doctor, explain, extract,
    fatbin, gpus, help, kernels, link, ls, manual, match_gpu, native, pack, packs, remove, replace,
    report as page, shrink, size, thin, unbundle, variant, verify, why, wrap,
};
use tool_kit::help::{Group, More, template};
use tool_kit::{Outcome, arguments, report, style};

/// See, extract, edit and verify the GPU code in any file
///
/// Files are objects, libraries, programs and archives of any system, bundles and offload binaries.
#[derive(Debug, Parser)]
#[command(name = "offload", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = help::SHORT, after_long_help = help::START.start(&help::TERMS))]
struct Cli {
    /// Print colours: auto (on terminals), always or never
    #[arg(long, global = true, value_name = "WHEN", hide_possible_values = true)]
    color: Option<arguments::Color>,
    #[command(subcommand)]
    command: Command,
}

/// Returns the end of the help of a command, of this name.
macro_rules! page {
    ($name:literal) => {
        include_str!(concat!("help/", $name, ".md"))
    };
}

/// Makes the commands of their list: for each the variant, the name, the module, what its `run` gets beside the arguments, and the
/// first line of its help. The options of a command are only put together when it is called.
macro_rules! commands {
    ($($title:literal: $($variant:ident $name:literal $($module:ident)::+ $(($($more:expr),*))? : $about:literal;)+)+) => {
        #[derive(Debug, Subcommand)]
        #[command(defer = true)]
        enum Command {
            $($(
                #[doc = $about]
                #[command(name = $name, after_long_help = More(page!($name)).text())]
                $variant($($module)::+::Args),
            )+)+
        }

        /// The commands, as people look for them.
        const GROUPS: &[Group] = &[$(($title, &[$(($name, &More(page!($name)))),+])),+];

        impl Command {
            fn run(&self) -> io::Result<Outcome> {
                match self {
                    $($(Command::$variant(args) => $($module)::+::run(args $($(, $more)*)?),)+)+
                }
            }
        }
    };
}

commands! {
    "Inspect":
    Ls "ls" ls: "List every device image in any file: kind, triple, target, size";
    Match "match" match_gpu: "Show which image a GPU loads, and why not the others";
    Kernels "kernels" kernels: "List the kernels of images, and their resources";
    Diff "diff" kernels::diff: "Show which images and kernels came, went, changed";
    Size "size" size: "Show where the bytes of files go: by GPU, kind, kernel or package";
    Report "report" page: "Write a page of where the bytes of files go: treemap and table";
    Doctor "doctor" doctor: "Show which Python packages have code for this machine's GPUs";
    Why "why" why: "Explain an error message about device code, and what helps";
    Gpus "gpus" gpus: "List the names of GPUs, with their processors and PCI IDs";
    Verify "verify" verify: "Check structure, bounds, hashes and rules of composition";
    Check "check" check: "Check files against a policy: targets, sizes, kernels, needs";
    Explain "explain" explain: "Explain the code of a finding, and what helps";
    "Extract":
    Extract "extract" extract: "Write device images to files with safe generated names";
    Unbundle "unbundle" unbundle: "Extract the best code object for each target ID from any file";
    "Create":
    Bundle "bundle" bundle: "Bundle code objects, as clang-offload-bundler does";
    Pack "pack" pack: "Pack device images into an offload binary, which clang can embed";
    Fatbin "fatbin" fatbin: "Pack cubins, PTX and LTO-IR into an NVIDIA fatbinary";
    "Edit":
    Shrink "shrink" shrink: "Keep only the code of your GPUs in environments and packages";
    Thin "thin" thin: "Remove device code for other GPUs from any file, linked or not";
    Remove "remove" remove: "Remove entries of bundles and offload binaries, in any file";
    Replace "replace" replace: "Replace images in any file";
    Add "add" add: "Add images to a bundle, offload binary or fatbinary, in any file";
    Compress "compress" compress: "Compress bundles, offload binaries and fatbinaries in any file";
    Decompress "decompress" decompress: "Decompress and check bundles, offload binaries and fatbinaries";
    Split "split" packs::split: "Move device code of HIP from libraries to kernel packs";
    Join "join" packs::join: "Move device code from kernel packs into their library";
    Variant "variant" variant: "Show, check, make, split and index variants of wheels";
    "Link":
    Link "link" link: "Link device code of objects, and register it in one object";
    Wrap "wrap" wrap: "Wrap device images in a module that registers them at run time";
    "Set up":
    Completions "completions" completions (definition(), &manual::names(GROUPS)): "Print a shell completion script";
    Man "man" manual (definition(), GROUPS): "Print a manual page, or write all of them";
}

/// Returns the definition of the command line.
fn definition() -> clap::Command {
    let command = Cli::command();
    let template = template(&command, GROUPS);
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
    style::choose_colors(arguments::color(&arguments));
    let cli: Cli = match arguments::parse(definition(), arguments, advice::about) {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    match cli.command.run() {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Faults) => ExitCode::FAILURE,
        Err(error) => report::end(report::OFFLOAD, &error),
    }
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
        assert!(super::template(&listed, super::GROUPS).contains(&help));
    }
}
