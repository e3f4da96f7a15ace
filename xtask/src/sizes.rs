//! The sizes of the tools, and whether one has grown beyond its limit.
//!
//! Limits are in `.ci/sizes.txt`; they hold for x86-64 Linux and leave one part in twelve for other compilers. Raise a limit
//! for a feature that is worth its bytes.

use std::fs;

use crate::ci::Ci;
use crate::files::text;
use crate::machine::is_x86_64_linux;
use crate::process::{self, Result, Stop, command, wrong};
use crate::workspace::Workspace;

pub(crate) fn step(ci: &mut Ci) -> Result {
    run(&ci.workspace, &[])
}

/// Builds the tools, prints their sizes, and fails where one is too large.
pub(crate) fn run(workspace: &Workspace, _: &[String]) -> Result {
    process::run(command(
        "cargo build --release --quiet --locked -p offload-cli -p offload-drop-ins",
    ))?;
    let limits = limits(&text(".ci/sizes.txt")?)?;
    let mut complaints = Vec::new();
    for package in ["offload-cli", "offload-drop-ins"] {
        for program in &workspace.package(package)?.programs {
            if !limits.iter().any(|(tool, _)| tool == program) {
                complaints.push(format!("{program} has no limit in .ci/sizes.txt"));
            }
        }
    }
    for (tool, limit) in limits {
        let size = fs::metadata(workspace.target.join("release").join(&tool))?.len();
        println!("{tool:<24} {:>5} KiB of {limit:>5}", size / 1024);
        if size > limit * 1024 {
            complaints.push(format!("{tool} has grown beyond its limit in .ci/sizes.txt"));
        }
    }
    if !is_x86_64_linux() {
        println!("not judged: the limits are for x86-64 Linux");
        return Ok(());
    }
    if complaints.is_empty() { Ok(()) } else { wrong(complaints.join("\n")) }
}

/// Returns tools and their limits in KiB.
fn limits(table: &str) -> Result<Vec<(String, u64)>> {
    let read = |line: &str| {
        Some((line.split_once(' ')?.0.to_owned(), line.split_once(' ')?.1.parse().ok()?))
    };
    let wrong = |line| Stop::Misused(format!(".ci/sizes.txt: expected a tool and KiB: {line}"));
    table.lines().map(|line| read(line).ok_or_else(|| wrong(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers() {
        let read = limits("offload 10400\nfatbinary 1350\n").unwrap();
        assert_eq!(read, [("offload".to_owned(), 10400), ("fatbinary".to_owned(), 1350)]);
        assert!(limits("offload\n").is_err() && limits("offload 1 MiB\n").is_err());
    }
}
