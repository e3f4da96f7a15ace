//! Archives of device code.
//!
//! Offloading compilers put device objects into static archives that the linkers for devices read like any other:
//! `ar` archives with an index of symbols. [`write_archive`] writes one, byte for byte as LLVM 22's tools do on
//! Linux: the GNU variant, deterministic (no times, owners or permissions of the machine).
//!
//! ```text
//! !<arch>\n
//! /      symbol index: count, offsets of members, names     when a member is an object
//! //     names that are too long for a header               when there are such names
//! NAME/  60 bytes: name, 0, 0, 0, 644, size                 then the member, padded to an even size
//! ...
//! ```
//!
//! ```
//! use hda_archive::{Member, write_archive};
//!
//! let mut archive = Vec::new();
//! write_archive(&mut archive, vec![Member::new("kernels.o", b"not an object".to_vec())])?;
//! assert!(archive.starts_with(b"!<arch>\nkernels.o/      0  "));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The index has the symbols of ELF, COFF and Mach-O objects. LLVM bitcode has symbols as well, which this version
//! does not read: members of bitcode are archived, but are not in the index. A linker that looks members up by the
//! index does not find those; `llvm-ranlib` makes an index that has them.

#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

mod symbols;

use std::fmt;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;

use ar_archive_writer::{ArchiveKind, NewArchiveMember, ObjectReader, write_archive_to_stream};

/// A member to be written.
pub struct Member {
    name: String,
    data: Vec<u8>,
}

impl Member {
    /// A member with a name, which may be a path, and its bytes. Several members may have one name.
    #[must_use]
    pub fn new(name: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Member { name: name.into(), data: data.into() }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The bytes.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("name", &self.name).field("size", &self.data.len()).finish()
    }
}

/// Only the symbols are asked for where the variant is GNU.
static READER: ObjectReader = ObjectReader {
    get_symbols: symbols::defined,
    is_64_bit_object_file: |_| false,
    is_ec_object_file: |_| false,
    is_any_arm64_coff: |_| false,
    get_xcoff_member_alignment: |_| 2,
};

/// Writes an archive of the members, in their order.
///
/// When a member starts beyond 4 GiB the index has offsets of 64 bits (`/SYM64/`), as in LLVM.
///
/// # Errors
///
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for a name with a line break or a NUL, which would make another
/// archive than meant, or a member of more than 9,999,999,999 bytes, more than a header can say; what writing
/// returns.
pub fn write_archive<W: Write>(
    out: W,
    members: impl IntoIterator<Item = Member>,
) -> io::Result<()> {
    let mut new_members = Vec::new();
    let mut objects = false;
    let mut size: u64 = 0;
    for Member { name, data } in members {
        let data_size = u64::try_from(data.len()).unwrap_or(u64::MAX);
        let fits = data_size <= 9_999_999_999;
        if name.contains(['\n', '\0']) || !fits {
            let what = if fits { "has a name with a line break or nul" } else { "is too large" };
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("archive member \"{}\" {what}", name.escape_debug()),
            ));
        }
        objects |= symbols::is_object(&data);
        size = size.saturating_add(data_size).saturating_add(1024);
        new_members.push(NewArchiveMember::new(data, &READER, name));
    }
    // Without a single object LLVM writes no index; ar_archive_writer writes an empty one of this size, which is
    // left out. Archives beyond 4 GiB have another kind of index and keep the empty one.
    let no_index = !objects && !new_members.is_empty() && size < 1 << 32;
    let mut out = Stream { out, position: 0, skip: if no_index { 8..8 + 68 } else { 0..0 } };
    write_archive_to_stream(&mut out, &new_members, ArchiveKind::Gnu, false, None)?;
    out.flush()
}

/// A writer that knows how far it is, which is all the seeking that a GNU archive needs.
struct Stream<W> {
    out: W,
    position: u64,
    /// What is not written.
    skip: Range<u64>,
}

impl<W: Write> Write for Stream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let until = |place: u64| usize::try_from(place - self.position).unwrap_or(usize::MAX);
        let written = if self.skip.contains(&self.position) {
            bytes.len().min(until(self.skip.end))
        } else {
            let end = match self.position < self.skip.start {
                true => bytes.len().min(until(self.skip.start)),
                false => bytes.len(),
            };
            self.out.write(bytes.get(..end).unwrap_or_default())?
        };
        self.position += u64::try_from(written).unwrap_or(u64::MAX);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W> Seek for Stream<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match to {
            SeekFrom::Current(0) => Ok(self.position),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}
