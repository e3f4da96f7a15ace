//! Faults of SYCL tables.

/// Something wrong in the tables of SYCL images. Offsets count from the start of the host file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Tables are read of 64-bit little-endian ELF and PE files only: images are found, as far as they lie in a section for
    /// images, and their properties are not known.
    #[error(
        "tables of SYCL images are not read: expected a 64-bit little-endian ELF or PE file, found {found}"
    )]
    Host {
        /// The class and format of the host file.
        found: &'static str,
    },
    /// The array of descriptors does not lie in the file.
    #[error(
        "table of SYCL images at {at:#x}: expected {count} descriptors at address {address:#x}, which the file does not hold"
    )]
    Array {
        /// Offset of the table.
        at: u64,
        /// Number of descriptors.
        count: u16,
        /// Address of the first descriptor.
        address: u64,
    },
    /// A descriptor has another version or kind than the first of its table.
    #[error(
        "SYCL image descriptor at {at:#x}: expected version {version} and kind {kind}, found version {found_version} and kind {found_kind}"
    )]
    Descriptor {
        /// Offset of the descriptor.
        at: u64,
        /// Version of the first descriptor.
        version: u16,
        /// Kind of the first descriptor.
        kind: u8,
        /// Version of this descriptor.
        found_version: u16,
        /// Kind of this descriptor.
        found_kind: u8,
    },
    /// The version of a descriptor is not known.
    #[error("SYCL image descriptor at {at:#x}: expected version 1, 2 or 3, found {version}")]
    Version {
        /// Offset of the descriptor.
        at: u64,
        /// The version found.
        version: u16,
    },
    /// A range that a descriptor names does not lie in the file.
    #[error(
        "SYCL image descriptor at {at:#x}: {what} at addresses {start:#x}..{end:#x}, which the file does not hold"
    )]
    Range {
        /// Offset of the descriptor.
        at: u64,
        /// Name of the range.
        what: &'static str,
        /// Address of its start.
        start: u64,
        /// Address of its end.
        end: u64,
    },
    /// A string does not lie in the file, or does not end there.
    #[error(
        "SYCL image descriptor at {at:#x}: {what} at address {address:#x} is not a string in the file"
    )]
    Text {
        /// Offset of the descriptor.
        at: u64,
        /// Name of the string.
        what: &'static str,
        /// Address of its first byte.
        address: u64,
    },
    /// Records of tables share bytes, and are read no further.
    #[error("tables of SYCL images overlap: their records come to more than {limit} bytes")]
    Records {
        /// The limit in bytes.
        limit: u64,
    },
    /// Images share bytes, and are read no further.
    #[error("SYCL images overlap: they come to more than the {limit} bytes of the file")]
    Overlap {
        /// The limit in bytes.
        limit: u64,
    },
    /// `.tgtimg` lists images that no table describes. They are found, as far as they lie in a section for images; their
    /// properties are not known.
    #[error(
        "section .tgtimg lists {count} SYCL images that no table describes, the first at address {address:#x}"
    )]
    Undescribed {
        /// Number of such images.
        count: usize,
        /// Address of the first.
        address: u64,
    },
    /// The size of an image is not the one that `.tgtimg` records.
    #[error("SYCL image has {found} bytes: expected {expected}, as in section .tgtimg")]
    Size {
        /// The recorded size, in bytes.
        expected: u64,
        /// Bytes of the image, decompressed.
        found: u64,
    },
    /// The size of a compressed image is recorded nowhere.
    #[error("compressed SYCL image records no size")]
    NoSize,
    /// A compressed image cannot be decompressed.
    #[error("compressed SYCL image: {0}")]
    Stream(ccob::Error),
    /// A compressed image is not decompressed: the limits do not allow it.
    #[error(
        "compressed SYCL image: decompressing it ({size} bytes) would exceed the limit of {limit} bytes"
    )]
    Limit {
        /// Bytes of the image, decompressed.
        size: u64,
        /// Bytes that may still be decompressed.
        limit: u64,
    },
    /// A SPIR-V module is cut short, or its header is malformed.
    #[error("SPIR-V module of {size} bytes has a malformed header (first bytes {first:02x?})")]
    SpirV {
        /// Bytes of the module.
        size: u64,
        /// The first bytes found, at most twenty.
        first: Vec<u8>,
    },
    /// Between SYCL images there are bytes that are neither zeros nor an image.
    #[error("bytes {start:#x}..{end:#x} are in no SYCL image (first bytes {first:02x?})")]
    Gap {
        /// Offset of the first such byte.
        start: u64,
        /// Offset of the next image, or of the end of the section.
        end: u64,
        /// The first bytes found, at most eight.
        first: Vec<u8>,
    },
}
