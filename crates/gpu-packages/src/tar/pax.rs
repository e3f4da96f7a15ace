//! Records of pax headers.

use std::ops::Range;

use super::sparse::decimal;
use crate::error::{Error, ErrorKind};

/// Values of pax headers that concern how a member is read.
#[derive(Clone, Default)]
pub(crate) struct Pax {
    pub(crate) name: Option<Vec<u8>>,
    pub(crate) link: Option<Vec<u8>>,
    pub(crate) size: Option<u64>,
    /// Place of the size in the headers of the member.
    pub(crate) size_at: Option<Range<usize>>,
    pub(crate) sparse: Option<Sparse>,
}

/// Values of GNU's sparse files, of all versions.
#[derive(Clone, Default)]
pub(crate) struct Sparse {
    pub(crate) name: Option<Vec<u8>>,
    pub(crate) size: Option<u64>,
    /// Offset and size of parts.
    pub(crate) numbers: Vec<u64>,
    /// The map is where the contents start.
    pub(crate) has_lines: bool,
}

impl Pax {
    /// Adds the records of a header, `LENGTH KEY=VALUE\n`. Its data are at a place in the headers of the member.
    pub(crate) fn read(&mut self, data: &[u8], data_at: usize, place: u64) -> Result<(), Error> {
        let bad =
            |text: &str| Error::at(ErrorKind::Malformed, place, format!("tar pax header: {text}"));
        let mut at = 0;
        while let Some(rest) = data.get(at..).filter(|rest| !rest.is_empty()) {
            let space = rest.iter().position(|&byte| byte == b' ');
            let length = space.and_then(|space| decimal(rest.get(..space)?));
            let length = length.and_then(|length| usize::try_from(length).ok());
            let record = length.zip(space).and_then(|(length, space)| {
                let record = rest.get(space + 1..length)?.strip_suffix(b"\n")?;
                Some((record, space + 1, length))
            });
            let (record, start, length) =
                record.ok_or_else(|| bad("expected a record with its length"))?;
            let equals = record.iter().position(|&byte| byte == b'=');
            let equals = equals.ok_or_else(|| bad("expected '=' in a record"))?;
            let (key, value) = (record.split_at(equals).0, record.split_at(equals + 1).1);
            match key {
                b"path" => self.name = Some(value.to_vec()),
                b"linkpath" => self.link = Some(value.to_vec()),
                b"size" => {
                    let size = decimal(value).ok_or_else(|| bad("its size is not a number"))?;
                    let place = data_at + at + start + equals + 1;
                    (self.size, self.size_at) = (Some(size), Some(place..place + value.len()));
                }
                key => {
                    if let Some(key) = key.strip_prefix(b"GNU.sparse.") {
                        let sparse = self.sparse.get_or_insert_default();
                        sparse
                            .read(key, value)
                            .ok_or_else(|| bad("expected a number of a sparse file"))?;
                    }
                }
            }
            at += length;
        }
        Ok(())
    }

    /// Returns the values, or those of a global header where there is none.
    pub(crate) fn or(self, global: &Pax) -> Pax {
        Pax {
            name: self.name.or_else(|| global.name.clone()),
            link: self.link.or_else(|| global.link.clone()),
            size: self.size.or(global.size),
            size_at: self.size_at,
            sparse: self.sparse.or_else(|| global.sparse.clone()),
        }
    }

    /// Returns the keys that are there.
    pub(crate) fn keys(&self) -> Vec<&'static str> {
        let keys = [
            ("path", self.name.is_some()),
            ("linkpath", self.link.is_some()),
            ("size", self.size.is_some()),
            ("GNU.sparse", self.sparse.is_some()),
        ];
        keys.into_iter().filter(|(_, is_there)| *is_there).map(|(key, _)| key).collect()
    }
}

impl Sparse {
    /// Takes a value; `None` if it is not a number.
    fn read(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        match key {
            b"name" => self.name = Some(value.to_vec()),
            b"size" | b"realsize" => self.size = Some(decimal(value)?),
            b"offset" | b"numbytes" => {
                let is_next = self.numbers.len().is_multiple_of(2) == (key == b"offset");
                self.numbers.push(decimal(value).filter(|_| is_next)?);
            }
            b"map" => {
                let numbers = value.split(|&byte| byte == b',').map(decimal);
                self.numbers = numbers.collect::<Option<_>>()?;
            }
            b"major" => self.has_lines = decimal(value)? > 0,
            _ => {}
        }
        Some(())
    }

    /// Returns offset and size of each part.
    pub(crate) fn parts(&self) -> Vec<(u64, u64)> {
        let (pairs, _) = self.numbers.as_chunks();
        pairs.iter().map(|&[offset, len]| (offset, len)).collect()
    }
}
