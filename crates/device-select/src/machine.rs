//! The GPUs of a machine, in the words of its operating system.

use alloc::format;
use alloc::string::String;

use crate::needs::Version;

/// Returns the processor in a node of the topology of AMD's kernel driver, KFD; `None` for CPUs.
///
/// `properties` is the text of `/sys/class/kfd/kfd/topology/nodes/N/properties`: lines of a key and a decimal number.
/// It does not show whether xnack and sramecc are on. The rule is that of LLVM's `offload-arch` and of ROCm.
///
/// ```
/// use device_select::kfd_processor;
///
/// let node = "cpu_cores_count 0\nsimd_count 440\ngfx_target_version 90010\n";
/// assert_eq!(kfd_processor(node).as_deref(), Some("gfx90a"));
/// assert_eq!(kfd_processor("cpu_cores_count 64\ngfx_target_version 0\n"), None);
/// ```
#[must_use]
pub fn kfd_processor(properties: &str) -> Option<String> {
    /// The version of gfx1250, whose first silicon has a processor of its own.
    const GFX1250: u64 = 12_05_00;
    let value = |key: &str| {
        let mut pairs = properties.lines().filter_map(|line| line.trim().split_once(' '));
        pairs.find(|(name, _)| *name == key).and_then(|(_, value)| value.trim().parse::<u64>().ok())
    };
    let version = value("gfx_target_version").filter(|version| *version > 0)?;
    let (major, minor, stepping) = (version / 10_000, version / 100 % 100, version % 100);
    let revision = value("capability").map(|capability| capability >> 22 & 0xf);
    let strict = if version == GFX1250 && revision == Some(0) { "-strict" } else { "" };
    Some(format!("gfx{major}{minor}{stepping:x}{strict}"))
}

/// Returns the version of NVIDIA's kernel driver from the text of `/proc/driver/nvidia/version`.
///
/// ```
/// use device_select::{Version, driver_version};
///
/// let text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\nGCC version: gcc 15\n";
/// assert_eq!(driver_version(text), Some(Version::new(580, 159)));
/// ```
#[must_use]
pub fn driver_version(text: &str) -> Option<Version> {
    let line = text.lines().find(|line| line.starts_with("NVRM version:"))?;
    let is_version =
        |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    line.split_whitespace().find(is_version)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_named() {
        for (version, name) in [
            (80_003, "gfx803"),
            (90_000, "gfx900"),
            (90_010, "gfx90a"),
            (90_012, "gfx90c"),
            (90_402, "gfx942"),
            (90_500, "gfx950"),
            (100_306, "gfx1036"),
            (110_000, "gfx1100"),
            (110_501, "gfx1151"),
            (120_001, "gfx1201"),
        ] {
            let node = format!("simd_count 64\ngfx_target_version {version}\ncapability 0\n");
            assert_eq!(kfd_processor(&node).as_deref(), Some(name));
        }
    }

    #[test]
    fn first_silicon_of_gfx1250_has_a_name_of_its_own() {
        let node = |capability: u64| {
            let text = format!(
                "capability2 4194304\ncapability {capability}\ngfx_target_version 120500\n"
            );
            kfd_processor(&text)
        };
        assert_eq!(node(0x28_0000).as_deref(), Some("gfx1250-strict"));
        assert_eq!(node(1 << 22).as_deref(), Some("gfx1250"));
        assert_eq!(kfd_processor("gfx_target_version 120500").as_deref(), Some("gfx1250"));
    }

    #[test]
    fn nodes_without_a_gpu_have_no_processor() {
        for text in ["", "gfx_target_version 0", "gfx_target_version x", "gfx_target_version"] {
            assert_eq!(kfd_processor(text), None);
        }
    }
}
