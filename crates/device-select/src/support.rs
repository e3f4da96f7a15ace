//! The four answers.

use alloc::format;
use alloc::string::String;
use core::fmt;

/// The answer to whether something runs on a device. The worst answer about its parts is the one about the whole: the
/// greatest.
///
/// Exhaustive: a new answer must stop the build of a caller that acts on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Support {
    /// All that a runtime would load is there, perhaps on a condition.
    Yes,
    /// The program chooses by device itself: some of its code is for this one, some for others only.
    Partly,
    /// Something was not understood, so "no device code" may be false.
    Unknown,
    /// Nothing is for the device, or something that a runtime loads unasked is not.
    No,
}

impl Support {
    /// Returns the word: `yes`, `partly`, `unknown`, `no`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Support::Yes => "yes",
            Support::Partly => "partly",
            Support::Unknown => "unknown",
            Support::No => "no",
        }
    }

    /// Returns the answer about the whole, by the answer about the part that was read: code that was not found there may be in the
    /// rest.
    pub(crate) fn of_whole(self) -> Self {
        self.min(Support::Unknown)
    }
}

/// Returns the words about the whole, by the words about the part that was read.
pub(crate) fn of_part(words: &str) -> String {
    format!("was not read as a whole; what was read {words}")
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
