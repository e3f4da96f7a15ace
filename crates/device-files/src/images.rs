//! The images of a file.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, Write};

use fat_object::{Finding, Image, ImageInfo, Severity, Visitor};
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
/// It reads the package up to the image, but in a zip file no other members. For several images, and for one whose member has the name
/// of another, use [`copy_images`].
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
    let walked = each_file(reader, options, &mut copier);
    if let Some(copied) = copier.copied {
        return Ok(copied);
    }
    walked?;
    Err(match copier.fault {
        Some(fault) => io::Error::new(io::ErrorKind::InvalidData, fault.message),
        None => io::Error::new(io::ErrorKind::NotFound, format!("{member}: no such file")),
    })
}

/// Returns the error that ends a walk when nothing more is wanted of it.
fn done() -> io::Error {
    io::Error::other("no more is wanted")
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
        member == self.member
    }

    fn file(&mut self, file: &mut DeviceFile<'_>) -> io::Result<()> {
        if file.member() != self.member {
            return Ok(());
        }
        let options = file.options().clone();
        let copied = fat_object::copy_image(file.reader(), &options, self.index, &mut self.out)?;
        self.copied = Some(copied);
        // Two members may have one name: the first is meant.
        Err(done())
    }

    fn fault(&mut self, fault: Fault) -> io::Result<()> {
        if fault.member == self.member {
            self.fault = Some(fault);
        }
        Ok(())
    }
}

/// A consumer of the bytes of images.
pub trait ImageVisitor {
    /// Returns whether the bytes of an image are wanted. `row` is its position among the images of a [`list`](crate::list()) with the
    /// same options.
    fn wants(&mut self, row: usize, image: &ImageRow) -> bool;

    /// Takes the next bytes of an image that was wanted.
    ///
    /// # Errors
    ///
    /// An error ends the work, and is its result.
    fn bytes(&mut self, row: usize, bytes: &[u8]) -> io::Result<()>;
}

/// Hands over the bytes of images, decompressed if their bundles are compressed, in the order of a [`list`](crate::list()). All are read in one pass: the
/// visitor is asked about the images of a file before it gets the bytes of the first of them.
///
/// # Errors
///
/// Errors of reading, and of the visitor; [`InvalidData`](io::ErrorKind::InvalidData) for the first image that is damaged. Images
/// before it were handed over.
pub fn copy_images<R: Read + Seek + Clone>(
    reader: R,
    options: &Options,
    visitor: &mut dyn ImageVisitor,
) -> io::Result<()> {
    each_file(reader, options, &mut EachImage { visitor, rows: 0 })
}

struct EachImage<'v> {
    visitor: &'v mut dyn ImageVisitor,
    /// The number of rows so far.
    rows: usize,
}

impl FileVisitor for EachImage<'_> {
    fn file(&mut self, file: &mut DeviceFile<'_>) -> io::Result<()> {
        let options = file.options().clone();
        let (member, first, visitor) = (file.member(), self.rows, &mut *self.visitor);
        let mut asking = Asking { member, first, visitor, count: 0, wanted: BTreeMap::new() };
        file.walk(&options.clone().with_tables_only(true), &mut asking)?;
        let Asking { count, wanted, .. } = asking;
        self.rows += count;
        if wanted.is_empty() {
            return Ok(());
        }
        let mut copying = Copying { first, visitor: &mut *self.visitor, wanted, fault: None };
        let walked = fat_object::walk(file.reader(), &options, &mut copying);
        let Copying { wanted, fault, .. } = copying;
        match wanted.into_keys().next() {
            // The error of the walk is its end.
            None => Ok(()),
            Some(index) => {
                walked?;
                let reason =
                    fault.unwrap_or_else(|| "its bytes are not those of its table".to_owned());
                let name = if member.is_empty() { String::new() } else { format!("{member}: ") };
                let text = format!("{name}image {index}: {reason}");
                Err(io::Error::new(io::ErrorKind::InvalidData, text))
            }
        }
    }

    fn fault(&mut self, _: Fault) -> io::Result<()> {
        // A listing names it.
        Ok(())
    }
}

/// Asks about the images of a file.
struct Asking<'v> {
    member: &'v str,
    first: usize,
    visitor: &'v mut dyn ImageVisitor,
    count: usize,
    /// The wanted ones, by their index.
    wanted: BTreeMap<usize, ImageInfo>,
}

impl Visitor for Asking<'_> {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let row = ImageRow { member: self.member.to_owned(), image: image.info().clone() };
        if self.visitor.wants(self.first + self.count, &row) {
            self.wanted.insert(self.count, row.image);
        }
        self.count += 1;
        Ok(())
    }

    fn finding(&mut self, _: &Finding) -> io::Result<()> {
        Ok(())
    }
}

/// Hands over the bytes of images of a file.
struct Copying<'v> {
    first: usize,
    visitor: &'v mut dyn ImageVisitor,
    wanted: BTreeMap<usize, ImageInfo>,
    /// The words of the last error.
    fault: Option<String>,
}

impl Visitor for Copying<'_> {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let of = |info: &ImageInfo| (info.size(), info.offset_in_container());
        let index = image.index();
        // The table of a damaged bundle may name others.
        let is_same =
            |wanted: &ImageInfo| of(wanted) == of(image) && wanted.target() == image.target();
        if self.wanted.get(&index).is_some_and(is_same) {
            let row = self.first + index;
            let mut reader = image.reader();
            let mut piece = vec![0; PIECE];
            loop {
                let count = reader.read(&mut piece)?;
                match piece.get(..count) {
                    None | Some([]) => break,
                    Some(bytes) => self.visitor.bytes(row, bytes)?,
                }
            }
            self.wanted.remove(&index);
        }
        if self.wanted.is_empty() { Err(done()) } else { Ok(()) }
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        if finding.severity() == Severity::Error {
            self.fault = Some(finding.to_string());
        }
        Ok(())
    }
}

/// Bytes that are handed over at once.
const PIECE: usize = 1 << 16;
