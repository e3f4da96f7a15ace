//! The header and the table of a pack.

use alloc::collections::btree_map::Entry as Slot;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use codecs::zstd;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{Error, ErrorKind};
use crate::msgpack::{Reader, shown};

/// The first bytes of a kernel pack.
pub const MAGIC: [u8; 4] = *b"KPAK";
/// The bytes of the header; the blob starts after them.
pub const HEADER: u64 = 64;
/// The bytes of [`Header`].
pub(crate) const SAYS: usize = 16;
/// The largest table that is read.
const MOST_OF_TABLE: u64 = 256 << 20;

/// Start of a pack, little-endian and unaligned. The rest of the header is zero.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    /// [`MAGIC`].
    pub(crate) magic: [u8; 4],
    /// Version: 1.
    pub(crate) version: U32,
    /// Offset of the table, which ends with the pack.
    pub(crate) table_offset: U64,
}

/// Returns the range of the table in a pack of this length. `head` is its start: 16 bytes are enough.
///
/// # Errors
///
/// [`Magic`](ErrorKind::Magic), [`Unsupported`](ErrorKind::Unsupported) for versions other than 1,
/// [`Truncated`](ErrorKind::Truncated) and [`Malformed`](ErrorKind::Malformed): the table lies in the header, or after the end;
/// [`Limit`](ErrorKind::Limit): it has more than 256 MiB.
pub fn toc_range(head: &[u8], len: u64) -> Result<Range<u64>, Error> {
    if !head.starts_with(&MAGIC) {
        return Err(Error::new(ErrorKind::Magic, 0, "kernel pack: expected the magic KPAK"));
    }
    let Ok((header, _)) = Header::ref_from_prefix(head) else {
        let text = format!("kernel pack: expected a header of {SAYS} bytes, found {}", head.len());
        return Err(Error::new(ErrorKind::Truncated, 0, text));
    };
    let (version, offset) = (header.version.get(), header.table_offset.get());
    if version != 1 {
        let text = format!("kernel pack: expected version 1, found {version}");
        return Err(Error::new(ErrorKind::Unsupported, 4, text));
    }
    if offset < SAYS as u64 || offset >= len {
        let text =
            format!("kernel pack: expected a table between {SAYS} and {len}, found {offset}");
        let kind = if offset >= len { ErrorKind::Truncated } else { ErrorKind::Malformed };
        return Err(Error::new(kind, 8, text));
    }
    let size = len - offset;
    if size > MOST_OF_TABLE {
        let text =
            format!("kernel pack: the table has {size} bytes: at most {MOST_OF_TABLE} are read");
        return Err(Error::new(ErrorKind::Limit, offset, text));
    }
    Ok(offset..len)
}

/// The compression of a pack.
///
/// Exhaustive: a new compression must stop the build of a caller that stores code objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `none`: code objects as they are.
    Plain,
    /// `zstd-per-kernel`: a Zstandard frame for each.
    Zstd,
}

impl Scheme {
    /// Returns the name in the table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Plain => "none",
            Scheme::Zstd => "zstd-per-kernel",
        }
    }
}

/// The most targets of a pack. AMD has fewer than a hundred processors, with a few settings of features each.
const MOST_ARCHS: usize = 1 << 16;

/// The keys of a table that the format knows.
pub(crate) const KNOWN: [&str; 9] = [
    "format_version",
    "group_name",
    "gfx_arch_family",
    "gfx_arches",
    "toc",
    "compression_scheme",
    "blobs",
    "zstd_offset",
    "zstd_size",
];

/// The table of a pack.
#[derive(Clone)]
pub struct Toc {
    pub(crate) group: String,
    pub(crate) family: String,
    pub(crate) archs: Vec<String>,
    pub(crate) scheme: Scheme,
    pub(crate) entries: Vec<Entry>,
    /// The keys of entries, with the numbers of their entries in the order of targets. The last one of a target counts.
    by_key: BTreeMap<Arc<str>, Vec<usize>>,
    /// Keys that are not known, with their values.
    pub(crate) others: Vec<(String, Vec<u8>)>,
    pub(crate) blobs: Vec<Range<u64>>,
    pub(crate) zstd: Range<u64>,
    pub(crate) offset: u64,
    /// Keys and targets that are there twice.
    pub(crate) doubled: Vec<(u64, String)>,
}

impl fmt::Debug for Toc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toc")
            .field("group", &self.group)
            .field("family", &self.family)
            .field("archs", &self.archs)
            .field("scheme", &self.scheme)
            .field("entries", &self.entries)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

/// A code object in the table.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// Shared by the entries of a key: a long key with many targets costs no more than its bytes in the file.
    pub(crate) key: Arc<str>,
    pub(crate) arch: String,
    pub(crate) kind: String,
    pub(crate) ordinal: u64,
    pub(crate) original_size: u64,
    /// The map `metadata`.
    pub(crate) metadata: Option<Vec<u8>>,
    /// Keys that are not known, with their values, one after the other, and their number.
    pub(crate) others: (usize, Vec<u8>),
    /// The place in the table.
    pub(crate) offset: u64,
    /// `true` if `gfx_arches` has the target.
    pub(crate) is_listed: bool,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("key", &self.key)
            .field("arch", &self.arch)
            .field("kind", &self.kind)
            .field("ordinal", &self.ordinal)
            .field("original_size", &self.original_size)
            .finish_non_exhaustive()
    }
}

impl Entry {
    /// Returns what errors call it.
    pub(crate) fn name(&self) -> String {
        format!("{} for {}", shown(&self.key), shown(&self.arch))
    }

    /// Returns what is wrong with the header of its frame, which lies at this place.
    pub(crate) fn frame_fault(&self, at: u64, frame: &[u8]) -> Option<Error> {
        let fault = |kind, text: String| {
            Some(Error::new(kind, at, format!("toc: {}: {text}", self.name())))
        };
        match zstd::content_size(frame) {
            Some(size) if size == self.original_size => None,
            Some(size) => fault(
                ErrorKind::Codec,
                format!("expected a frame of {} bytes of code, found {size}", self.original_size),
            ),
            None if frame.starts_with(&zstd::MAGIC) => {
                let text = "the frame does not say its size, so that AMD's Python tools refuse it";
                fault(ErrorKind::Unreachable, text.to_string())
            }
            None => fault(ErrorKind::Codec, "expected a Zstandard frame".to_string()),
        }
    }

    /// Returns the key: `lib/libfoo.so#0`.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the name of the library that it was split from, as the library's marker has it.
    #[must_use]
    pub fn kernel_name(&self) -> &str {
        self.key.rsplit_once('#').map_or(&self.key, |(name, _)| name)
    }

    /// Returns the number of the wrapper that it was registered by; `None` if the key does not end in `#` and a number of 32 bits
    /// as loaders write it: decimal, without sign and leading zeros.
    #[must_use]
    pub fn index(&self) -> Option<u64> {
        let digits = self.key.rsplit_once('#')?.1;
        let is_canonical = digits == "0" || digits.starts_with(|c| ('1'..='9').contains(&c));
        let index: u32 = digits.parse().ok().filter(|_| is_canonical)?;
        Some(index.into())
    }

    /// Returns the target: `gfx942:xnack+`.
    #[must_use]
    pub fn arch(&self) -> &str {
        &self.arch
    }

    /// Returns the type, which is `hsaco` in all packs; empty if the entry has none.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the position among the code objects of the blob. Several entries may have one.
    #[must_use]
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// Returns the size of the code object in bytes, not compressed.
    #[must_use]
    pub fn original_size(&self) -> u64 {
        self.original_size
    }

    /// Returns the MessagePack map `metadata`, as it is in the table; `None` if the entry has none.
    #[must_use]
    pub fn metadata(&self) -> Option<&[u8]> {
        self.metadata.as_deref()
    }

    /// Returns the bundle entry ID that the code object had, if its splitter noted it.
    #[must_use]
    pub fn entry_id(&self) -> Option<String> {
        let mut reader = Reader::new(self.metadata.as_deref()?, self.offset);
        for _ in 0..reader.map("metadata").ok()? {
            if reader.text("metadata").ok()? == "target" {
                return reader.text("target").ok().map(ToString::to_string);
            }
            reader.skip().ok()?;
        }
        None
    }
}

impl Toc {
    /// Parses the table that lies at this offset of the pack, up to its end. Unknown keys are kept.
    ///
    /// # Errors
    ///
    /// [`Truncated`](ErrorKind::Truncated) and [`Malformed`](ErrorKind::Malformed), also for bytes after the map and for missing
    /// keys; [`Unsupported`](ErrorKind::Unsupported) for an unknown scheme.
    pub fn parse(bytes: &[u8], offset: u64) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes, offset);
        let mut toc = Toc {
            group: String::new(),
            family: String::new(),
            archs: Vec::new(),
            scheme: Scheme::Plain,
            entries: Vec::new(),
            by_key: BTreeMap::new(),
            others: Vec::new(),
            blobs: Vec::new(),
            zstd: 0..0,
            offset,
            doubled: Vec::new(),
        };
        let (mut seen, mut zstd_size) = (BTreeSet::new(), 0);
        for _ in 0..reader.map("kernel pack: table")? {
            let at = reader.offset();
            let key = reader.text("kernel pack: a key of the table")?;
            if !seen.insert(key) {
                return Err(Error::malformed(
                    at,
                    format!("kernel pack: the key {} is there twice", shown(key)),
                ));
            }
            match key {
                "format_version" => toc.check_version(&mut reader)?,
                "group_name" => toc.group = reader.text(key)?.to_string(),
                "gfx_arch_family" => toc.family = reader.text(key)?.to_string(),
                "gfx_arches" => {
                    let (at, count) = (reader.offset(), reader.array(key)?);
                    if count > MOST_ARCHS {
                        let text = format!(
                            "gfx_arches: expected at most {MOST_ARCHS} targets, found {count}"
                        );
                        return Err(Error::new(ErrorKind::Limit, at, text));
                    }
                    for _ in 0..count {
                        toc.archs.push(reader.text(key)?.to_string());
                    }
                }
                "toc" => toc.read_entries(&mut reader)?,
                "compression_scheme" => toc.scheme = scheme(&mut reader)?,
                "blobs" => toc.read_blobs(&mut reader)?,
                "zstd_offset" => toc.zstd.start = reader.unsigned(key)?,
                "zstd_size" => zstd_size = reader.unsigned(key)?,
                _ => {
                    let value = reader.skip()?.to_vec();
                    toc.others.push((key.to_string(), value));
                }
            }
        }
        if !reader.is_at_end() {
            let text =
                "kernel pack: expected the end of the file after the table, found more bytes";
            return Err(Error::malformed(reader.offset(), text));
        }
        let mut needed = vec!["group_name", "gfx_arch_family", "gfx_arches", "toc"];
        needed.extend(match toc.scheme {
            Scheme::Plain => &["blobs"][..],
            Scheme::Zstd => &["zstd_offset", "zstd_size"],
        });
        if let Some(key) = needed.iter().find(|key| !seen.contains(*key)) {
            let text = format!("kernel pack: expected the key {key} in the table");
            return Err(Error::malformed(offset, text));
        }
        toc.sort();
        // An end too large for a number lies past the table, too.
        toc.zstd.end = toc.zstd.start.saturating_add(zstd_size);
        let is_outside = toc.zstd.start < 16 || toc.zstd.end > offset || zstd_size < 4;
        if toc.scheme == Scheme::Zstd && is_outside {
            let Range { start, end } = toc.zstd;
            let text = format!(
                "kernel pack: expected a blob before the table, found {start:#x}..{end:#x}"
            );
            return Err(Error::malformed(offset, text));
        }
        Ok(toc)
    }

    fn check_version(&self, reader: &mut Reader<'_>) -> Result<(), Error> {
        let at = reader.offset();
        match reader.unsigned("format_version")? {
            1 => Ok(()),
            version => {
                let text = format!("kernel pack: expected format_version 1, found {version}");
                Err(Error::new(ErrorKind::Unsupported, at, text))
            }
        }
    }

    /// Sorts the entries of each key, and notes which targets loaders look for.
    fn sort(&mut self) {
        let archs: BTreeSet<&str> = self.archs.iter().map(String::as_str).collect();
        for entry in &mut self.entries {
            entry.is_listed = archs.contains(&*entry.arch);
        }
        let entries = &self.entries;
        for numbers in self.by_key.values_mut() {
            numbers.sort_by_key(|n| entries.get(*n).map(|entry| &entry.arch));
            let pairs = numbers.iter().zip(numbers.iter().skip(1));
            for (one, other) in
                pairs.filter_map(|(a, b)| Some((entries.get(*a)?, entries.get(*b)?)))
            {
                if one.arch == other.arch {
                    self.doubled.push((other.offset, other.name()));
                }
            }
        }
    }

    fn read_entries(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        for _ in 0..reader.map("toc")? {
            let at = reader.offset();
            let key: Arc<str> = reader.text("toc: a key")?.into();
            let numbers = match self.by_key.entry(key.clone()) {
                Slot::Vacant(slot) => slot.insert(Vec::new()),
                Slot::Occupied(slot) => {
                    self.doubled.push((at, shown(&key)));
                    slot.into_mut()
                }
            };
            for _ in 0..reader.map("toc: the targets of a key")? {
                let offset = reader.offset();
                let arch = reader.text("toc: a target")?;
                let (entry, doubled) = read_entry(reader, &key, arch, offset)?;
                if let Some(doubled) = doubled {
                    self.doubled.push((offset, format!("{}: {doubled}", entry.name())));
                }
                numbers.push(self.entries.len());
                self.entries.push(entry);
            }
        }
        Ok(())
    }

    fn read_blobs(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        for _ in 0..reader.array("blobs")? {
            let (mut offset, mut size) = (None, None);
            let at = reader.offset();
            for _ in 0..reader.map("blobs: one")? {
                match reader.text("blobs: a key")? {
                    "offset" => offset = Some(reader.unsigned("blobs: offset")?),
                    "size" => size = Some(reader.unsigned("blobs: size")?),
                    _ => {
                        reader.skip()?;
                    }
                }
            }
            let (Some(start), Some(size)) = (offset, size) else {
                return Err(Error::malformed(at, "blobs: expected the keys offset and size"));
            };
            // An end too large for a number lies past the table, too.
            let end = start.saturating_add(size);
            if start < 16 || end > self.offset {
                let text = format!(
                    "kernel pack: expected code before the table, found {start:#x}..{end:#x}"
                );
                return Err(Error::malformed(at, text));
            }
            self.blobs.push(start..end);
        }
        Ok(())
    }

    /// Returns the name of the group of libraries: `blas_lib`.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Returns the family of the targets, which is the single target in most packs.
    #[must_use]
    pub fn family(&self) -> &str {
        &self.family
    }

    /// Returns the targets that a loader looks for in the pack.
    #[must_use]
    pub fn archs(&self) -> &[String] {
        &self.archs
    }

    /// Returns the compression.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns all entries, in the order of the table.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the entry that a loader takes for a key and a target; `None` where it finds none. It looks no further if the
    /// target is none of [`archs`](Self::archs).
    #[must_use]
    pub fn find(&self, key: &str, arch: &str) -> Option<&Entry> {
        let numbers = self.by_key.get(key)?;
        let end = numbers
            .partition_point(|n| self.entries.get(*n).is_some_and(|entry| &*entry.arch <= arch));
        let entry = self.entries.get(*numbers.get(end.checked_sub(1)?)?)?;
        (entry.arch == arch && entry.is_listed).then_some(entry)
    }

    /// Returns whether a loader looks for this target in the pack.
    pub(crate) fn is_listed(&self, arch: &str) -> bool {
        self.archs.iter().any(|listed| listed == arch)
    }

    /// Returns the value of a key of the table that the format does not know, such as one of [`NewKpack::note`](crate::NewKpack::note).
    #[must_use]
    pub fn note(&self, key: &str) -> Option<&[u8]> {
        let (_, value) = self.others.iter().find(|(other, _)| other == key)?;
        Reader::new(value, 0).bytes(key).ok()
    }
}

fn scheme(reader: &mut Reader<'_>) -> Result<Scheme, Error> {
    let at = reader.offset();
    match reader.text("compression_scheme")? {
        "none" => Ok(Scheme::Plain),
        "zstd-per-kernel" => Ok(Scheme::Zstd),
        other => {
            let other = shown(other);
            let text = format!(
                "kernel pack: expected the compression none or zstd-per-kernel, found {other}"
            );
            Err(Error::new(ErrorKind::Unsupported, at, text))
        }
    }
}

/// Reads an entry, and returns it with a key that it has twice.
fn read_entry(
    reader: &mut Reader<'_>,
    key: &Arc<str>,
    arch: &str,
    offset: u64,
) -> Result<(Entry, Option<&'static str>), Error> {
    let (mut kind, mut ordinal, mut size, mut metadata) = (None, None, None, None);
    let (mut others, mut doubled) = ((0, Vec::new()), None);
    for _ in 0..reader.map("toc: an entry")? {
        let from = reader.clone();
        let is_again = match reader.text("toc: a key of an entry")? {
            "type" => kind.replace(reader.text("type")?.to_string()).map(|_| "type"),
            "ordinal" => ordinal.replace(reader.unsigned("ordinal")?).map(|_| "ordinal"),
            "original_size" => {
                size.replace(reader.unsigned("original_size")?).map(|_| "original_size")
            }
            "metadata" => metadata.replace(reader.skip()?.to_vec()).map(|_| "metadata"),
            _ => {
                reader.skip()?;
                others.0 += 1;
                others.1.extend_from_slice(reader.since(&from)?);
                None
            }
        };
        doubled = doubled.or(is_again);
    }
    let (Some(ordinal), Some(original_size)) = (ordinal, size) else {
        let text = format!(
            "toc: {} for {}: expected the keys ordinal and original_size",
            shown(key),
            shown(arch)
        );
        return Err(Error::malformed(offset, text));
    };
    let (key, arch, kind) = (key.clone(), arch.to_string(), kind.unwrap_or_default());
    let is_listed = false;
    let entry =
        Entry { key, arch, kind, ordinal, original_size, metadata, others, offset, is_listed };
    Ok((entry, doubled))
}
