//! A fatbinary, and several in a row.

use alloc::format;
use core::fmt;
use core::iter::from_fn;

use zerocopy::FromBytes;

use crate::MAGIC;
use crate::entry::Entry;
use crate::error::{Error, ErrorKind};
use crate::wire::FatbinHeader;

/// Bytes of the header.
pub(crate) const HEADER: u64 = 16;

/// A fatbinary, or as much of it as is in memory.
#[derive(Clone, Copy)]
pub struct Fatbin<'data> {
    data: &'data [u8],
    size: u64,
}

impl fmt::Debug for Fatbin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fatbin").field("size", &self.size).finish_non_exhaustive()
    }
}

impl<'data> Fatbin<'data> {
    /// Reads the header of the fatbinary at the start of `data`, which holds all of it. Bytes after the fatbinary are ignored.
    ///
    /// # Errors
    ///
    /// [`NotAFatbin`](crate::ErrorKind::NotAFatbin), [`Truncated`](crate::ErrorKind::Truncated),
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for another version.
    pub fn parse(data: &'data [u8]) -> Result<Self, Error> {
        Self::parse_prefix(data, data.len() as u64)
    }

    /// Reads the header of the fatbinary at the start of `prefix`, which has its first 16 bytes at least. `available` is the
    /// number of bytes from its magic to the end of the section or file.
    ///
    /// ```
    /// use nv_fatbin::Fatbin;
    ///
    /// let header = b"\x50\xed\x55\xba\x01\0\x10\0\x50\0\0\0\0\0\0\0";
    /// assert_eq!(Fatbin::parse_prefix(header, 1000)?.size(), 96);
    /// let error = Fatbin::parse(header).unwrap_err();
    /// assert_eq!(error.to_string(), "fatbinary promises 80 bytes after its header, 0 are left");
    /// # Ok::<(), nv_fatbin::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Errors of [`parse`](Self::parse).
    pub fn parse_prefix(prefix: &'data [u8], available: u64) -> Result<Self, Error> {
        let shown = prefix.get(..MAGIC.len()).unwrap_or(prefix);
        if !MAGIC.starts_with(shown) {
            let message = "expected the magic of a fatbinary, 50 ed 55 ba";
            return Err(Error::of_header(ErrorKind::NotAFatbin, message));
        }
        let header = FatbinHeader::ref_from_prefix(prefix).ok();
        let Some(((header, _), rest)) = header.zip(available.checked_sub(HEADER)) else {
            let left = available.min(prefix.len() as u64);
            let message = format!("fatbinary header needs 16 bytes, {left} are left");
            return Err(Error::of_header(ErrorKind::Truncated, message));
        };
        let (version, header_size) = (header.version.get(), header.header_size.get());
        if version != 1 || u64::from(header_size) != HEADER {
            let message = format!(
                "fatbinary version {version} with a header of {header_size} bytes, expected version 1 with 16"
            );
            return Err(Error::of_header(ErrorKind::Unsupported, message));
        }
        let size = header.size.get();
        if size > rest {
            let message =
                format!("fatbinary promises {size} bytes after its header, {rest} are left");
            return Err(Error::of_header(ErrorKind::Truncated, message));
        }
        let size = HEADER + size;
        let data = usize::try_from(size).ok().and_then(|len| prefix.get(..len)).unwrap_or(prefix);
        Ok(Fatbin { data, size })
    }

    /// Returns the number of bytes of the fatbinary, with its header.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the bytes of the fatbinary that are in memory.
    #[must_use]
    pub fn bytes(&self) -> &'data [u8] {
        self.data
    }

    /// Iterates over the entries, in stored order. The first error is the last item.
    pub fn entries(
        &self,
    ) -> impl Iterator<Item = Result<Entry<'data>, Error>> + Clone + use<'data> {
        let Fatbin { data, size } = *self;
        let mut next = (0, HEADER);
        let mut is_done = false;
        from_fn(move || {
            let (index, offset) = next;
            if is_done || offset >= size {
                return None;
            }
            // None may be in memory.
            let bytes = usize::try_from(offset).ok().and_then(|at| data.get(at..)).unwrap_or(&[]);
            let entry = Entry::parse(bytes, index, offset, size);
            match &entry {
                Ok(entry) => next = (index + 1, entry.end()),
                Err(_) => is_done = true,
            }
            Some(entry)
        })
    }
}

/// Iterates over the fatbinaries of a section, each with its offset. Zeros may lie between them and at the end. The first
/// error is the last item.
///
/// ```
/// let empty = *b"\x50\xed\x55\xba\x01\0\x10\0\0\0\0\0\0\0\0\0";
/// let section = [&empty[..], &[0; 8], &empty, &[0; 3]].concat();
/// let offsets = nv_fatbin::fatbins(&section).map(|found| found.map(|(offset, _)| offset));
/// assert_eq!(offsets.collect::<Result<Vec<_>, _>>()?, [0, 24]);
/// # Ok::<(), nv_fatbin::Error>(())
/// ```
pub fn fatbins(
    section: &[u8],
) -> impl Iterator<Item = Result<(u64, Fatbin<'_>), Error>> + Clone + use<'_> {
    let mut at = Some(0);
    from_fn(move || {
        let rest = section.get(at?..)?;
        let zeros = rest.iter().position(|&byte| byte != 0)?;
        let start = at? + zeros;
        let offset = start as u64;
        let parsed = Fatbin::parse(rest.get(zeros..)?);
        at = parsed.as_ref().ok().map(|fatbin| start + fatbin.data.len());
        Some(match parsed {
            Ok(fatbin) => Ok((offset, fatbin)),
            Err(error) => Err(error.at(offset)),
        })
    })
}
