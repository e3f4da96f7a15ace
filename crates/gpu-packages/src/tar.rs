//! Tar files as streams: ustar, with the extensions of GNU and pax.

use std::fmt;
use std::io::{self, Read};

use crate::error::{Error, ErrorKind};
use crate::limits::read_full;

/// Size of a header, and unit of contents.
pub(crate) const BLOCK: usize = 512;
/// The longest extended header.
const MAX_EXTENDED: u64 = 1 << 20;
/// The longest chain of extended headers before one member.
const MAX_HEADERS: usize = 4 << 20;

/// A reader of a tar file: members in order, each with its contents.
///
/// ```
/// use std::io::Read;
/// use gpu_packages::TarReader;
///
/// # let mut file = vec![0; 1536];
/// # file[..5].copy_from_slice(b"a.txt");
/// # file[124..136].copy_from_slice(b"00000000003\0");
/// # file[148..156].fill(b' ');
/// # file[257..265].copy_from_slice(b"ustar\x0000");
/// # let sum: u32 = file[..512].iter().map(|&byte| u32::from(byte)).sum();
/// # file[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
/// # file[512..515].copy_from_slice(b"abc");
/// let mut tar = TarReader::new(&file[..]);
/// while let Some(member) = tar.next_member()? {
///     let mut contents = Vec::new();
///     tar.read_to_end(&mut contents)?;
///     assert_eq!((member.name(), &contents[..]), (&b"a.txt"[..], &b"abc"[..]));
/// }
/// # Ok::<(), gpu_packages::Error>(())
/// ```
pub struct TarReader<R> {
    reader: R,
    /// Bytes that were read.
    at: u64,
    /// Contents of the member that were not read, and the padding after them.
    left: u64,
    padding: u64,
    is_done: bool,
    /// Bytes of the header that ended the file.
    end: Vec<u8>,
}

/// A member of a tar file.
#[derive(Clone)]
pub struct TarMember {
    name: Vec<u8>,
    link: Vec<u8>,
    size: u64,
    mode: u32,
    kind: TarKind,
    offset: u64,
    /// All headers, extended ones included.
    pub(crate) headers: Vec<u8>,
    /// Place of the header of the member itself among them.
    pub(crate) header_at: usize,
    /// Value of `size` among the pax records, by place in the headers.
    pub(crate) pax_size: Option<std::ops::Range<usize>>,
    pub(crate) is_sparse: bool,
}

/// Kind of a member of a tar file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TarKind {
    /// A regular file.
    File,
    /// A hard link to another member.
    HardLink,
    /// A symbolic link.
    Symlink,
    /// A directory.
    Directory,
    /// A device, a FIFO, a file that is stored as a map of its parts, or of an unknown type.
    Other,
}

impl fmt::Debug for TarMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TarMember")
            .field("name", &String::from_utf8_lossy(&self.name))
            .field("kind", &self.kind)
            .field("size", &self.size)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

impl TarMember {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns the target of a link.
    #[must_use]
    pub fn link(&self) -> &[u8] {
        &self.link
    }

    /// Returns the size of the contents in the file.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the permissions.
    #[must_use]
    pub fn mode(&self) -> u32 {
        self.mode
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> TarKind {
        self.kind
    }

    /// Returns the place of the first header of the member in the tar file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl<R> fmt::Debug for TarReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TarReader").field("at", &self.at).finish_non_exhaustive()
    }
}

/// Returns whether these are the first bytes of a tar file.
#[must_use]
pub(crate) fn is_tar(head: &[u8]) -> bool {
    let Some(header) = head.first_chunk::<BLOCK>() else { return false };
    header.get(257..262) == Some(b"ustar") && check_sum(header)
}

/// Returns whether the checksum of a header is right.
fn check_sum(header: &[u8; BLOCK]) -> bool {
    let Some(expected) = header.get(148..156).and_then(number) else { return false };
    let bytes = || {
        let blank = |(at, &byte): (usize, &u8)| if (148..156).contains(&at) { b' ' } else { byte };
        header.iter().enumerate().map(blank)
    };
    let unsigned: u64 = bytes().map(u64::from).sum();
    // Old implementations summed signed bytes.
    let signed: i64 = bytes().map(|byte| i64::from(byte.cast_signed())).sum();
    expected == unsigned || i64::try_from(expected) == Ok(signed)
}

/// Parses a number: octal, or of base 256.
fn number(field: &[u8]) -> Option<u64> {
    if let Some((&first, rest)) = field.split_first()
        && first & 0x80 != 0
    {
        if first != 0x80 {
            return None;
        }
        return rest
            .iter()
            .try_fold(0u64, |value, &byte| value.checked_mul(256)?.checked_add(u64::from(byte)));
    }
    let text = field.split(|&byte| byte == 0).next().unwrap_or_default();
    let text = text.trim_ascii();
    text.iter().try_fold(0u64, |value, &byte| {
        let digit = matches!(byte, b'0'..=b'7').then(|| u64::from(byte - b'0'))?;
        value.checked_mul(8)?.checked_add(digit)
    })
}

/// Returns the text of a field up to the first NUL.
fn text(field: &[u8]) -> &[u8] {
    field.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Values of extended headers for the next member.
#[derive(Default)]
struct Extended {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<(u64, std::ops::Range<usize>)>,
    is_sparse: bool,
}

impl<R: Read> TarReader<R> {
    /// Starts at the first header.
    pub fn new(reader: R) -> Self {
        TarReader { reader, at: 0, left: 0, padding: 0, is_done: false, end: Vec::new() }
    }

    /// Skips what is left of the member, and returns the next; `None` at the end. Its contents are read from this
    /// reader.
    ///
    /// # Errors
    ///
    /// [`Truncated`](ErrorKind::Truncated) and [`Malformed`](ErrorKind::Malformed) headers, [`Limit`](ErrorKind::Limit)
    /// for extended headers of more than 1 MiB; those of the reader. `None` follows an error.
    pub fn next_member(&mut self) -> Result<Option<TarMember>, Error> {
        if self.is_done {
            return Ok(None);
        }
        let member = self.read_member();
        self.is_done = !matches!(member, Ok(Some(_)));
        member
    }

    fn read_member(&mut self) -> Result<Option<TarMember>, Error> {
        let skip = self.left.saturating_add(self.padding);
        let skipped = io::copy(&mut self.reader.by_ref().take(skip), &mut io::sink())?;
        self.at = self.at.saturating_add(skipped);
        if skipped < self.left {
            let text = "tar: its contents end too early";
            return Err(Error::at(ErrorKind::Truncated, self.at, text));
        }
        (self.left, self.padding) = (0, 0);
        let offset = self.at;
        let mut headers = Vec::new();
        let mut extended = Extended::default();
        loop {
            let header_at = headers.len();
            let mut header = [0; BLOCK];
            let read = read_full(&mut self.reader, &mut header)?;
            self.at = self.at.saturating_add(read as u64);
            let place = offset.saturating_add(header_at as u64);
            if read == 0 && header_at == 0 || read == BLOCK && header == [0; BLOCK] {
                if header_at > 0 {
                    let text = "tar: expected a member after an extended header";
                    return Err(Error::at(ErrorKind::Malformed, place, text));
                }
                self.end = header.get(..read).unwrap_or_default().to_vec();
                return Ok(None);
            }
            if read < BLOCK {
                let text = format!("tar header: expected {BLOCK} bytes, found {read}");
                return Err(Error::at(ErrorKind::Truncated, place, text));
            }
            if !check_sum(&header) {
                let text = "tar header: its checksum is wrong";
                return Err(Error::at(ErrorKind::Malformed, place, text));
            }
            headers.extend_from_slice(&header);
            if headers.len() > MAX_HEADERS {
                let text = "tar: extended headers exceed the limit of 4 MiB";
                return Err(Error::at(ErrorKind::Limit, place, text));
            }
            let field = |range: std::ops::Range<usize>| header.get(range).unwrap_or_default();
            let size = number(field(124..136)).ok_or_else(|| {
                Error::at(ErrorKind::Malformed, place, "tar header: its size is not a number")
            })?;
            let kind = header.get(156).copied().unwrap_or(0);
            if matches!(kind, b'L' | b'K' | b'x' | b'g' | b'X') {
                let data_at = headers.len();
                self.read_extended(size, place, &mut headers)?;
                let data = headers.get(data_at..).unwrap_or_default();
                let data = data.get(..usize::try_from(size).unwrap_or(0)).unwrap_or_default();
                match kind {
                    b'L' => extended.name = Some(text(data).to_vec()),
                    b'K' => extended.link = Some(text(data).to_vec()),
                    b'g' => {}
                    _ => read_pax(data, data_at, place, &mut extended)?,
                }
                continue;
            }
            let is_old_sparse = kind == b'S';
            let mut more = is_old_sparse && header.get(482).is_some_and(|&byte| byte != 0);
            while more {
                let mut block = [0; BLOCK];
                let read = read_full(&mut self.reader, &mut block)?;
                self.at = self.at.saturating_add(read as u64);
                if read < BLOCK || headers.len() > MAX_HEADERS {
                    let text = "tar: the map of a sparse file ends too early or is too long";
                    return Err(Error::at(ErrorKind::Malformed, place, text));
                }
                headers.extend_from_slice(&block);
                more = block.get(504).is_some_and(|&byte| byte != 0);
            }
            let mut name = text(field(0..100)).to_vec();
            let prefix = text(field(345..500));
            if field(257..263) == b"ustar\0" && !prefix.is_empty() {
                name = [prefix, b"/", &name].concat();
            }
            let name = extended.name.unwrap_or(name);
            let (size, pax_size) = match extended.size {
                Some((size, place)) => (size, Some(place)),
                None => (size, None),
            };
            let is_sparse = is_old_sparse || extended.is_sparse;
            let kind = match kind {
                _ if is_sparse => TarKind::Other,
                b'5' => TarKind::Directory,
                // A directory of a time before there were any.
                0 | b'0' if name.ends_with(b"/") => TarKind::Directory,
                0 | b'0' | b'7' => TarKind::File,
                b'1' => TarKind::HardLink,
                b'2' => TarKind::Symlink,
                _ => TarKind::Other,
            };
            // Links, directories and devices have no contents, whatever their size.
            let type_byte = header.get(156).copied().unwrap_or(0);
            let size = if matches!(type_byte, b'1'..=b'6') { 0 } else { size };
            self.left = size;
            self.padding = size.next_multiple_of_block().saturating_sub(size);
            return Ok(Some(TarMember {
                name,
                link: extended.link.unwrap_or_else(|| text(field(157..257)).to_vec()),
                size,
                mode: number(field(100..108))
                    .and_then(|mode| u32::try_from(mode).ok())
                    .unwrap_or(0),
                kind,
                offset,
                headers,
                header_at,
                pax_size,
                is_sparse,
            }));
        }
    }

    /// Reads the contents of an extended header, with padding.
    fn read_extended(&mut self, size: u64, place: u64, to: &mut Vec<u8>) -> Result<(), Error> {
        if size > MAX_EXTENDED {
            let text =
                format!("tar: an extended header of {size} bytes exceeds the limit of 1 MiB");
            return Err(Error::at(ErrorKind::Limit, place, text));
        }
        let padded = size.next_multiple_of_block();
        let read = self.reader.by_ref().take(padded).read_to_end(to)?;
        self.at = self.at.saturating_add(read as u64);
        if (read as u64) < padded {
            let text = format!("tar: extended header of {size} bytes ends after {read}");
            return Err(Error::at(ErrorKind::Truncated, place, text));
        }
        Ok(())
    }

    /// Returns all that follows the members: the block that ended the file, and the reader.
    pub(crate) fn into_rest(self) -> (Vec<u8>, R) {
        (self.end, self.reader)
    }
}

trait Blocks {
    fn next_multiple_of_block(self) -> u64;
}

impl Blocks for u64 {
    fn next_multiple_of_block(self) -> u64 {
        self.checked_next_multiple_of(BLOCK as u64).unwrap_or(u64::MAX)
    }
}

/// Returns the padding after contents of this size.
pub(crate) fn padding(size: u64) -> usize {
    usize::try_from(size.next_multiple_of_block().saturating_sub(size)).unwrap_or(0)
}

/// Reads pax records: `LENGTH KEY=VALUE\n`.
fn read_pax(data: &[u8], data_at: usize, place: u64, extended: &mut Extended) -> Result<(), Error> {
    let bad =
        |text: &str| Error::at(ErrorKind::Malformed, place, format!("tar pax header: {text}"));
    let mut at = 0;
    while let Some(rest) = data.get(at..).filter(|rest| !rest.is_empty()) {
        let space = rest.iter().position(|&byte| byte == b' ');
        let length = space
            .and_then(|space| std::str::from_utf8(rest.get(..space)?).ok()?.parse::<usize>().ok());
        let record = length.zip(space).and_then(|(length, space)| {
            rest.get(space + 1..length)?
                .strip_suffix(b"\n")
                .map(|record| (record, space + 1, length))
        });
        let (record, start, length) =
            record.ok_or_else(|| bad("expected a record with its length"))?;
        let equals = record.iter().position(|&byte| byte == b'=');
        let equals = equals.ok_or_else(|| bad("expected '=' in a record"))?;
        let value = record.get(equals + 1..).unwrap_or_default();
        match record.get(..equals).unwrap_or_default() {
            b"path" if !extended.is_sparse => extended.name = Some(value.to_vec()),
            b"linkpath" => extended.link = Some(value.to_vec()),
            b"size" => {
                let size = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                let size = size.ok_or_else(|| bad("its size is not a number"))?;
                let place = data_at + at + start + equals + 1;
                extended.size = Some((size, place..place + value.len()));
            }
            b"GNU.sparse.name" => {
                extended.name = Some(value.to_vec());
                extended.is_sparse = true;
            }
            key if key.starts_with(b"GNU.sparse.") => extended.is_sparse = true,
            _ => {}
        }
        at += length;
    }
    Ok(())
}

impl<R: Read> Read for TarReader<R> {
    /// Reads contents of the member.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        if room == 0 {
            return Ok(0);
        }
        let read = self.reader.read(buf.get_mut(..room).unwrap_or_default())?;
        self.at = self.at.saturating_add(read as u64);
        self.left = self.left.saturating_sub(read as u64);
        if read == 0 {
            let text = "tar: its contents end too early";
            return Err(Error::at(ErrorKind::Truncated, self.at, text).into());
        }
        Ok(read)
    }
}

/// Returns the headers of a member with another size.
pub(crate) fn headers_with_size(member: &TarMember, size: u64) -> Result<Vec<u8>, Error> {
    let refuse = |text: &str| Err(Error::at(ErrorKind::Refused, member.offset, text));
    if member.is_sparse {
        return refuse("tar: expected a file that is not sparse");
    }
    let mut headers = member.headers.clone();
    if let Some(place) = &member.pax_size {
        // The length of a record counts its own digits, so only numbers of the same length fit in place.
        let text = format!("{size:0width$}", width = place.len());
        match headers.get_mut(place.clone()).filter(|old| old.len() == text.len()) {
            Some(old) => old.copy_from_slice(text.as_bytes()),
            None => return refuse("tar: the pax record of the size has no room for the new size"),
        }
    }
    let Some(header) = headers.get_mut(member.header_at..).and_then(|rest| rest.get_mut(..BLOCK))
    else {
        return refuse("tar: expected a header");
    };
    if let Some(field) = header.get_mut(124..136) {
        let text = format!("{size:011o}\0");
        if text.len() == field.len() && field.first().is_none_or(|&byte| byte & 0x80 == 0) {
            field.copy_from_slice(text.as_bytes());
        } else {
            field.fill(0);
            if let Some(first) = field.first_mut() {
                *first = 0x80;
            }
            if let Some(last) = field.last_chunk_mut() {
                *last = size.to_be_bytes();
            }
        }
    }
    if let Some(field) = header.get_mut(148..156) {
        field.fill(b' ');
    }
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    if let Some(field) = header.get_mut(148..156) {
        field.copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    Ok(headers)
}
