//! The tools that are measured.

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds tools of this workspace, as users run them, where this program was built, and says in which directory.
///
/// # Errors
///
/// The build failed.
pub fn build(tools: &[&str]) -> Result<PathBuf, Box<dyn Error>> {
    let place = std::env::current_exe()?.parent().ok_or("no directory of tools")?.to_owned();
    let target = place.parent().ok_or("no target directory")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // As `cargo build` alone does: features as users get them, not the features that other crates here also need.
    command
        .args([
            "build",
            "--release",
            "--quiet",
            "-p",
            "offload-cli",
            "-p",
            "offload-drop-ins",
            "--target-dir",
        ])
        .arg(target);
    for tool in tools {
        command.args(["--bin", tool]);
    }
    if command.status()?.success() {
        Ok(place)
    } else {
        Err(format!("building {} failed", tools.join(", ")).into())
    }
}

/// LLVM 22's tool of this name, where it is installed.
#[must_use]
pub fn llvm(tool: &str) -> Option<PathBuf> {
    Some(Path::new("/usr/lib/llvm-22/bin").join(tool)).filter(|path| path.exists())
}

/// NVIDIA's tool of this name, where it is: in `bin` of the directory that the environment variable `CUDA` names, by
/// default `nvidia` in the target directory.
#[must_use]
pub fn nvidia(tool: &str) -> Option<PathBuf> {
    let directory = match std::env::var_os("CUDA") {
        Some(directory) => PathBuf::from(directory),
        None => std::env::current_exe().ok()?.parent()?.parent()?.join("nvidia"),
    };
    directory.join("bin").join(tool).canonicalize().ok()
}

/// Runs a tool and hides what it prints.
///
/// # Errors
///
/// It cannot be started, or failed.
pub fn run(tool: &Path, args: &[OsString]) -> Result<(), Box<dyn Error>> {
    let output = Command::new(tool).args(args).stdin(Stdio::null()).output()?;
    if output.status.success() {
        Ok(())
    } else {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(format!("{} {args:?} failed: {why}", tool.display()).into())
    }
}
