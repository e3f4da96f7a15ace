//! Loose images: files that are device code as a whole.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use std::io::{self, Read, Seek, SeekFrom};

use fat_object::{FileFormat, ImageInfo, Options, list};
use target_id::Triple;

use crate::few::{each_once, few, label};
use crate::fit::Code;
use crate::rule::{Rule, is_host};
use crate::tally::Tally;
use crate::wanted::Fate;

/// The number of AMD's GPUs in ELF headers (`e_machine`).
const EM_AMDGPU: u16 = 224;
/// The system of AMD's code objects for computing. Others are graphics shaders.
const HSA: &str = "amdhsa";

/// A loose image: a file that is device code as a whole, by its contents.
///
/// It is an ELF file for GPUs of NVIDIA, AMD or Intel, PTX, an NVIDIA fatbinary, a bundle, compressed or not, or an offload binary.
/// Programs look for such files by the hundred beside their libraries, and load those for the GPU that is there. Other files are
/// none: what is not understood as a whole (any [finding](fat_object::Listing::findings)), a bundle with host code, graphics
/// shaders, SPIR-V, LLVM bitcode and LTO-IR outside of containers, which compilers read, and archives.
///
/// A caller that decompresses a file hands in its contents.
#[derive(Clone, Debug)]
pub struct LooseImage {
    is_needed: bool,
    /// `true` if no code in it goes.
    is_whole: bool,
    /// The positions of the targets of the rule that mean an image.
    meant: BTreeSet<usize>,
    /// `true` if an image is for GPUs of a vendor whose GPUs the rule names.
    is_of_vendor: bool,
    tally: Tally,
    labels: Vec<String>,
    /// Labels of images that stay though they were not asked for.
    also: Vec<String>,
}

impl LooseImage {
    /// The number of first bytes that [`may_start`](Self::may_start) looks at.
    pub const HEAD: usize = FileFormat::SNIFF_LEN;

    /// Returns whether a file that starts with these bytes may be a loose image.
    ///
    /// ```
    /// use device_select::LooseImage;
    ///
    /// assert!(LooseImage::may_start(b".version 8.0\n.target sm_90\n"));
    /// assert!(!LooseImage::may_start(b"import os\n"));
    /// ```
    #[must_use]
    pub fn may_start(head: &[u8]) -> bool {
        Self::may_be(FileFormat::sniff(head))
    }

    /// Returns whether a file of this format may be a loose image.
    #[must_use]
    pub fn may_be(format: FileFormat) -> bool {
        match format {
            FileFormat::Elf { .. } => !format.may_hold_images(),
            FileFormat::Cubin
            | FileFormat::Ptx
            | FileFormat::Fatbinary
            | FileFormat::Bundle
            | FileFormat::CompressedBundle
            | FileFormat::OffloadBinary => true,
            _ => false,
        }
    }

    /// Returns whether all code in it stays.
    #[must_use]
    pub fn stays_whole(&self) -> bool {
        self.is_whole
    }

    /// Returns whether some code in it stays.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        self.is_needed
    }

    /// Returns whether some code in it is for GPUs of a vendor whose GPUs the rule names.
    #[must_use]
    pub fn is_of_vendor(&self) -> bool {
        self.is_of_vendor
    }
}

/// Loose images that lie together, in a package or a directory, and the one question about them: is there code for the GPU?
///
/// ```
/// use std::io::Cursor;
/// use device_select::{LoosePlace, PlaceVerdict, Rule, Wanted};
/// use fat_object::Options;
///
/// let rule = Rule::keep([Wanted::parse("sm_90")?]);
/// let mut place = LoosePlace::default();
/// for ptx in [".version 8.0\n.target sm_100a\n", ".version 8.0\n.target sm_103a\n"] {
///     let image = rule.loose(Cursor::new(ptx), &Options::default())?.ok_or("not an image")?;
///     assert!(!image.is_needed());
///     place.add(&image);
/// }
/// // Nothing in this place is for sm_90.
/// assert_eq!(place.verdict(&rule, false, false), PlaceVerdict::NotConcerned);
/// assert_eq!(place.verdict(&rule, true, false), PlaceVerdict::NotConcerned);
/// assert_eq!(place.verdict(&rule, true, true), PlaceVerdict::Thinned);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct LoosePlace {
    images: usize,
    has_needed: bool,
    meant: BTreeSet<usize>,
    is_of_vendor: bool,
    tally: Tally,
    labels: BTreeSet<String>,
    also: BTreeSet<String>,
}

/// Answer about a [`LoosePlace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlaceVerdict {
    /// Files without needed code go.
    Thinned,
    /// All files stay: there is nothing for any target of the rule.
    NotConcerned,
    /// All files stay: none would be left.
    Emptied,
}

impl LoosePlace {
    /// Adds a loose image.
    pub fn add(&mut self, image: &LooseImage) {
        self.images += 1;
        self.has_needed |= image.is_needed;
        self.is_of_vendor |= image.is_of_vendor;
        self.tally += image.tally;
        self.meant.extend(&image.meant);
        self.labels.extend(image.labels.iter().cloned());
        self.also.extend(image.also.iter().cloned());
    }

    /// Returns the number of loose images.
    #[must_use]
    pub fn images(&self) -> usize {
        self.images
    }

    /// Returns the targets of all images: the first five by name, and the number of the others.
    #[must_use]
    pub fn has(&self) -> String {
        few(&self.labels)
    }

    /// Returns the targets of images that stay though not asked for, because a device could load them; empty if there are none.
    #[must_use]
    pub fn also_keeps(&self) -> String {
        few(&self.also)
    }

    /// Returns whether there is an image for GPUs of a vendor whose GPUs the rule names.
    #[must_use]
    pub fn is_of_vendor(&self) -> bool {
        self.is_of_vendor
    }

    /// Returns the sums of all images before any is removed.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Returns what becomes of the place. With `allow_empty` it may lose all its files; if it has nothing for the targets of the rule,
    /// only with `allow_missing`, too.
    #[must_use]
    pub fn verdict(&self, rule: &Rule, allow_missing: bool, allow_empty: bool) -> PlaceVerdict {
        let may_go = allow_missing && allow_empty;
        if !may_go && self.meant.is_empty() && !rule.wanted().is_empty() {
            PlaceVerdict::NotConcerned
        } else if !allow_empty && !self.has_needed {
            PlaceVerdict::Emptied
        } else {
            PlaceVerdict::Thinned
        }
    }
}

impl Rule {
    /// Reads the loose image that a file is; `None` for other files. Only headers and tables of images are read, and compressed
    /// bundles.
    ///
    /// # Errors
    ///
    /// [`io::Error`] of reading the file.
    pub fn loose(
        &self,
        mut contents: impl Read + Seek,
        options: &Options,
    ) -> io::Result<Option<LooseImage>> {
        let mut head = Vec::new();
        contents.by_ref().take(LooseImage::HEAD as u64).read_to_end(&mut head)?;
        if !LooseImage::may_start(&head) {
            return Ok(None);
        }
        contents.seek(SeekFrom::Start(0))?;
        let listing = list(contents, options)?;
        let images = listing.images();
        let is_code = |image: &&ImageInfo| !(is_host(image) && image.size() == 0);
        let mut code = images.iter().filter(is_code).peekable();
        if !listing.findings().is_empty() || code.peek().is_none() || !code.all(is_for_computing) {
            return Ok(None);
        }
        let fates = self.fates(images);
        let fates = || images.iter().zip(&fates).filter(|(image, _)| !is_host(image));
        let also = fates().filter(|(_, fate)| matches!(fate, Fate::StaysToo));
        let means = |at: &usize| {
            let wanted = self.wanted().get(*at);
            wanted.is_some_and(|wanted| images.iter().any(|image| self.means(wanted, image)))
        };
        Ok(Some(LooseImage {
            is_whole: fates().all(|(_, fate)| fate.stays()),
            is_needed: fates().any(|(_, fate)| fate.stays()),
            meant: (0..self.wanted().len()).filter(means).collect(),
            is_of_vendor: fates().any(|(image, _)| {
                Code::from(image).vendor().is_some_and(|vendor| self.names_vendor(vendor))
            }),
            tally: Tally::of(self, images, |_| false),
            labels: each_once(fates().map(|(image, _)| label(image))),
            also: each_once(also.map(|(image, _)| label(image))),
        }))
    }
}

/// Returns whether an image is code that a runtime of GPU computing loads or compiles, and nothing else does.
fn is_for_computing(image: &ImageInfo) -> bool {
    let triple = image.target().triple();
    let is_elf = image.format() == FileFormat::Elf { machine: EM_AMDGPU };
    let is_graphics = is_elf && triple.is_some_and(|triple| triple.os() != HSA);
    !is_host(image)
        && !is_graphics
        && !Code::from(image).is_shader()
        && !triple.is_some_and(Triple::is_cpu)
}
