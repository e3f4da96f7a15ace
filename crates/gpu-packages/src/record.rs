//! `RECORD` of Python distributions: a line for each file, with its path, hash and size.
//!
//! The Python Packaging User Guide, "Recording installed projects": comma-separated values, hashes as
//! `sha256=` and Base64 for URLs without padding.

use std::borrow::Cow;

use sha2::{Digest, Sha256, Sha384, Sha512};

/// A line.
#[derive(Debug, PartialEq)]
pub struct Row<'a> {
    /// The path below the directory of the distribution, with `/`.
    pub path: Cow<'a, str>,
    /// The hash, as it is written: `sha256=...`, or nothing.
    pub hash: &'a str,
    /// The size in bytes, as it is written, or nothing.
    pub size: &'a str,
    /// The line, with its end.
    line: &'a str,
    /// The path as it is written, with quotes.
    written: &'a str,
    end: &'a str,
}

/// Returns all lines; the text of those that are none of a RECORD.
///
/// ```
/// use gpu_packages::record;
///
/// let text = "pkg/libfoo.so,sha256=old,26912\npkg-1.0.dist-info/RECORD,,\n";
/// let row = record::rows(text).next().ok_or("empty")??;
/// assert_eq!((&*row.path, row.size), ("pkg/libfoo.so", "26912"));
///
/// let mut hasher = record::Hasher::like(row.hash).ok_or("unknown kind of hash")?;
/// hasher.update(b"");
/// let line = row.with(&hasher.finish(), 0);
/// assert_eq!(line, "pkg/libfoo.so,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn rows(text: &str) -> impl Iterator<Item = Result<Row<'_>, &str>> {
    text.split_inclusive('\n').map(|line| Row::parse(line).ok_or(line))
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let whole = line.strip_suffix('\n').unwrap_or(line);
        let whole = whole.strip_suffix('\r').unwrap_or(whole);
        let end = line.get(whole.len()..)?;
        let (written, path) = match whole.strip_prefix('"') {
            Some(quoted) => {
                let len = closing_quote(quoted)?;
                let inside = quoted.get(..len)?;
                let path = match inside.contains("\"\"") {
                    true => Cow::Owned(inside.replace("\"\"", "\"")),
                    false => Cow::Borrowed(inside),
                };
                (whole.get(..len + 2)?, path)
            }
            None => {
                let path = whole.split(',').next()?;
                (path, Cow::Borrowed(path))
            }
        };
        let (hash, size) = whole.get(written.len()..)?.strip_prefix(',')?.split_once(',')?;
        let is_plain = |field: &str| !field.contains([',', '"']);
        (is_plain(hash) && is_plain(size)).then_some(Row { path, hash, size, line, written, end })
    }

    /// Returns the line for a file with this hash and size. Fields that the line leaves empty stay empty.
    pub fn with(&self, hash: &Hash, size: u64) -> String {
        let hash = if self.hash.is_empty() { String::new() } else { hash.in_record() };
        let size = if self.size.is_empty() { String::new() } else { size.to_string() };
        format!("{},{hash},{size}{}", self.written, self.end)
    }

    /// Returns the line as it is.
    pub fn line(&self) -> &'a str {
        self.line
    }
}

/// Returns the position of the quote that ends a field.
fn closing_quote(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        at += text.get(at..)?.find('"')?;
        match text.get(at + 1..)?.starts_with('"') {
            true => at += 2,
            false => return Some(at),
        }
    }
}

/// A hash of a file in the making.
#[derive(Debug)]
pub struct Hasher(Algorithm);

#[derive(Debug)]
enum Algorithm {
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Sha512),
}

impl Hasher {
    /// Starts with the algorithm of a hash; `None` if it is not known.
    pub fn like(hash: &str) -> Option<Self> {
        Some(Hasher(match hash.split('=').next()? {
            "sha256" | "" => Algorithm::Sha256(Sha256::new()),
            "sha384" => Algorithm::Sha384(Sha384::new()),
            "sha512" => Algorithm::Sha512(Sha512::new()),
            _ => return None,
        }))
    }

    /// Takes the next bytes of the file.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Algorithm::Sha256(hash) => hash.update(bytes),
            Algorithm::Sha384(hash) => hash.update(bytes),
            Algorithm::Sha512(hash) => hash.update(bytes),
        }
    }

    /// Returns the hash.
    pub fn finish(self) -> Hash {
        let (algorithm, bytes) = match self.0 {
            Algorithm::Sha256(hash) => ("sha256", hash.finalize().to_vec()),
            Algorithm::Sha384(hash) => ("sha384", hash.finalize().to_vec()),
            Algorithm::Sha512(hash) => ("sha512", hash.finalize().to_vec()),
        };
        Hash { algorithm, bytes }
    }
}

/// A hash of a file.
#[derive(Debug)]
pub struct Hash {
    algorithm: &'static str,
    bytes: Vec<u8>,
}

impl Hash {
    /// Returns the text in a RECORD: `sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU`.
    pub fn in_record(&self) -> String {
        format!("{}={}", self.algorithm, base64(&self.bytes))
    }

    /// Returns hexadecimal digits.
    pub fn hex(&self) -> String {
        self.bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Returns bytes in Base64 for URLs, without padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number =
            (0..3).fold(0_usize, |all, n| all << 8 | three.get(n).map_or(0, |b| (*b).into()));
        for n in 0..=three.len() {
            let digit = number >> (18 - 6 * n) & 63;
            text.push(DIGITS.get(digit).map_or('?', |digit| char::from(*digit)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(line: &str) -> Row<'_> {
        Row::parse(line).unwrap()
    }

    #[test]
    fn lines_have_three_fields() {
        for (line, fields) in [
            ("a/b.py,sha256=x_y,12\n", ["a/b.py", "sha256=x_y", "12"]),
            ("a.dist-info/RECORD,,\r\n", ["a.dist-info/RECORD", "", ""]),
            ("\"a,b\"\"c\".py,,", ["", "", ""]),
            ("\"a,\"\"b\"\".py\",sha256=x,1", ["a,\"b\".py", "sha256=x", "1"]),
            ("\"\",,", ["", "", ""]),
        ] {
            match Row::parse(line) {
                Some(row) => assert_eq!([&*row.path, row.hash, row.size], fields, "{line}"),
                None => assert_eq!(fields, ["", "", ""], "{line}"),
            }
        }
        for line in
            ["", "\n", "a", "a,b", "a,b,c,d", "\"a", "\"a\"", "\"a\"b,,", "\"a\"\"", "a,\"b\",c"]
        {
            assert_eq!(Row::parse(line), None, "{line}");
        }
    }

    #[test]
    fn changed_lines_keep_what_they_leave_out() {
        let hashed = |line: &str| {
            let mut hasher = Hasher::like(row(line).hash).unwrap();
            hasher.update(b"abc");
            row(line).with(&hasher.finish(), 3)
        };
        let abc = "sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0";
        assert_eq!(hashed("a,sha256=x,9\r\n"), format!("a,{abc},3\r\n"));
        assert_eq!(hashed("\"a,b\",sha256=x,\n"), format!("\"a,b\",{abc},\n"));
        assert_eq!(hashed("a,,9"), "a,,3");
        assert!(
            hashed("a,sha512=x,9")
                .starts_with("a,sha512=3a81oZNherrMQXNJriBBMRLm-k6JqX6iCp7u5ktV05ohkpk")
        );
        assert!(Hasher::like("md5=x").is_none());
    }

    #[test]
    fn base64_has_no_padding() {
        for (bytes, text) in
            [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("\u{3fb}", "z7s")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "-_8");
    }
}
