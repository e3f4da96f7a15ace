//! Entries to be written.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use zerocopy::{FromZeros, IntoBytes};

use crate::compression::{Compression, Stored};
use crate::cubin::Cubin;
use crate::entry::HEADER;
use crate::error::{Error, ErrorKind};
use crate::kinds::{Architecture, Flags, Kind};
use crate::number::{number, reserve};
use crate::ptx;
use crate::wire::{EntryHeader, OptionsHeader, TableHeader};

/// The version of an entry in every file seen.
const VERSION: u16 = 0x101;

/// The first bytes of LTO-IR.
const LTO_IR: [u8; 4] = [0xed, 0x43, 0x4e, 0x7f];

/// Flags that several images do not share.
const OF_ONE_IMAGE: Flags =
    Flags::ARCHITECTURE_SPECIFIC.union(Flags::FAMILY_SPECIFIC).union(Flags::COMPAT);

/// An entry to be written.
///
/// [`cubin`](Self::cubin) and [`ptx`](Self::ptx) fill in what `fatbinary` derives from a file; [`new`](Self::new) does not look at
/// the code. All fields can be changed before the entry is [added](crate::NewFatbin::add).
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewEntry<'a> {
    /// The kind of code. For [`Kind::CONCATENATED`] see [`concatenated`](Self::concatenated).
    pub kind: Kind,
    /// The SM number; its suffix is in the flags.
    pub sm: u32,
    /// The flags. Flags that name a codec are set by the compression alone.
    pub flags: Flags,
    /// Major and minor version of the code.
    pub code_version: (u16, u16),
    /// The identifier.
    pub identifier: Option<Cow<'a, [u8]>>,
    /// The options; of a cubin with [`Flags::COMPAT`] its section `.nv.compat`; of several images their table.
    pub options: Option<Cow<'a, [u8]>>,
    /// The code, not compressed.
    pub code: Cow<'a, [u8]>,
    /// The form in which the code is stored.
    pub compression: Compression,
}

impl fmt::Debug for NewEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewEntry")
            .field("kind", &self.kind)
            .field("sm", &self.sm)
            .field("flags", &self.flags)
            .field("code_version", &self.code_version)
            .field("compression", &self.compression)
            .field("code", &self.code.len())
            .finish_non_exhaustive()
    }
}

impl<'a> NewEntry<'a> {
    /// Makes an entry of code of any kind, for an architecture. The only flag is the one of the architecture's suffix.
    /// All kinds but cubins have options, which are empty here.
    #[must_use]
    pub fn new(kind: Kind, architecture: Architecture, code: impl Into<Cow<'a, [u8]>>) -> Self {
        NewEntry {
            kind,
            sm: architecture.sm,
            flags: architecture.flags(),
            code_version: (0, 0),
            identifier: None,
            options: (kind != Kind::ELF).then_some(Cow::Borrowed(&[])),
            code: code.into(),
            compression: Compression::None,
        }
    }

    /// Makes an entry of a cubin. Its ELF header gives the ABI's version and the size of addresses; for `sm_100` and later the
    /// entry has a copy of the section `.nv.compat`.
    ///
    /// # Errors
    ///
    /// [`Malformed`](crate::ErrorKind::Malformed) for what is not a cubin, and for one of another SM number.
    pub fn cubin(architecture: Architecture, cubin: &'a [u8]) -> Result<Self, Error> {
        let facts = Cubin::parse(cubin)?;
        if facts.sm != architecture.sm {
            let found = facts.sm;
            let message = format!("the cubin is for sm_{found}, expected one for {architecture}");
            return Err(Error::malformed(message));
        }
        let mut entry = Self::new(Kind::ELF, architecture, cubin);
        entry.code_version = (1, facts.abi_version.into());
        entry.flags.set(Flags::BITS_64, facts.is_64);
        if facts.sm >= 100 && facts.compat.is_some() {
            entry.options = facts.compat.map(Cow::Borrowed);
            entry.flags |= Flags::COMPAT;
        }
        Ok(entry)
    }

    /// Makes an entry of PTX, which may be for an earlier architecture than it says in `.target`. The text is stored as
    /// `fatbinary` 13.5 does: without comments and without blanks that follow others or start a line, with a NUL at its end.
    /// `.version` gives the version, `.address_size` the size of addresses.
    ///
    /// ```
    /// use nv_fatbin::{Architecture, NewEntry};
    ///
    /// let text = b".version 8.7 // of CUDA 12.8\n.target  sm_90a\n\t.address_size 64\n";
    /// let architecture = Architecture::of_ptx(text).ok_or("no .target")?;
    /// let entry = NewEntry::ptx(architecture, text)?;
    /// assert_eq!((entry.sm, entry.code_version), (90, (8, 7)));
    /// assert_eq!(*entry.code, *b".version 8.7 \n.target sm_90a\n.address_size 64\n\0");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Malformed`](crate::ErrorKind::Malformed) for text without `.version`.
    pub fn ptx(architecture: Architecture, text: &[u8]) -> Result<Self, Error> {
        let code_version = ptx::version(text)?;
        let mut entry = Self::new(Kind::PTX, architecture, ptx::normalize(text));
        entry.code_version = code_version;
        entry.flags.set(Flags::BITS_64, ptx::is_64(&entry.code));
        Ok(entry)
    }

    /// Makes an entry of LTO-IR, whose header gives the version. It is stored without the scrambling of `fatbinary`, which
    /// NVIDIA's linker does not need.
    ///
    /// # Errors
    ///
    /// [`Malformed`](crate::ErrorKind::Malformed) for what is not LTO-IR.
    pub fn lto_ir(architecture: Architecture, code: &'a [u8]) -> Result<Self, Error> {
        let version = code.strip_prefix(&LTO_IR).and_then(|rest| rest.first_chunk());
        let [major, minor]: [u8; 2] = *version
            .ok_or_else(|| Error::malformed("expected LTO-IR: ed 43 4e 7f, and its version"))?;
        let mut entry = Self::new(Kind::LTO_IR, architecture, code);
        entry.code_version = (major.into(), minor.into());
        entry.flags |= Flags::BITS_64;
        Ok(entry)
    }

    /// Makes an entry of several images that are compressed as one. [`concatenate`](crate::concatenate) does so with
    /// entries that `fatbinary --concat` joins.
    ///
    /// ```
    /// use nv_fatbin::{Architecture, Compression, Fatbin, Flags, Kind, NewEntry, NewFatbin};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let image = |name| Some(NewEntry::new(Kind::ELF, Architecture::from_name(name)?, b"code".as_slice()));
    /// let images = [image("sm_80"), image("sm_90a")].map(Option::unwrap);
    /// let entry = NewEntry::concatenated(&images)?.with_compression(Compression::Lz4(3));
    /// let mut fatbin = NewFatbin::new();
    /// fatbin.add(&entry)?;
    /// let fatbin = fatbin.to_vec()?;
    /// let entry = Fatbin::parse(&fatbin)?.entries().next().unwrap()?;
    /// let names = entry.concatenated()?.iter().map(|image| image.architecture().to_string()).collect::<Vec<_>>();
    /// assert_eq!(names, ["sm_80", "sm_90a"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// - [`Unsupported`](crate::ErrorKind::Unsupported) for an image that is itself several,
    /// - [`Limit`](crate::ErrorKind::Limit) for more bytes than the format has numbers for.
    pub fn concatenated(images: &[NewEntry<'_>]) -> Result<NewEntry<'static>, Error> {
        let (mut records, mut code) = (Vec::new(), Vec::new());
        let mut flags = images.first().map_or(Flags::empty(), |image| image.flags);
        for image in images {
            if image.kind == Kind::CONCATENATED {
                return Err(of_several());
            }
            flags &= image.flags;
            let mut extension = Vec::new();
            let identifier_at = image.put_identifier(&mut extension)?;
            let options = image.put_options(&mut extension)?;
            let header = EntryHeader {
                header_size: number("concatenated code", code.len())?.into(),
                payload_size: (image.code.len().next_multiple_of(8) as u64).into(),
                flags: image.flags.difference(Flags::CODECS).bits().into(),
                ..image.header(identifier_at, options)?
            };
            records.extend_from_slice(header.as_bytes());
            records.extend(extension);
            reserve(&mut code, image.code.len() + 8)?;
            code.extend_from_slice(&image.code);
            code.resize(code.len().next_multiple_of(8), 0);
        }
        let count = number("table of images", images.len())?;
        Ok(NewEntry {
            kind: Kind::CONCATENATED,
            sm: 0,
            flags: flags.difference(Flags::CODECS | OF_ONE_IMAGE),
            code_version: (0, 1),
            identifier: None,
            options: Some(table(count, &records)?.into()),
            code: code.into(),
            compression: Compression::None,
        })
    }

    /// Adds flags, such as the flag of the host.
    #[must_use]
    pub fn with_flags(mut self, flags: Flags) -> Self {
        self.flags |= flags;
        self
    }

    /// Sets the identifier.
    #[must_use]
    pub fn with_identifier(mut self, identifier: impl Into<Cow<'a, [u8]>>) -> Self {
        self.identifier = Some(identifier.into());
        self
    }

    /// Sets the options.
    #[must_use]
    pub fn with_options(mut self, options: impl Into<Cow<'a, [u8]>>) -> Self {
        self.options = Some(options.into());
        self
    }

    /// Sets how the code is stored.
    #[must_use]
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Returns the bytes of the entry.
    pub(crate) fn to_vec(&self) -> Result<Vec<u8>, Error> {
        let has_table = self.options.as_ref().is_some_and(|table| table.len() >= 8);
        if self.kind == Kind::CONCATENATED && !has_table {
            return Err(of_several());
        }
        let mut extension = Vec::new();
        let identifier_at = self.put_identifier(&mut extension)?;
        let options = self.put_options(&mut extension)?;
        let stored = Stored::new(&self.code, self.compression)?;
        let padded = stored.payload.len().next_multiple_of(8);
        let header = EntryHeader {
            header_size: place(&extension)?.into(),
            payload_size: (padded as u64).into(),
            compressed_size: stored.compressed_size.into(),
            flags: (self.flags.difference(Flags::CODECS) | stored.codec).bits().into(),
            uncompressed_size: stored.size.into(),
            ..self.header(identifier_at, options)?
        };
        let mut bytes = Vec::new();
        reserve(&mut bytes, HEADER + extension.len() + padded)?;
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend(extension);
        bytes.extend_from_slice(&stored.payload);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        Ok(bytes)
    }

    /// Adds the identifier to the extension of a header, and returns its place; 0 if there is none.
    fn put_identifier(&self, extension: &mut Vec<u8>) -> Result<u32, Error> {
        let Some(text) = &self.identifier else { return Ok(0) };
        let at = place(extension)?;
        extend(extension, &[text])?;
        Ok(at)
    }

    /// Adds the options in the same way.
    fn put_options(&self, extension: &mut Vec<u8>) -> Result<u32, Error> {
        let Some(text) = &self.options else { return Ok(0) };
        let at = place(extension)?;
        if self.kind == Kind::CONCATENATED {
            extension.extend_from_slice(text);
            return Ok(at);
        }
        let text_at = at.checked_add(8);
        let text_at = text_at.ok_or_else(|| Error::too_large("header", extension.len()))?;
        let compat: &[u8] = if self.flags.contains(Flags::COMPAT) { &[0] } else { &[] };
        let len = number("options", text.len())?.into();
        extension.extend_from_slice(OptionsHeader { at: text_at.into(), len }.as_bytes());
        extend(extension, &[compat, text])?;
        Ok(at)
    }

    /// Returns a header with what does not depend on how the code is stored.
    fn header(&self, identifier_at: u32, options: u32) -> Result<EntryHeader, Error> {
        let identifier = self.identifier.as_deref().unwrap_or_default();
        Ok(EntryHeader {
            kind: self.kind.0.into(),
            version: VERSION.into(),
            options: options.into(),
            minor: self.code_version.1.into(),
            major: self.code_version.0.into(),
            sm: self.sm.into(),
            identifier: identifier_at.into(),
            identifier_len: number("identifier", identifier.len())?.into(),
            ..EntryHeader::new_zeroed()
        })
    }
}

/// Joins images as `fatbinary --concat` does, which go last: PTX, then cubins, then cubins with [`Flags::COMPAT`], where there are
/// two or more of these. All others stay as they are.
///
/// ```
/// use nv_fatbin::{Architecture, Kind, NewEntry, concatenate};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let entry = |name, kind| Some(NewEntry::new(kind, Architecture::from_name(name)?, b"code".as_slice()));
/// let entries = [("sm_80", Kind::ELF), ("sm_90", Kind::ELF), ("sm_90", Kind::PTX)];
/// let entries = entries.into_iter().map(|(name, kind)| entry(name, kind).ok_or("a name")).collect::<Result<_, _>>()?;
/// let kinds: Vec<Kind> = concatenate(entries)?.iter().map(|entry| entry.kind).collect();
/// assert_eq!(kinds, [Kind::PTX, Kind::CONCATENATED]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Errors of [`NewEntry::concatenated`].
pub fn concatenate(entries: Vec<NewEntry<'_>>) -> Result<Vec<NewEntry<'_>>, Error> {
    let group = |entry: &NewEntry<'_>| match entry.kind {
        Kind::PTX => Some(0),
        Kind::ELF if !entry.flags.contains(Flags::COMPAT) => Some(1),
        Kind::ELF => Some(2),
        _ => None,
    };
    let members = |number| entries.iter().filter(move |entry| group(entry) == Some(number));
    let joined: Vec<usize> = (0..3).filter(|number| members(*number).nth(1).is_some()).collect();
    let several = joined.iter().map(|number| {
        let images: Vec<_> = members(*number).cloned().collect();
        NewEntry::concatenated(&images)
    });
    let several = several.collect::<Result<Vec<_>, _>>()?;
    let is_joined =
        |entry: &NewEntry<'_>| group(entry).is_some_and(|number| joined.contains(&number));
    let mut all: Vec<_> = entries.into_iter().filter(|entry| !is_joined(entry)).collect();
    all.extend(several);
    Ok(all)
}

/// Returns the place where the extension of a header goes on.
fn place(extension: &[u8]) -> Result<u32, Error> {
    number("header", HEADER + extension.len())
}

/// Returns the table of several images.
pub(crate) fn table(count: u32, records: &[u8]) -> Result<Vec<u8>, Error> {
    let size = number("table of images", records.len() + 8)?;
    let header = TableHeader { count: count.into(), size: size.into() };
    Ok([header.as_bytes(), records].concat())
}

/// Appends texts that a NUL ends, padded.
fn extend(extension: &mut Vec<u8>, texts: &[&[u8]]) -> Result<(), Error> {
    let size = texts.iter().map(|text| text.len()).sum::<usize>() + 8;
    reserve(extension, size)?;
    texts.iter().for_each(|text| extension.extend_from_slice(text));
    extension.push(0);
    extension.resize(extension.len().next_multiple_of(8), 0);
    Ok(())
}

/// Returns the error of an image of several that is itself several.
#[cold]
fn of_several() -> Error {
    let message =
        "several images are written from NewEntry::concatenated, and none of them is several";
    Error::new(ErrorKind::Unsupported, message)
}
