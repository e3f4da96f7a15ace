//! Names that are removed again unless all goes well: of files that are not complete, and of directories made for them.
//!
//! They also go when SIGINT, SIGTERM or SIGHUP ends the process, which still ends by that signal. While complete files get
//! their names, these signals wait: all files of a call appear, or none. Nothing can be done about SIGKILL.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::directory::Directory;

/// A name that is removed when this is dropped.
#[derive(Debug)]
pub struct Temporary {
    number: u64,
    directory: Arc<Directory>,
    name: OsString,
}

/// All names that are to be removed. Only the holder of the lock makes or removes them.
static NAMES: Mutex<Names> = Mutex::new(Names { next: 0, names: BTreeMap::new() });

/// Held while complete files get their names. It is taken before [`NAMES`].
static APPEARING: Mutex<()> = Mutex::new(());

#[derive(Debug)]
struct Names {
    next: u64,
    /// In the order in which they were made.
    names: BTreeMap<u64, Name>,
}

#[derive(Debug)]
struct Name {
    directory: Arc<Directory>,
    name: OsString,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    File,
    /// Removed if it is empty: others may have put something into it.
    Directory,
    /// The path of a directory that nobody else puts anything into.
    Tree(PathBuf),
}

impl Name {
    fn remove(&self) {
        // Somebody else may have removed it.
        let _ = match &self.kind {
            Kind::File => self.directory.remove(&self.name),
            Kind::Directory => self.directory.remove_directory(&self.name),
            Kind::Tree(path) => fs::remove_dir_all(path),
        };
    }
}

impl Temporary {
    /// Makes a file with the permissions in `mode`.
    pub fn file(directory: &Arc<Directory>, mode: u32) -> io::Result<(Self, File)> {
        Temporary::with_free_name(directory, |name| directory.create(name, mode))
    }

    /// Makes a directory for this user alone in another, with a name that starts like this. It is removed with all that is
    /// in it.
    pub fn tree(parent: &Path, start: &OsStr) -> io::Result<(Self, PathBuf, Directory)> {
        let outer = Arc::new(Directory::open(parent)?);
        let name = |random| with_digits(start, random, "");
        let kind = |name: &OsStr| Kind::Tree(parent.join(name));
        let make = |name: &OsStr| {
            outer.make(name, 0o700)?;
            outer.enter(name)
        };
        let (made, directory) = Temporary::with_name(&outer, name, kind, make)?;
        let path = parent.join(&made.name);
        Ok((made, path, directory))
    }

    /// Gives a file without a name one that is free.
    pub fn link(directory: &Arc<Directory>, file: &File) -> io::Result<Self> {
        let made = Temporary::with_free_name(directory, |name| directory.link(file, name));
        made.map(|(temporary, ())| temporary)
    }

    /// Makes a directory.
    pub fn directory(directory: &Arc<Directory>, name: &OsStr) -> io::Result<Self> {
        let make = |name: &OsStr| directory.make(name, 0o777);
        Temporary::make(directory, name.to_owned(), Kind::Directory, make)
            .map(|(temporary, ())| temporary)
    }

    fn with_free_name<T>(
        directory: &Arc<Directory>,
        make: impl Fn(&OsStr) -> io::Result<T>,
    ) -> io::Result<(Self, T)> {
        let name = |random| OsString::from(format!(".offload-{random:016x}"));
        Temporary::with_name(directory, name, |_| Kind::File, make)
    }

    /// Makes a file or directory with the first free name made of random numbers.
    fn with_name<T>(
        directory: &Arc<Directory>,
        name: impl Fn(u64) -> OsString,
        kind: impl Fn(&OsStr) -> Kind,
        make: impl Fn(&OsStr) -> io::Result<T>,
    ) -> io::Result<(Self, T)> {
        const TRIES: u32 = 100;
        let mut made = Err(io::ErrorKind::AlreadyExists.into());
        for _ in 0..TRIES {
            let name = name(RandomState::new().hash_one(0));
            let kind = kind(&name);
            made = Temporary::make(directory, name, kind, &make);
            if made.as_ref().err().map(io::Error::kind) != Some(io::ErrorKind::AlreadyExists) {
                break;
            }
        }
        made
    }

    fn make<T>(
        directory: &Arc<Directory>,
        name: OsString,
        kind: Kind,
        make: impl FnOnce(&OsStr) -> io::Result<T>,
    ) -> io::Result<(Self, T)> {
        #[cfg(unix)]
        signals::watch();
        let mut names = lock();
        let made = make(&name)?;
        let number = names.next;
        names.next += 1;
        let directory = Arc::clone(directory);
        let entry = Name { directory: Arc::clone(&directory), name: name.clone(), kind };
        names.names.insert(number, entry);
        Ok((Temporary { number, directory, name }, made))
    }

    /// Renames the file in its directory, for good.
    pub fn rename(self, to: &OsStr) -> io::Result<()> {
        let mut names = lock();
        let renamed = self.directory.rename(&self.name, to);
        if renamed.is_ok() {
            names.names.remove(&self.number);
        }
        drop(names);
        renamed
    }

    /// Leaves it where it is, for good.
    pub fn keep(self) {
        lock().names.remove(&self.number);
    }
}

/// Returns a name with six digits of a random number, as LLVM's tools name temporary files.
pub fn with_digits(start: &OsStr, random: u64, end: &str) -> OsString {
    let mut name = start.to_owned();
    name.push(format!("-{:06x}{end}", random & 0xff_ffff));
    name
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let mut names = lock();
        if let Some(name) = names.names.remove(&self.number) {
            name.remove();
        }
    }
}

/// Leaves signals to the program, which is not a tool of this workspace and removes names by dropping them.
pub fn leave_signals() {
    #[cfg(unix)]
    signals::leave();
}

/// Has signals wait until the result is dropped.
pub fn hold_signals() -> MutexGuard<'static, ()> {
    #[cfg(unix)]
    signals::watch();
    APPEARING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lock() -> MutexGuard<'static, Names> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
mod signals {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Once, mpsc};
    use std::thread;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    static WATCH: Once = Once::new();
    static ARE_LEFT: AtomicBool = AtomicBool::new(false);

    pub(super) fn leave() {
        ARE_LEFT.store(true, Ordering::Relaxed);
    }

    /// Has the signals remove all names before they end the process. Commands that make no names do without.
    pub(super) fn watch() {
        if ARE_LEFT.load(Ordering::Relaxed) {
            return;
        }
        WATCH.call_once(|| {
            let (hand_over, signals) = mpsc::channel::<Signals>();
            let end = move || {
                let Ok(mut signals) = signals.recv() else { return };
                for signal in signals.forever() {
                    // Held to the end: no name is made any more.
                    let _appearing = super::APPEARING.lock();
                    let names = super::lock();
                    names.names.values().rev().for_each(super::Name::remove);
                    let _ = emulate_default_handler(signal);
                }
            };
            // Signals that nobody waits for would do nothing at all.
            if thread::Builder::new().spawn(end).is_ok()
                && let Ok(signals) = Signals::new(that_end_us())
            {
                let _ = hand_over.send(signals);
            }
        });
    }

    /// Returns the signals that would end this process: `nohup` has SIGHUP ignored, and shells have SIGINT ignored
    /// in the background. Ignored signals must stay ignored.
    #[cfg(target_os = "linux")]
    fn that_end_us() -> Vec<i32> {
        let status = std::fs::read_to_string("/proc/self/status").ok();
        let ignored = status.as_deref().and_then(|status| {
            let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
            u64::from_str_radix(mask.trim(), 16).ok()
        });
        match ignored {
            Some(mask) => {
                let ends = |signal: &i32| mask >> (signal - 1) & 1 == 0;
                [SIGHUP, SIGINT, SIGTERM].into_iter().filter(ends).collect()
            }
            None => vec![SIGTERM],
        }
    }

    /// Returns the signals that end the program. Safe code cannot find out here which ones are ignored, so SIGHUP,
    /// which `nohup` ignores, is left out.
    #[cfg(not(target_os = "linux"))]
    fn that_end_us() -> Vec<i32> {
        let _ = SIGHUP;
        vec![SIGINT, SIGTERM]
    }
}
