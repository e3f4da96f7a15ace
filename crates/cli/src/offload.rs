//! `offload`: see, extract and verify the GPU code in any file.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{
    Outcome, add, bundle, compress, decompress, extract, ls, match_gpu, pack, remove, replace,
    report, thin, unbundle, verify, wrap,
};

/// See, extract and verify the GPU code in any file: objects, libraries, archives, bundles, packages.
#[derive(Debug, Parser)]
#[command(name = "offload", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "Examples:
  offload ls libfoo.so                        which GPUs does this library carry code for?
  offload ls --target gfx90a:xnack+ *.so      which of its images can this GPU load?
  offload match --gpu gfx1031 libfoo.so       why does it not run on this GPU?
  offload extract libfoo.so --target gfx1100  write the images for one GPU into this directory
  offload verify *.a                          check structure, bounds and hashes
  offload pack -o x.bin kind=hip,...,file=a.o put images into a package for embedding
  offload bundle -o x.hipfb ID=a.o ID=b.o     put code objects into a bundle; unbundle takes them out
  offload compress --in-place *.hipfb         compress bundles; decompress is the way back
  offload thin libfoo.so --keep gfx90a -o small.so   remove device code for other GPUs
  offload replace libfoo.so gfx90a=new.hsaco -o x.so put an image in the place of another; add, remove
  offload wrap --kind hip -o x.bc a.hipfb     make the code that registers an image at run time

`offload COMMAND --help` has more. Exit status: 0 all is well, 1 a file is at fault or cannot be
read or written, 2 wrong usage, 141 whoever read the output left. Files appear whole or not at all.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Each with the first line of its help: the options of a command are only put together when it is called.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Command {
    /// List every device image in any file: kind, triple, target, format, size
    Ls(ls::Args),
    /// Say which image a GPU gets from each container, and why it does not get the others
    Match(match_gpu::Args),
    /// Write device images into files, under safe generated names
    Extract(extract::Args),
    /// Check files: structure, bounds, hashes of compressed bundles, composition rules of bundles
    Verify(verify::Args),
    /// Put device images into a package, the form in which clang embeds them
    Pack(pack::Args),
    /// Put code objects into a bundle, as clang-offload-bundler does
    Bundle(bundle::Args),
    /// Take code objects for given targets out of a bundle, or anything else that holds device code
    Unbundle(unbundle::Args),
    /// Compress the bundles in any file: bundles, objects, archives, libraries, programs
    Compress(compress::Args),
    /// Decompress the bundles in any file, and check that they are what was compressed
    Decompress(decompress::Args),
    /// Remove device code for other targets from any file: bundles, packages, objects, archives, libraries, programs
    Thin(thin::Args),
    /// Remove entries of bundles and packages, in any file
    Remove(remove::Args),
    /// Put images in the place of others, in any file
    Replace(replace::Args),
    /// Add images to a bundle or a package, in any file
    Add(add::Args),
    /// Put device images into a module that registers them when a program is loaded
    Wrap(wrap::Args),
}

/// Runs `offload` with the arguments of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and versions are asked for, and are the output then.
        Err(error) if !error.use_stderr() => {
            return match error.print() {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => report::end(report::OFFLOAD, &error),
            };
        }
        Err(error) => error.exit(),
    };
    let result = match cli.command {
        Command::Ls(args) => ls::run(&args),
        Command::Match(args) => match_gpu::run(&args),
        Command::Extract(args) => extract::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Pack(args) => pack::run(&args),
        Command::Bundle(args) => bundle::run(&args),
        Command::Unbundle(args) => unbundle::run(&args),
        Command::Compress(args) => compress::run(&args),
        Command::Decompress(args) => decompress::run(&args),
        Command::Thin(args) => thin::run(&args),
        Command::Remove(args) => remove::run(&args),
        Command::Replace(args) => replace::run(&args),
        Command::Add(args) => add::run(&args),
        Command::Wrap(args) => wrap::run(&args),
    };
    match result {
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
        super::Cli::command().debug_assert();
    }

    #[test]
    fn commands_say_the_same_of_themselves_and_in_the_list() {
        let listed = super::Cli::command();
        let mut built = listed.clone();
        built.build();
        for command in listed.get_subcommands() {
            let itself = built.find_subcommand(command.get_name()).unwrap();
            let [listed, own] = [command, itself].map(|c| c.get_about().unwrap().to_string());
            assert_eq!(listed, own);
        }
    }
}
