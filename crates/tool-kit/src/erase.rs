//! The line of a terminal that whatever is written there takes away before.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Takes the line away.
type Erase = dyn Fn() + Send + Sync;

/// The line of this process, if there is one.
static ERASE: Mutex<Option<Arc<Erase>>> = Mutex::new(None);

/// Takes the line away, if one is shown, until it is shown again.
pub(crate) fn erase() {
    let erase = ERASE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(erase) = erase {
        erase();
    }
}

/// The right to show a line, until it is dropped.
pub(crate) struct Showing(());

impl fmt::Debug for Showing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Showing")
    }
}

impl Showing {
    /// Takes the right, with what takes the line away; `None` if others have it.
    pub(crate) fn start(erase: Arc<Erase>) -> Option<Self> {
        let mut current = ERASE.lock().unwrap_or_else(PoisonError::into_inner);
        if current.is_some() {
            return None;
        }
        *current = Some(erase);
        Some(Showing(()))
    }
}

impl Drop for Showing {
    fn drop(&mut self) {
        *ERASE.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// A writer to a terminal that takes the line away before it writes.
#[derive(Debug)]
pub(crate) struct Erasing<W>(pub(crate) W);

impl<W: Write> Write for Erasing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        erase();
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
