//! Rules and texts of LLVM's tools, which know less than this crate.

use crate::amd_processor::Family;
use crate::amdgpu::AMDGCN;
use crate::processor::{GENERIC, INTEL, processor_family};
use crate::verdict::Verdict;

/// Returns whether `clang-offload-bundler` keeps a target ID with this processor.
///
/// The bundler looks at the text before the first `:` and silently drops the whole target
/// ID if it does not know that name, whatever the triple. It knows primary names only: no
/// alternative names (`tahiti`), no names before GCN, no retired ones. This is LLVM 24's
/// list. LLVM 23 lacks gfx1250-strict, sm_107, sm_107a and sm_107f; LLVM 22 also lacks gfx1154, gfx1170 to gfx1172,
/// gfx1310, gfx11-7-generic, gfx12-5-generic, gfx13-generic and NVIDIA's names in `f`.
///
/// No rule of this crate drops anything; a tool may use this for a warning.
#[must_use]
pub fn bundler_accepts(name: &str) -> bool {
    match processor_family(name) {
        Some(Family::AmdGcn) => {
            AMDGCN.iter().any(|processor| processor.name == name && !processor.retired)
        }
        Some(Family::R600) => false,
        Some(Family::Intel) => INTEL.contains(&name),
        Some(_) => true,
        None => name == GENERIC,
    }
}

/// Returns the text that `clang-offload-bundler` prints about such a pair with
/// `--debug-only=CodeObjectCompatibility`, up to the IDs, which follow as `` \t[CodeObject: <C>]\t:\t[Target:
/// <T>]`` with a space before the first tab.
///
/// This is LLVM's verdict: for generic and portable code, and between NVIDIA's architectures,
/// it says incompatible.
#[must_use]
pub fn debug_text(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Exact => "Compatible: Exact match:",
        Verdict::SameProcessor | Verdict::FeaturesCompatible { .. } => {
            "Compatible: Target IDs are compatible"
        }
        Verdict::KindMismatch { .. }
        | Verdict::TripleMismatch { .. }
        | Verdict::PortableCovers { .. } => "Incompatible: Kind/Triple mismatch",
        Verdict::ProcessorMismatch { .. }
        | Verdict::UnparsableCodeObject(_)
        | Verdict::UnparsableTarget(_)
        | Verdict::GenericCovers { .. }
        | Verdict::NvidiaCovers { .. }
        | Verdict::IntelCovers { .. } => "Incompatible: Processor mismatch",
        Verdict::TooManyFeatures { .. } => "Incompatible: CodeObject has more features than target",
        Verdict::FeatureMismatch { target: None, .. } => {
            "Incompatible: Value of CodeObject's non-ANY feature is not matching with Target feature's ANY value"
        }
        Verdict::FeatureMismatch { target: Some(_), .. } => {
            "Incompatible: Value of CodeObject's non-ANY feature is not matching with Target feature's non-ANY value"
        }
    }
}
