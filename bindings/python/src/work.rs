//! Work in a thread of its own, which Python waits for.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tool_kit::stop::Stop;

/// As much as a main thread has: files can be nested deeply.
const STACK: usize = 8 << 20;

/// The time between two looks at signals.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// The events of work that goes on in a thread. When this is dropped, the work ends at the next byte that it reads.
#[derive(Debug)]
pub(crate) struct Events<T> {
    /// Locked by the one thread that waits.
    receiver: Mutex<Receiver<Result<T, String>>>,
    stop: Stop,
    /// The process that has the thread.
    process: u32,
}

/// The end of a wait.
#[derive(Debug)]
pub(crate) enum Wait<T> {
    Event(T),
    /// The work is done.
    Done,
    /// The work panicked.
    Panic(String),
    /// Time to look at signals.
    Pause,
}

/// The way of events to the program.
pub(crate) struct Hand<T>(SyncSender<Result<T, String>>);

impl<T> Hand<T> {
    /// Hands over an event; fails if nobody waits any more.
    pub(crate) fn give(&self, event: T) -> io::Result<()> {
        self.0.send(Ok(event)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl<T: Send + 'static> Events<T> {
    /// Starts work that hands over events. Some of them wait for the program.
    pub(crate) fn start(
        waiting: usize,
        work: impl FnOnce(&Hand<T>, &Stop) + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(waiting);
        let stop = Stop::default();
        let of_thread = stop.clone();
        let all = move || {
            let hand = Hand(sender);
            let work = || of_thread.during(|| work(&hand, &of_thread));
            if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
                let _ = hand.0.send(Err(words(&*panic)));
            }
        };
        thread::Builder::new().name("offload".to_owned()).stack_size(STACK).spawn(all)?;
        Ok(Events { receiver: Mutex::new(receiver), stop, process: process::id() })
    }

    /// Waits for an event, for a while.
    pub(crate) fn wait(&self) -> Wait<T> {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner);
        match receiver.recv_timeout(PAUSE) {
            Ok(Ok(event)) => Wait::Event(event),
            Ok(Err(panic)) => Wait::Panic(panic),
            Err(RecvTimeoutError::Timeout) => Wait::Pause,
            Err(RecvTimeoutError::Disconnected) => Wait::Done,
        }
    }

    /// Returns whether a fork left the thread in another process.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.process != process::id()
    }

    /// Waits for the next event, without the interpreter; `None` at the end.
    pub(crate) fn next(&self, py: Python<'_>) -> PyResult<Option<T>> {
        if self.is_elsewhere() {
            let text = "this iterator was made before a fork: only its own process can go on";
            return Err(PyRuntimeError::new_err(text));
        }
        loop {
            match py.detach(|| self.wait()) {
                Wait::Event(event) => return Ok(Some(event)),
                Wait::Done => return Ok(None),
                Wait::Panic(panic) => return Err(crate::fault::internal(&panic)),
                Wait::Pause => py.check_signals()?,
            }
        }
    }
}

impl<T> Drop for Events<T> {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

/// Does something in a thread, and waits for it without the interpreter. A signal ends the wait.
pub(crate) fn wait_for<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> PyResult<T> {
    let events = Events::start(1, move |hand, stop| {
        let _ = hand.give(work(stop));
    })?;
    match events.next(py)? {
        Some(done) => Ok(done),
        None => Err(crate::fault::internal(&"no result")),
    }
}

/// Does something that writes a file in a thread, and waits for its end. A signal stops it, and is raised once it has ended: by then
/// the file is complete, or as before. A second signal does not wait for the end.
pub(crate) fn finish<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> PyResult<T> {
    let events = Events::start(1, move |hand, stop| {
        let _ = hand.give(work(stop));
    })?;
    match events.next(py) {
        Ok(Some(done)) => Ok(done),
        Ok(None) => Err(crate::fault::internal(&"no result")),
        Err(error) => {
            events.stop.stop();
            // The end, or another signal.
            let _ = events.next(py)?;
            Err(error)
        }
    }
}

/// Returns the words of a panic.
pub(crate) fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "panic".to_owned())
}
