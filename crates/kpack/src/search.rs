//! The order in which ROCm's loader looks for a code object of a split library.
//!
//! 1. [`places`] are the paths of packs, in order. Paths that exist and can be read are opened.
//! 2. [`lookup`] goes through the targets of a GPU, of each through its [`subsets`], and of each through all packs that were
//!    opened. A pack counts if it names the subset among its targets, even if its path was made for another one.
//!
//! Nothing here reads the environment or a file. Source: `loader.cpp` and `isa_target_match.h` of `rocm-kpack` (February 2026), and
//! of `rocm-systems`, `shared/kpack` (mid-2026).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::toc::{Entry, Toc};

/// The placeholder for the target in paths.
pub const PLACEHOLDER: &str = "@GFXARCH@";

/// The text that ROCm's runtime puts before a target.
const ISA_PREFIX: &str = "amdgcn-amd-amdhsa--";

/// Returns the names by which a target is looked up, the most specific first: features go from the right. The target may be an
/// ISA name of the runtime's, such as `amdgcn-amd-amdhsa--gfx942:xnack-`. Returns none for a target without a processor; of more
/// features than four the rest is ignored.
///
/// ```
/// let names = kpack::search::subsets("gfx942:sramecc+:xnack-");
/// assert_eq!(names, ["gfx942:sramecc+:xnack-", "gfx942:sramecc+", "gfx942:xnack-", "gfx942"]);
/// ```
#[must_use]
pub fn subsets(target: &str) -> Vec<String> {
    let bare = target.strip_prefix(ISA_PREFIX).filter(|rest| !rest.is_empty()).unwrap_or(target);
    let mut parts = bare.split(':');
    let Some(processor) = parts.next().filter(|processor| !processor.is_empty()) else {
        return Vec::new();
    };
    let features: Vec<&str> =
        parts.filter(|feature| !feature.is_empty()).take(MOST_FEATURES).collect();
    let count = features.len();
    // The highest bit is the first feature's.
    let names = (0..1_u32 << count).rev().map(|mask| {
        let chosen = features.iter().enumerate().filter(|(n, _)| mask >> (count - 1 - n) & 1 == 1);
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

/// Returns the name of the pack for a processor, if this name is for the processor with features, which loaders try
/// first.
///
/// ```
/// use kpack::search::without_features;
///
/// assert_eq!(without_features("x_gfx90a:xnack+.kpack").as_deref(), Some("x_gfx90a.kpack"));
/// assert_eq!(without_features("x_gfx90a.kpack"), None);
/// ```
#[must_use]
pub fn without_features(name: &str) -> Option<String> {
    let (processor, features) = name.split_once(':')?;
    let (_, extension) = features.rsplit_once('.')?;
    Some(alloc::format!("{processor}.{extension}"))
}

/// Returns the patterns of paths that the loader goes through: those of the marker, or what the environment says instead.
/// For messages: [`places`] tells which of them are patterns.
///
/// ```
/// use kpack::search::{Variables, patterns};
///
/// let marker = ["../.kpack/foo_@GFXARCH@.kpack".to_string()];
/// let none = Variables::default();
/// assert_eq!(patterns(&marker, &none), marker);
/// assert_eq!(patterns(&marker, &none.with_list("/a.kpack:/b.kpack")), ["/a.kpack", "/b.kpack"]);
/// assert_eq!(patterns(&marker, &none.with_prefix("/a.kpack")), ["/a.kpack", &marker[0]]);
/// ```
#[must_use]
pub fn patterns(marker: &[String], variables: &Variables<'_>) -> Vec<String> {
    let (named, is_all) = variables.paths();
    let mut all: Vec<String> = named.into_iter().map(ToString::to_string).collect();
    if !is_all {
        all.extend(marker.iter().cloned());
    }
    all
}

/// The variables of the environment that lead the loader to other packs.
///
/// ```
/// use kpack::search::Variables;
///
/// assert_eq!(Variables::default().separator, ':');
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Variables<'a> {
    /// The value of `ROCM_KPACK_PATH`: these packs and no others, unless it names none.
    pub list: Option<&'a str>,
    /// The value of `ROCM_KPACK_PATH_PREFIX`: these packs first.
    pub prefix: Option<&'a str>,
    /// The character between paths: `;` on Windows.
    pub separator: char,
}

impl Default for Variables<'_> {
    fn default() -> Self {
        Variables { list: None, prefix: None, separator: ':' }
    }
}

impl<'a> Variables<'a> {
    /// Sets the value of `ROCM_KPACK_PATH`. Default: not set.
    #[must_use]
    pub fn with_list(mut self, list: impl Into<Option<&'a str>>) -> Self {
        self.list = list.into();
        self
    }

    /// Sets the value of `ROCM_KPACK_PATH_PREFIX`. Default: not set.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<Option<&'a str>>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the character between paths. Default: `:`.
    #[must_use]
    pub fn with_separator(mut self, separator: char) -> Self {
        self.separator = separator;
        self
    }

    /// Returns the paths that they name, and whether there are no others.
    fn paths(&self) -> (Vec<&'a str>, bool) {
        let split = |text: Option<&'a str>| -> Vec<&'a str> {
            let paths = text.unwrap_or_default().split(self.separator);
            paths.filter(|path| !path.is_empty()).collect()
        };
        match split(self.list) {
            list if list.is_empty() => (split(self.prefix), false),
            list => (list, true),
        }
    }
}

/// The path of a pack that a loader opens if it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackPath {
    path: String,
    is_of_library: bool,
}

impl PackPath {
    /// Returns the path, without placeholder.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns whether the path is the library's own: a relative one starts in the directory of the library's file,
    /// after symbolic links are resolved. Other relative paths start in the current directory.
    #[must_use]
    pub fn is_of_library(&self) -> bool {
        self.is_of_library
    }
}

/// Returns the paths of packs for these targets, in the order of the loader. Only paths of the marker have placeholders: the
/// loader takes those of variables as they are.
///
/// ```
/// use kpack::search::{PackPath, Variables, places};
///
/// let marker = ["../.kpack/foo_@GFXARCH@.kpack".to_string()];
/// let variables = Variables::default().with_prefix("mine.kpack");
/// let found = places(&marker, &variables, &["gfx942:xnack-"]);
/// let paths: Vec<&str> = found.iter().map(PackPath::path).collect();
/// assert_eq!(paths, ["mine.kpack", "../.kpack/foo_gfx942:xnack-.kpack", "../.kpack/foo_gfx942.kpack"]);
/// assert!(!found[0].is_of_library() && found[1].is_of_library());
/// ```
#[must_use]
pub fn places(marker: &[String], variables: &Variables<'_>, targets: &[&str]) -> Vec<PackPath> {
    let (named, is_all) = variables.paths();
    let named =
        named.into_iter().map(|path| PackPath { path: path.to_string(), is_of_library: false });
    let mut places: Vec<PackPath> = named.collect();
    if is_all {
        return places;
    }
    let subsets: Vec<String> = targets.iter().flat_map(|target| subsets(target)).collect();
    for pattern in marker {
        if pattern.contains(PLACEHOLDER) {
            let paths = subsets.iter().map(|subset| path(pattern, subset));
            places.extend(paths.map(|path| PackPath { path, is_of_library: true }));
        } else {
            places.push(PackPath { path: pattern.clone(), is_of_library: true });
        }
    }
    places
}

/// The releases of ROCm's loader, which differ where a pack lacks the code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loader {
    /// The first releases: the first pack with the target decides. A pack for `gfx942:xnack-` hides the one for `gfx942`, so it
    /// must be complete.
    First,
    /// Later ones: all packs with the target, and with its subsets, are tried.
    Later,
}

/// The code object that a loader takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hit<'t> {
    /// The number of its pack among the given packs.
    pub pack: usize,
    /// The entry.
    pub entry: &'t Entry,
}

/// Looks for a code object as a loader does. `packs` are the tables of the packs that could be opened, in the order of
/// [`places`]; `targets` those of the GPU, in the runtime's order: its ISA name, then its generic target, if any.
///
/// ```
/// use kpack::search::{Loader, Miss, key, lookup};
/// use kpack::{Kpack, NewKpack, Scheme};
///
/// let mut new = NewKpack::new("blas", "gfx942", Scheme::Plain);
/// new.add("lib/libfoo.so", 0, "gfx942", 4);
/// let bytes = new.layout(&[4])?.to_vec(|_| b"code").unwrap();
/// let pack = Kpack::parse(&bytes)?;
/// let find = |n, gpu| lookup(&[pack.toc()], &[gpu], &key("lib/libfoo.so", n), Loader::Later);
/// assert_eq!(find(0, "gfx942:xnack-").unwrap().entry.arch(), "gfx942");
/// assert_eq!(find(1, "gfx942:xnack-"), Err(Miss::KernelNotFound));
/// assert_eq!(find(0, "gfx90a"), Err(Miss::ArchNotFound));
/// # Ok::<(), kpack::Error>(())
/// ```
///
/// # Errors
///
/// The [`Miss`] that the loader reports.
pub fn lookup<'t>(
    packs: &[&'t Toc],
    targets: &[&str],
    key: &str,
    loader: Loader,
) -> Result<Hit<'t>, Miss> {
    if packs.is_empty() {
        return Err(Miss::ArchiveNotFound);
    }
    let mut miss = Miss::ArchNotFound;
    for subset in targets.iter().flat_map(|target| subsets(target)) {
        let listing = packs.iter().enumerate().filter(|(_, toc)| toc.is_listed(&subset));
        for (pack, toc) in listing {
            match toc.find(key, &subset) {
                Some(entry) => return Ok(Hit { pack, entry }),
                None if loader == Loader::First => return Err(Miss::KernelNotFound),
                None => miss = Miss::KernelNotFound,
            }
        }
    }
    Err(miss)
}

/// The reason why a loader finds no code object. HIP reports `hipErrorInvalidImage` for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Miss {
    /// A pack has the target, but no code object for the wrapper.
    #[error("the pack with the target lacks the code object")]
    KernelNotFound,
    /// `ROCM_KPACK_DISABLE` is set, to neither nothing nor a text that starts with `0`.
    #[error("ROCM_KPACK_DISABLE is set")]
    Disabled,
    /// The marker is malformed.
    #[error("the marker is malformed")]
    InvalidMarker,
    /// There is no pack at any of the places.
    #[error("there is no kernel pack at any of the paths")]
    ArchiveNotFound,
    /// No pack has the target among its `gfx_arches`.
    #[error("no kernel pack is for the target")]
    ArchNotFound,
}

impl Miss {
    /// Returns the number of the error in `kpack_error_t` of `rocm-kpack`.
    ///
    /// ```
    /// assert_eq!(kpack::search::Miss::ArchiveNotFound.code(), 13);
    /// ```
    #[must_use]
    pub fn code(self) -> u32 {
        match self {
            Miss::KernelNotFound => 5,
            Miss::Disabled => 8,
            Miss::InvalidMarker => 12,
            Miss::ArchiveNotFound => 13,
            Miss::ArchNotFound => 14,
        }
    }
}

/// Returns the key of a code object in the table of a pack: `lib/libfoo.so#0`. `wrapper` is the number of its wrapper.
#[must_use]
pub fn key(kernel_name: &str, wrapper: u64) -> String {
    alloc::format!("{kernel_name}#{wrapper}")
}
