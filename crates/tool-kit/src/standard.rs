//! Standard input and output, where data is read or written.
//!
//! Rust's runtime opens `/dev/null` for reading and writing in the place of a stream that is closed, before a program can
//! look. Nothing tells that from a caller who has opened `/dev/null` in this way. Data must not come from there nor go there
//! silently, so that is an error. For tables and messages it is not an error: callers who do not want them do this on
//! purpose.

use std::fs::File;
use std::io;

/// Opens standard input.
pub fn input() -> io::Result<File> {
    open(&io::stdin())
}

/// Opens standard output, for data. Errors name it.
pub fn output() -> io::Result<File> {
    open(&io::stdout()).map_err(|error| io::Error::new(error.kind(), format!("<stdout>: {error}")))
}

#[cfg(unix)]
fn open(stream: &impl std::os::fd::AsFd) -> io::Result<File> {
    use rustix::fs::OFlags;
    let file = File::from(stream.as_fd().try_clone_to_owned()?);
    let is_for_both = || -> io::Result<bool> {
        Ok(rustix::fs::fcntl_getfl(&file)? & OFlags::RWMODE == OFlags::RDWR)
    };
    if crate::special::is_null_device(&file.metadata()?) && is_for_both()? {
        return Err(io::Error::other("closed, or /dev/null opened for reading and writing"));
    }
    Ok(file)
}

#[cfg(windows)]
fn open(stream: &impl std::os::windows::io::AsHandle) -> io::Result<File> {
    Ok(File::from(stream.as_handle().try_clone_to_owned()?))
}
