//! Target features: how a processor is configured.

use alloc::string::String;
use core::cmp::Ordering;
use core::fmt;

/// A set of the target features that LLVM's AMDGPU usage guide defines: the features that a processor may have in
/// its target IDs, or that a target ID sets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Features(u8);

impl Features {
    /// No feature.
    pub(crate) const NONE: Self = Self(0);
    /// Error correction of on-chip memory, `sramecc`.
    pub(crate) const SRAMECC: Self = Self(1);
    /// Retry of memory accesses after page faults, `xnack`.
    pub(crate) const XNACK: Self = Self(1 << 1);
    /// All features.
    pub(crate) const ALL: Self = Self::SRAMECC.union(Self::XNACK);

    /// Returns whether there is no feature.
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether all features of `other` are in this set, too.
    pub(crate) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the features that are in one of the sets or in both.
    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the features one by one, in alphabetical order.
    pub(crate) fn iter(self) -> impl Iterator<Item = Feature> + Clone {
        [Feature::Sramecc, Feature::Xnack]
            .into_iter()
            .filter(move |feature| self.contains(feature.flag()))
    }
}

/// The features one by one: `{Sramecc, Xnack}`.
impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// A target feature by name. Features order alphabetically, as in canonical target IDs.
///
/// LLVM's AMDGPU usage guide defines two; the names of others are kept, because a
/// processor newer than this crate may have more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Feature {
    /// `sramecc`.
    Sramecc,
    /// `xnack`.
    Xnack,
    /// Any other name, as written. Made by [`parse`](Self::parse), it never holds a known one.
    Other(String),
}

impl Feature {
    /// Returns the feature a name means. Never fails: unknown names are kept as [`Other`](Self::Other).
    #[must_use]
    pub fn parse(name: &str) -> Self {
        match name {
            "sramecc" => Self::Sramecc,
            "xnack" => Self::Xnack,
            other => Self::Other(other.into()),
        }
    }

    /// Returns the name as it is written in target IDs.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Sramecc => "sramecc",
            Self::Xnack => "xnack",
            Self::Other(name) => name,
        }
    }

    /// Returns the feature's flag; none for unknown names.
    pub(crate) fn flag(&self) -> Features {
        match self {
            Self::Sramecc => Features::SRAMECC,
            Self::Xnack => Features::XNACK,
            Self::Other(_) => Features::NONE,
        }
    }
}

impl PartialOrd for Feature {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Feature {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

/// The name, see [`as_str`](Feature::as_str).
impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The value a target ID gives a feature. The third value, *any*, is the feature's absence, and there are no more.
///
/// Exhaustive: a feature is on, off, or absent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Setting {
    /// `-`: the feature is disabled.
    Off,
    /// `+`: the feature is enabled.
    On,
}

impl Setting {
    /// Returns the sign in target IDs, `+` or `-`.
    #[must_use]
    pub const fn sign(self) -> char {
        match self {
            Self::On => '+',
            Self::Off => '-',
        }
    }
}

/// In words: `on` or `off`.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::On => "on",
            Self::Off => "off",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_and_sorted() {
        let mut features = ["xnack", "zeta", "sramecc", "alpha", "tea"].map(Feature::parse);
        features.sort();
        assert_eq!(
            features.each_ref().map(Feature::as_str),
            ["alpha", "sramecc", "tea", "xnack", "zeta"]
        );
    }

    #[test]
    fn known_names_have_flags() {
        assert_eq!(Feature::parse("xnack").flag(), Features::XNACK);
        assert_eq!(Feature::parse("sramecc").flag(), Features::SRAMECC);
        assert_eq!(Feature::parse("Xnack").flag(), Features::NONE);
    }

    #[test]
    fn sets_of_features() {
        assert!(Features::NONE.is_empty());
        assert_eq!(Features::SRAMECC.union(Features::XNACK), Features::ALL);
        assert!(
            Features::ALL.contains(Features::XNACK) && Features::XNACK.contains(Features::NONE)
        );
        assert!(!Features::XNACK.contains(Features::ALL));
        assert!(Features::ALL.iter().eq([Feature::Sramecc, Feature::Xnack]));
        assert_eq!(alloc::format!("{:?}", Features::ALL), "{Sramecc, Xnack}");
    }
}
