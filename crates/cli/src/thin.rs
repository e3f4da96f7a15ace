//! `offload thin`: removes device code for other targets.

use std::io;
use std::path::PathBuf;

use device_select::{Rule, Wanted};

use crate::suggest;
use tool_edits::{Options, Permits, Thinning, Uneditable};
use tool_kit::Outcome;

/// Remove device code for other GPUs from any file, linked or not
///
/// Files are bundles, offload binaries, fatbinaries, objects, archives, libraries and programs. --keep retains every
/// image that a device with one of these targets could load, by the rules of `offload match`: code for the processor
/// with any setting of the features that are not given, code for the generic processor that covers it, and SPIR-V that
/// the runtimes of its vendor compile. It retains what the driver takes of an NVIDIA fatbinary: the machine code with
/// the highest compute capability that the GPU runs, or PTX by the same rule if there is no machine code for it.
/// --exact retains only exact matches of the target IDs. --drop removes only images built for these targets. Entries of
/// the host are always retained. Retained images keep every byte. The file gets smaller, loads as before, and strip and
/// objcopy can process it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files or directories; - is standard input. Several need --in-place, --dry-run
    ///
    /// An OCI layout, an OCI archive or an archive of `docker save` is edited as a whole: layers, digests and names of files
    /// follow. A layout needs --output, which is a new directory.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Keep images that devices of these targets could load; drop others. Repeatable
    #[arg(
        long,
        value_name = "ID,...",
        value_delimiter = ',',
        value_parser = suggest::known,
        required_unless_present = "drop",
        conflicts_with = "drop"
    )]
    keep: Vec<Wanted>,
    /// Drop images built for these targets; keep others. Repeatable
    #[arg(long, value_name = "ID,...", value_delimiter = ',', value_parser = suggest::known)]
    drop: Vec<Wanted>,
    /// Keep exact target-ID matches only; drop generic code and SPIR-V
    #[arg(long, requires = "keep", conflicts_with = "drop")]
    exact: bool,
    /// Drop PTX of fatbinaries, even if that leaves a GPU without code
    #[arg(long, requires = "keep", conflicts_with = "drop")]
    drop_ptx: bool,
    /// Do not fail if a file has no image for an ID
    #[arg(long)]
    allow_missing: bool,
    /// Allow containers to lose all their device images
    #[arg(long)]
    allow_empty: bool,
    /// Allow removing code that a GPU of --keep would load
    #[arg(long, requires = "keep", conflicts_with = "drop")]
    allow_unserved: bool,
    /// Delete files of kernel databases and loose images for other GPUs
    ///
    /// They are deleted from directories and packages. Files of databases are files that ROCm's libraries load: files of Tensile,
    /// hipBLASLt and MIOpen in `rocblas/library`, `hipblaslt/library`, `hipsparselt/library` and `miopen/db`, and kernel packs.
    /// The name of such a file has its GPU. A file that all GPUs use stays, and so does a file whose contents differ from its
    /// name.
    ///
    /// Loose images are files of any name that are device code as a whole, compressed or not: cubins, code objects, PTX,
    /// fatbinaries, bundles. They are deleted if no image in them stays. A package with no loose image for the targets is left alone,
    /// unless --allow-missing and --allow-empty are given. One that would lose all of them is refused (--allow-empty). Files that
    /// belong to no package count as one package. A file that is named is never deleted.
    #[arg(long)]
    databases: bool,
    #[command(flatten)]
    uneditable: Uneditable,
    #[command(flatten)]
    options: Options,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    suggest::explain_wanted(&args.keep, args.options.has_notes());
    suggest::explain_wanted(&args.drop, args.options.has_notes());
    let rule = if args.drop.is_empty() {
        Rule::keep(args.keep.clone()).with_exact(args.exact).with_drop_ptx(args.drop_ptx)
    } else {
        Rule::drop(args.drop.clone())
    };
    let thinning = Thinning {
        rule: &rule,
        permits: Permits {
            is_environment: false,
            missing: args.allow_missing,
            empty: args.allow_empty,
            unserved: args.allow_unserved,
            databases: args.databases,
            uneditable: args.uneditable,
        },
        options: &args.options,
    };
    thinning.edit(&args.files, |editor| editor.run())
}
