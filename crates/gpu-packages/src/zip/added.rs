//! A member that an edit adds.

use zerocopy::{FromZeros, IntoBytes};

use super::check::is_long;
use super::deflate::NewContents;
use super::extra::with_zip64;
use super::fields::short;
use super::new::{MADE_BY, TIME, UTF8, extra_len};
use super::wire::{CentralRecord, Fields, LocalHeader};
use crate::error::{Error, ErrorKind};

/// A regular file that anybody may read.
const ATTRIBUTES: u32 = 0o100_644 << 16;

/// A member that was not there.
pub(super) struct Added<'a> {
    name: &'a str,
    contents: &'a NewContents,
    fields: Fields,
}

impl<'a> Added<'a> {
    pub(super) fn new(name: &'a str, contents: &'a NewContents) -> Result<Self, Error> {
        let name_len = u16::try_from(name.len()).map_err(|_| {
            let text = format!("a name of {} bytes is longer than zip files can have", name.len());
            Error::new(ErrorKind::Refused, text)
        })?;
        let is_zip64 = is_long(contents.size) || is_long(contents.stored_size());
        let mut fields = Fields {
            version: 20.into(),
            flags: UTF8.into(),
            time: TIME.into(),
            name_len: name_len.into(),
            ..Fields::new_zeroed()
        };
        fields.set_contents(contents, is_zip64, is_zip64);
        Ok(Added { name, contents, fields })
    }

    /// Returns the sizes, if they need 64 bits.
    fn long_sizes(&self) -> Option<[u64; 2]> {
        let sizes = [self.contents.size, self.contents.stored_size()];
        sizes.into_iter().any(is_long).then_some(sizes)
    }

    pub(super) fn local_header(&self) -> Vec<u8> {
        let extra = self.long_sizes().map_or_else(Vec::new, |sizes| with_zip64(&[], &sizes));
        let fields = Fields { extra_len: extra_len(&extra), ..self.fields };
        let header = LocalHeader { signature: *b"PK\x03\x04", fields };
        [header.as_bytes(), self.name.as_bytes(), &extra].concat()
    }

    pub(super) fn central_record(&self, offset: u64) -> Vec<u8> {
        let is_far = is_long(offset);
        let mut values: Vec<u64> = self.long_sizes().into_iter().flatten().collect();
        values.extend(Some(offset).filter(|_| is_far));
        let extra = if values.is_empty() { Vec::new() } else { with_zip64(&[], &values) };
        let mut fields = Fields { extra_len: extra_len(&extra), ..self.fields };
        if is_far {
            fields.need_zip64();
        }
        let record = CentralRecord {
            signature: *b"PK\x01\x02",
            made_by: MADE_BY.into(),
            fields,
            attributes: ATTRIBUTES.into(),
            offset: short(offset, is_far),
            ..CentralRecord::new_zeroed()
        };
        [record.as_bytes(), self.name.as_bytes(), &extra].concat()
    }
}
