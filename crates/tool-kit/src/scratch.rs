//! Temporary files without names. Errors name the directory for them, not the input that they are for.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::report::reason;

/// Makes a temporary file for these contents, such as "a copy of the input".
pub fn file(contents: &str) -> io::Result<File> {
    tempfile::tempfile().map_err(|error| no_place(contents, &std::env::temp_dir(), &error))
}

/// Makes a file in memory where the system can do that, else a temporary file.
pub fn in_memory(contents: &str) -> io::Result<File> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{MemfdFlags, memfd_create};
        if let Ok(file) = memfd_create("offload", MemfdFlags::CLOEXEC) {
            return Ok(file.into());
        }
    }
    file(contents)
}

/// Returns the error of a directory in which nothing temporary can be made.
pub fn no_place(contents: &str, directory: &Path, error: &io::Error) -> io::Error {
    let directory = directory.display();
    io::Error::other(format!(
        "no temporary file for {contents}: '{directory}': {} (TMPDIR sets the directory)",
        reason(error)
    ))
}

/// Returns an error of a copy to a temporary file; an error that only writing can have names the directory.
pub fn copying(contents: &str, error: io::Error) -> io::Error {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge if error.raw_os_error().is_some() => {
            no_place(contents, &std::env::temp_dir(), &error)
        }
        _ => error,
    }
}
