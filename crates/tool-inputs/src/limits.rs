//! The options that bound a walk, and the walk.

use std::io;

use fat_object::{Summary, Visitor};
use tool_kit::opened::{MaxInput, Opened, parse_size};
use tool_kit::parallel::Threads;
use tool_kit::remote::Remote;

/// Walks a file that the visitor may read as well, at any position.
///
/// # Errors
///
/// Errors of reading, and of the visitor; an error if the file was changed by the end.
pub fn walk_open(
    file: &Opened,
    (limits, options): (&Limits, &fat_object::Options),
    threads: Threads,
    visitor: &mut dyn Visitor,
) -> io::Result<Summary> {
    let threads = threads.for_walks();
    let options = limits.for_file(options, file.len());
    walk_remote(file.remote(), &options, |options| {
        let summary = fat_object::walk_with_threads(&file.reader(), threads, options, visitor)?;
        file.check()?;
        Ok(summary)
    })
}

/// Walks a file that may lie on a server: then without the search of bytes outside of device sections, unless that is asked for.
pub(crate) fn walk_remote(
    remote: Option<&Remote>,
    options: &fat_object::Options,
    walk: impl FnOnce(&fat_object::Options) -> io::Result<Summary>,
) -> io::Result<Summary> {
    let Some(remote) = remote.filter(|remote| !remote.scans()) else { return walk(options) };
    let summary = walk(&options.clone().with_scan(false))?;
    remote.add_unsearched(summary.unsearched);
    Ok(summary)
}

/// The options that bound threads, and what is decompressed and copied, shared by the commands.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Limits {
    #[command(flatten)]
    /// The threads that read files.
    pub threads: Threads,
    /// Limit decompressed data held at one time (default: 2G)
    ///
    /// One limit for all levels of packages, members and bundles, and for new members of a zip file. Threads that read
    /// files, or the members of a large zip file, have one each; threads that edit files share one. The suffixes are K, M
    /// and G. Files below 7M have a lower default: 256M, and 256 bytes for each byte of the file.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_decompressed: Option<u64>,
    /// Do not search host files for containers outside of device sections
    ///
    /// By default, every byte of a host file (ELF, PE, Mach-O, COFF, WebAssembly) outside of device sections is
    /// searched for bundles, offload binaries and fatbinaries. Containers found there are named by section and
    /// offset. This option is faster.
    #[arg(long)]
    no_scan: bool,
    #[command(flatten)]
    /// The most bytes of standard input and of pipes.
    pub max_input: MaxInput,
}

impl Limits {
    /// Returns the defaults of the options, for a tool without them.
    pub fn with_threads(threads: Threads) -> Self {
        Limits { threads, ..Limits::default() }
    }

    /// Returns the defaults of the options with this limit of decompressed data, for a tool without the others.
    pub fn with_max_decompressed(most: Option<u64>) -> Self {
        Limits { max_decompressed: most, ..Limits::default() }
    }

    /// Returns the options of a walk, for a file of any length.
    pub fn options(&self) -> fat_object::Options {
        fat_object::Options::default()
            .with_max_decompressed(self.held_of(u64::MAX))
            .with_scan(!self.no_scan)
    }

    /// Returns the most bytes that are held at one time beside a file of this length.
    pub fn held_of(&self, len: u64) -> u64 {
        let default = || gpu_packages::Options::default().held_of(len);
        self.max_decompressed.unwrap_or_else(default)
    }

    /// Returns the most bytes of a decompressed copy of a file of this length in a temporary file.
    pub fn copied_of(&self, len: u64) -> u64 {
        // A product of more than 64 bits does not limit.
        let most = || len.checked_mul(8).map_or(u64::MAX, |most| most.max(self.held_of(len)));
        self.max_decompressed.unwrap_or_else(most)
    }

    /// Returns the same options for a file of this length.
    pub fn for_file(&self, options: &fat_object::Options, len: u64) -> fat_object::Options {
        let held = self.held_of(len).min(options.max_decompressed());
        options.clone().with_max_decompressed(held)
    }

    /// Returns the options for a package of this length.
    pub fn for_package(&self, len: u64) -> gpu_packages::Options {
        gpu_packages::Options::default().with_max_held(self.held_of(len))
    }
}
