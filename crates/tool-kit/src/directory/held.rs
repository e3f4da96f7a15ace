//! Files below a directory that is held open.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::{Directory, Entry, Kind};
use crate::special::require_regular;

/// A directory that a user named, and the door to all files below it.
///
/// Its own path may have symbolic links. Below it, none is followed: a directory or a file that somebody replaces by a
/// link during a run leads nowhere else. Paths below it are relative and without `..`; see [`resolve`](Held::resolve).
#[derive(Clone, Debug)]
pub struct Held {
    directory: Arc<Directory>,
    /// As the user typed it.
    path: PathBuf,
}

impl Held {
    /// Opens a directory by any path; the empty path is the current directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Held { directory: Arc::new(Directory::open(path)?), path: path.to_owned() })
    }

    /// Opens a directory below this one, to hold it by itself.
    pub fn enter(&self, relative: &Path) -> io::Result<Self> {
        let path = self.path_of(relative);
        Ok(Held { directory: self.directory(relative)?, path })
    }

    /// Returns the path of the directory, as the user typed it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a file below, for messages.
    pub fn path_of(&self, relative: &Path) -> PathBuf {
        if relative.as_os_str().is_empty() { self.path.clone() } else { self.path.join(relative) }
    }

    /// Returns the path below this directory that `path`, from a list in a file, has from `base`, which is below it too.
    /// `None` if it leads out: if it is absolute, or has too many `..`.
    pub fn resolve(base: &Path, path: &Path) -> Option<PathBuf> {
        let mut found = PathBuf::new();
        for component in base.components().chain(path.components()) {
            match component {
                Component::Normal(name) => found.push(name),
                Component::CurDir => {}
                Component::ParentDir => found.pop().then_some(())?,
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(found)
    }

    /// Opens a directory below. The empty path is this directory.
    ///
    /// # Errors
    ///
    /// One of the system; [`InvalidInput`](io::ErrorKind::InvalidInput) for a path that is not plain.
    pub fn directory(&self, relative: &Path) -> io::Result<Arc<Directory>> {
        let names = plain(relative)?;
        if names.len() > 1
            && let Some(directory) = self.directory.below(relative)
        {
            return Ok(Arc::new(directory));
        }
        // Name by name, which also tells what is wrong.
        let mut directory = Arc::clone(&self.directory);
        for name in names {
            let entered = directory.enter(name);
            directory = Arc::new(entered.map_err(|error| link_or(&directory, name, error))?);
        }
        Ok(directory)
    }

    /// Opens a regular file below, without waiting and without following links.
    ///
    /// # Errors
    ///
    /// One of the system; an error for a symbolic link, a pipe, a socket or a device, which is not opened.
    pub fn file(&self, relative: &Path) -> io::Result<File> {
        let (directory, name) = self.parent(relative)?;
        match directory.look(name)? {
            // The system says that there is none.
            None | Some(Entry { kind: Kind::File, .. }) => {}
            Some(Entry { kind: Kind::Directory, .. }) => {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            Some(Entry { kind: Kind::Link, .. }) => return Err(is_link()),
            Some(Entry { kind: Kind::Other, .. }) => {
                return Err(io::Error::other("not a regular file"));
            }
        }
        let file = directory.file(name).map_err(|error| link_or(&directory, name, error))?;
        // Something else may have come in its place.
        require_regular(&file.metadata()?)?;
        Ok(file)
    }

    /// Reads a list below: a regular file of at most `most` bytes.
    ///
    /// # Errors
    ///
    /// As [`file`](Held::file); [`FileTooLarge`](io::ErrorKind::FileTooLarge) if there is more.
    pub fn read_list(&self, relative: &Path, most: u64) -> io::Result<Vec<u8>> {
        Ok(self.open_list(relative, most)?.1)
    }

    /// Reads a list as [`read_list`](Held::read_list) does, and returns it with the file.
    pub fn open_list(&self, relative: &Path, most: u64) -> io::Result<(File, Vec<u8>)> {
        let file = self.file(relative)?;
        let size = file.metadata()?.len();
        let mut bytes = Vec::new();
        // It may grow.
        if size <= most {
            (&file).take(most + 1).read_to_end(&mut bytes)?;
        }
        if size > most || bytes.len() as u64 > most {
            let text = format!("has more than {most} bytes: expected a list of files");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        Ok((file, bytes))
    }

    /// Returns the entry of this path; `None` if there is none. A symbolic link is an entry by itself.
    pub fn look(&self, relative: &Path) -> io::Result<Option<Entry>> {
        let (directory, name) = self.parent(relative)?;
        directory.look(name)
    }

    /// Returns the names and kinds of what is in a directory below, sorted by name.
    pub fn entries(&self, relative: &Path) -> io::Result<Vec<(OsString, Kind)>> {
        let mut entries = self.directory(relative)?.entries()?;
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(entries)
    }

    /// Returns the entries of a directory, unless /proc or /sys of Linux is there.
    fn entries_of_files(&self, relative: &Path) -> io::Result<Vec<(OsString, Kind)>> {
        let directory = self.directory(relative)?;
        if directory.is_of_kernel(&self.directory) {
            let text = "files of the kernel are not looked into";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let mut entries = directory.entries()?;
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(entries)
    }

    /// Returns the paths of all regular files below, each directory sorted by name with its files before its directories. Links
    /// are not followed. Hands over what keeps a directory from being read: [`Unsupported`](io::ErrorKind::Unsupported) for one that
    /// is not, because the kernel makes up its files.
    pub fn files(&self, fault: &mut dyn FnMut(&Path, &io::Error)) -> Vec<PathBuf> {
        self.below(Kind::File, fault)
    }

    /// Returns the paths of all symbolic links below.
    pub fn links(&self) -> Vec<PathBuf> {
        self.below(Kind::Link, &mut |_, _| {})
    }

    /// Returns the paths of all symbolic links below that lead out of the directory.
    pub fn links_out(&self) -> Vec<PathBuf> {
        let Ok(real) = crate::real::path(self.path()) else { return Vec::new() };
        let mut links = self.links();
        links.retain(|link| {
            crate::real::path(&self.path_of(link)).is_ok_and(|target| !target.starts_with(&real))
        });
        links
    }

    fn below(&self, kind: Kind, fault: &mut dyn FnMut(&Path, &io::Error)) -> Vec<PathBuf> {
        let (mut files, mut waiting) = (Vec::new(), vec![PathBuf::new()]);
        while let Some(directory) = waiting.pop() {
            match self.entries_of_files(&directory) {
                Ok(entries) => {
                    let (directories, others): (Vec<_>, Vec<_>) =
                        entries.into_iter().partition(|(_, kind)| *kind == Kind::Directory);
                    let others = others.into_iter().filter(|(_, it)| *it == kind);
                    files.extend(others.map(|(name, _)| directory.join(name)));
                    let below = directories.into_iter().map(|(name, _)| directory.join(name));
                    waiting.extend(below.rev());
                }
                Err(error) => fault(&self.path_of(&directory), &error),
            }
        }
        files
    }

    /// Opens the directory of a file below, and returns it with the file's name.
    pub fn parent<'p>(&self, relative: &'p Path) -> io::Result<(Arc<Directory>, &'p OsStr)> {
        let name = relative.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((self.directory(relative.parent().unwrap_or(Path::new("")))?, name))
    }
}

/// Returns the names in a path below a directory.
fn plain(relative: &Path) -> io::Result<Vec<&OsStr>> {
    let names = relative.components().map(|component| match component {
        Component::Normal(name) => Ok(name),
        _ => {
            let text = format!("'{}' leads out of its directory", relative.display());
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        }
    });
    names.collect()
}

/// Returns the error of opening an entry, or a clear one if that is a symbolic link: systems disagree about these.
fn link_or(directory: &Directory, name: &OsStr, error: io::Error) -> io::Error {
    match directory.look(name) {
        Ok(Some(Entry { kind: Kind::Link, .. })) => is_link(),
        _ => error,
    }
}

fn is_link() -> io::Error {
    io::Error::other("a symbolic link, which is not followed: expected a file or directory")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn paths_in_lists_stay_below() {
        let resolve = |base: &str, path: &str| Held::resolve(Path::new(base), Path::new(path));
        assert_eq!(resolve("lib/site", "a/./b").unwrap(), Path::new("lib/site/a/b"));
        assert_eq!(resolve("lib/site", "../../bin/a").unwrap(), Path::new("bin/a"));
        assert_eq!(resolve("lib/site", "../../../bin/a"), None);
        assert_eq!(resolve("lib", "/etc/passwd"), None);
        assert_eq!(resolve("", "a/../../b"), None);
    }

    #[test]
    fn only_regular_files_below_are_opened() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        fs::create_dir_all(root.join("one/two")).unwrap();
        fs::write(place.path().join("outside"), "secret").unwrap();
        fs::write(root.join("one/two/list"), "12345").unwrap();
        let held = Held::open(&root).unwrap();
        let read = |path: &str| held.read_list(Path::new(path), 5);
        assert_eq!(read("one/two/list").unwrap(), b"12345");
        let error = held.read_list(Path::new("one/two/list"), 4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read("one/two").unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(read("one/none").unwrap_err().kind(), io::ErrorKind::NotFound);
        for out in ["../outside", "/etc/passwd", "one/../../outside"] {
            assert_eq!(read(out).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{out}");
        }
        let two = held.enter(Path::new("one/two")).unwrap();
        assert_eq!(two.entries(Path::new("")).unwrap(), [("list".into(), Kind::File)]);
        assert_eq!(two.path_of(Path::new("list")), root.join("one/two/list"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            let is_refused = |path: &str| {
                let error = read(path).unwrap_err().to_string();
                assert!(error.starts_with("a symbolic link"), "{path}: {error}");
            };
            symlink("../outside", root.join("file")).unwrap();
            symlink("one/two", root.join("directory")).unwrap();
            is_refused("file");
            is_refused("directory/list");
            symlink("two", root.join("one/inside")).unwrap();
            symlink("../..", root.join("one/out")).unwrap();
            symlink(place.path(), root.join("one/absolute")).unwrap();
            for path in ["one/inside/list", "one/out/outside", "one/absolute/outside"] {
                is_refused(path);
            }
            let made = std::process::Command::new("mkfifo").arg(root.join("pipe")).status();
            assert!(made.unwrap().success());
            assert_eq!(read("pipe").unwrap_err().to_string(), "not a regular file");
            // The directory that is held is the same after it is replaced by a link.
            fs::rename(&root, place.path().join("aside")).unwrap();
            symlink("elsewhere", &root).unwrap();
            assert_eq!(read("one/two/list").unwrap(), b"12345");
        }
    }

    /// The system refuses paths of more than 4096 bytes.
    #[test]
    #[cfg(unix)]
    fn paths_may_have_any_length() {
        let place = tempfile::tempdir().unwrap();
        let held = Held::open(place.path()).unwrap();
        let (mut directory, mut path) = (held.directory(Path::new("")).unwrap(), PathBuf::new());
        let name = OsString::from("n".repeat(250));
        for _ in 0..20 {
            directory.make(&name, 0o700).unwrap();
            directory = Arc::new(directory.enter(&name).unwrap());
            path.push(&name);
        }
        path.push("list");
        drop(directory.create(OsStr::new("list"), 0o600).unwrap());
        assert_eq!(held.read_list(&path, 5).unwrap(), b"");
        assert_eq!(held.files(&mut |path, error| panic!("{path:?}: {error}")), [path]);
    }
}
