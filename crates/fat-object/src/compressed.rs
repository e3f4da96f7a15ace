//! Compressed bundles: what they hold is a source of its own.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use ccob::{Method, ReadOptions};

use crate::context::{Context, Outcome};
use crate::error::Error;
use crate::model::{Compression, ContainerKind, Enter, PathStep};
use crate::opened::{Closed, Container, Content, Inner, Inside, Opened};
use crate::source::{Origin, Source};
use crate::table;

/// A compressed bundle that nobody opened yet.
struct ClosedBundle(ccob::Header);

/// Opens the compressed bundle at the start of the window. Version 1 records no size: its end is known only when its stream
/// was decoded, which is done here; `None` if it is passed over for that.
pub(crate) fn open(
    cx: &mut Context<'_>,
    source: &mut Source<'_>,
    window: &Range<u64>,
    ordinal: usize,
) -> io::Result<Result<Option<Container>, Error>> {
    let start = window.start;
    let head = source.peek(window, 32)?;
    let header = match ccob::Header::parse(&head, window.end - start) {
        Ok(header) => header,
        Err(error) => return Ok(Err(error.into())),
    };
    let step = PathStep::new(ContainerKind::Ccob, ordinal.to_string());
    let opened = |size, inside| {
        let compression = Compression {
            method: header.method().name().unwrap_or("unknown"),
            format_version: Some(header.version().number()),
            stored_size: size,
            uncompressed_size: header.uncompressed_size(),
        };
        let end = start + size;
        Some((
            Opened { step, window: start..end, compression: Some(compression), inside },
            Some(end),
        ))
    };
    if let Some(size) = header.total_size() {
        return Ok(Ok(opened(size, Inside::Closed(Box::new(ClosedBundle(header))))));
    }
    if cx.options.only_sized {
        return Ok(Ok(None));
    }
    Ok(decompress(cx, source, window, &header, None)?.map(|decompressed| {
        let inside = Inside::Elsewhere(contents(cx, Arc::new(decompressed.data), None));
        opened(decompressed.consumed, inside)
    }))
}

/// Returns the size of a compressed bundle whose header a stream of its method follows. One of version 1, which records
/// no size, takes all available bytes.
pub(crate) fn size(head: &[u8], available: u64) -> Option<u64> {
    let header = ccob::Header::parse(head, available).ok().filter(|header| {
        let stream = head.get(header.header_len()..);
        stream.is_some_and(|stream| is_stream_of(header.method(), stream))
            && header.uncompressed_size() > 0
    });
    header.map(|header| header.total_size().unwrap_or(available))
}

/// Returns whether a stream of this method starts here.
pub(crate) fn is_stream_of(method: Method, stream: &[u8]) -> bool {
    match method {
        // A frame, or one to skip (RFC 8878).
        Method::ZSTD => {
            matches!(stream, [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
        }
        // Deflate, and a checksum of the first two bytes (RFC 1950).
        Method::ZLIB => {
            matches!(stream, [first, second, ..] if first & 0xf == 8
                && (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0)
        }
        _ => false,
    }
}

/// Returns the contents of a compressed bundle.
fn contents(cx: &mut Context<'_>, data: Arc<Vec<u8>>, hash: Option<ccob::HashCheck>) -> Inner {
    let len = data.len() as u64;
    cx.add_bytes(len);
    let source = Source::of_shared(data, Origin::Decompressed);
    Inner { source, content: Content::Container(0..len), held: 0, hash }
}

impl Closed for ClosedBundle {
    fn open(
        self: Box<Self>,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        window: &Range<u64>,
        answer: Enter,
    ) -> io::Result<Result<Inner, Error>> {
        open_bundle(cx, source, window, &self.0, answer)
    }
}

fn open_bundle(
    cx: &mut Context<'_>,
    source: &mut Source<'_>,
    window: &Range<u64>,
    header: &ccob::Header,
    answer: Enter,
) -> io::Result<Result<Inner, Error>> {
    let uncompressed_size = header.uncompressed_size();
    let room = match cx.room_for(uncompressed_size) {
        Ok(room) => room,
        Err(error) => return Ok(Err(error)),
    };
    if cx.options.tables_only
        && uncompressed_size <= room
        && let Some(inner) = table::open(cx, source, window, uncompressed_size)?
    {
        return Ok(Ok(inner));
    }
    let ahead = if cx.is_in_file(source) {
        cx.ahead.as_mut().and_then(|ahead| ahead(window.start))
    } else {
        None
    };
    if answer == Enter::OpenEarly && cx.options.verify_hash && ahead.is_none() {
        let options = ReadOptions::default().with_max_decompressed(room);
        let stored = source.range(window)?;
        return Ok(match ccob::decompress_early(&stored, &options) {
            Ok((data, hash)) => {
                cx.decompressed.spend(uncompressed_size);
                Ok(contents(cx, data, Some(hash)))
            }
            Err(error) => {
                cx.spend_on_failure(&error, uncompressed_size, window.end - window.start);
                Err(error.into())
            }
        });
    }
    let decompressed = decompress(cx, source, window, header, ahead)?;
    Ok(decompressed.map(|decompressed| contents(cx, Arc::new(decompressed.data), None)))
}

/// Decompresses the compressed bundle at the start of the window, unless that was done `ahead`.
fn decompress(
    cx: &mut Context<'_>,
    source: &mut Source<'_>,
    window: &Range<u64>,
    header: &ccob::Header,
    ahead: Option<Outcome>,
) -> io::Result<Result<ccob::Decompressed, Error>> {
    let uncompressed_size = header.uncompressed_size();
    let room = match cx.room_for(uncompressed_size) {
        Ok(room) => room,
        Err(error) => return Ok(Err(error)),
    };
    let outcome = match ahead {
        Some(outcome) => outcome,
        None => {
            let options = ReadOptions::default().with_max_decompressed(room);
            let options = options.with_verify_hash(cx.options.verify_hash);
            read_bundle(source, window, header.total_size(), &options)?
        }
    };
    match &outcome {
        Ok(_) => cx.decompressed.spend(uncompressed_size),
        Err(error) => {
            cx.spend_on_failure(error, uncompressed_size, window.end - window.start);
        }
    }
    Ok(outcome.map_err(Error::from))
}

/// Decompresses the compressed bundle at the start of the window.
///
/// In version 1 only its stream tells where it ends: so much is read, in steps, that it does.
pub(crate) fn read_bundle(
    source: &mut Source<'_>,
    window: &Range<u64>,
    total_size: Option<u64>,
    options: &ReadOptions,
) -> io::Result<Result<ccob::Decompressed, ccob::Error>> {
    const FIRST: u64 = 512;
    let available = window.end - window.start;
    let mut len = total_size.unwrap_or(FIRST).min(available);
    loop {
        let stored = source.range(&(window.start..window.start + len))?;
        match ccob::decompress(&stored, options) {
            Err(error)
                if error.kind() == ccob::ErrorKind::EndsEarly
                    && total_size.is_none()
                    && len < available =>
            {
                len = (len * 2).min(available);
            }
            result => return Ok(result),
        }
    }
}
