//! Wildcards in names of files. The shells of Windows leave them to programs; elsewhere they are characters like others.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use byte_parts::is_like;

use crate::input;

/// Returns the named files. On Windows a name with `*` or `?` becomes the names that it matches. Wildcards are in the name of the file only,
/// not in its directory, as LLVM's tools have it. A name that matches nothing stays.
pub fn expanded(paths: &[PathBuf]) -> Cow<'_, [PathBuf]> {
    if !cfg!(windows) {
        return Cow::Borrowed(paths);
    }
    paths.iter().flat_map(|path| matches(path)).collect::<Vec<_>>().into()
}

/// Returns the arguments of a drop-in, after its name, as [`expanded`] has them.
pub fn of_arguments(arguments: impl Iterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    let expand = |argument: Vec<u8>| match &*argument {
        b"/?" | b"-?" => vec![argument],
        _ if !cfg!(windows) => vec![argument],
        name => {
            matches(&input::path(name)).into_iter().map(|path| input::bytes(path.into())).collect()
        }
    };
    arguments.flat_map(expand).collect()
}

/// Returns the files of a directory that a path with a wildcard matches, by name; else the path.
pub fn matches(path: &Path) -> Vec<PathBuf> {
    let pattern = path.file_name().and_then(|name| name.to_str());
    let Some(pattern) = pattern.filter(|name| name.contains(['*', '?'])) else {
        return vec![path.to_owned()];
    };
    // `*.*` means all names, from a time when each had a dot.
    let pattern = if pattern == "*.*" { "*" } else { pattern };
    let parent = path.parent().unwrap_or(Path::new(""));
    let directory = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let names = fs::read_dir(directory).into_iter().flatten();
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<_> = names.filter(|name| is_match(pattern, name)).collect();
    names.sort();
    if names.is_empty() {
        return vec![path.to_owned()];
    }
    names.into_iter().map(|name| parent.join(name)).collect()
}

/// Returns whether a name matches: `*` is any characters, `?` is one. Case does not matter.
fn is_match(pattern: &str, name: &str) -> bool {
    let lower = |text: &str| text.chars().flat_map(char::to_lowercase).collect::<String>();
    is_like(&lower(name), &lower(pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_on_windows() {
        for (pattern, name, is_one) in [
            ("*.dll", "HIP.DLL", true),
            ("*.dll", "hip.dll.bak", false),
            ("\u{c4}*", "\u{e4}x.o", true),
            ("*", "", true),
            ("?", "", false),
        ] {
            assert_eq!(is_match(pattern, name), is_one, "{pattern} {name}");
        }
    }

    #[test]
    fn files_of_one_directory_are_found_by_name() {
        let place = tempfile::tempdir().unwrap();
        for name in ["b.dll", "A.dll", "c", "d.o"] {
            fs::write(place.path().join(name), "").unwrap();
        }
        let found = |name: &str| {
            let found = matches(&place.path().join(name)).into_iter();
            let names = found.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
            names.collect::<Vec<_>>()
        };
        assert_eq!(found("*.dll"), ["A.dll", "b.dll"]);
        assert_eq!(found("*.*"), ["A.dll", "b.dll", "c", "d.o"]);
        assert_eq!(found("*.exe"), ["*.exe"]);
        assert_eq!(found("c"), ["c"]);
        assert_eq!(matches(Path::new("no*where/a*")), [Path::new("no*where/a*")]);
        let typed = [place.path().join("*.dll")];
        assert_eq!(expanded(&typed).len(), if cfg!(windows) { 2 } else { 1 });
    }
}
