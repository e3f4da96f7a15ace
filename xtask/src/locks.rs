//! The lock files: a crate that several workspaces use has one version, so that the tests of one are true of the others.

use std::collections::BTreeMap;

use crate::files::text;
use crate::process::{Result, wrong};

const MAIN: &str = "Cargo.lock";
const OTHERS: [&str; 2] = ["bindings/Cargo.lock", "fuzz/Cargo.lock"];

/// Versions of crates, by the name and the part of the version that semantic versioning keeps compatible.
type Versions = BTreeMap<(String, String), String>;

/// Fails if a crate has another compatible version in one of the lock files.
pub(crate) fn compare() -> Result {
    let main = versions(&text(MAIN)?);
    let mut differences = String::new();
    for lock in OTHERS {
        differences += &different(&main, lock, &versions(&text(lock)?));
    }
    if !differences.is_empty() {
        return wrong(format!(
            "{differences}set them with cargo update -p CRATE --precise VERSION"
        ));
    }
    Ok(())
}

/// Returns a line for each crate whose version differs from its version in the main workspace.
fn different(main: &Versions, lock: &str, other: &Versions) -> String {
    let line = |(key, version): (&(String, String), &String)| {
        let wanted = main.get(key).filter(|&wanted| wanted != version)?;
        Some(format!("{lock}: {} {version}: expected {wanted}, as in {MAIN}\n", key.0))
    };
    other.iter().filter_map(line).collect()
}

/// Reads a lock file.
fn versions(lock: &str) -> Versions {
    let value = |line: &str, key: &str| {
        let quoted = line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"')?;
        Some(quoted.to_owned())
    };
    let mut all = Versions::new();
    let mut name = String::new();
    for line in lock.lines() {
        if let Some(found) = value(line, "name") {
            name = found;
        } else if let Some(version) = value(line, "version") {
            all.insert((name.clone(), compatible(&version)), version);
        }
    }
    all
}

/// Returns the leading numbers of a version up to the first that is not 0.
fn compatible(version: &str) -> String {
    let numbers: Vec<_> = version.split(['.', '+', '-']).take(3).collect();
    let first = numbers.iter().position(|&number| number != "0").unwrap_or(2);
    numbers.get(..=first).unwrap_or(&numbers).join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_cargo_keeps_apart_are_not_compared() {
        assert_eq!(compatible("1.2.3"), "1");
        assert_eq!(compatible("0.14.3"), "0.14");
        assert_eq!(compatible("0.0.7"), "0.0.7");
        assert_eq!(compatible("2.1.2+zstd.1.5.7"), "2");
    }

    #[test]
    fn another_compatible_version_is_found() {
        let lock = |packages: &[(&str, &str)]| {
            let package = |(name, version): &(&str, &str)| {
                format!(
                    "[[package]]\nname = \"{name}\"\nversion = \"{version}\"\nsource = \"s\"\n\n"
                )
            };
            let all: String = packages.iter().map(package).collect();
            versions(&format!("version = 4\n\n{all}"))
        };
        let main = lock(&[("a", "1.0.1"), ("syn", "2.0.1"), ("syn", "3.0.9")]);
        let same = lock(&[("b", "1.0.0"), ("syn", "3.0.9")]);
        assert_eq!(different(&main, "x.lock", &same), "");
        let other = lock(&[("a", "1.0.2"), ("syn", "2.0.1"), ("syn", "3.0.10")]);
        assert_eq!(
            different(&main, "x.lock", &other),
            "x.lock: a 1.0.2: expected 1.0.1, as in Cargo.lock\n\
             x.lock: syn 3.0.10: expected 3.0.9, as in Cargo.lock\n"
        );
    }
}
