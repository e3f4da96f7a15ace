//! The dependencies of each library in its README, between two marks: what `cargo add` brings along.
//!
//! Without versions, which Cargo.lock has, and for all platforms: so they change only when dependencies do.

use crate::ci::Ci;
use crate::files::{renew, text};
use crate::flag;
use crate::locks;
use crate::process::{Result, Stop, command, read, wrong};
use crate::workspace::Workspace;

const BEGIN: &str = "<!-- dependencies: written by .ci/xtask trees -->";
const END: &str = "<!-- end of dependencies -->";

pub(crate) fn step(ci: &mut Ci) -> Result {
    locks::compare()?;
    write(&ci.workspace, true)
}

/// Writes the dependencies, or with `--check` fails when one is not what cargo says.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result {
    write(workspace, flag(arguments, "--check")?)
}

fn write(workspace: &Workspace, only_compares: bool) -> Result {
    let mut is_right = true;
    for package in workspace.libraries()? {
        let readme = package.directory.join("README.md");
        let tree = "cargo tree --locked --quiet --edges normal --target all --charset utf8 --format {p} --package";
        let tree = read(command(tree).arg(&package.name))?;
        let Some(new) = with_tree(&text(&readme)?, &tree) else {
            let marks = format!("the lines '{BEGIN}' and '{END}' are not there once each");
            return Err(Stop::Misused(format!("{}: {marks}", readme.display())));
        };
        is_right &= renew(&readme, &new, only_compares)?;
    }
    if !is_right {
        return wrong("dependencies changed: run .ci/xtask trees");
    }
    Ok(())
}

/// Returns a page with another tree between the marks. `None` if these are not there once each.
fn with_tree(page: &str, tree: &str) -> Option<String> {
    let (before, rest) = page.split_once(&format!("{BEGIN}\n"))?;
    let (old, after) = rest.split_once(&format!("{END}\n"))?;
    if [before, old, after].iter().any(|part| part.contains(BEGIN) || part.contains(END)) {
        return None;
    }
    let tree: String = tree.lines().map(|line| without_version(line) + "\n").collect();
    Some(format!("{before}{BEGIN}\n```text\n{tree}```\n{END}\n{after}"))
}

/// Returns a line of `cargo tree` without the version and the directory of the package.
fn without_version(line: &str) -> String {
    let (line, rest) = line.split_once(" (/").unwrap_or((line, ""));
    let (_, rest) = rest.split_once(')').unwrap_or(("", rest));
    let is_version = |word: &str| {
        let number = word.strip_prefix('v');
        number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
    };
    let words: Vec<_> = line.split(' ').filter(|word| !is_version(word)).collect();
    (words.join(" ") + rest).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lose_versions_and_directories() {
        assert_eq!(without_version("ccob v0.1.0 (/a/b c/ccob)"), "ccob");
        assert_eq!(without_version("└── ccob v0.1.0 (/a) (*)"), "└── ccob (*)");
        assert_eq!(without_version("│   └── memchr v2.8.3"), "│   └── memchr");
        assert_eq!(without_version("├── vec v1.0.0+x (*)"), "├── vec (*)");
        assert_eq!(
            without_version("└── serde_derive v1.0.0 (proc-macro)"),
            "└── serde_derive (proc-macro)"
        );
    }

    #[test]
    fn the_tree_is_between_the_marks() {
        let page = format!("# A\n{BEGIN}\nold\n{END}\nb\n");
        let new = with_tree(&page, "a v1.0.0 (/a)\n└── b v2.0.0\n").unwrap();
        assert_eq!(new, format!("# A\n{BEGIN}\n```text\na\n└── b\n```\n{END}\nb\n"));
        assert_eq!(with_tree(&new, "a v1.0.0 (/a)\n└── b v2.0.0\n").unwrap(), new);
        assert_eq!(with_tree("# A\n", ""), None);
        assert_eq!(with_tree(&format!("{page}{page}"), ""), None);
    }
}
