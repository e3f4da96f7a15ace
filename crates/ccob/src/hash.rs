//! The hash in the header.

#[cfg(feature = "std")]
use {
    alloc::vec::Vec,
    std::sync::mpsc::{SyncSender, sync_channel},
    std::thread::JoinHandle,
};

use crate::md5::Md5;

/// The hash that a header records: the first 8 bytes of the MD5 digest of the uncompressed data,
/// as a little-endian number.
///
/// MD5 finds damage, not malice: whoever makes a container chooses the hash too.
#[must_use]
pub fn hash(data: &[u8]) -> u64 {
    let mut hash = Md5::default();
    hash.update(data);
    head(hash)
}

fn head(hash: Md5) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = hash.finish();
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// Hashes data while it still grows: on a second thread, so that it costs no time beside decoding.
#[cfg(feature = "std")]
#[derive(Debug, Default)]
pub(crate) struct GrowingHash {
    thread: Option<(SyncSender<Vec<u8>>, JoinHandle<Md5>)>,
    /// How much of the data the thread has.
    given: usize,
}

#[cfg(feature = "std")]
impl GrowingHash {
    /// How much the thread gets at a time, as a copy.
    const CHUNK: usize = 1 << 20;
    /// How many chunks may wait for it.
    const QUEUE: usize = 4;

    /// Takes notice of what there is by now: `data` starts with what it was the last time.
    pub(crate) fn grown(&mut self, data: &[u8]) {
        while let Some(chunk) = data.get(self.given..self.given.saturating_add(Self::CHUNK)) {
            if self.thread.is_none() {
                self.thread = Self::start();
            }
            // Without a thread, or with one that is gone, the rest is for the end.
            let Some((chunks, _)) = &self.thread else { return };
            if chunks.send(chunk.to_vec()).is_err() {
                return;
            }
            self.given = self.given.saturating_add(Self::CHUNK);
        }
    }

    fn start() -> Option<(SyncSender<Vec<u8>>, JoinHandle<Md5>)> {
        let (sender, receiver) = sync_channel::<Vec<u8>>(Self::QUEUE);
        let work = move || {
            let mut hash = Md5::default();
            receiver.iter().for_each(|chunk| hash.update(&chunk));
            hash
        };
        let thread = std::thread::Builder::new().spawn(work).ok()?;
        Some((sender, thread))
    }

    /// The hash of the whole data.
    pub(crate) fn finish(self, data: &[u8]) -> u64 {
        let Some((sender, thread)) = self.thread else { return hash(data) };
        drop(sender);
        let Ok(mut hash) = thread.join() else { return hash(data) };
        hash.update(data.get(self.given..).unwrap_or_default());
        head(hash)
    }
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "std")]
    use super::GrowingHash;
    use super::hash;

    #[test]
    fn is_the_head_of_the_md5_digest() {
        // RFC 1321, appendix A.5: d41d8cd98f00b204... and 900150983cd24fb0...
        assert_eq!(hash(b"").to_le_bytes(), [0xd4, 0x1d, 0x8c, 0xd9, 0x8f, 0x00, 0xb2, 0x04]);
        assert_eq!(hash(b"abc"), 0xb04f_d23c_9850_0190);
    }

    #[cfg(feature = "std")]
    #[test]
    #[cfg_attr(
        miri,
        ignore = "megabytes of data would take Miri hours; small data takes the same ways"
    )]
    fn growing_data_has_the_same_hash() {
        let data: alloc::vec::Vec<u8> =
            (0..(3_u32 << 20) + 5).map(|i| (i.wrapping_mul(i) >> 7).to_le_bytes()[0]).collect();
        for steps in [&[][..], &[100], &[2 << 20], &[7, 1 << 20, (1 << 20) + 1, (3 << 20) + 5]] {
            let mut growing = GrowingHash::default();
            for &step in steps {
                growing.grown(&data[..step]);
            }
            assert_eq!(growing.finish(&data), hash(&data));
        }
    }
}
