//! Start of the drop-in tools: the process's arguments read as LLVM reads them.

use std::process::ExitCode;

use crate::llvm_cl::{self, Invocation, Matches, Tool};
use tool_kit::{input, report, style, wildcards};

/// Reads the arguments of this process. Requested output and usage errors are printed, and end the process. `name`
/// is the tool's, for callers who leave out the first argument.
pub(crate) fn start(tool: &'static Tool, name: &str) -> Result<(Invocation, Matches), ExitCode> {
    start_with(tool, name, |args| args, ExitCode::FAILURE)
}

/// Starts a drop-in with arguments that are changed before they are read. `wrong` is the exit status for wrong arguments.
pub(crate) fn start_with(
    tool: &'static Tool,
    name: &str,
    change: impl Fn(Vec<Vec<u8>>) -> Vec<Vec<u8>>,
    wrong: ExitCode,
) -> Result<(Invocation, Matches), ExitCode> {
    let mut args = std::env::args_os().map(input::bytes);
    let typed = args.next().unwrap_or_else(|| name.as_bytes().to_vec());
    let invocation = Invocation::new(String::from_utf8_lossy(&typed).into_owned());
    match llvm_cl::parse(tool, &invocation, change(wildcards::of_arguments(args))) {
        Ok(matches) => {
            style::choose_colors(matches.switch("color"));
            Ok((invocation, matches))
        }
        Err(stop) => {
            // The exit status shows the error where standard error is closed.
            report::say_lines(&stop.stderr);
            let printed = report::print_help(&invocation.typed, &stop.stdout);
            Err(if stop.success { printed } else { wrong })
        }
    }
}
