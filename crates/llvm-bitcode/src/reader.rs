//! The modules of a file, one after the other.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::bits::{Cursor, Extent, MAX_STREAM};
use crate::cursor::Head;
use crate::error::{Error, ErrorKind};
use crate::source::ReadAt;
use crate::{EmbeddedObject, WRAPPER_MAGIC, module, processor};

/// Header of the wrapper around bitcode.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct Wrapper {
    /// [`WRAPPER_MAGIC`].
    magic: [u8; 4],
    version: U32,
    /// Offset of the bitcode.
    offset: U32,
    /// Size in bytes of the bitcode.
    size: U32,
    /// Processor of the code.
    cpu_type: U32,
}

/// Returns the extent of the bitstream: the whole range, or the part that the wrapper names.
pub(crate) fn extent(source: &mut dyn ReadAt, window: &Range<u64>) -> Result<Extent, Error> {
    // A range that ends before it starts has no bytes.
    let (container, available) = (window.start, window.end.saturating_sub(window.start));
    if available > MAX_STREAM {
        let message = format!("bitcode of {available} bytes, expected at most {MAX_STREAM}");
        return Err(Error::new(ErrorKind::Limit, None, message));
    }
    let mut head = Wrapper::new_zeroed();
    let bytes = head.as_mut_bytes();
    let len = usize::try_from(available).unwrap_or(bytes.len()).min(bytes.len());
    let is_whole = len == bytes.len();
    source.read_exact_at(container, bytes.split_at_mut(len).0).map_err(|_| Error::unreadable(0))?;
    if head.magic != WRAPPER_MAGIC {
        return Ok(Extent { container, start: container, len: available });
    }
    if !is_whole {
        let message = format!("bitcode wrapper needs 20 bytes, {available} are there");
        return Err(Error::new(ErrorKind::Truncated, 0, message));
    };
    let (start, len) = (u64::from(head.offset), u64::from(head.size));
    let end = start + len;
    if end > available {
        let message = format!(
            "bitcode wrapper places the bitcode at {start:#x}..{end:#x}, beyond the end of the file at {available:#x}"
        );
        return Err(Error::new(ErrorKind::Truncated, start, message));
    }
    Ok(Extent { container, start: container + start, len })
}

/// A reader of the modules of one file: raw bitcode, or bitcode in its wrapper.
///
/// Offsets in errors count from the start of the range.
pub struct Reader<'s> {
    cursor: Cursor<'s>,
    /// Bit offset of the block after the last module; `None` before the magic is read.
    next: Option<u64>,
    has_module: bool,
}

/// A module of a [`Reader`].
#[derive(Debug)]
pub struct Module(Head);

impl<'s> Reader<'s> {
    /// Creates a reader of the bitcode in the byte range `window` of `source`, and reads the wrapper's header if there is
    /// one.
    ///
    /// # Errors
    ///
    /// [`Truncated`](crate::ErrorKind::Truncated) if a wrapper ends early or names bytes past the end of the range,
    /// [`Unreadable`](crate::ErrorKind::Unreadable) if the source cannot be read.
    pub fn new(source: &'s mut dyn ReadAt, window: Range<u64>) -> Result<Self, Error> {
        let extent = extent(source, &window)?;
        Ok(Reader { cursor: Cursor::new(source, extent), next: None, has_module: false })
    }

    /// Returns the next module; `None` after the last.
    ///
    /// # Errors
    ///
    /// [`NotBitcode`](crate::ErrorKind::NotBitcode) if the magic or a module is missing,
    /// [`Malformed`](crate::ErrorKind::Malformed) and the other kinds for blocks outside of modules.
    pub fn next_module(&mut self) -> Result<Option<Module>, Error> {
        match self.next {
            Some(position) => self.cursor.leave_to(position),
            None => self.cursor.magic()?,
        }
        self.next = Some(self.cursor.position());
        // LLVM, too, takes fewer than eight bytes for padding, which archivers add.
        while self.cursor.bytes_left() >= 8 {
            let block = self.cursor.outer_block()?;
            let end = self.cursor.position();
            self.next = Some(end);
            if block.id == module::MODULE_BLOCK {
                self.has_module = true;
                return Ok(Some(Module(block)));
            }
            self.cursor.leave_to(end);
        }
        if self.has_module { Ok(None) } else { Err(Error::no_module(self.cursor.offset())) }
    }

    /// Returns the bytes of the module's target triple; `None` if it has none.
    ///
    /// # Errors
    ///
    /// [`Malformed`](crate::ErrorKind::Malformed) and the other kinds for records before it,
    /// [`Limit`](crate::ErrorKind::Limit) for a triple of more than 1024 bytes.
    pub fn triple(&mut self, module: &Module) -> Result<Option<Vec<u8>>, Error> {
        module::triple(&mut self.cursor, &module.0)
    }

    /// Returns the processor that all functions with a body name in their attribute `target-cpu`; `None` if there are no
    /// such functions, if one names none, or if they differ.
    ///
    /// # Errors
    ///
    /// [`Malformed`](crate::ErrorKind::Malformed) and the other kinds for records outside of functions.
    pub fn processor(&mut self, module: &Module) -> Result<Option<String>, Error> {
        processor::processor(&mut self.cursor, &module.0)
    }

    /// Returns whether the module has metadata with this name, such as `nvvm.annotations`.
    ///
    /// # Errors
    ///
    /// [`Malformed`](crate::ErrorKind::Malformed) and the other kinds for records.
    pub fn has_named_metadata(&mut self, module: &Module, name: &[u8]) -> Result<bool, Error> {
        module::has_named_metadata(&mut self.cursor, &module.0, name)
    }

    /// Adds the objects to `found` that the metadata `llvm.embedded.objects` of the module lists with the section
    /// `.llvm.offloading`, in its order, each constant once.
    ///
    /// # Errors
    ///
    /// [`Malformed`](crate::ErrorKind::Malformed) and the other kinds for records, and for a list that names a missing
    /// object; its other objects are added.
    pub fn embedded_objects(
        &mut self,
        module: &Module,
        found: &mut Vec<EmbeddedObject>,
    ) -> Result<(), Error> {
        module::embedded_objects(&mut self.cursor, &module.0, found)
    }

    /// Adds the constants of bytes to `found` that start with one of `magics` and are not in it yet, in the order of the
    /// file. Clang puts the bundle of a HIP source file into a global that no metadata lists.
    ///
    /// # Errors
    ///
    /// [`Malformed`](crate::ErrorKind::Malformed) and the other kinds for records.
    pub fn constants_starting_with(
        &mut self,
        module: &Module,
        magics: &[[u8; 4]],
        found: &mut Vec<EmbeddedObject>,
    ) -> Result<(), Error> {
        module::constants_starting_with(&mut self.cursor, &module.0, magics, found)
    }
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("next", &self.next).finish_non_exhaustive()
    }
}
