//! Files on servers: right, different and wrong answers.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a panic fails the test"
)]

use std::io::{self, Read, Seek, SeekFrom};
use std::time::Duration;

use samples::server::{Endless, Manner, Server};
use tool_network::{Contents, Limits, Remote, Url, open};

/// Returns a file of 300,000 bytes.
fn file() -> Vec<u8> {
    (0..300_000_u32).map(|at| (at / 7 % 251) as u8).collect()
}

fn limits() -> Limits {
    Limits::default().with_wait(Duration::from_millis(500))
}

fn ask(server: &Server, path: &str, limits: &Limits) -> io::Result<Remote> {
    open(&Url::parse(&server.url(path)).unwrap(), limits)
}

/// Reads the start, the middle and the end, then all.
fn read(remote: Remote) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    match remote.contents {
        Contents::Whole(mut stream) => _ = stream.read_to_end(&mut all)?,
        Contents::Ranges(ranges) => {
            let mut reader = ranges.reader();
            let mut part = [0; 100];
            for at in [0, 150_000, 299_900] {
                reader.seek(SeekFrom::Start(at as u64))?;
                reader.read_exact(&mut part)?;
                assert_eq!(part[..], file()[at..][..100]);
            }
            reader.rewind()?;
            reader.read_to_end(&mut all)?;
        }
    }
    Ok(all)
}

/// Returns the error of a server.
fn refused(manner: &Manner) -> String {
    let server = Server::start(file(), manner.clone());
    let error = ask(&server, "/x?secret", &limits()).and_then(read).map(|all| all.len());
    let text = error.expect_err(&format!("{manner:?}")).to_string();
    assert!(!text.contains("secret"), "{text}");
    text
}

#[test]
fn a_file_is_read_in_ranges_or_as_a_whole() {
    for (manner, is_whole) in [
        (Manner::Right, false),
        (Manner::Chunked, false),
        (Manner::Header("Content-Encoding: identity".to_owned()), false),
        (Manner::Breaks(2), false),
        (Manner::Busy(503, 2), false),
        (Manner::Redirects("/there".to_owned()), false),
        (Manner::Expires(403, 1), false),
        (Manner::Expires(401, 2), false),
        (Manner::Expires(410, 1), false),
        (Manner::Tags(&["W/\"1\""]), false),
        (
            Manner::Header("Content-Encoding: identity\r\nContent-Encoding: identity".to_owned()),
            false,
        ),
        (Manner::Whole, true),
        (Manner::WholeChunked, true),
    ] {
        let server = Server::start(file(), manner.clone());
        let remote = ask(&server, "/x", &limits()).unwrap();
        assert_eq!(matches!(remote.contents, Contents::Whole(_)), is_whole, "{manner:?}");
        let counts = remote.counts.clone();
        assert!(read(remote).unwrap() == file(), "{manner:?}");
        assert_eq!(counts.requests(), server.asked().len() as u64, "{manner:?}");
        if manner == Manner::Right {
            // No byte is received twice, and the connection is used again.
            assert_eq!((counts.bytes(), server.bytes()), (300_000, 300_000));
        }
    }
    let server = Server::start(Vec::new(), Manner::Right);
    let Contents::Ranges(empty) = ask(&server, "/", &limits()).unwrap().contents else { panic!() };
    assert_eq!(empty.len(), 0);
}

#[test]
fn an_answer_that_is_wrong_is_an_error() {
    let range = |text: &str| Manner::ContentRange(text.to_owned());
    let first = |text: &str| Manner::FirstRange(text.to_owned());
    let redirect = |text: &str| Manner::Redirects(text.to_owned());
    let header = |text: &str| Manner::Header(text.to_owned());
    for (manner, expected) in [
        (Manner::Status(404), "status 404 (not found): expected 206 or 200"),
        (Manner::Status(500), "status 500 (the server failed): expected 206 or 200"),
        (Manner::Busy(429, 9), "status 429 (too many requests): expected 206 or 200"),
        (Manner::WholeLater, "the whole file in answer to a request for bytes 0x24"),
        (range("bytes 0-9/300000"), "bytes 0x0 to 0xa in answer to a request for bytes 0x24"),
        (range("bytes 147952-164335/300001"), "300001 bytes, 300000 before"),
        (range("none"), "Content-Range \"none\": expected"),
        (first("bytes 0-16383/16383"), "within the file"),
        (
            first("bytes 0-99/300000"),
            "bytes 0x0 to 0x64 in answer to a request for bytes 0x0 to 0x4000",
        ),
        (first("bytes 0-16383/18446744073709551616"), "Content-Range"),
        (Manner::ChunkedMore, "more bytes than were asked for, which end at 0x4000"),
        (Manner::Header("Content-Encoding: gzip".to_owned()), "Content-Encoding \"gzip\""),
        (Manner::EndsEarly, "at 0x"),
        (Manner::WholeEndsEarly, "at 0x249f0"),
        (Manner::WholeCloses, "status 200 with neither Content-Length nor chunks"),
        (Manner::Breaks(3), "at 0x"),
        (Manner::Silent, "no answer within 0.5 seconds"),
        (Manner::Changes, "the file was changed while it was read: another ETag"),
        (Manner::Grows, "the file was changed while it was read: 300004 bytes, 300000 before"),
        (redirect("/elsewhere"), "more than 10 redirects"),
        (
            redirect("ftp://example.com/x"),
            "redirect: URL with the scheme ftp: expected http or https",
        ),
        (redirect("http://me:pass@example.com/"), "user name or a password"),
        (
            Manner::Expires(403, 0),
            "status 403 (forbidden): expected 206 or 200 (redirected to http://",
        ),
        // Only what says that it is no longer valid is asked for again.
        (Manner::Expires(404, 1), "status 404 (not found): expected 206 or 200"),
        (Manner::ExpiresAndChanges(403, 1), "the file was changed while it was read: another ETag"),
        (
            Manner::Tags(&["W/\"1\"", "W/\"2\""]),
            "the file was changed while it was read: another ETag",
        ),
        (
            Manner::Tags(&["W/\"1\"", "\"1\""]),
            "the file was changed while it was read: another ETag",
        ),
        (
            Manner::Tags(&["\"1\"", ""]),
            "the file was changed while it was read: no ETag, one before",
        ),
        (
            Manner::Tags(&["", "\"1\""]),
            "the file was changed while it was read: an ETag, none before",
        ),
        (header("ETag: \"1\"\r\nETag: \"2\""), "ETag with different values: expected one"),
        (header("Content-Length: 5"), "conflicting content-length headers"),
        (
            header("Content-Range: bytes 0-9/10"),
            "Content-Range with different values: expected one",
        ),
        (
            header("Content-Encoding: identity\r\nContent-Encoding: gzip"),
            "Content-Encoding with different values: expected one",
        ),
        (Manner::Noise, ""),
    ] {
        let text = refused(&manner);
        assert!(text.contains(expected), "{manner:?}: {text}");
    }
}

#[test]
fn what_is_received_is_bounded() {
    let bounded = |limits: &Limits, manner| {
        let server = Server::start(file(), manner);
        let error = ask(&server, "/", limits).and_then(read).unwrap_err();
        (error.to_string(), server.asked().len())
    };
    let (text, requests) = bounded(&limits().with_requests(2), Manner::Right);
    assert_eq!((&*text, requests), ("needs more than the limit of 2 requests", 2));
    let few = limits().with_bytes(100_000);
    let (text, _) = bounded(&few, Manner::Right);
    assert!(text.contains("exceeds the limit of 100000 bytes (--max-input)"), "{text}");
    for manner in [Manner::Whole, Manner::WholeChunked] {
        let (text, requests) = bounded(&few, manner);
        assert!(text.contains("exceeds the limit of 100000 bytes (--max-input)"), "{text}");
        assert_eq!(requests, 1);
    }
    let (text, _) = bounded(&limits().with_time(Duration::ZERO), Manner::Right);
    assert_eq!(text, "exceeds the limit of 0 seconds");
}

#[test]
fn an_answer_without_end_is_bounded() {
    for (part, expected) in [
        (Endless::Headers, Err("too many headers")),
        (Endless::Header, Err("response header is too big")),
        (Endless::Trailers, Err("exceeds the limit of 1 seconds")),
        // Its connection is not used again.
        (Endless::Trailer, Ok(true)),
        (Endless::Chunk, Err("body data reading stalled")),
    ] {
        let server = Server::start(file(), Manner::Endless(part));
        let limits = limits().with_time(Duration::from_secs(1));
        let found = ask(&server, "/", &limits).and_then(read).map(|all| all == file());
        let found = found.map_err(|error| error.to_string());
        match (&found, expected) {
            (Err(text), Err(expected)) => assert!(text.contains(expected), "{part:?}: {text}"),
            (found, expected) => assert_eq!(*found, expected.map_err(str::to_owned), "{part:?}"),
        }
    }
}

#[test]
fn nobody_answers() {
    let server = Server::start(Vec::new(), Manner::Right);
    let url = Url::parse(&server.url("/")).unwrap();
    drop(server);
    // Its thread may take one more connection.
    let failed = (0..50).find_map(|_| open(&url, &limits()).err());
    assert!(failed.is_some());
    let nowhere = Url::parse("http://nowhere.invalid/").unwrap();
    assert!(open(&nowhere, &limits()).is_err());
}
