//! A contradiction between an image and its container.

use device_code::FileFormat;
use offload_binary::ImageKind;
use target_id::Verdict;

/// A contradiction between an image and the target that its container states for it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Disagreement {
    /// The format is one that devices of this architecture do not load.
    #[error("{found} where {expected} is expected")]
    Format {
        /// The format of the image.
        found: FileFormat,
        /// The formats that devices of the architecture load, in words.
        expected: &'static str,
    },
    /// The image is for other devices.
    #[error("the code object {verdict}")]
    Target {
        /// The target ID that the image itself states: the ELF header of an AMD GPU code object, `sm_90` of a cubin's,
        /// `compute_90` for the `.target` of PTX.
        found: String,
        /// The reason why devices of the target cannot load it.
        verdict: Verdict,
    },
    /// The kind of image that an offload binary records is another one. Runtimes go by the bytes.
    #[error("{found} where the offload binary records {recorded}")]
    Kind {
        /// The format of the image.
        found: FileFormat,
        /// The kind that is recorded.
        recorded: ImageKind,
    },
}

impl Disagreement {
    /// Returns the image's own target ID, or its format, as messages name it: `gfx1250`, `SPIR-V`.
    #[must_use]
    pub fn found(&self) -> String {
        match self {
            Disagreement::Target { found, .. } => found.clone(),
            Disagreement::Format { found, .. } | Disagreement::Kind { found, .. } => {
                found.to_string()
            }
        }
    }

    /// Returns a name of an image, and what it [really](Self::found) holds: `gfx906 (holds gfx1250)`.
    #[must_use]
    pub fn marked(&self, name: &str) -> String {
        format!("{name} (holds {})", self.found())
    }
}
