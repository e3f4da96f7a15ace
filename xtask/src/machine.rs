//! The machine: programs and compilers that a step needs, and how it gets them.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::process::{Result, command, read, run, succeeds};

/// Returns true if there is a program of this name, or a file at this path.
pub(crate) fn has(program: impl AsRef<Path>) -> bool {
    let program = program.as_ref();
    if program.components().count() > 1 {
        return program.exists();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Installs Debian packages unless all of the programs or files are there.
pub(crate) fn need(programs: &str, packages: &str) -> Result {
    if programs.split_whitespace().all(has) {
        return Ok(());
    }
    run(command("apt-get update -qq"))?;
    run(command("apt-get install -y -qq --no-install-recommends")
        .args(packages.split_whitespace())
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null()))
}

/// Installs a tool of cargo's, unoptimized: it runs for seconds.
pub(crate) fn cargo_tool(name: &str) -> Result {
    if has(name) {
        return Ok(());
    }
    run(command("cargo install --quiet --locked --debug").arg(name))
}

/// Returns true if there is a nightly compiler.
pub(crate) fn has_nightly() -> bool {
    succeeds(command("rustup run nightly rustc --version"))
}

/// Returns true if there is a standard library for a target, which rustup may install.
pub(crate) fn has_target(triple: &str) -> bool {
    let listed = read(command("rustup target list --installed")).unwrap_or_default();
    listed.lines().any(|line| line == triple) || succeeds(command("rustup target add").arg(triple))
}

/// Returns the host of a toolchain: of `nightly`, or the default one.
pub(crate) fn host(toolchain: Option<&str>) -> Result<String> {
    let mut ask = command("rustc");
    ask.args(toolchain.map(|name| format!("+{name}")));
    let told = read(ask.arg("-vV"))?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.unwrap_or_default().to_owned())
}

/// Returns true if this is Linux on x86-64.
pub(crate) fn is_x86_64_linux() -> bool {
    cfg!(all(target_os = "linux", target_arch = "x86_64"))
}

/// Returns true if the user is root.
pub(crate) fn is_root() -> bool {
    read(command("id -u")).is_ok_and(|number| number.trim_end() == "0")
}

/// Returns a variable of the environment, or else what is usual.
pub(crate) fn variable(name: &str, usual: impl Into<OsString>) -> PathBuf {
    env::var_os(name).filter(|value| !value.is_empty()).unwrap_or_else(|| usual.into()).into()
}

/// An empty directory outside of the repository, removed when dropped.
#[derive(Debug)]
pub(crate) struct Place(PathBuf);

impl Place {
    /// Makes a directory.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(read(command("mktemp -d"))?.trim_end().into()))
    }

    /// Leaves the directory where it is, and returns it.
    pub(crate) fn keep(mut self) -> PathBuf {
        std::mem::take(&mut self.0)
    }
}

impl std::ops::Deref for Place {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn programs_are_names_or_paths() {
        assert!(has("cargo") || has("rustc"), "the one that runs this test");
        assert!(!has("no-such-program-of-anybody"));
        assert!(has(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")));
        assert!(!has("/no/such/file"));
    }
}
