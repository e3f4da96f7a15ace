//! Tar files as streams: ustar, with the extensions of GNU and pax, as GNU tar reads them.

mod pax;
mod sparse;
mod wire;

use std::fmt;
use std::io::{self, Read};
use std::ops::Range;

use byte_parts::internal;
use zerocopy::{FromBytes, FromZeros, IntoBytes, transmute_ref};

use crate::error::{Error, ErrorKind, FindingKind};
use crate::reading::{read_full, read_part};
use crate::text::until_nul;
use pax::Pax;
pub(crate) use sparse::Expanded;
use sparse::{Expansion, SparseMap};
use wire::{Block, PartsBlock, SparseBlock};

/// Size of a header, and unit of contents.
pub(crate) const BLOCK: usize = 512;
/// The longest extended header.
const MAX_EXTENDED: usize = 1 << 20;
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
    /// Passes over bytes; fewer if the stream ends.
    skip: fn(&mut R, u64) -> io::Result<u64>,
    /// Bytes that were read.
    at: u64,
    /// Contents of the member that were not read, and the padding after them.
    left: u64,
    padding: u64,
    /// The member is a sparse file, whose stored parts these are.
    expansion: Option<Expansion>,
    /// Values of global headers, which concern all members after them.
    global: Pax,
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
    pub(crate) pax_size: Option<Range<usize>>,
    /// A global header has the size.
    has_global_size: bool,
    pub(crate) is_sparse: bool,
    /// Bytes of the contents that are in the file, without the map of a sparse file.
    pub(crate) stored: u64,
    /// Faults that keep the member from being read, or that programs read differently.
    pub(crate) faults: Vec<Fault>,
}

/// A fault of a member.
#[derive(Clone)]
pub(crate) struct Fault {
    pub(crate) kind: FindingKind,
    error: ErrorKind,
    place: u64,
    text: String,
}

impl Fault {
    pub(crate) fn error(&self) -> Error {
        Error::at(self.error, self.place, &self.text)
    }
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
    /// A device, a FIFO, a label, or a sparse file whose map is malformed.
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

    /// Returns the size of the contents. The tar file may have fewer bytes of a sparse file.
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
    Block::ref_from_prefix(head)
        .is_ok_and(|(header, _)| header.magic.starts_with(b"ustar") && check_sum(header))
}

/// Returns whether the checksum of a header is right.
fn check_sum(header: &Block) -> bool {
    let Some(expected) = number(&header.checksum) else { return false };
    let blank = Block { checksum: [b' '; 8], ..*header };
    let unsigned: u64 = blank.as_bytes().iter().map(|&byte| u64::from(byte)).sum();
    // Old implementations summed signed bytes.
    let signed: i64 = blank.as_bytes().iter().map(|byte| i64::from(byte.cast_signed())).sum();
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
    let text = until_nul(field).trim_ascii();
    text.iter().try_fold(0u64, |value, &byte| {
        let digit = matches!(byte, b'0'..=b'7').then(|| u64::from(byte - b'0'))?;
        value.checked_mul(8)?.checked_add(digit)
    })
}

/// A header of a member.
struct Header {
    block: Block,
    /// Place among the headers of the member.
    at: usize,
    /// Place in the file.
    place: u64,
}

impl Header {
    /// Returns the name that the header itself has.
    fn name(&self) -> Vec<u8> {
        let (name, prefix) = (until_nul(&self.block.name), until_nul(&self.block.prefix));
        if self.block.magic == *b"ustar\0" && !prefix.is_empty() {
            [prefix, b"/", name].concat()
        } else {
            name.to_vec()
        }
    }
}

/// The headers of the next member that were read until now.
#[derive(Default)]
struct Next {
    offset: u64,
    headers: Vec<u8>,
    pax: Pax,
    long_name: Option<Vec<u8>>,
    long_link: Option<Vec<u8>>,
    /// A header concerns the next member only.
    is_extended: bool,
    faults: Vec<Fault>,
}

impl Next {
    fn add_fault(&mut self, kind: FindingKind, error: ErrorKind, header: &Header, text: String) {
        self.faults.push(Fault { kind, error, place: header.place, text });
    }
}

impl<R: Read> TarReader<R> {
    /// Starts at the first header.
    pub fn new(reader: R) -> Self {
        let skip = |reader: &mut R, len| io::copy(&mut reader.by_ref().take(len), &mut io::sink());
        TarReader::with_skip(reader, skip)
    }

    /// Starts at the first header of a stream that can pass over bytes without reading them.
    pub(crate) fn with_skip(reader: R, skip: fn(&mut R, u64) -> io::Result<u64>) -> Self {
        TarReader {
            reader,
            skip,
            at: 0,
            left: 0,
            padding: 0,
            expansion: None,
            global: Pax::default(),
            is_done: false,
            end: Vec::new(),
        }
    }

    /// Skips what is left of the member, and returns the next; `None` at the end. Its contents are read from this
    /// reader. A sparse file has zeros between the parts that are stored.
    ///
    /// # Errors
    ///
    /// [`Truncated`](ErrorKind::Truncated) and [`Malformed`](ErrorKind::Malformed) headers, [`Limit`](ErrorKind::Limit)
    /// for extended headers of more than 1 MiB; errors of the reader. `None` follows an error.
    pub fn next_member(&mut self) -> Result<Option<TarMember>, Error> {
        if self.is_done {
            return Ok(None);
        }
        let member = self.read_member();
        self.is_done = !matches!(member, Ok(Some(_)));
        member
    }

    fn read_member(&mut self) -> Result<Option<TarMember>, Error> {
        self.skip_contents()?;
        let mut next = Next { offset: self.at, ..Next::default() };
        loop {
            let Some(header) = self.read_header(&mut next)? else { return Ok(None) };
            let size = number(&header.block.size).ok_or_else(|| {
                let text = "tar header: its size is not a number";
                Error::at(ErrorKind::Malformed, header.place, text)
            })?;
            if !is_extension(header.block.type_flag) {
                return self.member(&header, size, next).map(Some);
            }
            self.read_extension(&header, size, &mut next)?;
        }
    }

    fn skip_contents(&mut self) -> Result<(), Error> {
        let skipped = (self.skip)(&mut self.reader, self.left + self.padding)?;
        self.at += skipped;
        if skipped < self.left {
            let text = "tar: its contents end too early";
            return Err(Error::at(ErrorKind::Truncated, self.at, text));
        }
        (self.left, self.padding, self.expansion) = (0, 0, None);
        Ok(())
    }

    /// Reads a header, and adds it to those of the member; `None` at the end of the file.
    fn read_header(&mut self, next: &mut Next) -> Result<Option<Header>, Error> {
        let mut block = Block::new_zeroed();
        let place = self.at;
        let read = read_full(&mut self.reader, block.as_mut_bytes())?.len();
        self.at += read as u64;
        if read == 0 && next.headers.is_empty() || read == BLOCK && block.as_bytes() == [0; BLOCK] {
            if next.is_extended {
                let text = "tar: expected a member after an extended header";
                return Err(Error::at(ErrorKind::Malformed, place, text));
            }
            self.end = std::mem::take(&mut next.headers);
            self.end.extend(block.as_bytes().iter().take(read));
            return Ok(None);
        }
        if read < BLOCK {
            let text = format!("tar header: expected {BLOCK} bytes, found {read}");
            return Err(Error::at(ErrorKind::Truncated, place, text));
        }
        if !check_sum(&block) {
            let text = "tar header: its checksum is wrong";
            return Err(Error::at(ErrorKind::Malformed, place, text));
        }
        let at = next.headers.len();
        next.headers.extend_from_slice(block.as_bytes());
        if next.headers.len() > MAX_HEADERS {
            let text = "tar: extended headers exceed the limit of 4 MiB";
            return Err(Error::at(ErrorKind::Limit, place, text));
        }
        Ok(Some(Header { block, at, place }))
    }

    /// Reads the contents of an extended header.
    fn read_extension(&mut self, header: &Header, size: u64, next: &mut Next) -> Result<(), Error> {
        let data_at = next.headers.len();
        let data = self.read_extended(size, header.place, &mut next.headers)?;
        next.is_extended |= header.block.type_flag != b'g';
        match header.block.type_flag {
            b'L' => next.long_name = Some(until_nul(data).to_vec()),
            b'K' => next.long_link = Some(until_nul(data).to_vec()),
            b'g' => {
                let mut global = Pax::default();
                global.read(data, data_at, header.place)?;
                let keys = global.keys();
                if !keys.is_empty() {
                    let text = format!(
                        "a global header sets {} of all members after it, which some programs ignore",
                        keys.join(", ")
                    );
                    next.add_fault(FindingKind::Ambiguous, ErrorKind::Malformed, header, text);
                }
                self.global = global.or(&self.global);
            }
            _ => next.pax.read(data, data_at, header.place)?,
        }
        Ok(())
    }

    /// Returns the member that a header describes, after the extended ones.
    fn member(&mut self, header: &Header, size: u64, mut next: Next) -> Result<TarMember, Error> {
        let has_local_size = next.pax.size.is_some();
        let pax = std::mem::take(&mut next.pax).or(&self.global);
        let stored = pax.size.unwrap_or(size);
        let type_flag = header.block.type_flag;
        // Links, directories and devices have no contents, whatever their size.
        self.left = if matches!(type_flag, b'1'..=b'6') { 0 } else { stored };
        self.padding = padding(self.left);
        let padded = self.left.checked_add(self.padding);
        if padded.and_then(|padded| padded.checked_add(self.at)).is_none() {
            let text = format!("tar header: its size is {stored} bytes, more than a file has");
            return Err(Error::at(ErrorKind::Malformed, header.place, text));
        }
        let mut size = self.left;
        let is_file = !matches!(type_flag, b'1'..=b'6' | b'D' | b'V');
        let is_sparse = type_flag == b'S' || is_file && pax.sparse.is_some();
        if is_sparse {
            match self.sparse_map(header, pax.sparse.as_ref(), &mut next.headers)? {
                Ok(map) => {
                    size = map.size();
                    self.expansion = Some(map.expand());
                }
                Err(text) => {
                    size = self.left;
                    let text = format!("the map of a sparse file: {text}");
                    next.add_fault(FindingKind::Unread, ErrorKind::Malformed, header, text);
                }
            }
        }
        let sparse_name = pax.sparse.and_then(|sparse| sparse.name);
        let name = sparse_name.or(pax.name).or(next.long_name.take());
        let name = name.unwrap_or_else(|| header.name());
        if type_flag == b'M' {
            let text = "the rest of a file that starts in another volume";
            next.add_fault(FindingKind::Unread, ErrorKind::Unsupported, header, text.into());
        }
        let link = pax.link.or(next.long_link.take());
        Ok(TarMember {
            kind: match type_flag {
                _ if is_sparse && self.expansion.is_none() => TarKind::Other,
                b'5' | b'D' => TarKind::Directory,
                b'1' => TarKind::HardLink,
                b'2' => TarKind::Symlink,
                b'3' | b'4' | b'6' | b'V' => TarKind::Other,
                // A directory of a time before there were any.
                0 | b'0' | b'7' if name.ends_with(b"/") => TarKind::Directory,
                // Types that are not known are files.
                _ => TarKind::File,
            },
            name,
            link: link.unwrap_or_else(|| until_nul(&header.block.link).to_vec()),
            size,
            mode: number(&header.block.mode).and_then(|mode| u32::try_from(mode).ok()).unwrap_or(0),
            offset: next.offset,
            headers: next.headers,
            header_at: header.at,
            pax_size: pax.size_at,
            has_global_size: pax.size.is_some() && !has_local_size,
            is_sparse,
            stored: self.left,
            faults: next.faults,
        })
    }

    /// Reads the map of a sparse file: from its header and blocks after it, from pax records, or from the start of its
    /// contents. The inner error is one of the map.
    fn sparse_map(
        &mut self,
        header: &Header,
        pax: Option<&pax::Sparse>,
        headers: &mut Vec<u8>,
    ) -> Result<Result<SparseMap, String>, Error> {
        let Some(pax) = pax else { return self.old_sparse_map(header, headers) };
        let Some(size) = pax.size else { return Ok(Err("expected the size of the file".into())) };
        let parts = if pax.has_lines { self.read_map(headers)? } else { Ok(pax.parts()) };
        Ok(parts.and_then(|parts| SparseMap::new(&parts, size, self.left)))
    }

    /// Reads the map of a sparse file of GNU's own format.
    fn old_sparse_map(
        &mut self,
        header: &Header,
        headers: &mut Vec<u8>,
    ) -> Result<Result<SparseMap, String>, Error> {
        let header: &SparseBlock = transmute_ref!(&header.block);
        let mut stored = header.parts.to_vec();
        let mut has_more = header.has_more != 0;
        while has_more {
            let block = match self.map_block(headers)? {
                Ok(block) => block,
                Err(text) => return Ok(Err(text)),
            };
            let block: &PartsBlock = transmute_ref!(&block);
            stored.extend_from_slice(&block.parts);
            has_more = block.has_more != 0;
        }
        let mut parts = Vec::new();
        for [offset, len] in &stored {
            if len.starts_with(&[0]) {
                break;
            }
            let (Some(offset), Some(len)) = (number(offset), number(len)) else {
                return Ok(Err("expected numbers".into()));
            };
            parts.push((offset, len));
        }
        let Some(size) = number(&header.real_size) else {
            return Ok(Err("expected the size of the file".into()));
        };
        Ok(SparseMap::new(&parts, size, self.left))
    }

    /// Reads the lines of a map at the start of the contents, in whole blocks.
    fn read_map(
        &mut self,
        headers: &mut Vec<u8>,
    ) -> Result<Result<Vec<(u64, u64)>, String>, Error> {
        let start = headers.len();
        let (mut lines, mut wanted) = (0u64, None);
        loop {
            let Some(left) = self.left.checked_sub(BLOCK as u64) else {
                return Ok(Err("the contents end before it does".into()));
            };
            let block = match self.map_block(headers)? {
                Ok(block) => block,
                Err(text) => return Ok(Err(text)),
            };
            self.left = left;
            lines += block.iter().map(|&byte| u64::from(byte == b'\n')).sum::<u64>();
            let (_, text) = headers.split_at(start);
            let needed = match wanted {
                Some(needed) => needed,
                None => match sparse::count_lines(text) {
                    Ok(needed) => *wanted.insert(needed),
                    Err(text) => return Ok(Err(text)),
                },
            };
            if lines >= needed {
                return Ok(sparse::parse_lines(text));
            }
        }
    }

    /// Reads a block of a map, and adds it to the headers.
    fn map_block(&mut self, headers: &mut Vec<u8>) -> Result<Result<[u8; BLOCK], String>, Error> {
        if headers.len() >= MAX_HEADERS {
            return Ok(Err("it exceeds the limit of 4 MiB".into()));
        }
        let mut block = [0; BLOCK];
        let read = read_full(&mut self.reader, &mut block)?.len();
        self.at += read as u64;
        if read < BLOCK {
            let text = "tar: the map of a sparse file ends too early";
            return Err(Error::at(ErrorKind::Truncated, self.at, text));
        }
        headers.extend_from_slice(&block);
        Ok(Ok(block))
    }

    /// Reads the contents of an extended header, with padding, and returns them without it.
    fn read_extended<'t>(
        &mut self,
        size: u64,
        place: u64,
        to: &'t mut Vec<u8>,
    ) -> Result<&'t [u8], Error> {
        let Some(size) = usize::try_from(size).ok().filter(|&size| size <= MAX_EXTENDED) else {
            let text =
                format!("tar: an extended header of {size} bytes exceeds the limit of 1 MiB");
            return Err(Error::at(ErrorKind::Limit, place, text));
        };
        let (start, padded) = (to.len(), size.next_multiple_of(BLOCK));
        let read = self.reader.by_ref().take(padded as u64).read_to_end(to)?;
        self.at += read as u64;
        if read < padded {
            let text = format!("tar: extended header of {size} bytes ends after {read}");
            return Err(Error::at(ErrorKind::Truncated, place, text));
        }
        Ok(to.split_at(start).1.split_at(size).0)
    }

    /// Returns the place of the contents of the member that are not read, as they are stored.
    pub(crate) fn contents(&self) -> Range<u64> {
        self.at..self.at + self.left
    }

    /// Returns all that follows the members: the block that ended the file, and the reader.
    pub(crate) fn into_rest(self) -> (Vec<u8>, R) {
        (self.end, self.reader)
    }
}

/// Returns the number of bytes of padding after contents of this size.
pub(crate) fn padding(size: u64) -> u64 {
    match size % BLOCK as u64 {
        0 => 0,
        rest => BLOCK as u64 - rest,
    }
}

impl<R: Read> TarReader<R> {
    /// Reads bytes of the member as they are in the file.
    fn read_stored(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = read_part(&mut self.reader, &mut self.left, buf, |_| {
            Error::at(ErrorKind::Truncated, self.at, "tar: its contents end too early")
        })?;
        self.at += read as u64;
        Ok(read)
    }

    /// Takes the map of a sparse file: then its stored parts are read, without the zeros between them.
    pub(crate) fn take_expansion(&mut self) -> Option<Expansion> {
        self.expansion.take()
    }
}

impl<R: Read> Read for TarReader<R> {
    /// Reads contents of the member.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let Some(mut expansion) = self.expansion.take() else { return self.read_stored(buf) };
        let read = expansion.read(buf, |part| self.read_stored(part));
        self.expansion = Some(expansion);
        read
    }
}

/// Returns the headers of a member with another size.
pub(crate) fn headers_with_size(member: &TarMember, size: u64) -> Result<Vec<u8>, Error> {
    let refuse = |text: &str| Err(Error::at(ErrorKind::Refused, member.offset, text));
    if member.has_global_size {
        return refuse("tar: a global header has the size");
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
    let (_, rest) = headers.split_at_mut(member.header_at);
    let Ok((header, _)) = Block::mut_from_prefix(rest) else {
        return Err(Error::internal(internal!("the headers of a member lack its own")));
    };
    let is_text = header.size.first().is_none_or(|byte| byte & 0x80 == 0);
    header.size = match format!("{size:011o}\0").as_bytes().try_into() {
        Ok(text) if is_text => text,
        _ => {
            let [a, b, c, d, e, f, g, h] = size.to_be_bytes();
            [0x80, 0, 0, 0, a, b, c, d, e, f, g, h]
        }
    };
    set_checksum(header);
    Ok(headers)
}

fn set_checksum(header: &mut Block) {
    header.checksum.fill(b' ');
    let sum: u32 = header.as_bytes().iter().map(|&byte| u32::from(byte)).sum();
    header.checksum.copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

/// Returns the headers of a member, whose names were changed, with right checksums.
pub(crate) fn renamed_headers(mut headers: Vec<u8>) -> Result<Vec<u8>, Error> {
    let mut at = 0;
    loop {
        let rest = headers.get_mut(at..).unwrap_or(&mut []);
        let Ok((header, _)) = Block::mut_from_prefix(rest) else {
            return Err(Error::internal(internal!("the headers of a member lack its own")));
        };
        if !check_sum(header) {
            set_checksum(header);
        }
        if !is_extension(header.type_flag) {
            return Ok(headers);
        }
        let size = number(&header.size).and_then(|size| usize::try_from(size).ok());
        let end = size.and_then(|size| at.checked_add(BLOCK)?.checked_add(size));
        let end = end.and_then(|end| end.checked_next_multiple_of(BLOCK));
        at = end.ok_or_else(|| Error::internal(internal!("an extended header has no end")))?;
    }
}

/// Returns whether a header extends the header of the next member.
fn is_extension(type_flag: u8) -> bool {
    matches!(type_flag, b'L' | b'K' | b'x' | b'g' | b'X')
}
