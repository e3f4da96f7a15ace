//! Linked images.

use byte_parts::{Part, Parts};
use offload_binary::{ImageKind, OffloadKind};

use crate::error::{Error, ErrorKind};
use crate::plan::{Group, Plan};
use crate::target::LinkTarget;

/// A linker of device code: a compiler in this process, or one that is run.
pub trait DeviceLinker {
    /// The error of a link.
    type Error;

    /// Links the inputs of one image. The image is bytes in memory, `bytes.into()`, or a range of something that the caller
    /// numbers, such as a file: [`Parts::from_input`].
    ///
    /// # Errors
    ///
    /// The linker's own.
    fn link(&mut self, group: &Group<'_>) -> Result<Parts, Self::Error>;

    /// Links all images; by default one after the other. There is one result for each group, in their order.
    ///
    /// # Errors
    ///
    /// The first error of a link.
    fn link_all(&mut self, groups: &[Group<'_>]) -> Result<Vec<Parts>, Self::Error> {
        groups.iter().map(|group| self.link(group)).collect()
    }
}

/// Linked images for the devices of a program.
#[derive(Clone, Debug, Default)]
pub struct Images {
    images: Vec<LinkedImage>,
}

/// Image for the devices of one target.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LinkedImage {
    /// Target that the image is for.
    pub target: LinkTarget,
    /// Programming models whose runtimes register it.
    pub kinds: Vec<OffloadKind>,
    /// Kind of the image: an object, or bitcode that the runtime compiles.
    pub image_kind: ImageKind,
    /// The image: bytes, and ranges of what the caller numbers.
    pub parts: Parts,
}

impl LinkedImage {
    /// Creates an object that no runtime registers.
    #[must_use]
    pub fn new(target: LinkTarget, parts: Parts) -> Self {
        LinkedImage { target, kinds: Vec::new(), image_kind: ImageKind::OBJECT, parts }
    }

    /// Sets the programming models. Default: none.
    #[must_use]
    pub fn with_kinds(mut self, kinds: impl IntoIterator<Item = OffloadKind>) -> Self {
        self.kinds = kinds.into_iter().collect();
        self
    }

    /// Sets the kind of the image. Default: an object.
    #[must_use]
    pub fn with_image_kind(mut self, kind: ImageKind) -> Self {
        self.image_kind = kind;
        self
    }
}

/// Returns the bytes of something that has to be in memory.
pub(crate) fn in_memory(parts: &Parts, what: &str) -> Result<Vec<u8>, Error> {
    if parts.iter().any(|part| matches!(part, Part::Input(..))) {
        let text = format!("{what}: expected in memory as a whole");
        return Err(Error::new(ErrorKind::Container, text));
    }
    parts.to_vec(|_| &[]).map_err(|error| Error::of(ErrorKind::Container, what, error))
}

impl Plan<'_> {
    /// Links all images.
    ///
    /// # Errors
    ///
    /// The linker's own.
    pub fn link<L: DeviceLinker>(&self, linker: &mut L) -> Result<Images, L::Error> {
        let linked = linker.link_all(self.groups())?;
        let images = self.groups().iter().zip(linked).map(|(group, parts)| {
            LinkedImage::new(group.target().clone(), parts).with_kinds(group.kinds().to_vec())
        });
        Ok(images.collect())
    }
}

impl FromIterator<LinkedImage> for Images {
    fn from_iter<I: IntoIterator<Item = LinkedImage>>(images: I) -> Self {
        Images { images: images.into_iter().collect() }
    }
}

impl Images {
    /// Sets the kind of all images: bitcode, if the device linker makes such.
    #[must_use]
    pub fn with_kind(mut self, kind: ImageKind) -> Self {
        for image in &mut self.images {
            image.image_kind = kind;
        }
        self
    }

    /// Returns all images.
    pub fn iter(&self) -> impl Iterator<Item = &LinkedImage> {
        self.images.iter()
    }

    /// Returns the programming models that have images, in the order in which images first have them.
    #[must_use]
    pub fn kinds(&self) -> Vec<OffloadKind> {
        let mut kinds = Vec::new();
        for kind in self.images.iter().flat_map(|image| &image.kinds) {
            // Code of no programming model is linked, and registered nowhere.
            if *kind != OffloadKind::NONE && !kinds.contains(kind) {
                kinds.push(*kind);
            }
        }
        kinds
    }

    /// Returns the images of a programming model, those for more particular targets first: LLVM's runtime takes the
    /// first that fits.
    #[must_use]
    pub fn of(&self, kind: OffloadKind) -> Vec<&LinkedImage> {
        let mut images: Vec<_> =
            self.images.iter().filter(|image| image.kinds.contains(&kind)).collect();
        images.sort_by(|a, b| b.target.cmp(&a.target));
        images
    }
}
