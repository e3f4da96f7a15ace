//! Directories of Unix, by a descriptor.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};

use super::{Entry, Kind};
use crate::permissions::Permissions;
use crate::stamp::Stamp;

/// A directory that is held open.
#[derive(Debug)]
pub struct Directory {
    handle: OwnedFd,
    id: Id,
}

/// Device and number of a directory: the same for all its names.
pub type Id = (u64, u64);

/// Returns the flags that open a directory. On Linux it need not be readable.
fn flags() -> OFlags {
    #[cfg(target_os = "linux")]
    let access = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let access = OFlags::RDONLY;
    access | OFlags::DIRECTORY | OFlags::CLOEXEC
}

/// The kinds of these file systems.
#[cfg(target_os = "linux")]
const PROC: i64 = 0x9fa0;
#[cfg(target_os = "linux")]
const SYSFS: i64 = 0x6265_6572;

impl Directory {
    /// Opens a directory by any path; the empty path is the current directory.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Directory::new(rustix::fs::open(path, flags(), Mode::empty())?)
    }

    fn new(handle: OwnedFd) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let file = File::from(handle);
        let metadata = file.metadata()?;
        Ok(Directory { handle: file.into(), id: (metadata.dev(), metadata.ino()) })
    }

    /// Returns the number of its inode and of its device.
    pub fn id(&self) -> Id {
        self.id
    }

    /// Returns whether /proc or /sys of Linux is mounted here, in a directory that is not of it: reading all files there has no end.
    pub fn is_of_kernel(&self, outer: &Self) -> bool {
        #[cfg(target_os = "linux")]
        if self.id.0 != outer.id.0 {
            #[allow(clippy::useless_conversion, reason = "32 bits on some systems")]
            let found = rustix::fs::fstatfs(&self.handle).map(|found| i64::from(found.f_type));
            return found.is_ok_and(|kind| [PROC, SYSFS].contains(&kind));
        }
        let _ = outer;
        false
    }

    /// Opens a directory in this one; a symbolic link is refused.
    pub fn enter(&self, name: &OsStr) -> io::Result<Self> {
        let flags = flags() | OFlags::NOFOLLOW;
        Directory::new(rustix::fs::openat(&self.handle, name, flags, Mode::empty())?)
    }

    /// Opens a directory below this one in one step, by a path without `..`. No symbolic link is followed. `None` if that
    /// cannot be done, whatever the reason is.
    #[cfg(target_os = "linux")]
    pub fn below(&self, path: &Path) -> Option<Self> {
        use rustix::fs::ResolveFlags;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        // Since Linux 5.6, and some containers forbid it.
        let handle = rustix::fs::openat2(&self.handle, path, flags(), Mode::empty(), resolve);
        Directory::new(handle.ok()?).ok()
    }

    /// Returns `None`: other systems cannot do that in one step.
    #[cfg(not(target_os = "linux"))]
    pub fn below(&self, _path: &Path) -> Option<Self> {
        None
    }

    /// Makes a directory in this one, with the permissions in `mode`.
    pub fn make(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.handle, name, raw(mode))?)
    }

    /// Returns the entry of this name; `None` if there is none.
    pub fn look(&self, name: &OsStr) -> io::Result<Option<Entry>> {
        match rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(entry(&stat))),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the target of a symbolic link.
    pub fn read_link(&self, name: &OsStr) -> io::Result<PathBuf> {
        let target = rustix::fs::readlinkat(&self.handle, name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// Opens a file in this one, to read it, without waiting for somebody to write to it. A symbolic link is refused.
    pub fn file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let flags = flags | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.handle, name, flags, Mode::empty())?.into())
    }

    /// Returns the names and kinds of what is in this directory, in no order.
    pub fn entries(&self) -> io::Result<Vec<(OsString, Kind)>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable = rustix::fs::openat(&self.handle, ".", flags, Mode::empty())?;
        let mut entries = Vec::new();
        for found in rustix::fs::Dir::new(readable)? {
            let found = found?;
            let name = OsStr::from_bytes(found.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match found.file_type() {
                // Not every file system says it here; an entry that is gone is left out.
                FileType::Unknown => match self.look(name)? {
                    Some(entry) => entry.kind,
                    None => continue,
                },
                known => kind(known),
            };
            entries.push((name.to_owned(), kind));
        }
        Ok(entries)
    }

    /// Makes a file, to write and read it. The name must be free; the mode is less the umask.
    pub fn create(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.handle, name, flags, raw(mode))?.into())
    }

    /// Makes a file without a name, which disappears when the process ends in any way. `None` where the system or the
    /// file system has no such files, or could not give one a name later.
    #[cfg(target_os = "linux")]
    pub fn create_unnamed(&self, mode: u32) -> Option<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&self.handle, ".", flags, raw(mode)).ok()?);
        std::fs::symlink_metadata(in_proc(&file)).is_ok().then_some(file)
    }

    /// Returns `None`: other systems have no files without a name.
    #[cfg(not(target_os = "linux"))]
    pub fn create_unnamed(&self, _mode: u32) -> Option<File> {
        None
    }

    /// Gives a file without a name this one, which must be free.
    #[cfg(target_os = "linux")]
    pub fn link(&self, file: &File, name: &OsStr) -> io::Result<()> {
        use rustix::fs::CWD;
        let follow = AtFlags::SYMLINK_FOLLOW;
        Ok(rustix::fs::linkat(CWD, in_proc(file), &self.handle, name, follow)?)
    }

    /// Fails: other systems have no files without a name.
    #[cfg(not(target_os = "linux"))]
    pub fn link(&self, _file: &File, _name: &OsStr) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Renames an entry; one that has the new name is replaced.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.handle, from, &self.handle, to)?)
    }

    /// Removes a file.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.handle, name, AtFlags::empty())?)
    }

    /// Removes a directory, which must be empty.
    pub fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR)?)
    }
}

/// Returns the mode of a new file.
fn raw(mode: u32) -> Mode {
    Mode::from_raw_mode(as_wide(mode))
}

/// Converts a mode to the width that the system needs. It has 16 bits at most.
fn as_wide<T: TryInto<U>, U: Default>(number: T) -> U {
    number.try_into().unwrap_or_default()
}

fn kind(file_type: FileType) -> Kind {
    match file_type {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Link,
        _ => Kind::Other,
    }
}

fn entry(stat: &Stat) -> Entry {
    let kind = kind(FileType::from_raw_mode(stat.st_mode));
    let stamp = Stamp::from_parts(
        stat.st_size,
        (stat.st_mtime, stat.st_mtime_nsec),
        (stat.st_dev, stat.st_ino),
    );
    Entry {
        kind,
        stamp,
        permissions: Permissions::new(as_wide(stat.st_mode), stat.st_uid, stat.st_gid),
    }
}

/// Returns a name of a file that is open.
#[cfg(target_os = "linux")]
pub fn in_proc(file: &File) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
