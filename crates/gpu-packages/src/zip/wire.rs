//! The records of a zip file as they lie there, little-endian and unaligned (APPNOTE.TXT 6.3, section 4.3).

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Length in bytes of [`LocalHeader`].
pub(super) const LOCAL: usize = size_of::<LocalHeader>();
/// Length in bytes of [`CentralRecord`].
pub(super) const RECORD: usize = size_of::<CentralRecord>();
/// Length in bytes of [`Zip64End`].
pub(super) const ZIP64_END: usize = size_of::<Zip64End>();
/// Length in bytes of [`Zip64Locator`].
pub(super) const LOCATOR: usize = size_of::<Zip64Locator>();
/// Length in bytes of [`EndOfDirectory`].
pub(super) const END: usize = size_of::<EndOfDirectory>();

/// Fields of a member that both its local header and its central record have.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Fields {
    /// Version that is needed to read the member.
    pub(super) version: U16,
    pub(super) flags: U16,
    /// Compression method.
    pub(super) method: U16,
    /// Time and date of the last change, in the form of MS-DOS.
    pub(super) time: U32,
    pub(super) crc32: U32,
    /// Compressed size.
    pub(super) stored_size: U32,
    /// Uncompressed size.
    pub(super) size: U32,
    /// Length in bytes of the name.
    pub(super) name_len: U16,
    /// Length in bytes of the extra fields.
    pub(super) extra_len: U16,
}

/// Header before the data of a member; name and extra fields follow.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct LocalHeader {
    /// `PK 3 4`.
    pub(super) signature: [u8; 4],
    pub(super) fields: Fields,
}

/// Data descriptor with sizes of 32 bits, after the data of a member. `PK 7 8` may precede it.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Descriptor {
    pub(super) crc32: U32,
    /// Compressed size.
    pub(super) stored_size: U32,
    /// Uncompressed size.
    pub(super) size: U32,
}

/// Data descriptor with sizes of 64 bits.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Descriptor64 {
    pub(super) crc32: U32,
    /// Compressed size.
    pub(super) stored_size: U64,
    /// Uncompressed size.
    pub(super) size: U64,
}

/// Record of a member in the central directory; name, extra fields and comment follow.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct CentralRecord {
    /// `PK 1 2`.
    pub(super) signature: [u8; 4],
    /// Version of the writer, and its system.
    pub(super) made_by: U16,
    pub(super) fields: Fields,
    /// Length in bytes of the comment.
    pub(super) comment_len: U16,
    /// Volume where the member starts.
    pub(super) volume: U16,
    /// Internal attributes.
    pub(super) internal: U16,
    /// External attributes, with the mode of Unix.
    pub(super) attributes: U32,
    /// Offset of the local header.
    pub(super) offset: U32,
}

impl CentralRecord {
    /// Splits the bytes after it into name, extra fields, and comment with all that follows; `None` if some are missing.
    pub(super) fn split<'b>(&self, rest: &'b [u8]) -> Option<(&'b [u8], &'b [u8], &'b [u8])> {
        let (name, rest) = rest.split_at_checked(self.fields.name_len.get().into())?;
        let (extra, rest) = rest.split_at_checked(self.fields.extra_len.get().into())?;
        (rest.len() >= self.comment_len.get().into()).then_some((name, extra, rest))
    }
}

/// Start of an extra field; the data follow.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ExtraHeader {
    pub(super) tag: U16,
    /// Size in bytes of the data.
    pub(super) size: U16,
}

/// Zip64 end of central directory; data of programs may follow.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Zip64End {
    /// `PK 6 6`.
    pub(super) signature: [u8; 4],
    /// Size in bytes of what follows this number.
    pub(super) size: U64,
    /// Version of the writer, and its system.
    pub(super) made_by: U16,
    /// Version that is needed to read the file.
    pub(super) version: U16,
    /// Number of this volume.
    pub(super) volume: U32,
    /// Volume where the central directory starts.
    pub(super) directory_volume: U32,
    /// Number of records on this volume.
    pub(super) volume_count: U64,
    /// Number of records.
    pub(super) count: U64,
    /// Size in bytes of the central directory.
    pub(super) directory_size: U64,
    /// Offset of the central directory.
    pub(super) directory_offset: U64,
}

impl Zip64End {
    /// Returns the record of an empty directory.
    pub(super) fn new() -> Self {
        Zip64End {
            signature: *b"PK\x06\x06",
            size: (ZIP64_END as u64 - 12).into(),
            made_by: 45.into(),
            version: 45.into(),
            ..Zip64End::new_zeroed()
        }
    }

    /// Describes a directory of this many records, its size and its offset.
    pub(super) fn set(&mut self, count: u64, size: u64, offset: u64) {
        self.volume_count = count.into();
        self.count = count.into();
        self.directory_size = size.into();
        self.directory_offset = offset.into();
    }
}

/// Locator of the zip64 end of central directory.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Zip64Locator {
    /// `PK 6 7`.
    pub(super) signature: [u8; 4],
    /// Volume of the zip64 end of central directory.
    pub(super) volume: U32,
    /// Offset of the zip64 end of central directory.
    pub(super) offset: U64,
    /// Number of volumes.
    pub(super) volumes: U32,
}

impl Zip64Locator {
    /// Returns the locator of a record at this offset.
    pub(super) fn new(offset: u64) -> Self {
        let (signature, volumes) = (*b"PK\x06\x07", 1.into());
        Zip64Locator { signature, offset: offset.into(), volumes, ..Zip64Locator::new_zeroed() }
    }
}

/// End of central directory; a comment follows.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct EndOfDirectory {
    /// `PK 5 6`.
    pub(super) signature: [u8; 4],
    /// Number of this volume.
    pub(super) volume: U16,
    /// Volume where the central directory starts.
    pub(super) directory_volume: U16,
    /// Number of records on this volume.
    pub(super) volume_count: U16,
    /// Number of records.
    pub(super) count: U16,
    /// Size in bytes of the central directory.
    pub(super) directory_size: U32,
    /// Offset of the central directory.
    pub(super) directory_offset: U32,
    /// Length in bytes of the comment.
    pub(super) comment_len: U16,
}
