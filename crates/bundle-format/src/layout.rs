//! The binary layout.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

#[cfg(feature = "std")]
use byte_parts::WriteError;
use byte_parts::{Part, Parts, Plan};

use crate::MAGIC;
use crate::error::{Error, Problem};
use crate::to_u64;
use crate::wire::{COUNT_AT, Descriptor};

/// The alignment of code objects in the bundles of HIP, for [`Layout::new`]: 4096 bytes, for which Clang's driver asks
/// `clang-offload-bundler` (`-bundle-align=4096`).
pub const HIP_ALIGN: u64 = 4096;

/// The ID of the entry that the bundles of HIP start with: a host's, and without content. Clang 22 uses this ID for
/// every host, including AArch64 and Windows.
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

/// The layout of a binary bundle, computed from IDs and sizes alone.
///
/// The bytes are those of clang-offload-bundler 22: entries in the order given, each code object at the next
/// multiple of the alignment, zeros in the gaps, nothing after the last one. An empty code object gets an offset
/// like any other and no bytes.
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
pub struct Layout {
    plan: Plan,
    header_len: u64,
    /// Offset of each code object.
    offsets: Vec<u64>,
}

impl Layout {
    /// Lays out entries with the given IDs and sizes in bytes. `align` is any number from 1 on,
    /// not only a power of two; for HIP it is [`HIP_ALIGN`].
    ///
    /// # Errors
    ///
    /// [`Layout`](crate::ErrorKind::Layout) for an alignment of 0 and when an entry would end beyond 2⁶⁴,
    /// [`Id`](crate::ErrorKind::Id) for an empty ID.
    pub fn new<Id: AsRef<[u8]>>(
        entries: impl IntoIterator<Item = (Id, u64)>,
        align: u64,
    ) -> Result<Self, Error> {
        if align == 0 {
            return Err(Problem::ZeroAlignment.into());
        }
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(&[0; 8]);
        let mut sizes = Vec::new();
        let mut ranges = Vec::new();
        for (id, size) in entries {
            let id = id.as_ref();
            if id.is_empty() {
                let (entry, offset) = (to_u64(sizes.len()), to_u64(header.len()));
                return Err(Problem::EmptyId { entry, offset }.into());
            }
            let at = header.len();
            Descriptor { offset: 0, size, id_len: to_u64(id.len()) }.write(&mut header);
            ranges.push(at..header.len());
            header.extend_from_slice(id);
            sizes.push(size);
        }

        // Only now it is known where the descriptors end.
        let count = to_u64(sizes.len()).to_le_bytes();
        overwrite(&mut header, COUNT_AT..COUNT_AT + count.len(), &count);
        let header_len = to_u64(header.len());
        let mut offsets = Vec::with_capacity(sizes.len());
        let mut end = header_len;
        for ((entry, size), range) in (0_u64..).zip(&sizes).zip(ranges) {
            let overflow = || Problem::OffsetOverflow { entry };
            let offset = end.checked_next_multiple_of(align).ok_or_else(overflow)?;
            end = offset.checked_add(*size).ok_or_else(overflow)?;
            overwrite(&mut header, range, &offset.to_le_bytes());
            offsets.push(offset);
        }
        let mut plan = Plan::new(sizes.iter().copied());
        plan.parts.push_bytes(&header);
        for ((index, size), offset) in sizes.into_iter().enumerate().zip(&offsets) {
            plan.parts.pad_to(*offset);
            plan.parts.push_input(index, 0..size);
        }
        Ok(Self { plan, header_len, offsets })
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Returns whether there are no entries at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Returns the offset of the code object of entry `index`, in bytes from the start of the bundle; `None`
    /// without such an entry.
    #[must_use]
    pub fn offset(&self, index: usize) -> Option<u64> {
        self.offsets.get(index).copied()
    }

    /// Returns the length in bytes of the code object of entry `index`; `None` without such an entry.
    #[must_use]
    pub fn size(&self, index: usize) -> Option<u64> {
        self.plan.sizes().get(index).copied()
    }

    /// Returns the bundle up to the end of its descriptors.
    #[must_use]
    pub fn header_bytes(&self) -> &[u8] {
        match self.parts().at(0) {
            Some((_, Part::Bytes(header))) => header,
            _ => &[],
        }
    }

    /// Returns the length of the whole bundle in bytes.
    #[must_use]
    pub fn total_size(&self) -> u64 {
        self.parts().size()
    }

    /// Returns the bundle as a list of parts, to be written or embedded. Inputs are the code objects, by the index of
    /// their entry.
    #[must_use]
    pub fn parts(&self) -> &Parts {
        &self.plan.parts
    }

    /// Returns the whole bundle in memory. `payloads` are the code objects in the order of the entries.
    ///
    /// # Errors
    ///
    /// [`Payload`](crate::ErrorKind::Payload) when the code objects are not those
    /// that were laid out, [`Memory`](crate::ErrorKind::Memory).
    pub fn to_vec(&self, payloads: &[&[u8]]) -> Result<Vec<u8>, Error> {
        Ok(self.plan.to_vec(payloads)?)
    }

    /// Writes the whole bundle, and flushes it. `payloads` are read once each, in the order of the entries, and
    /// never held in memory as a whole. From file to file the kernel copies, where the platform can
    /// ([`std::io::copy`]).
    ///
    /// # Errors
    ///
    /// Errors of reading and writing, and [`std::io::ErrorKind::InvalidInput`] with
    /// [`Payload`](crate::ErrorKind::Payload) inside when the code objects are not those that were laid out. By
    /// then a part of the bundle is written.
    #[cfg(feature = "std")]
    pub fn write_to<R: std::io::Read>(
        &self,
        writer: impl std::io::Write,
        payloads: impl IntoIterator<Item = R>,
    ) -> std::io::Result<()> {
        match self.plan.write_to(writer, payloads) {
            Err(WriteError::Input(error)) => Err(Error::from(error).into()),
            result => Ok(result?),
        }
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layout")
            .field("header_len", &self.header_len)
            .field("offsets", &self.offsets)
            .field("sizes", &self.plan.sizes())
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
