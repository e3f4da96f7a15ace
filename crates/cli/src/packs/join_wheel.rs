//! `offload join` of wheels.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::report::check_output;
use tool_edits::{JoinedWheel, WheelJoin};
use tool_inputs::package::Package;
use tool_kit::failure::Failure;
use tool_kit::opened::{MaxInput, Opened};
use tool_kit::progress::Progress;
use tool_kit::style::{self, HEADING, show};
use tool_kit::{input, report};

/// Joins a host wheel with device wheels.
pub(super) fn join(
    how: &WheelJoin<'_>,
    (name, host): (&Path, Package),
    devices: &[PathBuf],
    max: MaxInput,
) -> Result<(), Failure> {
    if how.output.as_os_str() == "-" {
        return Err("wheels are not written to standard output".to_owned().into());
    }
    check_output(how.output, devices.iter().map(PathBuf::as_path))?;
    let mut packages = vec![(input::display(name), host)];
    for path in devices {
        let name = input::display(path);
        let opened = Opened::new(path, max).and_then(|opened| Package::of(&Arc::new(opened)));
        let package = opened.map_err(|error| format!("{name}: {}", report::reason(&error)))?;
        let package = package.ok_or_else(|| format!("{name}: expected a device wheel"))?;
        packages.push((name, package));
    }
    let wheels: Vec<_> = packages.iter().map(|(name, package)| (&**name, package)).collect();
    let progress = Progress::start("joining");
    let joined = how.run(&wheels)?;
    drop(progress);
    print(how.output, &joined).map_err(|error| Failure::printing(&error))
}

fn print(output: &Path, joined: &JoinedWheel) -> io::Result<()> {
    let mut out = style::stdout();
    let (path, size) = (input::display(output), style::size(joined.size));
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
