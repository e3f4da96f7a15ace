//! The meaning of architecture names.

/// The meaning of an architecture field: two spellings of one architecture are equal here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arch<'a> {
    /// One name for each architecture.
    pub(super) name: &'static str,
    /// Sub-architecture, empty if none. Any text for `amdgpu`.
    pub(super) sub: &'a str,
}
