//! Sections that are added to an object, and taken off again.

mod coff;
mod elf;
mod host_object;
mod wasm;

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Cursor, Read, Write};
use std::ops::Range;

use byte_parts::Source;
pub use host_object::HostObject;

use super::{Kind, Pieces, slice};
use crate::error::{Error, ErrorKind};
use crate::objects::elf_class::by_class;
use crate::objects::{coff as coff_object, elf_object};
use crate::output::{self, Output};

/// Limit of successive removals of sections that [`NewSections`] added. Nobody adds twice; a file made for it must
/// not keep its reader busy.
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
    before: Pieces<'a>,
    /// The bytes before the contents of each new section, mostly none.
    heads: Vec<Vec<u8>>,
    sizes: Vec<u64>,
    after: Pieces<'a>,
    pub(super) total_size: u64,
}

/// A section to add.
#[derive(Clone, Copy)]
struct NewSection<'i> {
    name: &'i [u8],
    size: u64,
}

fn sizes(new: &[NewSection<'_>]) -> Vec<u64> {
    new.iter().map(|section| section.size).collect()
}

impl<'a> NewSections<'a> {
    /// Lays out `object` with new sections, each with a name and a size in bytes.
    ///
    /// # Errors
    ///
    /// [`Format`](crate::ErrorKind::Format) for everything that is neither ELF, COFF nor WebAssembly,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for core files, PE images and Mach-O objects, [`Contents`](crate::ErrorKind::Contents) for
    /// a name with a zero byte, [`Limit`](crate::ErrorKind::Limit) where the format has no room, and
    /// [`Malformed`](crate::ErrorKind::Malformed) for objects that are truncated or contradict themselves.
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

    fn from_pieces(before: Pieces<'a>, sizes: &[u64], after: Pieces<'a>) -> Option<Self> {
        Self::with_heads(before, vec![Vec::new(); sizes.len()], sizes, after)
    }

    /// Returns one new section whose contents are padded with zeros.
    pub(super) fn with_padding(
        before: Pieces<'a>,
        size: u64,
        padded: u64,
        mut after: Pieces<'a>,
    ) -> Option<Self> {
        let padding = usize::try_from(padded.checked_sub(size)?).ok()?;
        after.0.insert(0, vec![0; padding].into());
        Self::from_pieces(before, &[size], after)
    }

    /// Returns new sections with a head before the contents of each. There are as many `heads` as sizes.
    fn with_heads(
        before: Pieces<'a>,
        heads: Vec<Vec<u8>>,
        sizes: &[u64],
        after: Pieces<'a>,
    ) -> Option<Self> {
        let mut total_size = before.len()?.checked_add(after.len()?)?;
        for (head, &size) in heads.iter().zip(sizes) {
            total_size = total_size.checked_add(head.len() as u64)?.checked_add(size)?;
        }
        Some(NewSections { before, heads, sizes: sizes.to_vec(), after, total_size })
    }

    /// Returns the size of the result in bytes.
    #[must_use]
    pub fn total_size(&self) -> u64 {
        self.total_size
    }

    /// Returns where the contents of the new sections lie in the result, in order.
    pub fn contents_ranges(&self) -> impl Iterator<Item = Range<u64>> {
        let mut end = self.before.0.iter().map(|piece| piece.len() as u64).sum::<u64>();
        self.heads.iter().zip(&self.sizes).map(move |(head, size)| {
            let start = end.saturating_add(head.len() as u64);
            end = start.saturating_add(*size);
            start..end
        })
    }

    /// Returns the result in memory.
    ///
    /// # Errors
    ///
    /// [`Contents`](crate::ErrorKind::Contents) when the contents are not those laid out, and [`Limit`](crate::ErrorKind::Limit) when the
    /// memory is too small.
    pub fn to_vec(&self, contents: &[impl AsRef<[u8]>]) -> Result<Vec<u8>, Error> {
        if contents.len() != self.sizes.len() {
            let (expected, found) = (self.sizes.len(), contents.len());
            return Err(Error::entry_count(expected, found));
        }
        for (index, (&expected, contents)) in self.sizes.iter().zip(contents).enumerate() {
            let found = contents.as_ref().len() as u64;
            if found != expected {
                return Err(Error::entry_size(index, expected, found));
            }
        }
        let mut bytes = with_capacity(self.total_size)?;
        for piece in &self.before.0 {
            bytes.extend_from_slice(piece);
        }
        for (head, contents) in self.heads.iter().zip(contents) {
            bytes.extend_from_slice(head);
            bytes.extend_from_slice(contents.as_ref());
        }
        for piece in &self.after.0 {
            bytes.extend_from_slice(piece);
        }
        Ok(bytes)
    }

    /// Writes the result, and flushes it. The contents are read once, in order, and never held in memory as a whole.
    ///
    /// # Errors
    ///
    /// Those of reading and writing, and [`io::ErrorKind::InvalidInput`] with an [`Error`] inside when the contents are not
    /// those laid out. By then a part of the result is written.
    pub fn write_to<R: Read>(
        &self,
        mut writer: impl Write,
        contents: impl IntoIterator<Item = R>,
    ) -> io::Result<()> {
        let mut contents = contents.into_iter();
        let sizes = &self.sizes;
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
            let found = found.saturating_add(io::copy(&mut reader.take(1), &mut io::sink())?);
            let complete = index.saturating_add(1) == sizes.len();
            if found == expected && complete && contents.next().is_some() {
                let expected = sizes.len();
                let found = expected.saturating_add(1);
                return Err(Error::entry_count(expected, found).into());
            }
            Ok(found)
        })
    }

    /// Writes the result, and flushes it. `fill` writes the contents of each new section, given its index, and returns
    /// their size in bytes. It gets the very writer, so that the kernel can copy from file to file.
    ///
    /// # Errors
    ///
    /// Those of writing and of `fill`, and [`io::ErrorKind::InvalidInput`] with an [`Error`] inside when the contents are not
    /// those laid out. By then a part of the result is written.
    pub fn write_with<W: Write>(
        &self,
        writer: &mut W,
        mut fill: impl FnMut(usize, &mut W) -> io::Result<u64>,
    ) -> io::Result<()> {
        for piece in &self.before.0 {
            writer.write_all(piece)?;
        }
        for (index, (head, &expected)) in self.heads.iter().zip(&self.sizes).enumerate() {
            writer.write_all(head)?;
            let found = fill(index, writer)?;
            if found != expected {
                return Err(Error::entry_size(index, expected, found).into());
            }
        }
        for piece in &self.after.0 {
            writer.write_all(piece)?;
        }
        writer.flush()
    }

    /// Returns whether these are the bytes before and after the contents of the new sections, which have no heads.
    fn is_layout_of(&self, front: &[u8], tail: &[u8]) -> bool {
        let is = |pieces: &Pieces<'_>, mut bytes: &[u8]| {
            pieces.0.iter().all(|piece| match bytes.strip_prefix(&**piece) {
                Some(rest) => {
                    bytes = rest;
                    true
                }
                None => false,
            }) && bytes.is_empty()
        };
        is(&self.before, front) && is(&self.after, tail)
    }

    /// Returns the same as [`is_layout_of`](Self::is_layout_of), given the whole object.
    fn is_whole_layout_of(&self, object: &[u8]) -> bool {
        let front = self.before.len();
        let contents = self.sizes.iter().try_fold(0_u64, |sum, &size| sum.checked_add(size));
        let tail = front.zip(contents).and_then(|(front, contents)| front.checked_add(contents));
        let front = front.and_then(|end| slice(object, 0..end));
        let tail = tail.and_then(|start| slice(object, start..object.len() as u64));
        let front = front.filter(|_| self.total_size == object.len() as u64);
        front.zip(tail).is_some_and(|(front, tail)| self.is_layout_of(front, tail))
    }
}

/// Sizes instead of the bytes.
impl fmt::Debug for NewSections<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewSections")
            .field("sizes", &self.sizes)
            .field("total_size", &self.total_size)
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
/// [`Refused`](crate::ErrorKind::Refused) when something in the object needs one of the sections, and those of
/// [`NewSections::new`] for files that are damaged or not objects.
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
fn in_memory(
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

/// Returns an empty vector with room for `size` bytes.
fn with_capacity(size: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    match usize::try_from(size).map(|size| bytes.try_reserve_exact(size)) {
        Ok(Ok(())) => Ok(bytes),
        _ => Err(Error::out_of_memory(size)),
    }
}
