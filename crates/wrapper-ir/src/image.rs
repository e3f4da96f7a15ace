//! One image to wrap, and what of it is registered.

use std::borrow::Cow;
use std::fmt;
use std::iter;
use std::ops::Range;

use offload_binary::{Entry, OffloadBinary, OffloadKind};

use crate::error::{Error, ErrorKind};

use crate::to_u64;

/// One device image: its size and its first bytes, but not all of them.
///
/// ```
/// use wrapper_ir::Image;
///
/// # fn size_of(_: &[u8]) -> u64 { 0x4000 }
/// # let first_bytes: &[u8] = &[0x7f, b'E', b'L', b'F'];
/// let image = Image::new(size_of(first_bytes), first_bytes).with_target_id("gfx90a:xnack+");
/// ```
#[derive(Clone)]
pub struct Image<'a> {
    pub(crate) size: u64,
    pub(crate) head: Cow<'a, [u8]>,
    pub(crate) target_id: Option<Cow<'a, str>>,
}

impl fmt::Debug for Image<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("size", &self.size)
            .field("target_id", &self.target_id)
            .finish_non_exhaustive()
    }
}

impl<'a> Image<'a> {
    /// Creates an image of `size` bytes that starts with `head`: at least its first four bytes, or all. They show
    /// whether the image is an offload binary: then `head` must include its tables and strings too, usually a few hundred
    /// bytes.
    #[must_use]
    pub fn new(size: u64, head: impl Into<Cow<'a, [u8]>>) -> Self {
        Self { size, head: head.into(), target_id: None }
    }

    /// Returns an image that is in memory as a whole.
    #[must_use]
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Self::new(to_u64(bytes.len()), bytes)
    }

    /// Sets the target that the image was compiled for, as `--offload-arch=` of AOMP's `clang-offload-wrapper` does:
    /// `gfx90a:xnack+`. The text is not checked.
    #[must_use]
    pub fn with_target_id(mut self, target_id: impl Into<Cow<'a, str>>) -> Self {
        self.target_id = Some(target_id.into());
        self
    }

    /// Checks the size and the head of image `image`.
    pub(crate) fn check(&self, image: usize, pointer_bits: u16) -> Result<(), Error> {
        let head = to_u64(self.head.len());
        if head > self.size {
            let text = format!(" has {} bytes, less than its head of {head} bytes", self.size);
            return Err(Error::of_image(ErrorKind::Invalid, image, text));
        }
        if head < self.size.min(4) {
            return Err(Error::head_too_short(image, self.size.min(4)));
        }
        let limit = if pointer_bits == 32 { i32::MAX as u64 } else { i64::MAX as u64 };
        if self.size > limit {
            return Err(Error::image_too_large(image, self.size, limit));
        }
        match &self.target_id {
            Some(id) if id.is_empty() || id.contains('\0') => {
                let text = format!(" has the target id \"{}\"", id.escape_debug());
                Err(Error::of_image(ErrorKind::Invalid, image, text))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether it starts as an offload binary does.
    pub(crate) fn is_package(&self) -> bool {
        self.head.starts_with(&offload_binary::MAGIC)
    }

    /// Returns the registered parts of image `image`: each image of an offload binary, or all of it.
    pub(crate) fn parts(&self, image: usize, kind: OffloadKind) -> Result<Vec<Range<u64>>, Error> {
        if !self.is_package() {
            return Ok(iter::once(0..self.size).collect());
        }
        let package = self.package(image, 0, kind)?;
        if package.size() != self.size {
            return Err(Error::after_package(image, package.size(), self.size));
        }
        // Inside the offload binary, as was checked.
        let range =
            |entry: Entry<'_>| entry.image_offset()..entry.image_offset() + entry.image_size();
        Ok(package.entries().map(range).collect())
    }

    /// Returns the offload binary at an offset in image `image`, checked: it ends there, has images, and all are of the kind.
    pub(crate) fn package(
        &self,
        image: usize,
        offset: u64,
        kind: OffloadKind,
    ) -> Result<OffloadBinary<'_>, Error> {
        let size = self.size - offset;
        let head = usize::try_from(offset).ok().and_then(|offset| self.head.get(offset..));
        // None of it may be in memory yet.
        let package = OffloadBinary::parse_prefix(head.unwrap_or_default(), size);
        let package = package.map_err(|error| match (error.needed(), error.compressed()) {
            (Some(needed), _) => Error::head_too_short(image, offset + needed),
            (_, Some(binary)) if size > binary.padded_size() => {
                Error::after_package(image, binary.size(), size)
            }
            _ => Error::of_package(image, error),
        })?;
        for (index, entry) in package.entries().enumerate() {
            let found = entry.offload_kind();
            if !is_of_kind(found, kind) {
                let text = format!(
                    " is a package whose entry {index} has offload kind {}, expected {kind}",
                    found.0
                );
                return Err(Error::of_image(ErrorKind::Package, image, text));
            }
        }
        if package.entries().next().is_none() {
            let text = " is a package without images";
            return Err(Error::of_image(ErrorKind::Package, image, text));
        }
        Ok(package)
    }
}

/// Returns whether an image whose entry has the kind `found` may be registered with `kind`.
fn is_of_kind(found: OffloadKind, kind: OffloadKind) -> bool {
    found == OffloadKind::NONE || found.current() == kind
}

#[cfg(test)]
mod tests {
    use offload_binary::{FormatVersion, ImageEntry};

    use super::*;
    use crate::description::{Constant, Module};
    use crate::{Abi, Target, Wrapper};

    fn package(version: FormatVersion, kind: OffloadKind, images: &[&[u8]]) -> Vec<u8> {
        let entry = |image: &&[u8]| ImageEntry::new(to_u64(image.len())).with_offload_kind(kind);
        let entries: Vec<_> = images.iter().map(entry).collect();
        offload_binary::layout(version, &entries).unwrap().to_vec(images).unwrap()
    }

    fn wrap(kind: OffloadKind, image: Image<'_>) -> Result<Module, Error> {
        let target = Target::new("x86_64-unknown-linux-gnu").unwrap();
        Wrapper::new(kind, Abi::Current, target).with_image(image).module()
    }

    /// Returns the offsets at which the device images of a module start and end.
    fn device_images(module: &Module) -> Vec<(u64, u64)> {
        let offset = |constant: &Constant| match constant {
            Constant::Inside { offset, .. } => *offset,
            Constant::Symbol(_) => 0,
            other => panic!("{other:?}"),
        };
        let table = module.global(".omp_offloading.device_images").unwrap();
        let Some(Constant::Array(images)) = &table.init else { panic!("no table") };
        images
            .iter()
            .map(|image| match image {
                Constant::Aggregate(_, fields) => (offset(&fields[0]), offset(&fields[1])),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn the_image_of_a_package_is_registered() {
        let package = package(FormatVersion::V1, OffloadKind::OPENMP, &[b"image"]);
        let module = wrap(OffloadKind::OPENMP, Image::from_bytes(&package)).unwrap();
        // Header, entry, strings of nothing: the image starts at 80.
        assert_eq!(device_images(&module), [(80, 85)]);
        assert_eq!(module.blobs[0].size, to_u64(package.len()));
    }

    #[test]
    fn all_images_of_a_package_are_registered() {
        let package =
            package(FormatVersion::V2, OffloadKind::OPENMP, &[b"first image", b"second", b""]);
        let module = wrap(OffloadKind::OPENMP, Image::from_bytes(&package)).unwrap();
        let start = 32 + 3 * 40 + 8;
        assert_eq!(
            device_images(&module),
            [(start, start + 11), (start + 11, start + 17), (start + 17, start + 17)]
        );
        assert_eq!(module.blobs.len(), 1);
    }

    #[test]
    fn a_fatbinary_in_a_package_is_registered() {
        for kind in [OffloadKind::HIP, OffloadKind::HIP_LEGACY, OffloadKind::NONE] {
            let package = package(FormatVersion::V1, kind, &[b"image"]);
            let module = wrap(OffloadKind::HIP, Image::from_bytes(&package)).unwrap();
            assert_eq!((module.blobs[0].offset, module.blobs[0].size), (80, 5));
            let text = module.ir_to_string(&[&package]).unwrap();
            assert!(text.contains("constant [5 x i8] c\"image\""));
        }
        let two = package(FormatVersion::V2, OffloadKind::CUDA, &[b"image", b"image"]);
        let kind = OffloadKind::CUDA;
        let text = "cuda registers exactly one device image, found 2";
        let error = wrap(kind, Image::from_bytes(&two)).unwrap_err();
        assert_eq!(error, (ErrorKind::SingleImage, text));
    }

    #[test]
    fn packages_are_kept_on_request() {
        let target = Target::new("x86_64-unknown-linux-gnu").unwrap();
        let wrapper = Wrapper::new(OffloadKind::OPENMP, Abi::Current, target)
            .with_image(Image::new(4, &offload_binary::MAGIC))
            .with_keep_packages(true);
        assert_eq!(device_images(&wrapper.module().unwrap()), [(0, 4)]);
    }

    #[test]
    fn packages_of_another_kind_or_number_are_refused() {
        let one = package(FormatVersion::V1, OffloadKind::OPENMP, &[b"image"]);
        for (package, text) in [
            (
                package(FormatVersion::V1, OffloadKind::HIP, &[b"image"]),
                "device image 0 is a package whose entry 0 has offload kind 4, expected openmp",
            ),
            (
                one.repeat(2),
                "device image 0 is a package of 0x58 bytes, followed by more data (0xb0 bytes in total); \
                 wrap packages one by one",
            ),
            (
                package(FormatVersion::V2, OffloadKind::OPENMP, &[]),
                "device image 0 is a package without images",
            ),
        ] {
            let error = wrap(OffloadKind::OPENMP, Image::from_bytes(&package)).unwrap_err();
            assert_eq!(error.image(), Some(0));
            assert_eq!(error, (ErrorKind::Package, text));
        }
    }

    #[test]
    fn a_damaged_package_is_refused() {
        let package = package(FormatVersion::V1, OffloadKind::OPENMP, &[b"image"]);
        let error = wrap(OffloadKind::OPENMP, Image::from_bytes(&package[..60])).unwrap_err();
        assert_eq!((error.kind(), error.image()), (ErrorKind::Package, Some(0)));
        assert_eq!(error.package().unwrap().kind(), offload_binary::ErrorKind::Truncated);
    }

    #[test]
    fn heads_must_include_the_tables() {
        let package = package(FormatVersion::V1, OffloadKind::OPENMP, &[b"image"]);
        let size = to_u64(package.len());
        let mut head = 4;
        for _ in 0..4 {
            match wrap(OffloadKind::OPENMP, Image::new(size, &package[..head])) {
                Ok(module) => {
                    assert_eq!(device_images(&module), [(80, 85)]);
                    assert!(head <= 80);
                    return;
                }
                Err(error) => {
                    assert_eq!((error.kind(), error.image()), (ErrorKind::HeadTooShort, Some(0)));
                    head = usize::try_from(error.head_needed().unwrap()).unwrap();
                }
            }
        }
        panic!("the head is never long enough");
    }
}
