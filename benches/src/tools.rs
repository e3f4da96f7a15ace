//! The tools that are measured.

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds tools of this workspace, as users run them, and says where they are.
///
/// # Errors
///
/// The build failed.
pub fn build(tool: &str) -> Result<PathBuf, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // As `cargo build` alone does: features as users get them, not those that other crates here want besides.
    let status = Command::new(cargo)
        .args(["build", "--release", "--quiet", "-p", "offload-cli", "--bin", tool])
        .status()?;
    if !status.success() {
        return Err(format!("building {tool} failed").into());
    }
    Ok(std::env::current_exe()?.with_file_name(tool))
}

/// LLVM 22's tool of this name, where it is installed.
#[must_use]
pub fn llvm(tool: &str) -> Option<PathBuf> {
    Some(Path::new("/usr/lib/llvm-22/bin").join(tool)).filter(|path| path.exists())
}

/// Runs a tool that only prints what nobody wants to see.
///
/// # Errors
///
/// It cannot be started, or failed.
pub fn run(tool: &Path, args: &[OsString]) -> Result<(), Box<dyn Error>> {
    let output = Command::new(tool).args(args).stdin(Stdio::null()).output()?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(format!("{} {args:?} failed: {why}", tool.display()).into())
        }
    }
}
