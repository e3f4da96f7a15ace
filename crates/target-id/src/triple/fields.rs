//! Vendor, operating system, environment and object format as LLVM reads them.
//!
//! Every function returns one name per meaning, and the empty text for unknown ones.

use super::meaning::Arch;

/// The result of [`os`] for AMD's HSA runtime.
pub(super) const AMDHSA: &str = "amdhsa";
/// The result of [`os`] for all spellings of Windows.
pub(super) const WINDOWS: &str = "windows";

const VENDORS: &[&str] = &[
    "amd", "apple", "csr", "fsl", "ibm", "img", "intel", "mesa", "mti", "nvidia", "oe", "pc",
    "scei", "sie", "suse", "meta",
];

/// Vendors are known by their exact name.
pub(super) fn vendor(text: &str) -> &'static str {
    match VENDORS.iter().find(|name| **name == text).copied().unwrap_or("") {
        // The same company under two names.
        "sie" => "scei",
        name => name,
    }
}

/// Prefixes, so that versions may follow. No name is a prefix of a later one.
const SYSTEMS: &[&str] = &[
    "darwin",
    "dragonfly",
    "freebsd",
    "fuchsia",
    "ios",
    "kfreebsd",
    "linux",
    "lv2",
    "macos",
    "managarm",
    "netbsd",
    "openbsd",
    "solaris",
    "uefi",
    "win32",
    WINDOWS,
    "zos",
    "haiku",
    "rtems",
    "aix",
    "cuda",
    "nvcl",
    AMDHSA,
    "ps4",
    "ps5",
    "elfiamcu",
    "tvos",
    "watchos",
    "bridgeos",
    "driverkit",
    "xros",
    "visionos",
    "mesa3d",
    "amdpal",
    "hermit",
    "hurd",
    "wasip1",
    "wasip2",
    "wasip3",
    "wasi",
    "emscripten",
    "shadermodel",
    "liteos",
    "serenity",
    "vulkan",
    "cheriotrtos",
    "opencl",
    "chipstar",
    "firmware",
    "qurt",
    "h2",
];

/// Returns the operating system, which is known by the start of the text.
pub(super) fn os(text: &str) -> &'static str {
    match SYSTEMS.iter().find(|name| text.starts_with(**name)).copied().unwrap_or("") {
        "win32" => WINDOWS,
        "visionos" => "xros",
        name => name,
    }
}

/// Prefixes; where several match, the longest counts.
const ENVIRONMENTS: &[&str] = &[
    "eabihf",
    "eabi",
    "gnuabin32",
    "gnuabi64",
    "gnueabihft64",
    "gnueabihf",
    "gnueabit64",
    "gnueabi",
    "gnuf32",
    "gnuf64",
    "gnusf",
    "gnux32",
    "gnu_ilp32",
    "code16",
    "gnut64",
    "gnu",
    "android",
    "muslabin32",
    "muslabi64",
    "musleabihf",
    "musleabi",
    "muslf32",
    "muslsf",
    "muslx32",
    "muslwali",
    "musl",
    "msvc",
    "itanium",
    "cygnus",
    "coreclr",
    "simulator",
    "macabi",
    "pixel",
    "vertex",
    "geometry",
    "hull",
    "domain",
    "compute",
    "library",
    "raygeneration",
    "intersection",
    "anyhit",
    "closesthit",
    "miss",
    "callable",
    "mesh",
    "amplification",
    "rootsignature",
    "ohos",
    "pauthtest",
    "llvm",
    "mlibc",
    "mtia",
];

/// Environments are known by how they start.
pub(super) fn environment(text: &str) -> &'static str {
    ENVIRONMENTS
        .iter()
        .filter(|name| text.starts_with(**name))
        .max_by_key(|name| name.len())
        .copied()
        .unwrap_or("")
}

/// Suffixes of the environment; `xcoff` comes before the `coff` it ends in.
const FORMATS: &[&str] = &["xcoff", "coff", "elf", "goff", "macho", "wasm", "spirv"];

/// Returns the object format, which is known by the end of the environment.
pub(super) fn format(text: &str) -> &'static str {
    FORMATS.iter().find(|name| text.ends_with(**name)).copied().unwrap_or("")
}

/// Returns the object format of a triple that does not name one. `os` is the result of [`os`].
pub(super) fn default_format(arch: Option<Arch<'_>>, os: &str) -> &'static str {
    let darwin = matches!(
        os,
        "darwin" | "macos" | "ios" | "tvos" | "watchos" | "bridgeos" | "driverkit" | "xros"
    );
    match arch.map_or("", |arch| arch.name) {
        "" | "aarch64" | "aarch64_32" | "arm" | "thumb" | "i386" | "x86_64" => match os {
            WINDOWS | "uefi" => "coff",
            _ if darwin => "macho",
            _ => "elf",
        },
        "mipsel" if os == WINDOWS => "coff",
        "powerpc" | "powerpc64" if os == "aix" => "xcoff",
        "powerpc" | "powerpc64" if darwin => "macho",
        "s390x" if os == "zos" => "goff",
        "wasm32" | "wasm64" => "wasm",
        "spirv" | "spirv32" | "spirv64" => "spirv",
        "dxil" => "dxcontainer",
        _ => "elf",
    }
}

/// Returns the architecture that plain `dxil` becomes for a shader model, which is the system of such triples: model
/// 6.3 needs DXIL 1.3. LLVM has no answer for models after 6.9.
pub(super) fn dxil_of_shader_model(os: &str) -> Option<&'static str> {
    const LATEST: &str = "dxilv1.9";
    const BY_MINOR: [&str; 10] = [
        "dxilv1.0", "dxilv1.1", "dxilv1.2", "dxilv1.3", "dxilv1.4", "dxilv1.5", "dxilv1.6",
        "dxilv1.7", "dxilv1.8", LATEST,
    ];
    let version = os.strip_prefix("shadermodel")?;
    if version == "6.x" {
        return Some(LATEST);
    }
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = version.split('.');
    let six =
        parts.next().is_some_and(|major| is_number(major) && major.trim_start_matches('0') == "6");
    match parts.next() {
        Some(minor) if six && is_number(minor) && parts.all(is_number) => {
            BY_MINOR.get(minor.parse::<usize>().ok()?).copied()
        }
        _ => BY_MINOR.first().copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendors_are_exact() {
        assert_eq!(vendor("amd"), "amd");
        assert_eq!(vendor("sie"), vendor("scei"));
        for text in ["", "AMD", "amdx", "unknown", "hsa"] {
            assert_eq!(vendor(text), "");
        }
    }

    #[test]
    fn systems_may_have_versions() {
        assert_eq!(os("macosx11.0"), "macos");
        assert_eq!(os("amdhsa1.2"), AMDHSA);
        assert_eq!(os("win32"), os("windows10"));
        assert_eq!(os("visionos2"), os("xros1"));
        assert_eq!(os("wasip1"), "wasip1");
        assert_eq!(os("wasi"), "wasi");
        assert_eq!(os("mingw32"), "");
        assert_eq!(os("Linux"), "");
    }

    #[test]
    fn no_system_hides_a_later_one() {
        for (index, early) in SYSTEMS.iter().enumerate() {
            for late in &SYSTEMS[index + 1..] {
                assert!(!late.starts_with(early), "{early} hides {late}");
            }
        }
    }

    #[test]
    fn the_longest_environment_counts() {
        assert_eq!(environment("gnueabihft64"), "gnueabihft64");
        assert_eq!(environment("gnueabihf"), "gnueabihf");
        assert_eq!(environment("gnueabix"), "gnueabi");
        assert_eq!(environment("gnuelf"), "gnu");
        assert_eq!(environment("android21"), "android");
        assert_eq!(environment("unknown"), "");
    }

    #[test]
    fn shader_models_have_architectures() {
        for (os, arch) in [
            ("shadermodel", Some("dxilv1.0")),
            ("shadermodel6.3", Some("dxilv1.3")),
            ("shadermodel06.03.2", Some("dxilv1.3")),
            ("shadermodel6.3foo", Some("dxilv1.0")),
            ("shadermodel5.1", Some("dxilv1.0")),
            ("shadermodel6.x", Some("dxilv1.9")),
            ("shadermodel6.10", None),
            ("linux", None),
        ] {
            assert_eq!(dxil_of_shader_model(os), arch, "{os}");
        }
    }

    #[test]
    fn formats_are_suffixes() {
        assert_eq!(format("xcoff"), "xcoff");
        assert_eq!(format("gnucoff"), "coff");
        assert_eq!(format("gnu"), "");
    }
}
