//! The input, read at any offset.

/// An input that can be read at any offset: bytes in memory, or what a program makes of a file.
///
/// ```
/// use std::io::{Read, Seek, SeekFrom};
///
/// use llvm_bitcode::{ReadAt, Unreadable};
///
/// struct File<F> {
///     file: F,
///     /// Set if reading bitcode fails with `ErrorKind::Unreadable`.
///     error: Option<std::io::Error>,
/// }
///
/// impl<F: Read + Seek> ReadAt for File<F> {
///     fn read_exact_at(&mut self, offset: u64, to: &mut [u8]) -> Result<(), Unreadable> {
///         let read = self.file.seek(SeekFrom::Start(offset)).and_then(|_| self.file.read_exact(to));
///         read.map_err(|error| {
///             self.error = Some(error);
///             Unreadable
///         })
///     }
/// }
/// ```
pub trait ReadAt {
    /// Fills `to` with the bytes that start at `offset`.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if not all of them can be read. A source that knows the reason keeps it for its owner.
    fn read_exact_at(&mut self, offset: u64, to: &mut [u8]) -> Result<(), Unreadable>;
}

/// A [`ReadAt`] could not read.
///
/// Exhaustive: each source makes it, and keeps the reason for its owner.
#[derive(Debug)]
pub struct Unreadable;

impl ReadAt for &[u8] {
    fn read_exact_at(&mut self, offset: u64, to: &mut [u8]) -> Result<(), Unreadable> {
        let start = usize::try_from(offset).map_err(|_| Unreadable)?;
        let from = self.get(start..).and_then(|bytes| bytes.get(..to.len())).ok_or(Unreadable)?;
        to.copy_from_slice(from);
        Ok(())
    }
}
