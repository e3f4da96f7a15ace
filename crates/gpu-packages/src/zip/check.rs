//! The layout of a zip file: where members lie, and what contradicts itself.

use std::collections::HashMap;
use std::ops::Range;

use byte_parts::{ReadSeek, Source, Window};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::extra::{self, IN_EXTRA};
use super::wire::{Descriptor, Descriptor64, LOCAL, LOCATOR, LocalHeader, ZIP64_END};
use super::{DESCRIPTOR, Zip, ZipMember};
use crate::error::{Error, ErrorKind, Finding, FindingKind};
use crate::path::{MemberPath, Shown, unsafe_name};

/// Place of a member.
pub(super) struct Placed {
    /// Index in the central directory.
    pub(super) index: usize,
    /// Its local header.
    pub(super) header: LocalHeader,
    /// Extra fields of the local header.
    pub(super) extra: Vec<u8>,
    /// Local header, data and data descriptor.
    pub(super) range: Range<u64>,
}

/// All members in the order of the file, and the faults of the layout.
pub(super) struct FileLayout {
    pub(super) placed: Vec<Placed>,
    pub(super) faults: Vec<(usize, FindingKind, Error)>,
    /// Faults of the package.
    pub(super) gaps: Vec<Error>,
}

impl Zip {
    /// Checks names, local headers and the layout, without reading contents. Returns the findings in the order of the
    /// file: unsafe and duplicate names, encryption, overlaps, local headers that differ from the central directory,
    /// bytes that belong to no member, and what programs read differently.
    ///
    /// # Errors
    ///
    /// Errors of the reader.
    pub fn check(&self, reader: impl ReadSeek) -> Result<Vec<Finding>, Error> {
        self.check_source(&mut Source::with_len(reader, self.len))
    }

    /// Returns the findings of the central directory alone.
    pub(crate) fn central_findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut names: HashMap<&[u8], Vec<usize>> = HashMap::new();
        for (index, member) in self.members.iter().enumerate() {
            let mut add = |kind: FindingKind, error_kind: ErrorKind, text: String| {
                let path = MemberPath::default().join(&member.name);
                let error = Error::at(error_kind, member.offset, text);
                findings.push(Finding { path, kind, error });
            };
            if let Some(why) = unsafe_name(&member.name) {
                add(FindingKind::UnsafeName, ErrorKind::Malformed, format!("the name {why}"));
            }
            if member.is_encrypted() {
                let text = "the member is encrypted".to_owned();
                add(FindingKind::Encrypted, ErrorKind::Unsupported, text);
            }
            let size = member.size;
            if member.is_directory() && size > 0 {
                let text = format!("the name of a directory, with {size} bytes of contents");
                add(FindingKind::Ambiguous, ErrorKind::Malformed, text);
            } else if member.is_symlink() && !member.may_be_target() {
                let text = format!("a symbolic link by its mode, with {size} bytes of contents");
                add(FindingKind::Ambiguous, ErrorKind::Malformed, text);
            }
            names.entry(&member.name).or_default().push(index);
        }
        findings.extend(self.duplicates(names));
        findings
    }

    pub(crate) fn check_source(&self, source: &mut Source<'_>) -> Result<Vec<Finding>, Error> {
        let mut findings = self.central_findings();
        let layout = self.layout(source)?;
        findings.extend(layout.faults.into_iter().map(|(index, kind, error)| {
            let name = self.members.get(index).map_or(&[][..], |member| &member.name);
            Finding { path: MemberPath::default().join(name), kind, error }
        }));
        let path = MemberPath::default;
        findings.extend(layout.gaps.into_iter().map(|error| Finding {
            path: path(),
            kind: FindingKind::Gap,
            error,
        }));
        Ok(findings)
    }

    /// Returns a finding for each name that several members have, in the order of the central directory.
    fn duplicates(&self, names: HashMap<&[u8], Vec<usize>>) -> Vec<Finding> {
        let mut same: Vec<_> = names.into_iter().filter(|(_, same)| same.len() > 1).collect();
        same.sort_unstable_by(|one, other| one.1.cmp(&other.1));
        let finding = |(name, same): (&[u8], Vec<usize>)| {
            let (&[first, second, ..], Some(member)) =
                (&same[..], same.get(1).and_then(|&second| self.members.get(second)))
            else {
                return None;
            };
            let text = match same.len() - 2 {
                0 => format!("members {first} and {second} have the same name"),
                more => format!("members {first}, {second} and {more} more have the same name"),
            };
            let error = Error::at(ErrorKind::Malformed, member.offset, text);
            let path = MemberPath::default().join(name);
            Some(Finding { path, kind: FindingKind::Duplicate, error })
        };
        same.into_iter().filter_map(finding).collect()
    }

    /// Reads all local headers.
    pub(super) fn layout(&self, source: &mut Source<'_>) -> Result<FileLayout, Error> {
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        let offset_of = |&index: &usize| self.members.get(index).map_or(0, |member| member.offset);
        order.sort_by_key(offset_of);
        let mut layout = FileLayout { placed: Vec::new(), faults: Vec::new(), gaps: Vec::new() };
        let mut before = self.program;
        for (nth, &index) in order.iter().enumerate() {
            let Some(member) = self.members.get(index) else { continue };
            let next = order.get(nth + 1).map_or(self.directory_at, offset_of);
            if before < member.offset {
                layout.add_gap(source, before..member.offset)?;
            }
            match self.place(source, index, member, next) {
                Ok(placed) => {
                    if member.offset < before {
                        let text = format!(
                            "it shares bytes with the member before it, which ends at {before:#x}"
                        );
                        let error = Error::at(ErrorKind::Malformed, member.offset, text);
                        layout.faults.push((index, FindingKind::Overlap, error));
                    }
                    before = before.max(placed.range.end);
                    let areas = [self.central(member)?.1, &placed.extra];
                    if let Some(text) =
                        areas.iter().find_map(|area| extra::fault(area, &member.name))
                    {
                        let error = Error::at(ErrorKind::Malformed, member.offset, text);
                        layout.faults.push((index, FindingKind::Ambiguous, error));
                    }
                    layout.placed.push(placed);
                }
                Err(error) if error.kind() == ErrorKind::Malformed => {
                    // At most the start of the central directory.
                    let end = member.offset + member.stored_size;
                    before = before.max(end.max(next.min(end + LOCAL as u64)));
                    layout.faults.push((index, FindingKind::HeaderMismatch, error));
                }
                Err(error) => return Err(error),
            }
        }
        if before < self.directory_at {
            layout.add_gap(source, before..self.directory_at)?;
        } else if before > self.directory_at {
            let text = "the last member reaches into the central directory";
            layout.gaps.push(Error::at(ErrorKind::Malformed, self.directory_at, text));
        }
        self.check_tail(&mut layout);
        Ok(layout)
    }

    /// Checks that nothing lies between and after the ends.
    fn check_tail(&self, layout: &mut FileLayout) {
        let ends = &self.ends;
        let mut gap = |from: usize, to: usize| {
            if from < to {
                let at = self.directory_at + from as u64;
                let text = format!("{} bytes belong to no record", to - from);
                layout.gaps.push(Error::at(ErrorKind::Malformed, at, text));
            }
        };
        gap(self.directory_size, ends.zip64.unwrap_or(ends.end));
        if ends.has_two {
            gap(ends.end - LOCATOR - ZIP64_END, ends.end - LOCATOR);
        }
        gap(ends.comment_end, self.tail.len());
    }

    /// Reads the local header of a member, and compares it with the central record.
    fn place(
        &self,
        source: &mut Source<'_>,
        index: usize,
        member: &ZipMember,
        next: u64,
    ) -> Result<Placed, Error> {
        let bad = |text: String| Error::at(ErrorKind::Malformed, member.offset, text);
        let past_end = || bad("its local header reaches past the members".into());
        let members = Window::new(&(0..self.directory_at));
        let fixed = members.sized(member.offset, LOCAL as u64).ok_or_else(past_end)?;
        let mut header = LocalHeader::new_zeroed();
        source.read_exact_at(member.offset, header.as_mut_bytes())?;
        if header.signature != *b"PK\x03\x04" {
            return Err(bad("expected a local header, PK 3 4".into()));
        }
        let data_at =
            fixed.end + u64::from(header.fields.name_len) + u64::from(header.fields.extra_len);
        let data = members.sized(data_at, member.stored_size).ok_or_else(past_end)?;
        let mut name = source.read_range(&(fixed.end..data.start))?;
        let extra = name.split_off(name.len().min(header.fields.name_len.get().into()));
        if name != member.name {
            return Err(bad(format!("its local header has the name {}", Shown(&name))));
        }
        let differs = |what: &str, expected: u64, found: u64| {
            bad(format!(
                "its local header has the {what} {found}, the central directory {expected}"
            ))
        };
        // Flags that concern how contents are stored.
        let flags = |flags: u16| flags & 0x2869;
        if flags(header.fields.flags.get()) != flags(member.flags) {
            let (expected, found) = (u64::from(member.flags), u64::from(header.fields.flags));
            return Err(differs("flags", expected, found));
        }
        if header.fields.method != member.method {
            let (expected, found) = (u64::from(member.method), u64::from(header.fields.method));
            return Err(differs("method", expected, found));
        }
        let (stored_size, size) = (header.fields.stored_size.get(), header.fields.size.get());
        let places = extra::places(&extra, size, stored_size, None)
            .ok_or_else(|| bad("the zip64 extra field of its local header is too short".into()))?;
        let has_descriptor = member.flags & DESCRIPTOR != 0;
        let numbers = [
            ("CRC-32", u64::from(member.crc32), u64::from(header.fields.crc32)),
            ("size", member.size, extra::value(&extra, places.size, size)),
            (
                "stored size",
                member.stored_size,
                extra::value(&extra, places.stored_size, stored_size),
            ),
        ];
        for (what, expected, found) in numbers {
            if found != expected && !(has_descriptor && found == 0) {
                return Err(differs(what, expected, found));
            }
        }
        let mut end = data.end;
        if has_descriptor {
            end = self
                .descriptor(source, member, data.end, next)?
                .ok_or_else(|| bad("expected its data descriptor after its data".into()))?;
        }
        Ok(Placed { index, header, extra, range: member.offset..end })
    }

    /// Returns the end of the data descriptor: 12, 16, 20 or 24 bytes.
    fn descriptor(
        &self,
        source: &mut Source<'_>,
        member: &ZipMember,
        at: u64,
        next: u64,
    ) -> Result<Option<u64>, Error> {
        let bytes = source.peek(&(at..self.directory_at), 24)?;
        let mut ends = Vec::new();
        for signature in [&b"PK\x07\x08"[..], b""] {
            let Some(rest) = bytes.strip_prefix(signature) else { continue };
            let expected = (member.crc32, member.stored_size, member.size);
            let end = at + signature.len() as u64;
            if let Ok((long, _)) = Descriptor64::ref_from_prefix(rest)
                && (long.crc32.get(), long.stored_size.get(), long.size.get()) == expected
            {
                ends.push(end + 20);
            }
            if let Ok((short, _)) = Descriptor::ref_from_prefix(rest)
                && (short.crc32.get(), short.stored_size.into(), short.size.into()) == expected
            {
                ends.push(end + 12);
            }
        }
        // The one that ends where the next member starts, if any does.
        Ok(ends.iter().copied().find(|&end| end == next).or_else(|| ends.first().copied()))
    }
}

impl FileLayout {
    /// Zeros are alignment; anything else is a fault.
    fn add_gap(&mut self, source: &mut Source<'_>, gap: Range<u64>) -> Result<(), Error> {
        if source.skip_zeros(&gap)? < gap.end {
            let text = format!("{} bytes belong to no member", gap.end - gap.start);
            self.gaps.push(Error::at(ErrorKind::Malformed, gap.start, text));
        }
        Ok(())
    }
}

/// Returns whether a number needs the zip64 extra field.
pub(super) fn is_long(value: u64) -> bool {
    value >= u64::from(IN_EXTRA)
}
