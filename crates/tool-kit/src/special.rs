//! Special files: devices, and the one that is empty.

use std::fs::Metadata;
use std::io;
use std::path::Path;

/// Returns whether the path names the null device, which is empty and accepts everything: `/dev/null`, and `NUL` on
/// Windows, where devices lack some properties of files.
pub fn is_null(path: &Path) -> bool {
    path == Path::new("/dev/null") || cfg!(windows) && path.as_os_str().eq_ignore_ascii_case("nul")
}

/// Returns whether a file is a device.
#[cfg(unix)]
pub fn is_device(metadata: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    metadata.file_type().is_char_device() || metadata.file_type().is_block_device()
}

/// Returns `false`: a device is not told from its metadata here.
#[cfg(not(unix))]
pub fn is_device(_metadata: &Metadata) -> bool {
    false
}

/// Returns whether it is `/dev/null`, by whatever name.
#[cfg(unix)]
pub fn is_null_device(metadata: &Metadata) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let is_same = |null: Metadata| null.rdev() == metadata.rdev();
    metadata.file_type().is_char_device() && std::fs::metadata("/dev/null").is_ok_and(is_same)
}

/// Returns `false`: a device is not told from its metadata here.
#[cfg(not(unix))]
pub fn is_null_device(_metadata: &Metadata) -> bool {
    false
}

/// Fails for anything but a regular file.
pub fn require_regular(metadata: &Metadata) -> io::Result<()> {
    match metadata.file_type() {
        kind if kind.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        kind if !kind.is_file() => Err(io::Error::other("not a regular file")),
        _ => Ok(()),
    }
}
