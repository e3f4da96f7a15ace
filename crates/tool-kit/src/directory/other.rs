//! Directories of systems that know them by path only. Their paths have no symbolic links, which is the best that
//! these systems allow.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileType};
use std::io;
use std::path::{Path, PathBuf};

use super::{Entry, Kind};
use crate::permissions::Permissions;
#[cfg(windows)]
use crate::permissions::attributes;
use crate::stamp::Stamp;

/// A directory.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
}

/// The one path of a directory.
pub type Id = PathBuf;

impl Directory {
    /// Finds a directory by any path; the empty path is the current directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let path = crate::real::path(path)?;
        if fs::metadata(&path)?.is_dir() {
            Ok(Directory { path })
        } else {
            Err(io::ErrorKind::NotADirectory.into())
        }
    }

    /// Returns its path, which tells it from others.
    pub fn id(&self) -> Id {
        self.path.clone()
    }

    /// Finds a directory in this one; a symbolic link is refused.
    pub fn enter(&self, name: &OsStr) -> io::Result<Self> {
        match self.look(name)? {
            Some(entry) if entry.kind == Kind::Directory => {
                Ok(Directory { path: self.path.join(name) })
            }
            Some(_) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Returns `false`: these systems have no such files.
    pub fn is_of_kernel(&self, _outer: &Self) -> bool {
        false
    }

    /// Returns `None`: these systems cannot do that in one step.
    pub fn below(&self, _path: &Path) -> Option<Self> {
        None
    }

    /// Makes a directory in this one.
    pub fn make(&self, name: &OsStr, _mode: u32) -> io::Result<()> {
        fs::create_dir(self.path.join(name))
    }

    /// Returns the entry of this name; `None` if there is none.
    pub fn look(&self, name: &OsStr) -> io::Result<Option<Entry>> {
        let metadata = match fs::symlink_metadata(self.path.join(name)) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let kind = kind(metadata.file_type());
        let (stamp, permissions) = (Stamp::new(&metadata), Permissions::of(&metadata));
        Ok(Some(Entry { kind, stamp, permissions }))
    }

    /// Returns the target of a symbolic link.
    pub fn read_link(&self, name: &OsStr) -> io::Result<PathBuf> {
        fs::read_link(self.path.join(name))
    }

    /// Opens a file in this one, to read it; a symbolic link is refused.
    pub fn file(&self, name: &OsStr) -> io::Result<File> {
        match self.look(name)? {
            Some(entry) if entry.kind == Kind::File => File::open(self.path.join(name)),
            Some(_) => Err(io::Error::other("not a regular file")),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Returns the names and kinds of what is in this directory, in no order.
    pub fn entries(&self) -> io::Result<Vec<(OsString, Kind)>> {
        let entries = fs::read_dir(&self.path)?.map(|entry| {
            let entry = entry?;
            Ok((entry.file_name(), kind(entry.file_type()?)))
        });
        entries.collect()
    }

    /// Makes a file, to write and read it. The name must be free.
    pub fn create(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        #[cfg(windows)]
        std::os::windows::fs::OpenOptionsExt::attributes(&mut options, attributes(mode));
        let _ = mode;
        options.open(self.path.join(name))
    }

    /// Fails: these systems have no files without a name.
    pub fn create_unnamed(&self, _mode: u32) -> Option<File> {
        None
    }

    /// Fails: these systems have no files without a name.
    pub fn link(&self, _file: &File, _name: &OsStr) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Renames an entry; one that has the new name is replaced, even if it is open: as an input, say.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    /// Removes a file.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    /// Removes a directory, which must be empty.
    pub fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_dir(self.path.join(name))
    }
}

fn kind(file_type: FileType) -> Kind {
    match file_type {
        kind if kind.is_file() => Kind::File,
        kind if kind.is_dir() => Kind::Directory,
        kind if kind.is_symlink() => Kind::Link,
        _ => Kind::Other,
    }
}
