//! The comment lines between which text bundles have their code objects.

/// The text after the comment leader and a space on a line that starts an entry. Another space and the bundle entry
/// ID follow.
pub(crate) const START: &str = "__CLANG_OFFLOAD_BUNDLE____START__";
/// The same on a line that ends an entry.
pub(crate) const END: &str = "__CLANG_OFFLOAD_BUNDLE____END__";
/// The common part of all marker lines after the comment leader.
pub(crate) const COMMON: &[u8] = b" __CLANG_OFFLOAD_BUNDLE____";

/// The start of a comment, which hides marker lines from other tools.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Leader {
    /// `//`, in preprocessed C and C++.
    Slashes,
    /// `#`, in assembler and dependency files.
    Hash,
    /// `;`, in LLVM IR.
    Semicolon,
}

impl Leader {
    pub(crate) const ALL: [Self; 3] = [Self::Slashes, Self::Hash, Self::Semicolon];

    /// Returns the characters.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Slashes => "//",
            Self::Hash => "#",
            Self::Semicolon => ";",
        }
    }

    /// Returns the leader in a file of one of the types of clang-offload-bundler: `i`, `ii`, `cui` and
    /// `hipi` have `//`, `d` and `s` have `#`, `ll` has `;`. `None` for types that have the
    /// binary layout (`bc`, `o`, `gch`, `ast`, `a`) and for unknown ones.
    #[must_use]
    pub fn for_type(file_type: &str) -> Option<Self> {
        match file_type {
            "i" | "ii" | "cui" | "hipi" => Some(Self::Slashes),
            "d" | "s" => Some(Self::Hash),
            "ll" => Some(Self::Semicolon),
            _ => None,
        }
    }
}
