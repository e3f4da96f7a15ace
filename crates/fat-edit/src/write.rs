//! The new file, written part by part.

use std::io::{self, Read, Seek, Write};
use std::ops::Range;

use byte_parts::{Inputs, ReadSeek, WriteError, copy_range};
use object_edit::Input;

use crate::decompress::Decompress;
use crate::edit::NewImage;
use crate::error::{Error, Problem};
use crate::hash::Hashing;
use crate::plan::EditPlan;

impl EditPlan {
    /// Writes the new file.
    ///
    /// `input` is the edited file, and is not to be written over: what is read from it has to be what it was.
    /// From file to file the kernel copies, where the platform can ([`io::copy`]). Memory: nothing but one bundle at a
    /// time where bundles are decompressed, which are verified only now.
    ///
    /// # Errors
    ///
    /// [`Read`](crate::ErrorKind::Read) and [`Write`](crate::ErrorKind::Write);
    /// [`InputChanged`](crate::ErrorKind::InputChanged) where `input` or a new image became shorter; and
    /// [`Damaged`](crate::ErrorKind::Damaged) for what is decompressed. A part of the new file may be written by then.
    pub fn write<R: Read + Seek, W: Write>(&self, mut input: R, mut out: W) -> Result<(), Error> {
        Ok(write(self, &mut input, &mut out)?)
    }

    /// Writes the new file as [`write`](Self::write) does, and returns its hash: XXH3 of 64 bits.
    ///
    /// # Errors
    ///
    /// Errors of [`write`](Self::write).
    pub fn write_hashed<R: Read + Seek, W: Write>(&self, input: R, out: W) -> Result<u64, Error> {
        let mut out = Hashing::new(out);
        self.write(input, &mut out)?;
        Ok(out.hash())
    }
}

fn write<R, W>(plan: &EditPlan, file: &mut R, out: &mut W) -> Result<(), Problem>
where
    R: ReadSeek + ?Sized,
    W: Write + ?Sized,
{
    let (images, derived) = (&*plan.new_images, &*plan.derived);
    plan.parts.write_to(&mut Sources { file, images, derived, last: None }, out)
}

/// Inputs of a new file.
struct Sources<'a, R: ?Sized> {
    file: &'a mut R,
    images: &'a [NewImage],
    derived: &'a [Decompress],
    /// The contents that were decompressed last: there may be several parts of them.
    last: Option<(usize, Vec<u8>)>,
}

impl<R: ReadSeek + ?Sized> Inputs<Input> for Sources<'_, R> {
    type Error = Problem;

    fn copy<W: Write + ?Sized>(
        &mut self,
        input: &Input,
        range: Range<u64>,
        out: &mut W,
    ) -> Result<(), Problem> {
        let copied = match *input {
            Input::File => copy_range(self.file, &range, out)?,
            Input::New(number) => {
                let available = self.images.len();
                let image = self.images.get(number);
                let image = image.ok_or_else(|| Problem::no_new_image(number, available))?;
                copy_range(&mut *image.reader(), &range, out)?
            }
            Input::Derived(number) => return self.decompressed(number, &range, out),
        };
        if copied == range.end - range.start { Ok(()) } else { Err(Problem::input_changed()) }
    }
}

impl<R: ReadSeek + ?Sized> Sources<'_, R> {
    fn decompressed<W: Write + ?Sized>(
        &mut self,
        number: usize,
        range: &Range<u64>,
        out: &mut W,
    ) -> Result<(), Problem> {
        if let Some((open, data)) = &self.last
            && *open == number
        {
            return write_range(data, range, out);
        }
        let bundle = self.derived.get(number).ok_or_else(Problem::input_changed)?;
        if *range == (0..bundle.size) {
            return decompress(bundle, self.file, out);
        }
        // Only one is held at a time.
        self.last = None;
        let data = bundle.read(self.file).map_err(refused)?;
        let (_, data) = self.last.insert((number, data));
        write_range(data, range, out)
    }
}

impl From<WriteError> for Problem {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Read(error) => Problem::from(error),
            WriteError::Write(error) => Problem::write(error),
            _ => Problem::input_changed(),
        }
    }
}

/// Writes the decompressed bytes of a bundle while the rest is decompressed, and hashes all of them.
fn decompress<R, W>(bundle: &Decompress, input: &mut R, out: &mut W) -> Result<(), Problem>
where
    R: ReadSeek + ?Sized,
    W: Write + ?Sized,
{
    let mut written = 0;
    let mut result = Ok(());
    let mut write = |data: &[u8]| {
        if result.is_ok() {
            result = out.write_all(data.split_at(written).1);
            written = data.len();
        }
    };
    bundle.read_growing(input, &mut write).map_err(refused)?;
    result.map_err(Problem::write)
}

fn write_range(
    data: &[u8],
    range: &Range<u64>,
    out: &mut (impl Write + ?Sized),
) -> Result<(), Problem> {
    let index = |at: u64| usize::try_from(at).map_err(|_| Problem::input_changed());
    let part = data.get(index(range.start)?..index(range.end)?);
    let part = part.ok_or_else(Problem::input_changed)?;
    out.write_all(part).map_err(Problem::write)
}

/// Returns the problem with which a compressed bundle was refused, or a read error.
pub(super) fn refused(error: io::Error) -> Problem {
    match error.downcast::<Problem>() {
        Ok(refused) => refused,
        Err(error) => Problem::from(error),
    }
}
