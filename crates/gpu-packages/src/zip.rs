//! Zip archives: members as streams, and archives with some members changed.
//!
//! PKWARE's APPNOTE 6.3.10. The directory at the end of the archive is what installers read; each member has a header of its
//! own before its bytes, which must not contradict it.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use byte_parts::Parts;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use rawzip::ZipArchive;

use crate::error::{Error, ErrorKind};

/// Bytes of the header of a member, without name and extra fields.
const LOCAL: usize = 30;
/// Bytes of a record of the directory, without name, extra fields and comment.
const CENTRAL: usize = 46;
/// Bytes of the end of the directory, without the comment.
const END: usize = 22;
/// Bytes of the end of a directory with sizes of 64 bits, and of the record that says where it lies.
const END64: usize = 56;
const LOCATOR64: usize = 20;
/// Identifier of the extra field with sizes of 64 bits.
const ZIP64: u16 = 1;
/// Flags of a member: encrypted; sizes after its bytes.
const ENCRYPTED: u16 = 1;
const DESCRIPTOR: u16 = 1 << 3;
/// The most bytes of a directory.
const MOST_OF_DIRECTORY: u64 = 1 << 30;

/// A zip archive: its directory.
#[derive(Clone, Debug)]
pub struct Zip {
    members: Vec<Member>,
    /// The place of the directory, and the end of the archive.
    directory: Range<u64>,
    end: u64,
}

/// A member of a zip archive.
#[derive(Clone, Debug)]
pub struct Member {
    path: String,
    method: u16,
    flags: u16,
    crc: u32,
    size: u64,
    stored_size: u64,
    /// The place of its header.
    header: u64,
    /// The place of its record in the directory.
    record: u64,
}

impl Member {
    /// Returns the path, with `/`; bytes that are not UTF-8 are replaced. It may be absolute or lead upwards: do not write to it
    /// unchecked.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the number of bytes, not compressed, according to the directory.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the number of bytes in the archive.
    #[must_use]
    pub fn stored_size(&self) -> u64 {
        self.stored_size
    }

    /// Returns whether it is a directory.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.path.ends_with('/')
    }

    /// Returns whether the bytes are compressed.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.method != STORED
    }
}

/// Methods of compression.
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

impl Zip {
    /// Reads the directory of an archive.
    ///
    /// # Errors
    ///
    /// The archive has no directory, or a malformed one; members overlap; those of the reader.
    pub fn read(mut reader: impl Read + Seek) -> Result<Self, Error> {
        reader.rewind()?;
        let mut buffer = vec![0; rawzip::RECOMMENDED_BUFFER_SIZE];
        let archive = ZipArchive::from_seekable(reader, &mut buffer)?;
        let mut members = Vec::new();
        let mut entries = archive.entries(&mut buffer);
        while let Some(entry) = entries.next_entry()? {
            members.push(Member {
                path: String::from_utf8_lossy(entry.file_path().as_bytes()).into_owned(),
                method: entry.compression_method().as_u16(),
                flags: entry.flags().bits(),
                crc: entry.crc32(),
                size: entry.uncompressed_size_hint(),
                stored_size: entry.compressed_size_hint(),
                header: entry.local_header_offset(),
                record: entry.central_directory_offset(),
            });
        }
        let start = archive.directory_offset();
        let zip =
            Zip { members, directory: start..archive.eocd_offset(), end: archive.end_offset() };
        zip.check()?;
        Ok(zip)
    }

    /// Members lie before the directory, and none in another.
    fn check(&self) -> Result<(), Error> {
        let mut places: Vec<(Range<u64>, &str)> = Vec::new();
        for member in &self.members {
            let start = member.header;
            let end = start.saturating_add(LOCAL as u64).saturating_add(member.stored_size);
            if end > self.directory.start {
                let at = self.directory.start;
                return Err(Error::malformed(format!(
                    "zip member {:?} at byte {start:#x} has {} bytes, but the directory starts at {at:#x}",
                    member.path, member.stored_size
                )));
            }
            places.push((start..end, &member.path));
        }
        places.sort_by_key(|(place, _)| place.start);
        match places
            .windows(2)
            .find(|pair| matches!(pair, [(one, _), (next, _)] if one.end > next.start))
        {
            Some([(_, one), (place, other)]) => Err(Error::malformed(format!(
                "zip members {one:?} and {other:?} overlap at byte {:#x}",
                place.start
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the members, in the order of the directory.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns a reader of the bytes of a member, not compressed. It fails if there are other bytes than the directory says:
    /// more, fewer, or with another CRC.
    ///
    /// # Errors
    ///
    /// The header of the member contradicts the directory; encryption, and compression other than deflate; those of the reader.
    pub fn open<R: Read + Seek>(
        &self,
        member: &Member,
        mut reader: R,
    ) -> Result<MemberReader<R>, Error> {
        let unsupported = |text: String| Error::new(ErrorKind::Unsupported, text);
        if member.flags & ENCRYPTED != 0 {
            return Err(unsupported(format!("zip member {:?} is encrypted", member.path)));
        }
        let start = header(member, &mut reader)?.end;
        let end = start.saturating_add(member.stored_size);
        if end > self.directory.start {
            return Err(Error::malformed(format!(
                "zip member {:?} ends at byte {end:#x}, in the directory",
                member.path
            )));
        }
        reader.seek(SeekFrom::Start(start))?;
        let stored = reader.take(member.stored_size);
        let bytes = match member.method {
            STORED => Bytes::Stored(stored),
            DEFLATED => Bytes::Deflated(DeflateDecoder::new(stored)),
            method => {
                return Err(unsupported(format!(
                    "zip member {:?} is compressed by method {method}, expected 0 (none) or 8 (deflate)",
                    member.path
                )));
            }
        };
        Ok(MemberReader { bytes, left: member.size, crc: Crc::new(), expected: member.crc })
    }

    /// Returns an archive with other contents of some members, by their positions, and without those that have `None`. Other
    /// members keep their bytes, and all keep their order, their times and their attributes.
    ///
    /// The only input of the parts, number 0, is this archive.
    ///
    /// # Errors
    ///
    /// The archive has bytes between members, or a member that is changed is larger than 4 GiB; those of the reader.
    pub fn rewrite<R: Read + Seek>(
        &self,
        mut reader: R,
        changes: &BTreeMap<usize, Option<Contents>>,
    ) -> Result<Parts, Error> {
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        order.sort_by_key(|at| self.members.get(*at).map(|member| member.header));
        let first = order
            .first()
            .and_then(|at| self.members.get(*at))
            .map_or(self.directory.start, |m| m.header);
        let mut out = Parts::from_input(0, 0..first);
        let mut places = vec![0; self.members.len()];
        for (nth, at) in order.iter().enumerate() {
            let Some(member) = self.members.get(*at) else { continue };
            let next = order.get(nth + 1).and_then(|at| self.members.get(*at));
            let next = next.map_or(self.directory.start, |member| member.header);
            let head = header(member, &mut reader)?;
            let end = head.end.saturating_add(member.stored_size);
            // After the bytes come their sizes, where a flag says so.
            let after = next.checked_sub(end).filter(|after| match member.flags & DESCRIPTOR {
                0 => *after == 0,
                _ => matches!(after, 12 | 16 | 20 | 24),
            });
            if after.is_none() {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!("zip archive with other bytes than members at byte {end:#x}"),
                ));
            }
            if let Some(place) = places.get_mut(*at) {
                *place = out.size();
            }
            match changes.get(at) {
                None => out.push_input(0, member.header..next),
                Some(None) => {}
                Some(Some(contents)) => {
                    let mut head = read(&mut reader, head)?;
                    contents.describe(&mut head, Header::Local, member)?;
                    out.push_vec(head);
                    out.push_bytes(&contents.stored);
                }
            }
        }
        self.push_directory(&mut reader, &mut out, &places, changes)?;
        Ok(out)
    }

    /// Appends the directory, with the new places of members, and its end.
    fn push_directory<R: Read + Seek>(
        &self,
        reader: &mut R,
        out: &mut Parts,
        places: &[u64],
        changes: &BTreeMap<usize, Option<Contents>>,
    ) -> Result<(), Error> {
        if self.directory.end.saturating_sub(self.directory.start) > MOST_OF_DIRECTORY {
            let text = "zip archive with a directory of more than 1 GiB";
            return Err(Error::new(ErrorKind::Limit, text));
        }
        let start = out.size();
        let mut count = 0;
        let mut last = self.directory.start;
        for (at, (member, place)) in self.members.iter().zip(places).enumerate() {
            let head = read(reader, member.record..member.record + CENTRAL as u64)?;
            last = member.record + record_size(&head);
            let change = changes.get(&at);
            if matches!(change, Some(None)) {
                continue;
            }
            count += 1;
            let mut record = read(reader, member.record..last)?;
            set_place(&mut record, *place).ok_or_else(|| {
                let text = format!("zip member {:?} would move beyond 4 GiB", member.path);
                Error::new(ErrorKind::Unsupported, text)
            })?;
            if let Some(Some(contents)) = change {
                contents.describe(&mut record, Header::Central, member)?;
            }
            out.push_vec(record);
        }
        let size = out.size() - start;
        let mut tail = read(reader, last..self.end)?;
        set_end(&mut tail, start, size, count).ok_or_else(|| {
            let text = "zip archive whose directory has an end in an unusual form";
            Error::new(ErrorKind::Unsupported, text)
        })?;
        out.push_vec(tail);
        Ok(())
    }
}

/// Reads the header of a member, and returns its place, with name and extra fields.
fn header<R: Read + Seek>(member: &Member, reader: &mut R) -> Result<Range<u64>, Error> {
    let start = member.header;
    let fixed = read(reader, start..start.saturating_add(LOCAL as u64))?;
    let is_header = fixed.starts_with(b"PK\x03\x04");
    let (flags, method) = (u16_at(&fixed, 6), u16_at(&fixed, 8));
    if !is_header
        || method != Some(member.method)
        || flags.map(|flags| flags & ENCRYPTED) != Some(member.flags & ENCRYPTED)
    {
        return Err(Error::malformed(format!(
            "zip member {:?}: the header at byte {start:#x} contradicts the directory",
            member.path
        )));
    }
    let [name, extra] = [26, 28].map(|at| u64::from(u16_at(&fixed, at).unwrap_or(0)));
    let names = start + LOCAL as u64..start + LOCAL as u64 + name;
    if String::from_utf8_lossy(&read(reader, names.clone())?) != member.path {
        return Err(Error::malformed(format!(
            "zip member {:?}: the header at byte {start:#x} has another name than the directory",
            member.path
        )));
    }
    Ok(start..names.end + extra)
}

fn read<R: Read + Seek>(reader: &mut R, range: Range<u64>) -> Result<Vec<u8>, Error> {
    let size = usize::try_from(range.end.saturating_sub(range.start))
        .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    reader.seek(SeekFrom::Start(range.start))?;
    let mut bytes = Vec::new();
    reader.take(size as u64).read_to_end(&mut bytes)?;
    match bytes.len() == size {
        true => Ok(bytes),
        false => Err(Error::malformed(format!("zip archive ends before byte {:#x}", range.end))),
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|two| u16::from_le_bytes(*two))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|four| u32::from_le_bytes(*four))
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) -> Option<()> {
    *bytes.get_mut(at..)?.first_chunk_mut()? = value;
    Some(())
}

/// Returns the size of a record of the directory.
fn record_size(head: &[u8]) -> u64 {
    let lengths = [28, 30, 32].map(|at| u64::from(u16_at(head, at).unwrap_or(0)));
    CENTRAL as u64 + lengths.iter().sum::<u64>()
}

/// Returns the place of the value of an extra field in a header.
fn extra_field(bytes: &[u8], fields: Range<usize>, id: u16) -> Option<Range<usize>> {
    let mut at = fields.start;
    while at + 4 <= fields.end {
        let (found, len) = (u16_at(bytes, at)?, usize::from(u16_at(bytes, at + 2)?));
        let value = at + 4..(at + 4).checked_add(len).filter(|end| *end <= fields.end)?;
        if found == id {
            return Some(value);
        }
        at = value.end;
    }
    None
}

/// Returns the place of the extra fields of a record of the directory.
fn central_fields(record: &[u8]) -> Option<Range<usize>> {
    let start = CENTRAL + usize::from(u16_at(record, 28)?);
    Some(start..start + usize::from(u16_at(record, 30)?))
}

/// Sets the place of a member in its record of the directory; `None` if it needs more bits than the record has for it.
fn set_place(record: &mut [u8], place: u64) -> Option<()> {
    if u32_at(record, 42)? != u32::MAX {
        let place = u32::try_from(place).ok().filter(|place| *place < u32::MAX)?;
        return put(record, 42, place.to_le_bytes());
    }
    // The field has those of the three values that are not in the record.
    let before = [24, 20].map(|at| u32_at(record, at) == Some(u32::MAX));
    let before = 8 * before.iter().filter(|is_long| **is_long).count();
    let field = extra_field(record, central_fields(record)?, ZIP64)?;
    put(record, field.start + before, place.to_le_bytes()).filter(|()| field.len() >= before + 8)
}

/// Sets place, size and number of records of the directory in its end, with what comes before it for 64 bits.
fn set_end(tail: &mut [u8], start: u64, size: u64, count: u64) -> Option<()> {
    let mut end = 0;
    if tail.starts_with(b"PK\x06\x06") {
        let record =
            12 + usize::try_from(u64::from_le_bytes(*tail.get(4..)?.first_chunk()?)).ok()?;
        if record < END64 || !tail.get(record..)?.starts_with(b"PK\x06\x07") {
            return None;
        }
        put(tail, 24, count.to_le_bytes())?;
        put(tail, 32, count.to_le_bytes())?;
        put(tail, 40, size.to_le_bytes())?;
        put(tail, 48, start.to_le_bytes())?;
        put(tail, record + 8, start.checked_add(size)?.to_le_bytes())?;
        end = record + LOCATOR64;
    }
    if !tail.get(end..)?.starts_with(b"PK\x05\x06") || tail.len() < end + END {
        return None;
    }
    for at in [8, 10] {
        match u16_at(tail, end + at)? {
            u16::MAX if end > 0 => {}
            _ => put(tail, end + at, u16::try_from(count).ok()?.to_le_bytes())?,
        }
    }
    for (at, value) in [(12, size), (16, start)] {
        match u32_at(tail, end + at)? {
            u32::MAX if end > 0 => {}
            _ => {
                let value = u32::try_from(value).ok().filter(|value| *value < u32::MAX)?;
                put(tail, end + at, value.to_le_bytes())?;
            }
        }
    }
    Some(())
}

/// A reader of the bytes of a member, which checks their number and CRC.
pub struct MemberReader<R> {
    bytes: Bytes<R>,
    left: u64,
    crc: Crc,
    expected: u32,
}

impl<R> std::fmt::Debug for MemberReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemberReader").field("left", &self.left).finish_non_exhaustive()
    }
}

enum Bytes<R> {
    Stored(io::Take<R>),
    Deflated(DeflateDecoder<io::Take<R>>),
}

impl<R: Read> Read for MemberReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        let malformed = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
        let n = match &mut self.bytes {
            Bytes::Stored(bytes) => bytes.read(buf)?,
            Bytes::Deflated(bytes) => bytes.read(buf)?,
        };
        let read = buf.get(..n).unwrap_or_default();
        self.left = self.left.checked_sub(read.len() as u64).ok_or_else(|| {
            malformed("zip member has more bytes than the directory says".to_owned())
        })?;
        self.crc.update(read);
        if n == 0 && self.left > 0 {
            let left = self.left;
            return Err(malformed(format!(
                "zip member lacks {left} bytes that the directory says"
            )));
        }
        if n == 0 && self.crc.sum() != self.expected {
            let (found, expected) = (self.crc.sum(), self.expected);
            return Err(malformed(format!("zip member: CRC {found:08x}, expected {expected:08x}")));
        }
        Ok(n)
    }
}

/// New bytes of a member.
#[derive(Clone, Debug)]
pub struct Contents {
    /// As they are stored.
    stored: Vec<u8>,
    method: u16,
    crc: u32,
    size: u64,
}

/// The two headers of a member.
#[derive(Clone, Copy, PartialEq)]
enum Header {
    Local,
    Central,
}

impl Contents {
    /// Starts new bytes of a member, which are written to the result: compressed if those of the member are. `level` is that of
    /// deflate, from 0 to 9; wheels have 6.
    #[must_use]
    pub fn like(member: &Member, level: u32) -> ContentsWriter {
        let encoder = match member.method {
            STORED => Encoder::Stored(Vec::new()),
            _ => Encoder::Deflated(DeflateEncoder::new(Vec::new(), Compression::new(level))),
        };
        ContentsWriter { encoder, crc: Crc::new(), size: 0 }
    }

    /// Sets method, CRC and sizes in a header.
    fn describe(&self, header: &mut [u8], which: Header, member: &Member) -> Result<(), Error> {
        let sizes = [self.stored.len() as u64, self.size];
        let is_long = |size: &u64| *size >= u64::from(u32::MAX);
        if sizes.iter().any(is_long)
            || member.size >= u64::from(u32::MAX)
            || member.stored_size >= u64::from(u32::MAX)
        {
            let text = format!("zip member {:?} of more than 4 GiB cannot be changed", member.path);
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        let at = if which == Header::Local { 6 } else { 8 };
        let set = |header: &mut [u8]| {
            let flags = u16_at(header, at)? & !DESCRIPTOR;
            put(header, at, flags.to_le_bytes())?;
            put(header, at + 2, self.method.to_le_bytes())?;
            put(header, at + 8, self.crc.to_le_bytes())?;
            for (nth, size) in sizes.iter().enumerate() {
                put(header, at + 12 + 4 * nth, u32::try_from(*size).ok()?.to_le_bytes())?;
            }
            Some(())
        };
        set(header).ok_or_else(|| Error::malformed("zip header cut short"))
    }
}

/// A writer of new bytes of a member.
#[derive(Debug)]
pub struct ContentsWriter {
    encoder: Encoder,
    crc: Crc,
    size: u64,
}

#[derive(Debug)]
enum Encoder {
    Stored(Vec<u8>),
    Deflated(DeflateEncoder<Vec<u8>>),
}

impl Write for ContentsWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.encoder {
            Encoder::Stored(out) => out.extend_from_slice(bytes),
            Encoder::Deflated(out) => out.write_all(bytes)?,
        }
        self.crc.update(bytes);
        self.size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ContentsWriter {
    /// Returns what was written.
    ///
    /// # Errors
    ///
    /// Those of the codec.
    pub fn finish(self) -> io::Result<Contents> {
        let (stored, method) = match self.encoder {
            Encoder::Stored(out) => (out, STORED),
            Encoder::Deflated(out) => (out.finish()?, DEFLATED),
        };
        Ok(Contents { stored, method, crc: self.crc.sum(), size: self.size })
    }
}
