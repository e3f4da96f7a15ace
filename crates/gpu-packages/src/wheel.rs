//! Wheels: file names, records, and changes that keep them right.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::num::NonZeroUsize;

use byte_parts::{ReadSeek, Source};

use crate::error::{Error, ErrorKind, Finding, FindingKind};
use crate::hash::Algorithm;
use crate::path::{MemberPath, Shown};
use crate::record::{Record, compare_record};
use crate::variant::{VARIANT_JSON, VariantMetadata};
use crate::wheel_name::check_build;
use crate::zip::{NewContents, Rewrite, Zip, ZipEdit, ZipMember};

/// Checks a wheel without reading the contents of its members: the findings of [`Zip::check`], and those about members
/// that `RECORD` lacks, or has with another size. `record` is the one of the wheel.
///
/// # Errors
///
/// [`Io`](ErrorKind::Io) and [`Truncated`](ErrorKind::Truncated) if the file cannot be read.
pub fn check_wheel(
    zip: &Zip,
    record: &Record,
    reader: impl ReadSeek,
) -> Result<Vec<Finding>, Error> {
    let mut findings = zip.check(reader)?;
    findings.extend(faults(zip));
    let files = zip.members().iter().filter(|member| !member.is_directory());
    let files = files.map(|member| (member.name(), (member.size(), None))).collect();
    // A zip file without the directory has no records in it, which would not be listed.
    let directory = dist_info(zip).unwrap_or_default();
    let compared = compare_record(record, directory, &files, |_| false);
    findings.extend(compared.findings);
    Ok(findings)
}

/// The most bytes that a `RECORD` or `WHEEL` may have.
const MAX_RECORD: u64 = 256 << 20;

/// The directory `NAME-VERSION.dist-info` of a wheel: the only one in the root of the zip file.
#[must_use]
pub fn dist_info(zip: &Zip) -> Option<&[u8]> {
    let mut found = dist_infos(zip).into_keys();
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// Returns the index of the `variant.json` of a wheel, if it has one.
#[must_use]
pub fn variant_json(zip: &Zip) -> Option<usize> {
    let mut name = dist_info(zip)?.to_vec();
    name.push(b'/');
    name.extend_from_slice(VARIANT_JSON.as_bytes());
    zip.find(&name)
}

/// Returns the names in the root that end with `.dist-info`, each with whether it has a file `INSTALLER`.
fn dist_infos(zip: &Zip) -> BTreeMap<&[u8], bool> {
    let mut found = BTreeMap::new();
    for member in zip.members() {
        let mut parts = member.name().splitn(2, |&byte| byte == b'/');
        if let Some(directory) = parts.next().filter(|name| name.ends_with(b".dist-info")) {
            *found.entry(directory).or_default() |= parts.next() == Some(b"INSTALLER");
        }
    }
    found
}

/// Returns whether a zip file is a wheel, or is made to look like one: it has a `.dist-info` directory. Several of them,
/// each with `INSTALLER`, are an environment.
pub(crate) fn is_wheel(zip: &Zip) -> bool {
    let found = dist_infos(zip);
    found.len() == 1 || found.values().any(|has_installer| !has_installer)
}

/// Returns what keeps installers from installing a wheel, and what they install otherwise than its headers say. The zip
/// file is a wheel.
pub(crate) fn faults(zip: &Zip) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |path: MemberPath, kind: FindingKind, text: String| {
        findings.push(Finding { path, kind, error: Error::new(ErrorKind::Malformed, text) });
    };
    match dist_info(zip) {
        Some(directory) => {
            let name = within(directory, "RECORD");
            if zip.find(&name).is_none() {
                let text = "the wheel lacks it: nothing is compared".to_owned();
                add(MemberPath::default().join(&name), FindingKind::Record, text);
            }
        }
        None => {
            let found = dist_infos(zip);
            let names: Vec<_> = found.keys().take(2).map(|name| Shown(name).to_string()).collect();
            let (count, names) = (found.len(), names.join(", "));
            let text = format!(
                "expected one .dist-info directory, found {count} ({names}): installers refuse the wheel, and no RECORD is compared"
            );
            add(MemberPath::default(), FindingKind::Ambiguous, text);
        }
    }
    let is_link = |member: &&ZipMember| member.is_symlink() && member.may_be_target();
    for member in zip.members().iter().filter(is_link) {
        let text = "a symbolic link by its mode, which pip installs as a regular file".to_owned();
        add(MemberPath::default().join(member.name()), FindingKind::Ambiguous, text);
    }
    findings
}

/// Returns the directory of the `RECORD` of a wheel, and the index of that.
pub(crate) fn record_place(zip: &Zip) -> Option<(&[u8], usize)> {
    let directory = dist_info(zip)?;
    Some((directory, zip.find(&within(directory, "RECORD"))?))
}

/// Reads the `RECORD` of a wheel.
///
/// # Errors
///
/// [`NotAPackage`](ErrorKind::NotAPackage) if the zip file is not a wheel; errors of reading the member.
pub fn read_record(zip: &Zip, reader: impl ReadSeek) -> Result<Record, Error> {
    let (_, index) = record_of(zip)?;
    read_record_at(zip, index, reader, MAX_RECORD)
}

/// Returns the `RECORD` at this index, of at most `max` bytes.
pub(crate) fn read_record_at(
    zip: &Zip,
    index: usize,
    reader: impl ReadSeek,
    max: u64,
) -> Result<Record, Error> {
    Record::parse(&read_member(zip, index, reader, max.min(MAX_RECORD))?)
}

fn record_of(zip: &Zip) -> Result<(&[u8], usize), Error> {
    record_place(zip).ok_or_else(|| {
        let text = "expected one .dist-info directory, with a RECORD";
        Error::new(ErrorKind::NotAPackage, text)
    })
}

pub(crate) fn within(directory: &[u8], name: &str) -> Vec<u8> {
    [directory, b"/", name.as_bytes()].concat()
}

pub(crate) fn read_member(
    zip: &Zip,
    index: usize,
    reader: impl ReadSeek,
    max: u64,
) -> Result<Vec<u8>, Error> {
    let size = zip.members().get(index).map_or(0, |member| member.size());
    if size > max {
        let text = format!("its {size} bytes exceed the limit of {max} bytes");
        return Err(Error::new(ErrorKind::Limit, text));
    }
    let mut text = Vec::new();
    zip.open(index, reader)?.read_to_end(&mut text)?;
    Ok(text)
}

/// Changes of a wheel: new contents of members, and a build tag. `RECORD` gets new hashes and sizes in the rows of
/// changed members; all else is copied as it is.
///
/// ```no_run
/// use std::fs::File;
/// use std::num::NonZeroUsize;
/// use gpu_packages::{NewContents, WheelEdit, Zip};
///
/// let mut wheel = File::open("foo-1.0-py3-none-any.whl")?;
/// let zip = Zip::read(&mut wheel)?;
/// let mut edit = WheelEdit::new(&zip)?;
/// let library = zip.find(b"foo/libfoo.so").ok_or("the wheel lacks libfoo.so")?;
/// edit.replace(library, NewContents::deflate(File::open("libfoo.so")?, 6, NonZeroUsize::MIN)?);
/// let rewrite = edit.plan(&mut wheel)?;
/// rewrite.write_to(&mut wheel, File::create("out/foo-1.0-py3-none-any.whl")?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct WheelEdit<'z> {
    zip: &'z Zip,
    edit: ZipEdit<'z>,
    changed: Vec<(usize, NewContents)>,
    removed: BTreeSet<usize>,
    build: Option<String>,
    variant: Option<String>,
    drops_signature: bool,
    directory: &'z [u8],
    record: usize,
}

impl<'z> WheelEdit<'z> {
    /// Starts an edit.
    ///
    /// # Errors
    ///
    /// [`NotAPackage`](ErrorKind::NotAPackage) if the zip file is not a wheel.
    pub fn new(zip: &'z Zip) -> Result<Self, Error> {
        let (directory, record) = record_of(zip)?;
        Ok(WheelEdit {
            zip,
            edit: ZipEdit::new(zip),
            changed: Vec::new(),
            removed: BTreeSet::new(),
            build: None,
            variant: None,
            drops_signature: false,
            directory,
            record,
        })
    }

    /// Replaces the contents of a member.
    pub fn replace(&mut self, index: usize, contents: NewContents) -> &mut Self {
        self.edit.replace(index, contents.clone());
        self.changed.push((index, contents));
        self
    }

    /// Leaves a member out, with its rows of `RECORD`.
    pub fn remove(&mut self, index: usize) -> &mut Self {
        self.edit.remove(index);
        self.removed.insert(index);
        self
    }

    /// Sets the build tag in the file `WHEEL`. [`WheelName::with_build`](crate::WheelName::with_build) gives the file name with it.
    pub fn build_tag(&mut self, build: impl Into<String>) -> &mut Self {
        self.build = Some(build.into());
        self
    }

    /// Makes the wheel a variant: sets its file `variant.json`, also in the place of another one.
    /// [`WheelName::with_label`](crate::WheelName::with_label) gives the file name with the label.
    pub fn variant(&mut self, metadata: &VariantMetadata) -> &mut Self {
        self.variant = Some(metadata.to_json());
        self
    }

    /// Allows to change a signed wheel, whose signatures `RECORD.jws` and `RECORD.p7s` are left out.
    pub fn drop_signature(&mut self, is_allowed: bool) -> &mut Self {
        self.drops_signature = is_allowed;
        self
    }

    /// Returns the members that sign the wheel.
    pub fn signatures(&self) -> impl Iterator<Item = usize> + use<'z> {
        let zip = self.zip;
        let directory = self.directory;
        ["RECORD.jws", "RECORD.p7s"]
            .into_iter()
            .filter_map(move |name| zip.find(&within(directory, name)))
    }

    /// Lays out the new wheel.
    ///
    /// # Errors
    ///
    /// As [`ZipEdit::plan`]; [`Signed`](ErrorKind::Signed) for a signed wheel;
    /// [`Malformed`](ErrorKind::Malformed) for a build tag or a `RECORD` that is not one.
    pub fn plan(&self, reader: impl ReadSeek) -> Result<Rewrite, Error> {
        let mut source = Source::with_len(reader, self.zip.file_len());
        let mut edit = self.edit.clone();
        let has_texts = self.build.is_some() || self.variant.is_some();
        if self.changed.is_empty() && self.removed.is_empty() && !has_texts {
            return edit.plan_source(&mut source);
        }
        let text = read_member(self.zip, self.record, source.reader(), MAX_RECORD)?;
        let mut record = Record::parse(&text)?;
        let mut changed = self.changed.clone();
        if let Some(build) = &self.build {
            check_build(build)?;
            changed.push(self.with_build(build, &mut source)?);
        }
        if let Some(json) = &self.variant {
            self.set_variant(json, &mut edit, &mut record)?;
        }
        for index in self.signatures() {
            if !self.drops_signature {
                let name = self.zip.members().get(index).map_or(&[][..], |member| member.name());
                let text = "the wheel is signed, and a change makes the signature invalid";
                return Err(Error::new(ErrorKind::Signed, text).while_reading(Shown(name)));
            }
            edit.remove(index);
            record.remove(self.zip.members().get(index).map_or(&[][..], |member| member.name()));
        }
        for index in &self.removed {
            record.remove(self.zip.members().get(*index).map_or(&[][..], |member| member.name()));
        }
        let mut unlisted = Vec::new();
        for (index, contents) in &changed {
            if *index == self.record {
                let text = "expected changes of other members than RECORD, which is written";
                return Err(Error::new(ErrorKind::Refused, text));
            }
            let name = self.zip.members().get(*index).map_or(&[][..], |member| member.name());
            let rows =
                record.replace(name, contents.size(), |algorithm| contents.hash(algorithm))?;
            if rows == 0 {
                unlisted.push(name.to_vec());
            }
            edit.replace(*index, contents.clone());
        }
        let new = record.to_vec();
        if new != text {
            // A row of RECORD itself has neither hash nor size.
            edit.replace(self.record, self.stored_as(self.record, &new)?);
        }
        let mut rewrite = edit.plan_source(&mut source)?;
        rewrite.set_unlisted(unlisted);
        Ok(rewrite)
    }

    /// Gives `variant.json` this text, and a row of `RECORD`.
    fn set_variant(
        &self,
        json: &str,
        edit: &mut ZipEdit<'_>,
        record: &mut Record,
    ) -> Result<(), Error> {
        let directory = std::str::from_utf8(self.directory)
            .map_err(|_| Error::refused("expected a .dist-info directory with a name in UTF-8"))?;
        let name = format!("{directory}/{VARIANT_JSON}");
        let contents = match variant_json(self.zip) {
            Some(index) => {
                let contents = self.stored_as(index, json.as_bytes())?;
                edit.replace(index, contents.clone());
                contents
            }
            None => {
                let contents = NewContents::deflate(json.as_bytes(), 6, NonZeroUsize::MIN)?;
                edit.add(&name, contents.clone());
                contents
            }
        };
        let size = contents.size();
        if record.replace(name.as_bytes(), size, |algorithm| contents.hash(algorithm))? == 0 {
            record.add(&name, size, &contents.hash(Algorithm::Sha256)?);
        }
        Ok(())
    }

    /// Returns new contents of a member, stored or deflated as it is.
    fn stored_as(&self, index: usize, contents: &[u8]) -> Result<NewContents, Error> {
        match self.zip.members().get(index) {
            Some(member) => NewContents::like(member, contents, None, NonZeroUsize::MIN, u64::MAX),
            None => NewContents::deflate(contents, 6, NonZeroUsize::MIN),
        }
    }

    /// Returns the file `WHEEL` with a build tag.
    fn with_build(
        &self,
        build: &str,
        source: &mut Source<'_>,
    ) -> Result<(usize, NewContents), Error> {
        let index = self.zip.find(&within(self.directory, "WHEEL")).ok_or_else(|| {
            Error::new(ErrorKind::Malformed, "expected the file WHEEL beside RECORD")
        })?;
        let changed = self.changed.iter().rev().find(|(changed, _)| *changed == index);
        let text = match changed {
            Some((_, contents)) => {
                let mut text = Vec::new();
                contents.reader().read_to_end(&mut text)?;
                text
            }
            None => read_member(self.zip, index, source.reader(), MAX_RECORD)?,
        };
        let text = set_build(&text, build);
        Ok((index, self.stored_as(index, &text)?))
    }
}

/// Sets the line `Build:` of a file `WHEEL`: in the place of the one that is there, else before the first `Tag:`.
fn set_build(text: &[u8], build: &str) -> Vec<u8> {
    let is_field = |line: &[u8], name: &[u8]| {
        line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    let end: &[u8] = match lines.first() {
        Some(line) if line.ends_with(b"\r\n") => b"\r\n",
        _ => b"\n",
    };
    let header = |line: &&[u8]| !matches!(**line, [b'\n'] | [b'\r', b'\n']);
    let head = lines.iter().take_while(|line| header(line)).count();
    let old = lines.iter().take(head).position(|line| is_field(line, b"build:"));
    let tag = lines.iter().take(head).position(|line| is_field(line, b"tag:"));
    let at = old.or(tag).unwrap_or(head);
    let (before, after) = lines.split_at(at);
    let mut out = before.concat();
    if !out.is_empty() && !out.ends_with(b"\n") {
        out.extend_from_slice(end);
    }
    out.extend_from_slice(format!("Build: {build}").as_bytes());
    out.extend_from_slice(end);
    out.extend(after.iter().skip(usize::from(old.is_some())).copied().flatten());
    out
}

#[cfg(test)]
mod tests {
    use super::set_build;

    #[test]
    fn build_lines_keep_their_place() {
        let set = |text: &str| String::from_utf8(set_build(text.as_bytes(), "1a")).unwrap();
        assert_eq!(set("A: b\nTag: x\nTag: y\n"), "A: b\nBuild: 1a\nTag: x\nTag: y\n");
        assert_eq!(set("A: b\nbuild: 0\nTag: x\n\n"), "A: b\nBuild: 1a\nTag: x\n\n");
        assert_eq!(set("A: b\r\nTag: x\r\n"), "A: b\r\nBuild: 1a\r\nTag: x\r\n");
        assert_eq!(set("A: b\n\nTag: x\n"), "A: b\nBuild: 1a\n\nTag: x\n");
        assert_eq!(set("A: b"), "A: b\nBuild: 1a\n");
        assert_eq!(set(""), "Build: 1a\n");
    }
}
