//! Compressed binaries of version 3.

use core::ops::Range;

use zerocopy::transmute;

use crate::MAGIC;
use crate::wire::{FormatVersion, HEADER_V3_LEN, Header, HeaderV3};

/// A compressed binary of version 3, as its header describes it.
///
/// Everything after the header of a plain binary is one stream: zstd, if it starts with zstd's magic, and else zlib. This
/// crate has no codec. To read, inflate [`stream`](Self::stream) to [`body_size`](Self::body_size) bytes, put
/// [`plain_header`](Self::plain_header) before them, and parse that. To write, compress all bytes of a plain binary
/// after the first 40, and put [`header`](Self::header) before the stream.
///
/// All sizes come from the file: check them against limits before memory is reserved.
///
/// ```
/// use offload_binary::{CompressedBinary, Error, FormatVersion, OffloadBinary};
///
/// let plain = offload_binary::layout(FormatVersion::V3, &[])?.to_vec(&[])?;
/// let stream = b"all bytes of `plain` from 40 on, compressed";
/// let compressed = CompressedBinary::new(plain.len() as u64, 0, stream.len() as u64)?;
/// let mut file = compressed.header().to_vec();
/// file.extend_from_slice(stream);
///
/// assert!(OffloadBinary::parse(&file).unwrap_err().compressed().is_some());
/// assert_eq!(compressed.stream(), 40..file.len() as u64);
/// assert_eq!(compressed.plain_header(), plain[..40]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CompressedBinary {
    pub(crate) size: u64,
    pub(crate) inflated_size: u64,
    pub(crate) entries: u64,
}

impl CompressedBinary {
    /// Returns the length of header and stream in bytes. Unlike the size of a plain binary it need not be a
    /// multiple of 8; zeros up to the next multiple follow, which are missing where nothing else follows.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the offset of the next binary, in bytes from the start of this one: its size rounded up to a
    /// multiple of 8.
    #[must_use]
    pub fn padded_size(&self) -> u64 {
        // Nothing follows the largest.
        self.size.checked_next_multiple_of(8).unwrap_or(self.size)
    }

    /// Returns the range of the compressed stream, in bytes from the start of the binary. It is not empty.
    #[must_use]
    pub fn stream(&self) -> Range<u64> {
        HEADER_V3_LEN..self.size
    }

    /// Returns the length of the plain binary in bytes, its header included, as the header claims: a multiple of 8.
    #[must_use]
    pub fn inflated_size(&self) -> u64 {
        self.inflated_size
    }

    /// Returns the number of bytes that the stream must inflate to: the inflated size without the header.
    #[must_use]
    pub fn body_size(&self) -> u64 {
        self.inflated_size - HEADER_V3_LEN
    }

    /// Returns the number of entries of the plain binary. They fit into its size.
    #[must_use]
    pub fn entry_count(&self) -> u64 {
        self.entries
    }

    /// Returns the header of this binary.
    #[must_use]
    pub fn header(&self) -> [u8; 40] {
        self.header_with(self.size, self.inflated_size)
    }

    /// Returns the header of the plain binary, which precedes the inflated stream.
    #[must_use]
    pub fn plain_header(&self) -> [u8; 40] {
        self.header_with(self.inflated_size, 0)
    }

    fn header_with(&self, size: u64, inflated_size: u64) -> [u8; 40] {
        let start = Header {
            magic: MAGIC,
            version: FormatVersion::V3.number().into(),
            size: size.into(),
            entries_offset: HEADER_V3_LEN.into(),
            entries_extent: self.entries.into(),
        };
        transmute!(HeaderV3 { start, inflated_size: inflated_size.into() })
    }
}
