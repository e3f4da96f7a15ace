//! Bundle entry IDs with slips put right.

use bundle_format::EntryId;
use target_id::{TargetId, Triple};

use super::nearest::nearest;
use super::target_id::{processor, target_id};
use device_select::may_be_processor;

/// The offload kinds that bundles have.
const KINDS: [&str; 4] = ["host", "openmp", "hip", "hipv4"];

/// The triples that device code is for.
const TRIPLES: [&str; 8] = [
    "amdgcn-amd-amdhsa",
    "amdgcn-amd-amdpal",
    "amdgcn-mesa-mesa3d",
    "nvptx64-nvidia-cuda",
    "nvptx-nvidia-cuda",
    "spirv64-amd-amdhsa",
    "spirv64-unknown-unknown",
    "spirv64-intel-unknown",
];

/// Architectures that triples begin with, of devices and their hosts.
const ARCHITECTURES: [&str; 12] = [
    "amdgcn",
    "nvptx64",
    "nvptx",
    "spirv64",
    "spirv32",
    "spir64",
    "x86_64",
    "i686",
    "aarch64",
    "riscv64",
    "powerpc64le",
    "loongarch64",
];

/// Returns a correction of a bundle entry ID; nothing if it is valid or has no near one.
pub(crate) fn entry_id(typed: &str) -> Option<String> {
    let (kind, rest) = typed.split_once('-')?;
    let near_kind = match KINDS.contains(&kind) {
        true => None,
        false => Some(*nearest(kind, KINDS).first()?),
    };
    let kind = near_kind.unwrap_or(kind);
    let id = format!("{kind}-{rest}");
    let id = EntryId::parse(&id).ok()?;
    let (three, environment) = split_triple(id.triple());
    let near_triple = triple(&three);
    // Without a dash between them, the target ID stands in the place of the environment.
    let is_displaced = kind != "host" && id.target_id().is_empty() && is_like_target(environment);
    let (environment, target) =
        if is_displaced { ("", environment) } else { (environment, id.target_id()) };
    let near_target = Some(target).filter(|_| kind != "host").and_then(near_target);
    let is_fine = near_kind.is_none() && near_triple.is_none() && near_target.is_none();
    if is_fine && !is_displaced {
        return None;
    }
    let behind = rest.get(three.len()..).unwrap_or_default();
    let three = near_triple.unwrap_or(three);
    let target = near_target.as_deref().unwrap_or(target);
    Some(match target {
        "" => format!("{kind}-{three}{behind}"),
        target => format!("{kind}-{three}-{environment}-{target}"),
    })
}

/// Returns a triple's first three fields, and the fourth.
fn split_triple(triple: &str) -> (String, &str) {
    match triple.match_indices('-').nth(2) {
        Some((at, _)) => {
            let (three, environment) = triple.split_at(at);
            (three.to_owned(), environment.strip_prefix('-').unwrap_or(environment))
        }
        None => (triple.to_owned(), ""),
    }
}

/// Returns corrections of a target ID: new ones are not taken for slips.
fn near_target(written: &str) -> Option<String> {
    match may_be_processor(processor(written)) && TargetId::parse(written).is_ok() {
        true => None,
        false => target_id(written).into_iter().next(),
    }
}

/// Returns whether the last field of a triple is a target ID: a processor, known or not, or nearly one.
fn is_like_target(field: &str) -> bool {
    may_be_processor(processor(field)) || !target_id(field).is_empty()
}

/// Returns a correction of a triple, without its environment: nothing if it is valid or has no near one.
pub(crate) fn triple(typed: &str) -> Option<String> {
    let typed = typed.trim_end_matches('-');
    if TRIPLES.contains(&typed) {
        return None;
    }
    let parsed = Triple::parse(typed);
    let is_known = parsed.is_known_arch();
    if let [near] = nearest(typed, TRIPLES)[..]
        && (!is_known || Triple::parse(near).arch() == parsed.arch())
    {
        return Some(near.to_owned());
    }
    if is_known {
        return None;
    }
    let arch = nearest(parsed.arch(), ARCHITECTURES).first().copied()?;
    let (_, rest) = typed.split_once('-').unwrap_or((typed, ""));
    Some([arch, rest].join("-").trim_end_matches('-').to_owned())
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
            assert_eq!(entry_id(typed).as_deref(), Some(meant), "{typed}");
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
            assert_eq!(entry_id(typed), None, "{typed}");
        }
    }

    #[test]
    fn typing_errors_in_triples_are_corrected() {
        assert_eq!(triple("amdgcn-amd-amdhas").as_deref(), Some("amdgcn-amd-amdhsa"));
        assert_eq!(triple("amdgpu-amd-amdhsa"), None);
        assert_eq!(triple("nvptx64-nvida-cuda").as_deref(), Some("nvptx64-nvidia-cuda"));
        assert_eq!(triple("x86-64-unknown-linux-gnu"), None);
        assert_eq!(
            triple("aarhc64-unknown-linux-gnu").as_deref(),
            Some("aarch64-unknown-linux-gnu")
        );
        assert_eq!(triple("amdgcn-amd-amdhsa-"), None);
    }
}
