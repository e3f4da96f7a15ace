//! The walk over all members of a package, and of packages in it.

mod compressed;
mod deb;
mod delivery;
mod held;
mod rpm;
mod tar;
mod zip;

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Mutex;

use byte_parts::{ReadSeek, Source};

use crate::codec::{Codec, Decoded, codec_error};
use crate::error::{Error, ErrorKind, FindingKind};
use crate::hash::HashedReader;
use crate::limits::{Allowance, Options};
use crate::member::Member;
use crate::package::{PackageKind, sniff};
use crate::path::MemberPath;
use crate::reading::{Raw, read_full};
use crate::tar::TarReader;
use crate::visitor::{Sink, Unchecked, Visitor};
use crate::zip::{MOST_LIKELY, Zip, is_program};
use compressed::kind_of_contents;
use delivery::{Watched, deliver, finish};
pub use zip::ZipWalker;

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

/// Bytes that tell what a file is.
const HEAD: usize = 512;

/// The bounds of a walk, which all its parts share.
#[derive(Debug)]
struct Walker {
    options: Options,
    allowance: Allowance,
    /// The most bytes that are held.
    max_held: u64,
    /// The memory of a member that was held, for the next.
    spare: Mutex<Vec<u8>>,
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

impl Walker {
    /// Creates a walk over a file of this length.
    fn new(options: &Options, file_len: u64) -> Self {
        Walker {
            options: options.clone(),
            allowance: Allowance::of(options, file_len),
            max_held: options.held_of(file_len),
            spare: Mutex::default(),
        }
    }

    fn walk_source(
        &self,
        source: &mut Source<'_>,
        sink: &mut dyn Sink,
    ) -> Result<PackageKind, Error> {
        let head = source.peek(&(0..source.len()), HEAD)?;
        let place = PackagePlace::of_file();
        let (kind, codec) = (sniff(&head), Codec::sniff(&head));
        let zip = match kind {
            Some(PackageKind::Zip) => Some(Zip::read_source(source, MOST_LIKELY)?),
            _ => Zip::behind_source(source)?,
        };
        if let Some(zip) = zip {
            let kind = zip.kind();
            return entered(kind, sink, |sink| self.zip(&zip, kind, source, &place, sink));
        }
        source.reader().seek(io::SeekFrom::Start(0))?;
        let len = source.len();
        let mut reader = Raw::new(source.reader(), len);
        match kind {
            Some(PackageKind::Tar) => entered(PackageKind::Tar, sink, |sink| {
                let tar = TarReader::with_skip(reader, Raw::skip);
                self.tar(tar, PackageKind::Tar, &place, sink)
            }),
            Some(kind) => entered(kind, sink, |sink| self.stream(kind, &mut reader, &place, sink)),
            None if codec == Codec::None => {
                let text = "expected a zip, tar, deb or rpm file, or a compressed tar file";
                Err(Error::new(ErrorKind::NotAPackage, text))
            }
            None => {
                let mut contents = Vec::new();
                let decoder = self.allowance.count(codec.decoder(&mut reader)?);
                let read = decoder.take(HEAD as u64).read_to_end(&mut contents);
                let read = read.map_err(|error| codec_error(codec, error));
                // The walk itself meets damage after the first bytes.
                if let Err(error) = &read
                    && error.kind() == ErrorKind::Io
                {
                    return read.map(|_| PackageKind::Compressed);
                }
                let Some(kind) = kind_of_contents(&contents, &place.path, sink) else {
                    read?;
                    let text = format!("expected a tar file compressed with {codec}");
                    return Err(Error::new(ErrorKind::NotAPackage, text));
                };
                source.reader().seek(io::SeekFrom::Start(0))?;
                let reader = codec.decoder(Raw::new(source.reader(), len))?;
                let mut decoder = self.allowance.count(Decoded { reader, codec });
                let place = PackagePlace { at: None, ..place };
                entered(kind, sink, |sink| self.stream(kind, &mut decoder, &place, sink))
            }
        }
    }

    /// Walks over a package that is a stream.
    pub(super) fn stream(
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

    /// Hands a member to the sink, or the members of the package that it is, and its hash if the sink asks for it.
    pub(super) fn file(
        &self,
        member: &Member,
        contents: &mut dyn Read,
        place: &PackagePlace,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let Some(algorithm) = sink.begin(member) else {
            return self.enter(member, contents, place, sink);
        };
        let mut hashed =
            Watched { reader: HashedReader::new(contents, algorithm), has_failed: false };
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
            Ok(head) => &*head,
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
            let error = Error::new(ErrorKind::Limit, text);
            sink.finding(member.finding(FindingKind::Unread, error));
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
}

/// Walks over the outermost package.
fn entered(
    kind: PackageKind,
    sink: &mut dyn Sink,
    walk: impl FnOnce(&mut dyn Sink) -> Result<(), Error>,
) -> Result<PackageKind, Error> {
    sink.package(&MemberPath::default(), kind);
    let result = walk(sink);
    sink.leave(&result);
    result.map(|()| kind)
}
