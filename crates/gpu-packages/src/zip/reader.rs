//! Contents of members.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;

use byte_parts::Window;
use zerocopy::FromBytes;

use super::wire::{LOCAL, LocalHeader};
use super::{ENCRYPTED, PATCHED, Zip, ZipMember};
use crate::codec::{Codec, is_codec_error};
use crate::error::{Error, ErrorKind};
use crate::path::Shown;
use crate::reading::{Raw, at_most, given};

/// A reader of the contents of a member: at most as many bytes as the central directory says, whose CRC-32 is checked
/// at the end.
pub struct ZipMemberReader<'r> {
    reader: Box<dyn Read + 'r>,
    left: u64,
    crc: flate2::Crc,
    expected_crc: u32,
    name: Vec<u8>,
    offset: u64,
    /// The contents in the file, if they are not compressed.
    place: Option<Range<u64>>,
    is_done: bool,
}

impl fmt::Debug for ZipMemberReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZipMemberReader").field("left", &self.left).finish_non_exhaustive()
    }
}

impl Zip {
    /// Opens a member. The reader is moved.
    ///
    /// # Errors
    ///
    /// [`Malformed`](ErrorKind::Malformed) if its local header has another name;
    /// [`Unsupported`](ErrorKind::Unsupported) if it is encrypted, or compressed by an unknown method; errors of the
    /// reader. Reading fails with [`Codec`](ErrorKind::Codec) for malformed data and [`Mismatch`](ErrorKind::Mismatch) for a
    /// wrong size or checksum.
    ///
    /// # Panics
    ///
    /// Never; an index that is too large is [`Malformed`](ErrorKind::Malformed).
    pub fn open<'r, R: Read + Seek + 'r>(
        &self,
        index: usize,
        mut reader: R,
    ) -> Result<ZipMemberReader<'r>, Error> {
        let member = self.members.get(index).ok_or_else(|| {
            let count = self.members.len();
            let text = format!("expected a member below {count}, found {index}");
            Error::new(ErrorKind::Malformed, text)
        })?;
        let named = |error: Error| error.while_reading(Shown(&member.name));
        if member.flags & (ENCRYPTED | PATCHED) != 0 {
            let text = "expected a member that is not encrypted";
            return Err(named(Error::at(ErrorKind::Unsupported, member.offset, text)));
        }
        let codec = match member.method {
            0 | 8 => Codec::None,
            12 => Codec::Bzip2,
            93 => Codec::Zstd,
            95 => Codec::Xz,
            method => {
                let text =
                    format!("expected compression method 0, 8, 12, 93 or 95, found {method}");
                return Err(named(Error::at(ErrorKind::Unsupported, member.offset, text)));
            }
        };
        let place = self.place_of(member, &mut reader)?;
        reader.seek(SeekFrom::Start(place.start))?;
        let data = Raw::new(reader, member.stored_size);
        let reader = match (member.method, codec) {
            (0, _) => Box::new(data) as Box<dyn Read + 'r>,
            (8, _) => {
                let data = BufReader::with_capacity(64 << 10, data);
                Box::new(Inflate(flate2::bufread::DeflateDecoder::new(data)))
            }
            (_, codec) => codec.decoder(data).map_err(named)?,
        };
        Ok(ZipMemberReader {
            reader,
            left: member.size,
            crc: flate2::Crc::new(),
            expected_crc: member.crc32,
            name: member.name.clone(),
            offset: member.offset,
            place: Some(place).filter(|_| member.method == 0 && member.stored_size == member.size),
            is_done: false,
        })
    }

    /// Returns the place of a member's data in the file, as its local header has it.
    pub(super) fn place_of(
        &self,
        member: &ZipMember,
        reader: &mut (impl Read + Seek),
    ) -> Result<Range<u64>, Error> {
        let named = |error: Error| error.while_reading(Shown(&member.name));
        let header_len = LOCAL + member.name.len();
        let members = Window::new(&(0..self.directory_at));
        let Some(place) = members.sized(member.offset, header_len as u64) else {
            let text = "its local header reaches into the central directory";
            return Err(named(Error::at(ErrorKind::Malformed, member.offset, text)));
        };
        reader.seek(SeekFrom::Start(member.offset))?;
        let mut header = vec![0; header_len];
        // The file became shorter, if it ends here.
        reader.read_exact(&mut header).map_err(|error| named(Error::of_file(error)))?;
        let local = LocalHeader::ref_from_prefix(&header).ok().filter(|(header, name)| {
            header.signature == *b"PK\x03\x04"
                && usize::from(header.fields.name_len.get()) == name.len()
                && **name == member.name[..]
                && header.fields.method == member.method
        });
        let Some((local, _)) = local else {
            let text = "expected a local header with the name and method of the central directory";
            return Err(named(Error::at(ErrorKind::Malformed, member.offset, text)));
        };
        let data_at = place.end + u64::from(local.fields.extra_len);
        members.sized(data_at, member.stored_size).ok_or_else(|| {
            let text = format!(
                "its {} bytes of data reach into the central directory",
                member.stored_size
            );
            named(Error::at(ErrorKind::Malformed, member.offset, text))
        })
    }
}

/// A decoder whose stream must be all of the data.
struct Inflate<R>(flate2::bufread::DeflateDecoder<BufReader<R>>);

impl<R: Read> Read for Inflate<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buf)?;
        if read == 0 && !buf.is_empty() && !self.0.get_mut().fill_buf()?.is_empty() {
            let text = "bytes after the end of the deflate stream";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(read)
    }
}

impl ZipMemberReader<'_> {
    /// Returns the place of the contents in the file, if they are not compressed.
    pub(crate) fn place(&self) -> Option<Range<u64>> {
        self.place.clone()
    }

    fn error(&self, kind: ErrorKind, text: impl fmt::Display) -> io::Error {
        Error::at(kind, self.offset, text).while_reading(Shown(&self.name)).into()
    }

    fn read_some(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.reader.read(buf) {
            Err(error) if is_codec_error(&error) => {
                let text = format!("malformed compressed data: {error}");
                Err(self.error(ErrorKind::Codec, text))
            }
            read => read,
        }
    }
}

impl Read for ZipMemberReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        if self.left > 0 {
            let buf = at_most(buf, self.left);
            let read = self.read_some(buf)?;
            self.crc.update(given(buf, read)?);
            self.left -= read as u64;
            if read == 0 {
                let text = format!("its contents end {} bytes too early", self.left);
                return Err(self.error(ErrorKind::Mismatch, text));
            }
            if self.left > 0 {
                return Ok(read);
            }
            self.finish()?;
            return Ok(read);
        }
        if !self.is_done {
            self.finish()?;
        }
        Ok(0)
    }
}

impl ZipMemberReader<'_> {
    /// Checks that the stream ends here, with the right checksum.
    fn finish(&mut self) -> io::Result<()> {
        let mut more = [0];
        loop {
            match self.read_some(&mut more) {
                Ok(0) => break,
                Ok(_) => {
                    let text = "its contents are longer than the central directory says";
                    return Err(self.error(ErrorKind::Mismatch, text));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let found = self.crc.sum();
        if found != self.expected_crc {
            let text = format!("expected CRC-32 {:08x}, found {found:08x}", self.expected_crc);
            return Err(self.error(ErrorKind::Mismatch, text));
        }
        self.is_done = true;
        Ok(())
    }
}
