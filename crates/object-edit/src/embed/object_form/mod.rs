//! Bundles in the object form: every entry is a section of the host object, named after its ID. In Mach-O all
//! are in one section, whose name has no room for an ID.

mod coff;
mod elf;
mod host_object;
mod macho;
mod macho_remove;
mod wasm;

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Cursor, Read, Write};
use std::ops::Range;

use byte_parts::Source;
pub use host_object::HostObject;
pub use macho::MACH_O_BUNDLE_SECTION;
use object::elf::{FileHeader32, FileHeader64};
use object::macho::{MachHeader32, MachHeader64};
use object::{BigEndian, LittleEndian};

use super::{Kind, Pieces, slice};
use crate::error::{Error, ObjectProblem, Problem};
use crate::output::{self, Output, Unread};
use crate::without::without_sections;

/// What the names of the sections start with; the bundle entry ID follows.
const PREFIX: &[u8] = bundle_format::MAGIC_TEXT.as_bytes();

/// How many times in a row sections added by [`ObjectBundle`] are taken off again. Nobody adds twice; a file
/// made for it must not keep its reader busy.
const MAX_UNDO: usize = 64;

/// Contents of the section that stands for the host object itself, as clang-offload-bundler 22 writes it.
pub const HOST_PLACEHOLDER: &[u8] = &[0];

/// An object file with the entries of a bundle in sections of it, laid out but not written yet.
///
/// This is what `clang-offload-bundler --type=o` makes of a host object, and how it lays it out in the *Clang
/// Offload Bundler* documentation's terms: the object form. Sections are named `__CLANG_OFFLOAD_BUNDLE__` and
/// the bundle entry ID, in the order given, without alignment or symbols; ELF: `SHT_PROGBITS` with the flag
/// `SHF_EXCLUDE`; COFF: `IMAGE_SCN_LNK_REMOVE` and `IMAGE_SCN_MEM_READ`. A linker drops them. The host's own entry is a
/// section that holds [`HOST_PLACEHOLDER`].
///
/// Everything else stays as it was. In ELF that includes every byte but `e_shoff` and `e_shnum` in the ELF
/// header: contents, a new table of section names and a new section header table follow the old object, which may
/// be linked, and runs as before. In COFF what follows the section headers moves. A copy of the old file header is
/// left where no section is, so that [`remove_bundle_sections`] gives back the very bytes of the object.
///
/// LLVM has no object form for two more formats:
///
/// - **WebAssembly** modules get a custom section for each entry behind everything else, with the same name. LLVM's
///   bundler lists and unbundles these. A link copies them into its output.
/// - **Mach-O** objects (`MH_OBJECT`; 32-bit and 64-bit, both byte orders) have names of 16 bytes, too few for an
///   ID. They get one section, `__offload_bundle` in the segment `__LLVM`, which holds a
///   [binary bundle](bundle_format::Bundle) with all entries, one behind the other without alignment, and zeros up
///   to a multiple of 8 bytes (4 in 32-bit objects). The section is the last one, of type `S_REGULAR`, without
///   attributes, relocations, symbols and alignment; its contents are the last of the segment, in the file and by
///   address. Readers take all bundles in such a section, which may be several after a relocatable link, with zeros
///   between them, and an entry of the kind `host` that is one zero byte as the placeholder. Linkers leave sections
///   of `__LLVM` out, where clang's `-fembed-bitcode` puts its own; `strip` keeps them.
///
/// Nothing says that an ID must be sound or occur once: the bundle's rules are its maker's to check.
///
/// ```no_run
/// use object_edit::{HOST_PLACEHOLDER, ObjectBundle};
///
/// let host = std::fs::read("host.o")?;
/// let mut image = std::fs::File::open("gfx90a.out")?;
/// let entries = [
///     ("host-x86_64-unknown-linux-gnu-", 1),
///     ("hip-amdgcn-amd-amdhsa--gfx90a", image.metadata()?.len()),
/// ];
/// let bundle = ObjectBundle::new(&host, &entries)?;
/// let contents: [&mut dyn std::io::Read; 2] = [&mut &*HOST_PLACEHOLDER, &mut image];
/// bundle.write_to(std::fs::File::create("fat.o")?, contents)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ObjectBundle<'a> {
    before: Pieces<'a>,
    /// What comes in front of the contents of each new section, mostly nothing.
    heads: Vec<Vec<u8>>,
    sizes: Vec<u64>,
    after: Pieces<'a>,
    total_size: u64,
}

/// A section to add.
#[derive(Clone, Copy)]
struct Entry<'i> {
    id: &'i [u8],
    size: u64,
}

impl<'a> ObjectBundle<'a> {
    /// Lays out `object` with a new section for every bundle entry ID, of so many bytes.
    ///
    /// # Errors
    ///
    /// [`Format`](crate::ErrorKind::Format) for everything that is neither ELF, COFF, Mach-O nor WebAssembly,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for core files, linked PE and Mach-O files, and Mach-O objects with an unknown
    /// load command, [`Contents`](crate::ErrorKind::Contents) for an ID that has a zero byte, and for an empty one in Mach-O,
    /// [`Limit`](crate::ErrorKind::Limit) where the format has no room, and [`Malformed`](crate::ErrorKind::Malformed) for objects that are
    /// truncated or contradict themselves.
    pub fn new(object: &'a [u8], entries: &[(impl AsRef<str>, u64)]) -> Result<Self, Error> {
        let mut list = Vec::with_capacity(entries.len());
        for (index, (id, size)) in entries.iter().enumerate() {
            let id = id.as_ref().as_bytes();
            if let Some(offset) = id.iter().position(|&b| b == 0) {
                return Err(ObjectProblem::EntryId { index, offset }.into());
            }
            list.push(Entry { id, size: *size });
        }
        let entries = &*list;
        Ok(match Kind::of(object)? {
            Kind::Elf32Little => elf::lay_out::<FileHeader32<LittleEndian>>(object, entries),
            Kind::Elf32Big => elf::lay_out::<FileHeader32<BigEndian>>(object, entries),
            Kind::Elf64Little => elf::lay_out::<FileHeader64<LittleEndian>>(object, entries),
            Kind::Elf64Big => elf::lay_out::<FileHeader64<BigEndian>>(object, entries),
            Kind::Coff => coff::lay_out(object, entries),
            Kind::MachO32Little => macho::lay_out::<MachHeader32<LittleEndian>>(object, entries),
            Kind::MachO32Big => macho::lay_out::<MachHeader32<BigEndian>>(object, entries),
            Kind::MachO64Little => macho::lay_out::<MachHeader64<LittleEndian>>(object, entries),
            Kind::MachO64Big => macho::lay_out::<MachHeader64<BigEndian>>(object, entries),
            Kind::Wasm => wasm::lay_out(object, entries),
        }?)
    }

    fn from_pieces(before: Pieces<'a>, entries: &[Entry<'_>], after: Pieces<'a>) -> Option<Self> {
        Self::with_heads(before, vec![Vec::new(); entries.len()], entries, after)
    }

    /// There are as many `heads` as entries.
    fn with_heads(
        before: Pieces<'a>,
        heads: Vec<Vec<u8>>,
        entries: &[Entry<'_>],
        after: Pieces<'a>,
    ) -> Option<Self> {
        let sizes = entries.iter().map(|entry| entry.size).collect::<Vec<_>>();
        let mut total_size = before.len()?.checked_add(after.len()?)?;
        for (head, &size) in heads.iter().zip(&sizes) {
            total_size = total_size.checked_add(head.len() as u64)?.checked_add(size)?;
        }
        Some(ObjectBundle { before, heads, sizes, after, total_size })
    }

    /// Size of the result in bytes.
    #[must_use]
    pub fn total_size(&self) -> u64 {
        self.total_size
    }

    /// Where the contents of the new sections lie in the result, in order.
    pub fn contents_ranges(&self) -> impl Iterator<Item = Range<u64>> {
        let mut end = self.before.0.iter().map(|piece| piece.len() as u64).sum::<u64>();
        self.heads.iter().zip(&self.sizes).map(move |(head, size)| {
            let start = end.saturating_add(head.len() as u64);
            end = start.saturating_add(*size);
            start..end
        })
    }

    /// The result in memory.
    ///
    /// # Errors
    ///
    /// [`Contents`](crate::ErrorKind::Contents) when the contents are not those laid out, and [`Limit`](crate::ErrorKind::Limit) when the
    /// memory is too small.
    pub fn to_vec(&self, contents: &[impl AsRef<[u8]>]) -> Result<Vec<u8>, Error> {
        if contents.len() != self.sizes.len() {
            let (expected, found) = (self.sizes.len(), contents.len());
            return Err(ObjectProblem::EntryCount { expected, found }.into());
        }
        for (index, (&expected, contents)) in self.sizes.iter().zip(contents).enumerate() {
            let found = contents.as_ref().len() as u64;
            if found != expected {
                return Err(ObjectProblem::EntrySize { index, expected, found }.into());
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
        let invalid = |problem: ObjectProblem| io::Error::from(Error::from(problem));
        let mut contents = contents.into_iter();
        let sizes = &self.sizes;
        if sizes.is_empty() && contents.next().is_some() {
            return Err(invalid(ObjectProblem::EntryCount { expected: 0, found: 1 }));
        }
        self.write_with(&mut writer, |index, writer| {
            let (Some(mut reader), Some(&expected)) = (contents.next(), sizes.get(index)) else {
                let expected = sizes.len();
                return Err(invalid(ObjectProblem::EntryCount { expected, found: index }));
            };
            let found = io::copy(&mut reader.by_ref().take(expected), writer)?;
            // One more byte tells contents that are too long.
            let found = found.saturating_add(io::copy(&mut reader.take(1), &mut io::sink())?);
            let complete = index.saturating_add(1) == sizes.len();
            if found == expected && complete && contents.next().is_some() {
                let expected = sizes.len();
                let found = expected.saturating_add(1);
                return Err(invalid(ObjectProblem::EntryCount { expected, found }));
            }
            Ok(found)
        })
    }

    /// Writes the result, and flushes it. `fill` writes the contents of each new section, given its index, and says how
    /// many bytes that were: whoever has files copies from file to file, and the kernel does it. It gets the very writer, which
    /// is why that is passed by reference.
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
                return Err(Error::from(ObjectProblem::EntrySize { index, expected, found }).into());
            }
        }
        for piece in &self.after.0 {
            writer.write_all(piece)?;
        }
        writer.flush()
    }

    /// Whether this is what comes before and behind the contents of the new sections, which have nothing in front of
    /// each.
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

    /// As [`is_layout_of`](Self::is_layout_of), given the whole object.
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
impl fmt::Debug for ObjectBundle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectBundle")
            .field("sizes", &self.sizes)
            .field("total_size", &self.total_size)
            .finish_non_exhaustive()
    }
}

/// The host object of a bundle in the object form: `object` without the sections whose names start with
/// `__CLANG_OFFLOAD_BUNDLE__`.
///
/// What [`ObjectBundle`] added is taken off again, and the very bytes that the object had come back; so does
/// an object without such sections. From other objects the sections are removed as `llvm-objcopy` 22 does it,
/// and with it `clang-offload-bundler --unbundle`. ELF: what is left moves together in the order it lies in, string
/// tables are built anew, and section indices are changed everywhere; for objects that clang compiled this gives
/// back what it wrote, with one exception: empty sections where a string table starts get another file offset; in a
/// linked file what belongs to a segment stays where it is. COFF:
/// headers and contents are cut out and the rest stays as it is, names in the string table included. Mach-O and
/// WebAssembly: the sections are cut out; sections behind them get other numbers everywhere in Mach-O objects, and
/// keep theirs in WebAssembly, where an empty section takes the place of each as with `llvm-objcopy`.
///
/// Time and memory grow with the object, for each of at most 64 times that something was added; in Mach-O objects with
/// the relocations, for each of at most 255 sections.
///
/// ```
/// assert!(object_edit::remove_bundle_sections(b"!<arch>\n").is_err());
/// ```
///
/// # Errors
///
/// [`Reference`](crate::ErrorKind::Reference) when something in the object needs one of the sections, and those of
/// [`ObjectBundle::new`] for files that are no objects or damaged.
pub fn remove_bundle_sections(object: &[u8]) -> Result<Cow<'_, [u8]>, Error> {
    Ok(without_bundle(object)?)
}

fn without_bundle(object: &[u8]) -> Result<Cow<'_, [u8]>, ObjectProblem> {
    if object.starts_with(b"\x7fELF") {
        return remove_from_elf(object);
    }
    let mut rest = Cow::Borrowed(object);
    for _ in 0..MAX_UNDO {
        let before = match Kind::of(&rest)? {
            Kind::Coff => coff::undo(&rest),
            Kind::MachO32Little => macho::undo::<MachHeader32<LittleEndian>>(&rest),
            Kind::MachO32Big => macho::undo::<MachHeader32<BigEndian>>(&rest),
            Kind::MachO64Little => macho::undo::<MachHeader64<LittleEndian>>(&rest),
            Kind::MachO64Big => macho::undo::<MachHeader64<BigEndian>>(&rest),
            // Nothing else than removing them.
            Kind::Wasm => None,
            Kind::Elf32Little | Kind::Elf32Big | Kind::Elf64Little | Kind::Elf64Big => None,
        };
        match before {
            Some(before) => rest = Cow::Owned(before),
            None => break,
        }
    }
    let removed = match Kind::of(&rest)? {
        Kind::Elf32Little | Kind::Elf32Big | Kind::Elf64Little | Kind::Elf64Big | Kind::Coff => {
            in_memory(&rest, |source, window| without_sections(source, window, PREFIX))
        }
        Kind::MachO32Little => macho_remove::remove::<MachHeader32<LittleEndian>>(&rest),
        Kind::MachO32Big => macho_remove::remove::<MachHeader32<BigEndian>>(&rest),
        Kind::MachO64Little => macho_remove::remove::<MachHeader64<LittleEndian>>(&rest),
        Kind::MachO64Big => macho_remove::remove::<MachHeader64<BigEndian>>(&rest),
        Kind::Wasm => wasm::remove(&rest),
    }?;
    Ok(removed.map_or(rest, Cow::Owned))
}

fn remove_from_elf(object: &[u8]) -> Result<Cow<'_, [u8]>, ObjectProblem> {
    let host = in_memory(object, |source, window| {
        let host = host_object::plan(source, window)?;
        Ok((!output::is_copy_of(&host, window)).then_some(host))
    })?;
    Ok(host.map_or(Cow::Borrowed(object), Cow::Owned))
}

/// Carries out what is planned for an object in memory.
fn in_memory(
    object: &[u8],
    plan: impl FnOnce(&mut Source<'_>, &Range<u64>) -> Result<Option<Output>, Problem>,
) -> Result<Option<Vec<u8>>, ObjectProblem> {
    // Nothing else goes wrong in memory.
    let object_error = |error| match error {
        Problem::Object(error) => error,
        _ => ObjectProblem::OutOfMemory { size: object.len() as u64 },
    };
    let mut cursor = Cursor::new(object);
    let mut source = Source::new(&mut cursor).map_err(|e| object_error(e.into()))?;
    let planned = plan(&mut source, &(0..object.len() as u64)).map_err(object_error)?;
    let Some(splices) = planned else { return Ok(None) };
    let mut bytes = with_capacity(splices.size())?;
    let read = output::reader(&splices, source.reader(), &mut Unread).read_to_end(&mut bytes);
    read.map_err(|error| object_error(error.into()))?;
    Ok(Some(bytes))
}

/// An empty vector with room for `size` bytes.
fn with_capacity(size: u64) -> Result<Vec<u8>, ObjectProblem> {
    let mut bytes = Vec::new();
    match usize::try_from(size).map(|size| bytes.try_reserve_exact(size)) {
        Ok(Ok(())) => Ok(bytes),
        _ => Err(ObjectProblem::OutOfMemory { size }),
    }
}
