//! Processors and target IDs with slips put right.

use target_id::{Feature, NvidiaArch, Processor, TargetId, is_known_processor, processor_names};

use super::nearest::nearest;
use device_select::may_be_processor;

/// Returns the known processors that are called nearly so.
fn processors(typed: &str) -> Vec<String> {
    processors_of(typed, |_| true)
}

/// Returns the same as [`processors`], of hardware only.
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

/// Returns the processor in the text of a target ID, whatever that is.
pub(crate) fn processor(target_id: &str) -> &str {
    target_id.split(':').next().unwrap_or_default()
}

/// Returns corrections of a target ID: nothing if it is valid or has no near one.
pub(crate) fn target_id(typed: &str) -> Vec<String> {
    // Try the text after each dash: an ID may have a prefix.
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

/// Returns at most two of these IDs: neither invalid ones nor the typed one.
fn fine(mut ids: Vec<String>, typed: &str) -> Vec<String> {
    ids.retain(|id| id != typed && TargetId::parse(id).is_ok());
    ids.truncate(2);
    ids
}

/// Returns target features with typing errors corrected, in all possible ways: `:sramecc+:xnack-`.
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

/// Returns the generic processor that covers this one: code for it would run, too.
pub(crate) fn generic(target_id: &str) -> Option<&'static str> {
    Some(Processor::amdgpu(processor(target_id))?.covered_by()?.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_in_target_ids_are_corrected() {
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
    fn generic_processors_are_suggested() {
        assert_eq!(generic("gfx1101"), Some("gfx11-generic"));
        assert_eq!(generic("gfx906:xnack+"), Some("gfx9-generic"));
        assert_eq!(generic("gfx90a"), None);
        assert_eq!(generic("sm_80"), None);
    }
}
