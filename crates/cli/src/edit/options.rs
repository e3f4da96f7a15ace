//! The options that commands which edit files share.

use std::path::{Path, PathBuf};

use fat_edit::EditOptions;

use crate::input;
use crate::parallel::Threads;

/// The options that all commands have that edit files.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(super) output: Output,
    #[command(flatten)]
    pub(super) host: Host,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    pub(crate) limits: input::Limits,
}

impl Options {
    /// Emptying containers is for the commands to refuse, who can say more about it.
    pub(crate) fn edit(&self) -> EditOptions {
        EditOptions::default()
            .with_grow(self.host.grow)
            .with_drop_signature(self.host.drop_signature)
            .with_allow_findings(self.host.allow_findings)
            .with_allow_empty(true)
            .with_threads(self.threads.number())
    }

    /// Threads to work with.
    pub(crate) fn threads(&self) -> Threads {
        self.threads
    }
}

/// Where the result goes.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Output {
    /// The file to write; - is standard output
    #[arg(short, long, value_name = "OUT", required_unless_present_any = ["in_place", "dry_run"])]
    pub(super) output: Option<PathBuf>,
    /// Replace the file itself, in one step: it is the old one, whole, or the new one. Mode, owner and extended
    /// attributes are kept; other hard links keep the old contents
    #[arg(long, conflicts_with = "output")]
    pub(super) in_place: bool,
    /// Say what would be done, and write nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print one JSON array: what was done to each file
    #[arg(long)]
    pub(super) json: bool,
}

impl Output {
    /// What clap cannot check.
    pub(super) fn fault(&self, files: &[PathBuf]) -> Option<&'static str> {
        let is_dash = |path: &Path| path.as_os_str() == "-";
        if self.output.is_some() && files.len() > 1 {
            return Some("--output takes one FILE; several are edited with --in-place");
        }
        if self.in_place && files.iter().any(|path| is_dash(path)) {
            return Some("standard input cannot be edited in place");
        }
        if self.json && self.output.as_deref().is_some_and(is_dash) && !self.dry_run {
            return Some("--json and --output=- would both write to standard output");
        }
        None
    }

    /// Whether the new file goes to standard output.
    pub(super) fn is_stdout(&self) -> bool {
        !self.dry_run && self.output.as_deref() == Some(Path::new("-"))
    }
}

/// What may happen to the file around the device code.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Host {
    /// Let a linked file grow where new device code is larger than its place: it gets a new one
    #[arg(long)]
    pub(super) grow: bool,
    /// Edit a signed file: the signature, invalid then, is dropped
    #[arg(long)]
    pub(super) drop_signature: bool,
    /// Edit a file with malformed IDs, wrong hashes or trailing bytes
    ///
    /// Files with findings of `offload verify` are refused otherwise. With this option each such finding is a warning.
    /// Damage that hides where something lies is always refused.
    #[arg(long)]
    pub(super) allow_findings: bool,
}

/// The option of commands that can leave a part of a file as it is.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct Uneditable {
    /// Leave device code that cannot be edited as it is
    ///
    /// An edit that would change NVIDIA fatbinaries, or device code in Mach-O files, WebAssembly modules or LLVM bitcode,
    /// is refused otherwise. With this option everything else is edited, and a note tells what stays.
    #[arg(long)]
    pub(crate) allow_uneditable: bool,
}
