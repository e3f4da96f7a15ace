//! The compiler refuses unsafe code in every crate of the repository: libraries, programs, tests, benches, examples and the
//! code that fuzz targets call.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::ci::Ci;
use crate::files::text;
use crate::flag;
use crate::process::{Result, wrong};
use crate::workspace::Workspace;

const ATTRIBUTE: &str = "#![forbid(unsafe_code)]";

pub(crate) fn step(ci: &mut Ci) -> Result {
    run(&ci.workspace, &[])
}

/// Lists the roots of crates that lack the attribute, and fails if there are any; with `--fix` writes it into them.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result {
    let is_fixed = flag(arguments, "--fix")?;
    let mut complaints = Vec::new();
    let roots = roots(workspace)?;
    for root in &roots {
        let source = text(root)?;
        if source.lines().any(|line| line == ATTRIBUTE) {
            continue;
        }
        if is_fixed {
            fs::write(root, with_attribute(&source))?;
        } else {
            let shown = root.strip_prefix(&workspace.root).unwrap_or(root).display();
            complaints.push(format!("{shown} lacks {ATTRIBUTE}: .ci/xtask forbid-unsafe --fix"));
        }
    }
    complaints.extend(without_lints(workspace)?);
    println!("{} roots of crates", roots.len());
    if complaints.is_empty() { Ok(()) } else { wrong(complaints.join("\n")) }
}

/// Returns the roots of all crates, also the crates that fuzz targets call.
///
/// The targets in `fuzz/fuzz_targets` are one call of a library each, in a macro of libfuzzer's that is unsafe inside.
fn roots(workspace: &Workspace) -> Result<BTreeSet<PathBuf>> {
    let fuzz = Workspace::load(Some(Path::new("fuzz/Cargo.toml")))?;
    let packages = workspace.packages.iter().chain(&fuzz.packages);
    let roots = packages.flat_map(|package| package.roots.clone());
    Ok(roots.filter(|root| !root.starts_with(workspace.root.join("fuzz/fuzz_targets"))).collect())
}

/// Nothing takes part in the build that is not a root: the lint of the workspace counts for all of it.
fn without_lints(workspace: &Workspace) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for package in &workspace.packages {
        let manifest = package.directory.join("Cargo.toml");
        if !text(&manifest)?.contains("\n[lints]\nworkspace = true\n") {
            complaints.push(format!(
                "{} does not take over the lints of the workspace",
                manifest.display()
            ));
        }
    }
    if !text("Cargo.toml")?.contains("\nunsafe_code = \"forbid\"\n") {
        complaints.push("Cargo.toml does not forbid unsafe code".to_owned());
    }
    Ok(complaints)
}

/// Returns a source with the attribute after the documentation of the crate.
fn with_attribute(source: &str) -> String {
    let is_documentation = |line: &&str| line.starts_with("//!");
    let documentation: String = source.split_inclusive('\n').take_while(is_documentation).collect();
    let rest = &source.get(documentation.len()..).unwrap_or_default();
    let gap = if rest.starts_with('\n') || rest.starts_with("#![") { "" } else { "\n" };
    format!("{documentation}{ATTRIBUTE}\n{gap}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attribute_is_after_the_documentation() {
        let fixed = |source| with_attribute(source).replace(ATTRIBUTE, "FORBID");
        assert_eq!(fixed("//! A.\n//! B.\n\nuse c;\n"), "//! A.\n//! B.\nFORBID\n\nuse c;\n");
        assert_eq!(fixed("//! A.\n#![no_std]\n"), "//! A.\nFORBID\n#![no_std]\n");
        assert_eq!(fixed("use c;\n"), "FORBID\n\nuse c;\n");
    }
}
