//! Code that the example programs share, as every real tool has it: an exit status, errors that name files, and files
//! that appear when they are complete.
#![forbid(unsafe_code)]

#[cfg(doctest)]
mod book;

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Any error, with whatever it needs to say.
pub type Error = Box<dyn std::error::Error>;

/// Result of `main`. An error is one line that starts with the name of the program.
#[must_use]
pub fn exit(program: &str, result: Result<(), Error>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{program}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Puts the name of a file before an error: `.map_err(about(path))`.
pub fn about<E: Into<Error>>(path: &Path) -> impl FnOnce(E) -> Error + '_ {
    move |error| format!("{}: {}", path.display(), error.into()).into()
}

/// Reads a whole file.
///
/// # Errors
///
/// Errors of reading, with the name of the file.
pub fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(about(path))
}

/// Writes a file beside its place and moves it there when it is complete: readers see the old file or the new one,
/// and an error leaves no file.
///
/// # Errors
///
/// Errors of `write`, and errors of creating and moving the file.
pub fn write(path: &Path, write: impl FnOnce(&mut File) -> Result<(), Error>) -> Result<(), Error> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut file = tempfile::Builder::new()
        .make_in(directory.unwrap_or(Path::new(".")), |path| {
            File::options().read(true).write(true).create_new(true).open(path)
        })
        .map_err(about(path))?;
    write(file.as_file_mut()).map_err(about(path))?;
    file.persist(path).map_err(|error| about(path)(error.error))?;
    Ok(())
}

/// Runs a command that has to succeed.
///
/// # Errors
///
/// Runs a program. The error says that it cannot be started or fails; it prints its own messages.
pub fn run(command: &mut Command) -> Result<(), Error> {
    let program = command.get_program().to_owned();
    let status = command.status().map_err(about(Path::new(&program)))?;
    if status.success() { Ok(()) } else { Err(about(Path::new(&program))(status.to_string())) }
}

/// A path as archives store it: bytes, which need not be UTF-8 where those of the system need not.
///
/// # Errors
///
/// Elsewhere, that it is not UTF-8.
pub fn path_from_bytes(bytes: &[u8]) -> io::Result<&Path> {
    #[cfg(unix)]
    return Ok(Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes)));
    #[cfg(not(unix))]
    match std::str::from_utf8(bytes) {
        Ok(path) => Ok(Path::new(path)),
        Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, error)),
    }
}
