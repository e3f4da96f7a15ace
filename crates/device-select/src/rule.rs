//! Rules about what to keep for some devices, and what may go.

use alloc::vec::Vec;
use std::io::{self, Read, Seek};

use bundle_format::EntryId;
use fat_object::{ContainerKind, Disagreement, FileFormat, ImageInfo, Options, PathStep, list};
use target_id::{NvidiaArch, Target, Triple, compatible};

use crate::database::Database;
use crate::device::{Device, NotADevice};
use crate::fatbinary::{self, Asked};
use crate::fit::{Code, Fit, agree};
use crate::products;

/// A target that is asked for: a processor in any state that is left open, a stand-in such as a generic processor, or a
/// bundle entry ID, which chooses kind and triple as well.
#[derive(Clone, Debug)]
pub struct Wanted {
    target: Target,
    /// `None` for the host, and where there is no target ID.
    device: Option<Device>,
}

impl Wanted {
    /// Asks for a target.
    #[must_use]
    pub fn new(target: Target) -> Self {
        let device = Device::of(&target);
        Wanted { target, device }
    }

    /// Reads a target ID (`gfx90a:xnack+`, `gfx9-generic`), the name or PCI ID of a product, or a bundle entry ID.
    ///
    /// # Errors
    ///
    /// The text is malformed, or names several products. Returns whether there is such a processor is not checked.
    pub fn parse(text: &str) -> Result<Self, NotADevice> {
        if text.is_empty() {
            return Err(NotADevice::Empty);
        }
        let target = match EntryId::parse(text) {
            Ok(id) if id.kind().is_bundler_kind() => id.target(),
            _ => Target::new(None, None, &products::target_id(text)?),
        };
        if !target.id().is_empty() {
            target.target_id().map_err(NotADevice::Malformed)?;
        }
        Ok(Self::new(target))
    }

    /// Returns the target.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns the device, or the stand-in for some. `None` for the host, and where there is no target ID.
    #[must_use]
    pub fn device(&self) -> Option<&Device> {
        self.device.as_ref()
    }

    /// Returns whether a target is exactly the wanted one: the same target ID, and matching kinds and triples.
    #[must_use]
    pub fn names(&self, target: &Target) -> bool {
        agree(target, &self.target)
            && match (target.target_id(), self.target.target_id()) {
                (Ok(image), Ok(wanted)) => image == wanted,
                _ => target.id() == self.target.id(),
            }
    }

    /// Returns whether an image is for [exactly](Self::names) the wanted target, and not in name only.
    #[must_use]
    pub fn is_just_for(&self, target: &Target, disagreement: Option<&Disagreement>) -> bool {
        !is_for_others(disagreement) && self.names(target)
    }

    /// Returns whether an image serves the wanted target in every state that it leaves open. `loaded_as` is the target
    /// [as it is loaded](ImageInfo::loaded_as).
    #[must_use]
    pub fn is_served_by(&self, loaded_as: &Target, disagreement: Option<&Disagreement>) -> bool {
        compatible(loaded_as, &self.target).is_compatible()
            && match disagreement {
                Some(Disagreement::Target { found, .. }) => {
                    compatible(&Target::new(None, None, found), &self.target).is_compatible()
                }
                disagreement => !is_for_others(disagreement),
            }
    }

    /// Returns whether the target of an image is one of the wanted ones: a wanted processor without features means all
    /// settings of them. PTX for `sm_80` is for `compute_80` as well.
    fn is_for(&self, image: &ImageInfo) -> bool {
        self.is_for_target(image.target()) || self.is_for_target(&image.loaded_as())
    }

    fn is_for_target(&self, image: &Target) -> bool {
        match (image.target_id(), self.target.target_id()) {
            (Ok(id), Ok(wanted)) if wanted.features().len() == 0 => {
                agree(image, &self.target) && id.processor() == wanted.processor()
            }
            _ => self.names(image),
        }
    }

    /// Returns how an image fits the device, by the rule of [`select`](crate::select()).
    ///
    /// Containers in containers are not looked into: their label decides.
    fn fit(&self, image: &ImageInfo) -> Option<Fit> {
        let mut code = Code::from(image);
        if code.format.is_container() {
            code.format = FileFormat::Unknown;
        }
        self.device.as_ref().map(|device| Fit::new(&code, device))
    }

    /// Returns whether the device could load an image in one of its states.
    #[must_use]
    pub(crate) fn could_load(&self, image: &ImageInfo) -> bool {
        self.fit(image).is_some_and(|fit| fit.could_load())
    }

    /// Returns whether it is LTO-IR that can be linked and compiled for the GPU.
    #[must_use]
    pub fn could_link(&self, lto_ir: &ImageInfo) -> bool {
        if lto_ir.format() != FileFormat::LtoIr {
            return false;
        }
        let (code, gpu) =
            (NvidiaArch::parse(lto_ir.target().id()), NvidiaArch::parse(self.target.id()));
        code.ok().zip(gpu.ok()).is_some_and(|(code, gpu)| code.as_ptx().runs_on(gpu))
    }

    /// Returns whether an image without a target ID may be for the device: neither its triple nor its format rules it
    /// out.
    fn may_load(&self, image: &ImageInfo) -> bool {
        let for_gpu =
            |triple: &Triple| triple.is_amdgpu() || triple.is_nvptx() || !triple.is_known_arch();
        let target = image.target();
        target.id().is_empty()
            && target.triple().is_none_or(for_gpu)
            && self.fit(image).is_none_or(|fit| !fit.is_ruled_out())
    }
}

/// A rule about which images of a file stay.
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
    Keep {
        /// The targets.
        wanted: Vec<Wanted>,
        /// `true` if neither other features nor generic or portable code is meant.
        exact: bool,
        /// `true` if PTX in NVIDIA fatbinaries goes, whoever could load it.
        drop_ptx: bool,
    },
    /// Images for these targets go.
    Drop {
        /// The targets.
        wanted: Vec<Wanted>,
    },
}

/// Fate of an image, and the reason.
#[derive(Debug)]
pub enum Fate {
    /// It stays because it is asked for, or not asked to go.
    Stays,
    /// It stays because a device that is asked for could load it, too.
    StaysToo,
    /// It stays because it may be for any device.
    StaysUnknown,
    /// It goes.
    Goes,
    /// It goes, and nothing stays in its NVIDIA fatbinary that a device which is asked for could load.
    GoesUnserved,
}

impl Fate {
    /// Returns whether the image stays.
    #[must_use]
    pub fn stays(&self) -> bool {
        !matches!(self, Fate::Goes | Fate::GoesUnserved)
    }
}

impl Rule {
    /// Returns whether code for a target stays, in a file of its own: such as those that
    /// [`Database`] knows.
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

    /// Returns the fates of all images of a file, in order. It does not ask whether containers can be edited.
    ///
    /// The CUDA driver takes one entry of a fatbinary. For each GPU those stay of which it takes one: the cubins with the
    /// highest compute capability that the GPU runs, or PTX by the same rule if there is no such cubin.
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
    /// let rule = Rule::Drop { wanted: vec![Wanted::parse("gfx90a")?] };
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

/// Returns whether an image is for other devices than its entry states.
#[must_use]
pub fn is_misnamed(image: &ImageInfo) -> bool {
    is_for_others(image.disagreement())
}

/// Returns whether the contradiction is about devices. Runtimes go by the bytes, not by the recorded kind of image.
fn is_for_others(disagreement: Option<&Disagreement>) -> bool {
    !matches!(disagreement, None | Some(Disagreement::Kind { .. }))
}
