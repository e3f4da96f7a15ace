//! Architecture names as LLVM reads them.

use super::arm;
use super::meaning::Arch;
use crate::amd_processor::Processor;
use crate::amdgpu::AMDGCN;

/// Name under which `amdgcn` and all `amdgpu…` architectures go.
pub(super) const AMDGPU: &str = "amdgcn";

const NVPTX64: &str = "nvptx64";

/// Each architecture with a closed list of spellings; the first one names it.
const SPELLINGS: &[&[&str]] = &[
    &["i386", "i486", "i586", "i686", "i786", "i886", "i986"],
    &["x86_64", "amd64", "x86_64h"],
    &["powerpc", "ppc", "ppc32"],
    &["powerpcle", "ppcle", "ppc32le"],
    &["powerpc64", "ppu", "ppc64"],
    &["powerpc64le", "ppc64le"],
    &["arm", "xscale"],
    &["armeb", "xscaleeb"],
    &["aarch64", "arm64"],
    &["aarch64_be"],
    &["aarch64_32", "arm64_32"],
    &["arc"],
    &["avr"],
    &["m68k"],
    &["msp430"],
    &["mips", "mipseb", "mipsallegrex"],
    &["mipsel", "mipsallegrexel"],
    &["mips64", "mips64eb", "mipsn32"],
    &["mips64el", "mipsn32el"],
    &["r600"],
    &["riscv32"],
    &["riscv64"],
    &["riscv32be"],
    &["riscv64be"],
    &["hexagon"],
    &["s390x", "systemz"],
    &["sparc"],
    &["sparcel"],
    &["sparcv9", "sparc64"],
    &["tce"],
    &["tcele"],
    &["tcele64"],
    &["xcore"],
    &["nvptx"],
    &["nvptx64"],
    &["amdil"],
    &["amdil64"],
    &["hsail"],
    &["hsail64"],
    &["spir"],
    &["spir64"],
    &["lanai"],
    &["renderscript32"],
    &["renderscript64"],
    &["shave"],
    &["ve"],
    &["wasm32"],
    &["wasm64"],
    &["csky"],
    &["loongarch32"],
    &["loongarch64"],
    &["xtensa"],
    // Plain `bpf` means the host's byte order; all hosts of this format are little-endian.
    &["bpfel", "bpf", "bpf_le"],
    &["bpfeb", "bpf_be"],
];

/// Spellings that carry a sub-architecture in the name: spelling, architecture, sub-architecture.
const WITH_SUB: &[(&str, &str, &str)] = &[
    ("x86_64_lfi", "x86_64", "lfi"),
    ("powerpcspe", "powerpc", "spe"),
    ("arm64e", "aarch64", "arm64e"),
    ("arm64ec", "aarch64", "arm64ec"),
    ("aarch64_lfi", "aarch64", "lfi"),
    ("mipsisa32r6", "mips", "r6"),
    ("mipsr6", "mips", "r6"),
    ("mipsisa32r6el", "mipsel", "r6"),
    ("mipsr6el", "mipsel", "r6"),
    ("mipsisa64r6", "mips64", "r6"),
    ("mips64r6", "mips64", "r6"),
    ("mipsn32r6", "mips64", "r6"),
    ("mipsisa64r6el", "mips64el", "r6"),
    ("mips64r6el", "mips64el", "r6"),
    ("mipsn32r6el", "mips64el", "r6"),
    ("spirv1.5", "spirv", "v1.5"),
    ("spirv1.6", "spirv", "v1.6"),
];

/// Architectures whose name may be followed by a version from a list.
const VERSIONED: &[(&str, &[&str])] = &[
    ("spirv", &[""]),
    ("spirv32", &["", "v1.0", "v1.1", "v1.2", "v1.3", "v1.4", "v1.5", "v1.6"]),
    ("spirv64", &["", "v1.0", "v1.1", "v1.2", "v1.3", "v1.4", "v1.5", "v1.6"]),
    ("dxil", &["", "v1.0", "v1.1", "v1.2", "v1.3", "v1.4", "v1.5", "v1.6", "v1.7", "v1.8", "v1.9"]),
];

/// Returns the architecture a field names, if it names one.
pub(super) fn parse(text: &str) -> Option<Arch<'_>> {
    // Most have one of these two names.
    if let Some(name) = [AMDGPU, NVPTX64].into_iter().find(|name| *name == text) {
        return Some(Arch { name, sub: "" });
    }
    listed(text).or_else(|| open_ended(text))
}

fn listed(text: &str) -> Option<Arch<'static>> {
    for spellings in SPELLINGS {
        if spellings.contains(&text) {
            let name = spellings.first()?;
            return Some(Arch { name, sub: arm::implied_sub(text) });
        }
    }
    for &(spelling, name, sub) in WITH_SUB {
        if spelling == text {
            return Some(Arch { name, sub });
        }
    }
    for &(name, versions) in VERSIONED {
        if let Some(rest) = text.strip_prefix(name)
            && let Some(sub) = versions.iter().find(|version| **version == rest)
        {
            return Some(Arch { name, sub });
        }
    }
    None
}

fn open_ended(text: &str) -> Option<Arch<'_>> {
    if let Some(sub) = text.strip_prefix("amdgpu") {
        return Some(Arch { name: AMDGPU, sub: amdgpu_sub(sub).map_or(sub, |(sub, _)| sub) });
    }
    if text.starts_with("kalimba") {
        return Some(Arch { name: "kalimba", sub: "" });
    }
    arm::parse(text)
}

/// `amdgpu` sub-architectures as the AMDGPU usage guide lists them: each family with its
/// members. gfx810, gfx908, gfx90a and gfx1250-strict are families of their own.
const AMDGPU_FAMILIES: &[(&str, &[&str])] = &[
    ("6", &["6.00", "6.01", "6.02"]),
    ("7", &["7.00", "7.01", "7.02", "7.03", "7.04", "7.05"]),
    ("8", &["8.01", "8.02", "8.03", "8.05"]),
    ("8.10", &[]),
    ("9", &["9.00", "9.02", "9.04", "9.06", "9.09", "9.0c"]),
    ("9.08", &[]),
    ("9.0a", &[]),
    ("9.4", &["9.42", "9.50"]),
    ("10.1", &["10.10", "10.11", "10.12", "10.13"]),
    ("10.3", &["10.30", "10.31", "10.32", "10.33", "10.34", "10.35", "10.36"]),
    ("11", &["11.00", "11.01", "11.02", "11.03", "11.50", "11.51", "11.52", "11.53", "11.54"]),
    ("11.7", &["11.70", "11.71", "11.72"]),
    ("12", &["12.00", "12.01"]),
    ("12.5", &["12.50", "12.51"]),
    ("12.50s", &[]),
    ("13", &["13.10"]),
];

/// Returns the sub-architecture a text names, and the family it is in.
fn amdgpu_sub(text: &str) -> Option<(&'static str, &'static str)> {
    let text = match text {
        "10" => "10.1",
        "9.5" => "9.4",
        other => other,
    };
    AMDGPU_FAMILIES.iter().find_map(|&(family, members)| {
        if family == text {
            return Some((family, family));
        }
        members.iter().find(|member| **member == text).map(|member| (*member, family))
    })
}

/// Returns whether LLVM knows an `amdgpu` sub-architecture, or the text is empty.
pub(super) fn is_known_amdgpu_sub(sub: &str) -> bool {
    sub.is_empty() || amdgpu_sub(sub).is_some()
}

/// Returns whether code for one `amdgpu` sub-architecture is code for the other. An unknown one is equal to itself only.
pub(super) fn amdgpu_subs_fit(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    let family = |sub| amdgpu_sub(sub).map(|(_, family)| family);
    match (a, b) {
        ("", known) | (known, "") => family(known).is_some(),
        _ => family(a) == Some(b) || family(b) == Some(a),
    }
}

/// Returns the name of the processor of an `amdgpu` architecture: `gfx950` for `amdgpu9.50`,
/// `gfx9-4-generic` for `amdgpu9.4`. `None` for families without a generic processor.
pub(crate) fn amdgpu_processor(arch: &str) -> Option<&'static str> {
    let (sub, _) = amdgpu_sub(arch.strip_prefix("amdgpu")?)?;
    let has_members =
        AMDGPU_FAMILIES.iter().any(|(name, members)| *name == sub && !members.is_empty());
    let is_it = |name: &str| match name.strip_prefix("gfx") {
        Some("1250-strict") => sub == "12.50s",
        Some(name) => match (name.strip_suffix("-generic"), has_members) {
            (Some(generic), true) => generic.bytes().eq(sub.bytes().map(|c| match c {
                b'.' => b'-',
                c => c,
            })),
            (None, false) => name.bytes().eq(sub.bytes().filter(|c| *c != b'.')),
            _ => false,
        },
        None => false,
    };
    AMDGCN.iter().map(Processor::name).find(|name| is_it(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Option<(&'static str, &str)> {
        parse(text).map(|arch| (arch.name, arch.sub))
    }

    #[test]
    fn aliases_are_one_architecture() {
        assert_eq!(name("amd64"), name("x86_64"));
        assert_eq!(name("i386"), name("i986"));
        assert_eq!(name("ppc64le"), name("powerpc64le"));
        assert_eq!(name("systemz"), name("s390x"));
        assert_ne!(name("x86_64"), name("i686"));
        assert_ne!(name("powerpcspe"), name("powerpc"));
    }

    #[test]
    fn unknown_names_have_no_architecture() {
        for text in [
            "",
            "unknown",
            "foo",
            "X86_64",
            "x86_64 ",
            "spirv64v2.0",
            "spirv1.4",
            "dxilv2.0",
            "sparc6",
            "é",
        ] {
            assert_eq!(name(text), None, "{text}");
        }
    }

    #[test]
    fn versions_are_sub_architectures() {
        assert_eq!(name("spirv64"), Some(("spirv64", "")));
        assert_eq!(name("spirv64v1.6"), Some(("spirv64", "v1.6")));
        assert_eq!(name("spirv1.5"), Some(("spirv", "v1.5")));
        assert_eq!(name("dxilv1.9"), Some(("dxil", "v1.9")));
        assert_eq!(name("mipsn32r6el"), Some(("mips64el", "r6")));
    }

    #[test]
    fn amdgpu_sub_architectures_are_read() {
        assert_eq!(name("amdgcn"), Some((AMDGPU, "")));
        assert_eq!(name("amdgpu"), Some((AMDGPU, "")));
        assert_eq!(name("amdgpufoo"), Some((AMDGPU, "foo")));
        assert_eq!(name("amdgpu9.06"), Some((AMDGPU, "9.06")));
        assert_eq!(name("amdgpu10"), name("amdgpu10.1"));
        assert_eq!(name("amdgpu9.5"), name("amdgpu9.4"));
        assert_eq!(name("amdgcn9.06"), None);
    }

    #[test]
    fn amdgpu_families_cover_their_members() {
        for (a, b, fits) in [
            ("", "9.06", true),
            ("9", "9.06", true),
            ("9.06", "9.06", true),
            ("9.00", "9.06", false),
            ("9", "9.08", false),
            ("9", "9.0a", false),
            ("9", "9.42", false),
            ("9.4", "9.50", true),
            ("10.1", "10.13", true),
            ("10.1", "10.30", false),
            ("8", "8.10", false),
            ("12", "12.51", false),
            ("11", "11.70", false),
            ("", "12.50s", true),
            ("12.5", "12.50s", false),
            ("12.50", "12.50s", false),
            ("99", "99", true),
            ("99", "", false),
            ("99", "9.06", false),
            ("foo", "", false),
        ] {
            assert_eq!(amdgpu_subs_fit(a, b), fits, "{a} {b}");
            assert_eq!(amdgpu_subs_fit(b, a), fits, "{b} {a}");
        }
    }

    #[test]
    fn architectures_name_their_processors() {
        for (arch, processor) in [
            ("amdgpu9.50", Some("gfx950")),
            ("amdgpu9.06", Some("gfx906")),
            ("amdgpu9.0a", Some("gfx90a")),
            ("amdgpu8.10", Some("gfx810")),
            ("amdgpu12.51", Some("gfx1251")),
            ("amdgpu12.50s", Some("gfx1250-strict")),
            ("amdgpu9", Some("gfx9-generic")),
            ("amdgpu9.5", Some("gfx9-4-generic")),
            ("amdgpu10", Some("gfx10-1-generic")),
            ("amdgpu12.5", Some("gfx12-5-generic")),
            ("amdgpu8", None),
            ("amdgpu", None),
            ("amdgpu12.50-strict", None),
            ("amdgpu99", None),
            ("amdgcn9.06", None),
        ] {
            assert_eq!(amdgpu_processor(arch), processor, "{arch}");
        }
        // All of today's processors have one.
        let all = AMDGPU_FAMILIES
            .iter()
            .flat_map(|(family, members)| core::iter::once(family).chain(*members));
        let found: alloc::collections::BTreeSet<_> =
            all.filter_map(|sub| amdgpu_processor(&alloc::format!("amdgpu{sub}"))).collect();
        let known = AMDGCN.iter().filter(|known| !known.is_retired()).map(Processor::name);
        assert_eq!(found, known.collect());
    }
}
