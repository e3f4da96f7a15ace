//! The images of a file as values that outlive the walk.

use std::borrow::Cow;
use std::error;
use std::fmt;
use std::io::{self, Read, Seek};
use std::slice;
use std::sync::Arc;
use std::vec;

use target_id::Target;

use crate::agreement::Disagreement;
use crate::error::Error;
use crate::file_format::FileFormat;
use crate::hcf::HcfImage;
use crate::image::{BundleForm, Image, OffloadBinaryEntry, loaded_as};
use crate::model::{
    Compression, Container, ContainerKind, Finding, Location, PathStep, Severity, Visitor,
    printable, write_finding, write_path,
};
use crate::source::ReadSeek;
use crate::sycl::SyclImage;
use crate::walker::{Options, Summary, walk, walk_slice};

/// Lists every image in a file: those of sections, archives, bundles, offload binaries and fatbinaries, at any depth, in file
/// order, and what is wrong with the file.
///
/// It is one [`walk`]; what that finds is kept. Use `walk` itself to read images, or to see the
/// containers around them. The members of thin archives are files of their own, which nobody opens here: each of them
/// is a finding. [`list_with_thin_members`] is told how to open them.
///
/// ```
/// use std::io::Cursor;
///
/// let layout = bundle_format::Layout::new([("hip-amdgcn-amd-amdhsa--gfx906", 4)], 1)?;
/// let file = Cursor::new(layout.to_vec(&[b"code"])?); // a File will do as well
/// let listing = fat_object::list(file, &fat_object::Options::default())?;
/// for image in &listing {
///     assert_eq!(image.target().id(), "gfx906");
///     assert_eq!(image.to_string(), "hip-amdgcn-amd-amdhsa--gfx906 (unknown, 4 bytes) in bundle:0");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Compressed bundles are decompressed, to tell the formats of their images and to compare their hashes.
/// [`Options::tables_only`] does without both: it lists a library of hundreds of megabytes in milliseconds.
///
/// # Memory
///
/// Beside [what a walk takes](crate#bounds): some hundred bytes for each image, with its ID and, out of offload binaries, its
/// strings; for each finding, with two names of at most 1024 bytes, or one of any length; and for each container that
/// images or findings lie in directly, with 40 bytes for each level around it. Containers and images have headers of
/// two dozen bytes at least, and names together are bounded, so all this grows no faster than the file and what of it
/// is decompressed: files that are made to cost much come to about eight bytes for each of theirs.
///
/// # Errors
///
/// An error of reading `input`. That the file is malformed is no error: the [listing](Listing::findings) says so, and
/// has what was found nevertheless.
pub fn list<R: Read + Seek>(input: R, options: &Options) -> io::Result<Listing> {
    list_with_thin_members(input, options, |_| Err(io::ErrorKind::Unsupported.into()))
}

/// As [`list`], with the files that thin archives name: `open` gets a name as the archive stores it, a path relative to
/// the directory of the archive, and is asked for each member once. [`Options::max_thin_bytes`] bounds these files.
///
/// Names come from the file: what they may lead to is for `open` to decide.
///
/// # Errors
///
/// Those of [`list`]. An error of `open` is a [finding](Error::ThinMember).
pub fn list_with_thin_members<R: Read + Seek>(
    mut input: R,
    options: &Options,
    open: impl FnMut(&[u8]) -> io::Result<Box<dyn ReadSeek>>,
) -> io::Result<Listing> {
    let mut lister = Lister::new(open);
    let summary = walk(&mut input, options, &mut lister)?;
    Ok(lister.listing(&summary))
}

/// As [`list`], of bytes in memory, as [`walk_slice`] reads them. [`ListedImage::bytes_in`] gives the images that lie in
/// `data`.
///
/// # Errors
///
/// The only error: a compressed bundle does not fit into memory.
pub fn list_slice(data: &[u8], options: &Options) -> io::Result<Listing> {
    let mut lister = Lister::new(|_| Err(io::ErrorKind::Unsupported.into()));
    let summary = walk_slice(data, options, &mut lister)?;
    Ok(lister.listing(&summary))
}

/// What [`list`] found in a file.
///
/// With the feature `serde` it can be serialized: the images as `offload ls --json` prints them.
#[derive(Clone, Debug)]
#[must_use]
pub struct Listing {
    format: FileFormat,
    size: u64,
    images: Vec<ListedImage>,
    findings: Vec<ListedFinding>,
}

impl Listing {
    /// All images, in file order; the position of each is its [index](ListedImage::index).
    #[must_use]
    pub fn images(&self) -> &[ListedImage] {
        &self.images
    }

    /// What is wrong with the file, in file order; nothing, for a sound file.
    #[must_use]
    pub fn findings(&self) -> &[ListedFinding] {
        &self.findings
    }

    /// Returns whether nothing in the file is malformed, so that no image is missing for that reason. This says nothing of
    /// formats that are not [read](FileFormat::is_read).
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity() < Severity::Error)
    }

    /// Format of the file itself. With no image found, [`FileFormat::is_read`] tells a file without device code (a plain
    /// object) from one that a walk does not read (a wheel, junk).
    #[must_use]
    pub fn format(&self) -> FileFormat {
        self.format
    }

    /// Bytes of the file.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The images as they are.
    pub fn iter(&self) -> slice::Iter<'_, ListedImage> {
        self.images.iter()
    }
}

/// The images, in file order.
impl<'a> IntoIterator for &'a Listing {
    type Item = &'a ListedImage;
    type IntoIter = slice::Iter<'a, ListedImage>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The images, in file order.
impl IntoIterator for Listing {
    type Item = ListedImage;
    type IntoIter = vec::IntoIter<ListedImage>;

    fn into_iter(self) -> Self::IntoIter {
        self.images.into_iter()
    }
}

/// One device image (or the host's part of a bundle), as a value: what an [`Image`] says, without its bytes.
///
/// Its [`Display`](fmt::Display) form is a line for people:
/// `hip-amdgcn-amd-amdhsa--gfx90a:xnack+ (ELF, 12345 bytes) in section:.hip_fatbin/bundle:0`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListedImage {
    pub(crate) index: usize,
    pub(crate) path: Arc<[PathStep]>,
    pub(crate) container: ContainerKind,
    pub(crate) target: Arc<Target>,
    pub(crate) id: Option<String>,
    pub(crate) bundle_form: Option<BundleForm>,
    pub(crate) offload_binary_entry: Option<OffloadBinaryEntry>,
    pub(crate) location: Location,
    pub(crate) offset_in_container: u64,
    pub(crate) size: u64,
    pub(crate) compression: Option<Compression>,
    pub(crate) compressed_bundle: Option<Compression>,
    pub(crate) format: FileFormat,
    pub(crate) sycl: Option<Arc<SyclImage>>,
    pub(crate) hcf: Option<Arc<HcfImage>>,
    pub(crate) disagreement: Option<Box<Disagreement>>,
}

impl ListedImage {
    /// The position among all images of the walk, from 0, in file order.
    ///
    /// Images in images count, where [`Options::enter_images`] lets a walk look into them, as it does by default. A
    /// `fat_edit::survey` never does: an edit takes the indices of its images, not
    /// those of another listing.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// The same image with another index: for whoever counts images in a way of its own.
    #[must_use]
    pub fn with_index(self, index: usize) -> Self {
        ListedImage { index, ..self }
    }

    /// The containers around it, from outside in.
    #[must_use]
    pub fn path(&self) -> &[PathStep] {
        &self.path
    }

    /// The format that describes the image: [`Ccob`](ContainerKind::Ccob) for an entry of a compressed bundle.
    #[must_use]
    pub fn container(&self) -> ContainerKind {
        self.container
    }

    /// Offload kind, triple and target ID, as far as the container tells them.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The target to compare with that of a device, by [`compatible`](target_id::compatible).
    ///
    /// It is the [`target`](Self::target), but for PTX: containers name it by an architecture, `sm_80`, as they name
    /// machine code, which runs on that one and those of its generation. PTX is compiled for any newer one when it is loaded;
    /// the name for that is the one that NVIDIA's compiler has for PTX, `compute_80`.
    #[must_use]
    pub fn loaded_as(&self) -> Cow<'_, Target> {
        loaded_as(&self.target, self.format)
    }

    /// The bundle entry ID, exactly as stored (bytes that are not UTF-8 replaced); `None` outside bundles.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// How the bundle stores it; `None` outside bundles.
    #[must_use]
    pub fn bundle_form(&self) -> Option<BundleForm> {
        self.bundle_form
    }

    /// What the offload binary that holds it records; `None` outside offload binaries.
    #[must_use]
    pub fn offload_binary_entry(&self) -> Option<&OffloadBinaryEntry> {
        self.offload_binary_entry.as_ref()
    }

    /// The record in a table of Intel's SYCL toolchain; `None` for images that no such table describes.
    #[must_use]
    pub fn sycl(&self) -> Option<&SyclImage> {
        self.sycl.as_deref()
    }

    /// The record in the HCF container of AdaptiveCpp that holds it; `None` outside such containers.
    #[must_use]
    pub fn hcf(&self) -> Option<&HcfImage> {
        self.hcf.as_deref()
    }

    /// Where its first byte lies.
    #[must_use]
    pub fn location(&self) -> Location {
        self.location
    }

    /// Where its first byte lies, from the start of the (decompressed) bundle, offload binary, fatbinary or section that holds
    /// it.
    #[must_use]
    pub fn offset_in_container(&self) -> u64 {
        self.offset_in_container
    }

    /// Bytes of the image, decompressed.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that it takes in the file; `None` where it is compressed together with others.
    #[must_use]
    pub fn stored_size(&self) -> Option<u64> {
        match (self.compressed_bundle, self.compression) {
            (Some(_), _) => None,
            (None, Some(own)) => Some(own.stored_size()),
            (None, None) => Some(self.size),
        }
    }

    /// The image's bytes as stored, where they lie in `data`, the listed file: nothing is copied. `None` for images of
    /// compressed bundles, of bitcode and of the files that thin archives name; [`copy_image`](crate::copy_image) copies
    /// those.
    ///
    /// ```
    /// let layout = bundle_format::Layout::new([("hip-amdgcn-amd-amdhsa--gfx906", 4)], 1)?;
    /// let data = layout.to_vec(&[b"code"])?;
    /// for image in &fat_object::list_slice(&data, &fat_object::Options::default())? {
    ///     assert_eq!(image.bytes_in(&data), Some(&b"code"[..]));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bytes_in<'data>(&self, data: &'data [u8]) -> Option<&'data [u8]> {
        self.location.slice_of(data, self.stored_size()?)
    }

    /// The compression of this very image (NVIDIA fatbinaries compress entry by entry).
    #[must_use]
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// The compression of the innermost compressed bundle or offload binary around it.
    #[must_use]
    pub fn compression_around(&self) -> Option<Compression> {
        self.compressed_bundle
    }

    /// What it is, by its first bytes.
    #[must_use]
    pub fn format(&self) -> FileFormat {
        self.format
    }

    /// The contradiction between the image and its [target](Self::target), if there is one:
    /// [`Image::disagreement`].
    ///
    /// ```
    /// let layout = bundle_format::Layout::new([("hip-amdgcn-amd-amdhsa--gfx906", 4)], 1)?;
    /// let data = layout.to_vec(&[b"\x03\x02\x23\x07"])?; // SPIR-V
    /// let listing = fat_object::list_slice(&data, &fat_object::Options::default())?;
    /// let found = listing.images()[0].disagreement().map(ToString::to_string);
    /// let expected = "SPIR-V where an AMD GPU code object or LLVM bitcode is expected";
    /// assert_eq!(found.as_deref(), Some(expected));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn disagreement(&self) -> Option<&Disagreement> {
        self.disagreement.as_deref()
    }
}

/// One line; control characters of names are escaped, long ones are cut.
impl fmt::Display for ListedImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.target.to_string();
        let name = self.id().filter(|id| !id.is_empty()).unwrap_or(&named);
        match name {
            "" => write!(f, "image {}", self.index)?,
            name => write!(f, "{}", printable(name))?,
        }
        match self.format {
            FileFormat::NotRead => write!(f, " ({} bytes) in ", self.size)?,
            format => write!(f, " ({format}, {} bytes) in ", self.size)?,
        }
        write_path(f, &self.path)
    }
}

/// Something wrong in a listed file, as a value.
///
/// Its [`Display`](fmt::Display) form is that of [`Finding`]: one line that names the place and what is wrong.
#[derive(Clone, Debug)]
pub struct ListedFinding {
    path: Arc<[PathStep]>,
    location: Location,
    error: Error,
}

impl ListedFinding {
    /// The containers around it, from outside in.
    #[must_use]
    pub fn path(&self) -> &[PathStep] {
        &self.path
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
impl fmt::Display for ListedFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_finding(f, &self.path, self.location, &self.error)
    }
}

/// What [`Visitor::finding`] ends a walk with, unless it is told otherwise.
impl error::Error for ListedFinding {}

impl Image<'_, '_> {
    /// What it says as a value, which outlives the visit. The bytes of the image are not read.
    #[must_use]
    pub fn to_listed(&self) -> ListedImage {
        self.listed(self.path().into())
    }

    pub(crate) fn listed(&self, path: Arc<[PathStep]>) -> ListedImage {
        ListedImage {
            index: self.index(),
            path,
            container: self.container(),
            target: Arc::clone(&self.description.target),
            id: self.id().map(str::to_owned),
            bundle_form: self.bundle_form(),
            offload_binary_entry: self.offload_binary_entry().cloned(),
            location: self.location(),
            offset_in_container: self.offset_in_container(),
            size: self.size(),
            compression: self.compression(),
            compressed_bundle: self.compression_around(),
            format: self.format(),
            sycl: self.description.sycl.clone(),
            hcf: self.description.hcf.clone(),
            disagreement: self.disagreement().cloned().map(Box::new),
        }
    }
}

impl Finding<'_> {
    /// What it says as a value, which outlives the visit.
    #[must_use]
    pub fn to_listed(&self) -> ListedFinding {
        self.listed(self.path().into())
    }

    fn listed(&self, path: Arc<[PathStep]>) -> ListedFinding {
        ListedFinding { path, location: self.location, error: self.error.clone() }
    }
}

/// Keeps everything.
struct Lister<F> {
    images: Vec<ListedImage>,
    findings: Vec<ListedFinding>,
    /// That of the container entered last, once something lies in it: neighbours share it.
    path: Option<Arc<[PathStep]>>,
    open: F,
}

impl<F: FnMut(&[u8]) -> io::Result<Box<dyn ReadSeek>>> Lister<F> {
    fn new(open: F) -> Self {
        Lister { images: Vec::new(), findings: Vec::new(), path: None, open }
    }

    fn listing(self, summary: &Summary) -> Listing {
        let Lister { images, findings, .. } = self;
        Listing { format: summary.format, size: summary.size, images, findings }
    }

    fn path(&mut self, path: &[PathStep]) -> Arc<[PathStep]> {
        Arc::clone(self.path.get_or_insert_with(|| path.into()))
    }
}

impl<F: FnMut(&[u8]) -> io::Result<Box<dyn ReadSeek>>> Visitor for Lister<F> {
    fn enter(&mut self, _: &Container<'_>) -> io::Result<()> {
        self.path = None;
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let path = self.path(image.path());
        self.images.push(image.listed(path));
        Ok(())
    }

    fn finding(&mut self, finding: &Finding<'_>) -> io::Result<()> {
        let path = self.path(finding.path());
        self.findings.push(finding.listed(path));
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        self.path = None;
        Ok(())
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        (self.open)(name)
    }
}
