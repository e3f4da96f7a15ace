//! The texts of `--help` and `--version`.

use super::options::Line;
use crate::llvm_cl::{self, Kind, Opt, Tool};

/// The options of the tool, for help texts: they are read by `Line`.
pub static TOOL: Tool = Tool {
    overview: "Link device code for each target, and link the program with code that registers it.\n\
               All other arguments go on to the host linker.",
    positionals: "<arguments of the host linker>",
    min_positionals: 0,
    max_positionals: usize::MAX,
    heading: "clang-linker-wrapper options:",
    options: &[
        Opt::new(
            "archive-members",
            Kind::Value,
            "needed|all",
            "Link all members of archives, or only needed ones (not in LLVM; default: all)",
        ),
        Opt::new("compress", Kind::Bool, "", "Compress the bundles of HIP"),
        Opt::new("compression-level", Kind::Signed, "int", "Set the level of compression"),
        Opt::new("cuda-path", Kind::Value, "dir", "Look for fatbinary in bin of this directory"),
        Opt::new(
            "device-compiler",
            Kind::List,
            "[triple=]argument",
            "Pass an argument to clang in device links",
        ),
        Opt::new(
            "device-linker",
            Kind::List,
            "[triple=]argument",
            "Pass an argument to the linker in device links",
        ),
        Opt::new("dry-run", Kind::Bool, "", "Show commands, run none"),
        Opt::new("embed-bitcode", Kind::Bool, "", "Make bitcode, which the runtime compiles"),
        Opt::new(
            "emit-fatbin-only",
            Kind::Bool,
            "",
            "Write the container of the images, without a host link",
        ),
        Opt::new(
            "host-triple",
            Kind::Value,
            "triple",
            "Set the triple of the program (default: this machine's)",
        ),
        Opt::new("linker-path", Kind::Value, "path", "Set the host linker"),
        Opt::new("L", Kind::List, "dir", "Search libraries in this directory"),
        Opt::new("l", Kind::List, "name", "Search this library for device code"),
        Opt::new("mllvm", Kind::List, "option", "Pass an option of LLVM to device links"),
        Opt::new(
            "offload-opt",
            Kind::List,
            "option",
            "Pass an option of LLVM to device links, as an option of the LTO plugin",
        ),
        Opt::new("override-image", Kind::List, "kind=file", "Take this file for a linked image"),
        Opt::new("o", Kind::Value, "path", "Write the program to this file"),
        Opt::new(
            "no-canonical-prefixes",
            Kind::Bool,
            "",
            "Look for programs beside the name of this program, not beside its file",
        ),
        Opt::new("print-wrapped-module", Kind::Bool, "", "Show the registration code as LLVM IR"),
        Opt::new("relocatable", Kind::Bool, "", "Make an object that registers its images"),
        Opt::new("r", Kind::Bool, "", "Alias for --relocatable"),
        Opt::new(
            "release",
            Kind::Choice(&["22", "23"]),
            "22|23",
            "Link and register as this release of LLVM does (default: as 22, which runs it, mended)",
        ),
        Opt::new(
            "save-temps",
            Kind::Bool,
            "",
            "Keep the files between the steps, in this directory",
        ),
        Opt::new(
            "should-extract",
            Kind::CommaList,
            "target",
            "Link members of archives for these targets even if no object has code for them",
        ),
        Opt::new("sysroot", Kind::Value, "dir", "Set the directory of library paths with ="),
        Opt::new(
            "wrapper-jobs",
            Kind::Value,
            "number",
            "Set the number of device links at one time (default: one for each core)",
        ),
        Opt::new("wrapper-time-trace", Kind::Value, "file", "Write the times of the steps"),
        Opt::new(
            "wrapper-time-trace-granularity",
            Kind::Value,
            "microseconds",
            "Leave out shorter steps (default: 500)",
        ),
        Opt::new("wrapper-verbose", Kind::Bool, "", "Show commands before they run"),
    ],
    version: concat!(
        "offload ",
        env!("CARGO_PKG_VERSION"),
        ", in place of clang-linker-wrapper of LLVM 22\n"
    ),
};

/// Returns the text that the command line asks for.
pub(super) fn requested(line: &Line, program: &str) -> Option<String> {
    let hidden = line.has("help-hidden");
    if hidden || line.has("help") {
        return Some(llvm_cl::help(&TOOL, program, hidden));
    }
    line.has("version").then(|| TOOL.version.to_owned())
}
