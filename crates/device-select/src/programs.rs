//! GPUs in what programs print that come with a driver or with Windows.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::device::Device;

/// A display device on the PCI bus, as Windows lists it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Display {
    /// The number of its vendor, four digits in lower case.
    pub(crate) vendor: String,
    /// Its own number.
    pub(crate) device: String,
    /// The words that list it.
    pub(crate) place: String,
}

/// Returns the target IDs in what `nvidia-smi --query-gpu=compute_cap --format=csv,noheader` prints.
pub(crate) fn of_nvidia_smi(printed: &str) -> Vec<String> {
    let ids = printed.lines().map(|line| format!("sm_{}", line.trim().replace('.', "")));
    known(ids)
}

/// Returns the target IDs in what AMD's `hipInfo` prints: a paragraph of names and values for each GPU.
pub(crate) fn of_hip_info(printed: &str) -> Vec<String> {
    let value = |line: &str| Some(line.trim().strip_prefix("gcnArchName:")?.trim().to_owned());
    known(printed.lines().filter_map(value))
}

fn known(ids: impl Iterator<Item = String>) -> Vec<String> {
    ids.filter(|id| Device::parse(id).is_ok()).collect()
}

/// Returns the display devices of Windows in what `pnputil /enum-devices /connected /class Display` prints, or
/// `reg query HKLM\SYSTEM\CurrentControlSet\Enum\PCI /s /v CompatibleIDs`.
///
/// A device is `PCI\VEN_10DE&DEV_2684&SUBSYS_...` in both, whatever the language. The registry lists devices of all classes, and
/// each has a line with the class among its IDs: `PCI\CC_0300`.
pub(crate) fn displays(printed: &str) -> Vec<Display> {
    let mut found: Vec<Display> = Vec::new();
    let mut key = None;
    for line in printed.lines().map(str::trim) {
        if line.starts_with("HKEY_") {
            key = display(line);
        } else if line.starts_with("CompatibleIDs") {
            let is_display = ["CC_0300", "CC_0302", "CC_1200"].iter().any(|id| line.contains(id));
            found.extend(key.take().filter(|_| is_display));
        } else {
            found.extend(display(line));
        }
    }
    found
}

/// Returns the device that a line names.
fn display(line: &str) -> Option<Display> {
    let at = line.find(r"PCI\VEN_")?;
    let rest = line.get(at..)?;
    let vendor = digits(rest.get(8..12)?)?;
    let device = digits(rest.get(12..)?.strip_prefix("&DEV_")?.get(..4)?)?;
    let words = if line.starts_with("HKEY_") { line } else { rest };
    Some(Display { vendor, device, place: words.to_owned() })
}

fn digits(text: &str) -> Option<String> {
    text.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_drivers_print_processors() {
        assert_eq!(of_nvidia_smi("8.6\r\n12.0\r\n"), ["sm_86", "sm_120"]);
        let failed = "NVIDIA-SMI has failed because it couldn't communicate with the driver.\n";
        assert!(of_nvidia_smi(failed).is_empty());
        let printed = "\r\ndevice#                           0\r\nName:                             AMD Radeon RX 7600\r\n\
                       gcnArchName:                      gfx1102\r\npeers:                            \r\n\
                       gcnArchName:                      gfx90a:sramecc+:xnack-\r\ngcnArchName: none\r\n";
        assert_eq!(of_hip_info(printed), ["gfx1102", "gfx90a:sramecc+:xnack-"]);
    }

    #[test]
    fn windows_lists_devices_in_two_forms() {
        let ids = |text| {
            let found = displays(text).into_iter();
            found.map(|one| format!("{}:{}", one.vendor, one.device)).collect::<Vec<_>>()
        };
        let connected = "Microsoft-PnP-Hilfsprogramm\r\n\r\n\
            Instanz-ID:                PCI\\VEN_1002&DEV_7480&SUBSYS_E474148C&REV_CF\\6&1c0&0&00000019\r\n\
            Klassenname:               Display\r\n\r\n\
            Instanz-ID:                ROOT\\DISPLAY\\0000\r\n";
        assert_eq!(ids(connected), ["1002:7480"]);
        let listed = "\r\nHKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Enum\\PCI\\VEN_10DE&DEV_2684&SUBSYS_1&REV_A1\\4&2\r\n\
            \x20   CompatibleIDs    REG_MULTI_SZ    PCI\\VEN_10DE&DEV_2684&REV_A1\\0PCI\\VEN_10DE&CC_030000\\0PCI\\CC_0300\r\n\r\n\
            HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Enum\\PCI\\VEN_10DE&DEV_22BA&SUBSYS_1&REV_A1\\4&3\r\n\
            \x20   CompatibleIDs    REG_MULTI_SZ    PCI\\VEN_10DE&DEV_22BA&REV_A1\\0PCI\\CC_0403\r\n\r\n\
            End of search: 2 match(es) found.\r\n";
        assert_eq!(ids(listed), ["10de:2684"]);
        assert!(displays(listed)[0].place.starts_with("HKEY_LOCAL_MACHINE\\"));
        for text in [
            "",
            "ERROR: no such key",
            "PCI\\VEN_10DE",
            "PCI\\VEN_10DE&DEV_26\u{e9}",
            "PCI\\VEN_1\u{e9}",
        ] {
            assert!(displays(text).is_empty(), "{text}");
        }
    }
}
