//! Target features: how a processor is configured.

use alloc::string::String;
use core::cmp::Ordering;
use core::fmt;

bitflags::bitflags! {
    /// The target features a processor may have in its target IDs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub struct Features: u8 {
        /// Error correction of on-chip memory, `sramecc`.
        const SRAMECC = 1;
        /// Retry of memory accesses after page faults, `xnack`.
        const XNACK = 1 << 1;
    }
}

/// A target feature by name. Features order alphabetically, as in canonical target IDs.
///
/// LLVM's AMDGPU usage guide defines two; the names of others are kept, because a
/// processor newer than this crate may have more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
    /// The feature a name means. Never fails: unknown names are kept as [`Other`](Self::Other).
    #[must_use]
    pub fn parse(name: &str) -> Self {
        match name {
            "sramecc" => Self::Sramecc,
            "xnack" => Self::Xnack,
            other => Self::Other(other.into()),
        }
    }

    /// The name as it is written in target IDs.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Sramecc => "sramecc",
            Self::Xnack => "xnack",
            Self::Other(name) => name,
        }
    }

    /// The feature's flag; none for unknown names.
    #[must_use]
    pub fn flag(&self) -> Features {
        match self {
            Self::Sramecc => Features::SRAMECC,
            Self::Xnack => Features::XNACK,
            Self::Other(_) => Features::empty(),
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

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The value a target ID gives a feature. The third value, *any*, is the feature's absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Setting {
    /// `-`: the feature is disabled.
    Off,
    /// `+`: the feature is enabled.
    On,
}

impl Setting {
    /// The sign in target IDs, `+` or `-`.
    #[must_use]
    pub fn sign(self) -> char {
        match self {
            Self::On => '+',
            Self::Off => '-',
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::On => "on",
            Self::Off => "off",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_and_sort() {
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
        assert_eq!(Feature::parse("Xnack").flag(), Features::empty());
    }
}
