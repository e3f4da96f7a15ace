//! Options of LLVM, which only `clang` knows: `-mllvm` and `--offload-opt`.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use super::options::Line;
use super::programs::Programs;

/// Options of LLVM's tool that `clang` does not have.
const OF_THE_TOOL: [&str; 2] = ["passes", "load-pass-plugin"];

/// Has `clang` list the options of LLVM where the command line asks for this; `None` otherwise.
pub(super) fn list(line: &Line, programs: Programs) -> Option<io::Result<ExitCode>> {
    let asks = |option: &&OsString| {
        let text = option.to_string_lossy();
        let name = text.trim_start_matches('-');
        matches!(name, "help" | "help-hidden" | "help-list" | "help-list-hidden")
    };
    let options = line.plugin_options();
    let option = options.iter().find(asks)?;
    let listed = programs.find("clang", &[]).and_then(|clang| {
        let status = command(&clang, option).status()?;
        Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    });
    Some(listed)
}

/// Has `clang` check the options where no device link does. Without `clang` they stay unchecked.
pub(super) fn check(line: &Line, programs: Programs) -> io::Result<()> {
    let Some(clang) = programs.path_of("clang", &[]) else { return Ok(()) };
    for option in line.plugin_options() {
        let text = option.to_string_lossy();
        let name = text.trim_start_matches('-');
        let name = name.split_once('=').map_or(name, |(name, _)| name);
        if OF_THE_TOOL.contains(&name) {
            continue;
        }
        let mut command = command(&clang, &option);
        let output =
            command.args(["-fsyntax-only", "-x", "c", "-"]).stdin(Stdio::null()).output()?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            // A killed compiler says nothing.
            let first = words.lines().next().unwrap_or_default();
            return Err(io::Error::other(format!("option of LLVM '{text}': {first}")));
        }
    }
    Ok(())
}

fn command(clang: &Path, option: &OsString) -> Command {
    let mut command = Command::new(clang);
    command.args(["-cc1", "-mllvm"]).arg(option);
    command
}
