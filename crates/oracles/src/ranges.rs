//! A file whose ranges are fetched from a source that lies: what is read is right, or an error.

use std::collections::VecDeque;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use byte_parts::{Fetch, Ranges};

/// A source that lies to the next requests, and then behaves.
#[derive(Clone, Default)]
struct Source {
    len: u64,
    lies: Arc<Mutex<VecDeque<u8>>>,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    lies: usize,
    asked: Vec<Range<u64>>,
}

/// Returns the byte at a place of the file.
fn byte(at: u64) -> u8 {
    (at ^ at >> 8 ^ at >> 16) as u8
}

impl Fetch for Source {
    fn fetch(&self, range: Range<u64>) -> io::Result<Box<dyn Read + Send>> {
        assert!(range.start < range.end && range.end <= self.len, "{range:?} of {}", self.len);
        let lie = self.lies.lock().unwrap_or_else(|error| error.into_inner()).pop_front();
        let mut log = self.log.lock().unwrap_or_else(|error| error.into_inner());
        log.asked.push(range.clone());
        let mut bytes: Vec<u8> = range.clone().map(byte).collect();
        log.lies += usize::from(matches!(lie, Some(0..=99)));
        match lie {
            Some(0..=31) => return Err(io::Error::other("no answer")),
            Some(lie @ 32..=79) => bytes.truncate(usize::from(lie - 32) * bytes.len() / 48),
            Some(80..=99) => {
                bytes.truncate(bytes.len() / 2);
                return Ok(Box::new(Cursor::new(bytes).chain(Broken)));
            }
            // Surplus bytes are not read; few bytes at a time are right.
            Some(100..=179) => bytes.extend([0xee; 99]),
            Some(180..) => return Ok(Box::new(Slow(Cursor::new(bytes), false))),
            None => {}
        }
        Ok(Box::new(Cursor::new(bytes)))
    }
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the connection broke"))
    }
}

/// Gives few bytes at a time, and is interrupted.
struct Slow(Cursor<Vec<u8>>, bool);

impl Read for Slow {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let most = buf.len().min(777);
        self.0.read(buf.get_mut(..most).unwrap_or_default())
    }
}

/// Reads a file of some length as the bytes say, from a source that lies as they say.
pub fn check(data: &[u8]) {
    let (lies, steps) = data.split_at(data.len().min(16));
    let (len, steps) = steps.split_at(steps.len().min(3));
    let len = len.iter().fold(0, |len, &byte| len << 8 | u64::from(byte)) >> 6;
    // The first byte says how many lies there are.
    let lies = lies
        .split_first()
        .map_or(&[][..], |(&count, rest)| rest.get(..usize::from(count) % 16).unwrap_or(rest));
    let source = Source {
        len,
        lies: Arc::new(Mutex::new(lies.iter().copied().collect())),
        log: Arc::default(),
    };
    let ranges =
        Ranges::new(source.clone(), len).with_bytes(0, (0..len.min(300)).map(byte).collect());
    assert_eq!(ranges.len(), len);
    let (mut errors, mut at) = (0, 0_u64);
    let mut reader = ranges.reader();
    for step in steps.chunks_exact(4) {
        let &[what, high, low, size] = step else { continue };
        let place = (u64::from(high) << 8 | u64::from(low)) * (len / 65_536 + 1);
        match what {
            0..=63 => ranges.plan(place..place + u64::from(size) * 4096),
            64..=127 => at = place,
            _ => {}
        }
        let mut buf = vec![0x55; usize::from(size) * if what % 2 == 0 { 1 } else { 300 }];
        assert_eq!(reader.seek(SeekFrom::Start(at)).ok(), Some(at));
        match reader.read(&mut buf) {
            Ok(read) => {
                assert!(read > 0 || at >= len || buf.is_empty(), "nothing at {at} of {len}");
                let (filled, rest) = buf.split_at(read);
                assert!(
                    filled.iter().zip(at..).all(|(&found, at)| found == byte(at)),
                    "other bytes"
                );
                assert!(rest.iter().all(|&byte| byte == 0x55), "more than was read");
                assert!(at >= len || read as u64 <= len - at, "bytes past the end");
                at += read as u64;
            }
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::Other, "{error}");
                assert!(!error.to_string().contains('\n'), "{error}");
                errors += 1;
            }
        }
    }
    let log = source.log.lock().unwrap_or_else(|error| error.into_inner());
    // Each error is one of the source, and a source that behaves is never an error.
    assert!(errors <= log.lies, "{errors} errors of {} lies", log.lies);
    if errors == 0 && log.lies == 0 {
        // A step reads once.
        assert!(log.asked.len() <= steps.len() / 4, "{} requests", log.asked.len());
    }
}
