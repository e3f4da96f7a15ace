//! A zip file with other contents in some members.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Read, Seek, Write};

use byte_parts::{Parts, ReadSeek, Source};

use super::check::{Placed, is_long};
use super::deflate::NewContents;
use super::directory::{END, LOCATOR, RECORD, ZIP64_END};
use super::extra::{self, IN_EXTRA};
use super::reader::LOCAL;
use super::{DESCRIPTOR, Zip, ZipMember, put, u16_at, u32_at};
use crate::error::{Error, ErrorKind};
use crate::path::Shown;

/// Changes of a zip file. Members that are not changed are copied as they are, headers included.
///
/// Order, names, times, modes and extra fields stay. Wheels need [`WheelEdit`](crate::WheelEdit), which corrects
/// `RECORD`.
#[derive(Clone, Debug)]
pub struct ZipEdit<'z> {
    zip: &'z Zip,
    new: BTreeMap<usize, NewContents>,
    removed: BTreeSet<usize>,
}

/// A new zip file that is laid out: ranges of the old one, which is input 0 of [`parts`](Self::parts), and new bytes.
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// The new file.
    pub parts: Parts,
    changed: usize,
    removed: usize,
    copied: usize,
    unlisted: Vec<Vec<u8>>,
}

impl Rewrite {
    /// Returns the size of the new file in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.parts.size()
    }

    /// Returns the number of members with new contents, records included.
    #[must_use]
    pub fn changed(&self) -> usize {
        self.changed
    }

    /// Returns the number of members that are left out.
    #[must_use]
    pub fn removed(&self) -> usize {
        self.removed
    }

    /// Returns the number of members that are copied as they are.
    #[must_use]
    pub fn copied(&self) -> usize {
        self.copied
    }

    /// Returns changed members of a wheel that its `RECORD` does not list.
    pub fn unlisted(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.unlisted.iter().map(Vec::as_slice)
    }

    pub(crate) fn set_unlisted(&mut self, unlisted: Vec<Vec<u8>>) {
        self.unlisted = unlisted;
    }

    /// Writes the new file. From file to file the kernel copies, where the platform can.
    ///
    /// # Errors
    ///
    /// Those of reading the old file, and of writing.
    pub fn write_to<R: Read + Seek>(&self, old: R, mut out: impl Write) -> Result<(), Error> {
        self.parts.write_to(&mut [old][..], &mut out)?;
        out.flush()?;
        Ok(())
    }
}

impl<'z> ZipEdit<'z> {
    /// Starts an edit.
    #[must_use]
    pub fn new(zip: &'z Zip) -> Self {
        ZipEdit { zip, new: BTreeMap::new(), removed: BTreeSet::new() }
    }

    /// Replaces the contents of a member.
    pub fn replace(&mut self, index: usize, contents: NewContents) -> &mut Self {
        self.new.insert(index, contents);
        self
    }

    /// Leaves a member out.
    pub fn remove(&mut self, index: usize) -> &mut Self {
        self.removed.insert(index);
        self
    }

    /// Lays out the new file. Reads local headers, no contents.
    ///
    /// # Errors
    ///
    /// [`Refused`](ErrorKind::Refused) if members overlap, have other local headers than the central directory says, or
    /// bytes belong to no member; if a changed member is encrypted, is compressed by a method other than deflate, or
    /// shares its name with another. Those of the reader.
    pub fn plan(&self, reader: impl ReadSeek) -> Result<Rewrite, Error> {
        self.plan_source(&mut Source::with_len(reader, self.zip.len))
    }

    pub(crate) fn plan_source(&self, source: &mut Source<'_>) -> Result<Rewrite, Error> {
        let zip = self.zip;
        self.check_changes()?;
        let count = zip.members.len();
        let changed = self.new.keys().filter(|index| !self.removed.contains(index)).count();
        let mut rewrite = Rewrite {
            parts: Parts::from_input(0, 0..zip.len),
            changed,
            removed: self.removed.len(),
            copied: count - (changed + self.removed.len()),
            unlisted: Vec::new(),
        };
        if self.new.is_empty() && self.removed.is_empty() {
            return Ok(rewrite);
        }
        let layout = zip.layout(source)?;
        let refused = |error: &Error| {
            let mut text = format!("expected a plain zip file to change: {error}");
            if let Some(place) = text.rfind(" (at ") {
                text.truncate(place);
            }
            match error.offset() {
                Some(offset) => Error::at(ErrorKind::Refused, offset, text),
                None => Error::new(ErrorKind::Refused, text),
            }
        };
        if let Some((index, _, error)) = layout.faults.first() {
            let name = zip.members.get(*index).map_or(&[][..], |member| &member.name);
            return Err(refused(error).while_reading(Shown(name)));
        }
        if let Some(error) = layout.gaps.first() {
            return Err(refused(error));
        }
        // Members in the order of the file, each with the zeros before it.
        let mut parts = Parts::new();
        let mut at = 0;
        let mut offsets = HashMap::new();
        for placed in &layout.placed {
            parts.push_input(0, at..placed.range.start);
            at = placed.range.end;
            if self.removed.contains(&placed.index) {
                continue;
            }
            offsets.insert(placed.index, parts.size().saturating_sub(zip.base));
            match (self.new.get(&placed.index), zip.members.get(placed.index)) {
                (Some(contents), Some(member)) => {
                    parts.push_vec(local_header(placed, member, contents)?);
                    parts.append(&contents.data);
                }
                _ => parts.push_input(0, placed.range.clone()),
            }
        }
        parts.push_input(0, at..zip.directory_at);
        let directory_at = parts.size();
        let mut directory = Vec::with_capacity(zip.directory_size);
        let mut kept = 0u64;
        for (index, member) in zip.members.iter().enumerate() {
            let Some(&offset) = offsets.get(&index) else { continue };
            kept += 1;
            let record = zip.tail.get(member.record.clone()).unwrap_or_default();
            directory.extend(central_record(record, offset, self.new.get(&index))?);
        }
        let directory_size = directory.len() as u64;
        parts.push_vec(directory);
        let ends = zip.ends(kept, directory_size, directory_at.saturating_sub(zip.base));
        parts.push_vec(ends);
        rewrite.parts = parts;
        Ok(rewrite)
    }

    fn check_changes(&self) -> Result<(), Error> {
        let zip = self.zip;
        let mut names: HashMap<&[u8], usize> = HashMap::new();
        for member in &zip.members {
            *names.entry(&member.name).or_default() += 1;
        }
        for index in self.new.keys().chain(&self.removed) {
            let Some(member) = zip.members.get(*index) else {
                let text = format!("expected a member below {}, found {index}", zip.members.len());
                return Err(Error::new(ErrorKind::Refused, text));
            };
            let refused = |text: String| {
                Err(Error::at(ErrorKind::Refused, member.offset, text)
                    .while_reading(Shown(&member.name)))
            };
            if names.get(&member.name[..]).is_some_and(|&count| count > 1) {
                return refused("expected one member of this name, found several".into());
            }
            if member.is_encrypted() {
                return refused("expected a member that is not encrypted".into());
            }
            if !matches!(member.method, 0 | 8) && self.new.contains_key(index) {
                return refused(format!(
                    "expected a member that is stored or deflated, found method {}",
                    member.method
                ));
            }
        }
        Ok(())
    }
}

/// Returns the numbers of a record: in 32 bits, or the marker for the extra field.
fn short(value: u64, is_in_extra: bool) -> [u8; 4] {
    let value = if is_in_extra { IN_EXTRA } else { u32::try_from(value).unwrap_or(IN_EXTRA) };
    value.to_le_bytes()
}

/// Raises the version that is needed to read the member to that of zip64.
fn need_zip64(header: &mut [u8], at: usize) {
    if u16_at(header, at) & 0xff < 45 {
        put(header, at, &45u16.to_le_bytes());
    }
}

/// Returns the local header for new contents.
fn local_header(
    placed: &Placed,
    member: &ZipMember,
    contents: &NewContents,
) -> Result<Vec<u8>, Error> {
    let local = &placed.local;
    let stored_size = contents.stored_size();
    // Both sizes are there, or none.
    let is_zip64 = extra::zip64(local.extra()).is_some_and(|place| place.len() >= 16)
        || is_long(contents.size)
        || is_long(stored_size);
    let extra = if is_zip64 {
        extra::with_zip64(local.extra(), &[contents.size, stored_size])
    } else {
        local.extra().to_vec()
    };
    let mut header = local.bytes.get(..LOCAL + local.name_len).unwrap_or_default().to_vec();
    put(&mut header, 6, &(local.flags() & !DESCRIPTOR).to_le_bytes());
    put(&mut header, 8, &contents.method.to_le_bytes());
    put(&mut header, 14, &contents.crc32.to_le_bytes());
    put(&mut header, 18, &short(stored_size, is_zip64));
    put(&mut header, 22, &short(contents.size, is_zip64));
    if is_zip64 {
        need_zip64(&mut header, 4);
    }
    put(&mut header, 28, &extra_len(&extra, member)?);
    header.extend(extra);
    Ok(header)
}

fn extra_len(extra: &[u8], member: &ZipMember) -> Result<[u8; 2], Error> {
    let len = u16::try_from(extra.len()).map_err(|_| {
        let text = "its extra fields have no room for sizes of 64 bits";
        Error::at(ErrorKind::Refused, member.offset, text).while_reading(Shown(&member.name))
    })?;
    Ok(len.to_le_bytes())
}

/// Returns the central record of a member at a new place. It keeps its form if the place fits.
fn central_record(
    record: &[u8],
    offset: u64,
    contents: Option<&NewContents>,
) -> Result<Vec<u8>, Error> {
    let name_end = RECORD + usize::from(u16_at(record, 28));
    let extra_end = name_end + usize::from(u16_at(record, 30));
    let mut head = record.get(..name_end).unwrap_or_default().to_vec();
    let extra = record.get(name_end..extra_end).unwrap_or_default();
    let comment = record.get(extra_end..).unwrap_or_default();
    let [old_stored, old_size, old_offset] = [20, 24, 42].map(|at| u32_at(record, at));
    let places = extra::places(extra, old_size, old_stored, Some(old_offset)).unwrap_or_default();
    let (size, stored_size) = match contents {
        Some(contents) => (contents.size, contents.stored_size()),
        None => (
            extra::value(extra, places.size, old_size),
            extra::value(extra, places.stored_size, old_stored),
        ),
    };
    let is_long_in = |value: u64, place: Option<usize>| place.is_some() || is_long(value);
    let [is_size, is_stored, is_offset] = [
        is_long_in(size, places.size),
        is_long_in(stored_size, places.stored_size),
        is_long_in(offset, places.offset),
    ];
    let mut extra = extra.to_vec();
    let is_same_form = [is_size, is_stored, is_offset]
        == [places.size, places.stored_size, places.offset].map(|place| place.is_some());
    if is_same_form {
        let values =
            [(places.size, size), (places.stored_size, stored_size), (places.offset, offset)];
        for (place, value) in values {
            if let Some(at) = place {
                put(&mut extra, at, &value.to_le_bytes());
            }
        }
    } else {
        let values = [(is_size, size), (is_stored, stored_size), (is_offset, offset)];
        let values: Vec<_> =
            values.iter().filter(|(is_in, _)| *is_in).map(|(_, value)| *value).collect();
        extra = extra::with_zip64(&extra, &values);
        need_zip64(&mut head, 6);
    }
    if let Some(contents) = contents {
        let flags = u16_at(&head, 8) & !DESCRIPTOR;
        put(&mut head, 8, &flags.to_le_bytes());
        put(&mut head, 10, &contents.method.to_le_bytes());
        put(&mut head, 16, &contents.crc32.to_le_bytes());
        put(&mut head, 20, &short(stored_size, is_stored));
        put(&mut head, 24, &short(size, is_size));
        if is_size || is_stored {
            need_zip64(&mut head, 6);
        }
    }
    put(&mut head, 42, &short(offset, is_offset));
    let len = u16::try_from(extra.len()).map_err(|_| {
        let text = "the extra fields of a central record have no room for numbers of 64 bits";
        Error::new(ErrorKind::Refused, text)
    })?;
    put(&mut head, 30, &len.to_le_bytes());
    head.extend(extra);
    head.extend_from_slice(comment);
    Ok(head)
}

impl Zip {
    /// Returns all that follows the central directory.
    fn ends(&self, count: u64, size: u64, offset: u64) -> Vec<u8> {
        let mut end = self.tail.get(self.ends.end..).unwrap_or_default().to_vec();
        let mut out = Vec::new();
        let needs_zip64 = count >= u64::from(u16::MAX) || is_long(size) || is_long(offset);
        let old = self.ends.zip64.and_then(|at| {
            let locator_at = self.ends.end.checked_sub(LOCATOR)?;
            let record = self.tail.get(at..locator_at)?;
            let locator = self.tail.get(locator_at..self.ends.end)?;
            Some((record.to_vec(), locator.to_vec()))
        });
        let has_zip64 = old.is_some();
        let new = || {
            let mut record = vec![0; ZIP64_END];
            put(&mut record, 0, b"PK\x06\x06");
            put(&mut record, 4, &(ZIP64_END as u64 - 12).to_le_bytes());
            put(&mut record, 12, &[45, 0, 45, 0]);
            let mut locator = vec![0; LOCATOR];
            put(&mut locator, 0, b"PK\x06\x07");
            put(&mut locator, 16, &1u32.to_le_bytes());
            (record, locator)
        };
        if let Some((mut record, mut locator)) = old.or_else(|| needs_zip64.then(new)) {
            put(&mut record, 24, &count.to_le_bytes());
            put(&mut record, 32, &count.to_le_bytes());
            put(&mut record, 40, &size.to_le_bytes());
            put(&mut record, 48, &offset.to_le_bytes());
            put(&mut locator, 8, &(offset + size).to_le_bytes());
            out.extend(record);
            out.extend(locator);
        }
        // Numbers that the zip64 record had alone stay there.
        let is_marked = |at: usize| has_zip64 && u16_at(&end, at) == u16::MAX;
        let counts = [8, 10].map(|at| {
            if is_marked(at) { u16::MAX } else { u16::try_from(count).unwrap_or(u16::MAX) }
        });
        let numbers = [(12, size), (16, offset)].map(|(at, value)| {
            short(value, is_long(value) || has_zip64 && u32_at(&end, at) == IN_EXTRA)
        });
        for (at, count) in [8, 10].into_iter().zip(counts) {
            put(&mut end, at, &count.to_le_bytes());
        }
        for (at, number) in [12, 16].into_iter().zip(numbers) {
            put(&mut end, at, &number);
        }
        debug_assert!(end.len() >= END);
        out.extend(end);
        out
    }
}
