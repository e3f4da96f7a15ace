//! Hashes as records write them.

use std::fmt;
use std::io::{self, Read, Write};

use codecs::Md5;
use sha2::Digest as _;

use crate::reading::given;

/// A hash algorithm of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// MD5, of Debian packages.
    Md5,
    /// SHA-256, of nearly all wheels.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Algorithm {
    /// Returns the algorithm with this name in a `RECORD`.
    ///
    /// ```
    /// use gpu_packages::Algorithm;
    ///
    /// assert_eq!(Algorithm::from_name("sha256"), Some(Algorithm::Sha256));
    /// assert_eq!(Algorithm::from_name("crc32"), None);
    /// ```
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "md5" => Self::Md5,
            "sha256" => Self::Sha256,
            "sha384" => Self::Sha384,
            "sha512" => Self::Sha512,
            _ => return None,
        })
    }

    /// Returns the name in a `RECORD`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }

    /// Returns the length of a hash in bytes.
    fn len(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }
}

/// A hash of contents.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Hash {
    algorithm: Algorithm,
    bytes: Vec<u8>,
}

impl Hash {
    /// Returns the hash of bytes.
    #[must_use]
    pub fn of(algorithm: Algorithm, bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new(algorithm);
        hasher.update(bytes);
        hasher.finish()
    }

    /// Parses hexadecimal digits.
    #[must_use]
    pub fn from_hex(algorithm: Algorithm, text: &str) -> Option<Self> {
        let digits = text.chars().map(|c| c.to_digit(16)).collect::<Option<Vec<_>>>()?;
        if digits.len() != algorithm.len().checked_mul(2)? {
            return None;
        }
        let pairs = digits.chunks_exact(2);
        let bytes = pairs.map(|pair| match *pair {
            [high, low] => u8::try_from(high << 4 | low).unwrap_or(0),
            _ => 0,
        });
        Some(Hash { algorithm, bytes: bytes.collect() })
    }

    /// Parses base64 with the alphabet of URLs, with or without padding.
    #[must_use]
    pub fn from_base64(algorithm: Algorithm, text: &str) -> Option<Self> {
        let mut bytes = Vec::new();
        let (mut bits, mut count) = (0u32, 0u32);
        for byte in text.trim_end_matches('=').bytes() {
            let value = ALPHABET.iter().position(|&other| other == byte)?;
            bits = bits << 6 | u32::try_from(value).ok()?;
            count = count.checked_add(6)?;
            if count >= 8 {
                count -= 8;
                bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
                bits &= (1 << count) - 1;
            }
        }
        (bytes.len() == algorithm.len() && bits == 0).then_some(Hash { algorithm, bytes })
    }

    /// Returns the algorithm.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the bytes of the hash.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the hash as hexadecimal digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        self.bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the hash in base64 with the alphabet of URLs, without padding.
    ///
    /// ```
    /// use gpu_packages::{Algorithm, Hash};
    ///
    /// let hash = Hash::of(Algorithm::Sha256, b"");
    /// assert_eq!(hash.to_base64(), "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
    /// assert_eq!(Hash::from_base64(Algorithm::Sha256, &hash.to_base64()), Some(hash));
    /// ```
    #[must_use]
    pub fn to_base64(&self) -> String {
        let mut text = String::new();
        for chunk in self.bytes.chunks(3) {
            let mut bits = 0u32;
            for index in 0..3 {
                bits = bits << 8 | u32::from(chunk.get(index).copied().unwrap_or(0));
            }
            for index in 0..=chunk.len() {
                let value = bits >> (18 - 6 * index) & 63;
                let letter = usize::try_from(value).ok().and_then(|at| ALPHABET.get(at));
                text.push(char::from(letter.copied().unwrap_or(b'A')));
            }
        }
        text
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.algorithm.name(), self.to_base64())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.name(), self.to_hex())
    }
}

/// A hash that is fed piece by piece.
pub struct Hasher(State);

enum State {
    Md5(Box<Md5>),
    Sha256(sha2::Sha256),
    Sha384(sha2::Sha384),
    Sha512(sha2::Sha512),
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hasher").finish_non_exhaustive()
    }
}

impl Hasher {
    /// Starts a hash.
    #[must_use]
    pub fn new(algorithm: Algorithm) -> Self {
        Hasher(match algorithm {
            Algorithm::Md5 => State::Md5(Box::default()),
            Algorithm::Sha256 => State::Sha256(sha2::Sha256::new()),
            Algorithm::Sha384 => State::Sha384(sha2::Sha384::new()),
            Algorithm::Sha512 => State::Sha512(sha2::Sha512::new()),
        })
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Md5(state) => state.update(bytes),
            State::Sha256(state) => state.update(bytes),
            State::Sha384(state) => state.update(bytes),
            State::Sha512(state) => state.update(bytes),
        }
    }

    /// Returns the hash.
    #[must_use]
    pub fn finish(self) -> Hash {
        let (algorithm, bytes) = match self.0 {
            State::Md5(state) => (Algorithm::Md5, state.finish().to_vec()),
            State::Sha256(state) => (Algorithm::Sha256, state.finalize().to_vec()),
            State::Sha384(state) => (Algorithm::Sha384, state.finalize().to_vec()),
            State::Sha512(state) => (Algorithm::Sha512, state.finalize().to_vec()),
        };
        Hash { algorithm, bytes }
    }
}

/// A reader that hashes what passes.
pub(crate) struct HashedReader<R> {
    pub(crate) reader: R,
    hasher: Hasher,
    size: u64,
}

impl<R> HashedReader<R> {
    pub(crate) fn new(reader: R, algorithm: Algorithm) -> Self {
        HashedReader { reader, hasher: Hasher::new(algorithm), size: 0 }
    }

    pub(crate) fn finish(self) -> (u64, Hash) {
        (self.size, self.hasher.finish())
    }
}

impl<R: Read> Read for HashedReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buf)?;
        self.hasher.update(given(buf, read)?);
        self.size += read as u64;
        Ok(read)
    }
}

/// A reader that computes several hashes of what passes.
#[derive(Debug)]
pub(crate) struct HashedByAll<R> {
    reader: R,
    hashers: Vec<Hasher>,
}

impl<R> HashedByAll<R> {
    pub(crate) fn new(reader: R, algorithms: &[Algorithm]) -> Self {
        let hashers = algorithms.iter().map(|algorithm| Hasher::new(*algorithm)).collect();
        HashedByAll { reader, hashers }
    }

    pub(crate) fn finish(self) -> Vec<Hash> {
        self.hashers.into_iter().map(Hasher::finish).collect()
    }
}

impl<R: Read> Read for HashedByAll<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buf)?;
        let bytes = given(buf, read)?;
        self.hashers.iter_mut().for_each(|hasher| hasher.update(bytes));
        Ok(read)
    }
}

/// A writer that hashes what passes.
pub(crate) struct HashedWriter<W> {
    writer: W,
    hasher: Hasher,
    size: u64,
}

impl<W> HashedWriter<W> {
    pub(crate) fn new(writer: W, algorithm: Algorithm) -> Self {
        HashedWriter { writer, hasher: Hasher::new(algorithm), size: 0 }
    }

    pub(crate) fn finish(self) -> (W, u64, Hash) {
        (self.writer, self.size, self.hasher.finish())
    }
}

impl<W: Write> Write for HashedWriter<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let written = self.writer.write(buf)?;
        self.hasher.update(given(buf, written)?);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Reads a stream to its end, and returns its size and hash.
///
/// # Errors
///
/// Errors of the reader.
pub fn hash_reader(algorithm: Algorithm, reader: &mut dyn Read) -> io::Result<(u64, Hash)> {
    let mut hasher = Hasher::new(algorithm);
    let mut buf = vec![0; 64 << 10];
    let mut size = 0u64;
    loop {
        let read = match reader.read(&mut buf) {
            Ok(0) => return Ok((size, hasher.finish())),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(given(&buf, read)?);
        size += read as u64;
    }
}
