//! Compressed bundles decompressed by several threads, ahead of a walk.

use std::collections::VecDeque;
use std::io::{self, SeekFrom};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Scope;

use byte_parts::{Bounds, Budget, in_order};

use crate::compressed::read_bundle;
use crate::context::Outcome;
use crate::model::{ContainerKind, Enter, Location};
use crate::options::Options;
use crate::source::{Origin, ReadSeek, Source};
use crate::visitor::Visitor;
use crate::walker::{Event, Summary, Walk};

/// Less data than this in all is not worth starting threads for.
const WORTHWHILE: u64 = 1 << 20;

/// Walks as [`walk`](crate::walk()) does, with up to `threads` threads that decompress compressed bundles at the same
/// time; one thread for each core without a number. They decompress bundles in the file itself and in its
/// contents, not in files that thin archives name. The visitor sees the same in the same order.
///
/// `input` is cloned for each thread; a clone has a position of its own. As many bundles as there are threads are held
/// beside the bundles that are walked, but never more than [`Options::with_max_decompressed`] bytes in all of them. For
/// [tables only](Options::with_tables_only) no threads are started.
///
/// ```
/// use std::io::Cursor;
/// # struct Nothing;
/// # impl fat_object::Visitor for Nothing {
/// #     fn image(&mut self, _: &mut fat_object::Image<'_, '_>) -> std::io::Result<()> { Ok(()) }
/// #     fn finding(&mut self, _: &fat_object::Finding) -> std::io::Result<()> { Ok(()) }
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
/// Errors of [`walk`](crate::walk()).
pub fn walk_with_threads<R: ReadSeek + Clone + Send>(
    input: &R,
    threads: Option<NonZeroUsize>,
    options: &Options,
    visitor: &mut dyn Visitor,
) -> io::Result<Summary> {
    if threads == Some(NonZeroUsize::MIN) || options.tables_only {
        return Walk::new(input.clone(), options)?.visit(visitor);
    }
    let position = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let mut ahead = None;
        let take = |offset| {
            position.store(offset, Ordering::Relaxed);
            let start = || Ahead::start(scope, (input, &position), threads, options);
            ahead.get_or_insert_with(start).take(offset)
        };
        let source = Source::new(input.clone(), Origin::File)?;
        Walk::start(source, options, Some(Box::new(take))).visit(visitor)
    })
}

/// A compressed bundle: where it lies in the file, the sizes that its header records.
#[derive(Clone, Copy)]
struct Job {
    offset: u64,
    size: u64,
    uncompressed_size: u64,
}

/// Bundles that are decompressed before the walk comes to them.
struct Ahead<'s> {
    /// Bundles whose results are to come.
    jobs: VecDeque<Job>,
    results: Box<dyn Iterator<Item = Option<Outcome>> + 's>,
}

impl<'s> Ahead<'s> {
    /// Looks for the bundles from the position of the walk on, and decompresses them on several threads if that is worth
    /// it.
    fn start<R: ReadSeek + Clone + Send>(
        scope: &'s Scope<'s, '_>,
        (input, position): (&'s R, &'s AtomicU64),
        threads: Option<NonZeroUsize>,
        options: &'s Options,
    ) -> Self {
        let jobs = jobs(input, position.load(Ordering::Relaxed), options);
        let all: u128 = jobs.iter().map(|job| u128::from(job.uncompressed_size)).sum();
        let threads = threads.or_else(|| std::thread::available_parallelism().ok());
        let threads = threads.map_or(1, NonZeroUsize::get).min(jobs.len());
        if threads < 2 || all < WORTHWHILE.into() {
            return Ahead { jobs: VecDeque::new(), results: Box::new(std::iter::empty()) };
        }
        let worker = move || {
            let mut input = input.clone();
            move |job: Job| {
                let is_passed = job.offset < position.load(Ordering::Relaxed);
                if is_passed { None } else { decompress(&mut input, job, options) }
            }
        };
        // The walk itself is one more thread. There are fewer of them than bytes of memory.
        let bounds = Bounds::new(NonZeroUsize::MIN.saturating_add(threads))
            .with_jobs(threads)
            .with_bytes(options.max_held());
        let sized = jobs.clone().into_iter().map(|job| (job, job.uncompressed_size));
        Ahead { jobs, results: Box::new(in_order(scope, bounds, sized, worker)) }
    }

    /// Returns the outcome for the bundle at this offset; `None` if it was not found or could not be read. Drops the
    /// outcomes of earlier bundles, which are not needed any more.
    fn take(&mut self, offset: u64) -> Option<Outcome> {
        while let Some(&job) = self.jobs.front().filter(|job| job.offset <= offset) {
            self.jobs.pop_front();
            let outcome = self.results.next().flatten();
            if job.offset == offset {
                return outcome;
            }
        }
        None
    }
}

/// Decompresses a bundle; `None` if it cannot be read.
fn decompress(input: &mut dyn ReadSeek, job: Job, options: &Options) -> Option<Outcome> {
    let limits = ccob::ReadOptions::default().with_max_decompressed(options.max_held());
    let limits = limits.with_verify_hash(options.verify_hash);
    let window = job.offset..job.offset + job.size;
    let mut source = Source::new(input, Origin::File).ok()?;
    read_bundle(&mut source, &window, Some(job.size), &limits).ok()
}

/// Returns the bundles from this offset on, no more than the walk would decompress.
fn jobs<R: ReadSeek + Clone>(input: &R, from: u64, options: &Options) -> VecDeque<Job> {
    // The walk itself reports errors.
    let mut found = find(input, from, options).unwrap_or_default();
    let mut budget = Budget::new(options.max_decompressed);
    budget.grow(input.clone().seek(SeekFrom::End(0)).unwrap_or(0), options.max_expansion);
    let mut fits = |job: &Job| {
        budget.spend(job.uncompressed_size);
        budget.left() > 0
    };
    let count = found.iter().take_while(|job| fits(job)).count();
    found.truncate(count);
    found
}

/// Finds compressed bundles by their headers.
fn find<R: ReadSeek + Clone>(input: &R, from: u64, options: &Options) -> io::Result<VecDeque<Job>> {
    let mut jobs = VecDeque::new();
    let options = Options { only_sized: true, scan: false, ..options.clone() };
    let mut walk = Walk::new(input.clone(), &options)?;
    while let Some(event) = walk.next()? {
        let Event::Enter(container) = event else { continue };
        let Some(compression) = container.compression() else { continue };
        if let (ContainerKind::Ccob, Location::File(offset)) =
            (container.kind(), container.location())
            && offset >= from
            && compression.uncompressed_size() <= options.max_held()
        {
            let (size, uncompressed_size) = (container.size(), compression.uncompressed_size());
            jobs.push_back(Job { offset, size, uncompressed_size });
        }
        walk.answer(Enter::Skip);
    }
    Ok(jobs)
}
