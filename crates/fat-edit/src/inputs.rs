//! The inputs of a new file beside the edited one: new images, and what compressed bundles hold.

use std::io::{self, SeekFrom};

use byte_parts::ReadSeek;
use object_edit::{Input, NewInputs, Output};

use crate::decompress::Decompress;
use crate::edit::NewImage;

/// Returns the output that a layout describes, with these for its inputs.
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

/// New images by number, and what compressed bundles hold.
pub(crate) struct Sources<'a> {
    images: &'a [NewImage],
    derived: &'a [Decompress],
    /// The contents that were decompressed last.
    last: Option<(usize, Vec<u8>)>,
    /// `true` if no more than the first bytes are decompressed where these are enough. They are not verified.
    takes_prefixes: bool,
    /// The first of those bytes that were decompressed last.
    prefix: Option<(usize, Vec<u8>)>,
}

impl<'a> Sources<'a> {
    pub(crate) fn new(images: &'a [NewImage], derived: &'a [Decompress]) -> Self {
        Sources { images, derived, last: None, takes_prefixes: false, prefix: None }
    }

    /// Decompresses no more than the first bytes where these are enough.
    pub(crate) fn with_prefixes(self) -> Self {
        Sources { takes_prefixes: true, ..self }
    }

    /// Returns the first bytes of what a compressed bundle holds, if that is what is asked for.
    fn prefix(
        &mut self,
        file: &mut dyn ReadSeek,
        number: usize,
        end: u64,
    ) -> io::Result<Option<&[u8]>> {
        let bundle = self.derived.get(number).filter(|_| self.takes_prefixes);
        let Some(bundle) = bundle else { return Ok(None) };
        if self.prefix.as_ref().is_none_or(|(last, _)| *last != number) {
            self.prefix = Some((number, bundle.prefix(file)?));
        }
        let prefix = self.prefix.as_ref().map_or(&[][..], |(_, prefix)| prefix);
        Ok((prefix.len() as u64 >= end.min(bundle.size)).then_some(prefix))
    }
}

/// Copies the bytes from `offset` on, and returns their number.
fn copy_from(data: &[u8], offset: u64, buf: &mut [u8]) -> usize {
    let from = usize::try_from(offset).ok().and_then(|from| data.get(from..));
    let Some(from) = from else { return 0 };
    let n = from.len().min(buf.len());
    if let (Some(to), Some(from)) = (buf.get_mut(..n), from.get(..n)) {
        to.copy_from_slice(from);
    }
    n
}

impl NewInputs for Sources<'_> {
    fn read_at(
        &mut self,
        file: &mut dyn ReadSeek,
        input: Input,
        offset: u64,
        buf: &mut [u8],
    ) -> io::Result<usize> {
        match input {
            Input::File => {
                file.seek(SeekFrom::Start(offset))?;
                file.read(buf)
            }
            Input::New(number) => {
                let mut image = self.images.get(number).ok_or(io::ErrorKind::NotFound)?.reader();
                image.seek(SeekFrom::Start(offset))?;
                image.read(buf)
            }
            Input::Derived(number) => {
                let end = offset + buf.len() as u64;
                if let Some(prefix) = self.prefix(file, number, end)? {
                    return Ok(copy_from(prefix, offset, buf));
                }
                // Only one is held at a time.
                let last = self.last.take().filter(|(last, _)| *last == number);
                let data = match last {
                    Some((_, data)) => data,
                    None => self.derived.get(number).ok_or(io::ErrorKind::NotFound)?.read(file)?,
                };
                let (_, data) = self.last.insert((number, data));
                Ok(copy_from(data, offset, buf))
            }
        }
    }
}
