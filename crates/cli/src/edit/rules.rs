//! Which images `offload thin` keeps.

use fat_object::{Disagreement, ImageFormat, ListedImage, Segment};
use target_id::{Target, TargetId, Triple, is_known_processor};

use crate::devices::{Code, Fit, agree};
use crate::select::{Request, is_exactly};
use crate::suggest::{distance, nearest};

/// What the user asks for.
#[derive(Clone, Debug)]
pub(crate) enum Rule {
    /// What a device of these targets could load stays; with `exact` only what is for these targets themselves.
    Keep { requests: Vec<Request>, exact: bool },
    /// What is for these targets goes.
    Drop { requests: Vec<Request> },
}

/// What becomes of an image, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It stays because it is asked for, or not asked to go.
    Stays,
    /// It stays because a device that is asked for could load it, too.
    StaysToo,
    /// It stays because it may be for any device.
    StaysUnknown,
    /// It goes.
    Goes,
}

impl Rule {
    pub(crate) fn requests(&self) -> &[Request] {
        match self {
            Rule::Keep { requests, .. } | Rule::Drop { requests } => requests,
        }
    }

    /// Returns the fate of an image. It does not ask whether the container can be edited.
    pub(crate) fn fate(&self, image: &ListedImage) -> Fate {
        if is_host(image) || is_loose_shader(image) {
            return Fate::Stays;
        }
        let target = image.target();
        match self {
            Rule::Drop { requests } => {
                match requests.iter().any(|request| is_for(target, request.target())) {
                    true => Fate::Goes,
                    false => Fate::Stays,
                }
            }
            Rule::Keep { requests, .. }
                if requests.iter().any(|request| is_just_for(image, request.target())) =>
            {
                Fate::Stays
            }
            Rule::Keep { exact: true, .. } => Fate::Goes,
            Rule::Keep { requests, .. } => {
                if requests.iter().any(|request| could_load(image, request)) {
                    Fate::StaysToo
                } else if requests.iter().any(|request| may_be_for(image, request)) {
                    Fate::StaysUnknown
                } else {
                    Fate::Goes
                }
            }
        }
    }

    /// Whether a request means this image.
    pub(crate) fn means(&self, request: &Request, image: &ListedImage) -> bool {
        let (target, wanted) = (image.target(), request.target());
        match self {
            _ if is_host(image) => false,
            Rule::Keep { exact: false, .. } => {
                is_just_for(image, wanted) || could_load(image, request)
            }
            Rule::Keep { exact: true, .. } => is_just_for(image, wanted),
            Rule::Drop { .. } => is_for(target, wanted),
        }
    }
}

/// The host's entry of a bundle.
pub(crate) fn is_host(image: &ListedImage) -> bool {
    image.target().is_host() || image.format() == ImageFormat::HostPlaceholder
}

/// Returns whether it is a graphics shader in no container, which is no alternative to any other image.
fn is_loose_shader(image: &ListedImage) -> bool {
    image.path().last().is_some_and(Segment::is_found_by_scan) && Code::from(image).is_shader()
}

/// Returns whether an image is for other devices than its entry says.
pub(crate) fn is_misnamed(image: &ListedImage) -> bool {
    matches!(image.disagreement(), Some(Disagreement::Format { .. } | Disagreement::Target { .. }))
}

/// Returns whether an image is for just what was typed, and not in name only.
fn is_just_for(image: &ListedImage, wanted: &Target) -> bool {
    !is_misnamed(image) && is_exactly(image.target(), wanted)
}

/// Whether an image is for what was typed: a processor without features means all settings of them.
fn is_for(image: &Target, wanted: &Target) -> bool {
    match (image.target_id(), wanted.target_id()) {
        (Ok(id), Ok(wanted_id)) if wanted_id.features().len() == 0 => {
            agree(image, wanted) && id.processor() == wanted_id.processor()
        }
        _ => is_exactly(image, wanted),
    }
}

/// How an image fits the device that is asked for, by the rule of `offload match`.
///
/// Containers in containers are not looked into: their label decides.
fn fit(image: &ListedImage, request: &Request) -> Option<Fit> {
    let mut code = Code::from(image);
    if code.format.is_container() {
        code.format = ImageFormat::Unknown;
    }
    request.device().map(|device| Fit::new(&code, device))
}

/// Returns whether a device that is asked for could load an image in one of its states.
fn could_load(image: &ListedImage, request: &Request) -> bool {
    fit(image, request).is_some_and(|fit| fit.could_load())
}

/// Returns whether an image without a target ID may be for a device that is asked for: neither its triple nor its format
/// tells otherwise.
fn may_be_for(image: &ListedImage, request: &Request) -> bool {
    let for_gpu =
        |triple: &Triple| triple.is_amdgpu() || triple.is_nvptx() || !triple.is_known_arch();
    let target = image.target();
    target.id().is_empty()
        && target.triple().is_none_or(for_gpu)
        && fit(image, request).is_none_or(|fit| !fit.is_ruled_out())
}

/// What may have been meant by a processor that nobody knows: one of the file's, or another one.
pub(crate) fn closest<'i>(
    wanted: &Request,
    images: impl Iterator<Item = &'i ListedImage>,
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
