//! The candidates for extraction from a file: every image of every offload binary that a linker would see.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use byte_parts::ReadSeek;
use fat_object::{
    Container, ContainerKind, Error, ErrorKind, FileFormat, Finding, Image, Location,
    OffloadBinaryEntry, Severity, Visitor,
};
use offload_binary::FormatVersion;
use offload_binary::llvm::Release;

use tool_kit::output::copy_part;
use tool_kit::permissions::NewPermissions;
use tool_kit::{input, opened, scratch};

/// The contents of the temporary file.
const COPIES: &str = "images from compressed containers";

/// An image of an offload binary.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) entry: OffloadBinaryEntry,
    pub(super) size: u64,
    place: ImageSource,
    /// The name of the archive member it came from, or else the input's; LLVM's "source name".
    pub(super) source: String,
    /// The format of the image, from its first bytes.
    pub(super) format: FileFormat,
    /// The candidate that this one lies in.
    pub(super) parent: Option<usize>,
}

/// The place of the bytes of an image.
#[derive(Clone, Debug)]
enum ImageSource {
    Input(u64),
    /// In a file that a thin archive names.
    ThinMember(PathBuf, u64),
    /// In a copy: of bitcode that is not byte-aligned, or of decompressed data.
    Copy(u64),
}

/// Something wrong that keeps images from being found.
#[derive(Debug)]
pub(super) struct Fault {
    /// The candidate it lies in: it only matters when that one is opened.
    pub(super) parent: Option<usize>,
    pub(super) severity: Severity,
    /// LLVM's words for it, if it has some.
    pub(super) llvm_words: Option<&'static str>,
    pub(super) message: String,
}

const INVALID: &str = "Invalid data was encountered while parsing the file";

/// Returns the words of this release of LLVM for an error.
pub(crate) fn llvm_words(error: &Error, release: Release) -> Option<&'static str> {
    use offload_binary::ErrorKind as Package;

    // LLVM reads nothing of fewer bytes: 24 wants the header of version 3, others the header of version 1 and an entry.
    let least = match release {
        Release::Llvm24 => FormatVersion::V3.header_len(),
        _ => 72,
    };
    if let Some(error) = error.offload_binary() {
        return Some(match error.kind() {
            Package::Truncated if error.available() < Some(least) => INVALID,
            Package::NotABinary | Package::Version => INVALID,
            Package::EmptyStream => "unknown compression format",
            _ => "The end of the file was unexpectedly encountered",
        });
    }
    match error.kind() {
        ErrorKind::TrailingData | ErrorKind::UnknownContents => Some(INVALID),
        ErrorKind::Malformed if error.container() == Some(ContainerKind::OffloadBinary) => {
            error.ccob().map(codec_words)
        }
        ErrorKind::Archive => Some("truncated or malformed archive"),
        _ => None,
    }
}

/// Returns the words for an error in a stream: LLVM 24 prints only the words of the codec.
fn codec_words(error: &ccob::Error) -> &'static str {
    use ccob::{ErrorKind as Kind, Method};

    let is_zstd = error.method() == Some(Method::ZSTD);
    match error.kind() {
        Kind::Size if error.is_too_long() => "Destination buffer is too small",
        Kind::Output if error.is_too_long() => "zlib error: Z_BUF_ERROR",
        Kind::TrailingData | Kind::EndsEarly if is_zstd => "Src size is incorrect",
        Kind::Stream if is_zstd => "Data corruption detected",
        Kind::Stream | Kind::EndsEarly => "zlib error: Z_DATA_ERROR",
        _ => INVALID,
    }
}

/// Collects candidates while a file is walked.
///
/// The walk goes through everything that may hold device code. Offload binaries of interest lie in the file itself, in
/// sections, and in members of archives, not in bundles or images, except for offload binaries that are images of
/// offload binaries.
#[derive(Debug)]
pub(super) struct Collector<'a> {
    input: &'a Path,
    pub(super) candidates: Vec<Candidate>,
    pub(super) faults: Vec<Fault>,
    frames: Vec<Frame>,
    /// The candidate that the last image became.
    last: Option<usize>,
    copies: Option<File>,
    /// The file of a thin archive that is entered next.
    opened: Option<PathBuf>,
    /// Permissions of new files, from the input and the members of thin archives.
    pub(super) new_permissions: NewPermissions,
    /// The release of LLVM whose words errors start with.
    release: Release,
}

/// A container that the walk is in.
#[derive(Clone, Debug)]
struct Frame {
    /// `true` if offload binaries in here count.
    of_interest: bool,
    parent: Option<usize>,
    source: String,
    thin_member: Option<PathBuf>,
    /// `true` if what fills it is offload binaries, so that anything else in it is an error.
    of_packages: bool,
}

impl<'a> Collector<'a> {
    pub(super) fn new(input: &'a Path, new_permissions: NewPermissions, release: Release) -> Self {
        let frame = Frame {
            of_interest: true,
            parent: None,
            source: input::display(input),
            thin_member: None,
            of_packages: false,
        };
        Collector {
            input,
            candidates: Vec::new(),
            faults: Vec::new(),
            frames: vec![frame],
            last: None,
            copies: None,
            opened: None,
            new_permissions,
            release,
        }
    }

    /// Copies the bytes of an image; from a file to a file, the kernel does it.
    pub(super) fn copy<W: Write>(
        &self,
        candidate: &Candidate,
        input: &File,
        out: &mut W,
    ) -> io::Result<()> {
        let copy = |file: &File, offset: u64, out: &mut W| {
            copy_part(file, offset..offset + candidate.size, out).map(drop)
        };
        match &candidate.place {
            ImageSource::Input(offset) => copy(input, *offset, out),
            ImageSource::ThinMember(path, offset) => {
                copy(&opened::open_regular(path)?, *offset, out)
            }
            ImageSource::Copy(offset) => {
                copy(self.copies.as_ref().ok_or(io::ErrorKind::NotFound)?, *offset, out)
            }
        }
    }
}

impl Visitor for Collector<'_> {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        let Some(around) = self.frames.last_mut() else {
            return Ok(());
        };
        around.of_packages |= container.kind() == ContainerKind::OffloadBinary;
        let mut frame = Frame { of_packages: false, ..around.clone() };
        let name = container.path().last().map_or("", |segment| segment.name());
        let parent = self.last.take().filter(|_| container.kind() == ContainerKind::Image);
        match container.kind() {
            ContainerKind::Member => {
                frame.source = name.to_owned();
                frame.thin_member = self.opened.take().or(frame.thin_member);
            }
            ContainerKind::Section => frame.of_packages = name.starts_with(".llvm.offloading"),
            ContainerKind::Slice | ContainerKind::OffloadBinary => {}
            ContainerKind::Image => frame.of_interest &= parent.is_some(),
            _ => frame.of_interest = false,
        }
        if container.kind() != ContainerKind::OffloadBinary && frame.parent.is_some() {
            // Among containers inside an image, only offload binaries in offload binaries count.
            frame.of_interest &= container.kind() == ContainerKind::Image;
        }
        frame.parent = parent.or(frame.parent);
        self.frames.push(frame);
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        self.last = None;
        let (Some(frame), Some(entry)) =
            (self.frames.last(), image.offload_binary_entry().cloned())
        else {
            return Ok(());
        };
        if !frame.of_interest || image.container() != ContainerKind::OffloadBinary {
            return Ok(());
        }
        let place = match (image.location(), &frame.thin_member) {
            (Location::File(offset), _) => ImageSource::Input(offset),
            (Location::ThinMember(offset), Some(path)) => {
                ImageSource::ThinMember(path.clone(), offset)
            }
            (Location::Bitcode(_) | Location::Decompressed(_), _) => {
                let copies = match &mut self.copies {
                    Some(copies) => copies,
                    none => none.insert(scratch::file(COPIES)?),
                };
                let offset = copies.stream_position()?;
                io::copy(&mut image.reader(), copies)
                    .map_err(|error| scratch::copying(COPIES, error))?;
                ImageSource::Copy(offset)
            }
            _ => return Ok(()),
        };
        let format = image.format();
        let is_package = format == FileFormat::OffloadBinary;
        self.last = Some(self.candidates.len()).filter(|_| is_package);
        self.candidates.push(Candidate {
            entry,
            size: image.size(),
            place,
            source: frame.source.clone(),
            format,
            parent: frame.parent,
        });
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        let Some(frame) = self.frames.last().filter(|frame| frame.of_interest) else {
            return Ok(());
        };
        let error = finding.error();
        let matters = match error.kind() {
            // LLVM's tool compares neither images with what is said of them nor the sizes of a thin archive's members. It takes the
            // last of equal keys.
            ErrorKind::Disagreement | ErrorKind::ThinMemberSize | ErrorKind::RepeatedKey => false,
            ErrorKind::Composition => finding.severity() == Severity::Error,
            ErrorKind::UnknownContents | ErrorKind::TrailingData => frame.of_packages,
            ErrorKind::Malformed => {
                frame.of_packages
                    || matches!(
                        error.container(),
                        Some(ContainerKind::OffloadBinary | ContainerKind::Slice)
                    )
            }
            _ => true,
        };
        if matters {
            self.faults.push(Fault {
                parent: frame.parent,
                severity: finding.severity(),
                llvm_words: llvm_words(finding.error(), self.release),
                message: finding.to_string(),
            });
        }
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        self.frames.pop();
        Ok(())
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        let around = self.frames.last().and_then(|frame| frame.thin_member.as_deref());
        let path = input::thin_member_path(around.unwrap_or(self.input), name);
        let file = opened::open_regular(&path)?;
        self.new_permissions = self.new_permissions.and_of(&file)?;
        self.opened = Some(path);
        Ok(Box::new(file))
    }
}
