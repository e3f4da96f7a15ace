//! The archive around the parts of a Debian package.

use std::io::Read;

use crate::error::{Error, ErrorKind};
use crate::limits::read_full;

/// The first bytes of an archive.
pub(crate) const MAGIC: &[u8; 8] = b"!<arch>\n";
/// The first bytes of a Debian package.
pub(crate) const DEB: &[u8; 21] = b"!<arch>\ndebian-binary";
/// Size of a header.
pub(crate) const HEADER: usize = 60;

/// The header of a member.
pub(crate) struct Header {
    pub(crate) bytes: [u8; HEADER],
    pub(crate) name: Vec<u8>,
    pub(crate) size: u64,
}

/// Reads the next header; `None` at the end.
pub(crate) fn next_header(reader: &mut dyn Read, at: u64) -> Result<Option<Header>, Error> {
    let mut bytes = [0; HEADER];
    let read = read_full(reader, &mut bytes)?;
    if read == 0 {
        return Ok(None);
    }
    if read < HEADER {
        let text = format!("deb: member header: expected {HEADER} bytes, found {read}");
        return Err(Error::at(ErrorKind::Truncated, at, text));
    }
    let field = |range: std::ops::Range<usize>| bytes.get(range).unwrap_or_default();
    let size = std::str::from_utf8(field(48..58)).ok().and_then(|text| text.trim().parse().ok());
    let (Some(size), b"`\n") = (size, field(58..60)) else {
        let text = "deb: member header: expected a size, and 60 0a after it";
        return Err(Error::at(ErrorKind::Malformed, at, text));
    };
    let name = field(0..16).trim_ascii_end();
    let name = name.strip_suffix(b"/").unwrap_or(name).to_vec();
    Ok(Some(Header { bytes, name, size }))
}

/// Returns a header with another size.
pub(crate) fn header_with_size(header: &Header, size: u64) -> Result<[u8; HEADER], Error> {
    let text = format!("{size:<10}");
    let mut bytes = header.bytes;
    match bytes.get_mut(48..58).filter(|field| field.len() == text.len()) {
        Some(field) => field.copy_from_slice(text.as_bytes()),
        None => {
            let text = format!("deb: a member of {size} bytes does not fit, expected ten digits");
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
    }
    Ok(bytes)
}
