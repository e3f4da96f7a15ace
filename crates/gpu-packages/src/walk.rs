//! The walk over all members of a package, and of packages in it.

use std::cmp::Ordering;
use std::fmt;
use std::io::{self, Read, Seek};
use std::ops::Range;

use byte_parts::{ReadSeek, Source};

use crate::ar;
use crate::codec::Codec;
use crate::cpio::CpioReader;
use crate::deb_parts::{DebParts, Role, codec_fault, format_fault};
use crate::error::{Error, ErrorKind, Finding, FindingKind};
use crate::hash::{Algorithm, Hash, Hasher};
use crate::limits::{Allowance, Options, Raw, read_full};
use crate::names::Names;
use crate::path::{MemberPath, Shown, unsafe_name, without_dot};
use crate::rpm;
use crate::tar::{self, TarKind, TarReader};
use crate::wheel;
use crate::zip::{SCRIPT, Zip, is_codec_error, is_program};

/// Kind of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PackageKind {
    /// A zip file with a directory `.dist-info`.
    Wheel,
    /// A conda package of version 2: a zip file of two compressed tar files.
    Conda,
    /// Another zip file.
    Zip,
    /// A tar file, compressed or not: a source distribution, a conda package of version 1, an image of containers or
    /// one of its layers.
    Tar,
    /// A Debian package.
    Deb,
    /// An RPM package.
    Rpm,
    /// A compressed file, but not a tar file: its contents are its only member, by the name `contents`.
    Compressed,
}

impl fmt::Display for PackageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PackageKind::Wheel => "wheel",
            PackageKind::Conda => "conda package",
            PackageKind::Zip => "zip file",
            PackageKind::Tar => "tar file",
            PackageKind::Deb => "Debian package",
            PackageKind::Rpm => "RPM package",
            PackageKind::Compressed => "compressed file",
        })
    }
}

/// A member of a package.
#[derive(Clone, Debug)]
pub struct Member {
    path: MemberPath,
    package: PackageKind,
    kind: MemberKind,
    size: u64,
    mode: Option<u32>,
    link: Vec<u8>,
    offset: u64,
    zip_index: Option<usize>,
    place: Option<Range<u64>>,
}

/// Kind of a [`Member`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemberKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A hard link.
    HardLink,
    /// A device, a FIFO, a sparse file that cannot be read.
    Other,
}

impl Member {
    /// Returns the path, with the packages that it lies in.
    #[must_use]
    pub fn path(&self) -> &MemberPath {
        &self.path
    }

    /// Returns the kind of the package that it lies in.
    #[must_use]
    pub fn package(&self) -> PackageKind {
        self.package
    }

    /// Returns the kind of the member.
    #[must_use]
    pub fn kind(&self) -> MemberKind {
        self.kind
    }

    /// Returns the size of the contents in bytes, as the package says; 0 in a compressed file, which does not say it.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the permissions, if the package has them.
    #[must_use]
    pub fn mode(&self) -> Option<u32> {
        self.mode
    }

    /// Returns the target of a link; empty for links in zip files, whose contents are the target.
    #[must_use]
    pub fn link(&self) -> &[u8] {
        &self.link
    }

    /// Returns the place of the member: of its local header in a zip file, of its first header in a tar or cpio file
    /// after decompression.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the member without its bytes after `size`.
    fn cut(&self, size: u64) -> Self {
        let place = self
            .place
            .as_ref()
            .map(|place| place.start..place.start + size.min(place.end - place.start));
        Member { size, place, ..self.clone() }
    }

    /// Returns whether the member has contents that may be extracted to a file: it is a regular file, or a symbolic link of
    /// a zip file, which some programs extract as one.
    #[must_use]
    pub fn has_file_contents(&self) -> bool {
        self.kind == MemberKind::File
            || self.kind == MemberKind::Symlink && self.zip_index.is_some()
    }

    /// Returns the place of the contents in the file that is walked, if they lie there as they are: in a tar or zip file,
    /// not compressed. A reader of that place does not check the CRC-32 of a zip file.
    #[must_use]
    pub fn place(&self) -> Option<Range<u64>> {
        self.place.clone()
    }

    /// Returns the index in a zip file.
    #[must_use]
    pub fn zip_index(&self) -> Option<usize> {
        self.zip_index
    }
}

/// The receiver of a walk.
pub trait Visitor {
    /// Returns whether to enter a package that was found. One that is not entered is a member like others. The outermost
    /// package, whose path is empty, is always entered.
    fn package(&mut self, path: &MemberPath, kind: PackageKind) -> bool {
        let _ = (path, kind);
        true
    }

    /// Returns whether to enter a compressed file, not a tar file, by the first 512 bytes of its contents. One that is not
    /// entered is a member like others; alone, it is not a package.
    fn compressed(&mut self, path: &MemberPath, head: &[u8]) -> bool {
        let _ = (path, head);
        false
    }

    /// Takes a member. Contents that are not read are skipped.
    ///
    /// # Errors
    ///
    /// An error of `contents` becomes a [`Finding`], and the walk goes on. Any other error ends the walk.
    fn member(&mut self, member: &Member, contents: &mut dyn Read) -> Result<(), Error>;

    /// Takes a finding.
    fn finding(&mut self, finding: Finding) {
        let _ = finding;
    }

    /// Returns whether the walk may hold this many bytes from now on, which are not in the file: zip files in other
    /// packages, and records. Zero at its end. `false` counts as an exceeded limit.
    fn hold(&mut self, bytes: u64) -> bool {
        let _ = bytes;
        true
    }
}

/// The receiver of a walk inside of this crate: a [`Visitor`], or one that checks what passes.
pub(crate) trait Sink {
    /// Returns whether to enter a package, as [`Visitor::package`]. [`leave`](Self::leave) follows an entered one.
    fn package(&mut self, path: &MemberPath, kind: PackageKind) -> bool;

    /// Returns whether to enter a compressed file, as [`Visitor::compressed`].
    fn compressed(&mut self, path: &MemberPath, head: &[u8]) -> bool;

    /// Takes the directory of a zip file that was entered, before its members.
    fn zip(&mut self, _: &Zip, _: &mut Source<'_>) {}

    /// Takes the end of a package that was entered.
    fn leave(&mut self, _: &Result<(), Error>) {}

    /// Returns the hash to make of a member that comes next, or of the package that it is.
    fn begin(&mut self, _: &Member) -> Option<Algorithm> {
        None
    }

    /// Takes a member, as [`Visitor::member`]. Not called for a package that is entered.
    fn member(&mut self, member: &Member, contents: &mut dyn Read) -> Result<(), Error>;

    /// Takes the size and the hash of contents that were read to their end.
    fn end(&mut self, _: &Member, _: u64, _: Hash) -> Result<(), Error> {
        Ok(())
    }

    /// Takes a finding.
    fn finding(&mut self, finding: Finding);

    /// Returns whether the walk may hold this many bytes, as [`Visitor::hold`].
    fn hold(&mut self, bytes: u64) -> bool;
}

/// A visitor that sees all there is, unchecked.
struct Unchecked<'v>(&'v mut dyn Visitor);

impl Sink for Unchecked<'_> {
    fn package(&mut self, path: &MemberPath, kind: PackageKind) -> bool {
        self.0.package(path, kind)
    }

    fn compressed(&mut self, path: &MemberPath, head: &[u8]) -> bool {
        self.0.compressed(path, head)
    }

    fn member(&mut self, member: &Member, contents: &mut dyn Read) -> Result<(), Error> {
        self.0.member(member, contents)
    }

    fn finding(&mut self, finding: Finding) {
        self.0.finding(finding);
    }

    fn hold(&mut self, bytes: u64) -> bool {
        self.0.hold(bytes)
    }
}

/// Recognises a package by its first 512 bytes. Compressed streams are `None`: [`Codec::sniff`] knows them, and their
/// contents decide.
///
/// ```
/// use gpu_packages::{PackageKind, sniff};
///
/// assert_eq!(sniff(b"PK\x03\x04"), Some(PackageKind::Zip));
/// assert_eq!(sniff(b"\x7fELF"), None);
/// ```
#[must_use]
pub fn sniff(head: &[u8]) -> Option<PackageKind> {
    match head {
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(PackageKind::Zip),
        _ if head.starts_with(ar::DEB) => Some(PackageKind::Deb),
        _ if head.starts_with(&rpm::MAGIC) => Some(PackageKind::Rpm),
        _ if tar::is_tar(head) => Some(PackageKind::Tar),
        _ => None,
    }
}

/// Walks over all members of a package, and of packages in it, in the order of the file. Returns the kind of the
/// package.
///
/// A zip file after a program or a script is a package as well; in another package, the program is a member, too.
///
/// Nothing is unpacked to disk. Only zip files in other packages, and programs and scripts of up to 64 MiB that may have one at their
/// end, are held in memory, as [`Options::with_max_held`] allows.
///
/// # Errors
///
/// [`NotAPackage`](ErrorKind::NotAPackage); [`Limit`](ErrorKind::Limit) if more would be decompressed than the options
/// allow; faults of the outermost package after which no further member can be found; errors of the reader and of the
/// visitor.
pub fn walk(
    reader: impl ReadSeek,
    options: &Options,
    visitor: &mut dyn Visitor,
) -> Result<PackageKind, Error> {
    walk_into(reader, options, &mut Unchecked(visitor))
}

/// Walks as [`walk`] does.
pub(crate) fn walk_into(
    reader: impl ReadSeek,
    options: &Options,
    sink: &mut dyn Sink,
) -> Result<PackageKind, Error> {
    let mut source = Source::new(reader)?;
    let walker = Walker::new(options, source.len());
    walker.walk_source(&mut source, sink)
}

/// A walk over a zip file whose members can be read by several threads, each with a reader and a visitor of its own:
/// together they keep to one limit.
#[derive(Debug)]
pub struct ZipWalker<'z> {
    walker: Walker,
    zip: &'z Zip,
    kind: PackageKind,
}

impl<'z> ZipWalker<'z> {
    /// Creates a walk over a zip file.
    #[must_use]
    pub fn new(options: &Options, zip: &'z Zip) -> Self {
        ZipWalker { walker: Walker::new(options, zip.file_len()), zip, kind: zip.kind() }
    }

    /// Returns the findings that need no reading of members or local headers: unsafe and duplicate names, encryption, and
    /// what programs read differently. [`Zip::check`] has more.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = self.zip.central_findings();
        if self.kind == PackageKind::Wheel {
            findings.extend(wheel::faults(self.zip));
        }
        findings
    }

    /// Hands a member to a visitor, or the members of the package that it is. Encrypted members are left out.
    ///
    /// # Errors
    ///
    /// As [`walk`].
    pub fn member(
        &self,
        index: usize,
        reader: impl Read + Seek,
        visitor: &mut dyn Visitor,
    ) -> Result<(), Error> {
        let place = PackagePlace::of_file();
        let sink = &mut Unchecked(visitor);
        self.walker.one_of_zip(self.zip, self.kind, index, reader, &place, sink)
    }
}

/// The bounds of a walk, which all its parts share.
#[derive(Debug)]
struct Walker {
    options: Options,
    allowance: Allowance,
    /// The most bytes that are held.
    max_held: u64,
}

/// Bytes that tell what a file is.
const HEAD: usize = 512;
/// Compressed bytes that are read to see if they hold a tar file: more than a block of bzip2.
const PROBE: u64 = 2 << 20;
/// The most bytes of a program or a script in a package that are searched for a zip file at its end.
const MAX_PROGRAM: u64 = 64 << 20;

impl Walker {
    /// Creates a walk over a file of this length.
    fn new(options: &Options, file_len: u64) -> Self {
        Walker {
            options: options.clone(),
            allowance: Allowance::of(options, file_len),
            max_held: options.held_of(file_len),
        }
    }

    fn walk_source(
        &self,
        source: &mut Source<'_>,
        sink: &mut dyn Sink,
    ) -> Result<PackageKind, Error> {
        let head = source.peek(&(0..source.len()), HEAD)?;
        let place = PackagePlace::of_file();
        let zip = match sniff(&head) {
            Some(PackageKind::Zip) => Some(Zip::read_source(source)?),
            _ => Zip::behind_source(source)?,
        };
        if let Some(zip) = zip {
            let kind = zip.kind();
            sink.package(&place.path, kind);
            let result = self.zip(&zip, kind, source, &place, sink);
            sink.leave(&result);
            return result.map(|()| kind);
        }
        source.reader().seek(io::SeekFrom::Start(0))?;
        let len = source.len();
        let mut reader = Raw::new(source.reader(), len);
        match (sniff(&head), Codec::sniff(&head)) {
            (Some(PackageKind::Tar), _) => {
                sink.package(&place.path, PackageKind::Tar);
                let tar = TarReader::with_skip(reader, Raw::skip);
                let result = self.tar(tar, PackageKind::Tar, &place, sink);
                sink.leave(&result);
                result.map(|()| PackageKind::Tar)
            }
            (Some(kind), _) => {
                sink.package(&place.path, kind);
                let result = self.stream(kind, &mut reader, &place, sink);
                sink.leave(&result);
                result.map(|()| kind)
            }
            (None, codec) if codec != Codec::None => {
                let mut contents = Vec::new();
                let decoded = self.allowance.count(codec.decoder(&mut reader)?);
                let read = decoded.take(HEAD as u64).read_to_end(&mut contents);
                // The walk itself meets what is wrong after the first bytes.
                let kind = match tar::is_tar(&contents) {
                    true => PackageKind::Tar,
                    false if sink.compressed(&place.path, &contents) => PackageKind::Compressed,
                    false => {
                        read.map_err(|error| codec_error(codec, error))?;
                        let text = format!("expected a tar file compressed with {codec}");
                        return Err(Error::new(ErrorKind::NotAPackage, text));
                    }
                };
                sink.package(&place.path, kind);
                let reader = reader.reader;
                reader.seek(io::SeekFrom::Start(0))?;
                let mut reader = Raw::new(reader, len);
                let decoder = Decoded { reader: codec.decoder(&mut reader)?, codec };
                let mut decoder = self.allowance.count(decoder);
                let place = PackagePlace { at: None, ..place };
                let result = self.stream(kind, &mut decoder, &place, sink);
                sink.leave(&result);
                result.map(|()| kind)
            }
            _ => {
                let text = "expected a zip, tar, deb or rpm file, or a compressed tar file";
                Err(Error::new(ErrorKind::NotAPackage, text))
            }
        }
    }

    /// Walks over a package that is a stream.
    fn stream(
        &self,
        kind: PackageKind,
        reader: &mut dyn Read,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        match kind {
            PackageKind::Deb => self.deb(reader, place, sink),
            PackageKind::Rpm => self.rpm(reader, place, sink),
            PackageKind::Compressed => self.compressed(reader, place, sink),
            _ => self.tar(TarReader::new(reader), kind, place, sink),
        }
    }

    fn zip(
        &self,
        zip: &Zip,
        kind: PackageKind,
        source: &mut Source<'_>,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        sink.zip(zip, source);
        let mut findings = zip.check_source(source)?;
        if kind == PackageKind::Wheel {
            findings.extend(wheel::faults(zip));
        }
        for mut finding in findings {
            finding.path =
                finding.path.names().fold(place.path.clone(), |path, name| path.join(name));
            sink.finding(finding);
        }
        let mut order: Vec<usize> = (0..zip.members().len()).collect();
        order.sort_by_key(|&index| zip.members().get(index).map_or(0, |member| member.offset()));
        for index in order {
            self.one_of_zip(zip, kind, index, source.reader(), place, sink)?;
        }
        Ok(())
    }

    fn one_of_zip(
        &self,
        zip: &Zip,
        kind: PackageKind,
        index: usize,
        reader: impl Read + Seek,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let Some(described) = zip.members().get(index) else { return Ok(()) };
        let mut member = Member {
            path: place.path.join(described.name()),
            package: kind,
            kind: match () {
                () if described.is_directory() => MemberKind::Directory,
                () if described.is_symlink()
                    && described.may_be_target()
                    && kind != PackageKind::Wheel =>
                {
                    MemberKind::Symlink
                }
                () => MemberKind::File,
            },
            size: described.size(),
            mode: described.unix_mode(),
            link: Vec::new(),
            offset: described.offset(),
            zip_index: Some(index),
            place: None,
        };
        let opened = match zip.open(index, reader) {
            Ok(opened) => opened,
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(error) => {
                if !described.is_encrypted() {
                    let path = member.path.clone();
                    let error = error.without_name(Shown(path.name()));
                    sink.finding(Finding { path, kind: FindingKind::Unread, error });
                }
                return Ok(());
            }
        };
        member.place = opened.place().and_then(|range| place.within(range));
        let mut contents = self.allowance.count(opened);
        let is_layer = kind == PackageKind::Conda && is_conda_layer(described.name());
        if is_layer {
            let inner = place.clone();
            let result = self.compressed_tar(&mut contents, kind, &inner, sink);
            return finish(result, &member.path, sink);
        }
        self.file(&member, &mut contents, place, sink)
    }

    fn tar<R: Read>(
        &self,
        mut tar: TarReader<R>,
        package: PackageKind,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let mut names = CheckedNames::default();
        while let Some(found) = tar.next_member()? {
            let name = match without_dot(found.name()) {
                b"" => b".",
                name => name,
            };
            let mut member = Member {
                path: place.path.join(name),
                package,
                kind: match found.kind() {
                    TarKind::File => MemberKind::File,
                    TarKind::Directory => MemberKind::Directory,
                    TarKind::Symlink => MemberKind::Symlink,
                    TarKind::HardLink => MemberKind::HardLink,
                    TarKind::Other => MemberKind::Other,
                },
                size: found.size(),
                mode: Some(found.mode()),
                link: found.link().to_vec(),
                offset: found.offset(),
                zip_index: None,
                place: None,
            };
            names.check(&member, place, sink);
            for fault in &found.faults {
                let (path, kind) = (member.path.clone(), fault.kind);
                sink.finding(Finding { path, kind, error: fault.error() });
            }
            if !found.is_sparse {
                let contents = tar.position();
                member.place = place.within(contents..contents.saturating_add(member.size));
                self.file(&member, &mut tar, place, sink)?;
                continue;
            }
            // Zeros that are not in the file.
            if found.size() > self.allowance.left() {
                let size = found.size();
                let text = format!("a sparse file of {size} bytes would exceed the limit");
                let (path, error) = (member.path.clone(), Error::new(ErrorKind::Limit, text));
                sink.finding(Finding { path, kind: FindingKind::Unread, error });
                member.kind = MemberKind::Other;
            }
            self.file(&member, &mut self.allowance.count(&mut tar), place, sink)?;
        }
        Ok(())
    }

    /// Walks over a tar file that is a layer of another package.
    fn compressed_tar(
        &self,
        reader: &mut dyn Read,
        package: PackageKind,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let mut head = [0; 16];
        let read = read_full(reader, &mut head)?;
        let head = head.get(..read).unwrap_or_default();
        let codec = Codec::sniff(head);
        let decoder = Decoded { reader: codec.decoder(head.chain(reader))?, codec };
        let place = &PackagePlace { at: None, ..place.clone() };
        if codec == Codec::None {
            return self.tar(TarReader::new(decoder), package, place, sink);
        }
        let mut decoder = self.allowance.count(decoder);
        self.tar(TarReader::new(&mut decoder as &mut dyn Read), package, place, sink)
    }

    fn deb(
        &self,
        reader: &mut dyn Read,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let mut magic = [0; ar::MAGIC.len()];
        read_full(reader, &mut magic)?;
        let mut at = magic.len() as u64;
        let mut parts = DebParts::default();
        while let Some(header) = ar::next_header(reader, at)? {
            let mut contents = Bounded { reader, left: header.size };
            let data_at = at + ar::HEADER as u64;
            let member = Member {
                path: place.path.join(&header.name),
                package: PackageKind::Deb,
                kind: MemberKind::File,
                size: header.size,
                mode: None,
                link: Vec::new(),
                offset: at,
                zip_index: None,
                place: None,
            };
            let (role, fault) = parts.next(&header.name);
            let mut head = [0; HEAD];
            let read = read_full(&mut contents, &mut head)?;
            let head = head.get(..read).unwrap_or_default();
            let other = match role {
                Role::Control(codec) | Role::Data(codec) => codec_fault(codec, Codec::sniff(head)),
                Role::Other if header.name == b"debian-binary" => format_fault(head),
                Role::Other => None,
            };
            for text in fault.into_iter().chain(other) {
                let error = Error::at(ErrorKind::Malformed, at, format!("deb: {text}"));
                let (path, kind) = (member.path.clone(), FindingKind::Ambiguous);
                sink.finding(Finding { path, kind, error });
            }
            let mut whole = head.chain(&mut contents);
            match role {
                Role::Data(_) => {
                    let result = self.compressed_tar(&mut whole, PackageKind::Deb, place, sink);
                    finish(result, &member.path, sink)?;
                }
                Role::Control(_) => {
                    let inner = PackagePlace { path: place.path.join(b"control.tar"), ..*place };
                    let result = self.compressed_tar(&mut whole, PackageKind::Deb, &inner, sink);
                    finish(result, &member.path, sink)?;
                }
                Role::Other => {
                    check_name(&member, &header.name, sink);
                    self.file(&member, &mut whole, place, sink)?;
                }
            }
            io::copy(&mut contents, &mut io::sink())?;
            at = data_at + header.size;
            // Members start at even places.
            let padding = at % 2;
            io::copy(&mut reader.take(padding), &mut io::sink())?;
            at += padding;
        }
        if !parts.is_whole() {
            let text = "deb: expected control.tar and data.tar";
            let error = Error::at(ErrorKind::Malformed, at, text);
            let (path, kind) = (place.path.clone(), FindingKind::Unread);
            sink.finding(Finding { path, kind, error });
        }
        Ok(())
    }

    fn rpm(
        &self,
        reader: &mut dyn Read,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let sizes = rpm::read_headers(reader)?;
        let mut head = [0; 16];
        let read = read_full(reader, &mut head)?;
        let head = head.get(..read).unwrap_or_default();
        let codec = Codec::sniff(head);
        let decoder = Decoded { reader: codec.decoder(head.chain(reader))?, codec };
        let mut cpio = CpioReader::new(self.allowance.count(decoder), sizes);
        let mut names = CheckedNames::default();
        while let Some(found) = cpio.next_member()? {
            // Names in RPM packages may be absolute.
            let name = without_dot(&found.name);
            let name = name.strip_prefix(b"/").unwrap_or(name);
            let member = Member {
                path: place.path.join(name),
                package: PackageKind::Rpm,
                kind: match found.mode & 0o170_000 {
                    0o100_000 => MemberKind::File,
                    0o040_000 => MemberKind::Directory,
                    0o120_000 => MemberKind::Symlink,
                    _ => MemberKind::Other,
                },
                size: found.size,
                mode: Some(found.mode),
                link: Vec::new(),
                offset: found.offset,
                zip_index: None,
                place: None,
            };
            names.check(&member, place, sink);
            self.file(&member, &mut cpio, place, sink)?;
        }
        Ok(())
    }

    /// Hands over the contents of a compressed file.
    fn compressed(
        &self,
        reader: &mut dyn Read,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let member = Member {
            path: place.path.join(b"contents"),
            package: PackageKind::Compressed,
            kind: MemberKind::File,
            size: 0,
            mode: None,
            link: Vec::new(),
            offset: 0,
            zip_index: None,
            place: None,
        };
        self.file(&member, reader, place, sink)
    }

    /// Hands a member to the sink, or the members of the package that it is, and its hash if the sink asks for it.
    fn file(
        &self,
        member: &Member,
        contents: &mut dyn Read,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let Some(algorithm) = sink.begin(member) else {
            return self.enter(member, contents, place, sink);
        };
        let mut hashed = Watched { reader: Hashing::new(contents, algorithm), has_failed: false };
        self.enter(member, &mut hashed, place, sink)?;
        if hashed.has_failed {
            return Ok(());
        }
        match io::copy(&mut hashed, &mut io::sink()) {
            Ok(_) => {
                let (size, hash) = hashed.reader.finish();
                sink.end(member, size, hash)
            }
            Err(error) => finish(Err(error.into()), &member.path, sink),
        }
    }

    /// Hands a member to the sink, or the members of the package that it is.
    fn enter(
        &self,
        member: &Member,
        contents: &mut dyn Read,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        if !member.has_file_contents() {
            return deliver(member, &[], contents, sink);
        }
        let mut head = [0; HEAD];
        let head = match read_full(contents, &mut head) {
            Ok(read) => head.get(..read).unwrap_or_default(),
            Err(error) => return finish(Err(error.into()), &member.path, sink),
        };
        let codec = Codec::sniff(head);
        let kind = sniff(head);
        if kind.is_none() && codec == Codec::None {
            return if is_program(head) && place.depth < self.options.max_depth {
                self.held_program(member, head, contents, place, sink)
            } else {
                deliver(member, head, contents, sink)
            };
        }
        if place.depth >= self.options.max_depth {
            let limit = self.options.max_depth;
            let text = format!("a package in {limit} packages exceeds the limit of {limit}");
            let (path, error) = (member.path.clone(), Error::new(ErrorKind::Limit, text));
            sink.finding(Finding { path, kind: FindingKind::Unread, error });
            return deliver(member, head, contents, sink);
        }
        let at = member.place.as_ref().map(|place| place.start);
        let inner = PackagePlace {
            path: member.path.clone(),
            depth: place.depth + 1,
            held: place.held,
            at,
        };
        match kind {
            Some(PackageKind::Zip) => self.held_zip(member, head, contents, &inner, sink),
            Some(kind) => {
                if !sink.package(&member.path, kind) {
                    return deliver(member, head, contents, sink);
                }
                let result = self.stream(kind, &mut head.chain(contents), &inner, sink);
                sink.leave(&result);
                finish(result, &member.path, sink)
            }
            None => {
                let inner = PackagePlace { at: None, ..inner };
                self.maybe_compressed(codec, member, head, contents, &inner, sink)
            }
        }
    }

    /// Reads a member into memory; only some of it if it has more than `most` bytes, or more than may be held.
    /// Returns its bytes, and whether that is all. The caller gives back what is held.
    fn hold(
        &self,
        (member, most): (&Member, u64),
        head: &[u8],
        contents: &mut dyn Read,
        before: u64,
        sink: &mut dyn Sink,
    ) -> (Vec<u8>, io::Result<bool>) {
        let mut bytes = head.to_vec();
        loop {
            // A compressed file does not say the size of its contents.
            let is_sized = member.package != PackageKind::Compressed;
            let len = bytes.len() as u64;
            let all = if is_sized { member.size.max(len) } else { 2 * len };
            let room = all - len;
            let held = before.saturating_add(all);
            if all > most
                || held > self.max_held
                || !sink.hold(held)
                || bytes.try_reserve_exact(usize::try_from(room).unwrap_or(usize::MAX)).is_err()
            {
                return (bytes, Ok(false));
            }
            match Read::take(&mut *contents, room).read_to_end(&mut bytes) {
                Ok(read) if is_sized || (read as u64) < room => return (bytes, Ok(true)),
                Ok(_) => {}
                Err(error) => return (bytes, Err(error)),
            }
        }
    }

    /// Walks over a zip file that lies in another package. It is held in memory.
    fn held_zip(
        &self,
        member: &Member,
        head: &[u8],
        contents: &mut dyn Read,
        inner: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let (bytes, is_all) = self.hold((member, u64::MAX), head, contents, inner.held, sink);
        let held = inner.held + bytes.len() as u64;
        let result = match is_all {
            Ok(true) => self.zip_of_bytes(
                member,
                &bytes,
                &PackagePlace { held, at: None, ..inner.clone() },
                sink,
            ),
            Ok(false) => {
                sink.hold(inner.held);
                let size = match member.size {
                    0 => String::new(),
                    size => format!(" of {size} bytes"),
                };
                let text = format!(
                    "a zip file{size} in another package exceeds the limit of {} bytes held",
                    self.max_held
                );
                let (path, error) = (member.path.clone(), Error::new(ErrorKind::Limit, text));
                sink.finding(Finding { path, kind: FindingKind::Unread, error });
                deliver(member, &bytes, contents, sink)
            }
            Err(error) => finish(Err(error.into()), &member.path, sink),
        };
        drop(bytes);
        sink.hold(inner.held);
        result
    }

    /// Walks over the zip file after a program or a script that lies in another package; both are held in memory. The program is
    /// a member like others.
    fn held_program(
        &self,
        member: &Member,
        head: &[u8],
        contents: &mut dyn Read,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let (bytes, is_all) = self.hold((member, MAX_PROGRAM), head, contents, place.held, sink);
        let held = place.held + bytes.len() as u64;
        match is_all {
            Ok(true) => {}
            Ok(false) => {
                sink.hold(place.held);
                return deliver(member, &bytes, contents, sink);
            }
            Err(error) => {
                sink.hold(place.held);
                let mut failed = Failed(Some(error));
                deliver(member, &bytes, &mut failed, sink)?;
                let unseen = failed.0.map_or(Ok(()), |error| Err(error.into()));
                return finish(unseen, &member.path, sink);
            }
        }
        let mut source = Source::of_bytes(&bytes);
        match Zip::behind_source(&mut source) {
            Ok(Some(zip)) if sink.package(&member.path, zip.kind()) => {
                let inner = PackagePlace {
                    path: member.path.clone(),
                    depth: place.depth + 1,
                    held,
                    at: None,
                };
                let start = usize::try_from(zip.start()).unwrap_or(usize::MAX);
                let program = bytes.get(..start).unwrap_or_default();
                let delivered = if program.starts_with(SCRIPT) {
                    Ok(())
                } else {
                    deliver(&member.cut(zip.start()), program, &mut io::empty(), sink)
                };
                let result =
                    delivered.and_then(|()| self.zip(&zip, zip.kind(), &mut source, &inner, sink));
                sink.leave(&result);
                sink.hold(place.held);
                return finish(result, &member.path, sink);
            }
            Ok(_) => {}
            Err(error) => finish(Err(error.while_reading("zip file")), &member.path, sink)?,
        }
        // The walk does not hold bytes that it hands over.
        sink.hold(place.held);
        deliver(member, &bytes, contents, sink)
    }

    fn zip_of_bytes(
        &self,
        member: &Member,
        bytes: &[u8],
        inner: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let mut source = Source::of_bytes(bytes);
        // A file may start like a zip file and be none.
        let Ok(zip) = Zip::read_source(&mut source) else {
            return deliver(member, bytes, &mut io::empty(), sink);
        };
        let kind = zip.kind();
        if !sink.package(&member.path, kind) {
            return deliver(member, bytes, &mut io::empty(), sink);
        }
        let result = self.zip(&zip, kind, &mut source, inner, sink);
        sink.leave(&result);
        finish(result, &member.path, sink)
    }

    /// Walks over a compressed tar file, or a compressed file that the sink wants to enter. Others are members like others.
    fn maybe_compressed(
        &self,
        codec: Codec,
        member: &Member,
        head: &[u8],
        contents: &mut dyn Read,
        inner: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let mut probed = head.to_vec();
        let mut start = Vec::new();
        let tee = Tee { reader: contents, log: &mut probed, left: PROBE };
        // The walk itself meets what is wrong after the first bytes.
        if let Ok(decoder) = codec.decoder(head.chain(tee)) {
            let _ = self.allowance.count(decoder).take(HEAD as u64).read_to_end(&mut start);
        }
        let kind = match () {
            () if tar::is_tar(&start) => Some(PackageKind::Tar),
            () if sink.compressed(&member.path, &start) => Some(PackageKind::Compressed),
            () => None,
        };
        let Some(kind) = kind.filter(|&kind| sink.package(&member.path, kind)) else {
            return deliver(member, &probed, contents, sink);
        };
        let decoder = codec.decoder(probed.chain(contents));
        let result = decoder.and_then(|reader| {
            let mut decoder = self.allowance.count(Decoded { reader, codec });
            self.stream(kind, &mut decoder as &mut dyn Read, inner, sink)
        });
        sink.leave(&result);
        finish(result, &member.path, sink)
    }
}

/// Place of a package.
#[derive(Clone)]
struct PackagePlace {
    path: MemberPath,
    /// Number of packages that it is in, itself included.
    depth: usize,
    /// Bytes that are held of it and of the packages around.
    held: u64,
    /// Its offset in the file, if it lies there as it is.
    at: Option<u64>,
}

impl PackagePlace {
    fn of_file() -> Self {
        PackagePlace { path: MemberPath::default(), depth: 1, held: 0, at: Some(0) }
    }

    /// Returns the place in the file of a range of the package.
    fn within(&self, range: Range<u64>) -> Option<Range<u64>> {
        let at = self.at?;
        Some(at.checked_add(range.start)?..at.checked_add(range.end)?)
    }
}

impl Zip {
    /// Returns the kind of the package, by the names of its members.
    #[must_use]
    pub fn kind(&self) -> PackageKind {
        if wheel::is_wheel(self) {
            return PackageKind::Wheel;
        }
        let mut names = self.members().iter().map(|member| member.name());
        if names.any(is_conda_layer) && self.find(b"metadata.json").is_some() {
            PackageKind::Conda
        } else {
            PackageKind::Zip
        }
    }
}

fn is_conda_layer(name: &[u8]) -> bool {
    (name.starts_with(b"pkg-") || name.starts_with(b"info-"))
        && name.ends_with(b".tar.zst")
        && !name.contains(&b'/')
}

fn check_name(member: &Member, name: &[u8], sink: &mut dyn Sink) {
    if let Some(why) = unsafe_name(name) {
        let error = Error::at(ErrorKind::Malformed, member.offset, format!("the name {why}"));
        let path = member.path.clone();
        sink.finding(Finding { path, kind: FindingKind::UnsafeName, error });
    }
}

/// The most findings of repeated names in a package.
const MAX_REPEATED: usize = 1000;

/// The names in a stream, which are checked.
#[derive(Default)]
struct CheckedNames {
    names: Names,
    repeated: usize,
}

impl CheckedNames {
    fn check(&mut self, member: &Member, place: &PackagePlace, sink: &mut dyn Sink) {
        check_name(member, member.path.name(), sink);
        if !self.names.repeats(member.path.name(), member.kind == MemberKind::Directory) {
            return;
        }
        self.repeated += 1;
        let (path, text) = match self.repeated.cmp(&MAX_REPEATED) {
            Ordering::Less => (&member.path, "several members have its name"),
            Ordering::Equal => (&place.path, "more names that several members have"),
            Ordering::Greater => return,
        };
        let error = Error::at(ErrorKind::Malformed, member.offset, text);
        let (path, kind) = (path.clone(), FindingKind::Duplicate);
        sink.finding(Finding { path, kind, error });
    }
}

/// Hands a member to the sink, after bytes that were read already.
fn deliver(
    member: &Member,
    head: &[u8],
    contents: &mut dyn Read,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let mut watched = Watched { reader: head.chain(contents), has_failed: false };
    let result = sink.member(member, &mut watched);
    if watched.has_failed { finish(result, &member.path, sink) } else { result }
}

/// Makes a finding of a fault of a package or its contents. Only limits and failing readers end the walk.
fn finish(result: Result<(), Error>, path: &MemberPath, sink: &mut dyn Sink) -> Result<(), Error> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::Limit | ErrorKind::Io) => Err(error),
        Err(error) if error.kind() == ErrorKind::Refused => Err(error),
        Err(error) => {
            let kind = match error.kind() {
                ErrorKind::Unsupported => FindingKind::Unread,
                _ => FindingKind::Damaged,
            };
            let error = error.without_name(Shown(path.name()));
            sink.finding(Finding { path: path.clone(), kind, error });
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// A reader that hashes what passes.
struct Hashing<R> {
    reader: R,
    hasher: Hasher,
    size: u64,
}

impl<R> Hashing<R> {
    fn new(reader: R, algorithm: Algorithm) -> Self {
        Hashing { reader, hasher: Hasher::new(algorithm), size: 0 }
    }

    fn finish(self) -> (u64, Hash) {
        (self.size, self.hasher.finish())
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buf)?;
        self.hasher.update(buf.get(..read).unwrap_or_default());
        self.size += read as u64;
        Ok(read)
    }
}

/// The end of a reader that failed.
struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// A reader that knows if it has failed.
struct Watched<R> {
    reader: R,
    has_failed: bool,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buf);
        self.has_failed |=
            read.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted);
        read
    }
}

/// A reader that keeps what it reads.
struct Tee<'a> {
    reader: &'a mut dyn Read,
    log: &'a mut Vec<u8>,
    left: u64,
}

impl Read for Tee<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = Read::take(&mut *self.reader, self.left).read(buf)?;
        self.left -= read as u64;
        self.log.extend_from_slice(buf.get(..read).unwrap_or_default());
        Ok(read)
    }
}

/// A member of an archive: it must have all its bytes.
struct Bounded<'a, R: ?Sized> {
    reader: &'a mut R,
    left: u64,
}

impl<R: Read + ?Sized> Read for Bounded<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        if room == 0 {
            return Ok(0);
        }
        let read = self.reader.read(buf.get_mut(..room).unwrap_or_default())?;
        self.left -= read as u64;
        if read == 0 {
            let text = format!("deb: a member ends {} bytes too early", self.left);
            return Err(Error::new(ErrorKind::Truncated, text).into());
        }
        Ok(read)
    }
}

/// A decoder whose errors are ours.
pub(crate) struct Decoded<R> {
    pub(crate) reader: R,
    pub(crate) codec: Codec,
}

impl<R: Read> Read for Decoded<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buf).map_err(|error| {
            if is_codec_error(&error) { codec_error(self.codec, error).into() } else { error }
        })
    }
}

fn codec_error(codec: Codec, error: io::Error) -> Error {
    if is_codec_error(&error) {
        Error::new(ErrorKind::Codec, format!("malformed {codec} data: {error}"))
    } else {
        error.into()
    }
}

/// Returns the bytes of the first member with a path, up to a limit, for small records.
pub(crate) fn read_held(contents: &mut dyn Read, limit: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    contents.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let text = format!("a record exceeds the limit of {limit} bytes");
        return Err(Error::new(ErrorKind::Limit, text));
    }
    Ok(bytes)
}
