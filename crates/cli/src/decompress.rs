//! `offload decompress`: decompresses bundles, offload binaries and entries of fatbinaries.

use std::io;
use std::path::PathBuf;

use tool_edits::{Editor, Options, Subject, Uneditable, Work};
use tool_kit::Outcome;

/// Decompress and check bundles, offload binaries and fatbinaries
///
/// Every compressed bundle (CCOB, versions 1 to 3, zstd and zlib) is checked against its hash and replaced by a
/// plain one; plain bundles do not change. Bundles that start at multiples of 4096 still do. Files that `offload
/// compress` wrote are restored byte for byte, unless `compress` printed a note. Files that were linked with
/// compressed code have no room for plain code and need --grow. A file without bundles, offload binaries and
/// fatbinaries is an error (--allow-uneditable).
///
/// Compressed offload binaries become plain ones of version 3. Their version before compression is not recorded.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files to decompress; - is standard input. Several need --in-place or --dry-run
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    uneditable: Uneditable,
    #[command(flatten)]
    options: Options,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let decide = |subject: &Subject<'_>| {
        let mut wishes = args.options.wishes(args.uneditable, subject.threads);
        wishes.edit.decompress();
        Ok(wishes)
    };
    Editor::new(&args.files, &args.options, Work::Decompress, &decide).run()
}
