//! A zip file with other contents in some members.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Read, Seek, Write};

use byte_parts::{Parts, ReadSeek, Source, internal};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, IntoBytes};

use super::added::Added;
use super::check::{Placed, is_long};
use super::deflate::NewContents;
use super::extra::{self, IN_EXTRA};
use super::fields::short;
use super::wire::{END, EndOfDirectory, LOCATOR, Zip64End, Zip64Locator};
use super::{Zip, ZipMember};
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
    added: Vec<(String, NewContents)>,
}

/// A new zip file that is laid out: ranges of the old one, which is input 0 of its [`parts`](Self::parts), and new bytes.
#[derive(Clone, Debug)]
pub struct Rewrite {
    parts: Parts,
    changed: usize,
    removed: usize,
    copied: usize,
    unlisted: Vec<Vec<u8>>,
}

impl Rewrite {
    /// Returns the new file.
    #[must_use]
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

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
    /// Errors of reading the old file, and of writing.
    pub fn write_to<R: Read + Seek>(&self, old: R, mut out: impl Write) -> Result<(), Error> {
        self.parts.write_to(&mut [old][..], &mut out)?;
        out.flush()?;
        Ok(())
    }

    /// Writes the new file as [`write_to`](Self::write_to) does, with new contents from a file of the caller
    /// ([`NewContents::like_in`]).
    ///
    /// # Errors
    ///
    /// Errors of reading the old file and that one, and of writing.
    pub fn write_with<R: Read + Seek>(
        &self,
        old: R,
        new: R,
        mut out: impl Write,
    ) -> Result<(), Error> {
        self.parts.write_to(&mut [old, new][..], &mut out)?;
        out.flush()?;
        Ok(())
    }
}

impl<'z> ZipEdit<'z> {
    /// Starts an edit.
    #[must_use]
    pub fn new(zip: &'z Zip) -> Self {
        ZipEdit { zip, new: BTreeMap::new(), removed: BTreeSet::new(), added: Vec::new() }
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

    /// Adds a regular file after the last member, with the permissions 644 of Unix.
    pub fn add(&mut self, name: &str, contents: NewContents) -> &mut Self {
        self.added.push((name.to_owned(), contents));
        self
    }

    /// Lays out the new file. Reads local headers, no contents.
    ///
    /// # Errors
    ///
    /// [`Refused`](ErrorKind::Refused) if members overlap, have other local headers than the central directory says, or
    /// bytes belong to no member; if a changed member is encrypted, is compressed by a method other than deflate, or
    /// shares its name with another; if an added one does. Errors of the reader.
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
        if self.new.is_empty() && self.removed.is_empty() && self.added.is_empty() {
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
        // All before the base is kept.
        let from_base = |at: u64| {
            let offset = at.checked_sub(zip.base);
            offset.ok_or_else(|| Error::internal(internal!("a member before the zip file")))
        };
        for placed in &layout.placed {
            parts.push_input(0, at..placed.range.start);
            at = placed.range.end;
            if self.removed.contains(&placed.index) {
                continue;
            }
            offsets.insert(placed.index, from_base(parts.size())?);
            match (self.new.get(&placed.index), zip.members.get(placed.index)) {
                (Some(contents), Some(member)) => {
                    parts.push_vec(local_header(placed, member, contents)?);
                    parts.append(&contents.data);
                }
                _ => parts.push_input(0, placed.range.clone()),
            }
        }
        parts.push_input(0, at..zip.directory_at);
        let mut added = Vec::new();
        for (name, contents) in &self.added {
            let member = Added::new(name, contents)?;
            added.extend(member.central_record(from_base(parts.size())?));
            parts.push_vec(member.local_header());
            parts.append(&contents.data);
        }
        let directory_at = parts.size();
        let mut directory = Vec::with_capacity(zip.directory_size + added.len());
        let mut kept = self.added.len() as u64;
        for (index, member) in zip.members.iter().enumerate() {
            let Some(&offset) = offsets.get(&index) else { continue };
            kept += 1;
            directory.extend(zip.central_record(member, offset, self.new.get(&index))?);
        }
        directory.extend(added);
        let directory_size = directory.len() as u64;
        parts.push_vec(directory);
        let ends = zip.ends(kept, directory_size, from_base(directory_at)?);
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
        for (name, _) in &self.added {
            let count = names.entry(name.as_bytes()).or_default();
            *count += 1;
            if *count > 1 {
                let text = "expected the name of no other member of a member that is added";
                return Err(Error::refused(text).while_reading(Shown(name.as_bytes())));
            }
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

/// Returns the local header for new contents.
fn local_header(
    placed: &Placed,
    member: &ZipMember,
    contents: &NewContents,
) -> Result<Vec<u8>, Error> {
    let stored_size = contents.stored_size();
    // Both sizes are there, or none.
    let is_zip64 = extra::zip64(&placed.extra).is_some_and(|place| place.len() >= 16)
        || is_long(contents.size)
        || is_long(stored_size);
    let extra = if is_zip64 {
        extra::with_zip64(&placed.extra, &[contents.size, stored_size])
    } else {
        placed.extra.clone()
    };
    let mut header = placed.header;
    header.fields.set_contents(contents, is_zip64, is_zip64);
    header.fields.extra_len = extra_len(&extra, member)?.into();
    Ok([header.as_bytes(), &member.name, &extra].concat())
}

fn extra_len(extra: &[u8], member: &ZipMember) -> Result<u16, Error> {
    u16::try_from(extra.len()).map_err(|_| {
        let text = "its extra fields have no room for numbers of 64 bits";
        Error::at(ErrorKind::Refused, member.offset, text).while_reading(Shown(&member.name))
    })
}

impl Zip {
    /// Returns the central record of a member at a new place. It keeps its form if the place fits.
    fn central_record(
        &self,
        member: &ZipMember,
        offset: u64,
        contents: Option<&NewContents>,
    ) -> Result<Vec<u8>, Error> {
        let (mut head, extra, comment) = self.central(member)?;
        let [old_stored, old_size, old_offset] =
            [head.fields.stored_size, head.fields.size, head.offset].map(U32::get);
        let places = extra::places(extra, old_size, old_stored, Some(old_offset));
        let places =
            places.ok_or_else(|| Error::internal(internal!("extra fields that were not read")))?;
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
                let place = place.and_then(|at| extra.get_mut(at..)?.first_chunk_mut());
                if let Some(place) = place {
                    *place = value.to_le_bytes();
                }
            }
        } else {
            let values = [(is_size, size), (is_stored, stored_size), (is_offset, offset)];
            let values: Vec<_> =
                values.iter().filter(|(is_in, _)| *is_in).map(|(_, value)| *value).collect();
            extra = extra::with_zip64(&extra, &values);
            head.fields.need_zip64();
        }
        if let Some(contents) = contents {
            head.fields.set_contents(contents, is_size, is_stored);
        }
        head.offset = short(offset, is_offset);
        head.fields.extra_len = extra_len(&extra, member)?.into();
        Ok([head.as_bytes(), &member.name, &extra, comment].concat())
    }

    /// Returns all that follows the central directory.
    fn ends(&self, count: u64, size: u64, offset: u64) -> Vec<u8> {
        let mut end = self.tail.split_at(self.ends.end).1.to_vec();
        let mut out = Vec::new();
        let needs_zip64 = count >= u64::from(u16::MAX) || is_long(size) || is_long(offset);
        let old = self.ends.zip64.and_then(|at| {
            let locator_at = self.ends.end.checked_sub(LOCATOR)?;
            let record = self.tail.get(at..locator_at)?;
            let locator = self.tail.get(locator_at..self.ends.end)?;
            Some((record.to_vec(), locator.to_vec()))
        });
        let has_zip64 = old.is_some();
        let new =
            || (Zip64End::new().as_bytes().to_vec(), Zip64Locator::new(0).as_bytes().to_vec());
        if let Some((mut record, mut locator)) = old.or_else(|| needs_zip64.then(new)) {
            if let Ok((record, _)) = Zip64End::mut_from_prefix(&mut record) {
                record.set(count, size, offset);
            }
            if let Ok((locator, _)) = Zip64Locator::mut_from_prefix(&mut locator) {
                locator.offset = (offset + size).into();
            }
            out.extend(record);
            out.extend(locator);
        }
        if let Ok((end, _)) = EndOfDirectory::mut_from_prefix(&mut end) {
            // Numbers that the zip64 record had alone stay there.
            for field in [&mut end.volume_count, &mut end.count] {
                let is_marked = has_zip64 && *field == u16::MAX;
                let count = u16::try_from(count).unwrap_or(u16::MAX);
                field.set(if is_marked { u16::MAX } else { count });
            }
            for (field, value) in
                [(&mut end.directory_size, size), (&mut end.directory_offset, offset)]
            {
                *field = short(value, is_long(value) || has_zip64 && *field == IN_EXTRA);
            }
        }
        debug_assert!(end.len() >= END);
        out.extend(end);
        out
    }
}
