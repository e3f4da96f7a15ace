//! The editable contents of a file: one walk, kept as a tree.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Cursor, Read, Seek};
use std::ops::Range;

use byte_parts::{ReadSeek, internal};
use fat_object::{
    Compression, Container, ContainerKind, Enter, ErrorKind, FileFormat, Finding, Image, ImageInfo,
    Location, Options, PathStep, Severity, Summary, Visitor, walk, walk_slice,
};

use crate::compress::CompressOptions;
use crate::error::{Error, Problem};
use crate::image_hash::hash;
use crate::offload_form::{OffloadBinaryForm, Treatment};

/// Images and containers of a file, as [`survey`] finds them.
#[derive(Debug)]
pub struct EditableFile {
    pub(crate) size: u64,
    pub(crate) format: FileFormat,
    pub(crate) images: Vec<ImageInfo>,
    pub(crate) containers: Vec<EditableContainer>,
    /// Index of its container, for each image.
    pub(crate) containers_of: Vec<usize>,
    /// Containers that lie directly in the file.
    pub(crate) root: Vec<Node>,
    /// Findings that leave it known where everything lies.
    pub(crate) findings: Vec<Finding>,
    /// `true` if the contents of compressed bundles were compared with their hashes.
    pub(crate) verified: bool,
    /// Bytes that a compressed bundle may expand to.
    pub(crate) max_decompressed: u64,
    /// `true` if containers were looked for in any byte of host files.
    pub(crate) scanned: bool,
    /// `true` if compressed bundles were opened.
    pub(crate) is_open: bool,
    /// The ranges of entries of fatbinaries that are compressed and were not opened, though they have several images.
    pub(crate) closed_entries: BTreeSet<(u64, u64)>,
    /// Hashes of the images that lie in the file in another form, by index.
    pub(crate) hashes: BTreeMap<usize, u64>,
    /// The options of the survey.
    pub(crate) options: Options,
}

impl EditableFile {
    /// Returns the size of the file, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the format of the file.
    #[must_use]
    pub fn format(&self) -> FileFormat {
        self.format
    }

    /// Returns all images, in the order of the walk. Their [indices](ImageInfo::index) are those of a walk that enters no
    /// images.
    #[must_use]
    pub fn images(&self) -> &[ImageInfo] {
        &self.images
    }

    /// Returns all containers that directly hold images, or could: bundles, offload binaries, fatbinaries, and sections
    /// that are an entry of a bundle each. In the order of the walk. A compressed bundle counts as one with the bundle
    /// in it.
    #[must_use]
    pub fn containers(&self) -> &[EditableContainer] {
        &self.containers
    }

    /// Returns faults of the file that hide nothing in it: malformed entry IDs, images for other devices than their entries
    /// say, bytes after containers, and faults inside images. [`plan`](EditableFile::plan) refuses such files, unless they
    /// are [allowed](crate::EditOptions::with_allow_findings).
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the container that the image with this [index](ImageInfo::index) lies in; `None` if the index is too large.
    #[must_use]
    pub fn container_of(&self, image: usize) -> Option<&EditableContainer> {
        self.containers.get(*self.containers_of.get(image)?)
    }

    /// Returns the images of a container of this file.
    pub(crate) fn images_in(&self, container: &EditableContainer) -> &[ImageInfo] {
        self.images.get(container.images.clone()).unwrap_or_else(|| {
            internal!("a container of another file");
            &[]
        })
    }

    /// Returns whether a container of this file is compressed: as a whole, or with all its images.
    #[must_use]
    pub fn is_compressed(&self, container: &EditableContainer) -> bool {
        container.compression.is_some()
            || container.kind == ContainerKind::NvFatbin
                && self.images_in(container).iter().all(|image| image.compression().is_some())
    }

    /// Returns whether there are both compressed and plain containers, of kinds that [`Edit::compress`](crate::Edit::compress) compresses as a whole.
    #[must_use]
    pub fn is_compressed_in_part(&self) -> bool {
        let has_form = |container: &&EditableContainer| {
            container.has_compressed_form() && container.kind() != ContainerKind::NvFatbin
        };
        let mut forms =
            self.containers().iter().filter(has_form).map(|c| c.compression().is_some());
        forms.next().is_some_and(|first| forms.any(|next| next != first))
    }

    /// Returns whether runtimes read the bundles of the file and version 2 of compressed bundles, which all of them support, can hold
    /// them.
    #[must_use]
    pub fn is_for_runtime(&self) -> bool {
        let holds_bundles =
            matches!(self.format(), FileFormat::Bundle | FileFormat::CompressedBundle);
        let fits = |container: &EditableContainer| {
            let stored =
                container.compression().map_or(container.size(), |c| c.uncompressed_size());
            u32::try_from(stored).is_ok()
        };
        !holds_bundles && self.containers().iter().all(fits)
    }

    /// Returns whether only a scan of the whole file has found some of the containers.
    pub(crate) fn has_scanned(&self) -> bool {
        fn is_scanned(node: &Node) -> bool {
            node.segment.is_found_by_scan() || node.children.iter().any(is_scanned)
        }
        self.root.iter().any(is_scanned)
    }
}

/// A container of images.
#[derive(Clone, Debug)]
pub struct EditableContainer {
    pub(crate) index: usize,
    pub(crate) path: Vec<PathStep>,
    pub(crate) kind: ContainerKind,
    pub(crate) location: Location,
    pub(crate) size: u64,
    pub(crate) compression: Option<Compression>,
    pub(crate) images: Range<usize>,
    pub(crate) uneditable: Option<&'static str>,
    /// `true` if images can be removed from it nevertheless.
    pub(crate) in_place: bool,
    /// For a plain offload binary.
    pub(crate) binary: Option<OffloadBinaryForm>,
}

impl EditableContainer {
    /// Returns whether compression changes it.
    pub(super) fn is_compressed_by(&self, options: &CompressOptions) -> bool {
        match (self.kind, self.compression) {
            (ContainerKind::Bundle | ContainerKind::NvFatbin, _) => true,
            (_, Some(_)) => options.recompress,
            _ => matches!(self.treatment(options), Some(Treatment::Compress | Treatment::Upgrade)),
        }
    }

    /// Returns how compression treats it; `None` if it is not a plain offload binary.
    pub(super) fn treatment(&self, options: &CompressOptions) -> Option<Treatment> {
        self.binary.map(|binary| binary.treatment(options))
    }

    /// Returns the position among [`EditableFile::containers`], from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the containers around it from outside in, itself the last.
    #[must_use]
    pub fn path(&self) -> &[PathStep] {
        &self.path
    }

    /// Returns its kind; [`Ccob`](ContainerKind::Ccob) for a compressed bundle.
    #[must_use]
    pub fn kind(&self) -> ContainerKind {
        self.kind
    }

    /// Returns the place of its first byte; for a compressed bundle the place of its header.
    #[must_use]
    pub fn location(&self) -> Location {
        self.location
    }

    /// Returns its size as stored, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the compression of a compressed bundle.
    #[must_use]
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Returns whether there are compressed containers of its kind.
    #[must_use]
    pub fn has_compressed_form(&self) -> bool {
        use ContainerKind::{Bundle, Ccob, NvFatbin, OffloadBinary};
        matches!(self.kind, Bundle | Ccob | OffloadBinary | NvFatbin)
    }

    /// Returns the indices of its images.
    #[must_use]
    pub fn images(&self) -> Range<usize> {
        self.images.clone()
    }

    /// Returns the name of its kind, or of the kind of the file around it, if such containers cannot be edited; in the
    /// plural (`NVIDIA fatbinaries`).
    ///
    /// An edit that would change it is [refused](crate::ErrorKind::Unsupported), or
    /// [leaves it as it is](super::EditOptions::with_allow_uneditable).
    #[must_use]
    pub fn uneditable(&self) -> Option<&'static str> {
        self.uneditable.filter(|_| !self.in_place)
    }

    /// Returns the message of the error that an edit of it gives, if such containers [cannot be edited](Self::uneditable).
    ///
    /// ```
    /// use fat_edit::survey;
    /// use fat_object::Options;
    ///
    /// let file = std::fs::File::open("../../examples/data/hip-macos.o")?;
    /// let surveyed = survey(file, &Options::default())?;
    /// assert_eq!(
    ///     surveyed.containers()[0].refusal().unwrap(),
    ///     "section:__hip_fatbin/ccob:0: device code in Mach-O files cannot be edited"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        self.uneditable().map(|kind| Problem::unsupported(&self.path, kind).to_string())
    }

    /// Returns whether images can only be removed from it: it is a fatbinary beside other data in a linked file, where nothing
    /// moves. Zeros follow the remaining images. Any other edit is treated as an edit of a container that [cannot be
    /// edited](Self::uneditable).
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.in_place
    }
}

/// A container and what lies in it.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) segment: PathStep,
    /// In the file, or in the decompressed data of the compressed bundle around it. For a compressed offload
    /// binary, includes the padding after its stream.
    pub(crate) range: Range<u64>,
    pub(crate) location: Location,
    /// Index among the containers that images lie in directly; for a compressed bundle, of the bundle in it.
    pub(crate) container: Option<usize>,
    /// Its own.
    pub(crate) compression: Option<Compression>,
    pub(crate) children: Vec<Node>,
}

impl Node {
    pub(crate) fn kind(&self) -> ContainerKind {
        self.segment.kind()
    }
}

/// Walks a file and keeps its images and containers that can be edited.
///
/// ```
/// use std::io::Cursor;
/// use fat_edit::survey;
/// use fat_object::Options;
///
/// let ids = ["host-x86_64-unknown-linux-gnu", "hipv4-amdgcn-amd-amdhsa--gfx90a"];
/// let layout = bundle_format::layout([(ids[0], 0), (ids[1], 4)], 1)?;
/// let surveyed = survey(Cursor::new(layout.to_vec(&[b"", b"code"])?), &Options::default())?;
/// assert_eq!(surveyed.images()[1].id(), Some(ids[1]));
/// assert_eq!(surveyed.containers()[0].images(), 0..2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It costs a [walk](fat_object::walk()), and memory as a [listing](fat_object::list()) does, and for each
/// container. The options [`with_enter_images`](Options::with_enter_images) and
/// [`with_tables_only`](Options::with_tables_only) have no effect: images are always entered to find faults in them, and
/// edited as a whole.
///
/// # Errors
///
/// [`ErrorKind::Damaged`](crate::ErrorKind::Damaged) for the first finding that is an error and hides what lies where;
/// others are kept as [`EditableFile::findings`]. [`Unsupported`](crate::ErrorKind::Unsupported) for thin archives,
/// [`Host`](crate::ErrorKind::Host) for ELF files in which nothing is found because device code was moved out or section
/// headers are missing, and [`Read`](crate::ErrorKind::Read).
pub fn survey<R: Read + Seek>(input: R, options: &Options) -> Result<EditableFile, Error> {
    Ok(survey_with(input, options, false)?)
}

/// Surveys a file without opening compressed bundles, which is enough to compress or decompress bundles: their images
/// are not listed. Only bundles of version 1, which do not record their end, are decompressed. Others are checked when
/// they are decompressed; images that an edit leaves alone are never checked.
///
/// # Errors
///
/// Errors of [`survey`].
pub fn survey_closed<R: Read + Seek>(input: R, options: &Options) -> Result<EditableFile, Error> {
    Ok(survey_with(input, options, true)?)
}

pub(crate) fn survey_with<R: Read + Seek>(
    mut input: R,
    options: &Options,
    is_closed: bool,
) -> Result<EditableFile, Problem> {
    let contents = survey_any(&mut input, options, is_closed)?;
    if contents.containers.is_empty() && matches!(contents.format, FileFormat::Elf { .. }) {
        object_edit::explain_nothing(&mut input)?;
    }
    Ok(contents)
}

/// Surveys a file that may hold nothing.
pub(crate) fn survey_any(
    input: &mut dyn ReadSeek,
    options: &Options,
    is_closed: bool,
) -> Result<EditableFile, Problem> {
    let walked = |options: &Options, surveyor: &mut Surveyor| walk(&mut *input, options, surveyor);
    let mut contents = surveyed(options, is_closed, walked)?;
    contents.find_uneditable(input)?;
    Ok(contents)
}

/// Surveys bytes in memory, which are not copied, and which may hold nothing.
pub(crate) fn survey_slice(data: &[u8], options: &Options) -> Result<EditableFile, Problem> {
    let walked = |options: &Options, surveyor: &mut Surveyor| walk_slice(data, options, surveyor);
    let mut contents = surveyed(options, false, walked)?;
    contents.find_uneditable(&mut Cursor::new(data))?;
    Ok(contents)
}

fn surveyed(
    options: &Options,
    is_closed: bool,
    walk: impl FnOnce(&Options, &mut Surveyor) -> io::Result<Summary>,
) -> Result<EditableFile, Problem> {
    let mut surveyor = Surveyor { is_closed, ..Surveyor::default() };
    let walked = options.clone().with_enter_images(true);
    let summary = walk(&walked.with_tables_only(is_closed), &mut surveyor);
    if let Some(damage) = surveyor.damage {
        return Err(damage);
    }
    let summary = summary?;
    let mut contents = EditableFile {
        size: summary.size,
        format: summary.format,
        images: surveyor.images,
        containers: surveyor.containers,
        containers_of: surveyor.containers_of,
        root: surveyor.root,
        findings: surveyor.findings,
        verified: !is_closed && options.verify_hash(),
        max_decompressed: options.max_held(),
        scanned: options.scan(),
        is_open: !is_closed,
        closed_entries: surveyor.closed_entries,
        hashes: surveyor.hashes,
        options: options.clone(),
    };
    pad(&mut contents.root, contents.size);
    Ok(contents)
}

/// Counts the padding after compressed offload binaries, which no size in the file includes, as a part of them. `end`
/// is the end of the container around them.
fn pad(nodes: &mut [Node], end: u64) {
    for node in nodes {
        let is_offload_binary = node.kind() == ContainerKind::OffloadBinary;
        if is_offload_binary && node.compression.is_some() {
            let size = (node.range.end - node.range.start).next_multiple_of(8);
            node.range.end = end.min(node.range.start + size);
        }
        let end = match node.compression {
            Some(compression) if !is_offload_binary => compression.uncompressed_size(),
            _ => node.range.end,
        };
        pad(&mut node.children, end);
    }
}

#[derive(Default)]
struct Surveyor {
    /// `true` if compressed bundles are not opened.
    is_closed: bool,
    images: Vec<ImageInfo>,
    containers: Vec<EditableContainer>,
    containers_of: Vec<usize>,
    hashes: BTreeMap<usize, u64>,
    root: Vec<Node>,
    /// The nodes entered and not left, and what is known of them as containers of images.
    open: Vec<(Node, EditableContainer)>,
    /// Containers entered and not left from an image inwards: images are edited as a whole.
    inside_image: usize,
    /// `true` in an entry of a fatbinary that has several images: they are images of the fatbinary.
    inside_entry: bool,
    /// The places of such entries that are compressed and not opened.
    closed_entries: BTreeSet<(u64, u64)>,
    findings: Vec<Finding>,
    damage: Option<Problem>,
}

impl Surveyor {
    /// Returns the container that images now lie in directly.
    fn container(&mut self, next_image: usize) -> usize {
        if let Some(known) = self.open.last().and_then(|(node, _)| node.container) {
            return known;
        }
        // The bundle in a compressed bundle is not told apart from it.
        let is_ccob = |(node, _): &(Node, _)| node.kind() == ContainerKind::Ccob;
        let place = match self.open.len().checked_sub(2).and_then(|around| self.open.get(around)) {
            Some(around) if is_ccob(around) => Some(around),
            _ => self.open.last(),
        };
        let place = place.map(|(_, place)| place.clone());
        let Some((node, _)) = self.open.last_mut() else { return self.file() };
        *node.container.get_or_insert_with(|| {
            let (index, images) = (self.containers.len(), next_image..next_image);
            self.containers.extend(place.map(|place| EditableContainer { index, images, ..place }));
            index
        })
    }
}

impl Surveyor {
    /// Returns the file itself, where it is an image.
    fn file(&mut self) -> usize {
        let index = self.containers.len();
        self.containers.push(EditableContainer {
            index,
            path: Vec::new(),
            kind: ContainerKind::File,
            location: Location::File(0),
            size: 0,
            compression: None,
            binary: None,
            images: index..index,
            uneditable: None,
            in_place: false,
        });
        index
    }
}

impl Visitor for Surveyor {
    fn opens(&mut self, container: &Container) -> Enter {
        match container.compression() {
            // No bundle is empty: what is wrong with one that claims to be is found at no cost.
            Some(compression) if self.is_closed && compression.uncompressed_size() > 0 => {
                Enter::Skip
            }
            _ => Enter::Open,
        }
    }

    fn enter(&mut self, container: &Container) -> io::Result<()> {
        if self.inside_image > 0 || container.kind() == ContainerKind::Image {
            self.inside_image += 1;
            return Ok(());
        }
        if container.kind() == ContainerKind::Concatenated {
            self.inside_entry = true;
            if self.is_closed
                && container.compression().is_some()
                && let Location::File(start) = container.location()
            {
                self.closed_entries.insert((start, start + container.size()));
            }
            return Ok(());
        }
        let start = container.location().offset();
        let Some(segment) = container.path().last().cloned() else { return Ok(()) };
        let node = Node {
            segment,
            range: start..start + container.size(),
            location: container.location(),
            container: None,
            compression: container.compression(),
            children: Vec::new(),
        };
        let place = EditableContainer {
            index: 0,
            path: container.path().to_vec(),
            kind: container.kind(),
            location: container.location(),
            size: container.size(),
            compression: container.compression(),
            images: 0..0,
            uneditable: None,
            in_place: false,
            binary: None,
        };
        self.open.push((node, place));
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        if self.inside_image > 0 {
            self.inside_image -= 1;
            return Ok(());
        }
        if std::mem::take(&mut self.inside_entry) {
            return Ok(());
        }
        let kind = self.open.last().map(|(node, _)| node.kind());
        let is_passed_over = self.open.last().is_some_and(|(node, _)| node.children.is_empty());
        match kind {
            // The bundle in it is the container.
            Some(ContainerKind::Ccob) if !is_passed_over => {}
            // One without images is a container of images, too.
            Some(kind) if kind.is_format() => {
                self.container(self.images.len());
            }
            _ => {}
        }
        let Some((mut node, _)) = self.open.pop() else { return Ok(()) };
        if node.kind() == ContainerKind::Ccob && !is_passed_over {
            node.container = node.children.first().and_then(|bundle| bundle.container);
        }
        match self.open.last_mut() {
            Some((around, _)) => around.children.push(node),
            None => self.root.push(node),
        }
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        if self.inside_image > 0 {
            return Ok(());
        }
        // The walk also counts what lies in images.
        let index = self.images.len();
        let container = self.container(index);
        if let Some(container) = self.containers.get_mut(container) {
            container.images.end = index + 1;
            if container.kind == ContainerKind::File {
                container.size = image.size();
            }
        }
        if !self.is_closed && !matches!(image.location(), Location::File(_)) {
            self.hashes.insert(index, hash(image)?);
        }
        self.images.push(image.info().clone().with_index(index));
        self.containers_of.push(container);
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        let error = finding.error();
        let is_about_an_id = match error.kind() {
            ErrorKind::Composition => {
                error.composition().is_some_and(|rule| rule.first().is_none())
            }
            kind => kind == ErrorKind::Disagreement,
        };
        if finding.severity() == Severity::Warning && !is_about_an_id {
            return Ok(());
        }
        let hides_nothing =
            self.inside_image > 0 || is_about_an_id || error.kind() == ErrorKind::TrailingData;
        if hides_nothing {
            self.findings.push(finding.clone());
            return Ok(());
        }
        self.damage = Some(match error.kind() {
            // Nobody opens them here: they are files of their own.
            ErrorKind::ThinMember => Problem::thin_archive(finding.path()),
            _ => Problem::from(finding.clone()),
        });
        Err(io::ErrorKind::InvalidData.into())
    }
}
