//! Several things at the same time, with the results in order.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::positioned::Positioned;

/// The option that says how many threads may work, shared by the commands. LLVM's tools have no such option: for those
/// that take their place there is one thread for each core.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(crate) struct Threads {
    /// Threads to work with (default: one for each core). What is written and printed does not depend on it
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<NonZeroU32>,
}

impl Threads {
    /// As it was given: asking how many cores there are takes a while.
    pub(crate) fn given(self) -> Option<NonZeroUsize> {
        let number = usize::try_from(self.threads?.get()).ok();
        Some(number.and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MAX))
    }

    pub(crate) fn count(self) -> NonZeroUsize {
        self.given().or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
    }

    /// For the walk of a file: one where several cannot read it at the same time.
    pub(crate) fn for_walks(self) -> Option<NonZeroUsize> {
        if Positioned::shares() { self.given() } else { Some(NonZeroUsize::MIN) }
    }

    /// As [`count`](Self::count).
    pub(crate) fn number(self) -> u32 {
        u32::try_from(self.count().get()).unwrap_or(u32::MAX)
    }

    /// For files that are read at the same time: how many at once, and threads for each of them.
    pub(crate) fn for_files(self, files: &[PathBuf]) -> (NonZeroUsize, Threads) {
        // Whoever is first gets all of standard input.
        let stdin = files.iter().filter(|file| file.as_os_str() == "-").count();
        self.shared_by(if stdin > 1 { 1 } else { files.len() })
    }

    fn shared_by(self, things: usize) -> (NonZeroUsize, Threads) {
        let Some(things) = NonZeroUsize::new(things).filter(|things| things.get() > 1) else {
            return (NonZeroUsize::MIN, self);
        };
        let at_once = self.count().min(things);
        let each = usize::try_from(self.number()).unwrap_or(usize::MAX) / at_once;
        let threads = u32::try_from(each).ok().and_then(NonZeroU32::new);
        (at_once, Threads { threads: threads.or(Some(NonZeroU32::MIN)) })
    }
}

/// As much as the main thread has: files can be nested deeply.
const STACK: usize = 8 << 20;

/// How many results may wait for each thread until it is their turn.
const WAITING: usize = 16;

/// Does something with each of the things, by up to `threads` threads at the same time, and hands the results over in
/// order, here. An error of `take` ends it.
pub(crate) fn in_order<'t, T: Sync, R: Send, E>(
    threads: NonZeroUsize,
    things: &'t [T],
    work: impl Fn(&'t T) -> R + Sync,
    mut take: impl FnMut(&'t T, R) -> Result<(), E>,
) -> Result<(), E> {
    let threads = threads.get().min(things.len());
    if threads < 2 {
        return things.iter().try_for_each(|thing| take(thing, work(thing)));
    }
    let most = threads.saturating_mul(WAITING);
    let queue = Queue { things, most, state: Mutex::default(), changed: Condvar::new() };
    thread::scope(|scope| {
        // Whatever ends this ends the others.
        let _stop = Stop(&queue, true);
        let help = || {
            let _stop = Stop(&queue, false);
            while let Turn::Work(nth, thing) = queue.turn(None) {
                queue.put(nth, work(thing));
            }
        };
        for _ in 1..threads {
            // What the system refuses, the others do.
            let _ = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, help);
        }
        for (nth, thing) in things.iter().enumerate() {
            let result = loop {
                match queue.turn(Some(nth)) {
                    Turn::Result(result) => break result,
                    Turn::Work(other, thing) => queue.put(other, work(thing)),
                    // A thread panicked, which the scope passes on.
                    Turn::Nothing => return Ok(()),
                }
            };
            take(thing, result)?;
        }
        Ok(())
    })
}

/// What the threads share.
struct Queue<'t, T, R> {
    things: &'t [T],
    /// How many results may wait.
    most: usize,
    state: Mutex<State<R>>,
    changed: Condvar,
}

struct State<R> {
    /// The first thing that nobody has begun with.
    next: usize,
    /// How many results were taken.
    taken: usize,
    done: BTreeMap<usize, R>,
    stopped: bool,
}

impl<R> Default for State<R> {
    fn default() -> Self {
        State { next: 0, taken: 0, done: BTreeMap::new(), stopped: false }
    }
}

/// What a thread does next.
enum Turn<'t, T, R> {
    Result(R),
    Work(usize, &'t T),
    Nothing,
}

impl<'t, T, R> Queue<'t, T, R> {
    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, nth: usize, result: R) {
        self.lock().done.insert(nth, result);
        self.changed.notify_all();
    }

    /// The result that is waited for, if it is there, else something to do. Waits until there is either.
    fn turn(&self, wanted: Option<usize>) -> Turn<'t, T, R> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return Turn::Nothing;
            }
            if let Some(result) = wanted.and_then(|nth| state.done.remove(&nth)) {
                state.taken += 1;
                self.changed.notify_all();
                return Turn::Result(result);
            }
            let nth = state.next;
            match self.things.get(nth) {
                Some(thing) if nth < state.taken.saturating_add(self.most) => {
                    state.next += 1;
                    return Turn::Work(nth, thing);
                }
                None if wanted.is_none() => return Turn::Nothing,
                _ => {}
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Stops all threads when it goes: in any case, or when its thread panics.
struct Stop<'q, 't, T, R>(&'q Queue<'t, T, R>, bool);

impl<T, R> Drop for Stop<'_, '_, T, R> {
    fn drop(&mut self) {
        if self.1 || thread::panicking() {
            self.0.lock().stopped = true;
            self.0.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn doubled(threads: usize, things: &[u32]) -> Vec<(u32, u32)> {
        let mut results = Vec::new();
        let work = |thing: &u32| {
            // The first are the slowest.
            thread::sleep(std::time::Duration::from_micros(u64::from(200 - thing % 200)));
            thing * 2
        };
        in_order(NonZeroUsize::new(threads).unwrap(), things, work, |thing, result| {
            results.push((*thing, result));
            io::Result::Ok(())
        })
        .unwrap();
        results
    }

    #[test]
    fn results_come_in_order() {
        let things: Vec<u32> = (0..300).collect();
        let expected: Vec<_> = things.iter().map(|&n| (n, n * 2)).collect();
        for threads in [1, 2, 3, 16, 1000] {
            assert_eq!(doubled(threads, &things), expected);
        }
        assert_eq!(doubled(4, &[]), []);
        assert_eq!(doubled(4, &[7]), [(7, 14)]);
    }

    #[test]
    fn results_that_wait_are_bounded() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let (begun, threads) = (AtomicUsize::new(0), NonZeroUsize::new(3).unwrap());
        let mut taken = 0;
        let work = |_: &()| begun.fetch_add(1, Ordering::SeqCst);
        in_order(threads, &[(); 500], work, |(), _| {
            thread::sleep(std::time::Duration::from_micros(50));
            taken += 1;
            assert!(begun.load(Ordering::SeqCst) <= taken + 3 * WAITING);
            io::Result::Ok(())
        })
        .unwrap();
        assert_eq!((taken, begun.into_inner()), (500, 500));
    }

    #[test]
    fn an_error_ends_it() {
        let things: Vec<u32> = (0..100).collect();
        let end = |&n: &u32, _| {
            if n == 7 { Err(io::Error::from(io::ErrorKind::BrokenPipe)) } else { Ok(()) }
        };
        let two = NonZeroUsize::new(2).unwrap();
        let error = in_order(two, &things, |n| *n, end).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn panics_end_it() {
        let main = thread::current().id();
        let things: Vec<u32> = (0..100).collect();
        let work = |_: &u32| {
            assert_eq!(thread::current().id(), main);
            thread::sleep(std::time::Duration::from_millis(1));
        };
        let _ = in_order(NonZeroUsize::new(2).unwrap(), &things, work, |_, ()| io::Result::Ok(()));
    }

    #[test]
    fn threads_are_shared() {
        let threads = |n| Threads { threads: NonZeroU32::new(n) };
        let shared = |n, things| {
            let (at_once, each) = threads(n).shared_by(things);
            (at_once.get(), each.number())
        };
        assert_eq!(shared(8, 1), (1, 8));
        assert_eq!(shared(8, 3), (3, 2));
        assert_eq!(shared(2, 100), (2, 1));
        assert_eq!(shared(1, 0), (1, 1));
        assert_eq!(Threads::default().given(), None);
        assert_eq!(shared(0, 1000).1, 1);
    }
}
