//! Offload kinds: numbers in packages, text in bundle entry IDs.

use target_id::OffloadKind;

/// The kind that packages have for one of bundle entry IDs: `hip` and `hipv4` are one there. `None` for the host and for
/// kinds that nobody knows, of which packages have no images.
///
/// ```
/// use fat_object::{bundle_kind, offload_binary, package_kind, target_id};
///
/// let hip = package_kind(&target_id::OffloadKind::HipV4);
/// assert_eq!(hip, Some(offload_binary::OffloadKind::HIP));
/// assert_eq!(hip.and_then(bundle_kind), Some(target_id::OffloadKind::Hip));
/// ```
#[must_use]
pub fn package_kind(kind: &OffloadKind) -> Option<offload_binary::OffloadKind> {
    kind.package_name().and_then(offload_binary::OffloadKind::from_name)
}

/// The kind of bundle entry IDs for one of packages: `hip` for HIP, though code objects from version 4 on are `hipv4` in
/// bundles. A number that nobody knows becomes its digits; `None` for [`NONE`](offload_binary::OffloadKind::NONE).
#[must_use]
pub fn bundle_kind(kind: offload_binary::OffloadKind) -> Option<OffloadKind> {
    match kind {
        offload_binary::OffloadKind::NONE => None,
        kind => Some(OffloadKind::from(&*kind.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for number in 0..20 {
            let kind = offload_binary::OffloadKind(number);
            let text = bundle_kind(kind);
            match kind.name() {
                None => assert_eq!(text, Some(OffloadKind::Other(number.to_string()))),
                Some("none") => assert_eq!(text, None),
                Some(_) => {
                    assert_eq!(text.and_then(|text| package_kind(&text)), Some(kind.current()));
                }
            }
        }
        for text in ["host", "none", "16", ""] {
            assert_eq!(package_kind(&OffloadKind::parse(text)), None, "{text}");
        }
    }
}
