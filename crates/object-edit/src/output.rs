//! The new file as a list of parts, and reading it before it is written.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use byte_parts::{ReadSeek, Source, Window, seek_position};

use crate::error::Error;
use crate::pod::rest;

/// An input of an edit.
///
/// Exhaustive: a new kind of input must stop the build of each reader of inputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Input {
    /// The edited file.
    File,
    /// New contents, by a number of the caller's.
    New(usize),
    /// Contents that follow from the file, such as what a compressed range of it holds; by a number of the caller's.
    Derived(usize),
}

/// Reads inputs other than the edited file.
pub trait NewInputs {
    /// Reads some bytes of an input at `offset` and returns how many; 0 at its end. `file` is the edited file, which may be
    /// moved to any position.
    ///
    /// # Errors
    ///
    /// The error of reading.
    fn read_at(
        &mut self,
        file: &mut dyn ReadSeek,
        input: Input,
        offset: u64,
        buf: &mut [u8],
    ) -> io::Result<usize>;
}

/// No inputs but the edited file: to read another is an error.
impl NewInputs for () {
    fn read_at(
        &mut self,
        _: &mut dyn ReadSeek,
        _: Input,
        _: u64,
        _: &mut [u8],
    ) -> io::Result<usize> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// The new file, or a part of it.
pub type Output = byte_parts::Parts<Input>;

/// A part of an [`Output`].
pub(crate) type Part<'a> = byte_parts::Part<'a, Input>;

/// Returns this range of the edited file, unchanged.
#[must_use]
pub fn copy_of(range: &Range<u64>) -> Output {
    Output::from_input(Input::File, range.clone())
}

/// Returns an output of these bytes.
pub fn of_bytes(bytes: impl Into<Vec<u8>>) -> Output {
    let mut output = Output::new();
    output.push_vec(bytes.into());
    output
}

/// Returns whether an output is this range of the edited file, unchanged.
#[must_use]
pub fn is_copy_of(output: &Output, range: &Range<u64>) -> bool {
    output.size() == Window::new(range).len() && copies(output, &(0..output.size()), range.start)
}

/// Returns whether the bytes of the output in `range` are the bytes of the edited file from `from` on, unchanged.
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

/// Edits an output as if it were a file already; returns the output itself if `edit` returns `None`. New images cannot
/// be read.
pub(crate) fn edited(
    output: &Output,
    source: &mut Source<'_>,
    edit: impl FnOnce(&mut Source<'_>, &Range<u64>) -> Result<Option<Output>, Error>,
) -> Result<Output, Error> {
    let mut unread = ();
    let mut reader = reader(output, source.reader(), &mut unread);
    let edited = edit(&mut Source::new(&mut reader)?, &(0..output.size()))?;
    let Some(edited) = edited else { return Ok(output.clone()) };
    Ok(edited.resolved(|out, input, range| match input {
        Input::File => out.append_range(output, range),
        input => out.push_input(*input, range),
    }))
}

/// Reads the output as if it were written. `file` is the edited file.
pub fn reader<'a>(
    output: &'a Output,
    file: &'a mut (dyn ReadSeek + 'a),
    new: &'a mut (dyn NewInputs + 'a),
) -> impl ReadSeek + 'a {
    OutputReader { output, file, new, position: 0 }
}

/// [`Read`] and [`Seek`] over an output that is not written yet.
struct OutputReader<'a> {
    output: &'a Output,
    file: &'a mut (dyn ReadSeek + 'a),
    new: &'a mut (dyn NewInputs + 'a),
    position: u64,
}

impl OutputReader<'_> {
    /// Returns whether the next part is cheap to read: new and derived inputs are read only on demand.
    fn is_cheap(&self) -> bool {
        let part = self.output.at(self.position);
        !matches!(part, Some((_, Part::Input(Input::New(_) | Input::Derived(_), _))))
    }

    /// Reads of one part.
    fn read_part(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let output = self.output;
        let Some((start, part)) = output.at(self.position) else { return Ok(0) };
        let from = self.position - start;
        let buf = match usize::try_from(part.size() - from) {
            Ok(left) if left < buf.len() => buf.split_at_mut(left).0,
            _ => buf,
        };
        let n = match part {
            Part::Input(Input::File, range) => {
                self.file.seek(SeekFrom::Start(range.start + from))?;
                self.file.read(buf)?
            }
            Part::Input(&input, range) => {
                self.new.read_at(&mut *self.file, input, range.start + from, buf)?
            }
            Part::Bytes(bytes) => copy_from(buf, bytes, from),
            Part::Zeros(_) => {
                buf.fill(0);
                buf.len()
            }
        };
        self.position += n as u64;
        if n == 0 && !buf.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(n) }
    }
}

impl Read for OutputReader<'_> {
    /// Reads as many parts as there is room for, because parts may be a few bytes each.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut done = self.read_part(buf)?;
        while let Some(rest @ [_, ..]) = buf.get_mut(done..)
            && self.is_cheap()
        {
            match self.read_part(rest) {
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
    let bytes = rest(bytes, from);
    let n = bytes.len().min(buf.len());
    if let (Some(to), Some(from)) = (buf.get_mut(..n), bytes.get(..n)) {
        to.copy_from_slice(from);
    }
    n
}

impl Seek for OutputReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = seek_position(to, self.position, self.output.size())?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// The first input.
    struct Letters;

    impl NewInputs for Letters {
        fn read_at(
            &mut self,
            _: &mut dyn ReadSeek,
            input: Input,
            offset: u64,
            buf: &mut [u8],
        ) -> io::Result<usize> {
            assert_eq!(input, Input::New(0));
            Ok(copy_from(buf, b"abcdef", offset))
        }
    }

    fn text(output: &Output) -> String {
        let (mut input, mut images) = (Cursor::new(b"0123456789"), Letters);
        let mut out = String::new();
        reader(output, &mut input, &mut images).read_to_string(&mut out).unwrap();
        assert_eq!(out.len() as u64, output.size());
        out.replace('\0', ".")
    }

    fn sample() -> Output {
        let mut output = copy_of(&(1..5));
        output.pad_to(7);
        output.push_input(Input::New(0), 0..3);
        output.push_bytes(b"xyz");
        output
    }

    #[test]
    fn parts_follow_each_other() {
        assert_eq!(text(&sample()), "1234...abcxyz");
    }

    #[test]
    fn one_read_spans_small_parts() {
        let output = sample();
        let (mut input, mut images) = (Cursor::new(b"0123456789"), Letters);
        let mut parts = reader(&output, &mut input, &mut images);
        let mut buf = [0; 64];
        // Up to the image, and on from there.
        assert_eq!(parts.read(&mut buf).unwrap(), 7);
        assert_eq!(parts.read(&mut buf).unwrap(), 6);
        assert_eq!(&buf[..6], b"abcxyz");
        assert_eq!(parts.read(&mut buf).unwrap(), 0);
        parts.seek(SeekFrom::Start(2)).unwrap();
        assert_eq!(parts.read(&mut buf[..3]).unwrap(), 3);
        drop(parts);
        // An input that cannot be read is an error only where it starts.
        let mut unread = ();
        let mut parts = reader(&output, &mut input, &mut unread);
        assert_eq!(parts.read(&mut buf).unwrap(), 7);
        parts.read(&mut buf).unwrap_err();
    }

    #[test]
    fn an_edit_of_an_edit_keeps_copied_parts() {
        let (mut input, mut buf) = (Cursor::new(b"0123456789"), [0; 3]);
        let mut source = Source::new(&mut input).unwrap();
        let twice = edited(&sample(), &mut source, |source, window| {
            assert_eq!(*window, 0..13);
            source.reader().seek(SeekFrom::Start(2))?;
            source.reader().read_exact(&mut buf)?;
            let mut out = copy_of(&(2..9));
            out.push_bytes(b"!");
            out.append(&copy_of(&(12..13)));
            Ok(Some(out))
        });
        assert_eq!(text(&twice.unwrap()), "34...ab!z");
        assert_eq!(&buf, b"34\0");
    }

    #[test]
    fn copied_ranges_are_known() {
        let output = sample();
        assert!(copies(&output, &(0..4), 1) && copies(&output, &(2..4), 3));
        assert!(!copies(&output, &(2..4), 2) && !copies(&output, &(2..5), 3));
        assert!(!copies(&output, &(7..8), 0) && !copies(&output, &(12..14), 0));
    }

    #[test]
    fn unchanged_ranges_are_known() {
        assert!(is_copy_of(&copy_of(&(3..9)), &(3..9)));
        assert!(is_copy_of(&Output::new(), &(3..3)));
        assert!(!is_copy_of(&copy_of(&(3..9)), &(3..10)));
        assert!(!is_copy_of(&sample(), &(1..14)));
    }
}
