//! A file as it is at one time.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// A file at one time: which one it is, and whether it was written to since, by its size and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    size: u64,
    /// Seconds and nanoseconds.
    modified: (u64, u64),
    /// Device and number, where files have them.
    file: (u64, u64),
}

impl Stamp {
    /// Takes the stamp of an open file.
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Stamp::new(&file.metadata()?))
    }

    /// Takes the stamp of a file.
    #[cfg(unix)]
    pub fn new(metadata: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Stamp::from_parts(
            metadata.size(),
            (metadata.mtime(), metadata.mtime_nsec()),
            (metadata.dev(), metadata.ino()),
        )
    }

    /// Returns a stamp of the system's numbers: their types differ, and some systems return large ones as negative. None has
    /// more than 64 bits.
    #[cfg(unix)]
    pub fn from_parts<T: Into<i128>, N: Into<i128>>(
        size: impl Into<i128>,
        (seconds, nanoseconds): (T, N),
        (device, number): (impl Into<i128>, impl Into<i128>),
    ) -> Self {
        fn unsigned(number: impl Into<i128>) -> u64 {
            let [a, b, c, d, e, f, g, h, ..] = number.into().to_le_bytes();
            u64::from_le_bytes([a, b, c, d, e, f, g, h])
        }
        Stamp {
            size: unsigned(size),
            modified: (unsigned(seconds), unsigned(nanoseconds)),
            file: (unsigned(device), unsigned(number)),
        }
    }

    /// Takes the stamp of a file.
    #[cfg(not(unix))]
    pub fn new(metadata: &fs::Metadata) -> Self {
        let modified = metadata.modified().ok();
        let since = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        // Not every file system has times.
        let since = since.unwrap_or_default();
        Stamp {
            size: metadata.len(),
            modified: (since.as_secs(), since.subsec_nanos().into()),
            file: (0, 0),
        }
    }

    /// Returns the size of the file in bytes.
    pub fn size(self) -> u64 {
        self.size
    }

    /// Returns the device and the number of the file, which all of its names share; `None` where files have none.
    pub fn file(self) -> Option<(u64, u64)> {
        Some(self.file).filter(|file| *file != (0, 0))
    }

    /// Fails if the file was written to since.
    pub fn check(self, file: &File) -> io::Result<()> {
        self.compare(Stamp::of(file)?)
    }

    /// Checks as [`check`](Self::check) does, the file that has this name now.
    pub fn check_at(self, path: &Path) -> io::Result<()> {
        self.compare(Stamp::new(&fs::metadata(path)?))
    }

    fn compare(self, now: Stamp) -> io::Result<()> {
        if now == self {
            Ok(())
        } else {
            Err(io::Error::other("the file was changed while it was read"))
        }
    }
}
