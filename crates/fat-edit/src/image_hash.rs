//! Hashes of images.

use std::hash::Hasher as _;
use std::io;

use fat_object::{ContainerKind, Image};
use twox_hash::XxHash3_64;

/// Returns the hash of the bytes of an image, decompressed.
pub(crate) fn hash(image: &mut Image<'_, '_>) -> io::Result<u64> {
    let mut hash = Hash::default();
    // Damaged code stays as it is stored.
    let code = if is_padded(image.container()) { image.code().ok().flatten() } else { None };
    match code {
        Some(code) => hash.add(&code),
        None => image.pieces(&mut |bytes| {
            hash.add(bytes);
            Ok(())
        })?,
    }
    Ok(hash.finish())
}

/// A hash of bytes without the zeros at their end.
pub(crate) struct Hash {
    hasher: XxHash3_64,
    zeros: usize,
}

impl Default for Hash {
    fn default() -> Self {
        Hash { hasher: XxHash3_64::with_seed(0), zeros: 0 }
    }
}

impl Hash {
    pub(crate) fn finish(&self) -> u64 {
        self.hasher.finish()
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        const ZEROS: [u8; 256] = [0; 256];
        let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        let (bytes, zeros) = bytes.split_at_checked(end).unwrap_or((bytes, &[]));
        while !bytes.is_empty() && self.zeros > 0 {
            let some = ZEROS.get(..self.zeros).unwrap_or(&ZEROS);
            self.hasher.write(some);
            self.zeros -= some.len();
        }
        self.hasher.write(bytes);
        self.zeros += zeros.len();
    }
}

impl io::Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn is_padded(container: ContainerKind) -> bool {
    matches!(container, ContainerKind::NvFatbin | ContainerKind::Concatenated)
}

#[cfg(test)]
mod tests {
    use super::Hash;

    #[test]
    fn zeros_at_the_end_do_not_count() {
        let hash = |pieces: &[&[u8]]| {
            let mut hash = Hash::default();
            pieces.iter().for_each(|piece| hash.add(piece));
            hash.finish()
        };
        let zeros = [0; 1000];
        assert_eq!(hash(&[b"code"]), hash(&[b"co", b"de\0\0", b"", &zeros]));
        assert_eq!(hash(&[&zeros, &zeros, b"x"]), hash(&[&[&zeros[..], &zeros, b"x\0"].concat()]));
        assert_ne!(hash(&[&zeros, b"x"]), hash(&[b"x"]));
    }
}
