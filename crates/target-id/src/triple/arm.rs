//! ARM's architecture names are not a list but a little language:
//! `(arm | thumb | arm64 | aarch64 …)[eb][v<version>…][eb]`.

use super::meaning::Arch;

/// Version names after the prefix, and the sub-architecture each one is.
const VERSIONS: &[(&[&str], &str)] = &[
    (&["v4t"], "v4t"),
    (&["v5", "v5t"], "v5"),
    (&["v5e", "v5te", "v5tej", "xscale", "iwmmxt", "iwmmxt2"], "v5te"),
    (&["v6", "v6j"], "v6"),
    (&["v6k", "v6hl", "v6kz", "v6z", "v6zk"], "v6k"),
    (&["v6t2"], "v6t2"),
    (&["v6m", "v6-m", "v6sm", "v6s-m"], "v6m"),
    (&["v7", "v7a", "v7-a", "v7hl", "v7l", "v7r", "v7-r"], "v7"),
    (&["v7ve"], "v7ve"),
    (&["v7k"], "v7k"),
    (&["v7m", "v7-m"], "v7m"),
    (&["v7s"], "v7s"),
    (&["v7em", "v7e-m"], "v7em"),
    (&["v8", "v8a", "v8-a", "v8l"], "v8"),
    (&["v8.1a", "v8.1-a"], "v8.1a"),
    (&["v8.2a", "v8.2-a"], "v8.2a"),
    (&["v8.3a", "v8.3-a"], "v8.3a"),
    (&["v8.4a", "v8.4-a"], "v8.4a"),
    (&["v8.5a", "v8.5-a"], "v8.5a"),
    (&["v8.6a", "v8.6-a"], "v8.6a"),
    (&["v8.7a", "v8.7-a"], "v8.7a"),
    (&["v8.8a", "v8.8-a"], "v8.8a"),
    (&["v8.9a", "v8.9-a"], "v8.9a"),
    (&["v8r", "v8-r"], "v8r"),
    (&["v8m.base", "v8-m.base"], "v8m.base"),
    (&["v8m.main", "v8-m.main"], "v8m.main"),
    (&["v8.1m.main", "v8.1-m.main"], "v8.1m.main"),
    (&["v9", "v9a", "v9-a"], "v9"),
    (&["v9.1a", "v9.1-a"], "v9.1a"),
    (&["v9.2a", "v9.2-a"], "v9.2a"),
    (&["v9.3a", "v9.3-a"], "v9.3a"),
    (&["v9.4a", "v9.4-a"], "v9.4a"),
    (&["v9.5a", "v9.5-a"], "v9.5a"),
    (&["v9.6a", "v9.6-a"], "v9.6a"),
    (&["v9.7a", "v9.7-a"], "v9.7a"),
];

fn sub_of(version: &str) -> &'static str {
    VERSIONS.iter().find(|(names, _)| names.contains(&version)).map_or("", |(_, sub)| sub)
}

/// Returns the sub-architecture of a spelling from the closed list.
pub(super) fn implied_sub(spelling: &str) -> &'static str {
    match spelling {
        "xscale" | "xscaleeb" => "v5te",
        // LLVM reads both as names of the version.
        "aarch64" | "arm64" => "v8",
        _ => "",
    }
}

/// Returns the ARM architecture a field names, if it names one.
pub(super) fn parse(text: &str) -> Option<Arch<'static>> {
    let (prefix, little, big) = [
        ("arm64_32", "aarch64_32", "aarch64_32"),
        ("arm64e", "aarch64", "aarch64_be"),
        ("arm64", "aarch64", "aarch64_be"),
        ("arm", "arm", "armeb"),
        ("thumb", "thumb", "thumbeb"),
        ("aarch64_32", "aarch64_32", "aarch64_32"),
        ("aarch64_be", "aarch64_be", "aarch64_be"),
        ("aarch64", "aarch64", "aarch64_be"),
    ]
    .into_iter()
    .find(|(prefix, ..)| text.starts_with(prefix))?;
    let rest = text.strip_prefix(prefix)?;

    // Big-endian is said before or after the version, not both.
    let aarch64_spelling = prefix.starts_with("aarch64");
    let (version, is_big) = if aarch64_spelling {
        (rest, false)
    } else if let Some(version) = rest.strip_prefix("eb") {
        (version, true)
    } else if let Some(version) = rest.strip_suffix("eb") {
        (version, true)
    } else {
        (rest, false)
    };
    if version.contains("eb") {
        return None;
    }
    let mut bytes = version.bytes();
    let starts_like_version = match (bytes.next(), bytes.next()) {
        (None, _) | (Some(_), None) => true,
        (Some(v), Some(digit)) => v == b'v' && digit.is_ascii_digit(),
    };
    if !starts_like_version {
        return None;
    }

    let name = if is_big { big } else { little };
    let sub = sub_of(version);
    if prefix == "thumb" && (version.starts_with("v2") || version.starts_with("v3")) {
        return None;
    }
    // ARMv6-M executes Thumb only.
    let name = match (sub, is_big) {
        ("v6m", true) => "thumbeb",
        ("v6m", false) => "thumb",
        _ => name,
    };
    Some(Arch { name, sub })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Option<(&'static str, &'static str)> {
        parse(text).map(|arch| (arch.name, arch.sub))
    }

    #[test]
    fn versions_and_byte_orders_are_read() {
        assert_eq!(name("armv7"), Some(("arm", "v7")));
        assert_eq!(name("armv7a"), Some(("arm", "v7")));
        assert_eq!(name("armv7eb"), Some(("armeb", "v7")));
        assert_eq!(name("armebv7"), Some(("armeb", "v7")));
        assert_eq!(name("armebv7eb"), None);
        assert_eq!(name("thumbv7em"), Some(("thumb", "v7em")));
        assert_eq!(name("thumbv8m.base"), Some(("thumb", "v8m.base")));
        assert_eq!(name("armv6m"), Some(("thumb", "v6m")));
        assert_eq!(name("thumbv2"), None);
        assert_eq!(name("arm64v8"), Some(("aarch64", "v8")));
    }

    #[test]
    fn odd_names_are_read_as_by_llvm() {
        assert_eq!(name("armv7foo"), Some(("arm", "")));
        assert_eq!(name("armv"), Some(("arm", "")));
        assert_eq!(name("armfoo"), None);
        assert_eq!(name("arm64_32be"), None);
        assert_eq!(name("thumbé"), None);
        assert_eq!(name("x86_64"), None);
    }
}
