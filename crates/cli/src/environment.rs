//! Python environments: their distributions, found as `pip` finds them, without running code of the environment.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::inputs::Input;
use gpu_packages::Record;
use tool_kit::directory::{Held, Kind};
use tool_kit::{input, report};

/// Names of directories with distributions.
const PACKAGES: [&str; 2] = ["site-packages", "dist-packages"];
const LEADS_OUT: &str = "leads out of the environment, and is not looked into";

/// The most bytes of a list of files.
const MOST_OF_LIST: u64 = 256 << 20;
/// The most bytes of `METADATA` and of files that name directories.
const MOST_OF_TEXT: u64 = 16 << 20;

/// Prints the directories of distributions. `-S` keeps Python from running the code in `.pth` files and `sitecustomize`,
/// `-I` from importing modules of the current directory; `site` then finds the directories as it does at every start.
const PRINT_SITES: &str = "\
import os, sys, site
paths = []
def add(directory, known=None):
    paths.append(directory)
    return known
site.addsitedir = add
known = site.venv(set())
if site.ENABLE_USER_SITE is not False and not os.environ.get('PYTHONNOUSERSITE'):
    add(site.getusersitepackages())
site.addsitepackages(known)
sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, paths)))
";

/// A directory with distributions.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// The environment that it is a part of: files of its distributions lie below.
    root: Held,
    /// Its place in the environment.
    base: PathBuf,
}

/// Directories with distributions, in the order in which Python searches them.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    sites: Vec<Site>,
    known: HashSet<PathBuf>,
    /// Directories that cannot be looked into.
    faults: Vec<String>,
}

/// A distribution that is installed.
#[derive(Debug)]
pub(crate) struct Distribution {
    pub(crate) name: String,
    pub(crate) version: String,
    site: Site,
    /// The entries of the site's directory, by name.
    beside: Arc<Vec<(OsString, Kind)>>,
    /// Its `dist-info` or `egg-info`, in the environment.
    info: PathBuf,
    /// Faults that keep its answer from being the whole truth.
    pub(crate) faults: Vec<String>,
}

/// Returns the directories in which the Python of this environment finds distributions.
///
/// # Errors
///
/// There is no Python, or it fails.
pub(crate) fn search_path() -> Result<Sites, String> {
    let advice = "give the environment with --prefix DIR";
    let python = if cfg!(windows) { "python" } else { "python3" };
    let asked = Command::new(python).args(["-I", "-S", "-c", PRINT_SITES]).output();
    let asked = asked
        .map_err(|error| format!("{python} cannot be run: {}; {advice}", report::reason(&error)))?;
    if !asked.status.success() {
        return Err(format!("{python} does not tell where its packages are; {advice}"));
    }
    let mut sites = Sites::default();
    let added = std::env::var_os("PYTHONPATH").unwrap_or_default();
    for path in std::env::split_paths(&added).filter(|path| !path.as_os_str().is_empty()) {
        sites.add(&path);
    }
    let printed = asked.stdout.split(|&byte| byte == 0).filter(|path| !path.is_empty());
    for path in printed.map(input::path) {
        sites.add(&path);
        sites.add_named_in(&path, |_| true);
    }
    Ok(sites)
}

/// Returns the directories with distributions of an environment that is given: below its prefix, or itself.
///
/// # Errors
///
/// There is none.
pub(crate) fn search_path_of(prefix: &Path) -> Result<Sites, String> {
    let mut found = Vec::new();
    for library in ["lib", "lib64", "local/lib"] {
        for python in directories(&prefix.join(library)) {
            let name = python.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with("python") || name.starts_with("pypy") {
                found.push(python.join("site-packages"));
                found.push(python.join("dist-packages"));
            }
        }
    }
    found.push(prefix.join("Lib").join("site-packages"));
    found.retain(|path| path.is_dir());
    let is_itself = found.is_empty() && Held::open(prefix).is_ok_and(|held| has_infos(&held));
    if is_itself {
        found.push(prefix.to_owned());
    }
    if found.is_empty() {
        return Err(format!(
            "{}: expected a Python environment, with lib/python3.X/site-packages",
            prefix.display()
        ));
    }
    let mut sites = Sites::default();
    let is_here = prefix.as_os_str().is_empty();
    let real = fs::canonicalize(if is_here { Path::new(".") } else { prefix });
    let real = real.map_err(|error| format!("{}: {}", prefix.display(), report::reason(&error)))?;
    for path in &found {
        if fs::canonicalize(path).is_ok_and(|path| !path.starts_with(&real)) {
            sites.faults.push(format!("{}: {LEADS_OUT}", path.display()));
            continue;
        }
        sites.add(path);
        sites.add_named_in(path, |path| path.starts_with(&real));
    }
    Ok(sites)
}

/// Returns the directories in one, by name.
fn directories(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

fn has_infos(held: &Held) -> bool {
    let entries = held.entries(Path::new("")).unwrap_or_default();
    entries.iter().any(|(name, _)| is_info(name))
}

fn is_info(name: &OsStr) -> bool {
    let extension = Path::new(name).extension();
    name == "EGG-INFO" || extension.is_some_and(|it| it == "dist-info" || it == "egg-info")
}

impl Sites {
    /// Adds a directory, unless it is known by any name.
    fn add(&mut self, path: &Path) {
        // Python passes over what is not there.
        let Ok(real) = fs::canonicalize(path) else { return };
        if !self.known.insert(real.clone()) {
            return;
        }
        if !real.is_dir() {
            let why = "not a directory: packages in zip files are not looked into";
            self.faults.push(format!("{}: {why}", path.display()));
            return;
        }
        match Site::open(path, &real) {
            Ok(site) => self.sites.push(site),
            Err(error) => {
                self.faults.push(format!("{}: {}", path.display(), report::reason(&error)));
            }
        }
    }

    /// Adds the directories that the `.pth` files in one name. Lines of code in them are not run.
    fn add_named_in(&mut self, site: &Path, is_wanted: impl Fn(&Path) -> bool) {
        let Ok(held) = Held::open(site) else { return };
        for (file, _) in held.entries(Path::new("")).unwrap_or_default() {
            if Path::new(&file).extension().is_none_or(|extension| extension != "pth") {
                continue;
            }
            let text = match held.read_list(Path::new(&file), MOST_OF_TEXT) {
                Ok(text) => String::from_utf8_lossy(&text).into_owned(),
                Err(error) => {
                    let file = held.path_of(Path::new(&file));
                    self.faults.push(format!("{}: {}", file.display(), report::reason(&error)));
                    continue;
                }
            };
            let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim_end);
            let is_code = |line: &&str| line.starts_with("import ") || line.starts_with("import\t");
            for line in
                lines.filter(|line| !line.is_empty() && !line.starts_with('#') && !is_code(line))
            {
                let path = site.join(line);
                let Ok(real) = fs::canonicalize(&path) else { continue };
                if is_wanted(&real) {
                    self.add(&path);
                } else {
                    let (file, path) = (held.path_of(Path::new(&file)), path.display());
                    self.faults.push(format!("{}: {path} {LEADS_OUT}", file.display()));
                }
            }
        }
    }

    /// Returns the distributions, by name, and the faults of directories. A distribution hides those of the same name in
    /// later directories, as for an import.
    pub(crate) fn distributions(self) -> (Vec<Distribution>, Vec<String>) {
        let mut found: BTreeMap<String, Vec<Distribution>> = BTreeMap::new();
        let mut faults = self.faults;
        for site in &self.sites {
            let mut here: BTreeMap<String, Vec<Distribution>> = BTreeMap::new();
            let entries = match site.root.entries(&site.base) {
                Ok(entries) => Arc::new(entries),
                Err(error) => {
                    let path = site.root.path_of(&site.base);
                    faults.push(format!("{}: {}", path.display(), report::reason(&error)));
                    continue;
                }
            };
            for (info, kind) in entries.iter().filter(|(name, _)| is_info(name)) {
                let distribution = Distribution::read(site, &entries, info, *kind);
                here.entry(normalized(&distribution.name)).or_default().push(distribution);
            }
            for (name, mut all) in here {
                all.sort_by(|one, other| one.info.cmp(&other.info));
                // The same version, described twice.
                all.dedup_by(|later, first| later.version == first.version);
                let names: Vec<_> = all.iter().map(|one| one.info_name()).collect();
                if all.len() > 1 {
                    let names = names.join(", ");
                    let why = "are of one package: remove all but the one that is installed";
                    let path = site.root.path_of(&site.base);
                    if let Some(first) = all.first_mut() {
                        first.faults.push(format!("{}: {names} {why}", path.display()));
                    }
                }
                found.entry(name).or_insert(all);
            }
        }
        (found.into_values().flatten().collect(), faults)
    }
}

impl Site {
    /// Opens a directory with distributions. `real` is its path without links.
    fn open(path: &Path, real: &Path) -> io::Result<Self> {
        let (environment, base) = root_and_base(real);
        // Messages name the directory as it was given.
        let root = path.ancestors().nth(base.components().count()).filter(|root| {
            fs::canonicalize(if root.as_os_str().is_empty() { Path::new(".") } else { root })
                .is_ok_and(|root| root == environment)
        });
        Ok(Site { root: Held::open(root.unwrap_or(environment))?, base: base.to_owned() })
    }

    /// Returns the place of a file that a list in this directory names; `None` if it lies in no environment.
    fn resolve(&self, from: &Path, row: &Path) -> Option<PathBuf> {
        Held::resolve(from, row).or_else(|| {
            // In a directory of its own (--target), pip puts scripts into `bin`, and lists them as if it were an environment.
            let mut rest = row.components().peekable();
            while rest.next_if_eq(&Component::ParentDir).is_some() {}
            let rest: PathBuf = rest.collect();
            let is_script = self.base.as_os_str().is_empty() && rest.starts_with("bin");
            Held::resolve(Path::new(""), &rest).filter(|_| is_script)
        })
    }
}

/// Splits the path of a directory with distributions, which has no links: the environment that it is a part of, and its place
/// there.
pub(crate) fn root_and_base(real: &Path) -> (&Path, &Path) {
    let names: Vec<&OsStr> = real.components().rev().take(3).map(Component::as_os_str).collect();
    let is_library = |name: &OsStr| name == "lib" || name == "lib64";
    let depth = match names[..] {
        [packages, _, library] if is_packages(packages) && is_library(library) => 3,
        [packages, library, ..] if is_packages(packages) && library == "Lib" => 2,
        _ => 0,
    };
    let root = real.ancestors().nth(depth).unwrap_or(real);
    (root, real.strip_prefix(root).unwrap_or(Path::new("")))
}

/// Returns the places of the directories with distributions in an environment, without following links.
pub(crate) fn sites_in(root: &Held) -> Vec<PathBuf> {
    let mut libraries = vec![PathBuf::from("Lib")];
    for library in ["lib", "lib64"].map(PathBuf::from) {
        let entries = root.entries(&library).unwrap_or_default().into_iter();
        libraries.extend(entries.map(|(name, _)| library.join(name)));
    }
    let sites = libraries.iter().flat_map(|library| PACKAGES.map(|name| library.join(name)));
    sites.filter(|site| root.directory(site).is_ok()).collect()
}

fn is_packages(name: &OsStr) -> bool {
    PACKAGES.iter().any(|known| name == *known)
}

/// Returns a name in the form in which names of distributions are compared (PEP 503).
pub(crate) fn normalized(name: &str) -> String {
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

/// The files of a distribution.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Regular files in the environment, each once.
    pub(crate) paths: Vec<PathBuf>,
    /// Reasons why others are not looked into.
    pub(crate) faults: Vec<String>,
}

impl Distribution {
    /// Reads the description of a distribution. Name and version are in its file name as well.
    fn read(site: &Site, beside: &Arc<Vec<(OsString, Kind)>>, info: &OsStr, kind: Kind) -> Self {
        let place = site.base.join(info);
        let is_egg =
            info == "EGG-INFO" || Path::new(info).extension().is_some_and(|it| it == "egg-info");
        let metadata = match (is_egg, kind) {
            (true, Kind::File) => place.clone(),
            (true, _) => place.join("PKG-INFO"),
            (false, _) => place.join("METADATA"),
        };
        let mut faults = Vec::new();
        let shown = site.root.path_of(&metadata);
        let text = site.root.read_list(&metadata, MOST_OF_TEXT).unwrap_or_else(|error| {
            faults.push(format!("{}: {}", shown.display(), report::reason(&error)));
            Vec::new()
        });
        let text = String::from_utf8_lossy(&text).into_owned();
        let field = |name: &str| {
            let head = text.lines().take_while(|line| !line.is_empty());
            let mut values = head.filter_map(|line| line.split_once(':'));
            let found = values.find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.trim().to_owned())
        };
        let (name, version) = (field("Name"), field("Version"));
        if faults.is_empty() && (name.is_none() || version.is_none()) {
            faults.push(format!("{}: expected Name and Version", shown.display()));
        }
        let stem = Path::new(info).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut parts = stem.splitn(2, '-');
        let named = parts.next().unwrap_or_default().to_owned();
        let numbered = parts.next().unwrap_or("unknown").to_owned();
        Distribution {
            name: name.unwrap_or(named),
            version: version.unwrap_or(numbered),
            site: site.clone(),
            beside: Arc::clone(beside),
            info: place,
            faults,
        }
    }

    fn info_name(&self) -> String {
        self.info.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns one of its files, which is opened below the environment, without following links.
    pub(crate) fn input(&self, path: &Path) -> Input {
        Input::found_in(&self.site.root, path)
    }

    /// Returns the files that its list names. A distribution without a list has those in the directories that it is
    /// imported from.
    ///
    /// # Errors
    ///
    /// There is no list and no such directory, or the list cannot be read.
    pub(crate) fn files(&self) -> Result<Files, String> {
        let site = &self.site;
        let lists = [("RECORD", &*site.base), ("installed-files.txt", &*self.info)];
        let mut missing = None;
        for (name, from) in lists {
            let list = self.info.join(name);
            let path = site.root.path_of(&list);
            let fault =
                |error: &io::Error| format!("{}: {}", path.display(), report::reason(error));
            match site.root.read_list(&list, MOST_OF_LIST) {
                Ok(text) => {
                    let rows = match name {
                        "RECORD" => {
                            let record = Record::parse(&text);
                            let record = record.map_err(|error| fault(&error.into()))?;
                            record.rows().map(|row| row.path().to_vec()).collect()
                        }
                        _ => lines(&text),
                    };
                    return Ok(self.listed(&path, from, &rows));
                }
                Err(error) if is_absent(&error) => {
                    missing.get_or_insert(fault(&error));
                }
                Err(error) => return Err(fault(&error)),
            }
        }
        self.imported().ok_or_else(|| missing.unwrap_or_default())
    }

    /// Returns the files that rows of a list name.
    fn listed(&self, list: &Path, from: &Path, rows: &[Vec<u8>]) -> Files {
        let mut files = Files::default();
        let mut outside = Vec::new();
        let mut by_directory: BTreeMap<PathBuf, BTreeSet<OsString>> = BTreeMap::new();
        for row in rows {
            let row = input::path(row);
            let place = self.site.resolve(from, &row);
            match place.as_deref().and_then(|place| Some((place.parent()?, place.file_name()?))) {
                Some((directory, name)) => {
                    by_directory.entry(directory.to_owned()).or_default().insert(name.to_owned());
                }
                None => outside.push(row.display().to_string()),
            }
        }
        let (mut missing, mut others) = (Vec::new(), Vec::new());
        for (directory, names) in by_directory {
            // Each entry is looked at by itself: many distributions may have files in a directory.
            let held = self.site.root.directory(&directory);
            if let Err(error) = &held
                && !is_absent(error)
            {
                let path = self.site.root.path_of(&directory);
                files.faults.push(format!("{}: {}", path.display(), report::reason(error)));
                continue;
            }
            for name in names {
                let place = directory.join(&name);
                let found = held.as_ref().map_or(Ok(None), |held| held.look(&name));
                match found.map(|found| found.map(|entry| entry.kind)) {
                    Ok(Some(Kind::File)) => files.paths.push(place),
                    Ok(Some(Kind::Directory)) => {}
                    Ok(Some(Kind::Link | Kind::Other)) => others.push(place.display().to_string()),
                    Ok(None) if may_be_library(&name) => missing.push(place.display().to_string()),
                    Ok(None) => {}
                    Err(error) => {
                        let path = self.site.root.path_of(&place);
                        files.faults.push(format!(
                            "{}: {}",
                            path.display(),
                            report::reason(&error)
                        ));
                    }
                }
            }
        }
        for (names, why) in [
            (outside, "lists files outside of the environment, which are not opened"),
            (others, "lists links, pipes or devices, which are not followed"),
            (missing, "lists files that are missing"),
        ] {
            if !names.is_empty() {
                let names = report::few(&names);
                files.faults.push(format!("{}: {why}: {names}", list.display()));
            }
        }
        files
    }

    /// Returns the files of the modules that the distribution installs, as far as it says or its name does.
    fn imported(&self) -> Option<Files> {
        let root = &self.site.root;
        let mut files = Files::default();
        let list = self.info.join("top_level.txt");
        let modules = root.read_list(&list, MOST_OF_TEXT).map(|text| lines(&text));
        let modules = modules.unwrap_or_else(|error| {
            if !is_absent(&error) {
                let path = root.path_of(&list);
                files.faults.push(format!("{}: {}", path.display(), report::reason(&error)));
            }
            vec![normalized(&self.name).replace('-', "_").into_bytes()]
        });
        let mut is_found = false;
        let (mut waiting, mut others) = (Vec::new(), Vec::new());
        let modules: BTreeSet<PathBuf> = modules.iter().map(|name| input::path(name)).collect();
        for module in modules.iter().map(|module| module.as_os_str()) {
            let mut start = module.to_owned();
            start.push(".");
            let from = |name: &OsStr| {
                let at = self.beside.partition_point(|(other, _)| **other < *name);
                self.beside.get(at..).unwrap_or_default().iter()
            };
            if let Some((name, Kind::Directory)) = from(module).next()
                && name == module
            {
                waiting.push(self.site.base.join(name));
                is_found = true;
            }
            let is_file =
                |name: &OsStr| name.as_encoded_bytes().starts_with(start.as_encoded_bytes());
            for (name, kind) in from(&start).take_while(|(name, _)| is_file(name)) {
                if *kind == Kind::File {
                    files.paths.push(self.site.base.join(name));
                    is_found = true;
                }
            }
        }
        while let Some(directory) = waiting.pop() {
            match root.entries(&directory) {
                Ok(entries) => {
                    for (name, kind) in entries {
                        match kind {
                            Kind::Directory => waiting.push(directory.join(name)),
                            Kind::File => files.paths.push(directory.join(name)),
                            Kind::Link | Kind::Other => {
                                others.push(directory.join(name).display().to_string());
                            }
                        }
                    }
                }
                Err(error) => {
                    let path = root.path_of(&directory);
                    files.faults.push(format!("{}: {}", path.display(), report::reason(&error)));
                }
            }
        }
        if !others.is_empty() {
            let (info, names) = (root.path_of(&self.info), report::few(&others));
            let why = "has links, pipes or devices, which are not followed";
            files.faults.push(format!("{}: {why}: {names}", info.display()));
        }
        files.paths.sort();
        files.paths.dedup();
        is_found.then_some(files)
    }
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

/// Returns whether a file with this name may hold device code, as far as names tell.
fn may_be_library(name: &OsStr) -> bool {
    const EXTENSIONS: [&str; 16] = [
        "so", "pyd", "dll", "dylib", "a", "lib", "o", "obj", "co", "hsaco", "kpack", "cubin",
        "fatbin", "hipfb", "ptx", "spv",
    ];
    let name = name.to_string_lossy();
    let is_library = |end: &str| {
        Path::new(end).extension().is_some_and(|it| EXTENSIONS.iter().any(|known| it == *known))
    };
    is_library(&name) || name.contains(".so.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_in_normal_form() {
        for name in ["Foo.Bar_baz", "foo-bar-baz", "FOO__bar..baz"] {
            assert_eq!(normalized(name), "foo-bar-baz");
        }
    }

    #[test]
    fn the_first_distribution_of_a_name_counts() {
        let root = tempfile::tempdir().unwrap();
        let add = |place: &str, name: &str, version: &str| {
            let info = root.path().join(place).join(format!("{name}-{version}.dist-info"));
            fs::create_dir_all(&info).unwrap();
            let text =
                format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: no\n");
            fs::write(info.join("METADATA"), text).unwrap();
        };
        add("lib/python3.11/site-packages", "Foo_Bar", "1.0");
        add("lib/python3.12/site-packages", "foo-bar", "2.0");
        add("lib/python3.12/site-packages", "other", "3");
        let found = |path: &Path| {
            let (found, faults) = search_path_of(path).unwrap().distributions();
            assert!(faults.is_empty(), "{faults:?}");
            Vec::from_iter(found.into_iter().map(|one| (one.name, one.version)))
        };
        let expected = [("Foo_Bar", "1.0"), ("other", "3")];
        let pair = |(name, version): (&str, &str)| (name.to_owned(), version.to_owned());
        assert_eq!(found(root.path()), expected.map(pair));
        let second = root.path().join("lib/python3.12/site-packages");
        assert_eq!(found(&second), [("foo-bar", "2.0"), ("other", "3")].map(pair));
        assert!(search_path_of(&root.path().join("lib")).is_err());
    }
}
