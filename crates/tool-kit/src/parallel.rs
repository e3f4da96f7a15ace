//! Several things at the same time, with the results in order.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::Path;
use std::sync::RwLock;
use std::thread;

use byte_parts::Bounds;

use crate::positioned::Positioned;
use crate::report::Collection;
use crate::stop::Stop;

/// The option that says how many threads may work, shared by the commands. LLVM's tools have no such option: their
/// replacements use one thread for each core.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Threads {
    /// Use N threads (default: one for each core)
    ///
    /// The output does not depend on the number of threads.
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<NonZeroU32>,
}

impl Threads {
    /// Returns one thread.
    pub fn one() -> Self {
        Threads { threads: Some(NonZeroU32::MIN) }
    }

    /// Returns this number of threads.
    pub fn of(count: NonZeroU32) -> Self {
        Threads { threads: Some(count) }
    }

    /// Returns the number that was given, without counting the cores, which takes a while.
    pub fn given(self) -> Option<NonZeroUsize> {
        let number = usize::try_from(self.threads?.get()).ok();
        Some(number.and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MAX))
    }

    /// Returns the number of threads.
    pub fn count(self) -> NonZeroUsize {
        self.given().or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
    }

    /// Returns the number of threads for the walk of a file: one where several cannot read it at the same time.
    pub fn for_walks(self) -> Option<NonZeroUsize> {
        if Positioned::shares() { self.given() } else { Some(NonZeroUsize::MIN) }
    }

    /// Returns [`count`](Self::count) as a `u32`.
    pub fn number(self) -> u32 {
        // No machine has more.
        u32::try_from(self.count().get()).unwrap_or(u32::MAX)
    }

    /// Returns how many files to read at the same time, and the threads for each of them.
    pub fn for_files<'p>(
        self,
        files: impl ExactSizeIterator<Item = &'p Path>,
    ) -> (NonZeroUsize, Threads) {
        let count = files.len();
        // The first reader gets all of standard input.
        let stdin = files.filter(|file| file.as_os_str() == "-").count();
        self.shared_by(if stdin > 1 { 1 } else { count })
    }

    fn shared_by(self, things: usize) -> (NonZeroUsize, Threads) {
        let Some(things) = NonZeroUsize::new(things).filter(|things| things.get() > 1) else {
            return (NonZeroUsize::MIN, self);
        };
        let at_once = self.count().min(things);
        let each = self.count().get() / at_once;
        let threads = u32::try_from(each).ok().and_then(NonZeroU32::new);
        (at_once, Threads { threads: threads.or(Some(NonZeroU32::MIN)) })
    }
}

/// A limit of bytes that the threads share which work at the same time. Work that needs more than its share is done alone.
#[derive(Debug)]
pub struct Shares {
    all: Share,
    /// The share of each thread, if there are several.
    each: Option<Share>,
    alone: RwLock<()>,
}

/// The part of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The threads that the work may use itself.
    pub threads: Threads,
    /// The most bytes that it may hold, lower than the limit of the work itself; `None` for work that is alone.
    pub bytes: Option<u64>,
}

impl Shares {
    /// Shares `bytes` among `at_once` threads. Each has `each` for itself; work that is alone has `all`.
    pub fn new(bytes: u64, all: Threads, (at_once, each): (NonZeroUsize, Threads)) -> Self {
        let number = NonZeroU64::try_from(at_once).ok().filter(|number| number.get() > 1);
        let each = number.map(|number| Share { threads: each, bytes: Some(bytes / number) });
        Shares { all: Share { threads: all, bytes: None }, each, alone: RwLock::new(()) }
    }

    /// Does something with a share, while others do. If that is an error, it counts for nothing, and is done once more, alone.
    pub fn run<R>(&self, work: impl Fn(Share) -> Result<R, R>) -> R {
        if let Some(share) = self.each {
            let _others = self.alone.read();
            if let Ok(done) = work(share) {
                return done;
            }
        }
        let _alone = self.alone.write();
        work(self.all).unwrap_or_else(|done| done)
    }

    /// Returns the share of work that is alone.
    pub fn all(&self) -> Share {
        self.all
    }
}

/// As much as the main thread has: files can be nested deeply.
const STACK: usize = 8 << 20;

/// Does something with each of the things, by up to `threads` threads at the same time, and hands the results over in
/// order, here. An error of `take` ends it.
pub fn in_order<'t, T: Sync, R: Send, E>(
    threads: NonZeroUsize,
    things: &'t [T],
    work: impl Fn(&'t T) -> R + Sync,
    mut take: impl FnMut(&'t T, R) -> Result<(), E>,
) -> Result<(), E> {
    let bounds = Bounds::new(threads).with_stack_size(STACK);
    let jobs = things.iter().map(|thing| (thing, 0));
    let (collection, stop) = (Collection::of_thread(), Stop::of_thread());
    let work = |thing| stop.during(|| collection.during(|| work(thing)));
    thread::scope(|scope| {
        let results = byte_parts::in_order(scope, bounds, jobs, || &work);
        things.iter().zip(results).try_for_each(|(thing, result)| take(thing, result))
    })
}

/// As [`in_order`]. Things with one key are worked on one after the other, in order.
pub fn in_order_by<'t, T: Sync, K: Ord, R: Send, E>(
    threads: NonZeroUsize,
    things: &'t [T],
    key: impl Fn(&T) -> K,
    work: impl Fn(&'t T) -> R + Sync,
    mut take: impl FnMut(&'t T, R) -> Result<(), E>,
) -> Result<(), E> {
    if threads.get() == 1 {
        return in_order(threads, things, work, take);
    }
    let mut groups: Vec<Vec<(usize, &T)>> = Vec::new();
    let mut known: BTreeMap<K, usize> = BTreeMap::new();
    for (number, thing) in things.iter().enumerate() {
        let group = *known.entry(key(thing)).or_insert(groups.len());
        match groups.get_mut(group) {
            Some(group) => group.push((number, thing)),
            None => groups.push(vec![(number, thing)]),
        }
    }
    let all = |group: &Vec<(usize, &'t T)>| -> Vec<_> {
        group.iter().map(|&(number, thing)| (number, work(thing))).collect()
    };
    let (mut left, mut results) = (things.iter().enumerate(), BTreeMap::new());
    let mut next = left.next();
    in_order(threads, &groups, all, |_, done| {
        results.extend(done);
        while let Some((number, thing)) = next
            && let Some(result) = results.remove(&number)
        {
            take(thing, result)?;
            next = left.next();
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn things_with_one_key_are_never_at_the_same_time() {
        let things: Vec<usize> = (0..200).collect();
        let busy: [Mutex<Vec<usize>>; 7] = Default::default();
        for threads in [1, 2, 5] {
            let mut taken = Vec::new();
            let work = |thing: &usize| {
                let mut done = busy[thing % 7].try_lock().expect("two at the same time");
                done.push(*thing);
                thing * 2
            };
            in_order_by(
                NonZeroUsize::new(threads).unwrap(),
                &things,
                |thing| thing % 7,
                work,
                |thing, result| {
                    assert_eq!(thing * 2, result);
                    taken.push(*thing);
                    if *thing == 150 { Err("enough") } else { Ok(()) }
                },
            )
            .unwrap_err();
            assert_eq!(taken, things[..=150]);
            for done in &busy {
                assert!(std::mem::take(&mut *done.lock().unwrap()).is_sorted());
            }
        }
    }

    #[test]
    fn what_needs_more_than_its_share_is_alone() {
        let threads = NonZeroUsize::new(4).unwrap();
        let shares = Shares::new(100, Threads::default(), (threads, Threads::one()));
        let held = Mutex::new((0, 0));
        let work = |needed: &u64| {
            shares.run(|share| {
                if share.bytes.is_some_and(|bytes| *needed > bytes) {
                    return Err(false);
                }
                let bytes = share.bytes.unwrap_or(100);
                held.lock().unwrap().0 += bytes;
                thread::yield_now();
                let mut held = held.lock().unwrap();
                held.1 = held.1.max(held.0);
                held.0 -= bytes;
                Ok(share.threads.given().is_none())
            })
        };
        let needed: Vec<u64> = (0..=100).collect();
        in_order(threads, &needed, work, |needed, alone| {
            assert_eq!(alone, *needed > 25);
            Ok::<_, ()>(())
        })
        .unwrap();
        assert!(held.lock().unwrap().1 <= 100);
        let only = Shares::new(100, Threads::one(), (NonZeroUsize::MIN, Threads::one()));
        assert_eq!(only.run(|share| Err(share.bytes)), None);
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
