//! Work in a thread of its own, which Python waits for.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// As much as a main thread has: files can be nested deeply.
const STACK: usize = 8 << 20;

/// The time between two looks at signals.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Says whether nobody waits for the work any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Fails if nobody waits any more.
    pub(crate) fn check(&self) -> io::Result<()> {
        if self.0.load(Ordering::Relaxed) { Err(io::Error::other("interrupted")) } else { Ok(()) }
    }
}

/// The events of work that goes on in a thread. When this is dropped, the work ends at its next event.
#[derive(Debug)]
pub(crate) struct Events<T> {
    /// Locked by the one thread that waits.
    receiver: Mutex<Receiver<Result<T, String>>>,
    cancel: Cancel,
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
        work: impl FnOnce(&Hand<T>, &Cancel) + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(waiting);
        let cancel = Cancel::default();
        let of_thread = cancel.clone();
        let all = move || {
            let hand = Hand(sender);
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(&hand, &of_thread))) {
                let _ = hand.0.send(Err(words(&*panic)));
            }
        };
        thread::Builder::new().name("offload".to_owned()).stack_size(STACK).spawn(all)?;
        Ok(Events { receiver: Mutex::new(receiver), cancel, process: process::id() })
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
        self.cancel.0.store(true, Ordering::Relaxed);
    }
}

/// Does something in a thread, and waits for it without the interpreter. A signal ends the wait.
pub(crate) fn wait_for<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Cancel) -> T + Send + 'static,
) -> PyResult<T> {
    let events = Events::start(1, move |hand, cancel| {
        let _ = hand.give(work(cancel));
    })?;
    match events.next(py)? {
        Some(done) => Ok(done),
        None => Err(crate::fault::internal(&"no result")),
    }
}

/// Does something that must not be left undone in a thread, and waits for its end. A signal is raised then.
pub(crate) fn finish<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let events = Events::start(1, move |hand, _| {
        let _ = hand.give(work());
    })?;
    let mut raised = None;
    loop {
        match events.next(py) {
            Err(error) if raised.is_none() => raised = Some(error),
            Err(error) => return Err(error),
            Ok(_) if raised.is_some() => {
                return Err(raised.unwrap_or_else(|| crate::fault::internal(&"")));
            }
            Ok(Some(done)) => return Ok(done),
            Ok(None) => return Err(crate::fault::internal(&"no result")),
        }
    }
}

/// Returns the words of a panic.
pub(crate) fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "panic".to_owned())
}
