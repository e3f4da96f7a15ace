//! Python environments, opened: the directories in which Python finds distributions, without running code of the environment.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::inputs::Input;
use device_select::few;
use gpu_packages::{
    EntryKind, Looked, Site, Tree, TreeFault, has_distributions, pth_directories, site_depth,
};
use tool_kit::directory::{Held, Kind};
use tool_kit::{input, python, real, report};

/// A distribution that is installed.
pub type Distribution = gpu_packages::Distribution<Environment>;

const LEADS_OUT: &str = "leads out of the environment, and is not looked into";
/// The most bytes of files that name directories.
const MOST_OF_TEXT: u64 = 16 << 20;

/// An environment, or another directory. Errors have no numbers.
#[derive(Clone, Debug)]
pub struct Environment(pub(crate) Held);

impl Environment {
    /// Returns a file in it, which is opened without following links.
    pub fn input(&self, path: &[u8]) -> Input {
        Input::found_in(&self.0, &input::path(path))
    }

    /// Returns the text of a fault in it.
    pub fn text(&self, TreeFault { path, text, names, .. }: &TreeFault) -> String {
        let path = self.0.path_of(&input::path(path));
        let names = if names.is_empty() { String::new() } else { format!(": {}", few(names)) };
        format!("{}: {text}{names}", path.display())
    }
}

impl Tree for Environment {
    fn entries(&self, directory: &[u8]) -> io::Result<Vec<(Vec<u8>, EntryKind)>> {
        let entries = self.0.entries(&input::path(directory)).map_err(|error| plain(&error))?;
        Ok(entries.into_iter().map(|(name, kind)| (input::bytes(name), entry(kind))).collect())
    }

    fn look(&self, directory: &[u8], names: &BTreeSet<Vec<u8>>) -> io::Result<Vec<Looked>> {
        let directory = self.0.directory(&input::path(directory)).map_err(|error| plain(&error))?;
        let look = |name: &Vec<u8>| {
            let found =
                directory.look(input::path(name).as_os_str()).map_err(|error| plain(&error))?;
            Ok(found.map(|found| entry(found.kind)))
        };
        Ok(names.iter().map(look).collect())
    }

    fn read(&self, file: &[u8], most: u64) -> io::Result<Vec<u8>> {
        self.0.read_list(&input::path(file), most).map_err(|error| plain(&error))
    }
}

/// Returns an error without its number.
fn plain(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), report::reason(error))
}

fn entry(kind: Kind) -> EntryKind {
    match kind {
        Kind::File => EntryKind::File,
        Kind::Directory => EntryKind::Directory,
        Kind::Link | Kind::Other => EntryKind::Other,
    }
}

/// Directories with distributions, in the order in which Python searches them.
#[derive(Debug, Default)]
struct Sites {
    sites: Vec<Site<Environment>>,
    known: HashSet<PathBuf>,
    /// Directories that cannot be looked into.
    faults: Vec<String>,
}

/// Returns the distributions of an environment that is given, or of the environment of this Python, by name; and the faults of
/// directories.
///
/// # Errors
///
/// `prefix` has no environment; without it, Python is missing or fails.
pub fn distributions(prefix: Option<&Path>) -> Result<(Vec<Distribution>, Vec<String>), String> {
    let Sites { sites, faults, .. } = prefix.map_or_else(search_path, search_path_of)?;
    let (found, more) = gpu_packages::distributions(&sites);
    let more = more.iter().filter_map(|(at, fault)| Some(sites.get(*at)?.tree.text(fault)));
    Ok((found, faults.into_iter().chain(more).collect()))
}

/// Returns the directories in which the Python of this environment finds distributions.
fn search_path() -> Result<Sites, String> {
    let printed = python::search_path()
        .map_err(|error| format!("{error}; give the environment with --prefix DIR"))?;
    let mut sites = Sites::default();
    let added = std::env::var_os("PYTHONPATH");
    let added = added.iter().flat_map(std::env::split_paths);
    for path in added.filter(|path| !path.as_os_str().is_empty()) {
        sites.add(&path);
    }
    for path in printed {
        sites.add(&path);
        sites.add_named_in(&path, |_| true);
    }
    Ok(sites)
}

/// Returns the directories with distributions of an environment that is given: below its prefix, or itself. Fails only if there is
/// none.
fn search_path_of(prefix: &Path) -> Result<Sites, String> {
    let mut found = python::directories_in(prefix);
    let is_itself = found.is_empty()
        && Held::open(prefix).is_ok_and(|held| has_distributions(&Environment(held)));
    if is_itself {
        found.push(prefix.to_owned());
    }
    if found.is_empty() {
        let packages =
            if cfg!(windows) { r"Lib\site-packages" } else { "lib/python3.X/site-packages" };
        let prefix = prefix.display();
        return Err(format!("{prefix}: expected a Python environment, with {packages}"));
    }
    let mut sites = Sites::default();
    let real = match real(prefix) {
        Ok(real) => real,
        Err(error) => {
            sites.faults.push(format!("{}: {}", prefix.display(), report::reason(&error)));
            return Ok(sites);
        }
    };
    for path in &found {
        if real::path(path).is_ok_and(|path| !path.starts_with(&real)) {
            sites.faults.push(format!("{}: {LEADS_OUT}", path.display()));
            continue;
        }
        sites.add(path);
        sites.add_named_in(path, |path| path.starts_with(&real));
    }
    Ok(sites)
}

impl Sites {
    /// Adds a directory, unless it is known by any name.
    fn add(&mut self, path: &Path) {
        // Python passes over what is not there.
        let Ok(real) = real::path(path) else { return };
        if !self.known.insert(real.clone()) {
            return;
        }
        if !real.is_dir() {
            let why = "not a directory: packages in zip files are not looked into";
            self.faults.push(format!("{}: {why}", path.display()));
            return;
        }
        match open(path, &real) {
            Ok(site) => self.sites.push(site),
            Err(error) => {
                self.faults.push(format!("{}: {}", path.display(), report::reason(&error)));
            }
        }
    }

    /// Adds the directories that the `.pth` files in one name. Lines of code in them are not run.
    fn add_named_in(&mut self, site: &Path, is_wanted: impl Fn(&Path) -> bool) {
        let Ok(held) = Held::open(site) else { return };
        let Ok(entries) = held.entries(Path::new("")) else { return };
        for (file, _) in entries {
            if Path::new(&file).extension().is_none_or(|extension| extension != "pth") {
                continue;
            }
            let text = match held.read_list(Path::new(&file), MOST_OF_TEXT) {
                Ok(text) => text,
                Err(error) => {
                    let file = held.path_of(Path::new(&file));
                    self.faults.push(format!("{}: {}", file.display(), report::reason(&error)));
                    continue;
                }
            };
            for line in pth_directories(&text) {
                let path = site.join(line);
                let Ok(real) = real::path(&path) else { continue };
                if is_wanted(&real) {
                    self.add(&path);
                } else {
                    let (file, path) = (held.path_of(Path::new(&file)), path.display());
                    self.faults.push(format!("{}: {path} {LEADS_OUT}", file.display()));
                }
            }
        }
    }
}

/// Opens a directory with distributions. `real` is its path without links.
fn open(path: &Path, real: &Path) -> io::Result<Site<Environment>> {
    let (environment, base) = root_and_base(real);
    // Messages name the directory as it was given.
    let root = path.ancestors().nth(base.components().count());
    let root = root.filter(|root| self::real(root).is_ok_and(|root| root == environment));
    let tree = Environment(Held::open(root.unwrap_or(environment))?);
    Ok(Site::new(tree, slashed(base)))
}

/// Returns the path of a directory without links. An empty path means the current directory.
fn real(directory: &Path) -> io::Result<PathBuf> {
    real::path(if directory.as_os_str().is_empty() { Path::new(".") } else { directory })
}

/// Splits the path of a directory with distributions, which has no links: the environment that it is a part of, and its place
/// there.
pub(crate) fn root_and_base(real: &Path) -> (&Path, &Path) {
    let names = real.components().rev().map(|name| name.as_os_str().as_encoded_bytes());
    let root = real.ancestors().nth(site_depth(names)).unwrap_or(real);
    (root, real.strip_prefix(root).unwrap_or(Path::new("")))
}

/// Returns a relative path with `/` between its names.
pub fn slashed(path: &Path) -> Vec<u8> {
    let names: Vec<_> = path.iter().map(|name| input::bytes(OsString::from(name))).collect();
    names.join(&b'/')
}
