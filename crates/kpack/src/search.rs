//! The order in which ROCm's loader looks for a code object of a split library.
//!
//! The loader goes through the targets of a GPU, of each through its feature subsets, and of each through the paths. An archive
//! counts if it names the subset among its targets; newer loaders go on where it lacks the code object, older ones stop there
//! (CLR's `hip_fatbin.cpp` and `rocm-kpack`, 2026).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The text in paths that stands for the target.
pub const PLACEHOLDER: &str = "@GFXARCH@";

/// Returns the names by which a target is looked up, the most specific first: with all its features, with each alone, without.
///
/// ```
/// let names = kpack::search::subsets("gfx942:sramecc+:xnack-");
/// assert_eq!(names, ["gfx942:sramecc+:xnack-", "gfx942:sramecc+", "gfx942:xnack-", "gfx942"]);
/// ```
#[must_use]
pub fn subsets(target: &str) -> Vec<String> {
    let mut parts = target.split(':');
    let processor = parts.next().unwrap_or_default();
    let features: Vec<&str> = parts.take(MOST_FEATURES).collect();
    let count = features.len();
    // Those with more features first, and of those with as many the ones with earlier features.
    let mut masks: Vec<u32> = (0..1_u32 << count).collect();
    masks.sort_by_key(|mask| (core::cmp::Reverse(mask.count_ones()), *mask));
    let names = masks.into_iter().map(|mask| {
        let chosen = features.iter().enumerate().filter(|(n, _)| mask >> n & 1 == 1);
        chosen.fold(processor.to_string(), |name, (_, feature)| name + ":" + feature)
    });
    names.collect()
}

/// AMD's GPUs have two.
const MOST_FEATURES: usize = 4;

/// Returns a path with the first `@GFXARCH@` replaced by a target.
///
/// ```
/// let path = kpack::search::path("../.kpack/blas_@GFXARCH@.kpack", "gfx942");
/// assert_eq!(path, "../.kpack/blas_gfx942.kpack");
/// ```
#[must_use]
pub fn path(pattern: &str, target: &str) -> String {
    pattern.replacen(PLACEHOLDER, target, 1)
}

/// Returns the patterns of paths that the loader goes through: those of the marker, or what the environment says instead.
/// `list` is the value of `ROCM_KPACK_PATH`, which replaces all, and `prefix` that of `ROCM_KPACK_PATH_PREFIX`, which comes
/// first; both have `:` between paths.
///
/// ```
/// use kpack::search::patterns;
///
/// let marker = ["../.kpack/foo_@GFXARCH@.kpack".to_string()];
/// assert_eq!(patterns(&marker, None, None), marker);
/// assert_eq!(patterns(&marker, Some("/a.kpack:/b.kpack"), None), ["/a.kpack", "/b.kpack"]);
/// assert_eq!(patterns(&marker, None, Some("/a.kpack")), ["/a.kpack", &marker[0]]);
/// ```
#[must_use]
pub fn patterns(marker: &[String], list: Option<&str>, prefix: Option<&str>) -> Vec<String> {
    let split = |text: &str| -> Vec<String> {
        text.split(':').filter(|path| !path.is_empty()).map(ToString::to_string).collect()
    };
    match (list, prefix) {
        (Some(list), _) => split(list),
        (None, prefix) => {
            let mut all = prefix.map(split).unwrap_or_default();
            all.extend(marker.iter().cloned());
            all
        }
    }
}

/// Returns the key of a code object in the table of a pack: `lib/libfoo.so#0`. `wrapper` is the number of its wrapper.
#[must_use]
pub fn key(kernel_name: &str, wrapper: u64) -> String {
    alloc::format!("{kernel_name}#{wrapper}")
}
