//! The archive around the parts of a Debian package.

use std::io::Read;

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{Error, ErrorKind};
use crate::reading::read_full;

/// The first bytes of an archive.
pub(crate) const MAGIC: &[u8; 8] = b"!<arch>\n";
/// The first bytes of a Debian package.
pub(crate) const DEB: &[u8; 21] = b"!<arch>\ndebian-binary";
/// Size of a header.
pub(crate) const HEADER: usize = size_of::<Fields>();

/// Header of a member as it lies in the file: texts, padded with spaces.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Fields {
    name: [u8; 16],
    /// Time of the last change.
    time: [u8; 12],
    owner: [u8; 6],
    group: [u8; 6],
    mode: [u8; 8],
    /// Bytes of the member without its padding.
    size: [u8; 10],
    /// End of the header: 60 0A.
    end: [u8; 2],
}

/// The header of a member.
pub(crate) struct Header {
    pub(crate) fields: Fields,
    pub(crate) name: Vec<u8>,
    pub(crate) size: u64,
}

/// Reads the next header; `None` at the end.
pub(crate) fn next_header(reader: &mut dyn Read, at: u64) -> Result<Option<Header>, Error> {
    let mut fields = Fields::new_zeroed();
    let read = read_full(reader, fields.as_mut_bytes())?.len();
    if read == 0 {
        return Ok(None);
    }
    if read < HEADER {
        let text = format!("deb: member header: expected {HEADER} bytes, found {read}");
        return Err(Error::at(ErrorKind::Truncated, at, text));
    }
    let size = std::str::from_utf8(&fields.size).ok().and_then(|text| text.trim().parse().ok());
    let (Some(size), b"`\n") = (size, &fields.end) else {
        let text = "deb: member header: expected a size, and 60 0a after it";
        return Err(Error::at(ErrorKind::Malformed, at, text));
    };
    let name = fields.name.trim_ascii_end();
    let name = name.strip_suffix(b"/").unwrap_or(name).to_vec();
    Ok(Some(Header { fields, name, size }))
}

/// Returns a header with another size.
pub(crate) fn header_with_size(header: &Header, size: u64) -> Result<Fields, Error> {
    let Ok(digits) = format!("{size:<10}").as_bytes().try_into() else {
        let text = format!("deb: a member of {size} bytes does not fit, expected ten digits");
        return Err(Error::new(ErrorKind::Unsupported, text));
    };
    Ok(Fields { size: digits, ..header.fields })
}
