//! One list, and its new text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use device_select::few;
use gpu_packages::{FileHashes, InstalledList, InstalledNotes};

use tool_kit::directory::Held;
use tool_kit::input;
use tool_kit::listed::{Journal, ListPlace};
use tool_kit::positioned::Positioned;
use tool_kit::report::Message;
use tool_kit::stamp::Stamp;

/// A list of the files of one distribution.
#[derive(Debug)]
pub(super) struct List {
    at: ListPlace,
    stamp: Stamp,
    /// The directory that its rows are relative to, in its environment.
    base: PathBuf,
    pub(super) text: InstalledList,
    journal: Journal,
    /// The rows of files whose deletion is noted.
    going: BTreeSet<Vec<u8>>,
    /// The notes of an interrupted run.
    pub(super) notes: InstalledNotes,
    /// The new state of files that were edited, by the path of the row; `None` for files that are gone.
    pub(super) changes: BTreeMap<Vec<u8>, Option<FileHashes>>,
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at.path().display().fmt(f)
    }
}

impl List {
    /// Reads a list; `None` if it is not there. Its rows are relative to `base`.
    pub(super) fn read(at: &ListPlace, base: &Path) -> io::Result<Option<Self>> {
        let Some((stamp, text)) = at.read()? else { return Ok(None) };
        let text = InstalledList::parse(&at.name().to_string_lossy(), text)?;
        let journal = Journal::read(at)?;
        let notes = InstalledNotes::parse(journal.left()).map_err(|error| {
            let name = Journal::place(at);
            io::Error::other(format!("{}: {error}", name.name().display()))
        })?;
        let (at, base, changes) = (at.clone(), base.to_owned(), BTreeMap::new());
        Ok(Some(List { at, stamp, base, text, journal, going: BTreeSet::new(), notes, changes }))
    }

    /// Returns the path of the list, and the distribution: `torch-2.10.0`.
    pub(super) fn names(&self) -> (PathBuf, String) {
        let relative = &self.at.relative;
        let named = if self.at.name() == "RECORD" { relative.parent() } else { Some(&**relative) };
        // A list in the root directory has no directory that names it.
        let name = named.and_then(Path::file_stem).unwrap_or_default();
        (self.at.path(), name.to_string_lossy().into_owned())
    }

    /// Notes in the journal what a file is about to become.
    pub(super) fn note(&mut self, row: &[u8], new: Option<&FileHashes>) -> io::Result<()> {
        if new.is_none() && self.going.contains(row) {
            return Ok(());
        }
        self.journal.add(&InstalledNotes::line(row, new)?)
    }

    /// Notes in the journal that many files are about to be deleted, in the time of one note.
    pub(super) fn note_deletions(&mut self, rows: BTreeSet<Vec<u8>>) -> io::Result<()> {
        let mut lines = Vec::new();
        for row in &rows {
            lines.extend(InstalledNotes::line(row, None)?);
        }
        self.journal.add(&lines)?;
        self.going.extend(rows);
        Ok(())
    }

    /// Fails if the list is signed.
    pub(super) fn check_signature(&self) -> io::Result<()> {
        let Some(signature) = self.signatures()?.into_iter().next() else { return Ok(()) };
        let text = format!(
            "{}: the distribution is signed, and a change makes the signature invalid (--drop-signature drops the signature)",
            signature.path().display()
        );
        Err(io::Error::new(io::ErrorKind::InvalidData, text))
    }

    /// Returns the files that sign the list.
    fn signatures(&self) -> io::Result<Vec<ListPlace>> {
        let mut found = Vec::new();
        for signature in self.text.signatures().iter().map(|name| self.at.beside(name)) {
            if signature.is_taken()? {
                found.push(signature);
            }
        }
        Ok(found)
    }

    /// Writes the list with the new rows of edited files, and removes the journal. Adds what is to be said about it.
    pub(super) fn finish(
        &mut self,
        drops_signatures: bool,
        said: &mut Vec<Message>,
    ) -> io::Result<()> {
        let repaired = if self.journal.is_left() || !self.changes.is_empty() {
            self.repair(said)?
        } else {
            BTreeSet::new()
        };
        if !self.changes.is_empty() {
            self.remove_signatures(drops_signatures)?;
            for (row, new) in &self.changes {
                self.text.change(row, new.as_ref())?;
            }
            for lost in self.at.replace(self.stamp, &self.text.to_vec())? {
                said.push(Message::Warning(format!("{self}: {lost}")));
            }
            let (repaired, edited): (Vec<&Vec<u8>>, Vec<&Vec<u8>>) =
                self.changes.keys().partition(|row| repaired.contains(*row));
            said.extend(self.note_of("sizes and hashes corrected", &edited));
            said.extend(self.note_of("corrected after an interrupted run", &repaired));
        }
        self.journal.remove()
    }

    fn note_of(&self, what: &str, rows: &[&Vec<u8>]) -> Option<Message> {
        let names = || few(rows.iter().map(|row| String::from_utf8_lossy(row)));
        (!rows.is_empty()).then(|| Message::Note(format!("{self}: {what}: {}", names())))
    }

    /// Takes over the notes of an interrupted run that are true, and returns their rows.
    fn repair(&mut self, said: &mut Vec<Message>) -> io::Result<BTreeSet<Vec<u8>>> {
        let mut repaired = BTreeSet::new();
        let notes = std::mem::take(&mut self.notes);
        for row in notes.paths() {
            if self.changes.contains_key(row) {
                continue;
            }
            let Some(new) = self.state(row, &notes, said)? else { continue };
            self.changes.insert(row.to_vec(), new);
            repaired.insert(row.to_vec());
        }
        Ok(repaired)
    }

    /// Returns the state of a file if it is the one of its note, and the row has another.
    fn state(
        &mut self,
        row: &[u8],
        notes: &InstalledNotes,
        said: &mut Vec<Message>,
    ) -> io::Result<Option<Option<FileHashes>>> {
        // A row that leads out of the environment is not followed.
        let Some(path) = Held::resolve(&self.base, &input::path(row)) else { return Ok(None) };
        let file = match (self.at.root.file(&path), notes.deletes(row)) {
            (Ok(file), false) => file,
            (Err(error), true) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Some(None));
            }
            _ => return Ok(None),
        };
        let found = FileHashes::of(Positioned::new(&file), &self.text.algorithms(row))?;
        let is_written = notes.has(row, &found);
        let is_wrong = !self.text.faults(row, &found).is_empty();
        if is_wrong && !is_written {
            let row = String::from_utf8_lossy(row);
            said.push(Message::Warning(format!(
                "{self}: {row}: changed since an interrupted run, its row is left as it is"
            )));
        }
        Ok((is_written && is_wrong).then_some(Some(found)))
    }

    fn remove_signatures(&mut self, drops_signatures: bool) -> io::Result<()> {
        if !drops_signatures {
            return self.check_signature();
        }
        for signature in self.signatures()? {
            let row = signature.relative.strip_prefix(&self.base).unwrap_or(&signature.relative);
            let row = row.as_os_str().as_encoded_bytes().to_vec();
            self.note(&row, None)?;
            signature.remove()?;
            self.changes.insert(row, None);
        }
        Ok(())
    }
}
