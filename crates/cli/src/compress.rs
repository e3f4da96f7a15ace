//! `offload compress`: bundles into compressed bundles.

use std::io;
use std::num::NonZeroU32;

use ccob::{Codec, Method, Version, WriteOptions};
use fat_object::{CompressOptions, compress_bundles};

use crate::rewrite::{self, Files};
use crate::{Outcome, input, report};

/// Compress bundles: files of one bundle or of several one after the other
///
/// Every plain bundle becomes a compressed one (CCOB); compressed ones stay as they are. Bundles that start at
/// multiples of 4096, as the HIP runtime wants them, do so again. Files in which there is nothing to do are left
/// alone.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  offload compress kernels.hipfb -o kernels.ccob
  offload compress --level 19 -j 8 --in-place *.hipfb   small is worth waiting for
  offload compress --format-version 2 a.hipfb -o b      for programs built with LLVM 19 to 21
  cat a.hipfb | offload compress - -o - | ...

The same input, method and level give the same bytes, whatever the number of threads.")]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    how: How,
    /// Compress compressed bundles anew
    #[arg(long)]
    recompress: bool,
    #[command(flatten)]
    limits: input::Limits,
}

/// The options that say how to compress, shared by the commands.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct How {
    /// Compression method: zstd, which is the default, or zlib
    #[arg(long, value_name = "METHOD", value_parser = ["zstd", "zlib"], hide_possible_values = true)]
    method: Option<String>,
    /// Compression level: for zstd to 22, and negative ones for speed (default 3); for zlib 0 to 10 (default 6).
    /// One beyond is taken for the nearest
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    level: Option<i32>,
    /// Version of the format: 3, which is the default, or 2, which LLVM 19 and later read
    #[arg(long, value_name = "N", value_parser = ["2", "3"], hide_possible_values = true)]
    format_version: Option<String>,
    /// Threads to compress with (default: one for each core)
    #[arg(short = 'j', long, value_name = "N")]
    threads: Option<NonZeroU32>,
}

impl How {
    /// Whether any of the options is there.
    pub(crate) fn is_given(&self) -> bool {
        let How { method, level, format_version, threads } = self;
        method.is_some() || level.is_some() || format_version.is_some() || threads.is_some()
    }

    pub(crate) fn options(&self) -> WriteOptions {
        let method = match self.method.as_deref() {
            Some("zlib") => Method::ZLIB,
            _ => Method::ZSTD,
        };
        let version = match self.format_version.as_deref() {
            Some("2") => Version::V2,
            _ => Version::V3,
        };
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self
            .threads
            .map_or_else(|| u32::try_from(cores()).unwrap_or(u32::MAX), NonZeroU32::get);
        let options =
            WriteOptions::default().with_method(method).with_version(version).with_threads(threads);
        match self.level {
            Some(level) => {
                if method.codec() == Some(Codec::Ruzstd) {
                    report::warning(&"this build's zstd has one level: --level is without effect");
                }
                options.with_level(level)
            }
            None => options,
        }
    }
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let options = CompressOptions::default()
        .with_write(args.how.options())
        .with_recompress(args.recompress)
        .with_limits(args.limits.ccob());
    rewrite::run(
        &args.files,
        |input, out| compress_bundles(input, out, &options),
        "compressed already",
    )
}
