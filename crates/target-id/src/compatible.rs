//! Is this code object usable for that target?

use alloc::borrow::ToOwned;
use alloc::vec::Vec;

use crate::amd_processor::Family;
use crate::feature::Feature;
use crate::intel::IntelGpu;
use crate::kind::OffloadKind;
use crate::nvidia::NvidiaArch;
use crate::processor::{AMDGCNSPIRV, GENERIC, processor_family};
use crate::target::Target;
use crate::target_id::TargetId;
use crate::triple::Triple;
use crate::verdict::Verdict;

/// Options of [`compatible_with_options`]; [`Default`] is what `clang-offload-bundler` does without options.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    hip_openmp: bool,
    strict_sub_architectures: bool,
}

impl Options {
    /// Lets OpenMP targets load HIP code objects and the reverse, as `--hip-openmp-compatible` does. Default: `false`.
    #[must_use]
    pub fn with_hip_openmp(mut self, hip_openmp: bool) -> Self {
        self.hip_openmp = hip_openmp;
        self
    }

    /// Lets a triple with an unknown sub-architecture (`amdgpu99`) be compatible with nothing, not with itself either, as in
    /// LLVM. Default: `false`, it is compatible with itself.
    #[must_use]
    pub fn with_strict_sub_architectures(mut self, strict: bool) -> Self {
        self.strict_sub_architectures = strict;
        self
    }
}

/// Decides whether `code_object` can be used for `target`; not symmetric.
///
/// [`Verdict::is_strict`] is the rule of `clang-offload-bundler`:
///
/// 1. Equal kinds, compatible triples and equal target ID texts: yes.
/// 2. Kinds or triples that are not compatible: no.
/// 3. Target IDs that cannot be read for their triple, or different processors: no.
/// 4. The code object sets more features than the target: no.
/// 5. Each feature the code object sets must be set alike by the target. So a code object
///    that leaves a feature open fits all targets; one that sets it fits only targets that
///    set it, not targets that leave it open.
///
/// [`Verdict::is_compatible`] adds generic processors (AMDGPU usage guide), portable code, and code for other NVIDIA
/// architectures ([`NvidiaArch::runs_on`]) and Intel GPUs ([`IntelGpu::runs_on`], for `sycl` by name only). A processor
/// `compute_80` is PTX, as in the options of NVIDIA's compiler; containers call PTX `sm_80` and mark it otherwise.
///
/// The bundler brings the targets of its command line to
/// [`bundle_form`](Triple::bundle_form) first, and drops target IDs whose processor it does
/// not know ([`bundler_accepts`](crate::llvm::bundler_accepts)). This function does neither:
/// texts are compared as they are, and processors unknown to this crate by name.
#[must_use]
pub fn compatible(code_object: &Target, target: &Target) -> Verdict {
    compatible_with_options(code_object, target, Options::default())
}

/// Compares as [`compatible`] does, with options.
#[must_use]
pub fn compatible_with_options(code_object: &Target, target: &Target, options: Options) -> Verdict {
    let kinds = code_object.kind().zip(target.kind());
    let triples = code_object.triple().zip(target.triple());

    let same_kind = kinds.is_none_or(|(a, b)| a == b);
    let is_unknown =
        |triple: &Triple| options.strict_sub_architectures && triple.has_unknown_sub_architecture();
    let fitting_triple = triples.is_none_or(|(a, b)| a.compatible_with(b) && !is_unknown(a));
    if same_kind && fitting_triple && code_object.id() == target.id() {
        return Verdict::Exact;
    }
    if let Some((a, b)) = kinds
        && !a.compatible_with(b, options.hip_openmp)
    {
        return Verdict::KindMismatch { code_object: a.clone(), target: b.clone() };
    }
    if let Some(verdict) = portable(code_object, target) {
        return verdict;
    }
    if let Some((a, b)) = triples
        && !fitting_triple
    {
        return Verdict::TripleMismatch { code_object: a.clone(), target: b.clone() };
    }
    match (code_object.target_id(), target.target_id()) {
        (Err(error), _) => Verdict::UnparsableCodeObject(error),
        (_, Err(error)) => Verdict::UnparsableTarget(error),
        (Ok(a), Ok(b)) => {
            let on_amdgpu = [code_object, target]
                .iter()
                .any(|side| side.triple().is_some_and(Triple::is_amdgpu));
            match compare_ids(&a, &b, on_amdgpu) {
                // The SYCL runtime compares names.
                Verdict::IntelCovers { code_object: code, target: gpu }
                    if code != gpu && code_object.kind() == Some(&OffloadKind::Sycl) =>
                {
                    processor_mismatch(&a, &b)
                }
                verdict => verdict,
            }
        }
    }
}

/// Returns the verdict about portable code. The triples differ by nature, so this comes before their comparison.
fn portable(code_object: &Target, target: &Target) -> Option<Verdict> {
    let id = target.target_id().ok()?;
    let covered = if code_object.id() == AMDGCNSPIRV {
        is_portable_amd(code_object, target, &id)
    } else {
        is_portable_intel(code_object, target, &id)
    };
    covered.then(|| Verdict::PortableCovers { processor: id.processor().to_owned() })
}

fn is_portable_amd(code_object: &Target, target: &Target, id: &TargetId) -> bool {
    let for_amd = |triple: &Triple| triple.is_spirv() && triple.vendor() == "amd";
    let is_device = |triple: &Triple| triple.is_amdgpu() && triple.is_amdhsa();
    let is_processor = match id.processor_info() {
        Some(info) => info.family() == Family::AmdGcn && !info.is_generic(),
        None => id.processor().starts_with("gfx"),
    };
    is_processor
        && code_object.triple().is_none_or(for_amd)
        && target.triple().is_none_or(is_device)
}

/// Returns whether this is SPIR-V of SYCL or OpenMP, by its triple, for a processor of Intel's.
fn is_portable_intel(code_object: &Target, target: &Target, id: &TargetId) -> bool {
    let is_portable =
        |triple: &Triple| (triple.is_spirv() || triple.is_spir()) && triple.vendor() != "amd";
    let name = id.processor();
    matches!(code_object.id(), "" | GENERIC)
        && code_object.triple().is_some_and(is_portable)
        && target.triple().is_none_or(is_portable)
        && (processor_family(name) == Some(Family::Intel) || name.starts_with("intel_gpu_"))
}

fn compare_ids(code_object: &TargetId, target: &TargetId, on_amdgpu: bool) -> Verdict {
    let name = |id| processor_for_comparison(id, on_amdgpu);
    if name(code_object) == name(target) {
        return match compare_features(code_object, target) {
            Ok(any) if any.is_empty() => Verdict::SameProcessor,
            Ok(any) => Verdict::FeaturesCompatible { any },
            Err(verdict) => verdict,
        };
    }
    if let (Some(generic), Some(processor)) =
        (code_object.processor_info(), target.processor_info())
        && generic.covers().contains(&processor.name())
    {
        return match compare_features(code_object, target) {
            Ok(any) => {
                Verdict::GenericCovers { generic: generic.name(), processor: processor.name(), any }
            }
            Err(verdict) => verdict,
        };
    }
    if let (Some(code), Some(device)) =
        (NvidiaArch::from_name(code_object.processor()), NvidiaArch::from_name(target.processor()))
        && code.runs_on(device)
    {
        return Verdict::NvidiaCovers { code_object: code, target: device };
    }
    if let (Some(code), Some(gpu)) =
        (IntelGpu::find(code_object.processor()), IntelGpu::find(target.processor()))
        && (code == gpu || code.runs_on(gpu))
    {
        return Verdict::IntelCovers { code_object: code, target: gpu };
    }
    processor_mismatch(code_object, target)
}

fn processor_mismatch(code_object: &TargetId, target: &TargetId) -> Verdict {
    Verdict::ProcessorMismatch {
        code_object: code_object.processor().to_owned(),
        target: target.processor().to_owned(),
    }
}

/// Returns the processor as LLVM 23 compares it: `generic` as gfx600 with `amdgcn` triples, `generic-hsa` as gfx700.
fn processor_for_comparison(id: &TargetId, on_amdgpu: bool) -> &str {
    match id.processor() {
        GENERIC if on_amdgpu => "gfx600",
        "generic-hsa" if on_amdgpu => "gfx700",
        name => name,
    }
}

/// Returns the features that the target sets and the code object leaves open, if the others agree.
fn compare_features(code_object: &TargetId, target: &TargetId) -> Result<Vec<Feature>, Verdict> {
    let more = code_object.features().len() > target.features().len();
    let mut settings = target.features().peekable();
    let mut any = Vec::new();
    let mut mismatch = None;
    for (feature, setting) in code_object.features() {
        // Both are sorted, so one walk finds all pairs.
        while let Some((open, _)) = settings.next_if(|(other, _)| *other < feature) {
            any.push(open.clone());
        }
        let theirs = settings.next_if(|(other, _)| *other == feature).map(|(_, theirs)| theirs);
        if more && theirs.is_none() {
            return Err(Verdict::TooManyFeatures {
                feature: feature.clone(),
                code_object: setting,
            });
        }
        if theirs != Some(setting) && mismatch.is_none() {
            let feature = feature.clone();
            mismatch =
                Some(Verdict::FeatureMismatch { feature, code_object: setting, target: theirs });
        }
    }
    any.extend(settings.map(|(open, _)| open.clone()));
    mismatch.map_or(Ok(any), Err)
}
