//! Directories that are held open: nothing that becomes of their names leads elsewhere.

mod held;
#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
use other as system;
#[cfg(unix)]
use unix as system;

use crate::permissions::Permissions;
use crate::stamp::Stamp;
pub use held::Held;
#[cfg(target_os = "linux")]
pub use system::in_proc;
pub use system::{Directory, Id};

/// Something in a directory, as it is when it is looked at. Symbolic links are not followed.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// File, directory or link.
    pub kind: Kind,
    /// Its inode, times and size.
    pub stamp: Stamp,
    /// Its mode, owner and group.
    pub permissions: Permissions,
}

/// Kind of an entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, a pipe or a socket.
    Other,
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;

    use super::*;

    #[test]
    fn entries_are_inspected_without_following_links() {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::open(place.path()).unwrap();
        let kind = |name: &str| directory.look(OsStr::new(name)).unwrap().map(|entry| entry.kind);
        assert_eq!(kind("none"), None);
        fs::write(place.path().join("file"), "12345").unwrap();
        fs::create_dir(place.path().join("directory")).unwrap();
        assert_eq!(kind("file"), Some(Kind::File));
        assert_eq!(kind("directory"), Some(Kind::Directory));
        let entry = directory.look(OsStr::new("file")).unwrap().unwrap();
        let file = fs::File::open(place.path().join("file")).unwrap();
        assert_eq!(entry.stamp, Stamp::of(&file).unwrap());
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("file", place.path().join("link")).unwrap();
            assert_eq!(kind("link"), Some(Kind::Link));
            assert!(directory.enter(OsStr::new("link")).is_err());
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn files_of_the_kernel_are_left_out_below_other_directories() {
        let place = tempfile::tempdir().unwrap();
        let [root, proc] = ["/", "/proc"].map(|path| Directory::open(path.as_ref()).unwrap());
        let other = Directory::open(place.path()).unwrap();
        let entered = proc.enter(OsStr::new("self")).or_else(|_| proc.enter(OsStr::new("sys")));
        if fs::metadata("/proc/self/status").is_ok() {
            assert!(proc.is_of_kernel(&root) && proc.is_of_kernel(&other));
            assert!(!proc.is_of_kernel(&proc) && !entered.unwrap().is_of_kernel(&proc));
        }
        assert!(!other.is_of_kernel(&root) && !root.is_of_kernel(&other));
    }

    #[test]
    #[cfg(unix)]
    fn a_renamed_directory_stays_open() {
        let place = tempfile::tempdir().unwrap();
        let [one, two, aside] = ["one", "two", "aside"].map(|name| place.path().join(name));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&two).unwrap();
        let directory = Directory::open(&one).unwrap();
        fs::rename(&one, &aside).unwrap();
        std::os::unix::fs::symlink("two", &one).unwrap();
        drop(directory.create(OsStr::new("file"), 0o600).unwrap());
        directory.rename(OsStr::new("file"), OsStr::new("renamed")).unwrap();
        assert!(aside.join("renamed").exists());
        assert_eq!(fs::read_dir(&two).unwrap().count(), 0);
        directory.remove(OsStr::new("renamed")).unwrap();
        assert!(!aside.join("renamed").exists());
    }

    /// Files from before 1970 have negative times.
    #[test]
    #[cfg(unix)]
    fn stamps_are_equal_for_files_before_1970() {
        use std::time::{Duration, SystemTime};
        let place = tempfile::tempdir().unwrap();
        let file = fs::File::create(place.path().join("file")).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH - Duration::from_millis(2500)).unwrap();
        let directory = Directory::open(place.path()).unwrap();
        let entry = directory.look(OsStr::new("file")).unwrap().unwrap();
        assert_eq!(entry.stamp, Stamp::of(&file).unwrap());
    }
}
