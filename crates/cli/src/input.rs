//! Opening what the command line names.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use fat_object::ReadSeek;

/// Opens a file, or reads standard input for `-`.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn ReadSeek>> {
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        return Ok(Box::new(Cursor::new(bytes)));
    }
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(Box::new(file))
}

/// The name used in messages.
pub(crate) fn display(path: &Path) -> String {
    match path.as_os_str() == "-" {
        true => "<stdin>".to_owned(),
        false => path.display().to_string(),
    }
}

/// Opens the file that the thin archive at `archive` names: relative to the archive's directory.
pub(crate) fn open_thin_member(archive: &Path, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
    let name = member_path(name)?;
    open_regular(&archive.parent().unwrap_or(Path::new("")).join(name))
}

/// An archive must not make us wait for a pipe or read a device.
fn open_regular(path: &Path) -> io::Result<Box<dyn ReadSeek>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok(Box::new(File::open(path)?))
}

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps, reason = "other systems can fail")]
fn member_path(name: &[u8]) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    Ok(PathBuf::from(std::ffi::OsStr::from_bytes(name)))
}

#[cfg(not(unix))]
fn member_path(name: &[u8]) -> io::Result<PathBuf> {
    std::str::from_utf8(name)
        .map(PathBuf::from)
        .map_err(|_| io::Error::other("the name is not UTF-8"))
}

/// The options that bound a walk, shared by the commands.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Limits {
    /// Most bytes of decompressed data held at one time (suffixes K, M, G)
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = parse_size)]
    max_decompressed: u64,
}

impl Limits {
    pub(crate) fn options(&self) -> fat_object::Options {
        let mut options = fat_object::Options::default();
        options.max_decompressed = self.max_decompressed;
        options
    }
}

fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (text.get(..text.len() - 1), 10),
        Some(b'M' | b'm') => (text.get(..text.len() - 1), 20),
        Some(b'G' | b'g') => (text.get(..text.len() - 1), 30),
        _ => (Some(text), 0),
    };
    digits
        .and_then(|digits| digits.parse::<u64>().ok())
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "expected a number of bytes, such as 512M".to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes_have_binary_suffixes() {
        assert_eq!(parse_size("123"), Ok(123));
        assert_eq!(parse_size("2G"), Ok(2 << 30));
        assert_eq!(parse_size("4k"), Ok(4096));
        for bad in ["", "G", "-1", "1T", "99999999999G"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
