//! `offload join` of wheels.

use std::io;
use std::sync::Arc;

use super::join::Args;
use tool_edits::{JoinedWheel, WheelJoin};
use tool_inputs::package::Package;
use tool_kit::failure::Failure;
use tool_kit::opened::Opened;
use tool_kit::parallel::Threads;
use tool_kit::progress::Progress;
use tool_kit::style::{self, HEADING, show};
use tool_kit::{input, report};

pub(super) fn join(args: &Args, host: Package) -> Result<(), Failure> {
    if args.output.as_os_str() == "-" {
        return Err("wheels are not written to standard output".to_owned().into());
    }
    let mut packages = vec![(input::display(&args.host), host)];
    for path in &args.packs {
        let name = input::display(path);
        let opened =
            Opened::new(path, args.max_input).and_then(|opened| Package::of(&Arc::new(opened)));
        let package = opened.map_err(|error| format!("{name}: {}", report::reason(&error)))?;
        let package = package.ok_or_else(|| format!("{name}: expected a device wheel"))?;
        packages.push((name, package));
    }
    let join = WheelJoin {
        output: &args.output,
        compress: args.compress,
        allow_findings: args.allow_findings,
        options: args.edit(),
        threads: Threads::default().count(),
    };
    let wheels: Vec<_> = packages.iter().map(|(name, package)| (&**name, package)).collect();
    let progress = Progress::start("joining");
    let joined = join.run(&wheels)?;
    drop(progress);
    print(args, &joined).map_err(|error| Failure::printing(&error))
}

fn print(args: &Args, joined: &JoinedWheel) -> io::Result<()> {
    let mut out = style::stdout();
    let (path, size) = (input::display(&args.output), style::size(joined.size));
    let files = style::count(joined.libraries.len(), "file");
    let others = match joined.files {
        0 => String::new(),
        files => format!(", {} from device wheels", style::count(files, "other file")),
    };
    show!(out, "{HEADING}{path}{HEADING:#}  {size}, {files} with device code{others}")?;
    for (path, is_original) in &joined.libraries {
        let same = if *is_original { "the file that was split" } else { "new bundles" };
        show!(out, "  {path}  {same}")?;
    }
    joined.notes.iter().for_each(|note| report::note(note));
    out.flush()
}
