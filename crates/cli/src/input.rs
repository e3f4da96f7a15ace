//! Opening what the command line names.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use fat_object::{ReadSeek, Summary, Visitor};

use crate::opened::{MaxInput, Opened};
use crate::parallel::Threads;
use crate::positioned::Positioned;

/// Walks the file at a path, or standard input for `-`; an error if it is another file at the end.
pub(crate) fn walk(
    path: &Path,
    max: MaxInput,
    options: &fat_object::Options,
    threads: Threads,
    visitor: &mut dyn Visitor,
) -> io::Result<Summary> {
    walk_open(&open_sized(path, max)?, options, threads, visitor)
}

/// Walks a file that the visitor may read as well, wherever that leaves it.
pub(crate) fn walk_open(
    file: &File,
    options: &fat_object::Options,
    threads: Threads,
    visitor: &mut dyn Visitor,
) -> io::Result<Summary> {
    let (stamp, file_at) = (Stamp::of(file)?, Positioned::new(file));
    let summary = fat_object::walk_with_threads(&file_at, threads.for_walks(), options, visitor)?;
    stamp.check(file)?;
    Ok(summary)
}

/// A file at one time: which one it is, and whether it was written to since, as far as sizes and times tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    size: u64,
    /// Seconds and nanoseconds.
    modified: (i128, i128),
    /// Device and number, where files have them.
    file: (i128, i128),
}

impl Stamp {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        Ok(Stamp::new(&file.metadata()?))
    }

    #[cfg(unix)]
    fn new(metadata: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Stamp::from_parts(
            metadata.size(),
            (metadata.mtime(), metadata.mtime_nsec()),
            (metadata.dev(), metadata.ino()),
        )
    }

    /// From numbers as the system has them: their types differ, and some systems take negative ones for large ones.
    #[cfg(unix)]
    pub(crate) fn from_parts<T: Into<i128>, N: Into<i128>>(
        size: impl Into<i128>,
        (seconds, nanoseconds): (T, N),
        (device, number): (impl Into<i128>, impl Into<i128>),
    ) -> Self {
        fn unsigned(number: impl Into<i128>) -> i128 {
            number.into().rem_euclid(1 << 64)
        }
        Stamp {
            size: u64::try_from(unsigned(size)).unwrap_or(u64::MAX),
            modified: (unsigned(seconds), unsigned(nanoseconds)),
            file: (unsigned(device), unsigned(number)),
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn new(metadata: &fs::Metadata) -> Self {
        let modified = metadata.modified().ok();
        let since = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let since = since.unwrap_or_default();
        Stamp {
            size: metadata.len(),
            modified: (since.as_secs().into(), since.subsec_nanos().into()),
            file: (0, 0),
        }
    }

    /// Bytes of the file.
    pub(crate) fn size(self) -> u64 {
        self.size
    }

    /// An error if the file was written to since.
    pub(crate) fn check(self, file: &File) -> io::Result<()> {
        self.compare(Stamp::of(file)?)
    }

    /// As [`check`](Self::check), of the file that has this name now.
    pub(crate) fn check_at(self, path: &Path) -> io::Result<()> {
        self.compare(Stamp::new(&fs::metadata(path)?))
    }

    fn compare(self, now: Stamp) -> io::Result<()> {
        match now == self {
            true => Ok(()),
            false => Err(io::Error::other("the file was changed while it was read")),
        }
    }
}

/// Opens a file that can be read from any place and has a size: as it is, or, when it is a pipe or `-`, standard
/// input, copied to a temporary file.
pub(crate) fn open_sized(path: &Path, max: MaxInput) -> io::Result<File> {
    Opened::new(path, max).map(|opened| opened.file)
}

/// Whether it names what is empty and takes everything: `/dev/null`, and `NUL` on Windows, where files are asked what
/// devices do not know.
pub(crate) fn is_null(path: &Path) -> bool {
    path == Path::new("/dev/null") || cfg!(windows) && path.as_os_str().eq_ignore_ascii_case("nul")
}

/// The name used in messages.
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

/// As [`open_thin_member`], as the file that it is.
pub(crate) fn open_thin_file(archive: &Path, name: &[u8]) -> io::Result<File> {
    open_regular(&thin_member_path(archive, name))
}

/// Where the file lies that the thin archive at `archive` names.
pub(crate) fn thin_member_path(archive: &Path, name: &[u8]) -> PathBuf {
    archive.parent().unwrap_or(Path::new("")).join(path(name))
}

/// Opens a regular file. A pipe is not waited for, nor a device opened: an archive must not make us do that.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let is_regular = |metadata: &fs::Metadata| match metadata.file_type() {
        kind if kind.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        kind if !kind.is_file() => Err(io::Error::other("not a regular file")),
        _ => Ok(()),
    };
    is_regular(&fs::metadata(path)?)?;
    let file = open_at_once(path)?;
    // Something else may have come in its place.
    is_regular(&file.metadata()?)?;
    Ok(file)
}

/// Opens a file without waiting for somebody to write to it.
#[cfg(unix)]
fn open_at_once(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

#[cfg(not(unix))]
fn open_at_once(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// The path that the bytes of an argument or a member's name spell.
#[cfg(unix)]
pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// The path that the bytes of an argument or a member's name spell. What is no UTF-8 names no file here.
#[cfg(not(unix))]
pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

/// The bytes of an argument, as [`path`] takes them.
#[cfg(unix)]
pub(crate) fn bytes(argument: OsString) -> Vec<u8> {
    use std::os::unix::ffi::OsStringExt;
    argument.into_vec()
}

/// The bytes of an argument, as [`path`] takes them.
#[cfg(not(unix))]
pub(crate) fn bytes(argument: OsString) -> Vec<u8> {
    argument.to_string_lossy().into_owned().into_bytes()
}

/// The options that bound what is decompressed and copied, shared by the commands.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Limits {
    /// Most bytes of decompressed data held at one time (suffixes K, M, G)
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = parse_size)]
    max_decompressed: u64,
    /// Do not search host files for containers outside of device sections; faster
    ///
    /// By default every byte of a host file (ELF, PE, Mach-O, COFF, WebAssembly) that no device section accounts for
    /// is searched for bundles, offload binaries and fatbinaries. Containers found there are named by section and
    /// offset.
    #[arg(long)]
    no_scan: bool,
    #[command(flatten)]
    pub(crate) max_input: MaxInput,
}

impl Limits {
    pub(crate) fn options(&self) -> fat_object::Options {
        fat_object::Options::default()
            .with_max_decompressed(self.max_decompressed)
            .with_scan(!self.no_scan)
    }

    /// The same bound for a single compressed bundle.
    pub(crate) fn ccob(&self) -> ccob::Limits {
        ccob::Limits::default().with_max_uncompressed(self.max_decompressed)
    }
}

/// A number of bytes, with a binary suffix.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (text.get(..text.len() - 1), 10),
        Some(b'M' | b'm') => (text.get(..text.len() - 1), 20),
        Some(b'G' | b'g') => (text.get(..text.len() - 1), 30),
        _ => (Some(text), 0),
    };
    digits
        .and_then(|digits| digits.parse::<u64>().ok())
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "expected a number of bytes, such as 512M".to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes_have_binary_suffixes() {
        assert_eq!(parse_size("123"), Ok(123));
        assert_eq!(parse_size("2G"), Ok(2 << 30));
        assert_eq!(parse_size("4k"), Ok(4096));
        for bad in ["", "G", "-1", "1T", "99999999999G"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
