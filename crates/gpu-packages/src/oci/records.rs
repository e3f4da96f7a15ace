//! Lists of installed files in an image, corrected where they lie: a list and its files may be in different layers.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use crate::deb::DebRecords;
use crate::environment::resolve;
use crate::error::{Error, ErrorKind, Finding, FindingKind};
use crate::hash::Algorithm;
use crate::installed::{FileHashes, InstalledList};
use crate::path::{MemberPath, Shown};

use super::images::Images;
use super::layer::{LayerMembers, is_list, is_of_dpkg, parent};
use super::view::{ImageView, LayerFile, join, split};

/// The change of a file of an image.
#[derive(Clone, Debug)]
pub struct FileChange {
    old: FileHashes,
    /// `None` if the file goes.
    new: Option<FileHashes>,
}

impl FileChange {
    /// Returns the change of a file with these sizes and hashes; without new ones the file goes.
    #[must_use]
    pub fn new(old: FileHashes, new: Option<FileHashes>) -> Self {
        FileChange { old, new }
    }
}

/// The lists of installed files that change.
#[derive(Default)]
#[non_exhaustive]
pub struct ChangedLists {
    /// New texts.
    pub texts: BTreeMap<LayerFile, Vec<u8>>,
    /// Files that a row differs from before the change.
    pub wrong: Vec<(LayerFile, Finding)>,
}

impl fmt::Debug for ChangedLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangedLists")
            .field("texts", &self.texts.len())
            .field("wrong", &self.wrong.len())
            .finish_non_exhaustive()
    }
}

/// A file that differs from a row before the change, and how.
type Fault = (LayerFile, String);

/// A list with the rows that change.
struct List<'c> {
    path: Vec<u8>,
    /// For each row the files that it is about, in one image or another.
    rows: BTreeMap<Vec<u8>, Vec<Changed<'c>>>,
}

/// A file with its change.
type Changed<'c> = (LayerFile, &'c FileChange);

impl Images {
    /// Corrects the lists of installed files that have changed files, each in the highest layer that has it. There are members for
    /// each layer.
    ///
    /// # Errors
    ///
    /// [`Malformed`](ErrorKind::Malformed) lists; [`Unsupported`](ErrorKind::Unsupported) for a row with another hash than SHA-256 or
    /// MD5; [`Refused`](ErrorKind::Refused) for a `RECORD` that is signed.
    pub fn change_lists(
        &self,
        members: &[LayerMembers],
        changes: &HashMap<LayerFile, FileChange>,
    ) -> Result<ChangedLists, Error> {
        let mut lists: BTreeMap<LayerFile, List<'_>> = BTreeMap::new();
        let layers: HashSet<usize> = changes.keys().map(|file| file.layer).collect();
        let images = self.lists_of_layers().into_iter();
        for image in images.filter(|image| image.iter().any(|layer| layers.contains(layer))) {
            let view = ImageView::of(image, members);
            let changed: HashMap<&[u8], Changed<'_>> = view
                .files()
                .filter_map(|(path, file)| Some((path, (file, changes.get(&file)?))))
                .collect();
            if changed.is_empty() {
                continue;
            }
            for (path, file) in view.files().filter(|(path, _)| is_list(path)) {
                let text = members.get(file.layer).and_then(|it| it.lists.get(&file.member));
                let Some(text) = text else { continue };
                let at = self.place(file, path);
                let rows = rows(path, text).map_err(|error| error.while_reading(&at))?;
                // A directory of rows, and the one that it leads to by symbolic links.
                let mut last = (Vec::new(), Vec::new());
                for (row, target) in rows {
                    let change = changed.get(&target[..]).or_else(|| {
                        let (directory, name) = split(&target);
                        if last.0 != directory {
                            last = (directory.to_vec(), view.follow(directory));
                        }
                        changed.get(&join(&last.1, name)[..])
                    });
                    let Some(change) = change else { continue };
                    check_signature(&view, path)?;
                    let list = lists
                        .entry(file)
                        .or_insert_with(|| List { path: path.to_vec(), rows: BTreeMap::new() });
                    list.rows.entry(row).or_default().push(*change);
                }
            }
        }
        let mut changed = ChangedLists::default();
        for (file, list) in lists {
            let at = self.place(file, &list.path);
            let text = members.get(file.layer).and_then(|it| it.lists.get(&file.member));
            let Some(text) = text else { continue };
            let (new, faults) = list.changed(text).map_err(|error| error.while_reading(&at))?;
            if new != *text {
                changed.texts.insert(file, new);
            }
            changed.wrong.extend(faults.into_iter().map(|(file, text)| {
                let (path, kind) = (at.clone(), FindingKind::Record);
                (file, Finding { path, kind, error: Error::new(ErrorKind::Mismatch, text) })
            }));
        }
        Ok(changed)
    }

    fn place(&self, file: LayerFile, path: &[u8]) -> MemberPath {
        let layer = self.layers.get(file.layer).map_or("", |layer| &layer.file);
        MemberPath::from_names([layer.as_bytes(), path])
    }
}

/// Fails for a `RECORD` with a signature beside it.
fn check_signature(view: &ImageView, path: &[u8]) -> Result<(), Error> {
    let mut signatures = [[path, b".jws"].concat(), [path, b".p7s"].concat()].into_iter();
    match signatures.find(|name| view.file(name).is_some()) {
        Some(name) => {
            let text = format!("{}: signs a list of files that would change", Shown(&name));
            Err(Error::new(ErrorKind::Refused, text))
        }
        None => Ok(()),
    }
}

/// The path in a row of a list, and the path of its file from the root of the image.
type Row = (Vec<u8>, Vec<u8>);

/// Returns the rows of a list, each with the path of its file from the root of the image.
fn rows(path: &[u8], text: &[u8]) -> Result<Vec<Row>, Error> {
    if is_of_dpkg(path) {
        let sums = DebRecords::parse(text);
        return Ok(sums.rows().map(|(row, _)| (row.to_vec(), row.to_vec())).collect());
    }
    let base = parent(parent(path));
    let list = InstalledList::parse(&name_of(path), text.to_vec())?;
    let rows = list.paths().into_iter().filter_map(|row| {
        let target = resolve(base, &row)?.join(&b'/');
        Some((row.into_owned(), target))
    });
    Ok(rows.collect())
}

fn name_of(path: &[u8]) -> String {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    String::from_utf8_lossy(name).into_owned()
}

impl List<'_> {
    /// Returns the text with new rows, and how old ones differ from their files.
    fn changed(&self, text: &[u8]) -> Result<(Vec<u8>, Vec<Fault>), Error> {
        let mut faults = Vec::new();
        if is_of_dpkg(&self.path) {
            let mut sums = DebRecords::parse(text);
            for (row, changes) in &self.rows {
                let old = sums.hash(row);
                let is_right =
                    |(_, change): &&Changed<'_>| change.old.hash(Algorithm::Md5) == old.as_ref();
                let right = changes.iter().find(is_right);
                let Some((file, change)) = right.or(changes.first()) else { continue };
                if right.is_none() {
                    let name = Shown(row);
                    faults.push((*file, format!("md5sums has another hash for {name}")));
                }
                match &change.new {
                    None => _ = sums.remove(row),
                    Some(new) => _ = sums.replace(row, new.needed(Algorithm::Md5)?),
                }
            }
            return Ok((sums.to_vec(), faults));
        }
        let mut list = InstalledList::parse(&name_of(&self.path), text.to_vec())?;
        for (row, changes) in &self.rows {
            let other = list.algorithms(row).into_iter().find(|it| *it != Algorithm::Sha256);
            if let Some(other) = other {
                let (row, other) = (Shown(row), other.name());
                let text = format!("row of {row}: expected a hash of sha256, found {other}");
                return Err(Error::new(ErrorKind::Unsupported, text));
            }
            let Some(first) = changes.first() else { continue };
            let mut is_right =
                |(_, change): &&Changed<'_>| list.faults(row, &change.old).is_empty();
            let right = changes.iter().find(&mut is_right);
            let (file, change) = right.unwrap_or(first);
            if right.is_none() {
                let why = list.faults(row, &change.old);
                let why = why.into_iter().map(|text| (*file, format!("{}: {text}", Shown(row))));
                faults.extend(why);
            }
            list.change(row, change.new.as_ref())?;
        }
        Ok((list.to_vec(), faults))
    }
}
