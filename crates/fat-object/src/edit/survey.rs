//! What a file holds that can be edited: one walk, kept as a tree.

use std::io;
use std::ops::Range;

use target_id::Target;

use crate::error::Error;
use crate::image_format::ImageFormat;
use crate::model::{
    BundleForm, Compression, Container, ContainerKind, Finding, Image, Location, PackageEntry,
    Segment, Severity, Visitor,
};
use crate::source::ReadSeek;
use crate::walker::{Options, walk};

use super::{EditError, elf};

/// How to [`survey`] a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SurveyOptions {
    /// Limits of the walk. Whether images are [entered](Options::enter_images) is not asked: they are edited as a whole.
    ///
    /// To compress or decompress bundles nobody needs to know their images: without [`Options::decompress`] compressed
    /// ones are listed without them. Only those of version 1, whose end nothing else tells, are decompressed then.
    pub walk: Options,
}

impl Default for SurveyOptions {
    fn default() -> Self {
        SurveyOptions::new(Options::default())
    }
}

impl SurveyOptions {
    /// Those of a walk with other limits.
    #[must_use]
    pub fn new(walk: Options) -> Self {
        SurveyOptions { walk }
    }
}

/// What [`survey`] found.
#[derive(Debug)]
pub struct Contents {
    pub(crate) size: u64,
    pub(crate) format: ImageFormat,
    pub(crate) images: Vec<EditableImage>,
    pub(crate) containers: Vec<EditableContainer>,
    /// What lies directly in the file.
    pub(crate) root: Vec<Node>,
    /// Whether what compressed bundles hold was compared with their hashes.
    pub(crate) verified: bool,
    /// Bytes that a compressed bundle may expand to.
    pub(crate) max_decompressed: u64,
}

impl Contents {
    /// Bytes of the file.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What the file is.
    #[must_use]
    pub fn format(&self) -> ImageFormat {
        self.format
    }

    /// All images, in the order of the walk.
    #[must_use]
    pub fn images(&self) -> &[EditableImage] {
        &self.images
    }

    /// All containers that images lie in directly, or could: bundles, packages, fatbinaries, and sections that are an
    /// entry of a bundle each. In the order of the walk. A compressed bundle counts as one with the bundle in it.
    #[must_use]
    pub fn containers(&self) -> &[EditableContainer] {
        &self.containers
    }
}

/// A container of images.
#[derive(Clone, Debug)]
pub struct EditableContainer {
    pub(crate) path: Vec<Segment>,
    pub(crate) kind: ContainerKind,
    pub(crate) location: Location,
    pub(crate) size: u64,
    pub(crate) compression: Option<Compression>,
    pub(crate) images: Range<usize>,
}

impl EditableContainer {
    /// The containers around it from outside in, itself the last.
    #[must_use]
    pub fn path(&self) -> &[Segment] {
        &self.path
    }

    /// What it is; [`Ccob`](ContainerKind::Ccob) for a compressed bundle.
    #[must_use]
    pub fn kind(&self) -> ContainerKind {
        self.kind
    }

    /// Where it starts; a compressed bundle where its header does.
    #[must_use]
    pub fn location(&self) -> Location {
        self.location
    }

    /// Bytes it takes, as stored.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Its compression, for a compressed bundle.
    #[must_use]
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// The indices of its images.
    #[must_use]
    pub fn images(&self) -> Range<usize> {
        self.images.clone()
    }
}

/// An image.
#[derive(Clone, Debug)]
pub struct EditableImage {
    pub(crate) index: usize,
    pub(crate) container: usize,
    pub(crate) id: Option<String>,
    pub(crate) target: Target,
    pub(crate) format: ImageFormat,
    pub(crate) form: Option<BundleForm>,
    pub(crate) package: Option<PackageEntry>,
    /// In the file, or in the decompressed data of its container.
    pub(crate) range: Range<u64>,
}

impl EditableImage {
    /// The position among all images of the file, from 0: that of [`Image::index`] in a walk that enters no images.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// The index of its container among [`Contents::containers`].
    #[must_use]
    pub fn container(&self) -> usize {
        self.container
    }

    /// The bundle entry ID, exactly as stored; `None` outside bundles.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Offload kind, triple and target ID, as far as the container tells them.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What it is, by its first bytes.
    #[must_use]
    pub fn format(&self) -> ImageFormat {
        self.format
    }

    /// Bytes of the image.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.range.end - self.range.start
    }
}

/// A container and what lies in it.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) segment: Segment,
    /// In the file, or in the decompressed data of the compressed bundle around it.
    pub(crate) range: Range<u64>,
    pub(crate) location: Location,
    /// Index among the containers, of one that images lie in directly; of a compressed bundle that of the bundle in it.
    pub(crate) container: Option<usize>,
    pub(crate) children: Vec<Node>,
}

impl Node {
    pub(crate) fn kind(&self) -> ContainerKind {
        self.segment.kind()
    }
}

/// Walks a file and keeps what it finds.
///
/// It costs a [walk](crate::walk()), and memory for each container and image with its ID and strings.
///
/// # Errors
///
/// [`EditError::Damaged`] for the first finding that is an error, [`EditError::ThinArchive`], [`EditError::MovedOut`] and
/// [`EditError::NoSectionHeaders`] of ELF files in which nothing is found for that reason,
/// [`EditError::Read`].
pub fn survey(input: &mut dyn ReadSeek, options: &SurveyOptions) -> Result<Contents, EditError> {
    let mut surveyor = Surveyor::default();
    let walked = Options { enter_images: false, tell_unopened: true, ..options.walk.clone() };
    let summary = walk(input, &walked, &mut surveyor);
    if let Some(damage) = surveyor.damage {
        return Err(damage);
    }
    let summary = summary?;
    if surveyor.containers.is_empty() && matches!(summary.format, ImageFormat::Elf { .. }) {
        elf::explain_nothing(input)?;
    }
    Ok(Contents {
        size: summary.size,
        format: summary.format,
        images: surveyor.images,
        containers: surveyor.containers,
        root: surveyor.root,
        verified: options.walk.decompress && options.walk.verify_hash,
        max_decompressed: options.walk.max_decompressed,
    })
}

#[derive(Default)]
struct Surveyor {
    images: Vec<EditableImage>,
    containers: Vec<EditableContainer>,
    root: Vec<Node>,
    /// The nodes entered and not left, and what is known of them as containers of images.
    open: Vec<(Node, EditableContainer)>,
    damage: Option<EditError>,
}

impl Surveyor {
    /// The container that images now lie in directly.
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
        let Some((node, _)) = self.open.last_mut() else { return usize::MAX };
        *node.container.get_or_insert_with(|| {
            self.containers.extend(
                place.map(|place| EditableContainer { images: next_image..next_image, ..place }),
            );
            self.containers.len() - 1
        })
    }
}

impl Visitor for Surveyor {
    fn enter(&mut self, container: &Container<'_>) -> io::Result<()> {
        let start = start(container.location());
        let segment = container.path().last().cloned();
        let segment = segment.unwrap_or_else(|| Segment::new(container.kind(), ""));
        let node = Node {
            segment,
            range: start..start.saturating_add(container.size()),
            location: container.location(),
            container: None,
            children: Vec::new(),
        };
        let place = EditableContainer {
            path: container.path().to_vec(),
            kind: container.kind(),
            location: container.location(),
            size: container.size(),
            compression: container.compression(),
            images: 0..0,
        };
        self.open.push((node, place));
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        let kind = self.open.last().map(|(node, _)| node.kind());
        let is_passed_over = self.open.last().is_some_and(|(node, _)| node.children.is_empty());
        match kind {
            // One without images is a container of images, too.
            Some(
                ContainerKind::Bundle | ContainerKind::OffloadBinary | ContainerKind::NvFatbin,
            ) => {
                self.container(self.images.len());
            }
            Some(ContainerKind::Ccob) if is_passed_over => {
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
        let container = self.container(image.index());
        if let Some(container) = self.containers.get_mut(container) {
            container.images.end = image.index() + 1;
        }
        let start = start(image.location());
        self.images.push(EditableImage {
            index: image.index(),
            container,
            id: image.id().map(str::to_owned),
            target: image.target().clone(),
            format: image.format(),
            form: image.bundle_form(),
            package: image.package_entry().cloned(),
            range: start..start.saturating_add(image.size()),
        });
        Ok(())
    }

    fn finding(&mut self, finding: &Finding<'_>) -> io::Result<()> {
        if finding.severity() < Severity::Error {
            return Ok(());
        }
        let path = finding.path().to_vec();
        let location = finding.location();
        self.damage = Some(match finding.error() {
            // Nobody opens them here: they are files of their own.
            Error::ThinMember { .. } => EditError::ThinArchive { path },
            error => EditError::Damaged { path, location, error: Box::new(error.clone()) },
        });
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// The offset in what it counts from.
fn start(location: Location) -> u64 {
    match location {
        Location::File(at)
        | Location::Decompressed(at)
        | Location::ThinMember(at)
        | Location::Bitcode(at) => at,
    }
}
