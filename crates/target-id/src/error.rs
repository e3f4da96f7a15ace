//! What can be wrong with a target ID or the name of an architecture.

use alloc::string::String;
use core::fmt;

/// Why a text is not a usable target ID, or not the name of a processor, an NVIDIA architecture or a setting.
///
/// Every `offset` is in bytes from the start of the target ID text. Only these can be wrong: any text is an [`OffloadKind`](crate::OffloadKind), a [`Triple`](crate::Triple) and a
/// [`Feature`](crate::Feature).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// The text before the first `:` is empty (or the whole target ID is).
    EmptyProcessor,
    /// Two `:` in a row, a sign without a name, or (old spelling) two `+` in a row.
    EmptyFeature {
        /// Where the name was expected.
        offset: usize,
    },
    /// A feature does not end in `+` or `-`.
    MissingSign {
        /// The feature as written.
        feature: String,
        /// Where the feature starts.
        offset: usize,
    },
    /// A feature is given more than once, with equal or opposite signs.
    DuplicateFeature {
        /// Name of the feature.
        feature: String,
        /// Where the second mention starts.
        offset: usize,
    },
    /// The processor is known and does not have this feature in its target IDs.
    UnsupportedFeature {
        /// Primary name of the processor.
        processor: String,
        /// Name of the feature.
        feature: String,
        /// Where the feature starts.
        offset: usize,
    },
    /// The processor, or every processor of the triple, is one whose target IDs have no features.
    FeaturesNotAllowed {
        /// The processor as written.
        processor: String,
        /// Where the first feature starts.
        offset: usize,
    },
    /// The processor is known and belongs to another architecture than the triple names.
    ForeignProcessor {
        /// The processor as written.
        processor: String,
        /// Architecture field of the triple, as written.
        arch: String,
    },
    /// The spelling of code object V2 and V3, `gfx906+xnack`; see [`TargetId::parse_v3`](crate::TargetId::parse_v3).
    OldSpelling {
        /// The text as written.
        text: String,
        /// The same target ID in today's canonical form.
        current: String,
    },
    /// The text is not the name of an NVIDIA architecture, see [`NvidiaArch::parse`](crate::NvidiaArch::parse).
    NotNvidiaArch {
        /// The text.
        name: String,
    },
    /// The text is no name of an AMD GPU processor, see [`Processor::amdgpu`](crate::Processor::amdgpu).
    NotAmdgpuProcessor {
        /// The text.
        name: String,
    },
    /// The text is not the name of a GPU of Intel's, see [`IntelGpu::find`](crate::IntelGpu::find).
    NotIntelGpu {
        /// The text.
        name: String,
    },
    /// The text is not that of a [`Setting`](crate::Setting).
    NotSetting {
        /// The text.
        text: String,
    },
}

impl fmt::Display for Error {
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
            Self::NotAmdgpuProcessor { name } => {
                write!(f, "{name:?} is no known AMD GPU processor")
            }
            Self::NotIntelGpu { name } => write!(f, "{name:?} is not a known GPU of Intel's"),
            Self::NotSetting { text } => {
                write!(f, "target feature setting is {text:?}, expected \"on\" or \"off\"")
            }
        }
    }
}

impl core::error::Error for Error {}
