//! The cpio files of RPM packages: `newc`, and the stripped form of packages with files of 4 GiB or more.

use std::io::{self, Read};

use crate::error::{Error, ErrorKind};
use crate::reading::{read_full, read_part};
use crate::rpm::Files;
use crate::text::until_nul;

/// The longest name.
const MAX_NAME: u64 = 64 << 10;

/// A member.
pub(crate) struct Header {
    pub(crate) name: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) size: u64,
    pub(crate) offset: u64,
}

/// A reader of members in order.
pub(crate) struct CpioReader<R> {
    reader: R,
    at: u64,
    left: u64,
    files: Files,
}

impl<R: Read> CpioReader<R> {
    pub(crate) fn new(reader: R, files: Files) -> Self {
        CpioReader { reader, at: 0, left: 0, files }
    }

    fn skip(&mut self, len: u64) -> Result<(), Error> {
        let skipped = io::copy(&mut self.reader.by_ref().take(len), &mut io::sink())?;
        self.at += skipped;
        if skipped < len {
            return Err(Error::at(ErrorKind::Truncated, self.at, "cpio: it ends too early"));
        }
        Ok(())
    }

    fn align(&mut self) -> Result<(), Error> {
        self.skip(self.at.checked_next_multiple_of(4).unwrap_or(self.at) - self.at)
    }

    fn read_exact<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        let read = read_full(&mut self.reader, &mut bytes)?.len();
        if read < N {
            let text = format!("cpio header: expected {N} bytes, found {read}");
            return Err(Error::at(ErrorKind::Truncated, self.at, text));
        }
        self.at += N as u64;
        Ok(bytes)
    }

    /// Returns the next member; `None` at the end, which is a member of its own.
    pub(crate) fn next_member(&mut self) -> Result<Option<Header>, Error> {
        self.skip(self.left)?;
        self.left = 0;
        self.align()?;
        let offset = self.at;
        let bad =
            |text: &str| Error::at(ErrorKind::Malformed, offset, format!("cpio header: {text}"));
        let hex = |bytes: &[u8], at: usize| {
            let text = std::str::from_utf8(bytes.get(at..at + 8)?).ok()?;
            u32::from_str_radix(text, 16).ok()
        };
        match &self.read_exact::<6>()? {
            b"070701" | b"070702" => {
                let fields = self.read_exact::<104>()?;
                let field = |index: usize| {
                    hex(&fields, index * 8).ok_or_else(|| bad("expected hexadecimal numbers"))
                };
                let (mode, size, name_len) = (field(1)?, field(6)?, u64::from(field(11)?));
                if name_len > MAX_NAME {
                    return Err(bad("its name exceeds the limit of 64 KiB"));
                }
                let mut name = Vec::new();
                let read = self.reader.by_ref().take(name_len).read_to_end(&mut name)? as u64;
                self.at += read;
                if read < name_len {
                    return Err(Error::at(
                        ErrorKind::Truncated,
                        offset,
                        "cpio: its name ends too early",
                    ));
                }
                self.align()?;
                name.truncate(until_nul(&name).len());
                if name == b"TRAILER!!!" {
                    return Ok(None);
                }
                self.left = u64::from(size);
                Ok(Some(Header { name, mode, size: self.left, offset }))
            }
            b"07070X" => {
                let fields = self.read_exact::<8>()?;
                let index = hex(&fields, 0).ok_or_else(|| bad("expected a hexadecimal number"))?;
                self.align()?;
                let file = self.files.get(index);
                let (size, name) = file.ok_or_else(|| bad("its number is not one of a file"))?;
                self.left = size;
                Ok(Some(Header { name, mode: 0o100_000, size, offset }))
            }
            _ => Err(bad("expected 070701, 070702 or 07070X")),
        }
    }
}

impl<R: Read> Read for CpioReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = read_part(&mut self.reader, &mut self.left, buf, |_| {
            Error::at(ErrorKind::Truncated, self.at, "cpio: contents end too early")
        })?;
        self.at += read as u64;
        Ok(read)
    }
}
