//! The processor that was meant by a name that no processor has.

use fat_object::ImageInfo;
use target_id::{TargetId, is_known_processor};

use crate::select::Request;
use crate::suggest::{distance, nearest};

/// Returns a suggestion for an unknown processor: one of the file's, or another one.
pub(crate) fn closest<'i>(
    wanted: &Request,
    images: impl Iterator<Item = &'i ImageInfo>,
) -> Option<String> {
    let typed = wanted.target().target_id().ok()?;
    if is_known_processor(typed.processor()) {
        return None;
    }
    let ids: Vec<TargetId> = images.filter_map(|image| image.target().target_id().ok()).collect();
    let own = nearest(typed.processor(), ids.iter().map(TargetId::processor));
    let slips = |name: &str| distance(typed.processor(), name);
    match (own.first(), wanted.near().into_iter().next()) {
        (Some(own), Some(near)) if slips(own) > slips(&near) => Some(near),
        (Some(own), _) => Some((*own).to_owned()),
        (None, near) => near,
    }
}
