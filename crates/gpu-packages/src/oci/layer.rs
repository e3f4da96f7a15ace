//! Layers: tar files, compressed or not, of the files that an image adds, and of whiteouts.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, SeekFrom, Write};

use byte_parts::ReadSeek;

use crate::codec::{Codec, Decoded, decoded};
use crate::error::{Error, ErrorKind, Finding, FindingKind};
use crate::hash::{Algorithm, HashedReader, HashedWriter};
use crate::limits::{Allowance, Options};
use crate::path::MemberPath;
use crate::reading::{Raw, read_full, read_held};
use crate::rewrite::{Original, Replacement, RewriteOptions, rewrite_hashed, rewrite_members};
use crate::tar::{TarKind, TarMember, TarReader};

use super::images::{ImageLayer, faults, finding};
use super::rewritten::NewLayer;

/// The members of a layer.
#[derive(Default)]
pub struct LayerMembers {
    /// Path and kind of each member, in the order of the tar file.
    pub(super) members: Vec<(Box<[u8]>, Entry)>,
    /// Lists of installed files, by the number of the member.
    pub(super) lists: BTreeMap<usize, Vec<u8>>,
    findings: Vec<Finding>,
    held: u64,
}

impl fmt::Debug for LayerMembers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayerMembers")
            .field("members", &self.members.len())
            .field("lists", &self.lists.len())
            .field("findings", &self.findings.len())
            .finish_non_exhaustive()
    }
}

/// Kind of a member.
pub(super) enum Entry {
    /// The place of its first header in the tar file.
    File(u64),
    HardLink(Box<[u8]>),
    Symlink(Box<[u8]>),
    Directory,
    Other,
}

/// Takes the number, the path and the contents of a file.
type Look<'l> = dyn FnMut(usize, &[u8], &mut Original<'_>) -> Result<(), Error> + 'l;

/// The table of contents that eStargz adds to a layer. It names the places of files in the old one.
const STARGZ_INDEX: &[u8] = b"stargz.index.json";

/// The longest path in bytes, as Linux has it.
const MOST_PATH: usize = 4096;

/// Bytes that are held for each member, beside its name.
const MEMBER: u64 = 64;

impl LayerMembers {
    /// Returns what is wrong with the layer.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the bytes of memory that the names and lists of its files take.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Returns whether eStargz added a table of contents, which a change of the layer leaves out.
    #[must_use]
    pub fn has_stargz_index(&self) -> bool {
        self.members.iter().any(|(path, _)| **path == *STARGZ_INDEX)
    }

    /// Returns the path of a member from the root of the image, without `./`.
    #[must_use]
    pub fn path(&self, member: usize) -> Option<&[u8]> {
        self.members.get(member).map(|(path, _)| &**path)
    }

    /// Returns the contents of a list of installed files, if the layer was [read](ImageLayer::read).
    #[must_use]
    pub fn list(&self, member: usize) -> Option<&[u8]> {
        self.lists.get(&member).map(Vec::as_slice)
    }

    /// Returns the place of the first header of a regular file, as [`Member::offset`](crate::Member::offset) has it.
    #[must_use]
    pub fn offset(&self, member: usize) -> Option<u64> {
        match self.members.get(member)?.1 {
            Entry::File(offset) => Some(offset),
            _ => None,
        }
    }

    /// Takes the next member, with the contents of a list; returns the bytes that are held of it.
    fn add(
        &mut self,
        layer: &MemberPath,
        member: &TarMember,
        path: Vec<u8>,
        list: Option<Vec<u8>>,
    ) -> u64 {
        let place = layer.join(member.name());
        if member.name().split(|&byte| byte == b'/').any(|name| name == b"..") {
            let error = Error::at(ErrorKind::Malformed, member.offset(), "the name has '..'");
            let (path, kind) = (place.clone(), FindingKind::UnsafeName);
            self.findings.push(Finding { path, kind, error });
        }
        self.findings.extend(member.faults.iter().map(|fault| Finding {
            path: place.clone(),
            kind: fault.kind,
            error: fault.error(),
        }));
        let link = normal(member.link());
        let mut held = MEMBER + path.len() as u64 + link.len() as u64;
        if let Some(text) = list {
            held += text.len() as u64;
            self.lists.insert(self.members.len(), text);
        }
        let entry = match member.kind() {
            TarKind::File => Entry::File(member.offset()),
            TarKind::HardLink => Entry::HardLink(link.into()),
            TarKind::Symlink => Entry::Symlink(member.link().into()),
            TarKind::Directory => Entry::Directory,
            TarKind::Other => Entry::Other,
        };
        self.members.push((path.into(), entry));
        self.held += held;
        held
    }
}

/// Fails for a member whose name or link is too long.
fn check_length(member: &TarMember) -> Result<(), Error> {
    let longest = member.name().len().max(member.link().len());
    if longest > MOST_PATH {
        let text = format!("a name: expected at most {MOST_PATH} bytes, found {longest}");
        return Err(Error::at(ErrorKind::Limit, member.offset(), text));
    }
    Ok(())
}

/// Takes bytes that are held from the rest of `most`.
fn hold(room: &mut u64, held: u64, most: u64) -> Result<(), Error> {
    *room = room.checked_sub(held).ok_or_else(|| {
        let text =
            format!("the names and lists of its files exceed the limit of {most} bytes held");
        Error::new(ErrorKind::Limit, text)
    })?;
    Ok(())
}

impl ImageLayer {
    /// Reads a layer of `len` bytes to its end, and compares it with its hashes. `look` gets each regular file: the number of the
    /// member, its path, and its contents. It may read some of them.
    ///
    /// # Errors
    ///
    /// Faults of the tar file and its compression; [`Limit`](ErrorKind::Limit) for more bytes, names and lists than `options`
    /// allow; errors of `look` and of the reader.
    pub fn read(
        &self,
        reader: impl Read,
        len: u64,
        options: &Options,
        mut look: impl FnMut(usize, &[u8], &mut Original<'_>) -> Result<(), Error>,
    ) -> Result<LayerMembers, Error> {
        let read = self.read_members(reader, len, options, &mut look);
        read.map_err(|error| error.while_reading(&self.file))
    }

    /// Reads the names of the members of a layer of `len` bytes, and nothing else: contents of a layer that is not compressed are
    /// passed over, and of its descriptor only the size is compared. `look` gets each regular file, as in [`read`](Self::read).
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and [`Mismatch`](ErrorKind::Mismatch) for another size than the descriptor has.
    pub fn names(
        &self,
        mut reader: impl ReadSeek,
        len: u64,
        options: &Options,
        mut look: impl FnMut(usize, &[u8], &mut dyn Read) -> Result<(), Error>,
    ) -> Result<LayerMembers, Error> {
        if let Some(expected) = self.size.filter(|size| *size != len) {
            let text = format!("size: expected {expected} bytes, found {len}");
            return Err(Error::new(ErrorKind::Mismatch, text).while_reading(&self.file));
        }
        let mut read = || {
            let codec = Codec::sniff(read_full(&mut reader, &mut [0; 16])?);
            reader.seek(SeekFrom::Start(0))?;
            let raw = Raw::new(&mut reader, len);
            if codec == Codec::None {
                return self.list(TarReader::with_skip(raw, Raw::skip), (options, len), &mut look);
            }
            let allowance = Allowance::of(options, len);
            let reader = codec.decoder(raw)?;
            let tar = TarReader::new(allowance.count(Decoded { reader, codec }));
            self.list(tar, (options, len), &mut look)
        };
        read().map_err(|error: Error| error.while_reading(&self.file))
    }

    fn list<R: Read>(
        &self,
        mut tar: TarReader<R>,
        (options, len): (&Options, u64),
        look: &mut impl FnMut(usize, &[u8], &mut dyn Read) -> Result<(), Error>,
    ) -> Result<LayerMembers, Error> {
        let most = options.held_of(len);
        let (mut room, mut found) = (most, LayerMembers::default());
        let file = MemberPath::default().join(self.file.as_bytes());
        while let Some(member) = tar.next_member()? {
            check_length(&member)?;
            let path = normal(member.name());
            if member.kind() == TarKind::File {
                look(found.members.len(), &path, &mut tar)?;
            }
            let held = found.add(&file, &member, path, None);
            hold(&mut room, held, most)?;
        }
        Ok(found)
    }

    fn read_members(
        &self,
        reader: impl Read,
        len: u64,
        options: &Options,
        look: &mut Look<'_>,
    ) -> Result<LayerMembers, Error> {
        let most = options.held_of(len);
        let mut room = most;
        let mut found = LayerMembers::default();
        let mut stored = HashedReader::new(reader, Algorithm::Sha256);
        let allowance = Allowance::of(options, len);
        let decoder = allowance.count(decoded(&mut stored)?);
        let mut plain = HashedReader::new(decoder, Algorithm::Sha256);
        let mut tar = TarReader::new(&mut plain);
        let file = MemberPath::default().join(self.file.as_bytes());
        rewrite_members(&mut tar, &mut io::sink(), &mut |member, original| {
            check_length(member)?;
            let path = normal(member.name());
            let (mut list, mut replacement) = (None, None);
            if let Some(original) = original {
                if is_list(&path) {
                    list = Some(read_held(original, room)?);
                } else {
                    look(found.members.len(), &path, original)?;
                }
                replacement = original.is_read().then(Replacement::seen);
            }
            let held = found.add(&file, member, path, list);
            hold(&mut room, held, most)?;
            Ok(replacement)
        })?;
        let (_, mut rest) = tar.into_rest();
        io::copy(&mut rest, &mut io::sink())?;
        let (_, diff_id) = plain.finish();
        io::copy(&mut stored, &mut io::sink())?;
        let (size, digest) = stored.finish();
        let fault = faults((self.digest.as_ref(), self.size), (&digest, size));
        found.findings.extend(fault.map(|text| finding(&self.file, text)));
        if let Some(expected) = self.diff_id.as_ref().filter(|expected| **expected != diff_id) {
            let (expected, diff_id) = (expected.to_hex(), diff_id.to_hex());
            let text = format!("diff_id: expected sha256:{expected}, found sha256:{diff_id}");
            found.findings.push(finding(&self.file, text));
        }
        Ok(found)
    }

    /// Writes a layer again, in the same order and with the same compression. `replace` gets each regular file, as in
    /// [`read`](Self::read). Whiteouts and links are kept; the table of contents of eStargz is left out.
    ///
    /// # Errors
    ///
    /// Errors of [`rewrite_tar`](crate::rewrite_tar).
    pub fn rewrite<'a>(
        &self,
        old: impl Read,
        new: impl Write,
        options: &RewriteOptions,
        mut replace: impl FnMut(
            usize,
            &[u8],
            &mut Original<'_>,
        ) -> Result<Option<Replacement<'a>>, Error>,
    ) -> Result<NewLayer, Error> {
        let mut new = HashedWriter::new(new, Algorithm::Sha256);
        let mut next = 0;
        let rewritten = rewrite_hashed(old, &mut new, options, &mut |member, original| {
            let number = next;
            next += 1;
            let Some(original) = original else { return Ok(None) };
            let path = normal(member.name());
            if path == STARGZ_INDEX {
                return Ok(Some(Replacement::removal()));
            }
            replace(number, &path, original)
        });
        let (_, diff_id) = rewritten.map_err(|error| match error.kind() {
            // The output has another name.
            ErrorKind::Io => error,
            _ => error.while_reading(&self.file),
        })?;
        let (_, size, digest) = new.finish();
        Ok(NewLayer { digest, size, diff_id })
    }
}

/// Returns a path without empty names and `.`.
pub(super) fn normal(path: &[u8]) -> Vec<u8> {
    let names = path.split(|&byte| byte == b'/').filter(|name| !matches!(name, [] | [b'.']));
    names.collect::<Vec<_>>().join(&b'/')
}

/// Returns whether a file is a list: `RECORD` of a Python distribution, `md5sums` of a Debian package, JSON of conda's.
pub(super) fn is_list(path: &[u8]) -> bool {
    path.ends_with(b".dist-info/RECORD")
        || is_of_dpkg(path)
        || path.ends_with(b".json") && parent(path).ends_with(b"conda-meta")
}

pub(super) fn is_of_dpkg(path: &[u8]) -> bool {
    let starts = [&b"var/lib/dpkg/info/"[..], b"var/lib/dpkg/status.d/"];
    path.ends_with(b".md5sums") && starts.iter().any(|start| path.starts_with(start))
}

pub(super) fn parent(path: &[u8]) -> &[u8] {
    path.split_at(path.iter().rposition(|&byte| byte == b'/').unwrap_or(0)).0
}
