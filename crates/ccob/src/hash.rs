//! The hash in the header.

#[cfg(feature = "std")]
use {
    alloc::sync::Arc,
    alloc::vec::Vec,
    std::sync::mpsc::{Receiver, Sender, channel},
    std::thread::JoinHandle,
};

use codecs::Md5;

/// Returns the hash that a header records: the first 8 bytes of the MD5 digest of the uncompressed data,
/// as a little-endian number.
///
/// MD5 finds damage, not malice: whoever makes a container chooses the hash too.
#[must_use]
pub fn hash(data: &[u8]) -> u64 {
    let mut hash = Md5::default();
    hash.update(data);
    head(hash)
}

pub(crate) fn head(hash: Md5) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = hash.finish();
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// Hashes data while it still grows: on a second thread, so that it costs no time beside decoding.
///
/// Nobody waits: while the thread has enough to do it gets nothing new, and what it was not given by the end
/// another one borrows.
#[cfg(feature = "std")]
#[derive(Debug, Default)]
pub(crate) struct GrowingHash {
    thread: Option<Hasher>,
    /// Number of bytes that the thread was given.
    given: usize,
    /// `true` if there is no thread to be had.
    refused: bool,
}

/// A thread that hashes the chunks it gets.
#[cfg(feature = "std")]
#[derive(Debug)]
struct Hasher {
    chunks: Sender<Vec<u8>>,
    /// Number of chunks sent to the thread, hashed or not.
    sent: usize,
    /// Chunks that were hashed: memory for the next ones.
    used: Receiver<Vec<u8>>,
    thread: JoinHandle<Md5>,
}

#[cfg(feature = "std")]
impl Hasher {
    fn start() -> Option<Self> {
        let (chunks, waiting) = channel::<Vec<u8>>();
        let (done, used) = channel();
        let work = move || {
            let mut hash = Md5::default();
            for chunk in waiting {
                hash.update(&chunk);
                // The receiver may be gone.
                let _ = done.send(chunk);
            }
            hash
        };
        let thread = std::thread::Builder::new().spawn(work).ok()?;
        Some(Hasher { chunks, sent: 0, used, thread })
    }

    /// Gives the thread a copy of these bytes, unless it has enough to do.
    fn offer(&mut self, bytes: &[u8]) -> bool {
        let mut chunk = match self.used.try_recv() {
            Ok(used) => used,
            Err(_) if self.sent < GrowingHash::QUEUE => {
                self.sent += 1;
                Vec::with_capacity(bytes.len())
            }
            Err(_) => return false,
        };
        chunk.clear();
        chunk.extend_from_slice(bytes);
        self.chunks.send(chunk).is_ok()
    }
}

#[cfg(feature = "std")]
impl GrowingHash {
    /// Size of the copies that the thread gets.
    const CHUNK: usize = 256 << 10;
    /// Maximum number of copies.
    const QUEUE: usize = 16;
    /// Below this a thread costs more than it saves.
    const WORTH_A_THREAD: usize = 256 << 10;

    /// Takes notice of what there is by now: `data` starts with what it was the last time.
    pub(crate) fn grown(&mut self, data: &[u8]) {
        while let Some(chunk) = data.get(self.given..self.given + Self::CHUNK) {
            if self.thread.is_none() && !self.refused {
                self.thread = Hasher::start();
                self.refused = self.thread.is_none();
            }
            if !self.thread.as_mut().is_some_and(|hasher| hasher.offer(chunk)) {
                return;
            }
            self.given += Self::CHUNK;
        }
    }

    /// Returns the hash of the whole data.
    pub(crate) fn finish(self, data: &[u8]) -> u64 {
        self.rest(data).unwrap_or_else(|| hash(data))
    }

    fn rest(self, data: &[u8]) -> Option<u64> {
        let mut hash = match self.thread {
            Some(Hasher { chunks, thread, .. }) => {
                drop(chunks);
                thread.join().ok()?
            }
            None => Md5::default(),
        };
        hash.update(data.get(self.given..)?);
        Some(head(hash))
    }

    /// Returns the hash of the whole data, which is computed meanwhile.
    pub(crate) fn finish_later(self, data: Arc<Vec<u8>>) -> LaterHash {
        let rest = data.len() - self.given;
        if self.refused || rest < Self::WORTH_A_THREAD {
            return LaterHash { data, hash: Err(self) };
        }
        let shared = Arc::clone(&data);
        let spawned = std::thread::Builder::new().spawn(move || self.rest(&shared));
        match spawned {
            Ok(thread) => LaterHash { data, hash: Ok(thread) },
            // Without a thread, hash here.
            Err(_) => LaterHash { data, hash: Err(Self { given: 0, thread: None, refused: true }) },
        }
    }

    /// Returns the hash of the whole data, and what `work` returns, which runs meanwhile.
    pub(crate) fn finish_beside<T>(self, data: &[u8], work: impl FnOnce() -> T) -> (T, u64) {
        let rest = data.len() - self.given;
        if self.refused || rest < Self::WORTH_A_THREAD {
            return (work(), self.finish(data));
        }
        std::thread::scope(|scope| {
            // Without a thread, hash here.
            let thread = std::thread::Builder::new().spawn_scoped(scope, || self.rest(data));
            let result = work();
            let hash = thread.ok().and_then(|thread| thread.join().ok().flatten());
            (result, hash.unwrap_or_else(|| crate::hash(data)))
        })
    }
}

/// A hash that is being computed.
#[cfg(feature = "std")]
#[derive(Debug)]
pub(crate) struct LaterHash {
    data: Arc<Vec<u8>>,
    hash: Result<JoinHandle<Option<u64>>, GrowingHash>,
}

#[cfg(feature = "std")]
impl LaterHash {
    pub(crate) fn finish(self) -> u64 {
        match self.hash {
            Ok(thread) => thread.join().ok().flatten().unwrap_or_else(|| hash(&self.data)),
            Err(growing) => growing.finish(&self.data),
        }
    }
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "std")]
    use super::GrowingHash;
    use super::hash;

    #[test]
    fn the_hash_starts_the_md5_digest() {
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
            let growing = || {
                let mut growing = GrowingHash::default();
                for &step in steps {
                    growing.grown(&data[..step]);
                }
                growing
            };
            assert_eq!(growing().finish(&data), hash(&data));
            assert_eq!(growing().finish_beside(&data, || 5), (5, hash(&data)));
            let later = growing().finish_later(alloc::sync::Arc::new(data.clone()));
            assert_eq!(later.finish(), hash(&data));
        }
    }
}
