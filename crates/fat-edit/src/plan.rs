//! The new file, laid out: its containers, images and parts.

#[cfg(doc)]
use std::io;
use std::io::{Read, Seek, Write};

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
use crate::hash::Hashing;
#[cfg(doc)]
use crate::survey::{EditableContainer, EditableFile};
use crate::write;

/// A new file, laid out and checked, but not written.
#[derive(Debug)]
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
#[derive(Debug)]
#[non_exhaustive]
pub struct ContainerChange {
    /// Index among [`EditableFile::containers`].
    pub container: usize,
    /// The change.
    pub change: Change,
    /// Bytes it took, as stored.
    pub size_before: u64,
    /// Bytes it takes, as stored; 0 when it is gone.
    pub size_after: u64,
    /// Bytes it held without compression.
    pub uncompressed_before: u64,
    /// Bytes it holds without compression.
    pub uncompressed_after: u64,
}

/// Change of a container.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// Nothing: it was copied.
    Kept,
    /// Images were removed, replaced or added.
    Edited,
    /// It was uncompressed and is compressed.
    Compressed,
    /// It was compressed and is uncompressed.
    Decompressed,
    /// It was compressed and is compressed again.
    Recompressed,
    /// It is gone.
    Removed,
}

impl Change {
    /// Returns the name used in machine-readable output.
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

/// An image before and after. Sizes are without compression.
#[derive(Debug)]
#[non_exhaustive]
pub struct ImageChange {
    /// Its [index](ImageInfo::index); `None` for one that is added.
    pub index: Option<usize>,
    /// The index of its container among [`EditableFile::containers`].
    pub container: usize,
    /// Offload kind, triple and target ID.
    pub target: Target,
    /// Bytes of the image that was there; 0 for one that is added.
    pub size_before: u64,
    /// Bytes of the image that is there; `None` for one that is removed.
    pub size_after: Option<u64>,
}

/// Remark about an edit that worked.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EditNote {
    /// Bytes that are not needed any more could not leave the file, and are zeros now.
    Zeroed {
        /// Their number.
        bytes: u64,
    },
    /// The signature of the file was removed.
    SignatureDropped,
    /// Containers that the edit asked to change [cannot be edited](EditableContainer::uneditable) and are as they were.
    Uneditable {
        /// The name of their kind, in the plural.
        kind: &'static str,
        /// Their indices among [`EditableFile::containers`].
        containers: Vec<usize>,
    },
    /// Decompressing the compressed file gives another file than decompressing the edited one: the edited one
    /// itself, if nothing in it was compressed. The difference lies outside of device code.
    NotRestored {
        /// Offset of the first byte that differs.
        offset: u64,
    },
    /// The compressed file cannot be decompressed in place, nor could the edited one, in which bundles are compressed.
    NotDecompressible,
    /// Fatbinaries of which no entry was to stay keep their smallest one: a wrapper leads to each of them.
    Placeholders {
        /// The number of fatbinaries.
        count: usize,
    },
    /// Offload binaries of versions 1 and 2 stay as they are: LLVM 23 and older, which may have to read them, know no compressed
    /// ones. [`CompressOptions::with_upgrade_offload_binaries`] compresses those that tools read.
    OlderOffloadBinaries {
        /// Their number.
        count: usize,
    },
    /// Offload binaries that programs hand to a runtime stay as they are: it may not decompress them.
    RegisteredOffloadBinaries {
        /// Their number.
        count: usize,
    },
    /// Offload binaries of versions 1 and 2 are compressed ones of version 3 now, which LLVM 23 and older do not read.
    UpgradedOffloadBinaries {
        /// Their number.
        count: usize,
    },
}

impl EditPlan {
    /// Returns whether the new file is the old one.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        is_copy_of(&self.parts, &(0..self.input_size))
    }

    /// Returns the size of the new file, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.parts.size()
    }

    /// Returns the bytes that the plan holds at most while it is [written](Self::write): new ones, and the largest of those that
    /// are decompressed then.
    #[must_use]
    pub fn held(&self) -> u64 {
        let new = self.parts.iter().map(|part| match part {
            Part::Bytes(bytes) => bytes.len() as u64,
            _ => 0,
        });
        let decompressed = self.derived.iter().map(|bundle| bundle.size).max();
        new.fold(decompressed.unwrap_or(0), u64::saturating_add)
    }

    /// Returns the changes of all containers, also of those that stay as they were.
    #[must_use]
    pub fn containers(&self) -> &[ContainerChange] {
        &self.containers
    }

    /// Returns the changes of all images, also of those that stay as they were; added ones are last.
    #[must_use]
    pub fn images(&self) -> &[ImageChange] {
        &self.images
    }

    /// Returns remarks that tools show to people.
    #[must_use]
    pub fn notes(&self) -> &[EditNote] {
        &self.notes
    }

    /// Returns the new file, part by part: ranges of the edited file, of new images and of the contents of compressed
    /// bundles, and new bytes.
    #[must_use]
    pub fn parts(&self) -> &byte_parts::Parts<Input> {
        &self.parts
    }

    /// Writes the new file.
    ///
    /// `input` is the edited file, and is not to be written over: what is read from it has to be what it was.
    /// From file to file the kernel copies, where the platform can ([`io::copy`]). Memory: nothing but one bundle at a
    /// time where bundles are decompressed, which are verified only now.
    ///
    /// # Errors
    ///
    /// [`Read`](ErrorKind::Read) and [`Write`](ErrorKind::Write);
    /// [`InputChanged`](ErrorKind::InputChanged) where `input` or a new image became shorter; and
    /// [`Damaged`](ErrorKind::Damaged) for what is decompressed. A part of the new file may be written by then.
    pub fn write<R: Read + Seek, W: Write>(&self, mut input: R, mut out: W) -> Result<(), Error> {
        Ok(write::write(self, &mut input, &mut out)?)
    }

    /// Writes the new file as [`write`](Self::write) does, and returns its hash: XXH3 of 64 bits.
    ///
    /// # Errors
    ///
    /// Those of [`write`](Self::write).
    pub fn write_hashed<R: Read + Seek, W: Write>(&self, input: R, out: W) -> Result<u64, Error> {
        let mut out = Hashing::new(out);
        self.write(input, &mut out)?;
        Ok(out.hash())
    }
}
