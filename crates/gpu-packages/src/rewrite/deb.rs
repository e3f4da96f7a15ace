//! Debian packages with other contents in some files.

use std::collections::HashSet;
use std::io::{self, Read, Seek, SeekFrom, Write};

use byte_parts::Source;
use zerocopy::IntoBytes;

use super::{Original, Replacement, RewriteOptions, Rewritten, changes_tar, rewrite_tar};
use crate::ar;
use crate::codec::decoded;
use crate::deb::{DebRecords, set_installed_size};
use crate::deb_parts::{DebParts, Role, format_fault};
use crate::error::{Error, ErrorKind};
use crate::path::{Shown, without_dot};
use crate::reading::{Raw, read_held};
use crate::tar::{TarKind, TarReader};

/// The most bytes of `control` and `md5sums`.
const MAX_RECORD: u64 = 64 << 20;

/// Writes a Debian package again, with new contents in some files. `replace` is asked for each regular file by its
/// installed path. `md5sums` and `Installed-Size` follow. Compressed parts are held in memory, and each is compressed
/// [as it was](crate::Compression::of); a level is for the files, not the records. Without a change the output is the input.
///
/// # Errors
///
/// [`NotAPackage`](ErrorKind::NotAPackage); [`Signed`](ErrorKind::Signed) for a signed package; errors of
/// [`rewrite_tar`].
pub fn rewrite_deb<'a>(
    mut old: impl Read + Seek,
    mut new: impl Write,
    options: &RewriteOptions,
    replace: impl FnMut(&[u8], &mut Original<'_>) -> Result<Option<Replacement<'a>>, Error>,
) -> Result<Rewritten, Error> {
    let parts = Part::read_all(&mut old)?;
    let (data, control) = Part::find(&parts, &mut old)?;
    let mut new_data = Vec::new();
    let mut rewritten = rewrite_tar(data.open(&mut old)?, &mut new_data, options, replace)?;
    if rewritten.changed.is_empty() {
        old.seek(SeekFrom::Start(0))?;
        io::copy(&mut old, &mut new)?;
        new.flush()?;
        return Ok(rewritten);
    }
    let is_signature = |part: &Part| part.header.name.starts_with(b"_gpg");
    if let Some(part) = parts.iter().find(|part| is_signature(part) && !options.drops_signature) {
        let text = "the package is signed, and a change makes the signature invalid";
        return Err(
            Error::at(ErrorKind::Signed, part.at, text).while_reading(Shown(&part.header.name))
        );
    }
    let kib = |size: u64| size.div_ceil(1024).cast_signed();
    let change = rewritten.changed.iter().try_fold(0i64, |sum, change| {
        sum.checked_add(kib(change.new_size))?.checked_sub(kib(change.old_size))
    });
    let change = change.ok_or_else(|| {
        let text = "deb: the sizes of its files exceed any disk";
        Error::new(ErrorKind::Malformed, text)
    })?;
    let mut unlisted = Vec::new();
    let mut records = control.records(&mut old)?;
    for (name, text) in &mut records {
        if name == b"control" {
            *text = set_installed_size(text, change)?;
        } else {
            let mut sums = DebRecords::parse(text);
            for change in &rewritten.changed {
                let is_listed = match &change.md5 {
                    Some(md5) => sums.replace(&change.path, md5),
                    None => {
                        sums.remove(&change.path);
                        continue;
                    }
                };
                if !is_listed {
                    unlisted.push(change.path.clone());
                }
            }
            *text = sums.to_vec();
        }
    }
    rewritten.unlisted = unlisted;
    let mut new_control = Vec::new();
    let options = options.clone().with_level(None::<u32>);
    rewrite_tar(control.open(&mut old)?, &mut new_control, &options, |name, _| {
        let record = records.iter().find(|(record, _)| record == name);
        Ok(record.map(|(_, text)| Replacement::from_bytes(text.clone())))
    })?;
    new.write_all(ar::MAGIC)?;
    for part in &parts {
        let name = &part.header.name;
        if is_signature(part) {
            continue;
        }
        let size = match () {
            () if name == &data.header.name => {
                write_part(&mut new, part, &new_data)?;
                new_data.len() as u64
            }
            () if name == &control.header.name => {
                write_part(&mut new, part, &new_control)?;
                new_control.len() as u64
            }
            () => {
                new.write_all(part.header.fields.as_bytes())?;
                io::copy(&mut part.open(&mut old)?, &mut new)?;
                part.header.size
            }
        };
        if size % 2 == 1 {
            new.write_all(b"\n")?;
        }
    }
    new.flush()?;
    Ok(rewritten)
}

/// Returns whether a Debian package would be changed, as [`changes_tar`] does.
pub(crate) fn changes_deb<'a>(
    mut old: impl Read + Seek,
    options: &RewriteOptions,
    replace: impl FnMut(&[u8], &mut Original<'_>) -> Result<Option<Replacement<'a>>, Error>,
) -> Result<bool, Error> {
    let parts = Part::read_all(&mut old)?;
    let (data, _) = Part::find(&parts, &mut old)?;
    changes_tar(data.open(&mut old)?, options, replace)
}

fn write_part(new: &mut dyn Write, part: &Part, contents: &[u8]) -> Result<(), Error> {
    let header = ar::header_with_size(&part.header, contents.len() as u64)?;
    new.write_all(header.as_bytes())?;
    new.write_all(contents)?;
    Ok(())
}

/// Name and text of a record.
type NamedText = (Vec<u8>, Vec<u8>);

/// A member of the archive around a Debian package.
struct Part {
    header: ar::Header,
    at: u64,
}

impl Part {
    fn read_all(old: &mut (impl Read + Seek)) -> Result<Vec<Part>, Error> {
        let mut source = Source::new(old)?;
        let len = source.len();
        if source.peek(&(0..len), ar::DEB.len())? != ar::DEB {
            let text = "expected a Debian package, !<arch> and debian-binary";
            return Err(Error::new(ErrorKind::NotAPackage, text));
        }
        let mut at = ar::MAGIC.len() as u64;
        let mut parts: Vec<Part> = Vec::new();
        let mut names = HashSet::new();
        while at < len {
            let header = source.peek(&(at..len), ar::HEADER)?;
            let Some(header) = ar::next_header(&mut &header[..], at)? else { break };
            let start = at + ar::HEADER as u64;
            let end = start + header.size;
            if end > len {
                let text = format!("deb: a member ends at {end:#x}, the file at {len:#x}");
                return Err(Error::at(ErrorKind::Truncated, at, text));
            }
            if !names.insert(header.name.clone()) {
                let text = format!("deb: two members have the name {}", Shown(&header.name));
                return Err(Error::at(ErrorKind::Malformed, at, text));
            }
            parts.push(Part { header, at });
            at = end + end % 2;
        }
        Ok(parts)
    }

    /// Returns the parts that dpkg reads: files and records.
    fn find<'p>(
        parts: &'p [Part],
        old: &mut (impl Read + Seek),
    ) -> Result<(&'p Part, &'p Part), Error> {
        let (mut data, mut control) = (None, None);
        let mut order = DebParts::default();
        for part in parts {
            let (role, mut fault) = order.next(&part.header.name);
            match role {
                Role::Data(_) => data = Some(part),
                Role::Control(_) => control = Some(part),
                Role::Other if part.header.name == b"debian-binary" => {
                    let mut head = Vec::new();
                    part.open(old)?.take(16).read_to_end(&mut head)?;
                    fault = fault.or_else(|| format_fault(&head));
                }
                Role::Other => {}
            }
            if let Some(text) = fault {
                let error = Error::at(ErrorKind::Refused, part.at, format!("deb: {text}"));
                return Err(error.while_reading(Shown(&part.header.name)));
            }
        }
        data.zip(control).ok_or_else(|| {
            let text = "deb: expected control.tar and data.tar";
            Error::new(ErrorKind::Malformed, text)
        })
    }

    fn open<'o>(&self, old: &'o mut (impl Read + Seek)) -> Result<impl Read + 'o, Error> {
        old.seek(SeekFrom::Start(self.at + ar::HEADER as u64))?;
        Ok(Raw::new(old, self.header.size))
    }

    /// Reads `control` and `md5sums`.
    fn records(&self, old: &mut (impl Read + Seek)) -> Result<Vec<NamedText>, Error> {
        let mut tar = TarReader::new(decoded(self.open(old)?)?);
        let mut records: Vec<NamedText> = Vec::new();
        while let Some(member) = tar.next_member()? {
            let name = without_dot(member.name());
            let is_known = records.iter().any(|(known, _)| known == name);
            if matches!(name, b"control" | b"md5sums")
                && member.kind() == TarKind::File
                && !is_known
            {
                records.push((name.to_vec(), read_held(&mut tar, MAX_RECORD)?));
            }
        }
        Ok(records)
    }
}
