//! A line on the terminal while something takes long.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::style::{self, printable};

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

/// The progress of work on several things, one after the other.
#[derive(Debug)]
pub struct Count {
    doing: &'static str,
    /// The only thing, or the number of all.
    of: String,
    done: Option<usize>,
    shown: Progress,
}

impl Count {
    /// Starts to show the progress on these things, by their names.
    pub fn start<'n>(doing: &'static str, names: impl ExactSizeIterator<Item = &'n str>) -> Self {
        let (count, mut names) = (names.len(), names);
        let only = names.next().filter(|_| count == 1);
        let of = only.map_or_else(|| style::files(count), str::to_owned);
        let done = only.is_none().then_some(0);
        let mut started = Count { doing, of, done, shown: Progress::default() };
        started.show();
        started
    }

    fn show(&mut self) {
        let done = self.done.map_or_else(String::new, |done| format!("{done} of "));
        self.shown = Progress::start(&format!("{} {done}{}", self.doing, self.of));
    }

    /// Takes the line away while something is printed about the next thing, which is done.
    pub fn pass<T>(&mut self, print: impl FnOnce() -> T) -> T {
        self.shown = Progress::default();
        let printed = print();
        self.done = self.done.map(|done| done + 1);
        self.show();
        printed
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
