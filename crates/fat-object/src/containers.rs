//! Bundles, compressed bundles, offload binaries and fatbinaries: from their entries to images.

use std::io::{self, Cursor};
use std::ops::Range;
use std::sync::Arc;

use bundle_format::text::{EndMarkedBundle, Entry, TAIL_LEN, TextBundle, ends_in_marker};
use bundle_format::{EntryId, binary::Bundle};
use byte_parts::Budget;
use offload_binary::{CompressedBinary, OffloadBinary};
use target_id::{OffloadKind, Target, Triple};

use crate::compressed_binary;
use crate::error::Error;
use crate::file_format::FileFormat;
use crate::image::{BundleForm, Description, OffloadBinaryEntry};
use crate::model::{Compression, ContainerKind, PathStep};
use crate::nv_fatbin::{self, EntryKind};
use crate::source::{Origin, Source};
use crate::walker::Walker;

/// Longer IDs are not kept for the next bundle: memory is for what is walked.
const REMEMBERED: usize = 4096;

/// Each method walks the container at the start of its window and returns where it ends; `None` after a fault
/// that hides the end.
impl Walker<'_> {
    pub(crate) fn bundle(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
        ordinal: usize,
        object: Option<&Range<u64>>,
    ) -> io::Result<Option<u64>> {
        let prefix = bundle_prefix(source, window)?;
        let start = window.start;
        let bundle = match Bundle::parse_prefix(&prefix, window.end - start) {
            Ok(bundle) => bundle,
            Err(error) => return self.finding(source, start, error.into()).map(|()| None),
        };
        let end = start + bundle.end();
        self.entries_of(source, start, ordinal, &bundle, object)?;
        Ok(Some(end))
    }

    /// Walks the entries of a bundle that starts here.
    pub(crate) fn entries_of(
        &mut self,
        source: &mut Source<'_>,
        start: u64,
        ordinal: usize,
        bundle: &Bundle<'_>,
        object: Option<&Range<u64>>,
    ) -> io::Result<()> {
        let container = self.bundle_container();
        let segment = PathStep::new(ContainerKind::Bundle, ordinal.to_string());
        let window = start..start + bundle.end();
        self.within(source, segment, &window, None, |walker, source| {
            let ids: Vec<_> = bundle.entries().map(|entry| lossy(entry.id())).collect();
            walker.composition(source, start, &ids)?;
            for (entry, id) in bundle.entries().zip(ids) {
                let offset = start + entry.offset();
                let form = object.map_or(BundleForm::Binary, |_| BundleForm::Section);
                let mut description = walker.described_by_id(container, form, id, entry.offset());
                if source.is_start() {
                    description.format = Some(match entry.size() {
                        0 => FileFormat::Empty,
                        _ => FileFormat::NotRead,
                    });
                }
                let window = offset..offset + entry.size();
                if let Some(object) = object {
                    walker.object_form_entry(source, object, &window, &mut description)?;
                }
                walker.image(source, &window, &description)?;
            }
            Ok(())
        })
    }

    /// A text bundle takes the whole window: its end is nowhere recorded.
    pub(crate) fn text_bundle(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
    ) -> io::Result<()> {
        let bytes = source.read_range(window)?;
        match TextBundle::parse(&bytes) {
            Ok(bundle) => {
                let form = BundleForm::Text(bundle.leader());
                self.text_entries(source, window, form, bundle.entries())
            }
            Err(error) => self.finding(source, window.start, error.into()),
        }
    }

    /// A text whose last line is a marker is of the first proposal's form, or a text bundle like any other with
    /// something in front of its first marker.
    pub(crate) fn text_ending_in_marker(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
    ) -> io::Result<()> {
        let bytes = source.read_range(window)?;
        match EndMarkedBundle::parse(&bytes) {
            Ok(bundle) => {
                let form = BundleForm::EndMarkers(bundle.leader());
                self.text_entries(source, window, form, bundle.entries())
            }
            Err(error) if error.kind() == bundle_format::ErrorKind::OtherForm => {
                drop(bytes);
                self.text_bundle(source, window)
            }
            Err(error) => self.finding(source, window.start, error.into()),
        }
    }

    fn text_entries<'e>(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
        form: BundleForm,
        entries: impl Iterator<Item = Entry<'e>> + Clone,
    ) -> io::Result<()> {
        let container = self.bundle_container();
        let segment = PathStep::new(ContainerKind::Bundle, "0");
        self.within(source, segment, window, None, |walker, source| {
            let ids: Vec<_> = entries.clone().map(|entry| lossy(entry.id())).collect();
            for finding in bundle_format::composition(ids.iter().map(String::as_str)) {
                // The proposal leaves it to the user what an ID is.
                let any_id = matches!(form, BundleForm::EndMarkers(_));
                if !(any_id && finding.is_about_one_id()) {
                    walker.finding(source, window.start, Error::Composition(finding))?;
                }
            }
            for (entry, id) in entries.zip(ids) {
                let offset = window.start + entry.offset();
                let range = offset..offset + entry.size();
                let description = walker.described_by_id(container, form, id, entry.offset());
                walker.image(source, &range, &description)?;
            }
            Ok(())
        })
    }

    /// An entry of a compressed bundle is said to lie in the compressed bundle.
    fn bundle_container(&self) -> ContainerKind {
        match self.directly_in(ContainerKind::Ccob) {
            true => ContainerKind::Ccob,
            false => ContainerKind::Bundle,
        }
    }

    pub(crate) fn composition(
        &mut self,
        source: &Source<'_>,
        start: u64,
        ids: &[String],
    ) -> io::Result<()> {
        // The bundles of a library are all of a kind.
        if self.sound_ids == ids {
            return Ok(());
        }
        let before = self.findings;
        for finding in bundle_format::composition(ids.iter().map(String::as_str)) {
            self.finding(source, start, Error::Composition(finding))?;
        }
        if self.findings == before && ids.iter().map(String::len).sum::<usize>() < REMEMBERED {
            ids.clone_into(&mut self.sound_ids);
        }
        Ok(())
    }

    /// The description of an image that a bundle entry ID names.
    pub(crate) fn described_by_id(
        &mut self,
        container: ContainerKind,
        form: BundleForm,
        id: String,
        offset_in_container: u64,
    ) -> Description {
        Description {
            container,
            target: self.target_of(&id),
            id: Some(id),
            offset_in_container,
            offload_binary: None,
            format: None,
            compression: None,
            form: Some(form),
            object: None,
            sycl: None,
            hcf: None,
        }
    }

    /// What an ID says. The same few come again and again.
    fn target_of(&mut self, id: &str) -> Arc<Target> {
        if let Some(target) = self.targets.get(id) {
            return Arc::clone(target);
        }
        let target = Arc::new(match EntryId::parse(id) {
            Ok(id) => id.target(),
            Err(_) => Target::new(None, None, id),
        });
        if self.targets.len() < 64 && id.len() < REMEMBERED {
            self.targets.insert(id.to_owned(), Arc::clone(&target));
        }
        target
    }

    pub(crate) fn compressed_bundle(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
        ordinal: usize,
    ) -> io::Result<Option<u64>> {
        let start = window.start;
        let head = source.peek(window, 32)?;
        let header = match ccob::Header::parse(&head, window.end - start) {
            Ok(header) => header,
            Err(error) => return self.finding(source, start, error.into()).map(|()| None),
        };
        // Version 1 records no size: its end is known only when its stream was decoded.
        let recorded_end = header.total_size().map(|size| start + size);
        let uncompressed_size = header.uncompressed_size();
        let segment = PathStep::new(ContainerKind::Ccob, ordinal.to_string());
        let compression = |stored_size| Compression {
            method: header.method().name().unwrap_or("unknown"),
            stored_size,
            uncompressed_size,
        };
        // No bundle is empty: one that claims to be is looked into at no cost, to tell what is wrong with it.
        let opens = self.options.decompress || uncompressed_size == 0;
        let tells = self.options.tell_unopened;
        let tells_sized = tells || self.options.tell_sized;
        match recorded_end {
            Some(end) if !opens && tells_sized => {
                let compression = compression(end - start);
                let nothing = |_: &mut Self, _: &mut Source<'_>| Ok(());
                self.within(source, segment, &(start..end), Some(compression), nothing)?;
                return Ok(Some(end));
            }
            _ if !opens && !tells => return Ok(recorded_end),
            _ => {}
        }
        let (room, left) = (self.room(), self.decompressed.left());
        if uncompressed_size <= room && uncompressed_size > left {
            let limit = self.decompressed.limit();
            let error = Error::DecompressedInAll { uncompressed_size, limit };
            return self.finding(source, start, error).map(|()| recorded_end);
        }
        if let Some(end) = recorded_end
            && opens
            && self.options.tables_only
            && uncompressed_size <= room
            && self.by_table(source, segment.clone(), &(start..end), compression(end - start))?
        {
            return Ok(Some(end));
        }
        let limits = ccob::Limits::default().with_max_uncompressed(room);
        let is_file = source.origin() == Origin::File && room == self.options.max_decompressed;
        let ahead = self.ahead.as_mut().filter(|_| is_file && recorded_end.is_some());
        let ahead = ahead.and_then(|ahead| ahead(start));
        if let Some(end) = recorded_end
            && self.options.verify_hash
            && self.options.early_images
            && ahead.is_none()
        {
            let stored = source.read_range(&(start..end))?;
            let compression = compression(end - start);
            let mut walked = None;
            let decompressed = ccob::decompress_growing(&stored, &limits, &mut |data| {
                // The last time.
                if data.len() as u64 == uncompressed_size {
                    self.decompressed.spend(uncompressed_size);
                    let segment = segment.clone();
                    let walk = self.opened(source, segment, &(start..end), compression, data);
                    walked = Some(walk);
                }
            });
            if let Err(error) = decompressed {
                if walked.is_none() {
                    let cost = cost_of_failure(&error, uncompressed_size, end - start);
                    self.decompressed.spend(left.min(cost));
                }
                // Before what the visitor may have had against damaged images.
                self.finding(source, start, error.into())?;
            }
            return walked.unwrap_or(Ok(())).map(|()| recorded_end);
        }
        let decompress = match self.options.verify_hash {
            true => ccob::decompress,
            false => ccob::decompress_unverified,
        };
        let outcome = match ahead {
            Some(outcome) => outcome,
            None => read_and(decompress, source, window, header.total_size(), &limits)?,
        };
        let decompressed = match outcome {
            Ok(decompressed) => decompressed,
            Err(error) => {
                // The work was done, as far as the data went.
                let stored = recorded_end.unwrap_or(window.end) - start;
                self.decompressed.spend(left.min(cost_of_failure(
                    &error,
                    uncompressed_size,
                    stored,
                )));
                return self.finding(source, start, error.into()).map(|()| recorded_end);
            }
        };
        self.decompressed.spend(uncompressed_size);
        let compression = compression(decompressed.consumed);
        let end = start + decompressed.consumed;
        self.opened(source, segment, &(start..end), compression, &decompressed.data)?;
        Ok(Some(end))
    }

    /// Walks what a compressed bundle holds.
    fn opened(
        &mut self,
        source: &mut Source<'_>,
        segment: PathStep,
        window: &Range<u64>,
        compression: Compression,
        data: &[u8],
    ) -> io::Result<()> {
        let opens = self.options.decompress || compression.uncompressed_size == 0;
        self.within(source, segment, window, Some(compression), |walker, _| {
            if !opens {
                return Ok(());
            }
            let mut reader = Cursor::new(data);
            let mut inner = Source::of_bytes(&mut reader, data, Origin::Decompressed);
            walker.add_source(&inner);
            let all = 0..inner.len();
            let format = walker.contents(&mut inner, &all)?;
            if format.is_container() {
                return Ok(());
            }
            let first = inner.peek(&all, 8)?;
            walker.finding(&inner, 0, Error::UnknownContents { first })
        })
    }

    pub(crate) fn offload_binary(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
        ordinal: usize,
    ) -> io::Result<Option<u64>> {
        let prefix = package_prefix(source, window)?;
        let start = window.start;
        let binary = match OffloadBinary::parse_prefix(&prefix, window.end - start) {
            Ok(binary) => binary,
            Err(error) => {
                let Some(binary) = error.compressed() else {
                    return self.finding(source, start, error.into()).map(|()| None);
                };
                let end = start.saturating_add(binary.padded_size()).min(window.end);
                self.compressed_package(source, window, ordinal, binary)?;
                return Ok(Some(end));
            }
        };
        let end = start + binary.size();
        let segment = PathStep::new(ContainerKind::OffloadBinary, ordinal.to_string());
        self.within(source, segment, &(start..end), None, |walker, source| {
            walker.package_entries(source, start, &binary)
        })?;
        Ok(Some(end))
    }

    /// Walks the compressed offload binary at the start of the window. Its entries lie in the plain offload binary.
    fn compressed_package(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
        ordinal: usize,
        header: &CompressedBinary,
    ) -> io::Result<()> {
        let start = window.start;
        let stored = start..start.saturating_add(header.size());
        let segment = PathStep::new(ContainerKind::OffloadBinary, ordinal.to_string());
        let uncompressed_size = header.inflated_size();
        let compression = |method: ccob::Method| Compression {
            method: method.name().unwrap_or("unknown"),
            stored_size: header.size(),
            uncompressed_size,
        };
        if !self.options.decompress {
            if self.options.tell_unopened {
                let compression =
                    compression(compressed_binary::peek_method(source, window, header)?);
                let nothing = |_: &mut Self, _: &mut Source<'_>| Ok(());
                self.within(source, segment, &stored, Some(compression), nothing)?;
            }
            return Ok(());
        }
        let (room, left) = (self.room(), self.decompressed.left());
        if uncompressed_size <= room && uncompressed_size > left {
            let limit = self.decompressed.limit();
            let error = Error::DecompressedInAll { uncompressed_size, limit };
            return self.finding(source, start, error);
        }
        let (method, plain) = match compressed_binary::read_plain(source, window, header, room)? {
            Ok(plain) => plain,
            Err(error) => {
                if let Error::PackageStream(error) = &error {
                    let cost = cost_of_failure(error, uncompressed_size, header.size());
                    self.decompressed.spend(left.min(cost));
                }
                return self.finding(source, start, error);
            }
        };
        self.decompressed.spend(uncompressed_size);
        self.within(source, segment, &stored, Some(compression(method)), |walker, _| {
            let mut reader = Cursor::new(&plain[..]);
            let mut inner = Source::of_bytes(&mut reader, &plain, Origin::Decompressed);
            walker.add_source(&inner);
            match OffloadBinary::parse(&plain) {
                Ok(binary) => walker.package_entries(&mut inner, 0, &binary),
                Err(error) => walker.finding(&inner, 0, error.into()),
            }
        })
    }

    /// Walks the entries of an offload binary that starts here.
    fn package_entries(
        &mut self,
        source: &mut Source<'_>,
        start: u64,
        binary: &OffloadBinary<'_>,
    ) -> io::Result<()> {
        for entry in binary.entries() {
            // Strings may share bytes.
            for (key, value) in entry.strings() {
                if !self.names.take(key.len() as u64 + value.len() as u64) {
                    let error = Error::TooManyNames { limit: self.names.limit() };
                    return self.finding(source, start, error);
                }
            }
            let description = Description {
                container: ContainerKind::OffloadBinary,
                target: entry.target().into(),
                id: None,
                offset_in_container: entry.image_offset(),
                offload_binary: Some(OffloadBinaryEntry {
                    image_kind: entry.image_kind(),
                    offload_kind: entry.offload_kind(),
                    flags: entry.flags(),
                    strings: entry.strings().map(|(k, v)| (k.to_vec(), v.to_vec())).collect(),
                }),
                format: None,
                compression: None,
                form: None,
                object: None,
                sycl: None,
                hcf: None,
            };
            let offset = start + entry.image_offset();
            self.image(source, &(offset..offset + entry.image_size()), &description)?;
        }
        Ok(())
    }

    pub(crate) fn nv_fatbin(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
        ordinal: usize,
    ) -> io::Result<Option<u64>> {
        let start = window.start;
        let len = match nv_fatbin::parse_header(&source.peek(window, 16)?, window.end - start) {
            Ok(len) => len,
            Err(error) => return self.finding(source, start, error.into()).map(|()| None),
        };
        let end = start + len;
        let segment = PathStep::new(ContainerKind::NvFatbin, ordinal.to_string());
        self.within(source, segment, &(start..end), None, |walker, source| {
            let mut offset = nv_fatbin::HEADER_LEN;
            let mut index = 0;
            while offset < len {
                let head = source.peek(&(start + offset..end), 64)?;
                let entry = match nv_fatbin::parse_entry(&head, index, offset, len) {
                    Ok(entry) => entry,
                    Err(error) => return walker.finding(source, start, error.into()),
                };
                let format = match entry.kind {
                    EntryKind::Ptx => Some(FileFormat::Ptx),
                    EntryKind::Elf => Some(FileFormat::Cubin),
                    EntryKind::LinkTimeIr | EntryKind::Other => Some(FileFormat::Unknown),
                };
                let description = Description {
                    container: ContainerKind::NvFatbin,
                    target: Target::new(
                        Some(OffloadKind::Cuda),
                        Some(Triple::parse("nvptx64-nvidia-cuda")),
                        &format!("sm_{}{}", entry.sm, entry.suffix),
                    )
                    .into(),
                    id: None,
                    offset_in_container: entry.offset,
                    offload_binary: None,
                    // The first bytes of compressed code say nothing.
                    format: format.filter(|_| entry.compression.is_some()),
                    compression: entry.compression.map(|(method, uncompressed_size)| Compression {
                        method,
                        stored_size: entry.stored_size,
                        uncompressed_size,
                    }),
                    form: None,
                    object: None,
                    sycl: None,
                    hcf: None,
                };
                let offset_in_source = start + entry.offset;
                walker.image(
                    source,
                    &(offset_in_source..offset_in_source + entry.stored_size),
                    &description,
                )?;
                offset = entry.end;
                index += 1;
            }
            Ok(())
        })?;
        Ok(Some(end))
    }
}

/// Decompresses the compressed bundle at the start of the window.
///
/// In version 1 only its stream tells where it ends: so much is read, in steps, that it does.
pub(crate) fn read_and(
    mut decompress: impl FnMut(&[u8], &ccob::Limits) -> Result<ccob::Decompressed, ccob::Error>,
    source: &mut Source<'_>,
    window: &Range<u64>,
    total_size: Option<u64>,
    limits: &ccob::Limits,
) -> io::Result<Result<ccob::Decompressed, ccob::Error>> {
    const FIRST: u64 = 512;
    let available = window.end - window.start;
    let mut len = total_size.unwrap_or(FIRST).min(available);
    loop {
        let stored = source.read_range(&(window.start..window.start + len))?;
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

/// The most that was decompressed before this error.
fn cost_of_failure(error: &ccob::Error, uncompressed_size: u64, stored: u64) -> u64 {
    // A block of Zstandard that repeats one byte: 128 KiB in 4 bytes.
    const MAX_EXPANSION: u64 = 32 << 10;
    match error.kind() {
        ccob::ErrorKind::Stream
        | ccob::ErrorKind::EndsEarly
        | ccob::ErrorKind::Output
        | ccob::ErrorKind::Hash => uncompressed_size.min(stored.saturating_mul(MAX_EXPANSION)),
        // Found in headers.
        _ => 0,
    }
}

pub(crate) fn bundle_prefix(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Vec<u8>> {
    source.read_prefix(window, |prefix, available| {
        Bundle::parse_prefix(prefix, available).err().and_then(|e| e.needed())
    })
}

pub(crate) fn package_prefix(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Vec<u8>> {
    source.read_prefix(window, |prefix, available| {
        OffloadBinary::parse_prefix(prefix, available).err().and_then(|e| e.needed())
    })
}

/// What a section starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// No container, or one whose header is damaged.
    Nothing,
    /// A container whose header is in order.
    Container,
    /// Perhaps a container: the budget forbids to look.
    Unknown,
}

/// Tells whether a container starts here whose header is in order.
///
/// For sections that nothing but their first bytes give away: programs that deal with these formats, LLVM's own
/// among them, have the magics in their string constants. `headers` counts the bytes of headers that were read.
pub(crate) fn starts_with(
    source: &mut Source<'_>,
    window: &Range<u64>,
    headers: &mut Budget,
) -> io::Result<Start> {
    let head = source.peek(window, 32)?;
    let available = window.end - window.start;
    let sound = match FileFormat::sniff(&head) {
        FileFormat::CompressedBundle => ccob::Header::parse(&head, available).is_ok(),
        FileFormat::Fatbinary => nv_fatbin::parse_header(&head, available).is_ok(),
        FileFormat::Bundle if !head.starts_with(&bundle_format::binary::MAGIC) => false,
        FileFormat::Bundle | FileFormat::OffloadBinary if headers.left() == 0 => {
            return Ok(Start::Unknown);
        }
        FileFormat::Bundle => {
            let prefix = bundle_prefix(source, window)?;
            headers.spend(prefix.len() as u64);
            // Programs that read bundles have the magic among their constants, with zeros behind it.
            Bundle::parse_prefix(&prefix, available).is_ok_and(|bundle| !bundle.is_empty())
        }
        FileFormat::OffloadBinary => {
            let prefix = package_prefix(source, window)?;
            headers.spend(prefix.len() as u64);
            let parsed = OffloadBinary::parse_prefix(&prefix, available);
            parsed.is_ok() || parsed.is_err_and(|error| error.compressed().is_some())
        }
        _ => false,
    };
    Ok(if sound { Start::Container } else { Start::Nothing })
}

/// Whether the window holds a text, of which `head` is the start, whose last line is the marker of a text bundle.
/// Costs one reading of a few kilobytes, whatever the window holds.
pub(crate) fn is_text_ending_in_marker(
    source: &mut Source<'_>,
    window: &Range<u64>,
    head: &[u8],
) -> io::Result<bool> {
    if head.contains(&0) {
        return Ok(false);
    }
    let start = window.end.saturating_sub(TAIL_LEN as u64).max(window.start);
    Ok(ends_in_marker(&source.read_range(&(start..window.end))?))
}

pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
