//! Work that another thread stops: for programs that are not tools of this workspace, which end by a signal.

use std::cell::RefCell;
use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that stops work. Files that were opened during the work cannot be read any more then, and no output appears.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

thread_local! {
    /// The flag for the work of this thread.
    static STOP: RefCell<Stop> = RefCell::default();
}

impl Stop {
    /// Returns the flag for the work of this thread.
    pub(crate) fn of_thread() -> Self {
        STOP.with_borrow(Clone::clone)
    }

    /// Stops the work.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Fails if the work is to stop.
    ///
    /// # Errors
    ///
    /// An error that says so. Its kind is not the one after which reading is tried again.
    pub fn check(&self) -> io::Result<()> {
        if self.0.load(Ordering::Relaxed) { Err(io::Error::other("interrupted")) } else { Ok(()) }
    }

    /// Does work that this flag stops, in this thread and in those of [`parallel`](crate::parallel).
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        /// The flag before, which is the one of this thread again once this is dropped.
        struct Before(Stop);
        impl Drop for Before {
            fn drop(&mut self) {
                STOP.set(mem::take(&mut self.0));
            }
        }
        let _before = Before(STOP.replace(self.clone()));
        work()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read, Write};
    use std::num::NonZeroUsize;

    use super::*;
    use crate::opened::{MaxInput, Opened};
    use crate::output::Outputs;
    use crate::parallel::in_order;
    use crate::permissions::NewPermissions;

    #[test]
    fn files_cannot_be_read_and_outputs_do_not_appear() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        fs::write(&path, vec![7; 100_000]).unwrap();
        let read = |opened: &Opened| {
            let mut bytes = Vec::new();
            opened.reader().read_to_end(&mut bytes)
        };
        let open = || Opened::new(&path, MaxInput::default()).unwrap();
        let before = open();
        let stop = Stop::default();
        let things: Vec<_> = (0..8).collect();
        stop.during(|| {
            for threads in [1, 3] {
                let threads = NonZeroUsize::new(threads).unwrap();
                // Files of other threads, too.
                in_order(
                    threads,
                    &things,
                    |_| open(),
                    |_, opened| {
                        assert_eq!(read(&opened).unwrap(), 100_000);
                        stop.stop();
                        assert_eq!(read(&opened).unwrap_err().to_string(), "interrupted");
                        stop.0.store(false, Ordering::Relaxed);
                        Ok::<_, ()>(())
                    },
                )
                .unwrap();
            }
            let mut outputs = Outputs::default();
            let new = place.path().join("new");
            outputs.write_or_print(&new, NewPermissions::PLAIN, |out| out.write_all(b"x")).unwrap();
            stop.stop();
            assert_eq!(outputs.commit().unwrap_err().to_string(), "interrupted");
            assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
        });
        assert_eq!(read(&before).unwrap(), 100_000);
        assert!(Stop::of_thread().check().is_ok());
    }
}
