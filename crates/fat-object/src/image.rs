//! One device image, as a visitor sees it, and what its container says of it.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read};
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::hcf::HcfImage;
use crate::sycl_table::SyclImage;
use byte_parts::{Budget, Window, internal};
use device_code::{Fault, FileFormat, MetalPlatform};
use target_id::{NvidiaArch, Target};

use crate::code::{Memory, Undone};
use crate::disagreement::Disagreement;
use crate::error::{Error, ErrorKind, Finding};
use crate::model::{Compression, ContainerKind, Location, PathStep, write_path};
use crate::source::{Source, SourceReader};
use crate::text::printable;
use crate::{code, image_target};

/// The record of an offload binary about an image, beyond its [`Target`].
#[derive(Clone, Debug, PartialEq)]
pub struct OffloadBinaryEntry {
    pub(crate) image_kind: offload_binary::ImageKind,
    pub(crate) offload_kind: offload_binary::OffloadKind,
    pub(crate) flags: offload_binary::Flags,
    pub(crate) strings: Vec<(Vec<u8>, Vec<u8>)>,
}

impl OffloadBinaryEntry {
    /// Returns the recorded kind of image; [`ImageInfo::format`] is the kind of its bytes.
    #[must_use]
    pub fn image_kind(&self) -> offload_binary::ImageKind {
        self.image_kind
    }

    /// Returns the recorded offload kind, with its number.
    #[must_use]
    pub fn offload_kind(&self) -> offload_binary::OffloadKind {
        self.offload_kind
    }

    /// Returns the recorded flags.
    #[must_use]
    pub fn flags(&self) -> offload_binary::Flags {
        self.flags
    }

    /// Returns all keys and values, in stored order.
    pub fn strings(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.strings.iter().map(|(key, value)| (&key[..], &value[..]))
    }

    /// Returns the value of a key, the last one if it is there twice.
    #[must_use]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<&[u8]> {
        self.strings().filter(|(k, _)| *k == key.as_ref()).last().map(|(_, value)| value)
    }
}

/// The storage form of an entry of a bundle.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BundleForm {
    /// In a binary bundle.
    Binary,
    /// Between comment lines, after this leader.
    Text(bundle_format::text::Leader),
    /// As a section of the host's object file; in Mach-O in a bundle in a section of it, see
    /// `fat_edit::object_bundle`.
    Section,
}

/// The description of one device image (or the host's part of a bundle), without its bytes: a walk, a
/// [listing](crate::Listing) and a survey have the same.
///
/// Its [`Display`](fmt::Display) form is a line for people:
/// `hip-amdgcn-amd-amdhsa--gfx90a:xnack+ (ELF, 12345 bytes) in section:.hip_fatbin/bundle:0`.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageInfo {
    pub(crate) index: usize,
    pub(crate) path: Arc<[PathStep]>,
    pub(crate) container: ContainerKind,
    pub(crate) target: Arc<Target>,
    pub(crate) id: Option<String>,
    pub(crate) bundle_form: Option<BundleForm>,
    pub(crate) offload_binary_entry: Option<OffloadBinaryEntry>,
    pub(crate) location: Location,
    pub(crate) offset_in_container: u64,
    pub(crate) fatbinary_entry: Option<Range<u64>>,
    pub(crate) size: u64,
    pub(crate) compression: Option<Compression>,
    pub(crate) compression_around: Option<Compression>,
    pub(crate) format: FileFormat,
    pub(crate) code_version: Option<(u16, u16)>,
    pub(crate) platform: Option<MetalPlatform>,
    pub(crate) sycl: Option<Arc<SyclImage>>,
    pub(crate) hcf: Option<Arc<HcfImage>>,
    pub(crate) module: Option<u32>,
    pub(crate) disagreement: Option<Box<Disagreement>>,
}

impl ImageInfo {
    /// Returns the position among all images of the walk, from 0, in file order.
    ///
    /// Images in images count, where [`Options::with_enter_images`](crate::Options::with_enter_images) lets a walk look into them, as it does by default. A
    /// `fat_edit::survey` never does: an edit takes the indices of its images, not
    /// those of another listing.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the same image with another index, for consumers with their own count.
    #[must_use]
    pub fn with_index(self, index: usize) -> Self {
        ImageInfo { index, ..self }
    }

    /// Returns the containers around it, from outside in.
    #[must_use]
    pub fn path(&self) -> &[PathStep] {
        &self.path
    }

    /// Returns the format that describes the image: [`Ccob`](ContainerKind::Ccob) for an entry of a compressed
    /// bundle.
    #[must_use]
    pub fn container(&self) -> ContainerKind {
        self.container
    }

    /// Returns offload kind, triple and target ID, if the container records them.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns the target to compare with the target of a device, by [`compatible`](target_id::compatible).
    ///
    /// It is the [`target`](Self::target), except for PTX: containers name it by an architecture, `sm_80`, as they name
    /// machine code, which only runs on this architecture and on later ones of its generation. PTX is compiled for any
    /// newer one when it is loaded; the name for that is the one that NVIDIA's compiler has for PTX, `compute_80`.
    #[must_use]
    pub fn loaded_as(&self) -> Cow<'_, Target> {
        loaded_as(&self.target, self.format)
    }

    /// Returns the bundle entry ID, exactly as stored (bytes that are not UTF-8 replaced); `None` outside bundles.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns the form in which the bundle stores it; `None` outside bundles.
    #[must_use]
    pub fn bundle_form(&self) -> Option<BundleForm> {
        self.bundle_form
    }

    /// Returns the record of the offload binary that holds it; `None` outside offload binaries.
    #[must_use]
    pub fn offload_binary_entry(&self) -> Option<&OffloadBinaryEntry> {
        self.offload_binary_entry.as_ref()
    }

    /// Returns the record in a table of Intel's SYCL toolchain; `None` for images that no such table describes.
    ///
    /// ```no_run
    /// # fn main() -> std::io::Result<()> {
    /// let mut file = std::fs::File::open("libmkl_sycl_vm.so.6")?;
    /// for image in fat_object::list(&mut file, &fat_object::Options::default())?.images() {
    ///     let Some(sycl) = image.sycl() else { continue };
    ///     println!("{}: {:?}", image.target(), sycl.kernels().collect::<Vec<_>>());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn sycl(&self) -> Option<&SyclImage> {
        self.sycl.as_deref()
    }

    /// Returns the record in the HCF container of AdaptiveCpp that holds it; `None` outside such containers.
    #[must_use]
    pub fn hcf(&self) -> Option<&HcfImage> {
        self.hcf.as_deref()
    }

    /// Returns the abstract module of a SYCLBIN that it belongs to, from 0: the images of one module are the same code for several
    /// devices. `None` elsewhere.
    #[must_use]
    pub fn module(&self) -> Option<u32> {
        self.module
    }

    /// Returns the place of its first byte.
    #[must_use]
    pub fn location(&self) -> Location {
        self.location
    }

    /// Returns the offset of its first byte from the start of the (decompressed) bundle, offload binary, fatbinary
    /// or section that holds it.
    #[must_use]
    pub fn offset_in_container(&self) -> u64 {
        self.offset_in_container
    }

    /// Returns the range of its entry in the NVIDIA fatbinary that holds it, from the start of the fatbinary, with the header of the
    /// entry. `None` elsewhere, and for one of several images in an entry.
    #[must_use]
    pub fn fatbinary_entry(&self) -> Option<Range<u64>> {
        self.fatbinary_entry.clone()
    }

    /// Returns the number of bytes in the image, decompressed.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the number of its bytes in the file; `None` where it is compressed together with others.
    #[must_use]
    pub fn stored_size(&self) -> Option<u64> {
        match (self.compression_around, self.compression) {
            (Some(_), _) => None,
            (None, Some(own)) => Some(own.stored_size()),
            (None, None) => Some(self.size),
        }
    }

    /// Returns the image's bytes as stored, where they lie in `data`, the listed file: nothing is copied. `None`
    /// for images of compressed bundles, of bitcode and of the files that thin archives name;
    /// [`copy_image`](crate::copy_image) copies those.
    ///
    /// ```
    /// let layout = bundle_format::layout([("hip-amdgcn-amd-amdhsa--gfx906", 4)], 1)?;
    /// let data = layout.to_vec(&[b"code"])?;
    /// for image in fat_object::list_slice(&data, &fat_object::Options::default())?.images() {
    ///     assert_eq!(image.bytes_in(&data), Some(&b"code"[..]));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bytes_in<'data>(&self, data: &'data [u8]) -> Option<&'data [u8]> {
        self.location.slice_of(data, self.stored_size()?)
    }

    /// Returns the compression of this very image (NVIDIA fatbinaries compress entry by entry).
    #[must_use]
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Returns the compression of the innermost compressed bundle or offload binary around it.
    #[must_use]
    pub fn compression_around(&self) -> Option<Compression> {
        self.compression_around
    }

    /// Returns the format, from its first bytes.
    #[must_use]
    pub fn format(&self) -> FileFormat {
        self.format
    }

    /// Returns major and minor version of the code: of PTX its `.version`, of a code object for AMD GPUs the version of the code object
    /// and 0. `None` of other formats, and of bytes that were not read.
    #[must_use]
    pub fn code_version(&self) -> Option<(u16, u16)> {
        self.code_version
    }

    /// Returns the system that a Metal library is for; `None` of other formats, and where the library states none that is known.
    #[must_use]
    pub fn platform(&self) -> Option<MetalPlatform> {
        self.platform
    }

    /// Returns a name for a target of this image: its [label](Target::label), else the bundle entry ID, else `(unnamed)`.
    #[must_use]
    pub fn label_of<'a>(&'a self, target: &'a Target) -> &'a str {
        let name = target.label().or(self.id());
        name.filter(|name| !name.is_empty()).unwrap_or("(unnamed)")
    }

    /// Returns a name, and the target that the image really holds if that [differs](Self::disagreement): `gfx906 (holds gfx1250)`.
    #[must_use]
    pub fn marked(&self, name: &str) -> String {
        self.disagreement().map_or_else(|| name.to_owned(), |other| other.marked(name))
    }

    /// Returns the finding of bytes that cannot be had: of an error of [`Image::bytes`].
    #[must_use]
    pub fn finding(&self, error: io::Error) -> Finding {
        let (path, location) = (Arc::clone(&self.path), self.location);
        Finding { path, location, error: error.into() }
    }

    /// Returns the finding of a malformed part of the image.
    #[must_use]
    pub fn finding_of(&self, fault: &Fault) -> Finding {
        let message = format!("image {}: {fault}", self.index);
        self.finding(Error::new(ErrorKind::Image, message).into())
    }

    /// Returns the contradiction between the image and its [target](Self::target), if there is one: the image is for
    /// other devices than its container states. No device loads it, because runtimes choose by the container's
    /// statement.
    ///
    /// `None` where nothing is known, as for images that were [not read](FileFormat::NotRead), and for images that are
    /// [compressed](Self::compression) by themselves unless
    /// [`Options::with_check_compressed`](crate::Options::with_check_compressed) is set. Each one is a
    /// [finding](crate::ErrorKind::Disagreement), too.
    ///
    /// ```
    /// let layout = bundle_format::layout([("hip-amdgcn-amd-amdhsa--gfx906", 4)], 1)?;
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
impl fmt::Display for ImageInfo {
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

/// The description of an image by its container. The walker completes it.
pub(crate) struct Description {
    pub(crate) info: ImageInfo,
    /// Set where the container knows better than the first bytes: compressed entries, host placeholders.
    pub(crate) format: Option<FileFormat>,
    /// The range of the object file whose section the image is, for [`BundleForm::Section`].
    pub(crate) object: Option<Range<u64>>,
}

impl Description {
    pub(crate) fn new(container: ContainerKind, target: Arc<Target>) -> Self {
        let info = ImageInfo {
            index: 0,
            path: Arc::default(),
            container,
            target,
            id: None,
            bundle_form: None,
            offload_binary_entry: None,
            location: Location::File(0),
            offset_in_container: 0,
            fatbinary_entry: None,
            size: 0,
            compression: None,
            compression_around: None,
            format: FileFormat::Unknown,
            code_version: None,
            platform: None,
            sycl: None,
            hcf: None,
            module: None,
            disagreement: None,
        };
        Description { info, format: None, object: None }
    }

    /// Returns an image in no container, known only by its own bytes.
    pub(crate) fn of_loose(container: ContainerKind, target: Option<Target>) -> Self {
        let target = target.unwrap_or_else(|| Target::new(None, None, ""));
        Self::new(container, target.into())
    }
}

impl ImageInfo {
    /// Returns the name of the entry for a message: its ID, its target, or its number.
    pub(crate) fn entry(&self) -> String {
        const LONGEST: usize = 1024;
        let named = || self.target.to_string();
        match self.id.clone().filter(|id| !id.is_empty()).unwrap_or_else(named) {
            name if name.is_empty() => self.index.to_string(),
            name => name.chars().take(LONGEST).collect(),
        }
    }
}

/// Returns the target of PTX by the name that NVIDIA's compiler has for it; other targets unchanged.
pub(crate) fn loaded_as(target: &Target, format: FileFormat) -> Cow<'_, Target> {
    match NvidiaArch::parse(target.id()) {
        Ok(arch) if format == FileFormat::Ptx => {
            let (kind, triple) = (target.kind().cloned(), target.triple().cloned());
            Cow::Owned(Target::new(kind, triple, &arch.as_ptx().to_string()))
        }
        _ => Cow::Borrowed(target),
    }
}

/// One device image (or the host's part of a bundle), while it is visited: what is [known](ImageInfo) of it, and its bytes.
///
/// It reads from the walked file, and is not [`Send`], whatever the file is.
pub struct Image<'e, 's> {
    pub(crate) info: &'e ImageInfo,
    pub(crate) window: Range<u64>,
    pub(crate) object: Option<Range<u64>>,
    pub(crate) source: &'e mut Source<'s>,
    /// Bytes that may be decompressed now, beside the bytes that are held.
    pub(crate) room: u64,
    /// Bytes that may still be decompressed in this walk.
    pub(crate) decompressed: &'e mut Budget,
}

impl Deref for Image<'_, '_> {
    type Target = ImageInfo;

    fn deref(&self) -> &ImageInfo {
        self.info
    }
}

impl<'e, 's> Image<'e, 's> {
    /// Returns the description, which outlives the image.
    #[must_use]
    pub fn info(&self) -> &'e ImageInfo {
        self.info
    }

    /// Reads the object file whose section the image is (in), for [`BundleForm::Section`]; `None` for others.
    /// Without its sections of device code it is the host object, for which a
    /// [placeholder](FileFormat::HostPlaceholder) stands. Errors are those of [`reader`](Self::reader).
    pub fn enclosing_object(&mut self) -> Option<impl Read + '_> {
        let window = self.object.clone()?;
        Some(SourceReader::new(self.source, window))
    }

    /// Returns the bytes of the walk, and in them the range of that object: what an editor needs to take the host
    /// object out of it without reading all. `None` for images that lie in no object of the form
    /// [`BundleForm::Section`].
    ///
    /// Where the [location](ImageInfo::location) is one in the walked file, the bytes are that file.
    pub fn object_source(&mut self) -> Option<(&mut byte_parts::Source<'s>, Range<u64>)> {
        let window = self.object.clone()?;
        Some((self.source, window))
    }

    /// Returns whether the image holds machine code; `None` where that is not known.
    ///
    /// An image without code has no kernel. Compilers make such images of source files without kernels, for each GPU they
    /// compile for: no GPU needs them, and a GPU gets nothing by them.
    ///
    /// It is known of images of no bytes, and of ELF files for AMD and NVIDIA GPUs by the last 256 headers of their section
    /// table: the kernels of a cubin have executable sections, those of code for AMD GPUs bytes in one. Images [compressed](ImageInfo::compression) by themselves are decompressed
    /// for that, if they are no larger than 64 KiB and within [`Options::with_max_decompressed`](crate::Options::with_max_decompressed).
    /// It is not known for other formats, larger compressed images, malformed images, and images that are [not
    /// read](FileFormat::NotRead).
    ///
    /// # Errors
    ///
    /// Errors of [`reader`](Self::reader).
    pub fn holds_code(&mut self) -> io::Result<Option<bool>> {
        if self.size() == 0 {
            return Ok(Some(false));
        }
        if !code::is_told(self.info.format) {
            return Ok(None);
        }
        match self.info.compression {
            None => code::in_elf(self.source, &self.window),
            Some(own) => code::in_compressed(self.source, &self.window, own, self.decompressed),
        }
    }

    /// Returns the target that the image states about itself, as [`image_target`](crate::image_target) does, whatever
    /// its [container](ImageInfo::target) states; `None` if it states none.
    ///
    /// The first kilobytes are read; of LLVM bitcode the triple and the attributes of functions. Images [compressed](ImageInfo::compression) by
    /// themselves are decompressed for that as for [`holds_code`](Self::holds_code); for larger ones, and for images
    /// that are [not read](FileFormat::NotRead), it is `None`.
    ///
    /// # Errors
    ///
    /// Errors of [`reader`](Self::reader).
    pub fn own_target(&mut self) -> io::Result<Option<Target>> {
        match self.info.compression {
            None => image_target::of_window(self.source, &self.window, self.info.format),
            Some(own) => {
                let (source, window) = (&mut *self.source, &self.window);
                let image = code::decompressed(
                    source,
                    window,
                    own,
                    code::MOST_DECOMPRESSED,
                    self.decompressed,
                )?;
                Ok(image.ok().and_then(|image| image_target::of_bytes(&image, self.info.format)))
            }
        }
    }

    /// Reads the image's bytes as stored. A file that shrinks meanwhile gives
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof), never a short image.
    pub fn reader(&mut self) -> impl Read + '_ {
        SourceReader::new(self.source, self.window.clone())
    }

    /// Returns the code as tools for it take it, where it is stored in another form: images that are
    /// [compressed](ImageInfo::compression) by themselves are decompressed, and PTX of NVIDIA fatbinaries is without the NUL that
    /// ends it. `None` where [`reader`](Self::reader) reads the code, and for compressed images whose method is not
    /// [known](Compression::is_known).
    ///
    /// It counts against [`Options::with_max_decompressed`](crate::Options::with_max_decompressed).
    ///
    /// # Errors
    ///
    /// [`InvalidData`](io::ErrorKind::InvalidData) for a damaged image, and for one that exceeds the limit; errors of
    /// [`reader`](Self::reader).
    pub fn code(&mut self) -> io::Result<Option<Vec<u8>>> {
        let is_ptx = self.is_ptx();
        let mut code = match self.info.compression {
            Some(own) if own.is_known() => self.decompress(own)?,
            None if is_ptx => {
                self.fits()?;
                self.source.read_range(&self.window)?
            }
            _ => return Ok(None),
        };
        if is_ptx {
            code.truncate(without_zeros(&code).len());
        }
        Ok(Some(code))
    }

    fn decompress(&mut self, own: Compression) -> io::Result<Vec<u8>> {
        let mut memory = Memory::default();
        self.decompress_into(own, &mut memory)?;
        Ok(memory.code)
    }

    fn decompress_into(&mut self, own: Compression, memory: &mut Memory) -> io::Result<()> {
        let (source, window) = (&mut *self.source, &self.window);
        let done =
            code::decompressed_into(source, window, own, self.room, self.decompressed, memory)?;
        done.map_err(|undone| match undone {
            Undone::Codec(error) => {
                let message = format!("image {}: {error}", self.info.index);
                Error::new(ErrorKind::Image, message).into()
            }
            Undone::Limit(limit) => too_large("decompressing", own.uncompressed_size, limit),
        })
    }

    /// Returns the GPUs that an archive of Intel's offline compiler has machine code for, by IP version
    /// (`12.60.7`), and `generic_ir` if it has SPIR-V, too. `None` for images that are not such an archive.
    ///
    /// # Errors
    ///
    /// Errors of [`code`](Self::code).
    pub fn archived_gpus(&mut self) -> io::Result<Option<Vec<String>>> {
        if self.info.format != FileFormat::Archive {
            return Ok(None);
        }
        Ok(crate::sycl::gpus(&self.bytes()?))
    }

    /// Returns the code as [`code`](Self::code) does, and as it is stored where that returns `None`. Images that lie in
    /// memory, as those of compressed bundles do, are not copied, and do not count against the limit again.
    ///
    /// # Errors
    ///
    /// Errors of [`code`](Self::code).
    pub fn bytes(&mut self) -> io::Result<Cow<'_, [u8]>> {
        if let Some(code) = self.code()? {
            return Ok(Cow::Owned(code));
        }
        if self.source.bytes(&self.window).is_none() {
            self.fits()?;
        }
        self.source.range(&self.window)
    }

    /// Returns the code as [`bytes`](Self::bytes) does. Images that are decompressed lie in this memory.
    ///
    /// ```
    /// use fat_object::{Image, Memory, Options, Visitor, walk};
    ///
    /// #[derive(Default)]
    /// struct Sizes(Vec<usize>, Memory);
    ///
    /// impl Visitor for Sizes {
    ///     fn image(&mut self, image: &mut Image<'_, '_>) -> std::io::Result<()> {
    ///         self.0.push(image.bytes_with(&mut self.1)?.len());
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let mut sizes = Sizes::default();
    /// walk(std::fs::File::open("../../examples/data/cuda-fatbin.o")?, &Options::default(), &mut sizes)?;
    /// assert!(!sizes.0.is_empty() && !sizes.0.contains(&0));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Errors of [`code`](Self::code).
    pub fn bytes_with<'b>(&'b mut self, memory: &'b mut Memory) -> io::Result<Cow<'b, [u8]>> {
        let Some(own) = self.info.compression.filter(|own| own.is_known()) else {
            return self.bytes();
        };
        self.decompress_into(own, memory)?;
        let missing = || io::Error::other(internal!("an image in memory"));
        let size =
            usize::try_from(own.uncompressed_size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let code = memory.code.get(..size).ok_or_else(missing)?;
        Ok(Cow::Borrowed(if self.is_ptx() { without_zeros(code) } else { code }))
    }

    /// Returns whether the image is PTX that may end with a NUL.
    fn is_ptx(&self) -> bool {
        (self.info.container, self.info.format) == (ContainerKind::NvFatbin, FileFormat::Ptx)
    }

    /// Fails if the image is too large for a copy of it in memory.
    fn fits(&self) -> io::Result<()> {
        match Window::new(&self.window).len() {
            size if size > self.room => Err(too_large("reading", size, self.room)),
            _ => Ok(()),
        }
    }

    /// Hands out the image's bytes in pieces, which is faster than to [read](Self::reader) them: those of compressed
    /// bundles are in memory, and handed out as they lie there. The first error of `each` ends it.
    ///
    /// # Errors
    ///
    /// Errors of `each`, and of reading: a file that shrinks meanwhile gives
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof).
    pub fn pieces(&mut self, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        SourceReader::new(self.source, self.window.clone()).pieces(each)
    }
}

/// Returns the bytes before the zeros at the end.
fn without_zeros(code: &[u8]) -> &[u8] {
    let len = code.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    code.split_at_checked(len).map_or(code, |(start, _)| start)
}

fn too_large(doing: &str, size: u64, limit: u64) -> io::Error {
    let what = format!("{doing} this image ({size} bytes) would exceed the limit of {limit} bytes");
    Error::new(ErrorKind::Limit, what).into()
}

/// Formats the description of the image.
impl fmt::Debug for Image<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.info, f)
    }
}
