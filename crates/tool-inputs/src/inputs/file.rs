//! A file that a command looks into.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use byte_parts::ReadSeek;
use device_files::{complete, not_read};
use device_select::SplitLibrary;
use fat_object::{Container, ContainerKind, Enter, Finding, Image, PathStep, Summary, Visitor};
use gpu_packages::{PackageForm, Verified};
use kpack::Toc;

use crate::limits::{Limits, walk_open, walk_remote};
use crate::merged::Place;
use crate::online::Online;
use crate::package::Package;
use crate::split_library::{Host, read_tables};
use tool_kit::directory::Held;
use tool_kit::looked::{Partial, Seen};
use tool_kit::opened::{Contents, MaxInput, Opened};
use tool_kit::output::Name;
use tool_kit::parallel::Threads;
use tool_kit::positioned::Positioned;
use tool_kit::stamp::Stamp;
use tool_kit::store::Store;
use tool_kit::{input, real};

/// A file to look into.
#[derive(Clone, Debug)]
pub struct Input {
    pub(super) path: PathBuf,
    /// Its name in messages.
    pub(super) name: String,
    /// The position of the argument that leads to it.
    pub(super) root: usize,
    /// `true` if the argument is the file itself. Nothing is said of others without device code.
    pub(super) is_named: bool,
    pub(super) origin: Origin,
    /// The file, while a command looks into it.
    pub(super) opened: Option<Result<Arc<Opened>, Arc<io::Error>>>,
    /// The form of the package that it is, if it was read before.
    pub(super) form: Option<Arc<PackageForm>>,
    /// Its wrappers and its marker, if its device code is in kernel packs.
    pub(super) host: OnceLock<Result<Option<Arc<Host>>, String>>,
    /// The mark that a part of it was not read, or of the package that it lies in.
    pub(super) partial: Partial,
}

/// A set of files that a file belongs to.
#[derive(Debug)]
pub struct Set<'i> {
    /// The name of a container image; empty for files in none.
    pub image: &'i str,
    /// The name of the file in it, for messages.
    pub name: String,
    /// The path in the image.
    pub path: Option<&'i Path>,
}

/// The way to a file.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// Its path, and the one member or directory of the package that is meant: `pkg/libfoo.so`.
    Path { member: Option<String> },
    /// A server, and the one member of the package that is meant; the path is for messages.
    Server(Arc<Online>, Option<String>),
    /// A program that holds it, and the one member of the package that is meant; the path is for messages.
    Program(Contents, Option<String>),
    /// A directory that is held, and the path below it.
    Below(Arc<Root>, PathBuf),
    /// A directory with container images.
    Layout(Held),
    /// A package.
    Member {
        /// The path of the package.
        on_disk: PathBuf,
        /// The path where it is installed.
        installed: PathBuf,
        /// Its bytes, and how many more may be held.
        store: Option<(Arc<Store>, u64)>,
        /// The number of bytes at its end that are not there.
        unread: u64,
        /// The name of the package.
        package: Option<String>,
        /// Its places in container images, and the names of all images there.
        places: Vec<Place>,
        images: Arc<[Arc<str>]>,
    },
    /// The check of a package as a whole, and whether it is an archive of container images.
    WholePackage(Arc<io::Result<Verified>>, bool),
    /// The split library of this name, whose kernel pack it is: nothing else in it is looked into.
    PackOf(String),
}

/// A directory that the user named.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) held: Held,
    /// Its path without links.
    pub(super) real: Option<PathBuf>,
}

impl Input {
    /// Returns a file that is named.
    pub(super) fn named(path: &Path) -> Self {
        Input {
            path: path.to_owned(),
            name: input::display(path),
            root: 0,
            is_named: true,
            origin: Origin::Path { member: None },
            opened: None,
            form: None,
            host: OnceLock::new(),
            partial: Partial::default(),
        }
    }

    /// Returns a package that is open, and was read.
    pub(super) fn of_package(path: &Path, opened: &Arc<Opened>, form: PackageForm) -> Self {
        let (opened, form) = (Some(Ok(Arc::clone(opened))), Some(Arc::new(form)));
        Input { opened, form, ..Input::named(path) }
    }

    /// Returns a file that an argument names, or the member of a package: `foo.whl:pkg/libfoo.so`.
    pub(super) fn of_argument(root: usize, path: &Path) -> Self {
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
                // Names on Windows have no backslash.
                let member = if cfg!(windows) { member.replace('\\', "/") } else { member };
                Input { path, origin: Origin::Path { member: Some(member) }, ..file }
            }
            None => file,
        }
    }

    /// Returns a file on a server with its name for messages, or the member of a package.
    pub(super) fn online(
        root: usize,
        path: &Path,
        online: Arc<Online>,
        member: Option<String>,
    ) -> Self {
        Input { root, ..Input::without_path(path, Origin::Server(online, member)) }
    }

    /// Returns a file that has no path, with its name for messages.
    pub(super) fn without_path(name: &Path, origin: Origin) -> Self {
        let file = Input { origin, ..Input::named(name) };
        let name = file.member().map(|member| format!("{}:{member}", file.name));
        Input { name: name.unwrap_or_else(|| file.name.clone()), ..file }
    }

    /// Returns the file on a server that it is.
    pub(super) fn server(&self) -> Option<&Online> {
        match &self.origin {
            Origin::Server(online, _) => Some(online),
            _ => None,
        }
    }

    /// Returns whether it is not on a disk, so that no files lie beside it: it is on a server, or a program holds its bytes.
    pub fn is_off_disk(&self) -> bool {
        matches!(self.origin, Origin::Server(..) | Origin::Program(..))
    }

    /// Returns a file that was found, not named.
    pub(super) fn found(path: &Path) -> Self {
        Input { is_named: false, ..Input::named(path) }
    }

    /// Returns a file that was found below a directory that is held.
    pub(crate) fn found_in(held: &Held, relative: &Path) -> Self {
        let root = Arc::new(Root { held: held.clone(), real: None });
        let origin = Origin::Below(root, relative.to_owned());
        Input { origin, ..Input::found(&held.path_of(relative)) }
    }

    /// Returns whether it is a member of a package that an argument names.
    pub fn is_member(&self) -> bool {
        self.member().is_some()
    }

    pub(super) fn member(&self) -> Option<&str> {
        match &self.origin {
            Origin::Path { member } | Origin::Server(_, member) | Origin::Program(_, member) => {
                member.as_deref()
            }
            _ => None,
        }
    }

    fn store(&self) -> Option<&(Arc<Store>, u64)> {
        match &self.origin {
            Origin::Member { store, .. } => store.as_ref(),
            _ => None,
        }
    }

    /// Returns the mark that a part of the file, or of the package that it lies in, was not read and may hold device code.
    pub fn partial(&self) -> &Partial {
        &self.partial
    }

    /// Returns how many bytes at the end of a member are not read.
    fn unread(&self) -> u64 {
        match self.origin {
            Origin::Member { unread, .. } => unread,
            _ => 0,
        }
    }

    pub(super) fn root(&self) -> Option<&Root> {
        match &self.origin {
            Origin::Below(root, _) => Some(root),
            _ => None,
        }
    }

    /// Returns the directory that a file was found below, and the path from there.
    pub(super) fn below(&self) -> Option<(&Arc<Root>, &Path)> {
        match &self.origin {
            Origin::Below(root, relative) => Some((root, relative)),
            _ => None,
        }
    }

    /// Returns whether it was found below a directory that the user named.
    pub fn is_below(&self) -> bool {
        self.root().is_some()
    }

    /// Returns the name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the size of the file; 0 if that is not known.
    pub fn size(&self) -> u64 {
        if let Origin::Layout(held) = &self.origin {
            let files = held.files(&mut |_, _| {});
            let size = |file: &PathBuf| Some(held.look(file).ok()??.stamp.size());
            // Sparse files may have any size: then there is none in total.
            let mut sizes = files.iter().filter_map(size);
            return sizes.try_fold(0, u64::checked_add).unwrap_or(0);
        }
        match (&self.origin, &self.opened) {
            (Origin::Program(..), Some(Ok(opened))) => opened.len(),
            (Origin::Program(..), _) => 0,
            _ => fs::metadata(&self.path).map_or(0, |metadata| metadata.len()),
        }
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the file, or of the package that it lies in.
    pub fn on_disk(&self) -> &Path {
        match &self.origin {
            Origin::Member { on_disk, .. } => on_disk,
            _ => &self.path,
        }
    }

    /// Returns the path of the file without links.
    pub fn real(&self) -> Option<PathBuf> {
        match &self.origin {
            Origin::Below(root, relative) => Some(root.real.as_ref()?.join(relative)),
            Origin::Server(online, _) => Some(online.place()),
            Origin::Program(..) => Some(self.path.clone()),
            _ => real::path(&self.path).ok(),
        }
    }

    /// Returns what all inputs have in common that are the same file, under this name or another.
    pub fn identity(&self) -> Result<(u64, u64), Option<PathBuf>> {
        let stamp = match &self.origin {
            Origin::Below(root, relative) => {
                root.held.look(relative).ok().flatten().map(|entry| entry.stamp)
            }
            // Names leave out what may tell files apart.
            Origin::Server(..) | Origin::Program(..) => return Err(None),
            _ => fs::metadata(&self.path).ok().map(|metadata| Stamp::new(&metadata)),
        };
        stamp.and_then(Stamp::file).ok_or_else(|| self.real())
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
    pub fn is_named(&self) -> bool {
        self.is_named
    }

    /// Opens the file, or returns the open one. Files below a directory are opened in it, without following links.
    ///
    /// # Errors
    ///
    /// Errors of the system; an error for a device, for a pipe with more bytes than `max`, and below a directory for all but
    /// regular files.
    pub fn open(&self, max: MaxInput) -> io::Result<Arc<Opened>> {
        match &self.opened {
            Some(Ok(opened)) => return Ok(Arc::clone(opened)),
            Some(Err(error)) => return Err(again(error)),
            None => {}
        }
        let opened = match &self.origin {
            Origin::Below(root, relative) => Opened::below(&root.held, relative),
            Origin::PackOf(_) => Opened::regular(&self.path),
            Origin::Server(online, _) => return online.open(max),
            Origin::Program(contents, _) => Opened::of_contents(contents),
            _ => Opened::new(&self.path, max),
        };
        opened.map(Arc::new)
    }

    /// Returns the same file, open until this is dropped.
    pub(super) fn opened(&self, max: MaxInput) -> Input {
        self.held(self.open(max))
    }

    /// Returns the same file, as it was opened.
    pub fn held(&self, opened: io::Result<Arc<Opened>>) -> Input {
        Input { opened: Some(opened.map_err(Arc::new)), ..self.clone() }
    }

    /// Returns the file as an output that replaces it: in its directory, whatever its path leads to by now.
    ///
    /// # Errors
    ///
    /// The directory cannot be opened.
    pub fn output(&self) -> io::Result<Name> {
        match &self.origin {
            Origin::Below(root, relative) => Name::found(&root.held, relative),
            _ => Ok(Name::Typed(self.path.clone())),
        }
    }

    /// Walks the file, with at most the bytes of decompressed data that `limits` and `options` allow.
    ///
    /// # Errors
    ///
    /// Errors of opening and reading the file, and of the visitor; an error if the file was changed by the end.
    pub fn walk(
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
            let walk = |options: &fat_object::Options| {
                let mut walked = fat_object::walk_with_threads(&reader, threads, options, visitor)?;
                complete(self.unread(), &mut walked, visitor)?;
                store.check()?;
                Ok(walked)
            };
            return walk_remote(store.remote(), &options, walk);
        }
        let opened = self.open(limits.max_input)?;
        walk_open(&opened, (limits, options), threads, visitor)
    }

    /// Reads something of the file.
    ///
    /// # Errors
    ///
    /// Errors of opening the file, and of `read`.
    pub fn with_reader<T>(
        &self,
        max: MaxInput,
        read: impl FnOnce(Positioned<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        match self.store() {
            Some((store, _)) => read(store.reader()),
            None => read(self.open(max)?.reader()),
        }
    }

    /// Returns the options of a [walk](Self::walk) through the file.
    ///
    /// # Errors
    ///
    /// Errors of opening the file.
    pub fn walk_options(&self, limits: &Limits) -> io::Result<fat_object::Options> {
        let options = limits.options();
        if let Some((_, left)) = self.store() {
            let most = options.max_decompressed().min(*left);
            return Ok(options.with_max_decompressed(most));
        }
        Ok(limits.for_file(&options, self.open(limits.max_input)?.len()))
    }

    /// Reads something of the package that a member lies in, while the member is looked into; `None` for another file.
    ///
    /// # Errors
    ///
    /// Errors of `read`.
    pub fn with_package<T>(
        &self,
        read: impl FnOnce(&mut dyn ReadSeek) -> io::Result<T>,
    ) -> Option<io::Result<T>> {
        match (&self.origin, &self.opened) {
            (Origin::Member { package: Some(_), .. }, Some(Ok(opened))) => {
                Some(read(&mut opened.reader()))
            }
            _ => None,
        }
    }

    /// Reads the table of the kernel pack that the file is, with the path where it is installed; `None` if it is not
    /// one.
    ///
    /// # Errors
    ///
    /// Errors of opening and reading the file.
    pub fn pack_table(&self, max: MaxInput) -> io::Result<Option<(PathBuf, Arc<Toc>)>> {
        let (path, tables) = match &self.origin {
            Origin::Member { installed, store: Some((store, _)), .. } => {
                (Some(installed.clone()), read_tables(store.reader())?)
            }
            _ => (self.real(), read_tables(self.open(max)?.reader())?),
        };
        Ok(path.zip(tables.ok().map(|tables| Arc::new(tables.into_toc()))))
    }

    /// Takes its bytes: what is left is only for messages.
    pub fn take_bytes(&mut self) -> Option<Arc<Store>> {
        self.opened = None;
        match &mut self.origin {
            Origin::Member { store, .. } => store.take().map(|(store, _)| store),
            _ => None,
        }
    }

    /// Returns whether it is a member of a package, which an argument names or not.
    pub fn is_in_package(&self) -> bool {
        self.store().is_some()
    }

    /// Opens a file that it names, as a thin archive does.
    ///
    /// # Errors
    ///
    /// Errors of opening; [`Unsupported`](ErrorKind::Unsupported) for a member of a package, and for a file without a path.
    pub fn open_thin_member(&self, name: &[u8]) -> io::Result<File> {
        if self.is_in_package() || self.is_off_disk() {
            return Err(ErrorKind::Unsupported.into());
        }
        input::open_thin_file(&self.path, name)
    }

    /// Returns the bytes of a member of a package, which were all kept in a file.
    pub fn as_member(&self) -> Option<&File> {
        self.store().and_then(|(store, _)| store.file())
    }

    /// Returns the package that the file is, if it is one.
    pub(super) fn as_package(&self, max: MaxInput) -> io::Result<Option<Package>> {
        let opened = self.open(max)?;
        match &self.form {
            Some(form) => Ok(Some(Package { opened, form: PackageForm::clone(form) })),
            None => Package::of(&opened),
        }
    }

    /// Returns the name of the package that a member was found in, as the user named it.
    pub fn package(&self) -> Option<&str> {
        match &self.origin {
            Origin::Member { package, .. } => package.as_deref(),
            _ => None,
        }
    }

    /// Returns its places in the images of the container archive or layout that it lies in.
    pub fn places(&self) -> &[Place] {
        match &self.origin {
            Origin::Member { places, .. } => places,
            _ => &[],
        }
    }

    /// Returns the sets of files that it belongs to: container images, or the one of all other files.
    pub fn sets(&self) -> Vec<Set<'_>> {
        if self.places().is_empty() {
            return vec![Set { image: "", name: self.name.clone(), path: None }];
        }
        let places = self.places().iter();
        places
            .map(|place| Set {
                image: &place.image,
                name: format!("{}:{}", place.image, place.name),
                path: Some(&place.path),
            })
            .collect()
    }

    /// Returns the names of all images of the container archive or layout that it lies in.
    pub fn images(&self) -> &[Arc<str>] {
        match &self.origin {
            Origin::Member { images, .. } => images,
            _ => &[],
        }
    }

    /// Returns the result of the check of a package, if it is one as a whole.
    pub fn verified(&self) -> Option<&io::Result<Verified>> {
        match &self.origin {
            Origin::WholePackage(verified, _) => Some(verified),
            _ => None,
        }
    }

    /// Returns whether it is an archive of container images as a whole, whose check has a result.
    pub fn is_verified_image(&self) -> bool {
        matches!(self.origin, Origin::WholePackage(_, true))
    }

    /// Returns what was seen in a file that has nothing to show and was not named, so nothing is printed.
    pub fn passed_over(&self, shows: bool, summary: &io::Result<Summary>) -> Option<Seen> {
        let summary = summary.as_ref().ok().filter(|summary| summary.findings == 0)?;
        (!self.is_named && !shows && self.split_library().is_ok()).then(|| self.nothing(summary))
    }

    /// Returns what was seen in a file without anything to show.
    pub fn nothing(&self, summary: &Summary) -> Seen {
        let format = summary.format;
        if not_read(format, self.unread()).is_some() {
            Seen::Unread(format!("{format} format after its first 64 KiB"))
        } else if format.may_hold_unread_code() {
            Seen::Unread(format.to_string())
        } else {
            Seen::Nothing
        }
    }

    /// Returns why a file has no images: an error if that is not known, or if they were moved out and nothing says where.
    ///
    /// # Errors
    ///
    /// The text that says so.
    pub fn no_images(&self, summary: &Summary) -> Result<String, String> {
        match (self.split_library()?, not_read(summary.format, self.unread())) {
            (Some(host), _) => Ok(host.describe()),
            (None, Some(unread)) => Err(unread.to_string()),
            (None, None) if summary.unsearched > 0 => {
                summary.no_images().map(|why| format!("{why} in what was read"))
            }
            (None, None) => summary.no_images(),
        }
    }

    /// Returns whether it is a kernel pack that was found by a split library.
    pub fn is_pack_of_library(&self) -> bool {
        matches!(self.origin, Origin::PackOf(_))
    }

    /// Reads what a file on a server says of kernel packs, while it is open: it is not opened again.
    ///
    /// # Errors
    ///
    /// Errors of reading. Damage is not one.
    pub(super) fn read_online_host(&self) -> io::Result<()> {
        if let (Some(online), Some(Ok(opened))) = (self.server(), &self.opened) {
            let host = known(Host::online(opened.reader(), &online.place()))?;
            online.set_split(!matches!(host, Ok(None)));
            self.host.get_or_init(|| host);
        }
        if let (Origin::Program(..), Some(Ok(opened))) = (&self.origin, &self.opened) {
            let host = known(Host::online(opened.reader(), &self.path))?;
            self.host.get_or_init(|| host);
        }
        // A part of such a file, in place: its bytes are kept for the next reading.
        if let Origin::Member { installed, store: Some((store, _)), .. } = &self.origin
            && store.remote().is_some()
            && let Err(error) = Host::installed_as(store.reader(), installed)
            && error.kind() != ErrorKind::InvalidData
        {
            return Err(error);
        }
        Ok(())
    }

    /// Returns what a library says whose device code is in kernel packs; `None` for another file, and for one whose marker is damaged.
    pub fn split_host(&self) -> Option<Arc<Host>> {
        self.split_library().ok().flatten()
    }

    /// Returns what a library says whose device code is in kernel packs; `None` for another file.
    ///
    /// # Errors
    ///
    /// The device code was moved out, and the marker that says where is damaged. The work itself complains of files that cannot be
    /// read.
    pub fn split_library(&self) -> Result<Option<Arc<Host>>, String> {
        let known = |read| known(read).unwrap_or(Ok(None));
        match &self.origin {
            Origin::PackOf(_) => return Ok(None),
            // It was read when the file was open.
            Origin::Server(..) | Origin::Program(..) => {
                return self.host.get().cloned().unwrap_or(Ok(None));
            }
            Origin::Member { installed, store: Some((store, _)), .. } => {
                return known(Host::installed_as(store.reader(), installed));
            }
            // It was read when its bytes were there.
            Origin::Member { store: None, .. } => {
                return self.host.get().cloned().unwrap_or(Ok(None));
            }
            _ => {}
        }
        let read = || match self.open(MaxInput::default()) {
            Ok(opened) if opened.has_path() => known(Host::read(opened.reader(), &self.path)),
            _ => Ok(None),
        };
        self.host.get_or_init(read).clone()
    }
}

/// Returns the same error.
pub fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.kind(), error.to_string()),
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

/// The kernel packs that a library names; words where its marker is damaged.
type Split = Result<Option<Arc<Host>>, String>;

/// Returns what a library says of its kernel packs.
///
/// # Errors
///
/// Errors of reading. Damage is not one.
fn known(read: io::Result<Option<Host>>) -> io::Result<Split> {
    match read {
        Ok(host) => Ok(Ok(host.map(Arc::new))),
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            Ok(Err(format!("marker of kernel packs: {error}")))
        }
        Err(error) => Err(error),
    }
}
