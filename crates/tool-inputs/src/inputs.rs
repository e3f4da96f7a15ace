//! The files that a command looks into: named files, and all files below directories.

mod file;
mod work;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use device_select::few;
use gpu_packages::PackageForm;

use crate::image_files::{DOCUMENTS, layout_place};
use crate::limits::Limits;
use crate::merged::ImageVariant;
use crate::online::{Network, Online, Received};
pub use file::{Input, Set, again};
use file::{Origin, Root};
use tool_kit::budget::Budget;
use tool_kit::directory::Held;
use tool_kit::looked::{Looked, Seen, Tally};
use tool_kit::opened::{Contents, MaxInput, Opened};
use tool_kit::parallel::{self, Threads};
use tool_kit::progress::Progress;
use tool_kit::store::Keep;
use tool_kit::{input, real, report, style, wildcards};
use work::{Looking, Missed, Scope};

/// The most directories that cannot be read and are named: a user who lists all files may read few of them.
const MOST_FAULTS: usize = 10;

/// The files of all arguments, in order.
#[derive(Debug)]
pub struct Inputs {
    files: Vec<Input>,
    /// The arguments that are directories.
    directories: Vec<(usize, String)>,
    /// The number of directories that cannot be read.
    faults: usize,
    /// The text for what is looked for in directories.
    sought: String,
    /// `true` if packages are compared with their checksums and records, too.
    verifies: bool,
    /// `true` if files that no container sees are left out.
    merges: bool,
    /// The variants that are installed in container images, once these were looked into.
    variants: Mutex<Vec<ImageVariant>>,
}

impl Inputs {
    /// Finds the named files, and all files below named directories. Complains of directories that cannot
    /// be read.
    ///
    /// Links below a directory are not followed: what they lead to is looked into where it lies, if it lies there.
    pub fn find(arguments: &[PathBuf]) -> Self {
        Inputs::find_with(arguments, &|_| false)
    }

    /// Finds files as [`find`](Self::find) does, and takes URLs for files on servers.
    pub fn find_online(arguments: &[PathBuf], network: Network) -> Self {
        Inputs::find_all(arguments, &|_| false, Some(network))
    }

    /// Returns the file at a URL, or one member of the package that it is.
    pub fn on_server(url: &str, member: Option<&str>, network: Network) -> Self {
        let online = Arc::new(Online::new(url, network));
        let (name, member) = (online.name(), member.map(str::to_owned));
        let files = vec![Input::online(0, &name, online, member)];
        Inputs { files, ..Inputs::find(&[]) }
    }

    /// Returns a package that is open, and was read: that is not done again.
    pub fn of_package(path: &Path, opened: &Arc<Opened>, form: PackageForm) -> Self {
        let files = vec![Input::of_package(path, opened, form)];
        Inputs { files, ..Inputs::find(&[]) }
    }

    /// Takes the variants of wheels that are installed in container images which were looked into, by name.
    pub fn take_image_variants(&self) -> Vec<ImageVariant> {
        let mut variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        let mut variants = std::mem::take(&mut *variants);
        variants.sort_by(|one, other| one.name.cmp(&other.name));
        variants
    }

    /// Returns a file that a program holds, or one member of the package that it is. Messages call it `name`.
    pub fn of_program(name: &str, member: Option<&str>, contents: Contents) -> Self {
        let origin = Origin::Program(contents, member.map(str::to_owned));
        let files = vec![Input::without_path(Path::new(name), origin)];
        Inputs { files, ..Inputs::find(&[]) }
    }

    /// Returns the cost so far of files on servers; `None` if no server answered.
    pub fn received(&self) -> Option<Received> {
        let all = self.files.iter().filter_map(Input::server).filter_map(Online::received);
        all.reduce(|a, b| Received { requests: a.requests + b.requests, bytes: a.bytes + b.bytes })
    }

    /// Finds files as [`find`](Self::find) does. Named directories that `is_whole` tells by their paths are one input each.
    pub fn find_with(arguments: &[PathBuf], is_whole: &dyn Fn(&Path) -> bool) -> Self {
        Inputs::find_all(arguments, is_whole, None)
    }

    fn find_all(
        arguments: &[PathBuf],
        is_whole: &dyn Fn(&Path) -> bool,
        network: Option<Network>,
    ) -> Self {
        let mut found = Inputs {
            files: Vec::new(),
            directories: Vec::new(),
            faults: 0,
            sought: "device code".to_owned(),
            verifies: false,
            merges: false,
            variants: Mutex::default(),
        };
        let mut names = HashMap::new();
        for (root, path) in wildcards::expanded(arguments).iter().enumerate() {
            let online = network.and_then(|network| Online::of_argument(path, network));
            if let Some(online) = online {
                // URLs may differ in their queries only, which are not printed.
                let (mut name, count) = (online.name(), names.entry(online.name()).or_insert(0));
                *count += 1;
                if *count > 1 {
                    name.as_mut_os_string().push(format!(" ({count})"));
                }
                found.files.push(Input::online(root, &name, online, None));
                continue;
            }
            match fs::metadata(path) {
                Ok(data) if data.is_dir() && path.as_os_str() != "-" && !is_whole(path) => {
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
        if let Some(more) = found.faults.checked_sub(MOST_FAULTS).filter(|more| *more > 0) {
            report::error(&format_args!("{more} more directories cannot be read"));
        }
        found
    }

    /// Leaves out files that were named before, under this name or another, with a note: sums count each file once.
    pub fn once(mut self) -> Self {
        let before = self.files.len();
        let mut seen = HashSet::new();
        self.files.retain(|file| match file.identity() {
            Err(None) => true,
            _ if file.is_member() => true,
            identity => seen.insert(identity),
        });
        let again = before - self.files.len();
        if again > 0 {
            let files = style::files(again);
            report::note(&format_args!("{files} left out: other names of files that are there"));
        }
        self
    }

    /// Sets the words for what is looked for in directories: a note says that it is not there.
    pub fn seeking(self, sought: String) -> Self {
        Inputs { sought, ..self }
    }

    /// Has each package compared with its checksums and records, too: its result comes before those of its members.
    pub fn verifying(self) -> Self {
        Inputs { verifies: true, ..self }
    }

    /// Has container images looked into as sets of files: files that a higher layer replaces or removes are left out. An OCI layout
    /// below a directory is one input, also if one of its documents is not there. Complains of a layout that cannot be opened.
    pub fn merging(mut self) -> Self {
        self.merges = true;
        for (root, directory) in self.layouts() {
            let is_inside = |file: &Input| {
                file.below()
                    .is_some_and(|(of, at)| Arc::ptr_eq(of, &root) && at.starts_with(&directory))
            };
            let Some(first) = self.files.iter().position(is_inside) else { continue };
            let argument = self.files.get(first).map_or(0, |file| file.root);
            self.files.retain(|file| !is_inside(file));
            let path = root.held.path_of(&directory);
            match root.held.enter(&directory) {
                Ok(held) => {
                    let origin = Origin::Layout(held);
                    let layout = Input { root: argument, origin, ..Input::found(&path) };
                    self.files.insert(first, layout);
                }
                Err(error) => self.complain(&path, &error),
            }
        }
        self
    }

    /// Returns the directories below arguments that are OCI layouts: they have both documents, or one and blobs.
    fn layouts(&self) -> Vec<(Arc<Root>, PathBuf)> {
        // The number of documents, and whether there are blobs.
        let mut found: HashMap<(*const Root, &Path), (&Arc<Root>, usize, bool)> = HashMap::new();
        for (root, at) in self.files.iter().filter_map(Input::below) {
            let is_document =
                DOCUMENTS.iter().any(|it| at.file_name().is_some_and(|name| name == *it));
            let (of_document, of_blob) = (at.parent().filter(|_| is_document), layout_place(at));
            let places = [(of_document, 1, false), (of_blob, 0, true)];
            for (directory, document, is_blob) in places {
                let Some(directory) = directory else { continue };
                let key = (Arc::as_ptr(root), directory);
                let (_, documents, has_blobs) = found.entry(key).or_insert((root, 0, false));
                *documents += document;
                *has_blobs |= is_blob;
            }
        }
        let is_one = |(documents, has_blobs)| documents == 2 || documents == 1 && has_blobs;
        let found =
            found.into_iter().filter(|(_, (_, documents, blobs))| is_one((*documents, *blobs)));
        let mut all: Vec<_> =
            found.map(|((_, at), (root, ..))| (Arc::clone(root), at.to_owned())).collect();
        // An outer one has the files of an inner one.
        all.sort_by(|(_, one), (_, other)| one.cmp(other));
        all
    }

    fn add_all_below(&mut self, root: usize, held: Held) {
        let real = real::path(held.path()).ok();
        let directory = Arc::new(Root { held, real });
        let held = &directory.held;
        let found = held.files(&mut |path, error| self.complain(path, error));
        self.files.reserve(found.len());
        for relative in found {
            let path = held.path_of(&relative);
            let origin = Origin::Below(Arc::clone(&directory), relative);
            self.files.push(Input { root, origin, ..Input::found(&path) });
        }
    }

    /// Complains of a directory that cannot be read. More of them are only counted.
    fn complain(&mut self, directory: &Path, error: &io::Error) {
        let (name, why) = (input::display(directory), report::reason(error));
        if error.kind() == io::ErrorKind::Unsupported && error.raw_os_error().is_none() {
            return report::note_about(&name, &why);
        }
        if self.faults < MOST_FAULTS {
            report::error_about(&name, &why);
        }
        self.faults += 1;
    }

    /// Opens the only file, and keeps it open; returns whether there is only one, and it is not a package.
    pub fn open_only(&mut self, max: MaxInput) -> bool {
        if self.are_many() {
            return false;
        }
        for file in &mut self.files {
            *file = file.opened(max);
        }
        !self.files.iter().any(|file| file.as_package(max).is_ok_and(|package| package.is_some()))
    }

    /// Returns all files, in order.
    pub fn files(&self) -> &[Input] {
        &self.files
    }

    /// Returns the names of the arguments.
    pub fn names(&self) -> String {
        let named = self.files.iter().filter(|file| file.is_named).map(Input::name);
        few(named.chain(self.directories.iter().map(|(_, name)| &**name)))
    }

    /// Returns the first argument that is a directory.
    pub fn first_directory(&self) -> Option<&str> {
        self.directories.first().map(|(_, name)| &**name)
    }

    /// Returns the directory among the arguments that leads to a file; empty if none does.
    pub fn directory_of(&self, file: &Input) -> &str {
        let directory = self.directories.iter().find(|(root, _)| *root == file.root);
        directory.map_or("", |(_, name)| name)
    }

    /// Returns whether some could not be found.
    pub fn have_faults(&self) -> bool {
        self.faults > 0
    }

    /// Returns whether an argument is more than one file.
    pub fn are_many(&self) -> bool {
        self.files.len() > 1 || !self.directories.is_empty()
    }

    /// Shows the progress of work on all files.
    pub fn progress(&self, doing: &str) -> Progress {
        Progress::through(doing, || {
            let mut sizes = self.files.iter().map(Input::size);
            // Sparse files may have any size: then there is none in total.
            sizes.try_fold(0, u64::checked_add).unwrap_or(0)
        })
    }

    /// Does something with each file, by several threads, and hands the results over in order, here. A line shows on a
    /// terminal if it takes long. Members of packages are read up to what the work needs: `keep` says what that is.
    ///
    /// # Errors
    ///
    /// The first error of `take`. Files and members that cannot be read are errors that are printed.
    pub fn look<R: Send>(
        &self,
        (limits, keep): (&Limits, Keep<'_>),
        doing: &str,
        work: impl Fn(&Input, Threads) -> R + Sync,
        mut take: impl FnMut(&Input, R) -> io::Result<Seen>,
    ) -> io::Result<Looked> {
        let progress = self.progress(doing);
        let work = |file: &Input, threads| {
            progress.present(file.name());
            work(file, threads)
        };
        let (at_once, each) = limits.threads.for_files(self.files.iter().map(Input::path));
        let budget = Budget::default();
        let (verifies, merges) = (self.verifies, self.merges);
        let (merged, fault) = (None, None);
        let variants = &self.variants;
        let scope =
            Scope { limits, budget: &budget, keep, verifies, merges, merged, fault, variants };
        let mut looked = Looked::new(self.sought.clone(), "device code", self.directories.len());
        if self.faults > 0 {
            looked.set_faulty();
        }
        let mut take_one =
            |looked: &mut Looked, file: &Input, result: Looking<R>, tally: &mut Tally| {
                match result {
                    Ok((member, result)) => {
                        let file = member.as_ref().unwrap_or(file);
                        looked.add(&file.name, take(file, result)?, tally);
                    }
                    Err(Missed { name, reason, is_apart }) => {
                        if !is_apart {
                            file.partial.fail();
                        }
                        looked.fail(&file.name, (name, reason), tally);
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
            looked.end(named(file), members, of(file), (tally, &file.partial));
            note_cost(&mut looked, file);
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
                progress.pass(|| file.size());
                looked.end(named(file), members, of(file), (tally, &file.partial));
                note_cost(&mut looked, file);
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

/// Notes what a file on a server cost, and what was not read of it.
fn note_cost(looked: &mut Looked, file: &Input) {
    let Some(note) = file.server().and_then(Online::take_note) else { return };
    let (cost, left_out) = (note.cost, note.left_out);
    let between = if left_out.is_empty() { "" } else { "; " };
    let note = format!("{cost}{between}{left_out}");
    report::note_with_code(&file.name, "network/cost", &note);
    if !left_out.is_empty() {
        looked.left_out(&file.name, left_out);
    }
}
