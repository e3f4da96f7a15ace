//! The tests of the ground floor, or of the crates that are named, under Miri, which sees undefined behaviour: there is
//! no unsafe code of ours, but zerocopy, memchr, ruzstd and others have some, and run on what our readers hand them.

use std::env;
use std::process::Command;

use crate::ci::Ci;
use crate::files::text;
use crate::process::{self, Result, Stop, all_succeed, command, succeeds, wrong};
use crate::workspace::Workspace;

pub(crate) fn step(ci: &mut Ci) -> Result {
    let install = "rustup component add --toolchain nightly miri rust-src";
    if !succeeds(command("cargo +nightly miri --version")) && !succeeds(command(install)) {
        ci.not_checked("undefined behaviour: no Miri to be had");
        return Ok(());
    }
    run(&ci.workspace, &[])
}

/// Runs the tests of some crates, for this machine or another: `--target s390x-unknown-linux-gnu` is another byte order,
/// `--target i686-unknown-linux-gnu` another width.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result {
    let (target, crates) = asked(arguments)?;
    let crates = if crates.is_empty() { workspace.nightly("miri") } else { crates.to_vec() };
    for name in &crates {
        let package = format!("--package={name}");
        process::run(under_miri(target).args(["--no-run", "--lib", "--tests", &package]))?;
    }
    let mut parts = Vec::new();
    for name in &crates {
        parts.extend(parts_of(workspace, name)?);
    }
    // A program under Miri has one thread at work: as many test programs at a time as there are cores.
    if all_succeed(parts, |part| process::run(under_miri(target).args(part)).is_ok()) {
        return Ok(());
    }
    wrong("a test failed under Miri")
}

fn asked(arguments: &[String]) -> Result<(Option<&str>, &[String])> {
    match arguments {
        [flag, target, crates @ ..] if flag == "--target" => Ok((Some(target), crates)),
        [flag, ..] if flag.starts_with('-') => {
            Err(Stop::Misused("expected [--target TRIPLE] [CRATE...]".to_owned()))
        }
        crates => Ok((None, crates)),
    }
}

/// Returns the arguments of `cargo test` for the library, and for each module of the tests.
fn parts_of(workspace: &Workspace, name: &str) -> Result<Vec<Vec<String>>> {
    let package = format!("--package={name}");
    let tests = workspace.package(name)?.directory.join("tests/all/main.rs");
    // All tests of a crate may be in its sources.
    let tests = if tests.exists() { text(tests)? } else { String::new() };
    let modules = modules(&tests).map(|module| {
        vec![package.clone(), "--test=all".to_owned(), "--".to_owned(), format!("{module}::")]
    });
    Ok([vec![package.clone(), "--lib".to_owned()]].into_iter().chain(modules).collect())
}

fn modules(source: &str) -> impl Iterator<Item = &str> {
    source.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'))
}

/// Miri is a thousand times slower, so properties are tried on few cases; tests are shorter where `cfg!(miri)` says so.
/// proptest looks for failures it saw before, in files; that is all that the isolation is off for.
fn under_miri(target: Option<&str>) -> Command {
    let variable = |name, usual: &str| env::var(name).unwrap_or_else(|_| usual.to_owned());
    let flags = format!("-Zmiri-disable-isolation {}", variable("MIRIFLAGS", ""));
    let mut test = command("cargo +nightly miri test --quiet");
    test.env("PROPTEST_CASES", variable("PROPTEST_CASES", "1")).env("MIRIFLAGS", flags);
    if let Some(target) = target {
        test.args(["--target", target]);
    }
    test
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &str) -> Vec<String> {
        words.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_target_comes_before_crates() {
        let given = words("--target s390x-unknown-linux-gnu ccob");
        let (target, crates) = asked(&given).unwrap();
        assert_eq!((target, crates), (Some("s390x-unknown-linux-gnu"), &words("ccob")[..]));
        assert_eq!(asked(&words("ccob kpack")).unwrap().1, words("ccob kpack"));
        assert_eq!(asked(&[]).unwrap().1.len(), 0);
        assert!(asked(&words("--target")).is_err() && asked(&words("-p ccob")).is_err());
    }

    #[test]
    fn modules_are_those_of_their_own_files() {
        let source = "mod a;\nuse b;\nmod c {\n    mod d;\n}\nmod e;\n";
        assert_eq!(modules(source).collect::<Vec<_>>(), ["a", "e"]);
    }
}
