//! Tar files with other contents in some members, and packages of them.

mod deb;

use std::collections::HashSet;
use std::fmt;
use std::io::{self, Cursor, Read, Write};
use std::num::NonZeroUsize;

use crate::codec::{Codec, decoded_after};
use crate::compression::{Compression, HEAD};
use crate::error::{Error, ErrorKind};
use crate::hash::{Algorithm, Hash, HashedWriter};
use crate::limits::Allowance;
use crate::names::Names;
use crate::path::{Shown, without_dot};
use crate::reading::read_full;
use crate::tar::{Expanded, TarKind, TarMember, TarReader, headers_with_size, padding};
pub(crate) use deb::changes_deb;
pub use deb::rewrite_deb;

/// New contents of a member of a tar file: a stream of a known size.
pub struct Replacement<'a> {
    kind: Kind,
    size: u64,
    contents: Box<dyn Read + 'a>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    New,
    Old,
    Removal,
    /// It was read, and nothing is written.
    Seen,
}

impl fmt::Debug for Replacement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replacement").field("size", &self.size).finish_non_exhaustive()
    }
}

impl<'a> Replacement<'a> {
    /// Creates new contents of this size.
    pub fn new(size: u64, contents: impl Read + 'a) -> Self {
        Replacement { kind: Kind::New, size, contents: Box::new(contents) }
    }

    /// Creates new contents from bytes.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Replacement<'static> {
        Replacement::new(bytes.len() as u64, Cursor::new(bytes))
    }

    /// Gives contents of this size back that were read and are not to be changed.
    pub fn unchanged(size: u64, contents: impl Read + 'a) -> Self {
        Replacement { kind: Kind::Old, ..Replacement::new(size, contents) }
    }

    /// Says that contents were read where nothing is written.
    pub(crate) fn seen() -> Replacement<'static> {
        Replacement { kind: Kind::Seen, ..Replacement::from_bytes(Vec::new()) }
    }

    /// Leaves the member out, and hard links to it.
    #[must_use]
    pub fn removal() -> Replacement<'static> {
        Replacement { kind: Kind::Removal, ..Replacement::from_bytes(Vec::new()) }
    }
}

/// Options of [`rewrite_tar`] and [`rewrite_deb`].
///
/// ```
/// use gpu_packages::RewriteOptions;
///
/// let options = RewriteOptions::default().with_level(3).with_max_decompressed(16 << 30);
/// ```
#[derive(Clone, Debug)]
pub struct RewriteOptions {
    level: Option<u32>,
    threads: NonZeroUsize,
    drops_signature: bool,
    max_decompressed: u64,
    /// `true` if the new file is not compressed: nobody reads it.
    is_plain: bool,
}

impl Default for RewriteOptions {
    fn default() -> Self {
        RewriteOptions {
            level: None,
            threads: NonZeroUsize::MIN,
            drops_signature: false,
            max_decompressed: 256 << 30,
            is_plain: false,
        }
    }
}

impl RewriteOptions {
    /// Sets the level of the files, as [`Compression::with_level`] takes it. `None`, the default, is the level that the
    /// package has.
    #[must_use]
    pub fn with_level(self, level: impl Into<Option<u32>>) -> Self {
        RewriteOptions { level: level.into(), ..self }
    }

    /// Sets the number of threads that compress: 1 by default.
    #[must_use]
    pub fn with_threads(self, threads: NonZeroUsize) -> Self {
        RewriteOptions { threads, ..self }
    }

    /// Allows to change a signed package, whose signatures (`_gpgorigin` and its like) are left out.
    #[must_use]
    pub fn with_drop_signature(self, is_allowed: bool) -> Self {
        RewriteOptions { drops_signature: is_allowed, ..self }
    }

    /// Sets the most bytes that a tar file may decompress to: 256 GiB by default.
    #[must_use]
    pub fn with_max_decompressed(self, bytes: u64) -> Self {
        RewriteOptions { max_decompressed: bytes, ..self }
    }
}

/// The contents that a member has, for the decision if it is changed. Reading starts at the first byte.
pub struct Original<'r> {
    size: u64,
    head: &'r [u8],
    /// The bytes of the head that were not read.
    unread: &'r [u8],
    rest: &'r mut dyn Read,
    is_read: bool,
}

impl fmt::Debug for Original<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Original").field("size", &self.size).finish_non_exhaustive()
    }
}

impl Original<'_> {
    pub(crate) fn is_read(&self) -> bool {
        self.is_read
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the first 512 bytes, or all if there are fewer. They do not count as read.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        self.head
    }
}

impl Read for Original<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.is_read = true;
        if self.unread.is_empty() { self.rest.read(buf) } else { self.unread.read(buf) }
    }
}

/// Members that [`rewrite_tar`] or [`rewrite_deb`] changed.
#[derive(Clone, Debug, Default)]
pub struct Rewritten {
    changed: Vec<Change>,
    members: u64,
    unlisted: Vec<Vec<u8>>,
}

#[derive(Clone, Debug)]
struct Change {
    path: Vec<u8>,
    old_size: u64,
    new_size: u64,
    /// `None` for a member that is left out.
    md5: Option<Hash>,
}

impl Rewritten {
    /// Returns the paths of the changed members, and of the members that are left out.
    pub fn changed(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.changed.iter().map(|change| &change.path[..])
    }

    /// Returns the number of members.
    #[must_use]
    pub fn members(&self) -> u64 {
        self.members
    }

    /// Returns changed members that `md5sums` does not list.
    pub fn unlisted(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.unlisted.iter().map(Vec::as_slice)
    }
}

/// Writes a tar file again, with new contents in some members. `replace` is asked for each regular file, by its name
/// without `./`, and may read what it has. It returns `None` if it read nothing; contents that it read, and that stay,
/// are [given back](Replacement::unchanged). Headers, order and all else stay; of a changed member only size and checksum change. The file is
/// compressed again [as it was](Compression::of).
///
/// ```
/// use gpu_packages::{Replacement, RewriteOptions, TarReader, rewrite_tar};
///
/// # let mut old = vec![0; 2048];
/// # old[..5].copy_from_slice(b"a.txt");
/// # old[124..136].copy_from_slice(b"00000000003\0");
/// # old[148..156].fill(b' ');
/// # old[257..265].copy_from_slice(b"ustar\x0000");
/// # let sum: u32 = old[..512].iter().map(|&byte| u32::from(byte)).sum();
/// # old[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
/// # old[512..515].copy_from_slice(b"abc");
/// let mut new = Vec::new();
/// rewrite_tar(&old[..], &mut new, &RewriteOptions::default(), |name, _| {
///     Ok((name == b"a.txt").then(|| Replacement::from_bytes(b"hello".to_vec())))
/// })?;
/// let mut tar = TarReader::new(&new[..]);
/// assert_eq!(tar.next_member()?.map(|member| member.size()), Some(5));
/// # Ok::<(), gpu_packages::Error>(())
/// ```
///
/// # Errors
///
/// [`NotAPackage`](ErrorKind::NotAPackage); faults of the tar file; [`Refused`](ErrorKind::Refused) for a level that the
/// codec lacks, for a changed member that is sparse or shares its name with another, for new contents of another size than was said, and for contents that
/// were read and not given back; errors of `replace`, the reader and the writer.
pub fn rewrite_tar<'a>(
    old: impl Read,
    new: impl Write,
    options: &RewriteOptions,
    mut replace: impl FnMut(&[u8], &mut Original<'_>) -> Result<Option<Replacement<'a>>, Error>,
) -> Result<Rewritten, Error> {
    let (rewritten, _) =
        rewrite_hashed(old, new, options, &mut |member, original| match original {
            Some(original) => replace(without_dot(member.name()), original),
            None => Ok(None),
        })?;
    if rewritten.members == 0 {
        return Err(Error::new(ErrorKind::NotAPackage, "expected a tar file with a member"));
    }
    Ok(rewritten)
}

/// Writes a tar file again, which may have no member. Returns the hash of the new one without compression, too.
pub(crate) fn rewrite_hashed<'a>(
    mut old: impl Read,
    new: impl Write,
    options: &RewriteOptions,
    replace: &mut Replace<'_, 'a>,
) -> Result<(Rewritten, Hash), Error> {
    let mut head = Vec::new();
    old.by_ref().take(HEAD).read_to_end(&mut head)?;
    let compression = match options.level {
        _ if options.is_plain => Compression::new(Codec::None),
        Some(level) => Compression::form_of(&head).with_level(level)?,
        None => Compression::of(&head),
    };
    let encoder = compression.with_threads(options.threads).encoder(new)?;
    let mut out = HashedWriter::new(encoder, Algorithm::Sha256);
    let decoder = decoded_after(head, old)?;
    let allowance = Allowance::new(options.max_decompressed);
    let decoder = allowance.count(decoder);
    let mut tar = TarReader::new(decoder);
    let rewritten = rewrite_members(&mut tar, &mut out, replace)?;
    let (end, mut rest) = tar.into_rest();
    out.write_all(&end)?;
    io::copy(&mut rest, &mut out)?;
    let (encoder, _, hash) = out.finish();
    encoder.finish()?.flush()?;
    Ok((rewritten, hash))
}

/// Decides about a member, which has contents if it is a regular file.
pub(crate) type Replace<'r, 'a> =
    dyn FnMut(&TarMember, Option<&mut Original<'_>>) -> Result<Option<Replacement<'a>>, Error> + 'r;

/// Writes the members of a tar file again, up to what follows the last one.
pub(crate) fn rewrite_members<'a, R: Read>(
    tar: &mut TarReader<R>,
    out: &mut dyn Write,
    replace: &mut Replace<'_, 'a>,
) -> Result<Rewritten, Error> {
    let mut rewritten = Rewritten::default();
    let mut names = Names::default();
    let mut removed: HashSet<Vec<u8>> = HashSet::new();
    while let Some(member) = tar.next_member()? {
        rewritten.members += 1;
        let name = without_dot(member.name());
        names.repeats(name, member.kind() == TarKind::Directory);
        let mut stored = [0; 512];
        // The first bytes, if they were read.
        let mut head: &[u8] = &[];
        let mut replacement;
        if member.kind() == TarKind::File {
            let expansion = tar.take_expansion();
            head = read_full(tar, &mut stored)?;
            let (mut zeros, mut sparse) = ([0; 512], SparseFile(name));
            let (head, rest): (&[u8], &mut dyn Read) = match expansion {
                None => (head, &mut *tar),
                Some(expansion) => {
                    let mut expanded = Expanded { expansion, stored: head };
                    (read_full(&mut expanded, &mut zeros)?, &mut sparse)
                }
            };
            let size = member.size();
            let mut original = Original { size, head, unread: head, rest, is_read: false };
            replacement = replace(&member, Some(&mut original))?;
            if original.is_read && replacement.is_none() {
                let text = "contents that were read and stay: expected them back";
                return Err(Error::new(ErrorKind::Refused, text).while_reading(Shown(name)));
            }
        } else {
            replacement = replace(&member, None)?;
        }
        // Another name of a member that was left out.
        let target = without_dot(member.link());
        if member.kind() == TarKind::HardLink && removed.contains(target) {
            replacement = Some(Replacement::removal());
        }
        match replacement {
            Some(Replacement { kind: Kind::Removal, .. }) => {
                removed.insert(name.to_vec());
                io::copy(tar, &mut io::sink())?;
                let (path, old_size) = (name.to_vec(), member.size());
                rewritten.changed.push(Change { path, old_size, new_size: 0, md5: None });
            }
            Some(Replacement { kind: Kind::Seen, .. }) => {}
            Some(_) if member.is_sparse => return Err(sparse_file(name)),
            Some(replacement) => {
                let is_change = replacement.kind == Kind::New;
                let change = write_member(out, &member, name, replacement)?;
                rewritten.changed.extend(Some(change).filter(|_| is_change));
            }
            None => {
                out.write_all(&member.headers)?;
                copy_contents(&mut head.chain(&mut *tar), out, &member)?;
            }
        }
    }
    let is_repeated = |change: &&Change| names.is_repeated(&change.path);
    if let Some(change) = rewritten.changed.iter().find(is_repeated) {
        let text = "expected one member of this name, found several";
        return Err(Error::new(ErrorKind::Refused, text).while_reading(Shown(&change.path)));
    }
    Ok(rewritten)
}

/// Returns whether a tar file would be changed. The first change is the last that `replace` is asked for.
pub(crate) fn changes_tar<'a>(
    old: impl Read,
    options: &RewriteOptions,
    mut replace: impl FnMut(&[u8], &mut Original<'_>) -> Result<Option<Replacement<'a>>, Error>,
) -> Result<bool, Error> {
    let options = RewriteOptions { is_plain: true, ..options.clone() };
    let mut is_changed = false;
    let looked = rewrite_tar(old, io::sink(), &options, |name, original| {
        let replacement = replace(name, original)?;
        is_changed = replacement.as_ref().is_some_and(|new| new.kind != Kind::Old);
        if is_changed { Err(Error::refused("the first change")) } else { Ok(replacement) }
    });
    if is_changed { Ok(true) } else { looked.map(|_| false) }
}

/// The contents of a sparse file, which are not changed.
struct SparseFile<'n>(&'n [u8]);

impl Read for SparseFile<'_> {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(sparse_file(self.0).into())
    }
}

fn sparse_file(name: &[u8]) -> Error {
    let text = "expected a file that is not sparse, to change it";
    Error::new(ErrorKind::Refused, text).while_reading(Shown(name))
}

fn copy_contents(tar: &mut dyn Read, out: &mut dyn Write, member: &TarMember) -> Result<(), Error> {
    let copied = io::copy(tar, out)?;
    if copied != member.stored {
        let text = format!("tar: expected {} bytes, found {copied}", member.stored);
        return Err(Error::at(ErrorKind::Truncated, member.offset(), text));
    }
    write_padding(out, copied)
}

fn write_padding(out: &mut dyn Write, size: u64) -> Result<(), Error> {
    io::copy(&mut io::repeat(0).take(padding(size)), out)?;
    Ok(())
}

fn write_member(
    out: &mut dyn Write,
    member: &TarMember,
    name: &[u8],
    replacement: Replacement<'_>,
) -> Result<Change, Error> {
    let Replacement { kind, size, mut contents } = replacement;
    if kind == Kind::New || size != member.size() {
        out.write_all(&headers_with_size(member, size)?)?;
    } else {
        out.write_all(&member.headers)?;
    }
    let mut hashed = HashedWriter::new(&mut *out, Algorithm::Md5);
    // One more byte tells a stream that is too long.
    let mut bounded = contents.by_ref().take(size);
    let written = io::copy(&mut bounded, &mut hashed)?;
    let is_longer = !read_full(&mut *contents, &mut [0])?.is_empty();
    if written != size || is_longer {
        let found = if is_longer { "more".to_owned() } else { written.to_string() };
        let text = format!("new contents: expected {size} bytes, found {found}");
        return Err(Error::new(ErrorKind::Refused, text).while_reading(Shown(name)));
    }
    let (_, _, md5) = hashed.finish();
    write_padding(out, size)?;
    let path = name.to_vec();
    Ok(Change { path, old_size: member.size(), new_size: size, md5: Some(md5) })
}
