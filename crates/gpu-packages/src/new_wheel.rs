//! New wheels: members, and the `RECORD` of these.

use std::io::{Read, Seek, Write};
use std::num::NonZeroUsize;

use crate::error::{Error, ErrorKind};
use crate::path::Shown;
use crate::record::quoted;
use crate::zip::{NewZip, Storing, Zip};

/// A wheel in the making: a [`NewZip`] that ends with the `RECORD` of its members.
///
/// ```
/// use std::io::Cursor;
/// use std::num::NonZeroUsize;
/// use gpu_packages::{NewWheel, Storing, verify};
///
/// let mut wheel = NewWheel::new(Cursor::new(Vec::new()), "pkg-1.0.dist-info")?;
/// let threads = NonZeroUsize::MIN;
/// wheel.add("pkg/__init__.py", 0o644, &b"x = 1\n"[..], 6, Storing::Deflated(6), threads)?;
/// wheel.add_text("WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")?;
/// let bytes = wheel.finish()?.into_inner();
/// let verified = verify(Cursor::new(&bytes), &Default::default())?;
/// assert_eq!((verified.recorded, verified.findings.len()), (2, 0));
/// # Ok::<(), gpu_packages::Error>(())
/// ```
#[derive(Debug)]
pub struct NewWheel<W> {
    zip: NewZip<W>,
    /// The directory with the metadata.
    directory: String,
    record: String,
}

/// The permissions of the files with the metadata.
const MODE: u16 = 0o644;

/// The level of published wheels.
const LEVEL: u32 = 6;

impl<W: Write + Seek> NewWheel<W> {
    /// Starts a wheel where the output is; `directory` is `NAME-VERSION.dist-info`.
    ///
    /// # Errors
    ///
    /// Errors of the output.
    pub fn new(out: W, directory: &str) -> Result<Self, Error> {
        let (directory, record) = (directory.to_owned(), String::new());
        Ok(NewWheel { zip: NewZip::new(out)?, directory, record })
    }

    /// Adds a file, as [`NewZip::add`] does, and its row of `RECORD`.
    ///
    /// # Errors
    ///
    /// Errors of [`NewZip::add`].
    pub fn add(
        &mut self,
        name: &str,
        mode: u16,
        contents: impl Read,
        size: u64,
        storing: Storing,
        threads: NonZeroUsize,
    ) -> Result<(), Error> {
        let hash = self.zip.add(name, mode, contents, size, storing, threads)?;
        self.record += &format!("{},{hash},{size}\n", quoted(name));
        Ok(())
    }

    /// Adds a member of a zip file as it is stored there, as [`NewZip::copy`] does, and its row of `RECORD`; directories have none.
    ///
    /// # Errors
    ///
    /// Errors of [`NewZip::copy`]; [`Unsupported`](ErrorKind::Unsupported) for a name that is not UTF-8.
    pub fn copy<R: Read + Seek>(
        &mut self,
        zip: &Zip,
        index: usize,
        reader: R,
    ) -> Result<(), Error> {
        let hash = self.zip.copy(zip, index, reader)?;
        let Some(member) = zip.members().get(index).filter(|member| !member.is_directory()) else {
            return Ok(());
        };
        let name = std::str::from_utf8(member.name()).map_err(|_| {
            let text = "expected a name in UTF-8, as RECORD has it";
            Error::new(ErrorKind::Unsupported, text).while_reading(Shown(member.name()))
        })?;
        self.record += &format!("{},{hash},{}\n", quoted(name), member.size());
        Ok(())
    }

    /// Adds a text of the metadata: `METADATA`, `WHEEL`.
    ///
    /// # Errors
    ///
    /// Errors of the output.
    pub fn add_text(&mut self, name: &str, text: &str) -> Result<(), Error> {
        let name = format!("{}/{name}", self.directory);
        let (bytes, size) = (text.as_bytes(), text.len() as u64);
        self.add(&name, MODE, bytes, size, Storing::Deflated(LEVEL), NonZeroUsize::MIN)
    }

    /// Writes the `RECORD` and the central directory, and returns the output.
    ///
    /// # Errors
    ///
    /// Errors of the output.
    pub fn finish(mut self) -> Result<W, Error> {
        let name = format!("{}/RECORD", self.directory);
        let text = format!("{}{},,\n", self.record, quoted(&name));
        let (bytes, size) = (text.as_bytes(), text.len() as u64);
        self.zip.add(&name, MODE, bytes, size, Storing::Deflated(LEVEL), NonZeroUsize::MIN)?;
        self.zip.finish()
    }
}
