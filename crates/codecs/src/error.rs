//! Everything that can be wrong with a stream.

/// An error of a codec, with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} (at {offset:#x})")]
pub struct Error {
    kind: ErrorKind,
    offset: u64,
}

impl Error {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, offset: usize) -> Self {
        Error { kind, offset: offset as u64 }
    }

    /// Returns the same error for a stream that starts `by` bytes earlier.
    pub(crate) fn moved(self, by: u64) -> Self {
        Error { offset: self.offset + by, ..self }
    }

    /// Returns the kind of the error.
    ///
    /// ```
    /// use codecs::{Codec, ErrorKind, Input};
    ///
    /// # if Codec::Zstd.library().is_none() { return; }
    /// let error = Codec::Zstd.decompress(&Input::new(b"data", 9), &mut |_| {}).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::BadMagic);
    /// assert_eq!(error.to_string(), "bad magic (at 0x0)");
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the place of the fault, in bytes from the start of the stream: 0 if the codec does not know it.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// This build lacks the codec.
    #[error("the codec is not compiled in")]
    NoCodec,
    /// The stream does not start as one of its codec does.
    #[error("bad magic")]
    BadMagic,
    /// Nothing but skippable Zstandard frames, where one with data is expected.
    #[error("skippable frame")]
    SkippableFrame,
    /// A bit that RFC 8878 reserves is set in the frame header.
    #[error("reserved bit set in the frame header")]
    ReservedBit,
    /// The frame needs a dictionary.
    #[error("dictionary required")]
    Dictionary,
    /// The frame asks for a window of 2^32 bytes or more, which libzstd does not read either.
    #[error("window too large")]
    WindowTooLarge,
    /// A block of the reserved type 3.
    #[error("reserved block type")]
    ReservedBlock,
    /// A block larger than the format allows: the smaller of the window and 128 KiB.
    #[error("block too large")]
    BlockTooLarge,
    /// The stream ends early.
    #[error("stream ends early")]
    EndsEarly,
    /// The stream's own checksum (Adler-32 or XXH64) does not match the data.
    #[error("checksum mismatch")]
    Checksum,
    /// The stream ends before the input, which ends there.
    #[error("expected the end at {0:#x}")]
    TrailingData(u64),
    /// Any other damage that the codec finds.
    #[error("damaged data")]
    Damaged,
    /// The frames record another size than the expected one.
    #[error("the frames record a size of {0} bytes")]
    ContentSize(u64),
    /// The blocks cannot hold the expected size, but at most this many bytes.
    #[error("the blocks hold at most {0} bytes")]
    AtMost(u64),
    /// The stream expands to fewer bytes than expected.
    #[error("the stream expands to {0} bytes")]
    TooShort(u64),
    /// The stream expands to more bytes than expected.
    #[error("the stream expands to more bytes than expected")]
    TooLong,
    /// There is not enough memory, or address space, for this many bytes.
    #[error("{0} bytes of memory are not available")]
    Memory(u64),
    /// The codec refused to compress.
    #[error("the encoder failed")]
    Encoder,
}
