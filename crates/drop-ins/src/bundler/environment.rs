//! The environment variables of the bundler.

use tool_kit::parallel::Threads;

/// Settings from the environment, which options override.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Environment {
    pub(super) verbose: bool,
    pub(super) compress: bool,
    pub(super) compression_level: Option<i32>,
    /// Version of compressed bundles to write; the newest if nothing is said.
    pub(super) version: Option<ccob::Version>,
    pub(super) warnings: Vec<String>,
}

impl Environment {
    /// Reads the variables of this process.
    pub(super) fn of_process() -> Self {
        Environment::read(|name| Some(std::env::var_os(name)?.to_string_lossy().into_owned()))
    }

    /// Returns how bundles are compressed; options come before variables.
    pub(super) fn compression(
        &self,
        compress: Option<bool>,
        level: Option<i32>,
    ) -> Option<ccob::WriteOptions> {
        compress.unwrap_or(self.compress).then(|| {
            ccob::WriteOptions::default()
                .with_level(level.or(self.compression_level))
                .with_version(self.version.unwrap_or(ccob::Version::V3))
                .with_threads(Threads::default().number())
        })
    }

    /// Reads the variables through `get`.
    pub(super) fn read(get: impl Fn(&str) -> Option<String>) -> Self {
        let is_on = |name| get(name).as_deref() == Some("1");
        if is_on("OFFLOAD_BUNDLER_IGNORE_ENV_VAR") {
            return Environment::default();
        }
        let mut warnings = Vec::new();
        let mut compression_level = None;
        if let Some(text) = get("OFFLOAD_BUNDLER_COMPRESSION_LEVEL") {
            compression_level = text.parse().ok().filter(|_| !text.starts_with('+'));
            if compression_level.is_none() {
                warnings.push(format!(
                    "Warning: Invalid value for OFFLOAD_BUNDLER_COMPRESSION_LEVEL: {text}. \
                     Ignoring it."
                ));
            }
        }
        let mut version = None;
        if let Some(text) = get("COMPRESSED_BUNDLE_FORMAT_VERSION") {
            let number: Option<u16> = text.parse().ok().filter(|_| !text.starts_with('+'));
            version = number.and_then(ccob::Version::from_number);
            // Version 1 is read only.
            version = version.filter(|version| *version != ccob::Version::V1);
            if version.is_none() {
                let valid = if number.is_some() { " Valid values are 2 or 3." } else { "" };
                warnings.push(format!(
                    "Warning: Invalid value for COMPRESSED_BUNDLE_FORMAT_VERSION: {text}.{valid} \
                     Using default version 3."
                ));
            }
        }
        Environment {
            verbose: is_on("OFFLOAD_BUNDLER_VERBOSE"),
            compress: is_on("OFFLOAD_BUNDLER_COMPRESS"),
            compression_level,
            version,
            warnings,
        }
    }
}

#[cfg(test)]
mod tests {
    use ccob::Version;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> Environment {
        Environment::read(|name| {
            variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn switches_are_on_at_1_only() {
        assert_eq!(read(&[]), Environment::default());
        for (value, on) in [("1", true), ("true", false), ("01", false), ("", false)] {
            let environment =
                read(&[("OFFLOAD_BUNDLER_VERBOSE", value), ("OFFLOAD_BUNDLER_COMPRESS", value)]);
            assert_eq!((environment.verbose, environment.compress), (on, on), "{value}");
        }
        let ignored = read(&[
            ("OFFLOAD_BUNDLER_IGNORE_ENV_VAR", "1"),
            ("OFFLOAD_BUNDLER_VERBOSE", "1"),
            ("COMPRESSED_BUNDLE_FORMAT_VERSION", "x"),
        ]);
        assert_eq!(ignored, Environment::default());
    }

    #[test]
    fn levels_are_decimal() {
        for (value, level) in [("1", Some(1)), ("04", Some(4)), ("-7", Some(-7))] {
            let environment = read(&[("OFFLOAD_BUNDLER_COMPRESSION_LEVEL", value)]);
            assert_eq!(environment.compression_level, level);
            assert_eq!(environment.warnings, [""; 0]);
        }
        for value in ["0x2", "", "x", "+5", "99999999999"] {
            let environment = read(&[("OFFLOAD_BUNDLER_COMPRESSION_LEVEL", value)]);
            assert_eq!(environment.compression_level, None);
            assert_eq!(
                environment.warnings,
                [format!(
                    "Warning: Invalid value for OFFLOAD_BUNDLER_COMPRESSION_LEVEL: {value}. \
                     Ignoring it."
                )]
            );
        }
    }

    #[test]
    fn versions_are_2_and_3() {
        for (value, version) in [("2", Version::V2), ("02", Version::V2), ("3", Version::V3)] {
            let environment = read(&[("COMPRESSED_BUNDLE_FORMAT_VERSION", value)]);
            assert_eq!(environment.version, Some(version));
            assert_eq!(environment.warnings, [""; 0]);
        }
        for (value, rest) in [
            ("1", " Valid values are 2 or 3. Using default version 3."),
            ("4", " Valid values are 2 or 3. Using default version 3."),
            ("", " Using default version 3."),
            ("+2", " Using default version 3."),
            ("0x2", " Using default version 3."),
            ("65536", " Using default version 3."),
            ("-2", " Using default version 3."),
        ] {
            let environment = read(&[("COMPRESSED_BUNDLE_FORMAT_VERSION", value)]);
            assert_eq!(environment.version, None);
            assert_eq!(
                environment.warnings,
                [format!(
                    "Warning: Invalid value for COMPRESSED_BUNDLE_FORMAT_VERSION: {value}.{rest}"
                )]
            );
        }
    }
}
