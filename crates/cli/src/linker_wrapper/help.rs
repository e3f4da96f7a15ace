//! The texts of `--help` and `--version`.

use super::options::Line;

/// The options, with what they do.
const OPTIONS: &[(&str, &str)] = &[
    ("--compress", "Compress the bundles of HIP"),
    ("--compression-level=<N>", "Set the level of compression"),
    ("--cuda-path=<dir>", "Look for fatbinary in this directory's bin, to show it"),
    ("--device-compiler=[<triple>=]<value>", "Pass an argument to clang in device links"),
    ("--device-linker=[<triple>=]<value>", "Pass an argument to the linker in device links"),
    ("--dry-run", "Show commands, run none"),
    ("--embed-bitcode", "Make bitcode, which the runtime compiles"),
    ("--emit-fatbin-only", "Write the container of the images, without a host link"),
    ("--help", "Show this text"),
    ("--host-triple=<triple>", "Set the triple of the program (default: this machine's)"),
    ("--linker-path=<path>", "Set the host linker"),
    ("-L <dir>", "Search libraries in this directory"),
    ("-l <name>", "Search this library for device code"),
    ("-mllvm <option>", "Pass an option of LLVM to device links"),
    ("--offload-opt=<option>", "Pass an option of LLVM to device links, as a plugin option"),
    ("--override-image=<kind>=<file>", "Take this file for a linked image"),
    ("-o <path>", "Write the program to this file"),
    ("--print-wrapped-module", "Show the registration code as LLVM IR"),
    ("--relocatable, -r", "Make an object whose images are registered, to be linked again"),
    ("--save-temps", "Keep files between the steps, in the working directory"),
    ("--should-extract=<arch>,...", "Link members of archives for these targets without an object"),
    ("--sysroot=<dir>", "Set the directory of library paths that start with ="),
    ("--wrapper-jobs=<N>", "Set the number of device links at one time (default: all cores)"),
    ("--wrapper-time-trace=<file>", "Write the times of the steps to this file"),
    ("--wrapper-time-trace-granularity=<us>", "Leave out shorter steps (default: 500)"),
    ("--wrapper-verbose", "Show commands before they run"),
    ("--version", "Show the version"),
];

/// Returns the text that the command line asks for.
pub(super) fn requested(line: &Line) -> Option<String> {
    if line.has("help") || line.has("help-hidden") {
        return Some(help());
    }
    let version = concat!("offload ", env!("CARGO_PKG_VERSION"), ", in place of LLVM 22\n");
    line.has("version").then(|| version.to_owned())
}

fn help() -> String {
    let mut text = "OVERVIEW: Link device code for each target, and link the program with code that registers it.\n\n\
        USAGE: clang-linker-wrapper [options] <arguments of the host linker>\n\nOPTIONS:\n"
        .to_owned();
    for (option, what) in OPTIONS {
        text.push_str(&format!("  {option:<38} {what}\n"));
    }
    text.push_str("\nAll other arguments go on to the host linker.\n");
    text
}
