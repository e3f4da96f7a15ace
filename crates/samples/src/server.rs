//! A web server on loopback with ranges of one file: it counts, and lies as it is told.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Faults of a server, and differences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Nothing.
    Right,
    /// Whole files only.
    Whole,
    /// As before, without their length.
    WholeChunked,
    /// As before, and the file ends early.
    WholeEndsEarly,
    /// Ranges come in chunks, without a length.
    Chunked,
    /// As before, with a byte more than was asked for.
    ChunkedMore,
    /// This status.
    Status(u16),
    /// This status in answer to the first requests, this many times.
    Busy(u16, usize),
    /// Status 500 in answer to the request of this number, from 0.
    FailsAt(usize),
    /// This other file at paths that end with `.kpack`.
    Pair(Vec<u8>),
    /// A whole file, which ends where the connection does.
    WholeCloses,
    /// This `Content-Range` in answer to requests after the first.
    ContentRange(String),
    /// This `Content-Range` in answer to the first request.
    FirstRange(String),
    /// This further header.
    Header(String),
    /// The bytes of each answer after the first end in the middle, and the connection ends.
    EndsEarly,
    /// As before, for this many answers.
    Breaks(usize),
    /// It accepts requests after the first, and does not answer.
    Silent,
    /// Each answer has another `ETag`.
    Changes,
    /// The file is longer at the second request.
    Grows,
    /// The second request gets the whole file.
    WholeLater,
    /// This `Location`, with status 302, for paths other than `/there`.
    Redirects(String),
    /// This `Location`, with status 302, from all hosts: it is a proxy.
    ProxyRedirects(String),
    /// Other paths redirect to a new path each time, `/there-N`, which gives this status after this many answers.
    Expires(u16, usize),
    /// As before, and the file has another `ETag` at each of these paths.
    ExpiresAndChanges(u16, usize),
    /// Each answer has the next of these as its `ETag`, or none for an empty one, and all later ones the last.
    Tags(&'static [&'static str]),
    /// A part of each answer after the first has no end.
    Endless(Endless),
    /// The answer is not HTTP.
    Noise,
}

/// A part of an answer that has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endless {
    /// The list of headers.
    Headers,
    /// A header.
    Header,
    /// The list of trailers after the last chunk.
    Trailers,
    /// A trailer.
    Trailer,
    /// The line with the size of a chunk.
    Chunk,
}

impl Manner {
    /// Returns each manner once, with an example of what it is about.
    pub fn all() -> impl Iterator<Item = Manner> {
        std::iter::successors(Some(Manner::Right), Manner::next)
    }

    /// Returns the manner after this one: a new one belongs here, too.
    fn next(&self) -> Option<Manner> {
        Some(match self {
            Manner::Right => Manner::Whole,
            Manner::Whole => Manner::WholeChunked,
            Manner::WholeChunked => Manner::WholeEndsEarly,
            Manner::WholeEndsEarly => Manner::Chunked,
            Manner::Chunked => Manner::ChunkedMore,
            Manner::ChunkedMore => Manner::Status(404),
            Manner::Status(_) => Manner::Busy(503, 2),
            Manner::Busy(..) => Manner::FailsAt(1),
            Manner::FailsAt(_) => Manner::Pair(b"other".to_vec()),
            Manner::Pair(_) => Manner::WholeCloses,
            Manner::WholeCloses => Manner::ContentRange("bytes 0-9/10".to_owned()),
            Manner::ContentRange(_) => Manner::FirstRange("bytes 0-9/10".to_owned()),
            Manner::FirstRange(_) => Manner::Header("Content-Encoding: gzip".to_owned()),
            Manner::Header(_) => Manner::EndsEarly,
            Manner::EndsEarly => Manner::Breaks(2),
            Manner::Breaks(_) => Manner::Silent,
            Manner::Silent => Manner::Changes,
            Manner::Changes => Manner::Grows,
            Manner::Grows => Manner::WholeLater,
            Manner::WholeLater => Manner::Redirects("/there".to_owned()),
            Manner::Redirects(_) => Manner::ProxyRedirects("/there".to_owned()),
            Manner::ProxyRedirects(_) => Manner::Expires(403, 1),
            Manner::Expires(..) => Manner::ExpiresAndChanges(403, 1),
            Manner::ExpiresAndChanges(..) => Manner::Tags(&["\"1\"", ""]),
            Manner::Tags(_) => Manner::Endless(Endless::Headers),
            Manner::Endless(Endless::Headers) => Manner::Endless(Endless::Header),
            Manner::Endless(Endless::Header) => Manner::Endless(Endless::Trailers),
            Manner::Endless(Endless::Trailers) => Manner::Endless(Endless::Trailer),
            Manner::Endless(Endless::Trailer) => Manner::Endless(Endless::Chunk),
            Manner::Endless(Endless::Chunk) => Manner::Noise,
            Manner::Noise => return None,
        })
    }
}

/// A server of one file, at any path.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    file: Vec<u8>,
    manner: Manner,
    requests: AtomicUsize,
    asked: Mutex<Vec<(String, Option<Range<u64>>)>>,
    is_over: AtomicBool,
}

impl Server {
    /// Starts a server of a file.
    ///
    /// # Panics
    ///
    /// There is no loopback.
    #[must_use]
    pub fn start(file: Vec<u8>, manner: Manner) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            file,
            manner,
            requests: AtomicUsize::new(0),
            asked: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if shared.is_over.load(Ordering::Relaxed) {
                    break;
                }
                let state = Arc::clone(&shared);
                // Clients may leave.
                thread::spawn(move || drop(state.serve(&stream)));
            }
        });
        Server { address, state }
    }

    /// Returns the URL of a path, which starts with a slash.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the paths that were asked for, with their ranges.
    ///
    /// # Panics
    ///
    /// Never.
    #[must_use]
    pub fn asked(&self) -> Vec<(String, Option<Range<u64>>)> {
        self.state.asked.lock().unwrap().clone()
    }

    /// Returns the number of bytes that were asked for in ranges.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let len = self.state.file.len() as u64;
        let asked = self.asked().into_iter().filter_map(|(_, range)| range);
        asked.map(|range| range.end.min(len) - range.start.min(len)).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Relaxed);
        // So that it sees that it is over.
        drop(TcpStream::connect(self.address));
    }
}

impl State {
    /// Answers the requests of a connection.
    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        loop {
            let (mut path, mut range, mut is_tunnel) = (None, None, false);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line)? == 0 {
                    return Ok(());
                }
                let line = line.trim_end();
                if line.is_empty() {
                    break;
                }
                if path.is_none() {
                    is_tunnel = line.starts_with("CONNECT ");
                    path = line.split(' ').nth(1).map(str::to_owned);
                } else if let Some(asked) = line.to_ascii_lowercase().strip_prefix("range: bytes=")
                {
                    let ends = asked.split_once('-');
                    range = ends.and_then(|(start, last)| {
                        Some(start.parse::<u64>().ok()?..last.parse::<u64>().ok()? + 1)
                    });
                }
            }
            let Some(path) = path else { return Ok(()) };
            if is_tunnel {
                let mut out = stream;
                out.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
                continue;
            }
            self.asked.lock().unwrap().push((path.clone(), range.clone()));
            let number = self.requests.fetch_add(1, Ordering::Relaxed);
            if !self.answer(stream, &path, range, number)? {
                return Ok(());
            }
        }
    }

    /// Answers a request; returns whether the connection stays.
    fn answer(
        &self,
        mut out: &TcpStream,
        path: &str,
        range: Option<Range<u64>>,
        number: usize,
    ) -> std::io::Result<bool> {
        let is_first = number == 0;
        let mut file = &self.file[..];
        let longer;
        let mut head = String::new();
        let mut status = 206;
        let mut is_chunked = false;
        match &self.manner {
            Manner::Status(other) => status = *other,
            Manner::Pair(other) if path.ends_with(".kpack") => file = other,
            Manner::FailsAt(failing) if number == *failing => status = 500,
            Manner::Busy(other, times) if number < *times => status = *other,
            Manner::Redirects(location) if path != "/there" => {
                status = 302;
                writeln!(head, "Location: {location}\r").unwrap();
            }
            Manner::ProxyRedirects(location) => {
                status = 302;
                writeln!(head, "Location: {location}\r").unwrap();
            }
            Manner::Expires(refusal, most) | Manner::ExpiresAndChanges(refusal, most) => {
                let asked = self.asked.lock().unwrap();
                if !path.starts_with("/there-") {
                    status = 302;
                    writeln!(head, "Location: /there-{number}?signature=secret\r").unwrap();
                } else if asked.iter().filter(|(other, _)| other == path).count() > *most {
                    status = *refusal;
                } else if matches!(self.manner, Manner::ExpiresAndChanges(..)) {
                    writeln!(head, "ETag: {path:?}\r").unwrap();
                }
            }
            Manner::Tags(tags) => match tags.get(number.min(tags.len() - 1)) {
                None | Some(&"") => {}
                Some(tag) => writeln!(head, "ETag: {tag}\r").unwrap(),
            },
            Manner::Whole | Manner::WholeChunked | Manner::WholeEndsEarly | Manner::WholeCloses => {
                status = 200;
            }
            Manner::WholeLater if !is_first => status = 200,
            Manner::Noise => {
                out.write_all(b"220 mail.example.com ESMTP\r\n\r\n")?;
                return Ok(false);
            }
            Manner::Silent if !is_first => {
                while !self.is_over.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                return Ok(false);
            }
            Manner::Grows if !is_first => {
                longer = [file, b"more"].concat();
                file = &longer;
            }
            Manner::Changes => writeln!(head, "ETag: \"{number}\"\r").unwrap(),
            Manner::Header(line) => writeln!(head, "{line}\r").unwrap(),
            _ => {}
        }
        let len = file.len() as u64;
        let range = range.filter(|_| status == 206).unwrap_or(0..len);
        if status == 206 && range.start >= len {
            status = 416;
        }
        let mut bytes = match status {
            200 | 206 => &file[range.start as usize..range.end.min(len) as usize],
            _ => b"",
        };
        let end = range.start + bytes.len() as u64;
        match (&self.manner, status) {
            (Manner::ContentRange(text), 206) if !is_first => {
                writeln!(head, "Content-Range: {text}\r").unwrap();
            }
            (Manner::FirstRange(text), 206) if is_first => {
                writeln!(head, "Content-Range: {text}\r").unwrap();
            }
            (_, 206) => {
                writeln!(head, "Content-Range: bytes {}-{}/{len}\r", range.start, end - 1).unwrap();
            }
            (_, 416) => writeln!(head, "Content-Range: bytes */{len}\r").unwrap(),
            _ => {}
        }
        let endless = match self.manner {
            Manner::Endless(endless) if !is_first => Some(endless),
            _ => None,
        };
        match endless {
            Some(Endless::Headers) => {
                write!(out, "HTTP/1.1 {status} Status\r\n{head}")?;
                return self.repeat(out, b"X-More: 1\r\n");
            }
            Some(Endless::Header) => {
                write!(out, "HTTP/1.1 {status} Status\r\n{head}X-More: ")?;
                return self.repeat(out, b"more");
            }
            Some(Endless::Trailers | Endless::Trailer | Endless::Chunk) => is_chunked = true,
            None => {}
        }
        is_chunked |=
            matches!(self.manner, Manner::Chunked | Manner::ChunkedMore | Manner::WholeChunked);
        if is_chunked {
            head.push_str("Transfer-Encoding: chunked\r\n");
        } else if self.manner == Manner::WholeCloses {
            head.push_str("Connection: close\r\n");
        } else {
            writeln!(head, "Content-Length: {}\r", bytes.len()).unwrap();
        }
        let ends_early = match &self.manner {
            Manner::WholeEndsEarly | Manner::WholeCloses => true,
            Manner::EndsEarly => !is_first,
            Manner::Breaks(times) => (1..=*times).contains(&number),
            _ => false,
        };
        if ends_early {
            bytes = &bytes[..bytes.len() / 2];
        }
        write!(out, "HTTP/1.1 {status} Status\r\n{head}\r\n")?;
        if is_chunked {
            if endless == Some(Endless::Chunk) {
                return self.repeat(out, b"0");
            }
            for chunk in bytes.chunks(10_000) {
                write!(out, "{:x}\r\n", chunk.len())?;
                out.write_all(chunk)?;
                out.write_all(b"\r\n")?;
            }
            if self.manner == Manner::ChunkedMore {
                out.write_all(b"1\r\nx\r\n")?;
            }
            match endless {
                Some(Endless::Trailers) => {
                    out.write_all(b"0\r\n")?;
                    return self.repeat(out, b"X-More: 1\r\n");
                }
                Some(Endless::Trailer) => {
                    out.write_all(b"0\r\nX-More: ")?;
                    return self.repeat(out, b"more");
                }
                _ => out.write_all(b"0\r\n\r\n")?,
            }
        } else {
            out.write_all(bytes)?;
        }
        Ok(!ends_early)
    }

    /// Writes bytes again and again, until the client leaves.
    fn repeat(&self, mut out: &TcpStream, bytes: &[u8]) -> std::io::Result<bool> {
        let many = bytes.repeat(1000);
        while !self.is_over.load(Ordering::Relaxed) {
            out.write_all(&many)?;
        }
        Ok(false)
    }
}
