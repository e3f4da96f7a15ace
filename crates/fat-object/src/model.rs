//! What a walk yields: containers, images, findings, and where each one lies.

use std::fmt::{self, Write as _};
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use target_id::Target;

use crate::containers::lossy;
use crate::edit::EditError;
use crate::embed::HostObject;
use crate::error::Error;
use crate::image_format::ImageFormat;
use crate::source::{Origin, ReadSeek, Source, SourceReader};

/// One kind of thing that device images lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ContainerKind {
    /// A member of an `ar` archive.
    Member,
    /// One architecture of a universal Mach-O file.
    Slice,
    /// A section of an object file, executable or library; of LLVM bitcode, a global that becomes one.
    Section,
    /// An LLVM packager binary (`10 FF 10 AD`).
    OffloadBinary,
    /// A bundle (`__CLANG_OFFLOAD_BUNDLE__`), binary or text.
    Bundle,
    /// A compressed bundle (`CCOB`).
    Ccob,
    /// An NVIDIA fatbinary.
    NvFatbin,
    /// An image that is a container itself, or a host object that carries device code.
    Image,
}

impl ContainerKind {
    /// The name used in machine-readable output.
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
            ContainerKind::Image => "image",
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    kind: ContainerKind,
    /// One name can be in the paths of many containers.
    name: Arc<str>,
    /// Where it is not UTF-8.
    name_bytes: Option<Arc<[u8]>>,
}

impl Segment {
    pub(crate) fn new(kind: ContainerKind, name: impl Into<Arc<str>>) -> Self {
        Segment { kind, name: name.into(), name_bytes: None }
    }

    /// A segment whose name may be no UTF-8.
    pub(crate) fn from_bytes(kind: ContainerKind, bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(name) => Segment::new(kind, name),
            Err(_) => Segment { kind, name: lossy(bytes).into(), name_bytes: Some(bytes.into()) },
        }
    }

    /// What this step enters.
    #[must_use]
    pub fn kind(&self) -> ContainerKind {
        self.kind
    }

    /// The name of the member, slice, section or image; the position among their neighbours, from 0, of
    /// containers that have no name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of a member as its archive stores it, which may be no UTF-8; [`name`](Self::name) for others.
    #[must_use]
    pub fn name_bytes(&self) -> &[u8] {
        self.name_bytes.as_deref().unwrap_or_else(|| self.name.as_bytes())
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, printable(&self.name))
    }
}

/// A name in the text of a message: without control characters, which could move a terminal's cursor, and cut
/// where it gets long, because one name can be in many messages.
pub(crate) struct Printable<'a>(&'a str);

/// Characters.
const LONGEST_PRINTED: usize = 1024;

pub(crate) fn printable(name: &str) -> Printable<'_> {
    Printable(name)
}

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = self.0.char_indices().nth(LONGEST_PRINTED).map(|(end, _)| end);
        let name = cut.and_then(|end| self.0.get(..end)).unwrap_or(self.0);
        for c in name.chars() {
            if c.is_control() {
                write!(f, "{}", c.escape_default())?;
            } else {
                f.write_char(c)?;
            }
        }
        if cut.is_some() { f.write_str("...") } else { Ok(()) }
    }
}

/// Where something starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Location {
    /// At this byte offset of the walked file.
    File(u64),
    /// At this byte offset of the decompressed contents of the innermost compressed bundle.
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

    /// The byte offset in the walked file; `None` for what lies elsewhere.
    #[must_use]
    pub fn file_offset(self) -> Option<u64> {
        match self {
            Location::File(offset) => Some(offset),
            Location::Decompressed(_) | Location::ThinMember(_) | Location::Bitcode(_) => None,
        }
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

/// How a compressed container is compressed, and what it saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Compression {
    pub(crate) method: &'static str,
    pub(crate) stored_size: u64,
    pub(crate) uncompressed_size: u64,
}

impl Compression {
    /// The name of the method: `zlib`, `zstd`, `lz4`.
    #[must_use]
    pub fn method(&self) -> &'static str {
        self.method
    }

    /// Bytes it takes in the file, headers of the compressed container included.
    #[must_use]
    pub fn stored_size(&self) -> u64 {
        self.stored_size
    }

    /// Bytes it decompresses to.
    #[must_use]
    pub fn uncompressed_size(&self) -> u64 {
        self.uncompressed_size
    }
}

/// A container that the walk enters.
#[derive(Clone, Copy, Debug)]
pub struct Container<'e> {
    pub(crate) path: &'e [Segment],
    pub(crate) kind: ContainerKind,
    pub(crate) location: Location,
    pub(crate) size: u64,
    pub(crate) compression: Option<Compression>,
}

impl Container<'_> {
    /// The containers around it from outside in, itself the last.
    #[must_use]
    pub fn path(&self) -> &[Segment] {
        self.path
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> ContainerKind {
        self.kind
    }

    /// Where it starts.
    #[must_use]
    pub fn location(&self) -> Location {
        self.location
    }

    /// Bytes from its start to its end, as stored.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Its compression, for a [`ContainerKind::Ccob`].
    #[must_use]
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }
}

/// What a packager binary records about an image, beyond its [`Target`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PackageEntry {
    pub(crate) image_kind: offload_binary::ImageKind,
    pub(crate) offload_kind: offload_binary::OffloadKind,
    pub(crate) flags: offload_binary::Flags,
    pub(crate) strings: Vec<(Vec<u8>, Vec<u8>)>,
}

impl PackageEntry {
    /// The recorded kind of image; [`Image::format`] tells what the bytes are.
    #[must_use]
    pub fn image_kind(&self) -> offload_binary::ImageKind {
        self.image_kind
    }

    /// The recorded offload kind, with its number.
    #[must_use]
    pub fn offload_kind(&self) -> offload_binary::OffloadKind {
        self.offload_kind
    }

    /// The recorded flags.
    #[must_use]
    pub fn flags(&self) -> offload_binary::Flags {
        self.flags
    }

    /// All keys and values, in stored order.
    pub fn strings(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.strings.iter().map(|(key, value)| (&key[..], &value[..]))
    }

    /// The value of a key, the last one if it is there twice.
    #[must_use]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<&[u8]> {
        self.strings().filter(|(k, _)| *k == key.as_ref()).last().map(|(_, value)| value)
    }
}

/// What a container says about an image, gathered before the walker makes an [`Image`] of it.
pub(crate) struct Description {
    pub(crate) container: ContainerKind,
    pub(crate) target: Arc<Target>,
    pub(crate) id: Option<String>,
    pub(crate) offset_in_container: u64,
    pub(crate) package: Option<PackageEntry>,
    /// Set where the container knows better than the first bytes: compressed entries, host placeholders.
    pub(crate) format: Option<ImageFormat>,
    /// Set where the image itself is compressed.
    pub(crate) compression: Option<Compression>,
    /// Set where the image is an entry of a bundle.
    pub(crate) form: Option<BundleForm>,
    /// Where the object file lies whose section the image is, for [`BundleForm::Section`].
    pub(crate) object: Option<Range<u64>>,
}

/// How an entry of a bundle is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BundleForm {
    /// In a binary bundle.
    Binary,
    /// Between comment lines, behind this leader.
    Text(bundle_format::text::Leader),
    /// In front of a comment line, behind this leader: the text form of the first proposal, which no release of
    /// LLVM reads.
    EndMarkers(bundle_format::text::Leader),
    /// As a section of the host's object file; in Mach-O in a bundle in a section of it, see
    /// [`ObjectBundle`](crate::ObjectBundle).
    Section,
}

/// One device image (or the host's part of a bundle), while it is visited. [`to_listed`](Image::to_listed) makes a value
/// of it.
///
/// It reads from the walked file, and is not [`Send`], whatever the file is.
pub struct Image<'e, 's> {
    pub(crate) index: usize,
    pub(crate) path: &'e [Segment],
    pub(crate) description: &'e Description,
    pub(crate) format: ImageFormat,
    pub(crate) around: Option<Compression>,
    pub(crate) window: Range<u64>,
    pub(crate) source: &'e mut Source<'s>,
}

impl<'e> Image<'e, '_> {
    /// The position among all images of the walk, from 0, in file order.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// The containers around it, from outside in.
    #[must_use]
    pub fn path(&self) -> &'e [Segment] {
        self.path
    }

    /// The format that describes the image: [`Ccob`](ContainerKind::Ccob) for an entry of a compressed bundle.
    #[must_use]
    pub fn container(&self) -> ContainerKind {
        self.description.container
    }

    /// Offload kind, triple and target ID, as far as the container tells them.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.description.target
    }

    /// The bundle entry ID, exactly as stored (bytes that are not UTF-8 replaced); `None` outside bundles.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.description.id.as_deref()
    }

    /// How the bundle stores it; `None` outside bundles.
    #[must_use]
    pub fn bundle_form(&self) -> Option<BundleForm> {
        self.description.form
    }

    /// Reads the object file whose section the image is (in), for [`BundleForm::Section`]; `None` for others.
    /// [`remove_bundle_sections`](crate::remove_bundle_sections) makes the host object of it, for which a
    /// [placeholder](ImageFormat::HostPlaceholder) stands. Errors are those of [`reader`](Image::reader).
    pub fn enclosing_object(&mut self) -> Option<impl Read + '_> {
        let window = self.description.object.clone()?;
        Some(SourceReader::new(self.source, window))
    }

    /// The host object that a [placeholder](ImageFormat::HostPlaceholder) stands for, with which it need not be read
    /// to be written; `None` for images that lie in no object of the form [`BundleForm::Section`].
    ///
    /// Where the [location](Image::location) is one in the walked file, that is the input of
    /// [`HostObject::write`](crate::HostObject::write).
    ///
    /// # Errors
    ///
    /// Those of [`reader`](Image::reader), and [`EditError::Object`](crate::EditError::Object) as
    /// [`remove_bundle_sections`](crate::remove_bundle_sections) has it.
    pub fn host_object(&mut self) -> Option<Result<HostObject, EditError>> {
        let window = self.description.object.clone()?;
        Some(HostObject::plan(self.source, &window))
    }

    /// What the packager binary that holds it records; `None` outside packager binaries.
    #[must_use]
    pub fn package_entry(&self) -> Option<&PackageEntry> {
        self.description.package.as_ref()
    }

    /// Where its first byte lies.
    #[must_use]
    pub fn location(&self) -> Location {
        Location::new(self.source.origin(), self.window.start)
    }

    /// Where its first byte lies, from the start of the bundle, package, fatbinary or section that holds it.
    #[must_use]
    pub fn offset_in_container(&self) -> u64 {
        self.description.offset_in_container
    }

    /// Bytes of the image as the container stores them; of a [compressed](Image::compression) one the bytes
    /// it decompresses to.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self.description.compression {
            Some(compression) => compression.uncompressed_size,
            None => self.window.end - self.window.start,
        }
    }

    /// The compression of this very image (NVIDIA fatbinaries compress entry by entry).
    #[must_use]
    pub fn compression(&self) -> Option<Compression> {
        self.description.compression
    }

    /// The innermost compressed bundle around it.
    #[must_use]
    pub fn compressed_bundle(&self) -> Option<Compression> {
        self.around
    }

    /// What it is, by its first bytes.
    #[must_use]
    pub fn format(&self) -> ImageFormat {
        self.format
    }

    /// Reads the image's bytes as stored. A file that shrinks meanwhile gives
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof), never a short image.
    pub fn reader(&mut self) -> impl Read + '_ {
        SourceReader::new(self.source, self.window.clone())
    }

    /// Hands out the image's bytes in pieces, which is faster than to [read](Self::reader) them: those of compressed
    /// bundles are in memory, and handed out as they lie there. The first error of `each` ends it.
    ///
    /// # Errors
    ///
    /// Those of `each`, and of reading: a file that shrinks meanwhile gives
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof).
    pub fn pieces(&mut self, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        SourceReader::new(self.source, self.window.clone()).pieces(each)
    }
}

impl fmt::Debug for Image<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("index", &self.index)
            .field("path", &self.path)
            .field("target", &self.description.target)
            .field("id", &self.description.id)
            .field("window", &self.window)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

/// How bad a [`Finding`] is: there are these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The format is kept, a rule of composition is not; every image was found.
    Warning,
    /// Malformed: images may be missing from the walk.
    Error,
}

impl Severity {
    /// The name used in machine-readable output: `warning`, `error`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something wrong in the walked file. The walk goes on wherever the damage leaves a way.
#[derive(Debug)]
pub struct Finding<'e> {
    pub(crate) path: &'e [Segment],
    pub(crate) location: Location,
    pub(crate) error: Error,
}

impl Finding<'_> {
    /// The containers around it, from outside in.
    #[must_use]
    pub fn path(&self) -> &[Segment] {
        self.path
    }

    /// Where the container that the error speaks of starts.
    #[must_use]
    pub fn location(&self) -> Location {
        self.location
    }

    /// What is wrong.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// How bad it is.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.error.severity()
    }
}

/// `section:.hip_fatbin/ccob:1 at byte 0x2000: ...`, one line; control characters of names are escaped.
impl fmt::Display for Finding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_finding(f, self.path, self.location, &self.error)
    }
}

pub(crate) fn write_finding(
    f: &mut fmt::Formatter<'_>,
    path: &[Segment],
    location: Location,
    error: &Error,
) -> fmt::Result {
    write_path(f, path)?;
    let space = if path.is_empty() { "" } else { " " };
    write!(f, "{space}at {location}: {error}")
}

/// `section:.hip_fatbin/ccob:1`
pub(crate) fn write_path(f: &mut fmt::Formatter<'_>, path: &[Segment]) -> fmt::Result {
    for (i, segment) in path.iter().enumerate() {
        let separator = if i == 0 { "" } else { "/" };
        write!(f, "{separator}{segment}")?;
    }
    Ok(())
}

/// Receives what a [`walk`](crate::walk) finds, in file order.
///
/// An error from any method ends the walk and becomes its result.
pub trait Visitor {
    /// A container is entered; [`leave`](Visitor::leave) follows when all in it was visited.
    #[allow(unused_variables, reason = "the names document the parameters")]
    fn enter(&mut self, container: &Container<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Whether what the container entered last holds is of interest. If not, it is not read, and nothing in it is
    /// visited or found wrong. A compressed bundle is decompressed before. Default: yes.
    #[allow(unused_variables, reason = "the names document the parameters")]
    fn looks_into(&mut self, container: &Container<'_>) -> bool {
        true
    }

    /// An image.
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()>;

    /// Something wrong.
    fn finding(&mut self, finding: &Finding<'_>) -> io::Result<()>;

    /// The container entered last is left.
    fn leave(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Opens the file that a thin archive names. `name` is what the archive stores: a path relative to the
    /// directory of the archive. Libraries know no files: the default refuses.
    #[allow(unused_variables, reason = "the names document the parameters")]
    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
