//! Kernel packs: libraries split into a host and packs, and joined again.

pub(crate) mod answer;
mod frames;
pub(crate) mod host;
pub(crate) mod join;
pub(crate) mod split;

/// The key of a pack's table under which a split library's way back is kept: after it, the name of the library.
const RECIPE: &str = "offload:";
