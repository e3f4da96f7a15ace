//! The new bytes of a member of a package, made while they are read: they are never there as a whole.

use std::io::{self, PipeReader, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use fat_edit::{EditPlan, Error};

use crate::store::Store;

/// A reader of the file that a plan makes of a member. A thread of its own writes it.
#[derive(Debug)]
pub(super) struct NewBytes {
    /// `None` after the end.
    pipe: Option<PipeReader>,
    writer: Option<JoinHandle<()>>,
    status: Status,
}

/// The old bytes of a member, and the error of making the new ones.
#[derive(Clone, Debug)]
pub(super) struct Status {
    store: Arc<Store>,
    error: Arc<Mutex<Option<Error>>>,
}

impl Status {
    /// Returns whether more of the member is needed than was kept.
    pub(super) fn was_too_small(&self) -> bool {
        self.store.was_too_small()
    }

    /// Returns the error, once.
    pub(super) fn take_error(&self) -> Option<Error> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl NewBytes {
    /// Starts to make them.
    pub(super) fn start(plan: EditPlan, store: Arc<Store>) -> io::Result<Self> {
        let (pipe, mut out) = io::pipe()?;
        let status = Status { store, error: Arc::default() };
        let of_writer = status.clone();
        let write = move || {
            if let Err(error) = plan.write(of_writer.store.reader(), &mut out) {
                *of_writer.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        };
        let writer = thread::Builder::new().name("edit".to_owned()).spawn(write)?;
        Ok(NewBytes { pipe: Some(pipe), writer: Some(writer), status })
    }

    /// Returns what tells how it went.
    pub(super) fn status(&self) -> Status {
        self.status.clone()
    }

    /// Waits for the thread, which ends if nobody reads any more.
    fn finish(&mut self) -> io::Result<()> {
        self.pipe = None;
        let ended = self.writer.take().map(JoinHandle::join);
        let error = self.status.error.lock().unwrap_or_else(PoisonError::into_inner);
        match (ended, &*error) {
            (Some(Err(_)), _) => Err(io::Error::other("a thread of the edit ended early")),
            (_, Some(error)) => Err(io::Error::other(error.to_string())),
            (_, None) => Ok(()),
        }
    }
}

impl Read for NewBytes {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let Some(pipe) = &mut self.pipe else { return Ok(0) };
        match pipe.read(buf)? {
            0 if !buf.is_empty() => self.finish().map(|()| 0),
            read => Ok(read),
        }
    }
}

impl Drop for NewBytes {
    fn drop(&mut self) {
        // Errors are those of a reader that went away.
        let _ = self.finish();
    }
}
