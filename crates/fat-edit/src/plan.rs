//! The new file, laid out: its containers, images and parts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
#[cfg(doc)]
use std::io;
use std::ops::Range;

use byte_parts::Part;
use device_select::Need;
#[cfg(doc)]
use fat_object::ImageInfo;
use object_edit::{Input, Output, is_copy_of};
use target_id::{OffloadKind, Target};

#[cfg(doc)]
use crate::compress::CompressOptions;
use crate::decompress::Decompress;
use crate::edit::NewImage;
#[cfg(doc)]
use crate::error::ErrorKind;
#[cfg(doc)]
use crate::survey::EditableContainer;
use crate::survey::EditableFile;

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
    pub(crate) needs: BTreeSet<Need>,
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

/// The images of a target before and after. Sizes are without compression.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct TargetChange {
    /// The target, as a listing labels it.
    pub target: String,
    /// The number of images before and after.
    pub images: [usize; 2],
    /// Their bytes before and after.
    pub size: [u64; 2],
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
    /// Fatbinaries lost all entries, and are a header now: wrappers and other code still lead to them.
    EmptyFatbinaries {
        /// The number of fatbinaries.
        count: usize,
    },
    /// Offload binaries of versions 1 and 2 stay as they are: LLVM 23 and older, which may have to read them, know no compressed
    /// ones. [`CompressOptions::with_upgrade_offload_binaries`] compresses offload binaries that tools read.
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

/// Writes it in words, without what a tool can do about it.
impl fmt::Display for EditNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let many = |count: usize, one: &'static str, more: &'static str| match count {
            1 => one,
            _ => more,
        };
        let stays =
            |count| many(count, "offload binary stays plain", "offload binaries stay plain");
        match self {
            EditNote::Zeroed { bytes } => {
                write!(f, "{bytes} B could not be removed from the file and are now zeros")
            }
            EditNote::SignatureDropped => f.write_str("its signature was removed"),
            EditNote::Uneditable { kind, .. } => {
                write!(f, "{kind} cannot be edited and stay as they are")
            }
            EditNote::NotRestored { offset } => write!(
                f,
                "decompress will restore its device code, but not every other byte: byte {offset:#x} will differ"
            ),
            EditNote::NotDecompressible => {
                f.write_str("holds device code that was linked compressed")
            }
            EditNote::EmptyFatbinaries { count } => {
                let are = many(*count, "fatbinary is", "fatbinaries are");
                let whose = many(*count, "its", "their");
                write!(f, "{count} {are} empty now: no GPU runs {whose} kernels")
            }
            EditNote::OlderOffloadBinaries { count } => write!(
                f,
                "{count} {}: versions 1 and 2, for readers that may not know version 3",
                stays(*count)
            ),
            EditNote::RegisteredOffloadBinaries { count } => write!(
                f,
                "{count} {}: a runtime reads what is loaded, and may not decompress it",
                stays(*count)
            ),
            EditNote::UpgradedOffloadBinaries { count } => {
                let are = many(*count, "offload binary is", "offload binaries are");
                write!(f, "{count} {are} of version 3 now, which LLVM 23 and older do not read")
            }
        }
    }
}

impl EditPlan {
    /// Returns the change of each target, in the order in which they first appear. `file` is the one that is edited.
    #[must_use]
    pub fn targets(&self, file: &EditableFile) -> Vec<TargetChange> {
        let mut changes: Vec<TargetChange> = Vec::new();
        let mut by_name = BTreeMap::new();
        for image in &self.images {
            // The placeholders of the host are nobody's code.
            let is_host = image.target.kind() == Some(&OffloadKind::Host);
            if is_host && image.size_after == Some(image.size_before) {
                continue;
            }
            let old = image.index.and_then(|index| file.images.get(index));
            let label = || image.target.label().unwrap_or("(unnamed)");
            let name = old.map_or_else(label, |old| old.label_of(&image.target)).to_owned();
            let at = *by_name.entry(name.clone()).or_insert(changes.len());
            if at == changes.len() {
                changes.push(TargetChange { target: name, ..TargetChange::default() });
            }
            let Some(TargetChange { images: [images, left], size: [before, after], .. }) =
                changes.get_mut(at)
            else {
                continue;
            };
            *images += usize::from(image.index.is_some());
            *left += usize::from(image.size_after.is_some());
            // Headers state the sizes.
            *before = before.saturating_add(image.size_before);
            *after = after.saturating_add(image.size_after.unwrap_or(0));
        }
        changes
    }

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

    /// Returns the bytes that the plan holds at most while it is [written](Self::write): new ones, and the largest of
    /// the bundles that are decompressed then.
    #[must_use]
    pub fn held(&self) -> u64 {
        let new = self.parts.iter().map(|part| match part {
            Part::Bytes(bytes) => bytes.len() as u64,
            _ => 0,
        });
        let decompressed = self.derived.iter().map(|bundle| bundle.size).max();
        // A bundle may state any size.
        new.fold(decompressed.unwrap_or(0), u64::saturating_add)
    }

    /// Returns the changes of all containers, also of unchanged ones.
    #[must_use]
    pub fn containers(&self) -> &[ContainerChange] {
        &self.containers
    }

    /// Returns the changes of all images, also of unchanged ones; added ones are last.
    #[must_use]
    pub fn images(&self) -> &[ImageChange] {
        &self.images
    }

    /// Returns remarks that tools show to people.
    #[must_use]
    pub fn notes(&self) -> &[EditNote] {
        &self.notes
    }

    /// Returns what drivers and runtimes must be able to read in the changed containers, by the compression of these: a driver for
    /// entries of fatbinaries that zstd compressed, a release of ROCm for a version of compressed bundles.
    #[must_use]
    pub fn needs(&self) -> &BTreeSet<Need> {
        &self.needs
    }

    /// Returns how many bytes of device code stay in the new file as zeros.
    #[must_use]
    pub fn zeroed(&self) -> u64 {
        let zeroed = |note: &EditNote| match note {
            EditNote::Zeroed { bytes } => *bytes,
            _ => 0,
        };
        self.notes.iter().map(zeroed).sum()
    }

    /// Returns ranges of the new file that are zeros, in order: a writer can leave holes for their pages. `holes` are the
    /// places of zeros in the edited file that are known, in order. Other parts may have zeros, too.
    #[must_use]
    pub fn zeros(&self, holes: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut zeros = Vec::new();
        let mut at = 0;
        for part in self.parts.iter() {
            let start = at;
            at += part.size();
            match part {
                Part::Zeros(_) => zeros.push(start..at),
                Part::Input(Input::File, range) => {
                    let first = holes.partition_point(|hole| hole.end <= range.start);
                    let holes = holes.iter().skip(first);
                    zeros.extend(holes.take_while(|hole| hole.start < range.end).map(|hole| {
                        let into = hole.start.max(range.start) - range.start;
                        start + into..start + (hole.end.min(range.end) - range.start)
                    }));
                }
                _ => {}
            }
        }
        zeros
    }

    /// Returns the new file, part by part: ranges of the edited file, of new images and of the contents of compressed
    /// bundles, and new bytes.
    #[must_use]
    pub fn parts(&self) -> &byte_parts::Parts<Input> {
        &self.parts
    }
}
