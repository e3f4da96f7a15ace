//! `offload decompress`: compressed bundles and offload binaries into plain ones.

use std::io;
use std::path::PathBuf;

use crate::Outcome;
use crate::edit::{Editor, NewImages, Options, Uneditable, Wishes, Work};
use crate::help::More;

pub(crate) const MORE: More = More {
    examples: &[
        ("offload decompress kernels.ccob -o kernels.hipfb", "one bundle"),
        ("offload decompress --in-place *.ccob", "several, each in its place"),
        ("offload decompress libfoo.so --grow -o plain.so", "all bundles in a library"),
        (
            "llvm-objcopy --dump-section .hip_fatbin=all.bin libfoo.so && offload decompress all.bin -o plain",
            "those of a section, concatenated as they lie there",
        ),
    ],
    notes: &[],
};

/// Decompress bundles and offload binaries, and check them
///
/// The opposite of `offload compress`, for everything that compresses bundles: every compressed bundle (CCOB, versions
/// 1 to 3, zstd and zlib) is checked against its hash and becomes a plain one; plain ones stay as they are. Bundles
/// that start at multiples of 4096 do so again. Files that `offload compress` made smaller become what they were, byte
/// for byte, unless `compress` printed a note. Files that were linked with compressed bundles have no room, and need
/// --grow. A file without bundles and offload binaries is an error (--allow-uneditable).
///
/// Compressed offload binaries become plain ones of version 3: an older version that they had is recorded nowhere.
#[derive(Debug, clap::Args)]
#[command(after_long_help = MORE.text())]
pub(crate) struct Args {
    /// Files with bundles or offload binaries; - is standard input. Several only with --in-place or --dry-run
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    uneditable: Uneditable,
    #[command(flatten)]
    options: Options,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let editor = Editor {
        files: &args.files,
        options: &args.options,
        images: NewImages::default(),
        work: Work::Decompress,
    };
    editor.run(|_, _| {
        let edit = args.options.edit().with_allow_uneditable(args.uneditable.allow_uneditable);
        let mut wishes = Wishes::new(edit);
        wishes.edit().decompress();
        Ok(wishes)
    })
}
