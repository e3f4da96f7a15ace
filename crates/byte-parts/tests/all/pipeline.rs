//! Jobs on several threads, whose results come in order.

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use byte_parts::{Bounds, in_order};

fn bounds(threads: usize) -> Bounds {
    Bounds::new(NonZeroUsize::MIN.saturating_add(threads - 1))
}

/// Runs `work` on the numbers below `jobs`, each of `bytes` bytes, and returns the results.
fn run<R: Send>(
    bounds: Bounds,
    (jobs, bytes): (u64, u64),
    work: impl Fn(u64) -> R + Sync,
) -> Vec<R> {
    let jobs = (0..jobs).map(|job| (job, bytes));
    thread::scope(|scope| in_order(scope, bounds, jobs, || &work).collect())
}

fn pause(micros: u64) {
    thread::sleep(Duration::from_micros(micros));
}

#[test]
fn results_come_in_order() {
    for threads in [1, 2, 3, 16, 1000] {
        for jobs in [0, 1, 2, 200] {
            let double = |n: u64| {
                // The first are the slowest.
                pause(200_u64.saturating_sub(n));
                n * 2
            };
            let expected: Vec<_> = (0..jobs).map(|n| n * 2).collect();
            assert_eq!(run(bounds(threads), (jobs, 1), double), expected, "{threads} {jobs}");
        }
    }
}

#[test]
fn one_thread_is_the_calling_one_and_takes_jobs_when_it_needs_them() {
    let (main, taken) = (thread::current().id(), Cell::new(0));
    let jobs = (0..10).map(|n| {
        taken.set(n + 1);
        (n, 1)
    });
    thread::scope(|scope| {
        let work = || |n: u32| (n, thread::current().id());
        let mut results = in_order(scope, bounds(1).with_jobs(2), jobs, work);
        assert_eq!(taken.get(), 0);
        assert_eq!(results.next(), Some((0, main)));
        assert_eq!(taken.get(), 3);
        assert!(results.all(|(_, thread)| thread == main));
        assert_eq!(results.next(), None);
    });
}

#[test]
fn no_more_threads_work_than_were_given() {
    for threads in [1, 2, 5] {
        let (at_once, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        run(bounds(threads), (100, 1), |_| {
            most.fetch_max(at_once.fetch_add(1, SeqCst) + 1, SeqCst);
            pause(100);
            at_once.fetch_sub(1, SeqCst);
        });
        assert!(most.into_inner() <= threads);
    }
}

#[test]
fn jobs_in_flight_are_bounded() {
    for most in [1, 3, 10] {
        let begun = AtomicUsize::new(0);
        let jobs = (0..300).map(|_| ((), 1));
        thread::scope(|scope| {
            let work = || |()| begun.fetch_add(1, SeqCst);
            let results = in_order(scope, bounds(3).with_jobs(most), jobs, work);
            for (taken, _) in results.enumerate() {
                pause(20);
                assert!(begun.load(SeqCst) <= taken + 1 + most);
            }
        });
        assert_eq!(begun.into_inner(), 300);
    }
}

#[test]
fn bytes_in_flight_are_bounded() {
    let sizes = [10, 60, 40, 100, 250, 1, 99, 50, 50, 100, 0, 30];
    let (held, most) = (AtomicU64::new(0), AtomicU64::new(0));
    let jobs = sizes.iter().map(|size| {
        most.fetch_max(held.fetch_add(*size, SeqCst) + size, SeqCst);
        (*size, *size)
    });
    let mut count = 0;
    thread::scope(|scope| {
        let results = in_order(scope, bounds(4).with_bytes(100), jobs, || |size: u64| size);
        for (size, expected) in results.zip(sizes) {
            assert_eq!(size, expected);
            pause(50);
            held.fetch_sub(size, SeqCst);
            count += 1;
        }
    });
    assert_eq!(count, sizes.len());
    // The largest is in flight alone, and one job waits outside until there is room for it.
    assert!(most.into_inner() <= 250 + 100);
}

#[test]
fn each_thread_has_a_state_of_its_own() {
    let made = Cell::new(0);
    let worker = || {
        made.set(made.get() + 1);
        let mut calls = 0_u64;
        move |_| {
            calls += 1;
            pause(20);
            calls
        }
    };
    let jobs = (0..100).map(|n: u64| (n, 0));
    let total: u64 = thread::scope(|scope| {
        in_order(scope, bounds(4), jobs, worker).filter(|calls| *calls == 1).count() as u64
    });
    assert!(total <= 4 && made.get() <= 4, "{total} {}", made.get());
}

#[test]
fn an_error_of_the_consumer_drops_the_jobs_that_have_not_begun() {
    let begun = AtomicUsize::new(0);
    let jobs = (0..1000).map(|n: u32| (n, 0));
    let ended = thread::scope(|scope| {
        let work = || {
            |n| {
                begun.fetch_add(1, SeqCst);
                n
            }
        };
        in_order(scope, bounds(2), jobs, work)
            .try_for_each(|n| if n == 7 { Err(n) } else { Ok(()) })
    });
    assert_eq!(ended, Err(7));
    assert!(begun.into_inner() <= 8 + 32);
}

/// The text of a panic.
fn panic_of(run: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).err();
    let text = panic.and_then(|panic| panic.downcast_ref::<&str>().map(ToString::to_string));
    text.unwrap_or_default()
}

/// A place where threads wait for another one.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }

    fn wait(&self) {
        // Far longer than a thread needs to begin on any machine.
        let end = Duration::from_secs(300);
        let waited = self.1.wait_timeout_while(self.0.lock().unwrap(), end, |open| !*open);
        assert!(!waited.unwrap().1.timed_out(), "the other thread does not begin");
    }
}

#[test]
fn panics_of_workers_are_passed_on() {
    let main = thread::current().id();
    // On another thread, and on the calling one.
    for on_main in [false, true] {
        let begun = Gate::default();
        let text = panic_of(|| {
            run(bounds(3), (100, 0), |_| {
                if (thread::current().id() == main) != on_main {
                    // There are more jobs than threads that wait here.
                    return begun.wait();
                }
                begun.open();
                panic!("a worker");
            });
        });
        assert_eq!(text, "a worker");
    }
}

#[test]
fn a_panic_is_not_lost_with_the_results() {
    let (main, begun) = (thread::current().id(), Gate::default());
    let text = panic_of(|| {
        let work = |_| {
            if thread::current().id() != main {
                begun.open();
                panic!("a worker");
            }
        };
        thread::scope(|scope| {
            let jobs = (0..100).map(|n: u32| (n, 0));
            let mut results = in_order(scope, bounds(2), jobs, || &work);
            results.next();
            begun.wait();
        });
    });
    assert!(["a worker", "a scoped thread panicked"].contains(&&*text), "{text}");
}
