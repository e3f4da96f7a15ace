use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use crate::error::Error;
use crate::to_u64;

/// One part of an output.
#[derive(PartialEq)]
pub enum Part<'a, I = usize> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// A range of bytes of this input.
    Input(&'a I, Range<u64>),
    /// This number of zeros.
    Zeros(u64),
}

impl<I: fmt::Debug> fmt::Debug for Part<'_, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Bytes(bytes) => f.debug_tuple("Bytes").field(&bytes.len()).finish(),
            Part::Input(input, range) => f.debug_tuple("Input").field(input).field(range).finish(),
            Part::Zeros(size) => f.debug_tuple("Zeros").field(size).finish(),
        }
    }
}

impl<I> Part<'_, I> {
    /// Returns the size of the part in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            Part::Bytes(bytes) => to_u64(bytes.len()),
            Part::Input(_, range) => range.end.saturating_sub(range.start),
            Part::Zeros(count) => *count,
        }
    }
}

/// An output as a list of parts. `I` names an input: an index, or an enum.
///
/// Empty parts are not kept, and neighbours that continue each other are one part, except for long bytes: they are shared
/// by the outputs that are made of each other, and not copied.
///
/// Sizes saturate: an output with more than 2⁶⁴ − 1 bytes has the size [`u64::MAX`], and cannot be written.
///
/// ```
/// use byte_parts::{Part, Parts};
///
/// let mut parts = Parts::from_input("old.bin", 0..100);
/// parts.overwrite(16, b"\x01\x02");
/// let list: Vec<_> = parts.iter().collect();
/// assert_eq!(
///     list,
///     [Part::Input(&"old.bin", 0..16), Part::Bytes(b"\x01\x02"), Part::Input(&"old.bin", 18..100)]
/// );
/// ```
#[derive(Clone)]
pub struct Parts<I = usize> {
    parts: Vec<Stored<I>>,
    /// End of each part in the output.
    ends: Vec<u64>,
}

impl<I> fmt::Debug for Parts<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.ends.last().copied().unwrap_or(0);
        f.debug_struct("Parts").field("parts", &self.parts.len()).field("size", &size).finish()
    }
}

/// Shorter bytes are copied, so that neighbours are one part; longer ones are shared by all outputs that have them.
const SHARED: usize = 4096;

/// A [`Part`] that owns nothing.
#[derive(Clone)]
enum Stored<I> {
    Bytes(Arc<Vec<u8>>, Range<usize>),
    Input(I, Range<u64>),
    Zeros,
}

impl<I> Default for Parts<I> {
    fn default() -> Self {
        Self { parts: Vec::new(), ends: Vec::new() }
    }
}

impl<I> From<Vec<u8>> for Parts<I> {
    /// Returns an output that is these bytes.
    fn from(bytes: Vec<u8>) -> Self {
        let mut parts = Self::new();
        parts.push_vec(bytes);
        parts
    }
}

impl<I: PartialEq> PartialEq for Parts<I> {
    fn eq(&self, other: &Self) -> bool {
        self.ends == other.ends && self.iter().eq(other.iter())
    }
}

impl<I> Parts<I> {
    /// Creates an empty output.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the size of the output in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns whether the output has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns all parts in order. None is empty.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Part<'_, I>> + DoubleEndedIterator + Clone {
        (0..self.parts.len()).map(|index| self.part(index).unwrap_or(Part::Zeros(0)))
    }

    /// Returns the part that holds the byte at `offset`, and the offset of its first byte; `None` at the end of the
    /// output.
    #[must_use]
    pub fn at(&self, offset: u64) -> Option<(u64, Part<'_, I>)> {
        let index = self.ends.partition_point(|&end| end <= offset);
        Some((self.start(index), self.part(index)?))
    }

    fn part(&self, index: usize) -> Option<Part<'_, I>> {
        Some(match self.parts.get(index)? {
            Stored::Bytes(bytes, range) => {
                Part::Bytes(bytes.get(range.clone()).unwrap_or_default())
            }
            Stored::Input(input, range) => Part::Input(input, range.clone()),
            Stored::Zeros => {
                let end = self.ends.get(index).copied().unwrap_or(0);
                Part::Zeros(end.saturating_sub(self.start(index)))
            }
        })
    }

    /// Returns where the part with this index starts.
    fn start(&self, index: usize) -> u64 {
        let before = index.checked_sub(1).and_then(|before| self.ends.get(before));
        before.copied().unwrap_or(0)
    }

    /// Adds bytes at the end.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        let Some(end) = self.grow(to_u64(bytes.len())) else { return };
        if let (Some(Stored::Bytes(before, range)), Some(last)) =
            (self.parts.last_mut(), self.ends.last_mut())
            && range.end == before.len()
            && range.end < SHARED
            && let Some(before) = Arc::get_mut(before)
        {
            before.extend_from_slice(bytes);
            range.end = before.len();
            *last = end;
            return;
        }
        self.push(Stored::Bytes(Arc::new(bytes.to_vec()), 0..bytes.len()), end);
    }

    /// Adds bytes at the end; many of them are not copied.
    pub fn push_vec(&mut self, bytes: Vec<u8>) {
        let len = bytes.len();
        match self.grow(to_u64(len)) {
            Some(end) if len >= SHARED => self.push(Stored::Bytes(Arc::new(bytes), 0..len), end),
            _ => self.push_bytes(&bytes),
        }
    }

    /// Adds zeros at the end.
    pub fn push_zeros(&mut self, count: u64) {
        let Some(end) = self.grow(count) else { return };
        match (self.parts.last(), self.ends.last_mut()) {
            (Some(Stored::Zeros), Some(last)) => *last = end,
            _ => self.push(Stored::Zeros, end),
        }
    }

    /// Adds zeros up to this offset; nothing if the output has that size already.
    pub fn pad_to(&mut self, offset: u64) {
        self.push_zeros(offset.saturating_sub(self.size()));
    }

    /// Returns the end of the output with `size` bytes more; `None` if there are none.
    fn grow(&self, size: u64) -> Option<u64> {
        (size > 0).then(|| self.size().saturating_add(size))
    }

    fn push(&mut self, part: Stored<I>, end: u64) {
        self.parts.push(part);
        self.ends.push(end);
    }
}

impl<I: Clone + PartialEq> Parts<I> {
    /// Returns an output that is a range of bytes of an input.
    #[must_use]
    pub fn from_input(input: I, range: Range<u64>) -> Self {
        let mut parts = Self::new();
        parts.push_input(input, range);
        parts
    }

    /// Adds a range of bytes of an input at the end.
    pub fn push_input(&mut self, input: I, range: Range<u64>) {
        let Some(end) = self.grow(range.end.saturating_sub(range.start)) else { return };
        match (self.parts.last_mut(), self.ends.last_mut()) {
            (Some(Stored::Input(same, before)), Some(last))
                if *same == input && before.end == range.start =>
            {
                before.end = range.end;
                *last = end;
            }
            _ => self.push(Stored::Input(input, range), end),
        }
    }

    /// Adds a part at the end.
    pub fn push_part(&mut self, part: Part<'_, I>) {
        match part {
            Part::Bytes(bytes) => self.push_bytes(bytes),
            Part::Input(input, range) => self.push_input(input.clone(), range),
            Part::Zeros(count) => self.push_zeros(count),
        }
    }

    /// Adds another output at the end.
    pub fn append(&mut self, other: &Self) {
        self.append_range(other, 0..other.size());
    }

    /// Adds the bytes of another output in `range` at the end; fewer if it ends before.
    pub fn append_range(&mut self, other: &Self, range: Range<u64>) {
        let first = other.ends.partition_point(|&end| end <= range.start);
        let mut start = other.start(first);
        for index in first..other.parts.len() {
            let Some(part) = other.part(index).filter(|_| start < range.end) else { break };
            let end = start.saturating_add(part.size());
            let cut = range.start.max(start) - start..range.end.min(end) - start;
            start = end;
            match part {
                Part::Bytes(_) => {
                    let at = |at| usize::try_from(at).unwrap_or(usize::MAX);
                    self.share_bytes(other.parts.get(index), at(cut.start)..at(cut.end));
                }
                Part::Input(input, all) => {
                    let from = |at: u64| all.start.saturating_add(at);
                    self.push_input(input.clone(), from(cut.start)..from(cut.end));
                }
                Part::Zeros(_) => self.push_zeros(cut.end.saturating_sub(cut.start)),
            }
        }
    }

    /// Adds a range of the bytes of a part at the end.
    fn share_bytes(&mut self, part: Option<&Stored<I>>, cut: Range<usize>) {
        let Some(Stored::Bytes(bytes, all)) = part else { return };
        let range = all.start.saturating_add(cut.start)..all.start.saturating_add(cut.end);
        match self.grow(to_u64(range.len())) {
            Some(end) if range.len() >= SHARED => {
                self.push(Stored::Bytes(Arc::clone(bytes), range), end);
            }
            _ => self.push_bytes(bytes.get(range).unwrap_or_default()),
        }
    }

    /// Returns the bytes of the output in `range`; fewer if it ends before.
    #[must_use]
    pub fn slice(&self, range: Range<u64>) -> Self {
        let mut slice = Self::new();
        slice.append_range(self, range);
        slice
    }

    /// Replaces the bytes from `offset` on by an equal number of others. An output that ends earlier grows.
    pub fn replace(&mut self, offset: u64, by: &Self) {
        let mut new = self.slice(0..offset);
        new.pad_to(offset);
        new.append(by);
        new.append_range(self, offset.saturating_add(by.size())..u64::MAX);
        *self = new;
    }

    /// Replaces bytes from `offset` on by these. An output that ends before grows.
    pub fn overwrite(&mut self, offset: u64, bytes: &[u8]) {
        let mut by = Self::new();
        by.push_bytes(bytes);
        self.replace(offset, &by);
    }

    /// Returns the output in which `resolve` replaces each part of an input: the edit of an edit.
    #[must_use]
    pub fn resolved(&self, mut resolve: impl FnMut(&mut Self, &I, Range<u64>)) -> Self {
        let mut out = Self::new();
        for part in self.iter() {
            match part {
                Part::Input(input, range) => resolve(&mut out, input, range),
                part => out.push_part(part),
            }
        }
        out
    }

    /// Returns the output in memory. `input` lends the bytes of an input.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]; [`Error::InputSize`], with the index of the part, if a range is not within its input.
    pub fn to_vec<'i>(&self, mut input: impl FnMut(&I) -> &'i [u8]) -> Result<Vec<u8>, Error> {
        let out_of_memory = || Error::OutOfMemory { size: self.size() };
        let size = usize::try_from(self.size()).map_err(|_| out_of_memory())?;
        let mut out = Vec::new();
        out.try_reserve_exact(size).map_err(|_| out_of_memory())?;
        for (index, part) in self.iter().enumerate() {
            match part {
                Part::Bytes(bytes) => out.extend_from_slice(bytes),
                Part::Zeros(count) => {
                    // The total fits, so each part does.
                    let count = usize::try_from(count).unwrap_or_default();
                    out.resize(out.len().saturating_add(count), 0);
                }
                Part::Input(name, range) => {
                    let all = input(name);
                    let at = |at| usize::try_from(at).unwrap_or(usize::MAX);
                    let bytes =
                        all.get(at(range.start)..at(range.end)).ok_or(Error::InputSize {
                            input: index,
                            expected: range.end,
                            found: to_u64(all.len()),
                        })?;
                    out.extend_from_slice(bytes);
                }
            }
        }
        Ok(out)
    }
}
