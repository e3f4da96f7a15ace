//! A file whose bytes a caller fetches, range by range: over a network, from a page in a browser.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use std::format;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::internal;
use crate::source::seek_position;

/// The bytes of a file, fetched on request.
///
/// ```
/// use std::io::{self, Cursor, Read};
/// use std::ops::Range;
/// use byte_parts::{Fetch, Ranges};
///
/// struct Letters;
/// impl Fetch for Letters {
///     fn fetch(&self, range: Range<u64>) -> io::Result<Box<dyn Read + Send>> {
///         let bytes: Vec<u8> = range.map(|at| b'a' + (at % 26) as u8).collect();
///         Ok(Box::new(Cursor::new(bytes)))
///     }
/// }
///
/// let file = Ranges::new(Letters, 1 << 40);
/// let mut bytes = [0; 3];
/// file.reader().read_exact(&mut bytes)?;
/// assert_eq!(&bytes, b"abc");
/// # Ok::<(), io::Error>(())
/// ```
pub trait Fetch: Send + Sync {
    /// Starts to read a range of bytes, which is not empty and lies in the file. The reader may be dropped before its end.
    ///
    /// # Errors
    ///
    /// The bytes cannot be had.
    fn fetch(&self, range: Range<u64>) -> io::Result<Box<dyn Read + Send>>;
}

/// The fewest bytes that are fetched, where the file has as many.
const LEAST: u64 = 16 << 10;
/// The most bytes that are fetched by a guess that reading goes on.
const MOST: u64 = 8 << 20;
/// Bytes before the place that is asked for: tables of names often lie before their users.
const BEFORE: u64 = 2 << 10;
/// The most bytes that a stream reads to skip them, in place of a new one.
const SKIPPED: u64 = 1 << 20;
/// The end of a stream that is read at once, so that its connection is free for the next.
const SHORT: u64 = 64 << 10;
/// The size of a block, and the most bytes of all blocks.
const BLOCK: usize = 64 << 10;
const HELD: usize = 32 << 20;
/// The most streams that are open, and planned ranges that are remembered.
const STREAMS: usize = 16;
const PLANS: usize = 64;

/// A file whose bytes a caller [fetches](Fetch). Threads may read it at the same time.
///
/// It keeps up to 32 MiB of what was read, and guesses: where reading goes on, fetched ranges double, up to 8 MiB. A
/// [plan](Self::plan) is fetched as one range.
pub struct Ranges {
    fetch: Box<dyn Fetch>,
    len: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By their start; they may overlap.
    blocks: Vec<Block>,
    held: usize,
    /// The time of the last reading, as a count.
    now: u64,
    streams: Vec<Stream>,
    plans: Vec<Range<u64>>,
    /// The ends of the last guesses, with their sizes.
    guesses: Vec<(u64, u64)>,
}

struct Block {
    start: u64,
    bytes: Vec<u8>,
    used: u64,
}

impl Block {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

struct Stream {
    at: u64,
    end: u64,
    reader: Box<dyn Read + Send>,
}

impl fmt::Debug for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranges").field("len", &self.len).finish_non_exhaustive()
    }
}

impl Ranges {
    /// Creates a file of `len` bytes.
    pub fn new(fetch: impl Fetch + 'static, len: u64) -> Self {
        Ranges { fetch: Box::new(fetch), len, state: Mutex::default() }
    }

    /// Adds bytes that were fetched before, at `start`. Bytes past the end of the file are left out.
    #[must_use]
    pub fn with_bytes(self, start: u64, mut bytes: Vec<u8>) -> Self {
        if let Ok(most) = usize::try_from(self.len - start.min(self.len)) {
            bytes.truncate(most);
        }
        if !bytes.is_empty() {
            let end = start + bytes.len() as u64;
            let mut state = self.state();
            state.guesses.push((end, bytes.len() as u64));
            state.keep(start, bytes);
        }
        self
    }

    /// Returns the length in bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "the length of a file, as `Metadata` has it")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Announces that the bytes of a range will be read in order, once: the first one that is missing is fetched with all that
    /// follow in the range.
    pub fn plan(&self, range: Range<u64>) {
        let range = range.start..range.end.min(self.len);
        if range.start < range.end {
            let mut state = self.state();
            if state.plans.len() >= PLANS {
                state.plans.remove(0);
            }
            state.plans.push(range);
        }
    }

    /// Returns a reader from the start of the file.
    #[must_use]
    pub fn reader(&self) -> RangesReader<'_> {
        RangesReader { ranges: self, position: 0 }
    }

    /// Reads some bytes at `at`, and returns how many: 0 at the end of the file.
    ///
    /// # Errors
    ///
    /// Errors of [`Fetch`]; [`Other`](io::ErrorKind::Other) if it gives fewer bytes than it was asked for.
    pub fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        if at >= self.len || buf.is_empty() {
            return Ok(0);
        }
        let (stream, plan) = {
            let mut state = self.state();
            if let Some(read) = state.read(at, buf) {
                return Ok(read);
            }
            match state.stream(at) {
                Some(stream) => (Some(stream), at..at),
                None => (None, state.next(at, buf.len() as u64, self.len)),
            }
        };
        let mut stream = match stream {
            Some(stream) => stream,
            None => {
                Stream { at: plan.start, end: plan.end, reader: self.fetch.fetch(plan.clone())? }
            }
        };
        let mut read = None;
        while stream.at < stream.end && (read.is_none() || stream.end - stream.at <= SHORT) {
            let start = stream.at;
            let bytes = stream.block()?;
            if let Some(there) = at.checked_sub(start).filter(|_| read.is_none()) {
                read = copy(&bytes, there, buf);
            }
            self.state().keep(start, bytes);
        }
        if stream.at < stream.end {
            self.state().park(stream);
        }
        read.ok_or_else(|| {
            io::Error::other(internal!("a range without the byte it was fetched for"))
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change leaves a whole state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Copies bytes from an offset; `None` if there are none.
fn copy(bytes: &[u8], from: u64, buf: &mut [u8]) -> Option<usize> {
    let known = usize::try_from(from).ok().and_then(|from| bytes.get(from..))?;
    let read = known.len().min(buf.len());
    buf.get_mut(..read)?.copy_from_slice(known.get(..read)?);
    Some(read).filter(|&read| read > 0)
}

impl State {
    /// Reads bytes that are held.
    fn read(&mut self, at: u64, buf: &mut [u8]) -> Option<usize> {
        self.now += 1;
        let now = self.now;
        let next = self.blocks.partition_point(|block| block.start <= at);
        // Blocks are short, and few overlap.
        let before = self.blocks.get_mut(next - next.min(8)..next)?;
        let block = before.iter_mut().rev().find(|block| block.end() > at)?;
        block.used = now;
        copy(&block.bytes, at - block.start, buf)
    }

    /// Holds bytes; gives up what was not read for the longest time.
    fn keep(&mut self, start: u64, bytes: Vec<u8>) {
        self.held += bytes.len();
        let place = self.blocks.partition_point(|block| block.start <= start);
        self.blocks.insert(place, Block { start, bytes, used: self.now });
        while self.held > HELD {
            let oldest = self.blocks.iter().enumerate().min_by_key(|(_, block)| block.used);
            let Some((oldest, _)) = oldest else { break };
            self.held -= self.blocks.remove(oldest).bytes.len();
        }
    }

    /// Takes an open stream that comes to this place soon.
    fn stream(&mut self, at: u64) -> Option<Stream> {
        let comes =
            |stream: &Stream| stream.at <= at && at < stream.end && at - stream.at <= SKIPPED;
        let found = self.streams.iter().position(comes)?;
        Some(self.streams.remove(found))
    }

    /// Keeps a stream open.
    fn park(&mut self, stream: Stream) {
        if self.streams.len() >= STREAMS {
            self.streams.remove(0);
        }
        self.streams.push(stream);
    }

    /// Returns the range to fetch for bytes at a place.
    fn next(&mut self, at: u64, wanted: u64, len: u64) -> Range<u64> {
        if let Some(found) = self.plans.iter().rposition(|plan| plan.contains(&at)) {
            return at..self.plans.remove(found).end;
        }
        let goes_on = |&(end, size): &(u64, u64)| end <= at && at - end <= size;
        let before = self.guesses.iter().rposition(goes_on).map(|found| self.guesses.remove(found));
        let least = wanted.clamp(LEAST, MOST);
        let (start, size) = match before {
            Some((_, size)) => (at, (size * 2).clamp(least, MOST)),
            None => (at - at.min(BEFORE), least),
        };
        let end = (start + size).max(at + wanted.min(MOST)).min(len);
        // No byte is fetched that is held.
        let end = self.held_from(at, end);
        if self.guesses.len() >= STREAMS {
            self.guesses.remove(0);
        }
        self.guesses.push((end, size));
        self.held_before(start, at)..end
    }

    /// Returns the first place after `at` and before `end` that is held, or `end`.
    fn held_from(&self, at: u64, end: u64) -> u64 {
        let next = self.blocks.partition_point(|block| block.start <= at);
        self.blocks.get(next).map_or(end, |block| block.start.min(end))
    }

    /// Returns the end of what is held between `start` and `at`, or `start`.
    fn held_before(&self, start: u64, at: u64) -> u64 {
        let next = self.blocks.partition_point(|block| block.start <= at);
        let last = next.checked_sub(1).and_then(|last| self.blocks.get(last));
        last.map_or(start, |block| block.end().clamp(start, at))
    }
}

impl Stream {
    /// Reads the next block.
    fn block(&mut self) -> io::Result<Vec<u8>> {
        let most = (self.end - self.at).min(BLOCK as u64);
        let mut bytes = Vec::with_capacity(usize::try_from(most).unwrap_or(BLOCK));
        let read = self.reader.by_ref().take(most).read_to_end(&mut bytes)? as u64;
        self.at += read;
        if read < most {
            let (at, end) = (self.at, self.end);
            let text = format!("fetched bytes end at {at:#x}: expected bytes up to {end:#x}");
            // Not `UnexpectedEof`: readers of formats take that for a short file.
            return Err(io::Error::other(text));
        }
        Ok(bytes)
    }
}

/// A position in [`Ranges`].
#[derive(Clone, Debug)]
pub struct RangesReader<'r> {
    ranges: &'r Ranges,
    position: u64,
}

impl Read for RangesReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.ranges.read_at(self.position, buf)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for RangesReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = seek_position(to, self.position, self.ranges.len)?;
        Ok(self.position)
    }
}

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::single_range_in_vec_init,
    reason = "ranges of small files are compared"
)]
mod tests {
    use std::io::Cursor;
    use std::string::ToString;
    use std::sync::Arc;
    use std::vec;

    use super::*;

    /// A file that remembers what was asked for.
    #[derive(Clone)]
    struct Asked(Arc<Vec<u8>>, Arc<Mutex<Vec<Range<u64>>>>);

    impl Fetch for Asked {
        fn fetch(&self, range: Range<u64>) -> io::Result<Box<dyn Read + Send>> {
            self.1.lock().unwrap().push(range.clone());
            let bytes = &self.0[range.start as usize..range.end as usize];
            Ok(Box::new(Cursor::new(bytes.to_vec())))
        }
    }

    fn file(len: usize) -> (Asked, Ranges) {
        let data = (0..len).map(|at| (at * 7 / 3) as u8).collect();
        let asked = Asked(Arc::new(data), Arc::default());
        let ranges = Ranges::new(asked.clone(), len as u64);
        (asked, ranges)
    }

    impl Asked {
        fn check(&self, ranges: &Ranges, range: Range<usize>) {
            let mut bytes = vec![0; range.len()];
            let mut reader = ranges.reader();
            reader.seek(SeekFrom::Start(range.start as u64)).unwrap();
            reader.read_exact(&mut bytes).unwrap();
            assert!(bytes == self.0[range], "other bytes");
        }

        fn asked(&self) -> Vec<Range<u64>> {
            std::mem::take(&mut *self.1.lock().unwrap())
        }
    }

    #[test]
    fn far_reads_are_few_and_short_and_nothing_is_fetched_twice() {
        let (asked, ranges) = file(1 << 20);
        asked.check(&ranges, 0..100);
        asked.check(&ranges, 50..9000);
        asked.check(&ranges, 500_000..500_010);
        asked.check(&ranges, 499_000..499_500);
        let (least, start) = (LEAST, 500_000 - BEFORE);
        assert_eq!(asked.asked(), [0..least, start..start + least]);
        // Up to what is held.
        asked.check(&ranges, 490_000..499_500);
        assert_eq!(asked.asked(), [490_000 - BEFORE..start]);
        assert_eq!(ranges.reader().seek(SeekFrom::End(-1)).unwrap(), (1 << 20) - 1);
        assert_eq!(ranges.read_at(1 << 20, &mut [0]).unwrap(), 0);
    }

    #[test]
    fn ranges_double_while_reading_goes_on() {
        let (asked, ranges) = file(20 << 20);
        for at in (0..20 << 20).step_by(10_000) {
            asked.check(&ranges, at..(at + 10_000).min(20 << 20));
        }
        let sizes: Vec<_> =
            asked.asked().into_iter().map(|range| range.end - range.start).collect();
        assert_eq!(sizes.iter().sum::<u64>(), 20 << 20);
        assert!(sizes.len() < 13, "{sizes:?}");
    }

    #[test]
    fn a_plan_is_one_range_and_what_was_read_can_be_read_again() {
        let (asked, ranges) = file(20 << 20);
        let plan = 1000..(19 << 20) + 5;
        ranges.plan(plan.start as u64..plan.end as u64);
        asked.check(&ranges, 1000..200_000);
        asked.check(&ranges, 1000..2000);
        // A gap is skipped.
        asked.check(&ranges, 200_500..plan.end);
        assert_eq!(asked.asked(), [1000..plan.end as u64]);
        // Held bytes are bounded.
        assert!(ranges.state().held <= HELD);
    }

    #[test]
    fn fetched_bytes_that_end_early_are_an_error() {
        struct Short;
        impl Fetch for Short {
            fn fetch(&self, _: Range<u64>) -> io::Result<Box<dyn Read + Send>> {
                Ok(Box::new(Cursor::new(vec![1; 10])))
            }
        }
        let ranges = Ranges::new(Short, 100).with_bytes(90, vec![2; 99]);
        let error = ranges.read_at(0, &mut [0; 20]).unwrap_err();
        assert_eq!(error.to_string(), "fetched bytes end at 0xa: expected bytes up to 0x5a");
        assert_eq!(ranges.read_at(95, &mut [0; 20]).unwrap(), 5);
    }
}
