//! Faults of SYCL images.

use std::fmt;

use crate::error::ErrorKind;

/// Something wrong with a SYCL image. Offsets count from the start of the host file.
#[derive(Clone, Debug)]
pub(crate) enum Error {
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
                "bytes {start:#x}..{end:#x} do not belong to a SYCL image (first bytes {first:02x?})"
            ),
        }
    }
}

impl Error {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Limit { .. } => ErrorKind::Limit,
            Self::Gap { .. } => ErrorKind::TrailingData,
            Self::Size { .. } | Self::NoSize | Self::Stream(_) | Self::SpirV { .. } => {
                ErrorKind::Image
            }
        }
    }
}
