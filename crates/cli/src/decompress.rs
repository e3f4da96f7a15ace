//! `offload decompress`: compressed bundles into bundles.

use std::io;

use fat_object::decompress_bundles;

use crate::rewrite::{self, Files};
use crate::{Outcome, input};

/// Decompress bundles, and check that they are what was compressed
///
/// The opposite of `offload compress`, for everything that compresses bundles: every compressed bundle (CCOB, versions
/// 1 to 3, zstd and zlib) is checked against its hash and becomes a plain one; plain ones stay as they are. Bundles
/// that start at multiples of 4096 do so again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  offload decompress kernels.ccob -o kernels.hipfb
  offload decompress --in-place *.hipfb
  llvm-objcopy --dump-section .hip_fatbin=all.bin a.o && offload decompress all.bin -o plain.bin")]
pub(crate) struct Args {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    limits: input::Limits,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let limits = args.limits.ccob();
    rewrite::run(
        &args.files,
        |input, out| decompress_bundles(input, out, &limits),
        "not compressed",
    )
}
