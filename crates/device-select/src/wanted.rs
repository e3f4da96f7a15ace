//! Requests for the code of a GPU, and what becomes of an image.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};

use bundle_format::EntryId;
use fat_object::{Disagreement, FileFormat, ImageInfo};
use target_id::{NvidiaArch, Target, Triple, compatible, may_be_processor};

use crate::device::Device;
use crate::fit::{Code, Fit, agree};
use crate::not_a_device::NotADevice;
use crate::products;

/// A target that is asked for: a processor in any state that is left open, a stand-in such as a generic processor, or a
/// bundle entry ID, which chooses kind and triple as well.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// As it was asked for.
    text: String,
    target: Target,
    /// `None` for the host, and where there is no target ID.
    pub(crate) device: Option<Device>,
}

impl Wanted {
    /// Asks for a target.
    #[must_use]
    pub fn new(target: Target) -> Self {
        let device = Device::of(&target);
        Wanted { text: target.to_string(), target, device }
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
        Ok(Wanted { text: text.to_owned(), ..Self::new(target) })
    }

    /// Reads a target as [`parse`](Self::parse) does, but none with a target ID that no processor can have, unless it is a
    /// bundle entry ID. For what destroys something.
    ///
    /// ```
    /// use device_select::Wanted;
    ///
    /// assert!(Wanted::parse_known("gfx1100").is_ok() && Wanted::parse_known("compute_80").is_ok());
    /// assert!(Wanted::parse("gfx110O").is_ok() && Wanted::parse_known("gfx110O").is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// As of [`parse`](Self::parse), and [`NotADevice::Unknown`].
    pub fn parse_known(text: &str) -> Result<Self, NotADevice> {
        let wanted = Self::parse(text)?;
        if wanted.target.kind().is_none() && !may_be_code_for(wanted.processor()) {
            Err(NotADevice::Unknown(wanted.processor().to_owned()))
        } else {
            Ok(wanted)
        }
    }

    /// Returns the target as it was asked for: `RX 7600`.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns a sentence that says which target ID was taken for the name that was [read](Self::parse): `RX 7600 is gfx1102`. `None` if
    /// it was that target ID, or a bundle entry ID.
    ///
    /// ```
    /// use device_select::Wanted;
    ///
    /// assert_eq!(Wanted::parse("RX 7600")?.explained().as_deref(), Some("RX 7600 is gfx1102"));
    /// assert_eq!(Wanted::parse("gfx90a:xnack+")?.explained(), None);
    /// # Ok::<(), device_select::NotADevice>(())
    /// ```
    #[must_use]
    pub fn explained(&self) -> Option<String> {
        let (typed, id) = (self.text.trim(), self.target.id());
        let is_entry = EntryId::parse(typed).is_ok_and(|id| id.kind().is_bundler_kind());
        (!is_entry && !typed.eq_ignore_ascii_case(id)).then(|| format!("{typed} is {id}"))
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

    /// Returns whether an image runs on the wanted target in every state that it leaves open. `loaded_as` is the target
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
    pub(crate) fn is_for(&self, image: &ImageInfo) -> bool {
        self.is_for_target(image.target()) || self.is_for_target(&image.loaded_as())
    }

    pub(crate) fn is_for_target(&self, image: &Target) -> bool {
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
    pub(crate) fn may_load(&self, image: &ImageInfo) -> bool {
        let for_gpu =
            |triple: &Triple| triple.is_amdgpu() || triple.is_nvptx() || !triple.is_known_arch();
        let target = image.target();
        target.id().is_empty()
            && target.triple().is_none_or(for_gpu)
            && self.fit(image).is_none_or(|fit| !fit.is_ruled_out())
    }
}

/// Returns whether code may be for a processor of this name, or PTX.
pub(crate) fn may_be_code_for(name: &str) -> bool {
    may_be_processor(name) || is_ptx(name)
}

/// Returns whether it is a name like `compute_80`.
pub(crate) fn is_ptx(name: &str) -> bool {
    NvidiaArch::parse(name).is_ok_and(NvidiaArch::is_ptx)
}

/// Fate of an image, and the reason.
#[derive(Debug)]
#[non_exhaustive]
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

/// Returns whether devices are what contradicts. Runtimes go by the bytes, not by the recorded kind of image.
pub(crate) fn is_for_others(disagreement: Option<&Disagreement>) -> bool {
    !matches!(disagreement, None | Some(Disagreement::Kind { .. }))
}
