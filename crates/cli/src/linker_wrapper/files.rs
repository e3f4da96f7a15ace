//! Files between the steps: temporary ones, or in the working directory with `--save-temps`.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::directory::Directory;
use crate::report::reason;
use crate::temporary::Temporary;

/// Makes files for the steps. Temporary ones are removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Files {
    place: Place,
    is_dry: bool,
    temporaries: Vec<Temporary>,
}

#[derive(Debug)]
enum Place {
    /// The directory is opened for the first file.
    Temporary(PathBuf, Option<Arc<Directory>>),
    /// Names that are in use.
    Here(BTreeSet<OsString>),
}

impl Files {
    /// In a dry run, files have names only.
    pub(crate) fn new(save: bool, is_dry: bool) -> Self {
        let place = match save {
            true => Place::Here(BTreeSet::new()),
            false => Place::Temporary(std::env::temp_dir(), None),
        };
        Files { place, is_dry, temporaries: Vec::new() }
    }

    /// Makes a file whose name starts and ends like this, with these contents.
    pub(crate) fn write(&mut self, start: &OsStr, end: &str, bytes: &[u8]) -> io::Result<OsString> {
        let path = self.name(start, end)?;
        if !self.is_dry {
            fs::write(&path, bytes).map_err(|error| at(&path, &error))?;
        }
        Ok(path.into_os_string())
    }

    /// Returns the path of a new file whose name starts and ends like this, for another program to write.
    pub(crate) fn name(&mut self, start: &OsStr, end: &str) -> io::Result<PathBuf> {
        // The colon of target IDs is not in names of Windows.
        let start = match cfg!(windows) {
            true => start.to_string_lossy().replace(':', "@").into(),
            false => start.to_owned(),
        };
        match &mut self.place {
            Place::Here(used) => {
                let names = (0_u32..).map(|number| {
                    let mut name = start.clone();
                    if number > 0 {
                        name.push(format!(".{number}"));
                    }
                    name.push(end);
                    name
                });
                let free = names.into_iter().find(|name| used.insert(name.clone()));
                Ok(free.unwrap_or_default().into())
            }
            Place::Temporary(path, _) if self.is_dry => {
                let random = RandomState::new().hash_one(0) & 0xff_ffff;
                let mut name = start;
                name.push(format!("-{random:06x}{end}"));
                Ok(path.join(name))
            }
            Place::Temporary(path, directory) => {
                let directory = match directory {
                    Some(directory) => directory,
                    none => none
                        .insert(Arc::new(Directory::open(path).map_err(|error| at(path, &error))?)),
                };
                // Nobody else reads code of the user's.
                let made = Temporary::named_file(directory, &start, end, 0o600);
                let (temporary, _) = made.map_err(|error| at(path, &error))?;
                let path = path.join(temporary.name());
                self.temporaries.push(temporary);
                Ok(path)
            }
        }
    }
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!("'{}': {}", path.display(), reason(error)))
}
