//! Checks of contents against checksums and records.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;

use byte_parts::{ReadSeek, Source};

use crate::conda::CondaRow;
use crate::deb::DebRecords;
use crate::error::{Error, ErrorKind, Finding, FindingKind};
use crate::hash::{Algorithm, Hash};
use crate::limits::Options;
use crate::member::{Member, MemberKind};
use crate::package::PackageKind;
use crate::path::{MemberPath, without_dot};
use crate::reading::read_held;
use crate::record::{Record, compare_record};
use crate::visitor::{Sink, Visitor};
use crate::walk::walk_into;
use crate::wheel::{read_record_at, record_place};
use crate::zip::Zip;

/// The result of [`verify`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Verified {
    /// Kind of the package.
    pub kind: PackageKind,
    /// Number of members that were read.
    pub members: u64,
    /// Size of their contents in bytes.
    pub bytes: u64,
    /// Number of files that a record of the package has a hash for, and that have it.
    pub recorded: u64,
    /// All findings: those of the walk, and those of the records.
    pub findings: Vec<Finding>,
}

/// Reads all contents of a package and compares them with checksums and records: CRC-32 of zip members, `RECORD` of
/// wheels, `md5sums` of Debian packages, `info/paths.json` of conda packages, names of blobs in container images. Packages
/// in the package are read, and their checksums compared.
///
/// # Errors
///
/// As [`walk`](crate::walk()).
pub fn verify(reader: impl ReadSeek, options: &Options) -> Result<Verified, Error> {
    struct Nothing;
    impl Visitor for Nothing {
        fn member(&mut self, _: &Member, _: &mut dyn Read) -> Result<(), Error> {
            Ok(())
        }
    }
    verify_with(reader, options, &mut Nothing)
}

/// Verifies as [`verify`] does, and hands each member to a visitor on the way: contents are decompressed once for both.
/// All packages are entered. The findings are in the result only.
///
/// # Errors
///
/// As [`walk`](crate::walk()).
pub fn verify_with(
    reader: impl ReadSeek,
    options: &Options,
    visitor: &mut dyn Visitor,
) -> Result<Verified, Error> {
    let mut source = Source::new(reader)?;
    let max_held = options.held_of(source.len());
    let mut checker = Checker {
        visitor,
        packages: Vec::new(),
        findings: Vec::new(),
        members: 0,
        bytes: 0,
        recorded: 0,
        max_held,
        room: max_held,
        walk_holds: 0,
    };
    let kind = walk_into(source.reader(), options, &mut checker)?;
    Ok(Verified {
        kind,
        members: checker.members,
        bytes: checker.bytes,
        recorded: checker.recorded,
        findings: checker.findings,
    })
}

/// The most bytes of `md5sums` and `paths.json`.
const MAX_RECORD: u64 = 256 << 20;

/// Bytes that are held for each byte of `RECORD`, with its rows and findings, and of `paths.json` with its values.
const RECORD: u64 = 64;
const JSON: u64 = 24;

/// Bytes that are held for each file, beside its name.
const ROW: u64 = 160;

/// A walk that checks what passes, on the way to a visitor.
struct Checker<'v> {
    visitor: &'v mut dyn Visitor,
    /// The packages around, from the outermost.
    packages: Vec<Package>,
    findings: Vec<Finding>,
    members: u64,
    bytes: u64,
    recorded: u64,
    /// The most bytes that are held, how many more may be, and the bytes that the walk holds.
    max_held: u64,
    room: u64,
    walk_holds: u64,
}

/// A package that is checked.
struct Package {
    path: MemberPath,
    kind: PackageKind,
    record: Option<Record>,
    /// The directory of the record.
    directory: Vec<u8>,
    algorithms: BTreeMap<Vec<u8>, Algorithm>,
    /// Size and hash of its files.
    files: BTreeMap<Vec<u8>, (u64, Hash)>,
    md5sums: Option<Vec<u8>>,
    paths_json: Option<Vec<u8>>,
    /// Members whose contents cannot be read.
    damaged: HashSet<Vec<u8>>,
    /// Bytes that are held of all this.
    held: u64,
    /// The results of the comparison.
    findings: Vec<Finding>,
    recorded: u64,
}

impl Package {
    /// Returns whether a record of the package may list its files.
    fn may_list_files(&self) -> bool {
        match self.kind {
            PackageKind::Wheel => self.record.is_some(),
            PackageKind::Conda | PackageKind::Tar | PackageKind::Deb => true,
            PackageKind::Zip | PackageKind::Rpm | PackageKind::Compressed => false,
        }
    }

    /// Returns the names of a path in the package.
    fn within<'p>(
        &self,
        path: &'p MemberPath,
    ) -> impl ExactSizeIterator<Item = &'p [u8]> + use<'p> {
        path.names().skip(self.path.names().len())
    }

    /// Returns the place of a list of files, if the member is one.
    fn list(&mut self, member: &Member) -> Option<&mut Option<Vec<u8>>> {
        let names: Vec<_> = self.within(member.path()).collect();
        match (member.package(), &names[..]) {
            (PackageKind::Deb, [b"control.tar", b"md5sums"]) => Some(&mut self.md5sums),
            (PackageKind::Conda | PackageKind::Tar, [b"info/paths.json"]) => {
                Some(&mut self.paths_json)
            }
            _ => None,
        }
    }
}

impl Checker<'_> {
    fn add(&mut self, path: MemberPath, kind: FindingKind, error: Error) {
        self.findings.push(Finding { path, kind, error });
    }

    /// Counts bytes that are held until the end of the innermost package.
    fn count(&mut self, bytes: u64) -> Result<(), Error> {
        let room = self.room.checked_sub(bytes).ok_or_else(|| self.exceeds())?;
        if let Some(package) = self.packages.last_mut() {
            package.held += bytes;
            self.room = room;
        }
        Ok(())
    }

    /// Counts bytes, and asks the visitor about them.
    fn take(&mut self, bytes: u64) -> Result<(), Error> {
        self.count(bytes)?;
        if self.asks(self.walk_holds) { Ok(()) } else { Err(self.exceeds()) }
    }

    fn exceeds(&self) -> Error {
        let text =
            format!("the lists of its files exceed the limit of {} bytes held", self.max_held);
        Error::new(ErrorKind::Limit, text)
    }

    /// Asks the visitor about what is held, with the bytes that the walk holds.
    fn asks(&mut self, walk_holds: u64) -> bool {
        let held = self.packages.iter().map(|package| package.held).sum::<u64>();
        self.visitor.hold(held + walk_holds)
    }
}

impl Sink for Checker<'_> {
    fn package(&mut self, path: &MemberPath, kind: PackageKind) -> bool {
        self.packages.push(Package {
            path: path.clone(),
            kind,
            record: None,
            directory: Vec::new(),
            algorithms: BTreeMap::new(),
            files: BTreeMap::new(),
            md5sums: None,
            paths_json: None,
            damaged: HashSet::new(),
            held: 0,
            findings: Vec::new(),
            recorded: 0,
        });
        true
    }

    fn compressed(&mut self, path: &MemberPath, head: &[u8]) -> bool {
        self.visitor.compressed(path, head)
    }

    /// Reads the `RECORD`, which tells the hashes to compute.
    fn zip(&mut self, zip: &Zip, source: &mut Source<'_>) {
        let Some((directory, index)) = record_place(zip) else { return };
        let record = read_record_at(zip, index, source.reader(), self.room / RECORD);
        let record = record.and_then(|record| {
            self.count(record.len() as u64 * RECORD)?;
            Ok(record)
        });
        let Some(package) = self.packages.last_mut() else { return };
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let path = package.path.clone();
                return self.add(path, FindingKind::Record, error);
            }
        };
        let rows = record.rows().map(|row| (row.path().to_vec(), row.algorithm()));
        package.algorithms = rows.collect();
        package.record = Some(record);
        package.directory = directory.to_vec();
    }

    fn leave(&mut self, result: &Result<(), Error>) {
        let Some(mut package) = self.packages.pop() else { return };
        self.room += package.held;
        if result.is_ok() {
            package.compare();
            self.recorded += package.recorded;
            self.findings.append(&mut package.findings);
        }
        self.asks(self.walk_holds);
    }

    fn begin(&mut self, member: &Member) -> Option<Algorithm> {
        self.members += 1;
        if !matches!(member.kind(), MemberKind::File | MemberKind::Symlink) {
            return None;
        }
        let package = self.packages.last()?;
        Some(match member.package() {
            PackageKind::Deb => Algorithm::Md5,
            _ => {
                let name = member.path().name();
                package.algorithms.get(name).copied().unwrap_or(Algorithm::Sha256)
            }
        })
    }

    fn member(&mut self, member: &Member, contents: &mut dyn Read) -> Result<(), Error> {
        let most = MAX_RECORD.min(self.room / JSON);
        let Some(place) = self.packages.last_mut().and_then(|package| package.list(member)) else {
            return self.visitor.member(member, contents);
        };
        let bytes = read_held(contents, most)?;
        let result = self.visitor.member(member, &mut &bytes[..]);
        let held = bytes.len() as u64 * JSON;
        *place = Some(bytes);
        self.take(held)?;
        result
    }

    fn end(&mut self, member: &Member, size: u64, hash: Hash) -> Result<(), Error> {
        self.bytes += size;
        let Some(package) = self.packages.last_mut() else { return Ok(()) };
        let is_direct = package.within(member.path()).len() == 1;
        let is_file = member.kind() == MemberKind::File;
        if package.list(member).is_some()
            || !is_direct
            || !is_file && member.package() != PackageKind::Wheel
        {
            return Ok(());
        }
        let name = member.path().name().to_vec();
        if let Some(hex) = name.strip_prefix(b"blobs/sha256/") {
            let expected = std::str::from_utf8(hex).ok();
            let expected = expected.and_then(|hex| Hash::from_hex(Algorithm::Sha256, hex));
            match expected {
                Some(expected) if expected != hash => {
                    let text = format!("its name is its hash, found {}", hash.to_hex());
                    let error = Error::new(ErrorKind::Mismatch, text);
                    self.add(member.path().clone(), FindingKind::Record, error);
                }
                Some(_) => self.recorded += 1,
                None => {}
            }
        }
        let Some(package) = self.packages.last_mut() else { return Ok(()) };
        if package.may_list_files() {
            let held = ROW + name.len() as u64;
            package.files.insert(name, (size, hash));
            self.take(held)?;
        }
        Ok(())
    }

    fn finding(&mut self, finding: Finding) {
        if let Some(package) = self.packages.last_mut()
            && package.within(&finding.path).len() == 1
        {
            package.damaged.insert(finding.path.name().to_vec());
        }
        self.findings.push(finding);
    }

    fn hold(&mut self, bytes: u64) -> bool {
        let room = (self.room + self.walk_holds).checked_sub(bytes);
        let Some(room) = room.filter(|_| self.asks(bytes)) else { return false };
        (self.room, self.walk_holds) = (room, bytes);
        true
    }
}

impl Package {
    fn mismatch(&mut self, name: &[u8], text: String) {
        let error = Error::new(ErrorKind::Mismatch, text);
        self.add(self.path.join(name), FindingKind::Record, error);
    }

    fn add(&mut self, path: MemberPath, kind: FindingKind, error: Error) {
        self.findings.push(Finding { path, kind, error });
    }

    fn compare(&mut self) {
        match self.kind {
            PackageKind::Wheel => self.compare_record(),
            PackageKind::Deb => self.compare_md5sums(),
            _ => {}
        }
        if let Some(json) = self.paths_json.take() {
            self.compare_paths(&json);
        }
    }

    fn compare_record(&mut self) {
        let Some(record) = self.record.take() else { return };
        let files = self.files.iter().map(|(name, (size, hash))| (&name[..], (*size, Some(hash))));
        let compared = compare_record(&record, &self.directory, &files.collect(), |name| {
            self.damaged.contains(name)
        });
        self.recorded += compared.recorded;
        if compared.hexadecimal > 0 {
            let name = [&self.directory, &b"/RECORD"[..]].concat();
            let rows = compared.hexadecimal;
            let noun = if rows == 1 { "hash" } else { "hashes" };
            let text = format!(
                "{rows} {noun} in hexadecimal digits, expected URL-safe base64: installers that compare hashes refuse the wheel"
            );
            self.mismatch(&name, text);
        }
        for mut finding in compared.findings {
            finding.path = self.path.join(finding.path.name());
            self.findings.push(finding);
        }
    }

    fn compare_md5sums(&mut self) {
        let Some(text) = self.md5sums.take() else { return };
        for (name, expected) in DebRecords::parse(&text).rows() {
            match (self.files.get(name), expected) {
                (None, _) if self.damaged.contains(name) => {}
                (None, _) => self.mismatch(name, "md5sums lists it, the package lacks it".into()),
                (Some((_, found)), Some(expected)) if *found != expected => {
                    let (expected, found) = (expected.to_hex(), found.to_hex());
                    self.mismatch(name, format!("md5sums has the hash {expected}, found {found}"));
                }
                (Some(_), None) => {
                    self.mismatch(name, "md5sums has a hash that cannot be read".into());
                }
                _ => self.recorded += 1,
            }
        }
    }

    fn compare_paths(&mut self, json: &[u8]) {
        let bad =
            |text: String| Error::new(ErrorKind::Malformed, format!("info/paths.json: {text}"));
        let place = self.path.join(b"info/paths.json");
        let path = || place.clone();
        let value: serde_json::Value = match serde_json::from_slice(json) {
            Ok(value) => value,
            Err(error) => return self.add(path(), FindingKind::Record, bad(error.to_string())),
        };
        let Some(rows) = value.get("paths").and_then(|rows| rows.as_array()) else {
            return self.add(path(), FindingKind::Record, bad("expected a list 'paths'".into()));
        };
        for row in rows {
            let text = |key: &str| row.get(key).and_then(|value| value.as_str());
            let Some(listed) = CondaRow::of(row, "sha256") else {
                self.add(path(), FindingKind::Record, bad("expected '_path' in each row".into()));
                continue;
            };
            let name = without_dot(listed.path.as_bytes());
            // Links have the hash of the file that they point to.
            if text("path_type").is_some_and(|kind| kind != "hardlink") {
                continue;
            }
            let Some((size, hash)) = self.files.get(name) else {
                if self.damaged.contains(name) {
                    continue;
                }
                self.mismatch(name, "paths.json lists it, the package lacks it".into());
                continue;
            };
            let (found, recorded) = (hash.to_hex(), listed.hash.as_deref());
            let other = recorded.filter(|recorded| *recorded != found);
            let other = other.map(|recorded| format!("has the hash {recorded}, found {found}"));
            match listed.size_fault(*size).or(other) {
                Some(fault) => self.mismatch(name, format!("paths.json {fault}")),
                None => self.recorded += u64::from(listed.hash.is_some()),
            }
        }
    }
}
