//! An output that is mostly made of parts of its inputs.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use super::decompress::Decompress;
use crate::source::{ReadSeek, Source};

/// A part of an output. Ranges are byte offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Splice {
    /// This part of the edited file.
    Copy(Range<u64>),
    /// This part of the new image with this number.
    Image(usize, Range<u64>),
    /// This part of what a compressed bundle of the edited file holds, which is decompressed only to be written.
    Decompressed(Arc<Decompress>, Range<u64>),
    /// These bytes.
    Bytes(Vec<u8>),
    /// So many zeros.
    Zeros(u64),
}

impl Splice {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Splice::Copy(range) | Splice::Image(_, range) | Splice::Decompressed(_, range) => {
                range.end - range.start
            }
            Splice::Bytes(bytes) => bytes.len() as u64,
            Splice::Zeros(n) => *n,
        }
    }

    /// The part of it in `range`, which lies inside.
    fn part(&self, range: &Range<u64>) -> Splice {
        let of = |all: &Range<u64>| all.start + range.start..all.start + range.end;
        match self {
            Splice::Copy(all) => Splice::Copy(of(all)),
            Splice::Image(number, all) => Splice::Image(*number, of(all)),
            Splice::Decompressed(bundle, all) => Splice::Decompressed(Arc::clone(bundle), of(all)),
            Splice::Bytes(bytes) => {
                let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
                let part = bytes.get(index(range.start)..index(range.end));
                Splice::Bytes(part.unwrap_or_default().to_vec())
            }
            Splice::Zeros(_) => Splice::Zeros(range.end - range.start),
        }
    }
}

/// Parts one after the other. Neighbours that are one part are kept as one, and empty ones not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Splices {
    parts: Vec<Splice>,
    /// Where each part ends.
    ends: Vec<u64>,
}

impl From<Splice> for Splices {
    fn from(part: Splice) -> Self {
        let mut splices = Splices::new();
        splices.push(part);
        splices
    }
}

impl Splices {
    pub(crate) fn new() -> Self {
        Splices::default()
    }

    /// This part of the edited file as it is.
    pub(crate) fn copy_of(range: &Range<u64>) -> Self {
        let mut splices = Splices::new();
        splices.push(Splice::Copy(range.clone()));
        splices
    }

    pub(crate) fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    pub(crate) fn parts(&self) -> &[Splice] {
        &self.parts
    }

    pub(crate) fn push(&mut self, part: Splice) {
        let len = part.len();
        if len == 0 {
            return;
        }
        let end = self.len().saturating_add(len);
        let merged = match (self.parts.last_mut(), &part) {
            (Some(Splice::Copy(last)), Splice::Copy(next)) if last.end == next.start => {
                last.end = next.end;
                true
            }
            (Some(Splice::Image(a, last)), Splice::Image(b, next))
                if a == b && last.end == next.start =>
            {
                last.end = next.end;
                true
            }
            (Some(Splice::Decompressed(a, last)), Splice::Decompressed(b, next))
                if a == b && last.end == next.start =>
            {
                last.end = next.end;
                true
            }
            (Some(Splice::Zeros(n)), Splice::Zeros(more)) => {
                *n = n.saturating_add(*more);
                true
            }
            _ => false,
        };
        match (merged, self.ends.last_mut()) {
            (true, Some(last)) => *last = end,
            _ => {
                self.parts.push(part);
                self.ends.push(end);
            }
        }
    }

    pub(crate) fn into_parts(self) -> Vec<Splice> {
        self.parts
    }

    pub(crate) fn append(&mut self, other: Splices) {
        for part in other.parts {
            self.push(part);
        }
    }

    /// Zeros up to this offset, if it is not reached yet.
    pub(crate) fn zeros_to(&mut self, offset: u64) {
        self.push(Splice::Zeros(offset.saturating_sub(self.len())));
    }

    /// The part of the output in `range`; less where it ends before.
    pub(crate) fn slice(&self, range: &Range<u64>) -> Splices {
        let mut slice = Splices::new();
        if range.is_empty() {
            return slice;
        }
        let first = self.ends.partition_point(|&end| end <= range.start);
        for (part, &end) in self.parts.iter().zip(&self.ends).skip(first) {
            let start = end - part.len();
            if start >= range.end {
                break;
            }
            let from = range.start.max(start) - start;
            let to = range.end.min(end) - start;
            slice.push(part.part(&(from..to)));
        }
        slice
    }

    /// Replaces as many bytes at `offset`, which must be there, by others.
    pub(crate) fn overwrite(&mut self, offset: u64, bytes: Vec<u8>) {
        self.replace(offset, Splices::from(Splice::Bytes(bytes)));
    }

    /// Replaces as much at `offset`, which must be there.
    pub(crate) fn replace(&mut self, offset: u64, content: Splices) {
        let end = offset.saturating_add(content.len());
        let tail = self.slice(&(end..u64::MAX));
        let mut new = self.slice(&(0..offset));
        new.append(content);
        new.append(tail);
        *self = new;
    }

    /// What `edit` makes of this output, as if it were a file already; it says which parts of it stay. This output
    /// where it says `None`. New images cannot be read.
    pub(crate) fn edited<E: From<io::Error>>(
        self,
        source: &mut Source<'_>,
        edit: impl FnOnce(&mut Source<'_>, &Range<u64>) -> Result<Option<Splices>, E>,
    ) -> Result<Self, E> {
        let origin = source.origin();
        let mut reader = self.reader(source.reader(), &mut []);
        let edited = edit(&mut Source::new(&mut reader, origin)?, &(0..self.len()))?;
        let Some(edited) = edited else { return Ok(self) };
        let mut out = Splices::new();
        for part in edited.into_parts() {
            match part {
                Splice::Copy(range) => out.append(self.slice(&range)),
                part => out.push(part),
            }
        }
        Ok(out)
    }

    /// Whether it is this part of the edited file, unchanged.
    pub(crate) fn is_copy_of(&self, range: &Range<u64>) -> bool {
        match &self.parts[..] {
            [] => range.is_empty(),
            [Splice::Copy(all)] => all == range,
            _ => false,
        }
    }

    /// Whether the part of the output in `range` is that part of the edited file which starts at `from`, unchanged.
    pub(crate) fn copies(&self, range: &Range<u64>, from: u64) -> bool {
        let index = self.ends.partition_point(|&end| end <= range.start);
        match (self.parts.get(index), self.ends.get(index)) {
            (Some(Splice::Copy(part)), Some(&end)) => {
                let start = end - (part.end - part.start);
                end >= range.end && part.start.checked_add(range.start - start) == Some(from)
            }
            _ => range.is_empty(),
        }
    }

    /// Reads the output as if it were written. `images` are the new images, by number.
    pub(crate) fn reader<'a, 'i>(
        &'a self,
        input: &'a mut (dyn ReadSeek + 'a),
        images: &'a mut [&'i mut (dyn ReadSeek + 'i)],
    ) -> SplicesReader<'a, 'i> {
        SplicesReader { splices: self, input, images, position: 0, decompressed: None }
    }
}

/// [`Read`] and [`Seek`] over an output that is not written yet.
pub(crate) struct SplicesReader<'a, 'i> {
    splices: &'a Splices,
    input: &'a mut (dyn ReadSeek + 'a),
    images: &'a mut [&'i mut (dyn ReadSeek + 'i)],
    position: u64,
    /// What was decompressed last.
    decompressed: Option<(Arc<Decompress>, Vec<u8>)>,
}

impl SplicesReader<'_, '_> {
    fn decompress(&mut self, bundle: &Arc<Decompress>) -> io::Result<&[u8]> {
        let data = match self.decompressed.take() {
            Some((last, data)) if last == *bundle => data,
            _ => bundle.read(&mut *self.input)?,
        };
        let (_, data) = self.decompressed.insert((Arc::clone(bundle), data));
        Ok(data)
    }

    /// Whether the next part is at hand: the others are read only where they are wanted.
    fn is_cheap(&self) -> bool {
        let index = self.splices.ends.partition_point(|&end| end <= self.position);
        let part = self.splices.parts.get(index);
        !matches!(part, Some(Splice::Image(..) | Splice::Decompressed(..)))
    }

    /// Reads of one part.
    fn read_part(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let splices = self.splices;
        let index = splices.ends.partition_point(|&end| end <= self.position);
        let (Some(part), Some(&end)) = (splices.parts.get(index), splices.ends.get(index)) else {
            return Ok(0);
        };
        let from = self.position - (end - part.len());
        let left = usize::try_from(end - self.position).unwrap_or(usize::MAX);
        let want = left.min(buf.len());
        let buf = buf.get_mut(..want).unwrap_or_default();
        let n = match part {
            Splice::Copy(range) => {
                self.input.seek(SeekFrom::Start(range.start + from))?;
                self.input.read(buf)?
            }
            Splice::Image(number, range) => {
                let image = self.images.get_mut(*number).ok_or(io::ErrorKind::NotFound)?;
                image.seek(SeekFrom::Start(range.start + from))?;
                image.read(buf)?
            }
            Splice::Bytes(bytes) => copy_from(buf, bytes, from),
            Splice::Decompressed(bundle, range) => {
                copy_from(buf, self.decompress(bundle)?, range.start + from)
            }
            Splice::Zeros(_) => {
                buf.fill(0);
                want
            }
        };
        self.position += n as u64;
        if n == 0 && want > 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(n) }
    }
}

impl Read for SplicesReader<'_, '_> {
    /// Parts may be a few bytes each: as many as there is room for are read at once.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut done = self.read_part(buf)?;
        while done < buf.len() && self.is_cheap() {
            match self.read_part(buf.get_mut(done..).unwrap_or_default()) {
                Ok(n) if n > 0 => done += n,
                // An error comes again.
                _ => break,
            }
        }
        Ok(done)
    }
}

/// Fills the buffer with bytes from this position on; returns how many there were.
fn copy_from(buf: &mut [u8], bytes: &[u8], from: u64) -> usize {
    let bytes = usize::try_from(from).ok().and_then(|from| bytes.get(from..)).unwrap_or_default();
    let n = bytes.len().min(buf.len());
    if let (Some(to), Some(from)) = (buf.get_mut(..n), bytes.get(..n)) {
        to.copy_from_slice(from);
    }
    n
}

impl Seek for SplicesReader<'_, '_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.splices.len().checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        }
        .ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn text(splices: &Splices) -> String {
        let (mut input, mut image) = (Cursor::new(b"0123456789"), Cursor::new(b"abcdef"));
        let mut images: [&mut dyn ReadSeek; 1] = [&mut image];
        let mut out = String::new();
        splices.reader(&mut input, &mut images).read_to_string(&mut out).unwrap();
        assert_eq!(out.len() as u64, splices.len());
        out.replace('\0', ".")
    }

    fn sample() -> Splices {
        let mut splices = Splices::copy_of(&(1..3));
        splices.push(Splice::Copy(3..5));
        splices.push(Splice::Zeros(0));
        splices.push(Splice::Zeros(1));
        splices.zeros_to(7);
        splices.push(Splice::Image(0, 0..2));
        splices.push(Splice::Image(0, 2..3));
        splices.push(Splice::Bytes(b"xyz".to_vec()));
        splices
    }

    #[test]
    fn parts_follow_each_other() {
        let splices = sample();
        assert_eq!(text(&splices), "1234...abcxyz");
        assert_eq!(splices.parts().len(), 4);
    }

    #[test]
    fn every_slice_is_that_part() {
        let splices = sample();
        let all = text(&splices);
        for start in 0..=all.len() {
            for end in start..=all.len() {
                let slice = splices.slice(&(start as u64..end as u64));
                assert_eq!(text(&slice), all[start..end]);
            }
        }
    }

    #[test]
    fn overwriting_keeps_the_rest() {
        let all = text(&sample());
        for at in 0..=all.len() - 3 {
            let mut splices = sample();
            splices.overwrite(at as u64, b"???".to_vec());
            let mut expected = all.clone();
            expected.replace_range(at..at + 3, "???");
            assert_eq!(text(&splices), expected);
        }
    }

    #[test]
    fn small_parts_are_read_at_once() {
        let splices = sample();
        let (mut input, mut image) = (Cursor::new(b"0123456789"), Cursor::new(b"abcdef"));
        let mut images: [&mut dyn ReadSeek; 1] = [&mut image];
        let mut reader = splices.reader(&mut input, &mut images);
        let mut buf = [0; 64];
        // Up to the image, and on from there.
        assert_eq!(reader.read(&mut buf).unwrap(), 7);
        assert_eq!(reader.read(&mut buf).unwrap(), 6);
        assert_eq!(&buf[..6], b"abcxyz");
        assert_eq!(reader.read(&mut buf).unwrap(), 0);
        reader.seek(SeekFrom::Start(2)).unwrap();
        assert_eq!(reader.read(&mut buf[..3]).unwrap(), 3);
        // An image that is not there is an error only where it starts.
        let mut reader = splices.reader(&mut input, &mut []);
        assert_eq!(reader.read(&mut buf).unwrap(), 7);
        reader.read(&mut buf).unwrap_err();
    }

    #[test]
    fn knows_what_is_copied() {
        let splices = sample();
        assert!(splices.copies(&(0..4), 1) && splices.copies(&(2..4), 3));
        assert!(!splices.copies(&(2..4), 2) && !splices.copies(&(2..5), 3));
        assert!(!splices.copies(&(7..8), 0) && !splices.copies(&(12..14), 0));
    }

    #[test]
    fn knows_what_is_unchanged() {
        assert!(Splices::copy_of(&(3..9)).is_copy_of(&(3..9)));
        assert!(Splices::new().is_copy_of(&(3..3)));
        assert!(!Splices::copy_of(&(3..9)).is_copy_of(&(3..10)));
        assert!(!sample().is_copy_of(&(1..14)));
    }
}
