//! The metadata of split wheels, as AMD's splitter writes them.

use std::collections::{BTreeMap, BTreeSet};

use device_select::{PackageGroup, PackageLevel};
use gpu_packages::WheelMetadata;

/// The package that finds out which GPUs a machine has.
pub(crate) const BOOTSTRAP: &str = "Requires-Dist: rocm-bootstrap";

/// The placeholder of a GPU in a requirement.
const PLACEHOLDER: &str = "@GFXARCH@";

/// Returns the name of the device package of a group.
pub(super) fn device_name(prefix: &str, group: &PackageGroup) -> String {
    format!("{prefix}-{}", group.name_part())
}

/// Returns the lines of a host wheel: an extra for each GPU, which requires the device wheels of the GPU and its groups that are
/// there, and one for all.
pub(super) fn host_lines(
    prefix: &str,
    version: &str,
    groups: &BTreeMap<String, PackageGroup>,
) -> Vec<String> {
    let requires = |group: &PackageGroup, extra: &str| {
        let name = device_name(prefix, group);
        format!("Requires-Dist: {name} == {version}; extra == \"device-{extra}\"")
    };
    let mut lines = vec![BOOTSTRAP.to_owned()];
    for (key, group) in groups.iter().filter(|(_, group)| group.level() == PackageLevel::Target) {
        lines.push(format!("Provides-Extra: device-{key}"));
        let chain = group.chain();
        let there = chain.iter().filter(|group| groups.contains_key(group.key()));
        lines.extend(there.map(|group| requires(group, key)));
    }
    lines.push("Provides-Extra: device-all".to_owned());
    let all: BTreeSet<String> = groups.values().map(|group| requires(group, "all")).collect();
    lines.extend(all);
    lines
}

/// Returns whether a line at the end of the fields of a host wheel is one of [`host_lines`].
pub(crate) fn is_host_line(line: &str) -> bool {
    let is_device = |extra: &str| extra.starts_with("device-");
    let requires = line.strip_prefix("Requires-Dist: ").and_then(|line| line.split_once("; "));
    let extra = requires.and_then(|(_, marker)| marker.strip_prefix("extra == \""));
    line == BOOTSTRAP
        || line.strip_prefix("Provides-Extra: ").is_some_and(is_device)
        || extra.is_some_and(is_device)
}

/// Returns the metadata of a device wheel.
pub(super) fn device_metadata(
    host: &WheelMetadata,
    prefix: &str,
    group: &PackageGroup,
    requires: &[String],
) -> String {
    let (name, version) = (host.name(), host.version());
    let mut text = format!(
        "Metadata-Version: 2.4\nName: {}\nVersion: {version}\n\
         Summary: AMD device kernels ({}) for {name}\nRequires-Dist: {name} == {version}\n",
        device_name(prefix, group),
        group.display_name(),
    );
    for requirement in requires {
        // Packages with a placeholder are there for single GPUs, whose wheels have them.
        if group.level() == PackageLevel::Target || !requirement.contains(PLACEHOLDER) {
            let requirement = requirement.replace(PLACEHOLDER, group.key());
            text += &format!("Requires-Dist: {requirement}\n");
        }
    }
    text
}
