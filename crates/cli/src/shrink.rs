//! `offload shrink`: removes all code that the GPUs of a machine do not need.

use std::io;
use std::path::PathBuf;

use device_select::{Device, Rule, Wanted};
use fat_object::is_named_for_code;

use crate::suggest;
use tool_edits::{Options, ShortReport, Uneditable};
use tool_edits::{Permits, Thinning};
use tool_inputs::limits::Limits;
use tool_kit::destination::is_directory;
use tool_kit::directory::Held;
use tool_kit::format::ListFormat;
use tool_kit::{Outcome, report};

/// Keep only the code of your GPUs in environments and packages
///
/// Removes from all files what `offload thin --keep` removes for these GPUs, and deletes kernel databases and loose images for others.
/// Everything that the GPUs load stays. Code that cannot be removed stays, too, and is counted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Environments, directories, packages, container images or files
    #[arg(required = true, value_name = "ENV")]
    files: Vec<PathBuf>,
    /// Keep the code that these GPUs load; native is this machine's. Repeatable
    #[arg(
        long = "gpu",
        required = true,
        value_name = "TARGET-ID,...",
        value_delimiter = ',',
        value_parser = suggest::gpu
    )]
    gpus: Vec<Device>,
    /// Report what would be removed, and what else takes space; write nothing
    #[arg(long)]
    plan: bool,
    /// Remove PTX, even where the GPU has no other code
    #[arg(long)]
    drop_ptx: bool,
    /// List the code that stays without need, by reason
    #[arg(long)]
    why: bool,
    /// Write the result of one file or package to OUT [default: in place]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    format: ListFormat,
    #[command(flatten)]
    limits: Limits,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    suggest::explain(&args.gpus, args.format.is_text());
    let wanted = args.gpus.iter().map(|gpu| Wanted::parse_known(&gpu.name()));
    let wanted = wanted.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
    let rule = Rule::keep(wanted).with_drop_ptx(args.drop_ptx);
    if args.files.len() > 1 && args.output.as_ref().is_some_and(|output| !is_directory(output)) {
        tool_kit::arguments::usage(
            "--output takes one file or package; without it several are edited in place",
        );
    }
    let options = Options::strict(args.output.clone(), (args.plan, args.format), &args.limits);
    let thinning = Thinning {
        rule: &rule,
        permits: Permits {
            is_environment: true,
            missing: false,
            empty: true,
            unserved: args.drop_ptx,
            databases: true,
            uneditable: Uneditable::SKIPPED,
        },
        options: &options,
    };
    let held = args.files.iter().filter(|path| path.is_dir()).map(|path| Held::open(path));
    let links = held.flatten().flat_map(|held| held.links_out());
    let is_code = |link: &PathBuf| is_named_for_code(&link.to_string_lossy());
    let links = links.filter(is_code).count();
    if links > 0 {
        let uv = "uv makes such with --link-mode symlink";
        report::note(&format_args!(
            "links to libraries elsewhere are not followed: {links} ({uv})"
        ));
    }
    let mut short = ShortReport::new(&options, &rule, args.why);
    thinning.edit(&args.files, |editor| editor.with_sums(&rule).run_with(&mut short))
}
