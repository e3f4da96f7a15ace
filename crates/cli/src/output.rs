//! Output files: written beside their place and renamed, so that no failure leaves half a file or loses an old one.
//!
//! Until then they have no name where the system can do that (Linux, on most file systems): what is killed leaves
//! nothing behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempPath};

use crate::input;
use crate::parallel::{self, Threads};
use crate::report::reason;
use crate::unnamed;

/// The usual permissions of a new file.
const PLAIN_FILE: u32 = 0o666;

/// How many files are open at one time while they have no name: there can be more outputs than files may be open.
const MOST_UNNAMED: usize = 16;

/// Fewer bytes are copied faster than threads start.
const WORTHWHILE: u64 = 4 << 20;

/// As many links may lead to each other, as Linux has it.
const MOST_LINKS: usize = 40;

/// Files that appear together, when all of them are written.
///
/// A pipe or a device cannot be replaced: it is written to at once.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    /// Directories that are ours to remove again, inner ones first.
    created: Vec<PathBuf>,
    /// By where they belong.
    files: BTreeMap<PathBuf, Output>,
    /// How many of them have no name.
    unnamed: usize,
}

/// A file that was written, and waits for the others.
#[derive(Debug)]
struct Output {
    /// As it was named.
    path: PathBuf,
    /// Whether there was nothing.
    is_new: bool,
    file: Waiting,
}

/// A file that is to get its name.
#[derive(Debug)]
enum Waiting {
    Unnamed(File),
    Named(TempPath),
}

impl Outputs {
    /// Makes the directory if it does not exist. Without a commit it goes again.
    pub(crate) fn make_directory(&mut self, directory: &Path) -> io::Result<()> {
        let missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let missing: Vec<_> = directory.ancestors().take_while(missing).collect();
        self.created = missing.into_iter().map(Path::to_owned).collect();
        match self.created.is_empty() {
            true => Ok(()),
            false => fs::create_dir_all(directory).map_err(|error| at(directory, &error)),
        }
    }

    /// Whether what is written to the path has its name only on [commit](Self::commit); a device or a pipe gets it at
    /// once.
    pub(crate) fn appears_late(path: &Path) -> bool {
        !is_stdout(path)
            && !input::is_null(path)
            && fs::metadata(path).map_or(true, |existing| existing.is_file())
    }

    /// Has `fill` write one file under a temporary name, in the directory of `path`. What was written for the path
    /// before is gone.
    ///
    /// Errors of the system name the path: they are of writing, as good as always. Those that `fill` made up come out
    /// as they are.
    pub(crate) fn write_with<T>(
        &mut self,
        path: &Path,
        fill: impl FnOnce(&mut File) -> io::Result<T>,
    ) -> io::Result<T> {
        self.write_new(path, PLAIN_FILE, fill)
    }

    /// As [`write_with`](Self::write_with), with the permissions that a file gets which is not there yet, less the
    /// umask.
    pub(crate) fn write_new<T>(
        &mut self,
        path: &Path,
        mode: u32,
        fill: impl FnOnce(&mut File) -> io::Result<T>,
    ) -> io::Result<T> {
        let fill = |file: &mut File| fill(file).map_err(|error| of_output(path, error));
        if is_stdout_device(path) {
            return print(fill);
        }
        if cfg!(windows) && input::is_null(path) {
            return fill(&mut tempfile::tempfile()?);
        }
        let (place, existing) = find(path).map_err(|error| at(path, &error))?;
        if existing.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(at(path, &io::ErrorKind::IsADirectory.into()));
        }
        if existing.as_ref().is_some_and(|existing| !existing.is_file()) {
            let mut device =
                File::options().write(true).open(path).map_err(|error| at(path, &error))?;
            return fill(&mut device);
        }
        let is_new = existing.is_none();
        let permissions = existing.map(|existing| existing.permissions());
        let keep = |file: &File| match &permissions {
            Some(permissions) => file.set_permissions(permissions.clone()),
            None => Ok(()),
        };
        let (result, file) = match unnamed::create(directory_of(&place), mode) {
            Some(mut file) => {
                keep(&file).map_err(|error| at(path, &error))?;
                (fill(&mut file)?, Waiting::Unnamed(file))
            }
            None => {
                let file = temporary(mode).tempfile_in(directory_of(&place));
                let mut file = file.map_err(|error| at(path, &error))?;
                keep(file.as_file()).map_err(|error| at(path, &error))?;
                (fill(file.as_file_mut())?, Waiting::Named(file.into_temp_path()))
            }
        };
        let before = self.files.remove(&place);
        self.unnamed -= usize::from(before.is_some_and(|before| before.file.is_unnamed()));
        let file = match self.unnamed < MOST_UNNAMED {
            true => file,
            false => Waiting::Named(file.named(&place).map_err(|error| at(path, &error))?),
        };
        self.unnamed += usize::from(file.is_unnamed());
        self.files.insert(place, Output { path: path.to_owned(), is_new, file });
        Ok(result)
    }

    /// Writes files that each are this part of `input`, several at the same time. They have to be such that
    /// [appear late](Self::appears_late).
    ///
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) is about the input.
    pub(crate) fn write_parts(
        &mut self,
        threads: Threads,
        input: &File,
        parts: &[(PathBuf, Range<u64>)],
    ) -> io::Result<()> {
        for parts in parts.chunks(MOST_UNNAMED) {
            let size: u64 = parts.iter().map(|(_, part)| part.end - part.start).sum();
            // Each thread needs a position of its own in the input.
            if parts.len() < 2
                || size < WORTHWHILE
                || threads.count().get() < 2
                || unnamed::reopen(input).is_none()
            {
                for (path, part) in parts {
                    self.write_with(path, |out| copy_part(input, part.clone(), out))?;
                }
                continue;
            }
            let mut jobs = Vec::new();
            for (path, part) in parts {
                jobs.push((path, part, self.write_with(path, |out| out.try_clone())?));
            }
            let copy = |(path, part, out): &(&PathBuf, &Range<u64>, File)| {
                let input = unnamed::reopen(input).ok_or(io::ErrorKind::Unsupported)?;
                let mut out = out.try_clone().map_err(|error| of_output(path, error))?;
                let copied = copy_part(&input, (*part).clone(), &mut out);
                copied.map_err(|error| of_output(path, error))
            };
            parallel::in_order(threads.count(), &jobs, copy, |_, copied| copied.map(drop))?;
        }
        Ok(())
    }

    /// As [`write_with`](Self::write_with), where `-` is standard output, which is written to at once.
    pub(crate) fn write_or_print<T>(
        &mut self,
        path: &Path,
        fill: impl FnOnce(&mut File) -> io::Result<T>,
    ) -> io::Result<T> {
        self.write_new_or_print(path, PLAIN_FILE, fill)
    }

    /// As [`write_new`](Self::write_new), where `-` is standard output, which is written to at once.
    pub(crate) fn write_new_or_print<T>(
        &mut self,
        path: &Path,
        mode: u32,
        fill: impl FnOnce(&mut File) -> io::Result<T>,
    ) -> io::Result<T> {
        if path.as_os_str() != "-" {
            return self.write_new(path, mode, fill);
        }
        print(|file| fill(file).map_err(|error| of_output(path, error)))
    }

    /// Gives all files their names, replacing older files.
    ///
    /// What can go wrong did before, but for files that may not be replaced, such as those of others in `/tmp`. Then
    /// nothing new appears, but other files may be replaced by then.
    pub(crate) fn commit(mut self) -> io::Result<()> {
        // What is only made does not fail.
        let mut files: Vec<_> = std::mem::take(&mut self.files).into_iter().collect();
        files.sort_by_key(|(_, output)| output.is_new);
        for (place, Output { path, file, .. }) in files {
            let file = file.named(&place).map_err(|error| at(&path, &error))?;
            persist(file, &place).map_err(|error| at(&path, &error))?;
            self.created.clear();
        }
        Ok(())
    }
}

/// Gives a complete file its name.
#[cfg(not(windows))]
fn persist(file: TempPath, place: &Path) -> io::Result<()> {
    file.persist(place).map_err(|failed| failed.error)
}

/// Gives a complete file its name, also where the file of that name is open: as an input, say. `tempfile` renames in a
/// way that cannot.
#[cfg(windows)]
fn persist(file: TempPath, place: &Path) -> io::Result<()> {
    let name = file.keep().map_err(|failed| failed.error)?;
    fs::rename(&name, place).inspect_err(|_| {
        let _ = fs::remove_file(&name);
    })
}

impl Drop for Outputs {
    fn drop(&mut self) {
        self.files.clear();
        for directory in &self.created {
            // Only succeeds when it is empty, as we found it: not there.
            let _ = fs::remove_dir(directory);
        }
    }
}

impl Waiting {
    fn is_unnamed(&self) -> bool {
        matches!(self, Waiting::Unnamed(_))
    }

    /// Gives the file a name of its own beside its place.
    fn named(self, place: &Path) -> io::Result<TempPath> {
        match self {
            Waiting::Named(name) => Ok(name),
            Waiting::Unnamed(file) => {
                let linked = temporary(PLAIN_FILE)
                    .make_in(directory_of(place), |name| unnamed::link(&file, name))?;
                Ok(linked.into_temp_path())
            }
        }
    }
}

/// How files are called that are not complete.
fn temporary(mode: u32) -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(".offload-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Temporary files are private by default.
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    #[cfg(not(unix))]
    let _ = mode;
    builder
}

fn directory_of(place: &Path) -> &Path {
    place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-" || is_stdout_device(path)
}

/// Whether it names what standard output is: that may be a file, but one that others write to as well. It is not to be
/// replaced, nor written to from its start.
fn is_stdout_device(path: &Path) -> bool {
    ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|device| path == Path::new(device))
}

/// Writes this part of a file; the kernel copies it.
pub(crate) fn copy_part(from: &File, range: Range<u64>, to: &mut File) -> io::Result<u64> {
    let mut from = from;
    from.seek(SeekFrom::Start(range.start))?;
    let size = range.end - range.start;
    match io::copy(&mut from.take(size), to)? {
        copied if copied == size => Ok(size),
        // Only when the file became shorter meanwhile.
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Has standard output filled.
fn print<T>(fill: impl FnOnce(&mut File) -> io::Result<T>) -> io::Result<T> {
    #[cfg(windows)]
    let stdout = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned();
    #[cfg(not(windows))]
    let stdout = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned();
    fill(&mut File::from(stdout?))
}

/// The file that an output names, and what it is if it is there. Links stay links: what they point to is replaced, or
/// made.
fn find(path: &Path) -> io::Result<(PathBuf, Option<fs::Metadata>)> {
    match fs::metadata(path) {
        Ok(existing) if existing.is_file() => Ok((fs::canonicalize(path)?, Some(existing))),
        Ok(existing) => Ok((path.to_owned(), Some(existing))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut place = path.to_owned();
            for _ in 0..MOST_LINKS {
                match fs::read_link(&place) {
                    Ok(target) => place = directory_of(&place).join(target),
                    Err(_) => break,
                }
            }
            Ok((place, None))
        }
        Err(error) => Err(error),
    }
}

/// The first path that names the same file as one before it, however it is spelled. Standard output and devices take
/// anything any number of times.
pub(crate) fn named_twice<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Option<&'p Path> {
    let mut seen = BTreeSet::new();
    paths.into_iter().find(|path| Outputs::appears_late(path) && !seen.insert(place(path)))
}

/// The path, as far as it exists without links.
fn place(path: &Path) -> PathBuf {
    let found = find(path).map_or_else(|_| path.to_owned(), |(place, _)| place);
    match (fs::canonicalize(directory_of(&found)), found.file_name()) {
        (Ok(parent), Some(name)) => parent.join(name),
        _ => found,
    }
}

/// An error of filling a file, with its name, unless the error has another.
fn of_output(path: &Path, error: io::Error) -> io::Error {
    if error.raw_os_error().is_some() { at(path, &error) } else { error }
}

/// An error with the name of the output that it is about.
pub(crate) fn at(path: &Path, error: &io::Error) -> io::Error {
    let reason = reason(error);
    let message = match path.as_os_str() == "-" {
        true => format!("<stdout>: {reason}"),
        false => format!("'{}': {reason}", path.display()),
    };
    io::Error::new(error.kind(), message)
}

/// Turns text from a file into a part of a file name: letters, digits, `.`, `_`, `+` and `-` stay, everything
/// else becomes `_`.
pub(crate) fn safe_name(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '_' })
        .collect()
}

/// Makes a file name one that every system takes for a plain file: not hidden, no option, no device, not too long,
/// with nothing at its end that Windows drops.
pub(crate) fn plain_name(name: &str, extension: &str) -> String {
    const LONGEST: usize = 180;
    let mut end = name.len().min(LONGEST);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = name.get(..end).unwrap_or_default().to_owned();
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

/// Whether Windows takes the name for a device, whatever follows its first dot.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    match stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT")) {
        Some(number) => number.len() == 1 && number.bytes().all(|byte| byte.is_ascii_digit()),
        None => ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"].contains(&&stem[..]),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn names_cannot_leave_the_directory() {
        assert_eq!(safe_name("gfx90a:sramecc+:xnack-"), "gfx90a_sramecc+_xnack-");
        assert_eq!(safe_name("../../etc/passwd"), ".._.._etc_passwd");
        assert_eq!(safe_name("a\0b\nc\\d"), "a_b_c_d");
    }

    #[test]
    fn names_are_plain_files_everywhere() {
        for (name, extension, plain) in [
            ("a", "o", "a.o"),
            (".a", "o", "_.a.o"),
            ("-rf", "o", "_-rf.o"),
            ("", "o", "_.o"),
            ("con", "o", "_con.o"),
            ("NUL.x", "", "_NUL.x"),
            ("com1", "o", "_com1.o"),
            ("com", "o", "com.o"),
            ("com10", "o", "com10.o"),
            ("a. .", "", "a"),
        ] {
            assert_eq!(plain_name(name, extension), plain);
        }
        assert_eq!(plain_name(&"ä".repeat(500), "o").len(), 182);
    }

    fn write(outputs: &mut Outputs, path: &Path, text: &str) {
        outputs.write_with(path, |file| file.write_all(text.as_bytes())).unwrap();
    }

    #[test]
    fn nothing_appears_before_commit_or_after_failure() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("new");
        let (a, b) = (directory.join("a"), directory.join("b"));
        let mut outputs = Outputs::default();
        outputs.make_directory(&directory.join("in/it")).unwrap();
        write(&mut outputs, &a, "one");
        assert!(!a.exists());
        drop(outputs);
        assert!(!directory.exists());

        let mut outputs = Outputs::default();
        outputs.make_directory(&directory).unwrap();
        write(&mut outputs, &a, "one");
        write(&mut outputs, &b, "two");
        outputs.commit().unwrap();
        assert_eq!(fs::read(b).unwrap(), b"two");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 2);
    }

    #[test]
    fn there_may_be_more_outputs_than_open_files() {
        let place = tempfile::tempdir().unwrap();
        let mut outputs = Outputs::default();
        for n in 0..3 * MOST_UNNAMED {
            write(&mut outputs, &place.path().join(n.to_string()), "one");
        }
        let unnamed = outputs.files.values().filter(|output| output.file.is_unnamed()).count();
        assert!(unnamed <= MOST_UNNAMED && unnamed == outputs.unnamed);
        outputs.commit().unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 3 * MOST_UNNAMED);
        // The next ones are not kept for what failed.
        let mut outputs = Outputs::default();
        for n in 0..3 * MOST_UNNAMED {
            write(&mut outputs, &place.path().join(n.to_string()), "two");
        }
        drop(outputs);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 3 * MOST_UNNAMED);
        assert_eq!(fs::read(place.path().join("7")).unwrap(), b"one");
    }

    #[test]
    #[cfg(unix)]
    fn links_to_what_is_not_there_stay_links() {
        use std::os::unix::fs::symlink;
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("in")).unwrap();
        symlink("in/other", place.path().join("link")).unwrap();
        symlink("../file", place.path().join("in/other")).unwrap();
        let paths = ["link", "in/other", "file", "in/../file"].map(|name| place.path().join(name));
        assert_eq!(named_twice(paths.iter().map(|path| &**path)), Some(&*paths[1]));
        for path in &paths {
            assert_eq!(super::place(path), fs::canonicalize(place.path()).unwrap().join("file"));
        }
        let mut outputs = Outputs::default();
        write(&mut outputs, &paths[0], "new");
        outputs.commit().unwrap();
        assert_eq!(fs::read(&paths[2]).unwrap(), b"new");
        assert!(fs::symlink_metadata(&paths[0]).unwrap().is_symlink());
        symlink("loop", place.path().join("loop")).unwrap();
        assert!(Outputs::default().write_with(&place.path().join("loop"), |_| Ok(())).is_err());
        assert!(fs::symlink_metadata(place.path().join("loop")).unwrap().is_symlink());
    }

    #[test]
    #[cfg(unix)]
    fn links_and_permissions_survive() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let place = tempfile::tempdir().unwrap();
        let (file, link) = (place.path().join("file"), place.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        let mut outputs = Outputs::default();
        write(&mut outputs, &link, "new");
        assert_eq!(fs::read(&file).unwrap(), b"old");
        outputs.commit().unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
