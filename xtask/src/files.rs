//! Files that steps read and compare.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{Result, Stop, command, feed, read};

/// Reads a text, or says which file cannot be read.
pub(crate) fn text(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    fs::read_to_string(path).map_err(|error| Stop::Wrong(format!("{}: {error}", path.display())))
}

/// Returns all files below a directory, links included, in order.
pub(crate) fn below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(below(&entry.path())?);
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the files of a directory, by name.
pub(crate) fn of(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)
        .map_err(|error| Stop::Wrong(format!("{}: {error}", directory.display())))?;
    let mut found = Vec::new();
    for entry in entries {
        found.push(entry?.path());
    }
    found.sort();
    Ok(found)
}

/// Returns true if two files can be read, and have the same bytes.
pub(crate) fn are_equal(one: &Path, other: &Path) -> bool {
    matches!((fs::read(one), fs::read(other)), (Ok(one), Ok(other)) if one == other)
}

/// Writes the checksum of a file beside it, as `sha256sum -c` reads it.
pub(crate) fn write_checksum(file: &Path) -> Result {
    let directory = file.parent().unwrap_or(file);
    let mut sum = command("sha256sum");
    let sum = read(sum.arg(name(file)).current_dir(directory))?;
    fs::write(directory.join(name(file) + ".sha256"), sum)?;
    Ok(())
}

/// Returns the last part of a path.
pub(crate) fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Writes a file unless it is as it should be, or only compares it and shows the difference. Returns whether the file is
/// right then.
pub(crate) fn renew(path: &Path, new: &str, only_compares: bool) -> Result<bool> {
    if fs::read(path).is_ok_and(|old| old == new.as_bytes()) {
        return Ok(true);
    }
    if only_compares {
        print!("{}", feed(command("diff -u").arg(path).arg("-"), new)?);
        return Ok(false);
    }
    fs::write(path, new)?;
    println!("wrote {}", path.display());
    Ok(true)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::machine::Place;

    #[test]
    fn files_are_written_or_compared() {
        let place = Place::new().unwrap();
        let path = place.join("x.txt");
        assert!(renew(&path, "one\n", false).unwrap());
        assert!(renew(&path, "one\n", true).unwrap());
        assert!(!renew(&path, "two\n", true).unwrap());
        assert_eq!(text(&path).unwrap(), "one\n");
        fs::create_dir(place.join("a")).unwrap();
        fs::write(place.join("a/b"), "one\n").unwrap();
        assert_eq!(below(&place).unwrap(), [place.join("a/b"), path.clone()]);
        assert!(are_equal(&path, &place.join("a/b")) && !are_equal(&path, &place.join("c")));
    }
}
