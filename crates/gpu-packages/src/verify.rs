//! Checks of contents against checksums and records.

use std::collections::{BTreeMap, HashSet};
use std::io::{Cursor, Read};

use byte_parts::{ReadSeek, Source};

use crate::codec::Codec;
use crate::deb::DebRecords;
use crate::error::{Error, ErrorKind, Finding, FindingKind};
use crate::hash::{Algorithm, Hash, hash_reader};
use crate::limits::Options;
use crate::path::{MemberPath, without_dot};
use crate::record::{Record, compare_record};
use crate::walk::{Member, MemberKind, PackageKind, Visitor, read_held, sniff, walk};
use crate::wheel::{dist_info, read_record, record_index};
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
/// As [`walk`].
pub fn verify(mut reader: impl ReadSeek, options: &Options) -> Result<Verified, Error> {
    verify_within(&mut reader, options, &MemberPath::default())
}

/// Verifies a package at a path in others.
fn verify_within(
    mut reader: &mut dyn ReadSeek,
    options: &Options,
    place: &MemberPath,
) -> Result<Verified, Error> {
    let mut source = Source::new(&mut reader)?;
    let head = source.peek(&(0..source.len()), 512)?;
    let len = source.len();
    // The record tells which hashes to compute.
    let (mut record, mut directory) = (None, None);
    if sniff(&head) == Some(PackageKind::Zip) {
        let zip = Zip::read_source(&mut source)?;
        record = record_index(&zip).map(|_| read_record(&zip, source.reader()));
        directory = dist_info(&zip).map(<[u8]>::to_vec);
    }
    drop(source);
    let left = options.most_of(len);
    let directory = directory.unwrap_or_default();
    let mut checker = Checker { options: options.clone(), left, directory, ..Checker::default() };
    match record {
        Some(Ok(record)) => checker.record = Some(record),
        Some(Err(error)) => checker.add(MemberPath::default(), FindingKind::Record, error),
        None => {}
    }
    if let Some(record) = &checker.record {
        let rows = record.rows().map(|row| (row.path().to_vec(), row.algorithm()));
        checker.algorithms = rows.collect();
    }
    let kind = walk(&mut reader, options, &mut checker)?;
    checker.compare(kind);
    let mut findings = checker.findings;
    for finding in &mut findings {
        let names = finding.path.names();
        finding.path = names.fold(place.clone(), |path, name| path.join(name));
    }
    Ok(Verified {
        kind,
        members: checker.members,
        bytes: checker.bytes,
        recorded: checker.recorded,
        findings,
    })
}

/// The most bytes of `md5sums` and `paths.json`.
const MAX_RECORD: u64 = 256 << 20;

#[derive(Default)]
struct Checker {
    record: Option<Record>,
    /// The directory of the record.
    directory: Vec<u8>,
    algorithms: BTreeMap<Vec<u8>, Algorithm>,
    /// Size and hash of files of the outermost package.
    files: BTreeMap<Vec<u8>, (u64, Hash)>,
    md5sums: Option<Vec<u8>>,
    paths_json: Option<Vec<u8>>,
    findings: Vec<Finding>,
    /// Members whose contents cannot be read.
    damaged: HashSet<Vec<u8>>,
    members: u64,
    bytes: u64,
    recorded: u64,
    options: Options,
    /// Bytes that packages in the package may still be decompressed to, all together.
    left: u64,
}

impl Checker {
    fn add(&mut self, path: MemberPath, kind: FindingKind, error: Error) {
        self.findings.push(Finding { path, kind, error });
    }

    fn mismatch(&mut self, name: &[u8], text: String) {
        let error = Error::new(ErrorKind::Mismatch, text);
        self.add(MemberPath::default().join(name), FindingKind::Record, error);
    }
}

impl Visitor for Checker {
    fn package(&mut self, path: &MemberPath, kind: PackageKind) -> bool {
        // Blobs are hashed as they are, and files of a package with a record, too.
        let _ = kind;
        path.is_empty()
    }

    fn finding(&mut self, finding: Finding) {
        if finding.path.names().len() == 1 {
            self.damaged.insert(finding.path.name().to_vec());
        }
        self.findings.push(finding);
    }

    fn member(&mut self, member: &Member, contents: &mut dyn Read) -> Result<(), Error> {
        self.members += 1;
        if member.kind() != MemberKind::File && member.kind() != MemberKind::Symlink {
            return Ok(());
        }
        let path = member.path();
        let name = path.name().to_vec();
        let is_direct = path.names().len() == 1;
        let is_file = member.kind() == MemberKind::File;
        let joined = path.to_string();
        let held = match (member.package(), &joined[..]) {
            (PackageKind::Deb, "control.tar:md5sums") => Some(&mut self.md5sums),
            (PackageKind::Conda | PackageKind::Tar, "info/paths.json") => {
                Some(&mut self.paths_json)
            }
            _ => None,
        };
        if let Some(place) = held {
            let bytes = read_held(contents, MAX_RECORD)?;
            self.bytes = self.bytes.saturating_add(bytes.len() as u64);
            *place = Some(bytes);
            return Ok(());
        }
        let algorithm = match member.package() {
            PackageKind::Deb => Algorithm::Md5,
            _ => self.algorithms.get(&name).copied().unwrap_or(Algorithm::Sha256),
        };
        let (size, hash) = self.read(member, algorithm, contents)?;
        self.bytes = self.bytes.saturating_add(size);
        if is_direct && (is_file || member.package() == PackageKind::Wheel) {
            if let Some(hex) = name.strip_prefix(b"blobs/sha256/") {
                let expected = std::str::from_utf8(hex).ok();
                let expected = expected.and_then(|hex| Hash::from_hex(Algorithm::Sha256, hex));
                match expected {
                    Some(expected) if expected != hash => {
                        self.mismatch(
                            &name,
                            format!("its name is its hash, found {}", hash.to_hex()),
                        );
                    }
                    Some(_) => self.recorded += 1,
                    None => {}
                }
            }
            self.files.insert(name, (size, hash));
        }
        Ok(())
    }
}

impl Checker {
    /// Reads contents to their end. A package in the package is verified as well: it is held for that.
    fn read(
        &mut self,
        member: &Member,
        algorithm: Algorithm,
        contents: &mut dyn Read,
    ) -> Result<(u64, Hash), Error> {
        let mut head = Vec::new();
        contents.take(512).read_to_end(&mut head)?;
        let may_be_one = sniff(&head).is_some() || Codec::sniff(&head) != Codec::None;
        if !may_be_one || !member.has_file_contents() {
            return Ok(hash_reader(algorithm, &mut head.chain(contents))?);
        }
        if member.size() > self.options.max_held {
            let limit = self.options.max_held;
            let text = format!(
                "a package of {} bytes in another, which is not verified: it exceeds the limit of {limit} bytes",
                member.size()
            );
            self.add(
                member.path().clone(),
                FindingKind::Unread,
                Error::new(ErrorKind::Limit, text),
            );
            return Ok(hash_reader(algorithm, &mut head.chain(contents))?);
        }
        let mut bytes = head;
        contents.read_to_end(&mut bytes)?;
        let hash = Hash::of(algorithm, &bytes);
        let depth = self.options.max_depth.saturating_sub(1);
        if depth == 0 {
            let text = "more packages in each other than are verified";
            self.add(
                member.path().clone(),
                FindingKind::Unread,
                Error::new(ErrorKind::Limit, text),
            );
            return Ok((bytes.len() as u64, hash));
        }
        let inner = self.options.clone().with_max_depth(depth).with_max_decompressed(self.left);
        match verify_within(&mut Cursor::new(&bytes), &inner, member.path()) {
            Ok(verified) => {
                self.members = self.members.saturating_add(verified.members);
                self.recorded = self.recorded.saturating_add(verified.recorded);
                self.left = self.left.saturating_sub(verified.bytes);
                self.findings.extend(verified.findings);
            }
            // A compressed file that is not a tar file, or something that starts like a package.
            Err(error) if error.kind() == ErrorKind::NotAPackage => {}
            Err(error) if error.kind() == ErrorKind::Limit => return Err(error),
            Err(error) => self.add(member.path().clone(), FindingKind::Damaged, error),
        }
        Ok((bytes.len() as u64, hash))
    }

    fn compare(&mut self, kind: PackageKind) {
        match kind {
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
        self.recorded = self.recorded.saturating_add(compared.recorded);
        self.findings.extend(compared.findings);
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
        let path = || MemberPath::default().join(b"info/paths.json");
        let value: serde_json::Value = match serde_json::from_slice(json) {
            Ok(value) => value,
            Err(error) => return self.add(path(), FindingKind::Record, bad(error.to_string())),
        };
        let Some(rows) = value.get("paths").and_then(|rows| rows.as_array()) else {
            return self.add(path(), FindingKind::Record, bad("expected a list 'paths'".into()));
        };
        for row in rows {
            let text = |key: &str| row.get(key).and_then(|value| value.as_str());
            let Some(name) = text("_path") else {
                self.add(path(), FindingKind::Record, bad("expected '_path' in each row".into()));
                continue;
            };
            let name = without_dot(name.as_bytes());
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
            let (size, hash) = (*size, hash.clone());
            let recorded = row.get("size_in_bytes").and_then(|value| value.as_u64());
            let expected = text("sha256");
            if let Some(recorded) = recorded.filter(|&recorded| recorded != size) {
                self.mismatch(name, format!("paths.json has the size {recorded}, found {size}"));
            } else if let Some(expected) = expected.filter(|&hex| *hex != hash.to_hex()) {
                let found = hash.to_hex();
                self.mismatch(name, format!("paths.json has the hash {expected}, found {found}"));
            } else {
                self.recorded += u64::from(expected.is_some());
            }
        }
    }
}
