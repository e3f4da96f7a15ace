//! The results of a walk other than images: containers, findings and their places; and the visitor.

use std::fmt;
use std::sync::Arc;

use crate::source::Origin;
use crate::text::{lossy, printable};

/// One kind of thing that device images lie in.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ContainerKind {
    /// A member of an `ar` archive.
    Member,
    /// One architecture of a universal Mach-O file.
    Slice,
    /// A section of an object file, executable or library; of LLVM bitcode, a global that becomes one.
    Section,
    /// An offload binary of LLVM (`10 FF 10 AD`).
    OffloadBinary,
    /// A bundle (`__CLANG_OFFLOAD_BUNDLE__`), binary or text.
    Bundle,
    /// A compressed bundle (`CCOB`).
    Ccob,
    /// An NVIDIA fatbinary.
    NvFatbin,
    /// An entry of an NVIDIA fatbinary with several images, compressed as one. They are
    /// [described](crate::ImageInfo::container) by the fatbinary.
    Concatenated,
    /// A stream of gzip with device code, as programs embed PTX.
    Gzip,
    /// An HCF container of AdaptiveCpp.
    Hcf,
    /// A SYCLBIN file of Intel's compiler.
    Syclbin,
    /// The code objects of a kernel pack of AMD's for one wrapper of a library, for different targets.
    Kpack,
    /// No container: the file, or the member of an archive, is the image. No [`PathStep`] is of this kind.
    File,
    /// An image that is a container itself, or a host object that carries device code.
    Image,
    /// Bytes of a host file in no section that is known by name: after the last section, or of a file without any. The
    /// [scan](crate::Options::with_scan) finds containers there.
    OutsideSections,
}

impl ContainerKind {
    /// Returns the name used in machine-readable output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ContainerKind::Member => "member",
            ContainerKind::Slice => "slice",
            ContainerKind::Section => "section",
            ContainerKind::OffloadBinary => "offload-binary",
            ContainerKind::Bundle => "bundle",
            ContainerKind::Ccob => "ccob",
            ContainerKind::NvFatbin => "nv-fatbin",
            ContainerKind::Concatenated => "concatenated",
            ContainerKind::Gzip => "gzip",
            ContainerKind::Hcf => "hcf",
            ContainerKind::Syclbin => "syclbin",
            ContainerKind::Kpack => "kpack",
            ContainerKind::File => "file",
            ContainerKind::Image => "image",
            ContainerKind::OutsideSections => "outside-sections",
        }
    }

    /// Returns whether it is a format for device images: `false` for places in files (members, slices, sections), for
    /// parts of a container, and for data that is only compressed.
    #[must_use]
    pub fn is_format(self) -> bool {
        match self {
            ContainerKind::OffloadBinary
            | ContainerKind::Bundle
            | ContainerKind::Ccob
            | ContainerKind::NvFatbin
            | ContainerKind::Hcf
            | ContainerKind::Syclbin
            | ContainerKind::Kpack => true,
            ContainerKind::Member
            | ContainerKind::Slice
            | ContainerKind::Section
            | ContainerKind::Concatenated
            | ContainerKind::Gzip
            | ContainerKind::File
            | ContainerKind::Image
            | ContainerKind::OutsideSections => false,
        }
    }
}

impl fmt::Display for ContainerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One step from the outside of a file towards an image.
///
/// Its [`Display`](fmt::Display) form is `kind:name`, for example `section:.hip_fatbin` or `ccob:1`: for people, with
/// control characters of the name escaped, and the name cut after 1024 characters.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStep {
    kind: ContainerKind,
    /// One name can be in the paths of many containers.
    name: Arc<str>,
    /// The bytes of a name that is not UTF-8.
    name_bytes: Option<Arc<[u8]>>,
    /// `true` if the scan found what lies here.
    scanned: bool,
}

impl PathStep {
    pub(crate) fn new(kind: ContainerKind, name: impl Into<Arc<str>>) -> Self {
        PathStep { kind, name: name.into(), name_bytes: None, scanned: false }
    }

    /// Makes a segment whose name may not be UTF-8.
    pub(crate) fn from_bytes(kind: ContainerKind, bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(name) => PathStep::new(kind, name),
            Err(_) => PathStep {
                kind,
                name: lossy(bytes).into(),
                name_bytes: Some(bytes.into()),
                scanned: false,
            },
        }
    }

    /// Returns the same for a place that the scan found.
    pub(crate) fn found_by_scan(self) -> Self {
        PathStep { scanned: true, ..self }
    }

    /// Returns whether the [scan](crate::Options::with_scan) found what lies here: a section for other data, or
    /// [bytes outside of sections](ContainerKind::OutsideSections). The [name](Self::name) of such a place tells its
    /// offset.
    #[must_use]
    pub fn is_found_by_scan(&self) -> bool {
        self.scanned
    }

    /// Returns the kind of the container that this step enters.
    #[must_use]
    pub fn kind(&self) -> ContainerKind {
        self.kind
    }

    /// Returns the name of the member, slice, section or image; the position among their neighbours, from 0, of
    /// containers that have no name.
    ///
    /// Containers that the [scan](crate::Options::with_scan) finds are named by their offset in the file (or in the data that
    /// is [not of the file](Location)): `.rodata at 0x1b9fe050` in a section, `0x1b9fe050` outside.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name of a member as its archive stores it, which may not be UTF-8; the [`name`](Self::name) of other
    /// segments.
    #[must_use]
    pub fn name_bytes(&self) -> &[u8] {
        self.name_bytes.as_deref().unwrap_or_else(|| self.name.as_bytes())
    }
}

impl fmt::Display for PathStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, printable(&self.name))
    }
}

/// The start of something.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Location {
    /// At this byte offset of the walked file.
    File(u64),
    /// At this byte offset of the decompressed contents of the innermost compressed bundle, or of the plain form of the
    /// innermost compressed offload binary.
    Decompressed(u64),
    /// At this byte offset of the file that a thin archive names.
    ThinMember(u64),
    /// At this byte offset of the data that the innermost LLVM bitcode embeds: it starts at any bit of the file.
    Bitcode(u64),
}

impl Location {
    pub(crate) fn new(origin: Origin, offset: u64) -> Self {
        match origin {
            Origin::File => Location::File(offset),
            Origin::Decompressed => Location::Decompressed(offset),
            Origin::ThinMember => Location::ThinMember(offset),
            Origin::Bitcode => Location::Bitcode(offset),
        }
    }

    /// Returns the byte offset from its origin.
    #[must_use]
    pub fn offset(self) -> u64 {
        match self {
            Location::File(offset)
            | Location::Decompressed(offset)
            | Location::ThinMember(offset)
            | Location::Bitcode(offset) => offset,
        }
    }

    /// Returns the byte offset in the walked file; `None` for places elsewhere.
    #[must_use]
    pub fn file_offset(self) -> Option<u64> {
        match self {
            Location::File(offset) => Some(offset),
            Location::Decompressed(_) | Location::ThinMember(_) | Location::Bitcode(_) => None,
        }
    }

    /// Returns `len` bytes from here, if they lie in the walked file.
    pub(crate) fn slice_of(self, file: &[u8], len: u64) -> Option<&[u8]> {
        let start = usize::try_from(self.file_offset()?).ok()?;
        file.get(start..)?.get(..usize::try_from(len).ok()?)
    }
}

/// `byte 0x2000`, and of what if not of the file.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::File(at) => write!(f, "byte {at:#x}"),
            Location::Decompressed(at) => write!(f, "byte {at:#x} of the decompressed data"),
            Location::ThinMember(at) => write!(f, "byte {at:#x} of the member's file"),
            Location::Bitcode(at) => write!(f, "byte {at:#x} of the embedded data"),
        }
    }
}

/// The method of a compressed container, and its sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compression {
    pub(crate) method: &'static str,
    pub(crate) format_version: Option<u16>,
    pub(crate) stored_size: u64,
    pub(crate) uncompressed_size: u64,
}

impl Compression {
    /// Returns the name of the method: `zlib`, `zstd`, `lz4`, `gzip`.
    #[must_use]
    pub fn method(&self) -> &'static str {
        self.method
    }

    /// Returns the version of a compressed bundle; `None` of what has no versions.
    #[must_use]
    pub fn format_version(&self) -> Option<u16> {
        self.format_version
    }

    /// Returns the number of its bytes in the file, headers of the compressed container included.
    #[must_use]
    pub fn stored_size(&self) -> u64 {
        self.stored_size
    }

    /// Returns the number of its bytes when it is decompressed.
    #[must_use]
    pub fn uncompressed_size(&self) -> u64 {
        self.uncompressed_size
    }

    /// Returns whether [`Image::code`](crate::Image::code) knows the method: only NVIDIA's linker reads scrambled
    /// LTO-IR.
    #[must_use]
    pub fn is_known(&self) -> bool {
        let codec = nv_fatbin::Codec::from_name(self.method);
        !matches!(codec, None | Some(nv_fatbin::Codec::Scrambled | nv_fatbin::Codec::Unknown))
    }
}

/// A container that the walk came to.
#[derive(Debug)]
pub struct Container {
    pub(crate) path: Arc<[PathStep]>,
    pub(crate) kind: ContainerKind,
    pub(crate) location: Location,
    pub(crate) size: u64,
    pub(crate) compression: Option<Compression>,
}

impl Container {
    /// Returns the containers around it from outside in, itself the last.
    #[must_use]
    pub fn path(&self) -> &[PathStep] {
        &self.path
    }

    /// Returns its kind.
    #[must_use]
    pub fn kind(&self) -> ContainerKind {
        self.kind
    }

    /// Returns its start.
    #[must_use]
    pub fn location(&self) -> Location {
        self.location
    }

    /// Returns the number of bytes from its start to its end, as stored.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the compression of a [`ContainerKind::Ccob`] or of a compressed [`ContainerKind::OffloadBinary`].
    #[must_use]
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }
}

/// The answer of a consumer to the question whether a container is to be opened: there are these three.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Enter {
    /// All in it is walked.
    Open,
    /// As before, but the images of a compressed bundle are shown while what it holds is still being compared with
    /// its hash, on a second thread. For consumers that discard their results if something is wrong: a wrong hash
    /// is a finding after the images, and makes those images unreliable.
    OpenEarly,
    /// It is passed over: not read, not decompressed, and nothing in it is found wrong.
    Skip,
}

/// The severity of a [`Finding`](crate::Finding).
///
/// Exhaustive: a new severity must stop the build of a caller, which decides by it whether to trust a walk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Severity {
    /// The format is kept, a rule of composition is not; every image was found.
    Warning,
    /// Malformed: images may be missing from the walk.
    Error,
}

impl Severity {
    /// Returns the name used in machine-readable output: `warning`, `error`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// Writes a path like `section:.hip_fatbin/ccob:1`.
pub(crate) fn write_path(f: &mut fmt::Formatter<'_>, path: &[PathStep]) -> fmt::Result {
    for (i, segment) in path.iter().enumerate() {
        let separator = if i == 0 { "" } else { "/" };
        write!(f, "{separator}{segment}")?;
    }
    Ok(())
}
