//! Bundles and packages compressed, several at a time.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, mpsc};
use std::{panic, thread};

use ccob::{Codec, Limits, Method, WriteOptions};

use crate::error::Error;
use crate::package::compress_package;

/// How [`Edit::compress`](crate::Edit::compress) compresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompressOptions {
    /// Method, level, version of the format, threads. Version 1 of the format is not written: it does not tell where a
    /// compressed bundle ends. Version 2 takes its place.
    pub write: WriteOptions,
    /// Whether bundles that are compressed already are decompressed and compressed anew. Otherwise they stay as they
    /// are.
    pub recompress: bool,
    /// `true` if packages of versions 1 and 2 become compressed ones of version 3, which LLVM 23 and older do not read. They
    /// do so in files of packages, and in sections that no linked file loads; others stay as they are. Default: `false`.
    pub upgrade_packages: bool,
    /// How much a compressed bundle or package may expand to.
    pub limits: Limits,
}

impl CompressOptions {
    /// These options with another method, level, version, number of threads.
    #[must_use]
    pub fn with_write(mut self, write: WriteOptions) -> Self {
        self.write = write;
        self
    }

    /// These options, with compressed bundles compressed anew or not.
    #[must_use]
    pub fn with_recompress(mut self, recompress: bool) -> Self {
        self.recompress = recompress;
        self
    }

    /// These options, with packages of older versions [made version 3](Self::upgrade_packages) or not.
    #[must_use]
    pub fn with_upgrade_packages(mut self, upgrade_packages: bool) -> Self {
        self.upgrade_packages = upgrade_packages;
        self
    }

    /// These options with another limit of what a compressed bundle may expand to.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

/// Bytes that wait to be compressed, or are being compressed, at one time; more where one bundle is larger.
const IN_FLIGHT: usize = 256 << 20;

/// Bytes to compress.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) data: Vec<u8>,
    pub(super) write: WriteOptions,
    /// Above so many bytes higher levels are tried.
    pub(super) enough: Option<u64>,
    /// `true` for a package of version 3; otherwise it is a bundle.
    pub(super) is_package: bool,
}

type Compressed = Result<Vec<u8>, Error>;

impl Job {
    fn run(self, threads: u32) -> Compressed {
        let Job { data, write, enough, is_package } = self;
        let write = write.with_threads(threads);
        let compress = |write: &WriteOptions| match is_package {
            true => compress_package(&data, write),
            false => ccob::compress(&data, write).map_err(Error::Ccob),
        };
        let mut best = compress(&write)?;
        for &level in higher_levels(write.method) {
            if enough.is_none_or(|enough| best.len() as u64 <= enough) {
                break;
            }
            let next = compress(&write.clone().with_level(level))?;
            if next.len() < best.len() {
                best = next;
            }
        }
        Ok(best)
    }
}

fn higher_levels(method: Method) -> &'static [i32] {
    match method.codec() {
        Some(Codec::Libzstd) => &[9, 19],
        Some(Codec::MinizOxide) => &[9, 10],
        // There is one.
        _ => &[],
    }
}

/// Runs at most `count` jobs that `next` gives, on at most `threads` threads. Returns what came of each, in their
/// order, which does not depend on the number of threads.
///
/// `next` is called on this thread, while others compress.
pub(super) fn run<E>(
    threads: NonZeroU32,
    count: usize,
    mut next: impl FnMut() -> Result<Option<Job>, E>,
) -> Result<Vec<Compressed>, E> {
    let at_once = threads.get().min(u32::try_from(count).unwrap_or(u32::MAX)).max(1);
    // What is left helps with each one: libzstd has workers of its own at high levels.
    let of_each = threads.get() / at_once;
    if at_once == 1 {
        return alone(of_each, next);
    }

    let (jobs, waiting) = mpsc::channel::<(usize, Job)>();
    let (done, finished) = mpsc::channel::<(usize, usize, Compressed)>();
    let waiting = Mutex::new(waiting);
    thread::scope(|scope| {
        let mut workers = Vec::new();
        for _ in 0..at_once {
            let (waiting, done) = (&waiting, done.clone());
            let work = move || {
                while let Some((number, job)) = take(waiting) {
                    let size = job.data.len();
                    if done.send((number, size, job.run(of_each))).is_err() {
                        break;
                    }
                }
            };
            workers.extend(thread::Builder::new().spawn_scoped(scope, work));
        }
        drop(done);
        if workers.is_empty() {
            // No thread to be had is no reason to fail.
            return alone(of_each, next);
        }
        let mut sent = 0;
        let mut in_flight = 0_usize;
        let mut out = BTreeMap::new();
        let mut receive = |in_flight: &mut usize| {
            let Ok((number, size, result)) = finished.recv() else { return false };
            *in_flight -= size;
            out.insert(number, result);
            true
        };
        let mut send_all = || {
            while let Some(job) = next()? {
                while in_flight > 0 && in_flight.saturating_add(job.data.len()) > IN_FLIGHT {
                    if !receive(&mut in_flight) {
                        break;
                    }
                }
                in_flight += job.data.len();
                if jobs.send((sent, job)).is_err() {
                    break;
                }
                sent += 1;
            }
            Ok(())
        };
        let all_sent = send_all();
        drop(jobs);
        while receive(&mut in_flight) {}
        for worker in workers {
            // A scope does not wait for the end of its threads, but for that of what they run.
            worker.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
        }
        all_sent.map(|()| out.into_values().collect())
    })
}

/// Runs the jobs on this thread, one after the other.
fn alone<E>(
    threads: u32,
    mut next: impl FnMut() -> Result<Option<Job>, E>,
) -> Result<Vec<Compressed>, E> {
    let mut results = Vec::new();
    while let Some(job) = next()? {
        results.push(job.run(threads));
    }
    Ok(results)
}

/// The next job that waits, for a worker.
fn take(waiting: &Mutex<mpsc::Receiver<(usize, Job)>>) -> Option<(usize, Job)> {
    waiting.lock().ok()?.recv().ok()
}
