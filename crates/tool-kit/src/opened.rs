//! Inputs as they are opened: files, and bounded copies of what can be read only once.

use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, IsTerminal, Read, Seek, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::directory::Held;
use crate::permissions::NewPermissions;
use crate::positioned::Positioned;
use crate::remote::{Remote, is_url};
use crate::special::{is_device, is_null, is_null_device, require_regular};
use crate::stamp::Stamp;
use crate::stop::Stop;
use crate::{scratch, standard, style};

/// The first bytes of a file that are read at once: all of a small one.
const HEAD: u64 = 32 << 10;
/// The same of a file on a server: those of the first request.
const FETCHED: u64 = 16 << 10;

/// An input that has a size and can be read from any place: a file that a command opens once.
pub struct Opened {
    /// The file.
    pub file: File,
    metadata: Metadata,
    permissions: NewPermissions,
    /// `true` if its path leads to the file again.
    has_path: bool,
    /// A file on a server: `file` is empty.
    remote: Option<Remote>,
    /// The bytes, if a program holds them: `file` is empty.
    bytes: Option<SharedBytes>,
    /// `true` unless it is a copy of a pipe, in which nobody looks for a package.
    may_be_package: bool,
    /// Its first bytes.
    head: Vec<u8>,
    stop: Stop,
}

/// Bytes in memory that a program holds.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A file without a path, which a program holds.
#[derive(Clone)]
pub enum Contents {
    /// Bytes in memory, which are not copied.
    Bytes(SharedBytes),
    /// An open file, such as one that has no name.
    File(Arc<File>),
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contents::Bytes(bytes) => write!(f, "Bytes({})", (**bytes).as_ref().len()),
            Contents::File(file) => write!(f, "File({file:?})"),
        }
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("file", &self.file)
            .field("has_path", &self.has_path)
            .field("head", &self.head.len())
            .finish_non_exhaustive()
    }
}

/// Bound on what is copied of inputs that are not files.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct MaxInput {
    /// Limit the bytes read from standard input, a pipe or a URL (suffixes K, M, G)
    ///
    /// Standard input and pipes are copied to a temporary file. Regular files are not copied and have no limit. Each URL has the limit
    /// for itself.
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = parse_size, hide_short_help = true)]
    max_input: u64,
}

impl MaxInput {
    /// Returns the number of bytes.
    pub fn bytes(self) -> u64 {
        self.max_input
    }
}

impl Default for MaxInput {
    /// Returns the default of the option, which is the limit of tools without it.
    fn default() -> Self {
        MaxInput { max_input: 4 << 30 }
    }
}

impl Opened {
    /// Opens a file, and copies a pipe. `-` is standard input. Refuses devices, which may have no end.
    pub fn new(path: &Path, max: MaxInput) -> io::Result<Self> {
        if path.as_os_str() == "-" {
            return stdin(max);
        }
        if cfg!(windows) && is_null(path) {
            return Opened::copy(scratch::in_memory(COPY)?);
        }
        let metadata = fs::metadata(path).map_err(|error| not_there(path, error))?;
        if metadata.is_dir() {
            // Opening a directory can succeed.
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if is_device(&metadata) && !is_null_device(&metadata) {
            return Err(device());
        }
        let mut file = File::open(path)?;
        match file.metadata()? {
            metadata if metadata.is_file() => Opened::file(file, metadata, true),
            _ => Opened::copy(spool(&mut file, max)?),
        }
    }

    /// Opens a regular file only, without waiting.
    pub fn regular(path: &Path) -> io::Result<Self> {
        let file = open_regular(path)?;
        let metadata = file.metadata()?;
        Opened::file(file, metadata, true)
    }

    /// Opens a regular file below a directory that is held.
    pub fn below(directory: &Held, relative: &Path) -> io::Result<Self> {
        let file = directory.file(relative)?;
        let metadata = file.metadata()?;
        Opened::file(file, metadata, true)
    }

    /// Takes a file on a server with ranges. Only [`reader`](Self::reader) and [`part`](Self::part) have its bytes.
    pub fn of_remote(remote: Remote) -> io::Result<Self> {
        let empty = Opened::empty()?;
        Opened { remote: Some(remote), may_be_package: true, ..empty }.with_head()
    }

    /// Takes a file that a program holds. Only [`reader`](Self::reader) and [`part`](Self::part) have its bytes.
    pub fn of_contents(contents: &Contents) -> io::Result<Self> {
        let opened = match contents {
            Contents::Bytes(bytes) => Opened { bytes: Some(Arc::clone(bytes)), ..Opened::empty()? },
            Contents::File(file) => {
                let metadata = file.metadata()?;
                Opened::unread(file.try_clone()?, metadata, false)
            }
        };
        Opened { may_be_package: true, ..opened }.with_head()
    }

    /// Copies a file from a server without ranges.
    pub fn of_server(from: &mut impl Read, max: MaxInput) -> io::Result<Self> {
        Ok(Opened { may_be_package: true, ..Opened::copy(spool(from, max)?)? })
    }

    /// Takes the contents of the file, decompressed, in a temporary file.
    pub fn decompressed(&self, contents: File) -> io::Result<Self> {
        let (permissions, may_be_package) = (self.permissions, self.may_be_package);
        Ok(Opened { may_be_package, permissions, ..Opened::copy(contents)? })
    }

    fn file(file: File, metadata: Metadata, has_path: bool) -> io::Result<Self> {
        let permissions = NewPermissions::of_input(&metadata);
        Opened { permissions, ..Opened::unread(file, metadata, has_path) }.with_head()
    }

    fn copy(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Opened::unread(file, metadata, false).with_head()
    }

    /// Returns an empty file, in place of bytes that lie elsewhere.
    fn empty() -> io::Result<Self> {
        let file = scratch::in_memory(COPY)?;
        let metadata = file.metadata()?;
        Ok(Opened::unread(file, metadata, false))
    }

    fn unread(file: File, metadata: Metadata, has_path: bool) -> Self {
        let (permissions, head, stop) = (NewPermissions::PLAIN, Vec::new(), Stop::of_thread());
        let (remote, bytes, may_be_package) = (None, None, has_path);
        Opened { file, metadata, permissions, has_path, remote, bytes, may_be_package, head, stop }
    }

    fn with_head(mut self) -> io::Result<Self> {
        let most = if self.remote.is_some() { FETCHED } else { HEAD }.min(self.len());
        // So that it is read at once.
        let mut head = Vec::with_capacity(usize::try_from(most).unwrap_or_default());
        self.part(&(0..most)).read_to_end(&mut head)?;
        self.head = head;
        Ok(self)
    }

    /// Returns a reader of the file from its start. Its first bytes are read already.
    pub fn reader(&self) -> Positioned<'_> {
        let whole = self.part(&(0..self.len()));
        // All bytes of a program are at hand already.
        if self.bytes.is_some() { whole } else { whole.with_head(&self.head) }
    }

    /// Returns a reader of a part of the file.
    pub fn part(&self, range: &Range<u64>) -> Positioned<'_> {
        let part = match (&self.remote, &self.bytes) {
            (Some(remote), _) => Positioned::of_ranges(&remote.ranges, range),
            (None, Some(bytes)) => Positioned::of_bytes(within((**bytes).as_ref(), range)),
            (None, None) => Positioned::of_range(&self.file, range),
        };
        part.until(&self.stop)
    }

    /// Returns the length of the file in bytes.
    #[allow(clippy::len_without_is_empty, reason = "the length of a file, as `Metadata` has it")]
    pub fn len(&self) -> u64 {
        match (&self.remote, &self.bytes) {
            (Some(remote), _) => remote.ranges.len(),
            (None, Some(bytes)) => (**bytes).as_ref().len() as u64,
            (None, None) => self.metadata.len(),
        }
    }

    /// Returns the file on a server with ranges; `None` for another one.
    pub fn remote(&self) -> Option<&Remote> {
        self.remote.as_ref()
    }

    /// Returns the first bytes of the file: all of a small one.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the file's data from when it was opened.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns the file as it was when it was opened.
    pub fn stamp(&self) -> Stamp {
        Stamp::new(&self.metadata)
    }

    /// Fails if the file was written to since it was opened.
    pub fn check(&self) -> io::Result<()> {
        self.stamp().check(&self.file)
    }

    /// Permissions of new files that are made of the input. A pipe has none to go by.
    pub fn permissions(&self) -> NewPermissions {
        self.permissions
    }

    /// Returns whether packages are looked into: copies of pipes are not.
    pub fn may_be_package(&self) -> bool {
        self.may_be_package
    }

    /// Returns whether the path can open the same file again, so that it need not stay open.
    pub fn has_path(&self) -> bool {
        self.has_path
    }
}

/// Returns a range of bytes; no bytes for one that ends after them.
fn within<'b>(bytes: &'b [u8], range: &Range<u64>) -> &'b [u8] {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    bytes.get(place(range.start)..place(range.end)).unwrap_or_default()
}

/// Opens standard input: itself if it is a file at its start, else a copy of the rest.
fn stdin(max: MaxInput) -> io::Result<Opened> {
    let mut file = standard::input()?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if metadata.is_file() && file.stream_position()? == 0 {
        return Opened::file(file, metadata, false);
    }
    if is_device(&metadata) && !is_null_device(&metadata) && !file.is_terminal() {
        return Err(device());
    }
    Opened::copy(spool(&mut file, max)?)
}

fn device() -> io::Error {
    io::Error::other("is a device: expected a file or a pipe")
}

/// The contents of temporary files here.
const COPY: &str = "a copy of the input";

/// The largest input that is copied to memory.
const SMALL: u64 = 64 << 10;

fn spool(from: &mut impl Read, MaxInput { max_input }: MaxInput) -> io::Result<File> {
    let mut first = Vec::new();
    let mut input = from.take(max_input);
    (&mut input).take(SMALL + 1).read_to_end(&mut first)?;
    let mut file = match first.len() as u64 {
        0..=SMALL => scratch::in_memory(COPY)?,
        _ => scratch::file(COPY)?,
    };
    let copied = file.write_all(&first).and_then(|()| io::copy(&mut input, &mut file));
    copied.map_err(|error| scratch::copying(COPY, error))?;
    // Asked at the limit only: a terminal would have to end once more.
    if input.limit() == 0 && io::copy(&mut input.into_inner().take(1), &mut io::sink())? > 0 {
        let limit = style::size(max_input);
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("exceeds the limit of {limit} for standard input and pipes: use a file"),
        ));
    }
    file.rewind()?;
    Ok(file)
}

/// Returns the error for a path that leads nowhere: a URL is not a path.
fn not_there(path: &Path, error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::NotFound && is_url(path) {
        let text = "is a URL: expected a file; download it first";
        return io::Error::new(io::ErrorKind::NotFound, text);
    }
    error
}

/// Opens a regular file. A pipe is not waited for, nor a device opened: an archive must not make us do that.
pub fn open_regular(path: &Path) -> io::Result<File> {
    require_regular(&fs::metadata(path).map_err(|error| not_there(path, error))?)?;
    let file = open_at_once(path)?;
    // Something else may have come in its place.
    require_regular(&file.metadata()?)?;
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

/// Returns a number of bytes, with a binary suffix.
pub fn parse_size(text: &str) -> Result<u64, String> {
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
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn contents_of_a_program_are_read_as_a_whole_and_in_parts() {
        let bytes: Vec<u8> = (0..251).cycle().take(3 << 15).collect();
        let head = usize::try_from(HEAD).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        for contents in [Contents::Bytes(Arc::new(bytes.clone())), Contents::File(Arc::new(file))] {
            let opened = Opened::of_contents(&contents).unwrap();
            let (mut whole, mut part) = (Vec::new(), Vec::new());
            opened.reader().read_to_end(&mut whole).unwrap();
            opened.part(&(HEAD - 7..HEAD + 7)).read_to_end(&mut part).unwrap();
            assert!(whole == bytes && part == bytes[head - 7..][..14], "{contents:?}");
            assert_eq!((opened.len(), opened.head()), (3 << 15, &bytes[..head]));
        }
    }

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
