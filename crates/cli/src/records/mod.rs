//! Lists of installed files with sizes and hashes, which edits of these files correct: `RECORD` of Python distributions, and
//! `conda-meta` of conda's.
//!
//! Before a file is edited, it is compared with its rows: a file that was tampered with must not get a row that says
//! that it is right. Only rows of edited files change. The lists come last, so a run that is interrupted leaves files
//! that differ from their rows: a [journal](journal) beside the list has the hashes that these files should have, and
//! the next run corrects their rows.

mod conda;
mod journal;
mod list;

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

use gpu_packages::{Algorithm, Hash, hash_reader};

use crate::directory::{Held, Kind};
use crate::positioned::Positioned;
use crate::report;
use list::{Format, List};

/// The most bytes of a list.
const MOST: u64 = 256 << 20;

/// The lists of all files that are edited, found when they are needed.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    places: Vec<Place>,
    /// The lists in each directory, by their position.
    by_directory: HashMap<PathBuf, Vec<usize>>,
    /// The file that is being written, and its rows.
    pending: Vec<(usize, Vec<u8>, New)>,
    drops_signatures: bool,
    has_faults: bool,
}

/// The place of a list, and the list once it was read.
#[derive(Debug)]
struct Place {
    /// The directory that it lies in.
    held: Held,
    file: OsString,
    format: Format,
    /// The directory that its paths are relative to.
    base: PathBuf,
    list: Option<Option<List>>,
}

/// The new state of a file.
#[derive(Clone, Debug)]
pub(crate) enum New {
    Deleted,
    Contents(Contents),
}

/// Size and hashes of a file.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    size: u64,
    /// One for each algorithm that is needed, SHA-256 among them.
    hashes: Vec<Hash>,
}

impl Contents {
    /// Hashes a file as a list of these algorithms needs it.
    fn of(file: &File, algorithms: &[Algorithm]) -> io::Result<Self> {
        let mut hashes = Vec::new();
        for algorithm in algorithms {
            hashes.push(hash_reader(*algorithm, &mut Positioned::new(file))?.1);
        }
        Ok(Contents { size: file.metadata()?.len(), hashes })
    }

    fn hash(&self, algorithm: Algorithm) -> Option<&Hash> {
        self.hashes.iter().find(|hash| hash.algorithm() == algorithm)
    }
}

impl Lists {
    /// Allows to change lists that are signed, whose signatures are removed.
    pub(crate) fn dropping_signatures(drops_signatures: bool) -> Self {
        Lists { drops_signatures, ..Lists::default() }
    }

    /// Returns how a file differs from its rows. A file that an interrupted run wrote does not.
    ///
    /// # Errors
    ///
    /// One of reading the file; an error if a list is signed and signatures are not to be dropped.
    pub(crate) fn compare(&mut self, path: &Path, contents: &File) -> io::Result<Vec<String>> {
        self.check_signatures(path)?;
        let mut faults = Vec::new();
        for (at, row) in self.rows_of(path) {
            let Some(list) = self.list(at) else { continue };
            let found = Contents::of(contents, &list.algorithms(&row))?;
            if !list.journal.has(&row, &found) {
                faults.extend(list.faults(&row, &found));
            }
        }
        Ok(faults)
    }

    /// Fails if a list of the file is signed and signatures are not to be dropped.
    pub(crate) fn check_signatures(&mut self, path: &Path) -> io::Result<()> {
        let drops_signatures = self.drops_signatures;
        for (at, _) in self.rows_of(path) {
            let Some(list) = self.list(at).filter(|_| !drops_signatures) else { continue };
            list.check_signature()?;
        }
        Ok(())
    }

    /// Notes in the journals what a file is about to become.
    pub(crate) fn note(&mut self, path: &Path, new: Option<&File>) -> io::Result<()> {
        self.pending.clear();
        for (at, row) in self.rows_of(path) {
            let Some(list) = self.list(at) else { continue };
            let new = match new {
                Some(file) => New::Contents(Contents::of(file, &list.algorithms(&row))?),
                None => New::Deleted,
            };
            list.note(&row, &new).map_err(|error| {
                let text = format!("the journal of {list}: {}", report::reason(&error));
                io::Error::new(error.kind(), text)
            })?;
            self.pending.push((at, row, new));
        }
        Ok(())
    }

    /// Has the rows of the file that was noted last corrected: it is there.
    pub(crate) fn is_written(&mut self) {
        for (at, row, new) in std::mem::take(&mut self.pending) {
            if let Some(list) = self.list(at) {
                list.changes.insert(row, new);
            }
        }
    }

    /// Returns how the size of a file that stays differs from its rows, which stay as well.
    pub(crate) fn unchanged(&mut self, path: &Path, size: u64) -> Vec<String> {
        let mut faults = Vec::new();
        for (at, row) in self.rows_of(path) {
            let Some(list) = self.list(at) else { continue };
            if !list.journal.mentions(&row) {
                faults.extend(list.faults(&row, &Contents { size, hashes: Vec::new() }));
            }
        }
        faults
    }

    /// Finds journals that interrupted runs left above these files: their lists are corrected as well.
    pub(crate) fn find_journals<'p>(&mut self, files: impl Iterator<Item = &'p Path>) {
        let directories: BTreeSet<&Path> = files.filter_map(Path::parent).collect();
        for directory in directories {
            let Some(directory) = real_directory(directory) else { continue };
            for at in self.above(&directory) {
                if self.places.get(at).is_some_and(Place::has_journal) {
                    self.list(at);
                }
            }
        }
    }

    /// Writes all lists again in which rows are to be corrected. Returns whether all went well.
    pub(crate) fn finish(&mut self) -> bool {
        let drops_signatures = self.drops_signatures;
        let mut is_well = !self.has_faults;
        for list in self.places.iter_mut().filter_map(|place| place.list.as_mut()?.as_mut()) {
            if let Err(error) = list.finish(drops_signatures) {
                report::error(&format_args!("{list}: {}", report::reason(&error)));
                is_well = false;
            }
        }
        is_well
    }

    /// Returns the names of the distributions that have some of these files, each with the positions of these.
    pub(crate) fn distributions(&mut self, files: &[&Path]) -> Vec<(String, Vec<usize>)> {
        let mut found: HashMap<usize, Vec<usize>> = HashMap::new();
        for (position, file) in files.iter().enumerate() {
            let lists: BTreeSet<usize> = self.rows_of(file).into_iter().map(|(at, _)| at).collect();
            for at in lists {
                found.entry(at).or_default().push(position);
            }
        }
        let mut named: Vec<(PathBuf, String, Vec<usize>)> = Vec::new();
        for (at, positions) in found {
            if let Some(list) = self.list(at) {
                named.push((list.path().to_owned(), list.name().to_owned(), positions));
            }
        }
        named.sort();
        named.into_iter().map(|(_, name, positions)| (name, positions)).collect()
    }

    /// Returns the rows of a file, each with the position of its list.
    fn rows_of(&mut self, file: &Path) -> Vec<(usize, Vec<u8>)> {
        let Some(file) = real(file) else { return Vec::new() };
        let Some(directory) = file.parent() else { return Vec::new() };
        let mut found = Vec::new();
        for at in self.above(directory) {
            let Some(list) = self.list(at) else { continue };
            found.extend(list.rows(&file).iter().map(|row| (at, row.clone())));
        }
        found
    }

    /// Returns the lists in a directory and all that it lies in.
    fn above(&mut self, directory: &Path) -> Vec<usize> {
        let mut found = Vec::new();
        for directory in directory.ancestors() {
            if !self.by_directory.contains_key(directory) {
                let first = self.places.len();
                self.places.extend(places_in(directory));
                let lists = (first..self.places.len()).collect();
                self.by_directory.insert(directory.to_owned(), lists);
            }
            found.extend(self.by_directory.get(directory).into_iter().flatten());
        }
        found
    }

    /// Returns a list, which is read now if it was not; `None` if it cannot be read.
    fn list(&mut self, at: usize) -> Option<&mut List> {
        let place = self.places.get_mut(at)?;
        let has_faults = &mut self.has_faults;
        let list = place.list.get_or_insert_with(|| {
            let path = place.held.path_of(Path::new(&place.file));
            match List::read(&place.held, &place.file, place.format, &place.base) {
                Ok(list) => list,
                Err(error) => {
                    let reason = report::reason(&error);
                    report::error(&format_args!("{}: {reason}", path.display()));
                    *has_faults = true;
                    None
                }
            }
        });
        list.as_mut()
    }
}

impl Place {
    fn has_journal(&self) -> bool {
        let journal = journal::name(&self.file);
        self.held.look(Path::new(&journal)).is_ok_and(|found| found.is_some())
    }
}

/// Returns the lists of files below a directory that lie in it. Symbolic links are not followed.
fn places_in(base: &Path) -> Vec<Place> {
    // A directory that may not be read has no lists for this user.
    let Ok(held) = Held::open(base) else { return Vec::new() };
    let entries = held.entries(Path::new("")).unwrap_or_default();
    let is_directory = |(_, kind): &&(OsString, Kind)| *kind == Kind::Directory;
    let extension = |name: &OsString| Path::new(name).extension().map(ToOwned::to_owned);
    let mut found = Vec::new();
    let mut add = |held: &Held, file: OsString, format| {
        let (held, base) = (held.clone(), base.to_owned());
        found.push(Place { held, file, format, base, list: None });
    };
    for (name, kind) in &entries {
        if *kind == Kind::Link && extension(name).is_some_and(|it| it == "dist-info") {
            let path = base.join(name);
            let why =
                "a symbolic link, which is not followed: sizes and hashes in it are not corrected";
            report::warning(&format_args!("{}: {why}", path.display()));
        }
    }
    for (name, _) in entries.iter().filter(is_directory) {
        let Ok(inner) = held.enter(Path::new(name)) else { continue };
        if extension(name).is_some_and(|extension| extension == "dist-info") {
            add(&inner, "RECORD".into(), Format::Python);
        } else if name == "conda-meta" {
            let lists = inner.entries(Path::new("")).unwrap_or_default().into_iter();
            let lists = lists.map(|(name, _)| name);
            for file in lists.filter(|name| extension(name).is_some_and(|it| it == "json")) {
                add(&inner, file, Format::Conda);
            }
        }
    }
    found
}

/// Returns the path without links; that of a file that is gone, too.
fn real(file: &Path) -> Option<PathBuf> {
    Some(real_directory(file.parent()?)?.join(file.file_name()?))
}

fn real_directory(directory: &Path) -> Option<PathBuf> {
    let is_here = directory.as_os_str().is_empty();
    fs::canonicalize(if is_here { Path::new(".") } else { directory }).ok()
}

/// Returns a path below a directory, as the system spells it: parts that lead up and down again go.
fn below(base: &Path, path: &Path) -> PathBuf {
    let mut found = base.to_owned();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                found.pop();
            }
            Component::CurDir => {}
            other => found.push(other),
        }
    }
    found
}
