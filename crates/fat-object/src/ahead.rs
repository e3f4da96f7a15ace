//! Compressed bundles decompressed by several threads, ahead of a walk.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, SeekFrom};
use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope};

use crate::containers::read_and;
use crate::image::Image;
use crate::model::{Container, ContainerKind, Finding, Location, Visitor};
use crate::source::{Origin, ReadSeek, Source};
use crate::walker::{Options, Summary, Walker, walk};

/// What decompressing came to.
pub(crate) type Outcome = Result<ccob::Decompressed, ccob::Error>;

/// Less data than this in all is not worth starting threads for.
const WORTHWHILE: u64 = 1 << 20;

/// Walks as [`walk`] does, and has compressed bundles decompressed by up to `threads` threads at the same time, one for
/// each core if there is no number: those of the file itself and of what lies in it, not those of files that thin archives name. The visitor sees and hears the
/// same in the same order.
///
/// `input` is cloned for each thread; a clone has a position of its own. As many bundles as there are threads are
/// held beside those that are walked, but never more than [`Options::max_decompressed`] bytes in all of them. For
/// [tables only](Options::tables_only) no threads are started.
///
/// ```
/// use std::io::Cursor;
/// # struct Nothing;
/// # impl fat_object::Visitor for Nothing {
/// #     fn image(&mut self, _: &mut fat_object::Image<'_, '_>) -> std::io::Result<()> { Ok(()) }
/// #     fn finding(&mut self, _: &fat_object::Finding<'_>) -> std::io::Result<()> { Ok(()) }
/// # }
/// # let (file, mut visitor) = (b"", Nothing);
/// let options = fat_object::Options::default();
/// let summary = fat_object::walk_with_threads(&Cursor::new(file), None, &options, &mut visitor)?;
/// # assert_eq!(summary.images, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// Those of [`walk`].
pub fn walk_with_threads<R: ReadSeek + Clone + Send>(
    input: &R,
    threads: Option<NonZeroUsize>,
    options: &Options,
    visitor: &mut dyn Visitor,
) -> io::Result<Summary> {
    if threads == Some(NonZeroUsize::MIN) || !options.decompress || options.tables_only {
        return walk(&mut input.clone(), options, visitor);
    }
    let ahead = Ahead { options, state: Mutex::default(), changed: Condvar::new() };
    std::thread::scope(|scope| {
        let mut started = false;
        // Whatever ends the walk ends the threads.
        let _stop = Stop(&ahead);
        let mut take = |offset| {
            if !started {
                started = true;
                ahead.start(scope, threads, input, offset);
            }
            ahead.take(offset)
        };
        Walker::walk(
            Source::new(&mut input.clone(), Origin::File)?,
            options,
            visitor,
            Some(&mut take),
        )
    })
}

/// A compressed bundle: where it lies in the file, the sizes that its header records.
#[derive(Clone, Copy)]
struct Job {
    offset: u64,
    size: u64,
    uncompressed_size: u64,
}

/// What the threads share.
struct Ahead<'o> {
    options: &'o Options,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// What is not begun.
    jobs: VecDeque<Job>,
    /// By the offset: `None` while it is decompressed, or could not be read.
    begun: BTreeMap<u64, Progress>,
    /// Uncompressed sizes of what is begun.
    held: u64,
    /// That of what the walk took last.
    taken: u64,
    threads: usize,
    stopped: bool,
}

struct Progress {
    job: Job,
    is_done: bool,
    outcome: Option<Outcome>,
}

impl<'o> Ahead<'o> {
    /// Looks for the bundles from this offset on, and starts threads if there are several.
    fn start<'s, R: ReadSeek + Clone + Send + 's>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        threads: Option<NonZeroUsize>,
        input: &R,
        offset: u64,
    ) where
        'o: 's,
    {
        let options =
            Options { decompress: false, tell_sized: true, scan: false, ..self.options.clone() };
        let mut finder =
            Finder { from: offset, largest: options.max_decompressed, jobs: VecDeque::new() };
        // What is wrong is found by the walk itself.
        if walk(&mut input.clone(), &options, &mut finder).is_err() {
            return;
        }
        // No more than the walk would do.
        let mut left = input.clone().seek(SeekFrom::End(0)).map_or(0, |len| {
            len.saturating_mul(options.max_expansion).saturating_add(options.max_decompressed)
        });
        let mut fits = |job: &Job| {
            left = left.saturating_sub(job.uncompressed_size);
            left > 0
        };
        let count = finder.jobs.iter().take_while(|job| fits(job)).count();
        finder.jobs.truncate(count);
        let all = finder.jobs.iter().map(|job| job.uncompressed_size).fold(0, u64::saturating_add);
        if finder.jobs.len() < 2 || all < WORTHWHILE {
            return;
        }
        let threads = threads.or_else(|| std::thread::available_parallelism().ok());
        let threads = threads.map_or(1, NonZeroUsize::get).min(finder.jobs.len());
        if threads < 2 {
            return;
        }
        {
            let mut state = self.lock();
            state.jobs = finder.jobs;
            state.threads = threads;
        }
        for _ in 0..threads {
            let mut input = input.clone();
            // What the system refuses, the others do, or the walk itself.
            if Builder::new().spawn_scoped(scope, move || self.work(&mut input)).is_err() {
                self.lock().threads -= 1;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decompresses one bundle after the other.
    fn work(&self, input: &mut dyn ReadSeek) {
        let _stop = StopOnPanic(self);
        let Ok(mut source) = Source::new(input, Origin::File) else {
            self.lock().threads -= 1;
            self.changed.notify_all();
            return;
        };
        while let Some(job) = self.begin() {
            let decompress = match self.options.verify_hash {
                true => ccob::decompress,
                false => ccob::decompress_unverified,
            };
            let limits =
                ccob::Limits::default().with_max_uncompressed(self.options.max_decompressed);
            let window = job.offset..job.offset.saturating_add(job.size);
            let outcome = read_and(decompress, &mut source, &window, Some(job.size), &limits).ok();
            let mut state = self.lock();
            if let Some(progress) = state.begun.get_mut(&job.offset) {
                progress.is_done = true;
                progress.outcome = outcome;
            }
            self.changed.notify_all();
        }
    }

    /// Waits until there is something to do that there is room for. `None` when there is nothing more.
    fn begin(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            let next = *state.jobs.front().filter(|_| !state.stopped)?;
            let held = state.held.saturating_add(next.uncompressed_size);
            let in_all = held.saturating_add(state.taken);
            if state.begun.len() < state.threads && in_all <= self.options.max_decompressed {
                state.jobs.pop_front();
                state.held = held;
                let progress = Progress { job: next, is_done: false, outcome: None };
                state.begun.insert(next.offset, progress);
                return Some(next);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What the bundle at this offset came to; `None` if nobody has begun to decompress it. What lies before it is not
    /// needed any more.
    fn take(&self, offset: u64) -> Option<Outcome> {
        let mut state = self.lock();
        state.taken = 0;
        self.changed.notify_all();
        while state.jobs.front().is_some_and(|job| job.offset < offset) {
            state.jobs.pop_front();
        }
        loop {
            while let Some(first) = state.begun.first_entry()
                && *first.key() < offset
                && first.get().is_done
            {
                let passed = first.remove();
                state.held -= passed.job.uncompressed_size;
                self.changed.notify_all();
            }
            match state.begun.get(&offset) {
                Some(progress) if progress.is_done => break,
                Some(_) if !state.stopped => {}
                // It is next, and somebody may take it in this moment.
                None if state.jobs.front().is_some_and(|job| job.offset == offset)
                    && state.threads > 0
                    && !state.stopped => {}
                _ => return None,
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let taken = state.begun.remove(&offset)?;
        state.held -= taken.job.uncompressed_size;
        state.taken = taken.job.uncompressed_size;
        self.changed.notify_all();
        taken.outcome
    }
}

/// Stops the threads.
struct Stop<'a, 'o>(&'a Ahead<'o>);

impl Drop for Stop<'_, '_> {
    fn drop(&mut self) {
        self.0.lock().stopped = true;
        self.0.changed.notify_all();
    }
}

/// Stops the threads, and the waiting for them, where one of them panics.
struct StopOnPanic<'a, 'o>(&'a Ahead<'o>);

impl Drop for StopOnPanic<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            drop(Stop(self.0));
        }
    }
}

/// Finds compressed bundles by their headers.
struct Finder {
    from: u64,
    largest: u64,
    jobs: VecDeque<Job>,
}

impl Visitor for Finder {
    fn enter(&mut self, container: &Container<'_>) -> io::Result<()> {
        if let (ContainerKind::Ccob, Location::File(offset), Some(compression)) =
            (container.kind(), container.location(), container.compression())
            && offset >= self.from
            && compression.uncompressed_size() <= self.largest
        {
            let (size, uncompressed_size) = (container.size(), compression.uncompressed_size());
            self.jobs.push_back(Job { offset, size, uncompressed_size });
        }
        Ok(())
    }

    fn image(&mut self, _: &mut Image<'_, '_>) -> io::Result<()> {
        Ok(())
    }

    fn finding(&mut self, _: &Finding<'_>) -> io::Result<()> {
        Ok(())
    }
}
