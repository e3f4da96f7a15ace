//! One file, and its rows in the lists that all files share.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gpu_packages::FileHashes;

use super::Lists;
use crate::inputs::Input;
use tool_kit::positioned::Positioned;
use tool_kit::report;

/// The row of a file in the list at a position, and something about it.
type Row<T> = (usize, Vec<u8>, T);

/// A file that may have rows in lists. Other threads use the lists while its bytes are read.
#[derive(Debug)]
pub struct Listed<'l> {
    lists: &'l Mutex<Lists>,
    /// The rows that are to be corrected once the file is there.
    pending: Vec<Row<Option<FileHashes>>>,
}

impl<'l> Listed<'l> {
    /// Returns a file that may have rows in these lists.
    pub fn new(lists: &'l Mutex<Lists>) -> Self {
        Listed { lists, pending: Vec::new() }
    }

    fn lock(&self) -> MutexGuard<'l, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hashes the contents of a file as its rows need it, once for each algorithm.
    fn hashed(
        &self,
        rows: Vec<(usize, Vec<u8>)>,
        contents: &File,
    ) -> io::Result<Vec<Row<FileHashes>>> {
        let mut algorithms = Vec::new();
        for (at, row) in &rows {
            let own = self.lock().list(*at).map(|list| list.text.algorithms(row));
            for algorithm in own.into_iter().flatten() {
                if !algorithms.contains(&algorithm) {
                    algorithms.push(algorithm);
                }
            }
        }
        let found = FileHashes::of(Positioned::new(contents), &algorithms)?;
        Ok(rows.into_iter().map(|(at, row)| (at, row, found.clone())).collect())
    }

    /// Returns how a file differs from its rows. A file that an interrupted run wrote does not. A file that is about to be
    /// deleted has no contents here: it may only be in lists that cannot be read.
    ///
    /// # Errors
    ///
    /// One of reading the file; an error if a list is signed and signatures are not to be dropped.
    pub fn compare(&self, file: &Input, contents: Option<&File>) -> io::Result<Vec<String>> {
        let rows = self.lock().rows_of(file);
        self.lock().check_signatures(&rows)?;
        let mut faults = if rows.is_empty() { self.lock().unread(file) } else { Vec::new() };
        let Some(contents) = contents else { return Ok(faults) };
        for (at, row, found) in self.hashed(rows, contents)? {
            if let Some(list) = self.lock().list(at).filter(|list| !list.notes.has(&row, &found)) {
                faults.extend(list.text.faults(&row, &found));
            }
        }
        Ok(faults)
    }

    /// Notes in the journals what the file is about to become; `None` if it is about to be deleted.
    ///
    /// # Errors
    ///
    /// Errors of reading the new file, and of writing a journal, which is named.
    pub fn note(&mut self, file: &Input, new: Option<&File>) -> io::Result<()> {
        let rows = self.lock().rows_of(file);
        let rows: Vec<Row<Option<FileHashes>>> = match new {
            Some(new) => {
                let hashed = self.hashed(rows, new)?.into_iter();
                hashed.map(|(at, row, new)| (at, row, Some(new))).collect()
            }
            None => rows.into_iter().map(|(at, row)| (at, row, None)).collect(),
        };
        self.pending.clear();
        for (at, row, new) in rows {
            let mut lists = self.lock();
            let Some(list) = lists.list(at) else { continue };
            list.note(&row, new.as_ref()).map_err(|error| {
                let text = format!("the journal of {list}: {}", report::reason(&error));
                io::Error::new(error.kind(), text)
            })?;
            self.pending.push((at, row, new));
        }
        Ok(())
    }

    /// Has the rows corrected that were noted last: the file is there.
    pub fn is_written(&mut self) {
        let mut lists = self.lock();
        for (at, row, new) in self.pending.drain(..) {
            if let Some(list) = lists.list(at) {
                list.changes.insert(row, new);
            }
        }
    }

    /// Returns how the size of a file that stays differs from its rows, which stay as well.
    pub fn unchanged(&self, file: &Input, size: u64) -> Vec<String> {
        let mut faults = Vec::new();
        let rows = self.lock().rows_of(file);
        for (at, row) in rows {
            if let Some(list) = self.lock().list(at).filter(|list| !list.notes.mentions(&row)) {
                faults.extend(list.text.faults(&row, &FileHashes::of_size(size)));
            }
        }
        faults
    }

    /// Returns the distributions that have the file: the path of each list, and the name.
    pub fn distributions(&self, file: &Input) -> BTreeSet<(PathBuf, String)> {
        let rows = self.lock().rows_of(file);
        let mut lists = self.lock();
        rows.iter().filter_map(|(at, _)| lists.list(*at).map(|list| list.names())).collect()
    }
}
