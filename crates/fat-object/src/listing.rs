//! The images of a file as values that outlive the walk.

use std::io::{self, Read, Seek};

use device_code::FileFormat;

use crate::error::Error;
use crate::error::Finding;
use crate::image::{Image, ImageInfo};
use crate::model::Severity;
use crate::options::Options;
use crate::source::ReadSeek;
use crate::visitor::Visitor;
use crate::walker::{Summary, Walk};

/// Lists every image in a file, and all findings: images of sections, archives, bundles, offload binaries and
/// fatbinaries, at any depth, in file order.
///
/// It is one [walk](Walk); what that finds is kept. Use the walk itself to read images, or to see the
/// containers around them. The members of thin archives are files of their own, which nobody opens here: each of them
/// is a finding. [`list_with_thin_members`] is told how to open them.
///
/// ```
/// use std::io::Cursor;
///
/// let layout = bundle_format::layout([("hip-amdgcn-amd-amdhsa--gfx906", 4)], 1)?;
/// let file = Cursor::new(layout.to_vec(&[b"code"])?); // a File will do as well
/// let listing = fat_object::list(file, &fat_object::Options::default())?;
/// for image in listing.images() {
///     assert_eq!(image.target().id(), "gfx906");
///     assert_eq!(image.to_string(), "hip-amdgcn-amd-amdhsa--gfx906 (unknown, 4 bytes) in bundle:0");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Compressed bundles are decompressed, to tell the formats of their images and to compare their hashes.
/// [`Options::with_tables_only`] does without both: it lists a library of hundreds of megabytes in milliseconds.
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
/// An error of [reading](crate::ErrorKind::Io) `input`. A malformed file is not an error: the
/// [listing](Listing::findings) has the findings, and everything that was found.
pub fn list<R: Read + Seek>(input: R, options: &Options) -> Result<Listing, Error> {
    list_with_thin_members(input, options, |_| Err(io::ErrorKind::Unsupported.into()))
}

/// Lists as [`list`] does, including the files that thin archives name: `open` gets a name as the archive stores
/// it, a path relative to the directory of the archive, and is asked for each member once.
/// [`Options::with_max_thin_bytes`] bounds these files.
///
/// Names come from the file: what they may lead to is for `open` to decide.
///
/// # Errors
///
/// Errors of [`list`]. An error of `open` is a [finding](crate::ErrorKind::ThinMember).
pub fn list_with_thin_members<R: Read + Seek>(
    input: R,
    options: &Options,
    open: impl FnMut(&[u8]) -> io::Result<Box<dyn ReadSeek>>,
) -> Result<Listing, Error> {
    let mut lister = Lister { images: Vec::new(), findings: Vec::new(), open };
    let Summary { format, size, .. } = Walk::new(input, options)?.visit(&mut lister)?;
    Ok(Listing { format, size, images: lister.images, findings: lister.findings })
}

/// Lists bytes in memory, read as by [`walk_slice`](crate::walk_slice). [`ImageInfo::bytes_in`] gives the images
/// that lie in `data`.
///
/// # Errors
///
/// The only error: a compressed bundle does not fit into memory.
pub fn list_slice(data: &[u8], options: &Options) -> Result<Listing, Error> {
    let open = |_: &[u8]| Err(io::ErrorKind::Unsupported.into());
    let mut lister = Lister { images: Vec::new(), findings: Vec::new(), open };
    let Summary { format, size, .. } = Walk::of_slice(data, options).visit(&mut lister)?;
    Ok(Listing { format, size, images: lister.images, findings: lister.findings })
}

/// The result of [`list`].
///
/// With the feature `serde` it can be serialized: the images as `offload ls --json` prints them.
#[derive(Debug)]
#[must_use]
pub struct Listing {
    format: FileFormat,
    size: u64,
    images: Vec<ImageInfo>,
    findings: Vec<Finding>,
}

impl Listing {
    /// Returns all images, in file order; the position of each is its [index](ImageInfo::index).
    #[must_use]
    pub fn images(&self) -> &[ImageInfo] {
        &self.images
    }

    /// Returns the findings, in file order; none, for a valid file.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns whether nothing in the file is malformed, so that no image is missing for that reason. Formats that are
    /// not [read](FileFormat::is_read) do not count.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity() == Severity::Warning)
    }

    /// Returns the format of the file itself. With no image found, [`FileFormat::is_read`] tells a file without
    /// device code (a plain object) from one that a walk does not read (a wheel, junk).
    #[must_use]
    pub fn format(&self) -> FileFormat {
        self.format
    }

    /// Returns the size of the file in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// Keeps everything.
struct Lister<F> {
    images: Vec<ImageInfo>,
    findings: Vec<Finding>,
    open: F,
}

impl<F: FnMut(&[u8]) -> io::Result<Box<dyn ReadSeek>>> Visitor for Lister<F> {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        self.images.push(image.info.clone());
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.findings.push(finding.clone());
        Ok(())
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        (self.open)(name)
    }
}
