//! Bundle entry IDs that are near to what somebody typed.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use target_id::near::{self, nearest, processor};
use target_id::{Family, TargetId, is_known_processor, may_be_processor, processor_family};

use crate::entry_id::EntryId;

/// The offload kinds that bundles have.
const KINDS: [&str; 4] = ["host", "openmp", "hip", "hipv4"];

impl EntryId<'_> {
    /// Returns the entry ID that HIP's and CUDA's compilers give code for a target ID; `None` for another text, such as an
    /// entry ID.
    ///
    /// ```
    /// use bundle_format::EntryId;
    ///
    /// let id = EntryId::of_code_for("gfx90a:xnack+");
    /// assert_eq!(id.as_deref(), Some("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+"));
    /// assert_eq!(EntryId::of_code_for("sm_90").as_deref(), Some("cuda-nvptx64-nvidia-cuda--sm_90"));
    /// assert_eq!(EntryId::of_code_for("hip-amdgcn-amd-amdhsa--gfx90a"), None);
    /// ```
    #[must_use]
    pub fn of_code_for(target_id: &str) -> Option<String> {
        let known = TargetId::parse(target_id).ok()?;
        let start = match processor_family(known.processor())? {
            Family::AmdGcn => "hipv4-amdgcn-amd-amdhsa-",
            Family::Nvptx => "cuda-nvptx64-nvidia-cuda-",
            _ => return None,
        };
        Some(format!("{start}-{target_id}"))
    }

    /// Returns an ID with slips put right; nothing if it is valid or has no near one.
    ///
    /// ```
    /// use bundle_format::EntryId;
    ///
    /// let near = EntryId::near("hpi-amdgnc-amd-amdhsa--gfx90A");
    /// assert_eq!(near.as_deref(), Some("hip-amdgcn-amd-amdhsa--gfx90a"));
    /// assert_eq!(EntryId::near("hip-amdgcn-amd-amdhsa--gfx90a"), None);
    /// ```
    #[must_use]
    pub fn near(typed: &str) -> Option<String> {
        let (kind, rest) = typed.split_once('-')?;
        let near_kind =
            if KINDS.contains(&kind) { None } else { Some(*nearest(kind, KINDS).first()?) };
        let kind = near_kind.unwrap_or(kind);
        let id = format!("{kind}-{rest}");
        let id = EntryId::parse(&id).ok()?;
        let (three, environment) = split_triple(id.triple());
        let near_triple = near::triple(three);
        // Without a dash between them, the target ID stands in the place of the environment.
        let is_displaced =
            kind != "host" && id.target_id().is_empty() && is_like_target(environment);
        let (environment, target) =
            if is_displaced { ("", environment) } else { (environment, id.target_id()) };
        let near_target = Some(target).filter(|_| kind != "host").and_then(near_target);
        let is_fine = near_kind.is_none() && near_triple.is_none() && near_target.is_none();
        if is_fine && !is_displaced {
            return None;
        }
        let behind = rest.strip_prefix(three)?;
        let three = near_triple.as_deref().unwrap_or(three);
        let target = near_target.as_deref().unwrap_or(target);
        Some(match target {
            "" => format!("{kind}-{three}{behind}"),
            target => format!("{kind}-{three}-{environment}-{target}"),
        })
    }

    /// Returns those of some IDs, or target IDs, that are nearest to the typed one. If that is for a known device, IDs for
    /// other devices are left out.
    ///
    /// ```
    /// use bundle_format::EntryId;
    ///
    /// let there = ["hipv4-amdgcn-amd-amdhsa--gfx1100", "hipv4-amdgcn-amd-amdhsa--gfx906"];
    /// assert_eq!(EntryId::nearest("hip-amdgcn-amd-amdhsa--gfx1100", there), there[..1]);
    /// ```
    #[must_use]
    pub fn nearest<'n>(typed: &str, ids: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
        let wanted = device(typed);
        let is_other = |id: &str| {
            let known = wanted.as_ref().filter(|wanted| is_known_processor(wanted.processor()));
            known.is_some_and(|wanted| device(id).is_some_and(|id| id != *wanted))
        };
        nearest(typed, ids.into_iter().filter(|id| !is_other(id)))
    }
}

/// Returns the target ID at the end of a bundle entry ID, or by itself.
fn device(id: &str) -> Option<TargetId> {
    let entry = EntryId::parse(id).ok().map(|id| id.target_id()).filter(|id| !id.is_empty());
    TargetId::parse(entry.unwrap_or(id)).ok()
}

/// Returns a triple's first three fields, and the fourth.
fn split_triple(triple: &str) -> (&str, &str) {
    let end = triple.match_indices('-').nth(2).map(|(at, _)| at);
    let (three, behind) = end.and_then(|at| triple.split_at_checked(at)).unwrap_or((triple, ""));
    (three, behind.strip_prefix('-').unwrap_or(behind))
}

/// Returns corrections of a target ID: new ones are not taken for slips.
fn near_target(written: &str) -> Option<String> {
    if may_be_processor(processor(written)) && TargetId::parse(written).is_ok() {
        None
    } else {
        near::target_ids(written).into_iter().next()
    }
}

/// Returns whether the last field of a triple is a target ID: a processor, known or not, or nearly one.
fn is_like_target(field: &str) -> bool {
    may_be_processor(processor(field)) || !near::target_ids(field).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_in_entry_ids_are_corrected() {
        for (typed, meant) in [
            ("hpi-amdgcn-amd-amdhsa--gfx90a", "hip-amdgcn-amd-amdhsa--gfx90a"),
            ("hip4-amdgcn-amd-amdhsa--gfx90a", "hip-amdgcn-amd-amdhsa--gfx90a"),
            ("HIPV4-amdgcn-amd-amdhsa--gfx90a", "hipv4-amdgcn-amd-amdhsa--gfx90a"),
            ("hip-amdgcn-amd-amdhsa--gfx90A", "hip-amdgcn-amd-amdhsa--gfx90a"),
            ("hip-amdgcn-amd-amdhsa-gfx90A:xnack+", "hip-amdgcn-amd-amdhsa--gfx90a:xnack+"),
            ("hip-amdgcn-amd-amdhsa-gfx1155", "hip-amdgcn-amd-amdhsa--gfx1155"),
            ("hip-amdgcn-amd-amdhsa--gfx90a:xnak+", "hip-amdgcn-amd-amdhsa--gfx90a:xnack+"),
            ("hip-amdgnc-amd-amdhsa--gfx90a", "hip-amdgcn-amd-amdhsa--gfx90a"),
            ("openmp-nvptx64-nvidia-cdua--sm_80", "openmp-nvptx64-nvidia-cuda--sm_80"),
            ("hst-x86_64-unknown-linux-gnu-", "host-x86_64-unknown-linux-gnu-"),
            ("host-x86_46-unknown-linux-gnu-", "host-x86_64-unknown-linux-gnu-"),
        ] {
            assert_eq!(EntryId::near(typed).as_deref(), Some(meant), "{typed}");
        }
    }

    #[test]
    fn valid_and_unknown_ids_are_unchanged() {
        for typed in [
            "hip-amdgcn-amd-amdhsa--gfx90a",
            "hip-amdgcn-amd-amdhsa-gfx90a",
            "hipv4-amdgcn-amd-amdhsa--gfx9-generic",
            "hip-amdgcn-amd-amdhsa--gfx1155",
            "openmp-nvptx64-nvidia-cuda-unknown-sm_70",
            "host-x86_64-unknown-linux-gnu-",
            "host-x86_64-unknown-linux-gnu",
            "host-x86_64-unknown-linux",
            "host-aarch64-apple-macosx-",
            "openmp-amdgcn-amd-amdhsa--",
            "my gpu",
            "a-b",
            "",
            "-",
        ] {
            assert_eq!(EntryId::near(typed), None, "{typed}");
        }
    }

    #[test]
    fn ids_of_other_devices_are_not_suggested() {
        let ids = ["hipv4-amdgcn-amd-amdhsa--gfx1100", "hipv4-amdgcn-amd-amdhsa--gfx906:xnack+"];
        for (typed, meant) in [
            ("hip-amdgcn-amd-amdhsa--gfx1100", &ids[..1]),
            ("hipv4-amdgcn-amd-amdhsa--gfx110A", &ids[..1]),
            ("hipv4-amdgcn-amd-amdhas--gfx906:xnack+", &ids[1..]),
            ("hipv4-amdgcn-amd-amdhsa--gfx1101", &[]),
            ("hipv4-amdgcn-amd-amdhsa--gfx906:xnack-", &[]),
        ] {
            assert_eq!(EntryId::nearest(typed, ids), meant, "{typed}");
        }
        assert_eq!(EntryId::nearest("gfx110A", ["gfx1100"]), ["gfx1100"]);
        assert!(EntryId::nearest("gfx1101", ["gfx1100"]).is_empty());
    }
}
