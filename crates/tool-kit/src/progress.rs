//! A line on the terminal while something takes long.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::style::printable;

/// Shorter work shows no progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// Work that is going on. After a second a line on standard error says so, if that is a terminal; it disappears when
/// this is dropped.
#[derive(Debug, Default)]
pub struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    /// Starts to show the progress of `what`.
    pub fn start(what: &str) -> Self {
        if !io::stderr().is_terminal() {
            return Progress(None);
        }
        let what = printable(what).into_owned();
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new().spawn(move || {
            let start = Instant::now();
            let mut shown = false;
            while stopped.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let seconds = start.elapsed().as_secs();
                let _ = write!(io::stderr(), "\roffload: {what} ... {seconds} s");
                let _ = io::stderr().flush();
                shown = true;
            }
            if shown {
                // Back to the start of the line, and clear it.
                let _ = write!(io::stderr(), "\r\x1b[K");
            }
        });
        Progress(thread.ok().map(|thread| (stop, thread)))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.0.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}
