//! Opening what the command line names.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use byte_parts::ReadSeek;
use fat_object::{Summary, Visitor};

use crate::opened::{MaxInput, Opened, open_regular, parse_size};
use crate::parallel::Threads;

/// Walks a file that the visitor may read as well, at any position; an error if it was changed by the end.
pub(crate) fn walk_open(
    file: &Opened,
    (limits, options): (&Limits, &fat_object::Options),
    threads: Threads,
    visitor: &mut dyn Visitor,
) -> io::Result<Summary> {
    let threads = threads.for_walks();
    let options = limits.for_file(options, file.metadata().len());
    let summary = fat_object::walk_with_threads(&file.reader(), threads, &options, visitor)?;
    file.check()?;
    Ok(summary)
}

/// Opens a file that can be read from any offset and has a size: the file itself, or a temporary copy of a pipe or of
/// standard input (`-`).
pub(crate) fn open_sized(path: &Path, max: MaxInput) -> io::Result<File> {
    Opened::new(path, max).map(|opened| opened.file)
}

/// Returns the name used in messages.
pub(crate) fn display(path: &Path) -> String {
    match path.as_os_str() == "-" {
        true => "<stdin>".to_owned(),
        false => path.display().to_string(),
    }
}

/// Opens the file that the thin archive at `archive` names: relative to the archive's directory.
pub(crate) fn open_thin_member(archive: &Path, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
    Ok(Box::new(open_thin_file(archive, name)?))
}

/// Opens the same file as [`open_thin_member`], with its own type.
pub(crate) fn open_thin_file(archive: &Path, name: &[u8]) -> io::Result<File> {
    open_regular(&thin_member_path(archive, name))
}

/// Returns the path of the file that the thin archive at `archive` names.
pub(crate) fn thin_member_path(archive: &Path, name: &[u8]) -> PathBuf {
    archive.parent().unwrap_or(Path::new("")).join(path(name))
}

/// Returns the path that the bytes of an argument or a member's name spell.
#[cfg(unix)]
pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// Returns the path that the bytes of an argument or a member's name spell. Text that is not UTF-8 cannot name a
/// file here.
#[cfg(not(unix))]
pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

/// Returns the bytes of an argument, as [`path`] takes them.
#[cfg(unix)]
pub(crate) fn bytes(argument: OsString) -> Vec<u8> {
    use std::os::unix::ffi::OsStringExt;
    argument.into_vec()
}

/// Returns the bytes of an argument, as [`path`] takes them.
#[cfg(not(unix))]
pub(crate) fn bytes(argument: OsString) -> Vec<u8> {
    argument.to_string_lossy().into_owned().into_bytes()
}

/// The options that bound what is decompressed and copied, shared by the commands.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Limits {
    /// Limit decompressed data held at one time (default: 2G)
    ///
    /// One limit for all levels of packages, members and bundles, and for new members of a zip file. Threads that read
    /// files, or the members of a large zip file, have one each. The suffixes are K, M and G. Files below 7M have a lower
    /// default: 256M, and 256 bytes for each byte of the file.
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
    pub(crate) max_input: MaxInput,
}

impl Limits {
    /// Returns the options of a walk, for a file of any length.
    pub(crate) fn options(&self) -> fat_object::Options {
        fat_object::Options::default()
            .with_max_decompressed(self.held_of(u64::MAX))
            .with_scan(!self.no_scan)
    }

    /// Returns the most bytes that are held at one time beside a file of this length.
    pub(crate) fn held_of(&self, len: u64) -> u64 {
        let default = || gpu_packages::Options::default().held_of(len);
        self.max_decompressed.unwrap_or_else(default)
    }

    /// Returns whether less may be held than with the default for large files, as of a file that is small.
    pub(crate) fn are_low(&self, len: u64) -> bool {
        self.held_of(len) < gpu_packages::Options::default().held_of(u64::MAX)
    }

    /// Returns the same options for a file of this length.
    pub(crate) fn for_file(&self, options: &fat_object::Options, len: u64) -> fat_object::Options {
        let held = self.held_of(len).min(options.max_decompressed());
        options.clone().with_max_decompressed(held)
    }

    /// Returns the options for a package of this length.
    pub(crate) fn for_package(&self, len: u64) -> gpu_packages::Options {
        gpu_packages::Options::default().with_max_held(self.held_of(len))
    }
}
