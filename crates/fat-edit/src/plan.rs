//! The new file, laid out: what becomes of its containers and images, and its parts.

use std::fmt;
#[cfg(doc)]
use std::io;
use std::io::{Read, Seek, Write};
use std::ops::Range;

use byte_parts::Part;
#[cfg(doc)]
use fat_object::ImageInfo;
use object_edit::{Input, Output, is_copy_of};
use target_id::Target;

#[cfg(doc)]
use crate::compress::CompressOptions;
use crate::decompress::Decompress;
use crate::edit::NewImage;
use crate::error::Error;
#[cfg(doc)]
use crate::error::ErrorKind;
#[cfg(doc)]
use crate::survey::{Contents, EditableContainer};
use crate::write;

/// A new file, laid out and checked, but not written.
#[derive(Clone, Debug)]
pub struct EditPlan {
    pub(crate) parts: Output,
    /// The inputs [`Input::Derived`], by number.
    pub(crate) derived: Vec<Decompress>,
    /// By number.
    pub(crate) new_images: Vec<NewImage>,
    pub(crate) input_size: u64,
    pub(crate) containers: Vec<ContainerChange>,
    pub(crate) images: Vec<ImageChange>,
    pub(crate) notes: Vec<EditNote>,
}

/// A container before and after.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ContainerChange {
    /// Index among [`Contents::containers`].
    pub container: usize,
    /// What was done.
    pub change: Change,
    /// Bytes it took, as stored.
    pub size_before: u64,
    /// Bytes it takes, as stored; 0 when it is gone.
    pub size_after: u64,
    /// Bytes it held without compression.
    pub plain_before: u64,
    /// Bytes it holds without compression.
    pub plain_after: u64,
}

/// What was done to a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Change {
    /// Nothing: it was copied.
    Kept,
    /// Images were removed, replaced or added.
    Edited,
    /// It was plain and is compressed.
    Compressed,
    /// It was compressed and is plain.
    Decompressed,
    /// It was compressed and is compressed anew.
    Recompressed,
    /// It is gone.
    Removed,
}

impl Change {
    /// The name used in machine-readable output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Change::Kept => "kept",
            Change::Edited => "edited",
            Change::Compressed => "compressed",
            Change::Decompressed => "decompressed",
            Change::Recompressed => "recompressed",
            Change::Removed => "removed",
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An image before and after. Sizes are without compression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ImageChange {
    /// Its [index](ImageInfo::index); `None` for one that is added.
    pub index: Option<usize>,
    /// The index of its container among [`Contents::containers`].
    pub container: usize,
    /// Offload kind, triple and target ID.
    pub target: Target,
    /// Bytes of the image that was there; 0 for one that is added.
    pub size_before: u64,
    /// Bytes of the image that is there; `None` for one that is removed.
    pub size_after: Option<u64>,
}

/// What is worth knowing about an edit that worked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EditNote {
    /// Bytes that are not needed any more could not leave the file, and are zeros now.
    Zeroed {
        /// How many.
        bytes: u64,
    },
    /// The signature of the file was removed.
    SignatureDropped,
    /// Containers that the edit asked to change [cannot be edited](EditableContainer::uneditable) and are as they were.
    Uneditable {
        /// The name of their kind, in the plural.
        kind: &'static str,
        /// Their indices among [`Contents::containers`].
        containers: Vec<usize>,
    },
    /// Decompressing the compressed file gives another file than decompressing the edited one: the edited one itself, if
    /// nothing in it was compressed. What differs is not device code.
    NotRestored {
        /// Offset of the first byte that differs.
        offset: u64,
    },
    /// The compressed file cannot be decompressed in place, nor could the edited one, in which bundles are compressed.
    NotDecompressible,
    /// Packages of versions 1 and 2 stay as they are: LLVM 23 and older, which may have to read them, know no compressed
    /// ones. [`CompressOptions::upgrade_packages`] compresses those that tools read.
    OlderPackages {
        /// How many.
        count: usize,
    },
    /// Packages that programs hand to a runtime stay as they are: it may not decompress them.
    RegisteredPackages {
        /// How many.
        count: usize,
    },
    /// Packages of versions 1 and 2 are compressed ones of version 3 now, which LLVM 23 and older do not read.
    UpgradedPackages {
        /// How many.
        count: usize,
    },
}

impl EditNote {
    /// The note of the editor of a host file.
    pub(crate) fn of_host(note: object_edit::Note) -> Option<Self> {
        match note {
            object_edit::Note::Zeroed { bytes } => Some(EditNote::Zeroed { bytes }),
            object_edit::Note::SignatureDropped => Some(EditNote::SignatureDropped),
            _ => None,
        }
    }
}

/// A part of a new file, in order.
///
/// Exhaustive on purpose: who writes a file part by part has to write every kind of part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EditPart<'a> {
    /// This range of the edited file.
    Copy(Range<u64>),
    /// This range of the new image with this number.
    Image(usize, Range<u64>),
    /// A range of what a compressed bundle of the edited file holds.
    Decompressed {
        /// Where the compressed bundle lies in the edited file.
        stored: Range<u64>,
        /// The range of the decompressed data.
        range: Range<u64>,
    },
    /// These bytes.
    Bytes(&'a [u8]),
    /// So many zeros.
    Zeros(u64),
}

impl EditPlan {
    /// Whether the new file is the old one.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        is_copy_of(&self.parts, &(0..self.input_size))
    }

    /// Bytes of the new file.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.parts.size()
    }

    /// Bytes of the edited file.
    #[must_use]
    pub fn input_size(&self) -> u64 {
        self.input_size
    }

    /// What became of the containers, those that are as they were included.
    #[must_use]
    pub fn containers(&self) -> &[ContainerChange] {
        &self.containers
    }

    /// What became of the images, those that are as they were included; added ones last.
    #[must_use]
    pub fn images(&self) -> &[ImageChange] {
        &self.images
    }

    /// What else there is to know.
    #[must_use]
    pub fn notes(&self) -> &[EditNote] {
        &self.notes
    }

    /// The new file, part by part.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = EditPart<'_>> {
        self.parts.iter().map(|part| match part {
            Part::Input(Input::File, range) => EditPart::Copy(range),
            Part::Input(&Input::New(number), range) => EditPart::Image(number, range),
            Part::Input(&Input::Derived(number), range) => {
                let bundle = self.derived.get(number);
                let stored = bundle.map_or(0..0, |bundle| bundle.stored.clone());
                EditPart::Decompressed { stored, range }
            }
            Part::Bytes(bytes) => EditPart::Bytes(bytes),
            Part::Zeros(n) => EditPart::Zeros(n),
        })
    }

    /// Writes the new file.
    ///
    /// `input` is the edited file, and is not to be written over: what is read from it has to be what it was.
    /// From file to file the kernel copies, where the platform can ([`io::copy`]). Memory: nothing but one bundle at a
    /// time where bundles are decompressed; what they hold is verified only now.
    ///
    /// # Errors
    ///
    /// [`Read`](ErrorKind::Read) and [`Write`](ErrorKind::Write);
    /// [`InputChanged`](ErrorKind::InputChanged) where `input` or a new image became shorter; and
    /// [`Damaged`](ErrorKind::Damaged) for what is decompressed. A part of the new file may be written by then.
    pub fn write<R: Read + Seek, W: Write>(&self, mut input: R, mut out: W) -> Result<(), Error> {
        Ok(write::write(self, &mut input, &mut out)?)
    }
}
