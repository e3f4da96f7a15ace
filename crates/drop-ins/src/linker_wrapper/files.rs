//! Files between the steps: temporary ones, or in the working directory with `--save-temps`.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tool_kit::directory::Directory;
use tool_kit::output::Outputs;
use tool_kit::parallel;
use tool_kit::permissions::NewPermissions;
use tool_kit::report::reason;
use tool_kit::scratch;
use tool_kit::temporary::{Temporary, with_digits};

/// Makes files for the steps, on any thread. Temporary ones are removed when this is dropped.
#[derive(Debug)]
pub struct Files {
    place: Location,
    is_dry: bool,
}

#[derive(Debug)]
enum Location {
    /// Made for the first file.
    Temporary(Mutex<Option<Arc<Private>>>),
    /// Names that are in use.
    Here(Mutex<BTreeSet<OsString>>),
}

/// A temporary directory of this run: files get names fast there, however many others leave theirs in the system's.
#[derive(Debug)]
struct Private {
    path: PathBuf,
    directory: Directory,
    names: Mutex<Vec<OsString>>,
    /// Removes it, and what other programs left there.
    _made: Temporary,
}

impl Private {
    fn new() -> io::Result<Self> {
        let parent = std::env::temp_dir();
        let made = Temporary::tree(&parent, OsStr::new(super::NAME));
        let (made, path, directory) =
            made.map_err(|error| scratch::no_place("the linker", &parent, &error))?;
        Ok(Private { path, directory, names: Mutex::default(), _made: made })
    }

    /// Makes a file whose name starts and ends like this.
    fn make(&self, start: &OsStr, end: &str) -> io::Result<(PathBuf, File)> {
        let name = {
            let mut names = lock(&self.names);
            let name = with_digits(start, names.len() as u64, end);
            names.push(name.clone());
            name
        };
        let path = self.path.join(&name);
        match self.directory.create(&name, 0o600) {
            Ok(file) => Ok((path, file)),
            Err(error) => Err(at(&path, &error)),
        }
    }
}

impl Drop for Private {
    /// Removes many files faster than one after the other.
    fn drop(&mut self) {
        let names = std::mem::take(&mut *lock(&self.names));
        let some: Vec<_> = names.chunks(MANY).collect();
        if let [_, _, ..] = some[..] {
            let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
            let remove = |names: &&[OsString]| {
                names.iter().for_each(|name| drop(self.directory.remove(name)));
            };
            let _ = parallel::in_order(threads, &some, remove, |_, ()| Ok::<_, Infallible>(()));
        }
    }
}

/// Files that take longer to remove than it takes to start a thread.
const MANY: usize = 50;

impl Files {
    /// In a dry run, files have names only.
    pub fn new(save: bool, is_dry: bool) -> Self {
        let place = if save {
            Location::Here(Mutex::default())
        } else {
            Location::Temporary(Mutex::default())
        };
        Files { place, is_dry }
    }

    /// Returns how many threads may make files: files that are saved get their names in order.
    pub(crate) fn threads(&self, wanted: NonZeroUsize) -> NonZeroUsize {
        match self.place {
            Location::Temporary(_) => wanted,
            Location::Here(_) => NonZeroUsize::MIN,
        }
    }

    /// Makes a file whose name starts and ends like this, and has `fill` write it. A file that stays has these
    /// permissions.
    pub fn write(
        &self,
        start: &OsStr,
        end: &str,
        new: NewPermissions,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<OsString> {
        let (path, file) = self.make(start, end)?;
        let written = match file {
            Some(mut file) => fill(&mut file),
            None if self.is_dry => Ok(()),
            None => return save(&path, new, fill).map(|()| path.into_os_string()),
        };
        written.map_err(|error| at(&path, &error))?;
        Ok(path.into_os_string())
    }

    /// Returns the path of a new file whose name starts and ends like this, for another program to write.
    pub(crate) fn name(&self, start: &OsStr, end: &str) -> io::Result<PathBuf> {
        Ok(self.make(start, end)?.0)
    }

    /// Returns a new path, and the file if it is a temporary one.
    fn make(&self, start: &OsStr, end: &str) -> io::Result<(PathBuf, Option<File>)> {
        // The colon of target IDs is not in names of Windows.
        let start = if cfg!(windows) {
            start.to_string_lossy().replace(':', "@").into()
        } else {
            start.to_owned()
        };
        match &self.place {
            Location::Here(used) => {
                let mut used = lock(used);
                let mut number = 0_usize;
                loop {
                    let mut name = start.clone();
                    if number > 0 {
                        name.push(format!(".{number}"));
                    }
                    name.push(end);
                    if used.insert(name.clone()) {
                        return Ok((name.into(), None));
                    }
                    number += 1;
                }
            }
            Location::Temporary(_) if self.is_dry => {
                let name = with_digits(&start, RandomState::new().hash_one(0), end);
                Ok((std::env::temp_dir().join(name), None))
            }
            Location::Temporary(private) => {
                let private = {
                    let mut made = lock(private);
                    match &*made {
                        Some(private) => Arc::clone(private),
                        None => Arc::clone(made.insert(Arc::new(Private::new()?))),
                    }
                };
                let (path, file) = private.make(&start, end)?;
                Ok((path, Some(file)))
            }
        }
    }
}

/// Writes a file in the working directory. A link of this name is replaced, not followed.
pub(super) fn save(
    name: &Path,
    new: NewPermissions,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let mut outputs = Outputs::default();
    let output = outputs.make_directory(Path::new(""))?.file(name);
    outputs.write(&output, new.into(), fill)?;
    outputs.commit()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!("'{}': {}", path.display(), reason(error)))
}
