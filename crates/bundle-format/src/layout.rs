//! The binary layout.

use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use byte_parts::Layout;

use crate::MAGIC;
use crate::error::{Error, ErrorKind};
use crate::to_u64;
use crate::wire::{COUNT_AT, Descriptor};

/// The alignment of code objects in the bundles of HIP, for [`layout`]: 4096 bytes, for which Clang's driver asks
/// `clang-offload-bundler` (`-bundle-align=4096`).
pub const HIP_ALIGN: u64 = 4096;

/// The ID of the entry that the bundles of HIP start with: a host's, and without content. Clang 22 uses this ID for
/// every host, including AArch64 and Windows.
///
/// ```
/// use bundle_format::{HIP_ALIGN, HIP_HOST_ID, layout};
///
/// let device = "hipv4-amdgcn-amd-amdhsa--gfx90a";
/// let layout = layout([(HIP_HOST_ID, 0), (device, 4)], HIP_ALIGN)?;
/// assert_eq!(layout.offset(1), Some(4096));
/// # Ok::<(), bundle_format::Error>(())
/// ```
pub const HIP_HOST_ID: &str = "host-x86_64-unknown-linux-gnu-";

/// Returns the layout of a binary bundle with entries of these IDs and sizes in bytes. Inputs of the layout are the code
/// objects, by the index of their entry. `align` is any number from 1 on, not only a power of two; for HIP it is
/// [`HIP_ALIGN`].
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
/// use bundle_format::{Bundle, layout};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let entries = [
///     ("host-x86_64-unknown-linux-gnu-", 0),
///     ("hipv4-amdgcn-amd-amdhsa--gfx906", 4),
/// ];
/// let layout = layout(entries, 4096)?;
/// assert_eq!((layout.offset(0), layout.offset(1)), (Some(4096), Some(4096)));
/// assert_eq!(layout.size(), 4100);
///
/// let bytes = layout.to_vec(&[b"", b"code"])?;
/// let bundle = Bundle::parse(&bytes)?;
/// let payload = bundle.entries().nth(1).and_then(|entry| entry.payload());
/// assert_eq!(payload, Some(&b"code"[..]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Layout`](crate::ErrorKind::Layout) for an alignment of 0 and when an entry would end beyond 2⁶⁴,
/// [`Id`](crate::ErrorKind::Id) for an empty ID.
pub fn layout<Id: AsRef<[u8]>>(
    entries: impl IntoIterator<Item = (Id, u64)>,
    align: u64,
) -> Result<Layout, Error> {
    if align == 0 {
        let message = "bundle alignment is 0, expected at least 1";
        return Err(Error::new(ErrorKind::Layout, message));
    }
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&[0; 8]);
    let mut sizes = Vec::new();
    let mut ranges = Vec::new();
    for (id, size) in entries {
        let id = id.as_ref();
        if id.is_empty() {
            return Err(Error::empty_id(to_u64(sizes.len()), to_u64(header.len())));
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
    let mut offsets = Vec::with_capacity(sizes.len());
    let mut end = to_u64(header.len());
    for ((entry, size), range) in (0_u64..).zip(&sizes).zip(ranges) {
        let overflow = || {
            let message = format!("bundle entry {entry} would end beyond the largest offset");
            Error::of_entry(ErrorKind::Layout, entry, message)
        };
        let offset = end.checked_next_multiple_of(align).ok_or_else(overflow)?;
        end = offset.checked_add(*size).ok_or_else(overflow)?;
        overwrite(&mut header, range, &offset.to_le_bytes());
        offsets.push(offset);
    }
    let mut layout = Layout::new(sizes.iter().copied());
    layout.parts.push_bytes(&header);
    for ((index, size), offset) in sizes.into_iter().enumerate().zip(offsets) {
        layout.parts.pad_to(offset);
        layout.push_input(index, 0..size);
    }
    Ok(layout)
}

/// Replaces the start of the range by `bytes`, which are no longer than it.
fn overwrite(target: &mut [u8], range: Range<usize>, bytes: &[u8]) {
    if let Some(target) = target.get_mut(range) {
        for (target, byte) in target.iter_mut().zip(bytes) {
            *target = *byte;
        }
    }
}
