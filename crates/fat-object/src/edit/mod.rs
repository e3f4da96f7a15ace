//! Changes of the device code inside finished files: images removed, replaced, added; bundles compressed or not.
//!
//! It goes in three steps. [`survey`] walks the file and lists its images. An [`Edit`] says what is to become of them.
//! [`Contents::plan`] works out the new file from sizes and headers, as parts of the old one and new bytes, checks it,
//! and [`EditPlan::parts`] are written by whoever has files.

mod archive;
mod bundle;
mod changes;
mod coff;
mod compress;
mod container;
mod contents;
mod decompress;
mod dispatch;
mod elf;
mod error;
mod host;
mod moves;
mod object;
pub(crate) mod output;
mod package;
mod pe;
mod readers;
mod rebuild;
mod relayout;
mod restore;
mod scan;
mod sequence;
mod strings;
mod survey;
mod tables;
mod text;
mod uneditable;
mod wishes;
mod without;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Seek, Write};
use std::ops::Range;

use bundle_format::EntryId;
use target_id::Target;

#[cfg(doc)]
use crate::listing::ListedImage;
use crate::source::ReadSeek;
use output::Part;
pub(crate) use output::{Input, Output};

pub use compress::CompressOptions;
pub use error::EditError;
pub(crate) use strings::string_at;
pub use survey::{Contents, EditableContainer, survey};
pub(crate) use without::without_sections;
pub(crate) use write::write as write_splices;

/// What is to become of the images of a file. Without any wish nothing changes. A later wish for the same image takes
/// the place of an earlier one, as [`decompress`](Self::decompress) does that of [`compress`](Self::compress) and the
/// reverse. Indices and numbers are looked at by [`Contents::plan`].
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// By [`ListedImage::index`].
    pub(crate) images: BTreeMap<usize, ImageEdit>,
    pub(crate) added: Vec<Added>,
    pub(crate) bundles: BundleEdit,
    pub(crate) options: EditOptions,
}

/// What is to become of one image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageEdit {
    Remove,
    /// With the new image of this number.
    Replace(usize),
}

/// A new entry at the end of a bundle or package.
#[derive(Clone, Debug)]
pub(crate) struct Added {
    /// Index among [`Contents::containers`].
    pub(crate) container: usize,
    pub(crate) id: String,
    /// The number of the new image.
    pub(crate) image: usize,
}

/// What is to become of all bundles.
#[derive(Clone, Debug, Default)]
pub(crate) enum BundleEdit {
    /// Compressed ones stay compressed, others stay plain.
    #[default]
    Keep,
    Compress(CompressOptions),
    Decompress,
}

/// What an edit may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct EditOptions {
    /// Whether device code that is larger than its place in a linked file may get a new place at the end of the
    /// program's memory. Default: no.
    pub grow: bool,
    /// Whether a signature that the edit makes invalid is removed. Otherwise signed files are refused. Default: no.
    pub drop_signature: bool,
    /// Whether a bundle may lose its last device image, and a package its last image. Default: no.
    pub allow_empty: bool,
    /// Whether a new image may be for another target than its ID says, as far as its own headers tell. Default: no.
    pub any_image: bool,
    /// Whether the host's entry of a bundle may be removed, which is the host's code in bundles of objects and bitcode.
    /// Nothing else would keep it: "every image that is not for this GPU" means it, too. Default: no.
    pub remove_host: bool,
    /// `true` if a file is edited although it has [findings](Contents::findings), or hashes of compressed bundles that do
    /// not match and that the survey did not [compare](crate::Options::verify_hash). Damage that hides the place of
    /// anything is always refused. Default: `false`.
    pub allow_findings: bool,
    /// `true` if containers that [cannot be edited](EditableContainer::uneditable) stay as they are where the edit would
    /// change them: [`EditNote::Uneditable`] lists them. Otherwise the edit is refused. Default: `false`.
    pub allow_uneditable: bool,
    /// How many threads may compress at the same time bundles that were compressed before; 0 is one. Bundles that
    /// [`Edit::compress`] compresses are compressed by the threads of its options.
    pub threads: u32,
}

impl EditOptions {
    /// These options, with larger device code given [a new place](Self::grow) or not.
    #[must_use]
    pub fn with_grow(mut self, grow: bool) -> Self {
        self.grow = grow;
        self
    }

    /// These options, with signatures [removed](Self::drop_signature) or not.
    #[must_use]
    pub fn with_drop_signature(mut self, drop_signature: bool) -> Self {
        self.drop_signature = drop_signature;
        self
    }

    /// These options, with bundles left [without images](Self::allow_empty) or not.
    #[must_use]
    pub fn with_allow_empty(mut self, allow_empty: bool) -> Self {
        self.allow_empty = allow_empty;
        self
    }

    /// These options, with [any image](Self::any_image) taken or not.
    #[must_use]
    pub fn with_any_image(mut self, any_image: bool) -> Self {
        self.any_image = any_image;
        self
    }

    /// These options, with the host's entries of bundles [removed](Self::remove_host) or not.
    #[must_use]
    pub fn with_remove_host(mut self, remove_host: bool) -> Self {
        self.remove_host = remove_host;
        self
    }

    /// These options, with files edited although [something is wrong](Self::allow_findings) with them, or not.
    #[must_use]
    pub fn with_allow_findings(mut self, allow_findings: bool) -> Self {
        self.allow_findings = allow_findings;
        self
    }

    /// These options, with containers that cannot be edited [left as they are](Self::allow_uneditable), or not.
    #[must_use]
    pub fn with_allow_uneditable(mut self, allow_uneditable: bool) -> Self {
        self.allow_uneditable = allow_uneditable;
        self
    }

    /// These options with another number of [threads](Self::threads).
    #[must_use]
    pub fn with_threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }
}

impl Edit {
    /// An edit that changes nothing yet.
    #[must_use]
    pub fn new(options: EditOptions) -> Self {
        Edit { options, ..Edit::default() }
    }

    /// Removes the image with this index among [`Contents::images`]. A [listing](crate::list()) may count
    /// [otherwise](ListedImage::index). The host's entry of a bundle goes only with [`EditOptions::remove_host`].
    pub fn remove(&mut self, index: usize) {
        self.images.insert(index, ImageEdit::Remove);
    }

    /// Puts the new image with the number `image`, from 0 in the list given to [`Contents::plan_with_images`] and
    /// [`EditPlan::write_with_images`], in the place of the one with this index among [`Contents::images`]. A
    /// [listing](crate::list()) may count [otherwise](ListedImage::index).
    pub fn replace(&mut self, index: usize, image: usize) {
        self.images.insert(index, ImageEdit::Replace(image));
    }

    /// Adds the new image with the number `image`, from 0 in the list given to [`Contents::plan_with_images`] and
    /// [`EditPlan::write_with_images`], to the container with this index among [`Contents::containers`],
    /// behind its other entries. `id` is a bundle entry ID, also for packages.
    pub fn add(&mut self, container: usize, id: impl Into<String>, image: usize) {
        self.added.push(Added { container, id: id.into(), image });
    }

    /// Compresses every plain bundle, and every plain package of version 3 that no runtime but HIP's reads, and with
    /// [`CompressOptions::recompress`] compressed ones again. [Older packages](CompressOptions::upgrade_packages) stay. A
    /// file without bundles and packages is [refused](EditError::NoBundle).
    pub fn compress(&mut self, options: CompressOptions) {
        self.bundles = BundleEdit::Compress(options);
    }

    /// Decompresses every compressed bundle and package. A file without any is [refused](EditError::NoBundle).
    pub fn decompress(&mut self) {
        self.bundles = BundleEdit::Decompress;
    }
}

/// A new file, laid out and checked, but not written.
#[derive(Clone, Debug)]
pub struct EditPlan {
    pub(crate) splices: Output,
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
    /// Its [index](ListedImage::index); `None` for one that is added.
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
        output::is_copy_of(&self.splices, &(0..self.input_size))
    }

    /// Bytes of the new file.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.splices.size()
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
        self.splices.iter().map(|part| match part {
            Part::Input(Input::File, range) => EditPart::Copy(range.clone()),
            Part::Input(Input::Image(number), range) => EditPart::Image(*number, range.clone()),
            Part::Input(Input::Decompressed(bundle), range) => {
                EditPart::Decompressed { stored: bundle.stored.clone(), range: range.clone() }
            }
            Part::Bytes(bytes) => EditPart::Bytes(bytes),
            Part::Zeros(n) => EditPart::Zeros(n),
        })
    }

    /// Writes the new file, if no new images go into it.
    ///
    /// `input` is the edited file, and is not to be written over: what is read from it has to be what it was.
    /// From file to file the kernel copies, where the platform can ([`io::copy`]). Memory: nothing but one bundle at a
    /// time where bundles are decompressed; what they hold is verified only now.
    ///
    /// # Errors
    ///
    /// [`EditError::Read`] and [`EditError::Write`]; [`EditError::NoSuchNewImage`], if there are new images;
    /// [`EditError::InputChanged`] where `input` became shorter; [`EditError::Damaged`], [`EditError::HoldsNoBundle`] and
    /// [`EditError::TextNotAlone`] for what is decompressed. A part of the new file may be written by then.
    pub fn write<R: Read + Seek, W: Write>(&self, input: R, out: W) -> Result<(), EditError> {
        let no_images: &mut [io::Empty] = &mut [];
        self.write_with_images(input, no_images, out)
    }

    /// As [`write`](Self::write); `images` are the new images, by number.
    ///
    /// # Errors
    ///
    /// Those of [`write`](Self::write), and [`EditError::NoSuchNewImage`].
    pub fn write_with_images<R: Read + Seek, I: Read + Seek, W: Write>(
        &self,
        mut input: R,
        images: &mut [I],
        mut out: W,
    ) -> Result<(), EditError> {
        write::write(&self.splices, &mut input, images, &mut out)
    }
}

/// What a bundle entry ID says.
fn target_of(id: &str) -> Target {
    match EntryId::parse(id) {
        Ok(id) => id.target(),
        Err(_) => Target::new(None, None, id),
    }
}

impl Contents {
    /// Works out the new file, if no new images go into it.
    ///
    /// Time grows as n log n with sections, symbols, relocations and containers; linked files are scanned as a whole
    /// where bundles move. Memory: headers and tables, and see [the bounds](crate#bounds).
    ///
    /// # Errors
    ///
    /// [`EditError`]
    pub fn plan<R: Read + Seek>(&self, input: R, edit: &Edit) -> Result<EditPlan, EditError> {
        let no_images: &mut [io::Empty] = &mut [];
        self.plan_with_images(input, edit, no_images)
    }

    /// As [`plan`](Self::plan); `images` are the new images, by number: one can be put in several places. Of each its
    /// size and first bytes are read, and all of it where it is compressed with others.
    ///
    /// # Errors
    ///
    /// Those of [`plan`](Self::plan), and [`EditError::NoSuchNewImage`].
    pub fn plan_with_images<R: Read + Seek, I: Read + Seek>(
        &self,
        mut input: R,
        edit: &Edit,
        images: &mut [I],
    ) -> Result<EditPlan, EditError> {
        let images = images.iter_mut().map(|image| image as &mut dyn ReadSeek);
        contents::plan(self, &mut input, edit, &mut images.collect::<Vec<_>>())
    }
}
