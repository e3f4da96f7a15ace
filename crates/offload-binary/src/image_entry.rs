//! The description of one image to be written.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::kinds::{Flags, ImageKind, OffloadKind};

/// A key and its value.
pub type StringPair<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// One image to write: what is known about it and its size, but not its bytes.
///
/// ```
/// use offload_binary::{ImageEntry, ImageKind, OffloadKind};
///
/// let entry = ImageEntry::new(4096)
///     .with_image_kind(ImageKind::OBJECT)
///     .with_offload_kind(OffloadKind::HIP)
///     .with_string("arch", "gfx90a")
///     .with_string("triple", "amdgcn-amd-amdhsa");
/// assert_eq!(entry.strings.len(), 2);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ImageEntry<'a> {
    /// The format of the image.
    pub image_kind: ImageKind,
    /// The programming model that produced the image. LLVM 20 and older know HIP as
    /// [`OffloadKind::HIP_LEGACY`].
    pub offload_kind: OffloadKind,
    /// The flags. An entry that only carries strings has [`Flags::METADATA`] and size 0; this is
    /// not checked, neither is it in LLVM.
    pub flags: Flags,
    /// Keys and values in the order in which they are stored. Keys cannot hold a NUL, values can
    /// from version 2 on only. [`with_string`](Self::with_string) stores each key once. A key that is pushed here, or read from a file, may
    /// be there more than once; readers take the last one.
    pub strings: Vec<StringPair<'a>>,
    /// Length of the image in bytes.
    pub size: u64,
}

impl<'a> ImageEntry<'a> {
    /// Creates an image of `size` bytes without further facts.
    #[must_use]
    pub fn new(size: u64) -> Self {
        Self {
            image_kind: ImageKind::NONE,
            offload_kind: OffloadKind::NONE,
            flags: Flags::empty(),
            strings: Vec::new(),
            size,
        }
    }

    /// Sets the format of the image.
    #[must_use]
    pub fn with_image_kind(mut self, image_kind: ImageKind) -> Self {
        self.image_kind = image_kind;
        self
    }

    /// Sets the programming model that produced the image.
    #[must_use]
    pub fn with_offload_kind(mut self, offload_kind: OffloadKind) -> Self {
        self.offload_kind = offload_kind;
        self
    }

    /// Sets the flags.
    #[must_use]
    pub fn with_flags(mut self, flags: Flags) -> Self {
        self.flags = flags;
        self
    }

    /// Sets the value of a key. A key that is already there keeps its place and gets the new value: it is stored once.
    /// Owned ones can be pushed to [`strings`](Self::strings).
    ///
    /// ```
    /// use offload_binary::ImageEntry;
    ///
    /// let entry = ImageEntry::new(0).with_string("arch", "gfx90a").with_string("arch", "gfx1100");
    /// assert_eq!(entry, ImageEntry::new(0).with_string("arch", "gfx1100"));
    /// ```
    #[must_use]
    pub fn with_string<K, V>(mut self, key: &'a K, value: &'a V) -> Self
    where
        K: AsRef<[u8]> + ?Sized,
        V: AsRef<[u8]> + ?Sized,
    {
        let (key, value) = (Cow::Borrowed(key.as_ref()), Cow::Borrowed(value.as_ref()));
        let at = self.strings.iter().position(|(known, _)| *known == key);
        self.strings.retain(|(known, _)| *known != key);
        // The first one had this place, with no other before it.
        self.strings.insert(at.unwrap_or(self.strings.len()), (key, value));
        self
    }

    /// Returns the same with all strings copied, so that nothing is borrowed.
    #[must_use]
    pub fn into_owned(self) -> ImageEntry<'static> {
        let owned = |string: Cow<'a, [u8]>| Cow::Owned(string.into_owned());
        ImageEntry {
            image_kind: self.image_kind,
            offload_kind: self.offload_kind,
            flags: self.flags,
            strings: self.strings.into_iter().map(|(k, v)| (owned(k), owned(v))).collect(),
            size: self.size,
        }
    }
}
