//! Several things at the same time, with the results in order.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::thread;

use byte_parts::Bounds;

use crate::positioned::Positioned;

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
    thread::scope(|scope| {
        let results = byte_parts::in_order(scope, bounds, jobs, || &work);
        things.iter().zip(results).try_for_each(|(thing, result)| take(thing, result))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
