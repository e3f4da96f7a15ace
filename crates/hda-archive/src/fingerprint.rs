//! By what the bytes of an entry are known again.

use std::hash::Hasher;

use twox_hash::XxHash3_64;

/// The fingerprint of bytes that come in pieces, and how many they are.
#[derive(Default)]
pub(crate) struct Fingerprint {
    hasher: XxHash3_64,
    size: u64,
}

impl Fingerprint {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.hasher.write(bytes);
        self.size += bytes.len() as u64;
    }

    pub(crate) fn finish(self) -> (u64, u64) {
        (self.size, self.hasher.finish())
    }
}

/// Returns the fingerprint of bytes that are there at once: the same, however they come.
pub(crate) fn fingerprint_of(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_change_the_fingerprint() {
        let bytes: Vec<u8> = (0..5000u32).map(|n| (n % 253) as u8).collect();
        for len in [0, 1, 16, 239, 240, 241, 1024, 5000] {
            let mut fingerprint = Fingerprint::default();
            bytes[..len].chunks(77).for_each(|piece| fingerprint.bytes(piece));
            assert_eq!(fingerprint.finish(), (len as u64, fingerprint_of(&bytes[..len])));
        }
    }
}
