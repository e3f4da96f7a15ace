//! File names of wheels.

use std::fmt;

use crate::error::{Error, ErrorKind};

/// The file name of a wheel, in its parts. Variants of a wheel (PEP 825, a draft) have labels.
///
/// ```
/// use gpu_packages::WheelName;
///
/// let name = WheelName::parse("torch-2.10.0-cp311-cp311-linux_x86_64-rocm7.whl")?;
/// assert_eq!((name.build(), name.label()), (None, Some("rocm7")));
/// let name = name.with_build("1gfx942")?;
/// assert_eq!(name.to_string(), "torch-2.10.0-1gfx942-cp311-cp311-linux_x86_64-rocm7.whl");
/// # Ok::<(), gpu_packages::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WheelName {
    name: String,
    version: String,
    build: Option<String>,
    /// Python, ABI and platform.
    tags: [String; 3],
    label: Option<String>,
}

impl WheelName {
    /// Reads a file name. A third part of six is a build tag if it starts with a digit, as a build tag must and no Python tag does.
    /// Otherwise the last of six is a label: of `a-1-rc-py3-none-any.whl`, which has a build tag that no wheel may have, it is `any`. Seven
    /// parts have both. Source: PEP 825 (draft of August 2026) and the specification of the binary distribution format.
    ///
    /// # Errors
    ///
    /// [`Malformed`](ErrorKind::Malformed) if the name is not one of a wheel.
    pub fn parse(name: &str) -> Result<Self, Error> {
        let parts = name.strip_suffix(".whl").into_iter().flat_map(|stem| stem.split('-'));
        let parts: Vec<&str> = parts.collect();
        let (rest, build, tags, label) = match parts[..] {
            [name, version, python, abi, platform] => {
                ([name, version], None, [python, abi, platform], None)
            }
            [name, version, build, python, abi, platform] if starts_build(build) => {
                ([name, version], Some(build), [python, abi, platform], None)
            }
            [name, version, python, abi, platform, label] if is_label(label) => {
                ([name, version], None, [python, abi, platform], Some(label))
            }
            [name, version, build, python, abi, platform, label]
                if starts_build(build) && is_label(label) =>
            {
                ([name, version], Some(build), [python, abi, platform], Some(label))
            }
            _ => {
                let text = format!(
                    "expected the file name of a wheel, \
                     NAME-VERSION(-BUILD)-PYTHON-ABI-PLATFORM(-LABEL).whl, found '{name}'"
                );
                return Err(Error::new(ErrorKind::Malformed, text));
            }
        };
        let [name, version] = rest.map(str::to_owned);
        let tags = tags.map(str::to_owned);
        let (build, label) = (build.map(str::to_owned), label.map(str::to_owned));
        Ok(WheelName { name, version, build, tags, label })
    }

    /// Returns the name with a build tag, in the place of the one that it has.
    ///
    /// # Errors
    ///
    /// [`Malformed`](ErrorKind::Malformed) unless the tag is a digit, then letters, digits, `_` and `.`.
    pub fn with_build(self, build: &str) -> Result<Self, Error> {
        check_build(build)?;
        Ok(WheelName { build: Some(build.to_owned()), ..self })
    }

    /// Returns the name with the label of a variant, in the place of the one that it has; without one for `None`.
    ///
    /// # Errors
    ///
    /// [`Malformed`](ErrorKind::Malformed) unless the label is of `a` to `z`, digits, `_` and `.`.
    pub fn with_label(self, label: Option<&str>) -> Result<Self, Error> {
        if let Some(label) = label.filter(|label| !is_label(label)) {
            let text = format!(
                "expected a label of lower-case letters, digits, '_' and '.', found '{label}'"
            );
            return Err(Error::new(ErrorKind::Malformed, text));
        }
        Ok(WheelName { label: label.map(str::to_owned), ..self })
    }

    /// Returns the name of the distribution, with `_` for `-`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the version of the distribution.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the build tag, if there is one.
    #[must_use]
    pub fn build(&self) -> Option<&str> {
        self.build.as_deref()
    }

    /// Returns the tags of Python, of its ABI and of the platform.
    #[must_use]
    pub fn tags(&self) -> [&str; 3] {
        self.tags.each_ref().map(String::as_str)
    }

    /// Returns the label of a variant, if there is one.
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }
}

impl fmt::Display for WheelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WheelName { name, version, build, tags, label } = self;
        write!(f, "{name}-{version}")?;
        let build = build.iter();
        build.chain(tags).chain(label).try_for_each(|part| write!(f, "-{part}"))?;
        f.write_str(".whl")
    }
}

/// Returns whether a part is a build tag and no Python tag, whatever follows the digit.
fn starts_build(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

fn is_build(text: &str) -> bool {
    starts_build(text)
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
}

pub(crate) fn is_label(text: &str) -> bool {
    let is_part = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'_' | b'.');
    !text.is_empty() && text.bytes().all(is_part)
}

/// Fails unless a text is a build tag.
pub(crate) fn check_build(build: &str) -> Result<(), Error> {
    if is_build(build) {
        return Ok(());
    }
    let text = format!(
        "expected a build tag of a digit, then letters, digits, '_' and '.', found '{build}'"
    );
    Err(Error::new(ErrorKind::Malformed, text))
}

#[cfg(test)]
mod tests {
    use super::WheelName;

    #[test]
    fn parts_are_told_apart_by_their_form() {
        let parts = |text: &str| {
            let name = WheelName::parse(text).ok()?;
            assert_eq!(name.to_string(), text);
            Some((name.build().map(str::to_owned), name.label().map(str::to_owned)))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(parts("a-1-py3-none-any.whl"), Some((None, None)));
        assert_eq!(parts("a-1-2b-py3-none-any.whl"), Some((some("2b"), None)));
        // Tools write such build tags, too. No Python tag starts with a digit.
        assert_eq!(parts("a-1-2+b-py3-none-any.whl"), Some((some("2+b"), None)));
        assert_eq!(parts("a-1-py3-none-any-x86_64.v3.whl"), Some((None, some("x86_64.v3"))));
        assert_eq!(parts("a-1-2-py3-none-any-null.whl"), Some((some("2"), some("null"))));
        // No digit, no build tag.
        assert_eq!(parts("a-1-rc-py3-none-any.whl"), Some((None, some("any"))));
        // A label has no capital letters.
        for wrong in
            ["a-1-py3-none-any-ROCm.whl", "a-1-b-py3-none-any-x.whl", "a-1-py3-none-any-.whl"]
        {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
        for wrong in ["a-1.whl", "a-1-py3-none-any.zip", "a-1-2-py3-none-any-x-y.whl"] {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
    }
}
