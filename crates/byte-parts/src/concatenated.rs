//! Containers one after the other.

use core::iter::{self, FusedIterator};

/// Returns the containers that lie one after the other in `data`, each with its offset in bytes. Zeros before, between and
/// after them are skipped. An error ends the iteration.
///
/// `read` reads the container at the start of its bytes, which lie at an offset, and returns its size as well.
///
/// ```
/// let read = |data: &'static [u8], offset| match data {
///     [len, ..] if *len < 9 => Ok((*len, u64::from(*len))),
///     _ => Err(offset),
/// };
/// let found: Vec<_> = byte_parts::concatenated(b"\x02.\0\0\x01?", read).collect();
/// assert_eq!(found, [Ok((0, 2)), Ok((4, 1)), Err(5)]);
/// ```
pub fn concatenated<'data, T, E>(
    data: &'data [u8],
    read: impl Fn(&'data [u8], u64) -> Result<(T, u64), E> + Clone,
) -> impl FusedIterator<Item = Result<(u64, T), E>> + Clone {
    let mut rest = data;
    let containers = iter::from_fn(move || {
        let zeros = rest.iter().take_while(|&&byte| byte == 0).count();
        (_, rest) = rest.split_at(zeros);
        if rest.is_empty() {
            return None;
        }
        let offset = (data.len() - rest.len()) as u64;
        let container = read(rest, offset).map(|(container, size)| {
            // Nothing follows a container that is as long as the data, or said to be longer.
            rest = usize::try_from(size).ok().and_then(|size| rest.get(size..)).unwrap_or(&[]);
            (offset, container)
        });
        if container.is_err() {
            rest = &[];
        }
        Some(container)
    });
    containers.fuse()
}
