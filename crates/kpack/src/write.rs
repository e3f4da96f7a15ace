//! A new pack.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use byte_parts::Parts;
use codecs::msgpack::{TooLong, Writer};
use zerocopy::IntoBytes;

use crate::error::{Error, ErrorKind};
use crate::msgpack::shown;
use crate::toc::{Entry, HEADER, Header, KNOWN, MAGIC, Scheme, Toc};

/// A pack to be written. AMD's tools write the same bytes for the same code objects, as they are stored.
#[derive(Clone)]
pub struct NewKpack {
    group: String,
    family: String,
    archs: Vec<String>,
    scheme: Scheme,
    /// By the number of the code object.
    entries: Vec<New>,
    count: u64,
    others: Vec<(String, Vec<u8>)>,
    /// A text that was given, and that no pack can have.
    fault: Option<TooLong>,
}

impl fmt::Debug for NewKpack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKpack")
            .field("group", &self.group)
            .field("family", &self.family)
            .field("archs", &self.archs)
            .field("scheme", &self.scheme)
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
struct New {
    key: Arc<str>,
    arch: String,
    kind: String,
    ordinal: u64,
    original_size: u64,
    metadata: Option<Vec<u8>>,
    others: (usize, Vec<u8>),
    /// `true` if it comes from another pack, whose faults it keeps.
    is_copy: bool,
}

/// A part of a new pack: bytes, zeros, or the stored bytes of a code object, which are an input by their number.
pub type Part<'a> = byte_parts::Part<'a, usize>;

impl NewKpack {
    /// Starts a pack for a group of libraries and one target.
    #[must_use]
    pub fn new(group: impl Into<String>, arch: impl Into<String>, scheme: Scheme) -> Self {
        let arch = arch.into();
        NewKpack {
            group: group.into(),
            family: arch.clone(),
            archs: Vec::from([arch]),
            scheme,
            entries: Vec::new(),
            count: 0,
            others: Vec::new(),
            fault: None,
        }
    }

    /// Sets the name of the family of its targets.
    #[must_use]
    pub fn with_family(self, family: impl Into<String>) -> Self {
        NewKpack { family: family.into(), ..self }
    }

    /// Adds a code object of this size, registered by this wrapper of a library, and returns its number.
    pub fn add(&mut self, kernel_name: &str, wrapper: u64, arch: &str, size: u64) -> u64 {
        let ordinal = self.count;
        self.count += 1;
        self.add_again(kernel_name, wrapper, arch, size, ordinal);
        ordinal
    }

    /// Adds the code object with this number once more, for another wrapper.
    pub fn add_again(
        &mut self,
        kernel_name: &str,
        wrapper: u64,
        arch: &str,
        size: u64,
        ordinal: u64,
    ) {
        if !self.archs.iter().any(|known| known == arch) {
            self.archs.push(arch.to_string());
        }
        self.entries.push(New {
            key: crate::search::key(kernel_name, wrapper).into(),
            arch: arch.to_string(),
            kind: "hsaco".to_string(),
            ordinal,
            original_size: size,
            metadata: None,
            others: (0, Vec::new()),
            is_copy: false,
        });
    }

    /// Notes the bundle entry ID of the entry that was added last.
    pub fn set_entry_id(&mut self, id: &str) {
        self.set_metadata(&[("target", id)]);
    }

    /// Sets the metadata of the entry that was added last. AMD's splitter of build trees writes `target`, a bundle entry ID, and
    /// `source_prefix`.
    pub fn set_metadata(&mut self, pairs: &[(&str, &str)]) {
        if let Some(entry) = self.entries.last_mut() {
            let mut metadata = Writer::new();
            metadata.map(pairs.len());
            for (key, value) in pairs {
                metadata.text(key);
                metadata.text(value);
            }
            match metadata.finish() {
                Ok(metadata) => entry.metadata = Some(metadata),
                Err(fault) => self.fault = Some(fault),
            }
        }
    }

    /// Keeps bytes under a key of the table that loaders do not know, and skip. Replaces the value that the key had.
    pub fn note(&mut self, key: &str, bytes: &[u8]) {
        let mut value = Writer::new();
        value.bytes(bytes);
        match (value.finish(), self.others.iter_mut().find(|(other, _)| other == key)) {
            (Ok(value), Some((_, old))) => *old = value,
            (Ok(value), None) => self.others.push((key.to_string(), value)),
            (Err(fault), _) => self.fault = Some(fault),
        }
    }

    /// Returns a pack with some entries of another, and the numbers that their code objects have there, by the new ones.
    /// Targets without an entry go.
    ///
    /// ```
    /// use kpack::{Kpack, NewKpack, Scheme};
    ///
    /// let mut old = NewKpack::new("blas", "gfx90a", Scheme::Plain);
    /// old.add("lib/libfoo.so", 0, "gfx90a", 1);
    /// old.add("lib/libfoo.so", 0, "gfx942", 2);
    /// let old = old.layout(&[1, 2])?.to_vec(|&n| [&b"a"[..], b"bc"][n]).unwrap();
    /// let pack = Kpack::parse(&old)?;
    /// let (new, numbers) = NewKpack::some_of(pack.toc(), |entry| entry.arch() == "gfx942");
    /// assert_eq!(numbers, [1]);
    /// let new = new.layout(&[2])?.to_vec(|_| b"bc").unwrap();
    /// assert_eq!(Kpack::parse(&new)?.toc().archs(), ["gfx942"]);
    /// # Ok::<(), kpack::Error>(())
    /// ```
    #[must_use]
    pub fn some_of(toc: &Toc, mut keeps: impl FnMut(&Entry) -> bool) -> (Self, Vec<u64>) {
        let kept: Vec<&Entry> = toc.entries().iter().filter(|entry| keeps(entry)).collect();
        let mut numbers: Vec<u64> = kept.iter().map(|entry| entry.ordinal()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let number = |ordinal| numbers.binary_search(&ordinal).map_or(0, |at| at as u64);
        let entries = kept.iter().map(|entry| New {
            key: entry.key.clone(),
            arch: entry.arch.clone(),
            kind: entry.kind.clone(),
            ordinal: number(entry.ordinal()),
            original_size: entry.original_size,
            metadata: entry.metadata.clone(),
            others: entry.others.clone(),
            is_copy: true,
        });
        let entries: Vec<New> = entries.collect();
        let left: BTreeSet<&str> = kept.iter().map(|entry| &*entry.arch).collect();
        let is_left = |arch: &&String| left.contains(arch.as_str());
        let new = NewKpack {
            group: toc.group.clone(),
            family: toc.family.clone(),
            archs: toc.archs.iter().filter(is_left).cloned().collect(),
            scheme: toc.scheme,
            entries,
            count: numbers.len() as u64,
            others: toc.others.clone(),
            fault: None,
        };
        (new, numbers)
    }

    /// Returns whether it has no code objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of code objects.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Lays the pack out. `sizes` has the bytes that each code object takes as it is stored: a Zstandard frame, or the code itself. Input
    /// `n` of the result is the code object with this number.
    ///
    /// # Errors
    ///
    /// [`Malformed`](ErrorKind::Malformed): a size is missing, larger than 4 GiB, or another than its entry has for
    /// code that is not compressed; an entry has the number of no code object; a key has a target twice; a note has a
    /// key of the format.
    pub fn layout(&self, sizes: &[u64]) -> Result<Parts, Error> {
        if sizes.len() as u64 != self.count {
            let text =
                format!("expected sizes of {} code objects, found {}", self.count, sizes.len());
            return Err(Error::malformed(0, text));
        }
        self.check(sizes)?;
        let mut parts = Parts::new();
        let mut blobs = Vec::new();
        let mut blob = Parts::new();
        if self.scheme == Scheme::Zstd {
            blob.push_bytes(&number(self.count)?);
        }
        for (n, size) in sizes.iter().enumerate() {
            if self.scheme == Scheme::Zstd {
                blob.push_bytes(&number(*size)?);
            }
            // Sizes that are too large cannot be written.
            blobs.push(HEADER.saturating_add(blob.size()));
            blob.push_input(n, 0..*size);
        }
        let table_offset = HEADER.saturating_add(blob.size()).into();
        let header = Header { magic: MAGIC, version: 1.into(), table_offset };
        parts.push_bytes(header.as_bytes());
        parts.pad_to(HEADER);
        parts.append(&blob);
        parts.push_vec(self.table(&blobs, sizes, blob.size())?);
        Ok(parts)
    }

    fn check(&self, sizes: &[u64]) -> Result<(), Error> {
        self.fault.map_or(Ok(()), Err)?;
        let is_plain = self.scheme == Scheme::Plain;
        for entry in &self.entries {
            let stored = usize::try_from(entry.ordinal).ok().and_then(|n| sizes.get(n));
            let fault = |text: String| {
                let (key, arch) = (shown(&entry.key), shown(&entry.arch));
                Err(Error::malformed(0, format!("{key} for {arch}: {text}")))
            };
            match stored {
                None => {
                    let (count, found) = (self.count, entry.ordinal);
                    return fault(format!("expected an ordinal below {count}, found {found}"));
                }
                Some(stored) if is_plain && !entry.is_copy && *stored != entry.original_size => {
                    let expected = entry.original_size;
                    return fault(format!("expected {expected} bytes of code, found {stored}"));
                }
                Some(_) => {}
            }
        }
        match self.others.iter().find(|(key, _)| KNOWN.contains(&&**key)) {
            Some((key, _)) => {
                Err(Error::malformed(0, format!("note: the key {key} is one of the format's")))
            }
            None => Ok(()),
        }
    }

    fn table(&self, blobs: &[u64], sizes: &[u64], blob: u64) -> Result<Vec<u8>, Error> {
        let mut out = Writer::new();
        let keys = match self.scheme {
            Scheme::Plain => 7,
            Scheme::Zstd => 8,
        };
        out.map(keys + self.others.len());
        out.text("format_version");
        out.unsigned(1);
        out.text("group_name");
        out.text(&self.group);
        out.text("gfx_arch_family");
        out.text(&self.family);
        out.text("gfx_arches");
        out.array(self.archs.len());
        self.archs.iter().for_each(|arch| out.text(arch));
        out.text("toc");
        self.entries(&mut out)?;
        out.text("compression_scheme");
        out.text(self.scheme.as_str());
        for (key, value) in &self.others {
            out.text(key);
            out.written(value);
        }
        match self.scheme {
            Scheme::Plain => {
                out.text("blobs");
                out.array(blobs.len());
                for (offset, size) in blobs.iter().zip(sizes) {
                    out.map(2);
                    out.text("offset");
                    out.unsigned(*offset);
                    out.text("size");
                    out.unsigned(*size);
                }
            }
            Scheme::Zstd => {
                out.text("zstd_offset");
                out.unsigned(HEADER);
                out.text("zstd_size");
                out.unsigned(blob);
            }
        }
        Ok(out.finish()?)
    }

    /// Writes the entries: those of a key together, keys in the order in which they come first.
    fn entries(&self, out: &mut Writer) -> Result<(), Error> {
        let mut keys: Vec<(&str, Vec<&New>)> = Vec::new();
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for entry in &self.entries {
            let at = *places.entry(&entry.key).or_insert(keys.len());
            match keys.get_mut(at) {
                Some((_, entries)) => entries.push(entry),
                None => keys.push((&entry.key, Vec::from([entry]))),
            }
        }
        out.map(keys.len());
        for (key, mut entries) in keys {
            out.text(key);
            out.map(entries.len());
            for entry in &entries {
                out.text(&entry.arch);
                let (others, bytes) = &entry.others;
                let known = [true, true, !entry.kind.is_empty(), entry.metadata.is_some()];
                out.map(known.iter().filter(|is_there| **is_there).count() + others);
                if !entry.kind.is_empty() {
                    out.text("type");
                    out.text(&entry.kind);
                }
                out.text("ordinal");
                out.unsigned(entry.ordinal);
                out.text("original_size");
                out.unsigned(entry.original_size);
                if let Some(metadata) = &entry.metadata {
                    out.text("metadata");
                    out.written(metadata);
                }
                out.written(bytes);
            }
            entries.sort_by_key(|entry| &entry.arch);
            let doubled =
                entries.iter().zip(entries.iter().skip(1)).find(|(a, b)| a.arch == b.arch);
            if let Some((entry, _)) = doubled {
                let text = format!("{} has code for {} twice", shown(key), shown(&entry.arch));
                return Err(Error::malformed(0, text));
            }
        }
        Ok(())
    }
}

fn number(number: u64) -> Result<[u8; 4], Error> {
    match u32::try_from(number) {
        Ok(number) => Ok(number.to_le_bytes()),
        Err(_) => {
            let text = format!("kernel pack: expected a number below 4 GiB, found {number}");
            Err(Error::new(ErrorKind::Malformed, 0, text))
        }
    }
}
