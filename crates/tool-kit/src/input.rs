//! Paths of the command line, and the files that they name.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use byte_parts::ReadSeek;

use crate::opened::{MaxInput, Opened, open_regular};

/// Opens a file that can be read from any offset and has a size: the file itself, or a temporary copy of a pipe or of
/// standard input (`-`).
pub fn open_sized(path: &Path, max: MaxInput) -> io::Result<File> {
    Opened::new(path, max).map(|opened| opened.file)
}

/// Returns the name used in messages.
pub fn display(path: &Path) -> String {
    if path.as_os_str() == "-" { "<stdin>".to_owned() } else { path.display().to_string() }
}

/// Opens the file that the thin archive at `archive` names: relative to the archive's directory.
pub fn open_thin_member(archive: &Path, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
    Ok(Box::new(open_thin_file(archive, name)?))
}

/// Opens the same file as [`open_thin_member`], with its own type.
pub fn open_thin_file(archive: &Path, name: &[u8]) -> io::Result<File> {
    open_regular(&thin_member_path(archive, name))
}

/// Returns the path of the file that the thin archive at `archive` names.
pub fn thin_member_path(archive: &Path, name: &[u8]) -> PathBuf {
    archive.parent().unwrap_or(Path::new("")).join(path(name))
}

/// Returns a path below a directory that has no links, as the system spells it: parts that lead up and down again go.
pub fn below(directory: &Path, path: &Path) -> PathBuf {
    let mut found = directory.to_owned();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if found.pop() || found.has_root() => {}
            part => found.push(part),
        }
    }
    found
}

/// Returns the path that the bytes of an argument or a member's name spell.
#[cfg(unix)]
pub fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// Returns the path that the bytes of an argument or a member's name spell. Text that is not UTF-8 cannot name a
/// file here.
#[cfg(not(unix))]
pub fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

/// Returns the bytes of an argument, as [`path`] takes them.
#[cfg(unix)]
pub fn bytes(argument: OsString) -> Vec<u8> {
    use std::os::unix::ffi::OsStringExt;
    argument.into_vec()
}

/// Returns the bytes of an argument, as [`path`] takes them.
#[cfg(not(unix))]
pub fn bytes(argument: OsString) -> Vec<u8> {
    argument.into_string().unwrap_or_else(|text| text.to_string_lossy().into_owned()).into_bytes()
}
