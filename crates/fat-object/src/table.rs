//! Compressed bundles by their tables of entries, without decompressing what the entries hold.

use std::io::{self, Read};
use std::ops::Range;

use bundle_format::EntryId;
use bundle_format::{Bundle, Entry};
use device_code::FileFormat;
use target_id::Target;

use crate::bundle;
use crate::context::Context;
use crate::opened::{Content, Finds, Inner, Known};
use crate::source::{Origin, Source, SourceReader};

/// Larger tables are read with the whole bundle. The table of a bundle for 30 GPUs has 2 KiB.
const LARGEST: u64 = 1 << 20;

/// Largest distance between the table and the first image of a bundle for the image to be read.
const NEAR: u64 = 64 << 10;

/// Opens a compressed bundle by its table of entries; `None` if the table is not enough and the whole bundle must be
/// read.
pub(crate) fn open(
    cx: &mut Context<'_>,
    source: &mut Source<'_>,
    window: &Range<u64>,
    size: u64,
) -> io::Result<Option<Inner>> {
    let most = LARGEST.min(cx.decompressed.left()).min(size);
    let limits = size;
    let Some(start) = read_start(source, window, limits, most)? else { return Ok(None) };
    cx.decompressed.spend(start.len() as u64);
    let Ok(bundle) = Bundle::parse_prefix(&start, size) else { return Ok(None) };
    // Something may follow the bundle.
    if bundle.end() != size || cx.options.enter_images && holds_images(&bundle, &start) {
        return Ok(None);
    }
    let mut found = Finds::default();
    found.container(bundle::opened(bundle::container_of(true), &bundle, 0, 0));
    cx.add_bytes(start.len() as u64);
    let source = Source::of_start(start, size, Origin::Decompressed);
    Ok(Some(Inner { source, content: Content::known(Known(found)), held: 0, hash: None }))
}

/// Decompresses a bundle up to the end of its table of entries, and a part of the first image if that is near, within a
/// limit. `None` if that cannot be decompressed, or is not the start of a binary bundle.
fn read_start(
    source: &mut Source<'_>,
    window: &Range<u64>,
    limits: u64,
    most: u64,
) -> io::Result<Option<Vec<u8>>> {
    let reader = SourceReader::new(source, window.clone());
    let options = ccob::ReadOptions::default().with_max_decompressed(limits);
    let start = ccob::Decoder::new(reader, &options).and_then(|decoder| {
        let mut start = Start { decoder, bytes: Vec::new(), most };
        start.read_table()?.then(|| start.read_first_image()).transpose()?;
        Ok(start.bytes)
    });
    match start {
        Ok(start) => Ok(Some(start)),
        // Errors are found when the whole is read.
        Err(error) if error.get_ref().is_some_and(|error| error.is::<ccob::Error>()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The start of a compressed bundle, decompressed.
struct Start<R> {
    decoder: ccob::Decoder<R>,
    bytes: Vec<u8>,
    most: u64,
}

impl<R: Read> Start<R> {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Reads up to `len` bytes in total; false if there are no more.
    fn read(&mut self, len: u64) -> io::Result<bool> {
        // As many may have been read before.
        let more = len.min(self.most).saturating_sub(self.len());
        let read = (&mut self.decoder).take(more).read_to_end(&mut self.bytes)?;
        Ok(read > 0)
    }

    /// Reads the table of entries; false if there is none, or it is too large.
    fn read_table(&mut self) -> io::Result<bool> {
        loop {
            match Bundle::header_needed(&self.bytes) {
                Ok(needed) if needed <= self.len() => return Ok(true),
                Ok(needed) if needed <= self.most && self.read(needed)? => {}
                _ => return Ok(false),
            }
        }
    }

    /// Reads on to the first bytes of the first image, if that is near.
    fn read_first_image(&mut self) -> io::Result<()> {
        let near = self.len() + NEAR;
        if let Some(first) = first_image(&self.bytes).filter(|first| first.start < near) {
            self.read(first.start + (first.end - first.start).min(FileFormat::SNIFF_LEN as u64))?;
        }
        Ok(())
    }
}

/// Returns the range of the first image that is not empty.
fn first_image(table: &[u8]) -> Option<Range<u64>> {
    let bundle = Bundle::parse_prefix(table, u64::MAX).ok()?;
    let entries = bundle.entries().filter(|entry| entry.size() > 0);
    let first = entries.min_by_key(Entry::offset)?;
    Some(first.offset()..first.offset().checked_add(first.size())?)
}

/// Returns whether an image of the bundle that starts so may hold further images: it looks like a host object, code for
/// another device than an AMD GPU, or a container.
fn holds_images(bundle: &Bundle<'_>, start: &[u8]) -> bool {
    let is_device_code = |entry: &Entry<'_>| {
        let id = entry.id_str().ok().and_then(|id| EntryId::parse(id).ok());
        id.is_some_and(|id| is_for_amd(&id.target()))
    };
    let is_container = |entry: &Entry<'_>| {
        let bytes = usize::try_from(entry.offset()).ok().and_then(|at| start.get(at..));
        bytes.is_some_and(|bytes| FileFormat::sniff(bytes).may_hold_images())
    };
    let mut images = bundle.entries().filter(|entry| entry.size() > 0);
    images.any(|entry| !is_device_code(&entry) || is_container(&entry))
}

fn is_for_amd(target: &Target) -> bool {
    let is_amd = |triple: &target_id::Triple| {
        triple.is_amdgpu() || triple.is_spirv() && triple.vendor() == "amd"
    };
    !target.is_host() && target.triple().is_some_and(is_amd)
}
