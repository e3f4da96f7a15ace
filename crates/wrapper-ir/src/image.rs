//! One image to wrap, and what of it is registered.

use std::borrow::Cow;
use std::iter;
use std::ops::Range;

use offload_binary::{OffloadBinary, OffloadKind};

use crate::error::Error;
use crate::kinds::Kind;
use crate::to_u64;

/// One device image: its size and its first bytes, but not all of them.
///
/// ```
/// use wrapper_ir::Image;
///
/// # fn size_of(_: &[u8]) -> u64 { 0x4000 }
/// # let first_bytes: &[u8] = &[0x7f, b'E', b'L', b'F'];
/// let image = Image::new(size_of(first_bytes), first_bytes).target_id("gfx90a:xnack+");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image<'a> {
    pub(crate) size: u64,
    pub(crate) head: Cow<'a, [u8]>,
    pub(crate) target_id: Option<Cow<'a, str>>,
}

impl<'a> Image<'a> {
    /// An image of `size` bytes that starts with `head`, which has at least the first four bytes
    /// of it, or all. They tell whether the image is a package: then `head` has to have its
    /// tables and strings too, usually a few hundred bytes.
    #[must_use]
    pub fn new(size: u64, head: impl Into<Cow<'a, [u8]>>) -> Self {
        Self { size, head: head.into(), target_id: None }
    }

    /// An image that is in memory as a whole.
    #[must_use]
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Self::new(to_u64(bytes.len()), bytes)
    }

    /// Says what the image was compiled for, as `--offload-arch=` of AOMP's
    /// `clang-offload-wrapper` does: `gfx90a:xnack+`. What it says is not checked.
    #[must_use]
    pub fn target_id(mut self, target_id: impl Into<Cow<'a, str>>) -> Self {
        self.target_id = Some(target_id.into());
        self
    }

    /// Checks what was given for image `image`.
    pub(crate) fn check(&self, image: usize, pointer_bits: u16) -> Result<(), Error> {
        let head = to_u64(self.head.len());
        if head > self.size {
            return Err(Error::HeadTooLong { image, size: self.size, head });
        }
        if head < self.size.min(4) {
            return Err(Error::HeadTooShort { image, needed: self.size.min(4) });
        }
        let limit = if pointer_bits == 32 { i32::MAX as u64 } else { i64::MAX as u64 };
        if self.size > limit {
            return Err(Error::ImageTooLarge { image, size: self.size, limit });
        }
        match &self.target_id {
            Some(id) if id.is_empty() || id.contains('\0') => {
                Err(Error::BadTargetId { image, target_id: id.as_ref().into() })
            }
            _ => Ok(()),
        }
    }

    /// What is registered of image `image`: each image of a package, or all of it.
    pub(crate) fn parts(&self, image: usize, kind: Kind) -> Result<Vec<Range<u64>>, Error> {
        if !self.head.starts_with(&offload_binary::MAGIC) {
            return Ok(iter::once(0..self.size).collect());
        }
        let package =
            OffloadBinary::parse_prefix(&self.head, self.size).map_err(|error| match error {
                offload_binary::Error::Incomplete { needed } => {
                    Error::HeadTooShort { image, needed }
                }
                error => Error::Package { image, error },
            })?;
        if package.size() != self.size {
            return Err(Error::AfterPackage { image, package: package.size(), size: self.size });
        }
        let mut parts = Vec::new();
        for (index, entry) in package.entries().enumerate() {
            let found = entry.offload_kind();
            if !is_of_kind(found, kind) {
                return Err(Error::PackageKind { image, entry: index, kind, found });
            }
            // Inside the package, as was checked.
            let start = entry.image_offset();
            parts.push(start..start.saturating_add(entry.image_size()));
        }
        if parts.is_empty() {
            return Err(Error::EmptyPackage { image });
        }
        Ok(parts)
    }
}

/// Whether an image that says it is of kind `found` may be registered with `kind`.
fn is_of_kind(found: OffloadKind, kind: Kind) -> bool {
    match kind {
        _ if found == OffloadKind::NONE => true,
        Kind::OpenMp => found == OffloadKind::OPENMP,
        Kind::Cuda => found == OffloadKind::CUDA,
        Kind::Hip => found == OffloadKind::HIP || found == OffloadKind::HIP_LEGACY,
        Kind::Sycl => found == OffloadKind::SYCL,
    }
}
