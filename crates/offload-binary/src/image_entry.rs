//! The description of one image to be written.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;

use crate::binary::Entry;
use crate::kinds::{Flags, ImageKind, OffloadKind};
use crate::wire::{HEADER_LEN, HEADER_V3_LEN, STRING_V1_LEN, STRING_V2_LEN};

/// The version of the format.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum FormatVersion {
    /// One binary for each image, one after the other. LLVM 22 and older write this, and every
    /// release reads it.
    V1,
    /// All images in one binary. LLVM 23 writes this; LLVM 22 cannot read it.
    V2,
    /// All images in one binary, which may be compressed. LLVM 24 writes this; LLVM 22 and 23 cannot read it.
    V3,
}

impl FormatVersion {
    /// Returns the version with this number, if there is one.
    #[must_use]
    pub(crate) const fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::V1),
            2 => Some(Self::V2),
            3 => Some(Self::V3),
            _ => None,
        }
    }

    /// Returns the number as it stands in the header: 1, 2 or 3.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }

    /// Returns the length in bytes of the header: 32, and 40 from version 3 on.
    #[must_use]
    pub const fn header_len(self) -> u64 {
        match self {
            Self::V1 | Self::V2 => HEADER_LEN,
            Self::V3 => HEADER_V3_LEN,
        }
    }

    /// Returns the length in bytes of a string entry.
    pub(crate) const fn string_entry_len(self) -> u64 {
        match self {
            Self::V1 => STRING_V1_LEN,
            Self::V2 | Self::V3 => STRING_V2_LEN,
        }
    }
}

/// The number.
impl fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.number(), f)
    }
}

/// A key and its value.
pub type StringPair<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// One image to write: what is known about it and its size, but not its bytes.
///
/// ```
/// use offload_binary::{ImageEntry, ImageKind, OffloadKind};
///
/// let entry = ImageEntry::new(4096)
///     .image_kind(ImageKind::OBJECT)
///     .offload_kind(OffloadKind::HIP)
///     .string("arch", "gfx90a")
///     .string("triple", "amdgcn-amd-amdhsa");
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
    /// from version 2 on only. A key may be there more than once; readers take the last one.
    pub strings: Vec<StringPair<'a>>,
    /// Length of the image in bytes.
    pub size: u64,
}

impl<'a> ImageEntry<'a> {
    /// Creates an image of `size` bytes of which nothing else is known.
    #[must_use]
    pub fn new(size: u64) -> Self {
        Self {
            image_kind: ImageKind::NONE,
            offload_kind: OffloadKind::NONE,
            flags: Flags(0),
            strings: Vec::new(),
            size,
        }
    }

    /// Sets the format of the image.
    #[must_use]
    pub fn image_kind(mut self, image_kind: ImageKind) -> Self {
        self.image_kind = image_kind;
        self
    }

    /// Sets the programming model that produced the image.
    #[must_use]
    pub fn offload_kind(mut self, offload_kind: OffloadKind) -> Self {
        self.offload_kind = offload_kind;
        self
    }

    /// Sets the flags.
    #[must_use]
    pub fn flags(mut self, flags: Flags) -> Self {
        self.flags = flags;
        self
    }

    /// Appends a key and its value. Owned ones can be pushed to [`strings`](Self::strings).
    #[must_use]
    pub fn string<K, V>(mut self, key: &'a K, value: &'a V) -> Self
    where
        K: AsRef<[u8]> + ?Sized,
        V: AsRef<[u8]> + ?Sized,
    {
        self.strings.push((Cow::Borrowed(key.as_ref()), Cow::Borrowed(value.as_ref())));
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

impl<'data> Entry<'data> {
    /// Returns everything the entry says, to be written again. The strings borrow from the data that was read.
    #[must_use]
    pub fn to_image_entry(&self) -> ImageEntry<'data> {
        ImageEntry {
            image_kind: self.image_kind(),
            offload_kind: self.offload_kind(),
            flags: self.flags(),
            strings: self.strings().map(|(k, v)| (Cow::Borrowed(k), Cow::Borrowed(v))).collect(),
            size: self.image_size(),
        }
    }
}
