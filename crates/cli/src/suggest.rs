//! "Did you mean": names and IDs near to what was typed.
//!
//! The drop-in tools say nothing of it: they suggest what LLVM's do, options.

mod entry_id;

use bundle_format::EntryId;
use target_id::{Feature, NvidiaArch, Processor, TargetId, is_known_processor, processor_names};

use crate::devices::{Device, NotADevice, may_be_processor};

pub(crate) use entry_id::{entry_id, triple};

/// Letters that are inserted, left out, replaced, or swapped with the next, to get from one name to the other. Upper and
/// lower case are alike.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    strsim::osa_distance(&a.to_lowercase(), &b.to_lowercase())
}

/// The names that are nearest to what was typed, if they are near enough for a slip; two at most.
pub(crate) fn nearest<'n>(typed: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let most = 2.min(typed.chars().count() / 3);
    let mut near: Vec<_> = names
        .into_iter()
        // What is much longer cannot be near, and may be very long.
        .filter(|name| name.len().abs_diff(typed.len()) <= 4 * most)
        .map(|name| (distance(name, typed), name))
        .filter(|(distance, name)| *distance <= most && *name != typed)
        .collect();
    near.sort();
    near.dedup();
    let least = near.first().map_or(0, |(least, _)| *least);
    near.into_iter()
        .take_while(|(distance, _)| *distance == least)
        .map(|(_, name)| name)
        .take(2)
        .collect()
}

/// The IDs of a file that are nearest to what was typed: those for other devices than one that is known are not meant.
pub(crate) fn stored<'n>(typed: &str, ids: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let wanted = device(typed);
    let is_other = |id: &str| {
        let known = wanted.as_ref().filter(|wanted| is_known_processor(wanted.processor()));
        known.is_some_and(|wanted| device(id).is_some_and(|id| id != *wanted))
    };
    nearest(typed, ids.into_iter().filter(|id| !is_other(id)))
}

/// The target ID at the end of a bundle entry ID, or by itself.
fn device(id: &str) -> Option<TargetId> {
    let entry = EntryId::parse(id).ok().map(|id| id.target_id()).filter(|id| !id.is_empty());
    TargetId::parse(entry.unwrap_or(id)).ok()
}

/// `; did you mean A or B?`, or nothing.
pub(crate) fn did_you_mean<T: AsRef<str>>(names: &[T]) -> String {
    match names {
        [] => String::new(),
        names => {
            let names: Vec<_> = names.iter().map(T::as_ref).collect();
            format!("; did you mean {}?", names.join(" or "))
        }
    }
}

/// The known processors that are called nearly so.
pub(crate) fn processors(typed: &str) -> Vec<String> {
    processors_of(typed, |_| true)
}

/// The reason why a text does not name a device, and what may have been meant.
pub(crate) fn not_a_device(typed: &str, reason: &NotADevice) -> String {
    let near = match reason {
        NotADevice::Malformed(_) => target_id(Device::target_id_in(typed)),
        NotADevice::Unknown(name) => gpus(name),
        _ => Vec::new(),
    };
    format!("{reason}{}", did_you_mean(&near))
}

/// The doubt about a device that this program does not know, and what may have been meant.
pub(crate) fn doubt(device: &Device) -> Option<String> {
    let name = device.id().processor();
    device.is_unknown().then(|| {
        format!(
            "no processor {name} is known here, so only images for that very name or portable ones can match{}",
            did_you_mean(&gpus(name))
        )
    })
}

/// As [`processors`], of hardware only.
pub(crate) fn gpus(typed: &str) -> Vec<String> {
    processors_of(typed, |known| {
        let generic = Processor::amdgpu(known).is_some_and(Processor::is_generic);
        !generic && known != "amdgcnspirv"
    })
}

fn processors_of(typed: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let lower = typed.to_ascii_lowercase();
    // nvidia-smi prints compute capabilities, NVIDIA's compiler has names for PTX.
    let digits = lower.trim_start_matches("compute_").replace('.', "");
    if NvidiaArch::parse(&format!("sm_{digits}")).is_ok() && !lower.starts_with("sm_") {
        return vec![format!("sm_{digits}")];
    }
    let near = nearest(typed, processor_names().filter(|known| is_wanted(known)));
    near.into_iter().map(str::to_owned).collect()
}

/// The processor in the text of a target ID, whatever that is.
pub(crate) fn processor(target_id: &str) -> &str {
    target_id.split(':').next().unwrap_or_default()
}

/// What a target ID may have been meant to be: nothing if it is fine, or nobody knows.
pub(crate) fn target_id(typed: &str) -> Vec<String> {
    // What stands in front of it in other IDs.
    let tails = typed.match_indices('-').filter_map(|(at, _)| typed.get(at + 1..));
    let mut tails = tails.map(|tail| (tail, processor(tail)));
    if let Some((tail, _)) = tails.find(|(_, name)| processor_names().any(|known| known == *name)) {
        return fine(vec![tail.to_owned()], typed);
    }
    let (name, features) = match typed.split_once(':') {
        Some((name, features)) => (name, Some(features)),
        None => (typed, None),
    };
    let names = match may_be_processor(name) {
        true => match features {
            Some(_) => vec![name.to_owned()],
            None if is_known_processor(name) => Vec::new(),
            None => processors(name),
        },
        false => processors(name),
    };
    let tails = features.map_or_else(|| vec![String::new()], self::features);
    let ids = names.iter().flat_map(|name| tails.iter().map(move |tail| format!("{name}{tail}")));
    fine(ids.collect(), typed)
}

/// What is no ID, or what was typed, helps nobody. Two at most.
fn fine(mut ids: Vec<String>, typed: &str) -> Vec<String> {
    ids.retain(|id| id != typed && TargetId::parse(id).is_ok());
    ids.truncate(2);
    ids
}

/// Target features with slips put right: `:sramecc+:xnack-`, in all ways that are meant.
fn features(typed: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for feature in typed.split(':') {
        let name = feature.trim_end_matches(['+', '-']);
        let signs: &[&str] = match feature.get(name.len()..) {
            Some("+") => &["+"],
            Some("-") => &["-"],
            _ => &["+", "-"],
        };
        let known = [Feature::Sramecc, Feature::Xnack];
        let near = nearest(name, known.iter().map(Feature::as_str));
        let name = near.first().copied().unwrap_or(name);
        let longer = |start: &String| {
            signs.iter().map(|sign| format!("{start}:{name}{sign}")).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).take(4).collect();
    }
    all
}

/// The generic processor that stands for one: code for it would run, too.
pub(crate) fn generic(target_id: &str) -> Option<&'static str> {
    Some(Processor::amdgpu(processor(target_id))?.covered_by()?.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_slips() {
        for (a, b, expected) in [
            ("", "", 0),
            ("abc", "", 3),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("gfx90a", "GFX90A", 0),
            ("generic", "gneric", 1),
            ("generic", "egneric", 1),
            ("sm_90", "sm90", 1),
            ("abcd", "badc", 2),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn only_what_is_near_is_meant() {
        assert_eq!(nearest("zstdd", ["zlib", "zstd"]), ["zstd"]);
        assert_eq!(nearest("hpi", ["hip", "hipv4", "host"]), ["hip"]);
        assert_eq!(nearest("hip", ["hip", "hipv4"]), ["hipv4"; 0]);
        assert!(nearest("it", ["is", "hip"]).is_empty());
        assert_eq!(did_you_mean(&["a", "b"]), "; did you mean a or b?");
        assert_eq!(did_you_mean::<&str>(&[]), "");
    }

    #[test]
    fn other_devices_are_no_slips() {
        let ids = ["hipv4-amdgcn-amd-amdhsa--gfx1100", "hipv4-amdgcn-amd-amdhsa--gfx906:xnack+"];
        for (typed, meant) in [
            ("hip-amdgcn-amd-amdhsa--gfx1100", &ids[..1]),
            ("hipv4-amdgcn-amd-amdhsa--gfx110A", &ids[..1]),
            ("hipv4-amdgcn-amd-amdhas--gfx906:xnack+", &ids[1..]),
            ("hipv4-amdgcn-amd-amdhsa--gfx1101", &[]),
            ("hipv4-amdgcn-amd-amdhsa--gfx906:xnack-", &[]),
        ] {
            assert_eq!(stored(typed, ids), meant, "{typed}");
        }
        assert_eq!(stored("gfx110A", ["gfx1100"]), ["gfx1100"]);
        assert!(stored("gfx1101", ["gfx1100"]).is_empty());
    }

    #[test]
    fn target_ids() {
        for (typed, meant) in [
            ("gfx1103x", &["gfx1103"][..]),
            ("gfx90A", &["gfx90a"]),
            ("GFX90A:XNACK+", &["gfx90a:xnack+"]),
            ("sm90", &["sm_90"]),
            ("9.0", &["sm_90"]),
            ("compute_90", &["sm_90"]),
            ("gfx9-gneric", &["gfx9-generic"]),
            ("gfx90a:xnak+", &["gfx90a:xnack+"]),
            ("gfx90a:xnack", &["gfx90a:xnack+", "gfx90a:xnack-"]),
            ("gfx90a:sramec-:xnack+", &["gfx90a:sramecc-:xnack+"]),
            ("amdgcn-amd-amdhsa-gfx90a", &["gfx90a"]),
            ("amdgcn-amd-amdhsa--gfx90a:xnack+", &["gfx90a:xnack+"]),
            ("cuda-nvptx64-nvidia-cuda--sm_70", &["sm_70"]),
            ("hip-amdgcn-amd-amdhsa-gfx9-generic", &["gfx9-generic"]),
            ("gfx1155", &["gfx1150", "gfx1151"]),
            // Fine as they are, or nobody knows.
            ("gfx90a", &[]),
            ("gfx90a:xnack+", &[]),
            ("gfx9-generic", &[]),
            ("gfx1100:xnack+", &[]),
            ("my gpu", &[]),
            ("", &[]),
            (":", &[]),
        ] {
            assert_eq!(target_id(typed), meant, "{typed}");
        }
    }

    #[test]
    fn generic_processors_serve() {
        assert_eq!(generic("gfx1101"), Some("gfx11-generic"));
        assert_eq!(generic("gfx906:xnack+"), Some("gfx9-generic"));
        assert_eq!(generic("gfx90a"), None);
        assert_eq!(generic("sm_80"), None);
    }
}
