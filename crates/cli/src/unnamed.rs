//! Files that have no name yet: they go with the process, whatever ends it.

use std::fs::File;
use std::io;
use std::path::Path;

/// A file in a directory, with these permissions less the umask. `None` where the system or the file system has no
/// such files, or could not give one a name later.
#[cfg(target_os = "linux")]
pub(crate) fn create(directory: &Path, mode: u32) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(directory, flags, Mode::from_raw_mode(mode)).ok()?;
    let file = File::from(file);
    std::fs::symlink_metadata(in_proc(&file)).is_ok().then_some(file)
}

/// Gives it a name, which must be free.
#[cfg(target_os = "linux")]
pub(crate) fn link(file: &File, name: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD};
    Ok(rustix::fs::linkat(CWD, in_proc(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(target_os = "linux")]
fn in_proc(file: &File) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// The same file, read from a position of its own.
#[cfg(target_os = "linux")]
pub(crate) fn reopen(file: &File) -> Option<File> {
    File::open(in_proc(file)).ok()
}

/// None here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn reopen(_file: &File) -> Option<File> {
    None
}

/// None here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn create(_directory: &Path, _mode: u32) -> Option<File> {
    None
}

/// There are none here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn link(_file: &File, _name: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn they_have_the_name_they_are_given() {
        use std::io::Write;
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        // Not every file system has them.
        let Some(mut file) = create(place.path(), 0o640) else { return };
        file.write_all(b"contents").unwrap();
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
        let name = place.path().join("name");
        link(&file, &name).unwrap();
        drop(file);
        assert_eq!(std::fs::read(&name).unwrap(), b"contents");
        assert_eq!(std::fs::metadata(&name).unwrap().permissions().mode() & 0o777, 0o640);
        let other = create(place.path(), 0o640).unwrap();
        assert_eq!(link(&other, &name).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
