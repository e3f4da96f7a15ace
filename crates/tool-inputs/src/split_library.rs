//! Libraries without their device code, which lies in kernel packs.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use byte_parts::Source;
use device_select::{Device, PackAnswer, SplitLibrary, each_once};
use fat_edit::PackInput;
use kpack::search::{self, PackPath, Variables};
use kpack::{Marker, Tables, Toc};

use tool_kit::opened::open_regular;
use tool_kit::positioned::Positioned;
use tool_kit::searched::Searched;
use tool_kit::{input, real, report, style};

/// A library without its device code.
#[derive(Clone, Debug)]
pub struct Host {
    marker: Marker,
    wrappers: Vec<u64>,
    /// Paths of packs count from here.
    directory: PathBuf,
    /// The values of `ROCM_KPACK_PATH` and `ROCM_KPACK_PATH_PREFIX`.
    variables: [Option<String>; 2],
}

impl SplitLibrary for Host {
    type Path = PathBuf;

    fn marker(&self) -> &Marker {
        &self.marker
    }

    fn wrappers(&self) -> &[u64] {
        &self.wrappers
    }

    fn variables(&self) -> Variables<'_> {
        let [list, prefix] = self.variables.each_ref().map(Option::as_deref);
        Variables::default().with_list(list).with_prefix(prefix)
    }

    fn path(&self, place: &PackPath) -> PathBuf {
        if place.is_of_library() { self.below(place.path()) } else { PathBuf::from(place.path()) }
    }
}

impl Host {
    /// Reads the wrappers and the marker of a file; `None` if its device code was not moved out.
    ///
    /// # Errors
    ///
    /// Errors of [`fat_edit::moved_out`].
    pub fn read(file: Positioned<'_>, path: &Path) -> io::Result<Option<Self>> {
        let real = || real::path(path).unwrap_or_else(|_| path.to_owned());
        Ok(fat_edit::moved_out(file)?.map(|moved| Host::new(moved, &real())))
    }

    /// Reads a file that is installed at a path without links, or will be.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub(crate) fn installed_as(file: Positioned<'_>, path: &Path) -> io::Result<Option<Self>> {
        Ok(fat_edit::moved_out(file)?.map(|moved| Host::new(moved, path)))
    }

    /// Reads a file on a server, with its URL. Variables of this machine do not lead to its packs.
    pub(crate) fn online(file: Positioned<'_>, path: &Path) -> io::Result<Option<Self>> {
        let host = Host::installed_as(file, path)?;
        Ok(host.map(|host| Host { variables: [None, None], ..host }))
    }

    fn new((marker, wrappers): (Marker, Vec<u64>), path: &Path) -> Self {
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        let variables = ["ROCM_KPACK_PATH", "ROCM_KPACK_PATH_PREFIX"];
        let variables = variables.map(|name| env::var(name).ok());
        Host { marker, wrappers, directory, variables }
    }

    /// Returns the same library, installed at another path.
    pub fn at(self: &Arc<Self>, path: &Path) -> Arc<Self> {
        let directory = path.parent().unwrap_or(Path::new(""));
        if *directory == self.directory {
            return Arc::clone(self);
        }
        Arc::new(Host { directory: directory.to_owned(), ..(**self).clone() })
    }

    /// Looks for its code for a GPU, in the packs that are there.
    pub fn answer(&self, gpu: &Device) -> PackAnswer<PathBuf> {
        PackAnswer::new(self, gpu, &mut |path| {
            let pack = path.exists().then(|| OpenPack::open(path))?;
            Some(pack.map(|pack| Arc::new(pack.tables.into_toc())))
        })
    }

    /// Returns a path as the system knows it: it is relative to the library. Below the current directory it is short.
    fn below(&self, path: &str) -> PathBuf {
        let joined = input::below(&self.directory, Path::new(path));
        let current = env::current_dir().ok();
        let short = current.and_then(|current| Some(joined.strip_prefix(current).ok()?.to_owned()));
        short.unwrap_or(joined)
    }

    /// Returns the packs that are there, for any target, in the order of their paths.
    ///
    /// # Errors
    ///
    /// The patterns lead to too many entries of directories.
    pub fn packs(&self) -> Result<Vec<PathBuf>, String> {
        let named = search::patterns(&[], &self.variables());
        let of_library = self.patterns().into_iter().skip(named.len());
        let of_library = of_library.map(|pattern| self.below(&pattern));
        let mut found: Vec<PathBuf> = named.iter().map(PathBuf::from).collect();
        let mut directories = Searched::default();
        for path in each_once(of_library) {
            let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { continue };
            match name.to_string_lossy().split_once(search::PLACEHOLDER) {
                Some(ends) => {
                    found.extend(directories.matching(directory, ends).ok_or_else(|| {
                        let (path, most) = (input::display(directory), Searched::MOST);
                        format!("{path}: the search paths of kernel packs lead to more than {most} entries of directories")
                    })?);
                }
                None => found.push(path),
            }
        }
        Ok(each_once(found).into_iter().filter(|path| path.is_file()).collect())
    }

    /// Checks that the packs that are there can be read. Returns what is wrong, or what the library is: which wrappers have code
    /// depends on the targets of the packs that are there.
    ///
    /// # Errors
    ///
    /// Each pack that cannot be read, or the wrapper for which no pack has code.
    pub fn check(&self) -> Result<String, Vec<String>> {
        let (name, mut faults, mut tables) =
            (self.marker.kernel_name(), Vec::new(), BTreeMap::new());
        for path in self.packs().map_err(|error| vec![error])? {
            match OpenPack::open(&path) {
                Ok(pack) => _ = tables.insert(path, pack.tables),
                Err(error) => faults.push(error),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let tables = tables.iter().map(|(path, tables)| (path.clone(), tables.toc()));
        let tables: BTreeMap<_, _> = tables
            .filter(|(_, toc)| toc.entries().iter().any(|entry| entry.kernel_name() == name))
            .collect();
        if let Some(fault) = self.lacks(&tables) {
            return Err(vec![fault]);
        }
        let wrappers = style::count(self.wrappers.len(), "wrapper");
        let packs = style::count(tables.len(), "kernel pack");
        Ok(format!("{wrappers} with device code in {packs}"))
    }
}

/// Returns the path of the pack for the same processor without features.
pub fn without_features(path: &Path) -> Option<PathBuf> {
    let plain = search::without_features(path.file_name()?.to_str()?)?;
    Some(path.with_file_name(plain))
}

/// A pack that is open.
#[derive(Debug)]
pub struct OpenPack {
    path: PathBuf,
    /// The file, at any position.
    pub file: File,
    tables: Tables,
}

/// Reads the tables of a pack.
///
/// # Errors
///
/// Errors of reading, and errors of the pack.
pub fn read_tables(file: Positioned<'_>) -> io::Result<Result<Tables, String>> {
    let mut source = Source::new(file)?;
    let all = 0..source.len();
    Ok(Tables::read(&mut source, &all)?.map_err(|error| error.to_string()))
}

impl OpenPack {
    /// Opens a pack, and reads its tables.
    ///
    /// # Errors
    ///
    /// Errors of reading, and errors of the pack.
    pub fn open(path: &Path) -> Result<Self, String> {
        let file = open_regular(path);
        let named = |error| format!("{}: {}", input::display(path), report::reason(&error));
        Self::of(path, file.map_err(named)?)
    }

    /// Reads the tables of a pack that is open, with a path for messages.
    ///
    /// # Errors
    ///
    /// Errors of reading, and errors of the pack.
    pub fn of(path: &Path, file: File) -> Result<Self, String> {
        let tables = read_tables(Positioned::new(&file));
        let tables = tables.map_err(|error| report::reason(&error)).and_then(|tables| tables);
        let tables = tables.map_err(|text| format!("{}: {text}", input::display(path)))?;
        Ok(OpenPack { path: path.to_owned(), file, tables })
    }

    /// Returns the table of its code objects.
    pub fn toc(&self) -> &Toc {
        self.tables.toc()
    }

    /// Returns it as an input of a join.
    ///
    /// # Errors
    ///
    /// Errors of reading.
    pub fn input(&self) -> io::Result<PackInput<'_>> {
        let source = Source::new(Positioned::new(&self.file))?;
        Ok(PackInput::new(input::display(&self.path), &self.tables, source))
    }
}
