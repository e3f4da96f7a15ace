//! Kinds of bytes, and amounts of them.

use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;

/// The kind of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Machine code of a GPU.
    Code,
    /// Constants and data of an image.
    Data,
    /// Code of NVIDIA's in the form that its driver finishes: `.nv.merc`, `.nv.capmerc`.
    Mercury,
    /// Symbols of an image, and their names.
    Symbols,
    /// Descriptions of kernels and of an image: `.nv.info`, `.ze_info`, notes.
    Metadata,
    /// Relocations of an image.
    Relocations,
    /// Debug information of an image.
    Debug,
    /// Headers of an image, and bytes between its sections.
    Headers,
    /// Other sections of an image.
    Other,
    /// PTX.
    Ptx,
    /// LTO-IR of NVIDIA's.
    LtoIr,
    /// SPIR-V.
    SpirV,
    /// LLVM bitcode.
    Bitcode,
    /// An image of a format that is not looked into.
    Opaque,
    /// Headers, tables and padding of containers, archives and sections of device code.
    Container,
    /// Sections by which wrappers register device code.
    Registration,
    /// Machine code of the host, and its LLVM bitcode.
    HostCode,
    /// Data of the host.
    HostData,
    /// Symbols of the host, and their names.
    HostSymbols,
    /// Relocations of the host.
    HostRelocations,
    /// Debug information of the host.
    HostDebug,
    /// Headers and tables of a host file.
    HostHeaders,
    /// Bytes of a host file between its sections.
    Padding,
    /// Bytes of a host file that is not an ELF file, outside of its sections.
    HostOther,
    /// Bytes that nothing describes, and what is damaged.
    NotUnderstood,
}

/// The number of kinds.
const KINDS: usize = Kind::NotUnderstood as usize + 1;

impl Kind {
    /// Returns the name used in machine-readable output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Code => "code",
            Kind::Data => "data",
            Kind::Mercury => "mercury",
            Kind::Symbols => "symbols",
            Kind::Metadata => "metadata",
            Kind::Relocations => "relocations",
            Kind::Debug => "debug",
            Kind::Headers => "headers",
            Kind::Other => "other",
            Kind::Ptx => "ptx",
            Kind::LtoIr => "lto-ir",
            Kind::SpirV => "spirv",
            Kind::Bitcode => "bitcode",
            Kind::Opaque => "opaque",
            Kind::Container => "container",
            Kind::Registration => "registration",
            Kind::HostCode => "host-code",
            Kind::HostData => "host-data",
            Kind::HostSymbols => "host-symbols",
            Kind::HostRelocations => "host-relocations",
            Kind::HostDebug => "host-debug",
            Kind::HostHeaders => "host-headers",
            Kind::Padding => "padding",
            Kind::HostOther => "host-other",
            Kind::NotUnderstood => "not-understood",
        }
    }

    /// Returns whether it is a kind of bytes of host code.
    #[must_use]
    pub fn is_host(self) -> bool {
        matches!(
            self,
            Kind::Registration
                | Kind::HostCode
                | Kind::HostData
                | Kind::HostSymbols
                | Kind::HostRelocations
                | Kind::HostDebug
                | Kind::HostHeaders
                | Kind::Padding
                | Kind::HostOther
        )
    }
}

/// Writes the name.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amount {
    /// Bytes in the file.
    pub stored: u64,
    /// Bytes that are not compressed.
    pub plain: u64,
}

impl Amount {
    /// Creates an amount.
    #[must_use]
    pub fn new(stored: u64, plain: u64) -> Self {
        Amount { stored, plain }
    }
}

impl Amount {
    /// Returns the rest of a sum without one of its parts.
    pub(crate) fn without(self, part: Self) -> Self {
        // A sum may have been too large.
        let rest = u64::saturating_sub;
        Amount { stored: rest(self.stored, part.stored), plain: rest(self.plain, part.plain) }
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        // An entry states the size of code that nobody decompresses, and files with holes may be of any size: sums of several stay at
        // the largest number.
        let sum = u64::saturating_add;
        (self.stored, self.plain) = (sum(self.stored, other.stored), sum(self.plain, other.plain));
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Amount::default(), |mut sum, amount| {
            sum += amount;
            sum
        })
    }
}

/// A number for each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByKind([u64; KINDS]);

impl Default for ByKind {
    fn default() -> Self {
        ByKind([0; KINDS])
    }
}

impl ByKind {
    /// Returns an amount of one kind.
    pub(crate) fn of(kind: Kind, bytes: u64) -> Self {
        let mut all = ByKind::default();
        all.add(kind, bytes);
        all
    }

    pub(crate) fn add(&mut self, kind: Kind, bytes: u64) {
        if let Some(sum) = self.0.get_mut(kind as usize) {
            *sum += bytes;
        }
    }

    pub(crate) fn get(&self, kind: Kind) -> u64 {
        self.0.get(kind as usize).copied().unwrap_or(0)
    }
}

/// The kinds of bytes of images.
pub(crate) const OF_IMAGES: [Kind; 15] = [
    Kind::Code,
    Kind::Data,
    Kind::Mercury,
    Kind::Symbols,
    Kind::Metadata,
    Kind::Relocations,
    Kind::Debug,
    Kind::Headers,
    Kind::Other,
    Kind::Ptx,
    Kind::LtoIr,
    Kind::SpirV,
    Kind::Bitcode,
    Kind::Opaque,
    Kind::NotUnderstood,
];
