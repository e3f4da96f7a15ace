//! The files that a command looks into: those that are named, and those below directories.

use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use byte_parts::ReadSeek;
use device_select::{SplitLibrary, few};
use fat_edit::{Registrable, Registration};
use fat_object::{
    Container, ContainerKind, Enter, FileFormat, Finding, Image, PathStep, Summary, Visitor,
};
use gpu_packages::{Member, Verified};
use kpack::Toc;

use crate::limits::{Limits, walk_open};
use crate::package::{self, Fault, Package};
use crate::packs::host::{Host, read_tables};
use tool_kit::budget::{Account, Budget};
use tool_kit::directory::{Held, Kind};
use tool_kit::opened::{MaxInput, Opened};
use tool_kit::output::Name;
use tool_kit::parallel::{self, Threads};
use tool_kit::progress::Progress;
use tool_kit::store::{Keep, Store};
use tool_kit::{Outcome, input, report, style};

/// A file to look into.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    path: PathBuf,
    /// The path where a member of a package is installed.
    installed: Option<PathBuf>,
    /// Its name in messages.
    name: String,
    /// The position of the argument that leads to it.
    root: usize,
    /// The directory that leads to it and is held, and its path there. Without, the user named its path.
    below: Option<(Arc<Root>, PathBuf)>,
    /// The file, while a command looks into it.
    opened: Option<Result<Arc<Opened>, Arc<io::Error>>>,
    /// Its wrappers and its marker, if its device code is in kernel packs.
    host: OnceLock<Option<Arc<Host>>>,
    /// The bytes of a member of a package, and how many more may be held.
    store: Option<(Arc<Store>, u64)>,
    /// `true` if the argument is the file itself. Nothing is said of others without device code.
    is_named: bool,
    /// The result of the check of a package, for the package as a whole.
    verified: Option<Arc<io::Result<Verified>>>,
    /// The name that a split library has in the kernel pack that this is: nothing else in it is looked into.
    kernel_name: Option<String>,
    /// The name of the package that a member was found in.
    package: Option<String>,
    /// The member or the directory of a package that alone is meant: `pkg/libfoo.so`.
    member: Option<String>,
}

/// A directory that the user named.
#[derive(Debug)]
struct Root {
    held: Held,
    /// Its path without links.
    real: Option<PathBuf>,
}

impl Input {
    /// Returns a file that is named.
    pub(crate) fn named(path: &Path) -> Self {
        Input {
            path: path.to_owned(),
            installed: None,
            name: input::display(path),
            root: 0,
            below: None,
            opened: None,
            host: OnceLock::new(),
            store: None,
            is_named: true,
            verified: None,
            kernel_name: None,
            package: None,
            member: None,
        }
    }

    /// Returns a file that an argument names, or the member of a package: `foo.whl:pkg/libfoo.so`.
    fn of_argument(root: usize, path: &Path) -> Self {
        let file = Input { root, ..Input::named(path) };
        let Some(text) = path.to_str().filter(|_| fs::symlink_metadata(path).is_err()) else {
            return file;
        };
        let mut places = text.match_indices(':').map(|(at, _)| text.split_at(at));
        let found = places.find_map(|(package, member)| {
            let (package, member) = (Path::new(package), member.strip_prefix(':')?);
            package.is_file().then(|| (package.to_owned(), member.to_owned()))
        });
        match found {
            Some((path, member)) => Input { path, member: Some(member), ..file },
            None => file,
        }
    }

    /// Returns a file that was found below an argument.
    fn below(root: usize) -> Self {
        Input { root, ..Input::found(Path::new("")) }
    }

    /// Returns a file that was found, not named.
    pub(crate) fn found(path: &Path) -> Self {
        Input { is_named: false, ..Input::named(path) }
    }

    /// Returns a file that was found below a directory that is held.
    pub(crate) fn found_in(held: &Held, relative: &Path) -> Self {
        let root = Arc::new(Root { held: held.clone(), real: None });
        let below = Some((root, relative.to_owned()));
        Input { below, ..Input::found(&held.path_of(relative)) }
    }

    /// Returns whether it is a member of a package that an argument names.
    pub(crate) fn is_member(&self) -> bool {
        self.member.is_some()
    }

    /// Returns whether it was found below a directory that the user named.
    pub(crate) fn is_below(&self) -> bool {
        self.below.is_some()
    }

    /// Returns the name for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the file without links.
    pub(crate) fn real(&self) -> Option<PathBuf> {
        match &self.below {
            Some((root, relative)) => Some(root.real.as_ref()?.join(relative)),
            None => fs::canonicalize(&self.path).ok(),
        }
    }

    /// Opens a directory that the file lies in, by its path without links. One below the directory that the user named is
    /// opened in that, without following links.
    pub(crate) fn directory(&self, real: &Path) -> io::Result<Held> {
        let root = self.below.as_ref().and_then(|(root, _)| Some((root, root.real.as_ref()?)));
        match root.and_then(|(root, base)| Some((root, real.strip_prefix(base).ok()?))) {
            Some((root, relative)) => root.held.enter(relative),
            None => Held::open(real),
        }
    }

    /// Returns whether the user named the file. Nothing is said of others if they hold no device code.
    pub(crate) fn is_named(&self) -> bool {
        self.is_named
    }

    /// Opens the file, or returns the open one. Files below a directory are opened in it, without following links.
    pub(crate) fn open(&self, max: MaxInput) -> io::Result<Arc<Opened>> {
        match &self.opened {
            Some(Ok(opened)) => return Ok(Arc::clone(opened)),
            Some(Err(error)) => {
                return Err(match error.raw_os_error() {
                    Some(number) => io::Error::from_raw_os_error(number),
                    None => io::Error::new(error.kind(), error.to_string()),
                });
            }
            None => {}
        }
        let opened = match &self.below {
            Some((root, relative)) => Opened::below(&root.held, relative),
            None if self.kernel_name.is_some() => Opened::regular(&self.path),
            None => Opened::new(&self.path, max),
        };
        opened.map(Arc::new)
    }

    /// Returns the same file, open until this is dropped.
    pub(crate) fn opened(&self, max: MaxInput) -> Input {
        self.held(self.open(max))
    }

    /// Returns the same file, as it was opened.
    pub(crate) fn held(&self, opened: io::Result<Arc<Opened>>) -> Input {
        Input { opened: Some(opened.map_err(Arc::new)), ..self.clone() }
    }

    /// Returns the file as an output that replaces it: in its directory, whatever its path leads to by now.
    pub(crate) fn output(&self) -> io::Result<Name> {
        match &self.below {
            Some((root, relative)) => Name::found(&root.held, relative),
            None => Ok(Name::Typed(self.path.clone())),
        }
    }

    /// Walks the file; an error if it was changed by the end.
    pub(crate) fn walk(
        &self,
        limits: &Limits,
        options: &fat_object::Options,
        threads: Threads,
        visitor: &mut dyn Visitor,
    ) -> io::Result<Summary> {
        if let Some((store, left)) = &self.store {
            let (reader, threads) = (store.reader(), threads.for_walks());
            let most = options.max_decompressed().min(*left);
            let options = options.clone().with_max_decompressed(most);
            let walked = fat_object::walk_with_threads(&reader, threads, &options, visitor)?;
            store.check()?;
            return Ok(walked);
        }
        let opened = self.open(limits.max_input)?;
        let options = (limits, options);
        match &self.kernel_name {
            // A library has only some of the code objects in a kernel pack.
            Some(name) => {
                let mut visitor = OfLibrary { visitor, name };
                walk_open(&opened, options, threads, &mut visitor)
            }
            None => walk_open(&opened, options, threads, visitor),
        }
    }

    /// Reads something of the file.
    pub(crate) fn with_reader<T>(
        &self,
        max: MaxInput,
        read: impl FnOnce(&mut dyn ReadSeek) -> io::Result<T>,
    ) -> io::Result<T> {
        match &self.store {
            Some((store, _)) => read(&mut store.reader()),
            None => read(&mut self.open(max)?.reader()),
        }
    }

    /// Returns the path where it is installed.
    fn installed(&self) -> &Path {
        self.installed.as_deref().unwrap_or(&self.path)
    }

    /// Reads the wrappers of the file after a walk.
    pub(crate) fn registration(
        &self,
        registrable: Registrable,
        summary: &Summary,
        max: MaxInput,
    ) -> io::Result<Registration> {
        match summary.format {
            format @ (FileFormat::Elf { .. } | FileFormat::Coff | FileFormat::Pe) => {
                self.with_reader(max, |reader| registrable.registration(format, reader))
            }
            _ => Ok(Registration::default()),
        }
    }

    /// Reads the table of the kernel pack that the file is, with the path where it is installed; `None` if it is none.
    pub(crate) fn pack_table(&self, max: MaxInput) -> Option<(PathBuf, Arc<Toc>)> {
        let (path, tables) = match &self.store {
            Some((store, _)) => (self.installed().to_owned(), read_tables(store.reader())),
            None => (self.real()?, read_tables(self.open(max).ok()?.reader())),
        };
        Some((path, Arc::new(tables.ok()?.into_toc())))
    }

    /// Returns the same, without its bytes: only for messages.
    pub(crate) fn without_bytes(self) -> Self {
        Input { opened: None, store: None, ..self }
    }

    /// Returns whether it is a member of a package, which an argument names or not.
    pub(crate) fn is_in_package(&self) -> bool {
        self.store.is_some()
    }

    /// Opens a file that it names, as a thin archive does.
    pub(crate) fn open_thin_member(&self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        Ok(Box::new(self.open_thin_file(name)?))
    }

    /// Opens the same file as [`open_thin_member`](Self::open_thin_member), with its own type.
    pub(crate) fn open_thin_file(&self, name: &[u8]) -> io::Result<File> {
        if self.store.is_some() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        input::open_thin_file(&self.path, name)
    }

    /// Returns the bytes of a member of a package, all of which were kept in a file.
    pub(crate) fn as_member(&self) -> Option<&File> {
        self.store.as_ref().and_then(|(store, _)| store.file())
    }

    /// Returns the package that the file is, if it is one.
    pub(crate) fn as_package(&self, max: MaxInput) -> io::Result<Option<Package>> {
        Package::of(&self.open(max)?)
    }

    /// Returns the name of the package that a member was found in, as the user named it.
    pub(crate) fn package(&self) -> Option<&str> {
        self.package.as_deref()
    }

    /// Returns the result of the check of a package, if it is one as a whole.
    pub(crate) fn verified(&self) -> Option<&io::Result<Verified>> {
        self.verified.as_deref()
    }

    /// Returns what was seen in a file of which nothing is to be said, as it has nothing to show and nobody named it.
    pub(crate) fn passed_over(&self, shows: bool, summary: &io::Result<Summary>) -> Option<Seen> {
        let summary = summary.as_ref().ok().filter(|summary| summary.findings == 0)?;
        (!self.is_named && !shows).then(|| Seen::nothing(summary))
    }
}

/// The result of a look into a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Seen {
    /// The file lacks device code, and the user did not name it.
    Nothing,
    /// The same, of a format that is not read and may hold device code.
    Unread(FileFormat),
    /// All is well.
    Well,
    /// Something is wrong.
    Faults,
}

impl Seen {
    /// Returns what was seen in a file without anything to show.
    pub(crate) fn nothing(summary: &Summary) -> Self {
        if summary.format.may_hold_unread_code() {
            Seen::Unread(summary.format)
        } else {
            Seen::Nothing
        }
    }

    /// Returns faults if there are some.
    pub(crate) fn faults(are_there: bool) -> Self {
        if are_there { Seen::Faults } else { Seen::Well }
    }
}

/// The result of a look into all files.
#[derive(Debug)]
pub(crate) struct Looked {
    outcome: Outcome,
    /// Texts about the directories and packages in which nothing was seen.
    empty: Vec<String>,
    unread: Unread,
}

/// Files that may hold device code and were not read.
#[derive(Debug, Default)]
struct Unread {
    count: usize,
    /// The first ones.
    names: Vec<String>,
}

impl Unread {
    fn add(&mut self, name: &str, format: FileFormat) {
        const MOST: usize = 5;
        self.count += 1;
        if self.names.len() < MOST {
            self.names.push(format!("{name} ({format})"));
        }
    }

    /// Notes them.
    fn report(&self) {
        let Unread { count, names } = self;
        let mut all = names.join(", ");
        match count - names.len() {
            0 if *count == 0 => return,
            0 => {}
            more => all.push_str(&format!(" and {more} more")),
        }
        let were = if *count == 1 { "was" } else { "were" };
        report::note(&format_args!(
            "{} {were} not read and may hold device code: {all}",
            style::files(*count)
        ));
    }
}

impl Looked {
    /// Returns whether something is wrong.
    pub(crate) fn is_faulty(&self) -> bool {
        self.outcome == Outcome::Faults
    }

    /// Adds faults, if there are some.
    pub(crate) fn with_faults(self, are_there: bool) -> Self {
        if are_there { Looked { outcome: Outcome::Faults, ..self } } else { self }
    }

    /// Returns the outcome, and notes each directory in which nothing was seen.
    pub(crate) fn outcome(self) -> Outcome {
        self.unread.report();
        self.empty.iter().for_each(|text| report::note(text));
        self.outcome
    }

    /// Returns the outcome for a question about device code: a directory in which nothing was seen is an error.
    pub(crate) fn needing_code(self) -> Outcome {
        self.unread.report();
        self.empty.iter().for_each(|text| report::error(text));
        if self.empty.is_empty() { self.outcome } else { Outcome::Faults }
    }
}

/// The files of all arguments.
#[derive(Debug)]
pub(crate) struct Inputs {
    files: Vec<Input>,
    /// The arguments that are directories.
    directories: Vec<(usize, String)>,
    /// `true` if there are directories that cannot be read.
    has_faults: bool,
    /// The text for what is looked for in directories.
    sought: &'static str,
    /// `true` if packages are compared with their checksums and records, too.
    verifies: bool,
}

impl Inputs {
    /// Finds the files: those that are named, and all below directories that are named. Complains of directories that cannot
    /// be read.
    ///
    /// Links below a directory are not followed: what they lead to is looked into where it lies, if it lies there.
    pub(crate) fn find(arguments: &[PathBuf]) -> Self {
        let mut found = Inputs {
            files: Vec::new(),
            directories: Vec::new(),
            has_faults: false,
            sought: "device code",
            verifies: false,
        };
        for (root, path) in arguments.iter().enumerate() {
            if path.as_os_str() != "-" && fs::metadata(path).is_ok_and(|data| data.is_dir()) {
                found.directories.push((root, input::display(path)));
                match Held::open(path) {
                    Ok(held) => found.add_all_below(root, held),
                    Err(error) => found.complain(path, &error),
                }
            } else {
                found.files.push(Input::of_argument(root, path));
            }
        }
        found
    }

    /// Sets the words for what is looked for in directories: a note says that it is not there.
    pub(crate) fn seeking(self, sought: &'static str) -> Self {
        Inputs { sought, ..self }
    }

    /// Has each package compared with its checksums and records, too: its result comes before those of its members.
    pub(crate) fn verifying(self) -> Self {
        Inputs { verifies: true, ..self }
    }

    fn add_all_below(&mut self, root: usize, held: Held) {
        let real = fs::canonicalize(held.path()).ok();
        let directory = Arc::new(Root { held, real });
        let held = &directory.held;
        let mut waiting = vec![PathBuf::new()];
        while let Some(relative) = waiting.pop() {
            let entries = match held.entries(&relative) {
                Ok(entries) => entries,
                Err(error) => {
                    self.complain(&held.path_of(&relative), &error);
                    continue;
                }
            };
            let first_below = waiting.len();
            for (name, kind) in entries {
                let relative = relative.join(name);
                match kind {
                    Kind::Directory => waiting.push(relative),
                    Kind::File => {
                        let path = held.path_of(&relative);
                        let name = input::display(&path);
                        let below = Some((Arc::clone(&directory), relative));
                        self.files.push(Input { path, name, below, ..Input::below(root) });
                    }
                    Kind::Link | Kind::Other => {}
                }
            }
            if let Some(below) = waiting.get_mut(first_below..) {
                below.reverse();
            }
        }
    }

    /// Complains of a directory that cannot be read.
    fn complain(&mut self, directory: &Path, error: &io::Error) {
        let (name, why) = (input::display(directory), report::reason(error));
        report::error(&format_args!("{name}: {why}"));
        self.has_faults = true;
    }

    /// Opens the only file, and keeps it open; returns whether there is only one, and it is not a package.
    pub(crate) fn open_only(&mut self, max: MaxInput) -> bool {
        if self.are_many() {
            return false;
        }
        for file in &mut self.files {
            *file = file.opened(max);
        }
        !self.files.iter().any(|file| file.as_package(max).is_ok_and(|package| package.is_some()))
    }

    /// Returns all files, in order.
    pub(crate) fn files(&self) -> &[Input] {
        &self.files
    }

    /// Returns whether there is a directory among the arguments.
    pub(crate) fn have_directory(&self) -> bool {
        !self.directories.is_empty()
    }

    /// Returns the names of the arguments.
    pub(crate) fn names(&self) -> String {
        let named = self.files.iter().filter(|file| file.is_named).map(Input::name);
        few(named.chain(self.directories.iter().map(|(_, name)| &**name)))
    }

    /// Returns the first argument that is a directory.
    pub(crate) fn first_directory(&self) -> Option<&str> {
        self.directories.first().map(|(_, name)| &**name)
    }

    /// Returns whether some could not be found.
    pub(crate) fn have_faults(&self) -> bool {
        self.has_faults
    }

    /// Returns whether an argument is more than one file.
    pub(crate) fn are_many(&self) -> bool {
        self.files.len() > 1 || !self.directories.is_empty()
    }

    /// Does something with each file, by several threads, and hands the results over in order, here. A line shows on a
    /// terminal if it takes long. Members of packages are read as far as the work needs them: `keep` says what that is.
    pub(crate) fn look<R: Send>(
        &self,
        (limits, keep): (&Limits, Keep<'_>),
        threads: Threads,
        doing: &str,
        work: impl Fn(&Input, Threads) -> R + Sync,
        mut take: impl FnMut(&Input, R) -> io::Result<Seen>,
    ) -> io::Result<Looked> {
        let _progress = Progress::start(doing);
        let mut outcome = if self.has_faults { Outcome::Faults } else { Outcome::Clean };
        let mut seen = vec![false; self.directories.len()];
        let (at_once, each) = threads.for_files(self.files.iter().map(Input::path));
        let mut empty = Vec::new();
        let mut unread = Unread::default();
        // Those of each directory.
        let mut unread_in = vec![0_usize; self.directories.len()];
        let budget = Budget::default();
        let scope = Scope { limits, budget: &budget, keep, verifies: self.verifies };
        let mut take =
            |file: &Input, result: Looking<R>, (is_seen, not_read): (&mut bool, &mut usize)| {
                let this = match result {
                    Ok((member, result)) => {
                        let file = member.as_ref().unwrap_or(file);
                        let this = take(file, result)?;
                        if let Seen::Unread(format) = this {
                            unread.add(file.name(), format);
                            *not_read += 1;
                        }
                        this
                    }
                    Err(error) => {
                        report::error(&error);
                        Seen::Faults
                    }
                };
                *is_seen |= !matches!(this, Seen::Nothing | Seen::Unread(_));
                if this == Seen::Faults {
                    outcome = Outcome::Faults;
                }
                io::Result::Ok(())
            };
        let mut end = |file: &Input, members: Option<usize>, (is_seen, not_read): (bool, usize)| {
            if let Some(count) = members.filter(|_| file.is_named && !is_seen) {
                let members = if count == 1 { "member" } else { "members" };
                let text = format!("{}: no {} in {count} {members}", file.name, self.sought);
                empty.push(text + &of_which(not_read));
            }
            for (((root, _), seen), n) in self.directories.iter().zip(&mut seen).zip(&mut unread_in)
            {
                if *root == file.root {
                    *seen |= is_seen;
                    *n += not_read;
                }
            }
        };
        if let [file] = &self.files[..] {
            // Results of its members are taken as they come.
            let (mut is_seen, mut not_read) = (false, 0);
            let taken = &mut |result| take(file, result, (&mut is_seen, &mut not_read));
            let members = file.results(&scope, each, &work, taken)?;
            end(file, members, (is_seen, not_read));
        } else {
            let look = |file: &Input| {
                let mut results = Vec::new();
                let members = file.results(&scope, each, &work, &mut |result| {
                    results.push(result);
                    Ok(())
                });
                members.map(|members| (members, results))
            };
            parallel::in_order(at_once, &self.files, look, |file, found| {
                let (members, results) = found?;
                let (mut is_seen, mut not_read) = (false, 0);
                let take = |result| take(file, result, (&mut is_seen, &mut not_read));
                results.into_iter().try_for_each(take)?;
                end(file, members, (is_seen, not_read));
                io::Result::Ok(())
            })?;
        }
        for (((root, name), seen), not_read) in self.directories.iter().zip(seen).zip(unread_in) {
            if !seen {
                let count = self.files.iter().filter(|file| file.root == *root).count();
                let text = format!("{name}: no {} in {}", self.sought, style::files(count));
                empty.push(text + &of_which(not_read));
            }
        }
        Ok(Looked { outcome, empty, unread })
    }
}

/// Returns whether an error is one of what a file holds, not one of reading it.
fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::Unsupported)
}

/// Returns the words about those of some files that were not read.
fn of_which(not_read: usize) -> String {
    match not_read {
        0 => String::new(),
        1 => ", of which 1 was not read".to_owned(),
        n => format!(", of which {n} were not read"),
    }
}

/// The bounds of a look.
#[derive(Clone, Copy)]
struct Scope<'a> {
    limits: &'a Limits,
    budget: &'a Budget,
    keep: Keep<'a>,
    verifies: bool,
}

/// The result of the work on a file, or, with the member, on a member of a package; or what keeps it from being done.
type Looking<R> = Result<(Option<Input>, R), String>;

/// The result of the work on a member; `None` if it asked for bytes that were not kept.
type Worked<R> = Option<Looking<R>>;

/// The work on the members of a package.
struct Members {
    /// The number of all of them.
    count: usize,
    /// The number of results.
    taken: usize,
    /// `false` if it ended at a member of which more bytes must be kept.
    is_done: bool,
}

/// A function that takes results one by one, in order.
type Take<'t, R> = dyn FnMut(Looking<R>) -> io::Result<()> + 't;

impl Input {
    /// Does something with the file, or with each member of a package that may hold device code. Returns the number of all
    /// members of a package.
    fn results<R: Send>(
        &self,
        scope: &Scope<'_>,
        threads: Threads,
        work: &(impl Fn(&Input, Threads) -> R + Sync),
        take: &mut Take<'_, R>,
    ) -> io::Result<Option<usize>> {
        let limits = scope.limits;
        let file = self.opened(limits.max_input);
        let whole = match file.as_package(limits.max_input) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                take(Err(format!("{}: {}", self.name, report::reason(&error))))?;
                return Ok(None);
            }
            whole => whole,
        };
        let behind = match &whole {
            Ok(None) => file.open(limits.max_input).and_then(|opened| Package::behind(&opened)),
            _ => Ok(None),
        };
        let package = match (whole, behind) {
            (Ok(Some(package)), _) => package,
            (_, Ok(Some(package))) => {
                // The members alone are looked into as such.
                if let Some(place) = package.program().filter(|_| self.member.is_none()) {
                    let store = Arc::new(Store::within(Arc::clone(&package.opened), place));
                    let program =
                        Input { is_named: false, store: Some((store, u64::MAX)), ..file.clone() };
                    program.alone(limits, threads, work, take)?;
                }
                if let Some(trailing) = package.trailing().filter(|_| !scope.verifies) {
                    let name = input::display(&self.path);
                    report::note(&format_args!("{name}: {trailing} bytes follow its zip file"));
                }
                package
            }
            (Ok(None), Err(error)) if self.member.is_none() && is_damage(&error) => {
                // The program is a file like others; a script is none.
                let opened = file.open(limits.max_input)?;
                if !package::is_script(&opened) {
                    file.alone(limits, threads, work, take)?;
                }
                take(Err(format!("{}: zip file: {}", self.name, report::reason(&error))))?;
                return Ok(None);
            }
            // The work itself complains of files that cannot be read.
            _ if self.member.is_none() => {
                file.alone(limits, threads, work, take)?;
                return Ok(None);
            }
            (Ok(None), Ok(None)) => {
                take(Err(format!("{}: not a package", input::display(&self.path))))?;
                return Ok(None);
            }
            (Err(error), _) | (_, Err(error)) => {
                let (path, error) = (input::display(&self.path), report::reason(&error));
                take(Err(format!("{path}: {error}")))?;
                return Ok(None);
            }
        };
        let mut members = file.members(&package, scope, threads, work, (0, take))?;
        if !members.is_done {
            let all = Scope { keep: Keep::All, ..*scope };
            members = file.members(&package, &all, threads, work, (members.taken, take))?;
        }
        if !members.is_done {
            take(Err(format!("{}: bytes of a member were not kept", self.name)))?;
        } else if self.member.is_some() && members.taken == 0 {
            take(Err(format!("{}: no such member with device code", self.name)))?;
        }
        Ok(Some(members.count))
    }

    /// Does something with the file, and with its kernel packs.
    fn alone<R: Send>(
        &self,
        limits: &Limits,
        threads: Threads,
        work: &(impl Fn(&Input, Threads) -> R + Sync),
        take: &mut Take<'_, R>,
    ) -> io::Result<()> {
        let result = work(self, threads);
        let packs = self.packs();
        take(Ok((Some(Input { opened: None, ..self.clone() }), result)))?;
        match packs {
            Ok(packs) => packs.into_iter().try_for_each(|pack| {
                let pack = pack.opened(limits.max_input);
                let result = work(&pack, threads);
                take(Ok((Some(Input { opened: None, ..pack }), result)))
            }),
            Err(error) => take(Err(format!("{}: {error}", self.name))),
        }
    }

    /// Returns the kernel packs with the device code of a split library, as far as they are there, and not themselves inputs.
    fn packs(&self) -> Result<Vec<Input>, String> {
        // Those of members are members.
        let host = self.split_host().filter(|_| self.store.is_none());
        let Some(host) = host else { return Ok(Vec::new()) };
        let name = host.marker().kernel_name();
        let is_input = |path: &PathBuf| {
            let own = self.below.as_ref().and_then(|(root, _)| root.real.as_ref());
            own.is_some_and(|own| fs::canonicalize(path).is_ok_and(|path| path.starts_with(own)))
        };
        let packs = host.packs()?.into_iter().filter(|path| !is_input(path)).map(|path| Input {
            name: format!("{} -> {}", self.name, input::display(&path)),
            path,
            kernel_name: Some(name.to_owned()),
            ..Input::below(self.root)
        });
        Ok(packs.collect())
    }

    /// Returns whether it is a kernel pack that was found by a split library.
    pub(crate) fn is_pack_of_library(&self) -> bool {
        self.kernel_name.is_some()
    }

    /// Returns what a library says whose device code is in kernel packs; `None` for another file.
    pub(crate) fn split_host(&self) -> Option<Arc<Host>> {
        if self.kernel_name.is_some() {
            return None;
        }
        if let Some((store, _)) = &self.store {
            return Host::installed_as(store.reader(), self.installed()).ok()?.map(Arc::new);
        }
        let read = || {
            // The work itself complains of files that cannot be read.
            let opened = self.open(MaxInput::default()).ok().filter(|opened| opened.has_path())?;
            Host::read(opened.reader(), &self.path).ok()?.map(Arc::new)
        };
        self.host.get_or_init(read).clone()
    }

    /// Does something with each member. The first results are left out: they were taken before.
    fn members<R: Send>(
        &self,
        package: &Package,
        scope: &Scope<'_>,
        threads: Threads,
        work: &(impl Fn(&Input, Threads) -> R + Sync),
        (before, take): (usize, &mut Take<'_, R>),
    ) -> io::Result<Members> {
        let &Scope { limits, budget, keep, .. } = scope;
        let verifies = scope.verifies && self.member.is_none();
        let look = |member: &Member, contents: &mut dyn io::Read, held: &mut Account<'_>| {
            let path = member.path().to_string_lossy();
            let Some(is_named) = self.means(&path) else { return Ok(None) };
            let name = format!("{}:{path}", input::display(&self.path));
            let store = match package::store((&package.opened, member), contents, keep, held) {
                Ok(None) => return Ok(None),
                Ok(Some(store)) => store,
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                    return Ok(Some(Some(Err(format!("{name}: {error}")))));
                }
                Err(error) => return Err(error),
            };
            let path = PathBuf::from(path);
            let installed = String::from_utf8_lossy(member.path().installed());
            let installed = Some(PathBuf::from(&*installed));
            let store = Some((Arc::new(store), held.left()));
            let opened = self.opened.clone();
            // In a directory a compressed file is one like others.
            let is_file = package.is_compressed() && !self.is_named;
            let package = Some(self.name.clone()).filter(|_| !is_named && !is_file);
            let below = Input::below(self.root);
            let member = Input { path, installed, name, store, opened, ..below };
            // Its path is not one of the system.
            let mut input = Input { is_named, package, host: OnceLock::from(None), ..member };
            let result = work(&input, Threads::one());
            // Its bytes are not needed any more.
            input.opened = None;
            if let Some((store, _)) = input.store.take() {
                if store.was_too_small() {
                    return Ok(Some(None));
                }
                Arc::into_inner(store).map_or(Ok(()), |store| store.reuse(held))?;
            }
            Ok(Some(Some(Ok((Some(input), result)))))
        };
        let mut taken = 0;
        let mut ended = Ok(true);
        let mut hand = |result: Result<Worked<R>, Fault>| {
            let result = match result {
                Ok(None) => {
                    ended = Ok(false);
                    return ControlFlow::Break(());
                }
                Ok(Some(result)) => result,
                // Work on the package as a whole tells of its faults.
                Err(_) if verifies => return ControlFlow::Continue(()),
                Err(fault) if !self.is_concerned(&fault.path.to_string_lossy()) => {
                    return ControlFlow::Continue(());
                }
                Err(fault) => Err(self.fault(&fault)),
            };
            taken += 1;
            if taken > before
                && let Err(error) = take(result)
            {
                ended = Err(error);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        let (limits, count) = ((limits, budget), threads.count());
        let found = if verifies {
            let mut results = Vec::new();
            let mut collect = |result| {
                results.push(result);
                ControlFlow::Continue(())
            };
            let mut found = package.each(limits, true, count, &look, &mut collect);
            // The result of the comparison comes first.
            let whole = found.verified.take().map(|verified| {
                let verified = Some(Arc::new(verified.map_err(io::Error::from)));
                let whole = Input { verified, is_named: false, ..self.clone() };
                let result = work(&whole, threads);
                Ok(Some(Ok((Some(Input { opened: None, ..whole }), result))))
            });
            let _ = whole.into_iter().chain(results).try_for_each(hand);
            found
        } else {
            package.each(limits, false, count, &look, &mut hand)
        };
        Ok(Members { count: found.members, taken, is_done: ended? })
    }

    /// Returns whether a member is one that is meant, and `true` if it is the only one.
    fn means(&self, path: &str) -> Option<bool> {
        let Some(wanted) = &self.member else { return Some(false) };
        let rest = path.strip_prefix(wanted.trim_end_matches('/'))?;
        (rest.is_empty() || rest.starts_with(['/', ':'])).then_some(rest.is_empty())
    }

    /// Returns whether the fault of a member, or of a package in the package, keeps a member from being read that is meant.
    fn is_concerned(&self, path: &str) -> bool {
        let has_it = |wanted: &String| {
            let rest = wanted.strip_prefix(path);
            rest.is_some_and(|rest| path.is_empty() || rest.starts_with(['/', ':']))
        };
        self.means(path).is_some() || self.member.as_ref().is_some_and(has_it)
    }

    /// Returns the text about a fault of a package.
    pub(crate) fn fault(&self, Fault { path, error }: &Fault) -> String {
        let package = input::display(&self.path);
        if path.is_empty() {
            format!("{package}: {error}")
        } else {
            format!("{package}:{}: {error}", path.to_string_lossy())
        }
    }
}

/// A visitor that sees nothing of a kernel pack but the code objects of one library.
struct OfLibrary<'v> {
    visitor: &'v mut dyn Visitor,
    name: &'v str,
}

impl Visitor for OfLibrary<'_> {
    fn opens(&mut self, container: &Container) -> Enter {
        let key = container.path().last().map_or("", PathStep::name);
        let is_other = key.rsplit_once('#').is_none_or(|(name, _)| name != self.name);
        if container.kind() == ContainerKind::Kpack && is_other {
            Enter::Skip
        } else {
            self.visitor.opens(container)
        }
    }

    fn enter(&mut self, container: &Container) -> io::Result<()> {
        self.visitor.enter(container)
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        self.visitor.image(image)
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.visitor.finding(finding)
    }

    fn leave(&mut self) -> io::Result<()> {
        self.visitor.leave()
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        self.visitor.open_thin_member(name)
    }
}
