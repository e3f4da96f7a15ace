//! Errors in a walked file.

use std::sync::Arc;
use std::{fmt, io};

use device_code::{Fault, FileFormat};

use crate::disagreement::Disagreement;
use crate::model::{ContainerKind, Location, PathStep, Severity, write_path};
use crate::sycl;
use crate::text::printable;

/// An error in a walked file, with its place. Offsets in the text count from the start of the container that the
/// [`Finding`](crate::Finding) names.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) and the other functions are for
/// programs.
#[derive(Clone, Debug)]
pub struct Error(Arc<Problem>);

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A container is malformed, cut short, fails its hash, or cannot be decompressed: [`Error::container`] says of which
    /// kind it is.
    Malformed,
    /// The headers of an object file, executable, library or of LLVM bitcode are malformed, or a section lies beyond the end
    /// or overlaps another.
    HostFile,
    /// An archive is malformed or cut short.
    Archive,
    /// A file that a thin archive names cannot be read, or is not opened, as it is itself reached through a thin archive.
    ThinMember,
    /// The file that a thin archive names has another size than the archive says: one of the two was changed after
    /// the archive was made. The file is still walked.
    ThinMemberSize,
    /// An image is malformed, as far as a walk looks at images: a SYCL image that cannot be decompressed, PTX without a target.
    Image,
    /// A section that by name or type holds device code starts with none of the known magics.
    UnknownContents,
    /// Between containers, or after the last, there are bytes that are neither zeros nor a container.
    TrailingData,
    /// A bundle breaks a rule of composition (Clang Offload Bundler documentation, "Bundled Code Object Composition"), or a
    /// second entry of the object form stands for the host object itself.
    Composition,
    /// An image is for other devices than its entry says: [`ImageInfo::disagreement`](crate::ImageInfo::disagreement).
    Disagreement,
    /// The work would exceed the time or memory that [`Options`](crate::Options) allow. It is passed over, or the
    /// rest of it is.
    Limit,
    /// Names of sections and members, strings of offload binaries, and the names in the paths of images come to more than
    /// 64 MiB and four times the bytes that were walked, as only those can that share bytes, or paths with long
    /// names. Those after are not looked at.
    Names,
    /// Device code that is there, or may be there, is not found by this crate: GCC's intermediate code, ELF files without section
    /// headers that are not [scanned](crate::Options::with_scan), SYCL images without their tables; files whose format is
    /// not [read](crate::FileFormat::is_read).
    NotRead,
    /// The input cannot be read: [`Error::io`].
    Io,
}

impl Error {
    /// Returns the kind of the error.
    ///
    /// ```
    /// use fat_object::{ContainerKind, ErrorKind, Options, list_slice};
    ///
    /// let listing = list_slice(b"__CLANG_OFFLOAD_BUNDLE__", &Options::default())?;
    /// let error = listing.findings()[0].error();
    /// assert_eq!(error.kind(), ErrorKind::Malformed);
    /// assert_eq!(error.container(), Some(ContainerKind::Bundle));
    /// assert_eq!(error.to_string(), "bundle header needs 32 bytes, but only 24 are there");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match &*self.0 {
            Problem::Kpack(error) if error.kind() == ::kpack::ErrorKind::Limit => ErrorKind::Limit,
            Problem::Bundle(_)
            | Problem::Ccob(_)
            | Problem::OffloadBinary(_)
            | Problem::PackageStream(_)
            | Problem::NvFatbin(_)
            | Problem::Hcf(_)
            | Problem::Kpack(_)
            | Problem::GzipStream { .. }
            | Problem::GzipTrailer { .. }
            | Problem::GzipCrc { .. }
            | Problem::GzipSize { .. }
            | Problem::Syclbin { .. }
            | Problem::SyclbinOverlap { .. }
            | Problem::Slice { .. } => ErrorKind::Malformed,
            Problem::Bitcode(_)
            | Problem::Object { .. }
            | Problem::SectionBeyondEnd { .. }
            | Problem::OverlappingSections { .. } => ErrorKind::HostFile,
            Problem::Sycl(error) => error.kind(),
            Problem::SyclTable(error) => match error.kind() {
                crate::sycl_table::ErrorKind::Unsupported
                | crate::sycl_table::ErrorKind::Undescribed => ErrorKind::NotRead,
                _ => ErrorKind::HostFile,
            },
            Problem::Archive { .. }
            | Problem::MemberBeyondEnd { .. }
            | Problem::MemberName { .. } => ErrorKind::Archive,
            Problem::ThinMember { .. } | Problem::NestedThinArchive => ErrorKind::ThinMember,
            Problem::ThinMemberSize { .. } => ErrorKind::ThinMemberSize,
            Problem::SegmentTable { .. }
            | Problem::SegmentBeyondEnd { .. }
            | Problem::Image { .. }
            | Problem::PtxTarget { .. }
            | Problem::Shader { .. }
            | Problem::IntelElf { .. }
            | Problem::SpirV { .. } => ErrorKind::Image,
            Problem::UnknownContents { .. } => ErrorKind::UnknownContents,
            Problem::TrailingBytes { .. } => ErrorKind::TrailingData,
            Problem::Composition(_) | Problem::SecondHost { .. } => ErrorKind::Composition,
            Problem::Disagreement { .. } => ErrorKind::Disagreement,
            Problem::ThinMembersTooLarge { .. }
            | Problem::DecompressedInAll { .. }
            | Problem::Table { .. }
            | Problem::TooDeep { .. }
            | Problem::ScanStopped { .. } => ErrorKind::Limit,
            Problem::TooManyNames { .. } => ErrorKind::Names,
            Problem::GccIntermediateCode
            | Problem::NoSectionHeaders
            | Problem::Embedded { .. }
            | Problem::EntriesAlone { .. }
            | Problem::Format { .. } => ErrorKind::NotRead,
            Problem::Io(_) => ErrorKind::Io,
            Problem::Finding(finding) => finding.error().kind(),
        }
    }

    /// Returns the kind of the container that is [malformed](ErrorKind::Malformed).
    #[must_use]
    pub fn container(&self) -> Option<ContainerKind> {
        Some(match &*self.0 {
            Problem::Bundle(_) => ContainerKind::Bundle,
            Problem::Ccob(_) => ContainerKind::Ccob,
            Problem::OffloadBinary(_) | Problem::PackageStream(_) => ContainerKind::OffloadBinary,
            Problem::NvFatbin(_) => ContainerKind::NvFatbin,
            Problem::Hcf(_) => ContainerKind::Hcf,
            Problem::Kpack(_) => ContainerKind::Kpack,
            Problem::GzipStream { .. }
            | Problem::GzipTrailer { .. }
            | Problem::GzipCrc { .. }
            | Problem::GzipSize { .. } => ContainerKind::Gzip,
            Problem::Syclbin { .. } | Problem::SyclbinOverlap { .. } => ContainerKind::Syclbin,
            Problem::Slice { .. } => ContainerKind::Slice,
            _ => return None,
        })
    }

    /// Returns the error of the crate `ccob` about a compressed bundle, or about the stream of a compressed offload
    /// binary. Offsets and sizes of the latter count from the end of the header of the uncompressed offload binary,
    /// except for the limit.
    #[must_use]
    pub fn ccob(&self) -> Option<&ccob::Error> {
        match &*self.0 {
            Problem::Ccob(error) | Problem::PackageStream(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the error of the crate `offload_binary` about an offload binary.
    #[must_use]
    pub fn offload_binary(&self) -> Option<&offload_binary::Error> {
        match &*self.0 {
            Problem::OffloadBinary(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the error of the crate `llvm_bitcode` about bitcode for the host.
    #[must_use]
    pub fn bitcode(&self) -> Option<&llvm_bitcode::Error> {
        match &*self.0 {
            Problem::Bitcode(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the rule of composition that a bundle breaks.
    #[must_use]
    pub fn composition(&self) -> Option<&bundle_format::CompositionFinding> {
        match &*self.0 {
            Problem::Composition(finding) => Some(finding),
            _ => None,
        }
    }

    /// Returns the error of reading the input.
    #[must_use]
    pub fn io(&self) -> Option<&io::Error> {
        match &*self.0 {
            Problem::Io(error) => Some(error),
            _ => None,
        }
    }

    /// Returns [`Warning`](Severity::Warning) where all images were found nevertheless.
    #[must_use]
    pub fn severity(&self) -> Severity {
        match &*self.0 {
            Problem::Composition(_)
            | Problem::Disagreement { .. }
            | Problem::GccIntermediateCode
            | Problem::Embedded { .. }
            | Problem::EntriesAlone { .. }
            | Problem::NoSectionHeaders => Severity::Warning,
            Problem::Finding(finding) => finding.severity(),
            _ => Severity::Error,
        }
    }

    /// Returns the error about the stream of a compressed offload binary, which lacks the header of a compressed
    /// bundle.
    #[must_use]
    pub fn of_offload_binary_stream(error: ccob::Error) -> Self {
        Problem::PackageStream(error).into()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Error(Arc::new(problem))
    }
}

/// One fault, with all that its text says.
#[derive(Debug)]
pub(crate) enum Problem {
    Bundle(bundle_format::Error),
    Ccob(ccob::Error),
    OffloadBinary(offload_binary::Error),
    PackageStream(ccob::Error),
    NvFatbin(::nv_fatbin::Error),
    Image { entry: String, error: ::nv_fatbin::Error },
    Hcf(crate::hcf::Error),
    Kpack(::kpack::Error),
    Bitcode(llvm_bitcode::Error),
    Sycl(sycl::Error),
    SyclTable(crate::sycl_table::Error),
    Object { format: &'static str, detail: String },
    Archive { detail: String },
    MemberBeyondEnd { name: String, start: u64, end: u64, available: u64 },
    MemberName { name: String, offset: u64 },
    ThinMember { name: String, source: io::Error },
    ThinMemberSize { name: String, expected: u64, found: u64 },
    NestedThinArchive,
    ThinMembersTooLarge { name: String, size: u64, limit: u64 },
    DecompressedInAll { uncompressed_size: u64, limit: u64 },
    Table { size: u64, limit: u64 },
    TooManyNames { limit: u64 },
    SectionBeyondEnd { name: String, start: u64, end: u64, available: u64 },
    SegmentTable { start: u64, end: u64, available: u64 },
    SegmentBeyondEnd { index: usize, start: u64, end: u64, available: u64 },
    PtxTarget { looked_at: usize },
    Shader { format: FileFormat, available: u64 },
    IntelElf { format: FileFormat, fault: Fault },
    SpirV { offset: u64, expected: &'static str, found: u64 },
    OverlappingSections { name: String, start: u64, end: u64 },
    SecondHost { id: String },
    Slice { index: usize, start: u64, end: u64, available: u64 },
    UnknownContents { first: Vec<u8> },
    TrailingBytes { after: u64, first: Vec<u8> },
    TooDeep { limit: usize },
    Composition(bundle_format::CompositionFinding),
    Disagreement { entry: String, disagreement: Disagreement },
    ScanStopped { at: u64 },
    GccIntermediateCode,
    NoSectionHeaders,
    GzipStream { reason: &'static str },
    GzipTrailer { available: usize },
    GzipCrc { expected: u32, found: u32 },
    GzipSize { expected: u32, found: u64 },
    Syclbin { what: String, expected: u64, found: u64 },
    SyclbinOverlap { first: usize, second: usize, at: u64 },
    Embedded { format: FileFormat, at: u64 },
    EntriesAlone { section: String },
    Format { format: FileFormat },
    Io(io::Error),
    Finding(Box<Finding>),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bundle(error) => error.fmt(f),
            Self::Ccob(error) => error.fmt(f),
            Self::OffloadBinary(error) => error.fmt(f),
            Self::PackageStream(error) => {
                f.write_str(&error.to_string().replace("compressed bundle", "compressed package"))
            },
            Self::NvFatbin(error) => error.fmt(f),
            Self::Image { entry, error } => write!(f, "image {}: {error}", printable(entry)),
            Self::Hcf(error) => error.fmt(f),
            Self::Kpack(error) => error.fmt(f),
            Self::Bitcode(error) => error.fmt(f),
            Self::Sycl(error) => error.fmt(f),
            Self::SyclTable(error) => error.fmt(f),
            Self::Object { format, detail } => write!(f, "malformed {format} file: {detail}"),
            Self::Archive { detail } => write!(f, "malformed archive: {detail}"),
            Self::MemberBeyondEnd { name, start, end, available } => write!(f, "archive is cut short: member {name} needs bytes {start:#x}..{end:#x}, the archive ends at {available:#x}",
        name = printable(name)),
            Self::MemberName { name, offset } => write!(f, "archive member at {offset:#x}: expected a name or a reference to one, found {name}",
        name = printable(name)),
            Self::ThinMember { name, source } => write!(f, "thin archive member {name}: cannot be read: {source}", name = printable(name)),
            Self::ThinMemberSize { name, expected, found } => write!(f, "thin archive member {name}: expected {expected} bytes, found {found}",
        name = printable(name)),
            Self::NestedThinArchive => f.write_str("nested thin archive: members not opened"),
            Self::ThinMembersTooLarge { name, size, limit } => write!(f, "thin archive member {name}: opening it ({size} bytes) would exceed the limit of {limit} bytes in total",
        name = printable(name)),
            Self::DecompressedInAll { uncompressed_size, limit } => write!(f, "decompressing {uncompressed_size} bytes here would exceed the limit of {limit} bytes in total"),
            Self::Table { size, limit } => write!(f, "a table has {size} bytes: at most {limit} are read"),
            Self::TooManyNames { limit } => write!(f, "names and strings exceed the limit of {limit} bytes in total"),
            Self::SectionBeyondEnd { name, start, end, available } => write!(f, "section {name} lies at {start:#x}..{end:#x}, beyond the end of the file at {available:#x}",
        name = printable(name)),
            Self::SegmentTable { start, end, available } => write!(f, "segment table lies at {start:#x}..{end:#x}, beyond the end of the file at {available:#x}"),
            Self::SegmentBeyondEnd { index, start, end, available } => write!(f, "segment {index} lies at {start:#x}..{end:#x}, beyond the end of the file at {available:#x}"),
            Self::PtxTarget { looked_at } => write!(f, "PTX names no target: expected a directive .target in the first {looked_at} bytes"),
            Self::Shader { format, available } => write!(f, "malformed {format}: expected a header whose sizes fit the {available} bytes that are there"),
            Self::IntelElf { format, fault } => write!(f, "malformed {format}: byte {fault}"),
            Self::SpirV { offset, expected, found } => write!(f, "malformed SPIR-V module: byte {offset:#x}: expected {expected}, found {found}"),
            Self::OverlappingSections { name, start, end } => write!(f, "section {name} at {start:#x}..{end:#x} overlaps another section with device code",
        name = printable(name)),
            Self::SecondHost { id } => write!(f, "duplicate host placeholder {id}",
        id = printable(id)),
            Self::Slice { index, start, end, available } => write!(f, "slice {index} of the universal file lies at {start:#x}..{end:#x}: it overlaps another or lies beyond the end at {available:#x}"),
            Self::UnknownContents { first } => write!(f, "unrecognized data: expected a bundle, package or fatbinary (first bytes {first:02x?})"),
            Self::TrailingBytes { after, first } => write!(f, "unrecognized data {after} bytes after the start of the section or file (first bytes {first:02x?})"),
            Self::TooDeep { limit } => write!(f, "containers are nested more than {limit} deep"),
            Self::Composition(error) => error.fmt(f),
            Self::Disagreement { entry, disagreement } => write!(f, "entry {entry} and its image disagree: {disagreement}", entry = printable(entry)),
            Self::ScanStopped { at } => write!(f, "the scan for containers stopped at {at:#x}: too many bytes look like the start of one"),
            Self::GccIntermediateCode => f.write_str("GCC's intermediate code for devices (.gnu.offload_lto_*) is not read: GCC generates device code at link time"),
            Self::NoSectionHeaders => write!(f, "no section headers: device code, if any, cannot be found"),
            Self::Syclbin { what, expected, found } => write!(f, "malformed SYCLBIN: {what} is {found:#x}, expected {expected:#x}"),
            Self::SyclbinOverlap { first, second, at } => write!(f, "malformed SYCLBIN: images {first} and {second} overlap at {at:#x}"),
            Self::GzipStream { reason } => write!(f, "the gzip stream with device code cannot be decompressed: {reason}"),
            Self::GzipTrailer { available } => write!(f, "the gzip stream with device code ends early: expected a trailer of 8 bytes, found {available}"),
            Self::GzipCrc { expected, found } => write!(f, "the gzip stream with device code fails its checksum: expected CRC-32 {expected:08x}, found {found:08x}"),
            Self::GzipSize { expected, found } => write!(f, "the gzip stream with device code has another size than it says: expected {expected} bytes, found {found}"),
            Self::EntriesAlone { section } => write!(f, "section {section} registers kernels, but the file holds no device code"),
            Self::Embedded { format, at } => write!(f, "the {format} at {at:#x} is not read"),
            Self::Format { format } => {
                write!(f, "files of this format are not read: {format}")
            }
            Self::Io(error) => error.fmt(f),
            Self::Finding(finding) => finding.fmt(f),
        }
    }
}

/// Errors of reading come out as they are. Others are inside: as [`Unsupported`](io::ErrorKind::Unsupported) if the format
/// of the file is not read, else as [`InvalidData`](io::ErrorKind::InvalidData).
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &*error.0 {
            Problem::Io(error) => error.kind(),
            Problem::Format { .. } => io::ErrorKind::Unsupported,
            _ => io::ErrorKind::InvalidData,
        };
        match Arc::try_unwrap(error.0) {
            Ok(Problem::Io(error)) => error,
            Ok(problem) => io::Error::new(kind, Error::from(problem)),
            Err(shared) => io::Error::new(kind, Error(shared)),
        }
    }
}

/// Takes out an [`Error`] or a [`Finding`] that is inside, as in errors of [`walk`](crate::walk()); others are errors of
/// reading.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => error,
            Err(error) => match error.downcast::<Finding>() {
                Ok(finding) => Problem::Finding(Box::new(finding)).into(),
                Err(error) => Problem::Io(error).into(),
            },
        }
    }
}

/// Each is the error of reading one format, as it is.
macro_rules! from {
    ($($of:ident::$variant:ident($error:ty);)*) => {
        $(impl From<$error> for $of {
            fn from(error: $error) -> Self {
                Problem::$variant(error).into()
            }
        })*
    };
}

from! {
    Problem::Bundle(bundle_format::Error);
    Problem::Ccob(ccob::Error);
    Problem::OffloadBinary(offload_binary::Error);
    Problem::NvFatbin(::nv_fatbin::Error);
    Problem::Hcf(crate::hcf::Error);
    Problem::Bitcode(llvm_bitcode::Error);
    Problem::Sycl(sycl::Error);
    Problem::SyclTable(crate::sycl_table::Error);
    Error::Bundle(bundle_format::Error);
    Error::Ccob(ccob::Error);
    Error::OffloadBinary(offload_binary::Error);
}

impl From<Problem> for io::Error {
    fn from(problem: Problem) -> Self {
        Error::from(problem).into()
    }
}

/// Something wrong in the walked file. The walk goes on wherever the damage leaves a way.
///
/// Its [`Display`](fmt::Display) form is one line that names the place and what is wrong; control characters of names are
/// escaped: `section:.hip_fatbin/ccob:1 at byte 0x2000: ...`.
#[derive(Clone, Debug)]
pub struct Finding {
    pub(crate) path: Arc<[PathStep]>,
    pub(crate) location: Location,
    pub(crate) error: Error,
}

impl Finding {
    /// Returns the containers around it, from outside in.
    #[must_use]
    pub fn path(&self) -> &[PathStep] {
        &self.path
    }

    /// Returns the start of the container that the error is about.
    #[must_use]
    pub fn location(&self) -> Location {
        self.location
    }

    /// Returns the error.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// Returns the severity.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.error.severity()
    }

    /// Fails with an error of [`InvalidData`](io::ErrorKind::InvalidData) with the finding inside, unless it is a
    /// warning.
    pub(crate) fn error_only(&self) -> io::Result<()> {
        match self.severity() {
            Severity::Warning => Ok(()),
            Severity::Error => Err(io::Error::new(io::ErrorKind::InvalidData, self.clone())),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_path(f, &self.path)?;
        let space = if self.path.is_empty() { "" } else { " " };
        write!(f, "{space}at {}: {}", self.location, self.error)
    }
}

/// The error with which [`Visitor::finding`](crate::Visitor::finding) ends a walk by default.
impl std::error::Error for Finding {}
