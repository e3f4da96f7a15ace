//! What can be wrong with a target ID or the name of an architecture.

use alloc::string::String;

/// Why a text is not a usable target ID, or not the name of a processor, an NVIDIA architecture or a setting.
///
/// Every `offset` is in bytes from the start of the target ID text. Only these can be wrong: any text is an [`OffloadKind`](crate::OffloadKind), a [`Triple`](crate::Triple) and a
/// [`Feature`](crate::Feature).
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text before the first `:` is empty (or the whole target ID is).
    #[error("target ID has no processor name")]
    EmptyProcessor,
    /// Two `:` in a row, a sign without a name, or (old spelling) two `+` in a row.
    #[error("target ID has an empty feature name at offset {offset}")]
    EmptyFeature {
        /// Where the name was expected.
        offset: usize,
    },
    /// A feature does not end in `+` or `-`.
    #[error(
        "target ID feature {feature:?} at offset {offset} lacks its sign, expected \"+\" or \"-\""
    )]
    MissingSign {
        /// The feature as written.
        feature: String,
        /// Where the feature starts.
        offset: usize,
    },
    /// A feature is given more than once, with equal or opposite signs.
    #[error(
        "target ID repeats the feature {feature:?} at offset {offset}, expected each feature once"
    )]
    DuplicateFeature {
        /// Name of the feature.
        feature: String,
        /// Where the second mention starts.
        offset: usize,
    },
    /// The processor is known and does not have this feature in its target IDs.
    #[error(
        "target ID gives {processor:?} the feature {feature:?} at offset {offset}, which that processor does not have"
    )]
    UnsupportedFeature {
        /// Primary name of the processor.
        processor: String,
        /// Name of the feature.
        feature: String,
        /// Where the feature starts.
        offset: usize,
    },
    /// The processor, or every processor of the triple, is one whose target IDs have no features.
    #[error(
        "target ID gives {processor:?} features at offset {offset}, which that processor does not take"
    )]
    FeaturesNotAllowed {
        /// The processor as written.
        processor: String,
        /// Where the first feature starts.
        offset: usize,
    },
    /// The processor is known and belongs to another architecture than the triple names.
    #[error(
        "target ID names the processor {processor:?}, which is not one of the architecture {arch:?}"
    )]
    ForeignProcessor {
        /// The processor as written.
        processor: String,
        /// Architecture field of the triple, as written.
        arch: String,
    },
    /// The spelling of code object V2 and V3, `gfx906+xnack`; see [`TargetId::parse_v3`](crate::TargetId::parse_v3).
    #[error(
        "target ID {text:?} is spelled as in code object V2 or V3; since V4 it is written {current:?}"
    )]
    OldSpelling {
        /// The text as written.
        text: String,
        /// The same target ID in today's canonical form.
        current: String,
    },
    /// The text is not the name of an NVIDIA architecture, see [`NvidiaArch::parse`](crate::NvidiaArch::parse).
    #[error(
        "NVIDIA architecture {name:?} is not of the form \"sm_86\" or \"compute_86\", with or without \"a\" or \"f\""
    )]
    NotNvidiaArch {
        /// The text.
        name: String,
    },
    /// The text is no name of an AMD GPU processor, see [`Processor::amdgpu`](crate::Processor::amdgpu).
    #[error("{name:?} is no known AMD GPU processor")]
    NotAmdgpuProcessor {
        /// The text.
        name: String,
    },
    /// The text is not the name of a GPU of Intel's, see [`IntelGpu::find`](crate::IntelGpu::find).
    #[error("{name:?} is not a known GPU of Intel's")]
    NotIntelGpu {
        /// The text.
        name: String,
    },
    /// The text is not that of a [`Setting`](crate::Setting).
    #[error("target feature setting is {text:?}, expected \"on\" or \"off\"")]
    NotSetting {
        /// The text.
        text: String,
    },
}
