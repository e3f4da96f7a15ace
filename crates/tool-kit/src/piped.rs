//! Bytes that a thread writes while they are read: they are never there as a whole.

use std::fmt;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// A reader of what a thread of its own writes.
#[derive(Debug)]
pub struct Piped<E: fmt::Display> {
    /// `None` after the end.
    pipe: Option<PipeReader>,
    writer: Option<JoinHandle<()>>,
    status: Status<E>,
}

/// The error of the writer.
#[derive(Debug)]
pub struct Status<E>(Arc<Mutex<Option<E>>>);

impl<E> Status<E> {
    /// Returns the error, once.
    pub fn take_error(&self) -> Option<E> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn shared(&self) -> Self {
        Status(Arc::clone(&self.0))
    }
}

impl<E: fmt::Display + Send + 'static> Piped<E> {
    /// Starts a thread of this name that writes.
    pub fn start(
        name: &str,
        write: impl FnOnce(&mut PipeWriter) -> Result<(), E> + Send + 'static,
    ) -> io::Result<Self> {
        let (pipe, mut out) = io::pipe()?;
        let status = Status(Arc::default());
        let of_writer = status.shared();
        let write = move || {
            if let Err(error) = write(&mut out) {
                *of_writer.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        };
        let writer = thread::Builder::new().name(name.to_owned()).spawn(write)?;
        Ok(Piped { pipe: Some(pipe), writer: Some(writer), status })
    }
}

impl<E: fmt::Display> Piped<E> {
    /// Returns what tells how it went.
    pub fn status(&self) -> Status<E> {
        self.status.shared()
    }

    /// Waits for the thread, which ends if nobody reads any more.
    fn finish(&mut self) -> io::Result<()> {
        self.pipe = None;
        let ended = self.writer.take().map(JoinHandle::join);
        let error = self.status.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (ended, &*error) {
            (Some(Err(_)), _) => Err(io::Error::other("a thread of the edit ended early")),
            (_, Some(error)) => Err(io::Error::other(error.to_string())),
            (_, None) => Ok(()),
        }
    }
}

impl<E: fmt::Display> Read for Piped<E> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let Some(pipe) = &mut self.pipe else { return Ok(0) };
        match pipe.read(buf)? {
            0 if !buf.is_empty() => self.finish().map(|()| 0),
            read => Ok(read),
        }
    }
}

impl<E: fmt::Display> Drop for Piped<E> {
    fn drop(&mut self) {
        // Errors are those of a reader that went away.
        let _ = self.finish();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_reader_gets_the_error_after_the_bytes() {
        let mut piped = Piped::start("test", |out| {
            out.write_all(b"abc").map_err(|error| error.to_string())?;
            Err("no more".to_owned())
        })
        .unwrap();
        let status = piped.status();
        let mut bytes = [0; 3];
        piped.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, *b"abc");
        assert_eq!(piped.read(&mut bytes).unwrap_err().to_string(), "no more");
        drop(piped);
        assert_eq!(status.take_error().as_deref(), Some("no more"));
        // A reader that goes away ends the thread.
        drop(Piped::start("test", |out| io::copy(&mut io::repeat(0), out).map(drop)).unwrap());
    }
}
