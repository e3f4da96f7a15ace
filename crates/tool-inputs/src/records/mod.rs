//! Lists of installed files with sizes and hashes, which edits of these files correct: `RECORD` of Python distributions, and
//! `conda-meta` of conda's.
//!
//! Before a file is edited, it is compared with its rows: a file that was tampered with must not get a row that says
//! that it is right. Only rows of edited files change. The lists come last, so a run that is interrupted leaves files
//! that differ from their rows: a [journal](Journal) beside the list has the hashes that these files should have, and
//! the next run corrects their rows. Any other file that differs from its row was changed by somebody else.

mod list;
mod rows;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use device_select::few;
use gpu_packages::{lists_in, sites_in};

use crate::environment::{Environment, root_and_base, slashed};
use crate::inputs::Input;
use list::List;
pub use rows::Listed;
use tool_kit::input;
use tool_kit::listed::{self, Journal};
use tool_kit::report::{self, Message};

/// The lists of all files that are edited, found when they are needed.
#[derive(Debug, Default)]
pub struct Lists {
    places: Vec<ListedPlace>,
    /// The lists in each directory with distributions, by their position.
    by_directory: HashMap<PathBuf, Range<usize>>,
    /// The lists that may have rows of the files in a directory, by the position of their group: directories share it with those above.
    above: HashMap<PathBuf, usize>,
    groups: Vec<Group>,
    /// The rows of all lists that were read, by the path of their file without links, each with the position of its list.
    rows: HashMap<PathBuf, Vec<(usize, Vec<u8>)>>,
    drops_signatures: bool,
}

/// Some lists, in order.
#[derive(Debug, Default)]
struct Group {
    lists: Arc<[usize]>,
    /// `true` once all were read.
    is_read: bool,
}

/// The place of a list, and the list once it was read.
#[derive(Debug)]
struct ListedPlace {
    at: listed::ListPlace,
    /// The directory that its rows are relative to, in its environment, and without links.
    base: PathBuf,
    real: PathBuf,
    /// `None` before it is read. Then `Err` if it cannot be read, and `Ok(None)` if it is not there.
    list: Option<Result<Option<Box<List>>, io::Error>>,
}

impl Lists {
    /// Allows to change lists that are signed, whose signatures are removed.
    pub fn dropping_signatures(drops_signatures: bool) -> Self {
        Lists { drops_signatures, ..Lists::default() }
    }

    /// Finds the lists above these files. If some are written, those with journals that interrupted runs left are corrected as
    /// well.
    pub fn find(&mut self, files: &[Input], is_written: bool) {
        let (mut known, mut seen, mut asked) = (HashSet::new(), HashSet::new(), HashSet::new());
        for file in files {
            let Some(real) = file.real() else { continue };
            if !real.parent().is_some_and(|directory| known.insert(directory.to_owned())) {
                continue;
            }
            let group = self.above(&real, file);
            if !seen.insert(group) {
                continue;
            }
            for &at in self.lists_of_group(group).iter() {
                if !asked.insert(at) {
                    continue;
                }
                let place = self.places.get(at).map(|place| Journal::place(&place.at));
                if is_written && place.is_some_and(|journal| journal.is_taken().unwrap_or(false)) {
                    self.list(at);
                }
            }
        }
    }

    /// Writes all lists again in which rows are to be corrected, if files are written. Returns what is to be said about the
    /// lists that were needed.
    pub fn finish(&mut self, is_written: bool) -> Vec<Message> {
        let mut said = Vec::new();
        for place in &mut self.places {
            let finished = match &mut place.list {
                Some(Ok(Some(list))) if is_written => list.finish(self.drops_signatures, &mut said),
                Some(Err(error)) => Err(io::Error::new(error.kind(), report::reason(error))),
                _ => Ok(()),
            };
            if let Err(error) = finished {
                let (path, reason) = (place.at.path(), report::reason(&error));
                said.push(Message::Error(format!("{}: {reason}", path.display())));
            }
        }
        said
    }

    /// Returns the rows of a file, each with the position of its list. Rows with one spelling of its path are there once: a list knows
    /// them by that.
    fn rows_of(&mut self, file: &Input) -> Vec<(usize, Vec<u8>)> {
        let Some(real) = file.real() else { return Vec::new() };
        let group = self.above(&real, file);
        let lists = self.lists_of_group(group);
        if let Some(group) = self.groups.get_mut(group).filter(|group| !group.is_read) {
            group.is_read = true;
            for at in lists.iter() {
                self.list(*at);
            }
        }
        let rows = self.rows.get(&real).into_iter().flatten();
        let mut found: Vec<_> =
            rows.filter(|(at, _)| lists.binary_search(at).is_ok()).cloned().collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Notes in the journals that many files are about to be deleted. A failure is said when the file notes it itself, and fails again.
    pub fn note_deletions(&mut self, files: &[&Input]) {
        let mut by_list: BTreeMap<usize, BTreeSet<Vec<u8>>> = BTreeMap::new();
        for (at, row) in files.iter().flat_map(|file| self.rows_of(file)) {
            by_list.entry(at).or_default().insert(row);
        }
        let drops_signatures = self.drops_signatures;
        for (at, rows) in by_list {
            let list = self.list(at);
            if let Some(list) = list.filter(|it| drops_signatures || it.check_signature().is_ok()) {
                let _ = list.note_deletions(rows);
            }
        }
    }

    /// Fails if one of these lists is signed, and signatures are not to be dropped.
    fn check_signatures(&mut self, rows: &[(usize, Vec<u8>)]) -> io::Result<()> {
        if self.drops_signatures {
            return Ok(());
        }
        rows.iter()
            .try_for_each(|(at, _)| self.list(*at).map_or(Ok(()), |list| list.check_signature()))
    }

    /// Returns the lists that may have rows of a file, and could not be read.
    fn unread(&mut self, file: &Input) -> Vec<String> {
        let Some(real) = file.real() else { return Vec::new() };
        let group = self.above(&real, file);
        let lists = self.lists_of_group(group);
        let places = lists.iter().filter_map(|at| self.places.get(*at));
        let failed = places.filter(|place| matches!(place.list, Some(Err(_))));
        let failed: Vec<_> = failed.map(|place| place.at.path().display().to_string()).collect();
        let text = || format!("may be listed where it cannot be compared: {}", few(&failed));
        (!failed.is_empty()).then(text).into_iter().collect()
    }

    /// Returns the lists of a group.
    fn lists_of_group(&self, group: usize) -> Arc<[usize]> {
        self.groups.get(group).map_or_else(|| Arc::from([]), |group| Arc::clone(&group.lists))
    }

    /// Returns the group of all lists that may have rows of a file. They lie in the directories above it, or in environments that these
    /// are. `real` is its path without links. Directories below the one that the user named are opened in that.
    fn above(&mut self, real: &Path, file: &Input) -> usize {
        let mut directories = real.parent().unwrap_or(real).ancestors();
        let mut unknown = Vec::new();
        let known = directories.find_map(|one| {
            let known = self.above.get(one).copied();
            unknown.extend(Some(one).filter(|_| known.is_none()));
            known
        });
        let mut group = known.unwrap_or_else(|| self.add_group(Group::default()));
        for directory in unknown.into_iter().rev() {
            let above = self.lists_of_group(group);
            let mut own = BTreeSet::new();
            for base in bases(directory, file) {
                own.extend(self.lists_of(base, file));
            }
            own.retain(|at| above.binary_search(at).is_err());
            if !own.is_empty() {
                own.extend(above.iter());
                group = self.add_group(Group { lists: own.into_iter().collect(), is_read: false });
            }
            self.above.insert(directory.to_owned(), group);
        }
        group
    }

    fn add_group(&mut self, group: Group) -> usize {
        self.groups.push(group);
        self.groups.len() - 1
    }

    /// Returns the lists in a directory with distributions, which is a path without links.
    fn lists_of(&mut self, base: PathBuf, file: &Input) -> Range<usize> {
        let Lists { by_directory, places, .. } = self;
        let lists = by_directory.entry(base).or_insert_with_key(|base| {
            let first = places.len();
            let (root, relative) = root_and_base(base);
            // A directory that may not be read has no lists for this user.
            if let Ok(root) = file.directory(root).map(Environment) {
                let lists = lists_in(&root, &slashed(relative));
                places.extend(lists.into_iter().map(|list| ListedPlace {
                    at: listed::ListPlace { root: root.0.clone(), relative: input::path(&list) },
                    base: relative.to_owned(),
                    real: base.clone(),
                    list: None,
                }));
            }
            first..places.len()
        });
        lists.clone()
    }

    /// Returns a list, which is read now if it was not; `None` if it cannot be read.
    fn list(&mut self, at: usize) -> Option<&mut List> {
        let Lists { places, rows, .. } = self;
        let place = places.get_mut(at)?;
        let list = place.list.get_or_insert_with(|| {
            let list = List::read(&place.at, &place.base)?;
            for row in list.iter().flat_map(|list| list.text.paths()) {
                let file = input::below(&place.real, &input::path(&row));
                // Nearly all files are in one list.
                let rows = rows.entry(file).or_insert_with(|| Vec::with_capacity(1));
                rows.push((at, row.into_owned()));
            }
            Ok(list.map(Box::new))
        });
        list.as_mut().ok()?.as_deref_mut()
    }
}

/// Returns a directory, and those with distributions of the environment that it is.
fn bases(directory: &Path, file: &Input) -> Vec<PathBuf> {
    let held = file.directory(directory).map(Environment);
    // One that cannot be opened has no distributions.
    let sites = held.map(|held| sites_in(&held)).unwrap_or_default();
    let sites = sites.iter().map(|site| directory.join(input::path(site)));
    [directory.to_owned()].into_iter().chain(sites).collect()
}
