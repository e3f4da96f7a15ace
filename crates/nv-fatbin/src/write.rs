//! Entries and fatbinaries to be written.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::ops::Range;

use crate::cubin::Cubin;
use crate::entry::{Entry, HEADER};
use crate::error::{Error, Problem};
use crate::kinds::{Architecture, Flags, Kind};
use crate::{MAGIC, ptx, to_u64};

/// The version of an entry in every file seen.
const VERSION: u16 = 0x101;

/// The form in which the code of an entry is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// As it is.
    #[default]
    None,
    /// As an LZ4 block, which every driver for CUDA 11 and later reads. The bytes are not those of `fatbinary`, which compresses
    /// harder.
    Lz4,
    /// As a Zstandard frame of this level, which drivers for CUDA 12.4 and later read. With libzstd 1.5.7 the bytes are those of
    /// `fatbinary` 13.5. Needs the feature `zstd`.
    Zstd(i32),
}

/// The modes of `fatbinary --compress-mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompressionMode {
    /// Zstandard of level 5, for all but most cubins: `default` and `balance`.
    #[default]
    Default,
    /// Zstandard of level 19, for everything.
    Size,
    /// LZ4, for all but most cubins.
    Speed,
    /// Nothing is compressed.
    None,
}

impl CompressionMode {
    /// Returns how `fatbinary` 13.5 stores code of a kind. A cubin is compressed where everything is, with [`Flags::DEBUG`]
    /// (`-g`), and as relocatable code (`-c`).
    ///
    /// ```
    /// use nv_fatbin::{Compression, CompressionMode, Flags, Kind};
    ///
    /// let mode = CompressionMode::Default;
    /// assert_eq!(mode.compression(Kind::PTX, Flags::empty(), false), Compression::Zstd(5));
    /// assert_eq!(mode.compression(Kind::ELF, Flags::empty(), false), Compression::None);
    /// assert_eq!(mode.compression(Kind::ELF, Flags::DEBUG, false), Compression::Zstd(5));
    /// ```
    #[must_use]
    pub fn compression(self, kind: Kind, flags: Flags, is_relocatable: bool) -> Compression {
        let is_plain_cubin = kind == Kind::ELF && !flags.contains(Flags::DEBUG) && !is_relocatable;
        match self {
            CompressionMode::Size => Compression::Zstd(19),
            CompressionMode::Default if !is_plain_cubin => Compression::Zstd(5),
            CompressionMode::Speed if !is_plain_cubin => Compression::Lz4,
            _ => Compression::None,
        }
    }
}

/// An entry to be written.
///
/// [`cubin`](Self::cubin) and [`ptx`](Self::ptx) fill in what `fatbinary` derives from a file; [`new`](Self::new) does not look at
/// the code. All fields can be changed before the entry is [added](NewFatbin::add).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewEntry<'a> {
    /// The kind of code. For [`Kind::CONCATENATED`] see [`concatenated`](Self::concatenated).
    pub kind: Kind,
    /// The SM number; its suffix is in the flags.
    pub sm: u32,
    /// The flags. Those that name a codec are set by the compression alone.
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

impl<'a> NewEntry<'a> {
    /// Makes an entry of code of any kind, for an architecture. The flags are only that of the architecture's suffix. All
    /// kinds but cubins have options, which are empty here.
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
            return Err(Problem::OtherArchitecture { architecture, found: facts.sm }.into());
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

    /// Makes an entry of several images that are compressed as one, as `fatbinary --concat` does with all cubins but those
    /// with [`Flags::COMPAT`].
    ///
    /// ```
    /// use nv_fatbin::{Architecture, Compression, Fatbin, Flags, Kind, NewEntry, NewFatbin};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let image = |name| Some(NewEntry::new(Kind::ELF, Architecture::from_name(name)?, b"code".as_slice()));
    /// let images = [image("sm_80"), image("sm_90a")].map(Option::unwrap);
    /// let entry = NewEntry::concatenated(&images)?.compression(Compression::Lz4);
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
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for images with options, which have no place there.
    pub fn concatenated(images: &[NewEntry<'_>]) -> Result<NewEntry<'static>, Error> {
        let (mut records, mut code) = (Vec::new(), Vec::new());
        let mut flags = images.first().map_or(Flags::empty(), |image| image.flags);
        for image in images {
            if image.options.is_some() || image.kind == Kind::CONCATENATED {
                return Err(Problem::Concatenated.into());
            }
            flags &= image.flags;
            let mut identifier = Vec::new();
            let identifier_at = image.put_identifier(&mut identifier)?;
            let header = Header {
                header_size: number("concatenated code", code.len())?,
                payload_size: to_u64(image.code.len().next_multiple_of(8)),
                identifier_at,
                flags: image.flags.difference(Flags::CODECS),
                compressed_size: 0,
                options: 0,
                size: 0,
            };
            image.put(&header, &mut records)?;
            records.extend(identifier);
            reserve(&mut code, image.code.len().saturating_add(8))?;
            code.extend_from_slice(&image.code);
            code.resize(code.len().next_multiple_of(8), 0);
        }
        let count = number("table of images", images.len())?;
        Ok(NewEntry {
            kind: Kind::CONCATENATED,
            sm: 0,
            flags: flags
                .difference(Flags::CODECS | Flags::ARCHITECTURE_SPECIFIC | Flags::FAMILY_SPECIFIC),
            code_version: (0, 1),
            identifier: None,
            options: Some(table(count, &records)?.into()),
            code: code.into(),
            compression: Compression::None,
        })
    }

    /// Adds flags, such as that of the host.
    #[must_use]
    pub fn flags(mut self, flags: Flags) -> Self {
        self.flags |= flags;
        self
    }

    /// Sets the identifier.
    #[must_use]
    pub fn identifier(mut self, identifier: impl Into<Cow<'a, [u8]>>) -> Self {
        self.identifier = Some(identifier.into());
        self
    }

    /// Sets the options.
    #[must_use]
    pub fn options(mut self, options: impl Into<Cow<'a, [u8]>>) -> Self {
        self.options = Some(options.into());
        self
    }

    /// Sets how the code is stored.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Returns the bytes of the entry.
    fn to_vec(&self) -> Result<Vec<u8>, Error> {
        let has_table = self.options.as_ref().is_some_and(|table| table.len() >= 8);
        if self.kind == Kind::CONCATENATED && !has_table {
            return Err(Problem::Concatenated.into());
        }
        let mut extension = Vec::new();
        let identifier_at = self.put_identifier(&mut extension)?;
        let options = self.put_options(&mut extension)?;
        let stored = Stored::new(&self.code, self.compression)?;
        let padded = stored.payload.len().next_multiple_of(8);
        let header = Header {
            header_size: place(&extension)?,
            payload_size: to_u64(padded),
            compressed_size: stored.compressed_size,
            options,
            identifier_at,
            flags: self.flags.difference(Flags::CODECS) | stored.codec,
            size: stored.size,
        };
        let mut bytes = Vec::new();
        reserve(&mut bytes, HEADER.saturating_add(extension.len()).saturating_add(padded))?;
        self.put(&header, &mut bytes)?;
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
        let text_at = at
            .checked_add(8)
            .ok_or(Problem::Field { what: "header", size: to_u64(extension.len()) })?;
        let compat: &[u8] = if self.flags.contains(Flags::COMPAT) { &[0] } else { &[] };
        extension.extend(text_at.to_le_bytes());
        extension.extend(number("options", text.len())?.to_le_bytes());
        extend(extension, &[compat, text])?;
        Ok(at)
    }

    /// Writes a header without its extension.
    fn put(&self, header: &Header, bytes: &mut Vec<u8>) -> Result<(), Error> {
        let identifier = self.identifier.as_deref().unwrap_or_default();
        bytes.extend(self.kind.0.to_le_bytes());
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(header.header_size.to_le_bytes());
        bytes.extend(header.payload_size.to_le_bytes());
        bytes.extend(header.compressed_size.to_le_bytes());
        bytes.extend(header.options.to_le_bytes());
        bytes.extend(self.code_version.1.to_le_bytes());
        bytes.extend(self.code_version.0.to_le_bytes());
        bytes.extend(self.sm.to_le_bytes());
        bytes.extend(header.identifier_at.to_le_bytes());
        bytes.extend(number("identifier", identifier.len())?.to_le_bytes());
        bytes.extend(header.flags.bits().to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(header.size.to_le_bytes());
        Ok(())
    }
}

/// The fields of a header that its extension and payload give. In the record of one of several images the place of its code
/// stands for the size of the header.
struct Header {
    header_size: u32,
    payload_size: u64,
    compressed_size: u32,
    options: u32,
    identifier_at: u32,
    flags: Flags,
    size: u64,
}

/// Returns the place where the extension of a header goes on.
fn place(extension: &[u8]) -> Result<u32, Error> {
    number("header", HEADER.saturating_add(extension.len()))
}

/// Returns the table of several images.
fn table(count: u32, records: &[u8]) -> Result<Vec<u8>, Error> {
    let size = number("table of images", records.len().saturating_add(8))?;
    Ok([&count.to_le_bytes()[..], &size.to_le_bytes(), records].concat())
}

/// Code as an entry stores it.
struct Stored<'c> {
    payload: Cow<'c, [u8]>,
    /// The flag of the codec; none for code that is not compressed.
    codec: Flags,
    compressed_size: u32,
    size: u64,
}

impl<'c> Stored<'c> {
    fn new(code: &'c [u8], compression: Compression) -> Result<Self, Error> {
        let (payload, codec) = match compression {
            Compression::None => (Cow::Borrowed(code), Flags::empty()),
            Compression::Lz4 => (Cow::Owned(lz4(code)?), Flags::LZ4),
            Compression::Zstd(level) => (Cow::Owned(zstd(code, level)?), Flags::ZSTD),
        };
        let (compressed_size, size) = if codec.is_empty() {
            (0, 0)
        } else {
            (number("compressed code", payload.len())?, to_u64(code.len()))
        };
        Ok(Stored { payload, codec, compressed_size, size })
    }
}

impl Entry<'_> {
    /// Returns the bytes of this entry with its code stored in another form. All other fields keep their values.
    ///
    /// Code that is not compressed has no exact size: the zeros that fill it up to a multiple of 8 count as a part of it, but
    /// not after PTX. So an entry that is compressed and then decompressed has the bytes that it had. One that is decompressed
    /// and then compressed has them if encoder and level are those of the tool that wrote it.
    ///
    /// `max` limits the size of the code, in bytes.
    ///
    /// ```
    /// use nv_fatbin::{Architecture, Compression, Fatbin, NewEntry, NewFatbin};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let text = b".version 8.7\n.target sm_90\n.address_size 64\n";
    /// let entry = NewEntry::ptx(Architecture::from_name("sm_90").ok_or("a name")?, text)?;
    /// let mut fatbin = NewFatbin::new();
    /// fatbin.add(&entry)?;
    /// fatbin.add(&entry.compression(Compression::Lz4))?;
    /// let fatbin = fatbin.to_vec()?;
    /// let entries = Fatbin::parse(&fatbin)?.entries().collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(entries[0].stored_as(Compression::Lz4, 1 << 20)?, entries[1].bytes().unwrap());
    /// assert_eq!(entries[1].stored_as(Compression::None, 1 << 20)?, entries[0].bytes().unwrap());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`decompress`](Self::decompress) and of [`NewFatbin::add`].
    pub fn stored_as(&self, compression: Compression, max: u64) -> Result<Vec<u8>, Error> {
        let index = self.index();
        let whole = self.whole()?;
        let code = match self.codec() {
            Some(_) => self.decompress(max)?,
            None => Cow::Borrowed(self.unpadded()),
        };
        let stored = Stored::new(&code, compression).map_err(|error| error.of_entry(index))?;
        self.assemble(whole.get(..self.header_len()).unwrap_or_default(), &stored)
    }

    /// Returns the bytes of this entry of kind [`CONCATENATED`](Kind::CONCATENATED) with some of its images only, in
    /// their order. `keeps` gets the position of each. `None` if none is kept.
    ///
    /// `max` limits the size of the code, in bytes.
    ///
    /// # Errors
    ///
    /// Those of [`decompress`](Self::decompress), of [`concatenated`](Self::concatenated) and of [`NewFatbin::add`].
    pub fn with_images(
        &self,
        keeps: impl Fn(usize) -> bool,
        compression: Compression,
        max: u64,
    ) -> Result<Option<Vec<u8>>, Error> {
        let images = self.concatenated()?;
        let kept =
            || images.iter().enumerate().filter(|(at, _)| keeps(*at)).map(|(_, image)| image);
        if kept().next().is_none() {
            return Ok(None);
        }
        let old = self.decompress(max)?;
        let (mut records, mut code) = (Vec::new(), Vec::new());
        reserve(&mut code, old.len())?;
        for image in kept() {
            image.add_to(&mut records, number("concatenated code", code.len())?);
            // The table was checked against the size of the code.
            let Range { start, end } = image.range();
            let place = usize::try_from(start).ok().zip(usize::try_from(end).ok());
            let bytes = place.and_then(|(start, end)| old.get(start..end));
            code.extend_from_slice(bytes.unwrap_or_default());
            code.resize(code.len().next_multiple_of(8), 0);
        }
        let start = usize::try_from(self.options_at()).unwrap_or(usize::MAX);
        let mut header = self.whole()?.get(..start).unwrap_or_default().to_vec();
        header.extend(table(number("table of images", kept().count())?, &records)?);
        let stored =
            Stored::new(&code, compression).map_err(|error| error.of_entry(self.index()))?;
        self.assemble(&header, &stored).map(Some)
    }

    /// Returns the bytes of this entry with another header and other code.
    fn assemble(&self, header: &[u8], stored: &Stored<'_>) -> Result<Vec<u8>, Error> {
        let flags = self.flags().difference(Flags::CODECS) | stored.codec;
        let padded = stored.payload.len().next_multiple_of(8);
        let mut bytes = Vec::new();
        reserve(&mut bytes, header.len().saturating_add(padded))?;
        bytes.extend_from_slice(header);
        bytes.extend_from_slice(&stored.payload);
        bytes.resize(header.len().saturating_add(padded), 0);
        let fields: [(usize, &[u8]); 5] = [
            (4, &number("header", header.len())?.to_le_bytes()),
            (8, &to_u64(padded).to_le_bytes()),
            (16, &stored.compressed_size.to_le_bytes()),
            (40, &flags.bits().to_le_bytes()),
            (56, &stored.size.to_le_bytes()),
        ];
        for (at, value) in fields {
            bytes.iter_mut().skip(at).zip(value).for_each(|(byte, value)| *byte = *value);
        }
        Ok(bytes)
    }
}

/// A fatbinary to be written: entries of others as they are, and new ones.
///
/// An edit reads a fatbinary, keeps some of its entries, and adds others:
///
/// ```
/// use nv_fatbin::{Architecture, Fatbin, Flags, Kind, NewEntry, NewFatbin};
///
/// # fn main() -> Result<(), nv_fatbin::Error> {
/// # let mut file = NewFatbin::new();
/// # for name in ["sm_80", "sm_90"] {
/// #     let architecture = Architecture::from_name(name).unwrap();
/// #     file.add(&NewEntry::new(Kind::ELF, architecture, b"code".as_slice()))?;
/// # }
/// # let file = file.to_vec()?;
/// let mut edited = NewFatbin::new();
/// for entry in Fatbin::parse(&file)?.entries() {
///     let entry = entry?;
///     if entry.architecture().sm() >= 90 {
///         edited.keep(&entry)?;
///     }
/// }
/// let ptx = b".version 8.7\n.target sm_90\n.address_size 64\n";
/// if let Some(architecture) = Architecture::of_ptx(ptx) {
///     edited.add(&NewEntry::ptx(architecture, ptx)?.flags(Flags::LINUX))?;
/// }
/// let edited = edited.to_vec()?;
/// assert_eq!(Fatbin::parse(&edited)?.entries().count(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct NewFatbin<'a> {
    entries: Vec<Cow<'a, [u8]>>,
}

impl<'a> NewFatbin<'a> {
    /// Makes a fatbinary without entries, which is valid.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an entry of another fatbinary, byte for byte.
    ///
    /// # Errors
    ///
    /// [`Incomplete`](crate::ErrorKind::Incomplete) if it is not in memory.
    pub fn keep(&mut self, entry: &Entry<'a>) -> Result<(), Error> {
        self.entries.push(Cow::Borrowed(entry.whole()?));
        Ok(())
    }

    /// Adds a new entry, compressed now.
    ///
    /// # Errors
    ///
    /// - [`Unsupported`](crate::ErrorKind::Unsupported) for a kind that cannot be written, and for Zstandard in a build without
    ///   libzstd,
    /// - [`Limit`](crate::ErrorKind::Limit) for more bytes than the format has numbers for,
    /// - [`Memory`](crate::ErrorKind::Memory).
    pub fn add(&mut self, entry: &NewEntry<'_>) -> Result<(), Error> {
        let bytes = entry.to_vec().map_err(|error| error.of_entry(self.entries.len()))?;
        self.entries.push(Cow::Owned(bytes));
        Ok(())
    }

    /// Returns the header, which comes first in the file.
    #[must_use]
    pub fn header(&self) -> [u8; 16] {
        let size: u64 = self.entries.iter().map(|entry| to_u64(entry.len())).sum();
        let mut header = [0; 16];
        let fields = [&MAGIC[..], &[1, 0, 16, 0], &size.to_le_bytes()].concat();
        header.iter_mut().zip(fields).for_each(|(byte, value)| *byte = value);
        header
    }

    /// Iterates over the bytes of each entry, which follow the header.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.entries.iter().map(|entry| &**entry)
    }

    /// Returns the fatbinary in memory.
    ///
    /// # Errors
    ///
    /// [`Memory`](crate::ErrorKind::Memory).
    pub fn to_vec(&self) -> Result<Vec<u8>, Error> {
        let header = self.header();
        let size = self.entries().map(<[u8]>::len).fold(header.len(), usize::saturating_add);
        let mut bytes = Vec::new();
        reserve(&mut bytes, size)?;
        bytes.extend(header);
        self.entries().for_each(|entry| bytes.extend_from_slice(entry));
        Ok(bytes)
    }
}

/// Appends texts that a NUL ends, padded.
fn extend(extension: &mut Vec<u8>, texts: &[&[u8]]) -> Result<(), Error> {
    let size = texts.iter().map(|text| text.len()).fold(8, usize::saturating_add);
    reserve(extension, size)?;
    texts.iter().for_each(|text| extension.extend_from_slice(text));
    extension.push(0);
    extension.resize(extension.len().next_multiple_of(8), 0);
    Ok(())
}

fn reserve(bytes: &mut Vec<u8>, size: usize) -> Result<(), Error> {
    bytes.try_reserve(size).map_err(|_| Problem::OutOfMemory { size: to_u64(size) }.into())
}

/// Returns a size as the format has it, in 32 bits.
fn number(what: &'static str, size: usize) -> Result<u32, Error> {
    u32::try_from(size).map_err(|_| Problem::Field { what, size: to_u64(size) }.into())
}

fn lz4(code: &[u8]) -> Result<Vec<u8>, Error> {
    let mut payload = Vec::new();
    let most = lz4_flex::block::get_maximum_output_size(code.len());
    reserve(&mut payload, most)?;
    payload.resize(most, 0);
    let len = lz4_flex::block::compress_into(code, &mut payload)
        .map_err(|_| Problem::OutOfMemory { size: to_u64(most) })?;
    payload.truncate(len);
    Ok(payload)
}

/// Compresses to one frame with its size and without a checksum.
#[cfg(feature = "zstd")]
fn zstd(code: &[u8], level: i32) -> Result<Vec<u8>, Error> {
    let mut payload = Vec::new();
    let most = zstd::zstd_safe::compress_bound(code.len());
    reserve(&mut payload, most)?;
    payload.resize(most, 0);
    let len = zstd::bulk::compress_to_buffer(code, &mut payload, level)
        .map_err(|_| Problem::OutOfMemory { size: to_u64(most) })?;
    payload.truncate(len);
    Ok(payload)
}

#[cfg(not(feature = "zstd"))]
fn zstd(_: &[u8], _: i32) -> Result<Vec<u8>, Error> {
    Err(Problem::NoEncoder.into())
}
