//! The journal of a list: what files are about to become, noted before they get their names.
//!
//! It lies beside its list while files are edited, and has the form of a `RECORD`. If a run is interrupted, it stays. A file
//! that has the hash that its note says was written by that run; any other that differs from its row was changed by
//! somebody else.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};

use gpu_packages::{FileHashes, InstalledNotes};

use super::{At, MOST};
use tool_kit::attributes::hand_over;
use tool_kit::permissions::NewPermissions;
use tool_kit::report;
use tool_kit::temporary::Temporary;

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
    /// Notes of an interrupted run.
    pub(super) notes: InstalledNotes,
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
        let notes = InstalledNotes::parse(text.as_deref().unwrap_or_default())?;
        Ok(Journal { at, file: None, is_there: text.is_some(), notes })
    }

    /// Returns whether there is something to correct or to remove after an interrupted run.
    pub(super) fn is_left(&self) -> bool {
        self.is_there && self.file.is_none()
    }

    /// Adds a note. It is on the disk when this returns. The journal is as private as the list.
    pub(super) fn add(
        &mut self,
        row: &[u8],
        new: Option<&FileHashes>,
        list: &At,
    ) -> io::Result<()> {
        let line = InstalledNotes::line(row, new)?;
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.start(&list.open()?)?,
        };
        file.write_all(&line)?;
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
        file.write_all(&self.notes.to_vec())?;
        file.sync_data()?;
        temporary.rename(name)?;
        self.is_there = true;
        Ok(file)
    }

    /// Removes the journal: the list is right.
    pub(super) fn remove(&mut self) -> io::Result<()> {
        self.file = None;
        self.notes = InstalledNotes::default();
        if std::mem::take(&mut self.is_there) {
            self.at.remove()?;
        }
        Ok(())
    }
}
