//! Libraries without their device code, which lies in kernel packs.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use byte_parts::Source;
use fat_object::FileFormat;
use kpack::search::{self, Loader, Place, Variables};
use kpack::{Blobs, Marker, Toc, toc_range};
use object_edit::Format;
use target_id::Processor;

use tool_kit::each_once::each_once;
use tool_kit::input;
use tool_kit::opened::open_regular;
use tool_kit::positioned::Positioned;

/// The most bytes that a loader reads of a marker.
const MOST_OF_MARKER: u64 = 64 << 10;
/// The largest table of a pack that is read.
const MOST_OF_TABLE: u64 = 256 << 20;

/// The largest code object that is read.
const MOST_OF_CODE: u64 = 2 << 30;

/// The most entries of directories that are looked at for the packs of a library.
const MOST_ENTRIES: usize = 1 << 18;

/// A library without its device code.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) marker: Marker,
    /// The number of each wrapper, by which its bundle is known in packs.
    pub(crate) numbers: Vec<u64>,
    /// Paths of packs count from here.
    directory: PathBuf,
}

impl Host {
    /// Reads the wrappers and the marker of a file; `None` if its device code was not moved out.
    ///
    /// # Errors
    ///
    /// Those of reading; `InvalidData` for a marker or wrappers that are damaged.
    pub(crate) fn read(file: Positioned<'_>, path: &Path) -> io::Result<Option<Self>> {
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        Self::installed_as(file, &real)
    }

    /// Reads a file that is installed at a path without links, or will be.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub(crate) fn installed_as(file: Positioned<'_>, path: &Path) -> io::Result<Option<Self>> {
        let mut source = Source::new(file)?;
        let window = 0..source.len();
        let head = source.peek(&window, FileFormat::SNIFF_LEN)?;
        let format = match FileFormat::sniff(&head) {
            FileFormat::Elf { .. } => Format::LinkedElf,
            FileFormat::Coff if head.starts_with(b"MZ") => Format::Pe,
            _ => return Ok(None),
        };
        let wrappers = match object_edit::hip_wrappers(&mut source, &window, format) {
            Ok(wrappers) if wrappers.iter().any(|wrapper| wrapper.is_moved_out) => wrappers,
            // Others are told where they matter.
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == object_edit::ErrorKind::Read => return Err(error.into()),
            Err(_) => return Ok(None),
        };
        let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
        let target = wrappers.first().and_then(|wrapper| wrapper.target);
        let target = target.ok_or_else(|| {
            invalid("device code was moved out, and its wrappers lead to no marker".to_owned())
        })?;
        let end = window.end.min(target.saturating_add(MOST_OF_MARKER));
        let bytes = source.read_range(&(target..end))?;
        let (marker, _) = Marker::parse(&bytes).map_err(|error| invalid(error.to_string()))?;
        let numbers = wrappers.iter().map(|wrapper| wrapper.index).collect();
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Some(Host { marker, numbers, directory }))
    }

    /// Returns what is wrong if only these wrappers have code in any pack.
    pub(crate) fn lacks(&self, known: &BTreeSet<u64>) -> Option<String> {
        let left = self.numbers.iter().filter(|number| !known.contains(number)).count();
        let all = self.numbers.len();
        match left {
            0 => None,
            left if left == all => {
                let patterns = tool_kit::report::few(self.patterns());
                Some(format!("no kernel pack has its device code: looked for {patterns}"))
            }
            left => {
                Some(format!("{left} of {all} wrappers have no device code in any kernel pack"))
            }
        }
    }

    /// Returns the wrappers whose code a loader finds for some GPU, in packs at these paths.
    pub(crate) fn found_in(&self, packs: &BTreeMap<PathBuf, &Toc>) -> BTreeSet<u64> {
        let name = self.marker.kernel_name();
        let mut archs: BTreeSet<&str> = BTreeSet::new();
        for toc in packs.values() {
            let entries = toc.entries().iter().filter(|entry| entry.kernel_name() == name);
            archs.extend(entries.map(kpack::Entry::arch));
        }
        let mut found = BTreeSet::new();
        for targets in archs.into_iter().flat_map(gpus_of) {
            if found.len() == self.numbers.len() {
                break;
            }
            let tables = self.places(&targets);
            let tables: Vec<&Toc> =
                tables.iter().filter_map(|path| packs.get(path).copied()).collect();
            let has_code = |number: &&u64| {
                let key = search::key(name, **number);
                search::lookup(&tables, &targets, &key, Loader::Later).is_ok()
            };
            found.extend(self.numbers.iter().filter(has_code));
        }
        found
    }

    /// Returns the patterns of the paths of packs that a loader goes through here.
    pub(crate) fn patterns(&self) -> Vec<String> {
        let [list, prefix] = variables();
        search::patterns(self.marker.search_paths(), list.as_deref(), prefix.as_deref())
    }

    /// Returns a path as the system knows it: it is relative to the library. Below the current directory it is short.
    fn path(&self, path: &str) -> PathBuf {
        // The directory has no links: what leads up again can go.
        let mut joined = self.directory.clone();
        for part in Path::new(path).components() {
            match part {
                Component::ParentDir if joined.pop() => {}
                Component::CurDir => {}
                part => joined.push(part),
            }
        }
        let current = env::current_dir().ok();
        let short = current.and_then(|current| Some(joined.strip_prefix(current).ok()?.to_owned()));
        short.unwrap_or(joined)
    }

    /// Returns the paths of packs at which a loader looks for a GPU with these targets, in its order, each once: it finds
    /// nothing in a pack that it has tried.
    pub(crate) fn places(&self, targets: &[&str]) -> Vec<PathBuf> {
        let [list, prefix] = variables();
        let variables =
            Variables { list: list.as_deref(), prefix: prefix.as_deref(), ..Variables::default() };
        let places = search::places(self.marker.search_paths(), &variables, targets);
        let path = |place: &Place| match place.is_of_library() {
            true => self.path(place.path()),
            false => PathBuf::from(place.path()),
        };
        each_once(places.iter().map(path))
    }

    /// Returns the packs that are there, for any target, in the order of their paths.
    ///
    /// # Errors
    ///
    /// The patterns lead to too many entries of directories.
    pub(crate) fn packs(&self) -> Result<Vec<PathBuf>, String> {
        let [list, prefix] = variables();
        let named = search::patterns(&[], list.as_deref(), prefix.as_deref());
        let of_library = self.patterns().into_iter().skip(named.len());
        let of_library = of_library.map(|pattern| self.path(&pattern));
        let mut found: Vec<PathBuf> = named.iter().map(PathBuf::from).collect();
        let mut directories = Directories::default();
        for path in each_once(of_library) {
            let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { continue };
            match name.to_string_lossy().split_once(search::PLACEHOLDER) {
                Some(ends) => found.extend(directories.matching(directory, ends)?),
                None => found.push(path),
            }
        }
        Ok(each_once(found).into_iter().filter(|path| path.is_file()).collect())
    }

    /// Checks that the packs that are there can be read. Returns what is wrong, or what the library is: which wrappers have code
    /// depends on the targets of the packs that are there.
    pub(crate) fn check(&self) -> Result<String, Vec<String>> {
        let (name, count) = (self.marker.kernel_name(), self.numbers.len());
        let (mut faults, mut tables) = (Vec::new(), BTreeMap::new());
        for path in self.packs().map_err(|error| vec![error])? {
            match OpenPack::open(&path) {
                Ok(pack) => _ = tables.insert(path, pack.toc),
                Err(error) => faults.push(error),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        tables.retain(|_, toc| toc.entries().iter().any(|entry| entry.kernel_name() == name));
        let packs = tables.len();
        let tables = tables.iter().map(|(path, toc)| (path.clone(), toc)).collect();
        if let Some(fault) = self.lacks(&self.found_in(&tables)) {
            return Err(vec![fault]);
        }
        let wrappers =
            if count == 1 { "1 wrapper".to_owned() } else { format!("{count} wrappers") };
        let packs =
            if packs == 1 { "1 kernel pack".to_owned() } else { format!("{packs} kernel packs") };
        Ok(format!("{wrappers} with device code in {packs}"))
    }

    /// Returns what the library is, in words.
    pub(crate) fn describe(&self) -> String {
        let patterns = tool_kit::report::few(self.patterns());
        let name = self.marker.kernel_name();
        format!("its device code is in kernel packs, as {name}: {patterns}")
    }
}

/// Returns the targets of GPUs for which a loader may take code for an architecture, in its order: those that a generic
/// processor covers ask for themselves first.
fn gpus_of(arch: &str) -> Vec<Vec<&str>> {
    let processor = Processor::amdgpu(arch.split(':').next().unwrap_or(arch));
    let covered = processor.map_or(&[][..], |processor| processor.covers());
    let mut gpus: Vec<Vec<&str>> = covered.iter().map(|gpu| vec![*gpu, arch]).collect();
    gpus.push(vec![arch]);
    gpus
}

/// Directories that are looked through for packs, each read once.
#[derive(Default)]
struct Directories {
    names: BTreeMap<PathBuf, Vec<OsString>>,
    /// The entries that were looked at for all patterns.
    seen: usize,
}

impl Directories {
    /// Returns the paths of entries whose names start and end like this, in order.
    fn matching(
        &mut self,
        path: &Path,
        (start, end): (&str, &str),
    ) -> Result<Vec<PathBuf>, String> {
        let room = MOST_ENTRIES - self.seen;
        let names = self.names.entry(path.to_owned()).or_insert_with(|| {
            let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
            // One more says that there is no room.
            let entries = entries.take(room + 1).map(|entry| entry.file_name());
            let mut names: Vec<_> = entries.collect();
            names.sort();
            names
        });
        if names.len() > room {
            let path = input::display(path);
            return Err(format!(
                "{path}: the search paths of kernel packs lead to more than {MOST_ENTRIES} entries of directories"
            ));
        }
        self.seen += names.len();
        let is_match = |name: &&OsString| {
            let name = name.to_string_lossy();
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        };
        Ok(names.iter().filter(is_match).map(|name| path.join(name)).collect())
    }
}

/// Returns the values of the variables that lead the loader to other packs.
fn variables() -> [Option<String>; 2] {
    ["ROCM_KPACK_PATH", "ROCM_KPACK_PATH_PREFIX"].map(|name| env::var(name).ok())
}

/// Reads the table of a pack.
///
/// # Errors
///
/// Those of reading, and those of the pack.
pub(crate) fn read_table(file: Positioned<'_>) -> io::Result<Result<(Toc, Blobs), kpack::Error>> {
    let mut source = Source::new(file)?;
    let head = source.peek(&(0..source.len()), 16)?;
    let table = match toc_range(&head, source.len()) {
        Ok(table) => table,
        Err(error) => return Ok(Err(error)),
    };
    if table.end - table.start > MOST_OF_TABLE {
        let text = format!("has a table of more than {MOST_OF_TABLE} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    let toc = match Toc::parse(&source.read_range(&table)?, table.start) {
        Ok(toc) => toc,
        Err(error) => return Ok(Err(error)),
    };
    let mut blobs = Blobs::new(&toc);
    while let Some(at) = blobs.next_length() {
        let mut number = [0; 4];
        source.read_exact_at(at, &mut number)?;
        if let Err(error) = blobs.set_length(u32::from_le_bytes(number)) {
            return Ok(Err(error));
        }
    }
    Ok(Ok((toc, blobs)))
}

/// A pack that is open.
#[derive(Debug)]
pub(crate) struct OpenPack {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    pub(crate) toc: Toc,
    blobs: Blobs,
}

impl OpenPack {
    /// Opens a pack, and reads its table.
    ///
    /// # Errors
    ///
    /// Those of reading, and those of the pack.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let name = input::display(path);
        let failed = |text: String| format!("{name}: {text}");
        let file = open_regular(path).map_err(|error| failed(tool_kit::report::reason(&error)))?;
        match read_table(Positioned::new(&file)) {
            Ok(Ok((toc, blobs))) => Ok(OpenPack { path: path.to_owned(), file, toc, blobs }),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(error) => Err(failed(tool_kit::report::reason(&error))),
        }
    }

    /// Returns the place of the stored bytes of an entry.
    pub(crate) fn range(&self, entry: &kpack::Entry) -> Option<Range<u64>> {
        self.blobs.range(entry)
    }

    /// Returns the code object of an entry.
    ///
    /// # Errors
    ///
    /// Those of reading, and of decompression.
    pub(crate) fn code(&self, entry: &kpack::Entry) -> Result<Vec<u8>, String> {
        let name = format!("{}: {} for {}", input::display(&self.path), entry.key(), entry.arch());
        let range = self.range(entry).ok_or_else(|| format!("{name}: no code"))?;
        let size = entry.original_size();
        if size > MOST_OF_CODE {
            return Err(format!("{name}: {size} bytes of code, more than {MOST_OF_CODE}"));
        }
        let mut source = Source::new(Positioned::new(&self.file)).map_err(|e| e.to_string())?;
        let stored = source.read_range(&range).map_err(|error| format!("{name}: {error}"))?;
        let code = match self.toc.scheme() {
            kpack::Scheme::Plain => Ok(stored),
            kpack::Scheme::Zstd => kpack::decompress(&stored, entry.original_size()),
        };
        let code = code.map_err(|error| format!("{name}: {error}"))?;
        match code.len() as u64 == entry.original_size() {
            true => Ok(code),
            false => {
                let (expected, found) = (entry.original_size(), code.len());
                Err(format!("{name}: expected {expected} bytes of code, found {found}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_for_packs_is_bounded() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a_gfx906.kpack", "a_gfx90a.kpack", "b.txt"] {
            fs::write(root.path().join(name), "").unwrap();
        }
        let directory = root.path().to_string_lossy().into_owned();
        let mut paths = vec![format!("{directory}/a_@GFXARCH@.kpack"), "none@GFXARCH@".to_owned()];
        paths.extend(std::iter::repeat_n(format!("{directory}/@GFXARCH@"), 100_000));
        paths.extend(std::iter::repeat_n(format!("{directory}/b.txt"), 100_000));
        let host = |paths: Vec<String>| Host {
            marker: Marker::new("a", paths),
            numbers: vec![0],
            directory: root.path().to_owned(),
        };
        let found = host(paths).packs().unwrap();
        let names: Vec<_> = found.iter().filter_map(|path| path.file_name()).collect();
        assert_eq!(names, ["a_gfx906.kpack", "a_gfx90a.kpack", "b.txt"]);
        // Each of these looks at the three entries.
        let paths = (0..MOST_ENTRIES / 3 + 2).map(|n| format!("{directory}/{n}@GFXARCH@"));
        let error = host(paths.collect()).packs().unwrap_err();
        assert!(error.ends_with("lead to more than 262144 entries of directories"), "{error}");
    }
}
