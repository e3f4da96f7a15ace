//! The options that say how to compress.

use ccob::{Method, Version, WriteOptions};

use tool_kit::parallel::Threads;
use tool_kit::report;

/// Compression options, shared by the commands.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Compression {
    /// Compress with METHOD: zstd (default) or zlib
    #[arg(long, value_name = "METHOD", value_parser = ["zstd", "zlib"], hide_possible_values = true)]
    method: Option<String>,
    /// Set the compression level: zstd up to 22 (default 3), zlib 0 to 10 (default 6)
    ///
    /// Negative levels of zstd are faster. Levels out of range are clamped. NVIDIA fatbinaries: zstd up to 22 (default
    /// 5), LZ4 3 to 12 (default 9).
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    level: Option<i32>,
    /// Write this version of the format: 2 or 3
    ///
    /// Version 2 (up to 4 GiB) is readable by LLVM 19 and later, and by every HIP runtime that supports compressed
    /// bundles. Version 3 needs LLVM 22 or later. The default is 3 for files of bundles and for bundles that version 2
    /// cannot hold, otherwise 2.
    #[arg(long, value_name = "N", value_parser = ["2", "3"], hide_possible_values = true)]
    pub(crate) format_version: Option<String>,
}

impl Compression {
    /// Returns whether any of the options is given.
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
                if method.codec() == Some("ruzstd") {
                    report::warning(&"--level has no effect: this build's zstd has one level");
                }
                options.with_level(level)
            }
            None => options,
        }
    }
}
