//! The line of a terminal that is taken away while something else is written there.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A line of a terminal.
pub(crate) trait Erase: Send {
    /// Takes the line away, if it is shown, until it is shown again.
    fn erase(&mut self);
}

/// The line of this process, if there is one.
static LINE: Mutex<Option<Arc<Mutex<dyn Erase>>>> = Mutex::new(None);

/// Locks what a panic may have left.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the line away, if one is shown, and writes. The line is not shown again before all is written.
pub(crate) fn without_line<T>(write: impl FnOnce() -> T) -> T {
    let line = lock(&LINE).clone();
    let mut held = line.as_deref().map(lock);
    if let Some(line) = &mut held {
        line.erase();
    }
    write()
}

/// The right to show a line, until it is dropped.
pub(crate) struct Showing(());

impl fmt::Debug for Showing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Showing")
    }
}

impl Showing {
    /// Takes the right for a line; `None` if others have it.
    pub(crate) fn start(line: Arc<Mutex<dyn Erase>>) -> Option<Self> {
        let mut current = lock(&LINE);
        if current.is_some() {
            return None;
        }
        *current = Some(line);
        Some(Showing(()))
    }
}

impl Drop for Showing {
    fn drop(&mut self) {
        *lock(&LINE) = None;
    }
}

/// A writer to a terminal that takes the line away while it writes.
#[derive(Debug)]
pub(crate) struct Erasing<W>(pub(crate) W);

impl<W: Write> Write for Erasing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        without_line(|| self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Line {
        erased: usize,
    }

    impl Erase for Line {
        fn erase(&mut self) {
            self.erased += 1;
        }
    }

    #[test]
    fn the_line_is_held_while_others_write() {
        let line = Arc::new(Mutex::new(Line::default()));
        let Some(showing) = Showing::start(line.clone()) else { panic!("nobody has the right") };
        assert!(Showing::start(line.clone()).is_none());
        // During a write nobody can show the line.
        assert!(without_line(|| line.try_lock().is_err()));
        assert_eq!(lock(&line).erased, 1);
        Erasing(Vec::new()).write_all(b"row\n").unwrap();
        assert_eq!(lock(&line).erased, 2);
        drop(showing);
        assert!(without_line(|| line.try_lock().is_ok()));
        assert_eq!(lock(&line).erased, 2);
    }
}
