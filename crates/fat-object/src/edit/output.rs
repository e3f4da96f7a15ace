//! The new file as a list of parts, and reading it before it is written.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use super::decompress::Decompress;
use crate::source::{ReadSeek, Source};

/// An input of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The edited file.
    File,
    /// The new image with this number.
    Image(usize),
    /// The contents of a compressed bundle of the edited file, which is decompressed only to be written.
    Decompressed(Arc<Decompress>),
}

/// The new file, or a part of it.
pub(crate) type Output = byte_parts::Parts<Input>;

/// A part of an [`Output`].
pub(crate) type Part<'a> = byte_parts::Part<'a, Input>;

/// This range of the edited file, unchanged.
pub(crate) fn copy_of(range: &Range<u64>) -> Output {
    Output::from_input(Input::File, range.clone())
}

/// These bytes.
pub(crate) fn of_bytes(bytes: impl Into<Vec<u8>>) -> Output {
    let mut output = Output::new();
    output.push_vec(bytes.into());
    output
}

/// The output that a layout describes, with these for its inputs.
pub(crate) fn filled(layout: &byte_parts::Parts, inputs: &[Output]) -> Output {
    let mut output = Output::new();
    for part in layout.iter() {
        match part {
            byte_parts::Part::Bytes(bytes) => output.push_bytes(bytes),
            byte_parts::Part::Zeros(count) => output.push_zeros(count),
            byte_parts::Part::Input(&index, range) => {
                inputs
                    .get(index)
                    .into_iter()
                    .for_each(|input| output.append_range(input, range.clone()));
            }
        }
    }
    output
}

/// Returns whether it is this range of the edited file, unchanged.
pub(crate) fn is_copy_of(output: &Output, range: &Range<u64>) -> bool {
    output.size() == range.end.saturating_sub(range.start)
        && copies(output, &(0..output.size()), range.start)
}

/// Returns whether the bytes of the output in `range` are those of the edited file from `from` on, unchanged.
pub(crate) fn copies(output: &Output, range: &Range<u64>, from: u64) -> bool {
    match output.at(range.start) {
        _ if range.is_empty() => true,
        Some((start, Part::Input(Input::File, part))) => {
            let skipped = range.start - start;
            part.end - part.start >= range.end - start
                && part.start.checked_add(skipped) == Some(from)
        }
        _ => false,
    }
}

/// Returns what `edit` makes of an output, as if it were a file already; the output itself if it returns `None`. New
/// images cannot be read.
pub(crate) fn edited<E: From<io::Error>>(
    output: &Output,
    source: &mut Source<'_>,
    edit: impl FnOnce(&mut Source<'_>, &Range<u64>) -> Result<Option<Output>, E>,
) -> Result<Output, E> {
    let origin = source.origin();
    let mut reader = reader(output, source.reader(), &mut []);
    let edited = edit(&mut Source::new(&mut reader, origin)?, &(0..output.size()))?;
    let Some(edited) = edited else { return Ok(output.clone()) };
    Ok(edited.resolved(|out, input, range| match input {
        Input::File => out.append_range(output, range),
        input => out.push_input(input.clone(), range),
    }))
}

/// Reads the output as if it were written. `images` are the new images, by number.
pub(crate) fn reader<'a, 'i>(
    output: &'a Output,
    input: &'a mut (dyn ReadSeek + 'a),
    images: &'a mut [&'i mut (dyn ReadSeek + 'i)],
) -> OutputReader<'a, 'i> {
    OutputReader { output, input, images, position: 0, decompressed: None }
}
/// [`Read`] and [`Seek`] over an output that is not written yet.
pub(crate) struct OutputReader<'a, 'i> {
    output: &'a Output,
    input: &'a mut (dyn ReadSeek + 'a),
    images: &'a mut [&'i mut (dyn ReadSeek + 'i)],
    position: u64,
    /// The contents that were decompressed last.
    decompressed: Option<(Arc<Decompress>, Vec<u8>)>,
}

impl OutputReader<'_, '_> {
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
        let part = self.output.at(self.position);
        !matches!(part, Some((_, Part::Input(Input::Image(_) | Input::Decompressed(_), _))))
    }

    /// Reads of one part.
    fn read_part(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let output = self.output;
        let Some((start, part)) = output.at(self.position) else { return Ok(0) };
        let from = self.position - start;
        let left = usize::try_from(part.size() - from).unwrap_or(usize::MAX);
        let want = left.min(buf.len());
        let buf = buf.get_mut(..want).unwrap_or_default();
        let n = match part {
            Part::Input(Input::File, range) => {
                self.input.seek(SeekFrom::Start(range.start + from))?;
                self.input.read(buf)?
            }
            Part::Input(Input::Image(number), range) => {
                let image = self.images.get_mut(*number).ok_or(io::ErrorKind::NotFound)?;
                image.seek(SeekFrom::Start(range.start + from))?;
                image.read(buf)?
            }
            Part::Input(Input::Decompressed(bundle), range) => {
                copy_from(buf, self.decompress(bundle)?, range.start + from)
            }
            Part::Bytes(bytes) => copy_from(buf, bytes, from),
            Part::Zeros(_) => {
                buf.fill(0);
                want
            }
        };
        self.position += n as u64;
        if n == 0 && want > 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(n) }
    }
}

impl Read for OutputReader<'_, '_> {
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

impl Seek for OutputReader<'_, '_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.output.size().checked_add_signed(by),
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

    fn text(output: &Output) -> String {
        let (mut input, mut image) = (Cursor::new(b"0123456789"), Cursor::new(b"abcdef"));
        let mut images: [&mut dyn ReadSeek; 1] = [&mut image];
        let mut out = String::new();
        reader(output, &mut input, &mut images).read_to_string(&mut out).unwrap();
        assert_eq!(out.len() as u64, output.size());
        out.replace('\0', ".")
    }

    fn sample() -> Output {
        let mut output = copy_of(&(1..5));
        output.pad_to(7);
        output.push_input(Input::Image(0), 0..3);
        output.push_bytes(b"xyz");
        output
    }

    #[test]
    fn parts_follow_each_other() {
        assert_eq!(text(&sample()), "1234...abcxyz");
    }

    #[test]
    fn small_parts_are_read_at_once() {
        let output = sample();
        let (mut input, mut image) = (Cursor::new(b"0123456789"), Cursor::new(b"abcdef"));
        let mut images: [&mut dyn ReadSeek; 1] = [&mut image];
        let mut parts = reader(&output, &mut input, &mut images);
        let mut buf = [0; 64];
        // Up to the image, and on from there.
        assert_eq!(parts.read(&mut buf).unwrap(), 7);
        assert_eq!(parts.read(&mut buf).unwrap(), 6);
        assert_eq!(&buf[..6], b"abcxyz");
        assert_eq!(parts.read(&mut buf).unwrap(), 0);
        parts.seek(SeekFrom::Start(2)).unwrap();
        assert_eq!(parts.read(&mut buf[..3]).unwrap(), 3);
        // An image that is not there is an error only where it starts.
        let mut parts = reader(&output, &mut input, &mut []);
        assert_eq!(parts.read(&mut buf).unwrap(), 7);
        parts.read(&mut buf).unwrap_err();
    }

    #[test]
    fn an_edit_of_an_edit_keeps_what_it_copies() {
        let (mut input, mut buf) = (Cursor::new(b"0123456789"), [0; 3]);
        let mut source = Source::new(&mut input, crate::source::Origin::File).unwrap();
        let twice = edited(&sample(), &mut source, |source, window| {
            assert_eq!(*window, 0..13);
            source.reader().seek(SeekFrom::Start(2))?;
            source.reader().read_exact(&mut buf)?;
            let mut out = copy_of(&(2..9));
            out.push_bytes(b"!");
            out.append(&copy_of(&(12..13)));
            io::Result::Ok(Some(out))
        });
        assert_eq!(text(&twice.unwrap()), "34...ab!z");
        assert_eq!(&buf, b"34\0");
    }

    #[test]
    fn knows_what_is_copied() {
        let output = sample();
        assert!(copies(&output, &(0..4), 1) && copies(&output, &(2..4), 3));
        assert!(!copies(&output, &(2..4), 2) && !copies(&output, &(2..5), 3));
        assert!(!copies(&output, &(7..8), 0) && !copies(&output, &(12..14), 0));
    }

    #[test]
    fn knows_what_is_unchanged() {
        assert!(is_copy_of(&copy_of(&(3..9)), &(3..9)));
        assert!(is_copy_of(&Output::new(), &(3..3)));
        assert!(!is_copy_of(&copy_of(&(3..9)), &(3..10)));
        assert!(!is_copy_of(&sample(), &(1..14)));
    }
}
