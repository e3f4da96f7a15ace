//! `offload compress`: compresses bundles, offload binaries and entries of fatbinaries.

use std::io;
use std::path::PathBuf;

use ccob::{Version, WriteOptions};
use device_select::{Need, Software};
use fat_edit::{CompressOptions, FatbinaryCodec};
use fat_object::FileFormat;

use crate::compression::Compression;
use tool_edits::{Editor, Options, Reporter, SizeReport, Subject, Uneditable, Work};
use tool_inputs::native::Installed;
use tool_kit::arguments::usage;
use tool_kit::opened::parse_size;
use tool_kit::{Outcome, report};

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
    /// Compress fatbinaries for NVIDIA drivers from this version on, such as 535
    ///
    /// Before 550 by LZ4, also entries that are compressed by zstd; from 550 on by zstd. `native` is the driver of this machine.
    #[arg(long, value_name = "VERSION")]
    for_driver: Option<Installed>,
    /// Compress bundles for releases of ROCm from this one on, such as 6.2
    ///
    /// Before 7.0 in version 2 of the format, also bundles that are compressed in version 3.
    #[arg(long, value_name = "VERSION", conflicts_with = "format_version")]
    for_rocm: Option<Installed>,
    /// Make all files take at most SIZE together, or write nothing
    ///
    /// If the usual level is not enough, everything is compressed again at zstd's level 19. The suffixes are K, M and G.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    budget: Option<u64>,
    #[command(flatten)]
    uneditable: Uneditable,
    #[command(flatten)]
    options: Options,
}

/// The level for files that are too large at the usual one.
const SMALLEST: i32 = 19;

/// The decisions about all files.
#[derive(Clone)]
struct How {
    write: WriteOptions,
    recompress: bool,
    fatbinaries: FatbinaryCodec,
    /// `true` if bundles have version 2 of the format at most.
    is_older: bool,
}

impl How {
    fn new(args: &Args) -> Result<Self, String> {
        let older = |installed: &Option<Installed>, software, need: Option<Need>| {
            let version = installed.as_ref().map(|installed| installed.version(software));
            let version = version.transpose()?;
            Ok::<_, String>(version.zip(need).map(|(version, need)| version < need.since()))
        };
        if older(&args.for_rocm, Software::Rocm, Need::of_compressed_bundle(2))? == Some(true) {
            return Err("--for-rocm: releases before 6.2 read no compressed bundles".to_owned());
        }
        let is_older = older(&args.for_rocm, Software::Rocm, Need::of_compressed_bundle(3))?;
        let fatbinaries = match older(&args.for_driver, Software::Driver, Some(Need::of_zstd()))? {
            None => FatbinaryCodec::ByAge,
            Some(true) => FatbinaryCodec::Lz4,
            Some(false) => FatbinaryCodec::Zstd,
        };
        Ok(How {
            write: args.how.options(args.options.limits.threads),
            recompress: args.recompress || is_older == Some(true),
            fatbinaries,
            is_older: is_older == Some(true),
        })
    }

    /// Returns the same, as small as possible.
    fn smallest(&self) -> Self {
        let write = self.write.clone().with_level(SMALLEST);
        How { write, recompress: true, ..self.clone() }
    }
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let how = How::new(args).map_err(io::Error::other)?;
    let Some(budget) = args.budget else { return run_with(args, &how, &args.options, None) };
    if args.files.iter().any(|file| file.as_os_str() == "-") {
        usage("--budget reads files twice, which standard input does not allow");
    }
    let options = args.options.dry();
    let mut least: Option<u64> = None;
    for how in [how.clone(), how.smallest()] {
        let mut report = SizeReport::new();
        run_with(args, &how, &options, Some(&mut report))?;
        match report.size {
            // The edit itself says what is wrong.
            _ if report.has_failed() => return run_with(args, &how, &options, None),
            Some(size) if size <= budget => return run_with(args, &how, &args.options, None),
            Some(size) => least = Some(least.map_or(size, |least| least.min(size))),
            None => {}
        }
    }
    let least = least.map_or_else(|| "more".to_owned(), |least| format!("{least} bytes"));
    let advice = "`offload thin` removes code for other GPUs";
    report::error(&format_args!(
        "--budget: {least} is the smallest size that was found, which exceeds {budget} bytes; {advice}"
    ));
    Ok(Outcome::Faults)
}

/// Compresses all files, or finds out how large they would be.
fn run_with(
    args: &Args,
    how: &How,
    options: &Options,
    sizes: Option<&mut SizeReport>,
) -> io::Result<Outcome> {
    let decide = |subject: &Subject<'_>| {
        let contents = subject.contents;
        let write = match args.how.format_version {
            None if how.is_older || contents.is_for_runtime() => {
                how.write.clone().with_version(Version::V2)
            }
            _ => how.write.clone(),
        };
        let write = write.with_threads(subject.threads.number());
        let upgrade = match args.how.format_version.as_deref() {
            None => contents.format() == FileFormat::OffloadBinary,
            Some(version) => version == "3",
        };
        let compress = CompressOptions::default()
            .with_write(write)
            .with_upgrade_offload_binaries(upgrade)
            .with_recompress(how.recompress)
            .with_fatbinaries(how.fatbinaries)
            .with_max_decompressed(subject.walk.max_held());
        let mut wishes = options.wishes(args.uneditable, subject.threads);
        wishes.edit.compress(compress);
        Ok(wishes)
    };
    let editor = Editor::new(&args.files, options, Work::Compress, &decide);
    match sizes {
        Some(sizes) => editor.run_with(sizes),
        None => editor.run(),
    }
}
