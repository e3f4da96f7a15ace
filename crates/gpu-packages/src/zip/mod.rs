//! Zip files: the central directory, members at random access, and checks.

mod added;
mod check;
mod deflate;
mod directory;
mod extra;
mod fields;
mod new;
mod reader;
mod rewrite;
mod wire;

use std::fmt;
use std::ops::Range;

use byte_parts::internal;
pub use deflate::NewContents;
pub(crate) use deflate::{BLOCK, WINDOW, deflate_block};
pub(crate) use directory::{MOST_LIKELY, SCRIPT, is_program};
pub use new::{NewZip, Storing};
pub use reader::ZipMemberReader;
pub use rewrite::{Rewrite, ZipEdit};
use wire::CentralRecord;
use zerocopy::FromBytes;

use crate::error::Error;

/// The central directory of a zip file.
///
/// It owns what it needs, so that threads can read members with readers of their own.
///
/// # Format
///
/// ```text
/// local header     PK 3 4, 30 bytes, name, extra fields     of each member, before its data
/// data descriptor  PK 7 8 (optional), CRC-32, sizes         after its data, if flag bit 3 is set
/// central record   PK 1 2, 46 bytes, name, extra, comment   of each member, in one table
/// end of central directory (zip64)  PK 6 6, 56 bytes        if a number needs more than 32 bits
/// its locator      PK 6 7, 20 bytes
/// end of central directory          PK 5 6, 22 bytes, comment
/// ```
#[derive(Clone)]
pub struct Zip {
    /// Length of the file.
    len: u64,
    /// Place that offsets count from.
    base: u64,
    /// Size of the program before it.
    program: u64,
    /// Place of the central directory.
    directory_at: u64,
    /// All bytes from the central directory to the end of the file.
    tail: Vec<u8>,
    /// Size of the central directory.
    directory_size: usize,
    ends: Ends,
    members: Vec<ZipMember>,
}

/// Places in the tail.
#[derive(Clone, Debug)]
struct Ends {
    /// The zip64 end of central directory.
    zip64: Option<usize>,
    /// Another one lies in it.
    has_two: bool,
    /// The end of central directory.
    end: usize,
    /// End of its comment.
    comment_end: usize,
}

/// A member of a [`Zip`], as the central directory describes it.
#[derive(Clone)]
pub struct ZipMember {
    name: Vec<u8>,
    made_by: u16,
    flags: u16,
    method: u16,
    crc32: u32,
    stored_size: u64,
    size: u64,
    attributes: u32,
    /// Place of the local header in the file.
    offset: u64,
    /// The central record, in the tail.
    record: Range<usize>,
}

impl fmt::Debug for Zip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zip").field("members", &self.members).finish_non_exhaustive()
    }
}

impl fmt::Debug for ZipMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZipMember")
            .field("name", &String::from_utf8_lossy(&self.name))
            .field("offset", &self.offset)
            .field("stored_size", &self.stored_size)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// The flag of encrypted members.
const ENCRYPTED: u16 = 1;
/// The flag of a data descriptor after the data.
const DESCRIPTOR: u16 = 8;
/// The flag of patch data.
const PATCHED: u16 = 0x20;

/// The most bytes of a path, on Linux.
const MAX_TARGET: u64 = 4095;

impl Zip {
    /// Returns the members, in the order of the central directory.
    #[must_use]
    pub fn members(&self) -> &[ZipMember] {
        &self.members
    }

    /// Returns for each member the place of its header and its data: up to the next member, or to the central directory. Members
    /// that share bytes have the same ones.
    ///
    /// ```
    /// # fn example(file: std::fs::File) -> Result<(), gpu_packages::Error> {
    /// let zip = gpu_packages::Zip::read(file)?;
    /// for (member, place) in zip.members().iter().zip(zip.places()) {
    ///     assert_eq!(member.offset(), place.start);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn places(&self) -> Vec<Range<u64>> {
        /// The most bytes of a local header with its name and extra fields.
        const HEADER: u64 = 30 + 2 * u16::MAX as u64;
        let mut starts: Vec<u64> = self.members.iter().map(|member| member.offset).collect();
        starts.sort_unstable();
        let place = |member: &ZipMember| {
            let next = starts.partition_point(|&start| start <= member.offset);
            let next = starts.get(next).copied().unwrap_or(self.directory_at);
            let most = HEADER.checked_add(member.stored_size);
            let end = most.and_then(|most| member.offset.checked_add(most));
            // Members may overlap.
            let least = member.offset.checked_add(member.stored_size).unwrap_or(next);
            let end = end.map_or(next, |end| end.min(next.max(least)));
            member.offset..end.min(self.directory_at)
        };
        self.members.iter().map(place).collect()
    }

    /// Returns the index of the first member with this name.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        self.members.iter().position(|member| member.name == name)
    }

    /// Returns the central record of a member, its extra fields and its comment.
    fn central(&self, member: &ZipMember) -> Result<(CentralRecord, &[u8], &[u8]), Error> {
        let record = self.tail.get(member.record.clone());
        let split = record.and_then(|record| {
            let (head, rest) = CentralRecord::read_from_prefix(record).ok()?;
            let (_, extra, comment) = head.split(rest)?;
            Some((head, extra, comment))
        });
        split.ok_or_else(|| Error::internal(internal!("a central record that was not read")))
    }

    /// Returns the sum of the sizes of all members, as the central directory has them: `u64::MAX` if they claim more.
    #[must_use]
    pub fn total_size(&self) -> u64 {
        self.members.iter().fold(0, |sum, member| sum.saturating_add(member.size))
    }

    /// Returns the length of the file.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.len
    }
}

impl ZipMember {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns the size of the contents in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the size of the data in the file in bytes.
    #[must_use]
    pub fn stored_size(&self) -> u64 {
        self.stored_size
    }

    /// Returns the CRC-32 of the contents.
    #[must_use]
    pub fn crc32(&self) -> u32 {
        self.crc32
    }

    /// Returns the compression method: 0 stored, 8 deflate.
    #[must_use]
    pub fn method(&self) -> u16 {
        self.method
    }

    /// Returns the place of the local header in the file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns whether the member is encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.flags & ENCRYPTED != 0
    }

    /// Returns the permissions and the file type of Unix, if the member has them.
    #[must_use]
    pub fn unix_mode(&self) -> Option<u32> {
        (self.made_by >> 8 == 3).then_some(self.attributes >> 16)
    }

    /// Returns whether the member is a directory.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.name.ends_with(b"/")
    }

    /// Returns whether the mode says that the member is a symbolic link, whose contents are its target. Some programs,
    /// pip among them, extract a regular file.
    #[must_use]
    pub fn is_symlink(&self) -> bool {
        self.unix_mode().is_some_and(|mode| mode & 0o170_000 == 0o120_000)
    }

    /// Returns whether the contents can be a target.
    pub(crate) fn may_be_target(&self) -> bool {
        (1..=MAX_TARGET).contains(&self.size)
    }
}
