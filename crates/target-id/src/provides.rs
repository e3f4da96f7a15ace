//! The images that a linker takes for one another: LLVM 24's rule for images of offload binaries.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use core::fmt;

use crate::amd_processor::Processor;
use crate::feature::{Feature, Setting};
use crate::processor::GENERIC;
use crate::target::Target;
use crate::target_id::TargetId;
use crate::triple::Triple;

/// The answer of [`provides`]: whether one image may provide code that another one needs, and why not.
///
/// [`Display`](fmt::Display) says it in a few words whose subject is the provided image.
#[derive(Debug)]
pub struct Provision(Answer);

#[derive(Clone, Debug)]
enum Answer {
    /// Same processor and features, compatible triples: both are linked into one image.
    Equivalent,
    /// Same processor; the provided image leaves features open that the requested one sets.
    SameProcessor,
    /// The provided image is for a generic processor that covers the requested one.
    GenericCovers {
        /// The generic processor.
        generic: &'static str,
        /// The requested processor.
        processor: &'static str,
    },
    /// One of both names no particular processor: no name, `generic`, or with an AMD triple an unknown name.
    AnyProcessor,
    /// The triples are not compatible.
    TripleMismatch {
        /// The triple of the provided image, `None` if it has none.
        provided: Option<Triple>,
        /// The requested one.
        requested: Option<Triple>,
    },
    /// The processors differ.
    ProcessorMismatch {
        /// The processor of the provided image.
        provided: String,
        /// The requested one.
        requested: String,
    },
    /// The provided image sets a feature that the requested one sets to the opposite or leaves open.
    FeatureMismatch {
        /// The first such feature in alphabetical order.
        feature: Feature,
        /// The provided image's setting.
        provided: Setting,
        /// The requested setting; `None` is *any*.
        requested: Option<Setting>,
    },
}

impl Provision {
    /// Returns whether the linker takes the provided image, `areTargetsCompatible` of LLVM 24.
    #[must_use]
    pub const fn is_provided(&self) -> bool {
        matches!(
            self.0,
            Answer::Equivalent
                | Answer::SameProcessor
                | Answer::GenericCovers { .. }
                | Answer::AnyProcessor
        )
    }

    /// Returns whether both are linked into one image, `areTargetsEquivalent` of LLVM 24.
    #[must_use]
    pub const fn is_equivalent(&self) -> bool {
        matches!(self.0, Answer::Equivalent)
    }
}

/// Decides whether a linker takes the image `provided`, a member of a static library, say, where `requested` needs code.
///
/// The rule is from `clang-linker-wrapper` of LLVM 24, and is not symmetric. Older releases had a symmetric one, in which
/// `gfx906:xnack+` provided for `gfx906`, and generic processors for nothing. Kinds are not compared. Neither is this
/// [`compatible`](crate::compatible), which says what a device loads: code for `sm_80` does not provide for `sm_86`.
///
/// - Triples must be compatible.
/// - With a triple of AMD's GPUs: the processors are equal, or one of both names none that is known, or `provided` is the
///   generic processor that covers the requested one; and each feature that `provided` sets is set alike by `requested`.
/// - With other triples: the texts of the target IDs are equal, or one is `generic`.
///
/// ```
/// use target_id::{Target, Triple, provides};
///
/// let image = |id| Target::new(None, Some(Triple::parse("amdgcn-amd-amdhsa")), id);
/// assert!(provides(&image("gfx9-generic"), &image("gfx906")).is_provided());
/// assert!(!provides(&image("gfx906"), &image("gfx9-generic")).is_provided());
/// assert!(provides(&image("gfx906"), &image("gfx906:xnack+")).is_provided());
/// assert!(!provides(&image("gfx906:xnack+"), &image("gfx906")).is_provided());
/// ```
#[must_use]
pub fn provides(provided: &Target, requested: &Target) -> Provision {
    Provision(answer(provided, requested))
}

fn answer(provided: &Target, requested: &Target) -> Answer {
    let fits = match (provided.triple(), requested.triple()) {
        (Some(a), Some(b)) => a.compatible_with(b) && !a.has_unknown_sub_architecture(),
        (a, b) => a.is_none() && b.is_none(),
    };
    if !fits {
        let (provided, requested) = (provided.triple().cloned(), requested.triple().cloned());
        return Answer::TripleMismatch { provided, requested };
    }
    if provided.triple().is_some_and(Triple::is_amdgpu) {
        return amdgpu(&Side::of(provided), &Side::of(requested));
    }
    match (provided.id(), requested.id()) {
        (a, b) if a == b => Answer::Equivalent,
        (GENERIC, _) | (_, GENERIC) => Answer::AnyProcessor,
        (a, b) => Answer::ProcessorMismatch { provided: a.to_owned(), requested: b.to_owned() },
    }
}

/// An image of the two, for AMD's GPUs.
struct Side<'a> {
    text: &'a str,
    processor: Option<&'static Processor>,
    /// `None` if the target ID cannot be read.
    id: Option<TargetId>,
}

impl<'a> Side<'a> {
    fn of(target: &'a Target) -> Self {
        let id = target.target_id().ok();
        let text = target.id();
        let name = text.split(':').next().unwrap_or_default();
        Self { text, processor: Processor::amdgpu(name), id }
    }

    fn setting(&self, feature: &Feature) -> Option<Setting> {
        self.processor?;
        self.id.as_ref()?.setting(feature)
    }

    /// Returns whether `sramecc` is always on. LLVM 24 assumes this for these processors, and assumes for none that it is
    /// absent.
    fn has_fixed_sramecc(&self) -> bool {
        const FIXED: [&str; 4] = ["gfx1250", "gfx1250-strict", "gfx1251", "gfx12-5-generic"];
        self.processor.is_some_and(|processor| FIXED.contains(&processor.name()))
    }
}

fn amdgpu(provided: &Side<'_>, requested: &Side<'_>) -> Answer {
    if provided.text == requested.text {
        return Answer::Equivalent;
    }
    let answer = match (provided.processor, requested.processor) {
        (Some(a), Some(b)) if a == b => Answer::SameProcessor,
        (Some(a), Some(b)) if a.covers().contains(&b.name()) => {
            Answer::GenericCovers { generic: a.name(), processor: b.name() }
        }
        (Some(a), Some(b)) => {
            let (provided, requested) = (a.name().to_owned(), b.name().to_owned());
            return Answer::ProcessorMismatch { provided, requested };
        }
        (Some(_), None) if provided.has_fixed_sramecc() => {
            let (feature, provided) = (Feature::Sramecc, Setting::On);
            return Answer::FeatureMismatch { feature, provided, requested: None };
        }
        _ => Answer::AnyProcessor,
    };
    let mut all_equal = true;
    for feature in [Feature::Sramecc, Feature::Xnack] {
        let (ours, theirs) = (provided.setting(&feature), requested.setting(&feature));
        all_equal &= ours == theirs;
        if let Some(setting) = ours.filter(|_| ours != theirs) {
            return Answer::FeatureMismatch { feature, provided: setting, requested: theirs };
        }
    }
    match answer {
        Answer::SameProcessor if all_equal => Answer::Equivalent,
        answer => answer,
    }
}

impl fmt::Display for Provision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equivalent => f.write_str("is an exact match"),
            Self::SameProcessor => f.write_str("leaves features open"),
            Self::GenericCovers { generic, processor } => {
                write!(f, "is generic code, {generic} covers {processor}")
            }
            Self::AnyProcessor => f.write_str("goes with any processor"),
            Self::TripleMismatch { provided, requested } => {
                let text = |triple: &Option<Triple>| {
                    triple.as_ref().map_or("", Triple::as_str).escape_debug().to_string()
                };
                write!(
                    f,
                    "is for the triple \"{}\", not for \"{}\"",
                    text(provided),
                    text(requested)
                )
            }
            Self::ProcessorMismatch { provided, requested } => {
                write!(
                    f,
                    "is for {}, not for {}",
                    provided.escape_debug(),
                    requested.escape_debug()
                )
            }
            Self::FeatureMismatch { feature, provided, requested: Some(requested) } => {
                write!(f, "needs {feature} {provided}, {requested} is requested")
            }
            Self::FeatureMismatch { feature, provided, requested: None } => {
                write!(f, "needs {feature} {provided}, the request leaves it open")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AMD: &str = "amdgcn-amd-amdhsa";
    const CUDA: &str = "nvptx64-nvidia-cuda";

    fn target((triple, id): (&str, &str)) -> Target {
        Target::new(None, Some(Triple::parse(triple)), id)
    }

    fn answer(provided: (&str, &str), requested: (&str, &str)) -> Provision {
        provides(&target(provided), &target(requested))
    }

    /// `clang-linker-wrapper` of LLVM 24 takes members of static libraries by this rule.
    #[test]
    fn answers_are_those_of_the_linker_wrapper() {
        for (provided, requested, is_provided, is_equivalent) in [
            ((AMD, "gfx906"), (AMD, "gfx906"), true, true),
            ((AMD, "gfx906"), (AMD, "gfx906:xnack+"), true, false),
            ((AMD, "gfx906:xnack+"), (AMD, "gfx906"), false, false),
            ((AMD, "gfx906:xnack-"), (AMD, "gfx906:xnack+"), false, false),
            ((AMD, "gfx906:xnack+:sramecc-"), (AMD, "gfx906:sramecc-:xnack+"), true, true),
            ((AMD, "gfx906:xnack+"), (AMD, "gfx906:sramecc-:xnack+"), true, false),
            ((AMD, "gfx9-generic"), (AMD, "gfx906"), true, false),
            ((AMD, "gfx9-generic"), (AMD, "gfx906:xnack+"), true, false),
            ((AMD, "gfx9-generic:xnack+"), (AMD, "gfx906"), false, false),
            (
                ("amdgpu9-amd-amdhsa", "gfx9-generic"),
                ("amdgpu9.06-amd-amdhsa", "gfx906"),
                true,
                false,
            ),
            ((AMD, "gfx906"), (AMD, "gfx9-generic"), false, false),
            ((AMD, "generic"), (AMD, "gfx906"), true, false),
            ((AMD, ""), (AMD, "gfx906"), true, false),
            ((AMD, "gfx906"), (AMD, ""), true, false),
            ((AMD, "gfx906"), (AMD, "generic"), true, false),
            ((AMD, "gfx906:xnack+"), (AMD, "generic"), false, false),
            ((AMD, "gfx900"), (AMD, "gfx906"), false, false),
            ((AMD, "gfx9999"), (AMD, "gfx906"), true, false),
            ((AMD, "gfx9999:xnack+"), (AMD, "gfx906"), true, false),
            ((AMD, "gfx1250"), (AMD, "generic"), false, false),
            ((AMD, "generic"), (AMD, "gfx1250"), true, false),
            ((AMD, "tahiti"), (AMD, "gfx600"), true, true),
            ((AMD, "gfx12-5-generic"), (AMD, "gfx1250"), true, false),
            ((AMD, "gfx12-5-generic"), (AMD, "gfx1251"), true, false),
            ((AMD, "gfx12-5-generic"), (AMD, "gfx1250-strict"), false, false),
            ((AMD, "gfx1250"), (AMD, "gfx1250-strict"), false, false),
            ((AMD, "gfx1250-strict"), (AMD, "gfx1250"), false, false),
            ((AMD, "gfx906"), ("amdgpu9.06-amd-amdhsa", "gfx906"), true, true),
            (
                ("amdgpu9.06-amd-amdhsa", "gfx906"),
                ("amdgpu9.00-amd-amdhsa", "gfx906"),
                false,
                false,
            ),
            (("amdgpu99-amd-amdhsa", "gfx906"), ("amdgpu99-amd-amdhsa", "gfx906"), false, false),
            ((AMD, "gfx906"), ("amdgcn-amd-amdpal", "gfx906"), false, false),
            ((CUDA, "sm_80"), (CUDA, "sm_80"), true, true),
            ((CUDA, "sm_80"), ("nvptx64-nvidia-cuda-", "sm_80"), true, true),
            ((CUDA, "sm_80"), (CUDA, "sm_86"), false, false),
            ((CUDA, "generic"), (CUDA, "sm_86"), true, false),
            ((CUDA, "sm_80"), (CUDA, "generic"), true, false),
            ((CUDA, ""), (CUDA, "sm_86"), false, false),
            ((CUDA, "generic"), (AMD, "gfx906"), false, false),
        ] {
            let found = answer(provided, requested);
            let pair = (found.is_provided(), found.is_equivalent());
            assert_eq!(pair, (is_provided, is_equivalent), "{provided:?} {requested:?}: {found}");
        }
    }

    /// Every generic processor provides for its members and for no other processor.
    #[test]
    fn generic_processors_provide_for_their_members_only() {
        for generic in crate::processor::amdgpu_processors().filter(|one| one.is_generic()) {
            for one in
                crate::processor::amdgpu_processors().filter(|one| one.family() == generic.family())
            {
                let found = answer((AMD, generic.name()), (AMD, one.name())).is_provided();
                let expected = one == generic || generic.covers().contains(&one.name());
                assert_eq!(found, expected, "{} {}", generic.name(), one.name());
            }
        }
    }

    #[test]
    fn answers_print_their_reason() {
        for (provided, requested, words) in [
            ("gfx9-generic", "gfx906", "is generic code, gfx9-generic covers gfx906"),
            ("gfx900", "gfx906", "is for gfx900, not for gfx906"),
            ("gfx906:xnack+", "gfx906", "needs xnack on, the request leaves it open"),
            ("gfx906:xnack+", "gfx906:xnack-", "needs xnack on, off is requested"),
        ] {
            assert_eq!(answer((AMD, provided), (AMD, requested)).to_string(), words);
        }
        let words = answer((AMD, ""), (CUDA, "")).to_string();
        assert_eq!(
            words,
            "is for the triple \"amdgcn-amd-amdhsa\", not for \"nvptx64-nvidia-cuda\""
        );
    }
}
