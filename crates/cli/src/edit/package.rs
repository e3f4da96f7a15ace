//! Edits of packages: their members are edited, and their lists of files corrected.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use gpu_packages::record::{self, Hash, Hasher};
use gpu_packages::{Contents, ContentsWriter, Member};

use super::attributes;
use super::editor::{Editor, Subject, explain};
use super::new_images::NewImages;
use super::report::FileRow;
use super::wishes::Wishes;
use crate::failure::Failure;
use crate::inputs::Input;
use crate::output::{How, Outputs, is_same};
use crate::package::Package;
use crate::permissions::NewPermissions;
use crate::positioned::Positioned;
use crate::report as messages;
use crate::stamp::Stamp;

/// The level of deflate that published wheels have.
const LEVEL: u32 = 6;

/// The changes of a package.
#[derive(Default)]
struct Changes {
    /// New bytes by the position of the member; `None` for members that go.
    members: BTreeMap<usize, Option<Contents>>,
    /// Hash and size of the new bytes, by the path of the member; `None` for members that go.
    files: BTreeMap<String, Option<(Hash, u64)>>,
}

impl Changes {
    fn set(&mut self, at: usize, member: &Member, new: Hashed) -> Result<(), Failure> {
        let (hash, size) = (new.hasher.finish(), new.size);
        self.members.insert(at, Some(new.contents.finish()?));
        self.files.insert(member.path().to_owned(), Some((hash, size)));
        Ok(())
    }

    fn remove(&mut self, at: usize, member: &Member) {
        self.members.insert(at, None);
        self.files.insert(member.path().to_owned(), None);
    }
}

/// New bytes of a member in the making, with their hash.
struct Hashed {
    contents: ContentsWriter,
    hasher: Hasher,
    size: u64,
}

impl Hashed {
    fn new(member: &Member, hasher: Hasher) -> Self {
        Hashed { contents: Contents::like(member, LEVEL), hasher, size: 0 }
    }
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.contents.write_all(bytes)?;
        self.hasher.update(bytes);
        self.size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Editor<'_> {
    /// Edits all members of a package, and writes it again. Members for which `goes` returns `true` are left out.
    pub(super) fn edit_package(
        &mut self,
        named: &Input,
        package: &Package,
        goes: &dyn Fn(&Path) -> bool,
        decide: &impl Fn(&Subject<'_>, &NewImages) -> Result<Wishes, Failure>,
    ) -> Result<Vec<FileRow>, Failure> {
        let output = &self.options.output;
        let (path, dry_run) = (named.path(), output.dry_run);
        let target = match &output.output {
            Some(directory) if directory.is_dir() => {
                directory.join(path.file_name().unwrap_or_default())
            }
            Some(file) => file.clone(),
            None => path.to_owned(),
        };
        let replaces = is_same(path, &target);
        let metadata = package.file.metadata()?;
        let stamp = Stamp::of(&package.file)?;
        let hashes = hashes(package)?;
        let (mut changes, mut rows) = (Changes::default(), Vec::new());
        let (mut complaints, mut left, mut has_code) = (Vec::new(), Vec::new(), false);
        for (at, member) in package.zip.members().iter().enumerate() {
            let name = format!("{}:{}", named.name(), member.path());
            if goes(Path::new(member.path())) {
                changes.remove(at, member);
                rows.push(FileRow::deleted(&name, member.size()).of_package(dry_run));
                continue;
            }
            let max = self.options.limits.max_decompressed;
            let edited = package.extract(member, max).map_err(Failure::from).and_then(|file| {
                let Some(file) = file else { return Err(Failure::NoCode) };
                let (contents, wishes, plan) = self.plan(&file, false, decide)?;
                if !plan.is_unchanged() && !dry_run {
                    let algorithm = hashes.get(member.path()).map_or("", |hash| &**hash);
                    let hasher = Hasher::like(algorithm).ok_or_else(|| {
                        Failure::from(format!("unknown kind of hash in RECORD: {algorithm}"))
                    })?;
                    let mut new = Hashed::new(member, hasher);
                    plan.write(Positioned::new(&file), &mut new)
                        .map_err(|error| explain(&error, &self.images))?;
                    changes.set(at, member, new)?;
                }
                let output = PathBuf::from(format!("{}:{}", target.display(), member.path()));
                Ok(FileRow::new(&name, &output, &contents, &plan, &wishes).of_package(dry_run))
            });
            match edited {
                Ok(row) => {
                    has_code = true;
                    rows.push(row);
                }
                Err(Failure::NoCode) => {}
                Err(Failure::NotConcerned(_)) => left.push(name),
                Err(failure) => {
                    let all = failure.complaints()?;
                    complaints.extend(all.iter().map(|text| format!("{}: {text}", member.path())));
                }
            }
        }
        if !complaints.is_empty() {
            return Err(complaints.into());
        }
        if !left.is_empty() {
            let files = messages::few(&left);
            messages::note(&format_args!("left alone, as no option is about their code: {files}"));
        }
        if !has_code && changes.members.is_empty() {
            return Err(match left.is_empty() {
                true => Failure::NoCode,
                false => Failure::NotConcerned(vec!["no code that an option is about".to_owned()]),
            });
        }
        self.drop_signatures(package, &mut changes)?;
        correct_records(package, &mut changes)?;
        let parts = package.zip.rewrite(Positioned::new(&package.file), &changes.members);
        let parts = parts.map_err(|error| Failure::from(error.to_string()))?;
        let changes_some = !changes.members.is_empty();
        let (mut notes, mut warnings) = (Vec::new(), Vec::new());
        if changes_some && replaces {
            notes.extend(self.unseal(&package.file)?);
        }
        if !dry_run && (changes_some || !replaces) {
            let new = NewPermissions::of_input(&metadata);
            let how = How { new, replaces: replaces.then_some(stamp) };
            let mut outputs = Outputs::default();
            outputs.write_new_or_print(&target, how, |out| {
                let written = parts.write_to(&mut [&package.file][..], &mut *out);
                written.map_err(io::Error::from)?;
                stamp.check(&package.file)?;
                if replaces {
                    warnings.extend(attributes::hand_over(&package.file, &metadata, out)?);
                }
                Ok(())
            })?;
            outputs.commit()?;
            warnings.extend(attributes::other_names(&metadata).filter(|_| replaces));
        }
        let sizes = (metadata.len(), parts.size());
        let changed = rows.iter().any(|row| row.changed);
        let mut whole = FileRow::package(named.name(), &target, sizes);
        (whole.changed, whole.notes, whole.warnings) = (changed, notes, warnings);
        rows.push(whole.written(dry_run, replaces));
        Ok(rows)
    }

    /// Removes signatures of the list of files, if that is allowed.
    fn drop_signatures(&self, package: &Package, changes: &mut Changes) -> Result<(), Failure> {
        if changes.members.is_empty() {
            return Ok(());
        }
        let is_signature = |path: &str| {
            is_record(path.trim_end_matches(".jws").trim_end_matches(".p7s")) && !is_record(path)
        };
        for (at, member) in package.zip.members().iter().enumerate() {
            if !is_signature(member.path()) {
                continue;
            }
            if !self.options.host.drop_signature {
                return Err(Failure::from(format!(
                    "wheel is signed ({}); the signature would become invalid (--drop-signature drops it)",
                    member.path()
                )));
            }
            changes.remove(at, member);
        }
        Ok(())
    }
}

/// Returns whether a member is the list of files of a wheel.
fn is_record(path: &str) -> bool {
    let directory = path.strip_suffix("/RECORD");
    directory.is_some_and(|name| name.ends_with(".dist-info") && !name.contains('/'))
}

/// Returns the hashes in the lists of files, by path.
fn hashes(package: &Package) -> Result<BTreeMap<String, String>, Failure> {
    let mut hashes = BTreeMap::new();
    for member in package.zip.members().iter().filter(|member| is_record(member.path())) {
        let text = package.text(member)?;
        let rows = record::rows(&text).flatten();
        hashes.extend(rows.map(|row| (row.path.into_owned(), row.hash.to_owned())));
    }
    Ok(hashes)
}

/// Puts hashes and sizes of changed members into the lists of files.
fn correct_records(package: &Package, changes: &mut Changes) -> Result<(), Failure> {
    if changes.members.is_empty() {
        return Ok(());
    }
    for (at, member) in package.zip.members().iter().enumerate() {
        if !is_record(member.path()) {
            continue;
        }
        let mut new = Contents::like(member, LEVEL);
        for row in record::rows(&package.text(member)?) {
            let line = match row {
                Err(line) => line.to_owned(),
                Ok(row) => match changes.files.get(&*row.path) {
                    None => row.line().to_owned(),
                    Some(None) => continue,
                    Some(Some((hash, size))) => row.with(hash, *size),
                },
            };
            new.write_all(line.as_bytes())?;
        }
        changes.members.insert(at, Some(new.finish()?));
    }
    Ok(())
}
