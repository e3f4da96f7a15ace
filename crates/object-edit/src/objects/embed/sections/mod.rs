//! Sections that are added to an object, and taken off again.

mod coff;
mod elf;
mod host_object;
mod wasm;

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Cursor, Read, Write};
use std::ops::Range;

use byte_parts::{Source, internal};
pub(crate) use host_object::HEAD_LEN;
pub use host_object::HostObject;

use super::{Kind, slice};
use crate::error::{Error, ErrorKind};
use crate::objects::elf_class::by_class;
use crate::objects::{coff as coff_object, elf_object};
use crate::output::{self, Input, Output, Part};
use crate::tables::sized;

/// Limit of successive removals of sections that [`NewSections`] added. Tools add once; a hostile file must not keep
/// its reader busy.
const MAX_UNDO: usize = 64;

/// An object file with new sections, laid out but not written yet.
///
/// The sections have the order given, without alignment or symbols; ELF: `SHT_PROGBITS` with the flag `SHF_EXCLUDE`; COFF:
/// `IMAGE_SCN_LNK_REMOVE` and `IMAGE_SCN_MEM_READ`. A linker drops them. WebAssembly: custom sections at the end of the
/// module, which a link copies into its output.
///
/// Everything else stays as it was. In ELF that includes every byte but `e_shoff` and `e_shnum` in the ELF header: contents, a
/// new table of section names and a new section header table follow the old object, which may be linked, and runs as before. In
/// COFF what follows the section headers moves. A copy of the old file header is left where no section is, so that
/// [`remove_sections`] gives back the very bytes of the object.
///
/// ```no_run
/// use object_edit::NewSections;
///
/// let object = std::fs::read("host.o")?;
/// let with = NewSections::new(&object, &[(".first", 5), (".second", 6)])?;
/// std::fs::write("more.o", with.to_vec(&["first", "second"])?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct NewSections<'a> {
    object: &'a [u8],
    /// The result: the object is [`Input::File`], the contents of the new sections are [`Input::New`], by number.
    parts: Output,
    /// The ranges of the contents of the new sections in the result.
    places: Vec<Range<u64>>,
}

/// A section to add.
#[derive(Clone, Copy)]
struct NewSection<'i> {
    name: &'i [u8],
    size: u64,
}

impl<'a> NewSections<'a> {
    /// Lays out `object` with new sections, each with a name and a size in bytes.
    ///
    /// # Errors
    ///
    /// [`Format`](crate::ErrorKind::Format) for everything that is neither ELF, COFF nor WebAssembly,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for core files, PE images and Mach-O objects,
    /// [`Contents`](crate::ErrorKind::Contents) for a name with a zero byte, [`Limit`](crate::ErrorKind::Limit) where the format
    /// has no room, and [`Malformed`](crate::ErrorKind::Malformed) for objects that are truncated or contradict themselves.
    pub fn new(object: &'a [u8], sections: &[(impl AsRef<str>, u64)]) -> Result<Self, Error> {
        let mut list = Vec::with_capacity(sections.len());
        for (index, (name, size)) in sections.iter().enumerate() {
            let name = name.as_ref().as_bytes();
            if let Some(offset) = name.iter().position(|&b| b == 0) {
                let text = format!("name of new section {index} has a zero byte at {offset}");
                return Err(Error::new(ErrorKind::Contents, text));
            }
            list.push(NewSection { name, size: *size });
        }
        let new = &*list;
        match Kind::of(object)? {
            Kind::Elf(class) => by_class!(class, H => elf::lay_out::<H>(object, new)),
            Kind::Coff => coff::lay_out(object, new),
            Kind::Wasm => wasm::lay_out(object, new),
        }
    }

    /// Starts an empty result.
    pub(super) fn of(object: &'a [u8]) -> Self {
        NewSections { object, parts: Output::new(), places: Vec::new() }
    }

    /// Adds a range of the object; nothing if it ends before it starts.
    pub(super) fn keep(&mut self, range: Range<u64>) {
        self.parts.push_input(Input::File, range);
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.parts.push_bytes(bytes);
    }

    /// Adds zeros up to this offset of the result.
    pub(super) fn pad_to(&mut self, offset: u64) {
        self.parts.pad_to(offset);
    }

    /// Adds the contents of the next section.
    pub(super) fn add(&mut self, size: u64) {
        let start = self.parts.size();
        self.parts.push_input(Input::New(self.places.len()), 0..size);
        self.places.push(sized(start, size));
    }

    /// Returns the result if it has at most this many bytes, and fewer than 2^64.
    pub(super) fn within(self, limit: u64) -> Option<Self> {
        let size = self.parts.size();
        // Sizes do not grow past the largest number.
        (size <= limit && size < u64::MAX).then_some(self)
    }

    /// Returns the size of the result in bytes.
    #[must_use]
    pub fn total_size(&self) -> u64 {
        self.parts.size()
    }

    /// Returns where the contents of the new sections lie in the result, in order.
    pub fn contents_ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.places.iter().cloned()
    }

    /// Returns the size of the contents of each new section.
    fn sizes(&self) -> impl Iterator<Item = u64> {
        self.places.iter().map(|place| place.end - place.start)
    }

    /// Returns bytes of the object.
    fn kept(&self, range: &Range<u64>) -> io::Result<&'a [u8]> {
        let outside = || io::Error::other(internal!("a part outside the object"));
        slice(self.object, range.clone()).ok_or_else(outside)
    }

    /// Returns the result in memory.
    ///
    /// # Errors
    ///
    /// [`Contents`](crate::ErrorKind::Contents) when the contents are not those laid out, and [`Limit`](crate::ErrorKind::Limit) when the
    /// memory is too small.
    pub fn to_vec(&self, contents: &[impl AsRef<[u8]>]) -> Result<Vec<u8>, Error> {
        if contents.len() != self.places.len() {
            return Err(Error::entry_count(self.places.len(), contents.len()));
        }
        for (index, (expected, contents)) in self.sizes().zip(contents).enumerate() {
            let found = contents.as_ref().len() as u64;
            if found != expected {
                return Err(Error::entry_size(index, expected, found));
            }
        }
        let mut bytes = with_capacity(self.parts.size())?;
        for part in self.parts.iter() {
            match part {
                Part::Input(Input::New(index), _) => {
                    bytes.extend_from_slice(contents.get(*index).map_or(&[], AsRef::as_ref));
                }
                Part::Input(_, range) => bytes.extend_from_slice(self.kept(&range)?),
                Part::Bytes(new) => bytes.extend_from_slice(new),
                Part::Zeros(count) => bytes.extend_from_slice(&zeros(count)),
            }
        }
        Ok(bytes)
    }

    /// Writes the result, and flushes it. The contents are read once, in order, and never held in memory as a whole.
    ///
    /// # Errors
    ///
    /// The error of reading or writing, and [`io::ErrorKind::InvalidInput`] with an [`Error`] inside when the contents are not
    /// those laid out. By then a part of the result is written.
    pub fn write_to<R: Read>(
        &self,
        mut writer: impl Write,
        contents: impl IntoIterator<Item = R>,
    ) -> io::Result<()> {
        let mut contents = contents.into_iter();
        let sizes: Vec<_> = self.sizes().collect();
        if sizes.is_empty() && contents.next().is_some() {
            return Err(Error::entry_count(0, 1).into());
        }
        self.write_with(&mut writer, |index, writer| {
            let (Some(mut reader), Some(&expected)) = (contents.next(), sizes.get(index)) else {
                let expected = sizes.len();
                return Err(Error::entry_count(expected, index).into());
            };
            let found = io::copy(&mut reader.by_ref().take(expected), writer)?;
            // One more byte tells contents that are too long.
            let found = found + io::copy(&mut reader.take(1), &mut io::sink())?;
            let complete = index + 1 == sizes.len();
            if found == expected && complete && contents.next().is_some() {
                let expected = sizes.len();
                return Err(Error::entry_count(expected, expected + 1).into());
            }
            Ok(found)
        })
    }

    /// Writes the result, and flushes it. `fill` writes the contents of each new section, given its index, and returns
    /// their size in bytes. It gets the very writer, so that the kernel can copy from file to file.
    ///
    /// # Errors
    ///
    /// The error of writing or of `fill`, and [`io::ErrorKind::InvalidInput`] with an [`Error`] inside when the contents are not
    /// those laid out. By then a part of the result is written.
    pub fn write_with<W: Write>(
        &self,
        writer: &mut W,
        mut fill: impl FnMut(usize, &mut W) -> io::Result<u64>,
    ) -> io::Result<()> {
        let mut filled = 0;
        let mut fill_up_to = |end: usize, writer: &mut W| {
            for (index, expected) in self.sizes().enumerate().take(end).skip(filled) {
                let found = fill(index, writer)?;
                if found != expected {
                    return Err(io::Error::from(Error::entry_size(index, expected, found)));
                }
            }
            filled = end;
            Ok(())
        };
        for part in self.parts.iter() {
            match part {
                Part::Input(Input::New(index), _) => fill_up_to(index + 1, &mut *writer)?,
                Part::Input(_, range) => writer.write_all(self.kept(&range)?)?,
                Part::Bytes(bytes) => writer.write_all(bytes)?,
                Part::Zeros(count) => writer.write_all(&zeros(count))?,
            }
        }
        fill_up_to(self.places.len(), &mut *writer)?;
        writer.flush()
    }

    /// Returns the range from the first of the new contents to the last.
    fn contents(&self) -> Range<u64> {
        let end = self.parts.size();
        let start = self.places.first().map_or(end, |place| place.start);
        start..self.places.last().map_or(end, |place| place.end)
    }

    /// Returns whether these are the bytes before and after the contents of the new sections, with nothing between them.
    fn is_layout_of(&self, front: &[u8], tail: &[u8]) -> bool {
        let is = |range: Range<u64>, mut bytes: &[u8]| {
            let parts = self.parts.slice(range);
            let rest = parts.iter().try_for_each(|part| {
                bytes = match part {
                    Part::Input(_, range) => bytes.strip_prefix(self.kept(&range).ok()?),
                    Part::Bytes(new) => bytes.strip_prefix(new),
                    Part::Zeros(count) => bytes.strip_prefix(&*zeros(count)),
                }?;
                Some(())
            });
            rest.is_some() && bytes.is_empty()
        };
        let contents = self.contents();
        is(0..contents.start, front) && is(contents.end..self.parts.size(), tail)
    }

    /// Returns the same as [`is_layout_of`](Self::is_layout_of), given the whole object.
    fn is_whole_layout_of(&self, object: &[u8]) -> bool {
        let (contents, len) = (self.contents(), object.len() as u64);
        let front = slice(object, 0..contents.start);
        let ends = front.zip(slice(object, contents.end..len));
        self.parts.size() == len && ends.is_some_and(|(front, tail)| self.is_layout_of(front, tail))
    }
}

/// Places instead of the bytes.
impl fmt::Debug for NewSections<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewSections")
            .field("contents", &self.places)
            .field("total_size", &self.parts.size())
            .finish_non_exhaustive()
    }
}

/// Returns `object` without the sections whose names start with `prefix`.
///
/// Sections that [`NewSections`] added are taken off again, and the very bytes that the object had come back; so does
/// an object without such sections. From other objects the sections are removed as `llvm-objcopy` 22 does it. ELF: what is left
/// moves together in the order it lies in, string tables are built again, and section indices are changed everywhere; for objects
/// that clang compiled this gives back what it wrote, with one exception: empty sections where a string table starts get another
/// file offset; in a linked file what belongs to a segment stays where it is. COFF: headers and contents are cut out and the rest
/// stays as it is, names in the string table included. WebAssembly: the sections are cut out, and an empty section takes the
/// place of each as with `llvm-objcopy`, so that the others keep their numbers.
///
/// Time and memory grow with the object, for each of at most 64 times that something was added.
///
/// ```
/// use object_edit::remove_sections;
///
/// assert!(remove_sections(b"!<arch>\n", ".debug_").is_err());
/// ```
///
/// # Errors
///
/// [`Refused`](crate::ErrorKind::Refused) when something in the object needs one of the sections, and the
/// errors of [`NewSections::new`] for files that are damaged or not objects.
pub fn remove_sections<'a>(object: &'a [u8], prefix: &str) -> Result<Cow<'a, [u8]>, Error> {
    without(object, prefix.as_bytes())
}

fn without<'a>(object: &'a [u8], prefix: &[u8]) -> Result<Cow<'a, [u8]>, Error> {
    if object.starts_with(b"\x7fELF") {
        return remove_from_elf(object, prefix);
    }
    let mut rest = Cow::Borrowed(object);
    for _ in 0..MAX_UNDO {
        let before = match Kind::of(&rest)? {
            Kind::Coff => coff::undo(&rest, prefix),
            // Nothing else than removing them.
            Kind::Elf(_) | Kind::Wasm => None,
        };
        match before {
            Some(before) => rest = Cow::Owned(before),
            None => break,
        }
    }
    let removed = match Kind::of(&rest)? {
        Kind::Wasm => wasm::remove(&rest, prefix),
        kind => in_memory(&rest, |source, window| without_sections(kind, source, window, prefix)),
    }?;
    Ok(removed.map_or(rest, Cow::Owned))
}

fn remove_from_elf<'a>(object: &'a [u8], prefix: &[u8]) -> Result<Cow<'a, [u8]>, Error> {
    let host = in_memory(object, |source, window| {
        let host = host_object::plan(source, window, prefix)?;
        Ok((!output::is_copy_of(&host, window)).then_some(host))
    })?;
    Ok(host.map_or(Cow::Borrowed(object), Cow::Owned))
}

/// Returns the ELF file or COFF object in the window without the sections whose names start with `prefix`; `None`
/// when there are none.
fn without_sections(
    kind: Kind,
    source: &mut Source<'_>,
    window: &Range<u64>,
    prefix: &[u8],
) -> Result<Option<Output>, Error> {
    let goes = |_, name: &[u8]| name.starts_with(prefix);
    match kind {
        Kind::Elf(class) => {
            by_class!(class, H => elf_object::remove::<H>(source, window, &goes))
        }
        Kind::Coff | Kind::Wasm => coff_object::remove(source, window, &goes),
    }
}

/// Applies a plan to an object in memory.
pub(crate) fn in_memory(
    object: &[u8],
    plan: impl FnOnce(&mut Source<'_>, &Range<u64>) -> Result<Option<Output>, Error>,
) -> Result<Option<Vec<u8>>, Error> {
    // Nothing else goes wrong in reading memory.
    let object_error = |error: Error| match error.kind() {
        ErrorKind::Read => Error::out_of_memory(object.len() as u64),
        _ => error,
    };
    let mut cursor = Cursor::new(object);
    let mut source = Source::new(&mut cursor).map_err(|e| object_error(e.into()))?;
    let planned = plan(&mut source, &(0..object.len() as u64)).map_err(object_error)?;
    let Some(splices) = planned else { return Ok(None) };
    let mut bytes = with_capacity(splices.size())?;
    let read = output::reader(&splices, source.reader(), &mut ()).read_to_end(&mut bytes);
    read.map_err(|error| object_error(error.into()))?;
    Ok(Some(bytes))
}

/// Returns this many zeros, which are few.
fn zeros(count: u64) -> Vec<u8> {
    (0..count).map(|_| 0).collect()
}

/// Returns an empty vector with room for `size` bytes.
fn with_capacity(size: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    match usize::try_from(size).map(|size| bytes.try_reserve_exact(size)) {
        Ok(Ok(())) => Ok(bytes),
        _ => Err(Error::out_of_memory(size)),
    }
}
