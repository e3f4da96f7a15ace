//! A line on the terminal while something takes long.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::style::{self, printable};

/// Shorter work shows no progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// Work that is going on. After a second a line on standard error says so, if that is a terminal; it disappears when
/// this is dropped.
#[derive(Debug, Default)]
pub struct Progress(Option<Shown>);

/// A thread that shows a line.
#[derive(Debug)]
struct Shown {
    line: Arc<Mutex<Line>>,
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

/// The line of a terminal.
#[derive(Debug)]
struct Line {
    what: String,
    start: Instant,
    is_shown: bool,
    print: fn(&str),
}

impl Line {
    fn show(&mut self) {
        let Line { what, start, print, .. } = self;
        print(&format!("\roffload: {what} ... {} s", start.elapsed().as_secs()));
        self.is_shown = true;
    }

    /// Goes back to the start of the line and clears it, if it is shown. Returns whether it was.
    fn clear(&mut self) -> bool {
        if self.is_shown {
            (self.print)("\r\x1b[K");
        }
        std::mem::take(&mut self.is_shown)
    }
}

/// Locks a line. One that was left by a panic is cleared as well.
fn lock(line: &Mutex<Line>) -> MutexGuard<'_, Line> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Progress {
    /// Starts to show the progress of `what`.
    pub fn start(what: &str) -> Self {
        if !io::stderr().is_terminal() {
            return Progress(None);
        }
        Progress::on(
            |text| {
                let _ = io::stderr().write_all(text.as_bytes());
                let _ = io::stderr().flush();
            },
            PATIENCE,
            what,
        )
    }

    fn on(print: fn(&str), patience: Duration, what: &str) -> Self {
        let what = printable(what).into_owned();
        let line = Line { what, start: Instant::now(), is_shown: false, print };
        let line = Arc::new(Mutex::new(line));
        let (stop, stopped) = mpsc::channel();
        let shown = Arc::clone(&line);
        let thread = thread::Builder::new().spawn(move || {
            while stopped.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                lock(&shown).show();
            }
            lock(&shown).clear();
        });
        Progress(thread.ok().map(|thread| Shown { line, stop, thread }))
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
        Count::new(doing, names, Progress::start)
    }

    fn new<'n>(
        doing: &'static str,
        mut names: impl ExactSizeIterator<Item = &'n str>,
        start: impl FnOnce(&str) -> Progress,
    ) -> Self {
        let count = names.len();
        let only = names.next().filter(|_| count == 1);
        let of = only.map_or_else(|| style::files(count), str::to_owned);
        let done = only.is_none().then_some(0);
        let mut started = Count { doing, of, done, shown: Progress::default() };
        started.shown = start(&started.what());
        started
    }

    fn what(&self) -> String {
        let done = self.done.map_or_else(String::new, |done| format!("{done} of "));
        format!("{} {done}{}", self.doing, self.of)
    }

    /// Takes the line away while something is printed about the next thing, which is done.
    pub fn pass<T>(&mut self, print: impl FnOnce() -> T) -> T {
        self.done = self.done.map(|done| done + 1);
        let what = self.what();
        // The thread waits until all is printed.
        let mut line = self.shown.0.as_ref().map(|shown| lock(&shown.line));
        let is_shown = line.as_mut().is_some_and(|line| line.clear());
        let printed = print();
        if let Some(line) = &mut line {
            line.what = printable(&what).into_owned();
            if is_shown {
                line.show();
            }
        }
        printed
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(Shown { stop, thread, .. }) = self.0.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The terminal of the test.
    static TERMINAL: Mutex<String> = Mutex::new(String::new());

    fn print(text: &str) {
        TERMINAL.lock().unwrap().push_str(text);
    }

    fn terminal() -> String {
        TERMINAL.lock().unwrap().clone()
    }

    /// Things that are done faster than the patience show their progress, too, and what is printed about them has lines of its own.
    #[test]
    fn many_quick_things_show_one_line() {
        let start = |what: &str| Progress::on(print, Duration::from_millis(200), what);
        let names = vec!["name"; 1 << 20];
        let mut count = Count::new("editing", names.into_iter(), start);
        let mut done = 0;
        while !terminal().contains("offload: editing") {
            thread::sleep(Duration::from_millis(1));
            count.pass(|| ());
            done += 1;
            assert!(done < 100_000, "nothing is shown");
        }
        count.pass(|| print("said\n"));
        drop(count);
        let said = terminal();
        assert!(said.contains(" of 1048576 files ... "), "{said:?}");
        assert!(said.contains(" s\r\x1b[Ksaid\n\roffload: editing "), "{said:?}");
        assert!(said.ends_with(" s\r\x1b[K"), "{said:?}");
    }
}
