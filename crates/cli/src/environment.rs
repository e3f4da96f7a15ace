//! Python environments: their distributions, found as `pip` finds them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{input, report};
use gpu_packages::Record;

/// A distribution that is installed.
#[derive(Debug)]
pub(crate) struct Distribution {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Its `dist-info` directory.
    pub(crate) info: PathBuf,
}

/// Returns the directories in which the Python of this environment finds distributions.
///
/// # Errors
///
/// There is no Python, or it fails.
pub(crate) fn search_path() -> Result<Vec<PathBuf>, String> {
    let advice = "give the environment with --prefix DIR";
    let python = if cfg!(windows) { "python" } else { "python3" };
    let print = "import sys; print(*(p for p in sys.path if p), sep='\\n')";
    let asked = Command::new(python).args(["-c", print]).output();
    let asked = asked
        .map_err(|error| format!("{python} cannot be run: {}; {advice}", report::reason(&error)))?;
    if !asked.status.success() {
        return Err(format!("{python} does not tell where its packages are; {advice}"));
    }
    let printed = String::from_utf8_lossy(&asked.stdout).into_owned();
    Ok(printed.lines().map(PathBuf::from).filter(|path| path.is_dir()).collect())
}

/// Returns the directories with distributions of an environment that is given: below its prefix, or itself.
///
/// # Errors
///
/// There is none.
pub(crate) fn search_path_of(prefix: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut add = |path: PathBuf| {
        let path_is_new = path.is_dir() && !found.iter().any(|known| is_same(known, &path));
        if path_is_new {
            found.push(path);
        }
    };
    for library in ["lib", "lib64", "local/lib"] {
        for python in directories(&prefix.join(library)) {
            let name = python.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with("python") || name.starts_with("pypy") {
                add(python.join("site-packages"));
                add(python.join("dist-packages"));
            }
        }
    }
    add(prefix.join("Lib").join("site-packages"));
    if found.is_empty() && directories(prefix).iter().any(|path| is_info(path)) {
        found.push(prefix.to_owned());
    }
    match found.is_empty() {
        false => Ok(found),
        true => Err(format!(
            "{}: expected a Python environment, with lib/python3.X/site-packages",
            prefix.display()
        )),
    }
}

/// Returns whether two paths lead to the same file: `lib64` may be a link to `lib`.
fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    real(one).is_some_and(|one| Some(one) == real(other))
}

/// Returns the directories in one, by name.
fn directories(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

fn is_info(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "dist-info")
}

/// Returns the distributions in these directories, by name. The first of several with one name counts, as for an import.
pub(crate) fn distributions(search_path: &[PathBuf]) -> Vec<Distribution> {
    let mut found = BTreeMap::new();
    for info in search_path.iter().flat_map(|path| directories(path)).filter(|path| is_info(path)) {
        let Some(distribution) = Distribution::read(info) else { continue };
        found.entry(normalized(&distribution.name)).or_insert(distribution);
    }
    found.into_values().collect()
}

/// Returns a name in the form in which names of distributions are compared (PEP 503).
pub(crate) fn normalized(name: &str) -> String {
    let words: Vec<&str> = name.split(['-', '_', '.']).filter(|word| !word.is_empty()).collect();
    words.join("-").to_lowercase()
}

impl Distribution {
    /// Returns the files that are listed in `RECORD`.
    ///
    /// # Errors
    ///
    /// The list is missing, or cannot be read.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>, String> {
        let record = self.info.join("RECORD");
        let base = self.info.parent().unwrap_or(Path::new(""));
        let read = fs::read(&record).and_then(|text| Ok(Record::parse(&text)?));
        let read =
            read.map_err(|error| format!("{}: {}", record.display(), report::reason(&error)))?;
        let paths = read.rows().map(|row| base.join(input::path(row.path())));
        Ok(paths.filter(|path| path.is_file()).collect())
    }

    fn read(info: PathBuf) -> Option<Self> {
        let metadata = fs::read(info.join("METADATA")).ok()?;
        let metadata = String::from_utf8_lossy(&metadata).into_owned();
        let field = |name: &str| {
            let head = metadata.lines().take_while(|line| !line.is_empty());
            let mut values = head.filter_map(|line| line.split_once(':'));
            let found = values.find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.trim().to_owned())
        };
        let (name, version) = (field("Name")?, field("Version")?);
        Some(Distribution { name, version, info })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_in_normal_form() {
        for name in ["Foo.Bar_baz", "foo-bar-baz", "FOO__bar..baz"] {
            assert_eq!(normalized(name), "foo-bar-baz");
        }
    }

    #[test]
    fn the_first_distribution_of_a_name_counts() {
        let root = tempfile::tempdir().unwrap();
        let add = |place: &str, name: &str, version: &str| {
            let info = root.path().join(place).join(format!("{name}-{version}.dist-info"));
            fs::create_dir_all(&info).unwrap();
            let text =
                format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: no\n");
            fs::write(info.join("METADATA"), text).unwrap();
        };
        add("lib/python3.11/site-packages", "Foo_Bar", "1.0");
        add("lib/python3.12/site-packages", "foo-bar", "2.0");
        add("lib/python3.12/site-packages", "other", "3");
        let path = search_path_of(root.path()).unwrap();
        assert_eq!(path.len(), 2);
        let found = distributions(&path);
        let found: Vec<_> = found.iter().map(|one| (&*one.name, &*one.version)).collect();
        assert_eq!(found, [("Foo_Bar", "1.0"), ("other", "3")]);
        assert_eq!(search_path_of(&path[1]).unwrap(), [path[1].clone()]);
        assert!(search_path_of(&root.path().join("lib")).is_err());
    }
}
