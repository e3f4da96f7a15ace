//! Files on servers, and the bytes of their ranges.

use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use byte_parts::{Fetch, Ranges};

use crate::answer::{Served, Version};
use crate::limits::Limits;
use crate::session::{Fault, Received, Session, answer};
use crate::url::Url;

/// The bytes of the first request: headers of most files.
const FIRST: u64 = 16 << 10;
/// The most attempts for the next bytes.
const ATTEMPTS: u32 = 3;
/// The bytes after which broken connections are forgotten.
const PROGRESS: u64 = 1 << 20;

/// A file on a server.
#[derive(Debug)]
pub struct Remote {
    /// Its requests so far.
    pub counts: Counts,
    /// Its bytes.
    pub contents: Contents,
}

/// The bytes of a file on a server.
///
/// Exhaustive: a caller must take the bytes in either way.
pub enum Contents {
    /// Ranges, as they are asked for.
    Ranges(Ranges),
    /// All bytes, once: the server has no ranges.
    Whole(Box<dyn Read + Send>),
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contents::Ranges(ranges) => ranges.fmt(f),
            Contents::Whole(_) => f.write_str("Whole"),
        }
    }
}

/// The requests and the bytes of contents so far.
#[derive(Clone, Debug)]
pub struct Counts(Arc<Session>);

impl Counts {
    /// Returns the number of requests, redirected ones included.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.0.requests()
    }

    /// Returns the number of bytes of contents that were received.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.bytes()
    }
}

/// Asks for the first bytes of a file.
///
/// # Errors
///
/// [`Other`](io::ErrorKind::Other) for every fault. The text does not repeat the URL.
pub fn open(url: &Url, limits: &Limits) -> io::Result<Remote> {
    let session = Arc::new(Session::new(url, limits)?);
    let contents = attempt(&mut 0, || first(&session, url))?;
    Ok(Remote { counts: Counts(session), contents })
}

/// Tries something again while that may help.
fn attempt<T>(failures: &mut u32, mut work: impl FnMut() -> Result<T, Fault>) -> Result<T, Fault> {
    loop {
        match work() {
            Err(fault) => failed(failures, fault)?,
            done => return done,
        }
    }
}

/// Counts a failure, and waits before the next attempt.
fn failed(failures: &mut u32, fault: Fault) -> Result<(), Fault> {
    *failures += 1;
    if fault.is_final || *failures >= ATTEMPTS {
        return Err(fault);
    }
    Session::pause(*failures);
    Ok(())
}

/// Returns the fault of an answer: a server that is busy may give another one later.
fn unexpected(status: u16, text: String) -> Fault {
    if matches!(status, 429 | 502..=504) { Fault::again(text) } else { Fault::last(text) }
}

fn first(session: &Arc<Session>, url: &Url) -> Result<Contents, Fault> {
    let (place, response) = session.request(url, &(0..FIRST))?;
    let failed = |text| unexpected(response.status().as_u16(), text).at(&place, url);
    let answer = answer(&response).map_err(failed)?;
    match answer.first(FIRST).map_err(failed)? {
        Served::Whole(len) => {
            session.check_size(len.unwrap_or(0))?;
            let body = Received::new(response);
            Ok(Contents::Whole(Box::new(Whole { session: Arc::clone(session), body, at: 0, len })))
        }
        Served::Ranges { len, first } => {
            let version = answer.version(len);
            let mut body = Received::new(response);
            let mut bytes = Vec::new();
            read_all(session, &mut body, &(0..first), &mut bytes)?;
            let (session, asked, place) = (Arc::clone(session), url.clone(), Mutex::new(place));
            let fetch = Http(Arc::new(File { session, asked, place, version }));
            Ok(Contents::Ranges(Ranges::new(fetch, len).with_bytes(0, bytes)))
        }
    }
}

/// Reads a short answer.
fn read_all(
    session: &Session,
    body: &mut Received,
    range: &Range<u64>,
    to: &mut Vec<u8>,
) -> Result<(), Fault> {
    let mut buf = [0; 4096];
    while (to.len() as u64) < range.end {
        let read = body.read(session, &mut buf)?;
        if read == 0 {
            return Err(early(to.len() as u64, range.end));
        }
        to.extend_from_slice(buf.split_at(read).0);
    }
    if to.len() as u64 > range.end || read_end(session, body) {
        return Err(more(range.end));
    }
    Ok(())
}

/// Reads the end of an answer, so that its connection can be used again. Returns `true` if there is no end.
fn read_end(session: &Session, body: &mut Received) -> bool {
    matches!(body.read(session, &mut [0]), Ok(1..))
}

fn early(at: u64, end: u64) -> Fault {
    Fault::again(format!("the answer ends at {at:#x}: expected bytes up to {end:#x}"))
}

fn more(end: u64) -> Fault {
    Fault::last(format!("the answer has more bytes than were asked for, which end at {end:#x}"))
}

/// A file on a server with ranges.
struct Http(Arc<File>);

struct File {
    session: Arc<Session>,
    /// The URL that the user typed.
    asked: Url,
    /// The URL after redirects.
    place: Mutex<Url>,
    version: Version,
}

impl File {
    /// Asks for a range where the last one came from, and if that place is no longer valid, like a signed URL after some time, at the
    /// URL that the user typed, once.
    fn connect(&self, range: &Range<u64>) -> Result<Received, Fault> {
        let mut from = self.place().clone();
        let (mut place, mut response) = self.session.request(&from, range)?;
        if from != self.asked && matches!(response.status().as_u16(), 401 | 403 | 410) {
            from = self.asked.clone();
            (place, response) = self.session.request(&from, range)?;
        }
        let failed = |text| unexpected(response.status().as_u16(), text).at(&place, &from);
        let answer = answer(&response).map_err(failed)?;
        answer.later(range, &self.version).map_err(failed)?;
        *self.place() = place;
        Ok(Received::new(response))
    }

    fn place(&self) -> MutexGuard<'_, Url> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fetch for Http {
    fn fetch(&self, range: Range<u64>) -> io::Result<Box<dyn Read + Send>> {
        let (file, since) = (Arc::clone(&self.0), range.start);
        Ok(Box::new(Part { file, since, range, body: None, failures: 0 }))
    }
}

/// The bytes of a range; a connection that breaks is made again.
struct Part {
    file: Arc<File>,
    /// The rest.
    range: Range<u64>,
    body: Option<Received>,
    failures: u32,
    /// The place of the last failure.
    since: u64,
}

impl Part {
    fn read_some(&mut self, buf: &mut [u8]) -> Result<usize, Fault> {
        let body = match &mut self.body {
            Some(body) => body,
            None => self.body.insert(self.file.connect(&self.range)?),
        };
        let session = &self.file.session;
        let (at, end) = (self.range.start, self.range.end);
        let most = usize::try_from(end - at).map_or(buf.len(), |left| left.min(buf.len()));
        let read = body.read(session, buf.split_at_mut(most).0);
        let read =
            read.map_err(|fault| Fault { text: format!("at {at:#x}: {}", fault.text), ..fault })?;
        if read == 0 {
            return Err(early(at, end));
        }
        self.range.start += read as u64;
        if self.range.start == end && read_end(session, body) {
            return Err(more(end));
        }
        Ok(read)
    }
}

impl Read for Part {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while !buf.is_empty() && self.range.start < self.range.end {
            match self.read_some(buf) {
                Ok(read) => return Ok(read),
                Err(fault) => {
                    self.body = None;
                    if self.range.start - self.since > PROGRESS {
                        self.failures = 0;
                    }
                    self.since = self.range.start;
                    failed(&mut self.failures, fault)?;
                }
            }
        }
        Ok(0)
    }
}

/// The bytes of a whole file.
struct Whole {
    session: Arc<Session>,
    body: Received,
    at: u64,
    len: Option<u64>,
}

impl Read for Whole {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let at = self.at;
        let read = self.body.read(&self.session, buf);
        let read =
            read.map_err(|fault| Fault { text: format!("at {at:#x}: {}", fault.text), ..fault })?;
        if let (0, Some(len)) = (read, self.len.filter(|&len| at < len && !buf.is_empty())) {
            return Err(early(at, len).into());
        }
        self.at += read as u64;
        Ok(read)
    }
}
