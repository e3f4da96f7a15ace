//! The options that commands which edit files share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fat_edit::EditOptions;

use crate::limits::Limits;
use tool_kit::parallel::Threads;

/// Options of all commands that edit files.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(super) output: Output,
    #[command(flatten)]
    pub(super) host: Host,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    pub(crate) limits: Limits,
}

impl Options {
    /// Returns the options of the edit. Commands check for emptied containers themselves, with better messages.
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

/// The destination of the result.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Output {
    /// Write the result to OUT, or into it if it is a directory; - is standard output
    #[arg(short, long, value_name = "OUT", required_unless_present_any = ["in_place", "dry_run"])]
    pub(super) output: Option<PathBuf>,
    /// Replace the file itself, atomically
    ///
    /// Mode, owner and extended attributes are kept. Other hard links keep the old contents.
    #[arg(long, conflicts_with = "output")]
    pub(super) in_place: bool,
    /// Set the build tag of a wheel, such as 1gfx942
    ///
    /// The tag goes into the file WHEEL, and into the name of the wheel if OUT is a directory. Installers prefer a wheel
    /// with a build tag to one of the same version without.
    #[arg(long, value_name = "TAG", conflicts_with = "in_place")]
    pub(super) build_tag: Option<String>,
    /// Report what would be done, without writing anything
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print one JSON array of what was done to each file
    #[arg(long)]
    pub(super) json: bool,
}

impl Output {
    /// Returns a usage error that clap cannot find.
    pub(super) fn fault(&self, files: &[PathBuf]) -> Option<&'static str> {
        let is_dash = |path: &Path| path.as_os_str() == "-";
        if let Some(output) = &self.output
            && files.len() > 1
        {
            if !output.is_dir() {
                return Some(
                    "--output takes one FILE or is a directory; several are edited with --in-place",
                );
            }
            let names: BTreeSet<_> = files.iter().map(|file| file.file_name()).collect();
            if names.len() < files.len() {
                return Some("--output is a directory, and two FILEs have the same name");
            }
        }
        if self.in_place && files.iter().any(|path| is_dash(path)) {
            return Some("standard input cannot be edited in place");
        }
        if self.json && self.output.as_deref().is_some_and(is_dash) && !self.dry_run {
            return Some("--json and --output=- would both write to standard output");
        }
        None
    }

    /// Returns whether the new file goes to standard output.
    pub(super) fn is_stdout(&self) -> bool {
        !self.dry_run && self.output.as_deref() == Some(Path::new("-"))
    }
}

/// Permitted changes of the host file.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Host {
    /// Allow a linked file to grow; move device code that no longer fits to its end
    #[arg(long)]
    pub(super) grow: bool,
    /// Allow editing a signed file; remove its signature
    #[arg(long)]
    pub(super) drop_signature: bool,
    /// Allow editing a file with malformed IDs, wrong hashes or trailing bytes
    ///
    /// Without this option, a file with findings of `offload verify` is refused. With it, each finding is a
    /// warning. Damage that hides the position of a container is always refused.
    #[arg(long)]
    pub(super) allow_findings: bool,
}

/// The option of commands that can leave a part of a file as it is.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct Uneditable {
    /// Skip device code that cannot be edited
    ///
    /// Without this option, an edit that would change device code in Mach-O files, WebAssembly modules, LLVM bitcode
    /// or at places that only a scan finds is refused. With it, everything else is edited, and a note names what is
    /// skipped.
    #[arg(long)]
    pub(crate) allow_uneditable: bool,
}
