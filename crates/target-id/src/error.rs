//! Errors in a target ID or the name of an architecture.

use alloc::string::String;
use core::fmt;

/// The reason why a text is not a usable target ID, or not the name of an NVIDIA architecture.
///
/// The text says what is wrong, where, and what was expected. Any text is an [`OffloadKind`](crate::OffloadKind), a
/// [`Triple`](crate::Triple) and a [`Feature`](crate::Feature).
#[derive(Clone, Debug, PartialEq)]
pub struct Error(Problem);

/// Kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text before the first `:` is empty (or the whole target ID is).
    EmptyProcessor,
    /// Two `:` in a row, a sign without a name, or (old spelling) two `+` in a row.
    EmptyFeature,
    /// A feature does not end in `+` or `-`.
    MissingSign,
    /// A feature is given more than once, with equal or opposite signs.
    DuplicateFeature,
    /// The processor is known and does not have this feature in its target IDs, or the target IDs of all processors of the triple have no
    /// features.
    UnsupportedFeature,
    /// The processor is known and belongs to another architecture than the triple names.
    ForeignProcessor,
    /// The spelling of code object V2 and V3, `gfx906+xnack`; see [`TargetId::parse_v3`](crate::TargetId::parse_v3).
    OldSpelling,
    /// The text is not the name of an NVIDIA architecture, see [`NvidiaArch::parse`](crate::NvidiaArch::parse).
    NotNvidiaArch,
}

impl Error {
    /// Returns the kind of the error.
    ///
    /// ```
    /// use target_id::{ErrorKind, TargetId};
    ///
    /// let error = TargetId::parse("gfx906:xnack").unwrap_err();
    /// assert_eq!((error.kind(), error.offset()), (ErrorKind::MissingSign, Some(7)));
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self.0 {
            Problem::EmptyProcessor => ErrorKind::EmptyProcessor,
            Problem::EmptyFeature { .. } => ErrorKind::EmptyFeature,
            Problem::MissingSign { .. } => ErrorKind::MissingSign,
            Problem::DuplicateFeature { .. } => ErrorKind::DuplicateFeature,
            Problem::UnsupportedFeature { .. } | Problem::FeaturesNotAllowed { .. } => {
                ErrorKind::UnsupportedFeature
            }
            Problem::ForeignProcessor { .. } => ErrorKind::ForeignProcessor,
            Problem::OldSpelling { .. } => ErrorKind::OldSpelling,
            Problem::NotNvidiaArch { .. } => ErrorKind::NotNvidiaArch,
        }
    }

    /// Returns where the feature that is wrong starts, in bytes from the start of the target ID.
    #[must_use]
    pub fn offset(&self) -> Option<usize> {
        match self.0 {
            Problem::EmptyFeature { offset }
            | Problem::MissingSign { offset, .. }
            | Problem::DuplicateFeature { offset, .. }
            | Problem::UnsupportedFeature { offset, .. }
            | Problem::FeaturesNotAllowed { offset, .. } => Some(offset),
            _ => None,
        }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Error(problem)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl core::error::Error for Error {}

/// One fault, with all that its text says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    EmptyProcessor,
    EmptyFeature { offset: usize },
    MissingSign { feature: String, offset: usize },
    DuplicateFeature { feature: String, offset: usize },
    UnsupportedFeature { processor: String, feature: String, offset: usize },
    FeaturesNotAllowed { processor: String, offset: usize },
    ForeignProcessor { processor: String, arch: String },
    OldSpelling { text: String, current: String },
    NotNvidiaArch { name: String },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyProcessor => f.write_str("target ID has no processor name"),
            Self::EmptyFeature { offset } => {
                write!(f, "target ID has an empty feature name at offset {offset}")
            }
            Self::MissingSign { feature, offset } => write!(
                f,
                "target ID feature {feature:?} at offset {offset} lacks its sign, expected \"+\" or \"-\""
            ),
            Self::DuplicateFeature { feature, offset } => write!(
                f,
                "target ID repeats the feature {feature:?} at offset {offset}, expected each feature once"
            ),
            Self::UnsupportedFeature { processor, feature, offset } => write!(
                f,
                "target ID gives {processor:?} the feature {feature:?} at offset {offset}, which that processor does not have"
            ),
            Self::FeaturesNotAllowed { processor, offset } => write!(
                f,
                "target ID gives {processor:?} features at offset {offset}, which that processor does not take"
            ),
            Self::ForeignProcessor { processor, arch } => write!(
                f,
                "target ID names the processor {processor:?}, which is not one of the architecture {arch:?}"
            ),
            Self::OldSpelling { text, current } => write!(
                f,
                "target ID {text:?} is spelled as in code object V2 or V3; since V4 it is written {current:?}"
            ),
            Self::NotNvidiaArch { name } => write!(
                f,
                "NVIDIA architecture {name:?} is not of the form \"sm_86\" or \"compute_86\", with or without \"a\" or \"f\""
            ),
        }
    }
}
