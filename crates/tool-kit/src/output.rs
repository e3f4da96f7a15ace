//! Output files: written beside their place and renamed, so that no failure leaves half a file or loses an old one.
//!
//! Directories are opened once and held, and everything is done in them: a directory or a symbolic link that somebody
//! puts in the way meanwhile leads nowhere else.
//!
//! Until they are complete, files have no name where the system can do that (Linux, on most file systems).
//! Elsewhere they have a temporary one, and on Linux as well for a moment before they replace another file, or when
//! there are more of them than can stay open. SIGINT, SIGTERM and SIGHUP remove these names and the directories
//! that were made, and come before all files of a call appear or after. After SIGKILL, a temporary file or an empty
//! directory can remain, and only some files of a call may be replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::directory::{Directory, Entry, Held, Id, Kind};
use crate::parallel::{self, Threads};
use crate::permissions::{NewPermissions, Permissions};
use crate::positioned::reopen;
use crate::report::reason;
use crate::stamp::Stamp;
use crate::stop::Stop;
use crate::temporary::{self, Temporary};
use crate::{scratch, special, standard};

/// Number of complete files that stay open under the usual limit: there can be more outputs than that.
const MOST_OPEN: usize = 256;

/// Number of parts that are written at the same time.
const MOST_AT_ONCE: usize = 16;

/// Fewer bytes are copied faster than threads start.
const WORTHWHILE: u64 = 4 << 20;

/// As many links may lead to each other, as Linux has it.
const MOST_LINKS: usize = 40;

/// Files that appear when all of them are written.
///
/// A pipe or a device cannot be replaced: it is written to at once.
#[derive(Debug, Default)]
pub struct Outputs {
    /// Directories that are ours to remove again, outer ones first.
    created: Vec<Temporary>,
    /// Open directories of the files below.
    directories: BTreeMap<Id, Arc<Directory>>,
    /// Files by their directory and name.
    files: BTreeMap<(Id, OsString), Output>,
    /// Number of open files.
    open: usize,
    /// As on a system without files that have no name.
    #[cfg(test)]
    always_named: bool,
}

/// Name of an output.
#[derive(Clone, Debug)]
pub enum Name {
    /// As the user typed it: symbolic links stay links, and what they point to is written.
    Typed(PathBuf),
    /// Generated, in a directory: a symbolic link of this name is replaced.
    Generated(OutputDirectory, PathBuf),
    /// A file that was found below a directory, and is replaced there: a symbolic link is refused.
    Found(OutputDirectory, PathBuf),
}

/// A directory for generated names.
#[derive(Clone, Debug)]
pub struct OutputDirectory {
    directory: Arc<Directory>,
    /// As the user typed it.
    path: PathBuf,
}

/// Treatment of a file that is there, and of one that is not.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Permissions of a file that is not there yet.
    pub new: NewPermissions,
    /// The file that is replaced must be this one, to the end, and the new one must have reached the disk by then.
    pub replaces: Option<Stamp>,
}

/// A file that was written, and waits for the others.
#[derive(Debug)]
struct Output {
    /// As it was named.
    path: PathBuf,
    directory: Arc<Directory>,
    /// `true` if there was nothing.
    is_new: bool,
    replaces: Option<Stamp>,
    /// Permissions that it is given in the end.
    permissions: Option<Permissions>,
    /// It may still be written to.
    file: Option<File>,
    /// Its name for now. Without, it is open.
    temporary: Option<Temporary>,
}

/// A file's place, free of symbolic links.
#[derive(Debug)]
struct FilePlace {
    directory: Arc<Directory>,
    name: OsString,
    /// The file that is there.
    existing: Option<Entry>,
}

impl FilePlace {
    /// Resolves a typed path to the place of its file.
    fn find(path: &Path) -> io::Result<Self> {
        let is_there = match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) => found.is_file(),
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && !path.as_os_str().is_empty() =>
            {
                false
            }
            Err(error) => return Err(error),
        };
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            // `name/` and `name/.` are directories.
            let bytes = path.as_os_str().as_encoded_bytes();
            let name = path.file_name().filter(|name| bytes.ends_with(name.as_encoded_bytes()));
            let name = name.ok_or(io::ErrorKind::IsADirectory)?.to_owned();
            let directory = Arc::new(Directory::open(directory_of(&path))?);
            let existing = directory.look(&name)?;
            match existing {
                Some(Entry { kind: Kind::Link, .. }) => {
                    path = directory_of(&path).join(directory.read_link(&name)?);
                }
                Some(Entry { kind: Kind::Directory, .. }) => {
                    return Err(io::ErrorKind::IsADirectory.into());
                }
                // A file that was deleted still has names under /proc.
                None if is_there => break,
                existing => return Ok(FilePlace { directory, name, existing }),
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// Returns whether the file there is this one.
    fn holds(&self, stamp: Stamp) -> bool {
        self.existing.is_some_and(|existing| existing.stamp == stamp)
    }

    fn key(&self) -> (Id, OsString) {
        (self.directory.id(), self.name.clone())
    }
}

impl Name {
    /// Returns the name of a file below a directory that is held. Its own directory is opened now.
    pub fn found(held: &Held, relative: &Path) -> io::Result<Self> {
        let (directory, name) = held.parent(relative)?;
        let path = held.path_of(relative.parent().unwrap_or(Path::new("")));
        Ok(Name::Found(OutputDirectory { directory, path }, name.into()))
    }

    /// Returns the name for messages.
    pub fn path(&self) -> PathBuf {
        match self {
            Name::Typed(path) => path.clone(),
            Name::Generated(directory, name) | Name::Found(directory, name) => {
                directory.path.join(name)
            }
        }
    }

    /// Removes the file that has this name.
    pub fn remove(&self) -> io::Result<()> {
        let place = self.place()?;
        place.directory.remove(&place.name)
    }

    fn place(&self) -> io::Result<FilePlace> {
        match self {
            Name::Typed(path) => FilePlace::find(path),
            Name::Generated(OutputDirectory { directory, .. }, name)
            | Name::Found(OutputDirectory { directory, .. }, name) => {
                let name = name.clone().into_os_string();
                let existing = match directory.look(&name)? {
                    Some(Entry { kind: Kind::Directory, .. }) => {
                        return Err(io::ErrorKind::IsADirectory.into());
                    }
                    Some(Entry { kind: Kind::Link | Kind::Other, .. })
                        if matches!(self, Name::Found(..)) =>
                    {
                        return Err(changed_meanwhile());
                    }
                    existing => existing,
                };
                Ok(FilePlace { directory: Arc::clone(directory), name, existing })
            }
        }
    }

    /// Returns the existing file, whose permissions are kept, if the user asked for it to be replaced.
    fn keeps(&self, place: &FilePlace) -> Option<Entry> {
        let keeps = matches!(self, Name::Typed(_) | Name::Found(..));
        place.existing.filter(|existing| keeps && existing.kind == Kind::File)
    }
}

impl OutputDirectory {
    /// Returns a file in the directory.
    pub fn file(&self, name: impl Into<PathBuf>) -> Name {
        Name::Generated(self.clone(), name.into())
    }
}

impl From<NewPermissions> for How {
    fn from(new: NewPermissions) -> Self {
        How { new, replaces: None }
    }
}

impl Outputs {
    /// Opens a directory for generated names, and makes it if it does not exist. Without a commit, it is removed again.
    pub fn make_directory(&mut self, path: &Path) -> io::Result<OutputDirectory> {
        let directory = self.open_or_make(path).map_err(|error| at(path, &error))?;
        Ok(OutputDirectory { directory, path: path.to_owned() })
    }

    fn open_or_make(&mut self, path: &Path) -> io::Result<Arc<Directory>> {
        let exists = |path: &&Path| path.as_os_str().is_empty() || path.exists();
        let outer = path.ancestors().find(exists).unwrap_or(Path::new(""));
        let mut directory = Arc::new(Directory::open(outer)?);
        for component in path.strip_prefix(outer).unwrap_or(Path::new("")).components() {
            let name = component.as_os_str();
            if component == Component::CurDir {
                continue;
            }
            if component != Component::ParentDir {
                match Temporary::directory(&directory, name) {
                    Ok(made) => self.created.push(made),
                    // Somebody else was faster, or it is a link to nowhere.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(error),
                }
            }
            directory = Arc::new(directory.enter(name)?);
        }
        Ok(directory)
    }

    /// Returns whether output to the path gets its name only on [commit](Self::commit); a device or a pipe gets its
    /// bytes at once.
    pub fn appears_late(path: &Path) -> bool {
        !is_stdout(path)
            && !special::is_null(path)
            && fs::metadata(path).map_or(true, |existing| existing.is_file())
    }

    /// Fails if a file cannot be made at a path that the user typed, before there is something to write. Devices and pipes are not
    /// opened.
    ///
    /// # Errors
    ///
    /// Errors of the system, with the path.
    pub fn check(path: &Path) -> io::Result<()> {
        if !Outputs::appears_late(path) && !path.is_dir() {
            return Ok(());
        }
        // Without a commit nothing is left of it.
        Outputs::default().write_or_print(path, NewPermissions::of_all([]), |_| Ok(()))
    }

    /// Has `fill` write one file under a temporary name, in the directory where it belongs. Earlier contents for
    /// the name are dropped.
    ///
    /// I/O errors are attributed to the output path. Errors that `fill` made itself are returned unchanged.
    pub fn write<T>(
        &mut self,
        name: &Name,
        how: How,
        fill: impl FnOnce(&mut File) -> io::Result<T>,
    ) -> io::Result<T> {
        let path = &*name.path();
        let fill = |file: &mut File| fill(file).map_err(|error| of_output(path, error));
        if let Name::Typed(path) = name {
            if is_stdout_device(path) {
                return fill(&mut standard::output()?);
            }
            if cfg!(windows) && special::is_null(path) {
                return fill(&mut scratch::in_memory("what nobody reads")?);
            }
            if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
                let device = File::options().write(true).open(path);
                return fill(&mut device.map_err(|error| at(path, &error))?);
            }
        }
        let mut place = name.place().map_err(|error| at(path, &error))?;
        let known = self.directories.entry(place.directory.id());
        place.directory = Arc::clone(known.or_insert(place.directory));
        if let Some(expected) = how.replaces
            && !place.holds(expected)
        {
            return Err(at(path, &changed_meanwhile()));
        }
        let old = name.keeps(&place);
        let mode = match old {
            Some(old) => old.permissions.while_written(),
            None => how.new.mode(),
        };
        let (mut file, temporary) = match self.create_unnamed(&place.directory, mode) {
            Some(file) => (file, None),
            None => {
                let made = Temporary::file(&place.directory, mode);
                let (temporary, file) = made.map_err(|error| at(path, &error))?;
                (file, Some(temporary))
            }
        };
        if old.is_none() {
            how.new.narrow(&file).map_err(|error| at(path, &error))?;
        }
        let result = fill(&mut file)?;
        let before = self.files.remove(&place.key());
        self.open -= usize::from(before.is_some_and(|before| before.file.is_some()));
        let mut output = Output {
            path: path.to_owned(),
            directory: Arc::clone(&place.directory),
            is_new: place.existing.is_none(),
            replaces: how.replaces,
            permissions: old.map(|old| old.permissions),
            file: Some(file),
            temporary,
        };
        if self.open < most_open() {
            self.open += 1;
        } else {
            output.close().map_err(|error| at(path, &error))?;
        }
        self.files.insert(place.key(), output);
        Ok(result)
    }

    fn create_unnamed(&self, directory: &Directory, mode: u32) -> Option<File> {
        #[cfg(test)]
        if self.always_named {
            return None;
        }
        directory.create_unnamed(mode)
    }

    /// Gives a file that was written, and waits for the others, another name in its directory.
    ///
    /// # Errors
    ///
    /// There is something of this name already, or none was written of the old name.
    pub fn rename(&mut self, old: &Name, new: &Name) -> io::Result<()> {
        let (from, to) = (old.place()?, new.place()?);
        let path = new.path();
        if to.existing.is_some() || self.files.contains_key(&to.key()) {
            return Err(at(&path, &io::ErrorKind::AlreadyExists.into()));
        }
        let output = self.files.remove(&from.key()).ok_or(io::ErrorKind::NotFound)?;
        self.files.insert(to.key(), Output { path, ..output });
        Ok(())
    }

    /// Removes a file that was written, and waits for the others.
    ///
    /// # Errors
    ///
    /// None was written of this name.
    pub fn discard(&mut self, name: &Name) -> io::Result<()> {
        let output = self.files.remove(&name.place()?.key()).ok_or(io::ErrorKind::NotFound)?;
        self.open -= usize::from(output.file.is_some());
        Ok(())
    }

    /// Writes files that are each this part of `input`, several at the same time. All of them must [appear
    /// late](Self::appears_late).
    ///
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) means the input.
    pub fn write_parts(
        &mut self,
        threads: Threads,
        input: &File,
        new: NewPermissions,
        parts: &[(Name, Range<u64>)],
    ) -> io::Result<()> {
        let how = How::from(new);
        for parts in parts.chunks(MOST_AT_ONCE) {
            let size: u64 = parts.iter().map(|(_, part)| part.end - part.start).sum();
            // Each thread needs a position of its own in the input.
            if parts.len() < 2
                || size < WORTHWHILE
                || threads.count().get() < 2
                || reopen(input).is_none()
            {
                for (name, part) in parts {
                    self.write(name, how, |out| copy_part(input, part.clone(), out))?;
                }
                continue;
            }
            let mut jobs = Vec::new();
            for (name, part) in parts {
                jobs.push((name.path(), part, self.write(name, how, |out| out.try_clone())?));
            }
            let copy = |(path, part, out): &(PathBuf, &Range<u64>, File)| {
                let input = reopen(input).ok_or(io::ErrorKind::Unsupported)?;
                let mut out = out.try_clone().map_err(|error| of_output(path, error))?;
                let copied = copy_part(&input, (*part).clone(), &mut out);
                copied.map_err(|error| of_output(path, error))
            };
            parallel::in_order(threads.count(), &jobs, copy, |_, copied| copied.map(drop))?;
        }
        Ok(())
    }

    /// Writes as [`write`](Self::write) does to a path that the user typed, or at once to standard output if it is `-`.
    pub fn write_or_print<T>(
        &mut self,
        path: &Path,
        how: impl Into<How>,
        fill: impl FnOnce(&mut File) -> io::Result<T>,
    ) -> io::Result<T> {
        self.write_named_or_print(&Name::Typed(path.to_owned()), how.into(), fill)
    }

    /// Writes as [`write`](Self::write) does, or at once to standard output if a user typed `-`.
    pub fn write_named_or_print<T>(
        &mut self,
        name: &Name,
        how: How,
        fill: impl FnOnce(&mut File) -> io::Result<T>,
    ) -> io::Result<T> {
        match name {
            Name::Typed(path) if path.as_os_str() == "-" => {
                fill(&mut standard::output()?).map_err(|error| of_output(path, error))
            }
            name => self.write(name, how, fill),
        }
    }

    /// Gives all files their names, one after the other, replacing older files. Signals that end the process wait,
    /// except SIGKILL.
    ///
    /// Most errors come earlier. Three come here: the work is [stopped](Stop), a file may not be replaced, such as one of another user in `/tmp`, or it
    /// was changed meanwhile. Then nothing new appears, but other files may be replaced by then.
    pub fn commit(mut self) -> io::Result<()> {
        Stop::of_thread().check()?;
        // Replace existing files first: creating new ones does not fail.
        let mut files: Vec<_> = std::mem::take(&mut self.files).into_iter().collect();
        files.sort_by_key(|(_, output)| output.is_new);
        let _signals = (files.len() > 1).then(temporary::hold_signals);
        for ((_, name), output) in files {
            let path = output.path.clone();
            output.appear(&name).map_err(|error| at(&path, &error))?;
            self.created.drain(..).for_each(Temporary::keep);
        }
        Ok(())
    }
}

impl Output {
    /// Gives the complete file its name.
    fn appear(mut self, name: &OsStr) -> io::Result<()> {
        if let Some(file) = &self.file
            && self.temporary.is_none()
            && self.is_new
        {
            // Without any other name, if it is free.
            if self.directory.link(file, name).is_ok() {
                return Ok(());
            }
        }
        self.close()?;
        if let Some(expected) = self.replaces
            && self.directory.look(name)?.map(|found| found.stamp) != Some(expected)
        {
            return Err(changed_meanwhile());
        }
        let renamed = self.temporary.map_or(Ok(()), |temporary| temporary.rename(name));
        renamed.map_err(|error| in_use(error, !self.is_new))
    }

    /// Gives the file its permissions, now that it has its contents and its owner, and a temporary name.
    fn close(&mut self) -> io::Result<()> {
        // Not every system renames a file that is open.
        let Some(file) = self.file.take() else { return Ok(()) };
        if let Some(permissions) = self.permissions {
            permissions.hand_over(&file)?;
        }
        if self.replaces.is_some() {
            // The old file may be the only copy there is, and goes.
            file.sync_all()?;
        }
        if self.temporary.is_none() {
            self.temporary = Some(Temporary::link(&self.directory, &file)?);
        }
        Ok(())
    }
}

/// Returns the error of giving a file its name. Windows denies access where the old file is open or may not be written to.
fn in_use(error: io::Error, replaces: bool) -> io::Error {
    if !cfg!(windows) || !replaces || error.kind() != io::ErrorKind::PermissionDenied {
        return error;
    }
    let text = format!(
        "{}: the file is read-only, or a program uses it",
        reason(&error).trim_end_matches('.')
    );
    io::Error::new(error.kind(), text)
}

/// Returns the error for a file that was replaced meanwhile.
fn changed_meanwhile() -> io::Error {
    io::Error::other(
        "the file was replaced or written to while it was edited; it is kept, and nothing was written",
    )
}

impl Drop for Outputs {
    fn drop(&mut self) {
        // Directories can go when nothing is in them: inner ones first.
        self.files.clear();
        while self.created.pop().is_some() {}
    }
}

/// Returns the number of complete files that may be open.
fn most_open() -> usize {
    #[cfg(unix)]
    {
        // The rest is for inputs, directories and others.
        let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let most = most.map(|most| usize::try_from(most / 4).unwrap_or(MOST_OPEN));
        most.unwrap_or(MOST_OPEN).min(MOST_OPEN)
    }
    #[cfg(not(unix))]
    MOST_OPEN
}

fn directory_of(place: &Path) -> &Path {
    place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-" || is_stdout_device(path)
}

/// Returns whether the path names standard output itself. It may be a file, but others write to it as well: it must not
/// be replaced or written from its start.
fn is_stdout_device(path: &Path) -> bool {
    ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|device| path == Path::new(device))
}

/// Writes this part of a file; the kernel copies it from a file to a file.
pub fn copy_part<W: Write + ?Sized>(
    mut from: &File,
    range: Range<u64>,
    to: &mut W,
) -> io::Result<u64> {
    let size = range.end - range.start;
    match byte_parts::copy_range(&mut from, &range, to)? {
        copied if copied == size => Ok(size),
        // Only when the file became shorter meanwhile.
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Returns whether two paths name one file, so that writing one replaces the other.
pub fn is_same(a: &Path, b: &Path) -> bool {
    if a == b {
        return a.as_os_str() != "-";
    }
    matches!((FilePlace::find(a), FilePlace::find(b)), (Ok(a), Ok(b)) if a.key() == b.key())
}

/// Returns the first path that names the same file as one before it, in any spelling. Standard output and devices may
/// be named several times.
pub fn named_twice<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Option<&'p Path> {
    let mut seen = BTreeSet::new();
    paths.into_iter().find(|path| Outputs::appears_late(path) && !seen.insert(key(path)))
}

/// Returns what two paths of one file have in common. A missing path is a separate error later.
fn key(path: &Path) -> Result<(Id, OsString), PathBuf> {
    FilePlace::find(path).map_or_else(|_| Err(path.to_owned()), |place| Ok(place.key()))
}

/// Returns the first path that names the same file as one of others, in any spelling.
pub fn named_in<'p>(
    paths: impl IntoIterator<Item = &'p Path>,
    others: impl IntoIterator<Item = &'p Path>,
) -> Option<&'p Path> {
    let others: BTreeSet<_> = others.into_iter().map(key).collect();
    paths.into_iter().find(|path| others.contains(&key(path)))
}

/// Returns an error of filling a file, with its name, unless the error has another.
fn of_output(path: &Path, error: io::Error) -> io::Error {
    if error.raw_os_error().is_some() { at(path, &error) } else { error }
}

/// Returns an error with the name of the output that it is about.
pub fn at(path: &Path, error: &io::Error) -> io::Error {
    let reason = reason(error);
    let message = if path.as_os_str() == "-" {
        format!("<stdout>: {reason}")
    } else {
        format!("'{}': {reason}", path.display())
    };
    io::Error::new(error.kind(), message)
}

/// Turns text from a file into a part of a file name: letters, digits, `.`, `_`, `+` and `-` stay, everything
/// else becomes `_`.
pub fn safe_name(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '_' })
        .collect()
}

/// Makes a file name one that is plain on every system: not hidden, not an option, not a device, not too long, with
/// nothing at its end that Windows drops.
pub fn plain_name(name: &str, extension: &str) -> String {
    const LONGEST: usize = 180;
    let mut end = name.len().min(LONGEST);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = name.split_at(end).0.to_owned();
    if name.is_empty() || name.starts_with(['.', '-']) || is_device(&name) {
        name.insert(0, '_');
    }
    if !extension.is_empty() {
        name = format!("{name}.{extension}");
    }
    while name.ends_with(['.', ' ']) {
        name.pop();
    }
    name
}

/// Returns whether Windows takes the name for a device, whatever follows its first dot.
fn is_device(name: &str) -> bool {
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    let stem = stem.trim_end().to_ascii_uppercase();
    match stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT")) {
        Some(number) => number.len() == 1 && number.bytes().all(|byte| byte.is_ascii_digit()),
        None => ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"].contains(&&stem[..]),
    }
}

#[cfg(test)]
mod tests;
