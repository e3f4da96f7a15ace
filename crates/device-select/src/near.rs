//! "Did you mean", of targets that are asked for.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use bundle_format::EntryId;
use fat_object::ImageInfo;
use target_id::near::{did_you_mean, distance, gpus, nearest, processor, target_ids};
use target_id::{Processor, TargetId, is_known_processor, may_be_processor};

use crate::wanted::{Wanted, is_ptx, may_be_code_for};

impl Wanted {
    /// Returns what may have been meant by a text: bundle entry IDs or target IDs.
    #[must_use]
    pub fn near_to(text: &str) -> Vec<String> {
        match EntryId::parse(text) {
            Ok(id) if id.kind().is_bundler_kind() => EntryId::near(text).into_iter().collect(),
            _ => target_ids(text),
        }
    }

    /// Returns what may have been meant, if the processor is not known.
    #[must_use]
    pub fn near(&self) -> Vec<String> {
        let name = self.processor();
        let is_known = name.is_empty() || is_known_processor(name) || is_ptx(name);
        if is_known { Vec::new() } else { Self::near_to(self.text()) }
    }

    /// Returns what may have been meant, if the processor is not known: the nearest one of some images, or another one.
    #[must_use]
    pub fn closest<'i>(&self, images: impl Iterator<Item = &'i ImageInfo>) -> Option<String> {
        let typed = self.target().target_id().ok()?;
        if is_known_processor(typed.processor()) {
            return None;
        }
        let ids: Vec<TargetId> =
            images.filter_map(|image| image.target().target_id().ok()).collect();
        let own = nearest(typed.processor(), ids.iter().map(TargetId::processor));
        let slips = |name: &str| distance(typed.processor(), name);
        match (own.first(), self.near().into_iter().next()) {
            (Some(own), Some(near)) if slips(own) > slips(&near) => Some(near),
            (Some(own), _) => Some((*own).to_owned()),
            (None, near) => near,
        }
    }

    /// Returns what to say of a processor that is not known, with suggestions.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        let name = self.processor();
        match self.device() {
            _ if name.is_empty() || is_ptx(name) => None,
            Some(device) => device.doubt(),
            None if may_be_processor(name) => None,
            None => Some(format!("unknown processor {name}{}", did_you_mean(&gpus(name)))),
        }
    }

    /// Returns what to say of a processor that no code can be for, with suggestions.
    pub(crate) fn impossible(&self) -> Option<String> {
        let name = self.processor();
        let is_possible = name.is_empty() || may_be_code_for(name) || is_known_processor(name);
        (!is_possible).then(|| format!("unknown processor {name}{}", did_you_mean(&self.near())))
    }

    /// Returns the generic processor that covers the wanted one: code for it would run on it, too.
    ///
    /// ```
    /// use device_select::Wanted;
    ///
    /// assert_eq!(Wanted::parse("gfx906:xnack+")?.generic(), Some("gfx9-generic"));
    /// assert_eq!(Wanted::parse("sm_80")?.generic(), None);
    /// # Ok::<(), device_select::NotADevice>(())
    /// ```
    #[must_use]
    pub fn generic(&self) -> Option<&'static str> {
        Some(Processor::amdgpu(self.processor())?.covered_by()?.name())
    }

    pub(crate) fn processor(&self) -> &str {
        processor(self.target().id())
    }
}
