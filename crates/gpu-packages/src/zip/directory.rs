//! Reading the central directory.

use byte_parts::{ReadSeek, Source, internal};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::extra::{self, IN_EXTRA};
use super::wire::{
    CentralRecord, END, EndOfDirectory, LOCATOR, RECORD, ZIP64_END, Zip64End, Zip64Locator,
};
use super::{Ends, Zip, ZipMember};
use crate::error::{Error, ErrorKind};
use crate::path::Shown;

/// The largest central directory that is read: two million members with names of a usual length.
const MAX_DIRECTORY: u64 = 256 << 20;

/// The longest comment may follow the end of central directory; a shorter file is searched as a whole.
const LONGEST_END: u64 = END as u64 + u16::MAX as u64;
/// Mostly there is no comment: these bytes have the end, and the directory of a small file.
pub(crate) const MOST_LIKELY: u64 = 16 << 10;

/// The start of a script.
pub(crate) const SCRIPT: &[u8] = b"#!";

/// Returns whether a file that starts like this is a program or a script, which a zip file may follow.
pub(crate) fn is_program(head: &[u8]) -> bool {
    const PROGRAMS: [&[u8]; 6] =
        [b"\x7fELF", b"MZ", SCRIPT, b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\xca\xfe\xba\xbf"];
    PROGRAMS.iter().any(|magic| head.starts_with(magic))
}

impl Zip {
    /// Reads the central directory.
    ///
    /// # Errors
    ///
    /// [`NotAPackage`](ErrorKind::NotAPackage) if the file has no end of central directory;
    /// [`Unsupported`](ErrorKind::Unsupported) if it is one of several volumes;
    /// [`Malformed`](ErrorKind::Malformed) if numbers contradict each other; [`Limit`](ErrorKind::Limit) for a directory of
    /// more than 256 MiB; errors of the reader.
    pub fn read(reader: impl ReadSeek) -> Result<Self, Error> {
        Self::read_source(&mut Source::new(reader)?, MOST_LIKELY)
    }

    /// Reads the central directory of a zip file after a program or a script (zipapp, pex, llamafile). `None` for a file that does
    /// not start like a program, and if no zip file with members ends where the file ends; bytes may follow in a script.
    ///
    /// # Errors
    ///
    /// Errors of [`read`](Self::read), for a file that ends in an end of central directory; [`Malformed`](ErrorKind::Malformed) if
    /// there is no local header where the directory has the first one; errors of the reader.
    pub fn behind(reader: impl ReadSeek) -> Result<Option<Self>, Error> {
        Self::behind_source(&mut Source::new(reader)?)
    }

    pub(crate) fn behind_source(source: &mut Source<'_>) -> Result<Option<Self>, Error> {
        let len = source.len();
        let head = source.peek(&(0..len), 4)?;
        if !is_program(&head) {
            return Ok(None);
        }
        let is_script = head.starts_with(SCRIPT);
        let mut zip = match Self::read_source(source, LONGEST_END) {
            Ok(zip) => zip,
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(error) => {
                return if has_end(source, is_script)? { Err(error) } else { Ok(None) };
            }
        };
        if zip.members.is_empty() || zip.trailing() > 0 && !is_script {
            return Ok(None);
        }
        let start = zip.start();
        if !source.peek(&(start..len), 4)?.starts_with(b"PK\x03\x04") {
            let end_at = zip.directory_at + zip.ends.end as u64;
            let text = format!(
                "end of central directory: by its numbers the first member lies at {start:#x}: expected a local header there, PK 3 4"
            );
            return Err(Error::at(ErrorKind::Malformed, end_at, text));
        }
        zip.program = start;
        Ok(Some(zip))
    }

    /// Returns how many bytes follow the comment of the end of central directory, and belong to no record.
    #[must_use]
    pub fn trailing(&self) -> usize {
        self.tail.len() - self.ends.comment_end
    }

    /// Returns the place of the first member; 0 if there is none.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.members.iter().map(|member| member.offset).min().unwrap_or(0)
    }

    /// Reads the central directory. Its end is first sought in the last `likely` bytes.
    pub(crate) fn read_source(source: &mut Source<'_>, likely: u64) -> Result<Self, Error> {
        let len = source.len();
        let end_at = find_end(source, likely)?;
        let end = read_end(source, end_at)?;
        let end_of_comment = end_at + END as u64 + u64::from(end.comment_len);
        let bad = |text: String| Error::at(ErrorKind::Malformed, end_at, text);
        let mut volumes = [end.volume, end.directory_volume].map(u32::from);
        let mut counts = [end.volume_count, end.count].map(u64::from);
        let mut size = u64::from(end.directory_size);
        let mut offset = u64::from(end.directory_offset);

        let (mut zip64_at, mut has_two) = (None, false);
        let mut directory_end = end_at;
        if let Some(locator_at) = end_at.checked_sub(LOCATOR as u64) {
            let mut locator = Zip64Locator::new_zeroed();
            source.read_exact_at(locator_at, locator.as_mut_bytes())?;
            if locator.signature == *b"PK\x06\x07" {
                let (at, record) = zip64_end(source, &locator, locator_at)?;
                zip64_at = Some(at);
                // Some programs take the record at this place, whatever the locator says. A whole one ends before the locator.
                let nearest = locator_at - ZIP64_END as u64;
                has_two = at < nearest
                    && source.peek(&(nearest..locator_at), 4)?.starts_with(b"PK\x06\x06");
                directory_end = at;
                let values = [
                    (volumes[0].into(), u64::from(u16::MAX), record.volume.into()),
                    (volumes[1].into(), u64::from(u16::MAX), record.directory_volume.into()),
                    (counts[0], u64::from(u16::MAX), record.volume_count.get()),
                    (counts[1], u64::from(u16::MAX), record.count.get()),
                    (size, u64::from(IN_EXTRA), record.directory_size.get()),
                    (offset, u64::from(IN_EXTRA), record.directory_offset.get()),
                ];
                for (index, (short, marker, long)) in values.into_iter().enumerate() {
                    if short != marker && short != long {
                        return Err(bad(format!(
                            "end of central directory: number {index} is {short}, and {long} in the zip64 record"
                        )));
                    }
                }
                volumes = [record.volume, record.directory_volume].map(u32::from);
                counts = [record.volume_count, record.count].map(u64::from);
                (size, offset) = (record.directory_size.get(), record.directory_offset.get());
            }
        }
        if volumes != [0, 0] || counts[0] != counts[1] {
            let text = "zip file of several volumes: expected one volume";
            return Err(Error::at(ErrorKind::Unsupported, end_at, text));
        }
        // Bytes before the zip file move it as a whole.
        let base = directory_end.checked_sub(size).and_then(|at| at.checked_sub(offset));
        let Some(base) = base else {
            return Err(bad(format!(
                "central directory of {size} bytes at {offset:#x} does not fit before its end at {directory_end:#x}"
            )));
        };
        let directory_at = base + offset;
        if size > MAX_DIRECTORY {
            let text = format!(
                "central directory of {size} bytes exceeds the limit of {MAX_DIRECTORY} bytes"
            );
            return Err(Error::at(ErrorKind::Limit, directory_at, text));
        }
        let tail = source.read_range(&(directory_at..len))?;
        let in_tail = |at: u64| {
            let place = usize::try_from(at - directory_at);
            place.map_err(|_| Error::internal(internal!("more than the memory has was read")))
        };
        let ends = Ends {
            zip64: zip64_at.map(in_tail).transpose()?,
            has_two,
            end: in_tail(end_at)?,
            comment_end: in_tail(end_of_comment.min(len))?,
        };
        let directory_size = in_tail(directory_at + size)?;
        let mut zip = Zip {
            len,
            base,
            program: 0,
            directory_at,
            tail,
            directory_size,
            ends,
            members: Vec::new(),
        };
        zip.members = zip.read_members(counts[0])?;
        Ok(zip)
    }

    fn read_members(&self, count: u64) -> Result<Vec<ZipMember>, Error> {
        let (directory, _) = self.tail.split_at(self.directory_size);
        let mut members = Vec::new();
        let mut at = 0;
        while at < directory.len() {
            let place = self.directory_at + at as u64;
            let index = members.len();
            let bad = |text: String| {
                Error::at(ErrorKind::Malformed, place, format!("central record {index}: {text}"))
            };
            let (_, record) = directory.split_at(at);
            if !record.starts_with(b"PK\x01\x02") {
                return Err(bad("expected the signature PK 1 2".into()));
            }
            let past =
                |end: usize| bad(format!("its {end} bytes reach past the central directory"));
            let Ok((header, rest)) = CentralRecord::ref_from_prefix(record) else {
                return Err(past(RECORD));
            };
            let lens = [header.fields.name_len, header.fields.extra_len, header.comment_len];
            let end = RECORD + lens.into_iter().map(|len| usize::from(len.get())).sum::<usize>();
            let (name, extra, _) = header.split(rest).ok_or_else(|| past(end))?;
            let (stored_size, size, offset) =
                (header.fields.stored_size.get(), header.fields.size.get(), header.offset.get());
            let places = extra::places(extra, size, stored_size, Some(offset));
            let places = places.ok_or_else(|| bad("its zip64 extra field is too short".into()))?;
            let shift = |value: u64| value.checked_add(self.base).filter(|&at| at < self.len);
            let offset = extra::value(extra, places.offset, offset);
            let stored_size = extra::value(extra, places.stored_size, stored_size);
            let member = ZipMember {
                name: name.to_vec(),
                made_by: header.made_by.get(),
                flags: header.fields.flags.get(),
                method: header.fields.method.get(),
                crc32: header.fields.crc32.get(),
                stored_size,
                size: extra::value(extra, places.size, size),
                attributes: header.attributes.get(),
                offset: shift(offset).ok_or_else(|| {
                    bad(format!("its local header at {offset:#x} is not in the file"))
                })?,
                record: at..at + end,
            };
            if header.volume != 0 {
                return Err(bad("expected volume 0".into()));
            }
            if member.offset.checked_add(stored_size).is_none_or(|end| end > self.directory_at) {
                let name = Shown(name);
                return Err(bad(format!(
                    "{name}: {stored_size} bytes at {offset:#x} reach into the central directory"
                )));
            }
            members.push(member);
            at += end;
        }
        if members.len() as u64 != count {
            let text = format!(
                "end of central directory: promises {count} members, the directory has {}",
                members.len()
            );
            return Err(Error::at(
                ErrorKind::Malformed,
                self.directory_at + self.ends.end as u64,
                text,
            ));
        }
        Ok(members)
    }
}

/// Returns the place of the end of central directory: the last whose comment ends with the file; else the last. It is sought in the
/// last `likely` bytes, then in all that may have it.
fn find_end(source: &mut Source<'_>, likely: u64) -> Result<u64, Error> {
    let len = source.len();
    let mut last = None;
    for most in [likely, LONGEST_END] {
        let start = len.saturating_sub(most);
        let bytes = source.read_range(&(start..len))?;
        last = None;
        for at in (0..bytes.len()).rev() {
            let (_, record) = bytes.split_at(at);
            let Ok((record, comment)) = EndOfDirectory::ref_from_prefix(record) else { continue };
            if record.signature != *b"PK\x05\x06" {
                continue;
            }
            if usize::from(record.comment_len.get()) == comment.len() {
                return Ok(start + at as u64);
            }
            last = last.or(Some(start + at as u64));
        }
        if start == 0 {
            break;
        }
    }
    let text = "expected a zip file with an end of central directory, PK 5 6";
    last.ok_or_else(|| Error::new(ErrorKind::NotAPackage, text))
}

/// Reads the end of central directory at this place.
fn read_end(source: &mut Source<'_>, at: u64) -> Result<EndOfDirectory, Error> {
    let mut end = EndOfDirectory::new_zeroed();
    source.read_exact_at(at, end.as_mut_bytes())?;
    Ok(end)
}

/// Returns whether there is an end of central directory after a program, and not just its magic: it follows a directory, or names
/// one volume. It ends the file, unless that is a script.
fn has_end(source: &mut Source<'_>, is_script: bool) -> Result<bool, Error> {
    let len = source.len();
    let end_at = match find_end(source, LONGEST_END) {
        Ok(end_at) => end_at,
        Err(error) if error.kind() == ErrorKind::NotAPackage => return Ok(false),
        Err(error) => return Err(error),
    };
    let end = read_end(source, end_at)?;
    let ends_file = end_at + END as u64 + u64::from(end.comment_len) == len;
    let has_directory = match end_at.checked_sub(end.directory_size.into()) {
        Some(at) => source.peek(&(at..end_at), 4)?.starts_with(b"PK\x01\x02"),
        None => false,
    };
    let is_one = end.volume == 0 && end.directory_volume == 0 && end.volume_count == end.count;
    Ok(if ends_file { has_directory || is_one } else { has_directory && is_script })
}

/// Reads the zip64 end of central directory that a locator points to.
fn zip64_end(
    source: &mut Source<'_>,
    locator: &Zip64Locator,
    locator_at: u64,
) -> Result<(u64, Zip64End), Error> {
    let bad = |text: &str| Error::at(ErrorKind::Malformed, locator_at, text);
    if locator.volume != 0 || locator.volumes.get() > 1 {
        let text = "zip file of several volumes: expected one volume";
        return Err(Error::at(ErrorKind::Unsupported, locator_at, text));
    }
    // Right before the locator, where bytes before the zip file moved it; it may have data after its fields.
    let stated = locator.offset.get();
    for at in [Some(stated), locator_at.checked_sub(ZIP64_END as u64)] {
        let Some(at) =
            at.filter(|at| at.checked_add(ZIP64_END as u64).is_some_and(|end| end <= locator_at))
        else {
            continue;
        };
        let mut record = Zip64End::new_zeroed();
        source.read_exact_at(at, record.as_mut_bytes())?;
        if record.signature == *b"PK\x06\x06"
            && record.size.get().checked_add(12 + at).is_some_and(|end| end == locator_at)
        {
            return Ok((at, record));
        }
    }
    Err(bad("zip64 locator: expected a zip64 end of central directory that ends before it"))
}
