//! Bundles and offload binaries compressed, several at a time.

use std::num::{NonZeroU32, NonZeroUsize};
use std::{iter, thread};

use byte_parts::{Bounds, in_order};
use ccob::{MAX_UNCOMPRESSED, Method, WriteOptions};
use fat_object::Error;

use crate::compressed_binary::compress_offload_binary;

/// Compression of entries of NVIDIA fatbinaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FatbinaryCodec {
    /// LZ4 if a cubin in the fatbinary is of CUDA 12 or older, otherwise Zstandard.
    #[default]
    ByAge,
    /// LZ4, which every driver reads. Entries that Zstandard compressed are compressed again.
    Lz4,
    /// Zstandard, which drivers of CUDA 12.4 and later read.
    Zstd,
}

/// Options of [`Edit::compress`](crate::Edit::compress).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompressOptions {
    pub(crate) write: WriteOptions,
    pub(crate) recompress: bool,
    pub(crate) fatbinaries: FatbinaryCodec,
    pub(crate) upgrade_offload_binaries: bool,
    pub(crate) max_decompressed: u64,
}

impl Default for CompressOptions {
    fn default() -> Self {
        let write = WriteOptions::default();
        Self {
            write,
            recompress: false,
            fatbinaries: FatbinaryCodec::ByAge,
            upgrade_offload_binaries: false,
            max_decompressed: MAX_UNCOMPRESSED,
        }
    }
}

impl CompressOptions {
    /// Sets method, level, version of the format, and threads. Version 1 of the format is not written: it does not tell
    /// where a compressed bundle ends. Version 2 takes its place.
    #[must_use]
    pub fn with_write(mut self, write: WriteOptions) -> Self {
        self.write = write;
        self
    }

    /// Sets whether compressed bundles are compressed again. Default: `false`.
    #[must_use]
    pub fn with_recompress(mut self, recompress: bool) -> Self {
        self.recompress = recompress;
        self
    }

    /// Sets the compression of entries of NVIDIA fatbinaries. Default: [`FatbinaryCodec::ByAge`].
    #[must_use]
    pub fn with_fatbinaries(mut self, codec: FatbinaryCodec) -> Self {
        self.fatbinaries = codec;
        self
    }

    /// Sets whether offload binaries of versions 1 and 2 become compressed ones of version 3, which LLVM 23 and
    /// older do not read. They do so in files of offload binaries, and in sections that no linked file loads;
    /// others stay as they are. Default: leave all of them as they are.
    #[must_use]
    pub fn with_upgrade_offload_binaries(mut self, upgrade: bool) -> Self {
        self.upgrade_offload_binaries = upgrade;
        self
    }

    /// Limits the size that a compressed bundle or offload binary may expand to, in bytes. Default:
    /// [`ccob::MAX_UNCOMPRESSED`].
    #[must_use]
    pub fn with_max_decompressed(mut self, max: u64) -> Self {
        self.max_decompressed = max;
        self
    }
}

/// Bytes that wait to be compressed, or are being compressed, at one time; more where one bundle is larger.
const IN_FLIGHT: u64 = 256 << 20;

/// Bytes to compress.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) data: Vec<u8>,
    pub(super) write: WriteOptions,
    /// Above this number of bytes, higher levels are tried.
    pub(super) enough: Option<u64>,
    /// `true` for an offload binary of version 3; otherwise it is a bundle.
    pub(super) is_offload_binary: bool,
}

type Compressed = Result<Vec<u8>, Error>;

impl Job {
    fn run(self, threads: u32) -> Compressed {
        let Job { data, write, enough, is_offload_binary } = self;
        let write = write.with_threads(threads);
        let compress = |write: &WriteOptions| {
            if is_offload_binary {
                compress_offload_binary(&data, write)
            } else {
                ccob::compress(&data, write).map_err(Error::from)
            }
        };
        let mut best = compress(&write)?;
        for &level in higher_levels(write.method()) {
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
        Some("libzstd") => &[9, 19],
        Some("miniz_oxide") => &[9, 10],
        // There is one.
        _ => &[],
    }
}

/// The jobs that are to be run.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    /// Their number, at most.
    pub(super) count: usize,
    /// The bytes of the largest, and of all that may be held at one time.
    pub(super) largest: u64,
    pub(super) most: u64,
}

impl Jobs {
    /// Returns what is in flight at one time. One job more is made meanwhile, unless each goes by itself.
    fn bounds(&self, threads: usize) -> Bounds {
        let bounds = Bounds::new(NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN));
        let bytes = self.most.checked_sub(self.largest).map(|bytes| bytes.min(IN_FLIGHT));
        match bytes {
            Some(bytes) if bytes >= self.largest || self.most / 2 >= self.largest => {
                bounds.with_jobs(usize::MAX).with_bytes(bytes)
            }
            _ => bounds.with_jobs(1),
        }
    }
}

/// Runs the jobs that `next` gives, on at most `threads` threads. Returns the result of each, in their order, which does not
/// depend on the number of threads.
///
/// `next` is called on this thread, while others compress.
pub(super) fn run<E>(
    threads: NonZeroU32,
    expected: &Jobs,
    mut next: impl FnMut() -> Result<Option<Job>, E>,
) -> Result<Vec<Compressed>, E> {
    let at_once = u32::try_from(expected.count).map_or(threads.get(), |n| n.min(threads.get()));
    let at_once = at_once.max(1);
    // The threads left over help with each one: libzstd has workers of its own at high levels.
    let of_each = threads.get() / at_once;
    let mut failed = None;
    let jobs = iter::from_fn(|| match next() {
        Ok(job) => job.map(|job| {
            let size = job.data.len() as u64;
            (job, size)
        }),
        Err(error) => {
            failed = Some(error);
            None
        }
    });
    let bounds = expected.bounds(at_once as usize);
    let results = thread::scope(|scope| {
        in_order(scope, bounds, jobs, || |job: Job| job.run(of_each)).collect()
    });
    failed.map_or(Ok(results), Err)
}
