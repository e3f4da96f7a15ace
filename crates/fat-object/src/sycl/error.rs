//! Faults of SYCL tables.

use std::fmt;

use crate::error::ErrorKind;

/// Something wrong in the tables of SYCL images. Offsets count from the start of the host file.
#[derive(Clone, Debug)]
pub(crate) enum Error {
    Host { found: &'static str },
    Array { at: u64, count: u16, address: u64 },
    Descriptor { at: u64, version: u16, kind: u8, found_version: u16, found_kind: u8 },
    Version { at: u64, version: u16 },
    Range { at: u64, what: &'static str, start: u64, end: u64 },
    Text { at: u64, what: &'static str, address: u64 },
    Records { limit: u64 },
    Overlap { limit: u64 },
    Undescribed { count: usize, address: u64 },
    Size { expected: u64, found: u64 },
    NoSize,
    Stream(ccob::Error),
    Limit { size: u64, limit: u64 },
    SpirV { size: u64, first: Vec<u8> },
    Gap { start: u64, end: u64, first: Vec<u8> },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { found } => write!(
                f,
                "tables of SYCL images are not read: expected a 64-bit little-endian ELF or PE file, found {found}"
            ),
            Self::Array { at, count, address } => write!(
                f,
                "table of SYCL images at {at:#x}: expected {count} descriptors at address {address:#x}, which the file does not hold"
            ),
            Self::Descriptor { at, version, kind, found_version, found_kind } => write!(
                f,
                "SYCL image descriptor at {at:#x}: expected version {version} and kind {kind}, found version {found_version} and kind {found_kind}"
            ),
            Self::Version { at, version } => write!(
                f,
                "SYCL image descriptor at {at:#x}: expected version 1, 2 or 3, found {version}"
            ),
            Self::Range { at, what, start, end } => write!(
                f,
                "SYCL image descriptor at {at:#x}: {what} at addresses {start:#x}..{end:#x}, which the file does not hold"
            ),
            Self::Text { at, what, address } => write!(
                f,
                "SYCL image descriptor at {at:#x}: {what} at address {address:#x} is not a string in the file"
            ),
            Self::Records { limit } => write!(
                f,
                "tables of SYCL images overlap: their records come to more than {limit} bytes"
            ),
            Self::Overlap { limit } => write!(
                f,
                "SYCL images overlap: they come to more than the {limit} bytes of the file"
            ),
            Self::Undescribed { count, address } => write!(
                f,
                "section .tgtimg lists {count} SYCL images that no table describes, the first at address {address:#x}"
            ),
            Self::Size { expected, found } => write!(
                f,
                "SYCL image has {found} bytes: expected {expected}, as in section .tgtimg"
            ),
            Self::NoSize => f.write_str("compressed SYCL image records no size"),
            Self::Stream(error) => write!(f, "compressed SYCL image: {error}"),
            Self::Limit { size, limit } => write!(
                f,
                "compressed SYCL image: decompressing it ({size} bytes) would exceed the limit of {limit} bytes"
            ),
            Self::SpirV { size, first } => write!(
                f,
                "SPIR-V module of {size} bytes has a malformed header (first bytes {first:02x?})"
            ),
            Self::Gap { start, end, first } => write!(
                f,
                "bytes {start:#x}..{end:#x} are in no SYCL image (first bytes {first:02x?})"
            ),
        }
    }
}

impl Error {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Host { .. } | Self::Undescribed { .. } => ErrorKind::NotRead,
            Self::Limit { .. } => ErrorKind::Limit,
            Self::Size { .. } | Self::NoSize | Self::Stream(_) | Self::SpirV { .. } => {
                ErrorKind::Image
            }
            Self::Gap { .. } => ErrorKind::TrailingData,
            _ => ErrorKind::HostFile,
        }
    }
}
