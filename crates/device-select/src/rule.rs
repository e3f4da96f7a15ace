//! Rules about what to keep for some devices, and what may go.

use alloc::vec::Vec;
use std::io::{self, Read, Seek};

use fat_object::{ContainerKind, FileFormat, ImageInfo, Options, PathStep, list};
use target_id::{Target, Triple, compatible, near};

use crate::database::Database;
use crate::device::Device;
use crate::fatbinary::{self, Asked};
use crate::fit::Code;
use crate::vendor::Vendor;
use crate::wanted::is_for_others;
use crate::wanted::{Fate, Wanted};

/// A rule about which images of a file stay.
///
/// Exhaustive: a rule keeps what it names, or drops it. Later options are fields, so that [`keep`](Self::keep) and
/// [`drop`](Self::drop) make rules.
///
/// ```
/// use device_select::{Fate, Rule, Wanted};
///
/// let file = std::fs::File::open("../../examples/data/hip.o")?;
/// let listing = fat_object::list(file, &fat_object::Options::default())?;
/// let rule = Rule::keep([Wanted::parse("gfx1100")?]);
/// let going: Vec<&str> = listing.images().iter()
///     .zip(rule.fates(listing.images()))
///     .filter(|(_, fate)| !fate.stays())
///     .map(|(image, _)| image.target().id())
///     .collect();
/// assert_eq!(going, ["gfx9-generic", "gfx906:xnack+", "gfx90a:sramecc+:xnack-"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub enum Rule {
    /// Images that a device of these targets could load stay; with `exact` only images for these targets themselves.
    /// NVIDIA fatbinaries keep what the driver would load.
    #[non_exhaustive]
    Keep {
        /// The targets.
        wanted: Vec<Wanted>,
        /// `true` if neither other features nor generic or portable code is meant.
        exact: bool,
        /// `true` if PTX in NVIDIA fatbinaries goes, also where a GPU could load it.
        drop_ptx: bool,
    },
    /// Images for these targets go.
    #[non_exhaustive]
    Drop {
        /// The targets.
        wanted: Vec<Wanted>,
    },
}

impl Rule {
    /// Returns whether code for a target stays, in a file of its own, such as the files of a [`Database`].
    ///
    /// ```
    /// use device_select::{Rule, Wanted};
    /// use target_id::Target;
    ///
    /// let rule = Rule::keep([Wanted::parse("gfx90a")?]);
    /// let keeps = |id: &str| rule.keeps(&Target::new(None, None, id));
    /// assert!(keeps("gfx90a") && keeps("gfx90a:xnack-"));
    /// assert!(!keeps("gfx906"));
    /// # Ok::<(), device_select::NotADevice>(())
    /// ```
    #[must_use]
    pub fn keeps(&self, target: &Target) -> bool {
        let could_load = |wanted: &Wanted| {
            let states = wanted.device.iter().flat_map(Device::states);
            wanted.names(target)
                || states.into_iter().any(|state| compatible(target, state).is_compatible())
        };
        match self {
            Rule::Keep { wanted, exact: true, .. } => wanted.iter().any(|it| it.names(target)),
            Rule::Keep { wanted, .. } => wanted.iter().any(could_load),
            Rule::Drop { wanted } => !wanted.iter().any(|it| it.is_for_target(target)),
        }
    }

    /// Keeps all that devices of these targets could load, in any state that the targets leave open.
    #[must_use]
    pub fn keep(wanted: impl IntoIterator<Item = Wanted>) -> Self {
        Rule::Keep { wanted: wanted.into_iter().collect(), exact: false, drop_ptx: false }
    }

    /// Drops all that is for these targets.
    #[must_use]
    pub fn drop(wanted: impl IntoIterator<Item = Wanted>) -> Self {
        Rule::Drop { wanted: wanted.into_iter().collect() }
    }

    /// Sets whether a rule that keeps means neither other features nor generic or portable code. Default: `false`. A rule that
    /// drops never means them.
    #[must_use]
    pub fn with_exact(mut self, is_exact: bool) -> Self {
        if let Rule::Keep { exact, .. } = &mut self {
            *exact = is_exact;
        }
        self
    }

    /// Sets whether PTX in NVIDIA fatbinaries goes, also where a GPU could load it. Default: `false`. A rule that drops leaves it.
    #[must_use]
    pub fn with_drop_ptx(mut self, drops: bool) -> Self {
        if let Rule::Keep { drop_ptx, .. } = &mut self {
            *drop_ptx = drops;
        }
        self
    }

    /// Returns the fates of all images of a file, in order. It does not ask whether containers can be edited.
    ///
    /// The CUDA driver takes one entry of a fatbinary. For each GPU, the entries that it chooses from stay: the cubins
    /// with the highest compute capability that the GPU runs, or PTX by the same rule if there is no such cubin.
    #[must_use]
    pub fn fates(&self, images: &[ImageInfo]) -> Vec<Fate> {
        let containers = images.chunk_by(|one, next| container(one) == container(next));
        containers.flat_map(|images| self.fates_in(images)).collect()
    }

    /// Returns the fates of all images of one container.
    fn fates_in(&self, images: &[ImageInfo]) -> Vec<Fate> {
        let is_fatbinary =
            images.first().is_some_and(|image| image.container() == ContainerKind::NvFatbin);
        match self {
            Rule::Keep { wanted, exact, drop_ptx } if is_fatbinary => {
                let asked = Asked { wanted, exact: *exact, drop_ptx: *drop_ptx };
                fatbinary::fates(images, &asked)
            }
            _ => images.iter().map(|image| self.fate(image)).collect(),
        }
    }

    fn fate(&self, image: &ImageInfo) -> Fate {
        if is_host(image) || is_loose_shader(image) {
            return Fate::Stays;
        }
        // Code for a CPU is not for other GPUs.
        let is_cpu = image.target().triple().is_some_and(Triple::is_cpu);
        let (target, disagreement) = (image.target(), image.disagreement());
        match self {
            Rule::Drop { wanted } if wanted.iter().any(|one| one.is_for(image)) => Fate::Goes,
            Rule::Drop { .. } => Fate::Stays,
            Rule::Keep { .. } if is_cpu => Fate::Stays,
            Rule::Keep { wanted, exact, .. } => {
                if wanted.iter().any(|one| one.is_just_for(target, disagreement)) {
                    Fate::Stays
                } else if *exact {
                    Fate::Goes
                } else if wanted.iter().any(|one| one.could_load(image)) {
                    Fate::StaysToo
                } else if wanted.iter().any(|one| one.may_load(image)) {
                    Fate::StaysUnknown
                } else {
                    Fate::Goes
                }
            }
        }
    }

    /// Returns whether one of the targets means this image.
    #[must_use]
    pub fn means(&self, wanted: &Wanted, image: &ImageInfo) -> bool {
        let just = || {
            [image.target(), &image.loaded_as()]
                .into_iter()
                .any(|target| wanted.is_just_for(target, image.disagreement()))
        };
        match self {
            _ if is_host(image) => false,
            Rule::Keep { exact: false, .. } => {
                just() || wanted.could_load(image) || wanted.could_link(image)
            }
            Rule::Keep { exact: true, .. } => just(),
            Rule::Drop { .. } => wanted.is_for(image),
        }
    }

    /// Returns whether the rule names a GPU of the vendor that has GPUs of this target.
    #[must_use]
    pub fn is_of_vendor(&self, target: &Target) -> bool {
        let vendor = Vendor::of_processor(near::processor(target.id()));
        vendor.is_some_and(|vendor| self.names_vendor(vendor))
    }

    /// Returns whether the rule drops all code of a file, and no setting makes use of it: all of it is for GPUs of NVIDIA, and
    /// targets are, too. For AMD's GPUs the answer is `false`: under `HSA_OVERRIDE_GFX_VERSION` they run code for others.
    ///
    /// ```
    /// use device_select::{Rule, Wanted};
    ///
    /// let file = std::fs::File::open("../../examples/data/cuda-fatbin.o")?;
    /// let listing = fat_object::list(file, &fat_object::Options::default())?;
    /// let rule = |gpu| Wanted::parse(gpu).map(|gpu| Rule::keep([gpu]));
    /// assert!(rule("sm_60")?.may_empty(listing.images())); // it has code for sm_70, and PTX from there on
    /// assert!(!rule("sm_90")?.may_empty(listing.images()));
    /// assert!(!rule("gfx1100")?.may_empty(listing.images()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn may_empty(&self, images: &[ImageInfo]) -> bool {
        let is_useless = |(image, fate): (&ImageInfo, Fate)| {
            let is_nvidia = Code::from(image).vendor() == Some(Vendor::Nvidia);
            is_host(image) || !image.is_counted() || is_nvidia && !fate.stays()
        };
        self.names_vendor(Vendor::Nvidia) && images.iter().zip(self.fates(images)).all(is_useless)
    }

    /// Returns whether the rule names a GPU of this vendor.
    pub(crate) fn names_vendor(&self, vendor: Vendor) -> bool {
        let mut devices = self.wanted().iter().filter_map(|wanted| wanted.device.as_ref());
        devices.any(|device| device.vendor() == vendor)
    }

    /// Returns the kernel database that the path of a file leads to, if it is one for a GPU that does not stay. Its contents [must
    /// agree](Self::drops_database).
    #[must_use]
    pub fn database(&self, path: &str) -> Option<Database> {
        Database::at(path).filter(|database| !self.keeps(&database.to_target()))
    }

    /// Returns whether a file of a kernel database holds what its path says, and nothing for a GPU that stays.
    ///
    /// ```
    /// use std::io::Cursor;
    /// use device_select::{Rule, Wanted};
    /// use fat_object::Options;
    ///
    /// let rule = Rule::drop([Wanted::parse("gfx90a")?]);
    /// let database = rule.database("share/miopen/db/gfx90a68.kdb").ok_or("it stays")?;
    /// let goes = |file: &[u8]| rule.drops_database(&database, Cursor::new(file), &Options::default());
    /// assert!(goes(b"SQLite format 3\0")? && !goes(b"something else")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// One of reading the file.
    pub fn drops_database(
        &self,
        database: &Database,
        mut contents: impl Read + Seek,
        options: &Options,
    ) -> io::Result<bool> {
        /// The bytes of a file that tell whether it is a table of a database.
        const HEAD: u64 = 512;
        if !database.holds_code() {
            let mut head = Vec::new();
            contents.take(HEAD).read_to_end(&mut head)?;
            return Ok(database.is_table(&head));
        }
        let listing = list(&mut contents, options)?;
        let mut images = listing.images().iter().zip(self.fates(listing.images()));
        let is_some = listing.images().iter().any(|image| !is_host(image));
        let all_go = images.all(|(image, fate)| is_host(image) || !fate.stays());
        Ok(listing.is_complete() && is_some && all_go)
    }
}

/// Returns the path of the container from which an image is chosen.
fn container(image: &ImageInfo) -> &[PathStep] {
    match image.path() {
        [around @ .., entry] if entry.kind() == ContainerKind::Concatenated => around,
        path => path,
    }
}

/// Returns whether an image is the host's entry of a bundle, which always stays.
#[must_use]
pub fn is_host(image: &ImageInfo) -> bool {
    image.target().is_host() || image.format() == FileFormat::HostPlaceholder
}

/// Returns whether it is a graphics shader outside of containers, which does not compete with other images.
fn is_loose_shader(image: &ImageInfo) -> bool {
    image.path().last().is_some_and(PathStep::is_found_by_scan) && Code::from(image).is_shader()
}

/// Returns whether an image is LLVM bitcode in a file of its own: a library of compilers, such as `libdevice.10.bc`, that no
/// runtime loads. Compilers link it for later GPUs than the one it names, too.
#[must_use]
pub fn is_compiler_library(image: &ImageInfo) -> bool {
    image.container() == ContainerKind::File && image.format() == FileFormat::Bitcode
}

/// Returns whether an image is for other devices than its entry states.
pub(crate) fn is_misnamed(image: &ImageInfo) -> bool {
    is_for_others(image.disagreement())
}
