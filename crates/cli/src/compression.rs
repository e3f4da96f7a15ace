//! The options that say how to compress.

use ccob::{Codec, Method, Version, WriteOptions};

use crate::parallel::Threads;
use crate::report;

/// The options that say how to compress, shared by the commands.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Compression {
    /// Compression method: zstd, which is the default, or zlib
    #[arg(long, value_name = "METHOD", value_parser = ["zstd", "zlib"], hide_possible_values = true)]
    method: Option<String>,
    /// Compression level: for zstd to 22, and negative ones for speed (default 3); for zlib 0 to 10 (default 6).
    /// One beyond is taken for the nearest
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    level: Option<i32>,
    /// Version of the format: 3, which is the default for files of bundles, or 2, which LLVM 19 and later and all HIP
    /// runtimes read that read compressed bundles, the default in other files as far as it can hold them (4 GiB)
    #[arg(long, value_name = "N", value_parser = ["2", "3"], hide_possible_values = true)]
    pub(crate) format_version: Option<String>,
}

impl Compression {
    /// Whether any of the options is there.
    pub(crate) fn is_given(&self) -> bool {
        let Compression { method, level, format_version } = self;
        method.is_some() || level.is_some() || format_version.is_some()
    }

    pub(crate) fn options(&self, threads: Threads) -> WriteOptions {
        let method = match self.method.as_deref() {
            Some("zlib") => Method::ZLIB,
            _ => Method::ZSTD,
        };
        let version = match self.format_version.as_deref() {
            Some("2") => Version::V2,
            _ => Version::V3,
        };
        let options = WriteOptions::default()
            .with_method(method)
            .with_version(version)
            .with_threads(threads.number());
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
