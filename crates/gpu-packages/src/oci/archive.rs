//! Archives of images: tar files without compression, whose members are named by hashes.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use byte_parts::ReadSeek;

use crate::codec::decoded;
use crate::error::{Error, ErrorKind};
use crate::limits::Allowance;
use crate::path::{Shown, without_dot};
use crate::reading::Raw;
use crate::tar::{TarKind, TarMember, TarReader, headers_with_size, padding, renamed_headers};

use super::document::has_hash;
use super::rewritten::ChangedImages;

/// The places of the files in an archive.
#[derive(Clone, Debug)]
pub struct ImageArchive {
    files: BTreeMap<String, Place>,
}

#[derive(Clone, Debug)]
enum Place {
    File(Range<u64>),
    /// The name that a link leads to.
    Link(String),
}

/// The documents at the root of an archive.
const DOCUMENTS: [&str; 4] = ["oci-layout", "index.json", "manifest.json", "repositories"];

/// The most bytes of names of an archive.
const MAX_NAMES: usize = 64 << 20;

/// New contents of a file in an archive.
pub struct NewFile<'r> {
    size: u64,
    contents: Box<dyn Read + 'r>,
}

impl std::fmt::Debug for NewFile<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewFile").field("size", &self.size).finish_non_exhaustive()
    }
}

impl<'r> NewFile<'r> {
    /// Returns new contents of this size.
    pub fn new(size: u64, contents: impl Read + 'r) -> Self {
        NewFile { size, contents: Box::new(contents) }
    }
}

impl ImageArchive {
    /// Reads the headers of a tar file that is not compressed; `None` if it is not an archive of images: it lacks
    /// `oci-layout`, `index.json`, `manifest.json` and `repositories`.
    ///
    /// # Errors
    ///
    /// Faults of the tar file after the first member with a name that images have; [`Limit`](ErrorKind::Limit) for more than 64 MiB of
    /// names; errors of the reader.
    pub fn read(mut reader: impl ReadSeek) -> Result<Option<Self>, Error> {
        let len = reader.seek(SeekFrom::End(0))?;
        reader.seek(SeekFrom::Start(0))?;
        let mut tar = TarReader::with_skip(Raw::new(reader, len), Raw::skip);
        let (mut files, mut room) = (BTreeMap::new(), MAX_NAMES);
        loop {
            let member = match tar.next_member() {
                Ok(Some(member)) => member,
                Ok(None) => break,
                // Damage of another tar file is for a walk through it.
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                Err(error) if files.keys().any(|it: &String| may_be_of_image(it.as_bytes())) => {
                    return Err(error);
                }
                Err(_) => return Ok(None),
            };
            let name = String::from_utf8_lossy(without_dot(member.name())).into_owned();
            let held = name.len() + member.link().len() + 64;
            room = room.checked_sub(held).ok_or_else(|| {
                let text = format!("an archive exceeds the limit of {MAX_NAMES} bytes of names");
                Error::new(ErrorKind::Limit, text)
            })?;
            let place = match link_target(&name, &member) {
                Some(target) => Place::Link(target),
                None if is_file(&member) => Place::File(tar.contents()),
                None => continue,
            };
            files.insert(name, place);
        }
        let is_one = DOCUMENTS.iter().any(|name| files.contains_key(*name));
        Ok(is_one.then_some(ImageArchive { files }))
    }

    /// Returns the names of the files and links.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Returns whether a tar file, which may be compressed, can be an archive of images: its first member that is not a directory is a
    /// document of one, or has a name that starts with a hash. Damage is for a walk through it.
    pub fn is_likely(reader: impl Read) -> bool {
        // Directories before the first file are few.
        let allowance = Allowance::new(1 << 24);
        let first = || -> Result<_, Error> {
            first_file(&mut TarReader::new(allowance.count(decoded(reader)?)))
        };
        first().is_ok_and(|name| name.is_some_and(|name| may_be_of_image(&name)))
    }

    /// Copies an archive for [`read`](Self::read), decompressed if it is compressed as a whole.
    ///
    /// # Errors
    ///
    /// [`Limit`](ErrorKind::Limit) for more than `most` bytes; faults of the compression; errors of the reader and the writer.
    pub fn unpack(reader: impl Read, most: u64, out: &mut dyn Write) -> Result<(), Error> {
        io::copy(&mut Allowance::new(most).count(decoded(reader)?), out)?;
        Ok(())
    }

    /// Returns the place of a file in the archive. Links are followed.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<Range<u64>> {
        match self.files.get(&self.resolve(name))? {
            Place::File(place) => Some(place.clone()),
            Place::Link(_) => None,
        }
    }

    /// Returns the name of the file that a name leads to, by links.
    #[must_use]
    pub fn resolve(&self, name: &str) -> String {
        let mut name = name;
        for _ in 0..8 {
            match self.files.get(name) {
                Some(Place::Link(target)) => name = target,
                _ => break,
            }
        }
        name.to_owned()
    }

    /// Writes an archive again, with the changes of its images. `layer` gives the new contents of a layer by the old name of its
    /// file; all else stays as it is. Returns the size of the new archive in bytes.
    ///
    /// # Errors
    ///
    /// Faults of the tar file, new contents of another size than was said, [`Mismatch`](ErrorKind::Mismatch) for a file that changes
    /// and is not in the archive, and errors of `layer`, the reader and the writer.
    pub fn rewrite<'r>(
        mut old: impl Read + Seek,
        mut new: impl Write,
        changed: &ChangedImages,
        mut layer: impl FnMut(&str) -> Result<Option<NewFile<'r>>, Error>,
    ) -> Result<u64, Error> {
        // A file that became shorter is an error.
        let len = old.seek(SeekFrom::End(0))?;
        old.seek(SeekFrom::Start(0))?;
        let mut tar = TarReader::new(Raw::new(old, len));
        let (mut missing, mut sum) = (changed.files(), 0);
        let (mut written, mut copied) = (HashSet::new(), HashSet::new());
        while let Some(mut member) = tar.next_member()? {
            let name = String::from_utf8_lossy(without_dot(member.name())).into_owned();
            let target = link_target(&name, &member);
            if changed.is_dropped(&name) || target.is_some_and(|it| changed.is_dropped(&it)) {
                continue;
            }
            let is_file = is_file(&member);
            let file = match changed.document(&name).filter(|_| is_file) {
                Some(text) => Some(NewFile::new(text.len() as u64, text)),
                None if is_file => layer(&name)?,
                None => None,
            };
            if file.is_some() {
                missing.remove(&*name);
            }
            let headers = renamed(&member, changed)?;
            let is_changed = file.is_some() || headers != member.headers;
            member.headers = headers;
            if member.kind() != TarKind::Directory {
                // A layer may be equal now to one that changed, or to one that was there before.
                let new_name = changed.name(&name);
                if written.contains(&new_name) || is_changed && copied.contains(&new_name) {
                    continue;
                }
                if is_changed { &mut written } else { &mut copied }.insert(new_name);
            }
            let (headers, size, mut contents): (_, _, Box<dyn Read + '_>) = match file {
                Some(NewFile { size, contents }) => {
                    (headers_with_size(&member, size)?, size, contents)
                }
                None => (member.headers, member.stored, Box::new(&mut tar)),
            };
            new.write_all(&headers)?;
            write(&mut contents, size, &name, &mut new)?;
            sum += headers.len() as u64 + size + padding(size);
        }
        if let Some(missing) = missing.first() {
            let text = format!("{missing}: expected this file, which changes, found none");
            return Err(Error::new(ErrorKind::Mismatch, text));
        }
        let (end, mut rest) = tar.into_rest();
        new.write_all(&end)?;
        sum += end.len() as u64 + io::copy(&mut rest, &mut new)?;
        new.flush()?;
        Ok(sum)
    }
}

fn write(contents: impl Read, size: u64, name: &str, out: &mut impl Write) -> Result<(), Error> {
    let written = io::copy(&mut contents.take(size), out)?;
    if written != size {
        let text = format!("contents: expected {size} bytes, found {written}");
        return Err(Error::new(ErrorKind::Truncated, text).while_reading(Shown(name.as_bytes())));
    }
    io::copy(&mut io::repeat(0).take(padding(size)), out)?;
    Ok(())
}

/// Returns the name of the first member that is not a directory.
fn first_file<R: Read>(tar: &mut TarReader<R>) -> Result<Option<Vec<u8>>, Error> {
    while let Some(member) = tar.next_member()? {
        if member.kind() != TarKind::Directory {
            return Ok(Some(without_dot(member.name()).to_vec()));
        }
    }
    Ok(None)
}

/// Returns whether an archive of images may have a member of this name: a document, or a name that starts with a hash.
pub(super) fn may_be_of_image(name: &[u8]) -> bool {
    let is_document = DOCUMENTS.iter().any(|it| it.as_bytes() == name);
    is_document || name.starts_with(b"blobs/") || has_hash(name)
}

/// Returns the headers of a member with new hashes in names.
fn renamed(member: &TarMember, changed: &ChangedImages) -> Result<Vec<u8>, Error> {
    let headers = changed.renamed(&member.headers);
    if headers == member.headers { Ok(headers) } else { renamed_headers(headers) }
}

/// Returns whether a member has contents that can be replaced.
fn is_file(member: &TarMember) -> bool {
    member.kind() == TarKind::File && !member.is_sparse
}

/// Returns the name of the member that a link leads to; `None` for another member.
fn link_target(name: &str, member: &TarMember) -> Option<String> {
    match member.kind() {
        TarKind::Symlink => Some(beside(name, &String::from_utf8_lossy(member.link()))),
        TarKind::HardLink => Some(String::from_utf8_lossy(without_dot(member.link())).into_owned()),
        _ => None,
    }
}

/// Returns the name that a symbolic link at a name leads to.
fn beside(name: &str, target: &str) -> String {
    let mut names: Vec<&str> = name.split('/').collect();
    names.pop();
    if target.starts_with('/') {
        names.clear();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = names.pop(),
            part => names.push(part),
        }
    }
    names.join("/")
}
