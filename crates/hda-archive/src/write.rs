//! Archives of members that are in memory.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use byte_parts::WriteError;
use fat_object::Options;

use crate::entries::is_bundled;
use crate::error::{Error, ErrorKind};
use crate::layout::LayoutBuilder;
use crate::symbols::Symbols;

/// A member to be written, whose name and bytes are lent or owned.
///
/// ```
/// use hda_archive::{Member, write_archive};
///
/// let mut archive = Vec::new();
/// write_archive(&mut archive, [Member::new("a.txt", b"lent"), Member::new("b.txt", vec![0; 10])])?;
/// assert!(archive.starts_with(b"!<arch>\n"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Member<'a> {
    name: Cow<'a, str>,
    data: Cow<'a, [u8]>,
}

impl<'a> Member<'a> {
    /// Creates a member with a name, which may be a path, and its bytes. Several members may have one name.
    #[must_use]
    pub fn new(name: impl Into<Cow<'a, str>>, data: impl Into<Cow<'a, [u8]>>) -> Self {
        Member { name: name.into(), data: data.into() }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the bytes.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }
}

impl fmt::Debug for Member<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("name", &self.name).field("size", &self.data.len()).finish()
    }
}

/// Writes an archive of the members, in their order.
///
/// Object files and bitcode are in the index of symbols. A damaged object is a member like any other file, and not
/// in the index.
///
/// When a member starts beyond 4 GiB the index has offsets of 64 bits (`/SYM64/`), as in LLVM.
///
/// # Errors
///
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for a name that is empty or has a line break or a NUL, which would
/// make another archive than meant, or a member of more than 9,999,999,999 bytes, more than a header can say; what
/// writing returns.
pub fn write_archive<'a, W: Write>(
    out: W,
    members: impl IntoIterator<Item = Member<'a>>,
) -> io::Result<()> {
    let members: Vec<_> = members.into_iter().collect();
    write(out, &members, |data| Ok(Symbols::read(data).ok().flatten())).map_err(io::Error::from)
}

/// Writes a heterogeneous device archive: of members that are bundles, or objects with bundles in their sections.
/// [`Unbundling`](crate::Unbundling) makes device archives of it.
///
/// LLVM has no tool of its own for this: the archive is the one that `llvm-ar` makes of the same files.
///
/// # Errors
///
/// About a [member](Error::member): [`NotBundled`](crate::ErrorKind::NotBundled) for one that is something else,
/// [`Malformed`](crate::ErrorKind::Malformed) for a malformed one and one whose symbols cannot be read,
/// [`Usage`](crate::ErrorKind::Usage) and [`Limit`](crate::ErrorKind::Limit) for what an archive cannot hold. Also
/// [`Write`](crate::ErrorKind::Write); nothing was written for the other errors.
pub fn create<'a, W: Write>(
    out: W,
    members: impl IntoIterator<Item = Member<'a>>,
) -> Result<(), Error> {
    let members: Vec<_> = members.into_iter().collect();
    for member in &members {
        let bundled = is_bundled(&member.data, &Options::default()).and_then(|is| {
            const TEXT: &str = "neither a bundle nor an object file with the sections of a bundle";
            if is { Ok(()) } else { Err(Error::new(ErrorKind::NotBundled, TEXT)) }
        });
        bundled.map_err(|error| error.in_member(member.name.as_bytes()))?;
    }
    write(out, &members, Symbols::read)
}

fn write<W: Write>(
    out: W,
    members: &[Member<'_>],
    symbols: impl Fn(&[u8]) -> Result<Option<Symbols>, Error>,
) -> Result<(), Error> {
    let mut layout = LayoutBuilder::new();
    for member in members {
        let size = member.data.len() as u64;
        symbols(&member.data)
            .and_then(|symbols| layout.push(member.name.as_bytes(), size, symbols.as_ref()))
            .map_err(|error| error.in_member(member.name.as_bytes()))?;
    }
    let members = members.iter().map(Member::data);
    let failed = |error: WriteError| Error::write(0, error.into());
    layout.finish()?.write_to(out, members).map_err(failed)
}
