//! The binary layout.

use alloc::format;
use alloc::vec::Vec;

use byte_parts::Layout;
use zerocopy::IntoBytes;

use crate::MAGIC;
use crate::error::{Error, ErrorKind};
use crate::wire::{DESCRIPTOR_LEN, Descriptor, HEADER_LEN, Header};

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
    let entries: Vec<(Id, u64)> = entries.into_iter().collect();
    let count = entries.len() as u64;
    let mut header_len = HEADER_LEN;
    for (entry, (id, _)) in (0..).zip(&entries) {
        if id.as_ref().is_empty() {
            return Err(Error::empty_id(entry, header_len));
        }
        header_len += DESCRIPTOR_LEN + id.as_ref().len() as u64;
    }

    let mut header = Header { magic: MAGIC, count: count.into() }.as_bytes().to_vec();
    let mut offsets = Vec::with_capacity(entries.len());
    let mut end = header_len;
    for (entry, (id, size)) in (0..).zip(&entries) {
        let overflow = || {
            let message = format!("bundle entry {entry} would end beyond the largest offset");
            Error::of_entry(ErrorKind::Layout, entry, message)
        };
        let offset = end.checked_next_multiple_of(align).ok_or_else(overflow)?;
        end = offset.checked_add(*size).ok_or_else(overflow)?;
        let (id, size) = (id.as_ref(), (*size).into());
        let id_len = (id.len() as u64).into();
        let descriptor = Descriptor { offset: offset.into(), size, id_len };
        header.extend_from_slice(descriptor.as_bytes());
        header.extend_from_slice(id);
        offsets.push(offset);
    }
    let mut layout = Layout::new(entries.iter().map(|(_, size)| *size));
    layout.push_bytes(&header);
    for ((index, (_, size)), offset) in entries.iter().enumerate().zip(offsets) {
        layout.pad_to(offset);
        layout.push_input(index, 0..*size);
    }
    Ok(layout)
}
