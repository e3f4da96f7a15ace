//! NVIDIA fatbinaries, laid out again from the entries they keep and get.

use std::borrow::Cow;
use std::ops::Range;

use bundle_format::EntryId;
use byte_parts::Source;
use fat_object::{ContainerKind, FileFormat, ImageInfo};
use nv_fatbin::{
    Architecture, Codec, Compression, CompressionMode, Entry, Fatbin, Flags, Kind, NewEntry,
    NewFatbin,
};
use object_edit::{Input, Output, copy_of};

use crate::SNIFF_LEN;
use crate::compress::{CompressOptions, FatbinaryCodec};
use crate::rebuild::{RebuildError, malformed};
use crate::wishes::{NewImages, Wish, Wishes};

/// Bytes of the header of a fatbinary.
const HEADER: usize = 16;
/// Bytes of the header of an entry that tell all that is needed here.
const ENTRY_HEADER: usize = 64;
/// Flags that describe the file, not the code.
const OF_THE_FILE: Flags =
    Flags::CUDA.union(Flags::OPENCL).union(Flags::LINUX).union(Flags::MACOS).union(Flags::WINDOWS);
/// Version of the ABI of cubins of CUDA 12 and older, at most.
const OLDER: (u16, u16) = (1, 7);
/// The level of Zstandard that `fatbinary` 13 writes if none is asked for.
const LEVEL: i32 = 5;
/// The level of LZ4 if none is asked for: liblz4's.
const LZ4_LEVEL: i32 = 9;

/// The form in which entries are to be stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Form {
    /// As they are.
    Kept,
    /// Not compressed.
    Plain,
    /// Compressed, at this level; entries that are compressed already only if they are to be compressed again.
    Compressed { level: Option<i32>, again: bool, codec: FatbinaryCodec },
}

impl Form {
    /// Returns the form that compression gives.
    pub(super) fn compressed(options: &CompressOptions) -> Self {
        let (level, again) = (options.write.level(), options.recompress);
        Form::Compressed { level, again, codec: options.fatbinaries }
    }

    /// Returns the form that an entry gets; `None` if it stays as it is. Code that no codec here reads stays.
    ///
    /// Code of CUDA 12 and older is compressed by LZ4 if nothing else is asked for.
    fn of(self, entry: &Entry<'_>, is_older: bool) -> Option<Compression> {
        match (self, entry.codec()) {
            (Form::Kept, _) | (Form::Plain, None) => None,
            (_, Some(Codec::Scrambled | Codec::Unknown)) => None,
            (Form::Plain, Some(_)) => Some(Compression::None),
            (
                Form::Compressed { again: false, codec: FatbinaryCodec::Lz4, level },
                Some(Codec::Zstd),
            ) => Some(Compression::Lz4(level.unwrap_or(LZ4_LEVEL))),
            (Form::Compressed { again: false, .. }, Some(_)) => None,
            (Form::Compressed { level, codec, .. }, _) => Some(compressed(level, codec, is_older)),
        }
    }
}

/// Returns the compression of code: LZ4 if it is asked for, for the drivers of older code, and in builds without an encoder for
/// Zstandard.
fn compressed(level: Option<i32>, codec: FatbinaryCodec, is_older: bool) -> Compression {
    let is_lz4 = match codec {
        FatbinaryCodec::ByAge => is_older,
        FatbinaryCodec::Lz4 => true,
        FatbinaryCodec::Zstd => false,
    };
    if is_lz4 || !cfg!(feature = "zstd") {
        Compression::Lz4(level.unwrap_or(LZ4_LEVEL))
    } else {
        Compression::Zstd(level.unwrap_or(LEVEL))
    }
}

/// Facts that the headers of all entries tell.
struct Facts {
    /// The compression of the first compressed entry.
    like: Option<Compression>,
    /// The kind and the compression of each entry.
    stored: Vec<(Kind, Compression)>,
    /// The flags of the file that all have.
    common: Flags,
    /// True if a cubin is of CUDA 12 or older.
    is_older: bool,
}

impl Facts {
    /// Returns the compression of a new entry: the compression of the last one of its kind. Without one, as `fatbinary`
    /// does, with the codec that the file has.
    fn of_new(&self, kind: Kind, flags: Flags) -> Compression {
        if let Some((_, stored)) = self.stored.iter().rfind(|(other, _)| *other == kind) {
            return *stored;
        }
        match CompressionMode::Default.compression(kind, flags, false) {
            Compression::None => Compression::None,
            _ => self.like.unwrap_or(compressed(None, FatbinaryCodec::ByAge, false)),
        }
    }
}

/// Places and headers of entries, in order.
type Headers = Vec<(u64, Vec<u8>)>;

/// Reads the headers of all entries. `size` is the size of the fatbinary.
fn headers(
    source: &mut Source<'_>,
    start: u64,
    size: u64,
) -> Result<(Headers, Facts), RebuildError> {
    let mut headers = Headers::new();
    let mut facts = Facts { like: None, stored: Vec::new(), common: OF_THE_FILE, is_older: false };
    let mut at = HEADER as u64;
    while at < size {
        let head = source.peek(&(start + at..start + size), ENTRY_HEADER)?;
        let entry = Entry::parse(&head, headers.len(), at, size)?;
        let stored = compression(&entry);
        facts.like = facts.like.or((stored != Compression::None).then_some(stored));
        facts.stored.push((entry.kind(), stored));
        facts.common &= entry.flags();
        facts.is_older |= entry.kind() == Kind::ELF && entry.code_version() <= OLDER;
        let next = entry.end();
        headers.push((at, head));
        at = next;
    }
    if headers.is_empty() {
        facts.common = Flags::empty();
    }
    Ok((headers, facts))
}

/// The changes of a fatbinary.
pub(super) struct Asked<'a> {
    pub(super) wishes: &'a Wishes<'a>,
    pub(super) old_images: &'a [ImageInfo],
    pub(super) images: &'a NewImages<'a>,
    pub(super) form: Form,
    /// The most bytes of a decompressed entry.
    pub(super) max: u64,
}

/// Returns the fatbinary at `range` with its entries as asked.
///
/// Entries keep their order and, where they keep their form, their bytes. New ones come last. `later` returns an input for
/// the entry at a place of the file that has this size when its code is not compressed.
pub(super) fn rebuild(
    source: &mut Source<'_>,
    range: &Range<u64>,
    asked: &Asked<'_>,
    later: &mut dyn FnMut(Range<u64>, u64) -> Input,
) -> Result<Output, RebuildError> {
    let &Asked { wishes, old_images, images, form, max } = asked;
    let head = source.peek(range, HEADER)?;
    let size = Fatbin::parse_prefix(&head, range.end - range.start)?.size();
    if let Some(entries) = kept(range, size, asked) {
        return Ok(of_entries(range, &entries));
    }
    let (headers, facts) = headers(source, range.start, size)?;
    let mut wished = wishes.entries.as_slice();
    let mut entries = Output::new();
    let mut is_changed = false;
    for (index, (at, head)) in headers.iter().enumerate() {
        let entry = Entry::parse(head, index, *at, size)?;
        let place = range.start + at..range.start + entry.end();
        let old = compression(&entry);
        let wish = match wishes.entries.is_empty() {
            true => Wish::Keep,
            false if entry.kind() == Kind::CONCATENATED => {
                let images = old_images.iter().filter(|image| is_in_entry(image, index)).count();
                match some_of(take(&mut wished, images)?)? {
                    Some(kept) => {
                        let bytes = source.read_range(&place)?;
                        let entry = Entry::parse(&bytes, index, *at, size)?;
                        let is_kept = |image: usize| kept.get(image) == Some(&Wish::Keep);
                        let rest = entry.with_images(is_kept, old, max)?;
                        rest.into_iter().for_each(|rest| entries.push_vec(rest));
                        is_changed = true;
                        continue;
                    }
                    None => Wish::Keep,
                }
            }
            false => take(&mut wished, 1)?.first().copied().unwrap_or(Wish::Keep),
        };
        match (wish, form.of(&entry, facts.is_older)) {
            (Wish::Remove, _) => is_changed = true,
            (Wish::Keep, None) => entries.append(&copy_of(&place)),
            (Wish::Keep, Some(Compression::None)) => {
                if entry.size() > max {
                    // This fails, and says so.
                    let bytes = source.read_range(&place)?;
                    Entry::parse(&bytes, index, *at, size)?.decompress(max)?;
                }
                let size = plain_size(&entry)?;
                entries.push_input(later(place, size), 0..size);
                is_changed = true;
            }
            (Wish::Keep, Some(compression)) => {
                let bytes = source.read_range(&place)?;
                let entry = Entry::parse(&bytes, index, *at, size)?;
                let stored = entry.stored_as(compression, max)?;
                if stored == bytes {
                    entries.append(&copy_of(&place));
                } else {
                    entries.push_vec(stored);
                    is_changed = true;
                }
            }
            (Wish::Replace(image), compression) => {
                let bytes = source.read_range(&place)?;
                let replaced = Entry::parse(&bytes, index, *at, size)?;
                let architecture = replaced.architecture();
                let code = images.read(&image)?;
                let mut new = new_entry(&code, image.format, replaced.kind(), architecture)?;
                new.flags |= replaced.flags() & OF_THE_FILE;
                new.identifier = replaced.identifier()?.map(Into::into);
                if new.kind != Kind::ELF {
                    new.options = replaced.options()?.map(Into::into).or(new.options);
                }
                if new.code_version == (0, 0) {
                    new.code_version = replaced.code_version();
                }
                entries.push_vec(bytes_of(&new.with_compression(compression.unwrap_or(old)))?);
                is_changed = true;
            }
        }
    }
    if !wished.is_empty() {
        return Err(RebuildError::Changed);
    }
    for (id, image) in &wishes.added {
        let code = images.read(image)?;
        let kind = if image.format == FileFormat::Ptx { Kind::PTX } else { Kind::ELF };
        let mut new = new_entry(&code, image.format, kind, named(id)?)?;
        new.flags |= facts.common;
        let compression = match form {
            Form::Plain => Compression::None,
            Form::Compressed { level, codec, .. } => compressed(level, codec, facts.is_older),
            Form::Kept => facts.of_new(kind, new.flags),
        };
        entries.push_vec(bytes_of(&new.with_compression(compression))?);
        is_changed = true;
    }
    if !is_changed {
        return Ok(copy_of(range));
    }
    Ok(of_entries(range, &entries))
}

/// Returns a fatbinary of these entries, with the header of the old one.
fn of_entries(range: &Range<u64>, entries: &Output) -> Output {
    let mut out = copy_of(&(range.start..range.start + 8));
    out.push_bytes(&entries.size().to_le_bytes());
    out.append(entries);
    out
}

/// Returns the entries that stay, where some go and nothing else is asked: the survey has their places, so that their headers
/// need not be read once more. `None` for other wishes.
fn kept(range: &Range<u64>, size: u64, asked: &Asked<'_>) -> Option<Output> {
    let (entries, images) = (&asked.wishes.entries, asked.old_images);
    let is_plain = asked.form == Form::Kept && asked.wishes.added.is_empty();
    if !is_plain || !entries.contains(&Wish::Remove) || entries.len() != images.len() {
        return None;
    }
    let (mut out, mut at) = (Output::new(), HEADER as u64);
    for (image, wish) in images.iter().zip(entries) {
        let entry = image.fatbinary_entry().filter(|entry| entry.start == at)?;
        let place = range.start + entry.start..range.start + entry.end;
        match wish {
            Wish::Keep => out.append(&copy_of(&place)),
            Wish::Remove => {}
            Wish::Replace(_) => return None,
        }
        at = entry.end;
    }
    (at == size).then_some(out)
}

/// Takes the wishes for the next images.
fn take<'w>(wished: &mut &'w [Wish], images: usize) -> Result<&'w [Wish], RebuildError> {
    let (these, others) = wished.split_at_checked(images).ok_or(RebuildError::Changed)?;
    *wished = others;
    Ok(these)
}

/// Returns whether an image is one of several in the entry at a position.
fn is_in_entry(image: &ImageInfo, index: usize) -> bool {
    image.path().last().is_some_and(|step| {
        step.kind() == ContainerKind::Concatenated && step.name() == index.to_string()
    })
}

/// Returns the wishes for the images of one entry if some are to go.
fn some_of(wishes: &[Wish]) -> Result<Option<&[Wish]>, RebuildError> {
    match wishes {
        _ if wishes.iter().any(|wish| matches!(wish, Wish::Replace(_))) => {
            Err(RebuildError::Concatenated)
        }
        _ => Ok(wishes.contains(&Wish::Remove).then_some(wishes)),
    }
}

/// Returns the size of an entry when its code is not compressed.
fn plain_size(entry: &Entry<'_>) -> Result<u64, RebuildError> {
    let size = entry.size();
    if let Some(codec) = entry.codec() {
        codec.check(entry.stored_size(), size)?;
    }
    let header = entry.range().start - entry.offset();
    // The entry may state any size.
    Ok(header.saturating_add(size.checked_next_multiple_of(8).unwrap_or(u64::MAX)))
}

/// Returns how the code of an entry is stored.
fn compression(entry: &Entry<'_>) -> Compression {
    match entry.codec() {
        Some(Codec::Lz4) => compressed(None, FatbinaryCodec::Lz4, true),
        Some(Codec::Zstd | Codec::Scrambled) => compressed(None, FatbinaryCodec::Zstd, false),
        _ => Compression::None,
    }
}

/// Returns the architecture that a bundle entry ID names.
fn named(id: &str) -> Result<Architecture, RebuildError> {
    let id = EntryId::parse(id).map_err(malformed)?;
    Architecture::from_name(id.target_id()).ok_or(RebuildError::NoArchitecture)
}

/// Returns an entry of this code, whose format its first bytes show; of this kind if they do not.
fn new_entry(
    code: &[u8],
    format: FileFormat,
    kind: Kind,
    architecture: Architecture,
) -> Result<NewEntry<'_>, RebuildError> {
    Ok(match format {
        FileFormat::Cubin => NewEntry::cubin(architecture, code)?,
        FileFormat::Ptx if kind == Kind::ELF => NewEntry::ptx(architecture, code)?,
        FileFormat::Ptx => {
            let mut entry = NewEntry::ptx(architecture, code)?;
            entry.kind = kind;
            entry
        }
        _ => NewEntry::new(kind, architecture, code),
    })
}

/// Returns new code as a fatbinary stores it, without padding.
pub(super) fn as_stored(code: &[u8]) -> Cow<'_, [u8]> {
    let format = FileFormat::sniff(code.get(..SNIFF_LEN).unwrap_or(code));
    let any = Architecture::of_ptx(code).filter(|_| format == FileFormat::Ptx);
    let entry = any.and_then(|any| NewEntry::ptx(any, code).ok());
    entry.map_or(Cow::Borrowed(code), |entry| entry.code)
}

/// Returns the bytes of an entry.
fn bytes_of(entry: &NewEntry<'_>) -> Result<Vec<u8>, RebuildError> {
    let mut fatbin = NewFatbin::new();
    fatbin.add(entry)?;
    Ok(fatbin.entries().flatten().copied().collect())
}
