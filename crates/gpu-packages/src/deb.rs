//! The records of Debian packages.

use std::collections::HashMap;
use std::fmt;

use crate::error::{Error, ErrorKind};
use crate::hash::{Algorithm, Hash};

/// The text of `md5sums`: a line `MD5␠␠PATH` for each file. Changes keep all other lines as they are.
///
/// ```
/// use gpu_packages::{Algorithm, DebRecords, Hash};
///
/// let mut sums = DebRecords::parse(b"d41d8cd98f00b204e9800998ecf8427e  usr/lib/a.so\n");
/// assert_eq!(sums.hash(b"usr/lib/a.so"), Some(Hash::of(Algorithm::Md5, b"")));
/// assert!(sums.replace(b"usr/lib/a.so", &Hash::of(Algorithm::Md5, b"abc")));
/// assert_eq!(sums.to_vec(), b"900150983cd24fb0d6963f7d28e17f72  usr/lib/a.so\n");
/// ```
#[derive(Clone)]
pub struct DebRecords {
    /// Removed members are empty.
    lines: Vec<Vec<u8>>,
    /// The lines of each path; made when it is needed.
    by_path: Option<HashMap<Vec<u8>, Vec<usize>>>,
}

impl fmt::Debug for DebRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DebRecords").field("lines", &self.lines.len()).finish_non_exhaustive()
    }
}

/// Number of digits of a hash.
const DIGITS: usize = 32;

impl DebRecords {
    /// Parses the text. Lines that are none of the format are kept, and list no file.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        DebRecords {
            lines: text.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect(),
            by_path: None,
        }
    }

    /// Returns path and hash of each file; no hash where it cannot be read.
    pub fn rows(&self) -> impl Iterator<Item = (&[u8], Option<Hash>)> {
        self.lines.iter().filter_map(|line| {
            let (digits, path) = split(line)?;
            let digits = std::str::from_utf8(digits).ok()?;
            Some((path, Hash::from_hex(Algorithm::Md5, digits)))
        })
    }

    /// Returns the hash of a file.
    #[must_use]
    pub fn hash(&self, path: &[u8]) -> Option<Hash> {
        self.rows().find(|(found, _)| *found == path)?.1
    }

    /// Replaces the hash of a file, and returns whether it is listed.
    pub fn replace(&mut self, path: &[u8], hash: &Hash) -> bool {
        self.change(path, |rest| [hash.to_hex().as_bytes(), rest].concat())
    }

    /// Removes the lines of a file, and returns whether there were any.
    pub fn remove(&mut self, path: &[u8]) -> bool {
        self.change(path, |_| Vec::new())
    }

    /// Makes new lines of a file, each from what follows the hash.
    fn change(&mut self, path: &[u8], new: impl Fn(&[u8]) -> Vec<u8>) -> bool {
        let lines = &self.lines;
        let index = self.by_path.get_or_insert_with(|| {
            let mut index: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
            for (at, line) in lines.iter().enumerate() {
                if let Some((_, path)) = split(line) {
                    index.entry(path.to_vec()).or_default().push(at);
                }
            }
            index
        });
        let Some(indices) = index.get(path) else { return false };
        for &at in indices {
            if let Some(line) = self.lines.get_mut(at)
                && let Some((_, rest)) = line.split_at_checked(DIGITS)
            {
                *line = new(rest);
            }
        }
        true
    }

    /// Returns the text.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.lines.concat()
    }
}

fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let (digits, rest) = line.split_at_checked(DIGITS)?;
    let path = rest.strip_prefix(b"  ").or_else(|| rest.strip_prefix(b" *"))?;
    digits.iter().all(u8::is_ascii_hexdigit).then_some((digits, crate::path::without_dot(path)))
}

/// Changes the field `Installed-Size` of a `control` file by a number of KiB. Text without the field stays as it is.
///
/// ```
/// use gpu_packages::set_installed_size;
///
/// let control = set_installed_size(b"Package: a\nInstalled-Size: 100\n", -40)?;
/// assert_eq!(control, b"Package: a\nInstalled-Size: 60\n");
/// # Ok::<(), gpu_packages::Error>(())
/// ```
///
/// # Errors
///
/// [`Malformed`](ErrorKind::Malformed) if the field is not a number.
pub fn set_installed_size(control: &[u8], change: i64) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(control.len());
    for line in control.split_inclusive(|&byte| byte == b'\n') {
        let name = b"installed-size:";
        let field = line.split_at_checked(name.len());
        let Some((field, value)) = field.filter(|(field, _)| field.eq_ignore_ascii_case(name))
        else {
            out.extend_from_slice(line);
            continue;
        };
        let number = std::str::from_utf8(value).ok().and_then(|text| text.trim().parse().ok());
        let number: u64 = number.ok_or_else(|| {
            let text = "control: expected a number as Installed-Size";
            Error::new(ErrorKind::Malformed, text)
        })?;
        // An estimate, which may have been too small before.
        let number = number.saturating_add_signed(change);
        out.extend_from_slice(field);
        out.extend_from_slice(format!(" {number}").as_bytes());
        out.extend_from_slice(value.split_at(value.trim_ascii_end().len()).1);
    }
    Ok(out)
}
