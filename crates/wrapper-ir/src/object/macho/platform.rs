//! The system that an object is for, as `LC_BUILD_VERSION` has it.

use object::macho;

/// Version of a system: major, minor, patch.
type Version = [u32; 3];

/// The platform and the lowest version of a triple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Platform {
    pub(super) number: macho::Platform,
    version: Version,
}

impl Platform {
    /// Returns the platform of a triple; `None` if its system is not one of Apple's.
    ///
    /// The version is that of the triple, or the first that exists for the machine, as clang 22 has it.
    pub(super) fn new(triple: &str) -> Option<Self> {
        let (arch, rest) = triple.split_once('-')?;
        let x86 = arch.starts_with("x86_64");
        let has = |environment| rest.split('-').any(|part| part == environment);
        let catalyst = has("macabi");
        // There are no such devices with x86-64.
        let simulator = has("simulator") || x86 && !catalyst;
        let (system, version) = rest.split('-').find_map(system)?;
        let (number, first) = match system {
            "darwin" | "macos" => {
                (macho::PLATFORM_MACOS, if x86 { [10, 4, 0] } else { [11, 0, 0] })
            }
            "ios" if catalyst => {
                (macho::PLATFORM_MACCATALYST, if x86 { [13, 1, 0] } else { [14, 0, 0] })
            }
            "ios" if simulator => {
                (macho::PLATFORM_IOSSIMULATOR, if x86 { [5, 0, 0] } else { [14, 0, 0] })
            }
            "ios" => (macho::PLATFORM_IOS, [7, 0, 0]),
            "tvos" if simulator => (macho::PLATFORM_TVOSSIMULATOR, [9, 0, 0]),
            "tvos" => (macho::PLATFORM_TVOS, [9, 0, 0]),
            "watchos" if simulator => {
                (macho::PLATFORM_WATCHOSSIMULATOR, if x86 { [2, 0, 0] } else { [7, 0, 0] })
            }
            "watchos" => (macho::PLATFORM_WATCHOS, [26, 0, 0]),
            "driverkit" => (macho::PLATFORM_DRIVERKIT, [19, 0, 0]),
            // visionOS
            _ if simulator => (macho::PLATFORM_VISIONOSSIMULATOR, [1, 0, 0]),
            _ => (macho::PLATFORM_VISIONOS, [1, 0, 0]),
        };
        let version = if system == "darwin" { version.map(macos) } else { version };
        Some(Self { number, version: version.unwrap_or(first).max(first) })
    }

    pub(super) fn version(self) -> macho::Version {
        let [major, minor, patch] = self.version;
        macho::Version(major << 16 | (minor & 0xff) << 8 | patch & 0xff)
    }
}

/// Returns the system and its version, where there is one, of a part of a triple.
fn system(part: &str) -> Option<(&'static str, Option<Version>)> {
    const NAMES: [(&str, &str); 9] = [
        ("darwin", "darwin"),
        ("macosx", "macos"),
        ("macos", "macos"),
        ("ios", "ios"),
        ("tvos", "tvos"),
        ("watchos", "watchos"),
        ("xros", "xros"),
        ("visionos", "xros"),
        ("driverkit", "driverkit"),
    ];
    NAMES.iter().find_map(|(prefix, name)| Some((*name, version(part.strip_prefix(prefix)?))))
}

/// Returns the version that a text states; numbers that it lacks are 0.
fn version(text: &str) -> Option<Version> {
    let mut version = [0; 3];
    for (number, digits) in version.iter_mut().zip(text.split('.')) {
        *number = digits.parse::<u16>().ok()?.into();
    }
    (version != [0; 3]).then_some(version)
}

/// Returns the macOS of a Darwin.
fn macos([darwin, ..]: Version) -> Version {
    match darwin {
        0..=19 => [10, darwin.saturating_sub(4), 0],
        20..=24 => [darwin.saturating_sub(9), 0, 0],
        _ => [darwin.saturating_add(1), 0, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platforms_and_versions_follow_the_triple() {
        for (triple, number, version) in [
            ("x86_64-apple-darwin", 1, 0x000a_0400),
            ("x86_64-apple-macosx10.15.7", 1, 0x000a_0f07),
            ("x86_64-apple-darwin19.6.0", 1, 0x000a_0f00),
            ("x86_64-apple-darwin20", 1, 0x000b_0000),
            ("arm64-apple-macosx", 1, 0x000b_0000),
            ("arm64-apple-macosx10.9", 1, 0x000b_0000),
            ("arm64-apple-macos14.2", 1, 0x000e_0200),
            ("arm64-apple-darwin25.1", 1, 0x001a_0000),
            ("arm64-apple-ios", 2, 0x0007_0000),
            ("arm64-apple-ios17.0-macabi", 6, 0x0011_0000),
            ("arm64-apple-ios-simulator", 7, 0x000e_0000),
            ("x86_64-apple-ios13.0", 7, 0x000d_0000),
            ("x86_64-apple-ios-macabi", 6, 0x000d_0100),
            ("arm64-apple-xros2.0", 11, 0x0002_0000),
            ("arm64-apple-visionos-simulator", 12, 0x0001_0000),
        ] {
            let platform = Platform::new(triple).unwrap();
            assert_eq!((platform.number.0, platform.version().0), (number, version), "{triple}");
        }
        assert_eq!(Platform::new("x86_64-unknown-windows-macho"), None);
        assert_eq!(Platform::new("arm64-apple-none"), None);
    }
}
