//! The files that a file holds: itself, or the members of a package.

use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;

use byte_parts::ReadSeek;
use fat_object::{FileFormat, Summary, Visitor};
use gpu_packages::{Error, Finding, Member, MemberPath, PackageForm, Zip, walk};

use crate::chunks::Chunks;
use crate::fault::Fault;
use crate::members::{HEAD, Reading, is_looked_into};
use crate::options::Options;
use crate::part::Part;

/// A consumer of files.
pub trait FileVisitor {
    /// Takes the start of a package, before its members.
    fn package(&mut self) {}

    /// Returns whether a member is looked into. Default: all are.
    fn wants(&mut self, member: &str) -> bool {
        let _ = member;
        true
    }

    /// Takes a file that may hold device code.
    ///
    /// # Errors
    ///
    /// An error ends the work, and is its result.
    fn file(&mut self, file: &mut DeviceFile<'_>) -> io::Result<()>;

    /// Takes something that keeps a file, or members of a package, from being read.
    ///
    /// # Errors
    ///
    /// An error ends the work, and is its result.
    fn fault(&mut self, fault: Fault) -> io::Result<()>;
}

/// A file, or a member of a package, that may hold device code.
pub struct DeviceFile<'a> {
    member: &'a str,
    size: u64,
    reader: &'a mut dyn ReadSeek,
    options: fat_object::Options,
    is_cut: bool,
    package_offset: Option<u64>,
    /// The member as it is stored, if it is one.
    of: Option<&'a Member>,
}

impl std::fmt::Debug for DeviceFile<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceFile")
            .field("member", &self.member)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl<'a> DeviceFile<'a> {
    /// Returns the path of the member; empty for the file itself.
    #[must_use]
    pub fn member(&self) -> &'a str {
        self.member
    }

    /// Returns the member of the package; `None` for the file itself.
    #[must_use]
    pub fn package_member(&self) -> Option<&'a Member> {
        self.of
    }

    /// Returns its size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the offset in the package, if it lies there as it is.
    #[must_use]
    pub fn package_offset(&self) -> Option<u64> {
        self.package_offset
    }

    /// Returns whether only the start of the member is there, by which a walk names it.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the options of a walk.
    #[must_use]
    pub fn options(&self) -> &fat_object::Options {
        &self.options
    }

    /// Returns a reader of the file.
    pub fn reader(&mut self) -> &mut dyn ReadSeek {
        self.reader
    }

    /// Walks the file.
    ///
    /// # Errors
    ///
    /// Errors of reading, and of the visitor.
    pub fn walk(
        &mut self,
        options: &fat_object::Options,
        visitor: &mut dyn Visitor,
    ) -> io::Result<Summary> {
        fat_object::walk(&mut self.reader, options, visitor)
    }
}

/// Hands a file to the visitor, or the members of the package that it is, in the order of the file.
///
/// A zip file after a program is a package whose first file, with an empty path, is the program.
///
/// # Errors
///
/// Errors of reading, and of the visitor.
pub fn each_file<R: Read + Seek + Clone>(
    mut reader: R,
    options: &Options,
    visitor: &mut dyn FileVisitor,
) -> io::Result<()> {
    let len = reader.seek(SeekFrom::End(0))?;
    reader.rewind()?;
    let mut head = Vec::new();
    reader.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
    let mut outer = Outer { reader, options, len, visitor };
    let form = PackageForm::read(outer.reader.clone(), &head, is_looked_into);
    match form {
        Ok(Some(_)) => outer.members(),
        Ok(None) if FileFormat::sniff(&head) == FileFormat::Tar => {
            let text = "tar archive whose first header has a wrong checksum";
            outer.visitor.fault(Fault::error("", "file/error", text))
        }
        Ok(None) => outer.file_or_zip_after(head.starts_with(b"#!")),
        Err(error) => outer.fault(error),
    }
}

struct Outer<'v, R> {
    reader: R,
    options: &'v Options,
    len: u64,
    visitor: &'v mut dyn FileVisitor,
}

impl<R: Read + Seek + Clone> Outer<'_, R> {
    /// Hands over an error of a package, or fails where the reader did.
    fn fault(&mut self, error: Error) -> io::Result<()> {
        if error.kind() == gpu_packages::ErrorKind::Io {
            return Err(error.into());
        }
        self.visitor.fault(Fault::of_package("", &error))
    }

    /// Hands over a file that is not a package from its start.
    fn file_or_zip_after(&mut self, is_script: bool) -> io::Result<()> {
        match Zip::behind(self.reader.clone()).map_err(io::Error::from) {
            Ok(Some(zip)) => {
                self.visitor.package();
                if !is_script {
                    self.file(0..zip.start())?;
                }
                self.members()
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::Unsupported) =>
            {
                if !is_script {
                    self.file(0..self.len)?;
                }
                let mut fault = Fault::of_io("", &error);
                fault.message = format!("zip file: {}", fault.message);
                self.visitor.fault(fault)
            }
            // The walk itself meets errors of reading.
            _ => self.file(0..self.len),
        }
    }

    /// Hands over a file that is not a package.
    fn file(&mut self, range: Range<u64>) -> io::Result<()> {
        let options = self.options.of_walk(self.options.held_of(self.len));
        let mut reader = Part::new(self.reader.clone(), range);
        let (size, reader) = (reader.len(), &mut reader);
        let (is_cut, package_offset, of) = (false, None, None);
        self.visitor.file(&mut DeviceFile {
            member: "",
            size,
            reader,
            options,
            is_cut,
            package_offset,
            of,
        })
    }

    /// Hands over the members of a package.
    fn members(&mut self) -> io::Result<()> {
        self.visitor.package();
        let limits = self.options.of_package(self.len);
        let reader = BufReader::with_capacity(1 << 16, self.reader.clone());
        let (held, ended) = (0, Ok(()));
        let mut members = Members { outer: self, held, ended };
        let walked = walk(reader, &limits, &mut members);
        members.ended?;
        walked.map(drop).or_else(|error| self.fault(error))
    }
}

/// The visitor of a package.
struct Members<'o, 'v, R> {
    outer: &'o mut Outer<'v, R>,
    /// The bytes of packages in packages.
    held: u64,
    /// The error that ends the walk.
    ended: io::Result<()>,
}

impl<R: Read + Seek + Clone> Members<'_, '_, R> {
    fn most(&self) -> u64 {
        let most = self.outer.options.held_of(self.outer.len);
        // Packages in packages hold less.
        most.saturating_sub(self.held)
    }

    /// Hands over a member. The inner result is the visitor's.
    fn take(
        &mut self,
        member: &Member,
        path: &str,
        contents: &mut dyn Read,
    ) -> Result<io::Result<()>, Error> {
        let mut head = Vec::new();
        contents.take(HEAD as u64).read_to_end(&mut head)?;
        let place = member.place().filter(|place| place.end <= self.outer.len);
        let reading = Reading::of(member, &head, place.is_some());
        let most = self.most();
        let (options, of) = (self.outer.options, Some(member));
        let visitor = &mut *self.outer.visitor;
        if let (Reading::Whole, Some(place)) = (reading, &place) {
            let mut reader = Part::new(self.outer.reader.clone(), place.clone());
            let (size, reader) = (reader.len(), &mut reader);
            let (options, is_cut, package_offset) =
                (options.of_walk(most), false, Some(place.start));
            let mut file =
                DeviceFile { member: path, size, reader, options, is_cut, package_offset, of };
            return Ok(visitor.file(&mut file));
        }
        let most_read = match reading {
            Reading::Whole => u64::MAX,
            Reading::Start => Reading::START,
            Reading::Nothing => return Ok(Ok(())),
        };
        let mut contents = head.chain(contents).take(most_read);
        let chunks = match Chunks::read(&mut contents, most) {
            Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                return Ok(visitor.fault(Fault::of_io(path, &error)));
            }
            chunks => chunks?,
        };
        let mut reader = chunks.reader();
        let (options, is_cut) = (options.of_walk(most - chunks.len()), reading == Reading::Start);
        let (size, reader, package_offset) = (chunks.len(), &mut reader, None);
        Ok(visitor.file(&mut DeviceFile {
            member: path,
            size,
            reader,
            options,
            is_cut,
            package_offset,
            of,
        }))
    }
}

impl<R: Read + Seek + Clone> gpu_packages::Visitor for Members<'_, '_, R> {
    fn compressed(&mut self, _: &MemberPath, head: &[u8]) -> bool {
        is_looked_into(head)
    }

    fn member(&mut self, member: &Member, contents: &mut dyn Read) -> Result<(), Error> {
        if self.ended.is_err() {
            return Err(Error::refused("no more members are wanted"));
        }
        let path = member.path().to_string_lossy();
        if !member.has_file_contents() || !self.outer.visitor.wants(&path) {
            return Ok(());
        }
        self.ended = self.take(member, &path, contents)?;
        if self.ended.is_err() { Err(Error::refused("no more members are wanted")) } else { Ok(()) }
    }

    fn finding(&mut self, finding: Finding) {
        if finding.error.kind() == gpu_packages::ErrorKind::Io && self.ended.is_ok() {
            self.ended = Err(finding.error.into());
        } else if finding.kind.hides_members() && self.ended.is_ok() {
            let fault = Fault::of_package(&finding.path.to_string_lossy(), &finding.error);
            self.ended = self.outer.visitor.fault(fault);
        }
    }

    fn hold(&mut self, bytes: u64) -> bool {
        let fits = bytes <= self.outer.options.held_of(self.outer.len);
        self.held = if fits { bytes } else { self.held };
        fits
    }
}
