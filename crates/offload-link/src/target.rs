//! The target of a device link, and the code that may go into it.

use std::collections::HashSet;
use std::fmt;

use target_id::Triple;

/// Target of a device link: a triple and a processor, or a target ID, both as the compiler wrote them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkTarget {
    triple: String,
    arch: String,
}

/// The relation of code to the target it is linked for.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fit {
    /// Both have the same triple and target ID.
    Same,
    /// One of them is `generic`: every target of the triple.
    Generic,
    /// The processor is the same, and the code needs no target feature that the target does not have.
    Features,
}

/// The architecture that means every target of a triple.
const GENERIC: &str = "generic";

impl LinkTarget {
    /// Creates a target.
    #[must_use]
    pub fn new(triple: impl Into<String>, arch: impl Into<String>) -> Self {
        LinkTarget { triple: triple.into(), arch: arch.into() }
    }

    /// Returns the triple.
    #[must_use]
    pub fn triple(&self) -> &str {
        &self.triple
    }

    /// Returns the processor or target ID: `gfx90a:xnack+`, `sm_90`, `generic`, or nothing.
    #[must_use]
    pub fn arch(&self) -> &str {
        &self.arch
    }

    /// Returns the processor that the device linker is told: none for code for every target.
    #[must_use]
    pub fn processor(&self) -> &str {
        if self.is_generic() { "" } else { &self.arch }
    }

    /// Returns the architecture, which is the first part of the triple.
    #[must_use]
    pub fn architecture(&self) -> &str {
        self.triple.split('-').next().unwrap_or("")
    }

    /// Returns whether devices of this target are CPUs: their images are shared libraries, linked with those of the host.
    #[must_use]
    pub fn is_cpu(&self) -> bool {
        let triple = Triple::parse(&self.triple);
        !(triple.is_amdgpu() || triple.is_nvptx() || triple.is_spirv())
    }

    pub(crate) fn is_generic(&self) -> bool {
        self.arch == GENERIC
    }

    pub(crate) fn is_amdgpu(&self) -> bool {
        Triple::parse(&self.triple).is_amdgpu()
    }

    /// Returns the number of target features that the target ID names.
    pub(crate) fn features(&self) -> usize {
        self.arch.matches(':').count()
    }

    /// Returns how code for this target fits into an image for another; `None` if it does not.
    ///
    /// Triples and processors are compared as text. Code for `gfx90a` fits `gfx90a:xnack+`, not the other way round.
    #[must_use]
    pub fn fits(&self, image: &LinkTarget) -> Option<Fit> {
        if self.triple != image.triple {
            return None;
        }
        if self.arch == image.arch {
            return Some(Fit::Same);
        }
        if self.is_generic() || image.is_generic() {
            return Some(Fit::Generic);
        }
        if !self.has_processor_of(image) {
            return None;
        }
        let named: HashSet<_> = image.arch.split(':').skip(1).collect();
        let fits = self.arch.split(':').skip(1).all(|feature| named.contains(feature));
        fits.then_some(Fit::Features)
    }

    /// Returns whether both are for the same AMD processor, whatever features they name.
    pub(crate) fn has_processor_of(&self, other: &LinkTarget) -> bool {
        let [own, others] = [self, other].map(|target| target.arch.split(':').next());
        own == others && self.triple == other.triple && self.is_amdgpu()
    }

    /// Returns whether `clang` can link device code for the architecture.
    pub(crate) fn is_linkable(&self) -> bool {
        let known = [
            "nvptx",
            "nvptx64",
            "amdgcn",
            "x86",
            "i386",
            "i486",
            "i586",
            "i686",
            "x86_64",
            "amd64",
            "aarch64",
            "aarch64_be",
            "arm64",
            "ppc64",
            "powerpc64",
            "ppc64le",
            "powerpc64le",
            "spirv64",
            "systemz",
            "s390x",
            "loongarch64",
        ];
        known.contains(&self.architecture())
            || self.is_amdgpu()
            || self.architecture().starts_with("spirv64")
    }
}

impl fmt::Display for LinkTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.arch.is_empty() {
            f.write_str(&self.triple)
        } else {
            write!(f, "{} {}", self.triple, self.arch)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(triple: &str, code: &str, image: &str) -> Option<Fit> {
        LinkTarget::new(triple, code).fits(&LinkTarget::new(triple, image))
    }

    #[test]
    fn code_fits_images_with_its_features() {
        let amd = "amdgcn-amd-amdhsa";
        for (code, image, expected) in [
            ("gfx90a", "gfx90a", Some(Fit::Same)),
            ("gfx90a", "gfx90a:xnack+", Some(Fit::Features)),
            ("gfx90a:sramecc+", "gfx90a:sramecc+:xnack-", Some(Fit::Features)),
            ("gfx90a:xnack+", "gfx90a", None),
            ("gfx90a:xnack+", "gfx90a:xnack-", None),
            ("gfx90a", "gfx908", None),
            ("gfx11-generic", "gfx1100", None),
            ("generic", "gfx90a", Some(Fit::Generic)),
            ("gfx90a", "generic", Some(Fit::Generic)),
            ("", "gfx90a", None),
            ("", "", Some(Fit::Same)),
        ] {
            assert_eq!(fit(amd, code, image), expected, "{code} in {image}");
        }
        assert_eq!(fit("nvptx64-nvidia-cuda", "sm_90", "sm_90a"), None);
        assert_eq!(fit("nvptx64-nvidia-cuda", "sm_90", "sm_90:x"), None);
        let host = LinkTarget::new("x86_64-pc-linux-gnu", "generic");
        assert_eq!(host.fits(&LinkTarget::new("x86_64-unknown-linux-gnu", "generic")), None);
    }
}
