//! What can be wrong with a walked file.

use std::io;
use std::sync::Arc;

use crate::agreement::Disagreement;
use crate::hcf;
use crate::model::{Severity, printable};
use crate::nv_fatbin;
use crate::sycl;

/// Something wrong in a walked file. Offsets count from the start of the container that the
/// [`Finding`](crate::Finding) names.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A binary or text bundle is malformed.
    #[error(transparent)]
    Bundle(#[from] bundle_format::Error),
    /// A compressed bundle is malformed, or its contents fail the hash.
    #[error(transparent)]
    Ccob(#[from] ccob::Error),
    /// An offload binary is malformed.
    #[error(transparent)]
    OffloadBinary(#[from] offload_binary::Error),
    /// The stream of a compressed offload binary is malformed, does not fit its header, or is too large. Sizes are those of what
    /// follows the header of the plain offload binary, but for the limit.
    #[error("{}", .0.to_string().replace("compressed bundle", "compressed package"))]
    PackageStream(ccob::Error),
    /// An NVIDIA fatbinary is malformed.
    #[error(transparent)]
    NvFatbin(#[from] nv_fatbin::Error),
    /// An HCF container of AdaptiveCpp is malformed.
    #[error(transparent)]
    Hcf(#[from] hcf::Error),
    /// LLVM bitcode is malformed, or what it embeds cannot be reached.
    #[error(transparent)]
    Bitcode(#[from] llvm_bitcode::Error),
    /// Tables of SYCL images, or such images, are malformed.
    #[error(transparent)]
    Sycl(#[from] sycl::Error),
    /// The headers of an object file, executable or library are malformed.
    #[error("malformed {format} file: {detail}")]
    Object {
        /// `ELF`, `COFF`, `PE`, `Mach-O` or `WebAssembly`.
        format: &'static str,
        /// What the reader of host files says.
        detail: String,
    },
    /// An archive's structure is malformed.
    #[error("malformed archive: {detail}")]
    Archive {
        /// What the reader of archives says.
        detail: String,
    },
    /// An archive ends inside a member.
    #[error(
        "archive is cut short: member {name} needs bytes {start:#x}..{end:#x}, the archive ends at {available:#x}",
        name = printable(name)
    )]
    MemberBeyondEnd {
        /// The member's name.
        name: String,
        /// Offset of its first byte in the archive.
        start: u64,
        /// Offset of its end.
        end: u64,
        /// Length of the archive.
        available: u64,
    },
    /// What stands where an archive has a member's name, at `offset`, is no name, and does not tell where one is.
    #[error(
        "archive member at {offset:#x} has {name} for a name, which is none and does not tell where one is",
        name = printable(name)
    )]
    MemberName {
        /// The 16 bytes without the spaces behind.
        name: String,
        /// Offset of the member's header in the archive.
        offset: u64,
    },
    /// A file that a thin archive names cannot be read.
    #[error("thin archive names {name}, which cannot be read: {source}", name = printable(name))]
    ThinMember {
        /// The name stored in the archive.
        name: String,
        /// What opening or reading it gave.
        source: Arc<io::Error>,
    },
    /// The file that a thin archive names has another size than the archive says: one of the two was changed after the
    /// archive was made. The file is walked all the same.
    #[error(
        "thin archive names {name}: expected a file of {expected} bytes, found {found}",
        name = printable(name)
    )]
    ThinMemberSize {
        /// The name stored in the archive.
        name: String,
        /// The size that the archive records.
        expected: u64,
        /// The size of the file.
        found: u64,
    },
    /// A thin archive lies in the file that a thin archive names, which could be itself. Its members are not opened.
    #[error("a thin archive in the file that a thin archive names: its members are not opened")]
    NestedThinArchive,
    /// The files that thin archives name have more bytes in all than
    /// [`Options::with_max_thin_bytes`](crate::Options::with_max_thin_bytes). The others of this archive are not opened.
    #[error(
        "thin archive names {name} of {size} bytes, with which the files named by thin archives have more than the limit of {limit} bytes in all",
        name = printable(name)
    )]
    ThinMembersTooLarge {
        /// The name stored in the archive.
        name: String,
        /// The size of the file.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A compressed bundle or offload binary is not decompressed: with those before it would be more than
    /// [`Options::with_max_expansion`](crate::Options::with_max_expansion) allows.
    #[error(
        "decompressing {uncompressed_size} bytes here would exceed the limit of {limit} bytes in total"
    )]
    DecompressedInAll {
        /// The size in its header.
        uncompressed_size: u64,
        /// The limit for the whole walk in bytes.
        limit: u64,
    },
    /// Names of sections and members, strings of offload binaries, and the names in the paths of images come to more than
    /// 64 MiB and four times the bytes that were walked, as only those can that share bytes, or paths with long
    /// names. Those after are not looked at.
    #[error("names and strings come to more than {limit} bytes in all")]
    TooManyNames {
        /// The limit in bytes.
        limit: u64,
    },
    /// A section lies beyond the end of its file.
    #[error(
        "section {name} lies at {start:#x}..{end:#x}, beyond the end of the file at {available:#x}",
        name = printable(name)
    )]
    SectionBeyondEnd {
        /// The section's name.
        name: String,
        /// Offset of its first byte.
        start: u64,
        /// Offset of its end.
        end: u64,
        /// Length of the file.
        available: u64,
    },
    /// The table of segments of an ELF file for a GPU lies beyond its end.
    #[error(
        "segment table lies at {start:#x}..{end:#x}, beyond the end of the file at {available:#x}"
    )]
    SegmentTable {
        /// Offset of its first byte.
        start: u64,
        /// Offset of its end.
        end: u64,
        /// Length of the file.
        available: u64,
    },
    /// A segment of an ELF file for a GPU lies beyond its end.
    #[error(
        "segment {index} lies at {start:#x}..{end:#x}, beyond the end of the file at {available:#x}"
    )]
    SegmentBeyondEnd {
        /// Position in the table of segments, from 0.
        index: usize,
        /// Offset of its first byte.
        start: u64,
        /// Offset of its end.
        end: u64,
        /// Length of the file.
        available: u64,
    },
    /// A file of PTX does not say for which target it is.
    #[error("PTX names no target: expected a directive .target in the first {looked_at} bytes")]
    PtxTarget {
        /// Bytes that were looked at.
        looked_at: usize,
    },
    /// A SPIR-V module is malformed.
    #[error("malformed SPIR-V module: byte {offset:#x}: expected {expected}, found {found}")]
    SpirV {
        /// Offset of what is wrong.
        offset: u64,
        /// The text that belongs there.
        expected: &'static str,
        /// The number found there.
        found: u64,
    },
    /// Two sections with device code share bytes.
    #[error(
        "section {name} at {start:#x}..{end:#x} overlaps another section with device code",
        name = printable(name)
    )]
    OverlappingSections {
        /// The later section's name.
        name: String,
        /// Offset of its first byte.
        start: u64,
        /// Offset of its end.
        end: u64,
    },
    /// Of the entries of a bundle in the object form, a second one stands for the host object itself.
    #[error(
        "the entry {id} stands for the object that it lies in, as another one does",
        id = printable(id)
    )]
    SecondHost {
        /// The entry's ID.
        id: String,
    },
    /// Two slices of a universal file share bytes, or one lies beyond its end.
    #[error(
        "slice {index} of the universal file lies at {start:#x}..{end:#x}: it overlaps another or lies beyond the end at {available:#x}"
    )]
    Slice {
        /// Position in the table of slices, from 0.
        index: usize,
        /// Offset of its first byte.
        start: u64,
        /// Offset of its end.
        end: u64,
        /// Length of the file.
        available: u64,
    },
    /// A section that by name or type holds device code starts with none of the known magics.
    #[error("no bundle, package or fatbinary starts here (first bytes {first:02x?})")]
    UnknownContents {
        /// The first bytes found, at most eight.
        first: Vec<u8>,
    },
    /// Between containers, or after the last, there are bytes that are neither zeros nor a container.
    #[error(
        "{after} bytes into the section or file, after a container, bytes follow that start none (first bytes {first:02x?})"
    )]
    TrailingBytes {
        /// Offset of the first such byte from the start of the section or file.
        after: u64,
        /// The first bytes found, at most eight.
        first: Vec<u8>,
    },
    /// Containers are nested deeper than [`Options::with_max_depth`](crate::Options::with_max_depth).
    #[error("containers are nested more than {limit} deep")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// A bundle breaks a rule of composition (Clang Offload Bundler documentation, "Bundled Code Object
    /// Composition").
    #[error("{0}")]
    Composition(bundle_format::CompositionFinding),
    /// An image is for other devices than its entry says ([`ImageInfo::disagreement`](crate::ImageInfo::disagreement)).
    #[error("entry {entry} holds another image than it says: {disagreement}", entry = printable(entry))]
    Disagreement {
        /// The bundle entry ID, or the target of an image that has none; at most 1024 characters.
        entry: String,
        /// The contradiction.
        disagreement: Disagreement,
    },
    /// The [scan](crate::Options::with_scan) ended before the end of a host file: too many bytes looked like the start of a
    /// container and were none, as in files that are made to cost time.
    #[error(
        "the scan for containers ended at {at:#x}: too many bytes before look like the start of one"
    )]
    ScanStopped {
        /// Offset in the host file from which on there was no scan.
        at: u64,
    },
    /// An object of GCC's has sections `.gnu.offload_lto_*`: intermediate code, of which the link makes device code. This crate
    /// does not read it.
    #[error(
        "GCC's intermediate code for devices (.gnu.offload_lto_*) is not read: only linked files hold device code of GCC"
    )]
    GccIntermediateCode,
    /// An ELF executable or library has no section headers, by which device code is found.
    #[error("the file has no section headers: device code in it, if any, cannot be found")]
    NoSectionHeaders,
}

impl Error {
    /// [`Warning`](Severity::Warning) where all images were found nevertheless.
    #[must_use]
    pub fn severity(&self) -> Severity {
        match self {
            Error::Composition(_)
            | Error::Disagreement { .. }
            | Error::GccIntermediateCode
            | Error::NoSectionHeaders => Severity::Warning,
            _ => Severity::Error,
        }
    }
}

/// [`InvalidData`](io::ErrorKind::InvalidData), with the error inside.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}
