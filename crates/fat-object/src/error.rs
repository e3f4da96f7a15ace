//! Errors in a walked file.

use std::ops::Range;
use std::sync::Arc;
use std::{fmt, io};

use bundle_format::CompositionFinding;
use device_code::FileFormat;

use crate::model::{ContainerKind, Location, PathStep, Severity, write_path};
use crate::text::printable;

/// An error in a walked file, with its place. Offsets in the text count from the start of the container that the
/// [`Finding`](crate::Finding) names.
///
/// The text says what is wrong, where, and what was expected; [`kind`](Self::kind) and the other functions are for
/// programs.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct Error(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    severity: Severity,
    container: Option<ContainerKind>,
    /// The kind as an error of io.
    io: io::ErrorKind,
    inside: Option<Inside>,
    message: String,
}

/// An error of another crate, or a finding, that a getter gives. Its text is in the message.
#[derive(Debug)]
enum Inside {
    Ccob(ccob::Error),
    OffloadBinary(offload_binary::Error),
    Bitcode(llvm_bitcode::Error),
    Composition(CompositionFinding),
    Io(io::Error),
}

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A container is malformed, cut short, fails its hash, or cannot be decompressed: [`Error::container`] returns its
    /// kind.
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
    /// An image is malformed where a walk looks into images: a SYCL image that cannot be decompressed, PTX without a
    /// target; or where a visitor does: [`ImageInfo::finding_of`](crate::ImageInfo::finding_of).
    Image,
    /// A section that by name or type holds device code starts with none of the known magics.
    UnknownContents,
    /// Between containers, or after the last, there are bytes that are neither zeros nor a container.
    TrailingData,
    /// A bundle breaks a rule of composition (Clang Offload Bundler documentation, "Bundled Code Object Composition"),
    /// or a second entry of the object form is the host object itself.
    Composition,
    /// An image is for other devices than its entry says: [`ImageInfo::disagreement`](crate::ImageInfo::disagreement).
    Disagreement,
    /// An entry of an offload binary has a key more than once. Readers, LLVM's too, take the last value.
    RepeatedKey,
    /// The work would exceed the time or memory that [`Options`](crate::Options) allow. It is passed over, or the
    /// rest of it is.
    Limit,
    /// Names of sections and members, strings of offload binaries, and the names in the paths of images come to more than
    /// 64 MiB and four times the bytes that were walked, as only those can that share bytes, or paths with long
    /// names. Entries after it are not looked at.
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
        self.0.kind
    }

    /// Returns the kind of the container that is [malformed](ErrorKind::Malformed).
    #[must_use]
    pub fn container(&self) -> Option<ContainerKind> {
        self.0.container
    }

    /// Returns the error of the crate `ccob` about a compressed bundle, or about the stream of a compressed offload
    /// binary. Offsets and sizes of the latter count from the end of the header of the uncompressed offload binary,
    /// except for the limit.
    #[must_use]
    pub fn ccob(&self) -> Option<&ccob::Error> {
        if let Some(Inside::Ccob(error)) = &self.0.inside { Some(error) } else { None }
    }

    /// Returns the error of the crate `offload_binary` about an offload binary.
    #[must_use]
    pub fn offload_binary(&self) -> Option<&offload_binary::Error> {
        if let Some(Inside::OffloadBinary(error)) = &self.0.inside { Some(error) } else { None }
    }

    /// Returns the error of the crate `llvm_bitcode` about bitcode for the host.
    #[must_use]
    pub fn bitcode(&self) -> Option<&llvm_bitcode::Error> {
        if let Some(Inside::Bitcode(error)) = &self.0.inside { Some(error) } else { None }
    }

    /// Returns the rule of composition that a bundle breaks.
    #[must_use]
    pub fn composition(&self) -> Option<&CompositionFinding> {
        if let Some(Inside::Composition(finding)) = &self.0.inside { Some(finding) } else { None }
    }

    /// Returns the error of reading the input.
    #[must_use]
    pub fn io(&self) -> Option<&io::Error> {
        if let Some(Inside::Io(error)) = &self.0.inside { Some(error) } else { None }
    }

    /// Returns [`Warning`](Severity::Warning) where all images were found nevertheless.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.0.severity
    }

    /// Returns the error about the stream of a compressed offload binary, which lacks the header of a compressed
    /// bundle.
    #[must_use]
    pub fn of_offload_binary_stream(error: ccob::Error) -> Self {
        let message = error.to_string().replace("compressed bundle", "compressed package");
        let inner = Inner::of_container(ContainerKind::OffloadBinary, message);
        inner.with(Inside::Ccob(error))
    }

    #[cold]
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Inner::new(kind, message).into()
    }

    #[cold]
    pub(crate) fn warning(kind: ErrorKind, message: impl Into<String>) -> Self {
        Inner { severity: Severity::Warning, ..Inner::new(kind, message) }.into()
    }

    /// Creates the error of a malformed container.
    #[cold]
    pub(crate) fn malformed(container: ContainerKind, message: impl Into<String>) -> Self {
        Inner::of_container(container, message).into()
    }

    #[cold]
    pub(crate) fn of_bitcode(error: llvm_bitcode::Error) -> Self {
        Inner::new(ErrorKind::HostFile, error.to_string()).with(Inside::Bitcode(error))
    }

    #[cold]
    pub(crate) fn of_kpack(error: &::kpack::Error) -> Self {
        let kind = match error.kind() {
            ::kpack::ErrorKind::Limit => ErrorKind::Limit,
            _ => ErrorKind::Malformed,
        };
        Inner { kind, ..Inner::of_container(ContainerKind::Kpack, error.to_string()) }.into()
    }

    #[cold]
    pub(crate) fn of_composition(finding: CompositionFinding) -> Self {
        let inner = Inner::new(ErrorKind::Composition, finding.to_string());
        Inner { severity: Severity::Warning, ..inner }.with(Inside::Composition(finding))
    }

    /// Creates the error whose text names the place of the finding, too.
    #[cold]
    pub(crate) fn of_finding(finding: &Finding) -> Self {
        let inner = Inner::new(finding.error.kind(), finding.to_string());
        Inner { severity: finding.severity(), ..inner }.into()
    }

    /// Creates the error of a host file of this format.
    #[cold]
    pub(crate) fn of_object(format: &str, detail: impl fmt::Display) -> Self {
        let message = format!("malformed {format} file: {detail}");
        Self::new(ErrorKind::HostFile, message)
    }

    /// Creates the error of a file whose format is not read.
    #[cold]
    pub(crate) fn not_read(format: FileFormat) -> Self {
        let message = format!("files of this format are not read: {format}");
        let inner = Inner::new(ErrorKind::NotRead, message);
        Inner { io: io::ErrorKind::Unsupported, ..inner }.into()
    }

    /// Creates the warning of a part that is not read, at an offset from the start of the container.
    #[cold]
    pub(crate) fn embedded(format: FileFormat, at: u64) -> Self {
        Self::warning(ErrorKind::NotRead, format!("the {format} at {at:#x} is not read"))
    }

    #[cold]
    pub(crate) fn no_section_headers() -> Self {
        let message = "no section headers: device code, if any, cannot be found";
        Self::warning(ErrorKind::NotRead, message)
    }

    #[cold]
    pub(crate) fn gcc_intermediate_code() -> Self {
        let message = "GCC's intermediate code for devices (.gnu.offload_lto_*) is not read: GCC generates device code at link time";
        Self::warning(ErrorKind::NotRead, message)
    }

    #[cold]
    pub(crate) fn section_beyond_end(
        name: &str,
        Range { start, end }: &Range<u64>,
        available: u64,
    ) -> Self {
        let name = printable(name);
        let message = format!(
            "section {name} lies at {start:#x}..{end:#x}, beyond the end of the file at {available:#x}"
        );
        Self::new(ErrorKind::HostFile, message)
    }

    #[cold]
    pub(crate) fn overlapping_sections(name: &str, Range { start, end }: &Range<u64>) -> Self {
        let name = printable(name);
        let message = format!(
            "section {name} at {start:#x}..{end:#x} overlaps another section with device code"
        );
        Self::new(ErrorKind::HostFile, message)
    }

    #[cold]
    pub(crate) fn unknown_contents(first: &[u8]) -> Self {
        let expected = ": expected a bundle, package or fatbinary";
        Self::unrecognized(ErrorKind::UnknownContents, expected, first)
    }

    /// Creates the error of data `after` bytes after the start.
    #[cold]
    pub(crate) fn trailing_data(after: u64, first: &[u8]) -> Self {
        let place = format!(" {after} bytes after the start of the section or file");
        Self::unrecognized(ErrorKind::TrailingData, &place, first)
    }

    fn unrecognized(kind: ErrorKind, detail: &str, first: &[u8]) -> Self {
        Self::new(kind, format!("unrecognized data{detail} (first bytes {first:02x?})"))
    }

    #[cold]
    pub(crate) fn too_many_names(limit: u64) -> Self {
        let message = format!("names and strings exceed the limit of {limit} bytes in total");
        Self::new(ErrorKind::Names, message)
    }

    #[cold]
    pub(crate) fn decompressed_in_all(size: u64, limit: u64) -> Self {
        let message = format!(
            "decompressing {size} bytes here would exceed the limit of {limit} bytes in total"
        );
        Self::new(ErrorKind::Limit, message)
    }
}

impl Inner {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let (severity, io) = (Severity::Error, io::ErrorKind::InvalidData);
        Inner { kind, severity, container: None, io, inside: None, message: message.into() }
    }

    fn of_container(container: ContainerKind, message: impl Into<String>) -> Self {
        Inner { container: Some(container), ..Self::new(ErrorKind::Malformed, message) }
    }

    fn with(self, inside: Inside) -> Error {
        Inner { inside: Some(inside), ..self }.into()
    }
}

impl From<Inner> for Error {
    fn from(inner: Inner) -> Self {
        Error(Arc::new(inner))
    }
}

/// Errors of reading come out as they are. Others are inside: as [`Unsupported`](io::ErrorKind::Unsupported) if the format
/// of the file is not read, else as [`InvalidData`](io::ErrorKind::InvalidData).
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = error.0.io;
        match Arc::try_unwrap(error.0) {
            Ok(Inner { inside: Some(Inside::Io(error)), .. }) => error,
            Ok(inner) => io::Error::new(kind, Error::from(inner)),
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
                Ok(finding) => Self::of_finding(&finding),
                Err(error) => {
                    let inner = Inner::new(ErrorKind::Io, error.to_string());
                    Inner { io: error.kind(), ..inner }.with(Inside::Io(error))
                }
            },
        }
    }
}

impl From<bundle_format::Error> for Error {
    fn from(error: bundle_format::Error) -> Self {
        Self::malformed(ContainerKind::Bundle, error.to_string())
    }
}

impl From<ccob::Error> for Error {
    fn from(error: ccob::Error) -> Self {
        let inner = Inner::of_container(ContainerKind::Ccob, error.to_string());
        inner.with(Inside::Ccob(error))
    }
}

impl From<offload_binary::Error> for Error {
    fn from(error: offload_binary::Error) -> Self {
        let inner = Inner::of_container(ContainerKind::OffloadBinary, error.to_string());
        inner.with(Inside::OffloadBinary(error))
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
    /// Creates the error that the bytes of a file from an offset on were not read, with the number of bytes and the reason: the error of
    /// callers that walk only the start of a file.
    ///
    /// ```
    /// let finding = fat_object::Finding::rest_not_read(65536, 100, "the member is too large");
    /// assert_eq!(finding.to_string(), "at byte 0x10000: the last 100 bytes are not read: the member is too large");
    /// assert_eq!(finding.error().kind(), fat_object::ErrorKind::NotRead);
    /// ```
    #[must_use]
    pub fn rest_not_read(at: u64, bytes: u64, why: &str) -> Self {
        let message = format!("the last {bytes} bytes are not read: {why}");
        let error = Error::new(ErrorKind::NotRead, message);
        Finding { path: Arc::new([]), location: Location::File(at), error }
    }

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
