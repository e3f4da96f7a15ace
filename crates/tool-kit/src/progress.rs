//! A line on the terminal while something takes long: what is done, how much of it, and the time that is left.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::erase::{Erase, Showing, lock};
use crate::positioned;
use crate::report;
use crate::style::{self, printable};
use crate::width::width;

/// Shorter work shows no progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time from one line to the next.
const PAUSE: Duration = Duration::from_millis(250);
/// Cells of the bar.
const BAR: usize = 20;

/// Work that is going on. After a second a line on standard error says so, if that is a terminal; it disappears while others write, and
/// when this is dropped.
#[derive(Debug, Default)]
pub struct Progress(Option<Shown>);

/// A thread that shows a line.
#[derive(Debug)]
struct Shown {
    line: Arc<Mutex<Line>>,
    /// The right to the terminal.
    showing: Option<Showing>,
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

/// The line of a terminal.
#[derive(Debug)]
struct Line {
    doing: String,
    /// The name of what is worked on.
    present: String,
    /// Bytes of all inputs, of the inputs that are done, and bytes read before the start.
    total: u64,
    done: u64,
    read_before: u64,
    start: Instant,
    is_shown: bool,
    print: fn(&str),
}

impl Line {
    /// Shows the line as it is after some time, with this number of bytes read, in `fit` cells.
    fn text(&self, elapsed: Duration, read: u64, fit: usize) -> String {
        let seconds = elapsed.as_secs();
        let mut text = format!("offload: {}", self.doing);
        let read = read.max(self.read_before) - self.read_before;
        let position = self.done.max(read).min(self.total);
        if position == 0 {
            let _ = write!(text, " ... {seconds} s");
            return text;
        }
        let part = |whole: u128| u128::from(position) * whole / u128::from(self.total.max(1));
        let filled = usize::try_from(part(BAR as u128)).map_or(BAR, |filled| filled.min(BAR));
        let _ = write!(text, " [{:-<BAR$}] {} %", "#".repeat(filled), part(100));
        let left = elapsed.as_secs_f64() * (self.total - position) as f64 / position as f64;
        let left = match left.ceil() {
            left if left < 100.0 => format!("{left} s left"),
            left => format!("{} min left", (left / 60.0).ceil()),
        };
        let of = format!("{} of {}", style::size(position), style::size(self.total));
        for more in [left, of] {
            if width(&text) + 2 + width(&more) < fit {
                let _ = write!(text, "  {more}");
            }
        }
        // The last cell of a line is for the cursor.
        let name = self.present.rsplit(['/', ':']).next().unwrap_or("");
        if !name.is_empty() && width(&text) + 2 + width(name) < fit {
            let _ = write!(text, "  {name}");
        }
        text
    }

    fn show(&mut self, fit: usize) {
        let text = self.text(self.start.elapsed(), positioned::read(), fit);
        (self.print)(&format!("\r{text}\x1b[K"));
        self.is_shown = true;
    }
}

impl Erase for Line {
    /// Goes back to the start of the line and clears it, if it is shown.
    fn erase(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            (self.print)("\r\x1b[K");
        }
    }
}

fn to_terminal(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
    let _ = io::stderr().flush();
}

impl Progress {
    /// Starts to show that something is done.
    pub fn start(doing: &str) -> Self {
        Progress::through(doing, || 0)
    }

    /// Starts to show the progress through this number of bytes, which is only asked for if something may be shown. Inside of other work
    /// that is shown nothing is.
    pub fn through(doing: &str, total: impl FnOnce() -> u64) -> Self {
        if report::is_collected() || !io::stderr().is_terminal() {
            return Progress(None);
        }
        let mut started = Progress::on(to_terminal, [PATIENCE, PAUSE], doing, total());
        if let Some(shown) = &mut started.0 {
            shown.showing = Showing::start(shown.line.clone());
            if shown.showing.is_none() {
                return Progress(None);
            }
        }
        started
    }

    fn on(print: fn(&str), [patience, pause]: [Duration; 2], doing: &str, total: u64) -> Self {
        let line = Line {
            doing: printable(doing).into_owned(),
            present: String::new(),
            total,
            done: 0,
            read_before: positioned::read(),
            start: Instant::now(),
            is_shown: false,
            print,
        };
        let line = Arc::new(Mutex::new(line));
        let (stop, stopped) = mpsc::channel();
        let shown = Arc::clone(&line);
        let thread = thread::Builder::new().spawn(move || {
            let mut wait = patience;
            while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                lock(&shown).show(style::error_width());
                wait = pause;
            }
            lock(&shown).erase();
        });
        Progress(thread.ok().map(|thread| Shown { line, showing: None, stop, thread }))
    }

    /// Shows the name of a file that is worked on.
    pub fn present(&self, name: &str) {
        if let Some(shown) = &self.0 {
            lock(&shown.line).present = printable(name).into_owned();
        }
    }

    /// Adds bytes that are done. Their number is only asked for if something may be shown.
    pub fn pass(&self, bytes: impl FnOnce() -> u64) {
        if let Some(shown) = &self.0 {
            let bytes = bytes();
            let mut line = lock(&shown.line);
            // Files may grow.
            line.done = line.done.checked_add(bytes).unwrap_or(line.total);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(Shown { showing, stop, thread, .. }) = self.0.take() {
            drop(showing);
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

    #[test]
    fn a_line_says_what_is_done_and_what_is_left() {
        let line = |total, done| Line {
            doing: "editing".to_owned(),
            present: "a.whl:lib/名前.so".to_owned(),
            total,
            done,
            read_before: 100,
            start: Instant::now(),
            is_shown: false,
            print,
        };
        let seconds = Duration::from_secs;
        let text = |line: Line, read, fit| line.text(seconds(6), read, fit);
        assert_eq!(text(line(0, 0), 500, 80), "offload: editing ... 6 s");
        assert_eq!(text(line(400, 0), 100, 80), "offload: editing ... 6 s");
        let half = "offload: editing [##########----------] 50 %";
        assert_eq!(
            text(line(400, 0), 300, 80),
            format!("{half}  6 s left  200 B of 400 B  名前.so")
        );
        // Done counts if less was read.
        assert_eq!(text(line(400, 200), 100, 72), format!("{half}  6 s left  200 B of 400 B"));
        assert_eq!(text(line(400, 200), 100, 55), format!("{half}  6 s left"));
        assert_eq!(text(line(400, 200), 100, 54), format!("{half}  名前.so"));
        assert_eq!(text(line(400, 200), 100, 50), half);
        let all =
            "offload: editing [####################] 100 %  0 s left  400 B of 400 B  名前.so";
        assert_eq!(text(line(400, 500), 0, usize::MAX), all);
        let start =
            "offload: editing [--------------------] 0 %  100 min left  1 B of 1000 B  名前.so";
        assert_eq!(text(line(1000, 1), 0, usize::MAX), start);
    }

    #[test]
    fn the_line_is_taken_away() {
        let terminal = || TERMINAL.lock().unwrap().clone();
        let patience = [Duration::from_millis(20); 2];
        let progress = Progress::on(print, patience, "listing", 10);
        progress.present("a\n");
        progress.pass(|| 5);
        while !terminal().contains("50 %") {
            thread::sleep(Duration::from_millis(1));
        }
        let shown = lock(&progress.0.as_ref().unwrap().line).is_shown;
        assert!(shown);
        drop(progress);
        let said = terminal();
        assert!(said.contains("\roffload: listing [##########----------] 50 %"), "{said:?}");
        assert!(said.contains("  a\\n\x1b[K") && said.ends_with("\r\x1b[K"), "{said:?}");
    }
}
