//! The options that commands which edit files share.

use std::path::PathBuf;

use fat_edit::EditOptions;

use super::wishes::Wishes;
use tool_inputs::limits::Limits;
use tool_kit::destination::Destination;
use tool_kit::format::ListFormat;
use tool_kit::parallel::Threads;

/// Options of all commands that edit files.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    pub(crate) output: Destination,
    #[command(flatten)]
    pub(crate) host: Host,
    /// Compress packages at level N of their codec (default: as they were)
    ///
    /// gzip, bzip2 and zip: 1 to 9; xz: 0 to 9; zstd: 1 to 22. The option --level of compress is for device code.
    #[arg(long, value_name = "N")]
    pub(crate) package_level: Option<u32>,
    #[command(flatten)]
    /// Limits of memory and threads.
    pub limits: Limits,
}

impl Options {
    /// Returns options that permit no change of host files, for files in place unless there is an output.
    pub fn strict(
        output: Option<PathBuf>,
        (dry_run, format): (bool, ListFormat),
        limits: &Limits,
    ) -> Self {
        let in_place = output.is_none();
        Options {
            output: Destination { output, in_place, dry_run, format, ..Destination::default() },
            host: Host::default(),
            package_level: None,
            limits: limits.clone(),
        }
    }

    /// Allows edits of signed files, which lose their signatures.
    #[must_use]
    pub fn with_drop_signature(mut self, is_allowed: bool) -> Self {
        self.host.drop_signature = is_allowed;
        self
    }

    /// Returns whether the report is text with notes.
    pub fn has_notes(&self) -> bool {
        self.output.format.is_text()
    }

    /// Returns the same options, and writes nothing.
    pub fn dry(&self) -> Self {
        let mut options = self.clone();
        options.output.dry_run = true;
        options
    }

    /// Returns the options of the edit. Commands check for emptied containers themselves, with better messages.
    pub fn edit(&self) -> EditOptions {
        EditOptions::default()
            .with_grow(self.host.grow)
            .with_drop_signature(self.host.drop_signature)
            .with_allow_findings(self.host.allow_findings)
            .with_allow_empty(true)
            .with_remove_host(true)
            .with_threads(self.limits.threads.number())
    }

    /// Returns empty wishes of a command that can leave a part of a file as it is, and edits several at the same time.
    pub fn wishes(&self, uneditable: Uneditable, threads: Threads) -> Wishes {
        let edit = self.edit().with_threads(threads.number());
        Wishes::new(edit.with_allow_uneditable(uneditable.allow_uneditable))
    }
}

/// Permitted changes of the host file.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Host {
    /// Allow a linked file to grow; move device code that no longer fits to its end
    #[arg(long)]
    pub(crate) grow: bool,
    /// Allow editing a signed file; remove its signature
    #[arg(long)]
    pub(crate) drop_signature: bool,
    /// Allow editing a file with malformed IDs, wrong hashes or trailing bytes
    ///
    /// Without this option, a file with findings of `offload verify` is refused. With it, each finding is a
    /// warning. Damage that hides the position of a container is always refused.
    #[arg(long)]
    pub(crate) allow_findings: bool,
}

/// The option of commands that can leave a part of a file as it is.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Uneditable {
    /// Skip device code that cannot be edited
    ///
    /// Without this option, an edit that would change device code in Mach-O files, WebAssembly modules, LLVM bitcode
    /// or at places that only a scan finds is refused, except that fatbinaries there lose images. With it, everything
    /// else is edited, and a note names what is skipped.
    #[arg(long)]
    allow_uneditable: bool,
}

impl Uneditable {
    /// Such code is skipped.
    pub const SKIPPED: Self = Uneditable { allow_uneditable: true };
}

/// The option that says where in a file.
#[derive(clap::Args, Clone, Debug)]
pub struct Within {
    /// Edit only this container, from column IN of `offload ls`: bundle:1, member:a.o
    ///
    /// Repeatable: the second container lies in the first.
    #[arg(long = "in", value_name = "KIND:NAME")]
    pub(crate) steps: Vec<String>,
}
