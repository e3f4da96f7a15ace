//! The images of a file.

use std::io::{self, Read, Seek, Write};

use fat_object::ImageInfo;
use serde::Serialize;

use crate::fault::Fault;
use crate::files::{DeviceFile, FileVisitor, each_file};
use crate::options::Options;

/// An image: one object of `offload ls --json`, with the member instead of the file.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ImageRow {
    /// The member of the package; empty for the file itself.
    pub member: String,
    /// The image.
    #[serde(flatten)]
    pub image: ImageInfo,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileRow {
    /// The member of the package; empty for the file itself.
    pub member: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its format.
    pub format: String,
    /// The number of its images.
    pub images: usize,
}

/// The images of a file or a package, in the order of the file.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Listing {
    /// `true` if it is a package.
    pub is_package: bool,
    /// The images.
    pub images: Vec<ImageRow>,
    /// The files that may hold device code.
    pub files: Vec<FileRow>,
    /// Everything that is wrong.
    pub findings: Vec<Fault>,
}

/// Writes the bytes of an image, decompressed if its bundle is compressed, as [`fat_object::copy_image`] does. `member` and
/// `index` are those of a [`list`](crate::list()) with the same options. Returns how many they are.
///
/// # Errors
///
/// [`NotFound`](io::ErrorKind::NotFound) if there is no such image; errors of reading, and of `out`.
pub fn copy_image<R: Read + Seek + Clone>(
    reader: R,
    options: &Options,
    (member, index): (&str, usize),
    out: &mut dyn Write,
) -> io::Result<u64> {
    let mut copier = Copier { member, index, out, copied: None, fault: None };
    each_file(reader, options, &mut copier)?;
    copier.copied.ok_or_else(|| match copier.fault {
        Some(fault) => io::Error::new(io::ErrorKind::InvalidData, fault.message),
        None => io::Error::new(io::ErrorKind::NotFound, format!("{member}: no such file")),
    })
}

struct Copier<'c> {
    member: &'c str,
    index: usize,
    out: &'c mut dyn Write,
    copied: Option<u64>,
    /// The last fault of the member.
    fault: Option<Fault>,
}

impl FileVisitor for Copier<'_> {
    fn wants(&mut self, member: &str) -> bool {
        // Two members may have one name: the first is meant.
        self.copied.is_none() && member == self.member
    }

    fn file(&mut self, file: &mut DeviceFile<'_>) -> io::Result<()> {
        if file.member() == self.member && self.copied.is_none() {
            let options = file.options().clone();
            let copied =
                fat_object::copy_image(file.reader(), &options, self.index, &mut self.out)?;
            self.copied = Some(copied);
        }
        Ok(())
    }

    fn fault(&mut self, fault: Fault) -> io::Result<()> {
        if fault.member == self.member {
            self.fault = Some(fault);
        }
        Ok(())
    }
}
