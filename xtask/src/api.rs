//! The public API of each library, as text, one line for each item: `crates/*/public-api.txt`.
//!
//! A change of these files is a change for users, and belongs in CHANGELOG.md. Needs a nightly compiler and cargo-public-api,
//! whose version must match the compiler's: CONTRIBUTING.md.

use crate::ci::Ci;
use crate::files::renew;
use crate::flag;
use crate::machine::{cargo_tool, has_nightly};
use crate::process::{Result, Stop, command, wrong};
use crate::workspace::{Package, Workspace};

pub(crate) fn step(ci: &mut Ci) -> Result {
    if !has_nightly() || cargo_tool("cargo-public-api").is_err() {
        ci.not_checked(
            "the public API of the libraries: no nightly compiler, or no cargo-public-api",
        );
        return Ok(());
    }
    write(&ci.workspace, true)
}

/// Writes the files, or with `--check` fails where one is not what the sources say, and shows the difference.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result {
    write(workspace, flag(arguments, "--check")?)
}

fn write(workspace: &Workspace, only_compares: bool) -> Result {
    let mut is_right = true;
    for package in workspace.libraries()? {
        let (path, new) = (package.directory.join("public-api.txt"), items(workspace, package)?);
        is_right &= renew(&path, &new, only_compares)?;
    }
    if !is_right {
        return wrong("the public API changed: run .ci/xtask api if it was meant to");
    }
    Ok(())
}

/// Returns the items of a library, without what all types have: conversions to themselves, Send and Sync.
fn items(workspace: &Workspace, package: &Package) -> Result<String> {
    let output = command("cargo public-api --all-features -ss --color never --package")
        .args([&*package.name, "--target-dir"])
        .arg(workspace.target.join("api"))
        .output()?;
    if !output.status.success() {
        return Err(Stop::Misused(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
