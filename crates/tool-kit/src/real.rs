//! Paths without links.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the path of a file without links. Windows does not have it for every long path: such a path is made absolute, and its
/// links stay.
///
/// # Errors
///
/// There is no such file.
pub fn path(file: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(file).or_else(|error| {
        if !cfg!(windows) {
            return Err(error);
        }
        let absolute = verbatim(&std::path::absolute(file)?);
        fs::metadata(&absolute).map(|_| absolute)
    })
}

/// Returns an absolute path of Windows in the form in which it may have more than 260 characters, as
/// [`canonicalize`](fs::canonicalize) returns it.
fn verbatim(path: &Path) -> PathBuf {
    let text = path.to_string_lossy();
    match (text.strip_prefix(r"\\?\"), text.strip_prefix(r"\\")) {
        (Some(_), _) => path.to_owned(),
        (None, Some(share)) => PathBuf::from(format!(r"\\?\UNC\{share}")),
        (None, None) => PathBuf::from(format!(r"\\?\{text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_have_a_form_of_their_own() {
        for (path, long) in [
            (r"C:\a\b", r"\\?\C:\a\b"),
            (r"\\server\share\a", r"\\?\UNC\server\share\a"),
            (r"\\?\C:\a", r"\\?\C:\a"),
        ] {
            assert_eq!(verbatim(Path::new(path)), Path::new(long));
        }
        assert!(path(Path::new("no such file")).is_err());
        assert_eq!(path(Path::new(".")).unwrap(), fs::canonicalize(".").unwrap());
    }
}
