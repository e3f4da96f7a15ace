//! Target triples: any text is one; the known ones can be compared and normalised.

pub(crate) mod arch;
mod arm;
mod fields;
mod meaning;
mod normalize;
mod rustc;

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

use meaning::Arch;

/// A target triple, `<arch>-<vendor>-<os>[-<environment>]`, as somebody wrote it.
///
/// Any text is a triple: nothing is rejected, and [`Display`](fmt::Display) gives the text
/// back unchanged. Three-field and four-field forms are both understood; text after the
/// third `-` belongs to the environment. Equality and order compare the text; whether
/// two triples mean compatible targets is [`compatible_with`](Self::compatible_with).
///
/// The rules are LLVM 24's: the rules of LLVM 22 with a few more names and, since LLVM 23, the `amdgpu`
/// architecture with its sub-architectures (`amdgpu9.06`).
///
/// ```
/// use target_id::Triple;
///
/// let triple = Triple::parse("x86_64-linux-gnu");
/// assert_eq!(triple.vendor(), "linux");
/// assert_eq!(triple.normalized().as_str(), "x86_64-unknown-linux-gnu");
/// assert_eq!(Triple::parse("amdgcn-amd-amdhsa").bundle_form(), "amdgcn-amd-amdhsa-");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Triple {
    text: String,
}

impl Triple {
    /// Returns the triple a text is. Never fails.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self { text: text.to_owned() }
    }

    /// Returns the triple that rustc gives LLVM for one of its targets, such as Cargo's `TARGET`. A name that
    /// rustc hands on as it is, or that is not one of its targets, is returned unchanged.
    ///
    /// ```
    /// use target_id::Triple;
    ///
    /// let triple = Triple::from_rustc("riscv64gc-unknown-linux-gnu");
    /// assert_eq!(triple.as_str(), "riscv64-unknown-linux-gnu");
    /// assert_eq!(Triple::from_rustc("aarch64-apple-darwin").as_str(), "arm64-apple-macosx");
    /// ```
    #[must_use]
    pub fn from_rustc(name: &str) -> Self {
        Self { text: rustc::llvm_triple(name).into_owned() }
    }

    /// Returns the whole text, unchanged.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the first field, the architecture as written; empty if absent.
    #[must_use]
    pub fn arch(&self) -> &str {
        self.field(0)
    }

    /// Returns the second field, the vendor as written; empty if absent.
    #[must_use]
    pub fn vendor(&self) -> &str {
        self.field(1)
    }

    /// Returns the third field, the operating system as written (with any version); empty if absent.
    #[must_use]
    pub fn os(&self) -> &str {
        self.field(2)
    }

    /// Returns everything after the third `-`, the environment as written; empty if absent.
    #[must_use]
    pub fn environment(&self) -> &str {
        self.field(3)
    }

    fn field(&self, index: usize) -> &str {
        self.text.splitn(4, '-').nth(index).unwrap_or("")
    }

    /// Returns the triple in LLVM's normal form with exactly four fields.
    ///
    /// Fields that name a known architecture, vendor, operating system or environment are
    /// moved to their places, absent ones become `unknown`, and old spellings of Windows
    /// and Android systems become today's. Fields after the fourth are dropped. The
    /// spelling of the architecture is kept.
    #[must_use]
    pub fn normalized(&self) -> Self {
        Self { text: normalize::normalize(&self.text, 4) }
    }

    /// Returns the triple as `clang-offload-bundler` writes it into bundle entry IDs: the normal
    /// form with exactly four fields, except for operating systems that start with `amdhsa`
    /// the first three fields and an empty fourth one, whatever the environment was.
    ///
    /// The text ends in `-` exactly in the `amdhsa` case; an entry ID continues with
    /// another `-` and the target ID.
    #[must_use]
    pub fn bundle_form(&self) -> String {
        // As the bundler does, look for `amdhsa` before anything has been moved.
        if fields::os(self.os()) == fields::AMDHSA {
            let mut text = normalize::normalize(&self.text, 3);
            text.push('-');
            text
        } else {
            normalize::normalize(&self.text, 4)
        }
    }

    /// Returns the triple as offload binaries and LLVM's command lines have it: the text without the empty fields
    /// at its end that [`bundle_form`](Self::bundle_form) may have, and nothing else changed.
    ///
    /// ```
    /// use target_id::Triple;
    ///
    /// assert_eq!(Triple::parse("amdgcn-amd-amdhsa-").offload_binary_form(), "amdgcn-amd-amdhsa");
    /// assert_eq!(Triple::parse("nvptx64-nvidia-cuda").offload_binary_form(), "nvptx64-nvidia-cuda");
    /// ```
    #[must_use]
    pub fn offload_binary_form(&self) -> &str {
        self.text.trim_end_matches('-')
    }

    /// Returns whether code for one triple is code for the other; symmetric. LLVM's rule.
    ///
    /// The meaning of the fields must agree: architecture and sub-architecture, vendor, operating system without
    /// version, environment and object format. Aliases are equal (`amd64`, `x86_64`); unknown vendors, systems and
    /// environments are all equal to each other and to absent ones. Apple triples ignore the environment, Windows-GNU
    /// triples the vendor, and ARM matches Thumb. `amdgcn` and `amdgpu` are one architecture, and an `amdgpu`
    /// sub-architecture matches itself, its family (`amdgpu9.06` and `amdgpu9`) and triples without one. An unknown one
    /// (`amdgpu99`) matches itself only; in LLVM 23 and 24 not even that, see
    /// [`Options::with_strict_sub_architectures`](crate::Options::with_strict_sub_architectures).
    ///
    /// Unlike in LLVM, two unknown architectures are compatible only if they are spelled
    /// the same. Fields are taken where they stand; nothing is normalised first.
    #[must_use]
    pub fn compatible_with(&self, other: &Self) -> bool {
        let subs_fit = || match (arch::parse(self.arch()), arch::parse(other.arch())) {
            (Some(a), Some(b)) if a.name == arch::AMDGPU => arch::amdgpu_subs_fit(a.sub, b.sub),
            _ => true,
        };
        self.text == other.text || (self.key() == other.key() && subs_fit())
    }

    /// Returns whether this is an AMD GPU of the GCN family: `amdgcn`, or a name that starts with `amdgpu`.
    #[must_use]
    pub fn is_amdgpu(&self) -> bool {
        self.has_arch(&[arch::AMDGPU])
    }

    /// Returns whether this is an NVIDIA GPU: `nvptx` or `nvptx64`.
    #[must_use]
    pub fn is_nvptx(&self) -> bool {
        self.has_arch(&["nvptx", "nvptx64"])
    }

    /// Returns whether this is SPIR-V: `spirv`, `spirv32` or `spirv64`, with or without a version.
    #[must_use]
    pub fn is_spirv(&self) -> bool {
        self.has_arch(&["spirv", "spirv32", "spirv64"])
    }

    /// Returns whether this is SPIR, as which SYCL's compilers label SPIR-V: `spir` or `spir64`.
    #[must_use]
    pub fn is_spir(&self) -> bool {
        self.has_arch(&["spir", "spir64"])
    }

    /// Returns whether this is a processor of a host on which OpenMP can offload to the host itself, as LLVM's libomptarget
    /// does: x86, ARM, POWER, RISC-V, LoongArch, IBM Z.
    #[must_use]
    pub fn is_cpu(&self) -> bool {
        self.has_arch(&[
            "i386",
            "x86_64",
            "arm",
            "aarch64",
            "powerpc64",
            "powerpc64le",
            "riscv64",
            "loongarch64",
            "s390x",
        ])
    }

    /// Returns whether the first field is an architecture LLVM knows. `clang-offload-bundler` takes no other on its
    /// command line.
    #[must_use]
    pub fn is_known_arch(&self) -> bool {
        arch::parse(self.arch()).is_some()
    }

    /// Returns whether this is `amdgpu` with a sub-architecture that LLVM 24 does not know (`amdgpu99`). Such a triple is
    /// compatible with nothing in LLVM 23 and 24, not with itself either.
    pub(crate) fn has_unknown_sub_architecture(&self) -> bool {
        !arch::is_known_amdgpu_sub(self.amdgpu_sub())
    }

    /// Returns whether this is an AMD GPU before GCN, `r600`.
    pub(crate) fn is_r600(&self) -> bool {
        self.has_arch(&["r600"])
    }

    /// Returns whether the operating system is AMD's HSA runtime.
    pub(crate) fn is_amdhsa(&self) -> bool {
        fields::os(self.os()) == fields::AMDHSA
    }

    fn has_arch(&self, names: &[&str]) -> bool {
        arch::parse(self.arch()).is_some_and(|arch| names.contains(&arch.name))
    }

    /// Returns the fields that decide compatibility, except for `amdgpu` sub-architectures, whose relation is not
    /// transitive and therefore not a key.
    pub(crate) fn key(&self) -> Key<'_> {
        let vendor = fields::vendor(self.vendor());
        let os = fields::os(self.os());
        let environment = fields::environment(self.environment());
        let parsed = arch::parse(self.arch());
        let format = fields::format(self.environment());
        let mut key = Key {
            unknown_arch: if parsed.is_some() { "" } else { self.arch() },
            arch: parsed.unwrap_or(Arch { name: "", sub: "" }),
            vendor,
            os,
            environment,
            format: if format.is_empty() { fields::default_format(parsed, os) } else { format },
        };
        key.arch.name = match key.arch.name {
            "thumb" => "arm",
            "thumbeb" => "armeb",
            name => name,
        };
        if key.arch.name == arch::AMDGPU {
            key.arch.sub = "";
        }
        if vendor == "apple" {
            key.environment = "";
            key.format = "";
        } else if os == fields::WINDOWS && environment == "gnu" {
            key.vendor = "";
        }
        key
    }

    /// Returns the sub-architecture of an `amdgpu` triple (`9.06`), empty for everything else.
    pub(crate) fn amdgpu_sub(&self) -> &str {
        arch::parse(self.arch())
            .filter(|arch| arch.name == arch::AMDGPU)
            .map_or("", |arch| arch.sub)
    }
}

/// Two triples with equal keys are compatible, except that `amdgpu` sub-architectures are to
/// be compared on their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key<'a> {
    unknown_arch: &'a str,
    arch: Arch<'a>,
    vendor: &'static str,
    os: &'static str,
    environment: &'static str,
    format: &'static str,
}

/// The whole text, see [`as_str`](Triple::as_str).
impl fmt::Display for Triple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests;
