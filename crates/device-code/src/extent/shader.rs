//! Containers of DirectX shaders, whose headers state their sizes.

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Start of a container of DirectX shaders (LLVM, "DirectX Container").
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct DirectX {
    magic: [u8; 4],
    hash: [u8; 16],
    /// Version: 1.0.
    version: U32,
    /// Size in bytes of the container.
    size: U32,
    /// Number of parts.
    parts: U32,
    /// Offset of the first part; those of the others follow.
    first: U32,
}

/// Returns the size of a container of DirectX shaders that `head` starts and that lies in `available` bytes.
pub(crate) fn directx(head: &[u8], available: u64) -> Option<u64> {
    const HEADER: u64 = 32;
    const MOST_PARTS: u32 = 64;
    let (header, _) = DirectX::ref_from_prefix(head).ok()?;
    let (size, parts) = (u64::from(header.size), header.parts.get());
    let tables = HEADER.checked_add(u64::from(parts).checked_mul(4)?)?;
    let first = u64::from(header.first);
    let is_sound = header.version == 1
        && (1..=MOST_PARTS).contains(&parts)
        && tables <= size
        && first >= tables
        && first < size
        && size <= available;
    is_sound.then_some(size)
}
