use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use crate::error::Error;
use crate::{internal, len_of};

/// One part of an output.
///
/// Exhaustive: a new kind of part must stop the build of each writer, which would leave it out.
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
            Part::Bytes(bytes) => bytes.len() as u64,
            Part::Input(_, range) => len_of(range),
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
pub struct Parts<I = usize>(Vec<Placed<I>>);

impl<I> fmt::Debug for Parts<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("parts", &self.0.len()).field("size", &self.size()).finish()
    }
}

/// Shorter bytes are copied, so that neighbours are one part; longer ones are shared by all outputs that have them.
const SHARED: usize = 4096;

/// A part, with its start and end in the output.
#[derive(Clone)]
struct Placed<I> {
    stored: Stored<I>,
    start: u64,
    end: u64,
}

/// A [`Part`] that owns nothing.
#[derive(Clone)]
enum Stored<I> {
    Bytes(Shared),
    Input(I, Range<u64>),
    Zeros,
}

/// Some of the bytes that outputs share.
#[derive(Clone, Debug)]
struct Shared(Arc<Vec<u8>>, Range<usize>);

impl Shared {
    /// Returns the bytes, which are all there.
    fn bytes(&self) -> &[u8] {
        self.0.get(self.1.clone()).unwrap_or_else(|| {
            internal!("shared bytes that are not there");
            &[]
        })
    }
}

impl<I> Placed<I> {
    fn part(&self) -> Part<'_, I> {
        match &self.stored {
            Stored::Bytes(shared) => Part::Bytes(shared.bytes()),
            Stored::Input(input, range) => Part::Input(input, range.clone()),
            Stored::Zeros => Part::Zeros(self.end - self.start),
        }
    }
}

impl<I> Default for Parts<I> {
    fn default() -> Self {
        Self(Vec::new())
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
        self.iter().eq(other.iter())
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
        self.0.last().map_or(0, |part| part.end)
    }

    /// Returns whether the output has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all parts in order. None is empty.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Part<'_, I>> + DoubleEndedIterator + Clone {
        self.0.iter().map(Placed::part)
    }

    /// Returns the part that holds the byte at `offset`, and the offset of its first byte; `None` at the end of the
    /// output.
    #[must_use]
    pub fn at(&self, offset: u64) -> Option<(u64, Part<'_, I>)> {
        let placed = self.0.get(self.0.partition_point(|part| part.end <= offset))?;
        Some((placed.start, placed.part()))
    }

    /// Adds bytes at the end.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        let end = self.end(bytes.len() as u64);
        if let Some(last) = self.0.last_mut()
            && let Stored::Bytes(Shared(before, range)) = &mut last.stored
            && range.end == before.len()
            && range.end < SHARED
            && let Some(before) = Arc::get_mut(before)
        {
            before.extend_from_slice(bytes);
            (range.end, last.end) = (before.len(), end);
            return;
        }
        self.push(Stored::Bytes(Shared(Arc::new(bytes.to_vec()), 0..bytes.len())), end);
    }

    /// Adds bytes at the end; many of them are not copied.
    pub fn push_vec(&mut self, bytes: Vec<u8>) {
        if bytes.len() < SHARED {
            return self.push_bytes(&bytes);
        }
        let (range, end) = (0..bytes.len(), self.end(bytes.len() as u64));
        self.push(Stored::Bytes(Shared(Arc::new(bytes), range)), end);
    }

    /// Adds zeros at the end.
    pub fn push_zeros(&mut self, count: u64) {
        let end = self.end(count);
        match self.0.last_mut() {
            Some(Placed { stored: Stored::Zeros, end: last, .. }) => *last = end,
            _ => self.push(Stored::Zeros, end),
        }
    }

    /// Adds zeros up to this offset; nothing if the output has that size already.
    pub fn pad_to(&mut self, offset: u64) {
        if let Some(missing) = offset.checked_sub(self.size()) {
            self.push_zeros(missing);
        }
    }

    /// Returns the end of the output with `size` bytes more.
    fn end(&self, size: u64) -> u64 {
        // An output that is too large cannot be written.
        self.size().saturating_add(size)
    }

    /// Adds a part, unless it is empty.
    fn push(&mut self, stored: Stored<I>, end: u64) {
        let start = self.size();
        if start < end {
            self.0.push(Placed { stored, start, end });
        }
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
        let end = self.end(len_of(&range));
        match self.0.last_mut() {
            Some(Placed { stored: Stored::Input(same, before), end: last, .. })
                if *same == input && before.end == range.start && range.start <= range.end =>
            {
                (before.end, *last) = (range.end, end);
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

    /// Adds the bytes of another output in `range` at the end; fewer if it ends before, none of a range that ends
    /// before it starts.
    pub fn append_range(&mut self, other: &Self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let first = other.0.partition_point(|part| part.end <= range.start);
        for Placed { stored, start, end } in other.0.iter().skip(first) {
            if range.end <= *start {
                break;
            }
            let cut = range.start.max(*start) - start..range.end.min(*end) - start;
            match stored {
                Stored::Bytes(shared) => self.share_bytes(shared, &cut),
                Stored::Input(input, all) => {
                    self.push_input(input.clone(), all.start + cut.start..all.start + cut.end);
                }
                Stored::Zeros => self.push_zeros(len_of(&cut)),
            }
        }
    }

    /// Adds a range of the bytes of a part at the end.
    fn share_bytes(&mut self, Shared(bytes, all): &Shared, cut: &Range<u64>) {
        // The part has as many bytes, in memory.
        let at = |at| usize::try_from(at).map_or(all.end, |at| all.start + at);
        let shared = Shared(Arc::clone(bytes), at(cut.start)..at(cut.end));
        if shared.1.len() < SHARED {
            return self.push_bytes(shared.bytes());
        }
        let end = self.end(shared.1.len() as u64);
        self.push(Stored::Bytes(shared), end);
    }

    /// Returns the bytes of the output in `range`; fewer if it ends before, none of a range that ends before it starts.
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
        new.append_range(self, new.size()..u64::MAX);
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
                    let count = usize::try_from(count).map_err(|_| out_of_memory())?;
                    out.resize(out.len() + count, 0);
                }
                Part::Input(name, range) => {
                    let all = input(name);
                    let start = usize::try_from(range.start).ok();
                    let place = start.zip(usize::try_from(range.end).ok());
                    let bytes = place.and_then(|(start, end)| all.get(start..end));
                    out.extend_from_slice(bytes.ok_or(Error::InputSize {
                        input: index,
                        expected: range.end,
                        found: all.len() as u64,
                    })?);
                }
            }
        }
        Ok(out)
    }
}
