//! Metal libraries and containers of DirectX shaders, whose headers state their sizes.

/// Returns the size of a container of DirectX shaders that `head` starts and that lies in `available` bytes: a magic, a hash of 16
/// bytes, the version 1.0, the size and the number of parts, with an offset for each of them (LLVM, "DirectX Container").
pub(crate) fn directx(head: &[u8], available: u64) -> Option<u64> {
    const HEADER: u64 = 32;
    const MOST_PARTS: u32 = 64;
    let (version, size, parts) =
        (u32_at(head, 20)?, u64::from(u32_at(head, 24)?), u32_at(head, 28)?);
    let tables = HEADER.checked_add(u64::from(parts).checked_mul(4)?)?;
    let first = u64::from(u32_at(head, 32)?);
    let is_sound = version == 1
        && (1..=MOST_PARTS).contains(&parts)
        && tables <= size
        && first >= tables
        && first < size
        && size <= available;
    is_sound.then_some(size)
}

/// Returns the size of a Metal library that `head` starts and that lies in `available` bytes: its magic, 12 bytes of versions, its
/// size, and the places of four lists, each as offset and size.
pub(crate) fn metal(head: &[u8], available: u64) -> Option<u64> {
    const HEADER: u64 = 88;
    let size = u64_at(head, 16)?;
    let functions = u64_at(head, 24)?;
    let is_sound = (HEADER..=available).contains(&size) && functions >= HEADER && functions < size;
    is_sound.then_some(size)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}
