//! Compressed bundles and compressed offload binaries: what they hold is a source of its own.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use offload_binary::CompressedBinary;

use crate::ahead::Outcome;
use crate::contents::Contents;
use crate::context::Context;
use crate::error::Problem;
use crate::model::{Compression, ContainerKind, Enter, PathStep};
use crate::opened::{Inner, Inside, Opened};
use crate::sequence::Container;
use crate::source::{Origin, Source};
use crate::{compressed_binary, nv_fatbin, offload, table};

/// A compressed container that nobody opened yet.
pub(crate) enum Closed {
    Bundle(ccob::Header),
    Binary(CompressedBinary),
    /// An entry of a fatbinary.
    Concatenated(nv_fatbin::Concatenated, Compression),
}

/// Opens the compressed bundle at the start of the window. Version 1 records no size: its end is known only when its stream
/// was decoded, which is done here; `None` if it is passed over for that.
pub(crate) fn open(
    cx: &mut Context<'_>,
    source: &mut Source<'_>,
    window: &Range<u64>,
    ordinal: usize,
) -> io::Result<Result<Option<Container>, Problem>> {
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
        return Ok(Ok(opened(size, Inside::Closed(Closed::Bundle(header)))));
    }
    if cx.options.only_sized {
        return Ok(Ok(None));
    }
    Ok(decompress(cx, source, window, &header, None)?.map(|decompressed| {
        let inside = Inside::Elsewhere(contents(cx, Arc::new(decompressed.data), None));
        opened(decompressed.consumed, inside)
    }))
}

/// Returns the contents of a compressed bundle.
fn contents(cx: &mut Context<'_>, data: Arc<Vec<u8>>, hash: Option<ccob::HashCheck>) -> Inner {
    let len = data.len() as u64;
    cx.add_bytes(len);
    let source = Source::of_shared(data, Origin::Decompressed);
    Inner { source, children: Box::new(Contents::of_container(0..len)), held: 0, hash }
}

impl Closed {
    /// Decompresses the container in `window`.
    pub(crate) fn open(
        self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        window: &Range<u64>,
        answer: Enter,
    ) -> io::Result<Result<Inner, Problem>> {
        match self {
            Closed::Bundle(header) => open_bundle(cx, source, window, &header, answer),
            Closed::Binary(header) => open_binary(cx, source, window, &header),
            Closed::Concatenated(images, own) => images.open(cx, source, window, own),
        }
    }
}

fn open_bundle(
    cx: &mut Context<'_>,
    source: &mut Source<'_>,
    window: &Range<u64>,
    header: &ccob::Header,
    answer: Enter,
) -> io::Result<Result<Inner, Problem>> {
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
    let ahead = match cx.is_in_file(source) {
        true => cx.ahead.as_mut().and_then(|ahead| ahead(window.start)),
        false => None,
    };
    if answer == Enter::OpenEarly && cx.options.verify_hash && ahead.is_none() {
        let limits = room;
        let stored = source.range(window)?;
        return Ok(match ccob::decompress_early(&stored, limits) {
            Ok((data, hash)) => {
                cx.decompressed.spend(uncompressed_size);
                Ok(contents(cx, data, Some(hash)))
            }
            Err(error) => {
                spend_on_failure(cx, &error, uncompressed_size, window.end - window.start);
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
) -> io::Result<Result<ccob::Decompressed, Problem>> {
    let uncompressed_size = header.uncompressed_size();
    let room = match cx.room_for(uncompressed_size) {
        Ok(room) => room,
        Err(error) => return Ok(Err(error)),
    };
    let outcome = match ahead {
        Some(outcome) => outcome,
        None => {
            let limits = room;
            let decompress = match cx.options.verify_hash {
                true => ccob::decompress,
                false => ccob::decompress_unverified,
            };
            read_and(decompress, source, window, header.total_size(), limits)?
        }
    };
    match &outcome {
        Ok(_) => cx.decompressed.spend(uncompressed_size),
        Err(error) => {
            spend_on_failure(cx, error, uncompressed_size, window.end - window.start);
        }
    }
    Ok(outcome.map_err(Problem::from))
}

/// Opens the compressed offload binary at the start of the window. Its entries lie in the plain one.
pub(crate) fn open_compressed_binary(
    source: &mut Source<'_>,
    window: &Range<u64>,
    ordinal: usize,
    header: CompressedBinary,
) -> io::Result<Container> {
    let start = window.start;
    let method = compressed_binary::peek_method(source, window, &header)?;
    let compression = Compression {
        method: method.name().unwrap_or("unknown"),
        format_version: None,
        stored_size: header.size(),
        uncompressed_size: header.inflated_size(),
    };
    let end = start.saturating_add(header.padded_size()).min(window.end);
    let opened = Opened {
        step: PathStep::new(ContainerKind::OffloadBinary, ordinal.to_string()),
        window: start..start.saturating_add(header.size()),
        compression: Some(compression),
        inside: Inside::Closed(Closed::Binary(header)),
    };
    Ok((opened, Some(end)))
}

fn open_binary(
    cx: &mut Context<'_>,
    source: &mut Source<'_>,
    window: &Range<u64>,
    header: &CompressedBinary,
) -> io::Result<Result<Inner, Problem>> {
    let uncompressed_size = header.inflated_size();
    let room = match cx.room_for(uncompressed_size) {
        Ok(room) => room,
        Err(error) => return Ok(Err(error)),
    };
    let plain = match compressed_binary::read_plain(source, window, header, room)? {
        Ok((_, plain)) => plain,
        Err(error) => {
            if let Problem::PackageStream(error) = &error {
                spend_on_failure(cx, error, uncompressed_size, header.size());
            }
            return Ok(Err(error));
        }
    };
    cx.decompressed.spend(uncompressed_size);
    cx.add_bytes(plain.len() as u64);
    let plain = Arc::new(plain);
    let len = plain.len() as u64;
    let children = Box::new(offload::Entries::new(Arc::clone(&plain), len, 0));
    let source = Source::of_shared(plain, Origin::Decompressed);
    Ok(Ok(Inner { source, children, held: 0, hash: None }))
}

/// Decompresses the compressed bundle at the start of the window.
///
/// In version 1 only its stream tells where it ends: so much is read, in steps, that it does.
pub(crate) fn read_and(
    mut decompress: impl FnMut(&[u8], u64) -> Result<ccob::Decompressed, ccob::Error>,
    source: &mut Source<'_>,
    window: &Range<u64>,
    total_size: Option<u64>,
    limits: u64,
) -> io::Result<Result<ccob::Decompressed, ccob::Error>> {
    const FIRST: u64 = 512;
    let available = window.end - window.start;
    let mut len = total_size.unwrap_or(FIRST).min(available);
    loop {
        let stored = source.range(&(window.start..window.start + len))?;
        match decompress(&stored, limits) {
            Err(error)
                if error.kind() == ccob::ErrorKind::EndsEarly
                    && total_size.is_none()
                    && len < available =>
            {
                len = len.saturating_mul(2).min(available);
            }
            result => return Ok(result),
        }
    }
}

/// Counts the most that can have been decompressed before an error: the work was done, as far as the data went.
fn spend_on_failure(
    cx: &mut Context<'_>,
    error: &ccob::Error,
    uncompressed_size: u64,
    stored: u64,
) {
    // A block of Zstandard that repeats one byte: 128 KiB in 4 bytes.
    const MAX_EXPANSION: u64 = 32 << 10;
    let cost = match error.kind() {
        ccob::ErrorKind::Stream
        | ccob::ErrorKind::EndsEarly
        | ccob::ErrorKind::Output
        | ccob::ErrorKind::Hash => uncompressed_size.min(stored.saturating_mul(MAX_EXPANSION)),
        // Found in headers.
        _ => 0,
    };
    cx.decompressed.spend(cx.decompressed.left().min(cost));
}
