//! Writing the binary layout: where everything goes, then the bytes.

use alloc::vec::Vec;
use core::fmt;
use core::iter::once;
use core::ops::Range;

use zerocopy::IntoBytes;

use crate::binary::MAGIC;
use crate::error::Error;
use crate::to_u64;
use crate::wire::{Descriptor, Header};

/// The alignment of code objects in the bundles of HIP, for [`Layout::new`]: 4096 bytes, for which Clang's driver asks
/// `clang-offload-bundler` (`-bundle-align=4096`).
pub const HIP_ALIGN: u64 = 4096;

/// The ID of the entry that the bundles of HIP start with: a host's, and without content. Clang 22 has this one whatever
/// the host, be it AArch64 or Windows.
///
/// ```
/// use bundle_format::{HIP_ALIGN, HIP_HOST_ID, Layout};
///
/// let device = "hipv4-amdgcn-amd-amdhsa--gfx90a";
/// let layout = Layout::new([(HIP_HOST_ID, 0), (device, 4)], HIP_ALIGN)?;
/// assert_eq!(layout.offset(1), Some(4096));
/// # Ok::<(), bundle_format::Error>(())
/// ```
pub const HIP_HOST_ID: &str = "host-x86_64-unknown-linux-gnu-";

/// Where the parts of a binary bundle go, computed from IDs and sizes alone.
///
/// The bytes are those of clang-offload-bundler 22: entries in the order given, each code object
/// at the next multiple of the alignment, zeros in the gaps, nothing behind the last one. An
/// empty code object gets an offset like any other and no bytes.
///
/// IDs are written as given. They are neither checked nor made unique: see
/// [`EntryId`](crate::EntryId) and [`composition`](crate::composition). (With an ID there twice,
/// clang-offload-bundler 22 puts code objects elsewhere than it says; this is not copied.)
///
/// ```
/// use bundle_format::{Bundle, Layout};
///
/// # fn main() -> Result<(), bundle_format::Error> {
/// let entries = [
///     ("host-x86_64-unknown-linux-gnu-", 0),
///     ("hipv4-amdgcn-amd-amdhsa--gfx906", 4),
/// ];
/// let layout = Layout::new(entries, 4096)?;
/// assert_eq!((layout.offset(0), layout.offset(1)), (Some(4096), Some(4096)));
/// assert_eq!(layout.total_size(), 4100);
///
/// let bytes = layout.to_vec(&[b"", b"code"])?;
/// let bundle = Bundle::parse(&bytes)?;
/// let payload = bundle.entries().nth(1).and_then(|entry| entry.payload());
/// assert_eq!(payload, Some(&b"code"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Layout {
    header: Vec<u8>,
    /// Offset and size of each code object.
    places: Vec<(u64, u64)>,
    total_size: u64,
}

/// A part of the bundle, from [`Layout::pieces`]. Whoever writes needs to know all kinds: one more would be a new major
/// version of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Piece<'a> {
    /// These bytes: the bundle up to the end of its descriptors.
    Bytes(&'a [u8]),
    /// The code object of the entry with this index, as long as was laid out, be it empty.
    Payload(usize),
    /// So many zeros, at least one and less than the alignment.
    Zeros(u64),
}

impl Layout {
    /// Lays out entries with the given IDs and sizes in bytes. `align` is any number from 1 on,
    /// not only a power of two; for HIP it is [`HIP_ALIGN`].
    ///
    /// # Errors
    ///
    /// [`Error::ZeroAlignment`], [`Error::EmptyId`], and [`Error::OffsetOverflow`] when an entry
    /// would end beyond 2⁶⁴.
    pub fn new<Id: AsRef<[u8]>>(
        entries: impl IntoIterator<Item = (Id, u64)>,
        align: u64,
    ) -> Result<Self, Error> {
        if align == 0 {
            return Err(Error::ZeroAlignment);
        }
        let start = Header { magic: MAGIC, entry_count: 0.into() };
        let mut header = start.as_bytes().to_vec();
        let mut places = Vec::new();
        let mut ranges = Vec::new();
        for (id, size) in entries {
            let id = id.as_ref();
            if id.is_empty() {
                let (entry, offset) = (to_u64(places.len()), to_u64(header.len()));
                return Err(Error::EmptyId { entry, offset });
            }
            let descriptor =
                Descriptor { offset: 0.into(), size: size.into(), id_len: to_u64(id.len()).into() };
            let at = header.len();
            header.extend_from_slice(descriptor.as_bytes());
            ranges.push(at..header.len());
            header.extend_from_slice(id);
            places.push((0, size));
        }

        // Only now it is known where the descriptors end.
        let start = Header { magic: MAGIC, entry_count: to_u64(places.len()).into() };
        overwrite(&mut header, 0..size_of::<Header>(), start.as_bytes());
        let mut cursor = to_u64(header.len());
        for ((index, (offset, size)), range) in (0_u64..).zip(&mut places).zip(ranges) {
            *offset = cursor
                .checked_next_multiple_of(align)
                .ok_or(Error::OffsetOverflow { entry: index })?;
            cursor = offset.checked_add(*size).ok_or(Error::OffsetOverflow { entry: index })?;
            overwrite(&mut header, range, &offset.to_le_bytes());
        }
        Ok(Self { header, places, total_size: cursor })
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no entries at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Where the code object of entry `index` starts, in bytes from the start of the bundle;
    /// `None` without such an entry.
    #[must_use]
    pub fn offset(&self, index: usize) -> Option<u64> {
        self.places.get(index).map(|(offset, _)| *offset)
    }

    /// Length in bytes of the code object of entry `index`; `None` without such an entry.
    #[must_use]
    pub fn size(&self, index: usize) -> Option<u64> {
        self.places.get(index).map(|(_, size)| *size)
    }

    /// The bundle up to the end of its descriptors.
    #[must_use]
    pub fn header_bytes(&self) -> &[u8] {
        &self.header
    }

    /// Length of the whole bundle in bytes.
    #[must_use]
    pub fn total_size(&self) -> u64 {
        self.total_size
    }

    /// Everything to write, in order and without gaps. Each entry has its [`Piece::Payload`], also when it is empty.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> + Clone {
        let mut end = to_u64(self.header.len());
        let payloads = self.places.iter().enumerate().flat_map(move |(index, &(offset, size))| {
            let zeros = offset.saturating_sub(end);
            end = offset.saturating_add(size);
            let zeros = (zeros > 0).then_some(Piece::Zeros(zeros));
            zeros.into_iter().chain([Piece::Payload(index)])
        });
        once(Piece::Bytes(&self.header)).chain(payloads)
    }

    /// The whole bundle in memory. `payloads` are the code objects in the order of the entries.
    ///
    /// # Errors
    ///
    /// [`Error::PayloadCount`] and [`Error::PayloadSize`] when the code objects are not those
    /// that were laid out, [`Error::OutOfMemory`].
    pub fn to_vec(&self, payloads: &[&[u8]]) -> Result<Vec<u8>, Error> {
        if payloads.len() != self.places.len() {
            let (expected, found) = (to_u64(self.places.len()), to_u64(payloads.len()));
            return Err(Error::PayloadCount { expected, found });
        }
        for ((entry, (_, expected)), payload) in (0_u64..).zip(&self.places).zip(payloads) {
            let (expected, found) = (*expected, to_u64(payload.len()));
            if expected != found {
                return Err(Error::PayloadSize { entry, expected, found });
            }
        }
        let out_of_memory = Error::OutOfMemory { size: self.total_size };
        let mut bytes = Vec::new();
        match usize::try_from(self.total_size).map(|size| bytes.try_reserve_exact(size)) {
            Ok(Ok(())) => {}
            _ => return Err(out_of_memory),
        }
        for piece in self.pieces() {
            match piece {
                Piece::Bytes(header) => bytes.extend_from_slice(header),
                Piece::Payload(index) => {
                    bytes.extend_from_slice(payloads.get(index).copied().unwrap_or_default());
                }
                Piece::Zeros(count) => {
                    // What fits in total fits in parts.
                    let count = usize::try_from(count).unwrap_or_default();
                    bytes.resize(bytes.len().saturating_add(count), 0);
                }
            }
        }
        Ok(bytes)
    }

    /// Writes the whole bundle, and flushes it. `payloads` are read once each, in the order of the entries, and
    /// never held in memory as a whole. From file to file the kernel copies, where the platform can
    /// ([`std::io::copy`]).
    ///
    /// # Errors
    ///
    /// What reading and writing returns, and [`std::io::ErrorKind::InvalidInput`] with
    /// [`Error::PayloadCount`] or [`Error::PayloadSize`] inside when the code objects are not
    /// those that were laid out. By then a part of the bundle is written.
    #[cfg(feature = "std")]
    pub fn write_to<R: std::io::Read>(
        &self,
        mut writer: impl std::io::Write,
        payloads: impl IntoIterator<Item = R>,
    ) -> std::io::Result<()> {
        use std::io::{self, Read};

        let count = to_u64(self.places.len());
        let mut payloads = payloads.into_iter();
        for piece in self.pieces() {
            match piece {
                Piece::Bytes(header) => writer.write_all(header)?,
                Piece::Payload(index) => {
                    let (entry, expected) = (to_u64(index), self.size(index).unwrap_or(0));
                    let Some(mut payload) = payloads.next() else {
                        return Err(Error::PayloadCount { expected: count, found: entry }.into());
                    };
                    let found = io::copy(&mut payload.by_ref().take(expected), &mut writer)?;
                    // One more byte tells a payload that is too long.
                    let more = io::copy(&mut payload.take(1), &mut io::sink())?;
                    let found = found.saturating_add(more);
                    if found != expected {
                        return Err(Error::PayloadSize { entry, expected, found }.into());
                    }
                }
                Piece::Zeros(zeros) => {
                    io::copy(&mut io::repeat(0).take(zeros), &mut writer)?;
                }
            }
        }
        if payloads.next().is_some() {
            let found = count.saturating_add(1);
            return Err(Error::PayloadCount { expected: count, found }.into());
        }
        writer.flush()
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layout")
            .field("header_len", &self.header.len())
            .field("places", &self.places)
            .field("total_size", &self.total_size)
            .finish()
    }
}

/// Replaces the start of the range by `bytes`, which are no longer than it.
fn overwrite(target: &mut [u8], range: Range<usize>, bytes: &[u8]) {
    if let Some(target) = target.get_mut(range) {
        for (target, byte) in target.iter_mut().zip(bytes) {
            *target = *byte;
        }
    }
}
