//! Python environments: their distributions, found as `pip` finds them, and the files of these.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use crate::record::Record;
use crate::text::fields;
use crate::variant::{MAX_VARIANT_JSON, VARIANT_JSON};

/// Names of directories with distributions.
const PACKAGES: [&[u8]; 2] = [b"site-packages", b"dist-packages"];
/// The most bytes of a list of files.
const MOST_OF_LIST: u64 = 256 << 20;
/// The most bytes of `METADATA` and of files that name modules.
const MOST_OF_TEXT: u64 = 16 << 20;

/// Kind of an entry of a directory. Symbolic links are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, a pipe, a device.
    Other,
}

/// A directory that the caller can read, such as an environment. Paths are relative, with `/`; the empty path is the directory
/// itself.
pub trait Tree {
    /// Returns the names and kinds of what is in a directory, sorted by name.
    ///
    /// # Errors
    ///
    /// One of the caller, with a text for people.
    fn entries(&self, directory: &[u8]) -> io::Result<Vec<(Vec<u8>, EntryKind)>>;

    /// Returns the kinds of these names in a directory, in order, `None` for what is not there. A directory may be large, and
    /// hold few of them.
    ///
    /// # Errors
    ///
    /// One of the directory.
    fn look(&self, directory: &[u8], names: &BTreeSet<Vec<u8>>) -> io::Result<Vec<Looked>>;

    /// Reads a regular file of at most `most` bytes.
    ///
    /// # Errors
    ///
    /// One of the caller; `NotFound` or `NotADirectory` if it is not there.
    fn read(&self, file: &[u8], most: u64) -> io::Result<Vec<u8>>;
}

/// The kind of an entry; `None` if there is none.
pub type Looked = io::Result<Option<EntryKind>>;

/// Something that keeps an answer about an environment from being the whole truth.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeFault {
    /// The place in the tree.
    pub path: Vec<u8>,
    /// The fault, in words.
    pub text: String,
    /// The files that it names, if several.
    pub names: Vec<String>,
}

impl TreeFault {
    fn new(path: &[u8], text: &(impl ToString + ?Sized)) -> Self {
        TreeFault { path: path.to_vec(), text: text.to_string(), names: Vec::new() }
    }
}

/// A directory with distributions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Site<T> {
    /// The environment that it is a part of: files of its distributions lie below.
    pub tree: T,
    /// Its place in the environment.
    pub base: Vec<u8>,
}

impl<T> Site<T> {
    /// Creates the site at a place in an environment.
    #[must_use]
    pub fn new(tree: T, base: Vec<u8>) -> Self {
        Site { tree, base }
    }
}

/// A distribution that is installed in an environment.
#[derive(Debug)]
pub struct Distribution<T> {
    name: String,
    version: String,
    site: Site<T>,
    /// The entries of the site's directory, by name.
    beside: Arc<Vec<(Vec<u8>, EntryKind)>>,
    /// Its `dist-info` or `egg-info`, in the environment.
    info: Vec<u8>,
    faults: Vec<TreeFault>,
}

/// The files of a [`Distribution`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct DistributionFiles {
    /// Regular files in the environment, each once.
    pub paths: Vec<Vec<u8>>,
    /// Reasons why others are not looked into.
    pub faults: Vec<TreeFault>,
}

/// Returns whether a directory has distributions; one that cannot be read has none.
pub fn has_distributions(tree: &impl Tree) -> bool {
    tree.entries(b"").unwrap_or_default().iter().any(|(name, _)| is_info(name))
}

/// Returns how many of the last names of a path, given from its end, lead from an environment to a directory with distributions:
/// 3 for `lib/python3.12/site-packages`, 0 for another directory.
///
/// ```
/// use gpu_packages::site_depth;
///
/// assert_eq!(site_depth(["site-packages", "python3.12", "lib", "opt"].map(str::as_bytes)), 3);
/// assert_eq!(site_depth(["site-packages", "Lib"].map(str::as_bytes)), 2);
/// assert_eq!(site_depth(["site-packages", "share"].map(str::as_bytes)), 0);
/// ```
#[must_use]
pub fn site_depth<'n>(names: impl IntoIterator<Item = &'n [u8]>) -> usize {
    let mut names = names.into_iter();
    match [names.next(), names.next(), names.next()].map(Option::unwrap_or_default) {
        [packages, _, b"lib" | b"lib64"] if PACKAGES.contains(&packages) => 3,
        [packages, b"Lib", _] if PACKAGES.contains(&packages) => 2,
        _ => 0,
    }
}

/// Returns the places of the directories with distributions in an environment. Directories that cannot be read have none.
pub fn sites_in(tree: &impl Tree) -> Vec<Vec<u8>> {
    let mut libraries = vec![b"Lib".to_vec()];
    for library in [b"lib".as_slice(), b"lib64"] {
        let entries = tree.entries(library).unwrap_or_default().into_iter();
        libraries.extend(entries.map(|(name, _)| join(library, &name)));
    }
    let names: BTreeSet<Vec<u8>> = PACKAGES.iter().map(|name| name.to_vec()).collect();
    let mut sites = Vec::new();
    for library in libraries {
        for (name, found) in names.iter().zip(tree.look(&library, &names).unwrap_or_default()) {
            if matches!(found, Ok(Some(EntryKind::Directory))) {
                sites.push(join(&library, name));
            }
        }
    }
    sites
}

/// Returns the places of the lists of installed files that lie in a directory of an environment: each `RECORD`, and
/// conda's. A link or a device in the place of a directory of lists, and a directory of lists that cannot be read, are
/// returned as a list, which cannot be read. A directory that cannot be read has no lists.
pub fn lists_in(tree: &impl Tree, directory: &[u8]) -> Vec<Vec<u8>> {
    let mut lists = Vec::new();
    for (name, kind) in tree.entries(directory).unwrap_or_default() {
        let place = join(directory, &name);
        match (&*name, kind) {
            (_, EntryKind::File) => {}
            (b"conda-meta", EntryKind::Directory) => match tree.entries(&place) {
                Ok(files) => {
                    let files = files.into_iter().map(|(name, _)| name);
                    let files = files.filter(|name| split_extension(name).1 == b"json");
                    lists.extend(files.map(|name| join(&place, &name)));
                }
                Err(_) => lists.push(place),
            },
            (b"conda-meta", EntryKind::Other) => lists.push(place),
            (name, _) if split_extension(name).1 != b"dist-info" => {}
            (_, EntryKind::Directory) => lists.push(join(&place, b"RECORD")),
            (_, EntryKind::Other) => lists.push(place),
        }
    }
    lists
}

/// Returns a name in the form in which names of distributions are compared (PEP 503).
///
/// ```
/// assert_eq!(gpu_packages::normalized_name("Foo.Bar__baz"), "foo-bar-baz");
/// ```
#[must_use]
pub fn normalized_name(name: &str) -> String {
    let mut normal = String::new();
    for letter in name.to_lowercase().chars() {
        match letter {
            '-' | '_' | '.' if normal.ends_with('-') => {}
            '-' | '_' | '.' => normal.push('-'),
            letter => normal.push(letter),
        }
    }
    normal
}

/// Returns the directories that a `.pth` file names. Lines of code in it are passed over.
///
/// ```
/// assert_eq!(gpu_packages::pth_directories(b"# paths\n../more\nimport sys\n"), ["../more"]);
/// ```
#[must_use]
pub fn pth_directories(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim_end);
    let is_code = |line: &str| line.starts_with("import ") || line.starts_with("import\t");
    let is_path = |line: &&str| !line.is_empty() && !line.starts_with('#') && !is_code(line);
    lines.filter(is_path).map(str::to_owned).collect()
}

/// Returns the distributions in directories that Python searches in this order, by name, and the faults of directories, each with
/// the number of its directory. A distribution hides those of the same name in later directories, as for an import.
pub fn distributions<T: Tree + Clone>(
    sites: &[Site<T>],
) -> (Vec<Distribution<T>>, Vec<(usize, TreeFault)>) {
    let mut found: BTreeMap<String, Vec<Distribution<T>>> = BTreeMap::new();
    let mut faults = Vec::new();
    for (at, site) in sites.iter().enumerate() {
        let mut here: BTreeMap<String, Vec<Distribution<T>>> = BTreeMap::new();
        let entries = match site.tree.entries(&site.base) {
            Ok(entries) => Arc::new(entries),
            Err(error) => {
                faults.push((at, TreeFault::new(&site.base, &error)));
                continue;
            }
        };
        for (info, kind) in entries.iter().filter(|(name, _)| is_info(name)) {
            let distribution = Distribution::read(site, &entries, info, *kind);
            here.entry(normalized_name(&distribution.name)).or_default().push(distribution);
        }
        for (name, mut all) in here {
            all.sort_by(|one, other| one.info.cmp(&other.info));
            // The same version, described twice.
            all.dedup_by(|later, first| later.version == first.version);
            let names: Vec<_> = all.iter().map(|one| lossy(last(&one.info))).collect();
            if let [first, _, ..] = &mut all[..] {
                let names = names.join(", ");
                let why = "are of one package: remove all but the one that is installed";
                first.faults.push(TreeFault::new(&site.base, &format!("{names} {why}")));
            }
            found.entry(name).or_insert(all);
        }
    }
    (found.into_values().flatten().collect(), faults)
}

impl<T: Tree + Clone> Distribution<T> {
    /// Reads the description of a distribution. Name and version are in its file name as well.
    fn read(
        site: &Site<T>,
        beside: &Arc<Vec<(Vec<u8>, EntryKind)>>,
        info: &[u8],
        kind: EntryKind,
    ) -> Self {
        let place = join(&site.base, info);
        let (stem, extension) = split_extension(info);
        let is_egg = info == b"EGG-INFO" || extension == b"egg-info";
        let metadata = match (is_egg, kind) {
            (true, EntryKind::File) => place.clone(),
            (true, _) => join(&place, b"PKG-INFO"),
            (false, _) => join(&place, b"METADATA"),
        };
        let mut faults = Vec::new();
        let text = site.tree.read(&metadata, MOST_OF_TEXT).unwrap_or_else(|error| {
            faults.push(TreeFault::new(&metadata, &error));
            Vec::new()
        });
        let text = String::from_utf8_lossy(&text);
        let field = |name: &str| fields(&text, name).next().map(str::to_owned);
        let (name, version) = (field("Name"), field("Version"));
        if faults.is_empty() && (name.is_none() || version.is_none()) {
            faults.push(TreeFault::new(&metadata, "expected Name and Version"));
        }
        let stem = lossy(stem);
        let (named, numbered) = stem.split_once('-').unwrap_or((&stem, "unknown"));
        Distribution {
            name: name.unwrap_or_else(|| named.to_owned()),
            version: version.unwrap_or_else(|| numbered.to_owned()),
            site: site.clone(),
            beside: Arc::clone(beside),
            info: place,
            faults,
        }
    }
}

impl<T: Tree> Distribution<T> {
    /// Returns the name, as the distribution states it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the environment.
    #[must_use]
    pub fn tree(&self) -> &T {
        &self.site.tree
    }

    /// Returns faults of its description.
    #[must_use]
    pub fn faults(&self) -> &[TreeFault] {
        &self.faults
    }

    /// Returns the contents of the `variant.json` of its `dist-info`, if it was installed from a variant of a wheel.
    ///
    /// # Errors
    ///
    /// It cannot be read, or has more than [`MAX_VARIANT_JSON`] bytes.
    pub fn variant_json(&self) -> Result<Option<Vec<u8>>, TreeFault> {
        let place = join(&self.info, VARIANT_JSON.as_bytes());
        match self.site.tree.read(&place, MAX_VARIANT_JSON) {
            Ok(json) => Ok(Some(json)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(TreeFault::new(&place, &error)),
        }
    }

    /// Returns the files that its list names. A distribution without a list has those in the directories that it is imported
    /// from. `is_missed` returns whether it is a fault that a listed file of this name does not exist.
    ///
    /// # Errors
    ///
    /// There is no list and no such directory, or the list cannot be read.
    pub fn files(&self, is_missed: impl Fn(&str) -> bool) -> Result<DistributionFiles, TreeFault> {
        let lists = [(&b"RECORD"[..], &self.site.base), (b"installed-files.txt", &self.info)];
        let mut missing = None;
        for (name, from) in lists {
            let list = join(&self.info, name);
            match self.site.tree.read(&list, MOST_OF_LIST) {
                Ok(text) => {
                    let rows = match name {
                        b"RECORD" => {
                            let record = Record::parse(&text);
                            let record = record.map_err(|error| TreeFault::new(&list, &error))?;
                            record.rows().map(|row| row.path().to_vec()).collect()
                        }
                        _ => lines(&text),
                    };
                    return Ok(self.listed(&list, from, &rows, is_missed));
                }
                Err(error) if is_absent(&error) => {
                    missing.get_or_insert(TreeFault::new(&list, &error));
                }
                Err(error) => return Err(TreeFault::new(&list, &error)),
            }
        }
        self.imported().ok_or_else(|| missing.unwrap_or_else(|| TreeFault::new(&self.info, "")))
    }

    /// Returns the files that rows of a list name.
    fn listed(
        &self,
        list: &[u8],
        from: &[u8],
        rows: &[Vec<u8>],
        is_missed: impl Fn(&str) -> bool,
    ) -> DistributionFiles {
        let mut files = DistributionFiles::default();
        let mut outside = Vec::new();
        // Directories and names are sorted as paths are: name by name.
        let mut by_directory: BTreeMap<Vec<&[u8]>, BTreeSet<Vec<u8>>> = BTreeMap::new();
        for row in rows {
            match self.resolve(from, row).and_then(|mut names| Some((names.pop()?, names))) {
                Some((name, directory)) => {
                    by_directory.entry(directory).or_default().insert(name.to_vec());
                }
                None => outside.push(lossy(row)),
            }
        }
        let (mut missing, mut others) = (Vec::new(), Vec::new());
        for (directory, names) in by_directory {
            let directory = directory.join(&b'/');
            let looked = match self.site.tree.look(&directory, &names) {
                Ok(looked) => looked,
                Err(error) if is_absent(&error) => names.iter().map(|_| Ok(None)).collect(),
                Err(error) => {
                    files.faults.push(TreeFault::new(&directory, &error));
                    continue;
                }
            };
            for (name, found) in names.iter().zip(looked) {
                let place = join(&directory, name);
                match found {
                    Ok(Some(EntryKind::File)) => files.paths.push(place),
                    Ok(Some(EntryKind::Directory)) => {}
                    Ok(Some(EntryKind::Other)) => others.push(lossy(&place)),
                    Ok(None) if is_missed(&lossy(name)) => missing.push(lossy(&place)),
                    Ok(None) => {}
                    Err(error) => files.faults.push(TreeFault::new(&place, &error)),
                }
            }
        }
        for (names, why) in [
            (outside, "lists files outside of the environment, which are not opened"),
            (others, "lists links, pipes or devices, which are not followed"),
            (missing, "lists files that are missing"),
        ] {
            if !names.is_empty() {
                files.faults.push(TreeFault { names, ..TreeFault::new(list, why) });
            }
        }
        files
    }

    /// Returns the names in the path of a file that a list in this directory names; `None` if it lies in no environment.
    fn resolve<'n>(&self, from: &'n [u8], row: &'n [u8]) -> Option<Vec<&'n [u8]>> {
        resolve(from, row).or_else(|| {
            // In a directory of its own (--target), pip puts scripts into `bin`, and lists them as if it were an environment.
            let rest = || names_of(row).skip_while(|name| *name == b"..");
            let is_script = self.site.base.is_empty() && rest().next() == Some(b"bin");
            settled(rest()).filter(|_| is_script && !is_absolute(row))
        })
    }

    /// Returns the files of the modules that the distribution installs, by its list or by its name.
    fn imported(&self) -> Option<DistributionFiles> {
        let tree = &self.site.tree;
        let mut files = DistributionFiles::default();
        let list = join(&self.info, b"top_level.txt");
        let modules = tree.read(&list, MOST_OF_TEXT).map(|text| lines(&text));
        let modules = modules.unwrap_or_else(|error| {
            if !is_absent(&error) {
                files.faults.push(TreeFault::new(&list, &error));
            }
            vec![normalized_name(&self.name).replace('-', "_").into_bytes()]
        });
        let mut is_found = false;
        let (mut waiting, mut others) = (Vec::new(), Vec::new());
        for module in modules.into_iter().collect::<BTreeSet<_>>() {
            let from = |name: &[u8]| {
                let at = self.beside.partition_point(|(other, _)| **other < *name);
                self.beside.split_at(at).1.iter()
            };
            if let Some((name, EntryKind::Directory)) = from(&module).next()
                && *name == module
            {
                waiting.push(join(&self.site.base, name));
                is_found = true;
            }
            let start = [&module[..], b"."].concat();
            for (name, kind) in from(&start).take_while(|(name, _)| name.starts_with(&start)) {
                if *kind == EntryKind::File {
                    files.paths.push(join(&self.site.base, name));
                    is_found = true;
                }
            }
        }
        while let Some(directory) = waiting.pop() {
            match tree.entries(&directory) {
                Ok(entries) => {
                    for (name, kind) in entries {
                        let place = join(&directory, &name);
                        match kind {
                            EntryKind::Directory => waiting.push(place),
                            EntryKind::File => files.paths.push(place),
                            EntryKind::Other => others.push(lossy(&place)),
                        }
                    }
                }
                Err(error) => files.faults.push(TreeFault::new(&directory, &error)),
            }
        }
        if !others.is_empty() {
            let why = "has links, pipes or devices, which are not followed";
            files.faults.push(TreeFault { names: others, ..TreeFault::new(&self.info, why) });
        }
        files.paths.sort_by(|one, other| names_of(one).cmp(names_of(other)));
        files.paths.dedup();
        is_found.then_some(files)
    }
}

/// Returns the names in the path that `row`, from a list in a file, has from the directory `from`; `None` if it leads out.
pub(crate) fn resolve<'n>(from: &'n [u8], row: &'n [u8]) -> Option<Vec<&'n [u8]>> {
    settled(names_of(from).chain(names_of(row))).filter(|_| !is_absolute(row))
}

/// Returns the names without names that lead up and down again; `None` if they lead out.
fn settled<'n>(names: impl Iterator<Item = &'n [u8]>) -> Option<Vec<&'n [u8]>> {
    let mut found = Vec::new();
    for name in names {
        match name {
            b".." => _ = found.pop()?,
            name => found.push(name),
        }
    }
    Some(found)
}

/// Returns the names in a path. Systems with `\` put that into lists.
fn names_of(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let names = path.split(|&byte| is_separator(byte));
    names.filter(|name| !name.is_empty() && *name != b".")
}

fn is_separator(byte: u8) -> bool {
    byte == b'/' || cfg!(windows) && byte == b'\\'
}

fn is_absolute(path: &[u8]) -> bool {
    let has_drive = cfg!(windows) && path.get(1) == Some(&b':');
    has_drive || path.first().is_some_and(|&byte| is_separator(byte))
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}

/// Returns the last name in a path.
fn last(path: &[u8]) -> &[u8] {
    path.split_at(path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1)).1
}

/// Splits a name at its last point; the second part is empty if it has no extension.
fn split_extension(name: &[u8]) -> (&[u8], &[u8]) {
    match name.iter().rposition(|&byte| byte == b'.').filter(|&at| at > 0) {
        Some(at) => (name.split_at(at).0, name.split_at(at + 1).1),
        None => (name, &[]),
    }
}

fn is_info(name: &[u8]) -> bool {
    name == b"EGG-INFO" || matches!(split_extension(name).1, b"dist-info" | b"egg-info")
}

/// Returns whether there is no such file or directory.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns the lines of a list that are not empty.
fn lines(text: &[u8]) -> Vec<Vec<u8>> {
    let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
}

fn lossy(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of files and their contents.
    #[derive(Clone)]
    struct Files(Vec<(&'static str, &'static str)>);

    impl Tree for Files {
        fn entries(&self, directory: &[u8]) -> io::Result<Vec<(Vec<u8>, EntryKind)>> {
            let start = join(directory, b"");
            let mut entries = BTreeMap::new();
            for (path, _) in &self.0 {
                let Some(rest) = path.as_bytes().strip_prefix(&start[..]) else { continue };
                let mut names = rest.splitn(2, |&byte| byte == b'/');
                let name = names.next().unwrap().to_vec();
                let kind = names.next().map_or(EntryKind::File, |_| EntryKind::Directory);
                entries.insert(name, kind);
            }
            if entries.is_empty() {
                Err(io::ErrorKind::NotFound.into())
            } else {
                Ok(entries.into_iter().collect())
            }
        }

        fn look(&self, directory: &[u8], names: &BTreeSet<Vec<u8>>) -> io::Result<Vec<Looked>> {
            let entries: BTreeMap<_, _> = self.entries(directory)?.into_iter().collect();
            Ok(names.iter().map(|name| Ok(entries.get(name).copied())).collect())
        }

        fn read(&self, file: &[u8], _: u64) -> io::Result<Vec<u8>> {
            let found = self.0.iter().find(|(path, _)| path.as_bytes() == file);
            Ok(found.ok_or(io::ErrorKind::NotFound)?.1.into())
        }
    }

    const FOO: &str = "Metadata-Version: 2.1\nName: Foo_Bar\nVersion: 1.0\n\nName: no\n";

    #[test]
    fn the_first_distribution_of_a_name_counts() {
        let tree = Files(vec![
            ("lib/python3.11/site-packages/Foo_Bar-1.0.dist-info/METADATA", FOO),
            ("lib/python3.12/site-packages/foo_bar-2.0.dist-info/METADATA", "Name: foo-bar\n\n"),
            (
                "lib/python3.12/site-packages/other-3.dist-info/METADATA",
                "Name: other\nVersion: 3\n",
            ),
        ]);
        let sites: Vec<_> =
            sites_in(&tree).into_iter().map(|base| Site { tree: tree.clone(), base }).collect();
        assert_eq!(sites.len(), 2);
        let (found, faults) = distributions(&sites);
        assert!(faults.is_empty(), "{faults:?}");
        let names: Vec<_> = found.iter().map(|one| (one.name(), one.version())).collect();
        assert_eq!(names, [("Foo_Bar", "1.0"), ("other", "3")]);
        let (found, _) = distributions(&sites[1..]);
        assert_eq!((found[0].name(), found[0].version()), ("foo-bar", "2.0"));
        assert_eq!(found[0].faults()[0].text, "expected Name and Version");
    }

    /// A tree whose directories of conda's lists cannot be read.
    struct Closed(Files);

    impl Tree for Closed {
        fn entries(&self, directory: &[u8]) -> io::Result<Vec<(Vec<u8>, EntryKind)>> {
            match last(directory) {
                b"conda-meta" => Err(io::ErrorKind::PermissionDenied.into()),
                _ => self.0.entries(directory),
            }
        }

        fn look(&self, directory: &[u8], names: &BTreeSet<Vec<u8>>) -> io::Result<Vec<Looked>> {
            self.0.look(directory, names)
        }

        fn read(&self, file: &[u8], most: u64) -> io::Result<Vec<u8>> {
            self.0.read(file, most)
        }
    }

    #[test]
    fn lists_that_cannot_be_read_are_not_passed_over() {
        let tree = Files(vec![
            ("env/conda-meta/foo-1.json", "{}"),
            ("env/conda-meta/history", ""),
            ("env/foo-1.dist-info/RECORD", ""),
        ]);
        let record = &b"env/foo-1.dist-info/RECORD"[..];
        assert_eq!(lists_in(&tree, b"env"), [b"env/conda-meta/foo-1.json", record]);
        assert_eq!(lists_in(&Closed(tree), b"env"), [b"env/conda-meta", record]);
    }

    #[test]
    fn files_are_those_of_the_list_or_of_the_modules() {
        let record =
            "foo/a.so,,\n../../../bin/foo,,\n../../../../etc,,\nfoo/lost.so,,\nfoo/b.py,,\n";
        let mut tree = Files(vec![
            ("bin/foo", ""),
            ("lib/python3.12/site-packages/foo-1.dist-info/METADATA", "Name: foo\nVersion: 1\n"),
            ("lib/python3.12/site-packages/foo-1.dist-info/RECORD", record),
            ("lib/python3.12/site-packages/foo-more/c.so", ""),
            ("lib/python3.12/site-packages/foo.abi3.so", ""),
            ("lib/python3.12/site-packages/foo/a.so", ""),
        ]);
        let files = |tree: &Files| {
            let base = b"lib/python3.12/site-packages".to_vec();
            let (found, _) = distributions(&[Site { tree: tree.clone(), base }]);
            let files = found[0].files(|name| name.ends_with(".so")).unwrap();
            (files.paths.iter().map(|path| lossy(path)).collect::<Vec<_>>(), files.faults)
        };
        let (paths, faults) = files(&tree);
        assert_eq!(paths, ["bin/foo", "lib/python3.12/site-packages/foo/a.so"]);
        let names: Vec<_> = faults.iter().map(|fault| fault.names[0].as_str()).collect();
        assert_eq!(names, ["../../../../etc", "lib/python3.12/site-packages/foo/lost.so"]);
        tree.0.remove(2);
        let (paths, faults) = files(&tree);
        assert!(faults.is_empty());
        assert_eq!(
            paths,
            ["foo/a.so", "foo.abi3.so"].map(|name| format!("lib/python3.12/site-packages/{name}"))
        );
    }
}
