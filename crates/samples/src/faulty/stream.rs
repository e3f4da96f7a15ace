//! One stream: bytes in memory that are read and written as a file is.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};

use super::{Rig, Verdict};

/// A file in memory whose calls go wrong as its [`Rig`] says.
#[derive(Clone, Debug)]
pub struct Stream {
    rig: Rig,
    contents: Vec<u8>,
    position: u64,
    /// End of reading, if that is before the end.
    end: Option<u64>,
    /// `true` if it is the one whose contents are to change, and did not yet.
    may_change: bool,
}

impl Stream {
    pub(crate) fn new(rig: Rig, contents: &[u8]) -> Self {
        let may_change = rig.changes(contents);
        Stream { rig, contents: contents.to_vec(), position: 0, end: None, may_change }
    }

    /// Returns the contents.
    #[must_use]
    pub fn contents(&self) -> &[u8] {
        &self.contents
    }

    /// Makes a call: the number of `len` bytes that it may move.
    fn call(&mut self, len: usize) -> io::Result<usize> {
        match self.rig.call() {
            Verdict::Works => {}
            Verdict::Fails(kind) => return Err(kind.into()),
            Verdict::Ends => self.end = Some(self.position),
        }
        if self.may_change
            && let Some(to) = self.rig.changed()
        {
            self.contents = to.to_vec();
            self.may_change = false;
        }
        self.rig.moves(len).ok_or_else(|| ErrorKind::Interrupted.into())
    }

    fn index(&self) -> usize {
        usize::try_from(self.position).unwrap_or(usize::MAX)
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = self.call(buf.len())?;
        if self.end.is_some_and(|end| self.position >= end) {
            return Ok(0);
        }
        let rest = self.contents.get(self.index()..).unwrap_or_default();
        let n = len.min(rest.len());
        buf.iter_mut().zip(rest).take(n).for_each(|(to, from)| *to = *from);
        self.position += n as u64;
        Ok(n)
    }
}

impl Write for Stream {
    /// At the end a stream takes nothing more, as a full device may.
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let len = self.call(buf.len())?;
        if self.end.is_some() {
            return Ok(0);
        }
        let (at, new) = (self.index(), buf.get(..len).unwrap_or_default());
        if self.contents.len() < at + new.len() {
            self.contents.resize(at + new.len(), 0);
        }
        self.contents.iter_mut().skip(at).zip(new).for_each(|(to, from)| *to = *from);
        self.position += new.len() as u64;
        Ok(new.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // Nobody tries again to flush what was interrupted.
        self.call(0).map(drop).or_else(uninterrupted)
    }
}

impl Seek for Stream {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.call(0).map(drop).or_else(uninterrupted)?;
        let position = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => (self.contents.len() as u64).checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        self.position = position.ok_or(ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

fn uninterrupted(error: io::Error) -> io::Result<()> {
    if error.kind() == ErrorKind::Interrupted { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::faulty::{Fault, at_each_call};

    #[test]
    fn a_sound_stream_is_a_file() {
        let mut stream = Rig::sound().stream(b"0123456789");
        assert_eq!(stream.seek(SeekFrom::End(-3)).unwrap(), 7);
        stream.write_all(b"abcd").unwrap();
        stream.seek(SeekFrom::Current(-5)).unwrap();
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "6abcd");
        assert_eq!(stream.contents(), b"0123456abcd");
        assert!(stream.seek(SeekFrom::Current(-12)).is_err());
    }

    #[test]
    fn errors_occur_once() {
        let rig = Rig::failing(1, Fault::Error(ErrorKind::TimedOut));
        let mut stream = rig.stream(b"abc");
        let mut buf = [0; 1];
        assert_eq!(stream.read(&mut buf).unwrap(), 1);
        assert_eq!(stream.read(&mut buf).unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!((stream.read(&mut buf).unwrap(), buf), (1, *b"b"));
        assert_eq!(rig.calls(), 3);
    }

    #[test]
    fn ends_are_permanent() {
        let mut stream = Rig::failing(1, Fault::End).stream(b"abc");
        let mut buf = [0; 1];
        assert_eq!(stream.read(&mut buf).unwrap(), 1);
        assert_eq!(stream.read(&mut buf).unwrap(), 0);
        assert_eq!(stream.write(b"x").unwrap(), 0);
        assert_eq!(stream.seek(SeekFrom::End(0)).unwrap(), 3);
        stream.rewind().unwrap();
        assert_eq!((stream.read(&mut buf).unwrap(), stream.read(&mut buf).unwrap()), (1, 0));
    }

    #[test]
    fn contents_change_during_reading() {
        let (old, new): (Arc<[u8]>, Arc<[u8]>) = ((*b"abcd").into(), (*b"xy").into());
        let rig = Rig::failing(1, Fault::Change(old.clone(), new));
        let (mut stream, mut other) = (rig.stream(&old), rig.stream(b"abc"));
        let mut buf = [0; 1];
        assert_eq!((stream.read(&mut buf).unwrap(), buf), (1, *b"a"));
        assert_eq!((stream.read(&mut buf).unwrap(), buf), (1, *b"y"));
        assert_eq!(stream.read(&mut buf).unwrap(), 0);
        assert_eq!((other.read(&mut buf).unwrap(), buf), (1, *b"a"));
    }

    #[test]
    fn short_calls_move_all_bytes() {
        let bytes: Vec<u8> = (0..=255).cycle().take(5000).collect();
        for seed in 0..20 {
            let rig = Rig::short(seed);
            let mut out = rig.stream(b"");
            io::copy(&mut rig.stream(&bytes), &mut out).unwrap();
            assert_eq!(out.contents(), bytes);
            assert!(rig.calls() > 200);
        }
    }

    #[test]
    fn every_call_fails_once() {
        let mut seen = Vec::new();
        let read = |rig: &Rig| io::copy(&mut rig.stream(b"abc"), &mut io::sink());
        let calls = at_each_call(&Fault::Error(ErrorKind::Other), read, |call, result| {
            assert!(result.is_err());
            seen.push(call);
        });
        assert_eq!(seen, (0..calls).collect::<Vec<_>>());
    }
}
