//! Lists below a directory that is held, which are read and replaced as a whole, and the journal of what is about to change.
//!
//! The journal lies beside its list while files are edited. If a run is interrupted, it stays.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::attributes::hand_over;
use crate::directory::Held;
use crate::output::{How, Name, Outputs};
use crate::permissions::NewPermissions;
use crate::report::reason;
use crate::stamp::Stamp;
use crate::temporary::Temporary;

/// The most bytes of a list.
const MOST: u64 = 256 << 20;

/// The place of a list. No descriptor is held for it: an environment may have more lists than a process may open files.
#[derive(Clone, Debug)]
pub struct ListPlace {
    /// The directory that is held.
    pub root: Held,
    /// The path below it.
    pub relative: PathBuf,
}

impl ListPlace {
    /// Returns the path, for messages.
    pub fn path(&self) -> PathBuf {
        self.root.path_of(&self.relative)
    }

    /// Returns the name of the file.
    pub fn name(&self) -> &OsStr {
        self.relative.file_name().unwrap_or(self.relative.as_os_str())
    }

    /// Returns the place of a file in the same directory.
    pub fn beside(&self, name: impl AsRef<OsStr>) -> Self {
        ListPlace { relative: self.relative.with_file_name(name), ..self.clone() }
    }

    /// Returns whether something is there.
    pub fn is_taken(&self) -> io::Result<bool> {
        Ok(self.root.look(&self.relative)?.is_some())
    }

    /// Reads the list, and returns its stamp with it; `None` if it is not there.
    pub fn read(&self) -> io::Result<Option<(Stamp, Vec<u8>)>> {
        match self.root.open_list(&self.relative, MOST) {
            Ok((file, text)) => Ok(Some((Stamp::of(&file)?, text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the list, unless it is not the one with this stamp any more. Its owner, permissions and attributes stay; returns
    /// warnings about what was not permitted.
    pub fn replace(&self, stamp: Stamp, text: &[u8]) -> io::Result<Vec<String>> {
        let file = self.root.file(&self.relative)?;
        stamp.check(&file)?;
        let metadata = file.metadata()?;
        let how = How { new: NewPermissions::of_input(&metadata), replaces: Some(stamp) };
        let name = Name::found(&self.root, &self.relative)?;
        let mut outputs = Outputs::default();
        let lost = outputs.write_named_or_print(&name, how, |out| {
            out.write_all(text)?;
            hand_over(&file, &metadata, out)
        })?;
        outputs.commit()?;
        Ok(lost)
    }

    /// Removes the file.
    pub fn remove(&self) -> io::Result<()> {
        let (directory, name) = self.root.parent(&self.relative)?;
        directory.remove(name)
    }
}

/// The journal of a list: lines that are on the disk before what they announce is done.
#[derive(Debug)]
pub struct Journal {
    list: ListPlace,
    at: ListPlace,
    /// Open once there are new lines.
    file: Option<File>,
    is_there: bool,
    /// Whole lines of an interrupted run.
    left: Vec<u8>,
}

impl Journal {
    /// Returns the place of the journal of a list.
    pub fn place(list: &ListPlace) -> ListPlace {
        let mut name = OsString::from(".offload-journal-");
        name.push(list.name());
        // Conda reads all files that end with .json.
        name.push("~");
        list.beside(&name)
    }

    /// Reads the journal of a list, if there is one. Errors name it.
    pub fn read(list: &ListPlace) -> io::Result<Self> {
        let at = Journal::place(list);
        let read = at.read().map_err(|error| {
            let text = format!("{}: {}", Path::new(at.name()).display(), reason(&error));
            io::Error::new(error.kind(), text)
        })?;
        let (is_there, mut left) = match read {
            Some((_, text)) => (true, text),
            None => (false, Vec::new()),
        };
        // The last line may have been written in part.
        left.truncate(left.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1));
        Ok(Journal { list: list.clone(), at, file: None, is_there, left })
    }

    /// Returns the lines of an interrupted run.
    pub fn left(&self) -> &[u8] {
        &self.left
    }

    /// Returns whether there is something to correct or to remove after an interrupted run.
    pub fn is_left(&self) -> bool {
        self.is_there && self.file.is_none()
    }

    /// Adds a line. It is on the disk when this returns. The journal is as private as the list.
    pub fn add(&mut self, line: &[u8]) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.start()?,
        };
        file.write_all(line)?;
        file.sync_data()?;
        self.file = Some(file);
        Ok(())
    }

    /// Makes the journal, with the lines that are left.
    fn start(&mut self) -> io::Result<File> {
        let list = self.list.root.file(&self.list.relative)?;
        let metadata = list.metadata()?;
        let mode = NewPermissions::of_input(&metadata).of_part().mode();
        let (directory, name) = self.at.root.parent(&self.at.relative)?;
        let (temporary, mut file) = Temporary::file(&directory, mode)?;
        hand_over(&list, &metadata, &file)?;
        file.write_all(&self.left)?;
        file.sync_data()?;
        temporary.rename(name)?;
        self.is_there = true;
        Ok(file)
    }

    /// Removes the journal: the list is right.
    pub fn remove(&mut self) -> io::Result<()> {
        self.file = None;
        self.left = Vec::new();
        if std::mem::take(&mut self.is_there) {
            self.at.remove()?;
        }
        Ok(())
    }
}
