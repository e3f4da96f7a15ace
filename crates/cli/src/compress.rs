//! `offload compress`: bundles and offload binaries into compressed ones.

use std::io;
use std::path::PathBuf;

use ccob::{Codec, Method, Version, WriteOptions};
use fat_object::{CompressOptions, Contents, EditableContainer, ImageFormat};

use crate::edit::{Editor, NewImages, Options, Uneditable, Wishes, Work};
use crate::parallel::Threads;
use crate::{Outcome, report};

/// Compress bundles and offload binaries in any file
///
/// Files are bundles, offload binaries, objects, archives, libraries and programs. Every plain bundle becomes a compressed
/// one (CCOB); compressed ones stay as they are, as do bundles that would not get smaller. Bundles that start at
/// multiples of 4096, as the HIP runtime wants them, do so again. Linked files get smaller and load as before.
///
/// Offload binaries of version 3 become compressed ones, which LLVM 24 reads. Those of versions 1 and 2 become compressed
/// ones of version 3 where the file consists of offload binaries, or with --format-version 3: LLVM 23 and older read no
/// version 3. Those that a program hands to another runtime than HIP's stay plain. A note tells of each sort. The default
/// level for them is LLVM's, 5 for zstd.
///
/// `offload decompress` restores the file byte for byte. This is checked before anything is written. A note tells where
/// another byte than one of device code will differ; a file that could not be decompressed is not written. Files in
/// which there is nothing to do are left alone; one without bundles and offload binaries is an error (--allow-uneditable).
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  offload compress kernels.hipfb -o kernels.ccob
      one bundle
  offload compress --level 19 -j 8 --in-place *.so
      small is worth waiting for
  offload compress --format-version 2 kernels.hipfb -o b
      for programs built with LLVM 19 to 21
  offload compress libfoo.so --dry-run
      what would it save?
  cat kernels.hipfb | offload compress - -o - > new.ccob
      in a pipe

The same input, method and level give the same bytes, whatever the number of threads.")]
pub(crate) struct Args {
    /// Files with bundles or offload binaries; - is standard input. Several only with --in-place or --dry-run
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    how: How,
    /// Compress again what is compressed
    #[arg(long)]
    recompress: bool,
    #[command(flatten)]
    uneditable: Uneditable,
    #[command(flatten)]
    options: Options,
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
    /// Version of the format: 3, which is the default for files of bundles, or 2, which LLVM 19 and later and all HIP
    /// runtimes read that read compressed bundles, the default in other files as far as it can hold them (4 GiB)
    #[arg(long, value_name = "N", value_parser = ["2", "3"], hide_possible_values = true)]
    format_version: Option<String>,
}

impl How {
    /// Whether any of the options is there.
    pub(crate) fn is_given(&self) -> bool {
        let How { method, level, format_version } = self;
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

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let editor = Editor {
        files: &args.files,
        options: &args.options,
        images: NewImages::default(),
        work: Work::Compress,
    };
    let write = args.how.options(args.options.threads());
    editor.run(|subject, _| {
        let contents = subject.contents;
        let write = match args.how.format_version {
            None if is_for_runtime(contents) => write.clone().with_version(Version::V2),
            _ => write.clone(),
        };
        let upgrade = match args.how.format_version.as_deref() {
            None => contents.format() == ImageFormat::OffloadBinary,
            Some(version) => version == "3",
        };
        let options = CompressOptions::default()
            .with_write(write)
            .with_upgrade_packages(upgrade)
            .with_recompress(args.recompress)
            .with_limits(args.options.limits.ccob());
        let edit = args.options.edit().with_allow_uneditable(args.uneditable.allow_uneditable);
        let mut wishes = Wishes::new(edit);
        wishes.edit().compress(options);
        Ok(wishes)
    })
}

/// Whether runtimes will read the bundles where they lie, and version 2 can hold them: runtimes of all ages know it.
fn is_for_runtime(contents: &Contents) -> bool {
    let holds_bundles =
        matches!(contents.format(), ImageFormat::Bundle | ImageFormat::CompressedBundle);
    let fits = |container: &EditableContainer| {
        let stored = container.compression().map_or(container.size(), |c| c.uncompressed_size());
        u32::try_from(stored).is_ok()
    };
    !holds_bundles && contents.containers().iter().all(fits)
}
