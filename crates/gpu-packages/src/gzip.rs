//! gzip streams, of one or more members (RFC 1952).

use std::io::{self, BufRead, Read};

use flate2::{Crc, Decompress, FlushDecompress, Status};

use crate::error::{Error, ErrorKind};
use crate::reading::{between, given};

/// A decoder whose faults have places in the stream.
pub(crate) struct Decoder<R> {
    reader: R,
    inflate: Decompress,
    /// The checksum of what the member gave, and its size.
    crc: Crc,
    state: State,
    /// The place in the stream.
    at: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// At a header; the first one must be there.
    Start,
    Data,
    Trailer,
    /// After a member.
    Between,
    Failed,
}

impl<R: BufRead> Decoder<R> {
    pub(crate) fn new(reader: R) -> Self {
        let (inflate, crc) = (Decompress::new(false), Crc::new());
        Decoder { reader, inflate, crc, state: State::Start, at: 0 }
    }

    fn error(&mut self, kind: ErrorKind, text: &str) -> io::Error {
        self.state = State::Failed;
        Error::new(kind, format!("malformed gzip data: byte {:#x}: {text}", self.at)).into()
    }

    /// Returns the next bytes, which must be there.
    fn take<const N: usize>(&mut self, what: &str) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        match self.reader.read_exact(&mut bytes) {
            Ok(()) => {}
            Err(error) if is_end(&error) => {
                let text = format!("expected {what}, found the end");
                return Err(self.error(ErrorKind::Codec, &text));
            }
            Err(error) => return Err(error),
        }
        self.at += N as u64;
        Ok(bytes)
    }

    /// Reads a header.
    fn open(&mut self) -> io::Result<()> {
        const CHECKSUM: u8 = 2;
        const EXTRA: u8 = 4;
        const NAME: u8 = 8;
        const COMMENT: u8 = 16;
        let start = self.at;
        let [first, second, method, flags, _, _, _, _, _, _] = self.take("a header of 10 bytes")?;
        if [first, second, method] != [0x1f, 0x8b, 8] || flags & 0xe0 != 0 {
            self.at = start;
            let found = [first, second, method, flags];
            let text =
                format!("expected a header, 1f 8b 08 and flags below 20, found {found:02x?}");
            return Err(self.error(ErrorKind::Codec, &text));
        }
        let what = "the rest of the header";
        if flags & EXTRA != 0 {
            for _ in 0..u16::from_le_bytes(self.take(what)?) {
                self.take::<1>(what)?;
            }
        }
        for flag in [NAME, COMMENT] {
            while flags & flag != 0 && self.take(what)? != [0] {}
        }
        if flags & CHECKSUM != 0 {
            self.take::<2>(what)?;
        }
        self.inflate.reset(false);
        self.crc.reset();
        self.state = State::Data;
        Ok(())
    }

    /// Reads a trailer, and compares it with the contents.
    fn close(&mut self) -> io::Result<()> {
        let what = "a trailer of 8 bytes";
        let (crc, size) = (u32::from_le_bytes(self.take(what)?), self.take(what)?);
        let (size, found) = (u32::from_le_bytes(size), (self.crc.sum(), self.crc.amount()));
        let text = match found {
            (found, _) if found != crc => {
                self.at -= 8;
                format!("expected CRC-32 {crc:08x}, found {found:08x}")
            }
            (_, found) if found != size => {
                self.at -= 4;
                format!("expected {size} bytes of contents, found {found}")
            }
            _ => {
                self.state = State::Between;
                return Ok(());
            }
        };
        Err(self.error(ErrorKind::Mismatch, &text))
    }

    /// Decompresses some of a member.
    fn inflate(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let input = self.reader.fill_buf()?;
        let is_end = input.is_empty();
        let (used, read) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self.inflate.decompress(input, buf, FlushDecompress::None);
        let used = between(used, self.inflate.total_in())?;
        let read = between(read, self.inflate.total_out())?;
        self.reader.consume(used);
        self.at += used as u64;
        self.crc.update(given(buf, read)?);
        match status {
            Ok(Status::StreamEnd) => self.state = State::Trailer,
            Ok(_) if is_end && read == 0 => {
                let text = "expected the rest of the deflate stream, found the end";
                return Err(self.error(ErrorKind::Codec, text));
            }
            Ok(_) => {}
            Err(_) => {
                return Err(
                    self.error(ErrorKind::Codec, "the deflate stream is malformed near here")
                );
            }
        }
        Ok(read)
    }
}

fn is_end(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
        && error.get_ref().is_none_or(|inner| !inner.is::<Error>())
}

impl<R: BufRead> Read for Decoder<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            match self.state {
                State::Between if self.reader.fill_buf()?.is_empty() => return Ok(0),
                State::Failed => return Err(io::ErrorKind::InvalidData.into()),
                State::Start | State::Between => self.open()?,
                State::Trailer => self.close()?,
                State::Data => match self.inflate(buf)? {
                    0 => {}
                    given => return Ok(given),
                },
            }
        }
    }
}
