//! `offload compress`: compresses bundles, offload binaries and entries of fatbinaries.

use std::io;
use std::path::PathBuf;

use ccob::Version;
use fat_edit::CompressOptions;
use fat_object::FileFormat;

use crate::compression::Compression;
use crate::edit::{Editor, Options, Subject, Uneditable, Work};
use tool_kit::Outcome;

/// Compress bundles, offload binaries and fatbinaries in any file
///
/// Files are bundles, offload binaries, fatbinaries, objects, archives, libraries and programs. Every plain bundle is
/// compressed (CCOB), unless it would not get smaller; compressed bundles do not change. Bundles that start at
/// multiples of 4096, as the HIP runtime requires, still do. Linked files get smaller and load as before.
///
/// Offload binaries of version 3 are compressed in the form that LLVM 24 reads. Versions 1 and 2 become compressed
/// offload binaries of version 3 if the file consists of offload binaries, or with --format-version 3: LLVM 23 and
/// older cannot read version 3. Offload binaries that a program hands to a runtime other than HIP's stay plain. A note
/// reports each of these cases. The default level for offload binaries is LLVM's, 5 for zstd.
///
/// Entries of NVIDIA fatbinaries are compressed one by one, as by NVIDIA's fatbinary 13: zstd, level 5 by default. If
/// a cubin in the fatbinary is of CUDA 12 or older, they are compressed by LZ4, which every driver reads.
///
/// `offload decompress` restores the file byte for byte. This is checked before anything is written. A note reports
/// bytes outside of device code that will differ; a file that could not be decompressed is not written. A file with
/// nothing to compress is not changed. A file without bundles, offload binaries and fatbinaries is an error
/// (--allow-uneditable).
///
/// For directories and packages the last lines say what is saved in total, and which driver or release of ROCm is needed
/// for the compressed code, as `offload ls --needs` does.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files to compress; - is standard input. Several need --in-place or --dry-run
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    how: Compression,
    /// Compress already compressed containers again
    #[arg(long)]
    recompress: bool,
    #[command(flatten)]
    uneditable: Uneditable,
    #[command(flatten)]
    options: Options,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let write = args.how.options(args.options.limits.threads);
    let decide = |subject: &Subject<'_>| {
        let contents = subject.contents;
        let write = match args.how.format_version {
            None if contents.is_for_runtime() => write.clone().with_version(Version::V2),
            _ => write.clone(),
        };
        let write = write.with_threads(subject.threads.number());
        let upgrade = match args.how.format_version.as_deref() {
            None => contents.format() == FileFormat::OffloadBinary,
            Some(version) => version == "3",
        };
        let options = CompressOptions::default()
            .with_write(write)
            .with_upgrade_offload_binaries(upgrade)
            .with_recompress(args.recompress)
            .with_max_decompressed(subject.walk.max_held());
        let mut wishes = args.options.wishes(args.uneditable, subject.threads);
        wishes.edit.compress(options);
        Ok(wishes)
    };
    Editor::new(&args.files, &args.options, Work::Compress, &decide).run()
}
