//! An object without some of its sections, written without reading what they hold.

use std::borrow::Cow;
use std::io::{Read, Seek, Write};
use std::ops::Range;

use byte_parts::{Inputs, ReadSeek, Source, copy_range};

use super::super::Kind;
use super::{MAX_UNDO, elf, without, without_sections};
use crate::error::Error;
use crate::objects::elf_class::by_class;
use crate::output::{self, Input, Output};

/// The first bytes of a file, which tell its format.
pub(crate) const HEAD_LEN: usize = 64;

/// An object in a file without some of its sections, laid out but not written yet; [`remove_sections`](crate::remove_sections)
/// does the same in memory.
///
/// For ELF files only the remaining parts are read, and all but a few tables goes from file to file; objects of
/// other formats are held in memory.
#[derive(Clone, Debug)]
pub struct HostObject {
    splices: Output,
}

impl HostObject {
    /// Lays out the object in the window without the sections whose names start with `prefix`.
    ///
    /// # Errors
    ///
    /// [`Read`](crate::ErrorKind::Read), and the errors of [`remove_sections`](crate::remove_sections).
    pub fn plan(source: &mut Source<'_>, window: &Range<u64>, prefix: &str) -> Result<Self, Error> {
        Ok(HostObject { splices: plan(source, window, prefix.as_bytes())? })
    }

    /// Returns the size of the object in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.splices.size()
    }

    /// Writes the object; from a file to a file, the kernel copies. `input` is the file that was walked.
    ///
    /// # Errors
    ///
    /// [`Read`](crate::ErrorKind::Read), [`Write`](crate::ErrorKind::Write), and
    /// [`InputChanged`](crate::ErrorKind::InputChanged) where `input` became shorter.
    pub fn write<R: Read + Seek, W: Write>(&self, mut input: R, mut out: W) -> Result<(), Error> {
        write(&self.splices, &mut input, &mut out)
    }
}

/// Returns the object in the window without the sections whose names start with `prefix`.
pub(super) fn plan(
    source: &mut Source<'_>,
    window: &Range<u64>,
    prefix: &[u8],
) -> Result<Output, Error> {
    let mut splices = output::copy_of(window);
    let head = source.peek(window, HEAD_LEN)?;
    if !head.starts_with(b"\x7fELF") {
        let object = source.read_range(window)?;
        return Ok(match without(&object, prefix)? {
            Cow::Borrowed(_) => splices,
            Cow::Owned(host) => output::of_bytes(host),
        });
    }
    let kind = Kind::of(&head)?;
    for _ in 0..MAX_UNDO {
        let before = splices.size();
        splices = output::edited(&splices, source, |source, window| match kind {
            Kind::Elf(class) => Ok(by_class!(class, H => elf::undo::<H>(source, window, prefix))?),
            Kind::Coff | Kind::Wasm => Ok(None),
        })?;
        if splices.size() == before {
            break;
        }
    }
    let without = |source: &mut Source<'_>, window: &Range<u64>| {
        let kind = Kind::of(&source.peek(window, HEAD_LEN)?)?;
        without_sections(kind, source, window, prefix)
    };
    output::edited(&splices, source, without)
}

/// Writes parts of a file, and nothing new.
fn write<W: Write + ?Sized>(
    output: &Output,
    file: &mut dyn ReadSeek,
    out: &mut W,
) -> Result<(), Error> {
    struct File<'a>(&'a mut dyn ReadSeek);

    impl Inputs<Input> for File<'_> {
        type Error = Error;

        fn copy<W: Write + ?Sized>(
            &mut self,
            _: &Input,
            range: Range<u64>,
            out: &mut W,
        ) -> Result<(), Error> {
            if copy_range(self.0, &range, out)? == range.end - range.start {
                Ok(())
            } else {
                Err(Error::input_changed())
            }
        }
    }

    output.write_to(&mut File(file), out)
}
