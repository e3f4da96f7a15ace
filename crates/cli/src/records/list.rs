//! One list, and its new text.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use gpu_packages::{Algorithm, Record};

use super::conda::CondaList;
use super::journal::{Journal, Note};
use super::{At, Contents, MOST, New, below};
use crate::edit::hand_over;
use tool_kit::directory::Held;
use tool_kit::output::{How, Name, Outputs};
use tool_kit::permissions::NewPermissions;
use tool_kit::stamp::Stamp;
use tool_kit::{input, report};

/// Files that sign a `RECORD`.
const SIGNATURES: [&str; 2] = ["RECORD.jws", "RECORD.p7s"];

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Format {
    Python,
    Conda,
}

/// A list of the files of one distribution.
#[derive(Debug)]
pub(super) struct List {
    at: At,
    stamp: Stamp,
    /// The distribution: `torch-2.10.0`.
    name: String,
    text: Text,
    /// The rows of each file, by its path without links.
    rows: HashMap<PathBuf, Vec<Vec<u8>>>,
    pub(super) journal: Journal,
    /// The new state of files that were edited, by the path of the row.
    pub(super) changes: BTreeMap<Vec<u8>, New>,
}

#[derive(Debug)]
enum Text {
    Python(Record),
    Conda(CondaList),
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().display().fmt(f)
    }
}

impl List {
    /// Reads a list; `None` if it is not there. `base` is the path without links that its rows are relative to.
    pub(super) fn read(at: &At, format: Format, base: &Path) -> io::Result<Option<Self>> {
        let (file, text) = match at.root.open_list(&at.relative, MOST) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let stamp = Stamp::of(&file)?;
        let text = match format {
            Format::Python => Text::Python(Record::parse(&text)?),
            Format::Conda => Text::Conda(CondaList::parse(text)?),
        };
        let mut rows: HashMap<PathBuf, Vec<Vec<u8>>> = HashMap::new();
        let mut add = |row: &[u8]| {
            rows.entry(below(base, &input::path(row))).or_default().push(row.to_vec());
        };
        match &text {
            Text::Python(record) => record.rows().for_each(|row| add(row.path())),
            Text::Conda(list) => list.paths().for_each(|path| add(path.as_bytes())),
        }
        let distribution = match format {
            Format::Python => at.relative.parent().and_then(Path::file_stem),
            Format::Conda => at.relative.file_stem(),
        };
        let distribution = distribution.unwrap_or_default().to_string_lossy().into_owned();
        Ok(Some(List {
            at: at.clone(),
            stamp,
            name: distribution,
            text,
            rows,
            journal: Journal::read(at)?,
            changes: BTreeMap::new(),
        }))
    }

    pub(super) fn path(&self) -> PathBuf {
        self.at.path()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the rows of a file, whose path has no links.
    pub(super) fn rows(&self, file: &Path) -> &[Vec<u8>] {
        self.rows.get(file).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the algorithms of the hashes of a file, and the one of the journal.
    pub(super) fn algorithms(&mut self, row: &[u8]) -> Vec<Algorithm> {
        let mut algorithms = vec![Algorithm::Sha256];
        if let Text::Python(record) = &mut self.text {
            for row in record.find(row) {
                if !algorithms.contains(&row.algorithm()) {
                    algorithms.push(row.algorithm());
                }
            }
        }
        algorithms
    }

    /// Returns how a file differs from its row.
    pub(super) fn faults(&mut self, row: &[u8], found: &Contents) -> Vec<String> {
        match &mut self.text {
            Text::Python(record) => {
                let rows = record.find(row);
                rows.filter_map(|row| row.fault(found.size, found.hash(row.algorithm()))).collect()
            }
            Text::Conda(list) => {
                let fault = list.fault(row, found.size, found.hash(Algorithm::Sha256));
                let list = self.at.name().to_string_lossy();
                fault.map(|fault| format!("{list} {fault}")).into_iter().collect()
            }
        }
    }

    /// Notes in the journal what a file is about to become.
    pub(super) fn note(&mut self, row: &[u8], new: &New) -> io::Result<()> {
        self.journal.add(row, new, &self.at)
    }

    /// Fails if the list is signed.
    pub(super) fn check_signature(&self) -> io::Result<()> {
        let Some(signature) = self.signatures()?.into_iter().next() else { return Ok(()) };
        let text = format!(
            "{}: the distribution is signed, and a change makes the signature invalid (--drop-signature drops the signature)",
            signature.path().display()
        );
        Err(io::Error::other(text))
    }

    /// Returns the files that sign the list.
    fn signatures(&self) -> io::Result<Vec<At>> {
        let mut found = Vec::new();
        for signature in SIGNATURES.map(|name| self.at.beside(name.as_ref())) {
            let is_python = matches!(self.text, Text::Python(_));
            if is_python && signature.root.look(&signature.relative)?.is_some() {
                found.push(signature);
            }
        }
        Ok(found)
    }

    /// Writes the list with the new rows of edited files, and removes the journal.
    pub(super) fn finish(&mut self, drops_signatures: bool) -> io::Result<()> {
        let repaired = if self.journal.is_left() || !self.changes.is_empty() {
            self.repair()?
        } else {
            BTreeSet::new()
        };
        if !self.changes.is_empty() {
            self.remove_signatures(drops_signatures)?;
            self.write()?;
            let (repaired, edited): (Vec<&Vec<u8>>, Vec<&Vec<u8>>) =
                self.changes.keys().partition(|row| repaired.contains(*row));
            self.tell("sizes and hashes corrected", &edited);
            self.tell("corrected after an interrupted run", &repaired);
        }
        self.journal.remove()
    }

    fn tell(&self, what: &str, rows: &[&Vec<u8>]) {
        if !rows.is_empty() {
            let rows: Vec<_> = rows.iter().map(|row| String::from_utf8_lossy(row)).collect();
            report::note(&format_args!("{self}: {what}: {}", rows.join(", ")));
        }
    }

    /// Takes over the notes of an interrupted run that are true, and returns their rows.
    fn repair(&mut self) -> io::Result<BTreeSet<Vec<u8>>> {
        let mut repaired = BTreeSet::new();
        for (row, note) in std::mem::take(&mut self.journal.left) {
            if self.changes.contains_key(&row) {
                continue;
            }
            let Some(new) = self.state(&row, &note)? else { continue };
            self.changes.insert(row.clone(), new);
            repaired.insert(row);
        }
        Ok(repaired)
    }

    /// Returns the state of a file if it is the one of a note, and the row has another.
    fn state(&mut self, row: &[u8], note: &Note) -> io::Result<Option<New>> {
        // A row that leads out of the environment is not followed.
        let Some(path) = Held::resolve(&self.at.base, &input::path(row)) else { return Ok(None) };
        let opened = self.at.root.file(&path);
        let file = match (opened, note) {
            (Ok(file), Note::Contents(..)) => file,
            (Err(error), Note::Deleted) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Some(New::Deleted));
            }
            _ => return Ok(None),
        };
        let found = Contents::of(&file, &self.algorithms(row))?;
        let Note::Contents(size, hash) = note else { return Ok(None) };
        let is_written = *size == found.size && found.hash(hash.algorithm()) == Some(hash);
        let is_wrong = !self.faults(row, &found).is_empty();
        if is_wrong && !is_written {
            let row = String::from_utf8_lossy(row);
            report::warning(&format_args!(
                "{self}: {row}: changed since an interrupted run, its row is left as it is"
            ));
        }
        Ok((is_written && is_wrong).then_some(New::Contents(found)))
    }

    fn remove_signatures(&mut self, drops_signatures: bool) -> io::Result<()> {
        if !drops_signatures {
            return self.check_signature();
        }
        for signature in self.signatures()? {
            let row = signature.relative.strip_prefix(&self.at.base).unwrap_or(&signature.relative);
            let row = row.as_os_str().as_encoded_bytes().to_vec();
            self.journal.add(&row, &New::Deleted, &self.at)?;
            signature.remove()?;
            self.changes.insert(row, New::Deleted);
        }
        Ok(())
    }

    /// Replaces the list. Its owner, permissions and attributes stay.
    fn write(&mut self) -> io::Result<()> {
        let text = self.new_text()?;
        let file = self.at.open()?;
        self.stamp.check(&file)?;
        let metadata = file.metadata()?;
        let new = NewPermissions::of_input(&metadata);
        let how = How { new, replaces: Some(self.stamp) };
        let name = Name::found(&self.at.root, &self.at.relative)?;
        let mut outputs = Outputs::default();
        let lost = outputs.write_named_or_print(&name, how, |out| {
            out.write_all(&text)?;
            hand_over(&file, &metadata, out)
        })?;
        outputs.commit()?;
        for lost in lost {
            report::warning(&format_args!("{self}: {lost}"));
        }
        Ok(())
    }

    fn new_text(&mut self) -> io::Result<Vec<u8>> {
        let needed = || io::Error::other("a hash that was not computed");
        match &mut self.text {
            Text::Python(record) => {
                for (row, new) in &self.changes {
                    match new {
                        New::Deleted => _ = record.remove(row),
                        New::Contents(contents) => {
                            let hash = |algorithm| {
                                Ok(contents.hash(algorithm).cloned().ok_or_else(needed)?)
                            };
                            record.replace(row, contents.size, hash)?;
                        }
                    }
                }
                Ok(record.to_vec())
            }
            Text::Conda(list) => {
                for (row, new) in &self.changes {
                    // A list of conda's keeps files that are gone.
                    let New::Contents(contents) = new else { continue };
                    let hash = contents.hash(Algorithm::Sha256).ok_or_else(needed)?;
                    list.replace(row, contents.size, hash)?;
                }
                Ok(list.text().as_bytes().to_vec())
            }
        }
    }
}
