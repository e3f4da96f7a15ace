//! Output files: written beside their place and renamed, so that no failure leaves half a file or loses an old one.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// Files of one directory that appear together, when all of them are written.
#[derive(Debug)]
pub(crate) struct Outputs {
    directory: PathBuf,
    /// Whether the directory is ours to remove again.
    created: bool,
    files: Vec<(NamedTempFile, String)>,
}

impl Outputs {
    /// Outputs in `directory`, which is made if it does not exist.
    pub(crate) fn new(directory: &Path) -> io::Result<Self> {
        let created = !directory.exists();
        if created {
            fs::create_dir_all(directory).map_err(|error| at(directory, &error))?;
        }
        Ok(Outputs { directory: directory.to_owned(), created, files: Vec::new() })
    }

    /// Writes one file under a temporary name. `name` is a plain file name.
    pub(crate) fn write(&mut self, name: String, mut from: impl Read) -> io::Result<u64> {
        let mut builder = Builder::new();
        builder.prefix(".offload-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Temporary files are private by default; outputs have the usual permissions, less the umask.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let mut file =
            builder.tempfile_in(&self.directory).map_err(|error| at(&self.directory, &error))?;
        let size = io::copy(&mut from, &mut file)?;
        self.files.push((file, name));
        Ok(size)
    }

    /// Gives all files their names, replacing older files. Returns their paths, in order.
    pub(crate) fn commit(mut self) -> io::Result<Vec<PathBuf>> {
        self.created = false;
        let mut paths = Vec::new();
        for (file, name) in std::mem::take(&mut self.files) {
            let path = self.directory.join(name);
            file.persist(&path).map_err(|failed| at(&path, &failed.error))?;
            paths.push(path);
        }
        Ok(paths)
    }
}

impl Drop for Outputs {
    fn drop(&mut self) {
        self.files.clear();
        if self.created {
            // Only succeeds when it is empty, as we found it: not there.
            let _ = fs::remove_dir(&self.directory);
        }
    }
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Turns text from a file into a part of a file name: letters, digits, `.`, `_`, `+` and `-` stay, everything
/// else becomes `_`.
pub(crate) fn safe_name(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_the_directory() {
        assert_eq!(safe_name("gfx90a:sramecc+:xnack-"), "gfx90a_sramecc+_xnack-");
        assert_eq!(safe_name("../../etc/passwd"), ".._.._etc_passwd");
        assert_eq!(safe_name("a\0b\nc\\d"), "a_b_c_d");
    }

    #[test]
    fn nothing_appears_before_commit_or_after_failure() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("new");
        let mut outputs = Outputs::new(&directory).unwrap();
        outputs.write("a".into(), &b"one"[..]).unwrap();
        assert!(!directory.join("a").exists());
        drop(outputs);
        assert!(!directory.exists());

        let mut outputs = Outputs::new(&directory).unwrap();
        outputs.write("a".into(), &b"one"[..]).unwrap();
        outputs.write("b".into(), &b"two"[..]).unwrap();
        assert_eq!(outputs.commit().unwrap(), [directory.join("a"), directory.join("b")]);
        assert_eq!(fs::read(directory.join("b")).unwrap(), b"two");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 2);
    }
}
