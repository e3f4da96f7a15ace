//! Compressed bundles, offload binaries and entries of fatbinaries that are decompressed only when the new file is written:
//! their headers tell all sizes.

use std::io::{self, Read as _, SeekFrom};
use std::ops::Range;

use bundle_format::text::is_text_bundle;
use byte_parts::ReadSeek;
use ccob::{Decompressed, ReadOptions};
use fat_object::{
    Error, ErrorKind, FileFormat, Location, Options, PathStep, decompress_offload_binary,
};

use nv_fatbin::{Compression, Entry};

use crate::SNIFF_LEN;
use crate::error::{Inside, Problem};
use crate::survey::survey_slice;

/// A compressed form of something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stored {
    Bundle,
    OffloadBinary,
    /// An entry of a fatbinary, whose header has other numbers when its code is not compressed.
    FatbinEntry,
}

/// Something compressed in the edited file.
#[derive(Clone, Debug)]
pub(crate) struct Decompress {
    /// Its place in the file.
    pub(crate) stored: Range<u64>,
    /// Bytes it holds, as its header says; of an entry of a fatbinary, those of the new entry.
    pub(crate) size: u64,
    pub(crate) form: Stored,
    /// `true` if it lies in a file of its own, with no other.
    pub(crate) alone: bool,
    /// The containers around it, itself the last.
    pub(crate) path: Vec<PathStep>,
    /// The most that may be decompressed of what lies in it.
    pub(crate) max: u64,
    /// `true` if something may be wrong with it: its hash, and what hides nothing.
    pub(crate) allow_findings: bool,
}

impl Decompress {
    /// Decompresses all contents and verifies their hash.
    pub(crate) fn read(&self, input: &mut (impl ReadSeek + ?Sized)) -> io::Result<Vec<u8>> {
        self.read_growing(input, &mut |_| {})
    }

    /// Decompresses all contents. Calls `grown` with the data that exist so far, which are not verified yet.
    pub(crate) fn read_growing(
        &self,
        input: &mut (impl ReadSeek + ?Sized),
        grown: &mut dyn FnMut(&[u8]),
    ) -> io::Result<Vec<u8>> {
        let len = self.stored.end - self.stored.start;
        input.seek(SeekFrom::Start(self.stored.start))?;
        let mut stored = Vec::new();
        let room = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        stored.try_reserve_exact(room).map_err(|_| io::ErrorKind::OutOfMemory)?;
        input.take(len).read_to_end(&mut stored)?;
        if stored.len() < room {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, Problem::input_changed()));
        }
        let refused = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        if self.form == Stored::FatbinEntry {
            let entry = self.entry(&stored).map_err(refused)?;
            grown(&entry);
            return Ok(entry);
        }
        if self.form == Stored::OffloadBinary {
            let data = decompress_offload_binary(&stored, self.size)
                .map_err(|error| refused(self.damaged(error)))?;
            if data.len() as u64 != self.size {
                return Err(refused(Problem::input_changed()));
            }
            self.check_contents(&data).map_err(refused)?;
            grown(&data);
            return Ok(data);
        }
        let options = ReadOptions::default().with_max_decompressed(self.size);
        let options = options.with_verify_hash(!self.allow_findings);
        let Decompressed { data, .. } = ccob::decompress_growing(&stored, &options, grown)
            .map_err(|error| refused(self.damaged(error.into())))?;
        if data.len() as u64 != self.size {
            return Err(refused(Problem::input_changed()));
        }
        self.check_kind(&data).and_then(|()| self.check_contents(&data)).map_err(refused)?;
        Ok(data)
    }

    /// Decompresses the first bytes, without verifying them; none unless it is a bundle.
    pub(crate) fn prefix(&self, input: &mut dyn ReadSeek) -> io::Result<Vec<u8>> {
        /// Most bundles have their tables in less.
        const LEN: usize = 64 << 10;
        /// Zstandard and zlib hardly ever make data longer.
        const STORED: u64 = 256 << 10;
        if self.form != Stored::Bundle {
            return Ok(Vec::new());
        }
        input.seek(SeekFrom::Start(self.stored.start))?;
        let mut stored = Vec::new();
        let len = STORED.min(self.stored.end - self.stored.start);
        input.take(len).read_to_end(&mut stored)?;
        if (stored.len() as u64) < len {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, Problem::input_changed()));
        }
        let options = ReadOptions::default().with_max_decompressed(self.size);
        let prefix = ccob::decompress_prefix(&stored, LEN, &options);
        let damaged = |error: ccob::Error| self.damaged(error.into());
        prefix.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, damaged(error)))
    }

    fn damaged(&self, error: Error) -> Problem {
        // As a walk says it, what is damaged is told by its place in the containers around it.
        let around = self.path.split_last().map_or(&[][..], |(_, around)| around);
        Problem::damaged(around, Location::File(self.stored.start), error)
    }

    /// Returns the entry of a fatbinary with its code as it is.
    fn entry(&self, stored: &[u8]) -> Result<Vec<u8>, Problem> {
        let entry = Entry::parse(stored, 0, 0, stored.len() as u64);
        let entry = entry.and_then(|entry| entry.stored_as(Compression::None, self.size));
        let entry = entry.map_err(|error| {
            Problem::damaged_at(&self.path, Location::File(self.stored.start), error)
        })?;
        if entry.len() as u64 == self.size { Ok(entry) } else { Err(Problem::input_changed()) }
    }

    /// Checks that the contents are as sound as an edited file must be.
    pub(crate) fn check_contents(&self, data: &[u8]) -> Result<(), Problem> {
        let options = Options::default().with_max_decompressed(self.max);
        let found = survey_slice(data, &options).and_then(|contents| {
            let format = contents.format;
            // Bytes after the bundle would hide what follows it, once it is not compressed.
            let mut refused = contents.findings.into_iter().filter(|finding| {
                !self.allow_findings || finding.error().kind() == ErrorKind::TrailingData
            });
            match refused.next() {
                _ if !format.is_container() => Err(Problem::holds_no_bundle(&self.path, format)),
                Some(finding) => Err(finding.into()),
                None => Ok(()),
            }
        });
        found.map_err(|error| match error {
            Problem { path, inside: Some(Inside::Damage(location, error)), .. } => {
                let path: Vec<_> = self.path.iter().cloned().chain(path).collect();
                let location = match location {
                    Location::File(at) => Location::Decompressed(at),
                    elsewhere => elsewhere,
                };
                Problem::damaged(&path, location, error)
            }
            error => error,
        })
    }

    /// Checks by their first bytes that the contents may replace the container.
    pub(crate) fn check_kind(&self, data: &[u8]) -> Result<(), Problem> {
        let head = data.get(..SNIFF_LEN).unwrap_or(data);
        match FileFormat::sniff(head) {
            FileFormat::Bundle if is_text_bundle(head) && !self.alone => {
                Err(Problem::text_not_alone(&self.path))
            }
            FileFormat::Bundle => Ok(()),
            format => Err(Problem::holds_no_bundle(&self.path, format)),
        }
    }
}
