//! Archives whose members all lie in the input as they are.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};

use byte_parts::Part;
use byte_parts::ReadSeek;

use crate::device_archive::{DeviceArchive, Planned};
use crate::error::Error;
use crate::fingerprint::{Fingerprint, fingerprint_of};

/// As much is written at one time, when there is as much.
const CHUNK: usize = 1 << 18;

/// One of the archives of an [`Unbundling`](crate::Unbundling), written by copying from known places.
///
/// Nothing else of the input is read again, and copies of several archives can be written at the same time, each
/// with a reader of its own.
pub struct ArchiveCopy<'p> {
    archive: usize,
    device: &'p DeviceArchive,
    /// The plans of all archives.
    planned: &'p [Planned],
    allow_missing: bool,
}

impl<'p> ArchiveCopy<'p> {
    pub(crate) fn new(
        archive: usize,
        device: &'p DeviceArchive,
        planned: &'p [Planned],
        allow_missing: bool,
    ) -> Self {
        ArchiveCopy { archive, device, planned, allow_missing }
    }

    /// Writes the archive.
    ///
    /// Every entry must have the bytes that it had when the plan was made. If not, what was written is of no use.
    /// Other changes of the input are not noticed.
    ///
    /// # Errors
    ///
    /// [`NoCode`](crate::ErrorKind::NoCode) if the input has no code for the target, unless
    /// [that is allowed](crate::Unbundling::with_allow_missing); [`Changed`](crate::ErrorKind::Changed),
    /// [`Read`](crate::ErrorKind::Read), [`Write`](crate::ErrorKind::Write).
    pub fn write<R: Read + Seek, W: Write>(&self, mut input: R, out: W) -> Result<(), Error> {
        self.device.check(self.allow_missing)?;
        let input: &mut dyn ReadSeek = &mut input;
        let mut copier =
            Copier { archive: self.archive, input, out, chunk: vec![0; CHUNK], filled: 0 };
        let is_member = |planned: &Planned| planned.archives.binary_search(&self.archive).is_ok();
        let members = self.planned.iter().enumerate().filter(|(_, planned)| is_member(planned));
        // Empty ones have no part.
        let mut members = members.filter(|(_, planned)| planned.size > 0);
        for part in self.device.layout().parts().iter() {
            match part {
                Part::Bytes(bytes) => copier.put(bytes)?,
                // There are none: names and sizes have other padding.
                Part::Zeros(_) => {}
                Part::Input(_, _) => {
                    let Some((entry, planned)) = members.next() else { continue };
                    if !copier.copy(planned)? {
                        return Err(Error::changed(entry));
                    }
                }
            }
        }
        copier.flush()?;
        copier.out.flush().map_err(|source| Error::write(self.archive, source))
    }
}

impl fmt::Debug for ArchiveCopy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchiveCopy")
            .field("archive", &self.archive)
            .field("layout", self.device.layout())
            .finish_non_exhaustive()
    }
}

/// Reads into the very buffer that is written.
struct Copier<'i, W> {
    archive: usize,
    input: &'i mut dyn ReadSeek,
    out: W,
    chunk: Vec<u8>,
    filled: usize,
}

impl<W: Write> Copier<'_, W> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        for piece in bytes.chunks(CHUNK) {
            self.room(piece.len())?.copy_from_slice(piece);
            self.filled += piece.len();
        }
        Ok(())
    }

    /// Copies an entry. Returns whether it was as planned.
    fn copy(&mut self, planned: &Planned) -> Result<bool, Error> {
        let Some(offset) = planned.offset else {
            return Ok(false);
        };
        self.input.seek(SeekFrom::Start(offset))?;
        let mut fingerprint = Fingerprint::default();
        let mut left = planned.size;
        while left > 0 {
            let size = usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK));
            let Some(bytes) = self.read(size)? else {
                return Ok(false);
            };
            if planned.size == size as u64 {
                return Ok(fingerprint_of(bytes) == planned.fingerprint);
            }
            fingerprint.bytes(bytes);
            left -= size as u64;
        }
        Ok(fingerprint.finish() == (planned.size, planned.fingerprint))
    }

    /// Reads bytes, [`CHUNK`] at most; `None` when the input ends before.
    fn read(&mut self, size: usize) -> Result<Option<&[u8]>, Error> {
        self.room(size)?;
        let room = self.chunk.split_at_mut(self.filled).1.split_at_mut(size).0;
        match self.input.read_exact(room) {
            Ok(()) => {
                self.filled += size;
                Ok(Some(room))
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns `size` free bytes of the buffer, at most [`CHUNK`]. Writes its contents first if there is too little
    /// room.
    fn room(&mut self, size: usize) -> Result<&mut [u8], Error> {
        if self.chunk.len() - self.filled < size {
            self.flush()?;
        }
        Ok(self.chunk.split_at_mut(self.filled).1.split_at_mut(size).0)
    }

    fn flush(&mut self) -> Result<(), Error> {
        let archive = self.archive;
        let filled = self.chunk.split_at(self.filled).0;
        self.filled = 0;
        self.out.write_all(filled).map_err(|source| Error::write(archive, source))
    }
}
