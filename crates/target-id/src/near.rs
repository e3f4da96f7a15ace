//! Names that are near to what somebody typed: "did you mean".
//!
//! ```
//! use target_id::near;
//!
//! assert_eq!(near::target_ids("gfx90a:xnak+"), ["gfx90a:xnack+"]);
//! assert_eq!(near::did_you_mean(&near::nearest("hpi", ["hip", "host"])), "; did you mean hip?");
//! ```

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::amd_processor::Processor;
use crate::feature::Feature;
use crate::nvidia::NvidiaArch;
use crate::processor::{is_known_processor, may_be_processor, processor_names};
use crate::target_id::TargetId;
use crate::triple::Triple;

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

/// Returns the number of letters that are inserted, left out, replaced, or swapped with the next, to get from one name to the
/// other. Upper and lower case are alike.
#[must_use]
pub fn distance(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|text| text.to_lowercase().chars().collect::<Vec<_>>());
    let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(usize::MAX / 2);
    // From the first letters of `a` to the first letters of `b`: the row of one letter less, and of two less.
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let (mut before, mut letter_before) = (Vec::new(), None);
    for (row, letter) in a.iter().enumerate() {
        let mut next = vec![row + 1];
        let mut other_before = None;
        for (column, other) in b.iter().enumerate() {
            let replaced = at(&last, column) + usize::from(letter != other);
            let mut least = replaced.min(at(&last, column + 1) + 1).min(at(&next, column) + 1);
            if letter_before == Some(other) && other_before == Some(letter) {
                least = least.min(at(&before, column - 1) + 1);
            }
            next.push(least);
            other_before = Some(other);
        }
        before = core::mem::replace(&mut last, next);
        letter_before = Some(letter);
    }
    at(&last, b.len())
}

/// Returns at most two of the names nearest to the typed one, if they are near enough for a typing error.
#[must_use]
pub fn nearest<'n>(typed: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let most = 2.min(typed.chars().count() / 3);
    let mut near: Vec<_> = names
        .into_iter()
        // Much longer text cannot be near, and may be very long.
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

/// Returns a text like `; did you mean A or B?`, or nothing.
#[must_use]
pub fn did_you_mean<T: AsRef<str>>(names: &[T]) -> String {
    match names {
        [] => String::new(),
        names => {
            let names: Vec<_> = names.iter().map(T::as_ref).collect();
            format!("; did you mean {}?", names.join(" or "))
        }
    }
}

/// Returns the processor in the text of a target ID, whatever that is.
#[must_use]
pub fn processor(target_id: &str) -> &str {
    target_id.split(':').next().unwrap_or_default()
}

/// Returns the processors of GPUs with a similar name: neither generic ones nor portable code.
#[must_use]
pub fn gpus(typed: &str) -> Vec<String> {
    processors(typed, |known| {
        let generic = Processor::amdgpu(known).is_some_and(Processor::is_generic);
        !generic && known != "amdgcnspirv"
    })
}

fn processors(typed: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let lower = typed.to_ascii_lowercase();
    // nvidia-smi prints compute capabilities, NVIDIA's compiler has names for PTX.
    let digits = lower.trim_start_matches("compute_").replace('.', "");
    if NvidiaArch::parse(&format!("sm_{digits}")).is_ok() && !lower.starts_with("sm_") {
        return vec![format!("sm_{digits}")];
    }
    let near = nearest(typed, processor_names().filter(|known| is_wanted(known)));
    near.into_iter().map(str::to_owned).collect()
}

/// Returns at most two corrections of a target ID: none if it is valid or nothing is near.
#[must_use]
pub fn target_ids(typed: &str) -> Vec<String> {
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
    let names = match (may_be_processor(name), features) {
        (true, Some(_)) => vec![name.to_owned()],
        (true, None) if is_known_processor(name) => Vec::new(),
        _ => processors(name, |_| true),
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

/// Returns a correction of a triple, without its environment: nothing if it is valid or has no near one.
#[must_use]
pub fn triple(typed: &str) -> Option<String> {
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
    fn distances_count_typing_errors() {
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
            ("ca", "abc", 3),
            ("ab", "ba", 1),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn only_near_names_are_suggested() {
        assert_eq!(nearest("zstdd", ["zlib", "zstd"]), ["zstd"]);
        assert_eq!(nearest("hpi", ["hip", "hipv4", "host"]), ["hip"]);
        assert_eq!(nearest("hip", ["hip", "hipv4"]), ["hipv4"; 0]);
        assert!(nearest("it", ["is", "hip"]).is_empty());
        assert_eq!(did_you_mean(&["a", "b"]), "; did you mean a or b?");
        assert_eq!(did_you_mean::<&str>(&[]), "");
    }

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
            // Correct, or like no name.
            ("gfx90a", &[]),
            ("gfx90a:xnack+", &[]),
            ("gfx9-generic", &[]),
            ("gfx1100:xnack+", &[]),
            ("my gpu", &[]),
            ("", &[]),
            (":", &[]),
        ] {
            assert_eq!(target_ids(typed), meant, "{typed}");
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
