//! The new file, written part by part.

use std::io::{self, Read, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;

use super::EditError;
use super::decompress::Decompress;
use super::splices::{Splice, Splices};
use crate::source::ReadSeek;

pub(crate) fn write<R, I, W>(
    splices: &Splices,
    input: &mut R,
    images: &mut [I],
    out: &mut W,
) -> Result<(), EditError>
where
    R: ReadSeek + ?Sized,
    I: ReadSeek,
    W: Write + ?Sized,
{
    // What was decompressed last: there may be several parts of it.
    let mut last: Option<(Arc<Decompress>, Vec<u8>)> = None;
    for part in splices.parts() {
        match part {
            Splice::Copy(range) => copy(input, range, out)?,
            Splice::Image(number, range) => {
                let (number, available) = (*number, images.len());
                let missing = EditError::NoSuchNewImage { number, available };
                copy(images.get_mut(number).ok_or(missing)?, range, out)?;
            }
            Splice::Decompressed(bundle, range) => {
                let whole = *range == (0..bundle.size);
                match &last {
                    Some((open, data)) if open == bundle => write_range(data, range, out)?,
                    _ if whole => decompress(bundle, input, out)?,
                    _ => {
                        // Only one is held at a time.
                        drop(last.take());
                        let data = bundle.read(input).map_err(refused)?;
                        write_range(&data, range, out)?;
                        last = Some((Arc::clone(bundle), data));
                    }
                }
            }
            Splice::Bytes(bytes) => out.write_all(bytes).map_err(EditError::Write)?,
            Splice::Zeros(count) => {
                io::copy(&mut io::repeat(0).take(*count), out).map_err(EditError::Write)?;
            }
        }
    }
    Ok(())
}

/// Copies a part of a file. Which of the two files is at fault an error of copying does not tell: reading on does.
fn copy<R, W>(from: &mut R, range: &Range<u64>, out: &mut W) -> Result<(), EditError>
where
    R: ReadSeek + ?Sized,
    W: Write + ?Sized,
{
    let len = range.end - range.start;
    from.seek(SeekFrom::Start(range.start))?;
    match io::copy(&mut from.take(len), out) {
        Ok(copied) if copied == len => Ok(()),
        Ok(_) => Err(EditError::InputChanged),
        Err(error) => Err(match from.read(&mut [0]) {
            Ok(_) => EditError::Write(error),
            Err(error) => EditError::Read(error),
        }),
    }
}

/// Writes what there is of a bundle while the rest is decompressed, and all of it hashed.
fn decompress<R, W>(bundle: &Decompress, input: &mut R, out: &mut W) -> Result<(), EditError>
where
    R: ReadSeek + ?Sized,
    W: Write + ?Sized,
{
    let mut written = 0;
    let mut result = Ok(());
    let mut write = |data: &[u8]| {
        if result.is_ok() {
            result = out.write_all(data.get(written..).unwrap_or_default());
            written = data.len();
        }
    };
    bundle.read_growing(input, &mut write).map_err(refused)?;
    result.map_err(EditError::Write)
}

fn write_range(
    data: &[u8],
    range: &Range<u64>,
    out: &mut (impl Write + ?Sized),
) -> Result<(), EditError> {
    let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    let part = data.get(index(range.start)..index(range.end)).ok_or(EditError::InputChanged)?;
    out.write_all(part).map_err(EditError::Write)
}

/// The error that a compressed bundle was refused with, if that is what this is.
pub(super) fn refused(error: io::Error) -> EditError {
    match error.downcast::<EditError>() {
        Ok(refused) => refused,
        Err(error) => EditError::Read(error),
    }
}
