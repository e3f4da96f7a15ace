//! Lists of checksums that packages have for themselves.

/// Returns the names in a list of checksums, as `sha256sum` and `md5sum` write them: hexadecimal digits, two spaces or a space and a
/// star, and a path relative to the list. Lines of no such form are skipped; `None` if the first line is one.
///
/// ```
/// let text = b"d41d8cd98f00b204e9800998ecf8427e  kernels/sm_90.cubin\n\n";
/// let names: Vec<&[u8]> = gpu_packages::checksum_names(text).into_iter().flatten().collect();
/// assert_eq!(names, [b"kernels/sm_90.cubin"]);
/// assert!(gpu_packages::checksum_names(b"a text\n").is_none());
/// ```
#[must_use]
pub fn checksum_names(text: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let mut names = text.split(|&byte| byte == b'\n').map(name).peekable();
    names.peek()?.is_some().then(|| names.flatten())
}

fn name(line: &[u8]) -> Option<&[u8]> {
    /// Digits of MD5, SHA-1, SHA-256, SHA-384 and SHA-512.
    const DIGITS: [usize; 5] = [32, 40, 64, 96, 128];
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let rest = line.get(digits..).filter(|_| DIGITS.contains(&digits))?;
    let name = rest.strip_prefix(b"  ").or_else(|| rest.strip_prefix(b" *"))?.trim_ascii_end();
    (!name.is_empty()).then_some(name)
}
