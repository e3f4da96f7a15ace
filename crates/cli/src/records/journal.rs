//! The journal of a list: what files are about to become, noted before they get their names.
//!
//! It lies beside its list while files are edited, and has the form of a `RECORD`. If a run is interrupted, it stays. A file
//! that has the hash that its note says was written by that run; any other that differs from its row was changed by
//! somebody else.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};

use gpu_packages::{Algorithm, Hash, Record};

use super::{At, Contents, MOST, New};
use crate::edit::hand_over;
use tool_kit::permissions::NewPermissions;
use tool_kit::report;
use tool_kit::temporary::Temporary;

/// Stands in the place of the hash of a file that is about to be deleted.
const DELETED: &str = "deleted";

/// Returns the place of the journal of a list.
pub(super) fn of(list: &At) -> At {
    let mut name = OsString::from(".offload-journal-");
    name.push(list.name());
    // Conda reads all files that end with .json.
    name.push("~");
    list.beside(&name)
}

#[derive(Debug)]
pub(super) struct Journal {
    at: At,
    /// Open once there are new notes.
    file: Option<File>,
    is_there: bool,
    /// Notes of an interrupted run, by the path of the row.
    pub(super) left: BTreeMap<Vec<u8>, Note>,
}

/// The state that a file was about to get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Note {
    Deleted,
    Contents(u64, Hash),
}

impl Journal {
    /// Reads the journal of a list, if there is one. Errors name it.
    pub(super) fn read(list: &At) -> io::Result<Self> {
        let at = of(list);
        let name = at.name().to_string_lossy().into_owned();
        Journal::read_at(at).map_err(|error| {
            io::Error::new(error.kind(), format!("{name}: {}", report::reason(&error)))
        })
    }

    fn read_at(at: At) -> io::Result<Self> {
        let text = match at.root.read_list(&at.relative, MOST) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        // The last note may have been written in part: its file was not replaced.
        let whole = text.as_deref().unwrap_or_default();
        let end = whole.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let notes = Record::parse(whole.get(..end).unwrap_or_default())?;
        let notes = notes.rows().filter_map(|row| {
            let note = match (row.hash(), row.size()) {
                (Some(hash), Some(size)) => Note::Contents(size, hash),
                _ if row.hash_field() == DELETED.as_bytes() => Note::Deleted,
                _ => return None,
            };
            Some((row.path().to_vec(), note))
        });
        let left = notes.collect();
        Ok(Journal { at, file: None, is_there: text.is_some(), left })
    }

    /// Returns whether there is something to correct or to remove after an interrupted run.
    pub(super) fn is_left(&self) -> bool {
        self.is_there && self.file.is_none()
    }

    /// Returns whether there is a note of an interrupted run about this row.
    pub(super) fn mentions(&self, row: &[u8]) -> bool {
        self.left.contains_key(row)
    }

    /// Returns whether an interrupted run wrote these contents.
    pub(super) fn has(&self, row: &[u8], found: &Contents) -> bool {
        let Some(Note::Contents(size, hash)) = self.left.get(row) else { return false };
        *size == found.size && found.hash(hash.algorithm()) == Some(hash)
    }

    /// Adds a note. It is on the disk when this returns. The journal is as private as the list.
    pub(super) fn add(&mut self, row: &[u8], new: &New, list: &At) -> io::Result<()> {
        let note = match new {
            New::Deleted => Note::Deleted,
            New::Contents(contents) => {
                let hash = contents.hash(Algorithm::Sha256).cloned();
                let hash = hash.ok_or_else(|| io::Error::other("a note without a hash"))?;
                Note::Contents(contents.size, hash)
            }
        };
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.start(&list.open()?)?,
        };
        file.write_all(line(row, &note).as_slice())?;
        file.sync_data()?;
        self.file = Some(file);
        Ok(())
    }

    /// Makes the journal, with the notes that are left.
    fn start(&mut self, list: &File) -> io::Result<File> {
        let metadata = list.metadata()?;
        let mode = NewPermissions::of_input(&metadata).of_part().mode();
        let (directory, name) = self.at.root.parent(&self.at.relative)?;
        let (temporary, mut file) = Temporary::file(&directory, mode)?;
        hand_over(list, &metadata, &file)?;
        let left: Vec<u8> = self.left.iter().flat_map(|(row, note)| line(row, note)).collect();
        file.write_all(&left)?;
        file.sync_data()?;
        temporary.rename(name)?;
        self.is_there = true;
        Ok(file)
    }

    /// Removes the journal: the list is right.
    pub(super) fn remove(&mut self) -> io::Result<()> {
        self.file = None;
        self.left.clear();
        if std::mem::take(&mut self.is_there) {
            self.at.remove()?;
        }
        Ok(())
    }
}

/// Returns a note as a row of a `RECORD`.
fn line(row: &[u8], note: &Note) -> Vec<u8> {
    let mut line = vec![b'"'];
    for &byte in row {
        line.push(byte);
        if byte == b'"' {
            line.push(byte);
        }
    }
    line.extend_from_slice(b"\",");
    let rest = match note {
        Note::Deleted => format!("{DELETED},\n"),
        Note::Contents(size, hash) => format!("{hash},{size}\n"),
    };
    line.extend_from_slice(rest.as_bytes());
    line
}
