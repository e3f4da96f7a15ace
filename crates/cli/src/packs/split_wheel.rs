//! `offload split` of a wheel.

use device_select::FileReader;

use tool_edits::{WheelParts, WheelSplit};
use tool_inputs::package::Package;
use tool_kit::failure::Failure;
use tool_kit::progress::Progress;
use tool_kit::style::{self, HEADING, TARGET, show};
use tool_kit::table::{Align, Table};
use tool_kit::{input, report};

/// The options for wheels.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Wheels")]
pub(crate) struct WheelArgs {
    /// Split libraries below this directory (default: the one with device code)
    #[arg(long, value_name = "DIR")]
    overlay_root: Option<String>,
    /// Name device packages PREFIX-gfx942 (default: NAME-device)
    #[arg(long, value_name = "PREFIX")]
    device_prefix: Option<String>,
    /// Let device wheels require this, with the GPU for @GFXARCH@ (repeatable)
    #[arg(long, value_name = "REQUIREMENT")]
    device_requires: Vec<String>,
    /// Leave files for single GPUs (Tensile, AOTriton, MIOpen) in the host wheel
    #[arg(long)]
    keep_files: bool,
    /// Allow splitting a wheel with findings of `offload verify`
    #[arg(long)]
    allow_findings: bool,
}

impl WheelArgs {
    /// Returns the name of an option that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [
            (self.overlay_root.is_some(), "--overlay-root"),
            (self.device_prefix.is_some(), "--device-prefix"),
            (!self.device_requires.is_empty(), "--device-requires"),
            (self.keep_files, "--keep-files"),
            (self.allow_findings, "--allow-findings"),
        ];
        given.into_iter().find_map(|(is_given, name)| is_given.then_some(name))
    }

    /// Splits a wheel by these options and the common options of libraries and wheels.
    pub(super) fn split(&self, common: &WheelSplit<'_>, package: &Package) -> Result<(), Failure> {
        let split = WheelSplit {
            overlay_root: self.overlay_root.as_deref(),
            device_prefix: self.device_prefix.as_deref(),
            device_requires: &self.device_requires,
            readers: if self.keep_files { &[] } else { &FileReader::ALL },
            allow_findings: self.allow_findings,
            ..*common
        };
        let progress = Progress::start("splitting");
        let parts = split.run(package)?;
        drop(progress);
        print(package, &parts).map_err(|error| Failure::printing(&error))
    }
}

fn print(package: &Package, parts: &WheelParts) -> std::io::Result<()> {
    let mut out = style::stdout();
    let (before, after) = (package.opened.metadata().len(), parts.host_size);
    let (host, part) = (input::display(&parts.host), style::percent(after, before));
    let [before, after] = [before, after].map(style::size);
    let count = style::count(parts.members.len(), "file");
    show!(
        out,
        "{HEADING}{host}{HEADING:#}  {before} -> {after}, {part}, {count} without device code"
    )?;
    let mut table = Table::default()
        .column("DEVICE WHEEL", Align::Left, TARGET)
        .numbers(["PACKS", "IMAGES", "FILES", "SIZE"]);
    for device in &parts.devices {
        let numbers =
            [device.packs.to_string(), device.images.to_string(), device.files.to_string()];
        let [packs, images, files] = numbers;
        table.row(&[input::display(&device.path), packs, images, files, style::size(device.size)]);
    }
    table.print(&mut out, "  ", style::terminal_width())?;
    parts.findings.iter().chain(&parts.notes).for_each(|note| report::note(note));
    out.flush()
}
