//! Bytes wherever they may lie in memory.

/// Has `read` say what it makes of the bytes, and say the same of them at each address modulo 16, with others around
/// them: zeros, ones, and `around`, which may be the start of something. Returns what it says.
///
/// # Panics
///
/// If it says something else somewhere.
pub fn at_each_address<T: PartialEq>(
    bytes: &[u8],
    around: u8,
    mut read: impl FnMut(&[u8]) -> T,
) -> T {
    let expected = read(bytes);
    for (shift, around) in (0..16).zip([0, 0xff, around].into_iter().cycle()) {
        // Room for all, so that it stays where it is.
        let len = bytes.len() + 64;
        let mut buffer = Vec::<u8>::with_capacity(len);
        let at = (16 - buffer.as_ptr().addr() % 16) % 16 + shift;
        buffer.resize(at, around);
        buffer.extend_from_slice(bytes);
        buffer.resize(len, around);
        let there = buffer.get(at..at + bytes.len()).unwrap_or_default();
        assert_eq!((there.as_ptr().addr() % 16, there.len()), (shift, bytes.len()));
        assert!(read(there) == expected, "another answer at {shift}");
    }
    expected
}
