//! The files that a command looks into: named files, and all files below directories.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
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
use tool_kit::directory::Held;
use tool_kit::looked::{Looked, Seen, Tally};
use tool_kit::opened::{MaxInput, Opened};
use tool_kit::output::Name;
use tool_kit::parallel::{self, Threads};
use tool_kit::progress::Progress;
use tool_kit::store::{Keep, Store};
use tool_kit::{input, report};

/// A file to look into.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    path: PathBuf,
    /// Its name in messages.
    name: String,
    /// The position of the argument that leads to it.
    root: usize,
    /// `true` if the argument is the file itself. Nothing is said of others without device code.
    is_named: bool,
    origin: Origin,
    /// The file, while a command looks into it.
    opened: Option<Result<Arc<Opened>, Arc<io::Error>>>,
    /// Its wrappers and its marker, if its device code is in kernel packs.
    host: OnceLock<Option<Arc<Host>>>,
}

/// The way to a file.
#[derive(Clone, Debug)]
enum Origin {
    /// Its path, and the one member or directory of the package that is meant: `pkg/libfoo.so`.
    Path { member: Option<String> },
    /// A directory that is held, and the path below it.
    Below(Arc<Root>, PathBuf),
    /// A package.
    Member {
        /// The path where it is installed.
        installed: PathBuf,
        /// Its bytes, and how many more may be held.
        store: Option<(Arc<Store>, u64)>,
        /// The name of the package.
        package: Option<String>,
    },
    /// The check of a package as a whole.
    WholePackage(Arc<io::Result<Verified>>),
    /// The split library of this name, whose kernel pack it is: nothing else in it is looked into.
    PackOf(String),
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
            name: input::display(path),
            root: 0,
            is_named: true,
            origin: Origin::Path { member: None },
            opened: None,
            host: OnceLock::new(),
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
            Some((path, member)) => {
                Input { path, origin: Origin::Path { member: Some(member) }, ..file }
            }
            None => file,
        }
    }

    /// Returns a file that was found, not named.
    fn found(path: &Path) -> Self {
        Input { is_named: false, ..Input::named(path) }
    }

    /// Returns a file that was found below a directory that is held.
    pub(crate) fn found_in(held: &Held, relative: &Path) -> Self {
        let root = Arc::new(Root { held: held.clone(), real: None });
        let origin = Origin::Below(root, relative.to_owned());
        Input { origin, ..Input::found(&held.path_of(relative)) }
    }

    /// Returns whether it is a member of a package that an argument names.
    pub(crate) fn is_member(&self) -> bool {
        self.member().is_some()
    }

    fn member(&self) -> Option<&str> {
        match &self.origin {
            Origin::Path { member } => member.as_deref(),
            _ => None,
        }
    }

    fn store(&self) -> Option<&(Arc<Store>, u64)> {
        match &self.origin {
            Origin::Member { store, .. } => store.as_ref(),
            _ => None,
        }
    }

    fn root(&self) -> Option<&Root> {
        match &self.origin {
            Origin::Below(root, _) => Some(root),
            _ => None,
        }
    }

    /// Returns whether it was found below a directory that the user named.
    pub(crate) fn is_below(&self) -> bool {
        self.root().is_some()
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
        match &self.origin {
            Origin::Below(root, relative) => Some(root.real.as_ref()?.join(relative)),
            _ => fs::canonicalize(&self.path).ok(),
        }
    }

    /// Opens a directory that the file lies in, by its path without links. One below the directory that the user named is
    /// opened in that, without following links.
    pub(crate) fn directory(&self, real: &Path) -> io::Result<Held> {
        let root = self.root().and_then(|root| Some((root, root.real.as_ref()?)));
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
        let opened = match &self.origin {
            Origin::Below(root, relative) => Opened::below(&root.held, relative),
            Origin::PackOf(_) => Opened::regular(&self.path),
            _ => Opened::new(&self.path, max),
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
        match &self.origin {
            Origin::Below(root, relative) => Name::found(&root.held, relative),
            _ => Ok(Name::Typed(self.path.clone())),
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
        let visitor = &mut Walked { file: self, visitor };
        if let Some((store, left)) = self.store() {
            let (reader, threads) = (store.reader(), threads.for_walks());
            let most = options.max_decompressed().min(*left);
            let options = options.clone().with_max_decompressed(most);
            let walked = fat_object::walk_with_threads(&reader, threads, &options, visitor)?;
            store.check()?;
            return Ok(walked);
        }
        let opened = self.open(limits.max_input)?;
        walk_open(&opened, (limits, options), threads, visitor)
    }

    /// Reads something of the file.
    pub(crate) fn with_reader<T>(
        &self,
        max: MaxInput,
        read: impl FnOnce(&mut dyn ReadSeek) -> io::Result<T>,
    ) -> io::Result<T> {
        match self.store() {
            Some((store, _)) => read(&mut store.reader()),
            None => read(&mut self.open(max)?.reader()),
        }
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

    /// Reads the table of the kernel pack that the file is, with the path where it is installed; `None` if it is not
    /// one.
    pub(crate) fn pack_table(&self, max: MaxInput) -> Option<(PathBuf, Arc<Toc>)> {
        let (path, tables) = match &self.origin {
            Origin::Member { installed, store: Some((store, _)), .. } => {
                (installed.clone(), read_tables(store.reader()))
            }
            _ => (self.real()?, read_tables(self.open(max).ok()?.reader())),
        };
        Some((path, Arc::new(tables.ok()?.into_toc())))
    }

    /// Takes its bytes: what is left is only for messages.
    pub(crate) fn take_bytes(&mut self) -> Option<Arc<Store>> {
        self.opened = None;
        match &mut self.origin {
            Origin::Member { store, .. } => store.take().map(|(store, _)| store),
            _ => None,
        }
    }

    /// Returns whether it is a member of a package, which an argument names or not.
    pub(crate) fn is_in_package(&self) -> bool {
        self.store().is_some()
    }

    /// Opens a file that it names, as a thin archive does.
    pub(crate) fn open_thin_member(&self, name: &[u8]) -> io::Result<File> {
        if self.is_in_package() {
            return Err(ErrorKind::Unsupported.into());
        }
        input::open_thin_file(&self.path, name)
    }

    /// Returns the bytes of a member of a package, which were all kept in a file.
    pub(crate) fn as_member(&self) -> Option<&File> {
        self.store().and_then(|(store, _)| store.file())
    }

    /// Returns the package that the file is, if it is one.
    pub(crate) fn as_package(&self, max: MaxInput) -> io::Result<Option<Package>> {
        Package::of(&self.open(max)?)
    }

    /// Returns the name of the package that a member was found in, as the user named it.
    pub(crate) fn package(&self) -> Option<&str> {
        match &self.origin {
            Origin::Member { package, .. } => package.as_deref(),
            _ => None,
        }
    }

    /// Returns the result of the check of a package, if it is one as a whole.
    pub(crate) fn verified(&self) -> Option<&io::Result<Verified>> {
        match &self.origin {
            Origin::WholePackage(verified) => Some(verified),
            _ => None,
        }
    }

    /// Returns what was seen in a file that has nothing to show and was not named, so nothing is printed.
    pub(crate) fn passed_over(&self, shows: bool, summary: &io::Result<Summary>) -> Option<Seen> {
        let summary = summary.as_ref().ok().filter(|summary| summary.findings == 0)?;
        (!self.is_named && !shows).then(|| nothing(summary))
    }
}

/// Returns what was seen in a file without anything to show.
pub(crate) fn nothing(summary: &Summary) -> Seen {
    if summary.format.may_hold_unread_code() {
        Seen::Unread(summary.format.to_string())
    } else {
        Seen::Nothing
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
    /// Finds the named files, and all files below named directories. Complains of directories that cannot
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
            match fs::metadata(path) {
                Ok(data) if data.is_dir() && path.as_os_str() != "-" => {
                    found.directories.push((root, input::display(path)));
                    match Held::open(path) {
                        Ok(held) => found.add_all_below(root, held),
                        Err(error) => found.complain(path, &error),
                    }
                }
                Ok(_) => found.files.push(Input { root, ..Input::named(path) }),
                Err(_) => found.files.push(Input::of_argument(root, path)),
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
        for relative in held.files(&mut |path, error| self.complain(path, error)) {
            let path = held.path_of(&relative);
            let origin = Origin::Below(Arc::clone(&directory), relative);
            self.files.push(Input { root, origin, ..Input::found(&path) });
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
    /// terminal if it takes long. Members of packages are read up to what the work needs: `keep` says what that is.
    pub(crate) fn look<R: Send>(
        &self,
        (limits, keep): (&Limits, Keep<'_>),
        doing: &str,
        work: impl Fn(&Input, Threads) -> R + Sync,
        mut take: impl FnMut(&Input, R) -> io::Result<Seen>,
    ) -> io::Result<Looked> {
        let _progress = Progress::start(doing);
        let (at_once, each) = limits.threads.for_files(self.files.iter().map(Input::path));
        let budget = Budget::default();
        let scope = Scope { limits, budget: &budget, keep, verifies: self.verifies };
        let mut looked = Looked::new(self.sought, "device code", self.directories.len());
        if self.has_faults {
            looked.set_faulty();
        }
        let mut take_one =
            |looked: &mut Looked, file: &Input, result: Looking<R>, tally: &mut Tally| {
                match result {
                    Ok((member, result)) => {
                        let file = member.as_ref().unwrap_or(file);
                        looked.add(&file.name, take(file, result)?, tally);
                    }
                    Err(error) => {
                        report::error(&error);
                        looked.add(&file.name, Seen::Faults, tally);
                    }
                }
                io::Result::Ok(())
            };
        let of = |file: &Input| self.directories.iter().position(|(root, _)| *root == file.root);
        let named = |file: &Input| file.is_named.then(|| file.name.clone());
        if let [file] = &self.files[..] {
            // Results of its members are taken as they come.
            let mut tally = Tally::default();
            let taken = &mut |result| take_one(&mut looked, file, result, &mut tally);
            let members = file.results(&scope, each, &work, taken)?;
            looked.end(named(file), members, of(file), tally);
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
                let mut tally = Tally::default();
                let take = |result| take_one(&mut looked, file, result, &mut tally);
                results.into_iter().try_for_each(take)?;
                looked.end(named(file), members, of(file), tally);
                io::Result::Ok(())
            })?;
        }
        for (at, (root, name)) in self.directories.iter().enumerate() {
            let files = self.files.iter().filter(|file| file.root == *root).count();
            looked.end_directory(at, name, files);
        }
        Ok(looked)
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
    /// `false` if it ended at a member because more of its bytes must be kept.
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
            Err(error) if error.kind() == ErrorKind::InvalidData => {
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
                if let Some(place) = package.program().filter(|_| !self.is_member()) {
                    let store = Store::within(Arc::clone(&package.opened), place);
                    let store = Some((Arc::new(store), u64::MAX));
                    let installed = self.path.clone();
                    let origin = Origin::Member { installed, store, package: None };
                    let program = Input { is_named: false, origin, ..file.clone() };
                    program.alone(limits, threads, work, take)?;
                }
                if let Some(trailing) = package.trailing().filter(|_| !scope.verifies) {
                    let name = input::display(&self.path);
                    report::note(&format_args!("{name}: {trailing} bytes follow its zip file"));
                }
                package
            }
            (Ok(None), Err(error))
                if !self.is_member()
                    && matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::Unsupported) =>
            {
                // The program is a file like others; a script is not.
                let opened = file.open(limits.max_input)?;
                if !package::is_script(&opened) {
                    file.alone(limits, threads, work, take)?;
                }
                take(Err(format!("{}: zip file: {}", self.name, report::reason(&error))))?;
                return Ok(None);
            }
            // The work itself complains of files that cannot be read.
            _ if !self.is_member() => {
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
        } else if self.is_member() && members.taken == 0 {
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

    /// Returns the existing kernel packs with the device code of a split library that are not themselves inputs.
    fn packs(&self) -> Result<Vec<Input>, String> {
        // Packs of members are members.
        let host = self.split_host().filter(|_| !self.is_in_package());
        let Some(host) = host else { return Ok(Vec::new()) };
        let name = host.marker().kernel_name();
        let is_input = |path: &PathBuf| {
            let own = self.root().and_then(|root| root.real.as_ref());
            own.is_some_and(|own| fs::canonicalize(path).is_ok_and(|path| path.starts_with(own)))
        };
        let packs = host.packs()?.into_iter().filter(|path| !is_input(path)).map(|path| Input {
            name: format!("{} -> {}", self.name, input::display(&path)),
            path,
            root: self.root,
            origin: Origin::PackOf(name.to_owned()),
            ..Input::found(Path::new(""))
        });
        Ok(packs.collect())
    }

    /// Returns whether it is a kernel pack that was found by a split library.
    pub(crate) fn is_pack_of_library(&self) -> bool {
        matches!(self.origin, Origin::PackOf(_))
    }

    /// Returns what a library says whose device code is in kernel packs; `None` for another file.
    pub(crate) fn split_host(&self) -> Option<Arc<Host>> {
        match &self.origin {
            Origin::PackOf(_) => return None,
            Origin::Member { installed, store: Some((store, _)), .. } => {
                return Host::installed_as(store.reader(), installed).ok()?.map(Arc::new);
            }
            _ => {}
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
        let verifies = scope.verifies && !self.is_member();
        let look = |member: &Member, contents: &mut dyn io::Read, held: &mut Account<'_>| {
            let path = member.path().to_string_lossy();
            let Some(is_named) = self.means(&path) else { return Ok(None) };
            let name = format!("{}:{path}", input::display(&self.path));
            let store = match package::store((&package.opened, member), contents, keep, held) {
                Ok(None) => return Ok(None),
                Ok(Some(store)) => store,
                Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                    return Ok(Some(Some(Err(format!("{name}: {error}")))));
                }
                Err(error) => return Err(error),
            };
            let installed = String::from_utf8_lossy(member.path().installed());
            // In a directory a compressed file is one like others.
            let is_file = package.is_compressed() && !self.is_named;
            let origin = Origin::Member {
                installed: PathBuf::from(&*installed),
                store: Some((Arc::new(store), held.left())),
                package: Some(self.name.clone()).filter(|_| !is_named && !is_file),
            };
            let (path, root, opened) = (PathBuf::from(path), self.root, self.opened.clone());
            // Its path is not one of the system.
            let host = OnceLock::from(None);
            let mut input = Input { path, name, root, is_named, origin, opened, host };
            let result = work(&input, Threads::one());
            if let Some(store) = input.take_bytes() {
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
                // Work on the package as a whole reports its faults.
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
                let verified = Arc::new(verified.map_err(io::Error::from));
                let origin = Origin::WholePackage(verified);
                let whole = Input { origin, is_named: false, ..self.clone() };
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
        let Some(wanted) = self.member() else { return Some(false) };
        let rest = path.strip_prefix(wanted.trim_end_matches('/'))?;
        (rest.is_empty() || rest.starts_with(['/', ':'])).then_some(rest.is_empty())
    }

    /// Returns whether the fault of a member, or of a package in the package, keeps a member from being read that is meant.
    fn is_concerned(&self, path: &str) -> bool {
        let has_it = |wanted: &str| {
            let rest = wanted.strip_prefix(path);
            rest.is_some_and(|rest| path.is_empty() || rest.starts_with(['/', ':']))
        };
        self.means(path).is_some() || self.member().is_some_and(has_it)
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

/// A visitor of a file that opens the members of thin archives, and sees nothing of a library's kernel pack but its own code.
struct Walked<'v> {
    file: &'v Input,
    visitor: &'v mut dyn Visitor,
}

impl Visitor for Walked<'_> {
    fn opens(&mut self, container: &Container) -> Enter {
        if let Origin::PackOf(library) = &self.file.origin
            && container.kind() == ContainerKind::Kpack
        {
            let key = container.path().last().map_or("", PathStep::name);
            if key.rsplit_once('#').is_none_or(|(name, _)| name != library) {
                return Enter::Skip;
            }
        }
        self.visitor.opens(container)
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
        match self.visitor.open_thin_member(name) {
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                Ok(Box::new(self.file.open_thin_member(name)?))
            }
            opened => opened,
        }
    }
}
