//! Paths of members.

use std::fmt;

/// The path of a member: the names of the packages that it lies in, from the outermost, and its own.
///
/// Transparent layers have no name: a file of `data.tar.xz` in a Debian package has its installed path only.
/// [`Display`](fmt::Display) joins the names with `:` and escapes control characters.
///
/// ```
/// use gpu_packages::MemberPath;
///
/// let path = MemberPath::from_names(["layer.tar", "usr/lib/libfoo.so"]);
/// assert_eq!(path.to_string(), "layer.tar:usr/lib/libfoo.so");
/// assert_eq!(path.name(), b"usr/lib/libfoo.so");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberPath {
    names: Vec<Vec<u8>>,
}

impl MemberPath {
    /// Creates a path from names.
    pub fn from_names<N: Into<Vec<u8>>>(names: impl IntoIterator<Item = N>) -> Self {
        MemberPath { names: names.into_iter().map(Into::into).collect() }
    }

    /// Returns the names, from the outermost package.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &[u8]> + DoubleEndedIterator {
        self.names.iter().map(Vec::as_slice)
    }

    /// Returns the name of the member in its package; empty for the outermost package.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.names.last().map_or(&[], Vec::as_slice)
    }

    /// Returns the path where the member is installed: that in its package, and of wheels that below site-packages. A package in a
    /// package is installed like any other.
    ///
    /// ```
    /// use gpu_packages::MemberPath;
    ///
    /// let path = MemberPath::from_names(["all.tar", "foo.whl", "foo-1.0.data/platlib/foo/libfoo.so"]);
    /// assert_eq!(path.installed(), b"foo/libfoo.so");
    /// ```
    #[must_use]
    pub fn installed(&self) -> &[u8] {
        let name = self.name();
        let mut parts = name.splitn(3, |byte| *byte == b'/');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(data), Some(b"purelib" | b"platlib" | b"data"), Some(path))
                if data.ends_with(b".data") =>
            {
                path
            }
            _ => name,
        }
    }

    /// Returns the names joined with `:` as they are; bytes that are not UTF-8 become U+FFFD.
    #[must_use]
    pub fn to_string_lossy(&self) -> String {
        let names: Vec<_> = self.names.iter().map(|name| String::from_utf8_lossy(name)).collect();
        names.join(":")
    }

    /// Returns whether this is the path of the outermost package.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the path of a member of this package.
    #[must_use]
    pub fn join(&self, name: &[u8]) -> Self {
        let mut names = self.names.clone();
        names.push(name.to_vec());
        MemberPath { names }
    }
}

impl fmt::Display for MemberPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.names.iter().enumerate() {
            if index > 0 {
                f.write_str(":")?;
            }
            write!(f, "{}", Shown(name))?;
        }
        Ok(())
    }
}

/// A name as text of one line.
pub(crate) struct Shown<'n>(pub(crate) &'n [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                if c.is_control() {
                    write!(f, "{}", c.escape_default())?;
                } else {
                    fmt::Write::write_char(f, c)?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Returns why a name is not one that a package should have, if so.
///
/// ```
/// use gpu_packages::unsafe_name;
///
/// assert_eq!(unsafe_name(b"pkg/libfoo.so"), None);
/// assert_eq!(unsafe_name(b"a/../../etc/passwd"), Some("has '..'"));
/// ```
#[must_use]
pub fn unsafe_name(name: &[u8]) -> Option<&'static str> {
    if name.is_empty() {
        return Some("is empty");
    }
    if name.starts_with(b"/") {
        return Some("is absolute");
    }
    if name.contains(&b'\\') {
        return Some("has a backslash");
    }
    if let [letter, b':', ..] = name
        && letter.is_ascii_alphabetic()
    {
        return Some("has a drive letter");
    }
    if name.split(|&byte| byte == b'/').any(|part| part == b"..") {
        return Some("has '..'");
    }
    if name.iter().any(|&byte| byte < 0x20 || byte == 0x7f) {
        return Some("has a control character");
    }
    None
}

/// Takes `./` away from the start, as often as it is there.
pub(crate) fn without_dot(mut name: &[u8]) -> &[u8] {
    while let Some(rest) = name.strip_prefix(b"./") {
        let slashes = rest.iter().take_while(|&&byte| byte == b'/').count();
        name = rest.split_at(slashes).1;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_installed_below_one_directory() {
        let path = |names: &[&str]| {
            let path = MemberPath::from_names(names.iter().copied());
            String::from_utf8_lossy(path.installed()).into_owned()
        };
        assert_eq!(path(&["torch/lib/a.so"]), "torch/lib/a.so");
        assert_eq!(path(&["torch-2.9.data/platlib/torch/a.so"]), "torch/a.so");
        assert_eq!(path(&["a.data"]), "a.data");
        assert_eq!(path(&["w/core.whl", "torch/a.so"]), "torch/a.so");
        assert_eq!(path(&["a.tar", "b.whl", "b-1.data/purelib/b.so"]), "b.so");
        assert_eq!(path(&["k/x_gfx90a:xnack+.kpack"]), "k/x_gfx90a:xnack+.kpack");
    }
}
